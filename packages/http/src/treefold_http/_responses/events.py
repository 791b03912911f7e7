"""Server-sent events (WHATWG HTML, 9.2): a long-lived response made from a source of events.

This module encodes events and keeps the connection alive. `_responses.streams` runs the source in
the task of its request, sends each event before it asks for the next, and closes the source when
the client disconnects or the application stops. A client that reconnects sends `Last-Event-ID`.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Mapping
from dataclasses import KW_ONLY, dataclass, replace
from typing import TYPE_CHECKING, Any, cast

from treefold_http._json.json import dumps
from treefold_http._responses.response import Background
from treefold_http._responses.streams import Chunk, StreamingResponse, close_producer, send_chunks
from treefold_http._wire.asgi import Message, Send
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._requests.request import Request

COMMENT = b": keep-alive\n\n"
"""A comment, which clients ignore and proxies count as traffic."""

# Not str.splitlines: a client ends lines at these three only.
_lines = re.compile("\r\n|\r|\n").split


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    Args:
        data: text, of any number of lines, or a value with a JSON form; None sends only the other
            fields.
        event: its type; clients assume `message` by default.
        id: the `Last-Event-ID` that the client sends when it reconnects; empty to clear it.
        retry: milliseconds before the client reconnects after a lost connection.

    Raises:
        TypeError: for a field of another type.
        ValueError: for a negative `retry`, or an event without data, id and retry.
    """

    data: object
    event: str | None = None
    _: KW_ONLY
    id: str | None = None
    retry: int | None = None

    def __post_init__(self) -> None:
        _require_event_text("event", self.event)
        _require_event_text("id", self.id)
        retry: object = self.retry
        if retry is not None and (type(retry) is not int or retry < 0):
            raise ValueError(f"Event retry must be milliseconds as int, 0 or more, got {retry!r}")
        kind = type(self.data)
        if issubclass(kind, (bytes, bytearray, memoryview)):
            message = f"Event data must be str or data with a JSON form, got {kind.__qualname__!r}"
            raise TypeError(message)
        if self.data is None and self.id is None and retry is None:
            raise ValueError("An event must have data, id or retry")

    def encode(self) -> bytes:
        """Return the event in the wire format.

        Raises:
            EventFieldError: for a line end in `event` or `id`, or NUL in `id`.
            TypeError, ValueError: when a part of `data` has no JSON form.
        """
        _require_single_line("event", self.event, "\r\n")
        _require_single_line("id", self.id, "\r\n\0")
        lines = [] if self.event is None else [f"event: {self.event}"]
        if self.id is not None:
            lines.append(f"id: {self.id}")
        if self.retry is not None:
            lines.append(f"retry: {self.retry}")
        if self.data is not None:
            text = self.data if isinstance(self.data, str) else dumps(self.data).decode()
            lines += [f"data: {line}" for line in _lines(text)]
        return "\n".join([*lines, "\n"]).encode()


class EventFieldError(ValueError):
    """A field that cannot be written; the event is left out, and its stream goes on."""


def _require_event_text(name: str, value: object) -> None:
    if value is not None and not isinstance(value, str):
        raise TypeError(f"Event {name} must be str, got {type(value).__qualname__!r}")


def _require_single_line(name: str, value: str | None, forbidden: str) -> None:
    if value is not None and any(char in forbidden for char in value):
        raise EventFieldError(
            f"Event {name} must not contain a line end or NUL, which would end the field,"
            f" got {value!r}"
        )


class EventStream(StreamingResponse):
    """A response of server-sent events, for as long as the source yields them.

    It ends when the source ends, when the client leaves, and when the application stops; the source
    is closed in each case, so its `finally` runs. An event with a line end in `event` or `id` is
    left out, with a line of log. Sent with `Cache-Control: no-store` and
    `X-Accel-Buffering: no`, which keeps proxies from holding events back.

    Args:
        source: an async iterator of `Event`, str, dict, list, or another type with a JSON form; a
            value that is no `Event` becomes the data of one.
        status: 200; 204 tells a client not to reconnect.
        headers, background: as in `Response`.
        keep_alive: seconds of silence before a comment is sent; None for no comments.

    Raises:
        TypeError: when the source is no async iterator.
        ValueError: when `keep_alive` is not above 0, and as `Response`.
    """

    __slots__ = ("_frames", "keep_alive")

    def __init__(
        self,
        source: AsyncIterable[Any],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        keep_alive: float | None = 15.0,
        background: Background | None = None,
    ) -> None:
        if not isinstance(cast("object", source), AsyncIterable):
            raise TypeError(
                f"EventStream needs an async iterator, got {type(source).__qualname__!r};"
                " write the source as `async def` with `yield`"
            )
        if keep_alive is not None and not keep_alive > 0:
            raise ValueError(f"EventStream keep_alive must be seconds or None, got {keep_alive!r}")
        self._frames = _EncodedEvents(source)
        content_type = "text/event-stream; charset=utf-8"
        super().__init__(self._frames, status, headers, content_type, background)
        self.keep_alive = keep_alive
        self.headers.setdefault("cache-control", "no-store")
        self.headers.setdefault("x-accel-buffering", "no")

    def hold(self, shape: Callable[[Any], Any]) -> None:
        """Serialize the data of each event by a shape; a mismatch ends the stream."""
        self._frames.shape = shape

    async def _send_chunks(
        self, chunks: AsyncIterator[Chunk], request: Request, send: Send
    ) -> bytes | None:
        stopping = request.app.stopping
        if self.keep_alive is None:
            return await send_chunks(chunks, request, send, stopping, 0)
        wire = _KeepAliveSender(send, self.keep_alive)
        keeper = asyncio.ensure_future(wire.send_keep_alive_comments())
        try:
            return await send_chunks(chunks, request, wire.send, stopping, 0)
        finally:
            # Wait before the end of the response: a comment after the end is a protocol error.
            keeper.cancel()
            await asyncio.gather(keeper, return_exceptions=True)


class _EncodedEvents(AsyncIterator[bytes]):
    """The events of a source, encoded."""

    def __init__(self, source: AsyncIterable[Any]) -> None:
        self._source = aiter(source)
        self.shape: Callable[[Any], Any] | None = None

    async def __anext__(self) -> bytes:
        while True:
            item = await anext(self._source)
            event = item if isinstance(item, Event) else Event(item)
            if self.shape is not None and event.data is not None:
                event = replace(event, data=self.shape(event.data))
            try:
                return event.encode()
            except EventFieldError as error:
                # The text may be a client's: it must not end the streams of others.
                get_logger().error("event left out of its stream: %s", error)

    async def aclose(self) -> None:
        await close_producer(self._source)


class _KeepAliveSender:
    """One connection and two writers: events, and comments while there are none."""

    def __init__(self, send: Send, seconds: float) -> None:
        self._send = send
        self._seconds = seconds
        self._last = time.monotonic()
        self._lock = asyncio.Lock()

    async def send(self, message: Message) -> None:
        """Send a message, after the one in progress."""
        async with self._lock:
            await self._send(message)
        self._last = time.monotonic()

    async def send_keep_alive_comments(self) -> None:
        """Send a comment after each silence of the given time; runs until cancelled."""
        comment = {"type": "http.response.body", "body": COMMENT, "more_body": True}
        while True:
            await asyncio.sleep(self._last + self._seconds - time.monotonic())
            if self._lock.locked():  # a slow client is not a silent source
                self._last = time.monotonic()
            elif time.monotonic() - self._last >= self._seconds:
                await self.send(comment)
