"""The catalog of PostgreSQL: one query for each kind of part, for one schema.

Everything that has a text (defaults, checks, terms of indexes) is printed by the server. What the
ORM would create is printed by the server too: `create_and_read_temporary_tables` makes the tables
in the session's temporary schema, inside of a transaction that its caller rolls back.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from treefold_migrations._inspect.found import (
    INVALID,
    NOT_VALID,
    SERIAL,
    Catalog,
    InspectedTable,
    Place,
    UnmanagedObject,
)
from treefold_orm import schema

_TYPES = {  # as the server prints them, and as the ORM writes them
    "character varying": "varchar",
    "timestamp with time zone": "timestamptz",
    "timestamp without time zone": "timestamp",
    "time without time zone": "time",
    "time with time zone": "timetz",
}
_ACTIONS = {  # by the letters of `confdeltype` and `confupdtype`
    "a": "NO_ACTION",
    "r": "RESTRICT",
    "c": "CASCADE",
    "n": "SET_NULL",
    "d": "SET_DEFAULT",
}
RELATION_KINDS = {
    "v": "view",
    "m": "materialized view",
    "f": "foreign table",
    "p": "partitioned table",
}

_RELATIONS = """
SELECT c.oid::bigint, c.relname::text, c.relkind::text, c.relispartition,
       EXISTS (SELECT 1 FROM pg_inherits i WHERE i.inhrelid = c.oid),
       EXISTS (SELECT 1 FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
               AND d.objid = c.oid AND d.deptype = 'e'),
       c.relpersistence = 'u', c.relrowsecurity
FROM pg_class c WHERE c.relnamespace = $1::bigint::oid AND c.relkind IN ('r', 'v', 'm', 'f', 'p')
ORDER BY c.relname
"""
_COLUMNS = """
SELECT a.attrelid::bigint, a.attname::text, format_type(a.atttypid, a.atttypmod), a.attnotnull,
       a.attidentity::text, a.attgenerated::text, coalesce(pg_get_expr(d.adbin, d.adrelid), ''),
       pg_get_serial_sequence(quote_ident(n.nspname) || '.' || quote_ident(c.relname), a.attname)
         IS NOT NULL,
       CASE WHEN a.attcollation <> t.typcollation THEN l.collname::text END
FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid JOIN pg_type t ON t.oid = a.atttypid
JOIN pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_collation l ON l.oid = a.attcollation
LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE c.relnamespace = $1::bigint::oid AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
ORDER BY a.attrelid, a.attnum
"""
_CONSTRAINTS = """
SELECT k.conrelid::bigint, k.conname::text, k.contype::text, k.convalidated,
       ARRAY(SELECT a.attname::text FROM unnest(k.conkey) WITH ORDINALITY AS u (num, place)
             JOIN pg_attribute a ON a.attrelid = k.conrelid AND a.attnum = u.num ORDER BY u.place),
       coalesce(pg_get_expr(k.conbin, k.conrelid), ''),
       k.condeferrable, k.condeferred, k.connoinherit,
       CASE WHEN f.relnamespace = $1::bigint::oid THEN f.relname::text
            ELSE fn.nspname || '.' || f.relname END,
       ARRAY(SELECT a.attname::text FROM unnest(k.confkey) WITH ORDINALITY AS u (num, place)
             JOIN pg_attribute a ON a.attrelid = k.confrelid AND a.attnum = u.num ORDER BY u.place),
       k.confdeltype::text, k.confupdtype::text, k.confmatchtype::text, k.conindid::bigint
FROM pg_constraint k LEFT JOIN pg_class f ON f.oid = k.confrelid AND k.contype = 'f'
LEFT JOIN pg_namespace fn ON fn.oid = f.relnamespace
WHERE k.connamespace = $1::bigint::oid AND k.conrelid <> 0
  AND k.contype IN ('p', 'u', 'c', 'f', 'x')
