"""SchemaState: the tables that a history of migrations leads to, by name.

Tables hold unbound fields of the ORM, and foreign keys name the table that they point to. States
are never changed in place: a change makes a new one, which shares unchanged parts. No SQL.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field as attribute, replace
from typing import Any, NamedTuple

from treefold_migrations._base.errors import StateError
from treefold_orm import schema

AnyField = schema.Field[Any]
AnyIndex = schema.Index | schema.SearchIndex


class AsFound(NamedTuple):
    """One difference of a database that was taken over: `found` is what it had there.

    Examples of SQLite, of which the first three are properties of a table or a column, the fourth a
    column without a field, and the last one a check that the model makes and the table lacks:

        AsFound("table", "book", "not STRICT")
        AsFound("type", "title", "VARCHAR(80)")
        AsFound("column", "title", "COLLATE NOCASE")
        AsFound("column", "size", "INTEGER")
        AsFound("check", "ck_book_title", "missing")

    A migration file holds it as a plain tuple.
    """

    kind: str
    name: str
    found: str


@dataclass(frozen=True, slots=True)
class TableOptions:
    """The parts of a table besides fields.

    `primary_key` names the fields of a key of several columns; `managed` is False for a table that
    others create, of which migrations only know. `as_found` holds what a database had otherwise
    when its tables were taken over. `database` is the alias of the database that the table is in.
    """

    primary_key: tuple[str, ...] = ()
    constraints: tuple[schema.Constraint, ...] = ()
    indexes: tuple[AnyIndex, ...] = ()
    managed: bool = True
    as_found: tuple[AsFound, ...] = ()
    database: str = schema.DEFAULT


@dataclass(frozen=True, slots=True)
class TableState:
    """One table: its fields by name, in order, and its options; `model` is the class's name."""

    name: str
    model: str
    fields: Mapping[str, AnyField]
    options: TableOptions = TableOptions()

    def field(self, name: str) -> AnyField:
        """Return a field; raises `StateError` for a name that the table does not have."""
        try:
            return self.fields[name]
        except KeyError:
            known = ", ".join(self.fields) or "none"
            raise StateError(f"{self.name}.{name} must exist; the table has {known}") from None

    def column(self, name: str) -> str:
        """Return the column of a field, which may also be named by its attribute."""
        found = self.fields.get(name)
        known = self.fields.get(name.removesuffix("_id"))
        if found is None and name.endswith("_id") and schema.is_foreign_key(known):
            name = name[:-3]
        return derive_column_name(name, self.field(name))

    def constraint(self, name: str) -> schema.Constraint:
        """Return a constraint by its name in the database; raises `StateError` without one."""
        for constraint in self.options.constraints:
            if self.constraint_name(constraint) == name:
                return constraint
        raise StateError(f"Table {self.name!r} must have the constraint {name!r}, got none")

    def constraint_name(self, constraint: schema.Constraint) -> str:
        """Return the name of a constraint in the database."""
        if constraint.name or not isinstance(constraint, schema.UniqueConstraint):
            return constraint.name
        return schema.constraint_name("uq", self.name, *map(self.column, constraint.fields))

    def index(self, name: str) -> AnyIndex:
        """Return an index by its name in the database; raises `StateError` without one."""
        for index in self.options.indexes:
            if self.index_name(index) == name:
                return index
        raise StateError(f"Table {self.name!r} must have the index {name!r}, got none")

    def index_name(self, index: AnyIndex) -> str:
        """Return the name of an index in the database."""
        if index.name:
            return index.name
        if isinstance(index, schema.SearchIndex):
            return schema.constraint_name("fts", self.name, *map(self.column, index.fields))
        words: list[str] = []
        for term in index.fields:
            if isinstance(term, str):
                words.append(self.column(term.removeprefix("-")))
                words += ["desc"] if term.startswith("-") else []
        return schema.constraint_name("ix", self.name, *words)

    def with_fields(self, fields: Mapping[str, AnyField]) -> TableState:
        """Return the table with other fields."""
        return replace(self, fields=fields)

    def with_options(self, **options: Any) -> TableState:
        """Return the table with some options replaced."""
        return replace(self, options=replace(self.options, **options))


@dataclass(frozen=True, slots=True)
class SchemaState:
    """All tables by name, in order of creation."""

    tables: Mapping[str, TableState] = attribute(default_factory=dict[str, TableState])

    def table(self, name: str) -> TableState:
        """Return a table; raises `StateError` for a name that is not known."""
        try:
            return self.tables[name]
        except KeyError:
            known = ", ".join(self.tables) or "none"
            raise StateError(f"Table {name!r} must exist; known tables: {known}") from None

    def with_table(self, table: TableState) -> SchemaState:
        """Return the state with a table added or replaced."""
        return SchemaState({**self.tables, table.name: table})

    def without_table(self, name: str) -> SchemaState:
        """Return the state without a table."""
        return SchemaState({n: table for n, table in self.tables.items() if n != name})

    def references_to(self, name: str) -> Iterator[tuple[TableState, str]]:
        """Yield the tables and fields of all foreign keys that point to a table."""
        for table in self.tables.values():
            for field_name, field in table.fields.items():
                if schema.is_foreign_key(field) and field.to == name:
                    yield table, field_name

    def __contains__(self, name: object) -> bool:
        return name in self.tables


def derive_column_name(name: str, field: AnyField) -> str:
    """Return the column of an unbound field of this name."""
    return field.db_column or (f"{name}_id" if schema.is_foreign_key(field) else name)


def is_same_declaration(one: Any, other: Any) -> bool:
    """True for two fields, constraints or indexes that mean the same to a schema."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    first: Any = one
    if isinstance(one, schema.Field) and schema.same_declarations(first, other):
        return True
    return schema.source_of(first) == schema.source_of(other)


def is_same_table(one: TableState, other: TableState) -> bool:
    """True for two tables that mean the same; the order of fields and options does not count."""
    if one is other:
        return True
    mine, theirs = one.options, other.options
    return (
        (one.name, one.model, mine.primary_key, mine.managed, mine.database)
        == (other.name, other.model, theirs.primary_key, theirs.managed, theirs.database)
        and one.fields.keys() == other.fields.keys()
        and all(
            is_same_declaration(field, other.fields[name]) for name, field in one.fields.items()
        )
        and _sort_part_sources(mine.constraints) == _sort_part_sources(theirs.constraints)
        and _sort_part_sources(mine.indexes) == _sort_part_sources(theirs.indexes)
    )


def _sort_part_sources(parts: tuple[Any, ...]) -> list[str]:
    return sorted(schema.source_of(part)[0] for part in parts)


def is_same_state(one: SchemaState, other: SchemaState) -> bool:
    """True for two states with the same tables, in whichever order."""
    return one.tables.keys() == other.tables.keys() and all(
        is_same_table(table, other.tables[name]) for name, table in one.tables.items()
    )
