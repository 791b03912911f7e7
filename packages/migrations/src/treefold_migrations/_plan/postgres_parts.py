"""Constraints and indexes on PostgreSQL: dropped, renamed and added beside running queries.

An index is built concurrently, a constraint is added NOT VALID and validated afterwards; a unique
constraint takes over an index that was built before.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from treefold_migrations._plan.changes import (
    Part,
    column_checks,
    ordered_renames,
)
from treefold_migrations._plan.guards import guard, no_duplicates, no_orphans
from treefold_migrations._plan.postgres_names import object_name, text
from treefold_migrations._plan.step import Step
from treefold_orm.schema import (
    AddForeignKey,
    CheckDef,
    CreateIndex,
    CreateSearchIndex,
    Dialect,
    ExclusionDef,
    ForeignKeyDef,
    IndexDef,
    SearchDef,
    TableDef,
    UniqueDef,
    constraint_clause,
    indexes_of,
    quote,
    statements,
)

if TYPE_CHECKING:
    from treefold_migrations._plan.postgres import Alteration

EXCLUSIVE = "ACCESS EXCLUSIVE"
SHARED = "SHARE UPDATE EXCLUSIVE"
BRIEF = "SHARE ROW EXCLUSIVE"


def is_plain_index(part: Part) -> bool:
    """True for what is an index, and no constraint."""
    if isinstance(part, UniqueDef):
        return part.is_index
    return not isinstance(part, (ForeignKeyDef, CheckDef, ExclusionDef))


def drop(table: str, part: Part, *, fresh: bool) -> Step:
    """Drop a constraint or index."""
    name = quote(part.name)
    if not is_plain_index(part):
        sql = f"ALTER TABLE {quote(table)} DROP CONSTRAINT {name}"
        return Step(sql, lock=EXCLUSIVE, table=table, summary=f"drop constraint {part.name}")
    kind = "search" if isinstance(part, SearchDef) else "index"
    summary = f"drop {kind} {part.name}"
    if fresh:
        return Step(f"DROP INDEX {name}", lock=EXCLUSIVE, table=table, summary=summary)
    sql = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    return Step(sql, transactional=False, lock=SHARED, table=table, summary=summary)


def drop_all(table: str, work: Alteration, parts: Iterable[Part]) -> list[Step]:
    """Drop parts, but for those that go with a dropped column."""
    return [drop(table, p, fresh=work.fresh) for p in parts if not work.goes_with_column(p)]


def drop_parts(work: Alteration) -> list[Step]:
    """Drop what a table no longer has, but for foreign keys."""
    old, new = work.current, work.after
    steps: list[Step] = []
    steps += drop_all(old.name, work, work.parts(old.exclusions, new.exclusions).dropped)
    steps += drop_all(old.name, work, work.parts(column_checks(old), column_checks(new)).dropped)
    steps += drop_all(old.name, work, work.parts(old.uniques, new.uniques).dropped)
    steps += drop_all(old.name, work, work.parts(old.indexes, new.indexes).dropped)
    steps += drop_all(old.name, work, work.parts(old.searches, new.searches).dropped)
    if old.primary_key != new.primary_key and not work.dropped & set(old.primary_key):
        steps.append(_drop_primary_key(new))
    return steps


def _drop_primary_key(table: TableDef) -> Step:
    return Step(
        "SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM "
        f"pg_constraint WHERE conrelid = {text(quote(table.name))}::regclass AND contype = 'p'",
        lock=EXCLUSIVE,
        table=table.name,
        summary=f"drop the primary key of {table.name}",
        generates=True,
    )


def rename_parts(
    work: Alteration, keys: tuple[tuple[ForeignKeyDef, ForeignKeyDef], ...]
) -> list[Step]:
    """Rename the constraints and indexes that stay."""
    old, new = work.current, work.after
    found: list[tuple[Part, Part]] = [*keys]
    found += work.parts(old.exclusions, new.exclusions).renamed
    found += work.parts(column_checks(old), column_checks(new)).renamed
    found += work.parts(old.uniques, new.uniques).renamed
    found += work.parts(old.indexes, new.indexes).renamed
    found += work.parts(old.searches, new.searches).renamed
    indexes = {a.name for a, _ in found if is_plain_index(a)}
    pairs = ordered_renames([(a.name, b.name) for a, b in found], "treefold_name_")
    steps: list[Step] = []
    for before, after in pairs:
        if before in indexes:
            indexes.add(after)
            sql = f"ALTER INDEX {quote(before)} RENAME TO {quote(after)}"
            lock = SHARED
        else:
            sql = (
                f"ALTER TABLE {quote(new.name)} RENAME CONSTRAINT {quote(before)} TO {quote(after)}"
            )
            lock = EXCLUSIVE
        summary = f"rename {before} to {after}"
        steps.append(Step(sql, lock=lock, table=new.name, summary=summary))
    return steps


def add_parts(work: Alteration, dialect: Dialect) -> list[Step]:
    """Add what a table has after, but for foreign keys."""
    old, new, fresh = work.current, work.after, work.fresh
    steps: list[Step] = []
    if old.primary_key != new.primary_key:
        steps.append(_add_primary_key(new))
    for check in work.parts(column_checks(old), column_checks(new)).added:
        steps += add_check(new, check, fresh=fresh)
    for unique in work.parts(old.uniques, new.uniques).added:
        steps += add_unique(new, unique, dialect, fresh=fresh)
    for exclusion in work.parts(old.exclusions, new.exclusions).added:
        sql = f"ALTER TABLE {quote(new.name)} ADD {constraint_clause(exclusion)}"
        summary = f"add constraint {exclusion.name}"
        steps.append(Step(sql, lock=EXCLUSIVE, table=new.name, summary=summary))
    for index in work.parts(old.indexes, new.indexes).added:
        sql = statements(CreateIndex(new.name, index), dialect)[0]
        steps.append(build_index(new.name, index.name, sql, fresh=fresh))
    for search in work.parts(old.searches, new.searches).added:
        sql = statements(CreateSearchIndex(search), dialect)[0]
        step = build_index(new.name, search.name, sql, fresh=fresh)
        summary = step.summary.replace("create index", "create search", 1)
        steps.append(replace(step, summary=summary))
    return steps


def _add_primary_key(table: TableDef) -> Step:
    columns = ", ".join(map(quote, table.primary_key))
    name = quote(object_name(table.name, "", "pkey"))
    return Step(
        f"ALTER TABLE {quote(table.name)} ADD CONSTRAINT {name} PRIMARY KEY ({columns})",
        lock=EXCLUSIVE,
        table=table.name,
        summary=f"add the primary key of {table.name}",
    )


def build_index(table: str, name: str, sql: str, *, fresh: bool) -> Step:
    """Create an index, beside reads and writes where the table has rows."""
    summary = f"create index {name}"
    if fresh:
        return Step(sql, table=table, summary=summary)
    return Step(
        sql.replace("INDEX ", "INDEX CONCURRENTLY ", 1),
        transactional=False,
        lock=SHARED,
        table=table,
        summary=f"{summary} concurrently",
        before_retry=f"DROP INDEX CONCURRENTLY IF EXISTS {quote(name)}",
    )


def validated(table: TableDef, name: str, clause: str) -> list[Step]:
    """Add a constraint for new rows, then test the rows that are there."""
    here = f"ALTER TABLE {quote(table.name)}"
    return [
        Step(
            f"{here} ADD {clause} NOT VALID",
            lock=BRIEF if " FOREIGN KEY " in clause else EXCLUSIVE,
            table=table.name,
            summary=f"add constraint {name}, not validated yet",
        ),
        Step(
            f"{here} VALIDATE CONSTRAINT {quote(name)}",
            transactional=False,
            lock=SHARED,
            table=table.name,
            summary=f"validate constraint {name}",
        ),
    ]


def add_check(table: TableDef, check: CheckDef, *, fresh: bool) -> list[Step]:
    """Add a check."""
    clause = constraint_clause(check)
    if fresh:
        sql = f"ALTER TABLE {quote(table.name)} ADD {clause}"
        return [Step(sql, table=table.name, summary=f"add constraint {check.name}")]
    problem = f"break the check {check.name}; change them first"
    return [guard(table, f"NOT ({check.sql})", problem), *validated(table, check.name, clause)]


def add_unique(table: TableDef, unique: UniqueDef, dialect: Dialect, *, fresh: bool) -> list[Step]:
    """Add a unique constraint, or a unique index."""
    found = no_duplicates(table, unique)
    guards = [found] if found and not fresh else []
    if unique.is_index:
        bare = TableDef(table.name, (), (), uniques=(unique,))
        sql = statements(indexes_of(bare)[0], dialect)[0]
        return [*guards, build_index(table.name, unique.name, sql, fresh=fresh)]
    add = f"ALTER TABLE {quote(table.name)} ADD {constraint_clause(unique)}"
    summary = f"add constraint {unique.name}"
    if fresh:
        return [Step(add, table=table.name, summary=summary)]
    index = IndexDef(unique.name, tuple(map(quote, unique.columns)), "", unique.include)
    create = CreateIndex(table.name, index, unique=True, nulls_distinct=unique.nulls_distinct)
    name = quote(unique.name)
    when = f" DEFERRABLE INITIALLY {unique.deferrable.upper()}" if unique.deferrable else ""
    built = build_index(table.name, unique.name, statements(create, dialect)[0], fresh=False)
    using = f"ALTER TABLE {quote(table.name)} ADD CONSTRAINT {name} UNIQUE USING INDEX {name}{when}"
    return [*guards, built, Step(using, lock=EXCLUSIVE, table=table.name, summary=summary)]


def add_foreign_key(
    table: TableDef, key: ForeignKeyDef, dialect: Dialect, *, fresh: bool
) -> list[Step]:
    """Add a reference."""
    sql = statements(AddForeignKey(table.name, key), dialect)[0]
    if fresh:
        return [Step(sql, lock=BRIEF, table=table.name, summary=f"add foreign key {key.name}")]
    return [no_orphans(table, key), *validated(table, key.name, constraint_clause(key))]
