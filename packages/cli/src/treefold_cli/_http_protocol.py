"""uvicorn's httptools protocol with the time limits and bounds that a public server needs.

`_h11_protocol` is the same for the h11 parser, which is used without httptools.
Timers and the closing of a connection are in `_connection_watch`.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from treefold_cli._connection_watch import HEAD_BYTES, Watch
from treefold_cli._overload import app_for


class PatientHttpTools(HttpToolsProtocol):
    """httptools, guarded alike; reads on only when no parsed request waits for its answer.

    uvicorn reads on after each answer; a client that pipelines 50,000 requests costs 117 MB (S-28).
    httptools keeps a head, and the trailers of a body, however long they grow (S-21).
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._watch = Watch(self)
        self._unfinished = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to watch the connection."""
        super().connection_made(self._watch.open(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the watch."""
        super().connection_lost(exc)
        self._watch.end()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and restart the timer for the expected data."""
        if not self._watch.discards(data):
            self.app = app_for(self, self._most)
            self._unfinished += len(data)
            super().data_received(data)
            self._watch.look(len(data))
            if self._unfinished > HEAD_BYTES:
                self._watch.refuse_head()

    def handle_websocket_upgrade(self) -> None:
        """Leave the connection to the WebSocket."""
        self._watch.end()
        super().handle_websocket_upgrade()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a field; httptools leaves the whitespace after its value (RFC 9110, 5.5)."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Take a whole head."""
        self._unfinished = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a piece of a body."""
        self._unfinished = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        self._unfinished = 0
        super().on_message_complete()

    def on_response_complete(self) -> None:
        """Start the next request of the pipeline, and pause while there are more."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
