"""Changes of tables on SQLite: by ALTER TABLE where all versions have it, else by a rebuild.

| Change | Way |
|---|---|
| a new name of a table or column | `ALTER TABLE ... RENAME`, followed by triggers and views |
| a new column, nullable or with a constant default | `ADD COLUMN` |
| a dropped column that no constraint names | `DROP COLUMN` |
| another index | `CREATE INDEX`, `DROP INDEX` |
| another type, NOT NULL, CHECK, UNIQUE or foreign key | a rebuild |

SQLite 3.53 alters some constraints in place. That is not used: it drops a constraint by a name,
which tables made by others do not have, and a plan that depends on the version cannot go on after
an upgrade. Everything runs in one transaction.

Example, the check belongs to the new column, and needs no rebuild:

    >>> AddField("book", "code", fields.CharField(max_length=9, db_default="x"))
    SQLite: ALTER TABLE "book" ADD COLUMN "code" TEXT NOT NULL DEFAULT 'x'
    CONSTRAINT "ck_book_code" CHECK (length("code") <= 9)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from treefold_migrations._base.errors import PlanError
from treefold_migrations._inspect.sqlite_losses import KnownTable
from treefold_migrations._plan.changes import (
    Part,
    TableChange,
    apply_renames,
    collect_table_and_column_checks,
    compare_parts,
    index_columns_by_name,
    is_sql_literal,
    part_mentions_column,
)
from treefold_migrations._plan.rebuild import (
    TableRebuild,
    build_foreign_keys_off_guard,
    build_no_dangling_references_guard,
    rebuild_table,
)
from treefold_migrations._plan.statements import (
    alter_table,
    build_steps,
    create_indexes,
    create_search_indexes,
    create_table,
    rename_columns,
    rename_tables,
)
from treefold_migrations._plan.step import Step
from treefold_orm import schema
from treefold_orm.schema import quote


@dataclass(frozen=True, slots=True)
class SqliteAlteration:
    """One table that stays: `current` is the table once native renames are done, and `sources` maps
    columns after to its columns.
    """

    change: TableChange
    current: schema.TableDef
    after: schema.TableDef
    sources: Mapping[str, str]

    @property
    def dropped_columns(self) -> list[schema.ColumnDef]:
        kept = set(self.sources.values())
        return [column for column in self.current.columns if column.name not in kept]

    @property
    def added_columns(self) -> list[schema.ColumnDef]:
        return [column for column in self.after.columns if column.name not in self.sources]


def plan_sqlite(changes: Sequence[TableChange], dialect: schema.Dialect) -> list[Step]:
    """The steps that bring tables to their state after."""
    # price is dropped and cost becomes price: RENAME fails while the old column has the name, so a
    # rebuild reads all columns under their names before
    native = not any(_reuses_dropped_column_name(c) for c in changes)
    works = _build_alterations(changes, native=native)
    steps: list[Step] = []
    for work in works:
        # before names change: the triggers of a search say the names of its index, too
        steps += _drop_changed_search_indexes(work, dialect)
    steps += _rename_tables_and_columns(works, with_columns=native)
    new = [c.after for c in changes if c.after and not c.before]
    for table in new:
        steps += create_table(table, dialect)
    rebuilt: list[str] = []
    for work in works:
        if _needs_rebuild(work):
            # only a rebuild loses what the history does not know; ALTER TABLE leaves it alone
            _refuse_rebuild_loss(work)
            rebuilt.append(work.after.name)
            steps += rebuild_table(_build_rebuild(work, dialect), dialect)
        else:
            steps += _alter_table_in_place(work, dialect)
    gone = [c.before for c in changes if c.before and not c.after]
    for table in gone:
        steps += _drop_table(table, dialect)
    for table in new:
        # a name may come free by then
        steps += create_indexes(table.name, schema.indexes_of(table), dialect)
        steps += create_search_indexes(table.name, table.searches, dialect)
    if not rebuilt and not gone:
        return steps
    touched = [*rebuilt, *(table.name for table in gone)]
    unenforced = (replace(step, foreign_keys_off=True) for step in steps)
    last = build_no_dangling_references_guard(touched)
    return [build_foreign_keys_off_guard(), *unenforced, last]


def _build_alterations(changes: Sequence[TableChange], *, native: bool) -> list[SqliteAlteration]:
    """The tables that stay, as they are once they are renamed, with their columns if `native`."""
    staying = [(c, c.before, c.after) for c in changes if c.before and c.after]
    tables = {before.name: after.name for _, before, after in staying}
    columns: dict[str, Mapping[str, str]] = {
        before.name: {old: new for new, old in c.sources.items()} for c, before, _ in staying
    }
    works: list[SqliteAlteration] = []
    for change, before, after in staying:
        if native:
            current = apply_renames(before, tables, columns)
            sources: Mapping[str, str] = {new: new for new in change.sources}
        else:
            # columns keep their names, by which a rebuild reads them
            current, sources = apply_renames(before, {before.name: after.name}, {}), change.sources
        works.append(SqliteAlteration(change, current, after, sources))
    return works


def _refuse_rebuild_loss(work: SqliteAlteration) -> None:
    if not work.change.unknown:
        return
    name = work.after.name
    raise PlanError(
        f"Table {name!r} must be rebuilt for this change, which would lose what no model has: "
        f"{'; '.join(work.change.unknown)}; change the table with RunSQL inside of "
        f"SeparateStateAndDatabase, or agree to the loss with SetOptions({name!r}, as_found=[]) "
        "before it"
    )


def _reuses_dropped_column_name(change: TableChange) -> bool:
    if not change.before or not change.after:
        return False
    kept = set(change.sources.values())
    dropped = {column.name for column in change.before.columns} - kept
    return bool(dropped & {new for new, old in change.sources.items() if new != old})


def _drop_changed_search_indexes(work: SqliteAlteration, dialect: schema.Dialect) -> list[Step]:
    before, kept = work.change.before, find_unchanged_search_indexes(work)
    searches = () if before is None else before.searches
    return [step for s in searches if s not in kept for step in _drop_search_index(s, dialect)]


def find_unchanged_search_indexes(work: SqliteAlteration) -> tuple[schema.SearchDef, ...]:
    """The searches whose index stays as it is."""
    converted = {work.sources.get(name, name) for name in work.change.conversions}
    before = work.change.before
    # a search names its table in its own definition (content=...), which RENAME does not follow
    if before is None or before.name != work.after.name:
        return ()
    return tuple(
        search
        for search in before.searches
        if search in work.after.searches
        and not part_mentions_column(search, frozenset(converted))
        and all(work.change.sources.get(c) == c for c in (search.key, *search.columns))
    )


def _drop_search_index(search: schema.SearchDef, dialect: schema.Dialect) -> list[Step]:
    drop = schema.DropSearchIndex(search, if_present=True)
    return build_steps(drop, dialect, search.table, f"drop search {search.name}")


def _rename_tables_and_columns(
    works: Sequence[SqliteAlteration], *, with_columns: bool
) -> list[Step]:
    steps = rename_tables([work.change for work in works])
    for work in works if with_columns else ():
        steps += rename_columns(work.after.name, work.change.sources)
    # with the setting ON, RENAME leaves triggers and views with the old name
    return [Step("PRAGMA legacy_alter_table = OFF", hidden=True), *steps] if steps else []


def _needs_rebuild(work: SqliteAlteration) -> bool:
    old, new = work.current, work.after
    if old.primary_key != new.primary_key or any(a != b for a, b in work.sources.items()):
        return True
    before, after = index_columns_by_name(old), index_columns_by_name(new)
    for name in work.sources:
        one, two = before[name], after[name]
        if name in work.change.conversions or any(
            getattr(one, part) != getattr(two, part)
            for part in ("type", "default", "identity", "null")
        ):
            return True
    if compare_parts(_list_unique_constraints(old), _list_unique_constraints(new)):
        return True
    return (
        any(not _can_add_column(work, column) for column in work.added_columns)
        or any(not _can_drop_column(work, column) for column in work.dropped_columns)
        or _constraints_need_rebuild(work)
    )


def _list_unique_constraints(table: schema.TableDef) -> list[schema.UniqueDef]:
    return [unique for unique in table.uniques if not unique.is_index]


def _can_add_column(work: SqliteAlteration, column: schema.ColumnDef) -> bool:
    # ADD COLUMN takes no key; and a fill is another value than the default of new rows
    if column.identity or column.name in work.after.primary_key or column.name in work.change.fills:
        return False
    own = [key for key in work.after.foreign_keys if key.column == column.name]
    # SQLite: "Cannot add a REFERENCES column with non-NULL default value"
    if len(own) > 1 or (own and column.default):
        return False
    if column.default:
        # "Cannot add a column with non-constant default", and no NOT NULL column with default NULL
        return is_sql_literal(column.default) and (column.null or column.default.upper() != "NULL")
    return column.null


def _can_drop_column(work: SqliteAlteration, column: schema.ColumnDef) -> bool:
    if column.name in work.current.primary_key:
        return False
    name = frozenset({column.name})
    # DROP COLUMN refuses a column that a constraint of the table names; its own check goes with it
    fixed: list[Part] = [*work.current.foreign_keys, *_list_unique_constraints(work.current)]
    return not any(part_mentions_column(part, name) for part in (*fixed, *work.current.checks))


def _constraints_need_rebuild(work: SqliteAlteration) -> bool:
    old, new = work.current, work.after
    gone = frozenset(column.name for column in work.dropped_columns)
    come = frozenset(column.name for column in work.added_columns)
    keys = compare_parts(old.foreign_keys, new.foreign_keys)
    checks = compare_parts(
        collect_table_and_column_checks(old), collect_table_and_column_checks(new)
    )
    # ADD COLUMN carries the check of its column, and nothing else
    own_checks = {column.check_name for column in work.added_columns if column.checks}
    return (
        bool(keys.renamed or checks.renamed or keys.dropped)
        or any(key.column not in come for key in keys.added)
        or any(not part_mentions_column(check, gone) for check in checks.dropped)
        or any(check.name not in own_checks for check in checks.added)
    )


def _alter_table_in_place(work: SqliteAlteration, dialect: schema.Dialect) -> list[Step]:
    old, new = work.current, work.after
    # first: DROP COLUMN refuses a column that an index names
    steps = _drop_removed_indexes(work)

    def add_alter_step(clause: str, summary: str) -> None:
        steps.append(alter_table(new.name, clause, summary))

    for column in work.dropped_columns:
        add_alter_step(f"DROP COLUMN {quote(column.name)}", f"drop column {new.name}.{column.name}")
        if not (work.change.agreed or work.change.fresh):
            known = KnownTable(replace(old, name=new.name), work.change.findings, column.name)
            steps[-1] = replace(steps[-1], known=known)
    for column in work.added_columns:
        clause = schema.column_clause(column, replace(new, primary_key=()), dialect)
        key = next((k for k in new.foreign_keys if k.column == column.name), None)
        reference = f" {_build_reference_clause(key)}" if key else ""
        add_alter_step(f"ADD COLUMN {clause}{reference}", f"add column {new.name}.{column.name}")
    return steps + create_missing_indexes(work, dialect)


def _build_reference_clause(key: schema.ForeignKeyDef) -> str:
    action = key.on_delete.replace("_", " ")
    return (
        f"CONSTRAINT {quote(key.name)} REFERENCES {quote(key.target)} "
        f"({quote(key.target_column)}) ON DELETE {action}"
    )


def _drop_removed_indexes(work: SqliteAlteration) -> list[Step]:
    old, new = schema.indexes_of(work.current), schema.indexes_of(work.after)
    return [
        Step(
            f"DROP INDEX {quote(create.index.name)}",
            table=work.after.name,
            summary=f"drop index {create.index.name}",
        )
        for create in old
        if create not in new
    ]


def create_missing_indexes(work: SqliteAlteration, dialect: schema.Dialect) -> list[Step]:
    """Create the indexes and searches that are not there yet."""
    old = schema.indexes_of(work.current)
    wanted = [create for create in schema.indexes_of(work.after) if create not in old]
    made = create_indexes(work.after.name, wanted, dialect)
    return made + create_missing_search_indexes(work, dialect)


def create_missing_search_indexes(work: SqliteAlteration, dialect: schema.Dialect) -> list[Step]:
    """Create the searches that were not kept."""
    kept = find_unchanged_search_indexes(work)
    wanted = [search for search in work.after.searches if search not in kept]
    return create_search_indexes(work.after.name, wanted, dialect)


def _build_rebuild(work: SqliteAlteration, dialect: schema.Dialect) -> TableRebuild:
    old, creates = schema.indexes_of(work.current), schema.indexes_of(work.after)
    # of the table before: the names are those that the live table has
    own = frozenset(create.index.name for create in old)
    kept = [create for create in creates if create in old]
    new = [create for create in creates if create not in old]
    again = [replace(step, hidden=True) for step in create_indexes(work.after.name, kept, dialect)]
    rest = create_indexes(work.after.name, new, dialect) + create_missing_search_indexes(
        work, dialect
    )
    return TableRebuild(work.change, work.current, work.after, work.sources, own, again, rest)


def _drop_table(table: schema.TableDef, dialect: schema.Dialect) -> list[Step]:
    # the table of a search is its own, and stays when the table goes
    steps = [step for search in table.searches for step in _drop_search_index(search, dialect)]
    sql = f"DROP TABLE {quote(table.name)}"
    return [*steps, Step(sql, table=table.name, summary=f"drop table {table.name}")]
