"""Lint of typed operations: the effect of each change on rows, the running release and locks.

The planner's own steps are safe where PostgreSQL has a safe way; the findings are about the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from treefold_migrations._base.errors import PlanError
from treefold_migrations._lint.rules import Finding, found
from treefold_migrations._plan.between import Answers, FieldPair, Shapes, field_pairs
from treefold_migrations._plan.changes import TableChange, is_constant
from treefold_migrations._plan.conversion import kind_of, narrower
from treefold_migrations._plan.converting import convert
from treefold_orm.fields import AutoField, BigAutoField, DateTimeField, EnumField
from treefold_orm.schema import MISSING, Dialect, Field, TableDef, is_foreign_key

AnyField = Field[Any]
_STABLE = (
    "now()",
    "current_timestamp",
    "strftime(",
    "statement_timestamp",
    "transaction_timestamp",
)


@dataclass(frozen=True, slots=True)
class Subject:
    """One operation with the tables before and after it.

    `fresh` are tables that the migration created before, `code` the tables of the models as they
    are now, where they are known.
    """

    index: int
    before: Shapes
    after: Shapes
    answers: Answers
    changes: tuple[TableChange, ...]
    dialect: Dialect
    fresh: frozenset[str] = frozenset()
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
    if not subject.postgres or fresh:
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
        elif source.type != column.type and rewrites(source.type, column.type):
            yield subject.find("type-rewrites", f"{place} ({source.type} to {column.type})")


_SIZED = re.compile(r"(varchar|numeric)\((\d+)(, \d+)?\)")


def rewrites(old: str, new: str) -> bool:
    """True for a change of type that writes each row again on PostgreSQL."""
    first, last = _SIZED.fullmatch(old), _SIZED.fullmatch(new)
    if first is None:
        return True
    if last is None:
        return not (first[1] == "varchar" and new == "text")
    return (first[1], first[3]) != (last[1], last[3]) or int(first[2]) > int(last[2])


def is_volatile(sql: str) -> bool:
    """True for a default that may differ from row to row."""
    if is_constant(sql) or sql.startswith(("ARRAY[", "'")):
        return False
    lowered = sql.lower()
    return "(" in lowered.strip("()") and not any(word in lowered for word in _STABLE)


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
