"""Middleware: checks the entries of `middlewares` and composes them into one chain.

A chain is composed once per route. Every layer of an HTTP chain receives a response from the next
one, never an exception: an inner failure is rendered there, so that headers set by outer layers are
on every error too. A layer that may change its response receives a copy, because a module may keep
the one that it returned; shipped layers change none and add fields to the request. Hooks are
synchronous layers: `before(request)` returns None, a response or raises, `after(request, response)`
returns None or another response. `_plans.plans` selects the entries of a route,
`socket_chain` composes those of a socket; docs/guides/middleware.md is the contract for
authors.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_http._chains.cache_place import place_cache, require_guards_before_cache
from treefold_http._chains.subtrees import Under
from treefold_http._injection.secured import build_scope_checks
from treefold_http._responses.coercion import to_response, to_unshared_response
from treefold_http._responses.endpoints import CallNext, Endpoint
from treefold_http._responses.response import copy_response
from treefold_http._runtime.background import BackgroundTasks
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._requests.request import Request
    from treefold_http._responses.response import Response
    from treefold_http._runtime.runtime import Runtime

WEBSOCKET = "WEBSOCKET"


@dataclass(frozen=True, slots=True)
class RequestsOnly:
    """A middleware entry that leaves sockets alone; made by `requests_only`.

    Attributes:
        entry: the middleware.
    """

    entry: Any


def requests_only(entry: Any) -> RequestsOnly:
    """Declare that a middleware has nothing to check on sockets: `requests_only(timing)`.

    A function, or an object with `http`, cannot run around a socket. Where one covers a socket, the
    socket is refused, because the entry may be a guard; with this it is open.

    Raises:
        TypeError: when the entry is no middleware, or an `under`.
    """
    if isinstance(entry, Under):
        raise TypeError(
            f"The entry of requests_only must be a middleware, got under({str(entry)!r}); write"
            f" under({str(entry)!r}, requests_only(...))"
        )
    check_middleware_entry(entry)
    return RequestsOnly(entry)


def under(prefix: str, entry: Any) -> Under:
    """Scope a middleware to a subtree: `under("/v1/admin", guard)`.

    It covers whatever is served below the prefix: routes, their sockets, mounts, documents and
    probes. Routes are matched by their template, never by the path as sent (S-06). A prefix that
    covers nothing is an error at boot.

    Args:
        prefix: a path in the form of folders or of templates: `/v1/User/[id]` is `/v1/user/{id}`,
            and `*` is one segment: `/*/admin`.

    Raises:
        ValueError: when the prefix does not start with `/`.
        TypeError: when the entry is no middleware, or another `under`.
    """
    if not prefix.startswith("/"):
        message = f"Prefix must start with '/', got {prefix!r}; write a path such as '/v1/admin'"
        raise ValueError(message)
    if isinstance(entry, Under):
        raise TypeError(
            f"The entry of under({prefix!r}) must be a middleware, got under({str(entry)!r});"
            " write one prefix for both"
        )
    check_middleware_entry(entry)
    segments = [_normalise_segment(part) for part in prefix.split("/") if part]
    return Under(tuple(segments), entry)


def _normalise_segment(text: str) -> str:
    if text[0] in "[{" and text[-1] in "]}":
        return f"{{{text[1:-1]}}}"
    return text.lower()


def check_middleware_entry(entry: Any) -> None:
    """Refuse an entry that is neither callable nor an object with one of the middleware methods.

    Raises:
        TypeError: the message names the entry; it ends the boot.
    """
    if isinstance(entry, (Under, RequestsOnly)):
        return
    if isinstance(entry, type):
        raise TypeError(
            f"A middleware entry must be an instance, got the class {entry.__qualname__}; put"
            " an instance in the list"
        )
    methods = [getattr(entry, name, None) for name in (*_HOOKS, "for_route", "http", "websocket")]
    if not callable(entry) and not any(map(callable, methods)):
        raise TypeError(
            "A middleware entry must be an `async def (request, call_next)` or an object"
            f" with a method `http`, `before`, `after` or `websocket`, got {entry!r}"
        )


def prepare_middleware_entries(
    app: Runtime, entries: Sequence[Any], extensions: Sequence[Any]
) -> None:
    """Call the `prepare` methods of the entries, at boot.

    Args:
        extensions: the extensions of the application, whose boot may be in progress.

    Raises:
        Exception: any exception of an entry; it stops the boot.
    """
    inner = [unwrap_middleware_entry(entry) for entry in entries]
    for entry in inner:
        if hasattr(entry, "prepare"):
            entry.prepare(app, extensions)
    _insert_required_entries(inner)  # `beside` raises if the entry is at a wrong place
    require_guards_before_cache(
        [(e.prefix if isinstance(e, Under) else (), unwrap_middleware_entry(e)) for e in entries]
    )


def _insert_required_entries(entries: Sequence[Any]) -> list[Any]:
    """Insert, after each entry, the inner ones that it requires: of `beside`, for its scopes."""
    complete: list[Any] = []
    for entry in entries:
        complete.append(entry)
        if hasattr(entry, "beside"):
            complete.extend(entry.beside(entries))
        complete.extend(build_scope_checks(entry))
    return complete


def unwrap_middleware_entry(entry: Any) -> Any:
    """Return the middleware of an entry, without `under` and `requests_only`."""
    # both nest: under("/v1", requests_only(timing))
    while isinstance(entry, (Under, RequestsOnly)):
        entry = entry.entry
    return entry


def select_route_middlewares(route: Route | None, entries: Sequence[Any]) -> list[Any]:
    """Return the middleware entries of a route; those of a subtree are unwrapped."""
    is_socket = route is not None and route.method == WEBSOCKET
    return select_covering_middlewares(
        entries, lambda each: each.covers_route(route), is_socket=is_socket
    )


def select_covering_middlewares(
    entries: Sequence[Any], covers: Callable[[Under], bool], *, is_socket: bool = False
) -> list[Any]:
    """Return the entries that run, unwrapped.

    Args:
        covers: returns True for the subtrees that the entries run for.
        is_socket: leave out those that have nothing to check on sockets.
    """
    covering = [each for each in entries if not isinstance(each, Under) or covers(each)]
    scoped = [each.entry if isinstance(each, Under) else each for each in covering]
    if is_socket:
        scoped = [each for each in scoped if not isinstance(each, RequestsOnly)]
    chosen = _insert_required_entries([unwrap_middleware_entry(each) for each in scoped])
    return [each for each in chosen if not is_socket or not is_unneeded_on_sockets(each)]


def is_unneeded_on_sockets(entry: Any) -> bool:
    """Return True for an entry of the framework that has nothing to check on sockets."""
    return getattr(entry, "is_for_requests", False) is True


def build_route_layers(
    route: Route | None, entries: Sequence[Any], *, has_steps_before_cache: bool = False
) -> list[Any]:
    """Return the layers of a route; an entry with `for_route` returns its own variant for it.

    Args:
        entries: the result of `select_route_middlewares`.
        has_steps_before_cache: True if dependencies of the handler run before the look-up of a
            cache.
    """
    return [
        entry.for_route(route, entries) if hasattr(entry, "for_route") else entry
        for entry in place_cache(route, entries, is_innermost=has_steps_before_cache)
    ]


def compose_middleware_chain(
    app: Runtime, entries: Sequence[Any], endpoint: Endpoint, *, status: int | None = None
) -> Endpoint:
    """Put the HTTP side of middleware around an endpoint, the first entry outermost.

    Adjacent entries that only have hooks (`before`, `after`) share one layer. If that layer is the
    outermost and has no `after`, it is no coroutine and passes the endpoint's result unchanged.

    Args:
        status: the status of a plain value that the endpoint returns.
    """
    layers = _group_http_layers(entries)
    if has_project_middleware(entries):
        endpoint = isolate_background_tasks(endpoint)
    chain = endpoint
    for index in reversed(range(len(layers))):
        layer = layers[index]
        own = status if chain is endpoint else None
        if isinstance(layer, _Hooks):
            if index == 0 and not layer.ends:
                return _wrap_before_hooks(tuple(layer.begins), chain)
            chain = _wrap_hooks(app, layer, chain, own)
        else:
            # a module may return one object each time: fields set on it would reach the next client
            coerce = to_unshared_response if may_change_responses(layer) else to_response
            inner = chain
            # an inner layer returns a response already, which only an author's layer may change
            if chain is endpoint or coerce is to_unshared_response:
                inner = _wrap_with_error_rendering(app, chain, own, coerce=coerce)
            chain = _wrap_with_error_rendering(app, bind_layer(layer, inner), None, layer)
    return _wrap_with_error_rendering(app, endpoint, status) if chain is endpoint else chain


_OURS = ("middleware", "auth", "_project", "_plans", "_chains", "_injection")
_UNCHANGING = tuple(f"treefold_http.{room}." for room in _OURS)


def may_change_responses(layer: Any) -> bool:
    """Return True for a layer that may change the response of `call_next`, or its argument.

    Shipped ones never do; one that a subclass overrides is in a module of the author.
    """
    return not str(getattr(layer, "__module__", "")).startswith(_UNCHANGING)


def has_project_middleware(entries: Sequence[Any]) -> bool:
    """Return True if an entry is no shipped one."""
    names = (*_HOOKS, "http", "websocket")
    sides = [getattr(entry, name, None) for entry in entries for name in names]
    return any(map(may_change_responses, [*filter(None, sides), *filter(callable, entries)]))


def isolate_background_tasks(endpoint: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Keep the background tasks of the handler apart: those of its layers survive its failure."""

    async def run(connection: Connection) -> Any:
        # a handler that fails drops its own tasks, such as a mail about a row that is rolled back
        outer, connection.work = connection.work, None
        try:
            return await endpoint(connection)
        finally:
            if (handled := connection.work) is not None:
                outer = outer or BackgroundTasks()
                outer.calls.append(handled)
                outer.handled = handled
            connection.work = outer

    return run


