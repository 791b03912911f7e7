"""Trace requests, sockets and statements of databases with OpenTelemetry (extra `tracing`).

Spans are named by the route template. A trace that a client began goes on: its context comes from
the fields of the propagators, W3C `traceparent` by default, and is the current one for everything
that runs in the request. Queries, payloads and values of sensitive parameters are in no span.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary, finalize

from treefold_http._chains.middleware_chain import call_with_end_callback
from treefold_http._extensions.calls import observe_all
from treefold_http._runtime.boot_report import import_extra
from treefold_http._websockets.websocket import WebSocketDisconnect
from treefold_http._wire.errors import HTTPError
from treefold_logging import request_target
from treefold_router import METHODS

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request
    from treefold_http._responses.endpoints import CallNext
    from treefold_http._responses.response import Response
    from treefold_http._runtime.runtime import Runtime
    from treefold_http._websockets.websocket import WebSocket
    from treefold_router import Route

_NAME = "treefold"
_stops: WeakKeyDictionary[Runtime, Callable[[], None]] = WeakKeyDictionary()
"""Functions that stop the spans of statements; a reload starts them again."""
_tracing: ContextVar[Tracing | None] = ContextVar("treefold_tracing", default=None)
"""The tracing of the request in this context; extensions are observed for the whole process."""


class Tracing:
    """Open a span around each request and each socket.

    Args:
        provider: of OpenTelemetry; by default the one that is set for the process.
        statements: open a child span around each statement of a database, too, and around
            whatever other extensions observe.

    Raises:
        TreefoldError: if the `tracing` extra is not installed.
    """

    sees_every_answer = True  # also those that a cache around it has kept

    def __init__(self, *, provider: Any = None, statements: bool = True) -> None:
        self.trace = _import_opentelemetry("opentelemetry.trace")
        self.context = _import_opentelemetry("opentelemetry.context")
        self.propagate = _import_opentelemetry("opentelemetry.propagate")
        self._provider = provider
        self._statements = statements

    @property
    def tracer(self) -> Any:
        """The tracer; the provider of the process may be set after the boot."""
        return self.trace.get_tracer(_NAME, tracer_provider=self._provider)

    def prepare(self, app: Runtime, extensions: Sequence[Any]) -> None:
        """Pass the span factory to the extensions of an application."""
        if (former := _stops.pop(app, None)) is not None:
            former()
        if not self._statements:
            return
        kind = self.trace.SpanKind.CLIENT

        def open_span(
            name: str, attributes: Mapping[str, str | int]
        ) -> AbstractContextManager[Any]:
            if _tracing.get() is not self:  # of another application, or of no request
                return nullcontext()
            return self.tracer.start_as_current_span(name, kind=kind, attributes=attributes)

        stop = _stops[app] = observe_all(extensions, open_span)
        # extensions observe for the whole process, and would go on to call the factory
        finalize(app, stop)

    def for_route(self, route: Route | None, entries: Sequence[Any]) -> Any:
        """Return the layer of a route, with the name of its spans."""
        return _Layer(self, route)


class _Layer:
    def __init__(self, tracing: Tracing, route: Route | None) -> None:
        self._tracing = tracing
        self._route = route

    async def http(self, request: Request, call_next: CallNext) -> Response:
        span, token = self._begin_span(request, request.method)

        def end_span(status: int | None) -> None:
            self._end_span(request, span, token, status)

        return await call_with_end_callback(request, call_next, end_span)

    async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
        span, token = self._begin_span(websocket, "WEBSOCKET")
        refusal: int | None = None
        try:
            await call_next(websocket)
        except HTTPError as error:
            refusal = error.status
            raise
        except WebSocketDisconnect:
            raise
        except BaseException as error:
            websocket.error = error
            raise
        finally:
            self._end_span(websocket, span, token, 101 if websocket.accepted else refusal)

    def _begin_span(self, connection: Connection, method: str) -> tuple[Any, Any]:
        tracing = self._tracing
        fields = connection.headers
        known = tracing.propagate.get_global_textmap().fields
        carrier = {name: fields[name] for name in known if name in fields}
        parent = tracing.propagate.extract(carrier)
        # clients choose methods; the conventions of OpenTelemetry have this word for unknown ones
        known = method if method in METHODS or method == "WEBSOCKET" else "_OTHER"
        template = None if self._route is None else self._route.template
        span = tracing.tracer.start_span(
            known if template is None else f"{known} {template}",
            context=parent,
            kind=tracing.trace.SpanKind.SERVER,
            attributes=_build_attributes(connection, known, template),
        )
        current = tracing.context.attach(tracing.trace.set_span_in_context(span, parent))
        return span, (current, _tracing.set(tracing))

    def _end_span(self, connection: Connection, span: Any, token: Any, status: int | None) -> None:
        tracing = self._tracing
        if status is not None:
            span.set_attribute("http.response.status_code", status)
        error = connection.error
        # a 4xx is an error of the client, and leaves the span of a server as it is
        if error is not None or (status is not None and status >= 500):
            kind = str(status) if error is None else type(error).__qualname__
            span.set_attribute("error.type", kind)
            span.set_status(tracing.trace.Status(tracing.trace.StatusCode.ERROR))
        span.end()
        current, mine = token
        tracing.context.detach(current)
        _tracing.reset(mine)


def _build_attributes(connection: Connection, method: str, template: str | None) -> dict[str, Any]:
    """Attributes by the conventions of OpenTelemetry for HTTP servers."""
    scope = connection.scope
    masked = connection.find_masked_segments()
    attributes: dict[str, Any] = {
        # a handshake is a GET (RFC 6455, 4.1)
        "http.request.method": "GET" if method == "WEBSOCKET" else method,
        "url.scheme": connection.scheme,
        "url.path": request_target(connection.raw_path, b"", masked),
        "network.protocol.version": scope.get("http_version", "1.1"),
        "treefold.request_id": connection.id,
    }
    if template is not None:
        attributes["http.route"] = template
    if connection.client is not None:
        attributes["client.address"] = connection.client.host
    if connection.host:
        attributes["server.address"] = connection.host
    return attributes


def _import_opentelemetry(name: str) -> Any:
    message = 'Tracing needs opentelemetry-api; install it: pip install "treefold[tracing]"'
    return import_extra(name, message)
