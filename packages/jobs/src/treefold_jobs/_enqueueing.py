"""`enqueue`, `later` and their async forms: a checked call goes into the queue.

Where there is no queue, in development on SQLite and in tests, the call is run.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ParamSpec

from treefold_jobs import _engine as engine
from treefold_jobs._call import Call, build_checked_call
from treefold_jobs._delivery import AT_ONCE, Delivery
from treefold_jobs._in_process import arun_now_or_after_commit, run_now_or_after_commit
from treefold_jobs._injecting import require_injectable
from treefold_jobs._process import here
from treefold_orm.connections import backend_of, is_diverted

P = ParamSpec("P")


def enqueue(fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
    """Keep a call of a function, which a worker runs later, at least once.

    In a `transaction()` it is kept if that commits, else at once. In a test, and on SQLite with
    `dev=True`, it runs in this process instead, after the commit.

    Args:
        fn: a function of a module, async or plain.
        args: JSON, as `kwargs`.

    Raises:
        TypeError: the function or an argument cannot be kept.
        ConfigurationError: the database is not PostgreSQL, or lacks the tables.
    """
    _enqueue_call(_build_call(fn, args, kwargs, AT_ONCE))


async def aenqueue(fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
    """`enqueue` for async code."""
    await _aenqueue_call(_build_call(fn, args, kwargs, AT_ONCE))


def later(
    fn: Callable[P, Any],
    /,
    *,
    delay: float | timedelta | None = None,
    at: datetime | None = None,
    unique: str | None = None,
) -> Callable[P, None]:
    """Bind the options of a job: `later(send, delay=60, unique="x")(7)` enqueues `send(7)`.

    In a test, and on SQLite with `dev=True`, the job runs without waiting for its time.

    Args:
        fn: as for `enqueue`.
        delay: seconds, or a timedelta, that the job waits at least.
        at: the time before which the job does not run, with a time zone.
        unique: no job is kept while one of this function and this name waits or runs.

    Returns:
        A function with the parameters of `fn`, which enqueues one call.

    Raises:
        TypeError: an option is of another type.
        ValueError: an option has no meaning, such as a delay below 0.
    """
    delivery = Delivery.from_options(delay, at, unique)

    def enqueue_later(*args: P.args, **kwargs: P.kwargs) -> None:
        _enqueue_call(_build_call(fn, args, kwargs, delivery))

    return enqueue_later


def alater(
    fn: Callable[P, Any],
    /,
    *,
    delay: float | timedelta | None = None,
    at: datetime | None = None,
    unique: str | None = None,
) -> Callable[P, Coroutine[Any, Any, None]]:
    """`later` for async code: `await alater(send, delay=60)(7)`."""
    delivery = Delivery.from_options(delay, at, unique)

    async def aenqueue_later(*args: P.args, **kwargs: P.kwargs) -> None:
        await _aenqueue_call(_build_call(fn, args, kwargs, delivery))

    return aenqueue_later


def _enqueue_call(call: Call) -> None:
    if runs_jobs_in_process():
        run_now_or_after_commit(call)
    else:
        engine.insert_job(call)


async def _aenqueue_call(call: Call) -> None:
    if runs_jobs_in_process():
        await arun_now_or_after_commit(call)
    else:
        await engine.ainsert_job(call)


def _build_call(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], delivery: Delivery
) -> Call:
    made = build_checked_call(fn, args, kwargs)
    require_injectable(fn, inspect.signature(fn).bind(*args, **kwargs))
    # a copy: the job may run after the commit, when the caller has changed a list that it gave
    return replace(made, request_id=here.request_id(), delivery=delivery).copy()


def runs_jobs_in_process() -> bool:
    """Return True if jobs run in this process, False if they are kept.

    Raises:
        ConfigurationError: neither is possible.
    """
    if here.outbox is not None or is_diverted():
        return True
    if here.dev and backend_of(engine.ALIAS) == "sqlite":
        return True
    engine.require_postgres_database()
    engine.require_pgqueuer()
    return False


def check_jobs_can_run(root: Path) -> None:
    """Refuse the start of a project that uses jobs and can neither keep nor run them.

    Raises:
        ConfigurationError: the way out is in its text.
    """
    from treefold_jobs._sources import uses_jobs

    if uses_jobs(root) and not runs_jobs_in_process():
        importlib.import_module("pgqueuer.queries")  # 0.3 s that a request would wait for
