"""Middleware: what an entry of `middlewares` may be, and how entries become one chain.

A chain is composed once per route. Every layer of an HTTP chain sees a response from the next one,
never an exception: what fails inside is rendered there, so that headers set by outer layers are on
every error too. Which entries a route gets is decided in `_plan`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_http._coercion import to_response
from treefold_http._types import CallNext, Endpoint
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._application import Application
    from treefold_http._request import Request
    from treefold_http._response import Response


@dataclass(frozen=True, slots=True)
class Under:
    """A middleware entry for the routes below a prefix; made by `under`.

    Attributes:
        prefix: segments of a template, without the leading slash.
        entry: the middleware.
    """

    prefix: tuple[str, ...]
    entry: Any

    def covers(self, route: Route | None) -> bool:
        """Whether a route lies below the prefix; a 404 has none, and lies below nothing."""
        segments = route.template.split("/")[1:] if route is not None else []
        return tuple(segments[: len(self.prefix)]) == self.prefix


def under(prefix: str, entry: Any) -> Under:
    """Scope a middleware to a subtree: `under("/v1/admin", guard)`.

    It is matched on the resolved route, never on the path as sent (S-06).

    Args:
        prefix: a path as folders say it or as templates do: `/v1/User/[id]` is `/v1/user/{id}`.

    Raises:
        ValueError: when the prefix does not start with `/`.
        TypeError: when the entry is no middleware.
    """
    if not prefix.startswith("/"):
        raise ValueError(
            f"Prefix {prefix!r} does not start with '/'; give a path such as '/v1/admin'"
        )
    check_entry(entry)
    segments = [_segment(part) for part in prefix.split("/") if part]
    return Under(tuple(segments), entry)


def _segment(text: str) -> str:
    if text[0] in "[{" and text[-1] in "]}":
        return f"{{{text[1:-1]}}}"
    return text.lower()


def check_entry(entry: Any) -> None:
    """Refuse what is no middleware: neither callable nor an object with `http` or `websocket`.

    Raises:
        TypeError: the message names the entry (rulings, 'Middleware': a boot error).
    """
    if isinstance(entry, Under):
        return
    if isinstance(entry, type):
        raise TypeError(f"Middleware {entry.__qualname__} is a class; put an instance in the list")
    sides = [getattr(entry, side, None) for side in ("http", "websocket")]
    if not callable(entry) and not any(map(callable, sides)):
        raise TypeError(
            f"Middleware entry {entry!r} cannot be called; give an `async def (request, call_next)`"
            " or an object with a method `http` or `websocket`"
        )


def entries_for(route: Route | None, entries: Sequence[Any]) -> list[Any]:
    """Give the entries that a route runs through, those of a subtree unwrapped."""
    chosen: list[Any] = []
    for entry in entries:
        if not isinstance(entry, Under):
            chosen.append(entry)
        elif entry.covers(route):
            chosen.append(entry.entry)
    return chosen


def compose(
    app: Application, entries: Sequence[Any], endpoint: Endpoint, *, status: int | None = None
) -> CallNext:
    """Put the HTTP side of middleware around an endpoint, the first entry outermost.

    Args:
        status: the status of a plain value that the endpoint returns.
    """
    chain = _rendered(app, endpoint, status)
    for entry in reversed(entries):
        layer = getattr(entry, "http", None) or (None if hasattr(entry, "websocket") else entry)
        if layer is not None:
            chain = _rendered(app, _bound(layer, chain), None, layer)
    return chain


def compose_sockets(entries: Sequence[Any], endpoint: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Put the socket side of middleware around an endpoint, the first entry outermost."""
    chain = endpoint
    for entry in reversed(entries):
        layer = getattr(entry, "websocket", None)
        if layer is not None:
            chain = _bound(layer, chain)
    return chain


def _bound(layer: Callable[[Any, Any], Any], call_next: Any) -> Callable[[Any], Any]:
    return lambda connection: layer(connection, call_next)


def _rendered(app: Application, run: Endpoint, status: int | None, layer: Any = None) -> CallNext:
    async def call(request: Request) -> Response:
        try:
            result = await run(request)
            if result is None and layer is not None:
                raise _no_answer(layer)
            return to_response(result, status)
        except BaseException as error:  # render re-raises what is not ours to answer
            return await app.render(error, request)

    return call


def _no_answer(layer: Any) -> TypeError:
    name = getattr(layer, "__qualname__", type(layer).__qualname__)
    return TypeError(
        f"Middleware {name} returned None; return what call_next gave, or Response.empty()"
    )
