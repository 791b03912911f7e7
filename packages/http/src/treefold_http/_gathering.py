"""The write buffer of a stream: small chunks are sent together.

The buffer is flushed when the producer awaits, at 64 KiB, and after 5 ms: the client never waits
for data that exists, and rows produced one by one do not cost a system call each. `_streams` runs
the producers.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from treefold_http._types import Send

T = TypeVar("T")

MOST = 64 * 1024
"""Bytes in the buffer that trigger a flush."""

HELD = 0.005
"""Seconds that a chunk may stay in the buffer: some producers compute and never await."""


class Gathering:
    """The unsent chunks of a stream.

    Args:
        send: the ASGI callable of the answer.

    Attributes:
        size: bytes in the buffer.
        left: True if the server reported that the client has disconnected.
    """

    __slots__ = ("_chunks", "_send", "left", "size")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._chunks: list[bytes] = []
        self.size = 0
        self.left = False

    def add(self, chunk: bytes) -> None:
        """Add a chunk to the buffer."""
        self._chunks.append(chunk)
        self.size += len(chunk)

    def take(self) -> bytes:
        """Empty the buffer and return its bytes; the caller sends them."""
        chunks, self._chunks, self.size = self._chunks, [], 0
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def flush(self) -> None:
        """Send the bytes of the buffer."""
        if body := self.take():
            try:
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
            except OSError:  # raised by some servers after a disconnect (ASGI, HTTP 2.4)
                self.left = True


@coroutine
def flushing(run: Coroutine[Any, Any, T], gathering: Gathering) -> Generator[Any, Any, T]:
    """Run a coroutine that fills a write buffer, and flush the buffer before each of its waits.

    An exception of the flush or of the wait, a cancellation included, is thrown into the coroutine
    at its `await`; so is a cancellation when the flush detects a disconnect.
    """
    value: Any = None
    failure: BaseException | None = None
    while True:
        try:
            wanted = run.send(value) if failure is None else run.throw(failure)
        except StopIteration as done:
            return done.value
        value = failure = None
        try:
            if gathering.size:
                yield from gathering.flush().__await__()
                if gathering.left:
                    raise CancelledError
        except BaseException as error:  # also GeneratorExit: the coroutine ends with it
            failure = error
            if wanted is not None:
                wanted.cancel()  # as a cancelled task cancels its awaited future
            continue
        try:
            value = yield wanted
        except BaseException as error:
            failure = error
