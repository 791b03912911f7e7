"""How a row knows the instance that it was loaded for: by a weak reference.

That instance holds its related rows. Would they hold it too, a result would live until the garbage
collector finds the cycle. Nothing here knows models.
"""

from __future__ import annotations

import weakref
from typing import Any, cast

_ABSENT: Any = object()


class OwnerReference(weakref.ref[Any]):
    """The instance with the key `key` that a row was loaded for.

    `prefetched` says that both were loaded by one call: reading the way back then never sends a
    statement, also once the instance is gone.
    """

    __slots__ = ("key", "prefetched")

    key: Any
    prefetched: bool


def make_weak_owner_reference(instance: Any, key: Any, *, prefetched: bool) -> OwnerReference:
    """Make the reference of a row to `instance`."""
    made = OwnerReference(instance)
    made.key = key
    made.prefetched = prefetched
    return made


def find_cached_related(instance: Any, name: str) -> Any:
    """The instance at the end of the relation `name` where it is loaded, else None."""
    found = cast("Any", getattr(instance, f"_cached_{name}", None))
    return found() if found.__class__ is OwnerReference else found


def is_relation_cached(instance: Any, name: str) -> bool:
    """True if the relation `name` is loaded, were it to no row."""
    found = getattr(instance, f"_cached_{name}", _ABSENT)
    return found() is not None if found.__class__ is OwnerReference else found is not _ABSENT
