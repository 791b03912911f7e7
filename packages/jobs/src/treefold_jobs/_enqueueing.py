"""`enqueue` and `aenqueue`: a checked call goes into the queue, or where there is none, is run."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, ParamSpec

from treefold_jobs import _engine as engine
from treefold_jobs._call import Call, build_checked_call
from treefold_jobs._in_process import arun_now_or_after_commit, run_now_or_after_commit
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
    call = _build_call(fn, args, kwargs)
    if runs_jobs_in_process():
        run_now_or_after_commit(call)
    else:
        engine.insert_job(call)


async def aenqueue(fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
    """`enqueue` for async code."""
    call = _build_call(fn, args, kwargs)
    if runs_jobs_in_process():
        await arun_now_or_after_commit(call)
    else:
        await engine.ainsert_job(call)


def _build_call(fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
    # a copy: the job may run after the commit, when the caller has changed a list that it gave
    return replace(build_checked_call(fn, args, kwargs), request_id=here.request_id()).copy()


def runs_jobs_in_process() -> bool:
    """Return True if jobs run in this process, False if they are kept.

    Raises:
        ConfigurationError: neither is possible.
    """
    if is_diverted():
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
