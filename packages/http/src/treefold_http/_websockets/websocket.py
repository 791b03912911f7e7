"""The WebSocket of a handler: accept, receive, send, close.

A message of the wrong kind, invalid JSON and a message above the limit close the socket with the
matching code; the handler then gets `WebSocketDisconnect`. `_serving.sockets` decides which clients
may connect, before a handler runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar, overload

from treefold_http._headers.header_fields import encode_header
from treefold_http._json.json import dumps, loads
from treefold_http._requests.connection import Connection
from treefold_http._responses.response import copy_sendable_fields, drop_present_fields
from treefold_http._runtime.disconnect_watcher import YIELD_EVERY
from treefold_http._wire.asgi import Message, RawHeaders, Receive, Scope, Send
from treefold_http._wire.errors import BadRequest

if TYPE_CHECKING:
    from treefold_http._runtime.runtime import Runtime

T = TypeVar("T")

MAX_MESSAGE = 1024 * 1024
"""Bytes of a message that a client sends."""
LAST_WORD = 1.0
"""Seconds that a close frame may wait for a client that does not read."""
MAX_REASON = 123
"""Bytes of the reason in a close frame (RFC 6455, 5.5)."""

NORMAL = 1000
WRONG_KIND = 1003
NO_STATUS = 1005
LOST = 1006
BAD_DATA = 1007
REFUSED = 1008
TOO_BIG = 1009
FAILED = 1011
RESTART = 1012
OVERLOADED = 1013


class WebSocketDisconnect(Exception):  # the field's name for it
    """The socket is closed: by the client, or by the server because of an invalid message.

    Attributes:
        code: the close code (RFC 6455, 7.4).
        reason: the reason in the close frame.
    """

    def __init__(self, code: int = NORMAL, reason: str = "") -> None:
        super().__init__(code, reason)
        self.code = code
        self.reason = reason


# accepted  code   state
# False     None   the handshake waits for `accept` or `close`
# True      None   open
# True      set    closed by either side
# False     set    refused by `close`, or the client left before `accept`
class WebSocket(Connection):
    """One WebSocket.

    Attributes:
        code: the close code, once it is closed; None before.
        accepted: True after `accept`.
        task: the task of its handler.
        dropped: True if it was closed from outside of its handler.
        shape: the serializer of `send_json`; None sends values unchanged.
        handshake_fields: header fields of an accepted handshake that the handler does not set.
    """

    __slots__ = (
        "_send",
        "_since",
        "accepted",
        "code",
        "dropped",
        "handshake_fields",
        "max_message",
        "shape",
        "task",
    )

    def __init__(self, scope: Scope, receive: Receive, app: Runtime, id: str, send: Send) -> None:
        super().__init__(scope, receive, app, id)
        self._send = send
        self._since = 0
        self.accepted = False
        self.code: int | None = None
        self.max_message = MAX_MESSAGE
        self.task: asyncio.Task[Any] | None = None
        self.dropped = False
        self.shape: Callable[[Any], Any] | None = None
        self.handshake_fields: RawHeaders | None = None

    @property
    def method(self) -> str:
        """The method of a handshake, `GET`, for checks that requests have too."""
        return "GET"

    @property
    def subprotocols(self) -> list[str]:
        """The subprotocols that the client offers, in its order of preference."""
        return list(self.scope.get("subprotocols", ()))

    async def accept(
        self, subprotocol: str | None = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Answer the handshake.

        Args:
            subprotocol: one of those offered.
            headers: further header fields of the answer.

        Raises:
            RuntimeError: when it was answered before.
            ValueError: for a subprotocol that was not offered, or a header that cannot be sent.
            WebSocketDisconnect: when the client has disconnected, or the server is stopping.
        """
        if self.accepted or self.code is not None:
            raise RuntimeError("The WebSocket is already accepted or closed; accept it once")
        if subprotocol is not None and subprotocol not in self.subprotocols:
            raise ValueError(
                "The subprotocol must be one that the client offered"
                f" ({self.subprotocols}), got {subprotocol!r}"
            )
        given = (headers or {}).items()
        fields = copy_sendable_fields([encode_header(name, value) for name, value in given])
        if self.handshake_fields is not None:
            fields += drop_present_fields(fields, self.handshake_fields)
        fields.append((b"x-request-id", self.id.encode()))
        await self._send_without_open_check(
            {"type": "websocket.accept", "subprotocol": subprotocol, "headers": fields}
        )
        self.accepted = True
        if self.app.stopping.is_set():  # the shutdown has only closed sockets accepted before it
            raise await self._close_and_make_disconnect(RESTART, "The server is restarting")

    async def receive_text(self) -> str:
        """Return the next message, which must be text.

        Raises:
            WebSocketDisconnect: when the client left, or sent bytes (1003) or too much (1009).
        """
        message = await self._receive_message()
        if (text := message.get("text")) is None:
            raise await self._close_and_make_disconnect(WRONG_KIND, "Send text here")
        # A character is at most four bytes; only a message near the limit is measured exactly.
        if len(text) * 4 > self.max_message and len(text.encode()) > self.max_message:
            raise await self._close_and_make_disconnect(TOO_BIG, "Message too big")
        return text

    async def receive_bytes(self) -> bytes:
        """Return the next message, which must be bytes.

        Raises:
            WebSocketDisconnect: when the client left, or sent text (1003) or too much (1009).
        """
        message = await self._receive_message()
        if (data := message.get("bytes")) is None:
            raise await self._close_and_make_disconnect(WRONG_KIND, "Send bytes here")
        if len(data) > self.max_message:
            raise await self._close_and_make_disconnect(TOO_BIG, "Message too big")
        return data

    @overload
    async def receive_json(self, model: type[T]) -> T: ...
    @overload
    async def receive_json(self, model: Any = None) -> Any: ...

    async def receive_json(self, model: Any = None) -> Any:
        """Return the next message, which must be JSON text.

        Args:
            model: the type of the message, as of a body; None accepts any JSON. The AsyncAPI
                document contains it if the handler's code refers to it by name.

        Raises:
            WebSocketDisconnect: as `receive_text`, and for invalid JSON (1007).
            UnprocessableEntity: for a message of another type; if the handler does not catch it,
                the socket closes with 1008.
        """
        text = await self.receive_text()
        try:
            body = text.encode()
            document = loads(body)
        except (BadRequest, UnicodeEncodeError) as error:
            raise await self._close_and_make_disconnect(BAD_DATA, "Not valid JSON") from error
        if model is None:
            return document
        from treefold_http._websockets.messages import decode_typed_message

        return decode_typed_message(model, body, document)

    async def send_text(self, text: str) -> None:
        """Send a text message.

        Raises:
            WebSocketDisconnect: when the socket is closed.
        """
        if self.code is not None or not self.accepted:
            self.check_open()
        await self._send_without_open_check({"type": "websocket.send", "text": text})

    async def send_bytes(self, data: bytes) -> None:
        """Send a binary message.

        Raises:
            WebSocketDisconnect: when the socket is closed.
        """
        if self.code is not None or not self.accepted:
            self.check_open()
        await self._send_without_open_check({"type": "websocket.send", "bytes": data})

    async def send_json(self, value: Any) -> None:
        """Send a value as JSON text.

        Raises:
            WebSocketDisconnect: when the socket is closed.
            TypeError, ValueError: when a part of the value has no JSON form, or is not of the
                `response_model` of the handler's module.
        """
        if self.shape is not None:
            value = self.shape(value)
        await self.send_text(dumps(value).decode())

    def iter_text(self) -> AsyncIterator[str]:
        """Yield text messages until the socket is closed."""
        return _iterate_until_closed(self.receive_text)

    def iter_bytes(self) -> AsyncIterator[bytes]:
        """Yield binary messages until the socket is closed."""
        return _iterate_until_closed(self.receive_bytes)

    @overload
    def iter_json(self, model: type[T]) -> AsyncIterator[T]: ...
    @overload
    def iter_json(self, model: Any = None) -> AsyncIterator[Any]: ...

    def iter_json(self, model: Any = None) -> AsyncIterator[Any]:
        """Yield JSON messages until the socket is closed.

        Args, Raises:
            model: as for `receive_json`; a message of another type ends the iteration.
        """
        return _iterate_until_closed(lambda: self.receive_json(model))

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Close the socket; do nothing if it is closed already.

        Args:
            code: 1000, 1001, 1003, 1007 to 1014, or 3000 to 4999 (RFC 6455, 7.4).
            reason: at most 123 bytes of UTF-8.

        Raises:
            ValueError: for a code or a reason that cannot be sent.
        """
        # 1004 is reserved; 1005, 1006 and 1015 are for reports, never for a frame (RFC 6455, 7.4.1)
        if not (code in (1000, 1001, 1003) or 1007 <= code <= 1014 or 3000 <= code <= 4999):
            raise ValueError(f"A close code must be 1000 or from 3000 to 4999, got {code!r}")
        if len(reason.encode()) > MAX_REASON:
            raise ValueError(f"A close reason must have at most {MAX_REASON} bytes, got {reason!r}")
        if self.code is None:
            self.code = code  # before the send: a concurrent message finds the socket closed
            with suppress(OSError):  # the client left first
                await self._send({"type": "websocket.close", "code": code, "reason": reason})

    def drop(self, code: int) -> None:
        """Close the socket from another task, and end its handler as if the client had left.

        Does not wait: it is called for clients that do not read.
        """
        if self.code is None and self.task is not None:
            self.code = code
            self.dropped = True
            self.task.cancel()

    async def notify_dropped_client(self) -> None:
        """Send the close frame to a dropped client, if it reads within a second."""
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(LAST_WORD):
                await self._send({"type": "websocket.close", "code": self.code, "reason": ""})

    async def relay_receive(self) -> Message:
        """Return the next message as the server gives it, for a mounted application."""
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            self.code = self.code or message.get("code") or NO_STATUS
        return message

    async def relay_send(self, message: Message) -> None:
        """Send a message as a mounted application gives it.

        Raises:
            OSError: when the socket is closed (ASGI 2.4).
        """
        if self.code is not None:
            raise OSError("The WebSocket is closed")
        if message["type"] == "websocket.accept":
            given = message.get("headers", ())
            fields = copy_sendable_fields([(bytes(k), bytes(v)) for k, v in given])
            message = {**message, "headers": [*fields, (b"x-request-id", self.id.encode())]}
        try:
            await self._send_without_open_check(message)
        except WebSocketDisconnect as error:
            raise OSError("The client has disconnected") from error
        self.accepted = self.accepted or message["type"] == "websocket.accept"
        if message["type"] == "websocket.close":
            self.code = message.get("code", NORMAL)
        elif self.app.stopping.is_set() and message["type"] == "websocket.accept":
            await self.close(RESTART, "The server is restarting")

    async def _receive_message(self) -> Message:
        if self.code is not None or not self.accepted:
            self.check_open()
        message = await self._receive()
        if message["type"] == "websocket.disconnect":
            code = self.code = self.code or message.get("code") or NO_STATUS
            raise WebSocketDisconnect(code, message.get("reason") or "")
        return message

    async def _send_without_open_check(self, message: Message) -> None:
        # `send` may never suspend: a handler that writes in a loop would hold the event loop
        self._since += 1
        if self._since == YIELD_EVERY:
            self._since = 0
            await asyncio.sleep(0)
        try:
            await self._send(message)
        except OSError:  # raised by a server after a disconnect (ASGI 2.4)
            self.code = self.code or LOST
            raise WebSocketDisconnect(self.code) from None

    def check_open(self) -> None:
        """Check that messages can be sent and received.

        Raises:
            RuntimeError: when it is not accepted.
            WebSocketDisconnect: when it is closed.
        """
        if not self.accepted:
            raise RuntimeError("The WebSocket is not accepted; call `await websocket.accept()`")
        if self.code is not None:
            raise WebSocketDisconnect(self.code)

    async def _close_and_make_disconnect(self, code: int, reason: str) -> WebSocketDisconnect:
        await self.close(code, reason)
        return WebSocketDisconnect(code, reason)

    def __repr__(self) -> str:
        return f"<WebSocket {self.path!r} id={self.id}>"


async def _iterate_until_closed(receive: Callable[[], Awaitable[T]]) -> AsyncIterator[T]:
    try:
        while True:
            yield await receive()
    except WebSocketDisconnect:
        return
