"""Clients of the soak: plain HTTP/1.1 over open connections, with the time of each answer."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Address = tuple[str, int]
_KEY = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="


@dataclass(frozen=True, slots=True)
class Answer:
    """Status, head and body of an answer."""

    status: int
    head: str
    body: bytes

    def json(self) -> Any:
        """Return the decoded body."""
        return json.loads(self.body)


@dataclass(slots=True)
class Tally:
    """What clients counted.

    Attributes:
        statuses: status to number of answers.
        seconds: the time of each answer.
        failures: requests without a complete answer, in words.
    """

    statuses: dict[int, int] = field(default_factory=dict[int, int])
    seconds: list[float] = field(default_factory=list[float])
    failures: list[str] = field(default_factory=list[str])

    @property
    def answered(self) -> int:
        """The number of complete answers."""
        return sum(self.statuses.values())

    def percentile(self, part: float) -> float:
        """Return the time within which this part of the answers came, in milliseconds."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1e3


def request(path: str, method: str = "GET", body: bytes = b"", *fields: str) -> bytes:
    """Return a request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *fields]
    if body or method == "POST":
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def upload(number: int, size: int = 20_000) -> bytes:
    """Return a request that uploads one file."""
    boundary = f"soak{number}"
    body = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{number}.bin"'
        "\r\n\r\n"
    ).encode()
    body += b"x" * size + f"\r\n--{boundary}--\r\n".encode()
    kind = f"Content-Type: multipart/form-data; boundary={boundary}"
    return request("/v1/upload", "POST", body, kind)


def mixed(start: int) -> Iterator[bytes]:
    """Yield requests without an end, none like another: answers of 200, 201, 404, 405, 422, 500."""
    number = start
    while True:
        number += 1
        secret = f'{{"name": "n{number}", "password": "p{number}"}}'.encode()
        identity = f"X-Request-Id: soak-{number}"
        kind = "Content-Type: application/json"
        yield request(f"/v1/user/{number}", "GET", b"", identity)
        yield request("/v1/items", "POST", secret, kind)
        yield request(f"/v1/nothing/{number}?token=t{number}")
        yield request("/v1/health", "PATCH", b"")
        yield request("/v1/items", "POST", b'{"name": %d}' % number, kind)
        yield request("/v1/broken")
        yield request(f"/v1/health?unique={number}")
        if number % 20 == 0:
            yield upload(number)


async def read_answer(reader: asyncio.StreamReader) -> Answer:
    """Read one answer with a length or in chunks."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head.split(" ", 2)[1])
    lower = head.lower()
    if "transfer-encoding: chunked" in lower:
        body = b""
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            body += (await reader.readexactly(size + 2))[:-2]
        await reader.readexactly(2)
        return Answer(status, head, body)
    length = 0
    for line in lower.split("\r\n"):
        if line.startswith("content-length:"):
            length = int(line.partition(":")[2])
    return Answer(status, head, await reader.readexactly(length))


async def keep_asking(
    address: Address, requests: Iterator[bytes], tally: Tally, until: Callable[[], bool]
) -> None:
    """Send requests over one connection, opened again where the server closes it.

    Args:
        address: of the server.
        requests: sent in order, each after the answer to the one before.
        tally: what is counted.
        until: asked before each request; True ends it.
    """
    writer: asyncio.StreamWriter | None = None
    reader: asyncio.StreamReader | None = None
    for wanted in requests:
        if until():
            break
        began = time.perf_counter()
        try:
            if writer is None or reader is None:
                reader, writer = await asyncio.open_connection(*address)
            writer.write(wanted)
            answer = await read_answer(reader)
        except (OSError, asyncio.IncompleteReadError) as error:
            tally.failures.append(f"{wanted[:40]!r}: {error!r}")
            writer = None
            continue
        tally.seconds.append(time.perf_counter() - began)
        tally.statuses[answer.status] = tally.statuses.get(answer.status, 0) + 1
        if "connection: close" in answer.head.lower():
            writer.close()
            writer = None
    if writer is not None:
        writer.close()


async def ask_at_once(address: Address, requests: list[bytes]) -> Tally:
    """Send each request over a connection of its own, all at the same time."""
    tally = Tally()

    async def send(wanted: bytes) -> None:
        await keep_asking(address, iter([wanted]), tally, lambda: False)

    await asyncio.gather(*map(send, requests))
    return tally


async def echo(address: Address, messages: int) -> int:
    """Open a WebSocket, send messages and return how many came back."""
    reader, writer = await asyncio.open_connection(*address)
    fields = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13", _KEY)
    writer.write(request("/v1/echo", "GET", b"", *fields))
    await reader.readuntil(b"\r\n\r\n")
    back = 0
    for _ in range(messages):
        writer.write(b"\x81\x85\0\0\0\0hello")
        back += await reader.readexactly(7) == b"\x81\x05hello"
    writer.close()
    return back


def fetch(address: Address, path: str, timeout: float = 30.0) -> Answer:
    """Send one GET over a connection of its own.

    Raises:
        ConnectionError: where the server closes it without an answer.
    """
    with socket.create_connection(address, timeout) as connection:
        connection.sendall(request(path, "GET", b"", "Connection: close"))
        data = b""
        while piece := connection.recv(65536):
            data += piece
    if not data:
        raise ConnectionResetError(f"No answer to GET {path}")
    head, _, body = data.partition(b"\r\n\r\n")
    text = head.decode("latin-1")
    return Answer(int(text.split(" ", 2)[1]), text, body)
