"""The middleware of a socket: composed around its handler, and required to be able to guard it.

| Form of an entry | At a handshake |
|---|---|
| `websocket(websocket, call_next)` | runs around the socket |
| `before(request)` | runs with the socket; an answer or an exception refuses the handshake |
| `async def (request, call_next)`, `http` | cannot run and may be a guard: an error at boot |
| `after` alone; `requests_only(entry)` | left out |

A function around a request expects a response to return, which an open socket does not have.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from treefold_http._chains.middleware_chain import (
    bind_layer,
    has_project_middleware,
    isolate_background_tasks,
)
from treefold_http._responses.coercion import to_response

if TYPE_CHECKING:
    from treefold_http._responses.response import Response
    from treefold_http._websockets.websocket import WebSocket

WebSocketCallNext: TypeAlias = "Callable[[WebSocket], Awaitable[None]]"
"""The rest of a socket's middleware chain; it raises the exceptions of the handler."""


class HandshakeAnswered(Exception):
    """A hook has answered a handshake, which is not accepted then.

    Attributes:
        response: the answer.
    """

    def __init__(self, response: Response) -> None:
        super().__init__(response)
        self.response = response


def compose_socket_chain(
    layers: Sequence[Any], endpoint: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Put the socket side of middleware around an endpoint, the first layer outermost.

    Args:
        layers: those that `require_layers_guard_socket` accepts; others are left out.
    """
    # as for requests: tasks of a handler that fails are dropped, those of its layers stay
    chain = isolate_background_tasks(endpoint) if has_project_middleware(layers) else endpoint
    for layer in reversed(layers):
        if (around := getattr(layer, "websocket", None)) is not None:
            chain = bind_layer(around, chain)
        elif _has_before_without_http(layer):
            chain = _wrap_with_before_hook(layer.before, chain)
    return chain


def require_layers_guard_socket(name: str, entries: Sequence[Any], layers: Sequence[Any]) -> None:
    """Refuse entries that cover a socket and cannot guard it.

    Args:
        name: the socket, for the message.
        entries: the chosen entries of the socket.
        layers: their layers, in the same order (`build_route_layers`).

    Raises:
        TypeError: the message names the entry and the ways out.
    """
    for entry, layer in zip(entries, layers, strict=True):
        if can_guard_sockets(layer):
            continue
        shown = getattr(entry, "__qualname__", type(entry).__qualname__)
        raise TypeError(
            f"Middleware of the socket {name} must have a method before or websocket, got"
            f" {shown!r}, which runs around requests only; write an object with"
            " `def before(self, request)`, or requests_only(...) if it guards nothing"
        )


def can_guard_sockets(layer: Any) -> bool:
    """Return True if a layer runs at handshakes, or never runs at all."""
    if getattr(layer, "websocket", None) is not None or _has_before_without_http(layer):
        return True
    if getattr(layer, "http", None) is not None:
        return False
    is_hook = any(hasattr(layer, name) for name in ("before", "after", "websocket"))
    return is_hook or not callable(layer)


def _has_before_without_http(layer: Any) -> bool:
    return getattr(layer, "http", None) is None and getattr(layer, "before", None) is not None


def _wrap_with_before_hook(
    before: Callable[[Any], Any], chain: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    async def check_handshake(websocket: WebSocket) -> None:
        if (answer := before(websocket)) is not None:
            raise HandshakeAnswered(to_response(answer))
        await chain(websocket)

    return check_handshake
