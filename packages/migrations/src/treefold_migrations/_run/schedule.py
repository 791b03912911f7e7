"""Schedule: which files are to be run, in which order, and in which steps.

It compares the files with the records, and reads no database. Any mismatch stops the run
here, before anything was changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from treefold_migrations._base.errors import HistoryError, RunError, StateError
from treefold_migrations._files.history import History, Loaded, apply_migration, make_code_extractor
from treefold_migrations._operations.base import compute_states
from treefold_migrations._run.expanded import (
    Work,
    build_begun_work,
    build_current_rollout,
    build_work_from_state,
    compute_current_schema,
    find_expanded_row,
    list_contract_operations,
    list_expand_operations,
    list_expanded_names,
)
from treefold_migrations._run.half_done import (
    describe_progress,
    describe_resolving_commands,
    list_half_done,
)
from treefold_migrations._run.half_done_runs import build_forward_run, plan_undo
from treefold_migrations._run.lookups import build_lookups, require_imports
from treefold_migrations._run.planning import Target, plan_backward_units, plan_guarded_units
from treefold_migrations._run.record_hashes import (
    find_outdated_hashes,
    is_for_other_databases,
    matches_recorded_hash,
    matches_replaced_hash,
)
from treefold_migrations._run.record_names import (
    collect_applied_names,
    list_pending_names,
    list_record_names,
)
from treefold_migrations._run.records import Applied, Progress, Record
from treefold_migrations._run.rollback_fills import RollbackFills
from treefold_migrations._run.units import (
    FileRun,
    PythonUnit,
    build_file_run,
    needs_several_transactions,
)
from treefold_migrations._state.schema_state import SchemaState, is_same_state
from treefold_orm.schema import Dialect

Phase = Literal["expand", "contract"]


def check_history(history: History, applied: Applied) -> None:
    """Compare the files with the records.

    Raises:
        HistoryError: A file that was applied is missing, was changed, or has a parent that was not
            applied; or an expanded one is missing or was changed.
    """
    _check_records(history, applied)
    for name in applied.progress:
        entry = find_expanded_row(applied.progress[name])
        if entry is None:
            continue
        if name not in history:
            raise HistoryError(
                f"Migration {name!r} is expanded and its file is missing or squashed: get the file "
                "from the branch that has it, and apply or roll it back there first"
            )
        if entry.hash != history.compute_digest(name) and not is_for_other_databases(history, name):
            raise HistoryError(
                f"Migration {name!r} was changed after it was expanded, or a file before it was: "
                "restore the files, and `rollback` first what is to be changed"
            )


def check_release(history: History, applied: Applied) -> None:
    """Compare the files of a release that is to serve with the records.

    It raises as `check_history`, but other files may be expanded, which the release bears.
    """
    known = {n: e for n, e in applied.progress.items() if n in history.files or not e.is_expanded}
    check_history(history, replace(applied, progress=known))


def _check_records(history: History, applied: Applied) -> None:
    replaced = {old: hash_ for item in history.order() for old, hash_ in item.replaces.items()}
    fake = f"--fake --database {history.database}" if history.database else "--fake"
    for name, record in applied.records.items():
        if name not in replaced and name not in history:
            raise HistoryError(
                f"Migration {name!r} is applied and its file is missing: get the file from the "
                f"branch that has it, or remove its record with `rollback TARGET {fake}`"
            )
        same = (
            matches_replaced_hash(record.hash, replaced[name])
            if name in replaced
            else matches_recorded_hash(history, applied, name)
        )
        # a rollback that failed may be corrected, and compares its complete steps
        if not same and name not in applied.progress:
            raise HistoryError(
                f"Migration {name!r} was changed after it was applied, or a file before it was: "
                "restore the files and put the change into a new one; if the database is as the "
                f"files say, accept them with `migrate {name} {fake}`"
            )
    for name, entry in applied.progress.items():
        if name not in history.files and not entry.is_expanded:
            raise HistoryError(
                f"Migration {name!r} is {describe_progress(entry)} and its file is missing: get "
                "the file "
                f"from the branch that has it, or remove its record with `rollback {fake}`, which "
                "leaves what it has done"
            )
    done = collect_applied_names(history, applied)
    for item in history.order():
        missing = [parent for parent in history.parents(item.name) if parent not in done]
        if item.name in done and missing:
            raise HistoryError(
                f"Migration {item.name!r} is applied and {missing[0]!r}, which comes before it, is "
                f"not: the records were edited; repair them with `migrate {missing[0]} {fake}`"
            )


def plan_forwards(
    history: History,
    applied: Applied,
    target: Target,
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
    wanted = _select_pending(history, applied, upto)
    names = [item.name for item in history.order() if item.name in wanted]
    if phase == "expand":
        return _plan_expansions(history, applied, target, names)
    made: list[FileRun] = []
    for entry in list_half_done(applied):
        if entry.phase == "expand" and entry.name in wanted:
            made += _plan_half_expanded_run(history, applied, target, entry)
            applied = _with_journal_row(applied, replace(entry, done=entry.steps))
    state = compute_current_schema(history, applied, target.dialect)
    for name in names:
        entry = find_expanded_row(applied.progress.get(name))
        left = list_contract_operations(history, applied, name, target.dialect)
        work = build_work_from_state(state, left)
        if entry is None:
            made.append(_build_run_with_lookups(history, applied, name, work, target))
        else:
            run = _build_run_with_lookups(
                history, applied, name, work, target, "contract", entry.parts
            )
            made.append(replace(run, base=entry))
        state = work.after
    return made


def _plan_expansions(
    history: History, applied: Applied, target: Target, names: Sequence[str]
) -> list[FileRun]:
    made: list[FileRun] = []
    for entry in list_half_done(applied):
        if entry.phase != "expand":
            raise RunError(
                f"Migration {entry.name!r} is {describe_progress(entry)}, so that no file can "
                f"expand; {describe_resolving_commands(entry)}"
            )
        made += _plan_half_expanded_run(history, applied, target, entry)
        applied = _with_journal_row(applied, replace(entry, done=entry.steps))
    rollout = build_current_rollout(history, applied, target.dialect)
    for name in names:
        if name in applied.progress:
            continue
        item, before, state = history[name], history.compute_state_before(name), rollout.state
        parts = rollout.decide_file_letters(item, before)
        row = Progress(
            name, history.compute_digest(name), "forwards", "", 0, phase="expand", parts=parts
        )
        applied = _with_journal_row(applied, row)
        work = build_work_from_state(
            state, list_expand_operations(history, applied, name, target.dialect)
        )
        made.append(_build_run_with_lookups(history, applied, name, work, target, "expand", parts))
    _require_reachable_schema(history, applied, rollout.state, target)
    return made


def _plan_half_expanded_run(
    history: History, applied: Applied, target: Target, entry: Progress
) -> list[FileRun]:
    work = build_begun_work(history, applied, entry, target.dialect)
    return [
        _build_run_with_lookups(history, applied, entry.name, work, target, "expand", entry.parts)
    ]


def _with_journal_row(applied: Applied, row: Progress | None, name: str = "") -> Applied:
    """The records with another row of the journal, or without that of a file."""
    rest = {n: entry for n, entry in applied.progress.items() if n != name}
    return replace(applied, progress=rest if row is None else {**rest, row.name: row})


def _require_reachable_schema(
    history: History, applied: Applied, state: SchemaState, target: Target
) -> None:
    """Refuse to expand files whose contract parts would not lead to the schema of the history."""
    wanted = history.replay_migrations([item.name for item in history.order()])
    try:
        for name in list_pending_names(history, applied):
            if name in applied.progress:
                for operation in list_contract_operations(history, applied, name, target.dialect):
                    state = operation.apply(state)
            else:
                state = apply_migration(history[name], state)
    except StateError as error:
        raise RunError(f"The pending files cannot run in expand: {error}; {_AT_ONCE}") from error
    if not is_same_state(state, wanted):
        raise RunError(f"The pending files cannot run in expand as they are; {_AT_ONCE}")


_AT_ONCE = (
    "apply them with `migrate` while no process of the running release is left; nothing was changed"
)


def _build_run_with_lookups(
    history: History,
    applied: Applied,
    name: str,
    work: Work,
    target: Target,
    phase: Literal["", "expand", "contract"] = "",
    parts: str = "",
) -> FileRun:
    """The run of a file with the lookups before its first step."""
    item = history[name]
    chosen = build_forward_run(history, item, work, target, phase, parts)
    if not needs_several_transactions(chosen.units):
        return chosen
    functions = [unit.function for unit in chosen.units if isinstance(unit, PythonUnit)]
    require_imports(item, functions)
    first, *rest = chosen.units
    guards = (*build_lookups(work, target.dialect), *first.guards)
    return replace(chosen, units=(replace(first, guards=guards), *rest))


def has_nothing_to_run(
    history: History, applied: Applied, *, upto: str | None = None, phase: Phase | None = None
) -> bool:
    """Return True where `migrate` has nothing to do; raises as `plan_forwards`."""
    wanted = _select_pending(history, applied, upto)
    if phase == "expand":
        wanted -= set(list_expanded_names(history, applied))
    return not wanted and not find_outdated_hashes(history, applied)


def _collect_names_until(history: History, upto: str) -> set[str]:
    if upto == "zero":
        raise HistoryError(
            "migrate goes forwards only, got the target 'zero'; take all files back with `treefold "
            "rollback zero`"
        )
    return history.ancestors(history.find(upto).name)


def list_applied_after(history: History, applied: Applied, upto: str) -> list[str]:
    """Return the applied files that come after a target of `migrate`, in their order."""
    kept = history.ancestors(history.find(upto).name)
    done = collect_applied_names(history, applied)
    return [item.name for item in history.order() if item.name in done - kept]


def _select_pending(history: History, applied: Applied, upto: str | None) -> set[str]:
    kept = None if upto is None else _collect_names_until(history, upto)
    check_release(history, applied)
    _refuse_half_rolled_back(applied)
    wanted = set(list_pending_names(history, applied))
    if wanted:
        check_history(history, applied)
    if kept is not None:
        return wanted & kept
    history.head()  # refuses a fork
    return wanted


def plan_backwards(
    history: History,
    applied: Applied,
    target: Target,
    *,
    steps: int = 1,
    to: str | None = None,
    fills: RollbackFills | None = None,
    force: bool = False,
) -> list[FileRun]:
    """Return the runs of `rollback`. A file that is half done is taken back first.

    Args:
        history: The files.
        applied: The records.
        target: The database.
        steps: How many files, the last applied first.
        to: The file that stays the last one applied, or "zero"; counts instead of `steps`.
        fills: The values of fields that come back.
        force: Leave what cannot be taken back, and name it in `kept` of the runs.

    Raises:
        RunError: An operation cannot be reversed; nothing was changed.
        MigrationError: A value does not fit, or its field does not come back.
    """
    check_history(history, applied)
    fills = fills or RollbackFills()
    begun = [entry for entry in applied.progress.values() if entry.direction == "backwards"]
    fills.kept = {k: v for e in begun for k, v in RollbackFills.from_journal(e).kept.items()}
    kept = None if to is None else _find_kept_names(history, to)
    undone_ = _plan_undo_runs(history, applied, target, fills, steps=steps, kept=kept, force=force)
    done = collect_applied_names(history, applied)
    order = [item.name for item in history.order() if item.name in done]
    half = [e.name for e in applied.progress.values() if e.direction == "backwards" and e.undo < 0]
    if kept is None:
        if steps < 1:
            raise RunError(f"steps must be at least 1, got {steps!r}")
        chosen = list(reversed(order))[: max(steps - len(undone_), 0)]
    else:
        if not kept <= done:
            last = f"{order[-1]!r} is the last that is" if order else "none is"
            raise RunError(
                f"Migration {history.find(to or '').name!r} is not applied, so that nothing can be "
                f"rolled back to it; {last}"
            )
        chosen = [name for name in reversed(order) if name not in kept]
    if half and half[0] not in chosen:
        entry = applied.progress[half[0]]
        raise RunError(
            f"Migration {half[0]!r} is {describe_progress(entry)};"
            f" {describe_resolving_commands(entry)}"
        )
    made: dict[str, FileRun] = {}
    for item, states in _replay_files(history, set(chosen)):
        before, rest = frozenset(fills.used), list[str]()
        forced = force or any(e.forced and e.name == item.name for e in begun)
        run = build_file_run(
            item.name,
            history.compute_digest(item.name),
            "backwards",
            plan_backward_units(item, states, target, fills, rest if forced else None),
            recorded=list_record_names(item, applied),
            code=make_code_extractor(item),
        )
        made[item.name] = replace(run, fills=fills.list_flags_used_since(before), kept=tuple(rest))
    fills.refuse_unused()
    return undone_ + [made[name] for name in chosen]


def _plan_undo_runs(
    history: History,
    applied: Applied,
    target: Target,
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
    for entry in list_half_done(applied):
        made.append(plan_undo(history, applied, entry, target, fills, force=force))
        applied = _with_journal_row(applied, made[-1].base, entry.name)
    for name in reversed(list_expanded_names(history, applied)):
        if (len(made) >= steps) if kept is None else (name in kept):
            continue
        entry = applied.progress[name]
        made.append(plan_undo(history, applied, entry, target, fills, force=force))
        applied = _with_journal_row(applied, None, name)
    return made


def _find_kept_names(history: History, to: str) -> set[str]:
    return set() if to == "zero" else history.ancestors(history.find(to).name)


def plan_single_file(history: History, text: str, target: Target, *, backwards: bool) -> FileRun:
    """Return the run of one file, applied or not.

    Raises:
        HistoryError: There is no such file.
        RunError: An operation cannot be reversed.
    """
    item = history.find(text)
    states = compute_states(item.operations, history.compute_state_before(item.name))
    hash_ = history.compute_digest(item.name)
    if backwards:
        units = plan_backward_units(item, states, target, RollbackFills())
        return build_file_run(item.name, hash_, "backwards", units)
    units = plan_guarded_units(item.operations, states, target)
    return build_file_run(item.name, hash_, "forwards", units)


# -- records alone --------------------------------------------------------------------------------


def plan_fake_migrate(
    history: History, applied: Applied, *, upto: str | None = None
) -> list[FileRun]:
    """Return the records that `migrate` with `fake` writes: all up to a file that are missing, or
    whose file has changed. That of a squashed file replaces those that it stands for.

    Raises:
        RunError: A file is half done.
    """
    kept = None if upto is None else _collect_names_until(history, upto)
    for entry in applied.progress.values():
        raise RunError(
            f"Migration {entry.name!r} is {describe_progress(entry)};"
            f" {describe_resolving_commands(entry)}"
        )
    made: list[FileRun] = []
    for item in history.order():
        hash_ = history.compute_digest(item.name)
        old = [name for name in item.replaces if name in applied.records]
        record = applied.records.get(item.name)
        same = record is not None and record.hash == hash_ and not old
        if not same and (kept is None or item.name in kept):
            made.append(
                build_file_run(item.name, hash_, "forwards", (), recorded=[item.name, *old])
            )
    return made


def plan_fake_rollback(
    history: History, applied: Applied, *, steps: int = 1, to: str | None = None
) -> list[FileRun]:
    """Return the records that `rollback` with `fake` removes: the last ones, or all but those up to
    a file. Files that are half done come first.
    """
    half = [Record(e.name, e.hash, _NEVER) for e in applied.progress.values()]
    others = (r for r in applied.records.values() if r.name not in applied.progress)
    recorded = [*half, *reversed(list(others))]
    if to is None:
        chosen = recorded[:steps]
    else:
        kept = {
            name
            for kept_name in _find_kept_names(history, to)
            for name in (kept_name, *history[kept_name].replaces)
        }
        chosen = [record for record in recorded if record.name not in kept]
    return [build_file_run(record.name, record.hash, "backwards", ()) for record in chosen]


_NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)  # a half done file has not been applied at any time


def find_lost_tables(
    history: History, applied: Applied, runs: Sequence[FileRun], dialect: Dialect
) -> list[tuple[str, str, bool]]:
    """Return the tables that lose rows or columns in a rollback: file, table, and whether the
    table has that name in the database now.
    """
    live = set(compute_current_schema(history, applied, dialect).tables)
    works: list[tuple[str, Work]] = []
    for run in runs:
        if run.undo >= 0 and run.origin is not None:
            work = build_begun_work(history, applied, run.origin, dialect)
            live |= set(work.states[run.undo].tables)
            works.append((run.name, Work(work.operations[: run.undo], work.states)))
    whole = {run.name for run in runs if run.undo < 0}
    works += [
        (item.name, Work(tuple(item.operations), tuple(states)))
        for item, states in _replay_files(history, whole)
    ]
    made: list[tuple[str, str, bool]] = []
    for name, work in works:
        for place, operation in enumerate(work.operations):
            before, after = work.states[place].tables, work.states[place + 1].tables
            reverse = operation.reverse(work.states[place])
            if reverse is not None and reverse.destructive:
                changed = [table for table in after if before.get(table) is not after[table]]
                made += [(name, table, table in live) for table in changed]
    return made


# -- files ----------------------------------------------------------------------------------------


def _refuse_half_rolled_back(applied: Applied) -> None:
    for name, entry in applied.progress.items():
        if entry.direction == "backwards":
            raise RunError(
                f"Migration {name!r} is {describe_progress(entry)};"
                f" {describe_resolving_commands(entry)}"
            )


def _replay_files(history: History, chosen: set[str]) -> list[tuple[Loaded, list[SchemaState]]]:
    """The chosen files, each with the states before, between and after its operations."""
    made: list[tuple[Loaded, list[SchemaState]]] = []
    state = SchemaState()
    for item in history.order() if chosen else ():
        after = apply_migration(item, state)
        if item.name in chosen:
            made.append((item, compute_states(item.operations, state)))
        state = after
    return made
