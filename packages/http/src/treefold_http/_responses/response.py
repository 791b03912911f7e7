"""Responses: a status, header fields and a body, checked where they are set.

An author may make a `Response` once and return it for every request: `copy_response` gives each
request one of its own. `send` writes the two messages of the protocol; streams override it in
`_responses.streams`. The application passes the fields of every response (request
id, `nosniff`) to `send`, so that no response can leave without them.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from copy import copy
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    ParamSpec,
    TypeAlias,
    TypedDict,
    TypeVar,
    Unpack,
    cast,
)
from urllib.parse import quote

from treefold_http._headers.cookies import format_cookie
from treefold_http._headers.header_fields import encode_header
from treefold_http._json.json import dumps
from treefold_http._wire.asgi import Message, RawHeaders, Send
from treefold_http._wire.datastructures import MutableHeaders

if TYPE_CHECKING:
    from treefold_http._headers.content_disposition import Disposition
    from treefold_http._requests.request import Request
    from treefold_http._responses.files import FileResponse
    from treefold_http._responses.streams import StreamContent, StreamingResponse

P = ParamSpec("P")
T = TypeVar("T")
Bytes: TypeAlias = bytes  # Response has a constructor of that name
Background: TypeAlias = Callable[[], "Awaitable[Any] | Any"]

JSON_TYPE = (b"content-type", b"application/json")
TEXT_TYPE = (b"content-type", b"text/plain; charset=utf-8")
BYTES_TYPE = (b"content-type", b"application/octet-stream")
HTML_TYPE = (b"content-type", b"text/html; charset=utf-8")

NOSNIFF = (b"x-content-type-options", b"nosniff")

BODILESS = frozenset({204, 205, 304})
"""Statuses that carry no body and no content headers (RFC 9110, 6.4.1)."""

_OURS = frozenset({b"transfer-encoding", b"x-request-id", b"x-content-type-options"})
"""Fields that the server or the application writes; those set on a response are dropped."""


_OURS_AND_LENGTH = _OURS | {b"content-length"}

_MERGED = frozenset({b"vary", b"set-cookie"})
"""Fields of which a response and its layers may each send some."""


LINK = bytes(bytearray(b"link"))
"""The name of a `Link` that is sent beside one of the response; known by its identity."""


class _Lengths(dict[int, tuple[bytes, bytes]]):
    """`Content-Length` by size; a look-up is five times as fast as formatting."""

    def __missing__(self, size: int) -> tuple[bytes, bytes]:
        field = (b"content-length", b"%d" % size)
        # bounded, as bodies have any number of sizes
        if size < _COMMON_SIZES:
            self[size] = field
        return field


_COMMON_SIZES = 4096
"""Bytes of a body up to which its Content-Length field is kept, made once for each size."""
LENGTH_FIELDS = _Lengths()


class Options(TypedDict, total=False):
    """The options of every constructor: header fields, and a call after the response is sent."""

    headers: Mapping[str, str] | None
    background: Background | None


class FileOptions(Options, total=False):
    """The options of `Response.file`, as `FileResponse` describes them."""

    filename: str | None
    media_type: str | None
    disposition: Disposition | None


def _accept_parameters_of(
    formatter: Callable[P, str],
) -> Callable[[Callable[[T, str], None]], Callable[Concatenate[T, P], None]]:
    """Replace the parameter of a method, a text, by those of the function that writes it."""

    def decorate_method(method: Callable[[T, str], None]) -> Callable[Concatenate[T, P], None]:
        def call_method(self: T, *args: P.args, **kwargs: P.kwargs) -> None:
            method(self, formatter(*args, **kwargs))

        call_method.__doc__ = method.__doc__
        return call_method

    return decorate_method


class Response:
    """A response whose body is known when it is made.

    Args:
        content: a str (sent as UTF-8) or bytes; None for an empty body.
        status: the HTTP status code, 200 to 599.
        headers: further header fields; they are copied.
        media_type: the `Content-Type`; default text/plain for str, application/octet-stream for
            bytes.
        background: a callable without parameters, run after the response is sent.

    Raises:
        ValueError: for a status out of range, or a header that could split the response.
        TypeError: when the content is neither str nor bytes, or the background cannot be called.
    """

    __slots__ = ("_headers", "background", "body", "raw_headers", "status")

    body: Bytes
    raw_headers: RawHeaders

    def __init__(
        self,
        content: str | Bytes | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        media_type: str | None = None,
        background: Background | None = None,
    ) -> None:
        self.body = _encode_content(content)
        kind = TEXT_TYPE if isinstance(content, str) else BYTES_TYPE
        self._set_options(status, headers, background)
        if media_type is not None:
            self.headers["content-type"] = media_type
        elif content is not None and "content-type" not in self.headers:
            self.raw_headers.append(kind)

    def _set_options(
        self, status: int, headers: Mapping[str, str] | None, background: Background | None
    ) -> None:
        self.status = check_status(status)
        self.raw_headers = [encode_header(k, v) for k, v in headers.items()] if headers else []
        if background is not None and not callable(cast("object", background)):
            raise TypeError(
                "The background of a response must be callable, got"
                f" {type(background).__qualname__!r}; pass the function itself, with its"
                " arguments in functools.partial"
            )
        self.background = background

    @classmethod
    def _from_body(
        cls,
        body: Bytes,
        content_type: tuple[Bytes, Bytes],
        status: int,
        headers: Mapping[str, str] | None = None,
        background: Background | None = None,
    ) -> Response:
        made = make_unchecked_response(body, content_type, check_status(status))
        if headers or background:
            made._set_options(status, headers, background)
            if "content-type" not in made.headers:
                made.raw_headers.append(content_type)
        return made

    @property
    def headers(self) -> MutableHeaders:
        """The header fields, mutable; each is checked where it is set."""
        try:
            return self._headers
        except AttributeError:
            self._headers = MutableHeaders(self.raw_headers)
            return self._headers

    @_accept_parameters_of(format_cookie)
    def set_cookie(self, cookie: str) -> None:
        """Add a `Set-Cookie` field (RFC 6265bis).

        Args:
            max_age: life in seconds.
            expires: end of life; a naive time is taken as UTC.

        Raises:
            ValueError: for anything that is invalid in the field; the message names it.
        """
        self.headers.append("set-cookie", cookie)

    def delete_cookie(self, name: str, *, path: str = "/", domain: str | None = None) -> None:
        """Tell the client to forget a cookie that was set with the same path and domain."""
        self.set_cookie(name, "", max_age=0, path=path, domain=domain)

    def messages(self, common: RawHeaders, head: bool) -> tuple[Message, Message]:
        """Return the start and the body message of the protocol.

        Args:
            common: fields of every response of the application; the list becomes the header of the
                message.
            head: True for a HEAD request: the same header fields, no body.
        """
        body = self.body
        own = self.raw_headers
        # most responses have their type alone, and need no filter
        if len(own) != 1 or own[0][0] != b"content-type":
            own = [pair for pair in own if pair[0] not in _OURS_AND_LENGTH]
        fields = common
        if self.status in BODILESS:
            body = b""
            fields += [pair for pair in own if pair[0] != b"content-type"]
            if self.status == 205:  # its length must be said (RFC 9110, 15.3.6)
                fields.append(LENGTH_FIELDS[0])
        else:
            fields += own
            fields.append(LENGTH_FIELDS[len(body)])
        return (
            {"type": "http.response.start", "status": self.status, "headers": fields},
            {"type": "http.response.body", "body": b"" if head else body},
        )

    async def send(self, request: Request, send: Send, common: RawHeaders) -> None:
        """Send the response: one start and one body message, unless a subclass overrides it."""
        start, body = self.messages(common, request.method == "HEAD")
        await send(start)
        await send(body)

    @classmethod
    def json(cls, content: Any, status: int = 200, **options: Unpack[Options]) -> Response:
        """Make a JSON response.

        Raises:
            TypeError, ValueError: when a part of the content has no JSON form.
        """
        return Response._from_body(dumps(content), JSON_TYPE, status, **options)

    @classmethod
    def text(cls, content: str, status: int = 200, **options: Unpack[Options]) -> Response:
        """Make a `text/plain; charset=utf-8` response."""
        return Response._from_body(content.encode(), TEXT_TYPE, status, **options)

    @classmethod
    def html(cls, content: str, status: int = 200, **options: Unpack[Options]) -> Response:
        """Make a `text/html; charset=utf-8` response; the caller must escape the content."""
        return Response._from_body(content.encode(), HTML_TYPE, status, **options)

    @classmethod
    def bytes(cls, content: Bytes, status: int = 200, **options: Unpack[Options]) -> Response:
        """Make an `application/octet-stream` response; `headers` may name another type."""
        if isinstance(cast("object", content), (str, int)):
            message = f"Response.bytes content must be bytes, got {type(content).__qualname__!r}"
            raise TypeError(message)
        return Response._from_body(Bytes(content), BYTES_TYPE, status, **options)

    @classmethod
    def empty(cls, status: int = 204, **options: Unpack[Options]) -> Response:
        """Make a response without a body."""
        return Response(None, status, **options)

    @classmethod
    def redirect(
        cls,
        location: str,
        status: int = 307,
        *,
        allow: tuple[str, ...] = (),
        **options: Unpack[Options],
    ) -> Response:
        """Make a redirect to a path of this site, or to an allowed origin (S-17).

        Args:
            location: a path that starts with one `/`, or an absolute URL of an allowed origin.
            status: 301, 302, 303, 307 or 308.
            allow: origins such as `https://login.example.com`.

        Raises:
            ValueError: when the location could leave the site by accident.
        """
        if status not in (301, 302, 303, 307, 308):
            message = f"A redirect must have the status 301, 302, 303, 307 or 308, got {status!r}"
            raise ValueError(message)
        made = Response(None, status, **options)
        made.headers["location"] = _require_safe_location(location, allow)
        return made

    @classmethod
    def stream(
        cls, content: StreamContent, status: int = 200, **options: Unpack[Options]
    ) -> StreamingResponse:
        """Make a response that is sent while it is produced; see `StreamingResponse`."""
        from treefold_http._responses.streams import StreamingResponse

        return StreamingResponse(content, status, **options)

    @classmethod
    def file(
        cls, path: str | os.PathLike[str], status: int = 200, **options: Unpack[FileOptions]
    ) -> FileResponse:
        """Make a response with a file's content; see `FileResponse`."""
        from treefold_http._responses.files import FileResponse

        return FileResponse(path, status, **options)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.status}>"


