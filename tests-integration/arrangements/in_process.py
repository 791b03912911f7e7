"""An application called as a server would call it, with the client's address of each request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from arrangements.messages import Received, Sent

Message = MutableMapping[str, Any]
App = Callable[[Any, Any, Any], Awaitable[None]]


class StartRefused(Exception):
    """The application did not start; the text is its reason."""


class InProcess:
    """A running application."""

    def __init__(self, app: App) -> None:
        self._app = app
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        self._lifespan: asyncio.Future[None] | None = None

    async def start(self) -> None:
        """Run the startup.

        Raises:
            StartRefused: with the message of the application.
        """
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": {}}
        self._lifespan = asyncio.ensure_future(
            self._app(scope, self._to_app.get, self._from_app.put)
        )
        await self._to_app.put({"type": "lifespan.startup"})
        answer = await self._from_app.get()
        if answer["type"] != "lifespan.startup.complete":
            raise StartRefused(answer.get("message", ""))

    async def stop(self) -> None:
        """Run the shutdown."""
        assert self._lifespan is not None
        await self._to_app.put({"type": "lifespan.shutdown"})
        await self._from_app.get()
        await self._lifespan

    async def send(self, sent: Sent) -> Received:
        """Send a request, or a handshake, and wait for all of the response."""
        if sent.is_socket:
            return await _knock(self._app, sent)
        return await _exchange(self._app, sent)


def _scope_of(sent: Sent) -> dict[str, Any]:
    fields = [("Host", sent.host), *sent.fields]
    if sent.body:
        fields.append(("Content-Length", str(len(sent.body))))
    return {
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 80),
        "client": (sent.address, 50000),
        "root_path": "",
        "raw_path": sent.path.encode(),
        "path": unquote(sent.path),
        "query_string": sent.query.encode(),
        "headers": [(n.lower().encode(), v.encode("latin-1")) for n, v in fields],
        "state": {},
    }


def _read_fields(start: Message) -> list[tuple[str, str]]:
    given = start.get("headers", ())
    return [(n.decode("latin-1").lower(), v.decode("latin-1")) for n, v in given]


async def _exchange(app: App, sent: Sent) -> Received:
    scope = _scope_of(sent) | {"type": "http", "scheme": "http", "method": sent.method}
    waiting: list[Message] = [{"type": "http.request", "body": sent.body, "more_body": False}]
    is_over = asyncio.Event()
    messages: list[Message] = []

    async def receive() -> Message:
        if waiting:
            return waiting.pop()
        await is_over.wait()
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        messages.append(message)
        if message["type"] == "http.response.body" and not message.get("more_body", False):
            is_over.set()

    await app(scope, receive, send)
    assert is_over.is_set(), "The application returned in the middle of a response"
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return Received(status=messages[0]["status"], fields=_read_fields(messages[0]), body=body)


async def _knock(app: App, sent: Sent) -> Received:
    """Open a socket, read one message, and leave."""
    scope: dict[str, Any] = _scope_of(sent) | {
        "type": "websocket",
        "scheme": "ws",
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }
    waiting: list[Message] = [{"type": "websocket.connect"}]
    has_message = asyncio.Event()
    messages: list[Message] = []

    async def receive() -> Message:
        if waiting:
            return waiting.pop()
        await has_message.wait()
        return {"type": "websocket.disconnect", "code": 1000}

    async def send(message: Message) -> None:
        messages.append(message)
        if message["type"] in ("websocket.send", "websocket.close"):
            has_message.set()

    await app(scope, receive, send)
    first: Message = messages[0] if messages else {"type": "websocket.close"}
    if first["type"] == "websocket.accept":
        texts = [m for m in messages if m["type"] == "websocket.send"]
        body = (texts[0].get("text") or "").encode() if texts else b""
        return Received(status=101, fields=_read_fields(first), body=body)
    body = b"".join(message.get("body", b"") for message in messages[1:])
    return Received(status=first.get("status", 403), fields=_read_fields(first), body=body)
