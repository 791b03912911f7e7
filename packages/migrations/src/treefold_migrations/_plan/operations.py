"""From operations to steps.

On PostgreSQL each operation has its own steps. On SQLite the operations of a file that stand
together are planned together, so that each table is rebuilt at most once.

Example, `group_operations` returns one group on SQLite, whose table is copied once, and two on
PostgreSQL:

    >>> AlterField("book", "pages", fields.BigIntegerField(null=True)),
    ... AlterField("book", "title", fields.CharField(max_length=40))
    SQLite: INSERT INTO "treefold_rebuilt" ("id", "title", "pages", "price") SELECT ... FROM "book"
    PostgreSQL: ALTER TABLE "book" ALTER COLUMN "pages" TYPE bigint
    PostgreSQL: ALTER TABLE "book" ALTER COLUMN "title" TYPE varchar(40)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

from treefold_migrations._base.sql_locks import find_strongest_lock
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._operations.custom import (
    RunPython,
    RunSQL,
    SeparateStateAndDatabase,
    describe_sql,
)
from treefold_migrations._operations.tables import CreateTable, DropTable, RenameTable, SetOptions
from treefold_migrations._plan.between import PlannerHints, Shapes, compute_table_changes
from treefold_migrations._plan.changes import TableChange
from treefold_migrations._plan.postgres import plan_postgres
from treefold_migrations._plan.sqlite import plan_sqlite
from treefold_migrations._plan.sqlite_script import split_script
from treefold_migrations._plan.step import Step
from treefold_migrations._plan.tracing import OperationTrace
from treefold_migrations._state.rendering import build_table_shape
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import Dialect, TableShape

SEPARATE = (RunSQL, RunPython, SeparateStateAndDatabase)


def plan_changes(changes: Sequence[TableChange], *, dialect: Dialect) -> list[Step]:
    """Return the steps of changes that belong together, such as a table and those that point to
    it.
    """
    real = [c for c in changes if c.before != c.after or c.conversions or c.fills]
    if dialect.name == "postgres":
        return plan_postgres(real, dialect)
    return plan_sqlite(real, dialect)


def plan_operations(
    operations: Sequence[Operation],
    states: Sequence[SchemaState],
    dialect: Dialect,
    *,
    new_tables: frozenset[str] = frozenset(),
) -> list[tuple[int, list[Step]]]:
    """Return the steps of the operations of a file, each list with the place of its first
    operation.

    Args:
        operations: all or some consecutive operations of a file.
        states: the states before, between and after them: one more than operations.
        dialect: the database's.
        new_tables: tables that the same file created before these operations.
    """
    made: list[tuple[int, list[Step]]] = []
    for first, last in group_operations(operations, states, dialect):
        chosen = operations[first:last]
        if isinstance(chosen[0], SEPARATE):
            steps = _plan_ungrouped_operation(chosen[0], states[first], dialect, new_tables)
        else:
            # the consent counts from its place on: SetOptions behind the change would come too late
            agreed = frozenset(map(_find_table_with_agreed_loss, operations[:last])) - {""}
            changes = compute_operation_changes(
                chosen,
                states[first : last + 1],
                dialect,
                new_tables,
                tables_with_agreed_loss=agreed,
            )
            steps = plan_changes(changes, dialect=dialect)
        made.append((first, steps))
        for operation in chosen:
            new_tables = track_newly_created_tables(operation, new_tables)
    return made


def group_operations(
    operations: Sequence[Operation], states: Sequence[SchemaState], dialect: Dialect
) -> list[tuple[int, int]]:
    """Return which operations are planned together, as places of the first and after the last."""
    starts: list[int] = []
    trace: OperationTrace | None = None
    for place, operation in enumerate(operations):
        alone = isinstance(operation, SEPARATE) or dialect.name == "postgres"
        joins = (
            trace is not None
            and not alone
            and operation.phase == operations[place - 1].phase
            and trace.can_add_operation(operation)
        )
        if not joins:
            starts.append(place)
            # PostgreSQL alters in place: grouping saves nothing there, and would hold locks of one
            # for others
            trace = None if alone else OperationTrace(states[place], dialect)
        if trace is not None:
            trace.add_operation(operation, states[place + 1])
    return list(pairwise([*starts, len(operations)]))


def track_newly_created_tables(operation: Operation, new_tables: frozenset[str]) -> frozenset[str]:
    """Return the tables that a file has created, once it has run one more operation."""
    match operation:
        case CreateTable(name=name):
            return new_tables | {name}
        case DropTable(name=name):
            return new_tables - {name}
        case RenameTable(old=old, new=new):
            return new_tables - {old} | {new} if old in new_tables else new_tables
        case _:
            return new_tables


def compute_operation_changes(
    operations: Sequence[Operation],
    states: Sequence[SchemaState],
    dialect: Dialect,
    new_tables: frozenset[str],
    *,
    tables_with_agreed_loss: frozenset[str] = frozenset(),
) -> list[TableChange]:
    """Return the changes of tables that operations make together.

    `tables_with_agreed_loss` are tables whose unknown parts the file gives up.
    """
    trace = OperationTrace(states[0], dialect)
    for operation, after in zip(operations, states[1:], strict=True):
        trace.add_operation(operation, after)
    before, after = build_shape_pair(states[0], states[-1])
    answers: PlannerHints = trace.build_planner_hints(new_tables)
    return [
        _with_unknown_parts(change, states[-1], tables_with_agreed_loss)
        for change in compute_table_changes(before, after, dialect=dialect, answers=answers)
        if _has_managed_tables(change, states[0], states[-1])
    ]


_LOST = frozenset({"check", "column", "default", "foreign key", "primary key", "table", "unique"})
"""Kinds of findings that are more than another spelling of the same."""


def _find_table_with_agreed_loss(operation: Operation) -> str:
    if isinstance(operation, SetOptions) and operation.as_found is not None:
        # an empty list gives up what was found, a list with entries only notes it
        return "" if operation.as_found else operation.table
    return ""


def _with_unknown_parts(
    change: TableChange, state: SchemaState, agreed: frozenset[str]
) -> TableChange:
    if change.before is None or change.after is None:
        return change
    table = state.tables[change.after.name]
    unknown = tuple(
        f"{finding.kind} {finding.name} ({finding.found})"
        for finding in table.options.as_found
        # what the database lacks, or has without some property, cannot get lost
        if finding.kind in _LOST
        and finding.found not in _KEPT
        and not finding.found.startswith("not ")
    )
    findings = frozenset(table.options.as_found)
    return replace(change, unknown=unknown, findings=findings, agreed=change.after.name in agreed)


# a rebuild reads AUTOINCREMENT from the live table and keeps it
_KEPT = frozenset({"missing", "AUTOINCREMENT"})


def build_shape_pair(before: SchemaState, after: SchemaState) -> tuple[Shapes, Shapes]:
    """Return the tables of two states; a table that both share is the same object in both."""
    made: dict[int, TableShape] = {}

    def build_shapes(state: SchemaState) -> Shapes:
        return {
            # by identity, which `compute_table_changes` takes for a table without a change
            name: made.setdefault(id(table), build_table_shape(table))
            for name, table in state.tables.items()
        }

    return build_shapes(before), build_shapes(after)


def _has_managed_tables(change: TableChange, before: SchemaState, after: SchemaState) -> bool:
    sides = ((change.before, before), (change.after, after))
    return all(
        state.tables[table.name].options.managed for table, state in sides if table is not None
    )


def _plan_ungrouped_operation(
    operation: Operation, before: SchemaState, dialect: Dialect, new_tables: frozenset[str]
) -> list[Step]:
    if isinstance(operation, RunSQL):
        texts = operation.statements(dialect.name)
        # its driver takes one statement at a time
        if dialect.name == "sqlite":
            texts = [statement for text in texts for statement in split_script(text)]
        postgres = dialect.name == "postgres"
        return [
            Step(
                sql,
                transactional=operation.transactional,
                lock=find_strongest_lock(sql) if postgres else "",
                summary=describe_sql(sql),
            )
            for sql in texts
        ]
    if not isinstance(operation, SeparateStateAndDatabase):
        return []
    states = compute_states(operation.database, before)
    planned = plan_operations(operation.database, states, dialect, new_tables=new_tables)
    return [step for _, steps in planned for step in steps]
