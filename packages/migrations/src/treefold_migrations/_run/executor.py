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
from typing import Any, Literal

from treefold_migrations._base.errors import LockTimeout, MigrationError, RunError
from treefold_migrations._plan.perform import perform
from treefold_migrations._plan.step import Step
from treefold_migrations._run.effects import Atomic, Call, Flow, Pause, count, rows, script
from treefold_migrations._run.events import Event, Listener
from treefold_migrations._run.frozen import FrozenModels
from treefold_migrations._run.half_done import (
    committed,
    require_same_steps,
    standing,
    ways_out,
)
from treefold_migrations._run.lock import Lock
from treefold_migrations._run.records import Applied, Progress, Records, advanced
from treefold_migrations._run.remains import removal
from treefold_migrations._run.timeouts import Limits, Timeouts
from treefold_migrations._run.units import (
    FileRun,
    PythonUnit,
    SqlUnit,
    Unit,
    group_at,
    places_of_step,
)
from treefold_migrations._run.work import Work
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
class Engine:
    """The tools of the executor."""

    held: HeldConnection
    records: Records
    lock: Lock
    limits: Limits
    tell: Listener
    interrupted: Interrupted = "stop"
    skip: bool = False

    @property
    def postgres(self) -> bool:
        """True for PostgreSQL."""
        return self.held.dialect.name == "postgres"


def run_file(engine: Engine, run: FileRun) -> Flow[bool]:
    """Run a file from where it stands; False where another run has completed it meanwhile.

    Raises:
        RunError: A step failed, or the journal does not fit the file.
        LockTimeout: A table stayed locked by others in every attempt.
    """
    return (yield from _File(engine, run).run())


def stands_at(run: FileRun, known: Progress | None) -> Progress:
    """Return where a file stands, by its journal row.

    Raises:
        RunError: The file was changed after it had begun, or goes the other way.
    """
    follows = known is not None and known.is_expanded and run.phase == "contract"
    if known is None or follows or (run.undo >= 0 and known.direction == "forwards"):
        return Progress(
            run.name,
            run.hash,
            run.direction,
            run.plan,
            run.whole,
            undo=run.undo,
            origin=run.origin,
            forced=bool(run.kept),
            shown=run.shown,
            phase=run.phase,
            parts=run.parts,
            base=run.base,
            fills=run.fills,
        )
    if (known.direction, known.phase) != (run.direction, run.phase):
        raise RunError(f"Migration {run.name!r} is {standing(known)}; {ways_out(known)}")
    require_same_steps(run, known)
    return replace(known, hash=run.hash, plan=run.plan, steps=run.whole, shown=run.shown)


def again(unit: Unit) -> bool:
    """True where a unit outside of a transaction may run again after an interruption."""
    return isinstance(unit, PythonUnit) or unit.again


