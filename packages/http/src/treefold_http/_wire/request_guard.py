"""Checks of the request line and header, before routing.

Both HTTP parsers of the server accept requests that RFC 9112 forbids or no client needs (S-13,
S-14, S-21, S-23), so the checks are here, once, for every server. A valid request costs two joins
and two look-ups; the text of a refusal is built only for an invalid one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from treefold_http._wire.asgi import RawHeaders, Scope
from treefold_http._wire.errors import BadRequest, HTTPError

MAX_FIELDS = 100
MAX_HEADER_BYTES = 32 * 1024
MAX_TARGET_BYTES = 8 * 1024

_KNOWN_HOSTS_LIMIT = 1024
_CLOSE = {"Connection": "close"}
_known_hosts: set[bytes] = set()

# RFC 3986, 3.2.2: a name, an IPv4 address or a bracketed IPv6 address, then an optional port.
is_host = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::[0-9]{1,5})?"
).fullmatch


def check_request(scope: Scope, fields: Mapping[bytes, bytes], path: bytes | str) -> None:
    """Refuse a request whose request line or header is malformed or above a limit.

    Args:
        scope: the ASGI scope, HTTP or WebSocket.
        fields: its header as a dictionary; repeated names are counted on the raw list.
        path: the path as sent, or decoded if the server does not keep the raw path.

    Raises:
        HTTPError: 400, 414 or 431.
    """
    raw: RawHeaders = scope["headers"]
    if len(fields) == len(raw):
        size = len(b"".join([*fields, *fields.values()]))
    else:
        size = sum(len(name) + len(value) for name, value in raw)
        if sum(name == b"host" for name, _ in raw) > 1:
            raise BadRequest("More than one Host field")
    if size > MAX_HEADER_BYTES or len(raw) > MAX_FIELDS:
        raise HTTPError(
            431, f"The header is larger than {MAX_HEADER_BYTES} bytes or {MAX_FIELDS} fields"
        )
    host = fields.get(b"host")
    if host not in _known_hosts:
        if host is None or not is_host(host):
            raise BadRequest("A request must have a Host field of the form host[:port]")
        if len(_known_hosts) < _KNOWN_HOSTS_LIMIT:
            _known_hosts.add(host)
    if b"content-length" in fields or b"transfer-encoding" in fields:
        _check_framing(fields, raw)
    if len(path) + len(scope["query_string"]) > MAX_TARGET_BYTES:
        raise HTTPError(414, f"The request target is longer than {MAX_TARGET_BYTES} bytes")


def _check_framing(fields: Mapping[bytes, bytes], raw: RawHeaders) -> None:
    """Refuse framing that two parsers could read as two different bodies (RFC 9112, 6; S-20).

    The connection is closed after the response: further bytes may be the rest of the body.
    """
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if coding is not None and (length is not None or coding.strip().lower() != b"chunked"):
        raise BadRequest(
            "Transfer-Encoding must be 'chunked' and come without Content-Length", headers=_CLOSE
        )
    if length is None:
        return
    if not length.isdigit() or len(length) > 19 or (len(fields) != len(raw) and _differs(raw)):
        raise BadRequest("Content-Length must be one decimal number", headers=_CLOSE)


def _differs(raw: RawHeaders) -> bool:
    """Return True if repeated Content-Length fields have different values (RFC 9112, 6.3)."""
    return len({value for name, value in raw if name == b"content-length"}) > 1
