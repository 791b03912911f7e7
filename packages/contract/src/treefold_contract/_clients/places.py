"""The places of an API as a tree: one for each prefix of a path, with the routes that end there.

    GET /v1/user, GET /v1/user/{id}    root > v1 > user (GET) > {id} (GET)

A place has static segments by their text, and at most one parameter, since parameters are told
apart by position.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from treefold_contract._errors import LockError
from treefold_contract._facts.facts import Lock, RouteFacts
from treefold_contract._facts.paths import Path, Segment
from treefold_contract._text.versions import routes_of, sort_routes, sort_versions
from treefold_contract._types.nodes import TypeNode, UnionType

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "WEBSOCKET")
UNREACHABLE = ("", ".", "..")
VERSION = re.compile(r"v[0-9]+")


@dataclass
class Place:
    """A prefix of paths.

    Attributes:
        path: its segments.
        statics: the places one static segment further.
        parameter: the place one parameter further.
        types: the types of the parameter that leads here, of all routes that have it.
        routes: the routes that end here, by method.
    """

    path: Path = ()
    statics: dict[str, Place] = field(default_factory=dict[str, "Place"])
    parameter: Place | None = None
    types: list[TypeNode] = field(default_factory=list[TypeNode])
    routes: dict[str, RouteFacts] = field(default_factory=dict[str, RouteFacts])

    @property
    def type(self) -> TypeNode:
        """The type of the parameter that leads here."""
        return self.types[0] if len(self.types) == 1 else UnionType(tuple(self.types))

    def list_children(self) -> list[Place]:
        """Return the places one segment further, static ones by name and the parameter last."""
        parameter = [self.parameter] if self.parameter else []
        return [*(self.statics[text] for text in sorted(self.statics)), *parameter]

    def walk(self) -> Iterator[Place]:
        """Yield this place and all places below it."""
        yield self
        for child in self.list_children():
            yield from child.walk()


def build_places(lock: Lock, version: str = "") -> Place:
    """Return the root of the places of a lock, or of one version of it.

    Routes of the default version have a second place, without the version.

    Raises:
        LockError: the version is not in the lock, or no client can send the path of a route.
    """
    names = [each.name for each in sort_versions(lock.versions)]
    if version and version not in names:
        known = ", ".join(names) or "none"
        raise LockError(f"Version must be one of the lock ({known}), got {version!r}")
    routes = routes_of(lock, version) if version else list(lock.routes)
    default = lock.settings.default_version
    if default == "latest":
        default = names[-1] if names else ""
    root = Place()
    known_routes = [route for route in sort_routes(routes) if route.method in METHODS]
    for route in known_routes:
        add_route(root, route, route.path)
    for route in known_routes:
        if default and route.version == default and not is_versioned(route.path[1:]):
            add_route(root, route, route.path[1:])
    return root


def is_versioned(path: Path) -> bool:
    """Return True if the router takes the first segment for a version."""
    return bool(path) and not path[0].is_parameter and VERSION.fullmatch(path[0].text) is not None


def add_route(root: Place, route: RouteFacts, path: Path) -> None:
    """Add a route to the tree at a path; a route that is there stays."""
    place = root
    for segment in path:
        place = find_child(place, segment, route)
    place.routes.setdefault(route.method, route)


def find_child(place: Place, segment: Segment, route: RouteFacts) -> Place:
    """Return the place one segment further, which is made if it is new.

    Raises:
        LockError: no client can send the segment.
    """
    if not segment.is_parameter:
        if segment.text in UNREACHABLE:
            raise LockError(
                f"Route {route.title!r} cannot be called: a URL cannot have the segment "
                f"{segment.text!r}; rename its folder"
            )
        return place.statics.setdefault(segment.text, Place((*place.path, segment)))
    if place.parameter is None:
        place.parameter = Place((*place.path, segment))
    if segment.type not in place.parameter.types:
        place.parameter.types.append(segment.type)
    return place.parameter
