"""A connection that sends any bytes and reads answers one by one, for what no client would send.

The server may close at any time: sending then says so instead of raising, because the answer that
it left is still to be read. What is right is decided by the tests.
"""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Mapping
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self

from http_messages import Answer, read_answer
from serving import PATIENCE, Process


class ServeOnSocket(Protocol):
    """The fixture `serve_on_socket`: write a tree `{path: source}` and serve it on a socket."""

    def __call__(self, tree: Mapping[str, str]) -> Process: ...


class Wire:
    """One connection to a server.

    Args:
        server: who is spoken to.
        window: bytes that the kernel may keep for a reader who does not read; None for its default.
    """

    def __init__(self, server: Process, *, window: int | None = None) -> None:
        self._socket = socket.socket()
        if window is not None:
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self._socket.settimeout(PATIENCE)
        self._socket.connect(server.address)
        self._received = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._socket.close()

    def send(self, data: bytes) -> bool:
        """Send bytes; whether the server took them all before it closed."""
        try:
            self._socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return False
        return True

    def send_what_fits(self, data: bytes, *, seconds: float) -> int:
        """Send until all is sent, nobody has read for a while, or the server closes.

        Returns:
            How many bytes went out.
        """
        view = memoryview(data)
        self._socket.setblocking(False)
        with suppress(BrokenPipeError, ConnectionResetError):
            while view and select.select([], [self._socket], [], seconds)[1]:
                view = view[self._socket.send(view) :]
        self._socket.settimeout(PATIENCE)
        return len(data) - len(view)

    def answer(self, method: str = "GET") -> Answer:
        """Read one answer; what comes after it is kept for the next."""
        while (length := _length(method, self._received)) is None:
            more = self._receive()
            if not more:
                break
            self._received += more
        whole, self._received = self._received[:length], self._received[length:]
        return read_answer(method, whole)

    def at_least(self, size: int) -> bytes:
        """Give `size` bytes or more as they come; fewer only at the end of the connection."""
        while len(self._received) < size:
            more = self._receive()
            if not more:
                break
            self._received += more
        taken, self._received = self._received, b""
        return taken

    def exactly(self, size: int) -> bytes:
        """Give the next `size` bytes; fewer only at the end of the connection."""
        received = self.at_least(size)
        self._received = received[size:]
        return received[:size]

    def up_to(self, end: bytes) -> bytes:
        """Return the next bytes through `end`, and what came with them."""
        received = self.at_least(1)
        while end not in received:
            more = self.at_least(1)
            assert more, f"The connection ended before {end!r}: {received!r}"
            received += more
        return received

    def rest(self) -> bytes:
        """Give everything up to the end of the connection, which must come."""
        parts = [self._received]
        self._received = b""
        deadline = time.monotonic() + PATIENCE
        while more := self._receive():
            parts.append(more)
            assert time.monotonic() < deadline, "The connection goes on and on"
        return b"".join(parts)

    def end_sending(self) -> None:
        """Say that nothing more will come; answers can still be read."""
        self._socket.shutdown(socket.SHUT_WR)

    def _receive(self) -> bytes:
        try:
            return self._socket.recv(65536)
        except ConnectionResetError:
            return b""


def statuses(received: bytes) -> list[int]:
    """Give the status of every answer in all bytes of a connection."""
    return [int(status) for status in re.findall(rb"HTTP/1\.1 ([1-5][0-9]{2}) ", received)]


def _length(method: str, received: bytes) -> int | None:
    """Give the length of the first answer; None while it may still grow."""
    end = received.find(b"\r\n\r\n") + 4
    if end < 4:
        return None
    head = received[:end].lower()
    if method == "HEAD" or re.match(rb"http/1.1 (?:1..|204|304)", head):
        return end
    if match := re.search(rb"\r\ncontent-length: ([0-9]+)\r\n", head):
        length = end + int(match[1])
        return length if len(received) >= length else None
    if b"\r\ntransfer-encoding: chunked\r\n" not in head:
        return None
    while (line := received.find(b"\r\n", end)) >= 0:
        size = int(received[end:line], 16)
        end = line + 2 + size + 2
        if len(received) < end:
            return None
        if size == 0:
            return end
    return None
