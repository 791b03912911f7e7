"""Limit of concurrent requests per process: above it the response is 503 at once (D-07, R-26)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treefold_cli._server.socket_protocol import HardenedWebSocketProtocol
from treefold_cli._server.unread_responses import ReaderFlow
from treefold_http import refuse_overload

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def choose_app_or_503(protocol: H11Protocol | HttpToolsProtocol, max_requests: int | None) -> Any:
    """Return the ASGI application, or above the limit of requests an application that answers 503.

    Args:
        protocol: the protocol of the connection that received the request.
        max_requests: the most requests at one time in this process; None is no limit. WebSockets do
            not count, nor requests that wait only for their client to read.
    """
    running = len(protocol.tasks) - HardenedWebSocketProtocol.running - ReaderFlow.blocked
    config: Any = protocol.config
    return config.loaded_app if max_requests is None or running < max_requests else refuse_overload
