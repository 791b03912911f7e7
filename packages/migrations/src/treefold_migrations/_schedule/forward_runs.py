"""The runs of `migrate`, whole or in expand: which files, in which order, and in which steps.

They come from the files and the records alone; no database is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from treefold_migrations._base.errors import RunError, StateError
from treefold_migrations._files.history import apply_migration_to_state
from treefold_migrations._records.record_hashes import find_hashes_to_rewrite
from treefold_migrations._records.recorded_history import RecordedHistory
from treefold_migrations._records.records import Applied, Progress
from treefold_migrations._schedule.expanded import (
    OperationsWithStates,
    build_current_rollout,
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
from treefold_migrations._schedule.targeted_files import collect_names_until
from treefold_migrations._schedule.units import FileRun, PythonUnit, needs_several_transactions
from treefold_migrations._state.schema_state import SchemaState, is_same_state

Phase = Literal["expand", "contract"]


def plan_migrate(
    recorded: RecordedHistory, *, upto: str | None = None, phase: Phase | None = None
) -> list[FileRun]:
    """Return the runs of `migrate`.

    Args:
        recorded: the files and the records.
        upto: the last file; all of them without it.
        phase: "expand" for the parts of all files that the running release bears.

    Raises:
        HistoryError: the files fork, or do not fit the records.
        RunError: a change has no part that the running release bears; or a file is half applied.
    """
    wanted = _check_and_select_pending(recorded, upto)
    names = [item.name for item in recorded.history.order() if item.name in wanted]
    if phase == "expand":
        return _plan_expansions(recorded, names)
    made: list[FileRun] = []
    for entry in list_half_done(recorded.applied):
        # an expand that stopped halfway is completed before its contract is planned
        if entry.phase == "expand" and entry.name in wanted:
            made.append(_plan_half_expanded_run(recorded, entry))
            recorded = recorded.replace_progress(entry.name, replace(entry, done=entry.steps))
    state = compute_current_schema(recorded)
    for name in names:
        entry = find_expanded_row(recorded.applied.progress.get(name))
        # all operations, of a file that has not expanded
        work = OperationsWithStates.replay(list_contract_operations(recorded, name), state)
        if entry is None:
            made.append(_build_run_with_prerequisite_checks(recorded, name, work))
        else:
            run = _build_run_with_prerequisite_checks(recorded, name, work, "contract", entry.parts)
            made.append(replace(run, base=entry))
        state = work.after
    return made


def _plan_expansions(recorded: RecordedHistory, names: Sequence[str]) -> list[FileRun]:
    history, made = recorded.history, list[FileRun]()
    for entry in list_half_done(recorded.applied):
        # the database is between two states, over which no expand part can be planned
        if entry.phase != "expand":
            raise RunError(
                f"Migration {entry.name!r} is {describe_progress(entry)}, so that no file can "
                f"expand; {describe_resolving_commands(entry)}"
            )
        made.append(_plan_half_expanded_run(recorded, entry))
        recorded = recorded.replace_progress(entry.name, replace(entry, done=entry.steps))
    rollout = build_current_rollout(recorded)
    for name in names:
        # expanded already, or completed by a run above
        if name in recorded.applied.progress:
            continue
        item, before, state = history[name], history.compute_state_before(name), rollout.state
        parts = rollout.assign_phases_and_advance(item, before)
        # as if it had begun: the operations of later files are split over what this one expands
        row = Progress(
            name, history.compute_digest(name), "forwards", "", 0, phase="expand", parts=parts
        )
        recorded = recorded.replace_progress(name, row)
        work = OperationsWithStates.replay(list_expand_operations(recorded, name), state)
        made.append(_build_run_with_prerequisite_checks(recorded, name, work, "expand", parts))
    # files are split one by one, and their parts may not add up: this is proved before the first
    # step
    _require_reachable_schema(recorded, rollout.state)
    return made


def _plan_half_expanded_run(recorded: RecordedHistory, entry: Progress) -> FileRun:
    work = build_started_operations(recorded, entry)
    return _build_run_with_prerequisite_checks(recorded, entry.name, work, "expand", entry.parts)


def _require_reachable_schema(recorded: RecordedHistory, state: SchemaState) -> None:
    """Refuse to expand files whose contract parts would not lead to the schema of the history."""
    history = recorded.history
    wanted = history.compute_state_after()
    try:
        for name in recorded.list_pending_names():
            if name in recorded.applied.progress:
                for operation in list_contract_operations(recorded, name):
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
    recorded: RecordedHistory,
    name: str,
    work: OperationsWithStates,
    phase: Literal["", "expand", "contract"] = "",
    phase_letters: str = "",
) -> FileRun:
    """The run of a file with the lookups before its first step."""
    item = recorded.history[name]
    chosen = build_forward_run(recorded, item, work, phase, phase_letters)
    # one transaction is undone as a whole, so that a failure at its end leaves nothing
    if not needs_several_transactions(chosen.units):
        return chosen
    functions = [unit.function for unit in chosen.units if isinstance(unit, PythonUnit)]
    require_importable_modules(item, functions)
    first, *rest = chosen.units
    guards = (*build_prerequisite_checks(work, recorded.dialect), *first.guards)
    return replace(chosen, units=(replace(first, guards=guards), *rest))


def has_nothing_to_run(
    recorded: RecordedHistory, *, upto: str | None = None, phase: Phase | None = None
) -> bool:
    """Return True where `migrate` has nothing to do; raises as `plan_migrate`."""
    wanted = _check_and_select_pending(recorded, upto)
    if phase == "expand":
        wanted -= set(list_expanded_names(recorded))
    return not wanted and not find_hashes_to_rewrite(recorded)


def _check_and_select_pending(recorded: RecordedHistory, upto: str | None) -> set[str]:
    kept = None if upto is None else collect_names_until(recorded.history, upto)
    check_history_for_release(recorded)
    _refuse_half_rolled_back(recorded.applied)
    wanted = set(recorded.list_pending_names())
    # with nothing to apply, files that another release has expanded are no error
    if wanted:
        check_history(recorded)
    if kept is not None:
        return wanted & kept
    recorded.history.head()  # refuses a fork
    return wanted


def _refuse_half_rolled_back(applied: Applied) -> None:
    for name, entry in applied.progress.items():
        if entry.direction == "backwards":
            raise RunError(
                f"Migration {name!r} is {describe_progress(entry)};"
                f" {describe_resolving_commands(entry)}"
            )
