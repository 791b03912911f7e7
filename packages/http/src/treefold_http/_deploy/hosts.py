"""Host names: whether an application answers to names that are not its own."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from treefold_http._deploy.deployment import MIDDLEWARE, Deployment
from treefold_http._deploy.finding import Finding, make_kinds
from treefold_http._deploy.reach import describe_listen_address
from treefold_http.middleware._proxy_headers import ProxyHeaders
from treefold_http.middleware._trusted_hosts import TrustedHosts

KINDS = make_kinds(
    """
    severe hosts-any: requests for any host are answered;
      an attacker sends a Host of his own: links made of it, such as that of a password reset, lead
      to his site
    severe hosts-wide: a trusted host covers names that anybody can register;
      an attacker registers a name below it, which then counts as a host of the application
    severe hosts-before-proxy: the host is replaced after it was checked;
      an attacker sends X-Forwarded-Host through the proxy: the check has seen another host
    """
)
ANY_HOST, WIDE_HOST, LATE_HOST = KINDS

_SHARED = frozenset(
    {
        *("co.uk", "org.uk", "com.au", "com.br", "co.jp", "co.nz", "co.za", "com.cn", "co.in"),
        *("github.io", "gitlab.io", "netlify.app", "vercel.app", "pages.dev", "workers.dev"),
        *("herokuapp.com", "azurewebsites.net", "web.app", "fly.dev"),
    }
)
"""Names below which anybody gets one, beside the top-level domains; not all that there are."""


def check_trusted_hosts(deployment: Deployment) -> Iterator[Finding]:
    """Find hosts that are not checked, or too many that are trusted."""
    if deployment.network_reach.is_reached:
        yield from _find_routes_accepting_any_host(deployment)
    for entry in deployment.middleware_entries:
        for name in entry.allowed if isinstance(entry, TrustedHosts) else ():
            below = name.removeprefix("*.").partition(":")[0].lower()
            if name.startswith("*.") and ("." not in below or below in _SHARED):
                write = "TrustedHosts(['api.example.com'])  # the names of this application"
                yield WIDE_HOST.make_finding(MIDDLEWARE, f"TrustedHosts trusts {name!r}", write)
    of_routes = (served.entries for served in deployment.loaded_routes)
    chains = [deployment.non_route_middleware, *of_routes]
    if any(_checks_host_before_replacement(chain) for chain in chains):
        text = "TrustedHosts comes before ProxyHeaders(host=True)"
        write = "middlewares = [ProxyHeaders(...), TrustedHosts(...)]"
        yield LATE_HOST.make_finding(MIDDLEWARE, text, write)


def _find_routes_accepting_any_host(deployment: Deployment) -> Iterator[Finding]:
    chains = {"what is no route": deployment.non_route_middleware}
    chains |= {served.display_name: served.entries for served in deployment.loaded_routes}
    missing = [shown for shown, chain in chains.items() if not any(map(_checks_host, chain))]
    if not missing:
        return
    where = describe_listen_address(deployment.settings.serve)
    text = f"any Host is answered on {where}"
    if len(missing) < len(chains):
        text += f" for {missing[0]}" + (f" and {len(missing) - 1} more" if missing[1:] else "")
    write = "TrustedHosts(['api.example.com'])  # your names, first"
    yield ANY_HOST.make_finding(MIDDLEWARE, text, write)


def _checks_host(entry: Any) -> bool:
    return bool(getattr(entry, "checks_hosts", False))


def _checks_host_before_replacement(chain: Any) -> bool:
    checks = [index for index, entry in enumerate(chain) if isinstance(entry, TrustedHosts)]
    proxies = ((at, entry) for at, entry in enumerate(chain) if isinstance(entry, ProxyHeaders))
    replaces = [at for at, entry in proxies if entry.has_host]
    # one check before the last replacement suffices: it has seen another host than the handler does
    return bool(checks and replaces) and min(checks) < max(replaces)
