"""Parts of a multipart body while they arrive, for uploads that are larger than memory and disk.

Nothing is kept: a part is read in its turn or skipped. For fields by name and files that can be
read twice, use `_bodies.forms`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import aclosing

from treefold_http._bodies.multipart import Event, parse_boundary, parse_multipart_events
from treefold_http._bodies.part_head import PartHead
from treefold_http._wire.errors import PayloadTooLarge
from treefold_http._wire.limits import DEFAULT_LIMITS, Limits


class Part:
    """One part of a multipart body: iterate over it once, before advancing to the next part.

    Attributes:
        name: the form field.
        filename: as the client sent it; None for a part that is not a file.
        content_type: the media type as sent; empty without one.
        headers: the header fields of the part.
    """

    __slots__ = ("_body", "content_type", "filename", "headers", "name")

    def __init__(self, head: PartHead, body: _Body) -> None:
        self.name = head.name
        self.filename = head.filename
        self.content_type = head.content_type
        self.headers = head.headers
        self._body = body

    async def __aiter__(self) -> AsyncGenerator[bytes, None]:
        while chunk := await self._body.read_next_chunk(self):
            yield chunk

    async def read(self) -> bytes:
        """Return the unread rest of a small part, such as a field.

        Raises:
            PayloadTooLarge: above the limit of a field.
            RuntimeError: after advancing to the next part.
        """
        limit = self._body.limits.field
        data = bytearray()
        async for chunk in self:
            data += chunk
            if len(data) > limit:
                raise PayloadTooLarge(f"Field {self.name!r} is larger than {limit} bytes")
        return bytes(data)

    def __repr__(self) -> str:
        return f"<Part {self.name!r} filename={self.filename!r}>"


class _Body:
    """The events of one body, shared by its parts."""

    __slots__ = ("_current", "_events", "_next", "_open", "limits")

    def __init__(self, events: AsyncIterator[Event], limits: Limits) -> None:
        self.limits = limits
        self._events = events
        self._current: Part | None = None
        self._next: PartHead | None = None
        self._open = True

    async def read_next_chunk(self, part: Part) -> bytes | None:
        if part is not self._current:
            raise RuntimeError(
                f"Part {part.name!r} was skipped and cannot be read any more; read each"
                " part before the next"
            )
        return await self._read_chunk_or_end() if self._open else None

    async def read_next_part(self) -> Part | None:
        while self._open:
            await self._read_chunk_or_end()
        if self._next is None:
            return None
        self._current = Part(self._next, self)
        self._open = True
        return self._current

    async def _read_chunk_or_end(self) -> bytes | None:
        event = await anext(self._events, None)
        if isinstance(event, bytes):
            return event
        self._next = event
        self._open = False
        return None


async def stream_parts(
    content_type: str, chunks: AsyncIterable[bytes], *, limits: Limits = DEFAULT_LIMITS
) -> AsyncGenerator[Part, None]:
    """Yield the parts of a multipart body in order; the unread rest of a part is skipped.

    Args:
        content_type: the Content-Type of the request.
        chunks: its body.

    Raises:
        UnsupportedMediaType: when the body is no `multipart/form-data`.
        BadRequest, PayloadTooLarge, MissingExtra: as `parse_multipart_events`, while iterating.
    """
    events = parse_multipart_events(parse_boundary(content_type, limits), chunks, limits=limits)
    # a caller that leaves the loop early closes it now, and not when it is collected
    async with aclosing(events):
        body = _Body(events, limits)
        while (part := await body.read_next_part()) is not None:
            yield part
