"""A request as it is sent and a response as it comes back, whichever way they travel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request, or the handshake of a socket.

    Attributes:
        path: as written, percent-encoded.
    """

    method: str
    path: str
    query: str
    host: str
    address: str
    fields: Sequence[tuple[str, str]]
    body: bytes = b""
    is_socket: bool = False

    @property
    def target(self) -> str:
        """Path and query."""
        return f"{self.path}?{self.query}" if self.query else self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """A response; 101 with the first message of the socket as body if a socket was accepted."""

    status: int
    fields: Sequence[tuple[str, str]]
    body: bytes

    def values(self, name: str) -> list[str]:
        """Return every value of a field; the name in lower case."""
        return [value for key, value in self.fields if key == name]


class Transport(Protocol):
    """A way to a running application."""

    async def send(self, sent: Sent) -> Received:
        """Send a request and wait for the response."""
        ...
