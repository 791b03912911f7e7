"""The header of one part of a multipart body: the name of the field and of a file.

The input is header lines as bytes, split and counted by `_bodies.multipart`. A part without exactly
one name is refused (RFC 7578, 4.2; S-37). Two fields that no client may send are ignored:
`filename*`, a second name of the file that could differ from the first (RFC 7578, 4.2; S-40), and
`Content-Transfer-Encoding`, as decoding base64 has made other parsers slow (RFC 7578, 4.7; S-38).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from treefold_http._headers.header_params import parse_header
from treefold_http._wire.asgi import RawHeaders
from treefold_http._wire.datastructures import Headers
from treefold_http._wire.errors import BadRequest

_UTF_8 = ("utf-8", "utf8", "us-ascii", "ascii")

_control = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]").search


@dataclass(frozen=True, slots=True)
class PartHead:
    """The parsed header of a part; all values come from the client.

    Attributes:
        name: the form field.
        filename: the file name as sent; None for a part that is not a file.
        content_type: the media type as sent; empty without one.
        headers: the header fields of the part.
    """

    name: str
    filename: str | None
    content_type: str
    headers: Headers


def parse_head(raw: RawHeaders) -> PartHead:
    """Read the header fields of a part, names in lower case.

    Raises:
        BadRequest: for a missing, empty or repeated name, a header that is malformed or not UTF-8,
            a field in another charset, or a length that is not a number.
    """
    if any(_control(value) for _, value in raw):
        raise BadRequest("The header of a part must not contain a control character")
    field = _read_single_field(raw, b"content-disposition")
    kind, params = _parse_part_header("Content-Disposition", field)
    if kind != "form-data" or not params.get("name"):
        raise BadRequest('A part has no name; send Content-Disposition: form-data; name="..."')
    length = _read_single_field(raw, b"content-length")
    if length and not (length.isascii() and length.isdigit()):
        raise BadRequest("The Content-Length of a part must be a decimal number")
    filename = params.get("filename")
    content_type = _read_single_field(raw, b"content-type")
    if filename is None and ";" in content_type:
        _require_utf8_field(params["name"], content_type)
    return PartHead(params["name"], filename, content_type, Headers(raw))


def _read_single_field(raw: RawHeaders, name: bytes) -> str:
    values = [value for key, value in raw if key == name]
    if len(values) > 1:
        raise BadRequest(f"A part has more than one {name.decode().title()} field")
    try:
        return values[0].decode("utf-8") if values else ""
    except UnicodeDecodeError:
        raise BadRequest("The header of a part is not UTF-8 text") from None


def _parse_part_header(field: str, text: str) -> tuple[str, dict[str, str]]:
    try:
        return parse_header(text)
    except ValueError as error:
        raise BadRequest(f"The {field} of a part {error}") from None


def _require_utf8_field(field_name: str, content_type: str) -> None:
    charset = _parse_part_header("Content-Type", content_type)[1].get("charset", "utf-8")
    if charset.lower() not in _UTF_8:
        raise BadRequest(f"Field {field_name!r} is in charset {charset!r}; send UTF-8")
