"""Lint of a migration: its operations, their SQL, and their combined effect.

Each finding names the rule, the lock that is taken on PostgreSQL, and the safe way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from treefold_migrations._base.errors import PlanError
from treefold_migrations._files.migration import Migration
from treefold_migrations._lint.changes import LintedOperation, lint_operation_effect
from treefold_migrations._lint.rules import Finding, make_finding
from treefold_migrations._lint.sql import changes_data, changes_schema, lint_sql
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._operations.columns import AddField, DropField
from treefold_migrations._operations.custom import RunPython, RunSQL, SeparateStateAndDatabase
from treefold_migrations._operations.tables import CreateTable, DropTable
from treefold_migrations._plan.operations import (
    build_shape_pair,
    compute_operation_changes,
    track_newly_created_tables,
)
from treefold_migrations._plan.tracing import OperationTrace
from treefold_migrations._state.schema_state import SchemaState, derive_column_name
from treefold_orm.schema import Dialect

_WRITES = frozenset(
    {
        *("save", "asave", "update", "aupdate", "delete", "adelete", "create", "acreate"),
        *("bulk_update", "abulk_update", "bulk_create", "abulk_create"),
    }
)


def lint(
    migration: Migration, before: SchemaState, dialect: Dialect, *, code: SchemaState | None = None
) -> list[Finding]:
    """Return the findings for a migration.

    Args:
        migration: the migration.
        before: the state before it.
        dialect: the database's.
        code: the state of the models as they are now, where it is known.
    """
    made: list[Finding] = []
    fresh = added = frozenset[str]()
    states = pairwise(compute_states(migration.operations, before))
    for place, (operation, both) in enumerate(zip(migration.operations, states, strict=True)):
        made += _lint_operation(
            operation,
            place,
            both,
            dialect,
            new_tables=fresh,
            added_columns=added,
            models_state=code,
        )
        fresh = track_newly_created_tables(operation, fresh)
        if isinstance(operation, AddField):
            column = derive_column_name(operation.name, operation.field)
            added |= {f"{operation.table}.{column}"}
    made += _lint_combined_effect(migration.operations, before, dialect)
    return sorted(dict.fromkeys(made), key=lambda finding: finding.operation_index)


def format_github_annotations(findings: Iterable[Finding], file: str) -> str:
    """Return findings as commands that annotate a file in a review."""
    return "\n".join(
        "::warning "
        f"file={_escape_annotation_property(file)},title={_escape_annotation_property(finding.rule)}::{_escape_annotation_message(finding)}"
        for finding in findings
    )


def _escape_annotation_message(finding: Finding) -> str:
    text = str(finding).removeprefix(f"{finding.rule}: ")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escape_annotation_property(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C")


def _lint_operation(
    operation: Operation,
    operation_index: int,
    states: tuple[SchemaState, SchemaState],
    dialect: Dialect,
    *,
    new_tables: frozenset[str],
    added_columns: frozenset[str],
    models_state: SchemaState | None,
) -> Iterator[Finding]:
    postgres = dialect.name == "postgres"
    if isinstance(operation, RunSQL):
        changes_something = any(
            _has_matching_sql(operation, t, dialect) for t in (changes_data, changes_schema)
        )
        if operation.reverse_sql is None and changes_something:
            yield make_finding("irreversible-data", operation.describe(), operation_index)
        for sql in operation.statements(dialect.name):
            yield from lint_sql(
                sql,
                operation_index,
                postgres=postgres,
                transactional=operation.transactional,
                new_tables=new_tables,
            )
        return
    if isinstance(operation, RunPython):
        if operation.backward is None:
            yield make_finding("irreversible-data", operation.describe(), operation_index)
        if writes_rows_without_batches(operation.forward):
            yield make_finding("unbatched-backfill", operation.describe(), operation_index)
        return
    if isinstance(operation, SeparateStateAndDatabase):
        inner = pairwise(compute_states(operation.database, states[0]))
        for part, both in zip(operation.database, inner, strict=True):
            yield from _lint_operation(
                part,
                operation_index,
                both,
                dialect,
                new_tables=new_tables,
                added_columns=added_columns,
                models_state=models_state,
            )
        return
    trace = OperationTrace(states[0], dialect)
    trace.add_operation(operation, states[1])
    before, after = build_shape_pair(*states)
    try:
        changes = tuple(compute_operation_changes([operation], states, dialect, new_tables))
    except PlanError:
        changes = ()  # no conversion: planning stops there, and lint covers SQL that would run
    models = build_shape_pair(models_state, models_state)[0] if models_state is not None else None
    answers = trace.build_planner_hints(new_tables)
    subject = LintedOperation(
        operation_index, before, after, answers, changes, dialect, new_tables, added_columns, models
    )
    yield from lint_operation_effect(subject)


def _has_matching_sql(operation: Operation, test: Callable[[str], bool], dialect: Dialect) -> bool:
    """True for SQL of the author's own with a statement that meets a test."""
    return isinstance(operation, RunSQL) and any(map(test, operation.statements(dialect.name)))


def writes_rows_without_batches(function: Any) -> bool:
    """True for a function that writes rows and never asks for batches."""
    code = getattr(function, "__code__", None)
    names = set(code.co_names) if code is not None else set[str]()
    return bool(names & _WRITES) and "batched" not in names


def _lint_combined_effect(
    operations: Sequence[Operation], before: SchemaState, dialect: Dialect
) -> Iterator[Finding]:
    yield from _lint_possible_renames(operations, before)
    schema = [o for o in operations if not isinstance(o, (RunSQL, RunPython, CreateTable))]
    if not schema and not any(_has_matching_sql(o, changes_schema, dialect) for o in operations):
        return
    for place, operation in enumerate(operations):
        data = isinstance(operation, RunPython) or _has_matching_sql(
            operation, changes_data, dialect
        )
        if data and getattr(operation, "transactional", True):
            yield make_finding("data-in-schema-transaction", operation.describe(), place)


def _lint_possible_renames(
    operations: Sequence[Operation], before: SchemaState
) -> Iterator[Finding]:
    added = {(o.table, type(o.field)) for o in operations if isinstance(o, AddField)}
    created = [o for o in operations if isinstance(o, CreateTable)]
    for place, operation in enumerate(operations):
        if isinstance(operation, DropField) and operation.table in before:
            field = before.table(operation.table).fields.get(operation.name)
            if field is not None and (operation.table, type(field)) in added:
                yield make_finding("rename-or-drop", f"{operation.table}.{operation.name}", place)
        if isinstance(operation, DropTable) and operation.name in before:
            fields = before.table(operation.name).fields.keys()
            if any(fields == made.fields.keys() for made in created):
                yield make_finding("rename-or-drop", operation.name, place)
