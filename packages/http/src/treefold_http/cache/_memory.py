"""A cache in the memory of this process: bounded by bytes, the least recently used go first.

Every invalidation has a number. A value that was computed before the invalidation of one of its
tags, or before its key was deleted, is not stored after it:

| Step | Last invalidation |
|---|---|
| request 1 reads `home`, finds nothing, gets the number 7, and computes | 7 |
| request 2 changes an article, and invalidates the tag `articles` | 8 |
| request 1 writes `home` with the tag `articles` and the number 7: refused, since 8 is above | 8 |
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from time import monotonic
from types import CoroutineType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MAX_BYTES = 64 * 1024 * 1024
_ENTRY_BYTES = 420
"""Bytes that one entry costs besides its key and its value: objects of Python around them."""
_ENTRY_TAG_BYTES = 180
"""The same for each of its tags, besides the name."""
_TAG_BYTES = 400
"""Bytes that a tag costs once, however many entries have it."""
_MAX_INVALIDATIONS = 10_000
"""Names whose last invalidation is remembered; for all others the latest forgotten one counts."""
_LARGEST_SHARE = 8
"""One value may take an eighth of the cache: a larger one would drive out most of the others."""


@dataclass(frozen=True, slots=True)
class _Entry:
    value: bytes
    expires: float
    tags: tuple[str, ...]
    size: int


def _make_async(method: Callable[P, T]) -> Callable[P, CoroutineType[Any, Any, T]]:
    """Return a method with the same result that is awaited; it never waits."""

    async def call_async(*args: P.args, **kwargs: P.kwargs) -> T:
        return method(*args, **kwargs)

    return call_async


class MemoryBackend:
    """Keeps bytes.

    Args:
        max_bytes: the bound of all entries together; a value above an eighth of it is not kept.
    """

    waits = False
    redis_url: str | None = None

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        if max_bytes < 1024:
            raise ValueError(f"A cache in memory must have at least 1024 bytes, got {max_bytes!r}")
        self._max_bytes = max_bytes
        self._bytes = 0
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._keys_by_tag: dict[str, set[str]] = {}
        self._lock = threading.Lock()
        self._last_invalidation = 0
        # by ("key", key) and ("tag", tag), the latest last; and the highest number of those that
        # have been dropped from it
        self._invalidations: OrderedDict[tuple[str, str], int] = OrderedDict()
        self._last_forgotten = 0

    def read_entry(self, key: str, tags: Sequence[str]) -> tuple[bytes | None, int]:
        """Return the value, or None, and the number that `write_entry` compares."""
        del tags
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry.expires <= monotonic():
                self._remove_entry(key)
                entry = None
            if entry is None:
                return None, self._last_invalidation
            self._entries.move_to_end(key)
            return entry.value, self._last_invalidation

    def write_entry(
        self,
        key: str,
        value: bytes,
        ttl: float,
        tags: Sequence[str],
        read_version: int | None = None,
    ) -> None:
        """Keep a value, unless it is older than an invalidation.

        Args:
            read_version: that of the `read_entry` before the value was computed; None for now.
        """
        size = len(key) + len(value) + _ENTRY_BYTES
        size += sum(len(tag) + _ENTRY_TAG_BYTES for tag in tags)
        with self._lock:
            if read_version is not None and self._is_stale(key, tags, read_version):
                return
            # before the size is checked: a value that is too large must not leave a former one
            # behind
            self._remove_entry(key)
            if size + _TAG_BYTES * len(tags) > self._max_bytes // _LARGEST_SHARE:
                return
            self._entries[key] = _Entry(value, monotonic() + ttl, tuple(tags), size)
            self._bytes += size
            for tag in tags:
                if tag not in self._keys_by_tag:
                    self._keys_by_tag[tag] = set()
                    self._bytes += _TAG_BYTES
                self._keys_by_tag[tag].add(key)
            # the first is the least recently used; the entry of this call is the last, and small
            # enough
            while self._bytes > self._max_bytes:
                self._remove_entry(next(iter(self._entries)))

    def delete_entry(self, key: str) -> bool:
        """Remove a value; return True if there was one."""
        with self._lock:
            # also without an entry: a computation that began before may be about to store one
            self._record_invalidations([("key", key)])
            return self._remove_entry(key)

    def invalidate_tags(self, tags: Sequence[str]) -> bool:
        """Remove all values with one of the tags; return True."""
        with self._lock:
            self._record_invalidations(("tag", tag) for tag in tags)
            for tag in tags:
                for key in list(self._keys_by_tag.get(tag, ())):
                    self._remove_entry(key)
        return True

    def clear_entries(self) -> bool:
        """Remove all values; return True."""
        with self._lock:
            self._last_invalidation += 1
            # every number that was given out before is outdated for all names
            self._last_forgotten = self._last_invalidation
            self._invalidations.clear()
            self._entries.clear()
            self._keys_by_tag.clear()
            self._bytes = 0
        return True

    aread_entry = _make_async(read_entry)
    awrite_entry = _make_async(write_entry)
    adelete_entry = _make_async(delete_entry)
    ainvalidate_tags = _make_async(invalidate_tags)
    aclear_entries = _make_async(clear_entries)

    def _record_invalidations(self, names: Iterable[tuple[str, str]]) -> None:
        self._last_invalidation += 1
        for name in names:
            self._invalidations[name] = self._last_invalidation
            self._invalidations.move_to_end(name)
        # Names that are forgotten count as invalidated at the number of the last of them: a value
        # may be computed once more, but no outdated one is stored.
        while len(self._invalidations) > _MAX_INVALIDATIONS:
            self._last_forgotten = self._invalidations.popitem(last=False)[1]

    def _is_stale(self, key: str, tags: Sequence[str], read_version: int) -> bool:
        names = [("key", key), *(("tag", tag) for tag in tags)]
        default = self._last_forgotten
        return any(self._invalidations.get(name, default) > read_version for name in names)

    def _remove_entry(self, key: str) -> bool:
        if (entry := self._entries.pop(key, None)) is None:
            return False
        self._bytes -= entry.size
        for tag in entry.tags:
            keys = self._keys_by_tag[tag]
            keys.discard(key)
            if not keys:
                del self._keys_by_tag[tag]
                self._bytes -= _TAG_BYTES
        return True
