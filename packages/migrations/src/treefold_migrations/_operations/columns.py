"""Operations on single fields."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from treefold_migrations._base.errors import StateError
from treefold_migrations._operations import base
from treefold_migrations._operations.tables import check_field
from treefold_migrations._state.renaming import find_parts_using_field, rename_field
from treefold_migrations._state.schema_state import (
    AnyField,
    SchemaState,
    TableState,
    derive_column_name,
)
from treefold_orm import Expression, Now
from treefold_orm.schema import MISSING, is_foreign_key, quoted


@dataclass(frozen=True, eq=False)
class AddField(base.Operation):
    """Add a field; `fill` is the value of existing rows, a constant or an expression.

    Without `fill`, rows get the field's `db_default`, or NULL.
    """

    table: str
    name: str
    field: AnyField
    fill: Any = MISSING

    def apply(self, state: SchemaState) -> SchemaState:
        table = state.table(self.table)
        if self.name in table.fields:
            raise StateError(f"{self.table}.{self.name} must not exist yet; alter or drop it")
        base.require_plain_names(self.table, table.model, [self.name])
        check_field(state, table, self.name, self.field)
        _require_unused_column(table, self.name, self.field)
        return state.with_table(table.with_fields({**table.fields, self.name: self.field}))

    def reverse(self, before: SchemaState) -> base.Operation:
        return DropField(self.table, self.name)

    def describe(self) -> str:
        return f"add field {self.table}.{self.name}"

    def touches(self) -> set[str]:
        return {f"{self.table}.{self.name}"}

    def relies_on(self) -> set[str]:
        return collect_target_tables(self.field)

    def arguments(self, writer: base.OperationWriter) -> tuple[list[str], dict[str, str]]:
        args = [quoted(self.table), quoted(self.name), writer.write_part(self.field)]
        return args, write_fill_option(self.fill, writer)


@dataclass(frozen=True, eq=False)
class DropField(base.Operation):
    """Drop a field and its values."""

    destructive = True

    table: str
    name: str

    when = "contract"

    def apply(self, state: SchemaState) -> SchemaState:
        table = state.table(self.table)
        table.field(self.name)
        # PostgreSQL would drop such parts with the column, and SQLite refuse the statement
        used = find_parts_using_field(table, self.name)
        used += ["the primary key"] if self.name in table.options.primary_key else []
        if used:
            raise StateError(
                f"{self.table}.{self.name} cannot be dropped while {', '.join(used)} uses it; drop "
                "or change that first"
            )
        fields = {name: field for name, field in table.fields.items() if name != self.name}
        return state.with_table(table.with_fields(fields))

    def reverse(self, before: SchemaState) -> base.Operation:
        return AddField(self.table, self.name, before.table(self.table).field(self.name))

    def describe(self) -> str:
        return f"drop field {self.table}.{self.name}"

    def touches(self) -> set[str]:
        return {f"{self.table}.{self.name}"}


@dataclass(frozen=True, eq=False)
class AlterField(base.Operation):
    """Replace the definition of a field; values stay.

    `fill` replaces NULL in existing rows of a field that must no longer be NULL. `using` is the SQL
    that converts values to a type without a lossless conversion: one text,
    or a mapping of "sqlite" and "postgres" to texts. It is inserted into the statement unchanged. A
    change that breaks the previous release has `when="contract"`.
    """

    table: str
    name: str
    field: AnyField
    fill: Any = MISSING
    when: base.Phase = "expand"
    using: str | Mapping[str, str] = ""

    def __post_init__(self) -> None:
        base.check_phase(self.when)
        for dialect in ("sqlite", "postgres"):
            self.using_on(dialect)

    def using_on(self, dialect: str) -> str:
        """Return the SQL of `using` for "sqlite" or "postgres", empty where there is none.

        Raises `StateError` if it is not SQL.
        """
        given: Any = self.using
        if isinstance(given, Mapping):
            texts = cast("Mapping[str, Any]", given)
            unknown = texts.keys() - {"sqlite", "postgres"}
            if unknown:
                raise StateError(f"using knows 'sqlite' and 'postgres', got {min(unknown)!r}")
            given = texts.get(dialect, "")
        if not isinstance(given, str):
            raise StateError(f"using must be SQL as text, got {given!r}")
        return given

    def apply(self, state: SchemaState) -> SchemaState:
        table = state.table(self.table)
        table.field(self.name)
        check_field(state, table, self.name, self.field)
        remedy = "; change that one first, in a migration of its own"
        _require_unused_column(table, self.name, self.field, remedy)
        return state.with_table(table.with_fields({**table.fields, self.name: self.field}))

    def reverse(self, before: SchemaState) -> base.Operation:
        return AlterField(self.table, self.name, before.table(self.table).field(self.name))

    def describe(self) -> str:
        return f"alter field {self.table}.{self.name}"

    def touches(self) -> set[str]:
        return {f"{self.table}.{self.name}"}

    def relies_on(self) -> set[str]:
        return collect_target_tables(self.field)

    def arguments(self, writer: base.OperationWriter) -> tuple[list[str], dict[str, str]]:
        args = [quoted(self.table), quoted(self.name), writer.write_part(self.field)]
        options = write_fill_option(self.fill, writer)
        if self.when != "expand":
            options["when"] = quoted(self.when)
        if self.using:
            given = self.using if isinstance(self.using, str) else dict(self.using)
            options["using"] = writer.write_value(given)
        return args, options


@dataclass(frozen=True, eq=False)
class RenameField(base.Operation):
    """Rename a field; constraints and indexes follow.

    The column follows too, unless the field has a `db_column`.
    """

    table: str
    old: str
    new: str

    def apply(self, state: SchemaState) -> SchemaState:
        base.require_plain_names(self.table, "model", [self.new])
        return state.with_table(rename_field(state.table(self.table), self.old, self.new))

    def reverse(self, before: SchemaState) -> base.Operation:
        return RenameField(self.table, self.new, self.old)

    def describe(self) -> str:
        return f"rename field {self.table}.{self.old} to {self.new}"

    def touches(self) -> set[str]:
        return {f"{self.table}.{self.old}", f"{self.table}.{self.new}"}


def _require_unused_column(table: TableState, name: str, field: AnyField, remedy: str = "") -> None:
    column = derive_column_name(name, field)
    for other, there in table.fields.items():
        if other != name and derive_column_name(other, there) == column:
            raise StateError(
                f"{table.name}.{name} cannot use the column {column!r}, which belongs to "
                f"{table.name}.{other}{remedy}"
            )


def collect_target_tables(field: AnyField) -> set[str]:
    """Return the table that a foreign key points to, as a set."""
    return {cast("str", field.to)} if is_foreign_key(field) else set()


def is_fill_computed_per_row(fill: Any) -> bool:
    """Return True for a fill that the database computes for each row; `Now` is one for all."""
    # the time of the statement is one value for all rows
    return isinstance(fill, Expression) and not isinstance(fill, Now)


def write_fill_option(fill: Any, writer: base.OperationWriter) -> dict[str, str]:
    """Return the argument of a fill, where there is one."""
    return {} if fill is MISSING else {"fill": writer.write_value(fill)}
