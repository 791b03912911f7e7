"""The commands `treefold worker` and `treefold jobs list`, `retry` and `discard`.

Found by entry points of the group `treefold.commands`: the command line has read the settings and
imported the models when one of these is called.
"""

from __future__ import annotations

import asyncio
import functools
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Iterable
from typing import Any, ParamSpec, TypeVar, cast

from treefold_jobs import _engine as engine
from treefold_jobs._process import Application, here
from treefold_jobs._running import format_masked_arguments
from treefold_jobs._schedules import load_schedules
from treefold_orm import ORMError, aclose_all

P = ParamSpec("P")
T = TypeVar("T")

FAILURE = 1
"""The exit code of a command that could not do its work."""


def _queue_command(function: Callable[P, int]) -> Callable[P, int]:
    """Make a function a command that needs the project, and whose errors are one line each."""

    @functools.wraps(function)
    def run_reporting_errors(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            engine.require_postgres_database()
            engine.require_pgqueuer()
            return function(*args, **kwargs)
        except ORMError as error:
            print(f"Error: {error}", file=sys.stderr)
            return FAILURE

    cast("Any", run_reporting_errors).needs_project = True
    return run_reporting_errors


@_queue_command
def worker(
    *,
    concurrency: int = 10,
    grace: float = 20.0,
    lost_after: float = 30.0,
    drain: bool = False,
    dev: bool = False,
    app_dir: str = ".",
    app: Application,
) -> int:
    """Run the jobs that the application has enqueued, and its schedules.

    The application is started first, with its startup hooks, and its shutdown hooks run at the end.
    Ends on SIGTERM or Ctrl-C: it takes no further job and waits for those that run.

    Args:
        concurrency: Jobs that run at once.
        grace: Seconds that running jobs have to end.
        lost_after: Seconds without a sign of life after which another worker takes a job.
        drain: End when no job is due; schedules are left out.
        dev: Work beside 'treefold dev': use the names of development in Redis.
        app_dir: The project.
    """
    from treefold_jobs._worker import Options, Worker, forward_pgqueuer_log

    options = Options(
        concurrency=concurrency,
        log_days=app.settings.job_log_days,
        grace=grace,
        lost_after=lost_after,
        drain=drain,
    )
    schedules = load_schedules()
    forward_pgqueuer_log()

    async def run_worker() -> None:
        here.app, here.loop = app, asyncio.get_running_loop()
        working = Worker(options, schedules, in_thread=app.threads.run)
        working.watch_signals()  # before the hooks: a signal ends the worker in order once they ran
        async with app.lifespan():
            # plain functions beyond the limit would wait, though they count as running
            app.threads.limit += concurrency
            await working.run()
        if working.put_back:  # a plain function cannot be stopped, and would be waited for
            # os._exit() flushes nothing
            logging.shutdown()
            os._exit(FAILURE)

    asyncio.run(run_worker())
    return 0


cast("Any", worker).role = "worker"  # of the application, which its hooks read


@_queue_command
def list_jobs(*, limit: int = 20, dev: bool = False, app_dir: str = ".") -> int:
    """Show how many jobs wait, run and have failed, and the failed ones with their errors.

    Args:
        limit: Failed jobs that are shown, the newest first.
        dev: Show the jobs of 'treefold dev'.
        app_dir: The project.
    """

    async def read_job_lines() -> list[str]:
        counts = await engine.count_jobs_by_state()
        names = {"waiting": "queued", "running": "picked", "failed": "failed"}
        lines = [", ".join(f"{counts.get(state, 0)} {name}" for name, state in names.items())]
        elsewhere = (await engine.count_waiting_in_other_queues()).items()
        lines += [f"{count} waiting in queue {name}, of other names" for name, count in elsewhere]
        for job in await engine.list_failed_jobs(limit):
            call = engine.parse_call(job)
            error = await engine.read_last_error(job.id)
            # nothing takes secrets out without the log of an application: the type alone is shown
            error = here.log.scrub(error) if here.log is not None else error.partition(":")[0]
            lines.append(f"{job.id} {call.function}{format_masked_arguments(call)} {error}")
        return lines

    for line in _run_and_close_databases(read_job_lines()):
        print(line)
    return 0


@_queue_command
def retry_jobs(ids: list[int], *, dev: bool = False, app_dir: str = ".") -> int:
    """Put failed jobs back into the queue, with all attempts.

    Args:
        ids: The numbers that 'treefold jobs list' shows.
        dev: Put jobs of 'treefold dev' back.
        app_dir: The project.
    """

    async def requeue_and_list_errors() -> list[str]:
        failed = {int(job.id) for job in await engine.list_failed_jobs(100_000)}
        left = await engine.requeue_failed_jobs(sorted(failed.intersection(ids)))
        again = "another one of its unique name waits or runs"
        return [f"job {one} has not failed" for one in ids if one not in failed] + [
            f"job {one} stays failed: {again}" for one in left
        ]

    return _print_errors(_run_and_close_databases(requeue_and_list_errors()))


@_queue_command
def discard_jobs(ids: list[int], *, dev: bool = False, app_dir: str = ".") -> int:
    """Delete jobs that have failed, or wait.

    Args:
        ids: The numbers that 'treefold jobs list' shows.
        dev: Delete jobs of 'treefold dev'.
        app_dir: The project.
    """
    gone = _run_and_close_databases(engine.discard_jobs(ids))
    return _print_errors(f"no job {one} waits or has failed" for one in ids if one not in gone)


def _print_errors(errors: Iterable[str]) -> int:
    lines = [f"Error: {error}" for error in errors]
    for line in lines:
        print(line, file=sys.stderr)
    return FAILURE if lines else 0


def _run_and_close_databases(work: Coroutine[Any, Any, T]) -> T:
    async def await_and_close_databases() -> T:
        try:
            return await work
        finally:
            await aclose_all()

    return asyncio.run(await_and_close_databases())
