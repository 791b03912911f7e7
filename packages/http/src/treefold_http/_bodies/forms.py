"""Forms: a body to fields and files, urlencoded or multipart, parsed once for both.

`parse_form` needs a Content-Type, chunks and limits, and knows no request. Fields are text, strict
UTF-8; files are `UploadFile`. An exception or a cancellation removes the files already written.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from dataclasses import dataclass

from treefold_http._bodies.multipart import MULTIPART, Event, PartParser, parse_boundary
from treefold_http._bodies.part_head import PartHead
from treefold_http._bodies.space import FormSpace
from treefold_http._bodies.uploads import UploadFile, close_uploads
from treefold_http._wire.datastructures import MultiMapping, parse_urlencoded
from treefold_http._wire.errors import BadRequest, PayloadTooLarge, UnsupportedMediaType
from treefold_http._wire.limits import DEFAULT_LIMITS, Limits

URLENCODED = "application/x-www-form-urlencoded"


class FormData(MultiMapping[str]):
    """The text fields of a form: repeats kept in the order sent."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ParsedForm:
    """Both views of one form.

    Attributes:
        fields: the text fields.
        files: the files; none in an urlencoded form.
        space: the room that it takes until it is closed.
    """

    fields: FormData
    files: MultiMapping[UploadFile]
    space: FormSpace | None = None

    async def close(self, error: BaseException | None = None) -> None:
        """Close every file; names, types and sizes stay readable.

        Args:
            error: the exception of the request; unused, every exit callback takes it.
        """
        await close_uploads(upload for _, upload in self.files.multi_items())
        if self.space is not None:
            self.space.close()


async def parse_form(
    content_type: str,
    chunks: AsyncIterable[bytes],
    *,
    limits: Limits = DEFAULT_LIMITS,
    space: FormSpace | None = None,
) -> ParsedForm:
    """Read a form to its end.

    Args:
        content_type: the Content-Type of the request; empty without one.
        chunks: its body.
        space: the room of the form; by default that of a client without a share.

    Raises:
        UnsupportedMediaType: when the body is no form.
        BadRequest: for a form that is malformed, truncated, not UTF-8, or of too many parts.
        PayloadTooLarge: for a form or a field above its limit.
        ServiceUnavailable: when there is no room beside the other forms of the process.
        MissingExtra: for a multipart form without python-multipart.
    """
    kind = content_type.partition(";")[0].strip(" \t").lower()
    if kind == URLENCODED:
        return await _parse_urlencoded(chunks, limits, space)
    if kind != MULTIPART:
        sent = f"Content-Type is {kind!r}" if kind else "Content-Type is missing"
        raise UnsupportedMediaType(f"{sent}; send {URLENCODED} or {MULTIPART}")
    parser = PartParser(parse_boundary(content_type, limits), limits=limits)
    builder = FormBuilder(limits, space or FormSpace(limits=limits))
    try:
        async for chunk in chunks:
            for event in parser.feed_chunk(chunk):
                if wanted := builder.add_and_count_unreserved_bytes(event):
                    await builder.reserve_or_spill(wanted)
        for event in parser.parse_waiting_chunks():
            if wanted := builder.add_and_count_unreserved_bytes(event):
                await builder.reserve_or_spill(wanted)
        parser.require_closing_boundary()
        return builder.build_form()
    # not GeneratorExit, as a coroutine that is being closed cannot await
    except (Exception, asyncio.CancelledError):
        await builder.discard_form()
        raise


async def _parse_urlencoded(
    chunks: AsyncIterable[bytes], limits: Limits, space: FormSpace | None
) -> ParsedForm:
    parts: list[bytes] = []
    size = 0
    async for chunk in chunks:
        parts.append(chunk)
        size += len(chunk)
        if size > limits.urlencoded:
            raise PayloadTooLarge(f"The form must have at most {limits.urlencoded} bytes")
    pairs = parse_urlencoded(b"".join(parts), limit=limits.parts)
    for name, value in pairs:
        if len(value.encode()) > limits.field:
            raise _make_field_size_error(name, limits)
    return ParsedForm(FormData(pairs), MultiMapping(), space)


class FormBuilder:
    """Assembles the events of a multipart body into fields and files."""

    __slots__ = (
        *("_allowed", "_held", "_limits", "_name", "_size", "_space", "_upload"),
        *("fields", "files"),
    )

    def __init__(self, limits: Limits, space: FormSpace) -> None:
        self.fields: list[tuple[str, str]] = []
        self.files: list[tuple[str, UploadFile]] = []
        self._limits = limits
        self._space = space
        self._upload: UploadFile | None = None
        self._name: str | None = None
        self._reset_pieces(0)
        space.forget = self.discard_form

    def add_and_count_unreserved_bytes(self, event: Event) -> int:
        """Take an event; return the bytes of it that still need `reserve_or_spill`, mostly 0."""
        if isinstance(event, PartHead):
            self._begin_part(event)
            return 0
        size = len(event)
        self._held.append(event)
        self._size += size
        if self._size > self._allowed:
            return size
        space = self._space
        # a chunk of most uploads is reserved already, which costs no call
        if size <= space.ahead and not space.is_evicted:
            space.ahead -= size
            return 0
        return 0 if space.try_reserve_memory(size) else size

    async def reserve_or_spill(self, size: int) -> None:
        """Write a file to disk, or let a slower form give way to the text of a field.

        Raises:
            PayloadTooLarge: for a field above its limit.
        """
        if self._upload is None:
            if self._size > self._limits.field:
                raise _make_field_size_error(self._name or "", self._limits)
            await self._space.reserve_memory(size)
            return
        held, self._held = self._held, []
        await self._upload._spill_pieces(held, self._size - size, self._limits, self._space)  # pyright: ignore[reportPrivateUsage]

    def build_form(self) -> ParsedForm:
        """End the last part, and return the form."""
        self._space.require_not_evicted()
        self._store_finished_part()
        self._space.is_complete, self._space.forget = True, None
        return ParsedForm(FormData(self.fields), MultiMapping(self.files), self._space)

    async def discard_form(self) -> None:
        """Drop everything that has arrived."""
        files, self.files, self.fields, self._held = self.files, [], [], []
        await close_uploads(upload for _, upload in files)
        self._space.close()

    def _begin_part(self, head: PartHead) -> None:
        self._space.require_not_evicted()
        self._store_finished_part()
        if head.filename is None:
            self._name = head.name
            self._reset_pieces(self._limits.field)
        else:
            self._upload = UploadFile(head.filename, head.content_type, headers=head.headers)
            self.files.append((head.name, self._upload))
            self._reset_pieces(self._limits.spool)

    def _reset_pieces(self, memory_limit: int) -> None:
        self._held: list[bytes] = []
        self._size, self._allowed = 0, memory_limit

    def _store_finished_part(self) -> None:
        if self._upload is not None:
            self._upload._keep_pieces(self._held, self._size)  # pyright: ignore[reportPrivateUsage]
            self._upload = None
        elif self._name is not None:
            try:
                # decoded whole, as a character may lie in two pieces
                value = b"".join(self._held).decode("utf-8")
            except UnicodeDecodeError:
                raise BadRequest(f"Field {self._name!r} is not UTF-8 text") from None
            self.fields.append((self._name, value))
            self._name = None


def _make_field_size_error(name: str, limits: Limits) -> PayloadTooLarge:
    return PayloadTooLarge(f"Field {name!r} is larger than {limits.field} bytes")
