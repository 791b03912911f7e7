"""Middleware that comes with treefold: `from treefold_http.middleware import TrustedHosts`.

One file each, imported at first use. The forms of an entry of `middlewares` are defined in
`_chains.middleware_chain`; `under` scopes one to a subtree, `requests_only` keeps one off sockets.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import requests_only as requests_only, under as under

if TYPE_CHECKING:
    from treefold_http.middleware._cors import CORS as CORS
    from treefold_http.middleware._csrf import CSRF as CSRF
    from treefold_http.middleware._gzip import GZip as GZip
    from treefold_http.middleware._ip_allowlist import IPAllowlist as IPAllowlist
    from treefold_http.middleware._metrics import Metrics as Metrics
    from treefold_http.middleware._proxy_headers import ProxyHeaders as ProxyHeaders
    from treefold_http.middleware._rate_limit import RateLimit as RateLimit
    from treefold_http.middleware._security_headers import SecurityHeaders as SecurityHeaders
    from treefold_http.middleware._sessions import Sessions as Sessions
    from treefold_http.middleware._timeout import Timeout as Timeout
    from treefold_http.middleware._tracing import Tracing as Tracing
    from treefold_http.middleware._trusted_hosts import TrustedHosts as TrustedHosts

_HOME_OF = {
    "CORS": "_cors",
    "CSRF": "_csrf",
    "GZip": "_gzip",
    "IPAllowlist": "_ip_allowlist",
    "Metrics": "_metrics",
    "ProxyHeaders": "_proxy_headers",
    "RateLimit": "_rate_limit",
    "SecurityHeaders": "_security_headers",
    "Sessions": "_sessions",
    "Timeout": "_timeout",
    "Tracing": "_tracing",
    "TrustedHosts": "_trusted_hosts",
}

if not TYPE_CHECKING:  # checkers read the imports above, and cannot evaluate this
    __all__ = [*_HOME_OF, "requests_only", "under"]


def __getattr__(name: str) -> Any:
    if (home := _HOME_OF.get(name)) is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
