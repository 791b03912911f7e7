"""Middleware: what comes with treefold, and `under`, which scopes an entry to a subtree."""

from typing import TYPE_CHECKING, Any

import treefold_http.middleware as _middleware
from treefold_http.middleware import __all__ as __all__

if TYPE_CHECKING:
    from treefold_http.middleware import (
        ProxyHeaders as ProxyHeaders,
        TrustedHosts as TrustedHosts,
        under as under,
    )


def __getattr__(name: str) -> Any:
    return getattr(_middleware, name)
