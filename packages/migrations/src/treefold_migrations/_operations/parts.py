"""Operations on constraints and indexes. A dropped part is named as in the database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from treefold_migrations._base.errors import StateError
from treefold_migrations._operations.base import Operation, OperationWriter
from treefold_migrations._state.renaming import collect_field_names
from treefold_migrations._state.schema_state import AnyIndex, SchemaState, TableState
from treefold_orm.schema import Constraint, quoted, source_of


@dataclass(frozen=True, eq=False)
class AddConstraint(Operation):
    """Add a unique, check or exclusion constraint; rows that exist must meet it."""

    table: str
    constraint: Constraint

    when = "contract"

    def apply(self, state: SchemaState) -> SchemaState:
        table = state.table(self.table)
        check_columns(table, self.constraint)
        name = table.constraint_name(self.constraint)
        require_unused_name(table, name)
        constraints = (*table.options.constraints, self.constraint)
        return state.with_table(table.with_options(constraints=constraints))

    def reverse(self, before: SchemaState) -> Operation:
        name = before.table(self.table).constraint_name(self.constraint)
        return DropConstraint(self.table, name)

    def describe(self) -> str:
        return f"add constraint {self.constraint.name or 'over fields'} to table {self.table}"

    def touches(self) -> set[str]:
        return {f"{self.table}#{self.constraint.name or source_of(self.constraint)[0]}"}

    def relies_on(self) -> set[str]:
        return {f"{self.table}.{name}" for name in collect_field_names(self.constraint)}

    def arguments(self, writer: OperationWriter) -> tuple[list[str], dict[str, str]]:
        return [quoted(self.table), writer.write_part(self.constraint)], {}


@dataclass(frozen=True, eq=False)
class DropConstraint(Operation):
    """Drop a constraint by its name in the database."""

    table: str
    name: str

    def apply(self, state: SchemaState) -> SchemaState:
        table = state.table(self.table)
        dropped = table.constraint(self.name)
        constraints = tuple(c for c in table.options.constraints if c is not dropped)
        return state.with_table(table.with_options(constraints=constraints))

    def reverse(self, before: SchemaState) -> Operation:
        return AddConstraint(self.table, before.table(self.table).constraint(self.name))

    def describe(self) -> str:
        return f"drop constraint {self.name} of table {self.table}"

    def touches(self) -> set[str]:
        return {f"{self.table}#{self.name}"}


@dataclass(frozen=True, eq=False)
class AddIndex(Operation):
    """Create an index or a full text search; on PostgreSQL without blocking writes."""

    table: str
    index: AnyIndex

    def apply(self, state: SchemaState) -> SchemaState:
        table = state.table(self.table)
        check_columns(table, self.index)
        require_unused_name(table, table.index_name(self.index))
        return state.with_table(table.with_options(indexes=(*table.options.indexes, self.index)))

    def reverse(self, before: SchemaState) -> Operation:
        return DropIndex(self.table, before.table(self.table).index_name(self.index))

    def describe(self) -> str:
        return f"create index {self.index.name or 'over fields'} on table {self.table}"

    def touches(self) -> set[str]:
        return {f"{self.table}#{self.index.name or source_of(self.index)[0]}"}

    def relies_on(self) -> set[str]:
        return {f"{self.table}.{name}" for name in collect_field_names(self.index)}

    def arguments(self, writer: OperationWriter) -> tuple[list[str], dict[str, str]]:
        return [quoted(self.table), writer.write_part(self.index)], {}


@dataclass(frozen=True, eq=False)
class DropIndex(Operation):
    """Drop an index or a full text search by its name in the database."""

    table: str
    name: str

    when = "contract"

    def apply(self, state: SchemaState) -> SchemaState:
        table = state.table(self.table)
        dropped = table.index(self.name)
        indexes = tuple(index for index in table.options.indexes if index is not dropped)
        return state.with_table(table.with_options(indexes=indexes))

    def reverse(self, before: SchemaState) -> Operation:
        return AddIndex(self.table, before.table(self.table).index(self.name))

    def describe(self) -> str:
        return f"drop index {self.name} of table {self.table}"

    def touches(self) -> set[str]:
        return {f"{self.table}#{self.name}"}


def check_columns(table: TableState, part: Any) -> None:
    """Raise `StateError` for a constraint or index over a field that the table does not have."""
    for name in collect_field_names(part) - {"pk"}:
        table.column(name)


def require_unused_name(table: TableState, name: str) -> None:
    """Raise `StateError` for a name that another constraint or index of the table has."""
    options = table.options
    taken = [table.constraint_name(c) for c in options.constraints]
    taken += [table.index_name(i) for i in options.indexes]
    if name in taken:
        raise StateError(
            f"Table {table.name!r} has a constraint or index called {name!r} already; drop it "
            "first, or choose another name"
        )
