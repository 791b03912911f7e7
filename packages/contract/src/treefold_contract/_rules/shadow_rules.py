"""Rules of static paths beside parameters (rows 5 to 8).

`/user/me` beside `/user/{id}` takes the requests of `id` = `me`, for all methods: the router never
goes back. A place that is new or gone therefore changes what requests of other routes reach.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from treefold_contract._facts.facts import RouteFacts
from treefold_contract._facts.paths import Segment
from treefold_contract._relation.values import has_value
from treefold_contract._relation.view import View
from treefold_contract._rules.route_change import Change, Comparison
from treefold_contract._rules.rule_table import fixed_verdict


@dataclass
class Place:
    """One place of a tree of paths: the places below it, and the routes at it."""

    static: dict[str, Place] = field(default_factory=dict[str, "Place"])
    parameter: Place | None = None
    segment: Segment | None = None
    routes: dict[str, RouteFacts] = field(default_factory=dict[str, RouteFacts])

    def iter_routes(self) -> Iterator[RouteFacts]:
        """Yield all routes at the place and below it."""
        yield from self.routes.values()
        for inner in self.static.values():
            yield from inner.iter_routes()
        if self.parameter is not None:
            yield from self.parameter.iter_routes()

    def find_route(self, path: Iterable[Segment], method: str) -> RouteFacts | None:
        """Return the route that answers a request below the place."""
        place = self
        for segment in path:
            inner = None if segment.is_parameter else place.static.get(segment.text)
            inner = inner or place.parameter
            if inner is None:
                return None
            place = inner
        return place.routes.get(method)


def build_places(routes: Iterable[RouteFacts]) -> Place:
    """Return the tree of the paths of some routes."""
    root = Place()
    for route in routes:
        place = root
        for segment in route.path:
            if not segment.is_parameter:
                place = place.static.setdefault(segment.text, Place())
                continue
            if place.parameter is None:
                place.parameter = Place(segment=segment)
            place = place.parameter
        place.routes[route.method] = route
    return root


def compare_places(comparison: Comparison) -> tuple[list[Change], set[tuple[str, str]]]:
    """Return the changes of what requests reach, and the keys of removed routes they explain."""
    old, new = build_places(comparison.old.routes), build_places(comparison.new.routes)
    changes: list[Change] = []
    explained: set[tuple[str, str]] = set()
    _walk_places(comparison, old, new, 0, changes, explained)
    return changes, explained


def _walk_places(
    comparison: Comparison,
    old: Place,
    new: Place,
    depth: int,
    changes: list[Change],
    explained: set[tuple[str, str]],
) -> None:
    for text in new.static.keys() - old.static.keys():
        if old.parameter is not None:
            changes += _find_shadowed(comparison, old.parameter, new.static[text], text, depth)
    for text in old.static.keys() - new.static.keys():
        if new.parameter is None:
            continue
        for route in old.static[text].iter_routes():
            other = new.parameter.find_route(route.path[depth + 1 :], route.method)
            if other is not None:
                explained.add(route.key)
                changes.append(_build_change("route-unshadowed", route, route.title, other.title))
    for text in old.static.keys() & new.static.keys():
        inner = (old.static[text], new.static[text])
        _walk_places(comparison, *inner, depth + 1, changes, explained)
    if old.parameter is not None and new.parameter is not None:
        _walk_places(comparison, old.parameter, new.parameter, depth + 1, changes, explained)


def _find_shadowed(
    comparison: Comparison, parameter: Place, static: Place, text: str, depth: int
) -> Iterator[Change]:
    view = View("request", "text", comparison.old.definitions)
    for route in parameter.iter_routes():
        if not has_value(route.path[depth].type, text, view):
            yield _build_change("route-shadows-nothing", route, route.title, text)
            continue
        rest = route.path[depth + 1 :]
        other = static.find_route(rest, route.method)
        rule = "route-shadows-methods" if other is None else "route-shadows"
        path = (*route.path[:depth], Segment(text), *rest)
        request = f"{route.method} /" + "/".join(segment.template for segment in path)
        yield _build_change(rule, route, route.title, other.title if other else "", request)


def _build_change(rule: str, route: RouteFacts, old: str, new: str, request: str = "") -> Change:
    verdict = fixed_verdict(rule, "request")
    return Change(rule, route.title, old, new, verdict, request, version=route.version)
