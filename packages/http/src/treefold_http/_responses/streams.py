"""Responses that are sent while they are produced.

A chunk is sent before its producer awaits the next one; chunks produced without a wait are sent
together, at most 64 KiB at a time, so a slow client slows the producer and memory stays bounded. A
disconnect ends the producer: its `finally` runs before the request is over.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Iterable, Iterator, Mapping
from contextlib import suppress
from contextvars import copy_context
from time import perf_counter
from types import AsyncGeneratorType
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from treefold_http._responses.response import (
    BODILESS,
    BYTES_TYPE,
    Background,
    Response,
    copy_sendable_fields,
)
from treefold_http._responses.write_buffer import (
    MAX_BUFFER,
    MAX_DELAY,
    WriteBuffer,
    run_flushing_before_waits,
)
from treefold_http._runtime.disconnect_watcher import YIELD_EVERY
from treefold_http._runtime.exit_callbacks import is_outer_cancellation
from treefold_http._runtime.threads import WorkerThreads
from treefold_http._wire.asgi import RawHeaders, Send

if TYPE_CHECKING:
    from treefold_http._requests.request import Request

Chunk: TypeAlias = str | bytes
StreamContent: TypeAlias = AsyncIterable[Chunk] | Iterable[Chunk]

_BYTES = (bytes, bytearray, memoryview)
_GENERATOR: Any = AsyncGeneratorType
"""The type of most streams; a check of the abstract class costs more than three chunks."""


class StreamingResponse(Response):
    """A response whose body comes from an iterator, async or plain.

    Args:
        content: yields str (sent as UTF-8) or bytes; a plain iterator runs in a worker thread.
        status, headers, media_type, background: as in `Response`; the default type is
            application/octet-stream.

    Raises:
        TypeError: when the content cannot be iterated, or is bytes; and as `Response`.
        ValueError: as `Response`.
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
        if type(content) is not _GENERATOR:
            _require_stream_content(content)
        self.content = content
        self.body = b""
        self._set_options(status, headers, background)
        if media_type is not None:
            self.headers["content-type"] = media_type
        elif not headers or "content-type" not in self.headers:
            self.raw_headers.append(BYTES_TYPE)

    async def send(self, request: Request, send: Send, common: RawHeaders) -> None:
        """Send the start, then each chunk as it is produced, then the end."""
        # the producer is closed unread, so that its `finally` runs
        if self.status in BODILESS:
            await close_producer(self.content)
            await super().send(request, send, common)
            return
        fields = copy_sendable_fields(self.raw_headers) + common
        start = {"type": "http.response.start", "status": self.status, "headers": fields}
        if request.method == "HEAD":
            await close_producer(self.content)
            await send(start)
            await send({"type": "http.response.body", "body": b""})
            return
        await send(start)
        content: Any = self.content
        chunks = content if type(content) is _GENERATOR else _iterate_content(content, request)
        if (last := await self._send_chunks(chunks, request, send)) is not None:
            await send({"type": "http.response.body", "body": last})

    def _send_chunks(
        self, chunks: AsyncIterator[Chunk], request: Request, send: Send
    ) -> Awaitable[bytes | None]:
        return send_chunks(chunks, request, send)


def _require_stream_content(content: object) -> None:
    """Refuse content that would otherwise fail only after the response has begun."""
    name = type(content).__qualname__
    if isinstance(content, _BYTES) or not isinstance(content, (AsyncIterable, Iterable)):
        raise TypeError(
            f"A stream must be an iterator of str or bytes, got {name!r}; call a generator"
            " function to get one"
        )


def _iterate_content(content: StreamContent, request: Request) -> AsyncIterator[Chunk]:
    if isinstance(content, AsyncIterable):
        return aiter(content)
    return _ThreadedIterator(iter(content), request.app.threads)


