"""Time limits and closing of one HTTP connection, which uvicorn leaves to a reverse proxy.

Covers request heads that arrive late or never end, bodies that arrive too slowly, and responses
that would be lost because the client is still sending. Works for both parsers (h11 and httptools)
and is independent of the application.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, ClassVar, cast

from treefold_logging import request_id
from treefold_server._unread_responses import (
    ReaderFlow,
    UnreadResponse,
    UnreadResponses,
    get_or_create_unread_responses,
)

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

HEAD_BYTES = 64 * 1024
"""Limit in bytes of an unfinished request head, or of unfinished trailers (S-21).

Higher than the limits of the application (32 KiB of fields, 8 KiB of target), which refuses a head
slightly above its own limits with a request id and a line in the log.
"""
EXTENSION_BYTES = 16 * 1024
"""Limit in bytes of the chunk extensions of one body."""
FRAMING_BYTES = 12
"""Bytes of a chunk besides its content and its extension: a padded size, two line ends."""
UNREADABLE = "Invalid HTTP request received."
"""The log's message for bytes that are no request."""
ANSWERED = "treefold.answered"
"""Scope key for the status that was already sent in place of the application's."""


def build_refusal_response(status: int, request_id: str, text: str | None = None) -> bytes:
    """Return a whole response of the server itself, after which the connection is closed.

    Args:
        status: the status.
        request_id: the request id of the response, which the log names too.
        text: the body, ASCII; the phrase of the status without one.
    """
    phrase = HTTPStatus(status).phrase
    text = phrase if text is None else text
    return (
        f"HTTP/1.1 {status} {phrase}\r\n"
        "content-type: text/plain; charset=utf-8\r\n"
        "x-content-type-options: nosniff\r\n"
        f"x-request-id: {request_id}\r\n"
        f"content-length: {len(text)}\r\n"
        "connection: close\r\n\r\n"
        f"{text}"
    ).encode("ascii")


def generate_request_id() -> str:
    """Return the request id of a response for which there is no request."""
    return secrets.token_hex(14)


