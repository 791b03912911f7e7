"""The last lines, kept in memory for the docs page of a development server.

Lines are kept only after a call of `keep_tail`: the writer then copies every batch here, outside of
any request. Lines are already masked.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING

from treefold_logging._writer import WRITER, Writer

if TYPE_CHECKING:
    import asyncio

SIZE = 200
"""Most lines that are kept, in all and for each watcher; older ones are dropped."""


class Tail:
    """The last lines of a writer."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=SIZE)
        self._watchers: set[_TailReader] = set()
        self._lock = threading.Lock()

    def take(self, batch: list[str]) -> None:
        """Store the lines of a batch and wake the watchers; thread-safe, never waits."""
        with self._lock:
            self._lines.extend(batch)
            for watcher in self._watchers:
                watcher.add_batch(batch)

    async def follow(self) -> AsyncGenerator[list[str], None]:
        """Yield the stored lines, then each batch as it is written, without end.

        It ends when the generator is closed. A slow reader loses the oldest lines.
        """
        import asyncio  # takes 37 ms; a program without an event loop does not need it

        watcher = _TailReader(asyncio.get_running_loop(), asyncio.Event())
        with self._lock:
            watcher.lines.extend(self._lines)
            self._watchers.add(watcher)
        try:
            while True:
                with self._lock:
                    batch = list(watcher.lines)
                    watcher.lines.clear()
                    watcher.ready.clear()
                yield batch
                await watcher.ready.wait()
        finally:
            with self._lock:
                self._watchers.discard(watcher)


class _TailReader:
    """One reader, in an event loop of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Event) -> None:
        self.lines: deque[str] = deque(maxlen=SIZE)
        self.ready = ready
        self._loop = loop

    def add_batch(self, batch: list[str]) -> None:
        self.lines.extend(batch)
        with suppress(RuntimeError):  # the loop has ended without closing the generator
            self._loop.call_soon_threadsafe(self.ready.set)


_lock = threading.Lock()


def keep_tail(writer: Writer = WRITER) -> Tail:
    """Start to keep the last 200 lines of this process; a second call returns the same tail.

    For development only: lines are masked, but they reveal the requests of other clients.
    """
    with _lock:
        if writer.tail is None:
            writer.tail = Tail()
        return writer.tail
