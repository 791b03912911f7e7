"""uvicorn's h11 protocol with the time limits and bounds that a public server needs."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from treefold_cli._connection_watch import Watch
from treefold_cli._overload import app_for


class PatientH11(H11Protocol):
    """h11 protocol that limits every wait and delivers its response before it closes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._watch = Watch(self)

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start watching the connection."""
        super().connection_made(self._watch.open(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop watching the connection."""
        super().connection_lost(exc)
        self._watch.end()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes and restart the timer for the expected data."""
        if not self._watch.discards(data):
            self.app = app_for(self, self._most)
            super().data_received(data)
            self._watch.look(len(data))

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Stop watching and hand the connection to the WebSocket protocol."""
        self._watch.end()
        super().handle_websocket_upgrade(event)
