"""How much one process works on at a time: above the limit it answers 503 at once (D-07, R-26)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from treefold_cli._socket_protocol import GuardedWebSockets
from treefold_http import refuse_overload

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import H11Protocol
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol


def app_for(protocol: H11Protocol | HttpToolsProtocol, most: int | None) -> Any:
    """Give who answers the next request: the application, or 503 where it has enough to do.

    Args:
        protocol: of the connection that it comes on.
        most: how many requests may run in this process; sockets are no requests.
    """
    running = len(protocol.tasks) - GuardedWebSockets.running
    config: Any = protocol.config
    return config.loaded_app if most is None or running < most else refuse_overload
