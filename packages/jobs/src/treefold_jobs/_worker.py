"""The worker: takes jobs from the queue, runs them, tries failed ones again, and ends in order.

PgQueuer claims jobs, signs of life included, and records how they end. A job that was claimed and
whose worker is gone is claimed again after `lost_after` seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import AsyncGenerator, Coroutine
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from hashlib import sha256
from time import perf_counter
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgPoolDriver
from pgqueuer.errors import FailingListenerError, RetryRequested
from pgqueuer.executors import AbstractEntrypointExecutor, EntrypointExecutorParameters
from pgqueuer.models import Context, Job, TableChangedEvent
from pgqueuer.types import QueueExecutionMode

from treefold_jobs import _engine as engine, _running as running
from treefold_jobs._claiming import ClaimQueries
from treefold_jobs._outcomes import add_traceback_note, describe_error
from treefold_jobs._process import here
from treefold_jobs._retries import MOST_LOSSES, Retries, find_retries
from treefold_jobs._running import JobFailed, log_outcome
from treefold_jobs._schedules import Schedule
from treefold_jobs._starts import JobStarts
from treefold_orm import ConfigurationError, aclose_all
from treefold_orm.connections import connect_arguments_of

log = running.log

LONGEST_PAUSE = 30.0
"""Seconds between two attempts to reach a database that is away."""
CANCEL_TIMEOUT = 1.0
"""Seconds that a job has to end after it was cancelled."""
WAKE_MARGIN = 0.05
"""Seconds after a job is due again: the clocks of this process and the database differ."""

_AWAY = (
    OSError,
    TimeoutError,
    FailingListenerError,
    cast("type[Exception]", asyncpg.PostgresError),
    cast("type[Exception]", asyncpg.InterfaceError),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a worker.

    Attributes:
        concurrency: jobs that run at once in this process.
        retries: of jobs whose function declares none.
        grace: seconds that running jobs have to end after SIGTERM.
        lost_after: seconds without a sign of life after which a job is taken from its worker.
        drain: end when no job is due.
        log_days: how long the steps of jobs that have ended are kept; 0 is for ever.
    """

    concurrency: int = 10
    retries: Retries = Retries()  # noqa: RUF009 - it is frozen
    grace: float = 20.0
    lost_after: float = 30.0
    drain: bool = False
    log_days: int = 0

    def __post_init__(self) -> None:
        for name in ("concurrency", "lost_after"):
            if getattr(self, name) <= 0:
                raise ConfigurationError(
                    f"--{name.replace('_', '-')} must be above 0, got {getattr(self, name):g}"
                )
        if self.grace < 0:
            raise ConfigurationError(f"--grace must not be below 0, got {self.grace}")


