"""uvicorn's httptools protocol with the time limits and bounds that a public server needs.

`h11_protocol` is the same for the h11 parser, which is used without httptools.
Timers and the closing of a connection are in `connection_timeouts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from treefold_server._connection_timeouts import (
    EXTENSION_BYTES,
    FRAMING_BYTES,
    HEAD_BYTES,
    UNREADABLE,
    ConnectionTimeouts,
)
from treefold_server._overload import choose_app_or_503

_HEAD_BYTES = 32
"""Bytes of a head besides its target and its fields, and of a chunk that began before."""


class HardenedHttpToolsProtocol(HttpToolsProtocol):
    """httptools protocol with limits; reads on only when no parsed request waits for its response.

    uvicorn reads on after each response, and 50,000 pipelined requests cost 117 MB (S-28).
    httptools keeps a head, and the trailers of a body, however long they grow (S-21). It drops the
    body of a request with `Upgrade`, whose bytes would be the next request (S-20), and knows
    nothing of the size of chunk extensions.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_requests, self.limit_concurrency = self.limit_concurrency, None
        self._timeouts = ConnectionTimeouts(self)
        self._unfinished = self._most_bytes_of_head = 0
        self._is_parsed_again = False
        self._deferred: Callable[[], None] | None = None
        self._heads = self._chunks = self._content = self._extensions = 0

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time limits of the connection."""
        super().connection_made(self._timeouts.start_and_guard_transport(transport))
        self.flow = self._timeouts.make_flow_control()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limits of the connection."""
        super().connection_lost(exc)
        self._deferred = None
        self._timeouts.stop_watching()

    def pause_writing(self) -> None:
        """Stop the application, and measure how fast the client reads."""
        super().pause_writing()
        self._timeouts.on_write_paused()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and restart the timer for the expected data."""
        if self._timeouts.must_discard(data) or self._deferred is not None:
            return
        self.app = choose_app_or_503(self, self._max_requests)
        self._unfinished += len(data)
        self._most_bytes_of_head += len(data)
        self._heads = self._content = 0
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as stop:
            self._handle_upgrade_request(memoryview(data)[stop.args[0] :])
        except httptools.HttpParserError:
            self._refuse_after_earlier_responses(400, UNREADABLE)
        if self._unfinished == 0:
            # what ended in these bytes may be followed by the first part of a head
            self._most_bytes_of_head = len(data)
        if self._deferred is None:
            self._timeouts.on_data_parsed(len(data))
        if self._unfinished > HEAD_BYTES:
            self._refuse_after_earlier_responses(
                431, f"refused a head of more than {HEAD_BYTES} bytes with 431"
            )
        if self._chunks:
            self._limit_chunk_extensions(len(data))

    def _handle_upgrade_request(self, bytes_after_head: memoryview) -> None:
        """Upgrade to a WebSocket, or serve a request with another `Upgrade` as if it had none.

        httptools ends such a request behind its head (RFC 9110, 7.8, lets a server ignore the
        field). The head is parsed again without the field, then what follows it.
        """
        while True:
            if self._should_upgrade():
                self._run_after_responses(self.handle_websocket_upgrade)
                return
            head = self._build_head_without_upgrade()
            self.parser = httptools.HttpRequestParser(self)
            with suppress(AttributeError):  # httptools before 0.6.3
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self._is_parsed_again = False
            try:
                self.parser.feed_data(head)
                self.parser.feed_data(bytes_after_head)
            except httptools.HttpParserUpgrade as stop:
                bytes_after_head = bytes_after_head[stop.args[0] :]
            except httptools.HttpParserError:
                self._refuse_after_earlier_responses(400, UNREADABLE)
                return
            else:
                return

    def _build_head_without_upgrade(self) -> bytes:
        parser = self.parser
        line = (parser.get_method(), b" ", self.url, b" HTTP/", parser.get_http_version().encode())
        fields = [
            part
            for name, value in self.headers
            if name != b"upgrade"
            for part in (b"\r\n", name, b": ", value)
        ]
        return b"".join([*line, *fields, b"\r\n\r\n"])

    def _should_upgrade(self) -> bool:
        """Return True for a WebSocket handshake; HTTP/1.0 has none (RFC 9110, 7.8)."""
        return super()._should_upgrade() and self.parser.get_http_version() == "1.1"

    def _refuse_after_earlier_responses(self, status: int, message: str) -> None:
        """Answer what cannot be served, after the responses of the requests before it."""
        newest: Any = self.cycle
        if newest is not None and newest.more_body and not newest.response_complete:
            if not self.pipeline or self.pipeline[0][0] is not newest:
                self._timeouts.refuse_request(
                    status, message
                )  # as the response of the request in progress
                return
            self.pipeline.popleft()
            newest.more_body = False

        def refuse() -> None:
            self.cycle = None  # type: ignore[assignment]  # its request is not served
            self._timeouts.refuse_request(status, message)

        self._run_after_responses(refuse)

    def _run_after_responses(self, action: Callable[[], None]) -> None:
        """Call a function that ends HTTP here, once all requests before it have their response."""
        newest: Any = self.cycle
        if newest is None or (newest.response_complete and not self.pipeline):
            action()
        elif self._deferred is None:
            self._deferred = action
            self._timeouts.cancel_timer()
            self.flow.pause_reading()

    def handle_websocket_upgrade(self) -> None:
        """Stop the time limits, and hand the connection to the WebSocket protocol."""
        self._timeouts.stop_watching()
        super().handle_websocket_upgrade()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a field without the whitespace behind it, which httptools keeps (RFC 9110, 5.5)."""
        super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        """Start the next count of bytes after a complete head."""
        # the application then need not add up the sizes of the fields
        scope: Any = self.scope
        scope["treefold.head_size"] = self._most_bytes_of_head
        self._unfinished = self._extensions = 0
        self._heads += 1
        if self.parser.should_upgrade() and not self._should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise httptools.HttpParserError("no tunnels")
            self._is_parsed_again = True
            return
        if not self.url.startswith(b"/"):
            self.url = _ensure_target_path(self.url)
        super().on_headers_complete()
        if self.expect_100_continue and self.scope["http_version"] != "1.1":
            self.cycle.waiting_for_100_continue = False
        if not self.url.startswith(b"/"):  # the application compares its authority with Host
            self.scope["raw_path"] = self.url.partition(b"?")[0]

    def on_chunk_header(self) -> None:
        """Count the chunks of a body."""
        self._chunks += 1

    def on_body(self, body: bytes) -> None:
        """Start the next count of bytes at each piece of a body."""
        self._unfinished = 0
        self._content += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Start the next count of bytes at the end of a request."""
        self._unfinished = 0
        if not self._is_parsed_again:
            super().on_message_complete()

    def _limit_chunk_extensions(self, size: int) -> None:
        """Refuse a body with more than 16 KiB of chunk extensions (RFC 9112, 7.1.1).

        The parser reports content only. Bytes of a segment that holds the heads of several requests
        are not counted: what they are is not known.
        """
        framing = self._content + self._chunks * FRAMING_BYTES + _HEAD_BYTES
        self._chunks = 0
        if self._heads == 1:
            framing += sum(len(name) + len(value) + 4 for name, value in self.headers)
            framing += len(self.url)
        if self._heads < 2:
            self._extensions += max(0, size - framing)
        if self._extensions > EXTENSION_BYTES:
            cycle: Any = self.cycle
            if not cycle.response_complete:
                cycle.body, cycle.more_body = bytearray(), True  # a body that is not accepted
            self._refuse_after_earlier_responses(
                400, f"refused chunk extensions of more than {EXTENSION_BYTES} bytes"
            )

    def on_response_complete(self) -> None:
        """Start the next pipelined request; pause reading while more of them are queued."""
        super().on_response_complete()
        if self.pipeline:
            self.flow.pause_reading()
        elif self._deferred is not None and not self.transport.is_closing():
            self._unset_keepalive_if_required()
            action, self._deferred = self._deferred, None
            action()


def _ensure_target_path(target: bytes) -> bytes:
    """Return an absolute target with its path, which is `/` if it has none (RFC 9112, 3.2.1)."""
    address, mark, query = target.partition(b"?")
    _, _, authority = address.partition(b"://")
    return address + b"/" + mark + query if authority and b"/" not in authority else target
