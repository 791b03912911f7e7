"""The schema as data, and as SQL for new tables.

`table_of` describes a model as plain records that can be compared and stored; `Operation`s (create
a table, add an index) are data too, and `statements` writes them for a dialect. `create_all` is
the quick start: it creates what is missing and never alters a table.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from treefold_orm._compile._conditions import condition as condition_sql
from treefold_orm._compile._dialect import Dialect
from treefold_orm._compile._frame import Frame
from treefold_orm._compile._nodes import Expr, Node
from treefold_orm._compile._sql import SQL, Builder
from treefold_orm._compile._values import expression as expression_sql
from treefold_orm._conditions import Condition
from treefold_orm._connections import database_for
from treefold_orm._constraints import CheckConstraint, Index, UniqueConstraint
from treefold_orm._errors import ModelError, UnsupportedFeature
from treefold_orm._expressions import Expression
from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import AutoField
from treefold_orm._fields._relations import ForeignKey, is_foreign_key
from treefold_orm._meta import Meta, registry
from treefold_orm._names import constraint_name, quote
from treefold_orm._run import arun, run
from treefold_orm._schema_search import (
    CreateSearchIndex,
    DropSearchIndex,
    SearchDef,
    create_search,
    drop_search,
    search_of,
)
from treefold_orm._scope import Scope
from treefold_orm._search_index import search_indexes
from treefold_orm._statement import Operation as Generated, Statement

if TYPE_CHECKING:
    from treefold_orm._model import Model


@dataclass(frozen=True, slots=True)
class ColumnDef:
    """One column in one dialect: `type` and `checks` are SQL of this package, `identity` a
    generated key.
    """

    name: str
    type: str
    null: bool = False
    identity: bool = False
    checks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ForeignKeyDef:
    """A reference to another table."""

    name: str
    column: str
    target: str
    target_column: str
    on_delete: str


@dataclass(frozen=True, slots=True)
class UniqueDef:
    """Rows that may exist once; `where` is SQL, for a partial one."""

    name: str
    columns: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class CheckDef:
    """A condition every row meets, as SQL."""

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class IndexDef:
    """An index: `terms` are SQL (quoted columns with their direction, or expressions)."""

    name: str
    terms: tuple[str, ...]
    where: str = ""


@dataclass(frozen=True, slots=True)
class TableDef:
    """One table in one dialect."""

    name: str
    columns: tuple[ColumnDef, ...]
    primary_key: str
    foreign_keys: tuple[ForeignKeyDef, ...] = ()
    uniques: tuple[UniqueDef, ...] = ()
    checks: tuple[CheckDef, ...] = ()
    indexes: tuple[IndexDef, ...] = ()
    searches: tuple[SearchDef, ...] = ()


@dataclass(frozen=True, slots=True)
class CreateTable:
    """Create a table with everything that belongs to it."""

    table: TableDef
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class DropTable:
    """Drop a table."""

    name: str
    if_present: bool = False


@dataclass(frozen=True, slots=True)
class CreateIndex:
    """Create an index, or a partial unique one."""

    table: str
    index: IndexDef
    unique: bool = False
    if_missing: bool = False


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    """Add a reference to an existing table (PostgreSQL, where tables point to each other)."""

    table: str
    key: ForeignKeyDef


SchemaOperation = (
    CreateTable | DropTable | CreateIndex | AddForeignKey | CreateSearchIndex | DropSearchIndex
)


def table_of(meta: Meta, dialect: Dialect) -> TableDef:
    """Describe a model's table in a dialect."""
    name = meta.table_name
    foreign = [_foreign_key(meta, f) for f in meta.columns if is_foreign_key(f)]
    uniques = [
        UniqueDef(constraint_name("uq", name, f.column_name), (f.column_name,))
        for f in meta.columns
        if f.unique and not f.primary_key
    ]
    indexes = [
        IndexDef(constraint_name("ix", name, f.column_name), (f.quoted,))
        for f in meta.columns
        if f.db_index and not f.unique
    ]
    checks: list[CheckDef] = []
    for constraint in meta.constraints:
        if isinstance(constraint, UniqueConstraint):
            uniques.append(_unique(meta, constraint, dialect))
        elif isinstance(constraint, CheckConstraint):
            checks.append(CheckDef(constraint.name, _constant(meta, constraint.condition, dialect)))
    indexes += [_index(meta, index, dialect) for index in meta.indexes if isinstance(index, Index)]
    searches = [search_of(meta, index, dialect) for index in search_indexes(meta)]
    columns = tuple(_column(field, dialect) for field in meta.columns)
    return TableDef(
        name,
        columns,
        meta.pk.column_name,
        tuple(foreign),
        tuple(uniques),
        tuple(checks),
        tuple(indexes),
        tuple(searches),
    )


def _column(field: Field[Any], dialect: Dialect) -> ColumnDef:
    checks = tuple(check.format(field.quoted) for check in field.checks(dialect.name))
    kind = field.column_type(dialect.name)
    return ColumnDef(field.column_name, kind, field.null, isinstance(field, AutoField), checks)


