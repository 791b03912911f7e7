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

from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._phases.deciding import Rollout, split_file_operations
from treefold_migrations._records.recorded_history import RecordedHistory
from treefold_migrations._records.records import Applied, Progress
from treefold_migrations._state.schema_state import SchemaState


@dataclass(frozen=True, slots=True)
class OperationsWithStates:
    """Operations of one file that run together, and the states before, between and after them."""

    operations: tuple[Operation, ...]
    states: tuple[SchemaState, ...]

    @classmethod
    def replay(cls, operations: Collection[Operation], start: SchemaState) -> OperationsWithStates:
        """Return operations with the states that they lead through from a first one."""
        return cls(tuple(operations), tuple(compute_states(tuple(operations), start)))

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


def list_expanded_names(recorded: RecordedHistory) -> list[str]:
    """Return the files whose expand parts are in the database, in the order of the history."""
    rows = recorded.applied.progress
    names = [item.name for item in recorded.history.order()]
    return [name for name in names if find_expanded_row(rows.get(name)) is not None]


def compute_current_schema(recorded: RecordedHistory, *, leave_out: str = "") -> SchemaState:
    """Return the schema after all applied files and the expand parts of the expanded ones, but for
    those of the file `leave_out`. Steps of files that are half done are not in it.
    """
    state = recorded.history.replay_migrations(recorded.list_applied_names())
    for name in list_expanded_names(recorded):
        for operation in list_expand_operations(recorded, name) if name != leave_out else ():
            state = operation.apply(state)
    return state


def list_expand_operations(recorded: RecordedHistory, name: str) -> tuple[Operation, ...]:
    """Return the operations that run in expand of a file that has begun to."""
    return _split_by_phase(recorded, name, _find_phase_letters(recorded.applied, name))[0]


def list_contract_operations(recorded: RecordedHistory, name: str) -> tuple[Operation, ...]:
    """Return the operations that an expanded file has left; of any other file, all."""
    return _split_by_phase(recorded, name, _find_phase_letters(recorded.applied, name))[1]


def _find_phase_letters(applied: Applied, name: str) -> str:
    entry = applied.progress.get(name)
    if entry is not None and entry.direction == "backwards":
        entry = entry.origin
    return "" if entry is None else entry.parts


def _split_by_phase(
    recorded: RecordedHistory, name: str, phase_letters: str
) -> tuple[tuple[Operation, ...], tuple[Operation, ...]]:
    item = recorded.history.find(name)
    # begun without phases, or not at all: nothing of it runs in expand
    if not phase_letters:
        return (), tuple(item.operations)
    before = recorded.history.compute_state_before(item.name)
    found = split_file_operations(item, before, phase_letters, recorded.dialect)
    early = tuple(part for _, parts in found for part in parts.expand)
    late = tuple(part for _, parts in found for part in parts.contract)
    return early, late


def build_started_operations(recorded: RecordedHistory, entry: Progress) -> OperationsWithStates:
    """Return the operations that the steps of a journal's row belong to, forwards."""
    # the way back undoes what the row of the way forward says
    origin = entry.origin if entry.direction == "backwards" and entry.origin else entry
    name = recorded.history.find(entry.name).name
    early, late = _split_by_phase(recorded, name, origin.parts)
    if origin.phase == "expand":
        # without its own expand parts, which are what the row counts the steps of
        return OperationsWithStates.replay(early, compute_current_schema(recorded, leave_out=name))
    return OperationsWithStates.replay(late, compute_current_schema(recorded))


def build_current_rollout(recorded: RecordedHistory) -> Rollout:
    """Return what the expanded files have done so far."""
    history = recorded.history
    rollout = Rollout(compute_current_schema(recorded), recorded.dialect)
    for name in list_expanded_names(recorded):
        letters = _find_phase_letters(recorded.applied, name)
        rollout.record_expanded_file(history[name], history.compute_state_before(name), letters)
    return rollout