def copy_sendable_fields(fields: RawHeaders) -> RawHeaders:
    """Return a copy of the fields without those that the server or the application writes."""
    if len(fields) == 1 and fields[0][0] == b"content-type":
        return fields.copy()
    return [pair for pair in fields if pair[0] not in _OURS]


def copy_response(response: Response) -> Response:
    """Return a response of the same type and content, with header fields of its own."""
    # by hand on the hot path, as `copy` goes through `__reduce_ex__`
    if response.__class__ is Response:
        made = _new(Response)
        made.status = response.status
        made.raw_headers = response.raw_headers.copy()
        made.body = response.body
        made.background = response.background
        return made
    made = copy(response)
    made.raw_headers = response.raw_headers.copy()
    with suppress(AttributeError):
        # a view of the fields that were copied
        del made._headers  # pyright: ignore[reportPrivateUsage] - of a class in this module
    return made


def find_missing_fields(response: Response | None, fields: RawHeaders) -> RawHeaders:
    """Return the fields that a response does not set itself; `Vary` and cookies are merged."""
    if response is None:
        return fields
    own = response.raw_headers
    if len(own) == 1 and own[0][0] == b"content-type":
        return fields
    return drop_present_fields(own, fields)


def drop_present_fields(own: RawHeaders, fields: RawHeaders) -> RawHeaders:
    """Return the fields that others do not set; `Vary`, cookies and `LINK` are merged."""
    names = {name for name, _ in own}
    named = _collect_vary_names(own) if b"vary" in names else ()
    names -= _MERGED
    return [
        pair
        for pair in fields
        if (pair[0] not in names or pair[0] is LINK) and not _is_named(pair, named)
    ]