async def send_chunks(
    chunks: AsyncIterator[Chunk],
    request: Request,
    send: Send,
    stopping: asyncio.Event | None = None,
    max_buffered_bytes: int = MAX_BUFFER,
) -> bytes | None:
    """Send the chunks, then close the producer.

    Args:
        stopping: ends the producer early when it is set; the response then ends normally.
        max_buffered_bytes: bytes of chunks that are sent together; 0 sends each separately.

    Returns:
        The last bytes, to be sent with the end; None after a disconnect.
    """
    task = asyncio.current_task()
    assert task is not None, "a request runs in a task"  # noqa: S101 - the event loop's promise
    watcher = request.app.disconnects
    watcher.watch_sender(task, request, stopping)
    over, buffer = watcher.over, WriteBuffer(send)

    async def buffer_chunks() -> AsyncIterator[Chunk]:
        count, due = 0, perf_counter() + MAX_DELAY
        async for chunk in chunks:
            # Checked for each chunk: a producer may swallow its cancellation.
            if buffer.disconnected or (over and task in over):
                return chunks
            buffer.add_chunk(chunk if type(chunk) is bytes else _encode_chunk(chunk))
            count += 1
            if buffer.size >= max_buffered_bytes or count == YIELD_EVERY or perf_counter() > due:
                await buffer.flush()
                if buffer.disconnected:
                    return chunks
                # lets the watcher see a disconnect: neither producer nor `send` may ever suspend
                await asyncio.sleep(0)
                count, due = 0, perf_counter() + MAX_DELAY
        return _ENDED if type(chunks) is _GENERATOR else chunks

    unclosed = chunks
    try:
        unclosed = await run_flushing_before_waits(buffer_chunks(), buffer)
    except asyncio.CancelledError:
        if task not in over and not buffer.disconnected:
            raise
    except BaseException as error:
        if not is_outer_cancellation(error, request.id):
            with suppress(asyncio.CancelledError):  # after a disconnect too, report the failure
                await buffer.flush()  # the chunks before the failure
        raise
    finally:
        outcome = watcher.stop_watching_sender(task)
        # Undo only the cancellation of `DisconnectWatcher`, even if the producer swallowed it.
        cancelled = outcome is not None and task.uncancel() > 0
        if unclosed is not _ENDED:
            await close_producer(unclosed)
    if cancelled:
        raise asyncio.CancelledError
    return None if outcome or buffer.disconnected else buffer.take_bytes()


_ENDED: Any = object()
"""Returned instead of a generator that is exhausted and needs no closing."""


class _ThreadedIterator(AsyncIterator[Chunk]):
    """A plain iterator, advanced and closed in worker threads.

    A client may disconnect while `next` runs; the lock lets it finish before the iterator is
    closed. All steps run in one context, so that a generator keeps its context variables, such as
    that of a transaction.
    """

    def __init__(self, iterator: Iterator[Chunk], threads: WorkerThreads) -> None:
        self._iterator = iterator
        self._threads = threads
        self._lock = threading.Lock()
        self._context = copy_context()

    async def __anext__(self) -> Chunk:
        if (chunk := await self._threads.run(self._read_next_chunk)) is _END:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        await self._threads.run(self._close)

    def _read_next_chunk(self) -> Any:
        with self._lock:
            # a default, as StopIteration cannot be raised through a future
            return self._context.run(next, self._iterator, _END)

    def _close(self) -> None:
        with self._lock:
            if (close := getattr(self._iterator, "close", None)) is not None:
                self._context.run(close)


_END = object()


def _encode_chunk(chunk: Any) -> bytes:
    if isinstance(chunk, str):
        return chunk.encode()
    if isinstance(chunk, _BYTES):
        return bytes(cast("bytes", chunk))
    raise TypeError(f"A stream must yield str or bytes, got {type(chunk).__qualname__!r}")


async def close_producer(content: object) -> None:
    """End a producer early: run the `finally` of a generator, async or plain."""
    if (aclose := getattr(content, "aclose", None)) is not None:
        await aclose()
    elif (plain := getattr(content, "close", None)) is not None:
        plain()
