"""Jobs without a queue: in development on SQLite and in tests they run where they are enqueued.

In a transaction they run after its commit, and after a rollback not at all. As in a worker, an
error of the job is logged and does not reach the code that enqueued it; it is not tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from time import perf_counter

from treefold_jobs import _running as running
from treefold_jobs._call import Call
from treefold_jobs._process import here
from treefold_orm import transaction
from treefold_orm.connections import require_blocking_allowed


def run_now_or_after_commit(call: Call) -> None:
    """Run a job after the commit of the current transaction, or now, blocking this thread.

    Raises:
        SyncCallInAsync: this thread runs an event loop.
    """
    require_blocking_allowed("`await aenqueue()`")
    if transaction.active():
        transaction.on_commit(lambda: _run_or_get_coroutine(call))
    else:
        _run_job_blocking(call)


async def arun_now_or_after_commit(call: Call) -> None:
    """Run a job after the commit of the current transaction, or now."""
    if transaction.active():
        transaction.on_commit(lambda: _run_or_get_coroutine(call))
    else:
        await _arun_job(call)


def _run_or_get_coroutine(call: Call) -> Coroutine[None, None, None] | None:
    """Run a job in a thread; on a loop, return what its transaction awaits."""
    if _has_running_loop():
        return _arun_job(call)
    _run_job_blocking(call)
    return None


def _has_running_loop() -> bool:
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        return True
    return False


def _run_job_blocking(call: Call) -> None:
    loop = here.loop
    if not running.is_async(call):
        _run_sync_job(call)
    elif loop is not None and loop.is_running():
        # on the loop of the application, where its clients and connections live
        asyncio.run_coroutine_threadsafe(_arun_job(call), loop).result()
    else:
        asyncio.run(_arun_job(call))


async def _arun_job(call: Call) -> None:
    start = perf_counter()
    try:
        await running.arun(call)
    except running.JobFailed as error:
        running.log_outcome(call, "failed", start, error=error)
    else:
        running.log_outcome(call, "done", start)


def _run_sync_job(call: Call) -> None:
    start = perf_counter()
    try:
        running.run(call)
    except running.JobFailed as error:
        running.log_outcome(call, "failed", start, error=error)
    else:
        running.log_outcome(call, "done", start)
