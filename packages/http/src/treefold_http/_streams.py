"""Answers that are sent while they are produced.

Each chunk goes out before the next is asked for, so a slow client slows the producer and nothing
piles up. A client that leaves ends the producer: its `finally` runs before the request is over.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from treefold_http._response import (
    BODILESS,
    BYTES_TYPE,
    Background,
    Response,
    sendable,
)
from treefold_http._threads import WorkerThreads
from treefold_http._types import RawHeaders, Send

if TYPE_CHECKING:
    from treefold_http._request import Request

Chunk: TypeAlias = str | bytes
StreamContent: TypeAlias = AsyncIterable[Chunk] | Iterable[Chunk]


class StreamingResponse(Response):
    """An answer whose body comes from an iterator, async or plain.

    Args:
        content: gives str (sent as UTF-8) or bytes; a plain iterator runs in a worker thread.
        status, headers, media_type, background: as in `Response`; the default type is
            application/octet-stream.
    """

    __slots__ = ("content",)

    def __init__(
        self,
        content: StreamContent,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
        background: Background | None = None,
    ) -> None:
        self.content = content
        self.body = b""
        self._prepare(status, headers, background)
        if media_type is not None:
            self.headers["content-type"] = media_type
        elif "content-type" not in self.headers:
            self.raw_headers.append(BYTES_TYPE)

    async def send(self, request: Request, send: Send, *, common: RawHeaders) -> None:
        """Write the start, then each chunk as it is produced, then the end."""
        if self.status in BODILESS:
            await close(self.content)
            await super().send(request, send, common=common)
            return
        fields = sendable(self.raw_headers) + common
        start = {"type": "http.response.start", "status": self.status, "headers": fields}
        end = {"type": "http.response.body", "body": b""}
        if request.method == "HEAD":
            await close(self.content)
            await send(start)
            await send(end)
            return
        await send(start)
        if await self._produce(_iterator(self.content, request), request, send):
            await send(end)

    async def _produce(self, chunks: AsyncIterator[Chunk], request: Request, send: Send) -> bool:
        return await pump(chunks, request, send)


def _iterator(content: StreamContent, request: Request) -> AsyncIterator[Chunk]:
    if isinstance(content, AsyncIterable):
        return aiter(content)
    return _FromThread(iter(content), request.app.threads)


async def pump(
    chunks: AsyncIterator[Chunk],
    request: Request,
    send: Send,
    *,
    stopping: asyncio.Event | None = None,
) -> bool:
    """Send every chunk, then close the producer; False when the client left before the last.

    Args:
        stopping: ends the producer early when it is set; the answer then ends like any other.
    """
    task = asyncio.current_task()
    assert task is not None, "a request runs in a task"  # noqa: S101 - the event loop's promise
    over = left = False

    async def watch(cause: Callable[[], Awaitable[object]], *, leaves: bool) -> None:
        nonlocal over, left
        await cause()
        if not over:
            over, left = True, leaves
            task.cancel()

    watchers: list[asyncio.Task[None]] = []

    def begin() -> None:
        leave = watch(request.reader.wait_for_disconnect, leaves=True)
        watchers.append(loop.create_task(leave))
        if stopping is not None:
            watchers.append(loop.create_task(watch(stopping.wait, leaves=False)))

    # Where nothing waits, nobody can be seen to leave, and no task is made: it is half of a stream.
    loop = asyncio.get_running_loop()
    soon = loop.call_soon(begin)
    try:
        async for chunk in chunks:
            if over:  # a producer that swallows its cancellation goes on for nobody
                break
            data = chunk if type(chunk) is bytes else _encoded(chunk)
            try:
                await send({"type": "http.response.body", "body": data, "more_body": True})
            except OSError:  # how some servers say that the client left (ASGI, HTTP 2.4)
                left = True
                break
    except asyncio.CancelledError:
        if not over:
            raise
    finally:
        soon.cancel()
        for watcher in watchers:
            watcher.cancel()
        # Ours to take back, whether the producer let it through or not; never anybody else's.
        cancelled = over and task.uncancel() > 0
        await close(chunks)
    if cancelled:
        raise asyncio.CancelledError
    return not left


class _FromThread(AsyncIterator[Chunk]):
    """A plain iterator, advanced and closed in worker threads.

    A client may leave while `next` runs; the lock lets it finish before the iterator is closed. All
    of it runs in one context, so that a generator may hold what it set, such as a transaction.
    """

    def __init__(self, iterator: Iterator[Chunk], threads: WorkerThreads) -> None:
        self._iterator = iterator
        self._threads = threads
        self._lock = threading.Lock()
        self._context = copy_context()

    async def __anext__(self) -> Chunk:
        chunk = await self._threads.run(self._next)
        if chunk is _END:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        await self._threads.run(self._close)

    def _next(self) -> Any:
        with self._lock:
            return self._context.run(next, self._iterator, _END)

    def _close(self) -> None:
        with self._lock:
            if (close := getattr(self._iterator, "close", None)) is not None:
                self._context.run(close)


_END = object()


def _encoded(chunk: Any) -> bytes:
    if isinstance(chunk, str):
        return chunk.encode()
    if isinstance(chunk, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", chunk))
    raise TypeError(f"A stream gave {type(chunk).__qualname__!r}; give str or bytes")


async def close(content: object) -> None:
    """End a producer early: run the `finally` of a generator, async or plain."""
    if (aclose := getattr(content, "aclose", None)) is not None:
        await aclose()
    elif (plain := getattr(content, "close", None)) is not None:
        plain()