def _collect_vary_names(fields: RawHeaders) -> set[bytes]:
    values = [value for name, value in fields if name == b"vary"]
    return {part.strip() for value in values for part in value.lower().split(b",")}


def _is_named(pair: tuple[bytes, bytes], vary_names: Collection[bytes]) -> bool:
    return pair[0] == b"vary" and pair[1].lower() in vary_names


def make_unchecked_response(
    body: bytes, content_type: tuple[bytes, bytes], status: int
) -> Response:
    """Make a response from a body, a Content-Type and a status without checking them."""
    made = _new(Response)
    made.status = status
    made.raw_headers = [content_type]
    made.body = body
    made.background = None
    return made


_new = Response.__new__


def _encode_content(content: object) -> bytes:
    if content is None:
        return b""
    if isinstance(content, str):
        return content.encode()
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(cast("bytes", content))
    raise TypeError(
        f"Response content must be str or bytes, got {type(content).__qualname__!r}; use"
        " Response.json(content) for data"
    )


def check_status(status: int) -> int:
    """Return the status if a response may have it.

    Raises:
        ValueError: when it is no int from 200 to 599.
    """
    # exact, as True is an int to `isinstance`
    if status.__class__ is int and 200 <= status <= 599:
        return status
    if not isinstance(cast("object", status), int) or isinstance(status, bool):
        raise ValueError(f"A status must be an int such as 200, got {status!r}")
    if not 200 <= status <= 599:
        raise ValueError(f"A status must be from 200 to 599, got {status!r}")
    return int(status)


def _require_safe_location(location: str, allow: tuple[str, ...]) -> str:
    # browsers read `//host`, and also `/\host`, as another site
    inside = location.startswith("/") and not location.startswith(("//", "/\\"))
    # compared whole: `https://a.example.evil` begins with `https://a.example`
    origin = "/".join(location.split("/", 3)[:3])
    # browsers drop tabs and line breaks: `/<tab>/host` would become `//host`
    if any(ord(char) <= 0x20 or char in "\\\x7f" for char in location) or not (
        inside or origin in allow
    ):
        raise ValueError(
            f"A redirect to {location!r} could lead to another site; use a path that starts"
            " with one '/', or name its origin in allow=(...)"
        )
    return quote(location, safe="/%:?#[]@!$&'()*+,;=~-._")
