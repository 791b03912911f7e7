"""uvicorn's WebSocket protocol, where a client could make it hold more than it should."""

from __future__ import annotations

from typing import Any, ClassVar

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from treefold_cli._server.connection_timeouts import new_identity, refusal_bytes
from treefold_logging import get_logger


class HardenedWebSocketProtocol(WebSocketsSansIOProtocol):
    """Answers a handshake that cannot be read, and lets pongs wait for their reader."""

    running: ClassVar[int] = 0
    """How many of the server's tasks are sockets: they do not count as requests (D-07)."""

    async def run_asgi(self) -> None:
        """Run the application over the socket; a refusal is an answer, which uvicorn denies."""
        app = self.app

        async def answers(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)
            self.handshake_complete |= self.close_sent

        self.app = answers
        HardenedWebSocketProtocol.running += 1
        try:
            await super().run_asgi()
        finally:
            HardenedWebSocketProtocol.running -= 1

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; answer a head that the library refuses, and close the connection.

        The head arrives complete, and the library reports no event for a refused one: the
        connection would stay open without a response (S-71, S-73).
        """
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            identity = new_identity()
            get_logger().warning("refused a WebSocket handshake with 400 id=%s", identity)
            self.transport.write(refusal_bytes(400, identity, "No WebSocket handshake"))
            self.transport.close()

    def pause_writing(self) -> None:
        """Stop reading too: a client that pings and does not read fills the buffer (S-75)."""
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again, unless a message waits for the application."""
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()
