"""The write buffer of a stream: small chunks are sent together.

The buffer is flushed when the producer awaits, at 64 KiB, and after 5 ms: the client never waits
for data that exists, and rows produced one by one do not cost a system call each.
`_responses.streams` runs the producers.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from treefold_http._wire.asgi import Send

T = TypeVar("T")

MAX_BUFFER = 64 * 1024
"""Bytes in the buffer that trigger a flush."""

MAX_DELAY = 0.005
"""Seconds that a chunk may stay in the buffer: some producers compute and never await."""


class WriteBuffer:
    """The unsent chunks of a stream.

    Args:
        send: the ASGI callable of the answer.

    Attributes:
        size: bytes in the buffer.
        disconnected: True if the server reported that the client has disconnected.
    """

    __slots__ = ("_chunks", "_send", "disconnected", "size")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._chunks: list[bytes] = []
        self.size = 0
        self.disconnected = False

    def add_chunk(self, chunk: bytes) -> None:
        """Add a chunk to the buffer."""
        self._chunks.append(chunk)
        self.size += len(chunk)

    def take_bytes(self) -> bytes:
        """Empty the buffer and return its bytes; the caller sends them."""
        chunks, self._chunks, self.size = self._chunks, [], 0
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def flush(self) -> None:
        """Send the bytes of the buffer."""
        if body := self.take_bytes():
            try:
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
            except OSError:  # raised by some servers after a disconnect (ASGI, HTTP 2.4)
                self.disconnected = True


@coroutine
def run_flushing_before_waits(
    producer: Coroutine[Any, Any, T], buffer: WriteBuffer
) -> Generator[Any, Any, T]:
    """Run a coroutine that fills a write buffer, and flush the buffer before each of its waits.

    Only the driver of a coroutine sees that it is about to wait: each value that `send` returns is
    a future for the event loop (None for `asyncio.sleep(0)`). Here the buffer is flushed before
    that future is yielded to the loop, which saves a task or a timer for each chunk.

    An exception of the flush or of the wait, a cancellation included, is thrown into the coroutine
    at its `await`; so is a cancellation when the flush detects a disconnect.
    """
    result: Any = None
    error: BaseException | None = None
    while True:
        try:
            future = producer.send(result) if error is None else producer.throw(error)
        except StopIteration as done:
            return done.value
        result = error = None
        try:
            if buffer.size:
                yield from buffer.flush().__await__()
                if buffer.disconnected:
                    raise CancelledError
        except BaseException as failure:  # also GeneratorExit: the coroutine ends with it
            error = failure
            if future is not None:
                future.cancel()  # as a cancelled task cancels its awaited future
            continue
        try:
            result = yield future
        except BaseException as failure:
            error = failure
