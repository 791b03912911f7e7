"""Each version of a lock is written as its difference to the version before it.

    v2 = v1                     begins the section of v2
    - DELETE /v2/user/{id}      a route of v1 that v2 does not have
    GET /v2/user/{id} ...       a block for each route that is new or differs

The difference is one of facts, not of files: how a version shares code changes no line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from treefold_contract._facts.facts import Lock, RouteFacts, VersionFacts
from treefold_contract._facts.paths import Segment


@dataclass(frozen=True, slots=True)
class VersionDifference:
    """What a version has other than the one before it."""

    removed: tuple[RouteFacts, ...]
    changed: tuple[RouteFacts, ...]


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


def compare_versions(
    base: Sequence[RouteFacts], own: Sequence[RouteFacts], version: str
) -> VersionDifference:
    """Return what `own`, the routes of a version, have other than those of its base."""
    inherited = {route.key: route for route in (move_route(each, version) for each in base)}
    kept = {route.key for route in own}
    removed = [route for key, route in inherited.items() if key not in kept]
    changed = [route for route in own if inherited.get(route.key) != route]
    return VersionDifference(tuple(sort_routes(removed)), tuple(sort_routes(changed)))


def inherit_routes(
    base: Iterable[RouteFacts],
    removed: Iterable[tuple[str, str]],
    changed: Sequence[RouteFacts],
    version: str,
) -> list[RouteFacts]:
    """Return the routes of a version from those of its base and its difference."""
    gone = {*removed, *(route.key for route in changed)}
    inherited = [move_route(route, version) for route in base]
    return [*(route for route in inherited if route.key not in gone), *changed]
