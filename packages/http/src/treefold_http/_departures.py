"""Watching for clients that leave before their stream has ended, at next to no cost for short ones.

A task that waits for a client costs as much as sixteen chunks, and most streams are over before
anybody could have left. So one timer for all streams of an application begins the watch of those
that are still there when it fires. What is sent is the business of `_streams`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from treefold_http._request import Request

Sender: TypeAlias = "asyncio.Task[Any]"
"""The task of a request, in which its stream is sent."""

TURN = 128
"""Messages of one stream or socket after which others have their turn.

Many a server takes everything at once when the client has left. Where what produces the messages
does not wait either, nothing would, and nobody could say that it is over.
"""

_BRIEF = 0.01
"""Seconds until a stream is watched."""


class Departures:
    """The streams of an application, and which of them are to end because nobody reads on.

    Attributes:
        over: the senders that were cancelled from here, and whether because the client left.
    """

    __slots__ = ("_loop", "_unwatched", "_watchers", "over")

    def __init__(self) -> None:
        self.over: dict[Sender, bool] = {}
        self._unwatched: dict[Sender, tuple[Request, asyncio.Event | None]] = {}
        self._watchers: dict[Sender, list[asyncio.Task[None]]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def add(self, sender: Sender, request: Request, stopping: asyncio.Event | None) -> None:
        """Have a stream cancelled when its client leaves, or when `stopping` is set.

        The sender itself says so, and says `remove` when it is done.
        """
        self._unwatched[sender] = request, stopping
        loop = asyncio.get_running_loop()
        if self._loop is not loop:  # no timer runs, or one of a loop that ended before it fired
            self._loop = loop
            loop.call_later(_BRIEF, self._watch)

    def remove(self, sender: Sender) -> bool | None:
        """Forget a stream that is over; give what `over` says of it, None where nothing."""
        if self._unwatched.pop(sender, None) is None:
            for watcher in self._watchers.pop(sender):
                watcher.cancel()
        return self.over.pop(sender, None) if self.over else None

    def _watch(self) -> None:
        unwatched, self._unwatched, self._loop = self._unwatched, {}, None
        for sender, (request, stopping) in unwatched.items():
            ends = [self._until(request.reader.wait_for_disconnect, sender, left=True)]
            if stopping is not None:
                ends.append(self._until(stopping.wait, sender, left=False))
            self._watchers[sender] = [asyncio.create_task(end) for end in ends]

    async def _until(
        self, cause: Callable[[], Awaitable[object]], sender: Sender, *, left: bool
    ) -> None:
        await cause()  # begun here: a watcher may be cancelled before its first step
        if sender not in self.over:
            self.over[sender] = left
            sender.cancel()
