"""uvicorn's httptools protocol with the time limits and bounds that a public server needs.

`h11_protocol` is the same for the h11 parser, which is used without httptools.
Timers and the closing of a connection are in `connection_timeouts`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from treefold_cli._server.connection_timeouts import HEAD_BYTES, ConnectionTimeouts
from treefold_cli._server.overload import app_or_503


class HardenedHttpToolsProtocol(HttpToolsProtocol):
    """httptools protocol with limits; reads on only when no parsed request waits for its response.

    uvicorn reads on after each response, and 50,000 pipelined requests cost 117 MB (S-28).
    httptools keeps a head, and the trailers of a body, however long they grow (S-21).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_requests, self.limit_concurrency = self.limit_concurrency, None
        self._timeouts = ConnectionTimeouts(self)
        self._unfinished = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time limits of the connection."""
        super().connection_made(self._timeouts.open(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limits of the connection."""
        super().connection_lost(exc)
        self._timeouts.detach()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and restart the timer for the expected data."""
        if not self._timeouts.discards(data):
            self.app = app_or_503(self, self._max_requests)
            self._unfinished += len(data)
            super().data_received(data)
            self._timeouts.on_data(len(data))
            if self._unfinished > HEAD_BYTES:
                self._timeouts.refuse_head()

    def handle_websocket_upgrade(self) -> None:
        """Stop the time limits, and hand the connection to the WebSocket protocol."""
        self._timeouts.detach()
        super().handle_websocket_upgrade()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a field without the whitespace behind it, which httptools keeps (RFC 9110, 5.5)."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Start the next count of bytes after a complete head."""
        self._unfinished = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Start the next count of bytes at each piece of a body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Start the next count of bytes at the end of a request."""
        self._unfinished = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next pipelined request; pause reading while more of them are queued."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
