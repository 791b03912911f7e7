"""uvicorn's WebSocket protocol, where a client could make it hold more than it should."""

from __future__ import annotations

from typing import Any, ClassVar

from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.http11 import Request

from treefold_logging import get_logger
from treefold_server._connection_timeouts import build_refusal_response, generate_request_id


class HardenedWebSocketProtocol(WebSocketsSansIOProtocol):
    """Answers a handshake that cannot be read, and lets pongs wait for their reader."""

    running: ClassVar[int] = 0
    """How many of the server's tasks are sockets.

    The limit of concurrent requests leaves them out: a socket stays open for hours (D-07).
    """

    async def run_asgi(self) -> None:
        """Run the application over the socket; it may refuse the handshake with a response."""
        app = self.app

        async def run_app_allowing_refusal(scope: Any, receive: Any, send: Any) -> None:
            await app(scope, receive, send)
            # After a 401 by `websocket.http.response.start`, uvicorn has sent the response but
            # takes the handshake for unfinished: it would log "ASGI callable returned without
            # completing handshake" and send a 500 behind it.
            self.handshake_complete |= self.close_sent

        self.app = run_app_allowing_refusal
        HardenedWebSocketProtocol.running += 1
        try:
            await super().run_asgi()
        finally:
            HardenedWebSocketProtocol.running -= 1

    def data_received(self, data: bytes) -> None:
        """Parse received bytes; answer a head that the library refuses, and close the connection.

        The head arrives complete, and the library reports no event for a refused one: without this
        the connection stays open, with no response and no line in the log (S-71, S-73).
        """
        super().data_received(data)
        if not self.handshake_initiated and not self.transport.is_closing():
            identity = generate_request_id()
            get_logger().warning("refused a WebSocket handshake with 400 id=%s", identity)
            self.transport.write(build_refusal_response(400, identity, "No WebSocket handshake"))
            self.transport.close()

    def handle_connect(self, event: Request) -> None:
        """Start the application; or log and send the refusal of the library.

        It gets what every response has: `nosniff` and a request id (S-49), and one line (S-71).
        """
        response = self.conn.accept(event)
        if response.status_code == 101:
            super().handle_connect(event)
            return
        identity = generate_request_id()
        status = response.status_code
        get_logger().warning("refused a WebSocket handshake with %d id=%s", status, identity)
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["X-Request-ID"] = identity
        self.handshake_initiated = self.handshake_complete = self.close_sent = True
        self.conn.send_response(response)
        self.transport.write(b"".join(self.conn.data_to_send()))
        self.transport.close()

    def pause_writing(self) -> None:
        """Stop reading too.

        Each ping is answered at once: a client that pings and never reads the pongs would fill the
        memory with them (S-75).
        """
        super().pause_writing()
        self.transport.pause_reading()

    def resume_writing(self) -> None:
        """Read again, unless a message waits for the application."""
        super().resume_writing()
        if not self.read_paused:
            self.transport.resume_reading()
