"""Addresses of clients as they are compared: networks, ports cut off, IPv4 inside IPv6.

Pure functions; where an address comes from (the socket, or a proxy that is trusted) is decided by
`ProxyHeaders`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from treefold_http._wire.asgi import Scope

IPAddress: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

UNIX = "unix"
"""The peer of a Unix socket, which has no address."""


class Networks:
    """A set of addresses and networks, and `unix` for peers on a Unix socket.

    Attributes:
        unix: True if peers on a Unix socket are in it.
        networks: the networks; an address is a network of one.

    Raises:
        ValueError: for a text that is not an address or network, or without any.
    """

    def __init__(self, names: Sequence[str], *, of: str) -> None:
        if isinstance(names, str) or not names:
            raise ValueError(f"{of} must list networks such as ['10.0.0.0/8'], got {names!r}")
        self.unix = UNIX in names
        self.networks = [ipaddress.ip_network(name) for name in names if name != UNIX]

    def __contains__(self, address: IPAddress | None) -> bool:
        if address is None:
            return self.unix
        return any(address in network for network in self.networks)


def parse_address(text: str) -> IPAddress | None:
    """Parse an address that may carry a port or a zone; `::ffff:1.2.3.4` is `1.2.3.4` (S-94)."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    # an address of IPv6 has two colons at least, so a single one begins a port
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    # a socket for both families reports `::ffff:10.0.0.1`, which is in no network of IPv4
    mapped = getattr(address, "ipv4_mapped", None)
    return mapped or address


def read_client_host(scope: Scope) -> str:
    """Return the client's address as text; `unix` where it has none."""
    client = scope.get("client")
    return client[0] if client and client[0] else UNIX


def find_client_network(scope: Scope) -> str | None:
    """Return the network of a client; None if the address may be that of a proxy on this site.

    `ProxyHeaders` and servers that read the fields of a proxy set the port 0.
    """
    client = scope.get("client")
    if not client or not client[0]:
        return None
    if int(client[1]) != 0 and not _is_global(client[0]):
        return None
    return to_client_network(client[0])


@lru_cache(maxsize=4096)
def _is_global(host: str) -> bool:
    address = parse_address(host)
    return address is not None and address.is_global


@lru_cache(maxsize=4096)
def to_client_network(host: str) -> str:
    """Return the network that a client is counted by: IPv4 whole, IPv6 by its /64.

    A client of IPv6 has at least a /64, and could take another address for each request (S-94).
    """
    address = parse_address(host)
    if not isinstance(address, ipaddress.IPv6Address):
        return host if address is None else str(address)
    network = int(address) >> 64 << 64
    return f"{ipaddress.IPv6Address(network)}/64"
