"""uvicorn's h11 protocol with what a server on the open net needs: time limits and bounds."""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from treefold_cli._connection_watch import Watch
from treefold_cli._overload import app_for


class PatientH11(H11Protocol):
    """h11 that waits for nobody for ever, and never loses an answer to a client that sends on."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._watch = Watch(self)

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin to watch the connection."""
        super().connection_made(self._watch.open(transport))

    def connection_lost(self, exc: Exception | None) -> None:
        """End the watch."""
        super().connection_lost(exc)
        self._watch.end()

    def data_received(self, data: bytes) -> None:
        """Take what came, and see what is waited for now."""
        if not self._watch.discards(data):
            self.app = app_for(self, self._most)
            super().data_received(data)
            self._watch.look(len(data))

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Leave the connection to the WebSocket."""
        self._watch.end()
        super().handle_websocket_upgrade(event)
