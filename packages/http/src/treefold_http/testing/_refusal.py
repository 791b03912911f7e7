"""The exception that a test sees when a WebSocket handshake is refused."""

from __future__ import annotations

import httpx


class WebSocketRefused(Exception):  # the outcome's name, as WebSocketDisconnect is
    """The application did not accept the socket.

    Attributes:
        status: the HTTP status of the answer; 403 where the application only closed.
        response: the whole answer: its `headers`, `text` and `json()`.
    """

    def __init__(self, status: int, response: httpx.Response) -> None:
        super().__init__(status, response)
        self.status = status
        self.response = response

    def __str__(self) -> str:
        return f"The WebSocket was refused with {self.status}: {self.response.text[:500]}"
