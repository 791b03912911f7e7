"""Views, and types that a database defines itself, as a baseline reads them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from treefold_migrations._inspect.found import Catalog
from treefold_migrations._inspect.live import read_catalog_and_expected
from treefold_migrations._inspect.postgres import (
    RELATION_KINDS,
    fetch_rows,
    normalize_type_name,
    read_current_schema_oid,
)
from treefold_orm import DatabaseError
from treefold_orm.schema import ColumnDef, Operation, quote

_COLUMNS = """
SELECT c.relname::text, c.relkind::text, a.attname::text, format_type(a.atttypid, a.atttypmod)
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
WHERE c.relnamespace = $1::bigint::oid AND c.relkind IN ('v', 'm', 'f', 'p')
  AND NOT c.relispartition AND a.attnum > 0 AND NOT a.attisdropped
  AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                  AND d.objid = c.oid AND d.deptype = 'e')
ORDER BY c.relname, a.attnum
"""
_ENUMS = """
SELECT format_type(t.oid, NULL), array_agg(e.enumlabel::text ORDER BY e.enumsortorder)
FROM pg_type t JOIN pg_enum e ON e.enumtypid = t.oid GROUP BY t.oid
"""
_DOMAINS = """
SELECT format_type(oid, NULL), format_type(typbasetype, typtypmod) FROM pg_type WHERE typtype = 'd'
"""
_SEQUENCES = """
SELECT c.relname::text, format_type(s.seqtypid, NULL), s.seqstart, s.seqincrement, s.seqmin,
       s.seqmax, s.seqcache, s.seqcycle
FROM pg_sequence s JOIN pg_class c ON c.oid = s.seqrelid
WHERE c.relnamespace = $1::bigint::oid AND NOT EXISTS (
  SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid
  AND d.deptype IN ('a', 'i', 'e'))
ORDER BY c.relname
"""


@dataclass(frozen=True, slots=True)
class View:
    """A view, or a table that migrations do not manage.

    `null` of a column is a guess: a catalog says it of columns of tables, not of views.
    """

    kind: str
    name: str
    columns: tuple[ColumnDef, ...]


@dataclass(frozen=True, slots=True)
class Database:
    """Everything that a baseline knows of a database; `sequences` are those that no column owns,
    with the statements that create them.
    """

    alias: str
    engine: str
    catalog: Catalog
    views: tuple[View, ...] = ()
    enums: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    domains: Mapping[str, str] = field(default_factory=dict[str, str])
    sequences: Mapping[str, str] = field(default_factory=dict[str, str])


def read_database_schema(alias: str, engine: str) -> Operation[Database]:
    """Read the whole database of an alias; its connection is held, outside of a transaction."""
    catalog, _ = yield from read_catalog_and_expected(engine, {})
    if engine == "sqlite":
        views = yield from _read_sqlite_views(catalog)
        return Database(alias, engine, catalog, views)
    schema = yield from read_current_schema_oid()
    rows = yield from fetch_rows(_COLUMNS, schema)
    found: dict[str, View] = {}
    for name, kind, column, printed in rows:
        known = found.get(name, View(RELATION_KINDS[kind], name, ()))
        made = ColumnDef(column, normalize_type_name(printed), null=True)
        found[name] = View(known.kind, name, (*known.columns, made))
    rows = yield from fetch_rows(_ENUMS)
    enums = {normalize_type_name(name): tuple(labels) for name, labels in rows}
    rows = yield from fetch_rows(_DOMAINS)
    domains = {normalize_type_name(name): normalize_type_name(base) for name, base in rows}
    rows = yield from fetch_rows(_SEQUENCES, schema)
    sequences = {row[0]: _render_create_sequence(*row) for row in rows}
    return Database(alias, engine, catalog, tuple(found.values()), enums, domains, sequences)


def _render_create_sequence(
    name: str, kind: str, start: int, step: int, low: int, high: int, cache: int, cycle: bool
) -> str:
    return (
        f"CREATE SEQUENCE {quote(name)} AS {kind} INCREMENT {step} MINVALUE {low} MAXVALUE {high} "
        f"START {start} CACHE {cache}{' CYCLE' if cycle else ''}"
    )


def _read_sqlite_views(catalog: Catalog) -> Operation[tuple[View, ...]]:
    found: list[View] = []
    for other in catalog.others:
        if other.kind != "view":
            continue
        try:
            rows = yield from fetch_rows("SELECT name, type FROM pragma_table_xinfo(?)", other.name)
        except DatabaseError:
            rows = []  # a view whose table is gone
        columns = tuple(ColumnDef(name, kind or "", null=True) for name, kind in rows)
        found.append(View("view", other.name, columns))
    return tuple(found)
