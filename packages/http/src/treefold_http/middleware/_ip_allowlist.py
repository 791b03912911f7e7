"""Refuse clients outside of listed networks with 403, HTTP and WebSocket alike.

The client is the peer of the socket. Behind a proxy put `ProxyHeaders` first, which replaces it by
the address that trusted proxies report. A local proxy that is not trusted is refused, whatever the
list: its address is not that of a client.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treefold_http._wire.addresses import Networks, parse_address, read_client_host
from treefold_http._wire.errors import Forbidden
from treefold_http.middleware._relayed import is_from_untrusted_proxy, warn_of_untrusted_proxy

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection

_KNOWN_LIMIT = 4096
"""Addresses that were found allowed, and need no second search of the networks."""
_REFUSED = "This address may not use this service"


class IPAllowlist:
    """Refuse clients whose address is in none of the networks.

    Args:
        allowed: addresses or networks such as `10.0.0.0/8` or `fd00::/8`; `unix` is a peer on a
            Unix socket. An IPv4 address inside an IPv6 one counts as IPv4.

    Raises:
        ValueError: for a text that is not an address or network, or without any.
    """

    decides_access = True  # a cache around it would pass it by

    def __init__(self, allowed: Sequence[str]) -> None:
        self._networks = Networks(allowed, of="IPAllowlist")
        self._known: set[str] = {"unix"} if self._networks.unix else set()

    def before(self, connection: Connection) -> None:
        """Check that a request comes from one of the networks."""
        client = read_client_host(connection.scope)
        if client not in self._known:
            self._check_client(client)
        # also for a known address: the same proxy may send its own requests and those of clients
        if is_from_untrusted_proxy(connection):
            warn_of_untrusted_proxy(connection, "IPAllowlist", "refused a request")
            raise Forbidden(_REFUSED)

    def _check_client(self, client: str) -> None:
        address = parse_address(client)
        if address is None or address not in self._networks:
            raise Forbidden(_REFUSED)
        # an IPv6 network has more addresses than a process has memory
        if len(self._known) < _KNOWN_LIMIT:
            self._known.add(client)