ORDER BY k.conname
"""
_INDEXES = """
SELECT i.indexrelid::bigint, i.indrelid::bigint, c.relname::text, i.indisunique,
       i.indisvalid AND i.indisready, m.amname::text, i.indnkeyatts::int,
       ARRAY(SELECT pg_get_indexdef(i.indexrelid, k, false)
             FROM generate_series(1, i.indnatts) AS k ORDER BY k),
       ARRAY(SELECT i.indoption[k - 1]::int FROM generate_series(1, i.indnkeyatts) AS k ORDER BY k),
       ARRAY(SELECT CASE WHEN o.opcdefault THEN '' ELSE o.opcname::text END
             FROM generate_series(1, i.indnkeyatts) AS k
             JOIN pg_opclass o ON o.oid = i.indclass[k - 1] ORDER BY k),
       coalesce(pg_get_expr(i.indpred, i.indrelid), ''),
       coalesce((to_jsonb(i) ->> 'indnullsnotdistinct')::boolean, false),
       ARRAY(SELECT x.oprname::text FROM pg_constraint k, unnest(k.conexclop)
             WITH ORDINALITY AS u (op, place) JOIN pg_operator x ON x.oid = u.op
             WHERE k.conindid = i.indexrelid AND k.contype = 'x' ORDER BY u.place)
FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid JOIN pg_am m ON m.oid = c.relam
WHERE c.relnamespace = $1::bigint::oid ORDER BY c.relname
"""
_TRIGGERS = """
SELECT t.tgname::text, c.relname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid
WHERE c.relnamespace = $1::bigint::oid AND NOT t.tgisinternal ORDER BY 1, 2
"""
_SCHEMAS = """
SELECT n.nspname::text FROM pg_namespace n WHERE n.oid <> $1::bigint::oid
AND n.nspname NOT LIKE 'pg\\_%' AND n.nspname <> 'information_schema'
AND EXISTS (SELECT 1 FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p'))
ORDER BY 1
"""


class _ColumnRow(NamedTuple):
    """One row of `_COLUMNS`; `is_serial` says that the column owns a sequence."""

    table_oid: int
    name: str
    type: str
    is_required: bool
    identity: str
    generated: str
    default: str
    is_serial: bool
    collation: str | None


class _ConstraintRow(NamedTuple):
    """One row of `_CONSTRAINTS`: `kind` is p, u, c, f or x, and `index_oid` the index of it."""

    table_oid: int
    name: str
    kind: str
    is_valid: bool
    columns: Sequence[str]
    check: str
    is_deferrable: bool
    is_deferred: bool
    is_not_inherited: bool
    target: str
    target_columns: Sequence[str]
    on_delete: str
    on_update: str
    match: str
    index_oid: int


class _IndexRow(NamedTuple):
    """One row of `_INDEXES`: the first `key_count` of `terms` are its keys, INCLUDE the others.

    `options` and `classes` belong to the keys, `operators` to an exclusion constraint.
    """

    oid: int
    table_oid: int
    name: str
    is_unique: bool
    is_valid: bool
    method: str
    key_count: int
    terms: Sequence[str]
    options: Sequence[int]
    classes: Sequence[str]
    where: str
    nulls_equal: bool
    operators: Sequence[str]


def fetch_rows(sql: str, *args: Any) -> schema.Operation[list[tuple[Any, ...]]]:
    """Run a query; return its rows as tuples."""
    rows = yield schema.Statement("rows", sql, args)
    return [tuple(row) for row in rows]


def read_current_schema_oid() -> schema.Operation[int | None]:
    """Return the schema in which unqualified names are created; None where there is none."""
    rows = yield from fetch_rows(
        "SELECT oid::bigint FROM pg_namespace WHERE nspname = current_schema()"
    )
    return rows[0][0] if rows else None


def read_postgres_catalog(schema_oid: int) -> schema.Operation[Catalog]:
    """Read the catalog of one schema."""
    tables: dict[int, InspectedTable] = {}
    others: list[UnmanagedObject] = []
    relations = yield from fetch_rows(_RELATIONS, schema_oid)
    for oid, name, kind, partition, inherits, extension, unlogged, secured in relations:
        odd = RELATION_KINDS.get(kind, "")
        odd = odd or ("partition" if partition else "inherited table" if inherits else "")
        if extension:
            odd = "part of an extension:"
        if odd:
            others.append(UnmanagedObject(odd, name))
            continue
        notes: dict[Place, tuple[str, ...]] = {("table", name): ("UNLOGGED",)} if unlogged else {}
        if secured:
            others.append(UnmanagedObject("row security of", name))
        tables[oid] = InspectedTable(schema.TableDef(name, (), ()), notes)
    columns = yield from fetch_rows(_COLUMNS, schema_oid)
    for column in map(_ColumnRow._make, columns):
        if column.table_oid in tables:
            tables[column.table_oid] = _with_column(tables[column.table_oid], column)
    rows = yield from fetch_rows(_INDEXES, schema_oid)
    indexes = {index.oid: index for index in map(_IndexRow._make, rows)}
    constraints = yield from fetch_rows(_CONSTRAINTS, schema_oid)
    for constraint in map(_ConstraintRow._make, constraints):
        oid, index = constraint.table_oid, indexes.get(constraint.index_oid)
        if oid in tables:
            tables[oid] = _with_constraint(tables[oid], constraint, index)
        # the index of a primary key, of a unique or of an exclusion constraint is no index of its
        # own
        if constraint.kind in "pux":
            indexes.pop(constraint.index_oid, None)
    for index in indexes.values():
        if index.table_oid in tables:
            tables[index.table_oid] = _with_index(tables[index.table_oid], index)
    for name, table in (yield from fetch_rows(_TRIGGERS, schema_oid)):
        others.append(UnmanagedObject("trigger", f"{name} on {table}"))
    for (name,) in (yield from fetch_rows(_SCHEMAS, schema_oid)):
        others.append(UnmanagedObject("schema", name))
    return Catalog({found.table.name: found for found in tables.values()}, tuple(others))


def create_tables_in_temporary_schema(tables: Iterable[schema.TableDef]) -> schema.Operation[None]:
    """Create tables, without foreign keys, in the temporary schema; the caller rolls back."""
    yield from fetch_rows(
        # tables are created in pg_temp, and other names are found as before; local to the
        # transaction
        "SELECT set_config('search_path', 'pg_temp, ' || current_setting('search_path'), true)"
    )
    for table in tables:
        create = schema.CreateTable(replace(table, foreign_keys=()))
        for sql in schema.statements(create, schema.Postgres()):
            yield schema.Statement("script", sql)


def create_and_read_temporary_tables(
    tables: Iterable[schema.TableDef],
) -> schema.Operation[dict[str, InspectedTable]]:
    """Return tables with their expressions in the spelling of this server, without foreign keys.

    They are created in the temporary schema; the caller rolls the transaction back.
    """
    made = {table.name: table for table in tables}
    yield from create_tables_in_temporary_schema(made.values())
    rows = yield from fetch_rows("SELECT pg_my_temp_schema()::bigint")
    catalog = yield from read_postgres_catalog(rows[0][0])
    return {name: catalog.tables[name] for name in made}


def _merge_notes(
    found: InspectedTable, kind: str, name: str, notes: Sequence[str]
) -> Mapping[Place, Any]:
    if not notes:
        return found.notes
    return {**found.notes, (kind, name): (*found.notes.get((kind, name), ()), *notes)}


def _with_column(found: InspectedTable, row: _ColumnRow) -> InspectedTable:
    # a column may still own a sequence after its default was changed
    is_filled = bool(row.identity) or (row.is_serial and row.default.startswith("nextval("))
    notes: list[str] = []
    if is_filled and row.identity != "d":
        notes.append("GENERATED ALWAYS AS IDENTITY" if row.identity else SERIAL)
    if row.generated:
        notes.append(f"generated as {row.default}")
    if row.collation:
        notes.append(f"COLLATE {row.collation}")
    column = schema.ColumnDef(
        row.name,
        normalize_type_name(row.type),
        null=not row.is_required,
        identity=is_filled,
        # pg_attrdef holds the expression of a generated column as well
        default="" if is_filled or row.generated else row.default,
    )
    table = replace(found.table, columns=(*found.table.columns, column))
    return InspectedTable(table, _merge_notes(found, "column", row.name, notes))


def normalize_type_name(printed: str) -> str:
    """Return a type as the ORM writes it."""
    if printed.endswith("[]"):
        return normalize_type_name(printed.removesuffix("[]")) + "[]"
    for long, short in _TYPES.items():
        if printed == long:
            return short
        if printed.startswith(f"{long}("):
            return short + printed.removeprefix(long)
    return printed.replace(",", ", ") if printed.startswith("numeric(") else printed


def _with_constraint(
    found: InspectedTable, row: _ConstraintRow, index: _IndexRow | None
) -> InspectedTable:
    table, name = found.table, row.name
    deferrable = ("deferred" if row.is_deferred else "immediate") if row.is_deferrable else ""
    deferrable_notes = [f"DEFERRABLE INITIALLY {deferrable.upper()}"] if deferrable else []
    notes = [] if row.is_valid else [NOT_VALID]
    if row.kind == "p":
        table = replace(table, primary_key=tuple(row.columns))
        return InspectedTable(table, _merge_notes(found, "primary key", name, deferrable_notes))
    if row.kind == "c":
        notes += ["NO INHERIT"] if row.is_not_inherited else []
        table = replace(table, checks=(*table.checks, schema.CheckDef(name, row.check)))
        return InspectedTable(table, _merge_notes(found, "check", name, notes))
    if row.kind == "f":
        columns, targets = ", ".join(row.columns), ", ".join(row.target_columns)
        key = schema.ForeignKeyDef(name, columns, row.target, targets, _ACTIONS[row.on_delete])
        if row.on_update != "a":
            notes.append(f"ON UPDATE {_ACTIONS[row.on_update]}".replace("_", " "))
        notes += ["MATCH FULL"] if row.match == "f" else []
        notes += deferrable_notes
        table = replace(table, foreign_keys=(*table.foreign_keys, key))
        return InspectedTable(table, _merge_notes(found, "foreign key", key.column, notes))
    assert index is not None, "the server checks them by an index"  # noqa: S101 - of its catalog
    if row.kind == "u":
        unique = schema.UniqueDef(
            name,
            tuple(row.columns),
            deferrable=deferrable,
            nulls_distinct=not index.nulls_equal,
            include=_list_included_columns(index),
        )
        table = replace(table, uniques=(*table.uniques, unique))
        return InspectedTable(table, found.notes)
    terms = zip(_render_terms(index), index.operators, strict=True)
    exclusion = schema.ExclusionDef(
        name, tuple(f"{term} WITH {op}" for term, op in terms), index.where, deferrable
    )
    notes += [f"USING {index.method}"] if index.method != "gist" else []
    table = replace(table, exclusions=(*table.exclusions, exclusion))
    return InspectedTable(table, _merge_notes(found, "exclusion", name, notes))


def _with_index(found: InspectedTable, row: _IndexRow) -> InspectedTable:
    table = found.table
    notes = [] if row.is_valid else [INVALID]
    notes += [f"USING {row.method}"] if row.method != "btree" else []
    terms, included = tuple(_render_terms(row)), _list_included_columns(row)
    if row.is_unique:
        unique = schema.UniqueDef(
            row.name,
            where=row.where,
            terms=terms,
            nulls_distinct=not row.nulls_equal,
            include=included,
        )
        table = replace(table, uniques=(*table.uniques, unique))
    else:
        index = schema.IndexDef(row.name, terms, row.where, included)
        table = replace(table, indexes=(*table.indexes, index))
    return InspectedTable(table, _merge_notes(found, "index", row.name, notes))


def _list_included_columns(index: _IndexRow) -> tuple[str, ...]:
    return tuple(map(_unquote_name, index.terms[index.key_count :]))


def _render_terms(index: _IndexRow) -> Iterator[str]:
    keys = index.terms[: index.key_count]
    for text, option, opclass in zip(keys, index.options, index.classes, strict=True):
        # INDOPTION_DESC and INDOPTION_NULLS_FIRST of the server
        descending, nulls_first = bool(option & 1), bool(option & 2)
        plain = text if text.startswith(("(", '"')) else _quote_term(text)
        tail = f" {opclass}" if opclass else ""
        tail += " DESC" if descending else ""
        # DESC has NULLS FIRST by itself, ASC has NULLS LAST
        if nulls_first != descending:
            tail += " NULLS FIRST" if nulls_first else " NULLS LAST"
        yield f"{plain}{tail}"


def _quote_term(text: str) -> str:
    # the server quotes names that need it and leaves the parentheses of a call out
    return schema.quote(text) if text.replace("_", "a").replace("$", "a").isalnum() else f"({text})"


def _unquote_name(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
