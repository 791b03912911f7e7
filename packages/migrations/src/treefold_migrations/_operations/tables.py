"""Operations on whole tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from treefold_migrations._base.errors import StateError
from treefold_migrations._operations import base
from treefold_migrations._state import schema_state
from treefold_migrations._state.renaming import rename_table
from treefold_orm.schema import DEFAULT, Constraint, Field, is_foreign_key, quoted


@dataclass(frozen=True, eq=False)
class CreateTable(base.Operation):
    """Create a table with its fields, constraints and indexes.

    `model` is the name of the class; `managed=False` records a table that others create, and
    changes no database. `as_found` is what a database that was taken over had otherwise: `drift`
    does not report it. The table is created on the database behind the alias `database`, and every
    later operation on it runs there.
    """

    name: str
    fields: Mapping[str, schema_state.AnyField]
    model: str = ""
    primary_key: Sequence[str] = ()
    constraints: Sequence[Constraint] = ()
    indexes: Sequence[schema_state.AnyIndex] = ()
    managed: bool = True
    as_found: Sequence[tuple[str, str, str]] = ()
    database: str = DEFAULT

    def __post_init__(self) -> None:
        base.require_database_alias(self.database)

    @classmethod
    def of(cls, table: schema_state.TableState) -> CreateTable:
        """Return the operation that creates a table of a state."""
        o = table.options
        parts = o.primary_key, o.constraints, o.indexes, o.managed, o.as_found, o.database
        return cls(table.name, dict(table.fields), table.model, *parts)

    @property
    def table(self) -> schema_state.TableState:
        """The table as a state holds it."""
        return schema_state.TableState(
            self.name,
            self.model or self.name,
            dict(self.fields),
            schema_state.TableOptions(
                tuple(self.primary_key),
                tuple(self.constraints),
                tuple(self.indexes),
                self.managed,
                _read_findings(self.as_found),
                self.database,
            ),
        )

    def apply(self, state: schema_state.SchemaState) -> schema_state.SchemaState:
        if self.name in state:
            raise StateError(f"Table {self.name!r} must not exist yet; drop or rename it first")
        table = self.table
        base.require_plain_names(self.name, table.model, self.fields)
        for name, field in self.fields.items():
            check_field(state, table, name, field)
        for name in table.options.primary_key:
            table.field(name)
        return state.with_table(table)

    def reverse(self, before: schema_state.SchemaState) -> base.Operation:
        return DropTable(self.name)

    def describe(self) -> str:
        return f"create table {self.name}"

    def touches(self) -> set[str]:
        return {self.name}

    def relies_on(self) -> set[str]:
        return {str(f.to) for f in self.fields.values() if is_foreign_key(f)} - {self.name}

    def arguments(self, writer: base.OperationWriter) -> tuple[list[str], dict[str, str]]:
        fields = {name: writer.write_part(field) for name, field in self.fields.items()}
        options: dict[str, str] = {}
        if self.model and self.model != self.name:
            options["model"] = quoted(self.model)
        if self.primary_key:
            options["primary_key"] = base.write_list(map(quoted, self.primary_key))
        if self.constraints:
            options["constraints"] = base.write_list(map(writer.write_part, self.constraints))
        if self.indexes:
            options["indexes"] = base.write_list(map(writer.write_part, self.indexes))
        if not self.managed:
            options["managed"] = "False"
        if self.as_found:
            options["as_found"] = write_found_differences(self.as_found)
        if self.database != DEFAULT:
            options["database"] = quoted(self.database)
        return [quoted(self.name), base.write_mapping(fields)], options


@dataclass(frozen=True, eq=False)
class DropTable(base.Operation):
    """Drop a table and all its rows."""

    destructive = True

    name: str

    when = "contract"

    def apply(self, state: schema_state.SchemaState) -> schema_state.SchemaState:
        state.table(self.name)
        for table, field in state.references_to(self.name):
            # a reference to the own table goes with it
            if table.name != self.name:
                raise StateError(
                    f"Table {self.name!r} cannot be dropped while {table.name}.{field} points to "
                    "it; drop or alter that field first"
                )
        return state.without_table(self.name)

    def reverse(self, before: schema_state.SchemaState) -> base.Operation:
        return CreateTable.of(before.table(self.name))

    def describe(self) -> str:
        return f"drop table {self.name}"

    def touches(self) -> set[str]:
        return {self.name}


@dataclass(frozen=True, eq=False)
class RenameTable(base.Operation):
    """Rename a table; foreign keys to it follow."""

    old: str
    new: str

    def apply(self, state: schema_state.SchemaState) -> schema_state.SchemaState:
        return rename_table(state, self.old, self.new)

    def reverse(self, before: schema_state.SchemaState) -> base.Operation:
        return RenameTable(self.new, self.old)

    def describe(self) -> str:
        return f"rename table {self.old} to {self.new}"

    def touches(self) -> set[str]:
        return {self.old, self.new}


@dataclass(frozen=True, eq=False)
class SetOptions(base.Operation):
    """Set the name of the model, the fields of a composite key, whether migrations manage the
    table, or what it has as it was found (`CreateTable`); what is not given stays.
    """

    table: str
    model: str | None = None
    primary_key: Sequence[str] | None = None
    managed: bool | None = None
    as_found: Sequence[tuple[str, str, str]] | None = None

    def apply(self, state: schema_state.SchemaState) -> schema_state.SchemaState:
        table = state.table(self.table)
        if self.model is not None:
            base.require_plain_names(self.table, self.model, ())
            table = replace(table, model=self.model)
        for name in self.primary_key or ():
            table.field(name)
        given = self._collect_given_options().items()
        parts = [(name, value) for name, value in given if name != "model"]
        options = {name: value if name == "managed" else tuple(value) for name, value in parts}
        if self.as_found is not None:
            options["as_found"] = _read_findings(self.as_found)
        return state.with_table(table.with_options(**options))

    def _collect_given_options(self) -> dict[str, Any]:
        names = ("model", "primary_key", "managed", "as_found")
        return {name: value for name in names if (value := getattr(self, name)) is not None}

    def reverse(self, before: schema_state.SchemaState) -> base.Operation:
        table = before.table(self.table)
        given = self._collect_given_options()
        known = {name: getattr(table.options, name) for name in given if name != "model"}
        return SetOptions(self.table, table.model if "model" in given else None, **known)

    def describe(self) -> str:
        return f"set {', '.join(self._collect_given_options()) or 'nothing'} of table {self.table}"

    def touches(self) -> set[str]:
        return {self.table}

    def arguments(self, writer: base.OperationWriter) -> tuple[list[str], dict[str, str]]:
        options: dict[str, str] = {}
        if self.model is not None:
            options["model"] = quoted(self.model)
        if self.primary_key is not None:
            options["primary_key"] = base.write_list(map(quoted, self.primary_key))
        if self.managed is not None:
            options["managed"] = repr(bool(self.managed))
        if self.as_found is not None:
            options["as_found"] = write_found_differences(self.as_found)
        return [quoted(self.table)], options


def _read_findings(given: Sequence[tuple[str, str, str]]) -> tuple[schema_state.AsFound, ...]:
    return tuple(schema_state.AsFound(kind, name, found) for kind, name, found in given)


def write_found_differences(found: Sequence[tuple[str, str, str]]) -> str:
    """Write the differences that were found."""
    return base.write_list(f"({', '.join(map(quoted, item))})" for item in found)


def check_field(
    state: schema_state.SchemaState, owner: schema_state.TableState, name: str, field: Any
) -> None:
    """Raise `StateError` for values other than fields, and a foreign key without its target or to
    another database.
    """
    table = owner.name
    if not isinstance(field, Field):
        raise StateError(f"{table}.{name} must be a field, got {type(field).__name__}")
    known = cast("schema_state.AnyField", field)
    # a class would be that of today, whatever the history had at this point
    if is_foreign_key(known) and not isinstance(known.to, str):
        raise StateError(
            f"{table}.{name} must name its table as text, got {known.to.__name__}; models change, "
            "and migrations stay"
        )
    if is_foreign_key(known) and known.to != table and known.to not in state:
        raise StateError(
            f"{table}.{name} points to the table {known.to!r}, which must exist; create it first"
        )
    target = state.tables.get(str(known.to)) if is_foreign_key(known) else None
    if target is not None and target.options.database != owner.options.database:
        raise StateError(
            f"{table}.{name} points to the table {target.name!r} of the database "
            f"{target.options.database!r}, and {table!r} is of {owner.options.database!r}; keep "
            "the key in a plain field"
        )
