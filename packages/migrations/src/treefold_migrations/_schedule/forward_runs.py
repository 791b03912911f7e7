"""The runs of `migrate`, whole or in expand: which files, in which order, and in which steps.

They come from the files and the records alone; no database is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from treefold_migrations._base.errors import RunError, StateError
from treefold_migrations._files.history import History, apply_migration_to_state
from treefold_migrations._records.record_hashes import find_hashes_to_rewrite
from treefold_migrations._records.record_names import list_pending_names
from treefold_migrations._records.records import Applied, Progress
from treefold_migrations._schedule.expanded import (
    OperationsWithStates,
    build_current_rollout,
    build_operations_with_states,
    build_started_operations,
    compute_current_schema,
    find_expanded_row,
    list_contract_operations,
    list_expand_operations,
    list_expanded_names,
)
from treefold_migrations._schedule.half_done import (
    describe_progress,
    describe_resolving_commands,
    list_half_done,
)
from treefold_migrations._schedule.half_done_runs import build_forward_run
from treefold_migrations._schedule.history_checks import check_history, check_history_for_release
from treefold_migrations._schedule.lookups import (
    build_prerequisite_checks,
    require_importable_modules,
)
from treefold_migrations._schedule.planning import DatabaseTarget
from treefold_migrations._schedule.targeted_files import collect_names_until
from treefold_migrations._schedule.units import (
    FileRun,
    PythonUnit,
    needs_several_transactions,
)
from treefold_migrations._state.schema_state import SchemaState, is_same_state

Phase = Literal["expand", "contract"]


def plan_migrate(
    history: History,
    applied: Applied,
    target: DatabaseTarget,
    *,
    upto: str | None = None,
    phase: Phase | None = None,
) -> list[FileRun]:
    """Return the runs of `migrate`.

    Args:
        history: The files.
        applied: The records.
        target: The database.
        upto: The last file; all of them without it.
        phase: "expand" for the parts of all files that the running release bears.

    Raises:
        HistoryError: The files fork, or do not fit the records.
        RunError: A change has no part that the running release bears; or a file is half applied.
    """
    wanted = _check_and_select_pending(history, applied, upto)
    names = [item.name for item in history.order() if item.name in wanted]
    if phase == "expand":
        return _plan_expansions(history, applied, target, names)
    made: list[FileRun] = []
    for entry in list_half_done(applied):
        # an expand that stopped halfway is completed before its contract is planned
        if entry.phase == "expand" and entry.name in wanted:
            made += _plan_half_expanded_run(history, applied, target, entry)
            applied = applied.replace_progress(entry.name, replace(entry, done=entry.steps))
    state = compute_current_schema(history, applied, target.dialect)
    for name in names:
        entry = find_expanded_row(applied.progress.get(name))
        # all operations, of a file that has not expanded
        left = list_contract_operations(history, applied, name, target.dialect)
        work = build_operations_with_states(state, left)
        if entry is None:
            made.append(_build_run_with_prerequisite_checks(history, applied, name, work, target))
        else:
            run = _build_run_with_prerequisite_checks(
                history, applied, name, work, target, "contract", entry.parts
            )
            made.append(replace(run, base=entry))
        state = work.after
    return made


def _plan_expansions(
    history: History, applied: Applied, target: DatabaseTarget, names: Sequence[str]
) -> list[FileRun]:
    made: list[FileRun] = []
    for entry in list_half_done(applied):
        # the database is between two states, over which no expand part can be planned
        if entry.phase != "expand":
            raise RunError(
                f"Migration {entry.name!r} is {describe_progress(entry)}, so that no file can "
                f"expand; {describe_resolving_commands(entry)}"
            )
        made += _plan_half_expanded_run(history, applied, target, entry)
        applied = applied.replace_progress(entry.name, replace(entry, done=entry.steps))
    rollout = build_current_rollout(history, applied, target.dialect)
    for name in names:
        # expanded already, or completed by a run above
        if name in applied.progress:
            continue
        item, before, state = history[name], history.compute_state_before(name), rollout.state
        parts = rollout.assign_phases_and_advance(item, before)
        # as if it had begun: the operations of later files are split over what this one expands
        row = Progress(
            name, history.compute_digest(name), "forwards", "", 0, phase="expand", parts=parts
        )
        applied = applied.replace_progress(name, row)
        work = build_operations_with_states(
            state, list_expand_operations(history, applied, name, target.dialect)
        )
        made.append(
            _build_run_with_prerequisite_checks(
                history, applied, name, work, target, "expand", parts
            )
        )
    # files are split one by one, and their parts may not add up: this is proved before the first
    # step
    _require_reachable_schema(history, applied, rollout.state, target)
    return made


def _plan_half_expanded_run(
    history: History, applied: Applied, target: DatabaseTarget, entry: Progress
) -> list[FileRun]:
    work = build_started_operations(history, applied, entry, target.dialect)
    return [
        _build_run_with_prerequisite_checks(
            history, applied, entry.name, work, target, "expand", entry.parts
        )
    ]


def _require_reachable_schema(
    history: History, applied: Applied, state: SchemaState, target: DatabaseTarget
) -> None:
    """Refuse to expand files whose contract parts would not lead to the schema of the history."""
    wanted = history.replay_migrations([item.name for item in history.order()])
    try:
        for name in list_pending_names(history, applied):
            if name in applied.progress:
                for operation in list_contract_operations(history, applied, name, target.dialect):
                    state = operation.apply(state)
            else:
                state = apply_migration_to_state(history[name], state)
    except StateError as error:
        raise RunError(f"The pending files cannot run in expand: {error}; {_AT_ONCE}") from error
    if not is_same_state(state, wanted):
        raise RunError(f"The pending files cannot run in expand as they are; {_AT_ONCE}")


_AT_ONCE = (
    "apply them with `migrate` while no process of the running release is left; nothing was changed"
)


def _build_run_with_prerequisite_checks(
    history: History,
    applied: Applied,
    name: str,
    work: OperationsWithStates,
    target: DatabaseTarget,
    phase: Literal["", "expand", "contract"] = "",
    phase_letters: str = "",
) -> FileRun:
    """The run of a file with the lookups before its first step."""
    item = history[name]
    chosen = build_forward_run(history, item, work, target, phase, phase_letters)
    # one transaction is undone as a whole, so that a failure at its end leaves nothing
    if not needs_several_transactions(chosen.units):
        return chosen
    functions = [unit.function for unit in chosen.units if isinstance(unit, PythonUnit)]
    require_importable_modules(item, functions)
    first, *rest = chosen.units
    guards = (*build_prerequisite_checks(work, target.dialect), *first.guards)
    return replace(chosen, units=(replace(first, guards=guards), *rest))


def has_nothing_to_run(
    history: History, applied: Applied, *, upto: str | None = None, phase: Phase | None = None
) -> bool:
    """Return True where `migrate` has nothing to do; raises as `plan_migrate`."""
    wanted = _check_and_select_pending(history, applied, upto)
    if phase == "expand":
        wanted -= set(list_expanded_names(history, applied))
    return not wanted and not find_hashes_to_rewrite(history, applied)


def _check_and_select_pending(history: History, applied: Applied, upto: str | None) -> set[str]:
    kept = None if upto is None else collect_names_until(history, upto)
    check_history_for_release(history, applied)
    _refuse_half_rolled_back(applied)
    wanted = set(list_pending_names(history, applied))
    # with nothing to apply, files that another release has expanded are no error
    if wanted:
        check_history(history, applied)
    if kept is not None:
        return wanted & kept
    history.head()  # refuses a fork
    return wanted


def _refuse_half_rolled_back(applied: Applied) -> None:
    for name, entry in applied.progress.items():
        if entry.direction == "backwards":
            raise RunError(
                f"Migration {name!r} is {describe_progress(entry)};"
                f" {describe_resolving_commands(entry)}"
            )
