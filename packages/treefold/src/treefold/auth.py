"""Authentication: the public names of `treefold_http.auth`."""

from typing import TYPE_CHECKING, Any

import treefold_http.auth as _auth

if TYPE_CHECKING:
    from treefold_http.auth import *  # noqa: F403 - its `__all__` is the list
else:
    from treefold_http.auth import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_auth, name)
