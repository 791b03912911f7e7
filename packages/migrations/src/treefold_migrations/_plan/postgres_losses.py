"""Parts of a live PostgreSQL table, made by no migration, that a statement would take along.

    CREATE INDEX by_rank ON book (rank, title)     -- by hand, or by RunSQL
    DropField("book", "rank")                      -- PostgreSQL drops by_rank with the column

A column takes its indexes, constraints and statistics along, a new type resets a collation, and a
new default takes the place of one by hand. PostgreSQL itself refuses to drop what a view, a policy
or a trigger uses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from treefold_migrations._plan.changes import collect_table_and_column_checks, index_columns_by_name
from treefold_migrations._plan.guards import escape_braces
from treefold_migrations._plan.postgres_names import derive_postgres_object_name
from treefold_migrations._plan.statements import quote_literal
from treefold_migrations._plan.step import Step
from treefold_orm.schema import TableDef, constraint_name, quote

if TYPE_CHECKING:
    from treefold_migrations._plan.alteration import TableAlteration

_KINDS = (
    "CASE WHEN i.indexrelid IS NOT NULL THEN 'index' WHEN s.oid IS NOT NULL THEN 'statistics' "
    "ELSE 'constraint' END"
)
_PRINTED = (
    (re.compile(r"\bvarchar\b"), "character varying"),
    (re.compile(r"\btimestamptz\b"), "timestamp with time zone"),
    (re.compile(r"\btimestamp\b(?! with)"), "timestamp without time zone"),
    (re.compile(r"\btime\b(?! zone|stamp)"), "time without time zone"),
    (re.compile(r", (?=\d)"), ","),
)


def build_loss_guards(work: TableAlteration, before: TableDef) -> Iterable[Step]:
    """Return guards over the catalog: each names what a statement would lose."""
    if work.change.agreed:
        return
    kept = set(work.change.sources.values())
    dropped = [column.name for column in before.columns if column.name not in kept]
    if dropped:
        # left by a NOT NULL that stopped between its steps
        own = {constraint_name("treefold_filled", before.name, name) for name in dropped}
        found = {name for _, name, _ in work.change.findings}
        yield _build_unknown_dependents_guard(
            before, dropped, _collect_constraint_and_index_names(before) | found | own
        )
    noted = {name for _, name, _ in work.change.findings}
    names = {old: new for new, old in work.change.sources.items()}
    after = index_columns_by_name(work.after)
    for column in before.columns:
        new = after.get(names.get(column.name, ""))
        if new is not None and new.name in work.retyped and column.name not in noted:
            types = format_postgres_type(column.type), format_postgres_type(new.type)
            yield _build_unexpected_type_guard(before, column.name, types)
    for column in before.columns:
        new = after.get(names.get(column.name, ""))
        # the default of an identity is its sequence
        if new is not None and new.default and not (column.default or column.identity):
            yield _build_unexpected_default_guard(before, column.name)


def format_postgres_type(type_name: str) -> str:
    """Return a type as PostgreSQL prints it."""
    for pattern, printed in _PRINTED:
        type_name = pattern.sub(printed, type_name)
    return type_name


def _collect_constraint_and_index_names(table: TableDef) -> set[str]:
    parts = (
        *table.foreign_keys,
        *table.uniques,
        *table.indexes,
        *table.searches,
        *table.exclusions,
        *collect_table_and_column_checks(table),
    )
    return {part.name for part in parts} | {derive_postgres_object_name(table.name, "", "pkey")}


def _build_unknown_dependents_guard(table: TableDef, columns: list[str], known: set[str]) -> Step:
    # DISTINCT: a check depends twice on its column, by its key and by its expression
    named = "coalesce(c.conname, i.indexrelid::regclass::text, s.stxname::text)"
    verify = (
        f"SELECT string_agg(DISTINCT {_KINDS} || ' ' || {named} || ' of ' || a.attname, ', ') "
        "FROM pg_depend AS d "
        "JOIN pg_attribute AS a ON a.attrelid = d.refobjid AND a.attnum = d.refobjsubid "
        "LEFT JOIN pg_constraint AS c ON d.classid = 'pg_constraint'::regclass AND c.oid = d.objid "
        # from version 18 on NOT NULL is a constraint ('n'), which belongs to its column
        "AND c.contype IN ('c', 'f', 'u', 'x') "
        "LEFT JOIN pg_index AS i ON d.classid = 'pg_class'::regclass AND i.indexrelid = d.objid "
        "LEFT JOIN pg_class AS r ON r.oid = i.indexrelid "
        "LEFT JOIN pg_statistic_ext AS s ON d.classid = 'pg_statistic_ext'::regclass "
        "AND s.oid = d.objid "
        f"WHERE d.refclassid = 'pg_class'::regclass AND d.refobjid = {_build_table_oid_sql(table)} "
        f"AND a.attname IN ({', '.join(map(quote_literal, columns))}) "
        "AND coalesce(c.conname, r.relname, s.stxname) NOT IN "
        # string_agg over no row is one row with NULL, which would count as a finding
        f"({', '.join(map(quote_literal, sorted(known)))}) HAVING count(*) > 0"
    )
    what = "dropping columns would drop what no migration made: {0}"
    step = _build_catalog_guard(
        table, columns, verify, f"{escape_braces(table.name)}: {what}; {_describe_remedy(table)}"
    )
    return replace(step, reads=step.reads | {f"{table.name}.#"})


def _build_unexpected_type_guard(table: TableDef, column: str, expected: tuple[str, str]) -> Step:
    """Refuse a column whose type is neither that of the migrations nor already the new one."""
    # only a collation that differs from that of the type: COLLATE "default" is on every text column
    collated = "CASE WHEN a.attcollation <> t.typcollation THEN ' COLLATE ' || l.collname END"
    shown = f"format_type(a.atttypid, a.atttypmod) || coalesce({collated}, '')"
    verify = (
        f"SELECT {shown} FROM pg_attribute AS a JOIN pg_type AS t ON t.oid = a.atttypid "
        "LEFT JOIN pg_collation AS l ON l.oid = a.attcollation "
        f"WHERE a.attrelid = {_build_table_oid_sql(table)} AND a.attname = {quote_literal(column)} "
        f"AND {shown} NOT IN ({', '.join(map(quote_literal, expected))})"
    )
    place = escape_braces(f"{table.name}.{column}")
    problem = (
        f"{place} is {{0}} in the database, and the migrations made "
        f"{escape_braces(expected[0])}: its new type could change values; "
        f"{_describe_remedy(table)}"
    )
    return _build_catalog_guard(table, [column], verify, problem)


def _build_unexpected_default_guard(table: TableDef, column: str) -> Step:
    verify = (
        "SELECT pg_get_expr(adbin, adrelid) FROM pg_attrdef JOIN pg_attribute AS a "
        f"ON attrelid = adrelid AND attnum = adnum WHERE adrelid = {_build_table_oid_sql(table)} "
        f"AND attname = {quote_literal(column)}"
    )
    place = escape_braces(f"{table.name}.{column}")
    problem = f"{place} has the default {{0}}, which no migration made, and is given another one"
    return _build_catalog_guard(table, [column], verify, f"{problem}; {_describe_remedy(table)}")


def _build_table_oid_sql(table: TableDef) -> str:
    return f"to_regclass({quote_literal(quote(table.name))})"


def _build_catalog_guard(
    table: TableDef, columns: Iterable[str], verify: str, problem: str
) -> Step:
    summary = f"check what {table.name} has that no migration made"
    reads = frozenset(f"{table.name}.{column}" for column in columns)
    made = Step("", table=table.name, summary=summary, verify=verify, problem=problem)
    return replace(made, reads=reads, catalog=True)


def _describe_remedy(table: TableDef) -> str:
    return (
        "bring it into the model and record that migration with `migrate --fake`, change it with "
        f"RunSQL before, or agree to the loss with SetOptions({escape_braces(repr(table.name))}, "
        "as_found=[]) in this migration"
    )
