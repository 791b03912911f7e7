"""An event loop in its own thread, for callers without one.

Exceptions of a coroutine are raised in the caller's thread, `SystemExit` included, which would
otherwise end the loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs coroutines of other threads until it is closed.

    Attributes:
        closed: True once it is closed.
    """

    def __init__(self) -> None:
        ready: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._run_until_stopped(ready)),
            name="treefold-test-client",
            daemon=True,
        )
        self._thread.start()
        self._loop = ready.result()
        self.closed = False

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and return its result.

        Raises:
            BaseException: raised by the coroutine.
            RuntimeError: when the loop is closed, or this is its own thread.
        """
        __tracebackhide__ = True
        if self.closed or threading.current_thread() is self._thread:
            coroutine.close()
            if self.closed:
                raise RuntimeError("The client is closed; create another one")
            message = "The application calls the TestClient that serves it; use AsyncTestClient"
            raise RuntimeError(message)
        future = asyncio.run_coroutine_threadsafe(_capture_outcome(coroutine), self._loop)
        try:
            result, error = future.result()
        except BaseException:  # such as KeyboardInterrupt of the user
            future.cancel()
            raise
        if error is not None:
            try:
                raise error
            finally:
                del error  # breaks the reference cycle of exception and frame
        return result  # pyright: ignore[reportReturnType] - there is a result where no error is

    def close(self) -> None:
        """End the loop and its thread."""
        if not self.closed:
            self.closed = True
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    async def _run_until_stopped(self, ready: Future[asyncio.AbstractEventLoop]) -> None:
        self._stop = asyncio.Event()
        ready.set_result(asyncio.get_running_loop())
        await self._stop.wait()


async def _capture_outcome(
    coroutine: Coroutine[Any, Any, T],
) -> tuple[T | None, BaseException | None]:
    try:
        return await coroutine, None
    except BaseException as error:
        return None, error
