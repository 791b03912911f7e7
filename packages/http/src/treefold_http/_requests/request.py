"""The request a handler sees: a `Connection` with a method and a body.

It holds no policy: limits come from the route, and the parsers that it calls refuse bad input.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from functools import lru_cache
from typing import Any, cast

from treefold_http._bodies.forms import URLENCODED, FormData, ParsedForm, parse_form
from treefold_http._bodies.multipart import MULTIPART
from treefold_http._bodies.parts import Part, stream_parts
from treefold_http._bodies.reader import UNREAD, BodyReader
from treefold_http._bodies.space import FormSpace
from treefold_http._bodies.uploads import UploadFile
from treefold_http._headers.header_fields import BLANKS
from treefold_http._headers.header_params import parse_header
from treefold_http._headers.media_types import is_json
from treefold_http._json.json import loads
from treefold_http._requests.connection import Connection
from treefold_http._wire.addresses import find_client_network
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.client_names import ClientObject
from treefold_http._wire.datastructures import MultiMapping
from treefold_http._wire.errors import BadRequest, UnsupportedMediaType
from treefold_http._wire.limits import DEFAULT_LIMITS, Limits


@lru_cache(maxsize=256)
def _parse_media_type(field: bytes) -> str:
    return field.decode("latin-1").partition(";")[0].strip().lower()


def _require_utf8_json(content_type: str) -> None:
    try:
        charset = parse_header(content_type)[1].get("charset", "utf-8")
    except ValueError as error:
        raise BadRequest(f"Content-Type {error}") from None
    if charset.lower() not in ("utf-8", "utf8", "us-ascii"):
        raise BadRequest(f"A JSON body must be UTF-8, got charset {charset!r}")


class Request(Connection):
    """One HTTP request.

    Attributes:
        fallback: the response, the error, or the function that answers a request without a route;
            otherwise not set.
        parsed_form: the parsed fields and files; not set before the first use of the form.
    """

    __slots__ = ("fallback", "parsed_form")

    fallback: object
    parsed_form: ParsedForm

    @property
    def method(self) -> str:
        """The HTTP method, in capitals."""
        return self.scope["method"]

    @property
    def content_type(self) -> str:
        """The media type of the body in lower case, without parameters; empty without one."""
        return _parse_media_type(self.fields.get(b"content-type", b""))

    @property
    def reader(self) -> BodyReader:
        """The one reader of the body, with the limit of the route."""
        if (reader := self.opened_reader) is None:
            limit = self.plan.max_body if self.plan else self.app.settings.max_body
            size = self._read_declared_size()
            reader = self.opened_reader = BodyReader(self._receive, size, limit=limit)
        return reader

    def _read_declared_size(self) -> int | None:
        """The announced size of the body; 0 if HTTP/1.1 framing says that there is none."""
        length = self.fields.get(b"content-length", b"").strip(BLANKS)
        if length.isdigit():
            return int(length)
        # HTTP/2 frames a body itself and needs no field for it
        known = self.scope.get("http_version", "1.1").startswith("1")
        return 0 if known and b"transfer-encoding" not in self.fields else None

    async def body(self) -> bytes:
        """Return the whole body as bytes.

        Raises:
            PayloadTooLarge: above the limit of the route.
            ClientDisconnect: when the client left before the end.
        """
        return await self.reader.read()

    async def json(self) -> Any:
        """Return the body parsed as JSON, whatever its Content-Type; None for an empty body.

        Raises:
            BadRequest: when the body is not valid JSON.
            PayloadTooLarge, ClientDisconnect: as `body`.
        """
        reader = self.opened_reader or self.reader
        if reader.json is UNREAD:
            self._refuse_content_coding()
            body = await reader.read()
            value: Any = loads(body) if body else None
            # an installed extension may have models, for which a client must not choose names
            if self.app.installed and type(value) is dict:
                value = ClientObject(cast("JSONObject", value))
            reader.json = value
        return reader.json

    def check_json_type(self) -> None:
        """Refuse a body that cannot be read as a model: another media type, or a content coding.

        Raises:
            UnsupportedMediaType: for another media type, or a content coding.
            BadRequest: for a charset other than UTF-8 (RFC 8259, 8.1; S-30).
        """
        if not is_json(self.content_type):
            raise UnsupportedMediaType(f"The body is {self.content_type!r}; send application/json")
        if b";" in self.fields.get(b"content-type", b""):
            _require_utf8_json(self._read_content_type())
        self._refuse_content_coding()

    def _refuse_content_coding(self) -> None:
        coding = self.fields.get(b"content-encoding")
        if coding is not None and coding.strip().lower() not in (b"", b"identity"):
            raise UnsupportedMediaType(
                f"Content-Encoding {coding.decode('latin-1')!r} is not supported; send the body"
                " uncompressed",
                headers={"Accept-Encoding": "identity"},  # RFC 9110, 12.5.3
            )

    async def form(self) -> FormData:
        """Return the text fields of an urlencoded or multipart form; parsed once, with `files`.

        A request without a body and without a content type has an empty form.

        Raises:
            UnsupportedMediaType: when the body is no form.
            BadRequest: when it is malformed, or has too many parts.
            PayloadTooLarge, ClientDisconnect: as `body`.
        """
        return (await self._parse_form_once()).fields

    async def files(self) -> MultiMapping[UploadFile]:
        """Return the uploaded files of a multipart form; they live as long as the request.

        Raises:
            As `form`.
        """
        return (await self._parse_form_once()).files

    async def parts(self) -> AsyncIterator[Part]:
        """Yield the parts of a multipart form as they arrive, for uploads larger than memory.

        Raises:
            As `form`, while iterating.
        """
        limits = self._apply_form_limits()
        async with aclosing(self.reader.stream_chunks()) as chunks:
            async for part in stream_parts(self._read_content_type(), chunks, limits=limits):
                yield part

    async def _parse_form_once(self) -> ParsedForm:
        try:
            return self.parsed_form
        except AttributeError:
            if self.reader.declared == 0 and not self.content_type:
                form = ParsedForm(FormData(), MultiMapping())  # no body
            else:
                form = await self._read_form()
            self.parsed_form = form
            return form

    async def _read_form(self) -> ParsedForm:
        limits = self._apply_form_limits()
        space = FormSpace(find_client_network(self.scope), limits)
        try:
            if self.content_type == URLENCODED:
                # Kept for the log, and for body() after form().
                await self.reader.read(space.reserve_memory)
                space.is_complete = True
            async with aclosing(self.reader.stream_chunks()) as chunks:
                kind = self._read_content_type()
                form = await parse_form(kind, chunks, limits=limits, space=space)
        except BaseException:
            space.close()
            raise
        self.on_exit(form.close)
        return form

    def _read_content_type(self) -> str:
        return self.headers.get("content-type", "")

    def _apply_form_limits(self) -> Limits:
        self._refuse_content_coding()
        limits = self.plan.form_limits if self.plan else DEFAULT_LIMITS
        if self.content_type == MULTIPART:
            self.reader.limit = limits.total
        return limits

    def stream(self) -> AsyncGenerator[bytes]:
        """Return an iterator over the body's chunks as they arrive; they are not kept.

        Raises:
            PayloadTooLarge, ClientDisconnect: as `body`, while iterating.
        """
        return self.reader.stream_chunks()

    async def is_disconnected(self) -> bool:
        """Return True if the client has disconnected; does not wait, the body stays readable."""
        reader = self.reader
        if not reader.is_reading_ahead:
            self.on_exit(reader.stop_disconnect_probe)
        return await reader.is_disconnected()

    def __repr__(self) -> str:
        return f"<Request {self.method} {self.path!r} id={self.id}>"
