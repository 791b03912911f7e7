"""From where requests reach an application, as far as its settings and its middleware say.

| listens on | clients are |
|---|---|
| an address of this machine, and nothing names a proxy or a public name | on this machine |
| an address of this machine, or a Unix socket, and something does | behind a proxy on it |
| any other address, and a proxy is trusted | behind a proxy on another machine |
| any other address | at the other end of the socket |
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_http._wire.addresses import UNIX, Networks, parse_address
from treefold_http.middleware._proxy_headers import ProxyHeaders
from treefold_http.middleware._trusted_hosts import LOOPBACK, TrustedHosts

if TYPE_CHECKING:
    from treefold_http._runtime.serve_settings import ServeSettings
    from treefold_http._runtime.settings import Settings

_EVERYONE = ("*", "0.0.0.0/0", "::/0")


@dataclass(frozen=True, slots=True)
class Reach:
    """The way of a request to the server.

    Attributes:
        peer: the address that a proxy on this machine has; empty if clients connect themselves.
        is_public: True if other machines can connect.
        trusts_server: the peers whose fields the server believes.
        proxies: the entries `ProxyHeaders`.
        is_reached: True if anything says that others than this machine send requests.
    """

    peer: str
    is_public: bool
    trusts_server: Sequence[str]
    proxies: Sequence[ProxyHeaders]
    is_reached: bool

    @property
    def has_trusted_proxy(self) -> bool:
        """True if a setting or an entry trusts a proxy."""
        return bool(self.trusts_server or self.proxies)

    @property
    def trusts_peer(self) -> bool:
        """True if the fields of the proxy on this machine are believed."""
        return any(networks_contain(proxy.trusted, self.peer) for proxy in self.proxies) or any(
            one == "*" or (self.peer != UNIX and _network_contains(one, self.peer))
            for one in self.trusts_server
        )

    @property
    def trusts_anyone(self) -> bool:
        """True if the fields of every peer are believed."""
        wide = [str(one) for proxy in self.proxies for one in proxy.trusted.networks]
        return any(one in _EVERYONE for one in (*self.trusts_server, *wide))


def compute_network_reach(settings: Settings, entries: Iterable[Any]) -> Reach:
    """Return the way of requests, from settings and all entries of middleware."""
    entries = list(entries)
    serve = settings.serve
    proxies = [each for each in entries if isinstance(each, ProxyHeaders)]
    is_local = serve.uds is None and serve.fd is None and is_loopback(serve.host)
    names = [n for each in entries if isinstance(each, TrustedHosts) for n in each.allowed]
    hosts = [name for name in names if name not in LOOPBACK]
    is_named = any(name.rpartition(":")[0] not in LOOPBACK for name in hosts)
    behind = bool(proxies or serve.forwarded_allow_ips or settings.root_path or is_named)
    peer = UNIX if serve.uds is not None else serve.host if is_local and behind else ""
    return Reach(
        peer="127.0.0.1" if peer == "localhost" else peer,
        is_public=serve.uds is None and not is_local,
        trusts_server=serve.forwarded_allow_ips,
        proxies=proxies,
        is_reached=not is_local or behind,
    )


def describe_listen_address(serve: ServeSettings) -> str:
    """Return the place that a server listens on, for messages."""
    if serve.uds is not None:
        return f"the Unix socket {serve.uds}"
    if serve.fd is not None:
        return f"the open file {serve.fd}"
    return f"{serve.host}:{serve.port}"


def is_loopback(host: str) -> bool:
    """Return True for a name or an address of this machine."""
    address = parse_address(f"[{host}]" if ":" in host else host)
    return host == "localhost" or (address is not None and address.is_loopback)


def networks_contain(networks: Networks, peer: str) -> bool:
    """Return True if a peer is in networks."""
    return networks.unix if peer == UNIX else parse_address(peer) in networks


def covers_many_public_addresses(networks: Networks) -> bool:
    """Return True if networks hold a large part of all public addresses."""
    return any(not one.is_private and one.prefixlen <= 16 for one in networks.networks)


def _network_contains(network: str, peer: str) -> bool:
    try:
        return ipaddress.ip_address(peer) in ipaddress.ip_network(network, strict=False)
    except ValueError:
        return False