def _foreign_key(meta: Meta, field: ForeignKey[Any, Any]) -> ForeignKeyDef:
    target = field.known_target
    name = constraint_name("fk", meta.table_name, field.column_name)
    return ForeignKeyDef(
        name, field.column_name, target.table_name, target.pk.column_name, field.on_delete
    )


def _field(meta: Meta, name: str) -> Field[Any]:
    found = meta.pk if name == "pk" else meta.fields.get(name) or meta.by_attname.get(name)
    if found is None:
        raise meta.unknown(name)
    return found


def _unique(meta: Meta, constraint: UniqueConstraint, dialect: Dialect) -> UniqueDef:
    columns = tuple(_field(meta, name).column_name for name in constraint.fields)
    where = "" if constraint.condition is None else _constant(meta, constraint.condition, dialect)
    return UniqueDef(
        constraint.name or constraint_name("uq", meta.table_name, *columns), columns, where
    )


def _index(meta: Meta, index: Index, dialect: Dialect) -> IndexDef:
    terms: list[str] = []
    columns: list[str] = []
    for item in index.fields:
        if isinstance(item, str):
            field = _field(meta, item.removeprefix("-"))
            columns.append(field.column_name)
            terms.append(f"{field.quoted} DESC" if item.startswith("-") else field.quoted)
        else:
            terms.append(f"({_constant(meta, item, dialect)})")
    where = "" if index.condition is None else _constant(meta, index.condition, dialect)
    return IndexDef(
        index.name or constraint_name("ix", meta.table_name, *columns), tuple(terms), where
    )


class _Unaliased(Frame):
    """A frame whose columns stand without alias, as DDL wants them."""

    def column(self, hops: Any, field: Field[Any]) -> SQL:
        if hops:
            raise ModelError(
                f"{self.meta.name}: constraints and indexes cannot look into another table"
            )
        from treefold_orm._compile._sql import column_name

        return column_name(field)


def _constant(meta: Meta, item: Condition | Expression, dialect: Dialect) -> str:
    builder = Builder()
    frame = _Unaliased(builder, dialect, meta, joinable=False)
    scope = Scope(meta, [])
    if isinstance(item, Condition):
        node: Node = item.freeze_condition(scope)
        text = condition_sql(frame, node, right=frame)[0]
    else:
        expr: Expr = item.freeze(scope)
        text = expression_sql(frame, expr)
    pieces = text.text.split("\0")
    for place in range(1, len(pieces), 2):
        index, encode = builder._slots[int(pieces[place])]
        value = builder.consts[-index - 1] if index < 0 else scope.params[index]
        pieces[place] = literal(
            value if encode is None or value is None else encode(value), dialect
        )
    return "".join(pieces)


