"""uvicorn's h11 protocol with the time limits and bounds that a public server needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from treefold_server._connection_timeouts import (
    EXTENSION_BYTES,
    FRAMING_BYTES,
    HEAD_BYTES,
    UNREADABLE,
    ConnectionTimeouts,
)
from treefold_server._overload import choose_app_or_503


class HardenedH11Protocol(H11Protocol):
    """h11 protocol that limits every wait and delivers its response before it closes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        # Not for uvicorn: it would count idle connections and sockets too, and answer a 503 without
        # a request id. `choose_app_or_503` counts requests only.
        self._max_requests, self.limit_concurrency = self.limit_concurrency, None
        self._timeouts = ConnectionTimeouts(self)
        self.conn = self._connection = _BoundedH11Connection(h11.SERVER, HEAD_BYTES)
        self._connection.refuse = self._timeouts.refuse_request

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time limits of the connection."""
        super().connection_made(self._timeouts.start_and_guard_transport(transport))
        self.flow = self._timeouts.make_flow_control()

    def pause_writing(self) -> None:
        """Stop the application, and measure how fast the client reads."""
        super().pause_writing()
        self._timeouts.on_write_paused()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limits of the connection."""
        super().connection_lost(exc)
        self._connection.refuse = None
        self._timeouts.stop_watching()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and restart the timer for the expected data."""
        if not self._timeouts.must_discard(data):
            self.app = choose_app_or_503(self, self._max_requests)
            super().data_received(data)
            self._timeouts.on_data_parsed(len(data))

    def _should_upgrade(self) -> bool:
        """Return True for a WebSocket handshake; HTTP/1.0 has none (RFC 9110, 7.8)."""
        return super()._should_upgrade() and self.scope["http_version"] == "1.1"

    def _unsupported_upgrade_warning(self) -> None:
        """Log nothing: the request is served as if it had no `Upgrade`."""

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Stop the time limits, and hand the connection to the WebSocket protocol."""
        self._connection.refuse = None
        self._timeouts.stop_watching()
        super().handle_websocket_upgrade(event)


class _BoundedH11Connection(h11.Connection):
    """h11 connection that bounds the chunk extensions of a body (RFC 9112, 7.1.1).

    What is no request is refused here: uvicorn would write its 400 into a response that has begun.

    Attributes:
        refuse: refuses with a status and a message for the log; None once the connection is lost.
    """

    refuse: Callable[[int, str], None] | None = None

    def __init__(self, our_role: Any, max_incomplete_event_size: int) -> None:
        super().__init__(our_role, max_incomplete_event_size)
        self._extensions = 0

    def next_event(self) -> Any:
        before = len(self._receive_buffer)
        try:
            event = super().next_event()
        except h11.RemoteProtocolError:
            event = None
        kind = type(event)
        if kind is h11.Data or kind is h11.EndOfMessage:
            # The event is the content of one chunk, and h11 drops the rest. The second chunk of
            #     5\r\nhello\r\n5;ext=xxxxxxxxxxxxxxx\r\nworld\r\n
            # takes 30 bytes: the line end of the first, the size 5, an extension of 20, a line end,
            # and "world". Its own line end comes with the next event. 30 - FRAMING_BYTES - 5 counts
            # 13 of the 20: FRAMING_BYTES has room for a size that is padded to eight digits.
            taken = before - len(self._receive_buffer) - FRAMING_BYTES
            if taken > 0:
                taken -= len(event.data) if isinstance(event, h11.Data) else 0
                self._extensions += max(0, taken)
        elif kind is h11.Request:
            self._extensions = 0
        if event is None or self._extensions > EXTENSION_BYTES:
            if self.refuse is not None:
                self.refuse(400, UNREADABLE)
            return h11.NEED_DATA
        return event
