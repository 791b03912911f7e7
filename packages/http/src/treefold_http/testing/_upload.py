"""The body of a request, read chunk by chunk as the application asks for it.

A generator of the test runs only as far as the application reads. A generator that raises, or that
yields a number of bytes other than `Content-Length`, acts as a client that disconnects.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import httpx

from treefold_http._runtime.threads import WorkerThreads
from treefold_http._wire.asgi import Message

CHUNK = 64 * 1024
"""Most bytes in one message, as a server reads them from its socket."""


class Upload:
    """The messages of a request body.

    Attributes:
        done: True once the last message was returned.
        error: the exception of the generator, or of a body that contradicts `Content-Length`.
    """

    def __init__(self, request: httpx.Request, threads: WorkerThreads) -> None:
        self.done = False
        self.error: BaseException | None = None
        self._chunks = _iter_chunks(request, threads)
        self._left = _read_content_length(request)

    async def read_next_message(self) -> Message | None:
        """Return the next message, or None if the client cannot send the body it has announced."""
        try:
            chunk = await anext(self._chunks, None)
            if self._left is not None:
                self._left -= len(chunk or b"")
                self._check_content_length(ended=chunk is None)
        except BaseException as error:  # the generator is code of the test and may raise anything
            self.error = error
            return None
        # with a `Content-Length` the end is known without another step of the generator
        self.done = chunk is None or self._left == 0
        return {"type": "http.request", "body": chunk or b"", "more_body": not self.done}

    def _check_content_length(self, *, ended: bool) -> None:
        left = self._left or 0
        if left < 0 or (ended and left):
            which = "longer" if left < 0 else "shorter"
            raise httpx.LocalProtocolError(f"The request body is {which} than its Content-Length")


async def _iter_chunks(request: httpx.Request, threads: WorkerThreads) -> AsyncIterator[bytes]:
    stream = request.stream
    if isinstance(stream, httpx.AsyncByteStream):
        async for part in stream:
            for start in range(0, len(part), CHUNK):
                yield part[start : start + CHUNK]
        return
    parts = iter(stream)
    while (part := await threads.run(next, parts, None)) is not None:
        for start in range(0, len(part), CHUNK):
            yield part[start : start + CHUNK]


def _read_content_length(request: httpx.Request) -> int | None:
    """Return the `Content-Length` of a request, or None if it is missing or not a number."""
    said = request.headers.get("content-length", "")
    return int(said) if said.isascii() and said.isdigit() else None
