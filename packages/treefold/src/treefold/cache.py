"""Caches: the public names of `treefold_http.cache`."""

from typing import TYPE_CHECKING

from treefold_http.cache import *  # noqa: F403 - its `__all__` is the list

if not TYPE_CHECKING:
    from treefold_http.cache import __all__ as __all__
