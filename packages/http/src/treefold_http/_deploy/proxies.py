"""Proxies: whose forwarding fields are believed, compared with what the server listens on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from treefold_http._deploy.deployment import MIDDLEWARE, Deployment
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.reach import describe_listen_address
from treefold_http.middleware._ip_allowlist import IPAllowlist
from treefold_http.middleware._metrics import Metrics
from treefold_http.middleware._proxy_headers import ProxyHeaders
from treefold_http.middleware._rate_limit import RateLimit

KINDS = make_kinds(
    """
    severe proxy-mismatch: the trusted proxy is not the one that requests come from;
      an attacker is not told apart from other clients: a few requests use up the limit of all of
      them, and rules about addresses see the proxy's
    severe proxy-anyone: the forwarding fields of every peer are believed;
      an attacker sends X-Forwarded-For with an address of his choice: no limit counts him, and
      allowlists let him in
    severe proxy-missing: addresses are compared behind a proxy that nothing names;
      an attacker has the proxy's address as every client: he uses up the limit that all share, and
      passes rules that allow this machine
    severe proxy-late: addresses are compared before the proxy's fields are read;
      an attacker passes with the address of the proxy
    warning proxy-twice: the server and a middleware both replace the client's address;
      an attacker writes from inside of a trusted network, and so chooses the address that is
      counted
    """
)
MISMATCH, ANYONE, MISSING, LATE, TWICE = KINDS


def check_proxy_trust(deployment: Deployment) -> Iterator[Finding]:
    """Find trust that does not fit the peers of the server."""
    reach, serve = deployment.network_reach, deployment.settings.serve
    settings_file = deployment.sources.find_setting_file("serve")
    if reach.is_public and reach.trusts_anyone:
        text = f"the forwarding fields of any peer of {describe_listen_address(serve)} are believed"
        file = _choose_finding_file(reach, settings_file)
        yield ANYONE.make_finding(file, text, "ProxyHeaders(['10.0.0.7'])  # the proxy")
    if reach.peer and reach.has_trusted_proxy and not reach.trusts_peer:
        where = describe_listen_address(serve)
        text = f"requests come from {reach.peer!r}, as the server listens on {where}"
        text += ", and the trusted proxies are others"
        file = _choose_finding_file(reach, settings_file)
        write = f"ProxyHeaders([{reach.peer!r}])  # first in the list"
        yield MISMATCH.make_finding(file, text, write)
    readers = [entry for entry in deployment.middleware_entries if _reads_client_address(entry)]
    if reach.peer and not reach.has_trusted_proxy and readers:
        name = type(readers[0]).__name__
        text = f"{name} compares addresses, which are all {reach.peer!r} behind a proxy"
        write = f"ProxyHeaders([{reach.peer!r}])  # first in the list"
        yield MISSING.make_finding(MIDDLEWARE, text, write)
    if reach.proxies:
        yield from _check_proxy_order(deployment)
    if reach.proxies and reach.trusts_server:
        text = "serve.forwarded_allow_ips and ProxyHeaders both replace the client's address"
        write = "forwarded_allow_ips = []  # ProxyHeaders does it"
        yield TWICE.make_finding(settings_file, text, write)


def _choose_finding_file(reach: Any, settings_file: str) -> str:
    return MIDDLEWARE if reach.proxies else settings_file


def _check_proxy_order(deployment: Deployment) -> Iterator[Finding]:
    told: set[int] = set()
    chains = [("what is no route", deployment.non_route_middleware)]
    chains += [(served.display_name, served.entries) for served in deployment.loaded_routes]
    for shown, chain in chains:
        entry = _find_early_address_reader(chain)
        if entry is None or id(entry) in told:
            continue
        told.add(id(entry))
        text = f"{type(entry).__name__} comes before ProxyHeaders for {shown}"
        write = "middlewares = [ProxyHeaders(...), ...]  # first, and not below a prefix"
        yield LATE.make_finding(MIDDLEWARE, text, write)


def _find_early_address_reader(chain: Sequence[Any]) -> Any:
    """Return the first entry that compares addresses before they are those of clients."""
    for entry in chain:
        if isinstance(entry, ProxyHeaders):
            return None
        if _reads_client_address(entry):
            return entry
    return None


def _reads_client_address(entry: Any) -> bool:
    if isinstance(entry, RateLimit):
        return entry.key is None
    return isinstance(entry, IPAllowlist) or (isinstance(entry, Metrics) and entry.page is not None)
