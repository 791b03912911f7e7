"""The header fields of deprecated routes, as layers around everything else of their plans.

    Deprecation: @1793491200                               RFC 9745: the day, in seconds
    Sunset: Wed, 30 Jun 2027 00:00:00 GMT                  RFC 8594
    Link: <https://example.org/v2>; rel="deprecation"; type="text/html",
          <https://example.org/v2>; rel="sunset"; type="text/html"
    Link: </v2/user/7>; rel="successor-version"

They are on every answer of a route, errors included, and bytes since the boot; only a successor
with parameters is written for each request. A `Link` of the response is sent too.
"""

from __future__ import annotations

from calendar import timegm
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import quote

from treefold_http._headers.dates import format_http_date
from treefold_http._plans.deprecation import Deprecation
from treefold_http._responses.response import LINK
from treefold_router import Route, parameter_name, segment_of

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import Endpoint
    from treefold_http._websockets.websocket import WebSocket
    from treefold_http._wire.asgi import RawHeaders

Segments: TypeAlias = tuple[tuple[str, bool], ...]
SocketEndpoint: TypeAlias = "Callable[[WebSocket], Awaitable[None]]"


@dataclass(frozen=True, slots=True)
class DeprecationLayer:
    """Adds the fields to every answer of a route, and to its handshakes.

    Attributes:
        fields: the fields.
    """

    fields: RawHeaders

    def wrap_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Return the chain of a route with the fields on its answers."""
        fields = self.fields

        # no coroutine of its own, and nothing but an assignment: it is on the path of a request
        def run(request: Request) -> Awaitable[Any]:
            added = request.answer_fields
            request.answer_fields = fields if added is None else added + fields
            return endpoint(request)

        return run

    def wrap_socket(self, endpoint: SocketEndpoint) -> SocketEndpoint:
        """Return the chain of a socket with the fields on its handshakes."""
        return _wrap_socket(endpoint, lambda _: self.fields)


@dataclass(frozen=True, slots=True, kw_only=True)
class SuccessorLayer:
    """The same for a route that its successor version has too, with a link to the route there.

    Attributes:
        fields: the fields without that link.
        prefix: how paths of the route begin, such as `b"/v1/"`.
        successor: how the link begins, such as `b"</v2/"`.
        segments: the rest of the path: a text, and True if it is the name of a parameter.
        own_path: the path of a route without parameters, whose link is known; else None.
        known: the fields of that path.
    """

    fields: RawHeaders
    prefix: bytes
    successor: bytes
    segments: Segments
    own_path: bytes | None
    known: RawHeaders

    def wrap_endpoint(self, endpoint: Endpoint) -> Endpoint:
        """Return the chain of a route with the fields on its answers."""
        build_fields, own_path, known = self.build_fields, self.own_path, self.known

        def run_static(request: Request) -> Awaitable[Any]:
            is_known = request.scope.get("raw_path") == own_path
            fields = known if is_known else build_fields(request)
            added = request.answer_fields
            request.answer_fields = fields if added is None else added + fields
            return endpoint(request)

        fixed, prefix, start = self.fields, self.prefix, self.successor

        # the lines of `build_fields` once more, since its call takes as long as what it does
        def run(request: Request) -> Awaitable[Any]:
            before, _, path = (request.scope.get("raw_path") or b"").partition(prefix)
            if before or not path or _CLOSING in path:
                fields = build_fields(request)
            else:
                fields = [*fixed, (LINK, b"".join((start, path, _AFTER)))]
            added = request.answer_fields
            request.answer_fields = fields if added is None else added + fields
            return endpoint(request)

        return run if own_path is None else run_static

    def wrap_socket(self, endpoint: SocketEndpoint) -> SocketEndpoint:
        """Return the chain of a socket with the fields on its handshakes."""
        return _wrap_socket(endpoint, self.build_fields)

    def build_fields(self, connection: Connection) -> RawHeaders:
        """Return the fields, with the link for the path of a request."""
        path, prefix = connection.scope.get("raw_path"), self.prefix
        # as sent, unless it has a prefix, no version, or the character that would end the link
        if path and path.startswith(prefix) and _CLOSING not in path:
            link = b"".join((self.successor, path[len(prefix) :], _AFTER))
        else:
            link = self._build_link(connection)
        return [*self.fields, (LINK, link)]

    def _build_link(self, connection: Connection) -> bytes:
        values = connection.path_params
        texts = [values[text] if is_parameter else text for text, is_parameter in self.segments]
        path = "/".join(quote(text, safe="") for text in texts)
        root = quote(connection.root_path)
        return b"<" + root.encode("ascii") + self.successor[1:] + path.encode("ascii") + _AFTER


_AFTER = b'>; rel="successor-version"'
_CLOSING = ord(">")  # a number: `b">" in path` makes an exception first, and takes a microsecond


def _wrap_socket(
    endpoint: SocketEndpoint, build_fields: Callable[[Connection], RawHeaders]
) -> SocketEndpoint:
    def run(websocket: WebSocket) -> Awaitable[None]:
        # of an accepted handshake, and of one that is refused
        websocket.handshake_fields = fields = build_fields(websocket)
        websocket.add_answer_fields(fields)
        return endpoint(websocket)

    return run


def build_deprecation_layer(
    deprecation: Deprecation, route: Route | None = None, *, has_successor: bool = False
) -> DeprecationLayer | SuccessorLayer:
    """Return the layer of a route, or of the paths of a version that no route serves.

    Args:
        has_successor: True if the successor is a version that has the route.
    """
    fields = build_deprecation_fields(deprecation)
    if route is None or not has_successor:
        return DeprecationLayer(fields)
    segments = split_route_path(route)
    prefix, successor = f"/{route.version}/".encode(), f"</{deprecation.successor}/".encode()
    own_path: bytes | None = None
    known: RawHeaders = []
    if not route.parameters:
        below = "/".join(quote(text, safe="") for text, _ in segments).encode("ascii")
        own_path, known = prefix + below, [*fields, (LINK, successor + below + _AFTER)]
    return SuccessorLayer(
        fields=fields,
        prefix=prefix,
        successor=successor,
        segments=segments,
        own_path=own_path,
        known=known,
    )


def split_route_path(route: Route) -> Segments:
    """Return the segments of a route below its version, parameters by their effective names."""
    names = iter(route.parameters)
    folders = route.file.split("/")[1:-1]
    return tuple(
        (segment_of(folder), False) if parameter_name(folder) is None else (next(names), True)
        for folder in folders
    )


def build_deprecation_fields(deprecation: Deprecation) -> RawHeaders:
    """Return the fields that do not depend on a route: its dates, its page, an address."""
    fields: RawHeaders = []
    if deprecation.since is not None:
        fields.append((b"deprecation", b"@%d" % _to_seconds(deprecation.since)))
    if deprecation.sunset is not None:
        shown = format_http_date(_to_seconds(deprecation.sunset))
        fields.append((b"sunset", shown.encode("ascii")))
    links: list[str] = []
    if deprecation.link:
        links.append(f'<{deprecation.link}>; rel="deprecation"; type="text/html"')
    if deprecation.link and deprecation.sunset is not None:
        links.append(f'<{deprecation.link}>; rel="sunset"; type="text/html"')
    if "/" in deprecation.successor:
        links.append(f'<{deprecation.successor}>; rel="successor-version"')
    if links:
        fields.append((LINK, ", ".join(links).encode("ascii")))
    return fields


def _to_seconds(day: date) -> int:
    return timegm(day.timetuple())
