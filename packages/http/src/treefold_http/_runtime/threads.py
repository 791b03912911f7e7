"""Worker threads for plain functions: sync handlers, sync dependencies, blocking iterators, disks.

A separate queue instead of the loop's executor: one call costs 16 us of CPU, `run_in_executor` 25.
Threads start when work waits and no thread is idle, up to the limit, and end with `shutdown`. Calls
run in the context of the caller, so logs in a thread carry the request id (S-92).

Threads for the disk are apart from those of sync handlers (R-25), one small set for the process:
handlers that block all their threads must not stop downloads, static files or uploads, and a slow
disk must not stop handlers. All code that opens, reads, writes or looks up a file runs there.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

LIMIT = 40
"""Threads of one application, which mostly wait: for a file, or for a database."""


@dataclass(slots=True, eq=False)
class _Job:
    """One call for a worker thread, with the future of its result in the calling loop."""

    call: Callable[[], Any]
    future: asyncio.Future[Any]
    loop: asyncio.AbstractEventLoop
    context: Context = field(default_factory=copy_context)

    def run(self) -> tuple[Any, BaseException | None]:
        """Make the call; return its result and its exception."""
        try:
            return self.context.run(self.call), None
        except BaseException as raised:  # re-raised in the caller
            return None, raised

    def deliver_outcome(self, result: Any, error: BaseException | None) -> None:
        """Pass the outcome to the calling loop."""
        try:
            self.loop.call_soon_threadsafe(self._resolve_future, result, error)
        except RuntimeError:
            return  # the loop was closed while the call ran

    def _resolve_future(self, result: Any, error: BaseException | None) -> None:
        if self.future.cancelled():
            return
        if error is None:
            self.future.set_result(result)
        elif isinstance(error, GeneratorExit):  # a future would close all waiting coroutines
            self.future.set_result(_Raised(error))
        # a future refuses it: it would end the coroutine that awaits, as if by `return`
        elif isinstance(error, StopIteration):
            error = RuntimeError("A sync handler or dependency raised StopIteration")
            self.future.set_exception(error)
        else:
            self.future.set_exception(error)


@dataclass(slots=True, eq=False)
class _Raised:
    """An exception that a future cannot carry."""

    error: BaseException


class WorkerThreads:
    """Run plain functions beside the event loop, at most `limit` at a time."""

    def __init__(self, limit: int = LIMIT) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._crew = _Crew()

    async def run(self, function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call a function in a worker thread; return its result or raise its exception.

        A cancelled caller stops waiting; the function itself runs to its end.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        call = (lambda: function(*args, **kwargs)) if args or kwargs else function
        job = _Job(call, future, loop)
        with self._lock:
            crew = self._crew
            crew.busy += 1
            # only where every thread has a call: an idle one takes this job from the queue
            if crew.busy > crew.size < self.limit:
                crew.size += 1
                name = f"treefold-worker-{crew.size}"
                threading.Thread(
                    target=self._run_jobs, args=(crew,), name=name, daemon=True
                ).start()
        crew.queue.put(job)
        result = await future
        if type(result) is _Raised:
            raise result.error
        return result

    @contextmanager
    def allow_one_more(self) -> Generator[None]:
        """Raise the limit for a block in which one of these threads waits for the event loop.

        The code on the loop may call plain functions in these threads, and would wait for ever
        where all of them wait for it.
        """
        with self._lock:
            self.limit += 1
        try:
            yield
        finally:
            with self._lock:
                self.limit -= 1

    def shutdown(self) -> None:
        """End every thread after the queued work; new work starts new threads."""
        with self._lock:
            crew, self._crew = self._crew, _Crew()
        for _ in range(crew.size):
            crew.queue.put(None)

    def _run_jobs(self, crew: _Crew) -> None:
        while (job := crew.queue.get()) is not None:
            outcome = job.run()
            with self._lock:  # before the caller resumes: its next call must see an idle thread
                crew.busy -= 1
            job.deliver_outcome(*outcome)
            # Drop the references: an idle thread must not keep a request alive.
            del job, outcome


@dataclass(slots=True, eq=False)
class _Crew:
    """The threads between two shutdowns, and their queue."""

    queue: SimpleQueue[_Job | None] = field(default_factory=SimpleQueue[_Job | None])
    size: int = 0
    busy: int = 0


DISK_LIMIT = 16
"""More calls at a time do not make a disk faster."""

_threads: WorkerThreads


def _reset_disk_threads() -> None:
    global _threads  # one set for the process, a new one after a fork: threads do not survive it
    _threads = WorkerThreads(limit=DISK_LIMIT)


_reset_disk_threads()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_disk_threads)


async def run_in_disk_thread(function: Callable[P, R], /, *args: P.args, **kwargs: P.kwargs) -> R:
    """Call a function that waits for the disk; return its result or raise its exception.

    A cancelled caller stops waiting; the function itself runs to its end.
    """
    return await _threads.run(function, *args, **kwargs)


def release_disk_threads() -> None:
    """End the threads after the queued work; later work starts new ones."""
    _threads.shutdown()
