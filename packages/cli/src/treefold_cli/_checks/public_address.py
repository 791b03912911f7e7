"""Find out if other machines reach a server, from the address that a socket is bound to."""

import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import socket

PUBLIC_VARIABLE = "TREEFOLD_PUBLIC_ADDRESS"
"""Tells a worker process the address of a server that other machines reach."""


def is_bound_to_public_address(listener: "socket") -> bool:
    """Return True if other machines can connect to a bound socket."""
    name = listener.getsockname()
    return not isinstance(name, str) and not ipaddress.ip_address(name[0]).is_loopback
