"""Lint of typed operations: the effect of each change on rows, the running release and locks.

The planner's own steps are safe where PostgreSQL has a safe way; the findings are about the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from treefold_migrations._base.errors import PlanError
from treefold_migrations._lint.rules import Finding, found
from treefold_migrations._plan.between import Answers, FieldPair, Shapes, field_pairs
from treefold_migrations._plan.changes import (
    TableChange,
    columns_by_name,
    difference,
    followed,
    mentions,
)
from treefold_migrations._plan.conversion import kind_of, narrower
from treefold_migrations._plan.converting import convert
from treefold_migrations._plan.postgres_rewrites import is_volatile, rewrites_rows
from treefold_orm.fields import AutoField, BigAutoField, DateTimeField, EnumField
from treefold_orm.schema import MISSING, Dialect, Field, TableDef, is_foreign_key

AnyField = Field[Any]


@dataclass(frozen=True, slots=True)
class Subject:
    """One operation with the tables before and after it.

    `fresh` are tables that the migration created before, `added` columns that it added, as
    `table.column`, `code` the tables of the models as they are now, where they are known.
    """

    index: int
    before: Shapes
    after: Shapes
    answers: Answers
    changes: tuple[TableChange, ...]
    dialect: Dialect
    fresh: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    code: Shapes | None = None

    @property
    def postgres(self) -> bool:
        return self.dialect.name == "postgres"

    def find(self, rule: str, what: str) -> Finding:
        """A finding of this operation."""
        return found(rule, what, self.index, locks=self.postgres)


def lint_change(subject: Subject) -> Iterator[Finding]:
    """Yield the findings for one operation."""
    for change in subject.changes:
        yield from _tables(subject, change)
    for pair in field_pairs(subject.before, subject.after, subject.answers):
        place = f"{pair.table}.{pair.name}"
        if pair.old is None and pair.new is not None:
            yield from _hygiene(subject, pair, place)
            if not pair.created and pair.table not in subject.fresh:
                yield from _added(subject, pair, place)
        elif pair.new is None:
            if not pair.dropped_table:
                yield from _dropped(subject, pair, place)
        elif pair.old is not None:
            yield from _altered(subject, pair, place)


def _tables(subject: Subject, change: TableChange) -> Iterator[Finding]:
    before, after = change.before, change.after
    if after is None:
        if before is not None:
            yield subject.find("drop-table", before.name)
        return
    yield from _names(subject, before, after)
    if before is None:
        return
    fresh = bool({before.name, after.name} & subject.fresh)
    if before.name != after.name and not fresh:
        yield subject.find("rename-table", f"{before.name} (now {after.name})")
    known = {exclusion.name for exclusion in before.exclusions}
    for exclusion in after.exclusions:
        if exclusion.name not in known and not fresh:
            yield subject.find("exclusion-constraint", exclusion.name)
    if fresh:
        return
    yield from _stricter(subject, change, before, after)
    if not subject.postgres:
        return
    old = {column.name: column for column in before.columns}
    for column in after.columns:
        source = old.get(change.sources.get(column.name, ""))
        place = f"{after.name}.{column.name}"
        if source is None:
            if column.identity:
                yield subject.find("identity-on-filled-table", place)
            elif column.default and is_volatile(column.default):
                yield subject.find("volatile-default", place)
        elif source.type != column.type and rewrites_rows(source.type, column.type):
            yield subject.find("type-rewrites", f"{place} ({source.type} to {column.type})")
        elif column.name in change.conversions and not change.conversions[column.name].keeps:
            yield subject.find("type-rewrites", f"{place} (values of {column.type})")
    if before.primary_key != tuple(change.sources.get(key, "") for key in after.primary_key):
        yield subject.find("primary-key-index", after.name)


def _stricter(
    subject: Subject, change: TableChange, before: TableDef, after: TableDef
) -> Iterator[Finding]:
    """What the running release may write and the new table refuses, but for new columns alone."""
    renamed = {old: new for new, old in change.sources.items()}
    current = followed(before, {before.name: after.name}, {before.name: renamed})
    old, new = columns_by_name(current), columns_by_name(after)
    own = {name for name in new if f"{after.name}.{name}" in subject.added}
    added = frozenset(new.keys() - change.sources.keys() | own)
    for name in change.sources.keys() - added:
        place = f"{after.name}.{name}"
        if old[name].null and not new[name].null:
            yield subject.find("new-not-null", place)
        conversion = change.conversions.get(name)
        narrows = conversion is not None and bool(conversion.misfit or conversion.castable)
        if new[name].checks and not old[name].checks and not narrows:
            yield subject.find("new-check", place)
    for check in difference(current.checks, after.checks).added:
        if not mentions(check.sql, added) or mentions(check.sql, frozenset(new) - added):
            yield subject.find("new-check", check.name)
    for unique in difference(current.uniques, after.uniques).added:
        free = [name for name in unique.columns if name in added and new[name].null]
        if not (free and unique.nulls_distinct):
            yield subject.find("new-unique", unique.name)
    known = frozenset(key.column for key in current.foreign_keys)
    for key in difference(current.foreign_keys, after.foreign_keys).added:
        if key.column not in added | known:
            yield subject.find("new-reference", f"{after.name}.{key.column}")


def _names(subject: Subject, before: TableDef | None, after: TableDef) -> Iterator[Finding]:
    known = set[str]() if before is None else set(_wanted_names(before))
    for name in _wanted_names(after):
        if name not in known and len(name.encode()) > 63:
            yield subject.find("long-identifier", name)


def _wanted_names(table: TableDef) -> Iterator[str]:
    # the ORM cuts names of its own with a hash; these are the full names
    for key in table.foreign_keys:
        yield f"fk_{table.name}_{key.column}"
    for index in table.indexes:
        columns = [term.strip('"') for term in index.terms if term.count('"') == 2]
        if index.name.startswith("ix_") and len(columns) == len(index.terms):
            yield "_".join(("ix", table.name, *columns))


def _hygiene(subject: Subject, pair: FieldPair, place: str) -> Iterator[Finding]:
    field = pair.new
    if isinstance(field, DateTimeField) and field.storage:
        yield subject.find("timestamp-without-zone", place)
    if isinstance(field, AutoField) and not isinstance(field, BigAutoField):
        yield subject.find("narrow-key", place)
    if field is not None and is_foreign_key(field) and not (field.db_index or field.unique):
        shape = subject.after[pair.table]
        leading = {_first_field(index) for index in (*shape.indexes, *shape.constraints)}
        if pair.name not in leading:
            yield subject.find("missing-foreign-key-index", place)


def _first_field(part: Any) -> str:
    names: Any = getattr(part, "fields", ())
    first: Any = names[0] if names else ""
    return first.removeprefix("-") if isinstance(first, str) else ""


def _added(subject: Subject, pair: FieldPair, place: str) -> Iterator[Finding]:
    field = pair.new
    if field is None or field.null or field.db_default is not MISSING or field.generated:
        return
    yield subject.find("required-without-default", place)


def _dropped(subject: Subject, pair: FieldPair, place: str) -> Iterator[Finding]:
    yield subject.find("drop-column", place)
    models = subject.code
    if models is not None and pair.table in models and pair.name in models[pair.table].fields:
        yield subject.find("drop-column-in-use", place)


def _altered(subject: Subject, pair: FieldPair, place: str) -> Iterator[Finding]:
    old, new = pair.old, pair.new
    if old is None or new is None:
        return
    if pair.table in subject.fresh:
        return
    if pair.old_column != pair.new_column:
        yield subject.find("rename-column", f"{pair.table}.{pair.old_column}")
    if old.db_default is not MISSING and new.db_default is MISSING and not new.null:
        yield subject.find("drop-default-in-use", place)
    if is_foreign_key(old) or is_foreign_key(new):
        return
    if isinstance(old, EnumField) and isinstance(new, EnumField):
        gone = _values(old) - _values(new)
        if gone:
            listed = ", ".join(sorted(map(repr, gone)))
            yield subject.find("remove-enum-value", f"{place} ({listed})")
            return
    if _narrows(old, new, subject.dialect):
        yield subject.find("narrow-type", place)


def _values(field: AnyField) -> set[Any]:
    members: Any = getattr(field, "enum_class", ())
    return {member.value for member in members}


def _narrows(old: AnyField, new: AnyField, dialect: Dialect) -> bool:
    try:
        made = convert(old, new, dialect, place="", using="")
    except PlanError:
        return True
    if made is not None and (made.misfit or made.castable):
        return True
    return kind_of(old) == kind_of(new) == "integer" and narrower(old, new)
