"""The thread of one SQLite connection, and the private names of aiosqlite that it is driven by.

Checked on aiosqlite 0.22.0 and 0.22.1; `tests/test_private_names.py` fails where one of them is
gone. aiosqlite's own methods take several hops between threads for what is one here.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, TypeVar, cast

import aiosqlite

from treefold_orm._base.statement import CoroutineOf
from treefold_orm._drivers.base import finish_despite_cancellation

T = TypeVar("T")

END: object = cast("Any", aiosqlite.core)._STOP_RUNNING_SENTINEL
"""The result of the last function of a worker."""


class Worker:
    """A thread that calls functions one after the other; `connect` opens its connection."""

    __slots__ = ("_worker",)

    def __init__(self, connect: Callable[[], Any]) -> None:
        self._worker: Any = aiosqlite.Connection(connect, 64)
        # a forgotten connection must not keep the interpreter from exiting
        self._worker._thread.daemon = True

    def start_thread(self) -> None:
        """Start the thread."""
        self._worker._thread.start()

    def queue_call(self, function: Callable[[], object], future: Any = None) -> None:
        """Queue a call of a function on the thread, which sets the outcome of `future`, if any."""
        self._worker._tx.put_nowait((future, function))

    def run_function(self, function: Callable[..., T], *args: Any) -> CoroutineOf[T]:
        """Call a function on the thread; return an awaitable."""
        return self._worker._execute(function, *args)

    def set_connection_to_close(self, connection: Any) -> None:
        """Note the open connection that the thread closes at its end; None for none."""
        self._worker._connection = connection

    async def start_and_open_connection(self, open_connection: Callable[[], object]) -> None:
        """Start the thread and wait until `open_connection` has opened the connection on it."""
        # not a task: a loop that ends cancels its tasks, and the worker would answer a closed loop
        opened = asyncio.get_running_loop().create_future()
        self.start_thread()
        self.queue_call(open_connection, opened)
        await finish_despite_cancellation(opened)

    def stop_thread(self, timeout: float) -> None:
        """End the thread from outside of any loop, closing its connection there."""
        worker = self._worker
        if worker._thread.ident is None:
            return  # it was never started

        def close_connection() -> object:
            connection, worker._connection = worker._connection, None
            if connection is not None:
                connection.close()
            return END

        worker._running = False
        self.queue_call(close_connection)
        worker._thread.join(timeout)

    async def close(self) -> None:
        """Close the connection, and wait until the thread has ended."""
        await self._worker.close()
