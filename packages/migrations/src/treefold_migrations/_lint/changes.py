"""Lint of typed operations: the effect of each change on rows, the running release and locks.

The planner's own steps are safe where PostgreSQL has a safe way; the findings are about the rest.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from treefold_migrations._base.errors import PlanError
from treefold_migrations._conversions.conversion import can_exceed_range, find_value_kind
from treefold_migrations._conversions.converting import find_conversion
from treefold_migrations._lint.rules import Finding, make_finding
from treefold_migrations._plan.between import FieldPair, PlannerHints, Shapes, pair_fields
from treefold_migrations._plan.changes import (
    TableChange,
    apply_renames,
    compare_parts,
    index_columns_by_name,
    sql_mentions_column,
)
from treefold_migrations._plan.postgres_rewrites import (
    is_volatile_default,
    type_change_rewrites_rows,
)
from treefold_orm.fields import AutoField, BigAutoField, DateTimeField, EnumField
from treefold_orm.schema import MISSING, Dialect, Field, TableDef, is_foreign_key

AnyField = Field[Any]


@dataclass(frozen=True, slots=True)
class LintedOperation:
    """One operation with the tables before and after it.

    `fresh` are tables that the migration created before, `added` columns that it added, as
    `table.column`, `code` the tables of the models as they are now, where they are known.
    """

    index: int
    before: Shapes
    after: Shapes
    answers: PlannerHints
    changes: tuple[TableChange, ...]
    dialect: Dialect
    fresh: frozenset[str] = frozenset()
    added: frozenset[str] = frozenset()
    code: Shapes | None = None

    @property
    def is_postgres(self) -> bool:
        return self.dialect.name == "postgres"

    def build_finding(self, rule: str, finding_subject: str) -> Finding:
        """A finding of this operation."""
        return make_finding(rule, finding_subject, self.index, include_lock=self.is_postgres)


def lint_operation_effect(subject: LintedOperation) -> Iterator[Finding]:
    """Yield the findings for one operation."""
    for change in subject.changes:
        yield from _lint_table_change(subject, change)
    for pair in pair_fields(subject.before, subject.after, subject.answers):
        place = f"{pair.table}.{pair.name}"
        if pair.old is None and pair.new is not None:
            yield from _lint_field_hygiene(subject, pair, place)
            if not pair.created and pair.table not in subject.fresh:
                yield from _lint_added_field(subject, pair, place)
        elif pair.new is None:
            if not pair.dropped_table:
                yield from _lint_dropped_field(subject, pair, place)
        elif pair.old is not None:
            yield from _lint_altered_field(subject, pair, place)


def _lint_table_change(subject: LintedOperation, change: TableChange) -> Iterator[Finding]:
    before, after = change.before, change.after
    if after is None:
        if before is not None:
            yield subject.build_finding("drop-table", before.name)
        return
    yield from _lint_name_lengths(subject, before, after)
    if before is None:
        return
    fresh = bool({before.name, after.name} & subject.fresh)
    if before.name != after.name and not fresh:
        yield subject.build_finding("rename-table", f"{before.name} (now {after.name})")
    known = {exclusion.name for exclusion in before.exclusions}
    for exclusion in after.exclusions:
        if exclusion.name not in known and not fresh:
            yield subject.build_finding("exclusion-constraint", exclusion.name)
    if fresh:
        return
    yield from _lint_new_constraints(subject, change, before, after)
    if not subject.is_postgres:
        return
    old = {column.name: column for column in before.columns}
    for column in after.columns:
        source = old.get(change.sources.get(column.name, ""))
        place = f"{after.name}.{column.name}"
        if source is None:
            if column.identity:
                yield subject.build_finding("identity-on-filled-table", place)
            elif column.default and is_volatile_default(column.default):
                yield subject.build_finding("volatile-default", place)
        elif source.type != column.type and type_change_rewrites_rows(source.type, column.type):
            yield subject.build_finding(
                "type-rewrites", f"{place} ({source.type} to {column.type})"
            )
        elif column.name in change.conversions and not change.conversions[column.name].keeps_values:
            yield subject.build_finding("type-rewrites", f"{place} (values of {column.type})")
    if before.primary_key != tuple(change.sources.get(key, "") for key in after.primary_key):
        yield subject.build_finding("primary-key-index", after.name)


def _lint_new_constraints(
    subject: LintedOperation, change: TableChange, before: TableDef, after: TableDef
) -> Iterator[Finding]:
    """What the running release may write and the new table refuses, but for new columns alone."""
    renamed = {old: new for new, old in change.sources.items()}
    current = apply_renames(before, {before.name: after.name}, {before.name: renamed})
    old, new = index_columns_by_name(current), index_columns_by_name(after)
    own = {name for name in new if f"{after.name}.{name}" in subject.added}
    added = frozenset(new.keys() - change.sources.keys() | own)
    for name in change.sources.keys() - added:
        place = f"{after.name}.{name}"
        if old[name].null and not new[name].null:
            yield subject.build_finding("new-not-null", place)
        conversion = change.conversions.get(name)
        narrows = conversion is not None and bool(conversion.misfit or conversion.castable)
        if new[name].checks and not old[name].checks and not narrows:
            yield subject.build_finding("new-check", place)
    for check in compare_parts(current.checks, after.checks).added:
        if not sql_mentions_column(check.sql, added) or sql_mentions_column(
            check.sql, frozenset(new) - added
        ):
            yield subject.build_finding("new-check", check.name)
    for unique in compare_parts(current.uniques, after.uniques).added:
        free = [name for name in unique.columns if name in added and new[name].null]
        if not (free and unique.nulls_distinct):
            yield subject.build_finding("new-unique", unique.name)
    known = frozenset(key.column for key in current.foreign_keys)
    for key in compare_parts(current.foreign_keys, after.foreign_keys).added:
        if key.column not in added | known:
            yield subject.build_finding("new-reference", f"{after.name}.{key.column}")


def _lint_name_lengths(
    subject: LintedOperation, before: TableDef | None, after: TableDef
) -> Iterator[Finding]:
    known = set[str]() if before is None else set(_list_untruncated_names(before))
    for name in _list_untruncated_names(after):
        if name not in known and len(name.encode()) > 63:
            yield subject.build_finding("long-identifier", name)


def _list_untruncated_names(table: TableDef) -> Iterator[str]:
    # the ORM cuts names of its own with a hash; these are the full names
    for key in table.foreign_keys:
        yield f"fk_{table.name}_{key.column}"
    for index in table.indexes:
        columns = [term.strip('"') for term in index.terms if term.count('"') == 2]
        if index.name.startswith("ix_") and len(columns) == len(index.terms):
            yield "_".join(("ix", table.name, *columns))


def _lint_field_hygiene(subject: LintedOperation, pair: FieldPair, path: str) -> Iterator[Finding]:
    field = pair.new
    if isinstance(field, DateTimeField) and field.storage:
        yield subject.build_finding("timestamp-without-zone", path)
    if isinstance(field, AutoField) and not isinstance(field, BigAutoField):
        yield subject.build_finding("narrow-key", path)
    if field is not None and is_foreign_key(field) and not (field.db_index or field.unique):
        shape = subject.after[pair.table]
        leading = {
            _find_first_indexed_field(index) for index in (*shape.indexes, *shape.constraints)
        }
        if pair.name not in leading:
            yield subject.build_finding("missing-foreign-key-index", path)


def _find_first_indexed_field(part: Any) -> str:
    names: Any = getattr(part, "fields", ())
    first: Any = names[0] if names else ""
    return first.removeprefix("-") if isinstance(first, str) else ""


def _lint_added_field(subject: LintedOperation, pair: FieldPair, path: str) -> Iterator[Finding]:
    field = pair.new
    if field is None or field.null or field.db_default is not MISSING or field.generated:
        return
    yield subject.build_finding("required-without-default", path)


def _lint_dropped_field(subject: LintedOperation, pair: FieldPair, path: str) -> Iterator[Finding]:
    yield subject.build_finding("drop-column", path)
    models = subject.code
    if models is not None and pair.table in models and pair.name in models[pair.table].fields:
        yield subject.build_finding("drop-column-in-use", path)


def _lint_altered_field(subject: LintedOperation, pair: FieldPair, path: str) -> Iterator[Finding]:
    old, new = pair.old, pair.new
    if old is None or new is None:
        return
    if pair.table in subject.fresh:
        return
    if pair.old_column != pair.new_column:
        yield subject.build_finding("rename-column", f"{pair.table}.{pair.old_column}")
    if old.db_default is not MISSING and new.db_default is MISSING and not new.null:
        yield subject.build_finding("drop-default-in-use", path)
    if is_foreign_key(old) or is_foreign_key(new):
        return
    if isinstance(old, EnumField) and isinstance(new, EnumField):
        gone = _list_enum_values(old) - _list_enum_values(new)
        if gone:
            listed = ", ".join(sorted(map(repr, gone)))
            yield subject.build_finding("remove-enum-value", f"{path} ({listed})")
            return
    if _is_narrower_type(old, new, subject.dialect):
        yield subject.build_finding("narrow-type", path)


def _list_enum_values(field: AnyField) -> set[Any]:
    members: Any = getattr(field, "enum_class", ())
    return {member.value for member in members}


def _is_narrower_type(old: AnyField, new: AnyField, dialect: Dialect) -> bool:
    try:
        made = find_conversion(old, new, dialect, field_path="", using="")
    except PlanError:
        return True
    if made is not None and (made.misfit or made.castable):
        return True
    return find_value_kind(old) == find_value_kind(new) == "integer" and can_exceed_range(old, new)
