"""The catalog of SQLite, and the definitions that SQL of the ORM would leave in it.

Both are read by the same code from the same kind of text: SQLite keeps the text as written.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from treefold_migrations._inspect.found import (
    Catalog,
    InspectedTable,
    InspectError,
    Place,
    UnmanagedObject,
)
from treefold_migrations._inspect.sql_text import TokenReader, split_at_commas
from treefold_migrations._inspect.sqlite_table import CreateTableParser, parse_create_index
from treefold_orm import schema

_MASTER = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite|_%' "
_EVENTS = ("insert", "delete", "update")
_SHADOWS = ("data", "idx", "docsize", "config", "content")


def read_sqlite() -> schema.Operation[Catalog]:
    """Read the catalog of the main database."""
    rows = yield schema.Statement("rows", f"{_MASTER} ESCAPE '|' ORDER BY name")
    found = [tuple(row) for row in rows]
    catalog = parse_catalog(found)
    for table in catalog.tables.values():
        yield from _check_against_pragmas(table)
    return catalog


def parse_catalog(rows: Sequence[tuple[Any, ...]]) -> Catalog:
    """Return the catalog that rows of `sqlite_master` describe."""
    tables: dict[str, InspectedTable] = {}
    others: list[UnmanagedObject] = []
    searches: list[tuple[schema.SearchDef, tuple[str, ...]]] = []
    triggers = {name.lower() for kind, name, *_ in rows if kind == "trigger"}
    created = [(name, sql) for kind, name, _, sql in rows if kind == "table"]
    virtual = [name.lower() for name, sql in created if _creates_virtual_table(sql)]
    # FTS5 keeps its data in tables of its own, which come and go with the virtual one
    shadows = {f"{name}_{part}" for name in virtual for part in _SHADOWS}
    ours: set[str] = set()
    for kind, name, _, sql in rows:
        if kind == "table" and name.lower() not in shadows:
            if not _creates_virtual_table(sql):
                tables[name] = CreateTableParser(sql).parse_table()
                continue
            search = parse_fts5_table(sql)
            if search is None:
                others.append(UnmanagedObject("virtual table", name))
                continue
            own = {event: schema.constraint_name(event, name).lower() for event in _EVENTS}
            # the triggers that carry rows into a search are parts of it
            ours.update(own.values())
            missing = tuple(f"trigger {t} is missing" for t in own.values() if t not in triggers)
            searches.append((search, missing))
    for kind, name, table, sql in rows:
        if kind == "index" and sql:
            owner = _find_table_ignoring_case(tables, table)
            if owner is not None:
                tables[owner] = _with_index(tables[owner], parse_create_index(sql)[1])
        elif kind == "view" or (kind == "trigger" and name.lower() not in ours):
            others.append(UnmanagedObject(kind, name))
    for search, missing in searches:
        owner = _find_table_ignoring_case(tables, search.table)
        if owner is None:
            others.append(UnmanagedObject("virtual table", search.name))
        else:
            tables[owner] = _with_search_index(tables[owner], search, missing)
    made = {name: _resolve_foreign_key_targets(found, tables) for name, found in tables.items()}
    return Catalog(made, tuple(others))


def build_expected_tables(tables: Iterable[schema.TableDef]) -> dict[str, InspectedTable]:
    """Return the catalog as `create_all` would fill it with these tables."""
    rows: list[tuple[Any, ...]] = []
    for table in tables:
        for sql in schema.statements(schema.CreateTable(table), schema.SQLite()):
            reader = TokenReader(sql)
            if not reader.accept_tokens("create"):
                continue  # FTS5 takes in rows, of which there are none
            _ = reader.accept_tokens("virtual") or reader.accept_tokens("unique")
            kind = reader.read_name().lower()
            rows.append((kind, reader.read_name(), table.name, sql))
    return dict(parse_catalog(rows).tables)


def parse_fts5_table(sql: str) -> schema.SearchDef | None:
    """Return the full text search of a virtual table; None for one of another kind.

    Weights are not kept by SQLite, and of configurations only whether words are stemmed.
    """
    reader = TokenReader(sql)
    reader.expect_tokens("create", "virtual", "table")
    reader.accept_tokens("if", "not", "exists")
    name = reader.read_name()
    reader.expect_tokens("using")
    if not reader.accept_tokens("fts5"):
        return None
    columns: list[str] = []
    options: dict[str, str] = {}
    for item in split_at_commas(reader.read_parenthesized_group()):
        inner = TokenReader(sql, item)
        first = inner.read_name()
        if inner.accept_tokens("="):
            options[first.lower()] = inner.read_name()
        elif inner.is_at_end:
            columns.append(first)
        else:
            return None
    # a table of FTS5 with rows of its own is data, and no search over another table
    if not options.keys() >= {"content", "content_rowid", "tokenize"}:
        return None
    config = "english" if options["tokenize"].startswith("porter") else "simple"
    table, key = options["content"], options["content_rowid"]
    return schema.SearchDef(name, table, key, tuple(columns), config)


def _creates_virtual_table(sql: str) -> bool:
    # two words decide, and a long CREATE TABLE need not be tokenized for them
    return TokenReader(sql[:200]).is_next("create", "virtual")


def _find_table_ignoring_case(tables: Mapping[str, InspectedTable], name: str) -> str | None:
    return next((t for t in tables if t.lower() == name.lower()), None)


def _with_index(found: InspectedTable, index: schema.IndexDef | schema.UniqueDef) -> InspectedTable:
    table = found.table
    if isinstance(index, schema.UniqueDef):
        return replace(found, table=replace(table, uniques=(*table.uniques, index)))
    return replace(found, table=replace(table, indexes=(*table.indexes, index)))


def _with_search_index(
    found: InspectedTable, search: schema.SearchDef, missing_trigger_notes: tuple[str, ...]
) -> InspectedTable:
    notes: dict[Place, tuple[str, ...]] = dict(found.notes)
    if missing_trigger_notes:
        notes["search index", search.name] = missing_trigger_notes
    table = replace(found.table, searches=(*found.table.searches, search))
    return InspectedTable(table, notes)


def _resolve_foreign_key_targets(
    found: InspectedTable, tables: Mapping[str, InspectedTable]
) -> InspectedTable:
    # REFERENCES without columns means the primary key of the target
    def resolve_foreign_key_target(key: schema.ForeignKeyDef) -> schema.ForeignKeyDef:
        owner = _find_table_ignoring_case(tables, key.target)
        if owner is None:
            return key
        column = key.target_column or ", ".join(tables[owner].table.primary_key)
        return replace(key, target=owner, target_column=column)

    keys = tuple(map(resolve_foreign_key_target, found.table.foreign_keys))
    return replace(found, table=replace(found.table, foreign_keys=keys))


def _check_against_pragmas(found: InspectedTable) -> schema.Operation[None]:
    table = found.table
    sql = 'SELECT name, "notnull", pk FROM pragma_table_xinfo(?)'
    columns = yield schema.Statement("rows", sql, (table.name,))
    sql = "SELECT count(DISTINCT id) FROM pragma_foreign_key_list(?)"
    keys = yield schema.Statement("rows", sql, (table.name,))
    without_rowid = "WITHOUT ROWID" in found.notes.get(("table", table.name), ())
    in_key = {name.lower(): place for place, name in enumerate(table.primary_key, 1)}
    told = [(str(name), bool(full), int(place)) for name, full, place in columns]
    read = [
        (
            column.name,
            # SQLite chooses a key where INTEGER PRIMARY KEY is NULL: the pragma says notnull = 0; a
            # key WITHOUT ROWID is NOT NULL, although its text need not say so
            (not column.null and not column.identity)
            or (without_rowid and column.name.lower() in in_key),
            in_key.get(column.name.lower(), 0),
        )
        for column in table.columns
    ]
    if told != read or keys[0][0] != len(table.foreign_keys):
        raise InspectError(
            f"The definition of table {table.name!r} cannot be read: its text and SQLite's pragmas "
            "do not agree; report the text of its CREATE TABLE"
        )
