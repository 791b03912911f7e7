"""Call the imports of a reload in a thread of their own: requests go on if an import blocks.

The thread is a daemon: an import that never ends keeps no process alive.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable
from typing import TypeVar

AT_ONCE = 0.15
"""Seconds for which the event loop waits: most reloads are over, and no request ran meanwhile."""

T = TypeVar("T")


def call_in_thread(call: Callable[[], T], *, at_once: float = AT_ONCE) -> asyncio.Future[T]:
    """Call in a new thread, for which the event loop waits a moment; return the future result.

    Args:
        call: raises nothing.
        at_once: seconds for which the loop waits.
    """
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    results: list[T] = []
    ended = threading.Event()

    def resolve_future() -> None:
        if not future.done():
            future.set_result(results[0])

    def run() -> None:
        asyncio.set_event_loop(loop)  # as at boot, modules may ask for a loop that does not run yet
        results.append(call())
        ended.set()
        with contextlib.suppress(RuntimeError):  # the server has ended meanwhile
            loop.call_soon_threadsafe(resolve_future)

    threading.Thread(target=run, name="treefold-reload", daemon=True).start()
    if ended.wait(at_once):
        resolve_future()
    return future
