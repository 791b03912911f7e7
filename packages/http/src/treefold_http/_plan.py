"""The plan of a route: everything between a matched path and a response, composed once at boot.

`run` is the whole chain as one coroutine function. Without middleware, and with a handler that
takes only the request, it *is* the handler; every layer is added here and nowhere else.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from treefold_http._errors import HTTPError, ServiceUnavailable
from treefold_http._injection import InjectionError, is_direct, plan_call
from treefold_http._limits import DEFAULT_LIMITS, Limits
from treefold_http._middleware import (
    compose,
    compose_sockets,
    entries_for,
    layers_for,
    prepare_entries,
)
from treefold_http._types import Endpoint
from treefold_logging import is_sensitive
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._loader import HandlerModule

WEBSOCKET = "WEBSOCKET"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Plan:
    """The plan of one route.

    Attributes:
        route: the route of the table; None for the plans of 404, 405 and probes.
        run: returns the handler's return value or a response; for a socket, runs it to its end.
        status: the status of a plain return value; None keeps the default of its type.
        max_body: the most bytes of a request body.
        form_limits: the limits of a form.
        masked: path segments whose parameter name is sensitive, counted from the end.
        log_payload: True if the payload is logged.
        is_quiet: True for probes, which are logged at level DEBUG.
    """

    route: Route | None
    run: Callable[[Any], Any]
    status: int | None = None
    max_body: int
    form_limits: Limits = DEFAULT_LIMITS
    masked: tuple[int, ...] = ()
    log_payload: bool = True
    is_quiet: bool = False

    def masked_in(self, raw_path: bytes) -> tuple[int, ...]:
        """Return the indexes, among the non-empty path segments, to mask in logs.

        Counted from the end, because an unversioned request has no version segment.
        """
        if not self.masked:
            return ()
        count = sum(map(bool, raw_path.split(b"/")))
        return tuple(count + index for index in self.masked)


def make_plan(app: Application, route: Route, module: HandlerModule, outer: Sequence[Any]) -> Plan:
    """Compose the plan of a route.

    Args:
        outer: the project's middleware, outermost first; the module's own run inside them.

    Raises:
        InjectionError: when a parameter of the handler cannot be provided.
    """
    if module.middlewares:
        prepare_entries(app, module.middlewares, app.extensions)
    entries = layers_for(route, entries_for(route, [*outer, *module.middlewares]))
    run = _endpoint(app, route, module.handler)
    if module.response_model is not None:
        # Imported for the first module that has one: other projects do not pay for it.
        from treefold_http._answer_model import hold_answers, hold_messages

        hold = hold_messages if route.method == WEBSOCKET else hold_answers
        run = hold(run, module, route.file)
    if module.timeout is not None:
        run = _within(run, module.timeout)
    if route.method == WEBSOCKET:
        run = compose_sockets(entries, run)
    elif entries:
        run = compose(app, entries, run, status=module.status_code)
    return Plan(
        route=route,
        run=run,
        status=module.status_code,
        max_body=app.settings.max_body if module.max_body is None else module.max_body,
        form_limits=_form_limits(app.settings.max_body, module.max_body),
        masked=_masked(route),
        log_payload=module.log_payload,
    )


def broken_plan(app: Application, route: Route, error: str, outer: Sequence[Any]) -> Plan:
    """Return the plan of a file that failed to load: it answers 500 (rulings, 'Routing')."""
    detail = f"handler failed to load: {error}" if app.dev else "handler failed to load"

    async def run(connection: Any) -> Any:
        raise HTTPError(500, detail)

    entries = layers_for(route, entries_for(route, outer))
    if route.method == WEBSOCKET:
        chain = compose_sockets(entries, run)
    else:
        chain = compose(app, entries, run) if entries else run
    return Plan(route=route, run=chain, max_body=app.settings.max_body, masked=_masked(route))


def _endpoint(app: Application, route: Route, handler: Callable[..., Any]) -> Endpoint:
    socket = route.method == WEBSOCKET
    if socket and not inspect.iscoroutinefunction(handler):
        raise InjectionError(
            "The handler of a WebSocket waits for messages; make it an `async def`"
        )
    name = "websocket" if socket else "request"
    if is_direct(handler, name) and inspect.iscoroutinefunction(handler):
        return handler
    return plan_call(handler, app.injection, path_parameters=route.parameters, kind=name)


def _within(run: Endpoint, seconds: float) -> Endpoint:
    async def limited(connection: Any) -> Any:
        limit = asyncio.timeout(seconds)
        try:
            async with limit:
                return await run(connection)
        except TimeoutError:
            if not limit.expired():
                raise
            raise ServiceUnavailable(f"This took longer than {seconds:g} seconds") from None

    return limited


@lru_cache(maxsize=64)
def _form_limits(default: int, own: int | None) -> Limits:
    if own is None:
        return replace(DEFAULT_LIMITS, urlencoded=default)
    return replace(DEFAULT_LIMITS, urlencoded=own, total=own)


def _masked(route: Route) -> tuple[int, ...]:
    """The segments whose parameter name is sensitive, counted from the end of the path."""
    segments = route.template.split("/")[1:]
    return tuple(
        index - len(segments)
        for index, segment in enumerate(segments)
        if segment.startswith("{") and is_sensitive(segment[1:-1])
    )
