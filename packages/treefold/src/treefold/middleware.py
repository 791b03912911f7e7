"""The middleware of treefold, and `under`, which scopes an entry to a subtree."""

from typing import TYPE_CHECKING, Any

import treefold_http.middleware as _middleware
from treefold_http.middleware import __all__ as __all__

if TYPE_CHECKING:
    from treefold_http.middleware import (
        CORS as CORS,
        CSRF as CSRF,
        GZip as GZip,
        IPAllowlist as IPAllowlist,
        Metrics as Metrics,
        ProxyHeaders as ProxyHeaders,
        RateLimit as RateLimit,
        SecurityHeaders as SecurityHeaders,
        Sessions as Sessions,
        Timeout as Timeout,
        Tracing as Tracing,
        TrustedHosts as TrustedHosts,
        under as under,
    )


def __getattr__(name: str) -> Any:
    return getattr(_middleware, name)
