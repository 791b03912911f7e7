"""One HTTP request and its response: `receive` and `send`, and the client's end of both.

`receive` returns the body chunk by chunk, then waits and returns the disconnect once the client has
left or the response is complete (ASGI, HTTP 2.4). The client's methods (`send_and_read_start`,
`read_chunks`, `disconnect_and_wait`) raise the exceptions that a test sees.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx

from treefold_http._wire.asgi import Message, RawHeaders
from treefold_http.testing._answer import Answer
from treefold_http.testing._call import Call
from treefold_http.testing._contract.watch import ContractWatch
from treefold_http.testing._scopes import build_http_scope
from treefold_http.testing._server import Server
from treefold_http.testing._upload import Upload

_FAILED = b"Internal Server Error"
_FAILED_HEADERS: RawHeaders = [(b"content-type", b"text/plain; charset=utf-8")]


class Exchange:
    """A request to the application, once the server has started.

    Attributes:
        read: True once the response is read completely and its exception was raised.
    """

    def __init__(self, server: Server, request: httpx.Request) -> None:
        self._server = server
        self._request = request
        self._upload = Upload(request, server.threads)
        self._answer = Answer(request.method)
        self._over = asyncio.Event()
        self._call = Call(build_http_scope(request), self._over.set)
        self._watch = ContractWatch.make(server)
        self._receiving = asyncio.Lock()
        self._pull: asyncio.Task[Message | None] | None = None
        self._rest: list[bytes] = []
        self.read = False

    async def send_and_read_start(self) -> tuple[int, RawHeaders]:
        """Send the request; return status and header fields of the response.

        Raises:
            BaseException: unhandled by the application, or raised by the body of the request.
            httpx.ReadTimeout: when there is no response in time.
        """
        self._server.start_call(self._call, self._receive_for_app, self._queue_app_message)
        start = await self._read_app_message()
        if start is None or self._upload.error is not None:
            await self._call.wait_briefly_for_return()
            if (problem := self._find_error_to_raise()) is not None:
                self.read = True
                raise problem
        if start is None:
            self._rest.append(_FAILED)
            return 500, _FAILED_HEADERS
        return start["status"], start.get("headers", [])

    async def read_chunks(self) -> list[bytes]:
        """Return the next chunks of the body as they were sent; an empty list at its end.

        The end is reached only when the application has returned, so that exceptions after the
        response are raised here too.

        Raises:
            BaseException: as `send_and_read_start`.
        """
        chunks, self._rest = self._rest, []
        pipe = self._call.pipe
        while not chunks and not pipe.is_fully_read:
            message = await self._read_app_message()
            while message is not None:
                if message["body"]:
                    chunks.append(message["body"])
                message = pipe.get_nowait()
        # chunks that arrived before a problem are returned first; the next call raises it
        if pipe.is_fully_read and (not chunks or self._find_error_to_raise() is None):
            self._raise_error_once()
        return chunks

    async def disconnect_and_wait(self) -> None:
        """Disconnect before the end of the response, if necessary, and wait for the application.

        Raises:
            BaseException: as `send_and_read_start`, unless it was raised before.
        """
        self._call.disconnect_client()
        if await self._call.wait_briefly_for_return():
            self._raise_error_once()

    async def _read_app_message(self) -> Message | None:
        try:
            async with self._enforce_read_timeout():
                return await self._call.pipe.get()
        except BaseException:
            self._call.disconnect_client()
            raise

    def _raise_error_once(self) -> None:
        """Raise the exception of the call that the test must see, at the first call only."""
        if self._pull is not None:
            self._pull.cancel()
        read, self.read = self.read, True
        if not read and (problem := self._find_error_to_raise()) is not None:
            raise problem

    def _find_error_to_raise(self) -> BaseException | None:
        if self._upload.error is not None:
            return self._upload.error
        told = self._server.raise_app_errors
        if told and (error := self._call.find_unhandled_app_error()) is not None:
            return error
        if self._answer.complete or self._call.left.is_set():
            if self._watch is None or not self._answer.started:
                return None
            return self._watch.find_error(self._call.scope, is_complete=self._answer.complete)
        if told:
            return RuntimeError("The application returned before its answer was complete")
        if self._answer.started:
            return httpx.RemoteProtocolError("The answer ended before it was complete")
        return None

    @asynccontextmanager
    async def _enforce_read_timeout(self) -> AsyncGenerator[None]:
        limit: float | None = self._request.extensions.get("timeout", {}).get("read")
        try:
            async with asyncio.timeout(limit):
                yield
        except TimeoutError:
            message = f"The application sent nothing within {limit!r} seconds"
            raise httpx.ReadTimeout(message, request=self._request) from None

    async def _receive_for_app(self) -> Message:
        # an application may wait for the disconnect in a task of its own while a handler reads the
        # body
        async with self._receiving:
            is_open = not self._upload.done and not self._over.is_set()
            if is_open and (message := await self._pull_upload_message()) is not None:
                return message
        await self._over.wait()
        return {"type": "http.disconnect"}

    async def _pull_upload_message(self) -> Message | None:
        """Return the next message of the body, or None if the client disconnects before it arrives.

        If the application stops waiting, the pending chunk is returned by the next call.
        """
        if self._pull is None:
            self._pull = asyncio.create_task(self._upload.read_next_message())
        over = asyncio.ensure_future(self._over.wait())
        try:
            await asyncio.wait({self._pull, over}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            over.cancel()
        if not self._pull.done():
            return None
        pull, self._pull = self._pull, None
        if pull.cancelled() or (message := pull.result()) is None:
            self._call.disconnect_client()
            self._call.pipe.mark_ended()
            return None
        return message

    async def _queue_app_message(self, message: Message) -> None:
        started = self._answer.started
        data = self._answer.validate_and_extract_body(message)
        if self._watch is not None:
            self._watch.note_message(message, data)
        if self._answer.complete:
            self._over.set()
        await self._call.pipe.put({**message, "body": data} if started else message, len(data))
