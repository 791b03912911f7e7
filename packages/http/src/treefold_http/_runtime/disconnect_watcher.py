"""Detect client disconnects during a stream, at next to no cost for short streams.

A task that waits for a disconnect costs as much as sixteen chunks, and most streams end within
milliseconds. So one timer serves all streams of an application, and starts such tasks only for the
streams that are still open when it fires. `_responses.streams` sends the data.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeAlias

Sender: TypeAlias = "asyncio.Task[Any]"
"""The task of a request, in which its stream is sent."""

YIELD_EVERY = 128
"""Messages of one stream or socket after which its task yields to the event loop.

After a disconnect many servers accept every message at once. If the producer does not wait either,
the task would never yield, and the disconnect could not be delivered.
"""

_BRIEF = 0.01
"""Seconds before a disconnect task is started for a stream."""


class _Reader(Protocol):
    async def wait_for_disconnect(self) -> None: ...


class _Request(Protocol):
    @property
    def reader(self) -> _Reader: ...


class DisconnectWatcher:
    """The open streams of an application; cancels those whose client has disconnected.

    Attributes:
        over: the senders that were cancelled here; True if the client left, False for a shutdown.
    """

    __slots__ = ("_loop", "_unwatched", "_watchers", "over")

    def __init__(self) -> None:
        self.over: dict[Sender, bool] = {}
        self._unwatched: dict[Sender, tuple[_Request, asyncio.Event | None]] = {}
        self._watchers: dict[Sender, list[asyncio.Task[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def watch_sender(
        self, sender: Sender, request: _Request, stopping: asyncio.Event | None
    ) -> None:
        """Cancel the sender when its client disconnects, or when `stopping` is set.

        The sender calls this itself, and `stop_watching_sender` when the stream has ended.
        """
        self._unwatched[sender] = request, stopping
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # no timer runs, or one of a loop that ended before it fired
            self._loop = loop
            loop.call_later(_BRIEF, self._start_watchers)

    def stop_watching_sender(self, sender: Sender) -> bool | None:
        """Forget a stream that has ended; return its entry in `over`, None if there is none."""
        if self._unwatched.pop(sender, None) is None:
            for watcher in self._watchers.pop(sender):
                watcher.cancel()
        return self.over.pop(sender, None) if self.over else None

    def _start_watchers(self) -> None:
        unwatched, self._unwatched, self._loop = self._unwatched, {}, None
        for sender, (request, stopping) in unwatched.items():
            gone = request.reader.wait_for_disconnect
            ends = [self._cancel_sender_after(gone, sender, by_disconnect=True)]
            if stopping is not None:
                ends.append(self._cancel_sender_after(stopping.wait, sender, by_disconnect=False))
            self._watchers[sender] = [asyncio.create_task(end) for end in ends]

    async def _cancel_sender_after(
        self, cause: Callable[[], Awaitable[object]], sender: Sender, *, by_disconnect: bool
    ) -> None:
        await cause()  # called here, as a watcher may be cancelled before its first step
        if sender not in self.over:
            self.over[sender] = by_disconnect
            sender.cancel()
