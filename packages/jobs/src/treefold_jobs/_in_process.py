"""Jobs without a queue: in development on SQLite and in tests they run where they are enqueued.

In a transaction they run after its commit, and after a rollback not at all. As in a worker, an
error of the job is logged and does not reach the code that enqueued it; it is not tried again.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections.abc import Coroutine, Generator
from time import perf_counter

from treefold_jobs import _running as running
from treefold_jobs._call import Call
from treefold_jobs._process import here
from treefold_orm import transaction
from treefold_orm.connections import require_blocking_allowed

# In a queue a unique job is left out while one of its name waits or runs. Here nothing tells that
# one which waits was rolled back, so a job looks back when its own transaction has committed:
#
#     enqueue  x 1    x 2    commit: run x 1, x 2 has waited beside it and is left out
#     enqueue  x 1    rolled back,   x 2   commit: run x 2
_steps = itertools.count()
_running_names: set[str] = set()
_last_ends: dict[str, int] = {}
"""The step at which a unique job ended last, by its name."""


def run_now_or_after_commit(call: Call) -> None:
    """Run a job after the commit of the current transaction, or now, blocking this thread.

    Raises:
        SyncCallInAsync: this thread runs an event loop.
    """
    require_blocking_allowed("`await aenqueue()`")
    if call.unique_name in _running_names:
        return
    if transaction.active():
        step = next(_steps)
        transaction.on_commit(lambda: _run_or_get_coroutine(call, step))
    else:
        _run_job_blocking(call)


async def arun_now_or_after_commit(call: Call) -> None:
    """Run a job after the commit of the current transaction, or now."""
    if call.unique_name in _running_names:
        return
    if transaction.active():
        step = next(_steps)
        transaction.on_commit(lambda: _run_or_get_coroutine(call, step))
    else:
        await _arun_job(call)


def _run_or_get_coroutine(call: Call, step: int) -> Coroutine[None, None, None] | None:
    """Run a job in a thread; on a loop, return what its transaction awaits."""
    if _last_ends.get(call.unique_name, -1) > step:
        return None
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
    if here.outbox is not None:
        here.outbox.add(call)
        return
    with _log_outcome_at_end(call):
        run_blocking(call)


async def _arun_job(call: Call) -> None:
    if here.outbox is not None:
        here.outbox.add(call)
        return
    with _log_outcome_at_end(call):
        await running.arun(call)


def run_blocking(call: Call) -> None:
    """Run a job while this thread waits.

    Raises:
        JobFailed: it failed.
    """
    loop = here.loop
    if not running.needs_loop(call):
        running.run(call)
    elif loop is not None and loop.is_running():
        one_more = here.app.threads.allow_one_more() if here.app else contextlib.nullcontext()
        with one_more:  # this thread waits, and the job may need one
            # on the loop of the application, where its clients and connections live
            asyncio.run_coroutine_threadsafe(running.arun(call), loop).result()
    else:
        asyncio.run(running.arun(call))


@contextlib.contextmanager
def _log_outcome_at_end(call: Call) -> Generator[None]:
    start = perf_counter()
    name = call.unique_name
    if name:
        _running_names.add(name)
    try:
        yield
    except running.JobFailed as error:
        running.log_outcome(call, "failed", start, error=error)
    else:
        running.log_outcome(call, "done", start)
    finally:
        if name:
            _running_names.discard(name)
            _last_ends[name] = next(_steps)
