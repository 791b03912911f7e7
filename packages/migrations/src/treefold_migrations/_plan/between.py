"""From two sets of tables, described by their fields, to the changes of the planner.

Tables that point to a changed one change with it: their columns follow the key's type and name.

Example, `compute_table_changes` receives the tables before and after; `chapter` changes too,
because its column has the type of the key it points to:

    >>> AlterField("book", "id", fields.AutoField())
    PostgreSQL: ALTER TABLE "book" ALTER COLUMN "id" TYPE integer USING ...
    PostgreSQL: ALTER TABLE "chapter" ALTER COLUMN "book_id" TYPE integer USING ...
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field as attribute
from typing import Any

from treefold_migrations._conversions.conversion import Conversion
from treefold_migrations._conversions.converting import find_conversion
from treefold_migrations._plan.changes import TableChange
from treefold_orm import schema

AnyField = schema.Field[Any]
Shapes = Mapping[str, schema.TableShape]
Place = tuple[str, str]


@dataclass(frozen=True, slots=True)
class PlannerHints:
    """Knowledge that two sets of tables do not hold by themselves.

    `tables` maps tables after to their name before, `fields` their fields after to those before,
    which is None for a new field of an old name. `fills` is SQL for the values of existing rows,
    `using` SQL for the values of a changed type, both by table and field after. `fresh` are tables
    of the same migration.
    """

    tables: Mapping[str, str] = attribute(default_factory=dict[str, str])
    fields: Mapping[str, Mapping[str, str | None]] = attribute(
        default_factory=dict[str, Mapping[str, str | None]]
    )
    fills: Mapping[tuple[str, str], str] = attribute(default_factory=dict[tuple[str, str], str])
    using: Mapping[tuple[str, str], str] = attribute(default_factory=dict[tuple[str, str], str])
    fresh: frozenset[str] = frozenset()


class _SchemaSide:
    """The tables before or after, in one dialect, each described once."""

    def __init__(self, shapes: Shapes, dialect: schema.Dialect) -> None:
        self.shapes = shapes
        self._dialect = dialect
        self._metas: dict[str, schema.Meta] = {}

    def build_meta(self, name: str) -> schema.Meta:
        if name not in self._metas:
            self._metas[name] = schema.meta_of(name, self.shapes)
        return self._metas[name]

    def build_table_def(self, name: str) -> schema.TableDef:
        return schema.table_of(self.build_meta(name), self._dialect)

    def find_foreign_key_targets(self, name: str) -> set[str]:
        return {str(f.to) for f in self.shapes[name].fields.values() if schema.is_foreign_key(f)}


def compute_table_changes(
    before: Shapes, after: Shapes, *, dialect: schema.Dialect, answers: PlannerHints
) -> list[TableChange]:
    """Return the change of each table that changes."""
    old, new = _SchemaSide(before, dialect), _SchemaSide(after, dialect)
    pairs = _map_new_to_old_tables(before, after, answers)
    touched = {
        name
        for name, source in pairs.items()
        if source is None
        or source != name
        # states share tables that no operation touches, so identity saves a comparison field by
        # field
        or before[source] is not after[name]
        or any(key[0] == name for key in (*answers.fills, *answers.using))
    }
    gone = before.keys() - {source for source in pairs.values() if source}
    touched = _add_referencing_tables(touched, gone, pairs, old, new)
    given = [(pairs[name], name) for name in after if name in touched]
    changes = [_build_table_change(old, new, *pair, answers, dialect) for pair in given]
    changes += [TableChange(old.build_table_def(name), None) for name in before if name in gone]
    # a change of labels or validators makes another shape, and the same table
    return [c for c in changes if c.before != c.after or c.conversions or c.fills]


def _add_referencing_tables(
    touched: set[str],
    gone: set[str],
    pairs: Mapping[str, str | None],
    old: _SchemaSide,
    new: _SchemaSide,
) -> set[str]:
    """Return changed tables with those that point to them, and those that point to these."""
    found = set(touched)
    while True:
        reached = {
            name
            for name in pairs.keys() - found
            if new.find_foreign_key_targets(name) & (found | gone)
            or _references_changed_table(old, pairs[name], found)
        }
        if not reached:
            return found
        found |= reached


def _map_new_to_old_tables(
    before: Shapes, after: Shapes, answers: PlannerHints
) -> dict[str, str | None]:
    moved = set(answers.tables.values())
    made: dict[str, str | None] = {}
    for name in after:
        source = answers.tables.get(name)
        # book renamed to volume, and a new book: the new one has no rows of the old one
        if source is None and name in before and name not in moved:
            source = name
        made[name] = source
    return made


def _references_changed_table(
    old: _SchemaSide, old_name: str | None, changed_tables: set[str]
) -> bool:
    return old_name is not None and bool(old.find_foreign_key_targets(old_name) & changed_tables)


def _build_table_change(
    old: _SchemaSide,
    new: _SchemaSide,
    old_name: str | None,
    new_name: str,
    answers: PlannerHints,
    dialect: schema.Dialect,
) -> TableChange:
    table = new.build_table_def(new_name)
    if old_name is None:
        return TableChange(None, table)
    first, last = old.build_meta(old_name), new.build_meta(new_name)
    renamed = answers.fields.get(new_name, {})
    sources: dict[str, str] = {}
    conversions: dict[str, Conversion] = {}
    for field_name, made in last.fields.items():
        origin = renamed.get(field_name, field_name)
        given = first.fields.get(origin) if origin is not None else None
        if given is None:
            continue
        sources[made.column_name] = given.column_name
        conversion = find_conversion(
            resolve_to_target_key_field(given),
            resolve_to_target_key_field(made),
            dialect,
            field_path=f"{new_name}.{field_name}",
            using=answers.using.get((new_name, field_name), ""),
        )
        if conversion is not None:
            conversions[made.column_name] = conversion
    fills = {
        made.column_name: answers.fills[new_name, field_name]
        for field_name, made in last.fields.items()
        if (new_name, field_name) in answers.fills
    }
    fresh = bool({new_name, old_name} & answers.fresh)
    return TableChange(old.build_table_def(old_name), table, sources, fills, conversions, fresh)


def resolve_to_target_key_field(given: AnyField) -> AnyField:
    """The field whose values a column holds: of a foreign key, the key that it points to."""
    # a key may point to a primary key that is itself a foreign key
    while schema.is_foreign_key(given):
        given = given.known_target.pk
    return given


@dataclass(frozen=True, slots=True)
class FieldPair:
    """One field before and after; `name` is the one it has last. `created` and `dropped_table` tell
    that its whole table comes or goes.

    | Change | `old` | `new` | Flag |
    |---|---|---|---|
    | altered or renamed | the field before | the field after | |
    | added | None | the field | |
    | dropped | the field | None | |
    | of a new table | None | the field | `created` |
    | of a dropped table | the field | None | `dropped_table` |
    """

    table: str
    name: str
    old: AnyField | None
    new: AnyField | None
    old_column: str = ""
    new_column: str = ""
    created: bool = False
    dropped_table: bool = False


def pair_fields(before: Shapes, after: Shapes, answers: PlannerHints) -> list[FieldPair]:
    """Pair the fields of tables that differ."""
    pairs = _map_new_to_old_tables(before, after, answers)
    made: list[FieldPair] = []
    for table, source in pairs.items():
        new = after[table].fields
        if source is None:
            made += [
                FieldPair(table, name, None, field, created=True) for name, field in new.items()
            ]
            continue
        # an untouched table is one object in both states
        if before[source] is after[table]:
            continue
        old, renamed = before[source].fields, answers.fields.get(table, {})
        kept: set[str] = set()
        for name, field in new.items():
            origin = renamed.get(name, name)
            given = old.get(origin) if origin is not None else None
            if given is None or origin is None:
                made.append(FieldPair(table, name, None, field))
                continue
            kept.add(origin)
            columns = derive_column_name(origin, given), derive_column_name(name, field)
            made.append(FieldPair(table, name, given, field, *columns))
        made += [
            FieldPair(table, name, field, None) for name, field in old.items() if name not in kept
        ]
    gone = before.keys() - {source for source in pairs.values() if source}
    for table in before:
        if table in gone:
            fields = before[table].fields.items()
            made += [FieldPair(table, n, field, None, dropped_table=True) for n, field in fields]
    return made


def derive_column_name(name: str, given: AnyField) -> str:
    """The column of an unbound field."""
    return given.db_column or (f"{name}_id" if schema.is_foreign_key(given) else name)
