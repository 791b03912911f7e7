"""A server that other machines reach and that answers any host name (D-08)."""

import ipaddress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from socket import socket

    from treefold_http import Application

ANY_HOST = "any Host is answered on %s; name yours with TrustedHosts in Middleware/"
PUBLIC_VARIABLE = "TREEFOLD_PUBLIC_ADDRESS"
"""Tells a worker process the address of a server that other machines reach."""


def is_public(listener: "socket") -> bool:
    """Return True if other machines can connect to a bound socket."""
    name = listener.getsockname()
    return not isinstance(name, str) and not ipaddress.ip_address(name[0]).is_loopback


def accepts_any_host(app: "Application") -> bool:
    """Return True if a booted application does not look at host names."""
    from treefold_http.middleware import TrustedHosts

    return not any(isinstance(entry, TrustedHosts) for entry in app.project.middlewares)
