"""The rebuild of a SQLite table, as SQLite's documentation prescribes: create, copy, drop, rename.

Foreign keys are not enforced meanwhile, or dropping the old table would reach its child rows.
Indexes, triggers and the sequence that migrations do not know are kept, views are tested, and the
number of rows and all references are verified before the commit. Other parts that they do not know,
such as a column by hand, would be lost: the first step compares the live table and refuses.

Example, the statements that carry the rows over; those around them keep triggers, indexes, views
and the sequence:

    >>> AlterField("book", "pages", fields.BigIntegerField(null=True))
    SQLite: INSERT INTO "treefold_rebuilt" ("id", "title", "pages", "price")
    SELECT "id", "title", "pages", "price" FROM "book"
    SQLite: DROP TABLE "book"
    SQLite: ALTER TABLE "treefold_rebuilt" RENAME TO "book"
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from treefold_migrations._inspect.sqlite_losses import KnownTable
from treefold_migrations._plan import guards
from treefold_migrations._plan.changes import (
    TableChange,
    collect_table_and_column_checks,
    index_columns_by_name,
    is_sql_literal,
)
from treefold_migrations._plan.statements import quote_literal, strip_indexes
from treefold_migrations._plan.step import Step
from treefold_orm import schema
from treefold_orm.schema import quote

NEW_TABLE = "treefold_rebuilt"
"""The name of the new table until the old one is dropped."""
KEPT_TABLE = "treefold_kept"
"""A temporary table of statements that restore what a dropped table takes with it."""


@dataclass(frozen=True, slots=True)
class TableRebuild:
    """A table to rebuild, from `current` to `after`.

    `sources` are the old columns whose values new ones take over, by the new name. `own_indexes`
    are known to migrations; `again` creates those of them that stay, `rest` the new ones.
    """

    change: TableChange
    current: schema.TableDef
    after: schema.TableDef
    sources: Mapping[str, str]
    own_indexes: frozenset[str]
    again: Sequence[Step]
    rest: Sequence[Step]


def build_foreign_keys_off_guard() -> Step:
    """A step that stops where foreign keys are enforced, which would delete child rows."""
    return Step(
        "",
        summary="check that foreign keys are not enforced",
        # DROP TABLE deletes the rows first, and those of ON DELETE CASCADE in other tables; the
        # pragma has no effect inside of a transaction, so that a step can only look
        verify="SELECT 1 FROM pragma_foreign_keys WHERE foreign_keys = 1",
        problem="Foreign keys are enforced: PRAGMA foreign_keys = OFF must run before BEGIN",
        foreign_keys_off=True,
        hidden=True,
    )


def build_no_dangling_references_guard(tables: Sequence[str]) -> Step:
    """A step that stops where a reference from or to these tables points to no row."""
    listed = ", ".join(quote_literal(name) for name in tables)
    return Step(
        "",
        table=tables[0],
        summary="check foreign keys",
        verify=(
            # of these tables alone: others may have had such rows before
            'SELECT count(*) OVER (), "table", parent, rowid FROM pragma_foreign_key_check '
            f'WHERE "table" IN ({listed}) OR parent IN ({listed}) LIMIT 1'
        ),
        problem=(
            "{0} references point to no row: the first is in table {1}, row {3}, and points to "
            "table {2}; delete such rows or point them elsewhere, and migrate again"
        ),
        foreign_keys_off=True,
        hidden=True,
    )


def rebuild_table(job: TableRebuild, dialect: schema.Dialect) -> list[Step]:
    """The steps of one rebuild."""
    after, current = job.after, job.current
    values = _build_column_values(job)
    name, new = quote(after.name), quote(NEW_TABLE)
    listed = ", ".join(quote(column) for column in values)
    selected = ", ".join(values.values())
    copied = f"(SELECT count(*) FROM {new})"
    expected = f"(SELECT count(*) FROM {name})"

    def build_step(sql: str, summary: str, **more: object) -> Step:
        return replace(Step(sql, table=after.name, summary=summary, hidden=True), **more)

    what = f"rebuild {after.name}"
    table = replace(strip_indexes(after), name=NEW_TABLE)
    create = schema.statements(schema.CreateTable(table), dialect)[0]
    return [
        *(replace(guard, hidden=True) for guard in _build_guards(job, values)),
        build_step(
            f"DROP TABLE IF EXISTS temp.{quote(KEPT_TABLE)}",
            what,
            known=_build_known_parts(job),
            hidden=False,
        ),
        build_step(_build_trigger_and_index_backup(job), f"{what}: keep triggers and indexes"),
        build_step(_build_sequence_backup_sql(after), f"{what}: keep the sequence", generates=True),
        build_step(
            _build_create_statement_query(create, after, dialect),
            f"{what}: create the new table",
            generates=True,
        ),
        build_step(
            f"INSERT INTO {new} ({listed}) SELECT {selected} FROM {quote(current.name)}",
            f"{what}: copy the rows",
            verify=f"SELECT {expected}, {copied} WHERE {expected} <> {copied}",
            problem=f"{guards.escape_braces(after.name)}: {{0}} rows became {{1}} rows in the copy",
        ),
        # triggers and indexes go with the table, and so does its row of sqlite_sequence
        build_step(f"DROP TABLE {quote(current.name)}", f"{what}: drop the old table"),
        # otherwise RENAME reads each view and fails at one that names the table, which is missing
        build_step(
            "PRAGMA legacy_alter_table = ON", f"{what}: leave views and triggers as they are"
        ),
        build_step(f"ALTER TABLE {new} RENAME TO {name}", f"{what}: rename the new table"),
        build_step("PRAGMA legacy_alter_table = OFF", f"{what}: done with renaming"),
        *job.again,
        *job.rest,
        build_step(
            f"SELECT sql FROM temp.{quote(KEPT_TABLE)} ORDER BY place",
            f"{what}: restore triggers and indexes",
            generates=True,
        ),
        build_step(f"DROP TABLE temp.{quote(KEPT_TABLE)}", f"{what}: clean up"),
    ]


def _build_known_parts(job: TableRebuild) -> KnownTable | None:
    return None if job.change.agreed else KnownTable(job.current, job.change.findings)


def _build_trigger_and_index_backup(job: TableRebuild) -> str:
    name = quote_literal(job.after.name)
    # an index of the history is not kept here: one that this change drops would come back
    own = ", ".join(quote_literal(index) for index in sorted(job.own_indexes)) or "''"
    # a view that names the table is read once, which fails if it lacks a column now
    return (
        f"CREATE TEMP TABLE {quote(KEPT_TABLE)} AS SELECT rowid AS place, sql FROM sqlite_master "
        # indexes that belong to a constraint have no sql, and come with the new table; names of
        # SQLite do not differ by case
        f"WHERE tbl_name = {name} COLLATE NOCASE AND sql IS NOT NULL AND (type = 'trigger' OR "
        f"(type = 'index' AND name NOT IN ({own}))) UNION ALL SELECT rowid, 'SELECT 1 FROM \"' || "
        "replace(name, '\"', '\"\"') || '\" LIMIT 0' FROM sqlite_master WHERE type = 'view' "
        f"AND instr(lower(sql), lower({name})) > 0"
    )


def _build_sequence_backup_sql(table: schema.TableDef) -> str:
    name = quote_literal(table.name)
    # the line of the old table, which may have its name in other letters
    found = f"FROM sqlite_sequence WHERE name = {name} COLLATE NOCASE"
    # AUTOINCREMENT never gives a key twice: without this the numbers of deleted rows would come
    # again
    update = (
        f"INSERT INTO temp.{quote(KEPT_TABLE)} SELECT 0, 'UPDATE sqlite_sequence SET seq = ' || "
        f"seq || {quote_literal(f' WHERE name = {name}')} {found}"
    )
    # a row of its own, where the table is empty: the new table has no line in the sequences yet
    insert = (
        f"INSERT INTO sqlite_sequence (name, seq) SELECT {name}, 0 WHERE NOT EXISTS "
        f"(SELECT 1 FROM sqlite_sequence WHERE name = {name})"
    )
    first = f"INSERT INTO temp.{quote(KEPT_TABLE)} SELECT -1, {quote_literal(insert)} {found}"
    # that table is missing where no key counts, and a statement that names it would not compile
    there = "FROM sqlite_master WHERE name = 'sqlite_sequence'"
    return f"SELECT {quote_literal(first)} {there} UNION ALL SELECT {quote_literal(update)} {there}"


def _build_create_statement_query(sql: str, table: schema.TableDef, dialect: schema.Dialect) -> str:
    counting = sql
    if len(table.primary_key) == 1:
        key = f"{quote(table.primary_key[0])} INTEGER PRIMARY KEY"
        # other tools make keys with AUTOINCREMENT, which the history does not know
        counting = sql.replace(key, f"{key} AUTOINCREMENT", 1)
    # SQLite takes the bare word for a key alone; in quotes, or in a longer word, it is a name
    word = quote_literal("*[^A-Z0-9_$]AUTOINCREMENT[^]A-Z0-9_$\"'`]*")
    return (
        f"SELECT CASE WHEN upper(sql) GLOB {word} "
        # a text may have the word too, but this table is there only where some key counts
        "AND EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'sqlite_sequence') "
        f"THEN {schema.literal(counting, dialect)} ELSE {schema.literal(sql, dialect)} END "
        f"FROM sqlite_master WHERE type = 'table' AND name = {quote_literal(table.name)} COLLATE "
        "NOCASE"
    )


def _build_column_values(job: TableRebuild) -> dict[str, str]:
    before = index_columns_by_name(job.current)
    return {
        column.name: _build_new_value_sql(job, column, before.get(job.sources.get(column.name, "")))
        for column in job.after.columns
        # a new key is left out, so that SQLite numbers the rows
        if column.name in job.sources or not column.identity
    }


def _build_new_value_sql(
    job: TableRebuild, column: schema.ColumnDef, old_column: schema.ColumnDef | None
) -> str:
    fill = job.change.fills.get(column.name, "")
    if old_column is None:
        return fill or column.default or "NULL"
    value = quote(old_column.name)
    conversion = job.change.conversions.get(column.name)
    if conversion is not None:
        value = conversion.render_value(value)
    # a fill replaces NULL and nothing else
    return f"COALESCE({value}, {fill})" if fill and not column.null else value


def _build_guards(job: TableRebuild, values: Mapping[str, str]) -> list[Step]:
    current, after = job.current, job.after
    before, fills = index_columns_by_name(current), job.change.fills
    steps: list[Step] = []
    for column in after.columns:
        source = before.get(job.sources.get(column.name, ""))
        required = not column.null and not column.identity and column.name not in fills
        if source is None:
            if required and not column.default:
                steps.append(guards.build_no_rows_guard(current, column.name))
            continue
        if required and source.null:
            steps.append(guards.build_no_nulls_guard(current, source.name))
        conversion = job.change.conversions.get(column.name)
        if conversion is not None and conversion.misfit:
            misfit = conversion.render_misfit_condition(quote(source.name))
            problem = (
                f"hold {conversion.what} in {guards.escape_braces(column.name)}, which its new "
                "type does not take; change them first, or give an expression with using="
            )
            steps.append(guards.build_no_matching_rows_guard(current, misfit, problem))
    return steps + _build_constraint_guards(job, values)


def _build_constraint_guards(job: TableRebuild, values: Mapping[str, str]) -> list[Step]:
    after, current = job.after, job.current
    # a new key has no value before the copy, and a message cannot name it
    keys = tuple(key for key in after.primary_key if key in values)
    table = replace(current, primary_key=keys)
    source = guards.build_values_subquery(current, values, list(values))
    converted = set(job.change.conversions) | set(job.change.fills)
    known = {check.sql for check in collect_table_and_column_checks(current)}
    fills = job.change.fills
    steps = [
        guards.build_no_nulls_guard(table, column.name, source)
        for column in after.columns
        if column.name in fills and not column.null and not is_sql_literal(fills[column.name])
    ]
    steps += [
        guards.build_check_guard(table, check, source)
        for check in collect_table_and_column_checks(after)
        # a check that is known holds, unless its column has other values now
        if check.sql not in known or any(quote(name) in check.sql for name in converted)
    ]
    for unique in after.uniques:
        if _is_new_unique(unique, current) and set(unique.columns) <= set(values):
            found = guards.build_no_duplicates_guard(table, unique, source)
            steps += [found] if found else []
    old_keys = {(key.column, key.target, key.target_column) for key in current.foreign_keys}
    for key in after.foreign_keys:
        known_key = (job.sources.get(key.column, ""), key.target, key.target_column) in old_keys
        # a reference to the own table would be compared with keys before their conversion; the
        # check of references behind the copy finds it
        if not known_key and key.target != after.name:
            steps.append(guards.build_no_orphans_guard(table, key, source))
    return steps


def _is_new_unique(unique: schema.UniqueDef, table: schema.TableDef) -> bool:
    return not any(replace(unique, name=old.name) == old for old in table.uniques)
