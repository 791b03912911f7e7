"""An application behind the server of `treefold serve`, asked over sockets with either parser.

Clients have addresses of their own: any in 127.0.0.0/8 is one of this machine on Linux.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any

from http_messages import read_answer

from arrangements.in_process import StartRefused
from arrangements.messages import Received, Sent
from treefold import Application
from treefold_cli._serve.server_options import build_server_options
from treefold_server._server import Server, build_server_config

PARSERS = {
    "h11": "treefold_server._h11_protocol:HardenedH11Protocol",
    "httptools": "treefold_server._http_protocol:HardenedHttpToolsProtocol",
}

_UPGRADE = [
    ("Connection", "Upgrade"),
    ("Upgrade", "websocket"),
    ("Sec-WebSocket-Version", "13"),
    ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
]


class WatchedStart:
    """An application, and why it did not start, which a server only logs."""

    def __init__(self, app: Application) -> None:
        self._app = app
        self.refusal = ""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        async def watched(message: Any) -> None:
            if message["type"] == "lifespan.startup.failed":
                self.refusal = message.get("message", "")
            await send(message)

        await self._app(scope, receive, watched if scope["type"] == "lifespan" else send)


class OnTheWire:
    """A running server.

    Args:
        parser: one of `PARSERS`.
    """

    def __init__(self, app: Application, parser: str) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._port: int = self._listener.getsockname()[1]
        config: Any = build_server_config(app, build_server_options(app.settings))
        config.http = PARSERS[parser]
        self._watched = config.app = WatchedStart(app)
        self._started = asyncio.Event()
        self._server = Server(config, self._started.set, last_listener=self._listener)
        self._serving: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Wait until requests are accepted.

        Raises:
            StartRefused: when the application does not start.
        """
        self._serving = asyncio.ensure_future(self._serve())
        started = asyncio.ensure_future(self._started.wait())
        await asyncio.wait({started, self._serving}, return_when=asyncio.FIRST_COMPLETED)
        if not self._started.is_set():
            started.cancel()
            raise StartRefused(self._watched.refusal)

    async def _serve(self) -> None:
        with suppress(SystemExit):  # of a startup that has failed
            await self._server.serve(sockets=[self._listener])

    async def stop(self) -> None:
        """Shut the server down."""
        assert self._serving is not None
        self._server.should_exit = True
        await self._serving

    async def send(self, sent: Sent) -> Received:
        """Send a request, or a handshake, on a connection of its own."""
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self._port, local_addr=(sent.address, 0)
        )
        try:
            writer.write(_write_request(sent))
            if sent.is_socket:
                return await _read_handshake(reader)
            answer = read_answer(sent.method, await reader.read())
            return Received(status=answer.status, fields=answer.headers, body=answer.body)
        finally:
            writer.close()


def _write_request(sent: Sent) -> bytes:
    fields = [("Host", sent.host), *sent.fields]
    fields += _UPGRADE if sent.is_socket else [("Connection", "close")]
    if sent.body:
        fields.append(("Content-Length", str(len(sent.body))))
    lines = [f"{sent.method} {sent.target} HTTP/1.1", *(f"{n}: {v}" for n, v in fields)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1") + sent.body


async def _read_handshake(reader: asyncio.StreamReader) -> Received:
    head = await reader.readuntil(b"\r\n\r\n")
    status = int(head.split(b" ", 2)[1])
    lines = head.decode("latin-1").split("\r\n")[1:-2]
    pairs = [line.partition(": ") for line in lines]
    fields = [(name.lower(), value) for name, _, value in pairs]
    if status != 101:
        return Received(status=status, fields=fields, body=b"")
    _, length = await reader.readexactly(2)
    assert length < 126, "The messages of arrangements are short"
    return Received(status=101, fields=fields, body=await reader.readexactly(length))
