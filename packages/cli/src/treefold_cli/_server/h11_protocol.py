"""uvicorn's h11 protocol with the time limits and bounds that a public server needs."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from treefold_cli._server.connection_timeouts import ConnectionTimeouts
from treefold_cli._server.overload import app_or_503


class HardenedH11Protocol(H11Protocol):
    """h11 protocol that limits every wait and delivers its response before it closes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._max_requests, self.limit_concurrency = self.limit_concurrency, None
        self._timeouts = ConnectionTimeouts(self)

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the time limits of the connection."""
        super().connection_made(self._timeouts.open(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the time limits of the connection."""
        super().connection_lost(exc)
        self._timeouts.detach()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and restart the timer for the expected data."""
        if not self._timeouts.discards(data):
            self.app = app_or_503(self, self._max_requests)
            super().data_received(data)
            self._timeouts.on_data(len(data))

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Stop the time limits, and hand the connection to the WebSocket protocol."""
        self._timeouts.detach()
        super().handle_websocket_upgrade(event)
