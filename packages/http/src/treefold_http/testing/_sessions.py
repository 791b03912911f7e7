"""WebSocket sessions: the client's end of a WebSocket that an application serves in process.

`AsyncWebSocketSession` holds the logic and runs on the server's loop; `WebSocketSession` is its
synchronous wrapper. Every wait has a limit, so that a test never hangs.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any, Concatenate, NoReturn, ParamSpec, TypeVar

import httpx

from treefold_http._websockets.websocket import NORMAL, WebSocketDisconnect
from treefold_http._wire.asgi import Message
from treefold_http.testing._call import Call
from treefold_http.testing._contract.watch import SocketWatch
from treefold_http.testing._options import Headers
from treefold_http.testing._scopes import build_websocket_scope
from treefold_http.testing._server import Server
from treefold_http.testing._transport import Transport

P = ParamSpec("P")
T = TypeVar("T")

_FORBIDDEN = 403
"""Status that a server sends for a WebSocket closed before it is accepted (ASGI, websocket)."""

_ABNORMAL = 1006
"""Close code that a client sees without a close frame (RFC 6455, 7.4.1)."""

_HANDSHAKE = {
    "connection": "Upgrade",
    "upgrade": "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "dHJlZWZvbGQtdGVzdGluZw==",
}
"""Fields of the request that opens a WebSocket (RFC 6455, 4.1)."""


class WebSocketRefused(Exception):  # the outcome's name, as WebSocketDisconnect is
    """The application did not accept the socket.

    Attributes:
        status: the HTTP status of the answer; 403 where the application only closed.
        response: the whole answer: its `headers`, `text` and `json()`.
    """

    def __init__(self, status: int, response: httpx.Response) -> None:
        super().__init__(status, response)
        self.status = status
        self.response = response

    def __str__(self) -> str:
        return f"The WebSocket was refused with {self.status}: {self.response.text[:500]}"


class AsyncWebSocketSession:
    """A WebSocket in a test; `async with` opens and closes it.

    Attributes:
        accepted_subprotocol: the subprotocol that the application selected, or None.
        headers: the header fields of its acceptance.
        close_code: the close code, once the socket is closed; None before.
        close_reason: the reason sent with it.
    """

    def __init__(
        self,
        client: httpx.Client | httpx.AsyncClient,
        server: Server,
        url: str,
        *,
        subprotocols: Sequence[str] = (),
        headers: Headers | None = None,
        timeout: float | None = 5.0,
    ) -> None:
        fields = httpx.Headers(_HANDSHAKE)
        if subprotocols:
            fields["sec-websocket-protocol"] = ", ".join(subprotocols)
        fields.update(headers)
        self.accepted_subprotocol: str | None = None
        self.headers = httpx.Headers()
        self.close_code: int | None = None
        self.close_reason = ""
        self._server = server
        self._request = client.build_request("GET", url, headers=fields)
        self._cookies = client.cookies
        self._timeout = timeout
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        scope = build_websocket_scope(self._request, subprotocols)
        self._call = Call(scope, lambda: self._queue_disconnect_for_app(_ABNORMAL))
        self._watch = SocketWatch.make(server, scope)
        self._settled = False

    async def __aenter__(self) -> AsyncWebSocketSession:
        """Open the socket.

        Raises:
            WebSocketRefused: when the application does not accept it.
            TimeoutError: when it does not decide in time.
            BaseException: an unhandled exception of the application.
        """
        await self._server.start_application()
        self._to_app.put_nowait({"type": "websocket.connect"})
        self._server.start_call(self._call, self._receive_for_app, self._queue_app_message)
        try:
            message = await self._read_app_message(self._timeout)
            if message["type"] != "websocket.accept":
                await self._raise_refused(message)
        except BaseException:
            self._call.disconnect_client()
            raise
        self.accepted_subprotocol = message.get("subprotocol")
        self._store_response(101, message)
        return self

    async def __aexit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        try:
            await self.close()
        except BaseException:
            if error is None:  # otherwise the test has already failed with its own error
                raise

    async def send_text(self, text: str) -> None:
        """Send a text message.

        Raises:
            WebSocketDisconnect: when the socket is known to be closed.
        """
        self._queue_message_for_app({"type": "websocket.receive", "text": text})

    async def send_bytes(self, data: bytes) -> None:
        """Send a binary message.

        Raises:
            WebSocketDisconnect: when the socket is known to be closed.
        """
        self._queue_message_for_app({"type": "websocket.receive", "bytes": data})

    async def send_json(self, value: Any) -> None:
        """Send a value as JSON text.

        Raises:
            WebSocketDisconnect: when the socket is known to be closed.
        """
        await self.send_text(json.dumps(value))

    async def receive(self, timeout: float | None = 5.0) -> str | bytes:
        """Return the next message.

        Raises:
            WebSocketDisconnect: when the application closed the socket.
            TimeoutError: when there is none in time.
            ContractError: the route does not declare such a message, with `contract="strict"`.
            BaseException: an unhandled exception of the application.
        """
        if self.close_code is not None:
            raise WebSocketDisconnect(self.close_code, self.close_reason)
        message = await self._read_app_message(timeout)
        if message["type"] == "websocket.close":
            await self._raise_disconnect(message.get("code") or NORMAL, message.get("reason") or "")
        self._raise_contract_error([message])
        text: str | None = message.get("text")
        return message["bytes"] if text is None else text

    async def receive_text(self, timeout: float | None = 5.0) -> str:
        """Return the next message, which must be text.

        Raises:
            TypeError: when it is not; for the rest see `receive`.
        """
        message = await self.receive(timeout)
        if isinstance(message, bytes):
            raise TypeError(f"The application sent bytes, not text: {message[:100]!r}")
        return message

    async def receive_bytes(self, timeout: float | None = 5.0) -> bytes:
        """Return the next message, which must be bytes.

        Raises:
            TypeError: when it is not; for the rest see `receive`.
        """
        message = await self.receive(timeout)
        if isinstance(message, str):
            raise TypeError(f"The application sent text, not bytes: {message[:100]!r}")
        return message

    async def receive_json(self, timeout: float | None = 5.0) -> Any:
        """Return the decoded JSON of the next message, which must be text.

        Raises:
            TypeError, ValueError: when it is not; for the rest see `receive`.
        """
        return json.loads(await self.receive_text(timeout))

    async def __aiter__(self) -> AsyncIterator[str | bytes]:
        """Yield messages, text or bytes, until the socket is closed."""
        with suppress(WebSocketDisconnect):
            while True:
                yield await self.receive()

    async def close(self, code: int = NORMAL, reason: str = "") -> None:
        """Close the socket and wait for the application to react; does nothing on a closed one.

        Raises:
            BaseException: an unhandled exception of the application, unless it was raised before.
            ContractError: a message that was not received is not declared, as in `receive`.
        """
        if self.close_code is None:
            self.close_code, self.close_reason = code, reason
            self._queue_disconnect_for_app(code, reason)
        unread = [] if self._watch is None else self._take_unread_messages()
        self._call.disconnect_client()
        if await self._call.wait_briefly_for_return():
            self._raise_error_once()
        self._raise_contract_error(unread)

    async def _receive_for_app(self) -> Message:
        return await self._to_app.get()

    async def _queue_app_message(self, message: Message) -> None:
        if message["type"] == "websocket.close":  # the client answers it (RFC 6455, 5.5.1)
            code, reason = message.get("code") or NORMAL, message.get("reason") or ""
            self._queue_disconnect_for_app(code, reason)
        size = len(message.get("text") or message.get("bytes") or message.get("body") or b"")
        await self._call.pipe.put(message, size)

    def _queue_disconnect_for_app(self, code: int, reason: str = "") -> None:
        gone = {"type": "websocket.disconnect", "code": code, "reason": reason}
        self._to_app.put_nowait(gone)

    def _queue_message_for_app(self, message: Message) -> None:
        if self.close_code is not None:
            raise WebSocketDisconnect(self.close_code, self.close_reason)
        self._to_app.put_nowait(message)

    async def _read_app_message(self, timeout: float | None) -> Message:
        try:
            async with asyncio.timeout(timeout):
                message = await self._call.pipe.get()
        except TimeoutError:
            raise TimeoutError(
                f"The application sent nothing within {timeout!r} seconds; pass a longer `timeout=`"
            ) from None
        if message is None:
            self._raise_error_once()
            return {"type": "websocket.close", "code": _ABNORMAL}
        return message

    async def _raise_disconnect(self, code: int, reason: str) -> NoReturn:
        self.close_code, self.close_reason = code, reason
        if await self._call.wait_briefly_for_return():
            self._raise_error_once()
        raise WebSocketDisconnect(code, reason)

    async def _raise_refused(self, message: Message) -> NoReturn:
        status, body = _FORBIDDEN, b""
        if message["type"] == "websocket.http.response.start":
            status, more = message["status"], True
            while more:
                part = await self._read_app_message(self._timeout)
                body += part.get("body", b"")
                more = part.get("more_body", False)
        await self._call.wait_briefly_for_return()
        self._raise_error_once()
        response = self._store_response(status, message, body)
        raise WebSocketRefused(status, response)

    def _store_response(self, status: int, message: Message, body: bytes = b"") -> httpx.Response:
        self.headers = httpx.Headers(message.get("headers", []))
        response = httpx.Response(status, headers=self.headers, content=body, request=self._request)
        self._cookies.extract_cookies(response)
        return response

    def _take_unread_messages(self) -> list[Message]:
        pipe, found = self._call.pipe, list[Message]()
        while (message := pipe.get_nowait()) is not None:
            found.append(message)
        return found

    def _raise_contract_error(self, messages: Iterable[Message]) -> None:
        if self._watch is None:
            return
        for message in messages:
            if (error := self._watch.find_error(message)) is not None:
                raise error

    def _raise_error_once(self) -> None:
        settled, self._settled = self._settled, True
        error = self._call.find_unhandled_app_error()
        if not settled and error is not None and self._server.raise_app_errors:
            raise error


def _make_blocking(
    method: Callable[Concatenate[AsyncWebSocketSession, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[WebSocketSession, P], T]:
    """Return the same method for callers without an event loop."""

    def call_blocking(self: WebSocketSession, *args: P.args, **kwargs: P.kwargs) -> T:
        __tracebackhide__ = True
        return self._run(method(self._session, *args, **kwargs))  # pyright: ignore[reportPrivateUsage]

    call_blocking.__doc__ = method.__doc__
    return call_blocking


class WebSocketSession:
    """Synchronous WebSocket session in a test; `with` opens and closes it.

    Parameters, results and exceptions of the methods are those of `AsyncWebSocketSession`.
    """

    def __init__(self, session: AsyncWebSocketSession, transport: Transport) -> None:
        self._session = session
        self._transport = transport
        self._run = transport.run

    @property
    def accepted_subprotocol(self) -> str | None:
        """The subprotocol that the application selected, or None."""
        return self._session.accepted_subprotocol

    @property
    def headers(self) -> httpx.Headers:
        """The header fields of the acceptance."""
        return self._session.headers

    @property
    def close_code(self) -> int | None:
        """The close code, or None while the socket is open."""
        return self._session.close_code

    @property
    def close_reason(self) -> str:
        """The reason sent with the close code."""
        return self._session.close_reason

    def __enter__(self) -> WebSocketSession:
        """Open the socket."""
        __tracebackhide__ = True
        self._transport.start_server()
        self._run(self._session.__aenter__())
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        __tracebackhide__ = True
        self._run(self._session.__aexit__(kind, error, trace))

    send_text = _make_blocking(AsyncWebSocketSession.send_text)
    send_bytes = _make_blocking(AsyncWebSocketSession.send_bytes)
    send_json = _make_blocking(AsyncWebSocketSession.send_json)
    receive = _make_blocking(AsyncWebSocketSession.receive)
    receive_text = _make_blocking(AsyncWebSocketSession.receive_text)
    receive_bytes = _make_blocking(AsyncWebSocketSession.receive_bytes)
    receive_json = _make_blocking(AsyncWebSocketSession.receive_json)
    close = _make_blocking(AsyncWebSocketSession.close)

    def __iter__(self) -> Iterator[str | bytes]:
        """Yield messages, text or bytes, until the socket is closed."""
        with suppress(WebSocketDisconnect):
            while True:
                yield self.receive()
