"""Lint of a migration: its operations, their SQL, and what they do together.

Each finding names the rule, the lock that is taken on PostgreSQL, and the safe way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from treefold_migrations._base.errors import PlanError
from treefold_migrations._files.migration import Migration
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.columns import AddField, DropField
from treefold_migrations._operations.custom import RunPython, RunSQL, SeparateStateAndDatabase
from treefold_migrations._operations.tables import CreateTable, DropTable
from treefold_migrations._plan.lint_changes import Subject, lint_change
from treefold_migrations._plan.lint_rules import Finding, found
from treefold_migrations._plan.lint_sql import changes_data, changes_schema, lint_sql
from treefold_migrations._plan.operations import both_shapes, changes_of, fresh_after
from treefold_migrations._plan.tracing import Trace
from treefold_migrations._state.schema_state import SchemaState
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
    """Return what is unsafe about a migration.

    Args:
        migration: The migration.
        before: The state before it.
        dialect: The database's.
        code: The state of the models as they are now, where it is known.
    """
    made: list[Finding] = []
    state, fresh = before, frozenset[str]()
    for place, operation in enumerate(migration.operations):
        after = operation.apply(state)
        made += _operation(operation, place, (state, after), dialect, fresh=fresh, code=code)
        fresh = fresh_after(operation, fresh)
        state = after
    made += _together(migration.operations, before, dialect)
    return sorted(dict.fromkeys(made), key=lambda finding: finding.operation_index)


def format_github(findings: Iterable[Finding], file: str) -> str:
    """Return findings as commands that annotate a file in a review."""
    return "\n".join(
        f"::warning file={_property(file)},title={_property(finding.rule)}::{_message(finding)}"
        for finding in findings
    )


def _message(finding: Finding) -> str:
    text = str(finding).removeprefix(f"{finding.rule}: ")
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    escaped = text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
    return escaped.replace(":", "%3A").replace(",", "%2C")


def _operation(
    operation: Operation,
    place: int,
    states: tuple[SchemaState, SchemaState],
    dialect: Dialect,
    *,
    fresh: frozenset[str],
    code: SchemaState | None,
) -> Iterator[Finding]:
    postgres = dialect.name == "postgres"
    if isinstance(operation, RunSQL):
        if operation.reverse_sql is None and changes_something(operation, dialect):
            yield found("irreversible-data", operation.describe(), place)
        for sql in operation.statements(dialect.name):
            yield from lint_sql(
                sql, place, postgres=postgres, transactional=operation.transactional, fresh=fresh
            )
        return
    if isinstance(operation, RunPython):
        if operation.backward is None:
            yield found("irreversible-data", operation.describe(), place)
        if writes_unbatched(operation.forward):
            yield found("unbatched-backfill", operation.describe(), place)
        return
    if isinstance(operation, SeparateStateAndDatabase):
        state = states[0]
        for part in operation.database:
            after = part.apply(state)
            yield from _operation(part, place, (state, after), dialect, fresh=fresh, code=code)
            state = after
        return
    yield from lint_change(_subject(operation, place, states, dialect, fresh=fresh, code=code))


def _subject(
    operation: Operation,
    place: int,
    states: tuple[SchemaState, SchemaState],
    dialect: Dialect,
    *,
    fresh: frozenset[str],
    code: SchemaState | None,
) -> Subject:
    trace = Trace(states[0], dialect)
    trace.add(operation, states[1])
    before, after = both_shapes(*states)
    try:
        changes = changes_of([operation], states, dialect, fresh)
    except PlanError:
        changes = []  # no conversion: planning stops there, and lint is about what would run
    models = both_shapes(code, code)[0] if code is not None else None
    return Subject(
        place, before, after, trace.answers(fresh), tuple(changes), dialect, fresh, models
    )


def changes_something(operation: RunSQL, dialect: Dialect) -> bool:
    """True for SQL that changes rows or tables."""
    return any(changes_data(s) or changes_schema(s) for s in operation.statements(dialect.name))


def writes_unbatched(function: Any) -> bool:
    """True for a function that writes rows and never asks for batches."""
    code = getattr(function, "__code__", None)
    names = set(code.co_names) if code is not None else set[str]()
    return bool(names & _WRITES) and "batched" not in names


def _together(
    operations: Sequence[Operation], before: SchemaState, dialect: Dialect
) -> Iterator[Finding]:
    yield from _lost_renames(operations, before)
    schema = [o for o in operations if not isinstance(o, (RunSQL, RunPython, CreateTable))]
    by_sql = any(
        changes_schema(sql)
        for o in operations
        if isinstance(o, RunSQL)
        for sql in o.statements(dialect.name)
    )
    if not schema and not by_sql:
        return
    for place, operation in enumerate(operations):
        data = isinstance(operation, RunPython) or (
            isinstance(operation, RunSQL)
            and any(changes_data(sql) for sql in operation.statements(dialect.name))
        )
        if data and getattr(operation, "transactional", True):
            yield found("data-in-schema-transaction", operation.describe(), place)


def _lost_renames(operations: Sequence[Operation], before: SchemaState) -> Iterator[Finding]:
    added = {(o.table, type(o.field)) for o in operations if isinstance(o, AddField)}
    created = [o for o in operations if isinstance(o, CreateTable)]
    for place, operation in enumerate(operations):
        if isinstance(operation, DropField) and operation.table in before:
            field = before.table(operation.table).fields.get(operation.name)
            if field is not None and (operation.table, type(field)) in added:
                yield found("rename-or-drop", f"{operation.table}.{operation.name}", place)
        if isinstance(operation, DropTable) and operation.name in before:
            fields = before.table(operation.name).fields.keys()
            if any(fields == made.fields.keys() for made in created):
                yield found("rename-or-drop", operation.name, place)
