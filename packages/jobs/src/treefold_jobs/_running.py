"""Running one call: its function is imported and called, and one line is logged.

Whatever the function raises becomes a `JobFailed`, so that no job ends the process it runs in.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
from collections.abc import Awaitable, Callable
from time import perf_counter
from typing import Any, TypeAlias

from treefold_jobs import _outcomes as outcomes
from treefold_jobs._call import Call
from treefold_jobs._injecting import bind_call, plan_injected_values
from treefold_jobs._process import here
from treefold_orm import ORMError

log = logging.getLogger("treefold.jobs")

LONGEST_LINE = 1000
"""Characters of the arguments in a log line."""


InThread: TypeAlias = Callable[..., Awaitable[Any]]


class JobFailed(ORMError):
    """The function of a job raised; its exception is the cause."""


def run(call: Call) -> None:
    """Run a plain function in this thread.

    Raises:
        JobFailed: it failed.
    """
    try:
        call.resolve()(*call.args, **call.kwargs)
    except BaseException as error:
        raise _wrap_error(error) from error


async def arun(call: Call, in_thread: InThread = asyncio.to_thread) -> None:
    """Run a function with its injected parameters: on this loop, or a plain one in a thread.

    Args:
        in_thread: calls a plain function in a thread.

    Raises:
        JobFailed: it failed.
    """
    try:
        function = call.resolve()
        async with bind_call(call, function) as bound:
            if inspect.iscoroutinefunction(function):
                await function(*bound.args, **bound.kwargs)
                return
            outcome, error = await in_thread(_call_and_capture_error, function, bound)
            if error is not None:
                raise error
            if inspect.isawaitable(outcome):
                await outcome
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise  # by the worker, at its end
        raise _wrap_error(error) from error
    except BaseException as error:
        raise _wrap_error(error) from error


def _call_and_capture_error(
    function: Callable[..., Any], call: inspect.BoundArguments
) -> tuple[Any, None] | tuple[None, BaseException]:
    try:
        return function(*call.args, **call.kwargs), None
    except BaseException as error:
        return None, error  # a StopIteration that is raised never reaches a future, which waits on


def needs_loop(call: Call) -> bool:
    """Return True if the function is async or has injected parameters, or cannot be called."""
    with contextlib.suppress(Exception):
        function = call.resolve()
        bound = inspect.signature(function).bind(*call.args, **call.kwargs)
        is_async = inspect.iscoroutinefunction(function)
        return is_async or plan_injected_values(function, bound) is not None
    return True


def _wrap_error(error: BaseException) -> JobFailed:
    return JobFailed(outcomes.describe_error(error))


def log_outcome(
    call: Call,
    outcome: str,
    start: float,
    *,
    level: int = logging.INFO,
    error: JobFailed | None = None,
) -> None:
    """Log the one line of a job: its function, the outcome, its time and its arguments.

    Args:
        start: `perf_counter()` before it ran.
        error: the failure; the level is ERROR, and the traceback follows the line.
    """
    level = level if error is None else logging.ERROR
    took = (perf_counter() - start) * 1000
    line = "JOB %s %s %.2fms%s"
    cause = None if error is None else error.__cause__
    cause = None if cause is None else outcomes.without_long_chain(cause)
    log.log(
        level, line, call.function, outcome, took, format_masked_arguments(call), exc_info=cause
    )


def format_masked_arguments(call: Call) -> str:
    """Return the arguments of a call for the log: by name, masked, in one line of JSON.

    Without the log of an application there is nothing to mask them with, and none is shown.
    """
    if here.log is None:
        return ""
    arguments: dict[str, Any] = {"args": call.args, **call.kwargs}
    with contextlib.suppress(Exception):  # a function that is gone has no names for them
        function: Callable[..., Any] = call.resolve()
        # masking goes by name, and positional arguments have one only here
        arguments = inspect.signature(function).bind(*call.args, **call.kwargs).arguments
    dumped = json.dumps(here.log.mask(dict(arguments)), default=str, ensure_ascii=False)
    text = outcomes.escape_unstorable_and_truncate(dumped)
    return f" {text}" if len(text) <= LONGEST_LINE else f" {text[:LONGEST_LINE]}..."
