"""Operations that wait for a SQLite connection, run by the worker that is free first.

A waiting operation that went back to its event loop for a connection would cost a switch between
threads, there and back. Instead it waits in the pool's line as a `Job`, and a worker that has one
takes the next from the head of the line until the line is empty. No SQL here.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar

from treefold_orm._base.statement import Operation
from treefold_orm._drivers.base import finish_despite_cancellation
from treefold_orm._drivers.pool import Pool, Waiter

T = TypeVar("T")
AGAIN = 0.05  # seconds after which a cancelled statement is interrupted once more
Execute = Callable[[Any, Operation[Any]], Any]


class RunningJob:
    """The job that a connection's worker runs: a cancelled job is interrupted, and no other."""

    __slots__ = ("_job", "_lock")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._job: Job | None = None

    def set_job(self, job: Job | None) -> None:
        """Note the statement that runs from now on."""
        with self._lock:
            self._job = job

    def interrupt_if_running(self, job: Job, interrupt: Callable[[], None]) -> None:
        """Interrupt the connection if it runs this job."""
        # sqlite3_interrupt() stops all that runs on the connection: without the lock this job might
        # end between the look and the call, and the next one be stopped
        with self._lock:
            if self._job is job:
                interrupt()


class JobQueue:
    """The jobs of one event loop that wait for a connection of one pool.

    One timer looks after their waiting time, and one wake of the loop settles all that have ended
    meanwhile: for each job of its own, both would cost more than a small statement.
    """

    __slots__ = ("_ended", "_timer", "_waiting", "_woken", "loop", "pool")

    def __init__(self, loop: asyncio.AbstractEventLoop, pool: Pool[Any]) -> None:
        self.loop = loop
        self.pool = pool
        self._waiting: deque[Job] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._ended: deque[tuple[Job, Any, BaseException | None]] = deque()
        self._woken = False

    def add_job(self, job: Job, timeout: float) -> None:
        """Put a job at the end; `PoolTimeout` for it after `timeout` seconds."""
        job.deadline = self.loop.time() + timeout
        self._waiting.append(job)
        if self._timer is None or self._timer.when() > job.deadline:
            self._arm_timer(job.deadline)
        self.pool.enqueue_waiter(job)

    def _arm_timer(self, when: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(when, self._expire_jobs)

    def _expire_jobs(self) -> None:
        self._timer = None
        now = self.loop.time()
        for job in self._waiting:
            if job.deadline <= now and job.cancel_wait() and not job.outcome.done():
                job.outcome.set_exception(self.pool.build_timeout_error())
        self._waiting = deque(job for job in self._waiting if not job.taken)
        if self._waiting:
            self._arm_timer(min(job.deadline for job in self._waiting))

    def schedule_job_outcome(self, job: Job, result: Any, error: BaseException | None) -> None:
        """Set the outcome of a job, soon and on its loop; for callers on any thread."""
        self._ended.append((job, result, error))
        if not self._woken:
            self._woken = True
            with contextlib.suppress(RuntimeError):  # the loop is closed: the caller is gone
                self.loop.call_soon_threadsafe(self._deliver_job_outcomes)

    def _deliver_job_outcomes(self) -> None:
        self._woken = False  # before the look: what is added behind it wakes the loop again
        while self._ended:
            job, result, error = self._ended.popleft()
            job.set_outcome(result, error)
        while self._waiting and self._waiting[0].taken:
            self._waiting.popleft()
        if not self._waiting and self._timer is not None:
            self._timer.cancel()
            self._timer = None


# state      holds                                     ended by
# waiting    not `taken`                               a free worker, the timer, a cancellation
# taken      `session` is None                         its worker, which comes to it
# running    `session` is set, `RunningJob` knows it   its last statement, or an interruption
# ended      `ended`, and `outcome` is done
class Job(Waiter[Any]):
    """An operation that waits for a connection, and then for its end.

    `start` runs it on the worker of a connection.
    """

    __slots__ = (
        "_stopped",
        "deadline",
        "ended",
        "line",
        "loop",
        "operation",
        "outcome",
        "session",
        "start",
    )

    def __init__(
        self, operation: Operation[Any], start: Callable[[Any, Job], None], line: JobQueue
    ) -> None:
        self.line = line
        self.loop = line.loop
        self.deadline = 0.0
        self.outcome: asyncio.Future[Any] = self.loop.create_future()
        super().__init__(self.outcome)
        self.operation = operation
        self.start = start
        self.session: Any = None
        self.ended = False
        self._stopped: asyncio.Future[None] | None = None

    def offer_item(self, item: Any) -> bool:
        if self.loop.is_closed() or not self.cancel_wait():
            return False
        self.start(item, self)
        return True

    def report_outcome(self, result: Any, error: BaseException | None) -> None:
        """Hand the outcome to the caller, from any thread."""
        self.line.schedule_job_outcome(self, result, error)

    def set_outcome(self, result: Any, error: BaseException | None) -> None:
        """Note the outcome, on the loop of the caller."""
        self.ended = True
        if self._stopped is not None:
            self._stopped.set_result(None)
        if self.outcome.done():  # cancelled
            return
        if error is None:
            self.outcome.set_result(result)
        else:
            self.outcome.set_exception(error)

    async def interrupt_until_stopped(self) -> None:
        """Wait until the worker is through with this job, and interrupt it again meanwhile."""
        if self.ended:
            return
        self._stopped = self.loop.create_future()
        while not (await asyncio.wait([self._stopped], timeout=AGAIN))[0]:
            if self.session is not None:
                interrupt = self.session.interrupt_outside_transaction
                self.session.running.interrupt_if_running(self, interrupt)


async def run_when_connection_free(
    pool: Pool[Any], operation: Operation[T], start_job: Callable[[Any, Job], None], timeout: float
) -> T:
    """Run an operation once a connection is free; `PoolTimeout` after the waiting time."""
    loop = asyncio.get_running_loop()
    line: JobQueue | None = pool.line
    if line is None or line.loop is not loop:
        line = pool.line = JobQueue(loop, pool)
    job = Job(operation, start_job, line)
    line.add_job(job, timeout)
    try:
        return await job.outcome
    except asyncio.CancelledError:
        if not job.cancel_wait():  # it runs, or is about to
            session = job.session
            if session is not None and session.connection_if_open is not None:
                session.running.interrupt_if_running(job, session.connection_if_open.interrupt)
            await finish_despite_cancellation(job.interrupt_until_stopped())
        raise
    finally:
        del job  # it holds the error whose traceback holds this frame


def run_job_then_waiting_jobs(session: Any, execute: Execute, job: Job | None) -> None:
    """Run a job and those in line behind it, on the worker of `session`."""
    while job is not None:
        job.session = session
        session.running.set_job(job)
        result, error = None, None
        try:
            # cancelled on the way to the worker: no caller waits, and nothing has been sent yet
            if not job.outcome.cancelled():
                result = execute(session.ensure_connection(), job.operation)
        except BaseException as failure:  # noqa: BLE001, RUF100 - handed to the caller as it is
            error = failure
        session.running.set_job(None)
        job.report_outcome(result, error)
        result = error = None  # the traceback of an error holds this frame
        job = session.pool.pop_next_waiter(Job)
