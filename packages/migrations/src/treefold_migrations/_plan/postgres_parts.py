"""Constraints and indexes on PostgreSQL: dropped, renamed and added beside running queries.

An index is built concurrently, a constraint is added NOT VALID and validated afterwards; a unique
constraint takes over an index that was built before.

Example, the index is built before the constraint takes it over, which takes no time:

    >>> AddField("book", "code", fields.CharField(max_length=9, unique=True, db_default="x"))
    PostgreSQL: CREATE UNIQUE INDEX CONCURRENTLY "uq_book_code" ON "book" ("code")
    PostgreSQL: ALTER TABLE "book" ADD CONSTRAINT "uq_book_code" UNIQUE USING INDEX "uq_book_code"
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from treefold_migrations._plan.changes import Part, collect_table_and_column_checks, order_renames
from treefold_migrations._plan.guards import (
    build_check_guard,
    build_no_duplicates_guard,
    build_no_orphans_guard,
)
from treefold_migrations._plan.postgres_names import derive_postgres_object_name
from treefold_migrations._plan.postgres_rewrites import INDEXES
from treefold_migrations._plan.statements import alter_table, quote_literal
from treefold_migrations._plan.step import Step
from treefold_orm import schema
from treefold_orm.schema import quote

if TYPE_CHECKING:
    from treefold_migrations._plan.alteration import TableAlteration

EXCLUSIVE = "ACCESS EXCLUSIVE"
SHARED = "SHARE UPDATE EXCLUSIVE"
# a foreign key locks both tables against writers, and not against readers
BRIEF = "SHARE ROW EXCLUSIVE"


def is_plain_index(part: Part) -> bool:
    """True for an index that is not a constraint."""
    if isinstance(part, schema.UniqueDef):
        return part.is_index
    return not isinstance(part, (schema.ForeignKeyDef, schema.CheckDef, schema.ExclusionDef))


def drop_constraint_or_index(table: str, part: Part, *, is_new: bool) -> Step:
    """Drop a constraint or index."""
    name = quote(part.name)
    if not is_plain_index(part):
        summary = f"drop constraint {part.name}"
        return alter_table(table, f"DROP CONSTRAINT {name}", summary, lock=EXCLUSIVE)
    kind = "search" if isinstance(part, schema.SearchDef) else "index"
    summary = f"drop {kind} {part.name}"
    # CONCURRENTLY cannot run inside of the transaction that created the table
    if is_new:
        return Step(f"DROP INDEX {name}", lock=EXCLUSIVE, table=table, summary=summary)
    # it is committed by itself, so that it may run again after a crash: IF EXISTS
    sql = f"DROP INDEX CONCURRENTLY IF EXISTS {name}"
    return Step(sql, transactional=False, lock=SHARED, table=table, summary=summary)


def drop_parts_without_dropped_column(
    table: str, work: TableAlteration, parts: Iterable[Part]
) -> list[Step]:
    """Drop parts, but for those that go with a dropped column."""
    left = [part for part in parts if not work.is_dropped_with_column(part)]
    return [drop_constraint_or_index(table, part, is_new=work.is_new) for part in left]


def plan_constraint_and_index_drops(work: TableAlteration) -> list[Step]:
    """Drop removed parts of a table, but for foreign keys."""
    old, new = work.current, work.after
    steps: list[Step] = []
    for found in work.compare_constraints_and_indexes():
        steps += drop_parts_without_dropped_column(old.name, work, found.dropped)
    # a dropped column takes the key along
    if old.primary_key != new.primary_key and not work.dropped & set(old.primary_key):
        steps.append(_drop_primary_key(new))
    return steps


def _drop_primary_key(table: schema.TableDef) -> Step:
    return Step(
        # by the catalog: a table that migrations did not create may have another name for its key
        "SELECT format('ALTER TABLE %s DROP CONSTRAINT %I', conrelid::regclass, conname) FROM "
        f"pg_constraint WHERE conrelid = {quote_literal(quote(table.name))}::regclass AND contype "
        "= 'p'",
        lock=EXCLUSIVE,
        table=table.name,
        summary=f"drop the primary key of {table.name}",
        generates=True,
    )


def plan_constraint_and_index_renames(
    work: TableAlteration,
    renamed_foreign_keys: tuple[tuple[schema.ForeignKeyDef, schema.ForeignKeyDef], ...],
) -> list[Step]:
    """Rename the constraints and indexes that stay."""
    table = work.after.name
    found: list[tuple[Part, Part]] = [*renamed_foreign_keys]
    for kind in work.compare_constraints_and_indexes():
        found += kind.renamed
    indexes = {a.name for a, _ in found if is_plain_index(a)}
    pairs = order_renames([(a.name, b.name) for a, b in found], "treefold_name_")
    steps: list[Step] = []
    for before, after in pairs:
        summary = f"rename {before} to {after}"
        if before in indexes:
            # a rename over a middle name goes on with that name, which must count as an index too
            indexes.add(after)
            sql = f"ALTER INDEX {quote(before)} RENAME TO {quote(after)}"
            steps.append(Step(sql, lock=SHARED, table=table, summary=summary))
        else:
            clause = f"RENAME CONSTRAINT {quote(before)} TO {quote(after)}"
            steps.append(alter_table(table, clause, summary, lock=EXCLUSIVE))
    return steps


def plan_constraint_and_index_additions(
    work: TableAlteration, dialect: schema.Dialect
) -> list[Step]:
    """Add new parts of a table, but for foreign keys."""
    old, new, fresh = work.current, work.after, work.is_new
    steps: list[Step] = []
    if old.primary_key != new.primary_key:
        steps.append(replace(_add_primary_key(new), blocks="" if fresh else INDEXES))
    checks = collect_table_and_column_checks(old), collect_table_and_column_checks(new)
    for check in work.compare_parts(*checks).added:
        steps += add_check(new, check, is_new=fresh)
    for unique in work.compare_parts(old.uniques, new.uniques).added:
        steps += add_unique(new, unique, dialect, is_new=fresh)
    for exclusion in work.compare_parts(old.exclusions, new.exclusions).added:
        clause = f"ADD {schema.constraint_clause(exclusion)}"
        summary = f"add constraint {exclusion.name}"
        made = alter_table(new.name, clause, summary, lock=EXCLUSIVE)
        steps.append(replace(made, blocks="" if fresh else INDEXES))
    for index in work.compare_parts(old.indexes, new.indexes).added:
        sql = schema.statements(schema.CreateIndex(new.name, index), dialect)[0]
        steps.append(create_index(new.name, index.name, sql, is_new=fresh))
    for search in work.compare_parts(old.searches, new.searches).added:
        sql = schema.statements(schema.CreateSearchIndex(search), dialect)[0]
        steps.append(create_index(new.name, search.name, sql, is_new=fresh, kind="search"))
    return steps


def _add_primary_key(table: schema.TableDef) -> Step:
    columns = ", ".join(map(quote, table.primary_key))
    name = quote(derive_postgres_object_name(table.name, "", "pkey"))
    clause = f"ADD CONSTRAINT {name} PRIMARY KEY ({columns})"
    return alter_table(table.name, clause, f"add the primary key of {table.name}", lock=EXCLUSIVE)


def create_index(table: str, name: str, sql: str, *, is_new: bool, kind: str = "index") -> Step:
    """Create an index, beside reads and writes where the table has rows."""
    summary = f"create {kind} {name}"
    if is_new:
        return Step(sql, table=table, summary=summary)
    return Step(
        # the first one: "CREATE UNIQUE INDEX "; names and conditions may hold the word as well
        sql.replace("INDEX ", "INDEX CONCURRENTLY ", 1),
        transactional=False,
        lock=SHARED,
        table=table,
        summary=f"{summary} concurrently",
        # a build that fails leaves an invalid index, which takes the name
        before_retry=f"DROP INDEX CONCURRENTLY IF EXISTS {quote(name)}",
    )


def add_validated_constraint(
    table: schema.TableDef, name: str, clause: str, *, failure_guard: Step | None
) -> list[Step]:
    """Add a constraint for new rows, then test the rows that are there."""
    # with NOT VALID the lock lasts as long as a change of the catalog, and VALIDATE reads the rows
    # beside readers and writers
    lock = BRIEF if " FOREIGN KEY " in clause else EXCLUSIVE
    summary = f"add constraint {name}, not validated yet"
    added = alter_table(table.name, f"ADD {clause} NOT VALID", summary, lock=lock)
    validate = f"VALIDATE CONSTRAINT {quote(name)}"
    tested = alter_table(table.name, validate, f"validate constraint {name}", lock=SHARED)
    undo = f"ALTER TABLE {quote(table.name)} DROP CONSTRAINT IF EXISTS {quote(name)}"
    return [replace(added, undo=undo), replace(tested, transactional=False, explain=failure_guard)]


def add_check(table: schema.TableDef, check: schema.CheckDef, *, is_new: bool) -> list[Step]:
    """Add a check."""
    clause = schema.constraint_clause(check)
    if is_new:
        return [alter_table(table.name, f"ADD {clause}", f"add constraint {check.name}")]
    guard = build_check_guard(table, check)
    return add_validated_constraint(table, check.name, clause, failure_guard=guard)


def add_unique(
    table: schema.TableDef, unique: schema.UniqueDef, dialect: schema.Dialect, *, is_new: bool
) -> list[Step]:
    """Add a unique constraint, or a unique index."""
    explain = None if is_new else build_no_duplicates_guard(table, unique)
    if unique.is_index:
        # the statement of an index needs its table by name alone
        bare = schema.TableDef(table.name, (), (), uniques=(unique,))
        sql = schema.statements(schema.indexes_of(bare)[0], dialect)[0]
        step = create_index(table.name, unique.name, sql, is_new=is_new)
        return [replace(step, explain=explain)]
    summary = f"add constraint {unique.name}"
    if is_new:
        return [alter_table(table.name, f"ADD {schema.constraint_clause(unique)}", summary)]
    index = schema.IndexDef(unique.name, tuple(map(quote, unique.columns)), "", unique.include)
    create = schema.CreateIndex(
        table.name, index, unique=True, nulls_distinct=unique.nulls_distinct
    )
    name = quote(unique.name)
    # an index cannot be deferred: only the constraint that takes it over can
    when = f" DEFERRABLE INITIALLY {unique.deferrable.upper()}" if unique.deferrable else ""
    built = create_index(
        table.name, unique.name, schema.statements(create, dialect)[0], is_new=False
    )
    using = f"ADD CONSTRAINT {name} UNIQUE USING INDEX {name}{when}"
    step = alter_table(table.name, using, summary, lock=EXCLUSIVE)
    return [replace(built, explain=explain), step]


def add_foreign_key(
    table: schema.TableDef,
    key: schema.ForeignKeyDef,
    dialect: schema.Dialect,
    *,
    is_new: bool,
) -> list[Step]:
    """Add a reference."""
    sql = schema.statements(schema.AddForeignKey(table.name, key), dialect)[0]
    if is_new:
        return [Step(sql, lock=BRIEF, table=table.name, summary=f"add foreign key {key.name}")]
    clause = schema.constraint_clause(key)
    guard = build_no_orphans_guard(table, key)
    return add_validated_constraint(table, key.name, clause, failure_guard=guard)