class Worker:
    """Runs the jobs of the default database in this process until it is stopped.

    Attributes:
        put_back: how many running jobs the end of the grace period has put back into the queue.
    """

    def __init__(
        self,
        options: Options,
        schedules: list[Schedule],
        *,
        in_thread: running.InThread = asyncio.to_thread,
    ) -> None:
        self.put_back = 0
        self._in_thread = in_thread
        self._options = options
        self._schedules = [] if options.drain else schedules
        self._seats = asyncio.Semaphore(options.concurrency)  # one for each job that runs
        self._running: dict[asyncio.Task[None], tuple[Job, JobStarts]] = {}
        self._apart: set[asyncio.Task[None]] = set()  # statements beside the jobs
        self._stopping = asyncio.Event()  # no further job is taken
        self._released = asyncio.Event()  # the grace period is over: running jobs are put back
        self._queue: PgQueuer | None = None
        self._claims: ClaimQueries | None = None

    # -- begin and end ----------------------------------------------------------------------------

    async def run(self) -> None:
        """Work until `request_stop`, or with `drain` until no job waits.

        Raises:
            ConfigurationError: the database lacks the tables.
        """
        most, due = self._options.concurrency, len(self._schedules)
        log.info("worker started: concurrency %d, schedules %d", most, due)
        try:
            await self._work_until_stopped()
        finally:
            await aclose_all()
        log.info("worker stopped")

    def watch_signals(self) -> None:
        """Stop at SIGTERM and SIGINT."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            with contextlib.suppress(NotImplementedError):  # on Windows the process just ends
                loop.add_signal_handler(number, self.request_stop, number)

    def request_stop(self, number: int = signal.SIGTERM) -> None:
        """Take no further job; after the grace period, put those that still run back."""
        if self._stopping.is_set():
            log.warning("second signal: terminated immediately, running jobs are run again later")
            logging.shutdown()
            # killed by the signal itself, so that the exit status tells which one it was
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
            return
        self._stopping.set()
        calls = (engine.parse_call(job).function for job, _ in self._running.values())
        names = ", ".join(sorted(calls)) or "none"
        log.info("worker stopping, grace %g s, running jobs: %s", self._options.grace, names)
        if self._queue is not None:
            self._queue.shutdown.set()
        self._start_background_task(self._mark_running_jobs_stopped())
        asyncio.get_running_loop().call_later(self._options.grace, self._released.set)

    async def _work_until_stopped(self) -> None:
        pause = 1.0
        while not self._stopping.is_set():
            begun = perf_counter()
            try:
                await self._connect_and_run_queue()
            except _AWAY as error:
                if self._stopping.is_set():
                    return  # PgQueuer fails to hand a connection back that was lost before
                if perf_counter() - begun > LONGEST_PAUSE:
                    pause = 1.0
                reason = f"{type(error).__name__}: {error}".removesuffix(": ")
                log.warning("no connection to the queue, again in %g s: %s", pause, reason)
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(self._stopping.wait(), pause)
                pause = min(pause * 2, LONGEST_PAUSE)
            else:
                if self._options.drain:
                    return

    async def _connect_and_run_queue(self) -> None:
        pruning: asyncio.Future[None] | None = None
        pool: Any = await cast("Any", asyncpg).create_pool(
            **connect_arguments_of(engine.ALIAS), min_size=2, max_size=4, command_timeout=60
        )
        try:
            driver = AsyncpgPoolDriver(pool)
            self._claims = claims = ClaimQueries(driver)
            claims.init_state(_AWAY, self._stopping, drains=self._options.drain)
            self._queue = queue = PgQueuer(driver, queries=claims)
            await self._verify_and_register_queue(queue)
            if self._stopping.is_set():
                return
            options = self._options
            pruning = asyncio.ensure_future(claims.prune_log_hourly(here.queue, options.log_days))
            # queue.run looks after schedules as well, which cost queries of their own
            run = queue.run if self._schedules else queue.qm.run
            await run(
                dequeue_timeout=timedelta(seconds=min(options.lost_after / 3, 30)),
                batch_size=max(1, min(options.concurrency // 2, 10)),
                mode=QueueExecutionMode("drain" if options.drain else "continuous"),
                # PgQueuer wants at least twice the batch size, also where the seats let one job run
                max_concurrent_tasks=max(options.concurrency, 2),
                shutdown_on_listener_failure=True,
                heartbeat_timeout=timedelta(seconds=options.lost_after),
            )
        finally:
            self._queue = None
            if pruning is not None:
                pruning.cancel()
            with contextlib.suppress(Exception):
                # close() waits for connections in use, which a server that is gone never answers
                await asyncio.wait_for(pool.close(), 2)
            pool.terminate()

    async def _verify_and_register_queue(self, queue: PgQueuer) -> None:
        try:
            await queue.qm.verify_structure()
        except RuntimeError as error:
            failure = ConfigurationError(f"{engine.NO_TABLES} ({error})")
        else:
            failure = None
        if failure is not None:
            raise failure
        queue.qm.register_executor(here.queue, _Executor(_PARAMETERS, self.execute_job))
        for name, count in (await engine.count_waiting_in_other_queues()).items():
            log.warning(
                "%d jobs wait in queue %s, which this worker (%s) does not take; its name is that"
                " of the settings name and environment, and of development with --dev",
                *(count, name, here.queue),
            )
        for schedule in self._schedules:
            digest = sha256(f"{here.queue} {schedule.name}".encode()).hexdigest()
            name = f"{schedule.call.function} {digest[:12]}"
            queue.schedule(name, schedule.cron)(partial(_enqueue_scheduled, schedule, digest))

    # -- one job ----------------------------------------------------------------------------------

    async def execute_job(self, job: Job) -> None:
        """Run a job that was claimed.

        Raises:
            RetryRequested: it is to be run again.
            JobFailed: it has failed for good.
        """
        claims = self._claims
        assert claims is not None  # noqa: S101 - jobs run while a queue is connected
        starts = JobStarts.from_job(job)
        claims.held.add(job.id)
        try:
            # a suspect runs alone: what it does to its worker, it does to no other job
            async with self._acquire_slots(
                self._options.concurrency if starts.was_lost_with_worker else 1
            ):
                await self._run_claimed_job(job, starts, claims)
        finally:
            claims.held.discard(job.id)
            if starts.was_lost_with_worker:
                claims.resume_claiming()

    @contextlib.asynccontextmanager
    async def _acquire_slots(self, count: int) -> AsyncGenerator[None]:
        taken = 0
        try:
            # two suspects could take half of the seats each and wait for ever: Claims hands out one
            for _ in range(count):
                await self._seats.acquire()
                taken += 1
            yield
        finally:
            for _ in range(taken):
                self._seats.release()

    async def _run_claimed_job(self, job: Job, starts: JobStarts, claims: ClaimQueries) -> None:
        if self._stopping.is_set():
            raise await self._prepare_requeue(
                job, starts, claims, "the worker ended before the job began"
            )
        try:
            call = engine.parse_call(job)
        except ValueError as error:
            log.error("job %d cannot be read, kept as failed: %s", job.id, error)
            raise JobFailed(str(error)) from error
        here.set_request_id(call.request_id)
        self._fail_if_lost_too_often(job, starts, call.function)
        alone = starts.was_lost_with_worker or self._options.concurrency == 1
        try:
            await claims.save_starts_with_retry(job, starts.with_start(job, alone=alone))
        except _AWAY as error:
            raise RetryRequested(reason="the database was away before the job began") from error
        start = perf_counter()
        # a task of its own: the grace period ends it, while this one records the outcome
        task = asyncio.ensure_future(running.arun(call, self._in_thread))
        self._running[task] = (job, starts)
        try:
            await self._wait_or_cancel_job(task)
        except JobFailed as error:
            self._raise_failure_or_retry(
                starts.compute_attempt_number(job), job, call, start, error=error
            )
        except asyncio.CancelledError:
            self.put_back += 1
            log_outcome(call, "unfinished, put back", start, level=logging.WARNING)
            reason = "the worker ended while the job ran"
            raise await self._prepare_requeue(job, starts, claims, reason) from None
        finally:
            del self._running[task]
        attempt = starts.compute_attempt_number(job)
        log_outcome(call, f"done at attempt {attempt}" if attempt > 1 else "done", start)

    async def _prepare_requeue(
        self, job: Job, starts: JobStarts, claims: ClaimQueries, reason: str
    ) -> RetryRequested:
        await asyncio.gather(*self._apart, return_exceptions=True)  # the note of the stop is older
        with contextlib.suppress(*_AWAY):  # then the attempt is charged
            await claims.save_starts_with_retry(job, starts.with_uncharged_attempt())
        return RetryRequested(reason=reason)

    async def _mark_running_jobs_stopped(self) -> None:
        """Write that running jobs are not lost, whatever ends this process before they end."""
        for job, starts in list(self._running.values()):
            if self._claims is not None:
                with contextlib.suppress(*_AWAY):
                    await self._claims.save_starts_with_retry(job, starts.with_stopped_worker())

    async def _wait_or_cancel_job(self, task: asyncio.Task[None]) -> None:
        end = asyncio.ensure_future(self._released.wait())
        try:
            await asyncio.wait({task, end}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                task.cancel()
                # a plain function in its thread cannot be cancelled, and code may ignore it
                await asyncio.wait({task}, timeout=CANCEL_TIMEOUT)
            if not task.done():
                raise asyncio.CancelledError
            # it may have ended just as it was cancelled: then its own outcome counts
            task.result()
        finally:
            end.cancel()

    def _raise_failure_or_retry(
        self, attempt: int, job: Job, call: engine.Call, start: float, *, error: JobFailed
    ) -> None:
        retries = find_retries(call.function) or self._options.retries
        most = retries.attempts
        if attempt >= most:
            outcome = f"failed at attempt {attempt} of {most}, kept as job {job.id}"
            log_outcome(call, outcome, start, error=error)
            raise error
        delay = retries.compute_delay(attempt)
        outcome = f"failed at attempt {attempt} of {most} ({error}), again in {delay:g} s"
        log_outcome(call, outcome, start, level=logging.WARNING)
        self._schedule_queue_notification(delay + WAKE_MARGIN)
        raise RetryRequested(timedelta(seconds=delay), str(error)) from error

    def _schedule_queue_notification(self, seconds: float) -> None:
        """Notify the workers of the queue then: PgQueuer does not when a job becomes due."""

        def wake_workers() -> None:
            if self._queue is not None:
                self._start_background_task(_notify_workers(self._queue))

        asyncio.get_running_loop().call_later(seconds, wake_workers)

    def _start_background_task(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(work)
        self._apart.add(task)
        task.add_done_callback(self._apart.discard)

    def _fail_if_lost_too_often(self, job: Job, starts: JobStarts, function: str) -> None:
        """Fail a job that ends its workers: alone at last, so that it is no neighbour's doing."""
        most = engine.parse_attempts(job) or self._options.retries.attempts
        if starts.losses >= min(most, MOST_LOSSES) and starts.alone:
            text = f"its worker was lost {starts.losses} times while it ran"
            log.error("JOB %s failed, %s, kept as job %d", function, text, job.id)
            raise JobFailed(text)


