"""Expanded files: the schema of a database between the phases, and what each file has left to run.

| Row of the journal | In the database | Left to run |
|---|---|---|
| none | nothing | all operations |
| expand, steps missing | some steps of the expand parts | the rest, then the contract parts |
| expand, complete | the expand parts | the contract parts |
| contract | the expand parts, some steps of the others | the rest; `base` is the row before |
| no phase | some steps of the operations | the rest |
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from treefold_migrations._files.history import History
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._phases.deciding import Rollout, split_file_operations
from treefold_migrations._records.record_names import collect_applied_names
from treefold_migrations._records.records import Applied, Progress
from treefold_migrations._state.schema_state import SchemaState
from treefold_orm.schema import Dialect


@dataclass(frozen=True, slots=True)
class OperationsWithStates:
    """Operations of one file that run together, and the states before, between and after them."""

    operations: tuple[Operation, ...]
    states: tuple[SchemaState, ...]

    @property
    def after(self) -> SchemaState:
        """The state after the last operation."""
        return self.states[-1]


def find_expanded_row(entry: Progress | None) -> Progress | None:
    """Return the row of a file whose expand parts are all in the database, else None."""
    if entry is None:
        return None
    # a file whose contract is taken back is expanded while that runs
    if entry.direction == "backwards":
        return None if entry.origin is None else entry.origin.base
    return entry if entry.is_expanded else entry.base


def list_expanded_names(history: History, applied: Applied, *, leave_out: str = "") -> list[str]:
    """Return the files whose expand parts are in the database, in the order of the history."""
    return [
        item.name
        for item in history.order()
        if item.name != leave_out and find_expanded_row(applied.progress.get(item.name)) is not None
    ]


def compute_current_schema(
    history: History, applied: Applied, dialect: Dialect, *, leave_out: str = ""
) -> SchemaState:
    """Return the schema after all applied files and the expand parts of the expanded ones.

    Steps of files that are half done are not in it.

    Args:
        history: The files.
        applied: The records.
        dialect: The database's.
        leave_out: A file whose expand parts do not count.
    """
    done = collect_applied_names(history, applied)
    state = history.replay_migrations([item.name for item in history.order() if item.name in done])
    for name in list_expanded_names(history, applied, leave_out=leave_out):
        for operation in list_expand_operations(history, applied, name, dialect):
            state = operation.apply(state)
    return state


def list_expand_operations(
    history: History, applied: Applied, name: str, dialect: Dialect
) -> tuple[Operation, ...]:
    """Return the operations that run in expand of a file that has begun to."""
    return _split_by_phase(history, name, _find_phase_letters(applied, name), dialect)[0]


def list_contract_operations(
    history: History, applied: Applied, name: str, dialect: Dialect
) -> tuple[Operation, ...]:
    """Return the operations that an expanded file has left; of any other file, all."""
    return _split_by_phase(history, name, _find_phase_letters(applied, name), dialect)[1]


def _find_phase_letters(applied: Applied, name: str) -> str:
    entry = applied.progress.get(name)
    if entry is not None and entry.direction == "backwards":
        entry = entry.origin
    return "" if entry is None else entry.parts


def _split_by_phase(
    history: History, name: str, phase_letters: str, dialect: Dialect
) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    item = history.find(name)
    # begun without phases, or not at all: nothing of it runs in expand
    if not phase_letters:
        return (), tuple(item.operations)
    found = split_file_operations(
        item, history.compute_state_before(item.name), phase_letters, dialect
    )
    early = tuple(part for _, parts in found for part in parts.expand)
    late = tuple(part for _, parts in found for part in parts.contract)
    return early, late


def build_started_operations(
    history: History, applied: Applied, entry: Progress, dialect: Dialect
) -> OperationsWithStates:
    """Return the operations that the steps of a journal's row belong to, forwards."""
    # the way back undoes what the row of the way forward says
    origin = entry.origin if entry.direction == "backwards" and entry.origin else entry
    item = history.find(entry.name)
    early, late = _split_by_phase(history, item.name, origin.parts, dialect)
    if origin.phase == "expand":
        # without its own expand parts, which are what the row counts the steps of
        state = compute_current_schema(history, applied, dialect, leave_out=item.name)
        return _attach_states_to_operations(early, state)
    return _attach_states_to_operations(late, compute_current_schema(history, applied, dialect))


def build_operations_with_states(
    state: SchemaState, operations: Collection[Operation]
) -> OperationsWithStates:
    """Return operations with the states that they lead through."""
    return _attach_states_to_operations(tuple(operations), state)


def _attach_states_to_operations(
    operations: tuple[Operation, ...], state: SchemaState
) -> OperationsWithStates:
    return OperationsWithStates(operations, tuple(compute_states(operations, state)))


def build_current_rollout(history: History, applied: Applied, dialect: Dialect) -> Rollout:
    """Return what the expanded files have done so far."""
    rollout = Rollout(compute_current_schema(history, applied, dialect), dialect)
    for name in list_expanded_names(history, applied):
        rollout.record_expanded_file(
            history[name], history.compute_state_before(name), _find_phase_letters(applied, name)
        )
    return rollout
