"""Refuse new connections of a listening socket, without losing those that are on their way.

A connection that the kernel has taken but the server has not would be reset when the socket closes,
with a request on it. On Linux the socket is bound to a network device that does not exist: what was
on its way arrives, nothing begins, and a client that tries meanwhile is refused. A kernel before
5.0, and a socket that has a device, get a packet filter that drops the first packet of every new
connection; since 6.18 that takes a privilege. Elsewhere the queue is made as short as possible.
"""

import ctypes
import socket
import struct
import sys
from collections.abc import Callable
from typing import Any

_SO_BINDTOIFINDEX = 62  # asm-generic/socket.h, as the next one
_SO_ATTACH_FILTER = 26
_NO_DEVICE = 2**31 - 1
"""A number that no network device has: the kernel counts them from 1."""
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
    return _is_bound_to_missing_device(listener) or _has_packet_filter(listener)


def refuse_connections(listener: socket.socket) -> None:
    """Refuse connections that begin from now on; earlier ones can still be accepted.

    The effect is that of the socket itself, in every process that shares it.
    """
    is_tcp = sys.platform == "linux" and listener.family != socket.AF_UNIX
    ways: tuple[Callable[[socket.socket], None], ...] = (
        (_bind_to_missing_device, _attach_syn_drop_filter, _shorten_accept_queue)
        if is_tcp
        else (_shorten_accept_queue,)
    )
    for way in ways:
        try:
            way(listener)
        except OSError:  # not this kernel, or not this user; without any it accepts until its end
            continue
        return


def _bind_to_missing_device(listener: socket.socket) -> None:
    listener.setsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX, _NO_DEVICE)


def _is_bound_to_missing_device(listener: Any) -> bool:
    try:
        number = listener.getsockopt(socket.SOL_SOCKET, _SO_BINDTOIFINDEX)
    except OSError:  # a kernel before 5.0
        return False
    return bool(number == _NO_DEVICE)


def _attach_syn_drop_filter(listener: socket.socket) -> None:
    steps = b"".join(struct.pack("HBBI", *step) for step in _FILTER)
    program = ctypes.create_string_buffer(steps)
    given = struct.pack("HL", len(_FILTER), ctypes.addressof(program))
    listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, given)


def _has_packet_filter(listener: Any) -> bool:
    return bool(listener.getsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, 64))


def _shorten_accept_queue(listener: socket.socket) -> None:
    listener.listen(0)
