"""The last lines, kept in memory for those who watch: the docs of a development server.

There is none unless `keep_tail` was called; then every batch that the writer takes to the stream is
copied here, so nothing on the path of a request knows of it. Lines are masked long before.
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
"""Lines that are kept, and that one who watches may be behind; older ones are gone."""


class Tail:
    """The last lines of a writer."""

    def __init__(self) -> None:
        self._lines: deque[str] = deque(maxlen=SIZE)
        self._watchers: set[_Watcher] = set()
        self._lock = threading.Lock()

    def take(self, batch: list[str]) -> None:
        """Keep the lines of a batch and tell those who watch; from any thread, never waits."""
        with self._lock:
            self._lines.extend(batch)
            for watcher in self._watchers:
                watcher.add(batch)

    async def follow(self) -> AsyncGenerator[list[str], None]:
        """Give the lines that there are, then each batch as it is written, without end.

        Closing the generator ends it. One who reads too slowly loses the oldest lines.
        """
        import asyncio  # 37 ms that a program without a loop does not pay

        watcher = _Watcher(asyncio.get_running_loop(), asyncio.Event())
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


class _Watcher:
    """One reader, in an event loop of its own."""

    def __init__(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Event) -> None:
        self.lines: deque[str] = deque(maxlen=SIZE)
        self.ready = ready
        self._loop = loop

    def add(self, batch: list[str]) -> None:
        self.lines.extend(batch)
        with suppress(RuntimeError):  # the loop has ended without closing the generator
            self._loop.call_soon_threadsafe(self.ready.set)


_lock = threading.Lock()


def keep_tail(writer: Writer = WRITER) -> Tail:
    """Begin to keep the last 200 lines of this process; a second call gives the same tail.

    For development: lines are masked, but whoever reads them learns what others ask for.
    """
    with _lock:
        if writer.tail is None:
            writer.tail = Tail()
        return writer.tail
