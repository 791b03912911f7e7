"""Values for rows when a rollback brings back a field that no row can be without.

File: `DropField("book", "shelf")` of an `IntegerField(default=0)`. Its reverse is `AddField("book",
"shelf", IntegerField(default=0))`; with rows in `book` it needs a `fill`, which is, in this order:

1. `rollback --fill book.shelf:3`, or `book.shelf:{id}` for another one in each row;
2. a plain default, or the time for `auto_now`: here 0, as `makemigrations` does forwards;
3. none: `require_fill_values` refuses before the first step if there are rows, with the flag to
   give.

A default that is a function is no part of a file, so it is case 3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from treefold_migrations._base.errors import Ambiguous, MigrationError
from treefold_migrations._detect.answers import parse_fill_flags
from treefold_migrations._detect.fill_templates import BY_ROW
from treefold_migrations._detect.fills import find_constant_default, needs_fill, parse_fill_value
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.columns import AddField, AlterField
from treefold_migrations._operations.custom import SeparateStateAndDatabase
from treefold_migrations._records.effects import Flow, fetch_rows
from treefold_migrations._records.records import Progress
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import MISSING, quote


@dataclass(frozen=True, slots=True)
class Unfilled:
    """A field that comes back without a value; `column` is there already, and may hold NULL.
    `unique` fields need another value in each row.
    """

    migration: str
    table: str
    name: str
    column: str = ""
    unique: bool = False

    @property
    def field_path(self) -> str:
        """The field as flags name it."""
        return f"{self.table}.{self.name}"


@dataclass(slots=True)
class RollbackFills:
    """The texts of `--fill` by field, those that were used, and the fields without a value.

    `kept` are texts of a rollback that failed halfway, as the journal has them.
    """

    texts: Mapping[str, str] = field(default_factory=dict[str, str])
    kept: Mapping[str, str] = field(default_factory=dict[str, str])
    used: set[str] = field(default_factory=set[str])
    missing: list[Unfilled] = field(default_factory=list[Unfilled])

    @classmethod
    def from_flags(cls, flags: Iterable[str]) -> RollbackFills:
        """Return the values that flags give; raises `MigrationError` for one in another form."""
        return cls(parse_fill_flags(flags))

    @classmethod
    def from_journal(cls, entry: Progress) -> RollbackFills:
        """Return the values that a file was given whose rollback has begun."""
        return cls(kept=parse_fill_flags(entry.fills))

    def list_flags_used_since(self, before: frozenset[str]) -> tuple[str, ...]:
        """Return the flags of the values that were used, but for the fields in `before`."""
        texts = {**self.kept, **self.texts}
        return tuple(f"{subject}:{texts[subject]}" for subject in sorted(self.used - before))

    def refuse_unused(self) -> None:
        """Raise `MigrationError` for a value of a field that this rollback does not bring back."""
        for subject in self.texts:
            if subject not in self.used:
                raise MigrationError(
                    f"--fill {subject} does not fit: this rollback brings back no such field; "
                    "`rollback --plan` shows those that it does"
                )

    def fill_operation(self, migration: str, operation: Operation, start: SchemaState) -> Operation:
        """Return a reversed operation with the values that it needs.

        Args:
            migration: the file that is rolled back.
            operation: the reverse of one of its operations.
            start: the state that the reverse begins with.

        Raises `MigrationError` for a value that the field does not take.
        """
        if isinstance(operation, SeparateStateAndDatabase):
            inner = list(self._fill_operations(migration, operation.database, start))
            return replace(operation, database=inner)
        if not isinstance(operation, AddField | AlterField) or operation.fill is not MISSING:
            return operation
        end = operation.apply(start)
        if not end.table(operation.table).options.managed:
            return operation
        column = ""
        if isinstance(operation, AlterField):
            before = start.table(operation.table)
            # NULL was not allowed before either, so that no row lacks a value
            if operation.field.null or not before.field(operation.name).null:
                return operation
            column = before.column(operation.name)
        value = self._choose_fill_value(migration, operation, end, column)
        return operation if value is MISSING else replace(operation, fill=value)

    def _fill_operations(
        self, migration: str, operations: Iterable[Operation], start: SchemaState
    ) -> Iterator[Operation]:
        for operation in operations:
            yield self.fill_operation(migration, operation, start)
            start = operation.apply(start)

    def _choose_fill_value(
        self, migration: str, operation: AddField | AlterField, end: SchemaState, column: str
    ) -> Any:
        table, name, made = operation.table, operation.name, operation.field
        subject = f"{table}.{name}"
        texts = {**self.kept, **self.texts}
        if subject in texts:
            self.used.add(subject)
            return parse_fill_value(end, table, name, texts[subject])
        # a default of the database fills a new column, and leaves NULL in one that is there
        if not needs_fill(made):
            return made.db_default if column else MISSING
        known = find_constant_default(made)
        if known is MISSING:
            self.missing.append(Unfilled(migration, table, name, column, made.unique))
        return known


def require_fill_values(missing: Iterable[Unfilled], live: SchemaState) -> Flow[None]:
    """Stop before the first step where rows need a value and none is given.

    Args:
        missing: the fields without a value.
        live: the state of the database now; a table that it has under another name counts as one
            with rows.

    Raises:
        Ambiguous: with the flags to give.
    """
    wanted: list[Unfilled] = []
    for lacking in missing:
        if (yield from _has_rows_without_value(lacking, live)):
            wanted.append(lacking)  # noqa: PERF401 - a comprehension cannot yield
    if not wanted:
        return
    flags = tuple(f"--fill {lacking.field_path}:VALUE" for lacking in wanted)
    raise Ambiguous(
        f"Rolling back {wanted[0].migration!r} brings back "
        f"{', '.join(lacking.field_path for lacking in wanted)}, which rows that exist must have a "
        f"value in; nothing was changed. Run rollback again with {' '.join(flags)}"
        f"{BY_ROW if any(lacking.unique for lacking in wanted) else ''}",
        flags=flags,
    )


def _has_rows_without_value(lacking: Unfilled, live: SchemaState) -> Flow[bool]:
    table = live.tables.get(lacking.table)
    # it has another name now, and a query by this one would fail
    if table is None:
        return True
    where = ""
    if lacking.column:
        if lacking.name not in table.fields or table.column(lacking.name) != lacking.column:
            return True
        where = f" WHERE {quote(lacking.column)} IS NULL"
    return bool((yield from fetch_rows(f"SELECT 1 FROM {quote(lacking.table)}{where} LIMIT 1")))  # noqa: S608 - quoted
