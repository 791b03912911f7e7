"""A trace of operations: where each table and field of the state after comes from.

It turns operations into the `PlannerHints` of the planner. Operations that it cannot follow
together are planned one after the other.

Example: after both operations, `length` of `book` comes from `pages`, so they are planned together:
the column is renamed first, and the rebuild reads `length`:

    >>> RenameField("book", "pages", "length"),
    ... AlterField("book", "length", fields.BigIntegerField(null=True))
    SQLite: ALTER TABLE "book" RENAME COLUMN "pages" TO "length"
    SQLite: INSERT INTO "treefold_rebuilt" ("id", "title", "length", "price")
    SELECT "id", "title", "length", "price" FROM "book"
"""

from __future__ import annotations

from typing import Any

from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.columns import (
    AddField,
    AlterField,
    DropField,
    RenameField,
    is_fill_computed_per_row,
)
from treefold_migrations._operations.tables import CreateTable, DropTable, RenameTable
from treefold_migrations._plan.between import Place, PlannerHints
from treefold_migrations._state.rendering import render_fill_sql
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import MISSING, Dialect


class OperationTrace:
    """Later names of the tables and fields of one state."""

    def __init__(self, state: SchemaState, dialect: Dialect) -> None:
        self._first = state
        self._dialect = dialect
        # the names of the first state by those of the state after; None for what is new
        self._tables: dict[str, str | None] = {name: name for name in state.tables}
        self._fields: dict[str, dict[str, str | None]] = {
            name: {field: field for field in table.fields} for name, table in state.tables.items()
        }
        # SQL for rows without a value, and for the conversion of values, by the place afterwards
        self._fills: dict[Place, str] = {}
        self._using: dict[Place, str] = {}
        self._altered: set[Place] = set()

    def can_add_operation(self, operation: Operation) -> bool:
        """True where the operation can be planned together with those before it."""
        match operation:
            case CreateTable(name=name) | RenameTable(new=name):
                # a name of the first state that is given twice would pair the new table with the
                # old rows
                return name not in self._first.tables
            case AddField(fill=fill) | AlterField(fill=fill) if is_fill_computed_per_row(fill):
                return False  # it reads columns as the operations before have made them
            case AlterField(table=table, name=name):
                place = table, name
                # two conversions of one column: only the first one fits the type that the rows have
                return place not in self._altered and place not in self._fills
            case _:
                return True

    def add_operation(self, operation: Operation, after: SchemaState) -> None:
        """Follow one operation; `after` is the state that it leads to."""
        match operation:
            case CreateTable(name=name, fields=fields):
                # None is the difference between a new table and one that was not renamed
                self._tables[name] = None
                self._fields[name] = dict.fromkeys(fields)
            case DropTable(name=name):
                self._forget_dropped_fields({(name, field) for field in self._fields[name]})
                del self._tables[name], self._fields[name]
            case RenameTable(old=old, new=new):
                self._tables[new] = self._tables.pop(old)
                self._fields[new] = self._fields.pop(old)
                self._rename_traced_fields({(old, name): (new, name) for name in self._fields[new]})
            case AddField(table=table, name=name, fill=fill):
                self._fields[table][name] = None
                self._record_fill((table, name), fill, after)
            case DropField(table=table, name=name):
                self._forget_dropped_fields({(table, name)})
                del self._fields[table][name]
            case RenameField(table=table, old=old, new=new):
                fields = self._fields[table]
                self._fields[table] = {new if n == old else n: o for n, o in fields.items()}
                self._rename_traced_fields({(table, old): (table, new)})
            case AlterField(table=table, name=name, fill=fill):
                self._altered.add((table, name))
                self._record_fill((table, name), fill, after)
                using = operation.using_on(self._dialect.name)
                if using:
                    self._using[table, name] = using
            case _:
                pass

    def _rename_traced_fields(self, moved: dict[Place, Place]) -> None:
        self._fills = {moved.get(place, place): sql for place, sql in self._fills.items()}
        self._using = {moved.get(place, place): sql for place, sql in self._using.items()}
        self._altered = {moved.get(place, place) for place in self._altered}

    def _forget_dropped_fields(self, gone: set[Place]) -> None:
        self._fills = {place: sql for place, sql in self._fills.items() if place not in gone}
        self._using = {place: sql for place, sql in self._using.items() if place not in gone}
        self._altered -= gone

    def _record_fill(self, table_and_field: Place, value: Any, after: SchemaState) -> None:
        # a fill of NULL fills nothing
        if value is not MISSING and value is not None:
            fill = render_fill_sql(after, *table_and_field, value, self._dialect)
            self._fills[table_and_field] = fill

    def build_planner_hints(self, new_tables: frozenset[str]) -> PlannerHints:
        """Knowledge of the planner besides the states."""
        tables = {new: old for new, old in self._tables.items() if old and old != new}
        fields = {
            table: {name: old for name, old in fields.items() if old != name}
            for table, fields in self._fields.items()
            if self._tables[table] is not None
        }
        kept = {table: renamed for table, renamed in fields.items() if renamed}
        # a table that the same operations create has no rows to fill
        fills = {place: sql for place, sql in self._fills.items() if self._tables[place[0]]}
        return PlannerHints(tables, kept, fills, self._using, new_tables)
