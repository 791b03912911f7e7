"""Clients that keep their connections busy while a server stops, and count what they lose."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from dataclasses import dataclass


@dataclass
class Count:
    """Requests of all clients.

    Attributes:
        answered: requests with a complete answer.
        lost: requests that were sent on an accepted connection and got no complete answer.
    """

    answered: int = 0
    lost: int = 0


def wait_until_served(address: tuple[str, int]) -> None:
    """Wait until a server accepts connections."""
    while True:
        try:
            socket.create_connection(address, timeout=60).close()
        except ConnectionRefusedError:
            time.sleep(0.02)
        else:
            return


async def keep_asking(address: tuple[str, int], clients: int, count: Count) -> None:
    """Ask from several clients, each over and over, until the server accepts no connection."""
    await asyncio.gather(*(_ask_until_refused(address, count) for _ in range(clients)))


async def _ask_until_refused(address: tuple[str, int], count: Count) -> None:
    while True:
        try:
            reader, writer = await asyncio.open_connection(*address)
        except OSError:
            return
        with contextlib.closing(writer):
            while await _is_kept_open(reader, writer, count):
                pass


async def _is_kept_open(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, count: Count
) -> bool:
    try:
        writer.write(b"GET /v1/user HTTP/1.1\r\nHost: localhost\r\n\r\n")
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
        await reader.readexactly(length)
    except (OSError, EOFError):
        count.lost += 1
        return False
    count.answered += 1
    return b"connection: close" not in head.lower()
