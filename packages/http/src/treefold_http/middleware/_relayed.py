"""Requests that a proxy sends for others while `ProxyHeaders` does not trust it (S-142).

The address of such a request is the proxy's: it says nothing about the client. Rules that admit
local addresses refuse it, and a limit by address warns, because all clients share one count.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from treefold_http._wire.addresses import parse_address, read_client_host
from treefold_logging import get_logger

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._runtime.runtime import Runtime

_PROXY_FIELDS = frozenset({b"forwarded", b"x-real-ip", b"via", b"cf-connecting-ip"})
"""Header fields that proxies add and browsers do not, beside those with the prefix."""
_PROXY_PREFIX = b"x-forwarded-"
_warned_entries: WeakKeyDictionary[Runtime, set[str]] = WeakKeyDictionary()
"""The middleware entries that have warned, by application."""


def is_from_untrusted_proxy(connection: Connection) -> bool:
    """Return True if a local proxy sent the request for a client whose address is not known.

    `ProxyHeaders` and servers that read the fields themselves set the port 0, which no peer has.
    """
    client = connection.scope.get("client")
    if client and client[0] and int(client[1]) == 0:
        return False
    fields = connection.fields
    if not any(name in _PROXY_FIELDS or name.startswith(_PROXY_PREFIX) for name in fields):
        return False
    address = parse_address(read_client_host(connection.scope))
    return address is None or not address.is_global


def warn_of_untrusted_proxy(connection: Connection, entry: str, effect: str) -> None:
    """Log, once for each application and entry, which line is missing.

    Args:
        entry: the middleware, such as `RateLimit`.
        effect: what it does for want of an address, such as "counts all clients as one".
    """
    warned = _warned_entries.setdefault(connection.app, set())
    if entry in warned:
        return
    warned.add(entry)
    peer = read_client_host(connection.scope)
    get_logger().warning(
        "%s %s: the proxy %s sends requests of other clients and is not trusted; add"
        " ProxyHeaders([%r]) as the first entry of middlewares in Middleware/__init__.py, and let"
        " the proxy send X-Forwarded-For",
        entry,
        effect,
        peer,
        peer,
    )
