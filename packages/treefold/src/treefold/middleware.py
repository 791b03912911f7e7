"""The middleware of treefold, and `under`, which scopes an entry to a subtree."""

from typing import TYPE_CHECKING, Any

import treefold_http.middleware as _middleware

if TYPE_CHECKING:
    from treefold_http.middleware import *  # noqa: F403 - its `__all__` is the list
else:
    from treefold_http.middleware import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_middleware, name)
