"""Schedule: which files are to be run, in which order, and in which steps.

It compares the files with the records, and reads no database. Any mismatch stops the run
here, before anything was changed.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from treefold_migrations._base.errors import HistoryError, RunError
from treefold_migrations._files.history import History, Loaded, apply_all, function_code
from treefold_migrations._operations.base import states_through
from treefold_migrations._run.half_done import half_done, standing, ways_out
from treefold_migrations._run.half_done_runs import undone
from treefold_migrations._run.lookups import lookups, require_imports
from treefold_migrations._run.planning import (
    Target,
    units_backwards,
    units_forwards,
)
from treefold_migrations._run.record_hashes import fits, fits_replaced, outdated
from treefold_migrations._run.records import Applied, Record
from treefold_migrations._run.rollback_fills import RollbackFills
from treefold_migrations._run.units import FileRun, PythonUnit, file_run, is_split
from treefold_migrations._state.schema_state import SchemaState

Phase = Literal["expand", "contract"]


def check(history: History, applied: Applied) -> None:
    """Compare the files with the records.

    Raises:
        HistoryError: A file that was applied is missing, was changed, or has a parent that was not
            applied.
    """
    replaced = {old: hash_ for item in history.order() for old, hash_ in item.replaces.items()}
    for name, record in applied.records.items():
        if name not in replaced and name not in history:
            raise HistoryError(
                f"Migration {name!r} is applied and its file is missing: get the file from the "
                "branch that has it, or remove its record with `rollback TARGET --fake`"
            )
        same = (
            fits_replaced(record.hash, replaced[name])
            if name in replaced
            else fits(history, applied, name)
        )
        # a rollback that failed may be corrected, and compares its complete steps
        if not same and name not in applied.progress:
            raise HistoryError(
                f"Migration {name!r} was changed after it was applied, or a file before it was: "
                "restore the files and put the change into a new one; if the database is as the "
                f"files say, accept them with `migrate {name} --fake`"
            )
    for name, entry in applied.progress.items():
        if name not in history.files:
            raise HistoryError(
                f"Migration {name!r} is {standing(entry)} and its file is missing: get the file "
                "from the branch that has it, or remove its record with `rollback --fake`, which "
                "leaves what it has done"
            )
    done = applied_names(history, applied)
    for item in history.order():
        missing = [parent for parent in history.parents(item.name) if parent not in done]
        if item.name in done and missing:
            raise HistoryError(
                f"Migration {item.name!r} is applied and {missing[0]!r}, which comes before it, is "
                f"not: the records were edited; repair them with `migrate {missing[0]} --fake`"
            )


def applied_names(history: History, applied: Applied) -> set[str]:
    """Return the files that are applied; a squashed one is, where all that it replaces are.

    Raises:
        HistoryError: Only a part of the files that a squashed file replaces is applied.
    """
    made = {item.name for item in history.order() if item.name in applied.records}
    for item in history.order():
        old = [name for name in item.replaces if name in applied.records]
        if not old or item.name in made:
            continue
        if len(old) < len(item.replaces):
            rest = next(name for name in item.replaces if name not in applied.records)
            raise HistoryError(
                f"Migration {item.name!r} stands for {old[-1]!r}, which is applied, and for "
                f"{rest!r}, which is not: apply the files from before the squash first"
            )
        made.add(item.name)
    return made


def recorded_as(item: Loaded, applied: Applied) -> list[str]:
    """Return the records of an applied file."""
    if item.name in applied.records or not item.replaces:
        return [item.name]
    return list(item.replaces)


def pending(history: History, applied: Applied) -> list[str]:
    """Return the files that are not applied, in their order."""
    done = applied_names(history, applied)
    return [item.name for item in history.order() if item.name not in done]


def forwards(
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
        phase: "expand" stops before the first operation that the running release cannot bear.

    Raises:
        HistoryError: The files fork, or do not fit the records.
    """
    made: list[FileRun] = []
    for item, states in _replayed(history, _wanted(history, applied, upto)):
        units, early = units_forwards(item, states, target)
        end = early if phase == "expand" else None
        hash_ = history.digest(item.name)
        code = function_code(item) if item.name in applied.progress or is_split(units) else None
        if is_split(units):
            functions = [unit.function for unit in units if isinstance(unit, PythonUnit)]
            require_imports(item, functions)
            guards = (*lookups(item, states, target.dialect), *units[0].guards)
            units[0] = replace(units[0], guards=guards)
        chosen = file_run(item.name, hash_, "forwards", units, upto=end, code=code)
        progress = applied.progress.get(item.name)
        if chosen.completes or len(chosen.units) > (progress.done if progress else 0):
            made.append(chosen)
        if not chosen.completes:
            break
    return made


def idle(history: History, applied: Applied, *, upto: str | None = None) -> bool:
    """Return True where `migrate` has nothing to do; raises as `forwards`."""
    return not _wanted(history, applied, upto) and not outdated(history, applied)


def _forward_target(history: History, upto: str) -> set[str]:
    if upto == "zero":
        raise HistoryError(
            "migrate goes forwards only, got the target 'zero'; take all files back with `treefold "
            "rollback zero`"
        )
    return history.ancestors(history.find(upto).name)


def behind(history: History, applied: Applied, upto: str) -> list[str]:
    """Return the applied files that come after a target of `migrate`, in their order."""
    kept = history.ancestors(history.find(upto).name)
    done = applied_names(history, applied)
    return [item.name for item in history.order() if item.name in done - kept]


def _wanted(history: History, applied: Applied, upto: str | None) -> set[str]:
    kept = None if upto is None else _forward_target(history, upto)
    check(history, applied)
    _refuse_half_rolled_back(applied)
    wanted = set(pending(history, applied))
    if kept is not None:
        return wanted & kept
    history.head()  # refuses a fork
    return wanted


