"""uvicorn's protocols, where a client could make them hold more than they should.

Each method here says what it mends; everything else is uvicorn's.
"""

from __future__ import annotations

import importlib.util
from typing import Any

from treefold_logging import get_logger

_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\n"
    b"content-type: text/plain; charset=utf-8\r\n"
    b"content-length: 22\r\n"
    b"connection: close\r\n\r\n"
    b"No WebSocket handshake"
)


def http_protocol() -> Any:
    """Give the parser in C where the `fast` extra brings it, else the one in Python."""
    if importlib.util.find_spec("httptools") is None:
        return "h11"
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

    class PatientHttpTools(HttpToolsProtocol):
        """Reads on only when no parsed request waits for its answer (S-28).

        uvicorn reads on after each answer; a client that pipelines 50,000 requests costs 117 MB.
        """

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self.pipeline:
                self.flow.pause_reading()

    return PatientHttpTools


def socket_protocol() -> Any:
    """Give the WebSocket protocol; `none` where its library is not installed."""
    if importlib.util.find_spec("websockets") is None:
        return "none"
    from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

    class GuardedWebSockets(WebSocketsSansIOProtocol):
        """Answers a handshake that cannot be read, and lets pongs wait for their reader."""

        def data_received(self, data: bytes) -> None:
            # The whole head comes at once. One that the library refuses gives no event: without
            # this the connection would stay open, unanswered, for ever (S-71, S-73).
            super().data_received(data)
            if not self.handshake_initiated and not self.transport.is_closing():
                get_logger().warning("refused a WebSocket handshake that cannot be read")
                self.transport.write(_REFUSAL)
                self.transport.close()

        def pause_writing(self) -> None:
            # A client that pings and does not read would fill the buffer with pongs (S-75).
            super().pause_writing()
            self.transport.pause_reading()

        def resume_writing(self) -> None:
            super().resume_writing()
            if not self.read_paused:
                self.transport.resume_reading()

    return GuardedWebSockets