def literal(value: Any, dialect: Dialect) -> str:
    """Write a constant of the code as SQL, for DDL, which takes no parameters.

    Raises `ModelError` for types that have no safe literal.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE") if dialect.name == "postgres" else str(int(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - a list of checked values
        return "ARRAY[" + ", ".join(literal(item, dialect) for item in items) + "]"
    text = str(value)
    if "\0" in text or isinstance(value, (bytes, bytearray)):
        raise ModelError(
            f"{type(value).__name__} cannot stand in a constraint or index: use text or numbers"
        )
    return "'" + text.replace("'", "''") + "'"


# -- as SQL ---------------------------------------------------------------------------------------


def statements(operation: SchemaOperation, dialect: Dialect) -> list[str]:
    """Write one schema operation as SQL statements."""
    match operation:
        case CreateTable():
            return _create_table(operation, dialect)
        case DropTable(name, if_present):
            return [f"DROP TABLE {'IF EXISTS ' if if_present else ''}{quote(name)}"]
        case CreateIndex():
            return [_create_index(operation)]
        case AddForeignKey(table, key):
            if dialect.name == "sqlite":
                raise UnsupportedFeature(
                    "SQLite cannot add a foreign key to a table: create it with the table"
                )
            return [f"ALTER TABLE {quote(table)} ADD {_reference(key)}"]
        case CreateSearchIndex():
            return create_search(operation, dialect)
        case DropSearchIndex():
            return drop_search(operation, dialect)


def _create_table(operation: CreateTable, dialect: Dialect) -> list[str]:
    table = operation.table
    lines = [_column_sql(column, table, dialect) for column in table.columns]
    lines += [_reference(key) for key in table.foreign_keys]
    lines += [
        f"CONSTRAINT {quote(u.name)} UNIQUE ({', '.join(map(quote, u.columns))})"
        for u in table.uniques
        if not u.where
    ]
    lines += [f"CONSTRAINT {quote(c.name)} CHECK ({c.sql})" for c in table.checks]
    missing = "IF NOT EXISTS " if operation.if_missing else ""
    strict = " STRICT" if dialect.name == "sqlite" else ""
    body = ",\n  ".join(lines)
    made = [f"CREATE TABLE {missing}{quote(table.name)} (\n  {body}\n){strict}"]
    for unique in table.uniques:
        if unique.where:
            index = IndexDef(unique.name, tuple(map(quote, unique.columns)), unique.where)
            made.append(
                _create_index(
                    CreateIndex(table.name, index, unique=True, if_missing=operation.if_missing)
                )
            )
    made += [
        _create_index(CreateIndex(table.name, index, if_missing=operation.if_missing))
        for index in table.indexes
    ]
    for search in table.searches:
        made += create_search(CreateSearchIndex(search, operation.if_missing), dialect)
    return made


def _column_sql(column: ColumnDef, table: TableDef, dialect: Dialect) -> str:
    parts = [quote(column.name), column.type]
    if column.name == table.primary_key:
        if column.identity and dialect.name == "postgres":
            parts.append("GENERATED BY DEFAULT AS IDENTITY")
        parts.append("PRIMARY KEY")
    if not column.null and not (column.identity and dialect.name == "sqlite"):
        parts.append("NOT NULL")
    parts += [f"CHECK ({check})" for check in column.checks]
    return " ".join(parts)


def _reference(key: ForeignKeyDef) -> str:
    action = key.on_delete.replace("_", " ")
    return (
        f"CONSTRAINT {quote(key.name)} FOREIGN KEY ({quote(key.column)}) "
        f"REFERENCES {quote(key.target)} ({quote(key.target_column)}) ON DELETE {action}"
    )


def _create_index(operation: CreateIndex) -> str:
    kind = "UNIQUE INDEX" if operation.unique else "INDEX"
    missing = "IF NOT EXISTS " if operation.if_missing else ""
    where = f" WHERE {operation.index.where}" if operation.index.where else ""
    terms = ", ".join(operation.index.terms)
    name, table = quote(operation.index.name), quote(operation.table)
    return f"CREATE {kind} {missing}{name} ON {table} ({terms}){where}"


# -- create_all -----------------------------------------------------------------------------------


def plan_tables(metas: Iterable[Meta], dialect: Dialect) -> list[SchemaOperation]:
    """The operations that create the tables of these models, in an order in which targets come
    first.
    """
    waiting = list(dict.fromkeys(metas))
    names = {meta.table_name for meta in waiting}
    done: set[str] = set()
    made: list[SchemaOperation] = []
    later: list[SchemaOperation] = []
    tables = {meta.table_name: table_of(meta, dialect) for meta in waiting}
    while tables:
        ready = [
            t for t in tables.values() if all(_settled(k, t, done, names) for k in t.foreign_keys)
        ]
        table = (ready or list(tables.values()))[0]
        kept = [
            k
            for k in table.foreign_keys
            if dialect.name == "sqlite" or _settled(k, table, done, names)
        ]
        later += [AddForeignKey(table.name, key) for key in table.foreign_keys if key not in kept]
        made.append(CreateTable(replace(table, foreign_keys=tuple(kept)), if_missing=True))
        done.add(table.name)
        del tables[table.name]
    return made + later


def _settled(key: ForeignKeyDef, table: TableDef, done: set[str], names: set[str]) -> bool:
    return key.target in done or key.target == table.name or key.target not in names


def _metas(models: tuple[type[Model], ...]) -> list[Meta]:
    registry.settle()
    if not models:
        return registry.entered()
    found = [model._meta for model in models]
    for meta in registry:  # tables that connect the given models belong to them
        if meta.auto_created and any(
            many.meta in found and _connects(meta, many.meta)
            for m in found
            for many in m.many.values()
        ):
            found.append(meta)
    return found


def _connects(through: Meta, source: Meta) -> bool:
    return through.model.__qualname__.startswith(f"{source.model.__qualname__}_") and (
        (through.space, through.model.__module__) == (source.space, source.model.__module__)
    )


_CREATING = 0x74_72_65_65  # a number of our own: who holds it creates tables


def _create(metas: list[Meta], alias: str) -> Generated[None]:
    dialect = database_for(alias).dialect
    if dialect.name == "postgres":
        # two processes that start at once: IF NOT EXISTS alone fails when both begin to create
        yield Statement("rows", f"SELECT pg_advisory_xact_lock({_CREATING})")
    operations = plan_tables(metas, dialect)
    if dialect.name == "sqlite" and any(search_indexes(meta) for meta in metas):
        known = yield Statement("rows", "SELECT 1 FROM pragma_module_list WHERE name = 'fts5'")
        if not known:
            raise UnsupportedFeature(
                "SearchIndex needs FTS5, which the SQLite of this Python was built without: use a "
                "Python with another SQLite, or PostgreSQL"
            )
    for operation in operations:
        for sql in statements(operation, dialect):
            yield Statement("script", sql)


def create_all(*models: type[Model], using: str = "default") -> None:
    """Create the tables of the given models (of all models without any) that do not exist yet."""
    run(using, _create(_metas(models), using), "await acreate_all()", write=True, atomic=True)


async def acreate_all(*models: type[Model], using: str = "default") -> None:
    """`create_all` for async code."""
    await arun(using, _create(_metas(models), using), write=True, atomic=True)
