"""Executor: runs the units of one file, so that a crash at any statement leaves something that the
next run completes.

A file of transactional steps is one transaction together with its record. In others each group of
transactional steps is one transaction together with its journal row, and a step outside of a
transaction is noted before it begins and after it ends. The last group carries the record.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Literal

from treefold_migrations._base.errors import MigrationError, RunError
from treefold_migrations._plan.perform import perform_step
from treefold_migrations._plan.step import Step
from treefold_migrations._records.effects import (
    Atomic,
    Call,
    Flow,
    Pause,
    fetch_rows,
    run_script,
    run_statement,
)
from treefold_migrations._records.records import Records
from treefold_migrations._run.events import Listener
from treefold_migrations._run.frozen import FrozenModels
from treefold_migrations._run.lock import Lock
from treefold_migrations._run.open_file import RunningMigrationFile, determine_progress
from treefold_migrations._run.timeouts import Limits, Timeouts
from treefold_migrations._run.work import Work
from treefold_migrations._schedule.rehearsal import CATALOG, rehearse_on_empty_copy
from treefold_migrations._schedule.remains import build_remains_removal_step
from treefold_migrations._schedule.units import (
    FileRun,
    PythonUnit,
    SqlUnit,
    Unit,
    find_places_of_same_step,
    find_transaction_group,
    needs_several_transactions,
)
from treefold_orm import (
    ConnectionFailed,
    DatabaseLocked,
    ORMError,
    StatementTimeout,
    TransactionConflict,
)
from treefold_orm.schema import HeldConnection

Interrupted = Literal["stop", "again", "skip"]
"""The choice for an interrupted step that may not run twice; an error without one."""


@dataclass(frozen=True, slots=True)
class ExecutionContext:
    """The tools of the executor."""

    held: HeldConnection
    records: Records
    lock: Lock
    limits: Limits
    tell: Listener
    interrupted: Interrupted = "stop"
    skip: bool = False

    @property
    def is_postgres(self) -> bool:
        """True for PostgreSQL."""
        return self.held.dialect.name == "postgres"


def run_file(engine: ExecutionContext, run: FileRun) -> Flow[bool]:
    """Run a file from where it stands; False where another run has completed it meanwhile.

    Raises:
        RunError: a step failed, or the journal does not fit the file.
        LockTimeout: a table stayed locked by others in every attempt.
    """
    return (yield from _Execution(engine, run).run_remaining_steps())


def can_repeat_after_interruption(unit: Unit) -> bool:
    """True where a unit outside of a transaction may run again after an interruption."""
    return isinstance(unit, PythonUnit) or unit.again


def _run_in_transaction(flow: Flow[None]) -> Flow[None]:
    yield Atomic(flow)


class _Execution:
    """The run of one file."""

    def __init__(self, engine: ExecutionContext, run: FileRun) -> None:
        self._engine = engine
        self._run = run
        self._file = RunningMigrationFile(run, engine.limits, engine.tell)

    def run_remaining_steps(self) -> Flow[bool]:
        run, records = self._run, self._engine.records
        applied = yield from records.read()
        # read again for each file: a run that lost its row of the lock may have been overtaken
        if self._file.is_complete(applied):
            return False
        known = applied.progress.get(run.name)
        self._file.progress = determine_progress(run, known)
        begins = known is None or known.is_expanded
        phase = f" ({run.phase})" if run.phase else ""
        self._file.report_event("file", f"{run.name}{phase}" if begins else f"{run.name} (goes on)")
        if self._engine.skip:
            yield from self._mark_step_as_skipped()
        # a file without units, or a corrected one with no step behind the complete ones
        if self._file.progress.done >= run.unit_count:
            yield Atomic(self._run_with_lock_check(self._record_completion()))
        # one transaction is undone as a whole
        if not self._engine.is_postgres and needs_several_transactions(
            run.units[self._file.progress.done :]
        ):
            yield from self._rehearse_steps()
        while self._file.progress.done < len(run.units):
            group = find_transaction_group(run.units, self._file.progress.done)
            self._file.place, self._file.has_ended = self._file.progress.done, False
            try:
                # in front of the transaction of the group: its locks would be held while rows are
                # read
                yield from self._run_guards_before_transaction(group[0])
                if group[0].transactional:
                    yield from self._run_transaction_group(group)
                else:
                    yield from self._run_outside_transaction(group[0])
            except (MigrationError, ORMError):
                with suppress(ORMError):  # a lost connection leaves the row as it is
                    yield from self._record_failure()
                raise
        self._file.report_event("done", run.name)
        return True

    def _rehearse_steps(self) -> Flow[None]:
        """Raise the error that a later step of SQLite would meet, while nothing is done yet."""
        catalog = yield from fetch_rows(CATALOG)
        progress = self._file.progress
        self._file.place = progress.done
        try:
            rehearse_on_empty_copy(self._run, progress.done, progress.skipped, catalog)
        except RunError as error:
            raise self._file.build_guard_error(error) from error

    def _run_guards_before_transaction(self, unit: Unit) -> Flow[None]:
        """Run the guards of a unit in a transaction that takes no lock and ends before its own."""
        # rows need not fit for a step that is done by hand
        if not unit.guards or self._file.place in self._file.progress.skipped:
            return
        for step in unit.guards:
            if step.table:
                self._file.report_event("look", step.summary)
        try:
            yield from self._retry_while_locked(
                lambda _: _run_in_transaction(self._run_guards(unit.guards))
            )
        except RunError as error:
            # a statement of the guard itself failed; the rest are rows that were found
            if isinstance(error.__cause__, ORMError):
                raise
            raise self._file.build_guard_error(error) from error

    def _run_guards(self, guards: Sequence[Step]) -> Flow[None]:
        timeouts = Timeouts(self._engine.limits, active=self._engine.is_postgres, local=True)
        # a guard waits for no lock that others wait behind, and may read for a long time
        yield from timeouts.set_limits(None)
        for step in guards:
            yield from perform_step(step)

    def _mark_step_as_skipped(self) -> Flow[None]:
        progress = self._file.progress
        place = progress.failed if progress.failed >= 0 else progress.done
        if progress.failed < 0 and not progress.started:
            raise RunError(
                f"No step of migration {self._run.name!r} failed or was interrupted: go on with "
                f"`migrate --resolve {self._run.name} again`"
            )
        self._file.progress = replace(
            progress,
            skipped=(*progress.skipped, *find_places_of_same_step(self._run.units, place)),
            failed=-1,
            started=progress.started and place != progress.done,
        )
        saving = self._engine.records.save_progress(self._file.progress)
        yield Atomic(self._run_with_lock_check(saving))

    def _record_failure(self) -> Flow[None]:
        """Note in the journal that a step failed, unless what failed came after its commit."""
        progress, records = self._file.progress, self._engine.records
        applied = yield from records.read()
        now = applied.progress.get(self._run.name)
        # the connection may fail after the COMMIT has reached the server: a row written here would
        # bring back the journal of a complete file
        if self._file.is_complete(applied) or (now is not None and now.done > progress.done):
            return
        if progress.done or progress.started or progress.batches:
            if not self._file.has_ended:  # else it is as if it was cut off behind the statement
                self._file.progress = replace(progress, failed=self._file.place)
            yield from records.save_progress(self._file.progress)
            return
        # the transaction is undone: the row is again the one from before this run, if there was one
        before = progress.base if self._run.undo < 0 else progress.origin
        if before is None:
            yield from records.clear_progress(self._run.name)
        else:
            yield from records.save_progress(before)

    # -- transactions -----------------------------------------------------------------------------

    def _run_transaction_group(self, group: tuple[Unit, ...]) -> Flow[None]:
        unenforced = not self._engine.is_postgres and any(
            isinstance(unit, SqlUnit) and unit.step.foreign_keys_off for unit in group
        )
        if unenforced:  # a pragma of SQLite that has no effect inside a transaction
            yield from run_script("PRAGMA foreign_keys = OFF")
        try:
            yield from self._retry_while_locked(
                lambda _: _run_in_transaction(
                    self._perform_transaction_group(group, foreign_keys_off=unenforced)
                )
            )
            # behind the commit, as the journal
            self._file.progress = self._file.compute_progress_after(len(group))
        finally:
            if unenforced:
                # the connection is given back afterwards, and a pragma outlasts the transaction
                yield from run_script("PRAGMA legacy_alter_table = OFF", "PRAGMA foreign_keys = ON")

    def _retry_while_locked(
        self, make: Callable[[int], Flow[None]], *, standalone_unit: Unit | None = None
    ) -> Flow[None]:
        limits = self._engine.limits
        for attempt in range(limits.attempts):
            try:
                yield from make(attempt)
            except (DatabaseLocked, TransactionConflict) as error:
                # the whole transaction begins again, which gives its other locks back meanwhile
                if attempt + 1 < limits.attempts:
                    step = self._file.describe_step()
                    self._file.report_event("retry", f"{step}: {error}; trying again")
                    yield Pause(limits.pause(attempt))
                    continue
                raise self._file.build_lock_timeout_error(error) from error
            # not tried again: the next attempt would hold the lock for as long
            except StatementTimeout as error:
                raise self._file.build_step_timeout_error(error) from error
            except ORMError as error:
                # a statement that the server refused has had no effect, and is not "interrupted"
                # for the next run; of one whose connection was lost that is not known
                lost = isinstance(error, ConnectionFailed)
                unit, ended = standalone_unit, lost or self._file.has_ended
                if not (unit is None or ended or can_repeat_after_interruption(unit)):
                    self._file.progress = replace(self._file.progress, started=False)
                if not lost:
                    yield from self._remove_failed_index(standalone_unit)
                    yield from self._raise_guard_error_if_explained(error)
                raise self._file.build_step_error(f"failed: {error}") from error
            return

    def _remove_failed_index(self, standalone_unit: Unit | None) -> Flow[None]:
        """Remove an index whose build failed, which a corrected file may not build again."""
        remains = None
        if isinstance(standalone_unit, SqlUnit):
            remains = build_remains_removal_step(standalone_unit.step, was_refused=True)
        if remains is not None:
            with suppress(ORMError):  # the next run removes it, or drift names it
                yield from perform_step(remains)

    def _run_guards_in_transaction(self, unit: Unit) -> Flow[None]:
        """Run guards inside of a transaction, which has taken no lock that others wait for."""
        for step in unit.guards:
            try:
                yield from perform_step(step)
            except RunError as error:
                raise self._file.build_guard_error(error) from error

    def _raise_guard_error_if_explained(self, error: ORMError) -> Flow[None]:
        """Raise the error of the guard whose rows a statement refused, where they are there."""
        unit = self._file.current_unit
        explain = unit.step.explain if isinstance(unit, SqlUnit) else None
        if explain is None:
            return
        try:
            yield Atomic(perform_step(explain))
        except RunError as found:
            raise self._file.build_step_error(f"failed: {found}") from error
        except ORMError:  # such as a name that the transaction had changed
            return

    def _perform_transaction_group(
        self, group: tuple[Unit, ...], *, foreign_keys_off: bool
    ) -> Flow[None]:
        engine, run = self._engine, self._run
        # the row of the lock is written here: a run that takes it over waits for this transaction
        yield from engine.lock.ensure_held()
        timeouts = Timeouts(engine.limits, active=engine.is_postgres, local=True)
        for place, unit in enumerate(group, self._file.progress.done):
            self._file.place = place
            if place in self._file.progress.skipped:
                if place in run.shown:
                    self._file.report_event("step", f"{unit.summary} (done by hand)")
                continue
            if place > self._file.progress.done:  # those of the first one ran in front
                yield from self._run_guards_in_transaction(unit)
            yield from timeouts.set_limits(unit.step if isinstance(unit, SqlUnit) else None)
            yield from self._perform_unit(unit)
        if foreign_keys_off:
            yield from self._require_no_broken_references()
        # record or journal are in the transaction of the steps: a crash leaves both or neither
        done = self._file.progress.done + len(group)
        if done == run.unit_count:
            yield from self._record_completion()
        else:
            yield from engine.records.save_progress(self._file.compute_progress_after(len(group)))
        # again: the lease would be as old as the first write when it is committed, and stale after
        # a long transaction
        yield from engine.lock.ensure_held()

    def _require_no_broken_references(self) -> Flow[None]:
        # switching enforcement on again tests no row that was written meanwhile
        broken = yield from fetch_rows("PRAGMA foreign_key_check")
        if broken:
            table, _, target, _ = broken[0]
            raise RunError(
                f"Migration {self._run.name!r} would leave {len(broken)} rows that refer to "
                f"missing ones, the first in {table!r} to {target!r}; nothing was changed. SQLite "
                "does not enforce foreign keys while a table is rebuilt: put Python and SQL that "
                "delete rows into a file of their own"
            )

    def _record_completion(self) -> Flow[None]:
        records, run = self._engine.records, self._run
        if run.phase == "expand":
            left = run.unit_count - self._file.progress.done
            yield from records.save_progress(self._file.compute_progress_after(left))
            return
        if run.direction == "forwards":
            yield from records.add_record(run.name, run.hash)
        else:
            for name in run.recorded:
                yield from records.delete_existing_record(name)
            if run.base is not None:
                # contract was taken back: the file is expanded, as before
                yield from records.save_progress(run.base)
                return
        yield from records.clear_progress(run.name)

    # -- steps outside of a transaction -----------------------------------------------------------

    def _run_outside_transaction(self, unit: Unit) -> Flow[None]:
        records = self._engine.records
        self._file.place = self._file.progress.done
        skipped = self._file.place in self._file.progress.skipped
        if skipped:
            self._file.report_event("step", f"{unit.summary} (done by hand)")
        elif self._file.progress.started:
            skipped = yield from self._recover_or_skip_interrupted_step(unit)
        else:
            # committed before the statement: a run that is cut off knows that it may have taken
            # effect
            begun = replace(self._file.progress, started=True)
            yield Atomic(self._run_with_lock_check(records.save_progress(begun)))
            self._file.progress = begun
        if not skipped:
            engine = self._engine
            # behind a pooler the setting might stay in a session that another client gets
            session = engine.is_postgres and not engine.held.pooled
            timeouts = Timeouts(engine.limits, active=session, local=False)
            yield from self._retry_while_locked(
                lambda attempt: self._attempt_outside_transaction(unit, timeouts, attempt),
                standalone_unit=unit,
            )
        done = self._file.compute_progress_after(1)
        last = done.done == self._run.unit_count
        noting = self._record_completion() if last else records.save_progress(done)
        yield Atomic(self._run_with_lock_check(noting))
        self._file.progress = done

    def _run_with_lock_check(self, flow: Flow[object]) -> Flow[None]:
        yield from self._engine.lock.ensure_held()
        yield from flow

    def _attempt_outside_transaction(
        self, unit: Unit, timeouts: Timeouts, attempt: int
    ) -> Flow[None]:
        step = unit.step if isinstance(unit, SqlUnit) else None
        # a build that waited too long has left its invalid index, as one that was cut off
        if attempt and step is not None and step.before_retry:
            yield from run_script(step.before_retry)
        yield from timeouts.set_limits(step)
        yield from self._perform_unit(unit)
        # behind it an error comes from resetting the limits, not from the step
        self._file.has_ended = True
        yield from timeouts.set_limits(None)

    def _recover_or_skip_interrupted_step(self, unit: Unit) -> Flow[bool]:
        if can_repeat_after_interruption(unit):
            failed = self._file.progress.failed == self._file.place
            remains = None
            if isinstance(unit, SqlUnit):
                remains = build_remains_removal_step(unit.step, was_refused=failed)
            if remains is not None:
                yield from perform_step(remains)
            if failed:  # from here on it may be cut off, behind its end
                resumed = replace(self._file.progress, failed=-1)
                yield Atomic(self._run_with_lock_check(self._engine.records.save_progress(resumed)))
                self._file.progress = resumed
            return False
        # SQL of the author outside of a transaction: to run it twice might insert rows twice
        if self._engine.interrupted == "stop":
            raise RunError(
                f"{self._file.describe_step()} was interrupted, and whether it took effect is not "
                f"known: look at the database, then run `migrate --resolve {self._run.name} "
                f"again`, or `migrate --resolve {self._run.name} skip` if it did"
            )
        return self._engine.interrupted == "skip"

    # -- one unit ---------------------------------------------------------------------------------

    def _perform_unit(self, unit: Unit) -> Flow[None]:
        if self._file.place in self._run.shown:
            self._file.report_event("step", unit.summary)
        if isinstance(unit, PythonUnit):
            yield from self._call_function(unit)
            return
        step = unit.step
        # each statement commits its batch; rows that are done do not match again, so that a run
        # that was cut off needs no position
        if step.repeat:
            changed = 0
            # counted here and not by perform_step: each batch is an event, and a failure names them
            while done := (yield from run_statement(step.sql)):
                changed += done
                now = self._file.progress
                now = replace(now, batches=now.batches + 1, rows=now.rows + done)
                self._file.progress = now
                self._file.report_event("rows", unit.summary, rows_=changed)
            step = replace(step, sql="", repeat=False)
        try:
            yield from perform_step(step)
        except RunError as error:  # of its check
            raise self._file.build_step_error(f"failed: {error}") from error

    def _call_function(self, unit: PythonUnit) -> Flow[None]:
        held = self._engine.held
        models = FrozenModels(unit.state, using=held.alias, elsewhere=unit.elsewhere)

        def report_rows(text: str, done: int, total: int) -> None:
            self._file.report_event("rows", text or unit.summary, rows_=done, total=total)

        atomic = unit.transactional
        # an atomic function has no position: it runs again from its first row
        keep = None if atomic else self._save_batch_position
        work = Work(held, keep=keep, position=self._file.progress.position, tell=report_rows)
        try:
            yield Call(unit.function, (models, work))
        except (MigrationError, ORMError):
            raise
        except Exception as error:
            raise self._file.build_step_error(f"raised {type(error).__name__}: {error}") from error

    def _save_batch_position(self, position: str, rows: int) -> Flow[Callable[[], None]]:
        """Write the end of a batch into the journal, in the transaction of the batch."""
        before = self._file.progress
        batches = before.batches + (1 if rows else 0)
        moved = replace(before, position=position, batches=batches, rows=before.rows + rows)
        yield from self._run_with_lock_check(self._engine.records.save_progress(moved))

        # called behind the commit: a batch whose COMMIT failed must not count when the failure is
        # noted
        def update_progress() -> None:
            self._file.progress = moved

        return update_progress
