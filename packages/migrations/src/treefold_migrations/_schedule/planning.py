"""Planning of one file: the operations between its states as units, forwards or backwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from treefold_migrations._base.errors import RunError
from treefold_migrations._files.history import History, LoadedMigration
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._operations.custom import RunPython, RunSQL, SeparateStateAndDatabase
from treefold_migrations._plan.operations import plan_operations, track_newly_created_tables
from treefold_migrations._records.recorded_history import DatabaseTarget
from treefold_migrations._schedule.guard_order import attach_guards_to_units
from treefold_migrations._schedule.rollback_fills import RollbackFills
from treefold_migrations._schedule.units import FileRun, PythonUnit, SqlUnit, Unit, build_file_run
from treefold_migrations._state.schema_state import SchemaState


def plan_backward_units(
    item: LoadedMigration,
    states: Sequence[SchemaState],
    target: DatabaseTarget,
    fills: RollbackFills,
    irreversible_effects: list[str] | None = None,
) -> list[Unit]:
    """Return the units that take a file back. With a list they leave what cannot be taken back, and
    name it there; else it raises as `build_reverse_operations`.
    """
    if irreversible_effects is not None:
        return plan_possible_reverse_units(
            item, item.operations, states, target, fills, irreversible_effects
        )
    reverses = build_reverse_operations(item, item.operations, states, fills)
    return plan_guarded_units(reverses, states[::-1], target)


def plan_possible_reverse_units(
    item: LoadedMigration,
    operations: Sequence[Operation],
    states: Sequence[SchemaState],
    target: DatabaseTarget,
    fills: RollbackFills,
    irreversible_effects: list[str],
) -> list[Unit]:
    """Return the units that take operations back as far as they can be; `irreversible_effects` gets
    the rest.
    """
    reverses, between = list[Operation](), [states[len(operations)]]
    for place in reversed(range(len(operations))):
        operation = operations[place]
        reverse = operation.reverse(states[place])
        if reverse is None:
            irreversible_effects.append(f"what {operation.describe()!r} has done stays")
            # they leave the state as it is, so that the reverses around them still fit each other
            if isinstance(operation, (RunPython, RunSQL)):
                continue
            reverse = _build_reverse_of_reversible_parts(operation, states[place])
        reverses.append(fills.fill_operation(item.name, reverse, states[place + 1]))
        between.append(states[place])
    return plan_guarded_units(reverses, between, target)


def _build_reverse_of_reversible_parts(operation: Operation, before: SchemaState) -> Operation:
    """The reverse of the parts of an operation that have one."""
    if not isinstance(operation, SeparateStateAndDatabase):
        return SeparateStateAndDatabase()
    halves: list[list[Operation]] = []
    for parts in (operation.database, operation.state):
        states = compute_states(parts, before)
        made = [part.reverse(state) for part, state in zip(parts, states, strict=False)]
        halves.append([reverse for reverse in reversed(made) if reverse is not None])
    return SeparateStateAndDatabase(*halves)


def build_reverse_operations(
    item: LoadedMigration,
    operations: Sequence[Operation],
    states: Sequence[SchemaState],
    fills: RollbackFills,
) -> list[Operation]:
    """Return the operations that revert others, the last one first, with the values of rows.

    Raises:
        RunError: one of them cannot be reversed.
        MigrationError: a given value does not fit its field.
    """
    reverses: list[Operation] = []
    for operation, before, after in zip(operations, states, states[1:], strict=False):
        reverse = operation.reverse(before)
        if reverse is None:
            raise RunError(
                f"Migration {item.name!r} cannot be rolled back, because one of its operations "
                f"cannot be reversed: {operation.describe()}; nothing was changed. `rollback` with "
                "--allow-destructive leaves what it has done"
            )
        reverses.insert(0, fills.fill_operation(item.name, reverse, after))
    return reverses


def plan_guarded_units(
    operations: Sequence[Operation], states: Sequence[SchemaState], target: DatabaseTarget
) -> list[Unit]:
    """Return the units of operations between their states, each with the guards to run before it;
    those of SQL are planned together.
    """
    return attach_guards_to_units(_plan_units(operations, states, target), operations, states)


def _plan_units(
    operations: Sequence[Operation],
    states: Sequence[SchemaState],
    target: DatabaseTarget,
    new_tables: frozenset[str] = frozenset(),
) -> Iterator[Unit]:
    place = 0
    while place < len(operations):
        operation, end = operations[place], place + 1
        if isinstance(operation, RunPython):
            together = operation.transactional or target.single
            summary = operation.describe()
            made = PythonUnit(operation.forward, states[place], place, together, summary)
            yield replace(made, elsewhere=tuple(operation.elsewhere))
        elif isinstance(operation, SeparateStateAndDatabase):
            inner = compute_states(operation.database, states[place])
            # all have the place of the whole, which is taken back as one operation
            for unit in _plan_units(operation.database, inner, target, new_tables):
                yield replace(unit, operation=place)
        else:
            while end < len(operations) and not isinstance(operations[end], _OWN_UNITS):
                end += 1
            yield from _plan_sql_units(operations, states, target, place, end, new_tables)
        for done in operations[place:end]:
            new_tables = track_newly_created_tables(done, new_tables)
        place = end


_OWN_UNITS = (RunPython, SeparateStateAndDatabase)


def _plan_sql_units(
    operations: Sequence[Operation],
    states: Sequence[SchemaState],
    target: DatabaseTarget,
    place: int,
    end: int,
    new_tables: frozenset[str],
) -> Iterator[Unit]:
    chosen, between = operations[place:end], states[place : end + 1]
    planned = plan_operations(chosen, between, target.dialect, new_tables=new_tables)
    for first, steps in planned:
        # the planner's statements bear a second run, those of an author may not
        again = not isinstance(operations[place + first], RunSQL)
        for step in steps:
            yield SqlUnit(step, place + first, again)


def plan_single_file(
    history: History, name_prefix: str, target: DatabaseTarget, *, backwards: bool
) -> FileRun:
    """Return the run of one file, applied or not.

    Raises:
        HistoryError: there is no such file.
        RunError: an operation cannot be reversed.
    """
    item = history.find(name_prefix)
    states = compute_states(item.operations, history.compute_state_before(item.name))
    hash_ = history.compute_digest(item.name)
    if backwards:
        units = plan_backward_units(item, states, target, RollbackFills())
        return build_file_run(item.name, hash_, "backwards", units)
    units = plan_guarded_units(item.operations, states, target)
    return build_file_run(item.name, hash_, "forwards", units)
