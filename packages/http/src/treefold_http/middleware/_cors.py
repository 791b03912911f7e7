"""CORS: add the headers that allow pages of other origins, and answer preflights (S-58 to S-61).

Origins are compared whole, as browsers serialise them. A preflight is answered from the route
table. Which origin may open a socket is decided before any middleware, by `ws_allowed_origins`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from treefold_http._headers.header_fields import is_token
from treefold_http._plans.fallbacks import ASKED
from treefold_http._responses.response import Response
from treefold_http._wire.errors import HTTPError, NotFound

if TYPE_CHECKING:
    from treefold_http._requests.request import Request
    from treefold_http._wire.asgi import RawHeaders
from treefold_http._headers.header_fields import BLANKS

_VARY = (b"vary", b"Origin")
_ANY = (b"access-control-allow-origin", b"*")
_KNOWN_LIMIT = 1024
"""Origins whose response fields are kept."""
_PORTS = {"http": 80, "https": 443}
_NAME = r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?"
_is_host = re.compile(rf"(?:{_NAME}\.)*{_NAME}|\[[0-9a-f:.]+\]").fullmatch


class CORS:
    """Add the CORS fields to every answer, errors included, and answer preflights with 204.

    A refused origin gets the same answer without these fields: the browser then keeps it from the
    page. Put it before (outside of) middleware that refuses requests, whose answers carry the
    fields then.

    Args:
        allow_origins: origins such as `https://app.example.com`; `https://*.example.com` is any
            name below it, and not itself. `*` is every origin, without credentials. `null`, the
            origin of sandboxed frames and local files, counts only where it is listed.
        allow_origin_pattern: a regular expression that must match a whole origin.
        allow_methods: methods that a preflight may name; by default those that its path has.
        allow_headers: request header fields that a preflight may name; `*` is any.
        allow_credentials: let the browser send cookies, and pages read the answers.
        expose_headers: response header fields that pages may read.
        max_age: seconds that a browser may keep the answer to a preflight.
        allow_private_network: let public pages reach this server in a private network.

    Attributes:
        origins, methods, headers: as they were given.
        has_credentials: True if browsers may send cookies.
        pattern: the regular expression of origins; None for none.
        reaches_private_network: the argument `allow_private_network`.

    Raises:
        ValueError: for an origin, a method or a header name that is none; for `*`, `null` or a
            pattern of any origin with credentials; for names below a public suffix such as `com`.
    """

    answers_preflights = True
    is_for_requests = True  # the origin of a socket is checked before any middleware

    def __init__(
        self,
        allow_origins: Sequence[str] = (),
        *,
        allow_origin_pattern: str | None = None,
        allow_methods: Sequence[str] | None = None,
        allow_headers: Sequence[str] = ("Content-Type",),
        allow_credentials: bool = False,
        expose_headers: Sequence[str] = (),
        max_age: int = 600,
        allow_private_network: bool = False,
    ) -> None:
        lists = {
            "allow_origins": allow_origins,
            "allow_methods": allow_methods or (),
            "allow_headers": allow_headers,
            "expose_headers": expose_headers,
        }
        _validate_cors_options(lists, has_credentials=allow_credentials)
        if not allow_origins and allow_origin_pattern is None:
            message = "CORS() must allow an origin; pass allow_origins=['https://app.example.com']"
            raise ValueError(message)
        self.origins = tuple(allow_origins)
        self.methods = None if allow_methods is None else tuple(allow_methods)
        self.headers = tuple(allow_headers)
        self.has_credentials = allow_credentials
        self._any_origin = "*" in allow_origins
        self._exact = {_normalize_origin(one) for one in allow_origins if "*" not in one}
        wildcards = (one for one in allow_origins if "*" in one and one != "*")
        self._below = [_parse_wildcard_origin(one) for one in wildcards]
        self.pattern = re.compile(allow_origin_pattern) if allow_origin_pattern else None
        if self.pattern is not None and allow_credentials:
            _refuse_too_broad_pattern(self.pattern)
        self._any_header = "*" in allow_headers
        self._headers = {name.lower() for name in allow_headers}
        self.reaches_private_network = allow_private_network
        # Answers to allowed origins have the first two, and preflights also the third. All others
        # have `_refused`, by which caches keep the two kinds apart.
        allowed = (b"access-control-allow-credentials", b"true")
        self._granted: RawHeaders = [allowed] if allow_credentials else []
        exposed = _join_names(expose_headers)
        self._exposed: RawHeaders = [(b"access-control-expose-headers", exposed)] if exposed else []
        self._preflight: RawHeaders = [(b"access-control-max-age", b"%d" % max_age)]
        self._known: dict[bytes, RawHeaders] = {}
        self._refused: RawHeaders = [] if self._any_origin else [_VARY]

    def allows(self, origin: str) -> bool:
        """Return True if pages of an origin may read answers."""
        return (
            self._any_origin
            or origin in self._exact
            or any(_matches_wildcard(origin, *pair) for pair in self._below)
            or (self.pattern is not None and self.pattern.fullmatch(origin) is not None)
        )

    def before(self, request: Request) -> Response | None:
        """Answer a preflight; add the fields to the answer of any other request."""
        fields = request.fields
        if (origin := fields.get(b"origin")) is None:
            # `Vary` also without an `Origin`: a cache would send this answer, which has no CORS
            # fields, to a page of an allowed origin
            request.add_answer_fields(self._refused)
            return None
        known = self._known.get(origin)
        # fewer fields than headers: some name repeats, and that may be `Origin`
        if known is None or len(fields) != len(request.scope["headers"]):
            known = self._find_origin_fields(request, origin)
        if request.scope["method"] == "OPTIONS" and ASKED in fields:
            return self._answer_preflight(request, known)
        request.add_answer_fields(known)
        return None

    def _find_origin_fields(self, request: Request, origin: bytes) -> RawHeaders:
        """The fields for an origin; repeated `Origin` fields are no origin."""
        if len(request.headers.getlist("origin")) > 1:
            return self._refused
        if origin in self._known:
            return self._known[origin]
        if not self.allows(origin.strip(BLANKS).decode("latin-1")):
            return self._refused
        value = [_ANY] if self._any_origin else [_VARY, (_ANY[0], origin)]
        fields: RawHeaders = [*value, *self._granted, *self._exposed]
        # below `https://*.example.com` clients can send any number of origins
        if len(self._known) < _KNOWN_LIMIT:
            self._known[origin] = fields
        return fields

    def _answer_preflight(self, request: Request, fields: RawHeaders) -> Response | None:
        if (methods := _list_path_methods(request)) is None:
            return None  # 404: a page learns nothing of a path that does not exist
        if fields is self._refused:
            request.add_answer_fields(fields)
            return None
        if self.methods is not None:
            methods = [name for name in methods if name in self.methods]
        answer = Response.empty()
        # `_VARY_PREFLIGHT` names `Origin` too; exposed fields are those of the answer after it
        raw = [pair for pair in fields if pair not in self._exposed and pair != _VARY]
        raw.append((b"access-control-allow-methods", _join_names(methods)))
        if names := self._filter_requested_headers(request):
            raw.append((b"access-control-allow-headers", names))
        asks_private = b"access-control-request-private-network" in request.fields
        if self.reaches_private_network and asks_private:
            raw.append((b"access-control-allow-private-network", b"true"))
        answer.raw_headers.extend([*raw, *self._preflight, _VARY_PREFLIGHT])
        return answer

    def _filter_requested_headers(self, request: Request) -> bytes:
        """The header names that were asked for and may be sent."""
        asked = ",".join(request.headers.getlist("access-control-request-headers")).split(",")
        names = [name.strip().lower() for name in asked]
        tokens = filter(is_token, names)
        return _join_names([n for n in tokens if self._any_header or n in self._headers])


_VARY_PREFLIGHT = (
    b"vary",
    b"Origin, Access-Control-Request-Method, Access-Control-Request-Headers",
)


def _list_path_methods(request: Request) -> list[str] | None:
    """The methods of the path; None where nothing is there."""
    if (template := request.route) is not None:  # the path has Options.py
        routes = [route for route in request.app.table.routes if route.template == template]
        return [route.method for route in routes if route.method != "WEBSOCKET"]
    fallback = request.fallback
    if isinstance(fallback, NotFound):
        return None
    if isinstance(fallback, (HTTPError, Response)):
        allow = fallback.headers.get("Allow")
        return None if allow is None else [n for n in allow.split(", ") if n != "WEBSOCKET"]
    return ["GET", "HEAD"]  # a mounted folder


def _join_names(names: Sequence[str]) -> bytes:
    return ", ".join(names).encode("latin-1")


def _validate_cors_options(lists: Mapping[str, Sequence[str]], *, has_credentials: bool) -> None:
    for option, names in lists.items():
        if isinstance(names, str):
            raise ValueError(f"CORS {option} must be a list, got the text {names!r}")
        if option != "allow_origins" and (wrong := [n for n in names if not is_token(n)]):
            raise ValueError(f"CORS {option} must be a list of names, got the entry {wrong[0]!r}")
    for option, names in lists.items() if has_credentials else ():
        # A page of any origin could act as the logged-in user (S-58).
        for wildcard in {"*", "null"} & set(names) if option != "allow_methods" else ():
            raise ValueError(
                f"CORS({option}=[{wildcard!r}]) cannot be combined with allow_credentials=True;"
                " list each by its name"
            )


_SUFFIXES = ("com", "org", "net", "io", "dev", "app", "co", "de", "uk", "co.uk", "example")
_STRANGERS = (
    "null",
    *(f"{scheme}://{name}" for scheme in _PORTS for name in ("attacker", "attacker:8443")),
    *(f"{scheme}://a.attacker.{end}" for scheme in _PORTS for end in _SUFFIXES),
    *(f"{scheme}://attacker.{end}" for scheme in _PORTS for end in _SUFFIXES),
)
"""Origins that no pattern may match by accident: anybody can have a page there."""


def _refuse_too_broad_pattern(pattern: re.Pattern[str]) -> None:
    for origin in _STRANGERS:
        if pattern.fullmatch(origin):
            raise ValueError(
                f"CORS(allow_origin_pattern={pattern.pattern!r}) cannot be combined with"
                f" allow_credentials=True, because it matches {origin!r}; write the name of your"
                " site in it, such as r'https://[a-z0-9-]+\\.example\\.com'"
            )


def _normalize_origin(origin: str) -> str:
    """An origin as a browser sends it."""
    if origin == "null":
        return origin
    try:
        parts = urlsplit(origin)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _make_origin_error(origin) from None
    # `hostname` has no brackets around an IPv6 address
    name = f"[{host}]" if ":" in host else host
    # what else `urlsplit` accepts is no part of an origin: a path, a slash at the end, a login
    written = origin.lower() in (f"{parts.scheme}://{name}", f"{parts.scheme}://{name}:{port}")
    if not parts.scheme or not written or not _is_host(name):
        raise _make_origin_error(origin)
    # browsers leave out the port of the scheme
    end = "" if port in (None, _PORTS.get(parts.scheme)) else f":{port}"
    return f"{parts.scheme}://{name}{end}"


def _make_origin_error(text: str) -> ValueError:
    return ValueError(
        f"An origin must be scheme and host, such as 'https://app.example.com', got {text!r}"
    )


def _parse_wildcard_origin(text: str) -> tuple[str, str]:
    """`https://*.example.com` as the beginning and the end of the origins below it."""
    scheme, separator, rest = text.partition("://*.")
    if not separator or "*" in rest:
        raise _make_origin_error(text)
    whole = _normalize_origin(f"{scheme}://{rest}")
    scheme, _, rest = whole.partition("://")
    if _is_public_suffix(rest.partition(":")[0]):
        raise ValueError(
            f"An origin cannot be every name below a public suffix, got {text!r}; write the name"
            " of your site, such as 'https://*.example.com'"
        )
    # with the dot, or `https://evil-example.com` would end with `example.com`
    return f"{scheme}://", f".{rest}"


def _is_public_suffix(name: str) -> bool:
    """Return True for names such as `com` and `co.uk`, below which anybody can have a site."""
    *rest, last = name.split(".")
    if not rest:
        return last != "localhost"
    return len(rest) == 1 and len(last) == 2 and rest[0] in _SECOND_LEVEL


_SECOND_LEVEL = frozenset(
    {"ac", "co", "com", "edu", "gob", "gov", "go", "ltd", "me", "ne", "net", "nom", "or", "org"}
)


def _matches_wildcard(origin: str, beginning: str, end: str) -> bool:
    if not (origin.startswith(beginning) and origin.endswith(end)):
        return False
    # what is between must be names: `https://evil.test/.example.com` begins and ends well
    return _is_host(origin[len(beginning) : -len(end)]) is not None