def backwards(
    history: History,
    applied: Applied,
    target: Target,
    *,
    steps: int = 1,
    to: str | None = None,
    fills: RollbackFills | None = None,
) -> list[FileRun]:
    """Return the runs of `rollback`. A file that is half done is taken back first.

    Args:
        history: The files.
        applied: The records.
        target: The database.
        steps: How many files, the last applied first.
        to: The file that stays the last one applied, or "zero"; counts instead of `steps`.
        fills: The values of fields that come back.

    Raises:
        RunError: An operation cannot be reversed; nothing was changed.
        MigrationError: A value does not fit, or its field does not come back.
    """
    check(history, applied)
    fills = fills or RollbackFills()
    undone_ = [undone(history, entry, target, fills) for entry in half_done(applied)]
    done = applied_names(history, applied)
    order = [item.name for item in history.order() if item.name in done]
    half = [e.name for e in applied.progress.values() if e.direction == "backwards" and e.undo < 0]
    if to is None:
        if steps < 1:
            raise RunError(f"steps must be at least 1, got {steps!r}")
        chosen = list(reversed(order))[: steps - len(undone_)]
    else:
        kept = _kept(history, to)
        if not kept <= done:
            last = f"{order[-1]!r} is the last that is" if order else "none is"
            raise RunError(
                f"Migration {history.find(to).name!r} is not applied, so that nothing can be "
                f"rolled back to it; {last}"
            )
        chosen = [name for name in reversed(order) if name not in kept]
    if half and half[0] not in chosen:
        entry = applied.progress[half[0]]
        raise RunError(f"Migration {half[0]!r} is {standing(entry)}; {ways_out(entry)}")
    made = {
        item.name: file_run(
            item.name,
            history.digest(item.name),
            "backwards",
            units_backwards(item, states, target, fills),
            recorded=recorded_as(item, applied),
            code=function_code(item),
        )
        for item, states in _replayed(history, set(chosen))
    }
    fills.refuse_unused()
    return undone_ + [made[name] for name in chosen]


def _kept(history: History, to: str) -> set[str]:
    return set() if to == "zero" else history.ancestors(history.find(to).name)


def alone(history: History, text: str, target: Target, *, backwards: bool) -> FileRun:
    """Return the run of one file, applied or not.

    Raises:
        HistoryError: There is no such file.
        RunError: An operation cannot be reversed.
    """
    item = history.find(text)
    states = states_through(item.operations, history.state_before(item.name))
    hash_ = history.digest(item.name)
    if backwards:
        units = units_backwards(item, states, target, RollbackFills())
        return file_run(item.name, hash_, "backwards", units)
    return file_run(item.name, hash_, "forwards", units_forwards(item, states, target)[0])


# -- records alone --------------------------------------------------------------------------------


def faked(history: History, applied: Applied, *, upto: str | None = None) -> list[FileRun]:
    """Return the records that `migrate` with `fake` writes: all up to a file that are missing, or
    whose file has changed. That of a squashed file replaces those that it stands for.

    Raises:
        RunError: A file is half done.
    """
    kept = None if upto is None else _forward_target(history, upto)
    for entry in applied.progress.values():
        raise RunError(f"Migration {entry.name!r} is {standing(entry)}; {ways_out(entry)}")
    made: list[FileRun] = []
    for item in history.order():
        hash_ = history.digest(item.name)
        old = [name for name in item.replaces if name in applied.records]
        record = applied.records.get(item.name)
        same = record is not None and record.hash == hash_ and not old
        if not same and (kept is None or item.name in kept):
            made.append(file_run(item.name, hash_, "forwards", (), recorded=[item.name, *old]))
    return made


def forgotten(
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
            for kept_name in _kept(history, to)
            for name in (kept_name, *history[kept_name].replaces)
        }
        chosen = [record for record in recorded if record.name not in kept]
    return [file_run(record.name, record.hash, "backwards", ()) for record in chosen]


_NEVER = dt.datetime.min.replace(tzinfo=dt.UTC)  # a half done file has not been applied at any time


def lost(
    history: History, applied: Applied, runs: Sequence[FileRun]
) -> list[tuple[str, str, bool]]:
    """Return the tables that lose rows or columns in a rollback: file, table, and whether the
    table has that name in the database now.
    """
    done = applied_names(history, applied)
    live = set(history.replay([i.name for i in history.order() if i.name in done]).tables)
    undo = {run.name: run.undo for run in runs if run.undo >= 0}
    made: list[tuple[str, str, bool]] = []
    for item, states in _replayed(history, {run.name for run in runs}):
        count = undo.get(item.name, len(item.operations))
        live |= set(states[count].tables) if item.name in undo else set()
        for place, operation in enumerate(item.operations[:count]):
            before, after = states[place].tables, states[place + 1].tables
            reverse = operation.reverse(states[place])
            if reverse is not None and reverse.destructive:
                changed = [name for name in after if before.get(name) is not after[name]]
                made += [(item.name, name, name in live) for name in changed]
    return made


# -- files ----------------------------------------------------------------------------------------


def _refuse_half_rolled_back(applied: Applied) -> None:
    for name, entry in applied.progress.items():
        if entry.direction == "backwards":
            raise RunError(f"Migration {name!r} is {standing(entry)}; {ways_out(entry)}")


def _replayed(history: History, chosen: set[str]) -> list[tuple[Loaded, list[SchemaState]]]:
    """The chosen files, each with the states before, between and after its operations."""
    made: list[tuple[Loaded, list[SchemaState]]] = []
    state = SchemaState()
    for item in history.order() if chosen else ():
        after = apply_all(item, state)
        if item.name in chosen:
            made.append((item, states_through(item.operations, state)))
        state = after
    return made
