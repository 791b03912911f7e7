"""Limit of concurrent requests per process: above it the response is 503 at once (D-07, R-26)."""

from __future__ import annotations

from time import perf_counter
from typing import TYPE_CHECKING, Any

from treefold_logging import log_request, request_target
from treefold_server._connection_timeouts import generate_request_id
from treefold_server._socket_protocol import HardenedWebSocketProtocol
from treefold_server._unread_responses import ReaderFlow

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

_BODY = b"The server has too much to do; try again"


def choose_app_or_503(protocol: H11Protocol | HttpToolsProtocol, max_requests: int | None) -> Any:
    """Return the ASGI application, or above the limit of requests an application that answers 503.

    Args:
        protocol: the protocol of the connection that received the request.
        max_requests: the most requests at one time in this process; None is no limit. WebSockets do
            not count, nor requests that wait only for their client to read.
    """
    running = len(protocol.tasks) - HardenedWebSocketProtocol.running - ReaderFlow.blocked
    config: Any = protocol.config
    if max_requests is None or running < max_requests:
        return config.loaded_app
    return config.options.overload_app or refuse_overload


async def refuse_overload(scope: Any, receive: Any, send: Any) -> None:
    """Answer with 503 and `Retry-After`, and log the request, which no application sees."""
    started = perf_counter()
    identity = generate_request_id()
    headers = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"x-content-type-options", b"nosniff"),
        (b"x-request-id", identity.encode("ascii")),
        (b"content-length", b"%d" % len(_BODY)),
        (b"retry-after", b"1"),
        (b"connection", b"close"),
    ]
    await send({"type": "http.response.start", "status": 503, "headers": headers})
    await send({"type": "http.response.body", "body": _BODY})
    target = request_target(scope["raw_path"], scope["query_string"])
    seconds = perf_counter() - started
    log_request(scope["method"], target, 503, seconds, request_id=identity)
