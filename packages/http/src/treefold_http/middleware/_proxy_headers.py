"""Take the client's address and scheme from the header fields of trusted proxies only (S-93).

Without this middleware the client is the peer of the socket, and forwarding fields are ignored.
Fields are matched by their exact names; `X_Forwarded_For` is not one of them (S-16).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treefold_http._wire.addresses import IPAddress, Networks, parse_address
from treefold_http._wire.errors import BadRequest
from treefold_http._wire.request_guard import is_host

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection

_SECURE = {"http": False, "https": True, "ws": False, "wss": True}


class ProxyHeaders:
    """Trust `X-Forwarded-For` and `X-Forwarded-Proto` of trusted proxies.

    The chain is read from the right: the first address that is not a trusted proxy is the
    client's; addresses to the left of it may be forged. Put it first in `middlewares`, so that
    later middleware sees the address of the client.

    Args:
        trusted: addresses or networks of the proxies, such as `10.0.0.0/8`; `unix` is a peer on a
            Unix socket.
        host: also trust `X-Forwarded-Host`.

    Attributes:
        trusted: the networks of the proxies.
        has_host: the argument `host`.

    Raises:
        ValueError: for an invalid address or network, or when none is given.
    """

    def __init__(self, trusted: Sequence[str], *, host: bool = False) -> None:
        self.trusted = Networks(trusted, of="ProxyHeaders")
        self.has_host = host

    def adjust(self, connection: Connection) -> None:
        """Set the client address, scheme and host of a connection from the fields of its proxy.

        Raises:
            BadRequest: when the proxy sends an invalid host.
        """
        scope = connection.scope
        peer = scope.get("client")
        if (parse_address(peer[0]) if peer else None) not in self.trusted:
            return
        headers = connection.headers
        if (client := self._find_client(headers.getlist("x-forwarded-for"))) is not None:
            # its port is not known; `is_from_untrusted_proxy` knows by 0 that a trusted proxy has
            # named the client
            scope["client"] = (str(client), 0)
        protocol = _read_last_value(headers.getlist("x-forwarded-proto")).lower()
        if protocol in _SECURE:
            # proxies write `https` for a handshake too, whose scheme in ASGI is `wss`
            kind = "ws" if scope["type"] == "websocket" else "http"
            scope["scheme"] = f"{kind}s" if _SECURE[protocol] else kind
        if self.has_host and (host := _read_last_value(headers.getlist("x-forwarded-host"))):
            _replace_host(connection, host)

    def _find_client(self, fields: list[str]) -> IPAddress | None:
        client: IPAddress | None = None
        for text in reversed(",".join(fields).split(",")):
            address = parse_address(text.strip())
            # such as `unknown`: what is further to the left was written before it, and may be
            # forged
            if address is None:
                break
            client = address
            if address not in self.trusted:
                break
        return client

    before = adjust


def _read_last_value(fields: list[str]) -> str:
    """Return the last value, which the nearest proxy wrote."""
    return fields[-1].rpartition(",")[2].strip() if fields else ""


def _replace_host(connection: Connection, host: str) -> None:
    encoded = host.encode("latin-1")
    if not is_host(encoded):
        raise BadRequest("X-Forwarded-Host must be host[:port]")
    scope = connection.scope
    kept = [(name, value) for name, value in scope["headers"] if name != b"host"]
    scope["headers"] = [(b"host", encoded), *kept]
    connection.fields = dict(scope["headers"])
    connection.forget_headers()
