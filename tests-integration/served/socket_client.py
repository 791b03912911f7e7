"""Clients of a WebSocket: an honest library, and handshakes and frames made by hand (RFC 6455).

By hand goes what no library would send. The mask is all zeros: it is there, as the protocol asks,
and leaves the payload readable. What is right is decided by the tests.
"""

from __future__ import annotations

import re
import struct

from http_messages import Answer
from serving import Process
from websockets.sync.client import ClientConnection, connect
from wire import Wire

CONTINUATION, TEXT, BINARY, CLOSE, PING, PONG = 0x0, 0x1, 0x2, 0x8, 0x9, 0xA

_KEY = b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" + _KEY


def handshake(server: Process, target: str, fields: bytes = b"") -> bytes:
    """Give an honest opening request, with further header fields."""
    host, port = server.address
    return b"GET %s HTTP/1.1\r\nHost: %s:%d\r\n%s%s\r\n" % (
        target.encode("latin-1"),
        host.encode(),
        port,
        UPGRADE,
        fields,
    )


def knock(server: Process, target: str, fields: bytes = b"") -> Answer:
    """Give the answer to an opening request; an accepted socket is left at once."""
    with Wire(server) as wire:
        wire.send(handshake(server, target, fields))
        return wire.answer()


def frame(
    opcode: int,
    payload: bytes = b"",
    *,
    fin: bool = True,
    masked: bool = True,
    reserved: int = 0,
    announced: int | None = None,
) -> bytes:
    """Give one frame.

    Args:
        reserved: the three RSV bits, as a number.
        announced: the length to say, where it is not that of the payload.
    """
    length = len(payload) if announced is None else announced
    head = bytes([fin << 7 | reserved << 4 | opcode])
    flag = masked << 7
    if length < 126:
        head += bytes([flag | length])
    elif length < 65536:
        head += bytes([flag | 126]) + struct.pack("!H", length)
    else:
        head += bytes([flag | 127]) + struct.pack("!Q", length)
    return head + b"\0\0\0\0" + payload if masked else head + payload


def next_frame(wire: Wire) -> tuple[int, bytes]:
    """Read one frame of the server: opcode and payload."""
    first, second = wire.exactly(2)
    assert not second & 0x80, "A server sends without a mask"
    length = second
    if length == 126:
        (length,) = struct.unpack("!H", wire.exactly(2))
    elif length == 127:
        (length,) = struct.unpack("!Q", wire.exactly(8))
    return first & 0x0F, wire.exactly(length)


def close_code(wire: Wire) -> int:
    """Read up to the close frame and give its code."""
    while True:
        opcode, payload = next_frame(wire)
        if opcode == CLOSE:
            return int.from_bytes(payload[:2], "big")


def dial(server: Process, target: str) -> ClientConnection:
    """Open a socket with an honest client."""
    host, port = server.address
    return connect(f"ws://{host}:{port}{target}", proxy=None, compression=None, max_size=None)


def lines_of(server: Process, id: str) -> list[str]:
    """Give the lines of one socket, once a later request has been logged."""
    server.line(server.get("/v1/ok"))
    shape = re.compile(rf"\[[A-Z]+\] WEBSOCKET .* id={re.escape(id)} ")
    return server.wait_for(lambda lines: list(filter(shape.match, lines)))
