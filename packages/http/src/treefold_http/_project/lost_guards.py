"""Middleware of one version that does not cover the same place of a version that inherits it.

    middlewares = [under("/v1/admin", require_admin)]

`/v2/admin` is served from the files of v1 without `require_admin`, as after a copy. A copy shows
its author each file; a version that inherits is one line, so each lost entry is reported.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_http._chains.middleware_chain import unwrap_middleware_entry
from treefold_http._chains.subtrees import ANY, Under, lies_below
from treefold_router import Route, RouteTable, version_number

if TYPE_CHECKING:
    from treefold_http._wire.path_segments import Segments


@dataclass(frozen=True, slots=True)
class LostGuard:
    """An entry that covers a version, and not the same place of one that inherits it.

    Attributes:
        name: the name of its function or class.
        prefix: the prefix of its `under`, such as `/v1/admin`.
        version: the version that it does not cover.
        template: the first route there that it does not cover.
    """

    name: str
    prefix: str
    version: str
    template: str

    def __str__(self) -> str:
        """Return the finding in one line, with the line to write."""
        below = self.prefix.split("/", 2)[2:]
        every = "/".join(("", ANY, *below))
        return (
            f"{self.name} covers {self.prefix} and not {self.template}, which {self.version}"
            f" inherits; write under({every!r}, ...)"
        )


def find_lost_guards(
    table: RouteTable, entries: Sequence[Any], modules: Mapping[Route, object]
) -> list[LostGuard]:
    """Return each entry and version once.

    Args:
        table: the routes.
        entries: the middleware of the project.
        modules: the handler modules, whose own middleware covers their routes.
    """
    if not table.layers.chains:
        return []
    scoped = [one for one in entries if isinstance(one, Under) and one.prefix]
    return [
        lost
        for entry in scoped
        if version_number(entry.prefix[0]) is not None
        for lost in _find_uncovered_versions(table, entry, scoped, modules)
    ]


def _find_uncovered_versions(
    table: RouteTable,
    entry: Under,
    scoped: Sequence[Under],
    modules: Mapping[Route, object],
) -> Iterator[LostGuard]:
    base, kind = entry.prefix[0], _identify_middleware(entry)
    same = [one for one in scoped if _identify_middleware(one) == kind]
    for version, chain in table.layers.chains.items():
        if base not in chain[1:]:
            continue
        place: Segments = (version, *entry.prefix[1:])
        for route in table.routes:
            segments = tuple(route.template.split("/")[1:])
            if (
                route.version == version
                and lies_below(_without_names(place), _without_names(segments))
                and not any(one.covers_route(route) for one in same)
                and kind not in map(_identify_middleware, _list_own_entries(modules, route))
            ):
                name = getattr(kind, "__qualname__", str(kind))
                yield LostGuard(name, str(entry), version, route.template)
                break


def _list_own_entries(modules: Mapping[Route, object], route: Route) -> Sequence[Any]:
    """Return the middleware of a handler module; with that of a base which its handler calls."""
    return getattr(modules.get(route), "middlewares", ())


def _without_names(segments: Segments) -> Segments:
    """Return segments whose parameters are all alike: a version may give them other names."""
    return tuple("{}" if segment[0] == "{" else segment for segment in segments)


def _identify_middleware(entry: object) -> Any:
    """Return a function itself, and of an object its class: each entry has one of its own."""
    inner: Any = unwrap_middleware_entry(entry)
    return inner if hasattr(inner, "__qualname__") else inner.__class__
