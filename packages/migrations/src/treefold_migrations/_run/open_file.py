"""RunningMigrationFile: where one file stands while it runs, and the messages that say so.

| State | `progress` | `describe_file_state` |
|---|---|---|
| nothing has run | `done=0` | nothing of this file was applied |
| two of five steps are committed | `done=2` | steps 1 to 2 are committed, and the ways out |
| the third, in batches, has moved 1,000 rows | `done=2, batches=1, rows=1000` | and those rows |
| the third may have taken effect | `done=2, started=True` | and that step 3 has begun |

`progress` is what the journal says. It is replaced where the journal is written, never before.
"""

from __future__ import annotations

from dataclasses import replace

from treefold_migrations._base.errors import LockTimeout, RunError
from treefold_migrations._records.records import Applied, Progress, advance_progress
from treefold_migrations._run.events import Event, Kind, Listener
from treefold_migrations._run.timeouts import Limits
from treefold_migrations._schedule.half_done import (
    describe_committed,
    describe_progress,
    describe_resolving_commands,
    require_unchanged_completed_steps,
)
from treefold_migrations._schedule.units import FileRun, PythonUnit, Unit
from treefold_orm import ORMError


def determine_progress(run: FileRun, entry: Progress | None) -> Progress:
    """Return where a file stands, by its journal row.

    Raises:
        RunError: the file was changed after it had begun, or goes the other way.
    """
    # contract after expand, and the way back after a run forwards, begin with steps of their own
    follows = entry is not None and entry.is_expanded and run.phase == "contract"
    if entry is None or follows or (run.undo >= 0 and entry.direction == "forwards"):
        return Progress(
            run.name,
            run.hash,
            run.direction,
            run.plan,
            run.unit_count,
            undo=run.undo,
            origin=run.origin,
            forced=bool(run.kept),
            shown=run.shown,
            phase=run.phase,
            parts=run.parts,
            base=run.base,
            fills=run.fills,
        )
    if (entry.direction, entry.phase) != (run.direction, run.phase):
        raise RunError(
            f"Migration {run.name!r} is {describe_progress(entry)};"
            f" {describe_resolving_commands(entry)}"
        )
    require_unchanged_completed_steps(run, entry)
    # the corrected file counts from here on; what ended stays
    return replace(entry, hash=run.hash, plan=run.plan, steps=run.unit_count, shown=run.shown)


class RunningMigrationFile:
    """One file while it runs: `place` is the unit that runs, `has_ended` is True behind the
    statement of a step outside of a transaction.
    """

    def __init__(self, run: FileRun, limits: Limits, listener: Listener) -> None:
        self.run = run
        self.progress = determine_progress(run, None)
        self.place = 0
        self.has_ended = False
        self._limits = limits
        self._listener = listener

    def is_complete(self, applied: Applied) -> bool:
        """Return True where nothing of the run is left to do."""
        run = self.run
        known = applied.progress.get(run.name)
        # taking a half-done file back ends with no row, or with that of the expanded file
        if run.undo >= 0:
            return known is None or (run.base is not None and known.is_expanded)
        if run.phase == "expand" and known is not None and known.is_expanded:
            return True
        there = all(name in applied.records for name in run.recorded)
        return there == (run.direction == "forwards")

    def compute_progress_after(self, steps: int) -> Progress:
        """Return the progress after some more steps."""
        digests = self.run.digests[: self.progress.done + steps]
        return advance_progress(self.progress, completed_digests=digests)

    @property
    def current_unit(self) -> Unit | None:
        """The unit that runs, None behind the last one."""
        return self.run.units[self.place] if self.place < len(self.run.units) else None

    def describe_step(self) -> str:
        """Return the step that runs: "Migration '0002', step 2 of 5: add column book.year"."""
        run = self.run
        step = f"step {run.find_displayed_step_number(self.place)} of {len(run.shown)}"
        named = f": {self.current_unit.summary}" if self.current_unit is not None else ""
        return f"Migration {run.name!r}, {step}{named}"

    def describe_file_state(self) -> str:
        """Return what is committed of the file, and the commands that end this state."""
        progress = self.progress
        begun = self.run.units[progress.done] if progress.done < len(self.run.units) else None
        python = isinstance(begun, PythonUnit) and not begun.transactional
        text = describe_committed(progress, commits_by_itself=python)
        if not text:
            return "nothing of this file was applied"
        return f"{text}. {describe_resolving_commands(progress)}"

    def build_step_error(self, text: str) -> RunError:
        """Return the error of the step that runs, with what is committed and the ways out."""
        return RunError(f"{self.describe_step()} {text}; {self.describe_file_state()}")

    def build_guard_error(self, error: RunError) -> RunError:
        """Return the error for rows that a guard in front of a step refuses."""
        progress, run = self.progress, self.run
        begun = progress.done or progress.started or progress.batches
        place = (
            f"go on with step {run.find_displayed_step_number(self.place)}" if begun else "begin"
        )
        return RunError(
            f"Migration {run.name!r} cannot {place}: {error}; {self.describe_file_state()}"
        )

    def build_lock_timeout_error(self, error: ORMError) -> LockTimeout:
        """Return the error for a table that stayed locked in every attempt."""
        tries = self._limits.attempts
        return LockTimeout(
            f"{self.describe_step()}: {error}, in {tries} attempts; {self.describe_file_state()}. "
            "Look for long transactions, and run again, or with a longer --lock-timeout SECONDS"
        )

    def build_step_timeout_error(self, error: ORMError) -> RunError:
        """Return the error for a step that held a lock for too long."""
        seconds = self._limits.statement
        return RunError(
            f"{self.describe_step()} held its lock for {seconds:g} s and was stopped: {error}; "
            f"{self.describe_file_state()}. Run it at a quiet time with a longer limit: "
            "--statement-timeout SECONDS, 0 for none"
        )

    def report_event(self, kind: Kind, text: str, *, rows_: int = 0, total: int = 0) -> None:
        """Report an event at the step that runs."""
        run = self.run
        self._listener(
            Event(
                kind,
                text,
                run.name,
                run.find_displayed_step_number(self.place),
                len(run.shown),
                rows=rows_,
                total=total,
            )
        )
