"""The runs of `rollback`: which files, in which steps, and which tables lose rows.

They come from the files and the records alone; no database is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treefold_migrations._base.errors import RunError
from treefold_migrations._files.history import (
    History,
    LoadedMigration,
    apply_migration_to_state,
    make_code_extractor,
)
from treefold_migrations._operations.base import compute_states
from treefold_migrations._records.recorded_history import RecordedHistory
from treefold_migrations._schedule.expanded import (
    OperationsWithStates,
    build_started_operations,
    compute_current_schema,
    list_expanded_names,
)
from treefold_migrations._schedule.half_done import (
    describe_progress,
    describe_resolving_commands,
    list_half_done,
)
from treefold_migrations._schedule.half_done_runs import plan_undo
from treefold_migrations._schedule.history_checks import check_history
from treefold_migrations._schedule.planning import plan_backward_units
from treefold_migrations._schedule.rollback_fills import RollbackFills
from treefold_migrations._schedule.targeted_files import collect_names_kept_by_rollback
from treefold_migrations._schedule.units import FileRun, build_file_run
from treefold_migrations._state.schema_state import SchemaState


def plan_rollback(
    recorded: RecordedHistory,
    *,
    steps: int = 1,
    to: str | None = None,
    fills: RollbackFills | None = None,
    force: bool = False,
) -> list[FileRun]:
    """Return the runs of `rollback`. A file that is half done is taken back first.

    Args:
        recorded: the files and the records.
        steps: how many files, the last applied first.
        to: the file that stays the last one applied, or "zero"; counts instead of `steps`.
        fills: the values of fields that come back.
        force: leave what cannot be taken back, and name it in `kept` of the runs.

    Raises:
        RunError: an operation cannot be reversed; nothing was changed.
        MigrationError: a value does not fit, or its field does not come back.
    """
    check_history(recorded)
    fills, history, applied = fills or RollbackFills(), recorded.history, recorded.applied
    begun = [entry for entry in applied.progress.values() if entry.direction == "backwards"]
    # a rollback that stopped halfway goes on with its values, without its flags
    fills.kept = {k: v for e in begun for k, v in RollbackFills.from_journal(e).kept.items()}
    kept = None if to is None else collect_names_kept_by_rollback(history, to)
    undone_ = _plan_undo_of_unfinished_files(recorded, fills, steps=steps, kept=kept, force=force)
    order = recorded.list_applied_names()
    half = [e.name for e in applied.progress.values() if e.direction == "backwards" and e.undo < 0]
    if kept is None:
        if steps < 1:
            raise RunError(f"steps must be at least 1, got {steps!r}")
        # taking a half-done or expanded file back is one of the steps
        chosen = list(reversed(order))[: max(steps - len(undone_), 0)]
    else:
        if not kept <= set(order):
            last = f"{order[-1]!r} is the last that is" if order else "none is"
            raise RunError(
                f"Migration {history.find(to or '').name!r} is not applied, so that nothing can be "
                f"rolled back to it; {last}"
            )
        chosen = [name for name in reversed(order) if name not in kept]
    # a rollback that does not reach this file would leave it half done
    if half and half[0] not in chosen:
        entry = applied.progress[half[0]]
        raise RunError(
            f"Migration {half[0]!r} is {describe_progress(entry)};"
            f" {describe_resolving_commands(entry)}"
        )
    made: dict[str, FileRun] = {}
    for item, states in _replay_states_of_files(history, set(chosen)):
        # the values that this file uses go into its own row of the journal
        before, rest = frozenset(fills.used), list[str]()
        # agreed to when the rollback began
        forced = force or any(e.forced and e.name == item.name for e in begun)
        run = build_file_run(
            item.name,
            history.compute_digest(item.name),
            "backwards",
            plan_backward_units(item, states, recorded.target, fills, rest if forced else None),
            recorded=recorded.list_record_names(item),
            extract_code=make_code_extractor(item),
        )
        made[item.name] = replace(run, fills=fills.list_flags_used_since(before), kept=tuple(rest))
    # behind the last file: a flag may be for any of them
    fills.refuse_unused()
    return undone_ + [made[name] for name in chosen]


def _plan_undo_of_unfinished_files(
    recorded: RecordedHistory,
    fills: RollbackFills,
    *,
    steps: int,
    kept: set[str] | None,
    force: bool,
) -> list[FileRun]:
    """The runs that take back files that are half done, and then expanded ones, the last first.

    A file that was expanded when its contract began is expanded again, which is one step.
    """
    made: list[FileRun] = []
    for entry in list_half_done(recorded.applied):
        made.append(plan_undo(recorded, entry, fills, force=force))
        # what follows is planned over the schema that this run leaves
        recorded = recorded.replace_progress(entry.name, made[-1].base)
    for name in reversed(list_expanded_names(recorded)):
        # an expanded file counts as one step, as an applied one
        if (len(made) >= steps) if kept is None else (name in kept):
            continue
        made.append(plan_undo(recorded, recorded.applied.progress[name], fills, force=force))
        recorded = recorded.replace_progress(name, None)
    return made


def find_tables_losing_data(
    recorded: RecordedHistory, runs: Sequence[FileRun]
) -> list[tuple[str, str, bool]]:
    """Return the tables that lose rows or columns in a rollback: file, table, and whether the
    table has that name in the database now.
    """
    live = set(compute_current_schema(recorded).tables)
    works: list[tuple[str, OperationsWithStates]] = []
    for run in runs:
        # of a half-done file only the complete operations can lose rows
        if run.undo >= 0 and run.origin is not None:
            work = build_started_operations(recorded, run.origin)
            live |= set(work.states[run.undo].tables)
            works.append((run.name, OperationsWithStates(work.operations[: run.undo], work.states)))
    whole = {run.name for run in runs if run.undo < 0}
    works += [
        (item.name, OperationsWithStates(tuple(item.operations), tuple(states)))
        for item, states in _replay_states_of_files(recorded.history, whole)
    ]
    made: list[tuple[str, str, bool]] = []
    for name, work in works:
        for place, operation in enumerate(work.operations):
            before, after = work.states[place].tables, work.states[place + 1].tables
            reverse = operation.reverse(work.states[place])
            if reverse is not None and reverse.destructive:
                # by identity: an operation leaves the tables that it does not touch as the same
                # object
                changed = [table for table in after if before.get(table) is not after[table]]
                made += [(name, table, table in live) for table in changed]
    return made


def _replay_states_of_files(
    history: History, chosen: set[str]
) -> list[tuple[LoadedMigration, list[SchemaState]]]:
    """The chosen files, each with the states before, between and after its operations."""
    made: list[tuple[LoadedMigration, list[SchemaState]]] = []
    state = SchemaState()
    for item in history.order() if chosen else ():
        after = apply_migration_to_state(item, state)
        if item.name in chosen:
            made.append((item, compute_states(item.operations, state)))
        state = after
    return made
