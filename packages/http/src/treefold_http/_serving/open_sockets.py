"""The open sockets of an application, which its shutdown closes."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from treefold_http._websockets.websocket import LAST_WORD, RESTART

if TYPE_CHECKING:
    from treefold_http._websockets.websocket import WebSocket


class OpenSockets:
    """The open sockets of an application; the shutdown closes them."""

    def __init__(self) -> None:
        self._open: set[WebSocket] = set()

    def add_socket(self, websocket: WebSocket) -> None:
        """Register an open socket."""
        self._open.add(websocket)

    def remove_socket(self, websocket: WebSocket) -> None:
        """Remove a socket whose handler has ended."""
        self._open.discard(websocket)

    async def close_all(self) -> None:
        """Close every accepted socket with 1012, service restart (RFC 6455, 7.4)."""
        # a later `accept` looks at `stopping`, and closes its socket itself
        accepted = [websocket for websocket in self._open if websocket.accepted]
        # Concurrently: a lost peer may block its send, and a send may fail.
        await asyncio.gather(
            *(_close_for_restart(websocket) for websocket in accepted),
            return_exceptions=True,
        )


async def _close_for_restart(websocket: WebSocket) -> None:
    async with asyncio.timeout(LAST_WORD):
        await websocket.close(RESTART, "The server is restarting")
