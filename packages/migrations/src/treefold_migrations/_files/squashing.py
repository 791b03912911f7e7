"""Squashing: one file in the place of the first ones, proved by replaying both.

The files that it replaces stay until every database has them; then they may be deleted. A database
that has them all counts the squashed file as applied.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from treefold_migrations._base.errors import HistoryError
from treefold_migrations._files.databases import runs_python
from treefold_migrations._files.history import History, LoadedMigration
from treefold_migrations._operations.base import Operation
from treefold_migrations._operations.custom import RunPython, RunSQL, SeparateStateAndDatabase
from treefold_migrations._state.schema_state import SchemaState, is_same_state

Between = Callable[[SchemaState, SchemaState], list[Operation]]


@dataclass(frozen=True, slots=True)
class Squash:
    """The operations of a squashed file, and the names and hashes of the files that it replaces."""

    operations: list[Operation]
    replaces: dict[str, str]


def squash_until(history: History, name: str, find_operations: Between) -> Squash:
    """Return the squash of all migrations up to one.

    Args:
        history: the files.
        name: the last file to be replaced.
        find_operations: finds the operations that create a state.

    Operations are made new up to the first one with SQL that stays; what follows that is taken
    over as it is. Raises `HistoryError` for Python that is not elidable, and for a history that
    forks before the file.
    """
    last = history[name]
    before = history.ancestors(last.name)
    replaced = [item for item in history.order() if item.name in before]
    _refuse_inner_forks(history, before, last.name)
    kept = [operation for item in replaced for operation in _require_squashable_operations(item)]
    # SQL may use the tables as they are at its place, so that nothing behind it can be made new
    first = next(
        (n for n, operation in enumerate(kept) if _runs_sql_or_separate_state(operation)), len(kept)
    )
    state = SchemaState()
    for operation in kept[:first]:
        state = operation.apply(state)
    operations = find_operations(SchemaState(), state) + kept[first:]
    _check_final_state(operations, history.compute_state_after(last.name))
    return Squash(operations, {item.name: history.compute_digest(item.name) for item in replaced})


def _refuse_inner_forks(history: History, squashed_names: set[str], last: str) -> None:
    for item in history.order():
        if item.name not in squashed_names:
            for parent in history.parents(item.name):
                if parent in squashed_names and parent != last:
                    raise HistoryError(
                        f"{item.name} comes after {parent}, in the middle of what would be "
                        "squashed; squash up to there, or merge first"
                    )


def _require_squashable_operations(item: LoadedMigration) -> list[Operation]:
    found: list[Operation] = []
    for number, operation in enumerate(item.operations, 1):
        if isinstance(operation, (RunPython, RunSQL)) and operation.elidable:
            continue
        if runs_python(operation):
            raise HistoryError(
                f"{item.name}, operation {number} ({operation.describe()}) cannot be squashed; set "
                "elidable=True if a new database does not need it, or squash up to the file before"
            )
        found.append(operation)
    return found


def _runs_sql_or_separate_state(operation: Operation) -> bool:
    return isinstance(operation, (RunSQL, SeparateStateAndDatabase))


def _check_final_state(operations: Sequence[Operation], wanted: SchemaState) -> None:
    state = SchemaState()
    for operation in operations:
        state = operation.apply(state)
    if not is_same_state(state, wanted):
        raise HistoryError("The squashed operations lead to another schema; nothing was written")
