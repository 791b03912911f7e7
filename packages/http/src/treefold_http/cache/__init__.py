"""Caches: JSON values under keys, for a time, in memory or in Redis.

The page is docs/guides/cache.md.

`get_cache()` reads and writes, `cached()` keeps the results of functions and whole answers. One
rule applies throughout: an unreadable entry is a miss, and an unavailable cache only costs time.
"""

from treefold_http.cache._aliases import (
    clear_memory as clear_memory,
    configure_cache as configure_cache,
    get_cache as get_cache,
    list_memory_aliases as list_memory_aliases,
)
from treefold_http.cache._cache import Cache as Cache, SyncCache as SyncCache
from treefold_http.cache._cached import Cached as Cached, cached as cached

__all__ = ["Cache", "Cached", "SyncCache", "cached", "configure_cache", "get_cache"]
