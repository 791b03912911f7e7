"""Where the cache of a route stands among its middleware, and what stands before it.

A list is read from the outside in, and `cached(60)` keeps the answers of what comes after it. Four
rules are applied when a chain is planned:

1. One cache counts, the one nearest the handler: two of them would keep one answer twice.
2. A guard (`decides_access = True`, or marked by `secured`) after a cache of the same list is an
   error of the boot, because a kept answer passes it by: `[cached(60), IPAllowlist(...)]`.
3. A cache of the project moves directly around the handler where the route has guards of its own,
   or dependencies that see the request; these run for every request. So does one with `key=`, which
   notes nothing of what middleware inside of it reads: `[cached(60, key=user), gate]`.
4. Middleware that acts on every answer (`sees_every_answer = True`: compression, metrics, tracing)
   has no cache around it: it works on answers that are sent, or has to count kept ones too. The
   cache moves inside of it. Moving the entry out instead would take it past a guard between them.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Any

from treefold_http._injection.contract import Contract
from treefold_http._injection.secured import read_middleware_security
from treefold_http._requests.read_notes import ReadNotes
from treefold_http._runtime.boot_report import SettingsError
from treefold_router import Route

if TYPE_CHECKING:
    from treefold_http._requests.request import Request

KEPT_METHODS = ("GET", "HEAD")


class CacheLayer:
    """The layer of a cache at one route; `treefold_http.cache` has the one that runs.

    Attributes:
        early: runs the dependencies that run before the look-up; None if there are none.
        declared: names of what the handler declares to read, as in `ReadNotes.names`.
    """

    early: Callable[[Any], Awaitable[Any]] | None = None
    declared: frozenset[str] = frozenset()


class ContextMark:
    """Remembers the context variables of a request before middleware of the project sets some."""

    def before(self, request: Request) -> None:
        """Note the context of a request."""
        request.notes = ReadNotes(copy_context())


def has_cache(route: Route | None, entries: Sequence[Any]) -> bool:
    """Return True if a cache among the entries of a route keeps its answers."""
    return any(map(is_cache_entry, entries)) and _has_cacheable_method(route)


def place_cache(route: Route | None, entries: Sequence[Any], *, is_innermost: bool) -> list[Any]:
    """Return the entries of a route with at most one cache, at its place.

    Args:
        is_innermost: True if the handler has dependencies that run before the look-up.
    """
    caches = [entry for entry in entries if is_cache_entry(entry)]
    if not caches:
        return list(entries)
    others = [entry for entry in entries if not is_cache_entry(entry)]
    # answers to GET and HEAD only are kept (RFC 9110, 9.2.3)
    if not _has_cacheable_method(route):
        return others
    last = max(index for index, entry in enumerate(entries) if is_cache_entry(entry))
    place = last - len(caches) + 1
    for index, entry in enumerate(others[place:], place):
        if _sees_every_answer(entry):
            place = index + 1  # the entry stays: one before it may guard its page
    # rule 3: a key of the author names a client, and a guard behind it would be passed by
    is_keyed = getattr(caches[-1], "key", None) is not None
    if is_innermost or is_keyed or any(map(decides_access, others[place:])):
        place = len(others)
    placed = [*others[:place], caches[-1], *others[place:]]
    # middleware of the project may set context variables, which then decide answers too
    return [ContextMark(), *placed] if any(map(_is_project_middleware, others[:place])) else placed


def require_guards_before_cache(entries: Sequence[tuple[tuple[str, ...], Any]]) -> None:
    """Refuse a list with a guard after a cache.

    Args:
        entries: the prefix of each entry, empty for every route, and the entry itself.

    Raises:
        SettingsError: with the line to write.
    """
    for index, (prefix, cache) in enumerate(entries):
        if not is_cache_entry(cache):
            continue
        for other, guard in entries[index + 1 :]:
            if decides_access(guard) and _may_overlap(prefix, other):
                name = format_entry_name(guard)
                raise SettingsError(
                    f"{name} must come before {cache!r}, which would answer without asking it;"
                    f" write middlewares = [{name}(...), {cache!r}]"
                )


def decides_access(entry: Any) -> bool:
    """Return True for middleware that refuses requests by a verdict that may change."""
    return getattr(entry, "decides_access", False) is True or bool(read_middleware_security(entry))


def collect_declared_names(contract: Contract, entries: Sequence[Any]) -> frozenset[str]:
    """Return the names of what a route declares to depend on: header fields, and its caller."""
    fields = (sent.name.lower() for sent in contract.inputs if sent.place == "header")
    has_caller = contract.security or any(map(read_middleware_security, entries))
    return frozenset([f"header:{name}" for name in fields] + ["principal"] * bool(has_caller))


def format_entry_name(entry: Any) -> str:
    """Return the name of a middleware as its author writes it."""
    return getattr(entry, "__name__", type(entry).__name__)


def is_cache_entry(entry: Any) -> bool:
    """Return True for an entry that keeps answers."""
    return getattr(entry, "keeps_answers", False) is True


def _sees_every_answer(entry: Any) -> bool:
    return getattr(entry, "sees_every_answer", False) is True


def _has_cacheable_method(route: Route | None) -> bool:
    return route is None or route.method in KEPT_METHODS


def _is_project_middleware(entry: Any) -> bool:
    module: str = getattr(entry, "__module__", "")
    return not module.startswith("treefold_")


def _may_overlap(one: Sequence[str], other: Sequence[str]) -> bool:
    pairs = zip(one, other, strict=False)
    # a parameter and `*` match any segment, and the shorter prefix has the longer one below it
    return all(a == b or not {"{", "*"}.isdisjoint((a[:1], b[:1])) for a, b in pairs)