class _File:
    """One file while it runs."""

    def __init__(self, engine: Engine, run: FileRun) -> None:
        self._engine = engine
        self._run = run
        self._progress = stands_at(run, None)
        self._at = 0  # the unit that runs, for messages
        self._ended = False  # True behind the statement of a step that stands alone

    def run(self) -> Flow[bool]:
        run, records = self._run, self._engine.records
        applied = yield from records.read()
        if self._is_complete(applied):
            return False
        known = applied.progress.get(run.name)
        self._progress = stands_at(run, known)
        begins = known is None or known.is_expanded
        phase = f" ({run.phase})" if run.phase else ""
        self._tell("file", f"{run.name}{phase}" if begins else f"{run.name} (goes on)")
        if self._engine.skip:
            yield from self._skip()
        if self._progress.done >= run.whole:
            yield Atomic(self._fenced(self._complete()))
        while self._progress.done < len(run.units):
            group = group_at(run.units, self._progress.done)
            self._at, self._ended = self._progress.done, False
            try:
                yield from self._look_in_front(group[0])
                if group[0].transactional:
                    yield from self._transaction(group)
                else:
                    yield from self._alone(group[0])
            except (MigrationError, ORMError):
                with suppress(ORMError):  # a lost connection leaves the row as it is
                    yield from self._note_failure()
                raise
        self._tell("done", run.name)
        return True

    def _is_complete(self, applied: Applied) -> bool:
        """True where nothing of the run is left to do."""
        run = self._run
        known = applied.progress.get(run.name)
        if run.undo >= 0:
            return known is None or (run.base is not None and known.is_expanded)
        if run.phase == "expand" and known is not None and known.is_expanded:
            return True
        there = all(name in applied.records for name in run.recorded)
        return there == (run.direction == "forwards")

    def _look_in_front(self, unit: Unit) -> Flow[None]:
        """Run the guards of a unit in a transaction that takes no lock and ends before its own."""
        if not unit.guards or self._at in self._progress.skipped:
            return
        for step in unit.guards:
            if step.table:
                self._tell("look", step.summary)
        try:
            yield from self._attempts(lambda _: self._together(self._look(unit.guards)))
        except RunError as error:
            if isinstance(error.__cause__, ORMError):
                raise
            raise self._refused(error) from error

    def _look(self, guards: Sequence[Step]) -> Flow[None]:
        timeouts = Timeouts(self._engine.limits, active=self._engine.postgres, local=True)
        yield from timeouts.before(None)
        for step in guards:
            yield from perform(step)

    def _skip(self) -> Flow[None]:
        progress = self._progress
        place = progress.failed if progress.failed >= 0 else progress.done
        if progress.failed < 0 and not progress.started:
            raise RunError(
                f"No step of migration {self._run.name!r} failed or was interrupted: go on with "
                f"`migrate --resolve {self._run.name} again`"
            )
        self._progress = replace(
            progress,
            skipped=(*progress.skipped, *places_of_step(self._run.units, place)),
            failed=-1,
            started=progress.started and place != progress.done,
        )
        yield Atomic(self._fenced(self._engine.records.keep(self._progress)))

    def _note_failure(self) -> Flow[None]:
        """Note in the journal that a step failed, unless what failed came after its commit."""
        progress, records = self._progress, self._engine.records
        applied = yield from records.read()
        now = applied.progress.get(self._run.name)
        if self._is_complete(applied) or (now is not None and now.done > progress.done):
            return
        if progress.done or progress.started or progress.batches:
            if not self._ended:  # else it is as if the run had been cut off behind the statement
                self._progress = replace(progress, failed=self._at)
            yield from records.keep(self._progress)
            return
        before = progress.base if self._run.undo < 0 else progress.origin
        if before is None:
            yield from records.clear(self._run.name)
        else:
            yield from records.keep(before)

    # -- transactions -----------------------------------------------------------------------------

    def _transaction(self, group: tuple[Unit, ...]) -> Flow[None]:
        unenforced = not self._engine.postgres and any(
            isinstance(unit, SqlUnit) and unit.step.foreign_keys_off for unit in group
        )
        if unenforced:  # a pragma of SQLite that has no effect inside a transaction
            yield from script("PRAGMA foreign_keys = OFF")
        try:
            yield from self._attempts(
                lambda _: self._together(self._group(group, foreign_keys_off=unenforced))
            )
            self._progress = self._after(len(group))
        finally:
            if unenforced:
                yield from script("PRAGMA legacy_alter_table = OFF", "PRAGMA foreign_keys = ON")

    def _after(self, steps: int) -> Progress:
        """The progress after some more steps."""
        digests = self._run.digests[: self._progress.done + steps]
        return advanced(self._progress, ended=digests)

    def _together(self, flow: Flow[None]) -> Flow[None]:
        yield Atomic(flow)

    def _attempts(
        self, make: Callable[[int], Flow[None]], *, alone: Unit | None = None
    ) -> Flow[None]:
        limits = self._engine.limits
        for attempt in range(limits.attempts):
            try:
                yield from make(attempt)
            except (DatabaseLocked, TransactionConflict) as error:
                if attempt + 1 < limits.attempts:
                    self._tell("retry", f"{self._where()}: {error}; trying again")
                    yield Pause(limits.pause(attempt))
                    continue
                raise self._locked(error) from error
            except StatementTimeout as error:
                raise self._too_long(error) from error
            except ORMError as error:
                lost = isinstance(error, ConnectionFailed)
                if not (alone is None or lost or self._ended or again(alone)):
                    self._progress = replace(self._progress, started=False)
                if not lost:
                    yield from self._remove_remains(alone)
                    yield from self._explain(error)
                raise RunError(f"{self._where()} failed: {error}; {self._kept()}") from error
            return

    def _remove_remains(self, alone: Unit | None) -> Flow[None]:
        """Remove an index whose build failed, which a corrected file may not build again."""
        remains = removal(alone.step, failed=True) if isinstance(alone, SqlUnit) else None
        if remains is not None:
            with suppress(ORMError):  # the next run removes it, or drift names it
                yield from perform(remains)

    def _look_before(self, unit: Unit) -> Flow[None]:
        """Run guards inside of a transaction, which has taken no lock that others wait for."""
        for step in unit.guards:
            try:
                yield from perform(step)
            except RunError as error:
                raise self._refused(error) from error

    def _explain(self, error: ORMError) -> Flow[None]:
        """Raise the error of the guard whose rows a statement refused, where they are there."""
        unit = self._run.units[self._at] if self._at < len(self._run.units) else None
        explain = unit.step.explain if isinstance(unit, SqlUnit) else None
        if explain is None:
            return
        try:
            yield Atomic(perform(explain))
        except RunError as found:
            raise RunError(f"{self._where()} failed: {found}; {self._kept()}") from error
        except ORMError:  # such as a name that the transaction had changed
            return

    def _group(self, group: tuple[Unit, ...], *, foreign_keys_off: bool = False) -> Flow[None]:
        engine, run = self._engine, self._run
        yield from engine.lock.fence()
        timeouts = Timeouts(engine.limits, active=engine.postgres, local=True)
        for place, unit in enumerate(group, self._progress.done):
            self._at = place
            if place in self._progress.skipped:
                if place in run.shown:
                    self._tell("step", f"{unit.summary} (done by hand)")
                continue
            if place > self._progress.done:  # those of the first one ran in front
                yield from self._look_before(unit)
            yield from timeouts.before(unit.step if isinstance(unit, SqlUnit) else None)
            yield from self._perform(unit)
        if foreign_keys_off:
            yield from self._check_references()
        done = self._progress.done + len(group)
        if done == run.whole:
            yield from self._complete()
        else:
            yield from engine.records.keep(self._after(len(group)))
        yield from engine.lock.fence()

    def _check_references(self) -> Flow[None]:
        broken = yield from rows("PRAGMA foreign_key_check")
        if broken:
            table, _, target, _ = broken[0]
            raise RunError(
                f"Migration {self._run.name!r} would leave {len(broken)} rows that refer to "
                f"missing ones, the first in {table!r} to {target!r}; nothing was changed. SQLite "
                "does not enforce foreign keys while a table is rebuilt: put Python and SQL that "
                "delete rows into a file of their own"
            )

    def _complete(self) -> Flow[None]:
        records, run = self._engine.records, self._run
        if run.phase == "expand":
            yield from records.keep(self._after(run.whole - self._progress.done))
            return
        if run.direction == "forwards":
            yield from records.add(run.name, run.hash)
        else:
            for name in run.recorded:
                yield from records.remove(name)
            if run.base is not None:
                yield from records.keep(run.base)
                return
        yield from records.clear(run.name)

    # -- steps outside of a transaction -----------------------------------------------------------

    def _alone(self, unit: Unit) -> Flow[None]:
        records = self._engine.records
        self._at = self._progress.done
        skipped = self._at in self._progress.skipped
        if skipped:
            self._tell("step", f"{unit.summary} (done by hand)")
        elif self._progress.started:
            skipped = yield from self._resume(unit)
        else:
            begun = replace(self._progress, started=True)
            yield Atomic(self._fenced(records.keep(begun)))
            self._progress = begun
        if not skipped:
            engine = self._engine
            session = engine.postgres and not engine.held.pooled
            timeouts = Timeouts(engine.limits, active=session, local=False)
            yield from self._attempts(
                lambda attempt: self._outside(unit, timeouts, attempt), alone=unit
            )
        done = self._after(1)
        last = done.done == self._run.whole
        yield Atomic(self._fenced(self._complete() if last else records.keep(done)))
        self._progress = done

    def _fenced(self, flow: Flow[object]) -> Flow[None]:
        yield from self._engine.lock.fence()
        yield from flow

    def _outside(self, unit: Unit, timeouts: Timeouts, attempt: int) -> Flow[None]:
        step = unit.step if isinstance(unit, SqlUnit) else None
        if attempt and step is not None and step.before_retry:
            yield from script(step.before_retry)
        yield from timeouts.before(step)
        yield from self._perform(unit)
        self._ended = True
        yield from timeouts.before(None)

    def _resume(self, unit: Unit) -> Flow[bool]:
        if again(unit):
            failed = self._progress.failed == self._at
            remains = removal(unit.step, failed=failed) if isinstance(unit, SqlUnit) else None
            if remains is not None:
                yield from perform(remains)
            if failed:  # from here on it may be cut off, behind its end
                resumed = replace(self._progress, failed=-1)
                yield Atomic(self._fenced(self._engine.records.keep(resumed)))
                self._progress = resumed
            return False
        if self._engine.interrupted == "stop":
            raise RunError(
                f"{self._where()} was interrupted, and whether it took effect is not known: look "
                f"at the database, then run `migrate --resolve {self._run.name} again`, or "
                f"`migrate --resolve {self._run.name} skip` if it did"
            )
        return self._engine.interrupted == "skip"

    # -- one unit ---------------------------------------------------------------------------------

    def _perform(self, unit: Unit) -> Flow[None]:
        if self._at in self._run.shown:
            self._tell("step", unit.summary)
        if isinstance(unit, PythonUnit):
            yield from self._python(unit)
            return
        step = unit.step
        if step.repeat:
            changed = 0
            while done := (yield from count(step.sql)):
                changed += done
                self._progress = replace(
                    self._progress,
                    batches=self._progress.batches + 1,
                    rows=self._progress.rows + done,
                )
                self._tell("rows", unit.summary, rows_=changed)
            step = replace(step, sql="", repeat=False)
        try:
            yield from perform(step)
        except RunError as error:  # of its check
            raise RunError(f"{self._where()} failed: {error}; {self._kept()}") from error

    def _python(self, unit: PythonUnit) -> Flow[None]:
        held = self._engine.held
        models = FrozenModels(unit.state, using=held.alias, elsewhere=unit.elsewhere)

        def tell(text: str, done: int, total: int) -> None:
            self._tell("rows", text or unit.summary, rows_=done, total=total)

        atomic = unit.transactional
        keep = None if atomic else self._keep_position
        work = Work(held, keep=keep, position=self._progress.position, tell=tell)
        try:
            yield Call(unit.function, (models, work))
        except (MigrationError, ORMError):
            raise
        except Exception as error:
            raise RunError(
                f"{self._where()} raised {type(error).__name__}: {error}; {self._kept()}"
            ) from error

    def _keep_position(self, position: str, rows: int) -> Flow[Callable[[], None]]:
        """Write the end of a batch into the journal, in the transaction of the batch."""
        before = self._progress
        moved = replace(
            before,
            position=position,
            batches=before.batches + (1 if rows else 0),
            rows=before.rows + rows,
        )
        yield from self._fenced(self._engine.records.keep(moved))

        def committed() -> None:
            self._progress = moved

        return committed

    # -- words ------------------------------------------------------------------------------------

    def _where(self) -> str:
        run = self._run
        named = f": {run.units[self._at].summary}" if self._at < len(run.units) else ""
        return f"Migration {run.name!r}, step {run.number_at(self._at)} of {len(run.shown)}{named}"

    def _kept(self) -> str:
        progress = self._progress
        begun = self._run.units[progress.done] if progress.done < len(self._run.units) else None
        python = isinstance(begun, PythonUnit) and not begun.transactional
        text = committed(progress, python=python)
        if not text:
            return "nothing of this file was applied"
        return f"{text}. {ways_out(progress)}"

    def _refused(self, error: RunError) -> RunError:
        progress, run = self._progress, self._run
        begun = progress.done or progress.started or progress.batches
        place = f"go on with step {run.number_at(self._at)}" if begun else "begin"
        return RunError(f"Migration {run.name!r} cannot {place}: {error}; {self._kept()}")

    def _locked(self, error: ORMError) -> LockTimeout:
        tries = self._engine.limits.attempts
        return LockTimeout(
            f"{self._where()}: {error}, in {tries} attempts; {self._kept()}. "
            "Look for long transactions, and run again, or with a longer --lock-timeout SECONDS"
        )

    def _too_long(self, error: ORMError) -> RunError:
        seconds = self._engine.limits.statement
        return RunError(
            f"{self._where()} held its lock for {seconds:g} s and was stopped: {error}; "
            f"{self._kept()}. Run it at a quiet time with a longer limit: --statement-timeout "
            "SECONDS, 0 for none"
        )

    def _tell(self, kind: Any, text: str, *, rows_: int = 0, total: int = 0) -> None:
        run = self._run
        self._engine.tell(
            Event(
                kind,
                text,
                run.name,
                run.number_at(self._at),
                len(run.shown),
                rows=rows_,
                total=total,
            )
        )
