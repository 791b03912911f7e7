"""Refuse new connections of a listening socket, without losing those that are on their way.

A connection that the kernel has taken but the server has not would be reset when the socket closes,
with a request on it. On Linux a packet filter on the socket drops the first packet of every new
connection: what was on its way arrives, nothing follows, and a client that tries meanwhile is
refused once the socket is closed. Elsewhere the queue is made as short as possible.
"""

import contextlib
import ctypes
import socket
import struct
import sys
from typing import Any

_SO_ATTACH_FILTER = 26  # asm-generic/socket.h
# Classic BPF over the TCP header: load the byte of the flags; drop a packet with SYN, take others.
_FILTER = (
    (0x30, 0, 0, 13),  # BPF_LD | BPF_B | BPF_ABS: the flags
    (0x45, 0, 1, 0x02),  # BPF_JMP | BPF_JSET | BPF_K: SYN?
    (0x06, 0, 0, 0),  # BPF_RET: nothing of it
    (0x06, 0, 0, 0xFFFFFFFF),  # BPF_RET: all of it
)


def is_refusing(listener: Any) -> bool | None:
    """Return whether connections of a socket are refused, by any process; None if unknown."""
    if sys.platform != "linux" or listener.family == socket.AF_UNIX:
        return None
    return bool(listener.getsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, 64))


def refuse_connections(listener: socket.socket) -> None:
    """Drop connections that begin from now on; earlier ones can still be accepted.

    The effect is that of the socket itself, in every process that shares it.
    """
    with contextlib.suppress(OSError):  # it goes on to accept until it is closed, as before
        if sys.platform == "linux" and listener.family != socket.AF_UNIX:
            steps = b"".join(struct.pack("HBBI", *step) for step in _FILTER)
            program = ctypes.create_string_buffer(steps)
            given = struct.pack("HL", len(_FILTER), ctypes.addressof(program))
            listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, given)
        else:
            listener.listen(0)
