"""Middleware that comes with treefold: `from treefold_http.middleware import TrustedHosts`.

One file each, imported at first use. What an entry of `middlewares` may be is said in
`_middleware`; `under` scopes one to a subtree.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from treefold_http._middleware import under

if TYPE_CHECKING:
    from treefold_http.middleware._proxy_headers import ProxyHeaders as ProxyHeaders
    from treefold_http.middleware._trusted_hosts import TrustedHosts as TrustedHosts

_HOMES = {"ProxyHeaders": "_proxy_headers", "TrustedHosts": "_trusted_hosts"}

__all__ = ["ProxyHeaders", "TrustedHosts", "under"]


def __getattr__(name: str) -> Any:
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value