class _Hooks:
    """The hooks of adjacent entries.

    Attributes:
        begins: their `before`, the outermost first.
        ends: their `after`, the innermost first; before one that may change what another may have
            kept, a step that copies the response.
        is_changing: True if an `after` may change the response.
        outside: for each of `begins`, the number of `ends` in entries around it.
    """

    def __init__(self) -> None:
        self.begins: list[Callable[[Any], Any]] = []
        self.ends: list[Callable[[Any, Any], Any]] = []
        self.outside: list[int] = []
        self.is_changing = False

    def add_middleware_hooks(self, entry: Any) -> None:
        if (before := getattr(entry, "before", None)) is not None:
            self.begins.append(before)
            self.outside.append(len(self.ends))
        if (after := getattr(entry, "after", None)) is not None:
            if may_change_responses(after):
                if self.is_changing:
                    self.ends.insert(0, _copy_response)
                self.is_changing = True
            self.ends.insert(0, after)

    def list_after_hooks_by_progress(self) -> list[tuple[Callable[[Any, Any], Any], ...]]:
        """By the number of completed `begins`, the hooks of `ends` to run afterwards."""
        count = len(self.ends)
        return [tuple(self.ends[count - outside :]) for outside in (*self.outside, count)]


_HOOKS = ("before", "after")


