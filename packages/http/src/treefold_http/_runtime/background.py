"""Work that outlives its answer: owned by the application, logged, drained when it stops.

Each task runs after the response is sent, in the context of its request, so its log lines carry the
request id. The application keeps a strong reference to every one until it ends (R-19, R-20).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeAlias

from treefold_http._runtime.exit_callbacks import is_outer_cancellation
from treefold_http._runtime.threads import WorkerThreads
from treefold_http._wire.aliases import AnyCallable
from treefold_logging import get_logger, request_id

P = ParamSpec("P")

Call: TypeAlias = Callable[[], Any]


class BackgroundTasks:
    """Calls to run, in the order added, once the answer is sent.

    Attributes:
        calls: the calls; those of a handler are one of those of its middleware.
        handled: the calls of the handler, among those of middleware around it.
    """

    __slots__ = ("_is_dropped", "calls", "handled")

    def __init__(self) -> None:
        self.calls: list[Call | BackgroundTasks] = []
        self.handled: BackgroundTasks | None = None
        self._is_dropped = False

    def add(self, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> None:
        """Add a call of an async or plain function; a plain one runs in a worker thread."""
        if not self._is_dropped:
            self.calls.append(partial(fn, *args, **kwargs))

    def drop(self) -> None:
        """Forget the calls of a handler that failed, and those that its thread may still add."""
        self.calls.clear()
        self._is_dropped = True

    def flatten(self) -> list[Call]:
        """Return all calls in the order added."""
        calls: list[Call] = []
        for call in self.calls:
            calls += call.flatten() if isinstance(call, BackgroundTasks) else [call]
        return calls

    async def __call__(self) -> None:
        raise TypeError("BackgroundTasks is run by the application; return it with the response")


class BackgroundOwner:
    """Starts the background work of all requests and waits for it at the end."""

    def __init__(self, threads: WorkerThreads) -> None:
        self._threads = threads
        self._tasks: dict[asyncio.Task[None], str] = {}

    def start_work(self, work: BackgroundTasks | Call) -> None:
        """Run the work in a task of its own, in the caller's context."""
        calls = work.flatten() if isinstance(work, BackgroundTasks) else [work]
        if not calls:
            return
        task = asyncio.ensure_future(self._run_calls(calls))
        self._tasks[task] = ", ".join(_format_call_name(call) for call in calls)
        task.add_done_callback(lambda done: self._tasks.pop(done, None))

    def list_unfinished_tasks(self) -> set[asyncio.Task[None]]:
        """Return the unfinished tasks."""
        return set(self._tasks)

    async def drain_tasks(self, grace_seconds: float) -> None:
        """Wait for the running tasks; after `grace_seconds`, log and cancel the unfinished ones."""
        if not self._tasks:
            return
        _, late = await asyncio.wait(list(self._tasks), timeout=grace_seconds)
        for task in late:
            get_logger().warning("background task %s unfinished, cancelled", self._tasks.get(task))
            task.cancel()
        if late:
            # bounded: a task may suppress its cancellation, and must not hold up the stop
            await asyncio.wait(late, timeout=1.0)

    async def _run_calls(self, calls: list[Call]) -> None:
        own = request_id.get(None)
        for call in calls:
            try:
                await run_in_loop_or_thread(self._threads, call)
            except BaseException as error:  # the next call still runs
                if is_outer_cancellation(error, own):
                    raise
                name = _format_call_name(call)
                get_logger().error("background task %s failed", name, exc_info=error)


async def run_in_loop_or_thread(threads: WorkerThreads, call: Call) -> Any:
    """Call an async function on the loop, or a plain one in a worker thread; return its result."""
    if is_async(call):
        return await call()
    outcome = await threads.run(call)
    return await outcome if inspect.isawaitable(outcome) else outcome


def is_async(call: AnyCallable) -> bool:
    """Return True if calling the object returns a coroutine; the object is not called."""
    target: Any = call
    while isinstance(target, partial):
        target = target.func
    return inspect.iscoroutinefunction(target) or inspect.iscoroutinefunction(
        getattr(target, "__call__", None)  # noqa: B004 - the method, to see whether it is async
    )


def _format_call_name(call: Any) -> str:
    while isinstance(call, partial):
        call = call.func
    return getattr(call, "__qualname__", type(call).__qualname__)
