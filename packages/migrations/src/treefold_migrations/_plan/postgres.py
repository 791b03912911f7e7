"""Changes of tables on PostgreSQL, in place, with locks held as short as each change allows.

What must look at each row (a new index, constraint or NOT NULL) is prepared beside the running
application and only then put in force. A table of the same migration needs none of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from treefold_migrations._plan import postgres_columns, postgres_names, postgres_parts
from treefold_migrations._plan.changes import (
    Difference,
    P,
    Part,
    TableChange,
    columns_by_name,
    difference,
    followed,
    ordered_renames,
    part_mentions,
)
from treefold_migrations._plan.step import Step
from treefold_orm.schema import (
    AddForeignKey,
    CreateExtension,
    CreateSearchIndex,
    CreateTable,
    Dialect,
    ForeignKeyDef,
    SchemaOperation,
    TableDef,
    indexes_of,
    quote,
    statements,
)

EXCLUSIVE = "ACCESS EXCLUSIVE"


@dataclass(frozen=True, slots=True)
class Alteration:
    """One table that stays: `current` has its new names, but for constraints and indexes."""

    change: TableChange
    current: TableDef
    after: TableDef
    retyped: frozenset[str]
    dropped: frozenset[str]

    @property
    def fresh(self) -> bool:
        return self.change.fresh

    def parts(self, before: Sequence[P], after: Sequence[P]) -> Difference[P]:
        """What changes among parts of one kind."""
        return difference(before, after, self._remade)

    def _remade(self, part: Part) -> bool:
        if isinstance(part, ForeignKeyDef):
            return part.column in self.retyped
        plain = not _has_sql(part)
        return not plain and part_mentions(part, self.retyped)

    def goes_with_column(self, part: Part) -> bool:
        """True where dropping a column drops the part too."""
        return part_mentions(part, self.dropped)


def _has_sql(part: Part) -> bool:
    # an index over plain columns follows a change of their type, its expressions may not
    return not (getattr(part, "columns", ()) and not getattr(part, "where", ""))


def plan_postgres(changes: Sequence[TableChange], dialect: Dialect) -> list[Step]:
    """The steps that bring tables to their state after."""
    tables = {c.before.name: c.after.name for c in changes if c.before and c.after}
    columns: Mapping[str, Mapping[str, str]] = {
        c.before.name: {old: new for new, old in c.sources.items()}
        for c in changes
        if c.before and c.after
    }
    works = [_alteration(c, tables, columns) for c in changes if c.before and c.after]
    created = [c for c in changes if c.after and not c.before]
    first = _extension(changes, dialect) + _renames(changes, works)
    steps: list[Step] = []
    targets = _retyped_targets(works)
    keys = {w.after.name: _keys(w, targets) for w in works}
    for work in works:
        steps += postgres_parts.drop_all(work.current.name, work, keys[work.after.name].dropped)
    for work in works:
        steps += postgres_parts.drop_parts(work)
    steps += _drop_tables(changes)
    for work in works:
        steps += postgres_parts.rename_parts(work, keys[work.after.name].renamed)
    made, later = _create_tables(created, dialect)
    steps += made
    for work in works:
        steps += postgres_columns.change_columns(work, dialect)
    for work in works:
        steps += postgres_parts.add_parts(work, dialect)
    for work in works:
        for key in keys[work.after.name].added:
            steps += postgres_parts.add_foreign_key(work.after, key, dialect, fresh=work.fresh)
    steady = {work.after.name for work in works if work.current.columns == work.after.columns}
    early = [step for step in steps if not step.sql and step.table in steady]
    # rows that a constraint refuses are found before an index or constraint is dropped
    return [*first, *early, *(step for step in steps if step not in early), *later]


def _alteration(
    change: TableChange, tables: Mapping[str, str], columns: Mapping[str, Mapping[str, str]]
) -> Alteration:
    before, after = change.before, change.after
    if before is None or after is None:
        raise TypeError("an alteration has both tables")
    kept = {old: new for new, old in change.sources.items()}
    # a dropped column gives its name up only when it is dropped
    current = followed(before, tables, columns)
    new = columns_by_name(after)
    retyped = frozenset(
        c.name for c in current.columns if c.name in change.sources and c.type != new[c.name].type
    )
    dropped = frozenset(c.name for c in before.columns if c.name not in kept)
    return Alteration(change, current, after, retyped, dropped)


def _extension(changes: Sequence[TableChange], dialect: Dialect) -> list[Step]:
    needed = any(e.scalars for c in changes if c.after for e in c.after.exclusions)
    present = any(e.scalars for c in changes if c.before for e in c.before.exclusions)
    if not needed or present:
        return []
    sql = statements(CreateExtension("btree_gist"), dialect)[0]
    return [Step(sql, summary="load the extension btree_gist")]


def _renames(changes: Sequence[TableChange], works: Sequence[Alteration]) -> list[Step]:
    pairs = [(c.before.name, c.after.name) for c in changes if c.before and c.after]
    steps = [
        Step(
            f"ALTER TABLE {quote(old)} RENAME TO {quote(new)}",
            lock=EXCLUSIVE,
            table=old,
            summary=f"rename table {old} to {new}",
        )
        for old, new in ordered_renames(pairs, "treefold_table_")
    ]
    for work in works:
        table = work.after.name
        own = [(old, new) for new, old in work.change.sources.items()]
        steps += [
            Step(
                f"ALTER TABLE {quote(table)} RENAME COLUMN {quote(old)} TO {quote(new)}",
                lock=EXCLUSIVE,
                table=table,
                summary=f"rename column {table}.{old} to {new}",
            )
            for old, new in ordered_renames(own, "treefold_column_")
        ]
        steps += postgres_names.rename_implicit(work.change)
    return steps


def _retyped_targets(works: Sequence[Alteration]) -> set[tuple[str, str]]:
    return {(work.after.name, column) for work in works for column in work.retyped}


def _keys(work: Alteration, targets: set[tuple[str, str]]) -> Difference[ForeignKeyDef]:
    return difference(
        work.current.foreign_keys,
        work.after.foreign_keys,
        lambda key: key.column in work.retyped or (key.target, key.target_column) in targets,
    )


def _drop_tables(changes: Sequence[TableChange]) -> list[Step]:
    names = [c.before.name for c in changes if c.before and not c.after]
    if not names:
        return []
    listed = ", ".join(map(quote, names))
    summary = f"drop table {', '.join(names)}"
    return [Step(f"DROP TABLE {listed}", lock=EXCLUSIVE, table=names[0], summary=summary)]


def _create_table(table: TableDef, dialect: Dialect) -> list[Step]:
    constraints = tuple(unique for unique in table.uniques if not unique.is_index)
    bare = replace(table, uniques=constraints, indexes=(), searches=())
    made: list[tuple[str, SchemaOperation]] = [(f"create table {table.name}", CreateTable(bare))]
    made += [(f"create index {c.index.name}", c) for c in indexes_of(table)]
    made += [(f"create search {s.name}", CreateSearchIndex(s)) for s in table.searches]
    return [
        Step(sql, table=table.name, summary=summary)
        for summary, operation in made
        for sql in statements(operation, dialect)
    ]


def _create_tables(
    changes: Sequence[TableChange], dialect: Dialect
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
        table = (free or waiting)[0]
        waiting.remove(table)
        blocked = [k for k in table.foreign_keys if k.target in names and k.target != table.name]
        kept = tuple(k for k in table.foreign_keys if k not in blocked)
        steps += _create_table(replace(table, foreign_keys=kept), dialect)
        for key in blocked:
            sql = statements(AddForeignKey(table.name, key), dialect)[0]
            later.append(Step(sql, table=table.name, summary=f"add foreign key {key.name}"))
    return steps, later