def _copy_response(request: Request, response: Response) -> Response:
    del request
    return copy_response(response)


def _group_http_layers(entries: Sequence[Any]) -> list[Any]:
    """The HTTP side of each entry, the outermost first; adjacent hooks as one `_Hooks`."""
    layers: list[Any] = []
    for entry in entries:
        layer: Any = getattr(entry, "http", None)
        if layer is not None:
            layers.append(layer)
        elif any(hasattr(entry, name) for name in _HOOKS):
            if not layers or not isinstance(layers[-1], _Hooks):
                layers.append(_Hooks())
            layers[-1].add_middleware_hooks(entry)
        elif not hasattr(entry, "websocket"):
            layers.append(entry)
    return layers


def _wrap_before_hooks(begins: tuple[Callable[[Any], Any], ...], endpoint: Endpoint) -> Endpoint:
    def run_before_hooks(request: Request) -> Awaitable[Any]:
        for before in begins:
            if (answer := before(request)) is not None:
                return _return_as_coroutine(answer)
        return endpoint(request)

    return run_before_hooks


async def _return_as_coroutine(answer: Any) -> Any:
    return answer


def _wrap_hooks(app: Runtime, hooks: _Hooks, run: Endpoint, status: int | None) -> CallNext:
    begins, ends = tuple(hooks.begins), hooks.list_after_hooks_by_progress()
    coerce = to_unshared_response if hooks.is_changing else to_response

    async def run_hooks(request: Request) -> Response:
        passed = 0
        try:
            for before in begins:
                if (answer := before(request)) is not None:
                    response = coerce(answer)
                    break
                passed += 1
            else:
                response = coerce(await run(request), status)
        except BaseException as error:  # render re-raises cancellations
            response = await app.render(error, request)
        # one iterator for all passes, so that a hook that failed is not called again
        waiting = iter(ends[passed])
        while True:
            try:
                for after in waiting:
                    answer = after(request, response)
                    if answer is not None and answer is not response:
                        response = coerce(answer)
                return response
            except BaseException as error:  # the hooks outside of the failed one still run
                response = await app.render(error, request)

    return run_hooks


def bind_layer(layer: Callable[[Any, Any], Any], call_next: Any) -> Callable[[Any], Any]:
    """Return a layer as a function of the connection."""
    return lambda connection: layer(connection, call_next)


def _wrap_with_error_rendering(
    app: Runtime,
    run: Endpoint,
    status: int | None,
    layer: Any = None,
    *,
    coerce: Callable[[Any, int | None], Response] = to_response,
) -> CallNext:
    async def run_and_render_errors(request: Request) -> Response:
        try:
            result = await run(request)
            # of a handler None is 204; a layer most likely lacks its `return`
            if result is None and layer is not None:
                raise _make_no_response_error(layer)
            return coerce(result, status)
        except BaseException as error:  # render re-raises cancellations
            return await app.render(error, request)

    return run_and_render_errors


def _make_no_response_error(layer: Any) -> TypeError:
    name = getattr(layer, "__qualname__", type(layer).__qualname__)
    return TypeError(
        f"Middleware {name} must return a response, got None; return the result of call_next, or"
        " Response.empty()"
    )


async def call_with_end_callback(
    request: Request, call_next: CallNext, end: Callable[[int | None], None]
) -> Response:
    """Return the response of `call_next`; call `end` when the request is over, a stream included.

    Args:
        end: takes the status that was sent; None for a cancellation, when the client left or the
            server stops.
    """
    answered: list[Response] = []
    is_over = False

    async def call_end_callback(error: BaseException | None) -> None:
        nonlocal is_over
        is_over = True
        if answered:
            # a file decides its status while it is sent
            end(getattr(request, "sent_status", answered[0].status))

    request.on_exit(call_end_callback)
    try:
        answered.append(await call_next(request))
    except BaseException:
        end(None)
        raise
    if is_over:  # an inner error: exit callbacks ran before the response was made
        end(answered[0].status)
    return answered[0]
