"""Limits of clients that do not read their responses: the third wait that a server must bound.

A response that the kernel does not take waits in the transport. One timer of the process looks at
these connections; a connection without waiting bytes, and a request that is answered at once, costs
nothing. What a connection does with its requests is in `connection_timeouts`.
"""

from __future__ import annotations

import asyncio
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar

from uvicorn.protocols.http.flow_control import FlowControl

from treefold_logging import get_logger
from treefold_server._options import ServerOptions

if sys.platform == "linux":
    import fcntl
    import termios

if TYPE_CHECKING:
    from treefold_server._connection_timeouts import ConnectionTimeouts

_TICKS = 12
"""Parts of `send_timeout` after each of which the progress of the clients is noted."""


class ReaderFlow(FlowControl):
    """Flow control that counts the requests which wait only for their client to read."""

    blocked: ClassVar[int] = 0
    """How many of the server's tasks wait in `drain`: they hold no place (D-07)."""

    async def drain(self) -> None:
        """Wait until the client has read enough to send more."""
        ReaderFlow.blocked += 1
        try:
            await super().drain()
        finally:
            ReaderFlow.blocked -= 1


class UnreadResponse:
    """Progress of one client while bytes of a response wait for it.

    Args:
        transport: the transport that keeps the bytes.
        now: the time of the event loop.
    """

    __slots__ = ("_ahead", "_noted", "_since", "_ticks", "_transport", "_written")

    def __init__(self, transport: asyncio.Transport, now: float) -> None:
        self._transport = transport
        self._since = now
        self._written = 0
        self._ahead = _count_unacknowledged_bytes(transport)
        self._noted = 0
        self._ticks: deque[int] = deque(maxlen=_TICKS)

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        """Write and count: bytes that were written and do not wait any more have been taken."""
        self._written += len(data)
        self._transport.write(data)

    def is_read(self) -> bool:
        """Return True if no byte waits any more."""
        return not self._transport.get_write_buffer_size()

    def record_progress_and_check_stall(self, minimum_bytes: float) -> bool:
        """Note the progress since the last call.

        Args:
            minimum_bytes: the fewest bytes of all noted parts together.

        Returns:
            True if the client was too slow, or took nothing, in a whole `send_timeout`.
        """
        taken = self._count_acknowledged_bytes()
        self._ticks.append(taken - self._noted)
        self._noted = taken
        total = sum(self._ticks)
        return len(self._ticks) == _TICKS and (not total or total < minimum_bytes)

    def measure_bytes_per_second(self, now: float, options: ServerOptions) -> float:
        """Return bytes a second, to compare connections.

        Counts as if one more part had passed at the least rate: a client that came just now is not
        slower than one that has taken nothing for long.
        """
        part = options.send_timeout / _TICKS
        credit = max(options.send_rate, 1) * part
        return (self._count_acknowledged_bytes() + credit) / (now - self._since + part)

    def _count_acknowledged_bytes(self) -> int:
        return self._ahead + self._written - _count_unacknowledged_bytes(self._transport)


def _count_unacknowledged_bytes(transport: asyncio.Transport) -> int:
    """Return how many bytes the client has not acknowledged, those that the kernel keeps included.

    The kernel takes more only after a third of its buffer is free: without it, a slow client would
    seem to read nothing for minutes.
    """
    kept = transport.get_write_buffer_size()
    connection = transport.get_extra_info("socket")
    if sys.platform != "linux" or connection is None:
        return kept
    try:
        queued = fcntl.ioctl(connection.fileno(), termios.TIOCOUTQ, b"\0" * 4)
    except OSError:  # closed meanwhile
        return kept
    return kept + int.from_bytes(queued, sys.byteorder)


class UnreadResponses:
    """All connections of a process whose clients have not read what was sent.

    Args:
        loop: the event loop of the server.
        options: `send_timeout` and `send_rate`.
    """

    MOST: ClassVar[int] = 1000
    """Most such connections; above it the slowest are closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, options: ServerOptions) -> None:
        self._loop = loop
        self._options = options
        self._open: set[ConnectionTimeouts] = set()
        self._waiting: dict[ConnectionTimeouts, UnreadResponse] = {}
        self._slowest: list[ConnectionTimeouts] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = 0

    def watch_connection(self, connection: ConnectionTimeouts) -> None:
        """Look at a connection until `forget_connection`."""
        self._open.add(connection)
        if self._timer is None:
            self._start_timer()

    def forget_connection(self, connection: ConnectionTimeouts) -> None:
        """Forget a connection: it is closed, or speaks another protocol."""
        self._open.discard(connection)
        if self._waiting.pop(connection, None) is not None:
            connection.set_write_counter(None)

    def measure_and_enforce_limit(self, connection: ConnectionTimeouts) -> None:
        """Measure a connection from now on, because bytes wait; close the slowest above `MOST`."""
        if connection in self._waiting or connection not in self._open:
            return
        unread = UnreadResponse(connection.transport, self._loop.time())
        self._waiting[connection] = unread
        connection.set_write_counter(unread)
        while len(self._waiting) > self.MOST:
            self._abort_connection(self._take_slowest())

    def _take_slowest(self) -> ConnectionTimeouts:
        while self._slowest:
            if (connection := self._slowest.pop()) in self._waiting:
                return connection
        now = self._loop.time()
        paces = {
            c: unread.measure_bytes_per_second(now, self._options)
            for c, unread in self._waiting.items()
        }
        self._slowest = sorted(paces, key=paces.__getitem__, reverse=True)
        return self._slowest.pop()

    def _abort_connection(self, connection: ConnectionTimeouts) -> None:
        self._closed += 1
        self.forget_connection(connection)
        connection.transport.abort()

    def _start_timer(self) -> None:
        part = max(self._options.send_timeout / _TICKS, 0.01)
        self._timer = self._loop.call_later(part, self._close_stalled_connections)

    def _close_stalled_connections(self) -> None:
        self._timer = None
        least = self._options.send_rate * self._options.send_timeout
        for connection, unread in list(self._waiting.items()):
            if unread.is_read():
                del self._waiting[connection]
                connection.set_write_counter(None)
            elif unread.record_progress_and_check_stall(least):
                self._abort_connection(connection)
        for connection in self._open - self._waiting.keys():
            if connection.transport.get_write_buffer_size():
                self.measure_and_enforce_limit(connection)
        self._slowest.clear()
        if self._closed:
            get_logger().warning(
                "closed %d connections: their clients read too slowly, or not at all", self._closed
            )
            self._closed = 0
        if self._open:
            self._start_timer()


def get_or_create_unread_responses(config: Any, loop: asyncio.AbstractEventLoop) -> UnreadResponses:
    """Return the one instance of a server, made at the first call.

    Args:
        config: the configuration of the server, which keeps the instance.
        loop: the event loop of the server.
    """
    if config.unread_responses is None:
        config.unread_responses = UnreadResponses(loop, config.options)
    found: UnreadResponses = config.unread_responses
    return found
