"""Runner: applies migrations to a database and takes them back, one run at a time.

Both halves run the same flows. Where nothing is to be done, no lock is taken and no table created.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Literal, TypeVar

from treefold_migrations._base.errors import DataLossRefused
from treefold_migrations._files.databases import restrict_to_database
from treefold_migrations._files.history import History
from treefold_migrations._records.effects import (
    Atomic,
    Flow,
    aexecute_flow,
    execute_flow,
    fetch_rows,
)
from treefold_migrations._records.record_hashes import find_hashes_to_rewrite
from treefold_migrations._records.recorded_history import DatabaseTarget, RecordedHistory
from treefold_migrations._records.records import Applied, Records
from treefold_migrations._run.events import Event, Listener, ignore_event
from treefold_migrations._run.executor import ExecutionContext, Interrupted, run_file
from treefold_migrations._run.heartbeat import Heartbeat
from treefold_migrations._run.lock import WAIT, Lock, acquire_lock, make_lock
from treefold_migrations._run.process import LockOwner
from treefold_migrations._run.timeouts import Limits
from treefold_migrations._schedule.backward_runs import find_tables_losing_data, plan_rollback
from treefold_migrations._schedule.expanded import compute_current_schema, list_expanded_names
from treefold_migrations._schedule.fake_runs import plan_fake_migrate, plan_fake_rollback
from treefold_migrations._schedule.forward_runs import Phase, has_nothing_to_run, plan_migrate
from treefold_migrations._schedule.half_done_runs import plan_abandon, plan_resume
from treefold_migrations._schedule.history_checks import check_history, check_history_for_release
from treefold_migrations._schedule.rollback_fills import RollbackFills, require_fill_values
from treefold_migrations._schedule.units import FileRun, SqlUnit
from treefold_orm import ORMError
from treefold_orm.schema import (
    HeldConnection,
    Operation,
    Postgres,
    arun,
    database_for,
    literal,
    quote,
    run,
)

T = TypeVar("T")
Resolution = Literal["again", "skip", "abandon"]
Choose = Callable[[RecordedHistory], list[FileRun]]


class Runner:
    """Runs the migrations of a history on the database behind an alias.

    Args:
        database: the alias.
        history: the files; of each, the operations that live on the database run.
        listener: called with an `Event` when anything begins, ends, waits or is tried again.
        limits: how long locking steps wait and run (PostgreSQL).
        wait: seconds to wait for another run.
        interrupted: the choice for an interrupted step that may not run twice.

    Raises:
        HistoryError: no operation of the files lives on the database.
    """

    def __init__(
        self,
        database: str,
        history: History,
        *,
        listener: Listener = ignore_event,
        limits: Limits | None = None,
        wait: float = WAIT,
        interrupted: Interrupted = "stop",
    ) -> None:
        self.database = database
        self.history = restrict_to_database(history, database)
        self._listener = listener
        self._limits = limits or Limits()
        self._wait = wait
        self._interrupted: Interrupted = interrupted

    # -- reading ----------------------------------------------------------------------------------

    def applied(self) -> Applied:
        """Return the records of the database."""
        return run(self.database, self._read_records(), "await aapplied()")

    async def aapplied(self) -> Applied:
        """`applied` for async code."""
        return await arun(self.database, self._read_records())

    def pending(self) -> list[str]:
        """Return the files that are not applied, in their order; half done ones are among them.

        Raises:
            HistoryError: the files do not fit the records.
        """
        return self._list_pending(self.applied())

    async def apending(self) -> list[str]:
        """`pending` for async code."""
        return self._list_pending(await self.aapplied())

    def _read_records(self) -> Operation[Applied]:
        return Records(database_for(self.database).dialect).read()

    def _list_pending(self, applied: Applied) -> list[str]:
        recorded = RecordedHistory.on_database(self.history, applied, self.database)
        check_history(recorded)
        return recorded.list_pending_names()

    def missing(self) -> list[str]:
        """Return the files whose tables and columns a release with these files lacks: those that
        are neither applied nor expanded. Files of another release may be expanded besides.

        Raises:
            HistoryError: the files do not fit the records.
        """
        recorded = RecordedHistory.on_database(self.history, self.applied(), self.database)
        check_history_for_release(recorded)
        ready = set(list_expanded_names(recorded))
        return [name for name in recorded.list_pending_names() if name not in ready]

    # -- running ----------------------------------------------------------------------------------

    def migrate(
        self,
        target: str | None = None,
        *,
        phase: Phase | None = None,
        fake: bool = False,
        plan: bool = False,
    ) -> list[FileRun]:
        """Apply the files that are not applied.

        Args:
            target: the last one, by its name or the beginning of it; all without it.
            phase: "expand" for the parts that the running release bears, before a rollout;
                "contract" or None for all that is left.
            fake: record them, and those before them as the files are now, without running anything.
            plan: change nothing.

        Returns:
            The runs, done or with `plan` only planned.

        Raises:
            HistoryError: the files do not fit each other or the records.
            RunError: a step failed, or in expand a change has no such part; nothing was changed.
            LockTimeout: another run, or others that use a table, did not make way.
        """
        return self._run_flow(self._apply_files, target, phase, fake, plan)

    async def amigrate(
        self,
        target: str | None = None,
        *,
        phase: Phase | None = None,
        fake: bool = False,
        plan: bool = False,
    ) -> list[FileRun]:
        """`migrate` for async code."""
        return await self._arun_flow(self._apply_files, target, phase, fake, plan)

    def rollback(
        self,
        target: str | None = None,
        *,
        steps: int = 1,
        fake: bool = False,
        plan: bool = False,
        allow_destructive: bool = False,
        fill: Iterable[str] = (),
    ) -> list[FileRun]:
        """Take applied files back.

        Args:
            target: the file that stays the last one applied, or "zero".
            steps: how many files, without a target.
            fake: remove the records without running anything, also of files that are missing.
            plan: change nothing.
            allow_destructive: also where that drops a table or column with rows, or leaves what
                an operation without a reverse has done.
            fill: `post.slug:text`, the value of rows for a field that comes back without a default.

        Returns:
            The runs, done or with `plan` only planned.

        Raises:
            RunError: an operation cannot be reversed (nothing was changed), or a step failed.
            DataLossRefused: rows would be lost.
            Ambiguous: rows need a value of a field that comes back.
        """
        return self._run_flow(
            self._roll_back_files, target, steps, fake, plan, allow_destructive, tuple(fill)
        )

    async def arollback(
        self,
        target: str | None = None,
        *,
        steps: int = 1,
        fake: bool = False,
        plan: bool = False,
        allow_destructive: bool = False,
        fill: Iterable[str] = (),
    ) -> list[FileRun]:
        """`rollback` for async code."""
        return await self._arun_flow(
            self._roll_back_files, target, steps, fake, plan, allow_destructive, tuple(fill)
        )

    def resolve(
        self, name: str, choice: Resolution, *, plan: bool = False, allow_destructive: bool = False
    ) -> list[FileRun]:
        """End the state of a file that is half applied or half rolled back.

        Args:
            name: the file, or the beginning of its name.
            choice: "again" goes on with the first step or batch that is not complete, "skip" first
                records the step that failed as done by hand, "abandon" takes the file back as far
                as that is possible.
            plan: change nothing.
            allow_destructive: also where "abandon" drops a table or column with rows, or leaves
                what cannot be taken back.

        Returns:
            The run, done or with `plan` only planned.

        Raises:
            RunError: the file is not half done, its complete steps were changed, or a step failed.
            DataLossRefused: something would be lost.
        """
        return self._run_flow(self._resolve_file, name, choice, plan, allow_destructive)

    async def aresolve(
        self, name: str, choice: Resolution, *, plan: bool = False, allow_destructive: bool = False
    ) -> list[FileRun]:
        """`resolve` for async code."""
        return await self._arun_flow(self._resolve_file, name, choice, plan, allow_destructive)

    def _run_flow(self, flow: Callable[..., Flow[T]], *args: object) -> T:
        with HeldConnection(self.database) as held:
            return execute_flow(held, flow(held, *args))

    async def _arun_flow(self, flow: Callable[..., Flow[T]], *args: object) -> T:
        async with HeldConnection(self.database) as held:
            return await aexecute_flow(held, flow(held, *args))

    # -- flows ------------------------------------------------------------------------------------

    def _apply_files(
        self, held: HeldConnection, target: str | None, phase: Phase | None, fake: bool, plan: bool
    ) -> Flow[list[FileRun]]:
        if fake:
            choose = partial(plan_fake_migrate, upto=target)
            return (yield from self._plan_or_run_files(held, choose, fake=True, plan=plan))
        choose = partial(plan_migrate, upto=target, phase=phase)
        idle = partial(has_nothing_to_run, upto=target, phase=phase)
        return (yield from self._plan_or_run_files(held, choose, plan=plan, is_idle=idle))

    def _roll_back_files(
        self,
        held: HeldConnection,
        target: str | None,
        steps: int,
        fake: bool,
        plan: bool,
        allow_destructive: bool,
        fill: tuple[str, ...],
    ) -> Flow[list[FileRun]]:
        if fake:
            forget = partial(plan_fake_rollback, steps=steps, to=target)
            return (yield from self._plan_or_run_files(held, forget, fake=True, plan=plan))

        def choose(recorded: RecordedHistory, fills: RollbackFills | None = None) -> list[FileRun]:
            # new ones for each plan: they collect which were used, and what is missing
            fills = fills or RollbackFills.from_flags(fill)
            return plan_rollback(
                recorded, steps=steps, to=target, fills=fills, force=allow_destructive
            )

        if not plan:
            recorded = yield from self._read_history(held)
            fills = RollbackFills.from_flags(fill)
            runs = choose(recorded, fills)
            if not allow_destructive:
                yield from _refuse_row_loss(recorded, runs)
            yield from _require_fill_values(recorded, fills)
        return (yield from self._plan_or_run_files(held, choose, plan=plan))

    def _resolve_file(
        self,
        held: HeldConnection,
        name: str,
        choice: Resolution,
        plan: bool,
        allow_destructive: bool,
    ) -> Flow[list[FileRun]]:
        if choice != "abandon":
            resume = partial(plan_resume, name_prefix=name)
            return (yield from self._plan_or_run_files(held, resume, plan=plan, resolution=choice))
        if not plan:
            recorded, fills = (yield from self._read_history(held)), RollbackFills()
            runs = plan_abandon(recorded, name, fills)
            if not allow_destructive:
                _refuse_partial_abandon(runs)
                yield from _refuse_row_loss(recorded, runs)
            yield from _require_fill_values(recorded, fills)
        abandon = partial(plan_abandon, name_prefix=name)
        return (yield from self._plan_or_run_files(held, abandon, plan=plan))

    def _read_history(self, held: HeldConnection) -> Flow[RecordedHistory]:
        applied = yield from Records(held.dialect).read()
        return RecordedHistory(self.history, applied, DatabaseTarget(held.dialect, held.single))

    def _plan_or_run_files(
        self,
        held: HeldConnection,
        choose: Choose,
        *,
        plan: bool,
        fake: bool = False,
        is_idle: Callable[[RecordedHistory], bool] = lambda _recorded: False,
        resolution: Resolution | None = None,
    ) -> Flow[list[FileRun]]:
        recorded = yield from self._read_history(held)
        if plan:
            return (yield from _add_table_sizes(choose(recorded)))
        # without the lock: a release that starts with `migrate` mostly has nothing to do, and must
        # not wait for another run or need the right to create tables
        if is_idle(recorded):
            return []
        lock = make_lock(held, Records(held.dialect), LockOwner.from_current_process())
        yield from acquire_lock(lock, wait=self._wait, notice=self._report_waiting)
        try:
            with Heartbeat(lock, held):
                return (yield from self._run_under_lock(held, lock, choose, resolution, fake=fake))
        finally:
            with suppress(ORMError):  # a lost connection has lost its lock, and is reported itself
                yield from lock.release()

    def _run_under_lock(
        self,
        held: HeldConnection,
        lock: Lock,
        choose: Choose,
        resolution: Resolution | None,
        *,
        fake: bool,
    ) -> Flow[list[FileRun]]:
        # `--resolve NAME again` is the answer to an interrupted step; "skip" is handled by `skip`
        interrupted = self._interrupted if resolution is None else "again"
        skip = resolution == "skip"
        records = Records(held.dialect)
        engine = ExecutionContext(
            held, records, lock, self._limits, self._listener, interrupted, skip
        )
        # others may have run until the lock was there
        recorded = yield from self._read_history(held)
        if old := find_hashes_to_rewrite(recorded):
            yield Atomic(_rewrite_hashes(engine, old))
            recorded = yield from self._read_history(held)
        runs = choose(recorded)
        if fake:
            yield Atomic(_apply_fake_runs_to_records(engine, runs))
            return runs
        done: list[FileRun] = []
        for chosen in runs:
            if (yield from run_file(engine, chosen)):
                done.append(chosen)  # noqa: PERF401 - a comprehension cannot yield
        return done

    def _report_waiting(self, text: str) -> None:
        self._listener(Event("wait", text))


def _refuse_row_loss(recorded: RecordedHistory, runs: list[FileRun]) -> Flow[None]:
    # a rollback that has begun was agreed to then
    begun = _list_begun_rollbacks(recorded)
    fresh = [made for made in runs if made.name not in begun]
    for name, table, live in find_tables_losing_data(recorded, fresh):
        # a table that has another name now cannot be asked, and counts as one with rows
        found = not live or (yield from fetch_rows(f"SELECT 1 FROM {quote(table)} LIMIT 1"))  # noqa: S608 - quoted
        if found:
            raise DataLossRefused(
                f"Rolling back {name!r} drops what the rows of {table!r} hold; give "
                "--allow-destructive to agree to it"
            )


def _require_fill_values(recorded: RecordedHistory, fills: RollbackFills) -> Flow[None]:
    # a file whose rollback has begun passed this test then
    begun = _list_begun_rollbacks(recorded)
    missing = [lacking for lacking in fills.missing if lacking.migration not in begun]
    yield from require_fill_values(missing, compute_current_schema(recorded))


def _list_begun_rollbacks(recorded: RecordedHistory) -> set[str]:
    rows = recorded.applied.progress.items()
    return {name for name, row in rows if row.direction == "backwards"}


def _add_table_sizes(runs: list[FileRun]) -> Flow[list[FileRun]]:
    steps = [unit.step for made in runs for unit in made.units if isinstance(unit, SqlUnit)]
    sizes: dict[str, int] = {}
    # to_regclass: a table that a file of the same plan creates is not there yet
    for table in sorted({step.table for step in steps if step.blocks}):
        found = yield from fetch_rows(
            "SELECT coalesce(pg_total_relation_size(to_regclass("
            f"{literal(quote(table), Postgres())})), 0)"
        )
        sizes[table] = found[0][0]
    return [replace(made, sizes=sizes) for made in runs]


def _refuse_partial_abandon(runs: list[FileRun]) -> None:
    for made in runs:
        if made.kept:
            raise DataLossRefused(
                f"Abandoning {made.name!r} leaves a part of it: {'; '.join(made.kept)}. Accept "
                f"that with `migrate --resolve {made.name} abandon --allow-destructive`"
            )


def _rewrite_hashes(engine: ExecutionContext, hashes: dict[str, str]) -> Flow[None]:
    yield from engine.lock.ensure_held()
    for name, hash_ in hashes.items():
        yield from engine.records.rewrite_hash(name, hash_)


def _apply_fake_runs_to_records(engine: ExecutionContext, runs: list[FileRun]) -> Flow[None]:
    yield from engine.lock.ensure_held()
    for made in runs:
        for name in made.recorded:
            yield from engine.records.delete_record_if_present(name)
        if made.direction == "forwards":
            yield from engine.records.add_record(made.name, made.hash)
        yield from engine.records.clear_progress(made.name)