async def _notify_workers(queue: PgQueuer) -> None:
    event = TableChangedEvent(
        channel=queue.channel,
        sent_at=datetime.now(UTC),
        type="table_changed_event",
        operation="update",
        table=queue.qm.queries.qbe.settings.queue_table,
    )
    with contextlib.suppress(*_AWAY):  # the queue is looked at now and then without it
        await queue.connection.notify(queue.channel, event.model_dump_json())


async def _enqueue_scheduled(schedule: Schedule, deduplication_key: str, _: object) -> None:
    await engine.ainsert_job(schedule.call, once=deduplication_key)


@dataclass
class _Executor(AbstractEntrypointExecutor):
    """Hands every job of the queue to a worker."""

    run: Any

    async def execute(self, job: Job, context: Context) -> None:
        made: Exception
        try:
            await self.run(job)
            return
        except RetryRequested as retry:
            made, source = RetryRequested(retry.delay, retry.reason), retry.__cause__
        except JobFailed as error:
            made, source = JobFailed(str(error)), error
        except Exception as error:
            made, source = JobFailed(describe_error(error)), error
        # outside of the handlers, which would leave what was raised in the context
        raise add_traceback_note(made, source)


async def _raise_not_implemented(job: Job) -> None:
    raise NotImplementedError(job)


_PARAMETERS = EntrypointExecutorParameters(
    concurrency_limit=0, func=_raise_not_implemented, on_failure="hold"
)


def forward_pgqueuer_log() -> None:
    """Write the warnings of PgQueuer where the lines of jobs go; failed jobs have a line there."""
    theirs = logging.getLogger("pgqueuer")
    theirs.setLevel(logging.WARNING)
    theirs.addFilter(lambda record: "entrypoint/job-id" not in str(record.msg))
    for handler in logging.getLogger("treefold").handlers:
        theirs.addHandler(handler)
