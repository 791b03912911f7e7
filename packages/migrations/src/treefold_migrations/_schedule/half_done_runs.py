"""The runs that end a half done file: on to its end, or back to what was before it.

What has run is known from the journal: complete steps, and the step that had begun. The way back
reverts the operations whose steps are complete, and cleans up after the one that is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Literal

from treefold_migrations._base.errors import RunError
from treefold_migrations._files.history import LoadedMigration, make_code_extractor
from treefold_migrations._operations.base import Operation, compute_states
from treefold_migrations._operations.columns import AlterField
from treefold_migrations._operations.custom import RunPython, RunSQL, SeparateStateAndDatabase
from treefold_migrations._plan.step import Step
from treefold_migrations._records.recorded_history import DatabaseTarget, RecordedHistory
from treefold_migrations._records.records import Progress
from treefold_migrations._schedule.expanded import OperationsWithStates, build_started_operations
from treefold_migrations._schedule.half_done import (
    describe_batches,
    describe_progress,
    describe_resolving_commands,
    require_half_done_entry,
    require_unchanged_completed_steps,
)
from treefold_migrations._schedule.planning import (
    build_reverse_operations,
    plan_backward_units,
    plan_guarded_units,
    plan_possible_reverse_units,
)
from treefold_migrations._schedule.remains import build_remains_removal_step
from treefold_migrations._schedule.rollback_fills import RollbackFills
from treefold_migrations._schedule.units import FileRun, PythonUnit, SqlUnit, Unit, build_file_run
from treefold_migrations._state.schema_state import SchemaState


def plan_resume(recorded: RecordedHistory, name_prefix: str) -> list[FileRun]:
    """Return the run that completes one half done file.

    Raises:
        RunError: the file is not half done.
    """
    entry, history = require_half_done_entry(recorded, name_prefix), recorded.history
    if entry.undo >= 0:
        return [plan_undo(recorded, entry, RollbackFills.from_journal(entry))]
    item = history.find(entry.name)
    hash_, code = history.compute_digest(item.name), make_code_extractor(item)
    if entry.direction == "forwards":
        work = build_started_operations(recorded, entry)
        return [build_forward_run(recorded, item, work, entry.phase, entry.parts)]
    states = compute_states(item.operations, history.compute_state_before(item.name))
    kept = list[str]()
    fills = RollbackFills.from_journal(entry)
    rest = kept if entry.forced else None
    back = plan_backward_units(item, states, recorded.target, fills, rest)
    # a squashed file may have been applied as itself, or as the files before the squash
    names = [n for n in (item.name, *item.replaces) if n in recorded.applied.records]
    made = build_file_run(item.name, hash_, "backwards", back, recorded=names, extract_code=code)
    return [replace(made, kept=tuple(kept))]


def plan_abandon(
    recorded: RecordedHistory, name_prefix: str, fills: RollbackFills | None = None
) -> list[FileRun]:
    """Return the run that takes a half applied file back, as far as it can be; `kept` of it says
    what stays, and `fills` the fields that come back without a value.

    Raises:
        RunError: the file is not half applied, or its complete steps were changed.
    """
    entry = require_half_done_entry(recorded, name_prefix)
    if entry.direction == "backwards" and entry.undo < 0:
        raise RunError(
            f"Migration {entry.name!r} is {describe_progress(entry)};"
            f" {describe_resolving_commands(entry)}"
        )
    return [plan_undo(recorded, entry, fills or RollbackFills(), force=True)]


def build_forward_run(
    recorded: RecordedHistory,
    item: LoadedMigration,
    work: OperationsWithStates,
    phase: Literal["", "expand", "contract"] = "",
    phase_letters: str = "",
) -> FileRun:
    """Return the run of the operations of a file, or of those of one phase."""
    units = plan_guarded_units(work.operations, work.states, recorded.target)
    hash_, code = recorded.history.compute_digest(item.name), make_code_extractor(item)
    made = build_file_run(item.name, hash_, "forwards", units, extract_code=code)
    return replace(made, phase=phase, parts=phase_letters)


def plan_undo(
    recorded: RecordedHistory, entry: Progress, fills: RollbackFills, *, force: bool = False
) -> FileRun:
    """Return the run that reverts the complete parts of a file that is half applied or expanded.
    One that was expanded before is so again.

    Args:
        recorded: the files and the records.
        entry: its row of the journal.
        fills: the values of fields that come back.
        force: leave what cannot be taken back, and name it in `kept` of the run.

    Raises:
        RunError: a part cannot be reverted, and `force` is False; or complete steps were changed.
    """
    origin = entry.origin or entry
    force = force or entry.forced
    item, target = recorded.history.find(entry.name), recorded.target
    work = build_started_operations(recorded, entry)
    # planned only to know which operation each complete step belongs to
    forwards = build_forward_run(recorded, item, work)
    kept, before = list[str](), frozenset(fills.used)
    back, count = list[Unit](), len(work.operations)
    touched = count
    # of an expanded file each operation is complete
    if not origin.is_expanded:
        require_unchanged_completed_steps(forwards, origin)
        back, count, touched = _plan_unfinished_operation_undo(
            item, work, forwards, origin, target, fills, kept
        )
    if kept and not force:
        raise RunError(
            f"Migration {item.name!r} is {describe_progress(entry)}, and cannot be taken back as "
            f"a whole: {'; '.join(kept)}. {describe_resolving_commands(origin)}"
        )
    if force:
        back += plan_possible_reverse_units(
            item, work.operations[:count], work.states, target, fills, kept
        )
    else:
        reverses = build_reverse_operations(item, work.operations[:count], work.states, fills)
        # from the state behind the last complete operation down to the first one
        back += plan_guarded_units(reverses, work.states[count::-1], target)
    made = build_file_run(
        item.name,
        forwards.hash,
        "backwards",
        back,
        recorded=(),
        undone_operation_count=touched,
        extract_code=make_code_extractor(item),
    )
    given = fills.list_flags_used_since(before)
    return replace(made, origin=origin, kept=tuple(kept), base=origin.base, fills=given)


def list_completed_operations(recorded: RecordedHistory, entry: Progress) -> Sequence[Operation]:
    """Return the operations of a half applied file whose steps are all complete."""
    origin = entry.origin or entry
    work = build_started_operations(recorded, entry)
    units = plan_guarded_units(work.operations, work.states, recorded.target)
    return work.operations[: _count_completed_operations(units, origin, len(work.operations))]


def _count_completed_operations(units: Sequence[Unit], entry: Progress, total: int) -> int:
    # the operation of the first step that is missing is not complete
    return units[entry.done].operation if entry.done < len(units) else total


def _plan_unfinished_operation_undo(
    item: LoadedMigration,
    work: OperationsWithStates,
    forwards: FileRun,
    entry: Progress,
    target: DatabaseTarget,
    fills: RollbackFills,
    irreversible_effects: list[str],
) -> tuple[list[Unit], int, int]:
    """The steps that take back the operation that is not complete, the number of complete ones, and
    of those that have done anything.
    """
    states, units = work.states, forwards.units
    count = _count_completed_operations(units, entry, len(work.operations))
    if entry.done >= len(units):
        return [], count, count
    begun, operation = units[entry.done], work.operations[count]
    # what was done by hand is not undone
    places = (n for n in range(entry.done) if n not in entry.skipped)
    ended = [units[n] for n in places if units[n].operation == count]
    if not (ended or entry.started):
        return [], count, count
    if isinstance(operation, RunPython):
        effects = irreversible_effects
        undo = _plan_python_undo(operation, begun, entry, states[count], target, effects)
        return undo, count, count + 1
    # their reverse covers all statements, also those that have not run
    if isinstance(operation, (RunSQL, SeparateStateAndDatabase)):
        irreversible_effects.append(f"what has run of {operation.describe()!r} stays")
        return [], count, count + 1
    done = [*ended, begun] if entry.started else ended
    # once filled, the rows that had NULL cannot be told from the others
    if isinstance(operation, AlterField) and any(_has_filled_rows(u, entry, begun) for u in done):
        irreversible_effects.append(f"the values that {operation.describe()!r} has filled in stay")
    reverse = operation.reverse(states[count])
    if reverse is None:
        return [], count, count + 1 if ended else count
    reverse = fills.fill_operation(item.name, reverse, states[count + 1])
    # a step that was cut off may have taken effect, one that the server refused has not
    refused = begun if entry.failed == entry.done else None
    both = states[count : count + 2]
    back = list(_plan_partial_undo(reverse, both, done, target, count, refused=refused))
    return back, count, count + 1 if ended else count


def _has_filled_rows(unit: Unit, entry: Progress, begun: Unit) -> bool:
    fills = isinstance(unit, SqlUnit) and unit.step.repeat
    return fills and (unit is not begun or entry.batches > 0)


def _plan_python_undo(
    operation: RunPython,
    begun: Unit,
    entry: Progress,
    state: SchemaState,
    target: DatabaseTarget,
    irreversible_effects: list[str],
) -> list[Unit]:
    if operation.backward is None:
        amount = describe_batches(entry) if entry.batches else "what it has written"
        irreversible_effects.append(f"{amount} of {operation.describe()!r} stay as they are")
        return []
    together = operation.transactional or target.single
    summary = f"run Python: {operation.backward.__name__}"
    made = PythonUnit(operation.backward, state, begun.operation, together, summary)
    return [replace(made, elsewhere=tuple(operation.elsewhere))]


def _plan_partial_undo(
    reverse: Operation,
    states: Sequence[SchemaState],
    done: Sequence[Unit],
    target: DatabaseTarget,
    operation_index: int,
    *,
    refused: Unit | None,
) -> Iterator[Unit]:
    """The reverse of an operation of which some steps ran, with conditions for the other parts;
    `refused` is the step that the server did not take.
    """
    units = plan_guarded_units([reverse], states[::-1], target)
    # names that the reverse adds: what has them afterwards is no remain
    made = "".join(u.step.sql for u in units if isinstance(u, SqlUnit) and _ADDS.search(u.step.sql))
    for unit in units:
        if isinstance(unit, SqlUnit):
            # parts of the operation may or may not be there, and each statement has to bear both
            sql = _ADD.sub(r"\1DROP CONSTRAINT IF EXISTS \2, ADD CONSTRAINT \2", unit.step.sql)
            step = replace(unit.step, sql=_DROP.sub(r"\1 IF EXISTS ", sql))
            if isinstance(refused, SqlUnit) and step.sql == refused.step.before_retry:
                step = build_remains_removal_step(refused.step, was_refused=True) or step
            cleared = build_remains_removal_step(
                unit.step, was_refused=False
            )  # it may not have been dropped yet
            if cleared is not None:
                yield SqlUnit(cleared, operation_index)
            yield replace(unit, step=step, operation=operation_index)
        else:
            yield replace(unit, operation=operation_index)
    for unit in reversed(done):
        if not isinstance(unit, SqlUnit):
            continue
        for sql in filter(None, (unit.step.undo, unit.step.before_retry)):
            # the last word is the name that the statement drops
            if sql.rsplit(" ", 1)[1] not in made:
                summary = f"remove the remains of: {unit.summary}"
                remains = Step(sql, transactional=False, summary=summary)
                if sql == unit.step.before_retry and unit is refused:
                    remains = build_remains_removal_step(unit.step, was_refused=True) or remains
                yield SqlUnit(remains, operation_index)


# no second IF EXISTS, and none between INDEX and CONCURRENTLY
_DROP = re.compile(r"\b(DROP (?:COLUMN|CONSTRAINT|INDEX CONCURRENTLY|INDEX)) (?!IF EXISTS|CONC)")
_ADD = re.compile(r'^(ALTER TABLE "(?:[^"]|"")+" )ADD CONSTRAINT ("(?:[^"]|"")+")')
_ADDS = re.compile(r"\b(?:ADD CONSTRAINT|CREATE (?:UNIQUE )?INDEX)\b")