# state      begins with                            timer           when it ends
# head       the connection, or the first byte of   HEAD_SECONDS    408 if a byte has come; close
#            a later request
# body       a whole head whose body is not whole   BODY_TICK,      408 if the last six ticks
#                                                   again & again   brought too little; close
# response   a whole body                           none
# idle       a whole response                       uvicorn's       close
# lingering  close() while the client still sends   LINGER_SILENCE  close, unless bytes have come
#                                                                   and LINGER_SECONDS are left
# detached   stop_watching()                        none
class ConnectionTimeouts:
    """Enforces the time limits of one connection; the protocol reports received bytes to it.

    Args:
        protocol: the protocol of the connection.
    """

    HEAD_SECONDS: ClassVar[float] = 10.0
    """From the connection, or the first byte of a later request, to the end of the head (R-11)."""
    BODY_TICK: ClassVar[float] = 5.0
    """Seconds between two looks at how much of a body has come."""
    BODY_TICKS: ClassVar[int] = 6
    """Looks that are summed: a client that stops for some seconds may still catch up."""
    BODY_LEAST: ClassVar[int] = 15_000
    """Fewest bytes of a body in six ticks: 500 a second over 30 seconds (R-12)."""
    LINGER_SILENCE: ClassVar[float] = 5.0
    """Seconds without a byte after which a client that lingers has read its response."""
    LINGER_SECONDS: ClassVar[float] = 30.0
    """Seconds during which the unread rest of a body is discarded, so that the response is read."""

    __slots__ = (
        "_guarded",
        "_has_begun",
        "_is_detached",
        "_is_lingering",
        "_linger_left",
        "_on_timer",
        "_protocol",
        "_received",
        "_ticks",
        "_timer",
        "_unread",
        "transport",
    )

    def __init__(self, protocol: H11Protocol | HttpToolsProtocol) -> None:
        self._protocol = protocol
        self.transport: asyncio.Transport
        self._guarded: GuardedTransport
        self._unread: UnreadResponses
        self._timer: asyncio.TimerHandle | None = None
        self._on_timer: Callable[[], None] | None = None
        self._has_begun = False
        self._received = 0
        self._ticks: deque[int] | None = None
        self._is_lingering = self._is_detached = False
        self._linger_left = 0.0

    def start_and_guard_transport(self, transport: asyncio.Transport) -> asyncio.Transport:
        """Start the timer of the first head; return the transport that the protocol must use."""
        self.transport = transport
        self._unread = get_or_create_unread_responses(self._protocol.config, self._protocol.loop)
        self._unread.watch_connection(self)
        self._start_timer(self.HEAD_SECONDS, self._on_head_timeout)
        self._guarded = GuardedTransport(transport, self)
        return cast("asyncio.Transport", self._guarded)

    def make_flow_control(self) -> ReaderFlow:
        """Return the flow control of the connection."""
        return ReaderFlow(self.transport)

    def on_write_paused(self) -> None:
        """Measure how the client reads: more of a response waits than the transport should keep."""
        self._unread.measure_and_enforce_limit(self)

    def set_write_counter(self, unread: UnreadResponse | None) -> None:
        """Count what is written; None for no more."""
        self._guarded.write = (unread or self.transport).write

    def must_discard(self, data: bytes) -> bool:
        """Return True if received bytes must be discarded because the connection is closing."""
        if self._is_lingering:
            self._received += len(data)
        return self._is_lingering

    def on_data_parsed(self, size: int) -> None:
        """Restart or cancel the timer after the protocol has parsed `size` more bytes."""
        if self._is_detached:
            return  # these bytes upgraded the connection to a WebSocket
        protocol = self._protocol
        cycle: Any = protocol.cycle
        if self._is_idle():  # the head of the next request is incomplete
            self._has_begun = True
            if self._on_timer is None and protocol.timeout_keep_alive_task is None:
                self._start_timer(self.HEAD_SECONDS, self._on_head_timeout)
        elif cycle.more_body:
            self._received += size
            if self._on_timer != self._close_if_body_too_slow:
                self._ticks = deque(maxlen=self.BODY_TICKS)
                self._start_timer(self.BODY_TICK, self._close_if_body_too_slow)
        elif self._timer is not None:
            self.cancel_timer()

    def cancel_timer(self) -> None:
        """Cancel the current timer."""
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._on_timer = None
        self._has_begun = False

    def stop_watching(self) -> None:
        """Stop watching: the connection is closed or was upgraded to another protocol.

        Drops the reference to the protocol: a reference cycle would keep its buffers until the
        garbage collector runs.
        """
        self.cancel_timer()
        self._is_detached = True
        self._unread.forget_connection(self)
        del self._protocol, self._guarded

    def close(self) -> None:
        """Close the connection, or only its sending side while the client is still sending.

        Closing a socket with unread bytes resets the connection, and the client may lose the
        response (RFC 9112, 9.6). Without a complete response the connection is closed at once: the
        application cannot write after a half-close, and must learn that the client is gone.
        """
        cycle: Any = None if self._is_detached else self._protocol.cycle
        self._close_gracefully(
            has_unread_request_bytes=cycle is not None
            and cycle.more_body
            and cycle.response_complete
        )

    def refuse_request(self, status: int, log_message: str) -> None:
        """Answer what cannot be served, and close the connection.

        Nothing is written into a response that has begun, or before that of a complete request.

        Args:
            status: the status of the response.
            log_message: the reason, for the log: there is no request, and so no request line. The
                record has the request id of the response.
        """
        if self.is_closing():
            return
        identity = generate_request_id()
        token = request_id.set(identity)
        self._protocol.logger.warning(log_message)
        request_id.reset(token)
        self._send_refusal_if_possible(status, identity)
        self.cancel_timer()
        cycle: Any = self._protocol.cycle
        if not self._is_idle():  # the application must not write behind the refusal
            cycle.disconnected = True
            cycle.message_event.set()
        self._close_gracefully(has_unread_request_bytes=self._is_idle())

    def _close_gracefully(self, *, has_unread_request_bytes: bool) -> None:
        if not has_unread_request_bytes or self.is_closing() or not self.transport.can_write_eof():
            self.transport.close()
        else:
            try:
                self.transport.write_eof()
            except OSError:  # the client is gone; asyncio cannot notice while reading is paused
                self.transport.abort()
                return
            self._is_lingering = True
            self._protocol.flow.resume_reading()
            self._received, self._linger_left = 0, self.LINGER_SECONDS
            self._start_timer(self.LINGER_SILENCE, self._on_linger_timeout)

    def is_closing(self) -> bool:
        """Return True if no response can be sent any more."""
        return self._is_lingering or self.transport.is_closing()

    def _start_timer(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._on_timer = then
        self._timer = self._protocol.loop.call_later(seconds, then)

    def _on_head_timeout(self) -> None:
        if self._has_begun:
            self._send_refusal_if_possible(408)
        self.cancel_timer()
        self.transport.close()

    def _close_if_body_too_slow(self) -> None:
        cycle: Any = self._protocol.cycle
        if self._ticks is None or not cycle.more_body or cycle.response_complete:
            self.cancel_timer()
            return
        if self._protocol.flow.read_paused or cycle.waiting_for_100_continue:
            self._ticks.clear()  # the application does not read; the client is not slow
        else:
            self._ticks.append(self._received)
        self._received = 0
        if len(self._ticks) < self.BODY_TICKS or sum(self._ticks) >= self.BODY_LEAST:
            self._start_timer(self.BODY_TICK, self._close_if_body_too_slow)
            return
        self._send_refusal_if_possible(408)
        self.cancel_timer()
        self.transport.close()

    def _send_refusal_if_possible(self, status: int, request_id: str | None = None) -> None:
        """Send an error response, unless a response has started or the request is complete."""
        cycle: Any = self._protocol.cycle
        if not self._is_idle():
            if cycle.response_started or not cycle.more_body:
                return
            cycle.scope[ANSWERED] = status
        self.transport.write(build_refusal_response(status, request_id or generate_request_id()))

    def _is_idle(self) -> bool:
        cycle: Any = self._protocol.cycle  # None before the first request, whatever its type says
        return cycle is None or cycle.response_complete

    def _on_linger_timeout(self) -> None:
        self._linger_left -= self.LINGER_SILENCE
        if self._received and self._linger_left > 0:
            self._received = 0
            self._start_timer(self.LINGER_SILENCE, self._on_linger_timeout)
        else:
            self.cancel_timer()
            self.transport.close()


class GuardedTransport:
    """Transport that `ConnectionTimeouts` closes; other calls go to the inner transport."""

    __slots__ = ("_inner", "_timeouts", "write")

    def __init__(self, inner: asyncio.Transport, timeouts: ConnectionTimeouts) -> None:
        self._inner = inner
        self._timeouts = timeouts
        self.write = inner.write

    def close(self) -> None:
        """Close now, or once the client has read the response."""
        self._timeouts.close()

    def is_closing(self) -> bool:
        """Return True if nothing can be written any more."""
        return self._timeouts.is_closing()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)
