"""Each version of a lock is written as its difference to the version before it.

    GET /v1/user/{id:int}       a route, which later versions have too, until
      ...
    GET /v2/user/{id:int}       a block for v2 says what it has instead, or
      ...
      gone    v3                the version is named that has no such route any more

The blocks of one route follow each other, and only a blank line is between those of two routes:
branches that touch different routes touch different lines, and git keeps them apart. The difference
is one of facts, not of files: how a version shares code changes no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

from treefold_contract._facts.facts import Lock, RouteFacts, VersionFacts
from treefold_contract._facts.paths import Segment

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class RouteBlock:
    """A route as a version has it, and later ones until there is another block.

    Attributes:
        route: its facts, in the first of these versions.
        gone: the later version that has no such route; empty if all have it.
    """

    route: RouteFacts
    gone: str = ""


RoutePlace: TypeAlias = tuple[tuple[tuple[bool, str], ...], str]
"""The identity of a route in all versions: parameters count by position, and follow the others."""


def sort_versions(versions: Iterable[VersionFacts]) -> list[VersionFacts]:
    """Return versions by number."""
    return sorted(versions, key=lambda each: (each.number, each.name))


def sort_routes(routes: Iterable[RouteFacts]) -> list[RouteFacts]:
    """Return routes in the order of a lock: by path, then by method."""
    return sorted(routes, key=_route_order)


def _route_order(route: RouteFacts) -> tuple[list[tuple[bool, str]], str]:
    # static segments come before parameters, as in the table of routes
    return [(each.is_parameter, each.text) for each in route.path], route.method


def routes_outside(lock: Lock) -> list[RouteFacts]:
    """Return the routes that are in no version."""
    names = {version.name for version in lock.versions}
    return [route for route in lock.routes if route.version not in names]


def routes_of(lock: Lock, version: str) -> list[RouteFacts]:
    """Return the routes of one version."""
    return [route for route in lock.routes if route.version == version]


def move_route(route: RouteFacts, version: str) -> RouteFacts:
    """Return a route as it is in another version."""
    return replace(route, path=(Segment(version), *route.path[1:]))


def normalize_route(route: RouteFacts) -> RouteFacts:
    """Return a route whose facts are in the order of a lock, so that equal ones compare equal."""
    auth = tuple(
        replace(each, scopes=tuple(sorted(each.scopes))) if len(each.scopes) > 1 else each
        for each in route.auth
    )
    return replace(
        route,
        auth=_sort_facts(auth),
        guards=_sort_facts(route.guards),
        inputs=_sort_facts(route.inputs),
        bodies=_sort_facts(route.bodies),
        limits=_sort_facts(route.limits),
        answers=_sort_facts(route.answers),
        fields=_sort_facts(route.fields),
        offers=_sort_facts(route.offers),
        messages=_sort_facts(route.messages),
        subprotocols=_sort_facts(route.subprotocols),
        closes=_sort_facts(route.closes),
    )


def _sort_facts(facts: tuple[T, ...]) -> tuple[T, ...]:
    # any order will do that depends on the facts alone
    return tuple(sorted(facts, key=repr)) if len(facts) > 1 else facts


def find_place(route: RouteFacts) -> RoutePlace:
    """Return the path below the version, in the order of a lock, and the method."""
    path = ((each.is_parameter, "" if each.is_parameter else each.text) for each in route.path[1:])
    return tuple(path), route.method


def list_blocks(
    routes: Iterable[RouteFacts], versions: Sequence[str]
) -> Iterator[list[RouteBlock]]:
    """Yield the blocks of each route, by version; routes are ordered by path and method.

    Args:
        routes: the routes of all versions.
        versions: the names of the versions, in their order.
    """
    found: dict[RoutePlace, dict[str, RouteFacts]] = {}
    for route in routes:
        found.setdefault(find_place(route), {})[route.version] = route
    for place in sorted(found):
        yield list(_compare_versions(found[place], versions))


def _compare_versions(
    own: Mapping[str, RouteFacts], versions: Sequence[str]
) -> Iterator[RouteBlock]:
    last: RouteFacts | None = None
    for version in versions:
        route = own.get(version)
        if last is None:
            last = route
        elif route is None:
            yield RouteBlock(last, version)
            last = None
        elif not _is_equal(move_route(last, version), route):
            yield RouteBlock(last)
            last = route
    if last is not None:
        yield RouteBlock(last)


def _is_equal(one: RouteFacts, other: RouteFacts) -> bool:
    return one == other or normalize_route(one) == normalize_route(other)


def spread_blocks(own: Mapping[str, RouteBlock], versions: Sequence[str]) -> Iterator[RouteFacts]:
    """Yield a route in each version that has it: the reverse of `list_blocks` for one route."""
    block: RouteBlock | None = None
    for version in versions:
        if version in own:
            block = own[version]
        elif block is not None and block.gone == version:
            block = None
        if block is not None:
            is_own = block.route.version == version
            yield block.route if is_own else move_route(block.route, version)
