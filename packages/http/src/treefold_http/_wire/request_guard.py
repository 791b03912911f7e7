"""Checks of the request line and header, before routing.

Both HTTP parsers of the server accept requests that RFC 9112 forbids or no client needs, so the
checks are here, once, for every server: exactly one valid `Host` (S-13), a target that names no
other host (S-14), limits of the header (S-21) and of the target (S-23). A valid request costs two
joins and two look-ups; the text of a refusal is built only for an invalid one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import unquote

from treefold_http._headers.header_fields import BLANKS
from treefold_http._wire.asgi import RawHeaders, Receive, Scope
from treefold_http._wire.errors import BadRequest, HTTPError
from treefold_http._wire.root_path import add_root_prefix

MAX_FIELDS = 100
"""Header fields of one request; a browser sends about 20."""
MAX_HEADER_BYTES = 32 * 1024
"""Bytes of all names and values together."""
HEAD_SIZE = "treefold.head_size"
"""Entry of a scope in which `treefold serve` says that the head has at most so many bytes, for
those that came in one piece: it knows this without counting."""
MAX_TARGET_BYTES = 8 * 1024
"""Bytes of path and query; RFC 9110, 4.1 asks for 8,000 at least."""

_FRAMING = (b"content-length", b"transfer-encoding")
SINGLE_FIELDS = frozenset(
    (
        *(*_FRAMING, b"host", b"content-type", b"content-encoding", b"content-range"),
        *(b"content-location", b"content-disposition", b"authorization", b"proxy-authorization"),
        *(b"range", b"if-range", b"if-modified-since", b"if-unmodified-since", b"max-forwards"),
        *(b"date", b"from", b"referer", b"user-agent", b"access-control-request-method"),
        *(b"sec-websocket-key", b"sec-websocket-version"),
    )
)
"""Fields of a request that may stand once (RFC 9110, 5.3). More than one Origin is no origin, and
more than one X-Request-ID no id."""
_PORTS = {b"http": b":80", b"https": b":443"}
_KNOWN_HOSTS_LIMIT = 1024
"""Values of Host that are remembered, and need no second check."""
_CLOSE = {"Connection": "close"}
KNOWN_HOSTS: set[bytes] = set()
"""Values of Host that are well-formed."""

# RFC 3986, 3.2.2: a name, an IPv4 address or a bracketed IPv6 address, then an optional port.
is_host = re.compile(
    rb"(?:\[[0-9A-Fa-f:.]{2,45}\]|[A-Za-z0-9._-]{1,255})(?::[0-9]{1,5})?"
).fullmatch


def require_valid_head(scope: Scope, fields: Mapping[bytes, bytes], path: bytes | str) -> None:
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
        _refuse_repeated_fields(raw)
    if size > MAX_HEADER_BYTES or len(raw) > MAX_FIELDS:
        raise HTTPError(
            431, f"The header is larger than {MAX_HEADER_BYTES} bytes or {MAX_FIELDS} fields"
        )
    version = scope.get("http_version", "1.1")
    # ASGI writes HTTP/2 as `2`; the server has read `2.0` in a request line of HTTP/1
    if version != "1.1" and "." in version and version[0] != "1":
        raise HTTPError(505, "The server speaks HTTP/1.1", headers=_CLOSE)
    host = fields.get(b"host")
    # a client of HTTP/1.0 need not send one, as the probe of a load balancer (RFC 9112, 3.2)
    if host not in KNOWN_HOSTS and not (host is None and version == "1.0"):
        if host is None or not is_host(host := host.strip(BLANKS)):
            raise BadRequest("A request must have a Host field of the form host[:port]")
        # limited, as a client can send any number of names
        if len(KNOWN_HOSTS) < _KNOWN_HOSTS_LIMIT:
            KNOWN_HOSTS.add(host)
    if b"content-length" in fields or b"transfer-encoding" in fields:
        _refuse_ambiguous_framing(fields)
    if len(path) + len(scope["query_string"]) > MAX_TARGET_BYTES:
        raise HTTPError(414, f"The request target is longer than {MAX_TARGET_BYTES} bytes")


def _refuse_repeated_fields(raw: RawHeaders) -> None:
    """Refuse a repeated field that may stand once: two readers could take two values of it."""
    once = [name for name, _ in raw if name in SINGLE_FIELDS]
    if len(set(once)) == len(once):
        return
    repeated = next(name for name in once if once.count(name) > 1)
    text = f"More than one {repeated.decode().title()} field"
    if repeated == b"content-length":
        text = "Content-Length must be one decimal number"
    if repeated == b"content-encoding":
        raise HTTPError(415, text)
    raise BadRequest(text, headers=_CLOSE if repeated in _FRAMING else None)


def replace_absolute_target(scope: Scope, fields: Mapping[bytes, bytes], prefix: str) -> None:
    """Replace an absolute target of the scope, such as `http://example.org/v1/user`, by its path.

    Args:
        scope: the ASGI scope, which is changed.
        fields: its header as a dictionary.
        prefix: the setting `root_path`, which the path then has in front; empty for none.

    Raises:
        BadRequest: if it is no http address, or names another host than the Host field
            (RFC 9112, 3.2.2).
    """
    target: bytes = scope.get("raw_path") or scope["path"].encode()
    scheme, _, rest = target.partition(b"://")
    authority, _, behind = rest.partition(b"/")
    port = _PORTS.get(scheme.lower())
    if port is None or not authority:
        raise BadRequest("The request target must be a path or an http address")
    named = fields.get(b"host", authority).strip(BLANKS)  # HTTP/1.0 may send none
    if authority.lower().removesuffix(port) != named.lower().removesuffix(port):
        raise BadRequest("The request target and the Host field must name the same host")
    scope["raw_path"], scope["path"] = b"/" + behind, "/" + unquote(behind.decode("latin-1"))
    if prefix:
        given = scope["root_path"].removesuffix(prefix)
        scope.update(add_root_prefix({**scope, "root_path": given}, prefix))


def refuse_body_with_upgrade(fields: Mapping[bytes, bytes], receive: Receive) -> None:
    """Refuse a body that the server drops, and would read as the next request.

    uvicorn's httptools protocol ends a request with `Upgrade` behind its head: a client could hide
    a second request in the body from a proxy in front (S-20). `treefold serve` and other servers
    deliver the body.

    Args:
        fields: the header as a dictionary.
        receive: the ASGI callable of the request.
    """
    if b"content-length" not in fields and b"transfer-encoding" not in fields:
        return
    server = getattr(receive, "__self__", None)
    if type(server).__module__ == "uvicorn.protocols.http.httptools_impl":
        raise BadRequest("This server cannot read a body behind Upgrade", headers=_CLOSE)


def is_plain_framing(fields: Mapping[bytes, bytes]) -> bool:
    """Return True for a body whose length is one decimal number, as that of most requests."""
    length = fields.get(b"content-length", b"")
    return length.isdigit() and len(length) <= 19 and b"transfer-encoding" not in fields


def _refuse_ambiguous_framing(fields: Mapping[bytes, bytes]) -> None:
    """Refuse framing that two parsers could read as two different bodies (RFC 9112, 6).

    A proxy and this server would disagree where the next request begins, and a client could smuggle
    one past the proxy (S-20). The connection is closed after the response: further bytes may be the
    rest of the body.
    """
    length, coding = fields.get(b"content-length"), fields.get(b"transfer-encoding")
    if coding is not None and (length is not None or coding.strip(BLANKS).lower() != b"chunked"):
        message = "Transfer-Encoding must be 'chunked' and come without Content-Length"
        raise BadRequest(message, headers=_CLOSE)
    if length is None:
        return
    # 2**63 has 19 digits: a parser with 64 bits could read another length from a longer text
    if not length.isdigit() or len(length) > 19:
        raise BadRequest("Content-Length must be one decimal number", headers=_CLOSE)
