"""Chunks that are produced without a wait, on their way together.

A chunk goes out when its producer waits for anything, at 64 KiB, and after 5 ms: nobody is kept
waiting for what is there, and rows that come one by one do not cost a system call each. Who
produces, and for whom, is the business of `_streams`.
"""

from __future__ import annotations

from asyncio import CancelledError
from collections.abc import Coroutine, Generator
from types import coroutine
from typing import Any, TypeVar

from treefold_http._types import Send

T = TypeVar("T")

MOST = 64 * 1024
"""Bytes that are gathered."""

HELD = 0.005
"""Seconds that a chunk waits for the next: some producers compute and never wait."""


class Gathering:
    """What of a stream has not been sent.

    Args:
        send: the ASGI callable of the answer.

    Attributes:
        size: its bytes.
        left: whether the server said that the client has left.
    """

    __slots__ = ("_chunks", "_send", "left", "size")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._chunks: list[bytes] = []
        self.size = 0
        self.left = False

    def add(self, chunk: bytes) -> None:
        """Keep a chunk until `flush` or `take`."""
        self._chunks.append(chunk)
        self.size += len(chunk)

    def take(self) -> bytes:
        """Give everything, to be sent by the caller."""
        chunks, self._chunks, self.size = self._chunks, [], 0
        return chunks[0] if len(chunks) == 1 else b"".join(chunks)

    async def flush(self) -> None:
        """Send everything."""
        if body := self.take():
            try:
                await self._send({"type": "http.response.body", "body": body, "more_body": True})
            except OSError:  # how some servers say that the client left (ASGI, HTTP 2.4)
                self.left = True


@coroutine
def flushing(run: Coroutine[Any, Any, T], gathering: Gathering) -> Generator[Any, Any, T]:
    """Run a coroutine that fills a gathering, and flush that each time before it waits.

    Whatever the flush or the wait ends with, a cancellation included, reaches the coroutine where
    it waits; so does a cancellation when the flush says that the client has left.
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
                wanted.cancel()  # as a task does with what it waits for
            continue
        try:
            value = yield wanted
        except BaseException as error:
            failure = error
