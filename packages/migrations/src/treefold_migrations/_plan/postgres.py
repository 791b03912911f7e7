"""Changes of tables on PostgreSQL, in place, with locks held as short as each change allows.

A change that reads each row (a new index, constraint or NOT NULL) is prepared beside the running
application and only then put in force. A table of the same migration needs none of that. Rows that
a change refuses are looked for in front, by guards over the tables as they are before it.

Example, an index is built while others write; no transaction holds it:

    >>> AddIndex("book", Index(["title"]))
    PostgreSQL: CREATE INDEX CONCURRENTLY "ix_book_title" ON "book" ("title")
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from treefold_migrations._plan import (
    postgres_columns,
    postgres_guards,
    postgres_names,
    postgres_parts,
)
from treefold_migrations._plan.alteration import TableAlteration
from treefold_migrations._plan.changes import (
    PartChanges,
    TableChange,
    apply_renames,
    compare_parts,
    index_columns_by_name,
)
from treefold_migrations._plan.postgres_parts import BRIEF, EXCLUSIVE
from treefold_migrations._plan.statements import (
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


def plan_postgres(changes: Sequence[TableChange], dialect: schema.Dialect) -> list[Step]:
    """The steps that bring tables to their state after."""
    tables = {c.before.name: c.after.name for c in changes if c.before and c.after}
    columns: Mapping[str, Mapping[str, str]] = {
        c.before.name: {old: new for new, old in c.sources.items()}
        for c in changes
        if c.before and c.after
    }
    works = [_build_alteration(c, tables, columns) for c in changes if c.before and c.after]
    created = [c for c in changes if c.after and not c.before]
    # the statements behind this use the new names, but for constraints and indexes
    first = _plan_btree_gist_extension(changes, dialect) + _rename_tables_and_columns(
        changes, works
    )
    steps: list[Step] = []
    targets = _collect_retyped_columns(works)
    keys = {w.after.name: _compare_foreign_keys(w, targets) for w in works}
    # references go before the unique constraints that they depend on
    for work in works:
        steps += postgres_parts.drop_parts_without_dropped_column(
            work.current.name, work, keys[work.after.name].dropped
        )
    for work in works:
        steps += postgres_parts.plan_constraint_and_index_drops(work)
    # before anything is named or created, since a table that goes may hold the name
    steps += _drop_tables(changes)
    for work in works:
        steps += postgres_parts.plan_constraint_and_index_renames(
            work, keys[work.after.name].renamed
        )
    made, later = _create_tables_and_deferred_keys(created, dialect)
    steps += made
    for work in works:
        steps += postgres_columns.plan_column_changes(work, dialect)
    for work in works:
        steps += postgres_parts.plan_constraint_and_index_additions(work, dialect)
    for work in works:
        # after all parts: a reference needs the unique constraint of its target
        for key in keys[work.after.name].added:
            steps += postgres_parts.add_foreign_key(work.after, key, dialect, is_new=work.is_new)
    build = postgres_guards.build_table_guards
    guards = [guard for work in works for guard in build(work, keys[work.after.name].added)]
    return [*guards, *first, *steps, *later]


def _build_alteration(
    change: TableChange, tables: Mapping[str, str], columns: Mapping[str, Mapping[str, str]]
) -> TableAlteration:
    before, after = change.before, change.after
    if before is None or after is None:
        raise TypeError("an alteration has both tables")
    kept = {old: new for new, old in change.sources.items()}
    # a dropped column gives its name up only when it is dropped
    current = apply_renames(before, tables, columns)
    new = index_columns_by_name(after)
    # over the columns with their new names, as the parts of `current` name them
    followed = [column for column in current.columns if column.name in change.sources]
    retyped = frozenset(c.name for c in followed if c.type != new[c.name].type)
    dropped = frozenset(c.name for c in before.columns if c.name not in kept)
    return TableAlteration(change, current, after, retyped, dropped)


def _plan_btree_gist_extension(
    changes: Sequence[TableChange], dialect: schema.Dialect
) -> list[Step]:
    # a GiST index compares numbers and texts by = with btree_gist alone
    needed = any(e.scalars for c in changes if c.after for e in c.after.exclusions)
    present = any(e.scalars for c in changes if c.before for e in c.before.exclusions)
    if not needed or present:
        return []
    load = schema.CreateExtension("btree_gist")
    return build_steps(load, dialect, "", "load the extension btree_gist")


def _rename_tables_and_columns(
    changes: Sequence[TableChange], works: Sequence[TableAlteration]
) -> list[Step]:
    steps = rename_tables(changes, lock=EXCLUSIVE)
    for work in works:
        steps += rename_columns(work.after.name, work.change.sources, lock=EXCLUSIVE)
        steps += postgres_names.rename_implicit_objects(work.change)
    return steps


def _collect_retyped_columns(works: Sequence[TableAlteration]) -> set[tuple[str, str]]:
    return {(work.after.name, column) for work in works for column in work.retyped}


def _compare_foreign_keys(
    work: TableAlteration, retyped_targets: set[tuple[str, str]]
) -> PartChanges[schema.ForeignKeyDef]:
    return compare_parts(
        work.current.foreign_keys,
        work.after.foreign_keys,
        # the type of either end changes: the reference cannot hold between the two statements
        lambda key: (
            key.column in work.retyped or (key.target, key.target_column) in retyped_targets
        ),
    )


def _drop_tables(changes: Sequence[TableChange]) -> list[Step]:
    names = [c.before.name for c in changes if c.before and not c.after]
    if not names:
        return []
    # one statement: tables that point to each other can only go together without CASCADE
    listed = ", ".join(map(quote, names))
    summary = f"drop table {', '.join(names)}"
    return [Step(f"DROP TABLE {listed}", lock=EXCLUSIVE, table=names[0], summary=summary)]


def _create_table(table: schema.TableDef, dialect: schema.Dialect) -> list[Step]:
    steps = create_table(table, dialect)
    if any(key.target != table.name for key in table.foreign_keys):
        # the tables that it refers to are locked, and the first of them stands for all
        steps[0] = replace(steps[0], lock=BRIEF)
    steps += create_indexes(table.name, schema.indexes_of(table), dialect)
    return steps + create_search_indexes(table.name, table.searches, dialect)


def _create_tables_and_deferred_keys(
    changes: Sequence[TableChange], dialect: schema.Dialect
) -> tuple[list[Step], list[Step]]:
    waiting = [c.after for c in changes if c.after]
    steps: list[Step] = []
    later: list[Step] = []
    while waiting:
        names = {table.name for table in waiting}
        free = [
            t
            for t in waiting
            if all(k.target == t.name or k.target not in names for k in t.foreign_keys)
        ]
        # no table is free in a circle: one is created without its references, which follow at the
        # end
        table = (free or waiting)[0]
        waiting.remove(table)
        blocked = [k for k in table.foreign_keys if k.target in names and k.target != table.name]
        kept = tuple(k for k in table.foreign_keys if k not in blocked)
        steps += _create_table(replace(table, foreign_keys=kept), dialect)
        for key in blocked:
            add = schema.AddForeignKey(table.name, key)
            added = build_steps(add, dialect, table.name, f"add foreign key {key.name}")
            later += [replace(step, lock=BRIEF) for step in added]
    return steps, later
