"""An event loop in a thread of its own, for callers that have none.

Whatever a coroutine raises is raised in the caller's thread, `SystemExit` included: on the loop it
would end the loop.
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
        closed: whether that is so.
    """

    def __init__(self) -> None:
        ready: Future[asyncio.AbstractEventLoop] = Future()
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(ready)), name="treefold-test-client", daemon=True
        )
        self._thread.start()
        self._loop = ready.result()
        self.closed = False

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and give its result.

        Raises:
            BaseException: what the coroutine raised.
            RuntimeError: when the loop is closed, or this is its own thread.
        """
        __tracebackhide__ = True
        if self.closed or threading.current_thread() is self._thread:
            work.close()
            raise RuntimeError(
                "The client is closed; make another one"
                if self.closed
                else "The application calls the TestClient that serves it; use AsyncTestClient"
            )
        future = asyncio.run_coroutine_threadsafe(_outcome(work), self._loop)
        try:
            result, error = future.result()
        except BaseException:  # somebody at the terminal wants the test to end
            future.cancel()
            raise
        if error is not None:
            try:
                raise error
            finally:
                del error  # it holds this frame, and this frame should not hold it
        return result  # pyright: ignore[reportReturnType] - there is a result where no error is

    def close(self) -> None:
        """End the loop and its thread."""
        if not self.closed:
            self.closed = True
            self._loop.call_soon_threadsafe(self._stop.set)
            self._thread.join()

    async def _serve(self, ready: Future[asyncio.AbstractEventLoop]) -> None:
        self._stop = asyncio.Event()
        ready.set_result(asyncio.get_running_loop())
        await self._stop.wait()


async def _outcome(work: Coroutine[Any, Any, T]) -> tuple[T | None, BaseException | None]:
    try:
        return await work, None
    except BaseException as error:
        return None, error
