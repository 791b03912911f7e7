"""Parts of a lock: some routes with the types that they name, or one version."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from treefold_contract._facts.facts import Lock, RouteFacts, VersionFacts
from treefold_contract._facts.paths import Segment
from treefold_contract._types.nodes import Definition, TypeNode, referenced_names

VIEWS = ("", " in", " out")


def select_routes(lock: Lock, routes: Iterable[RouteFacts]) -> Lock:
    """Return a lock with some routes, their versions and the types that they name."""
    kept = tuple(routes)
    names = {route.version for route in kept}
    types = [node for route in kept for node in iter_types(route)]
    waiting = [name for node in types for name in referenced_names(node)]
    definitions: dict[str, Definition] = {}
    while waiting:
        name = waiting.pop()
        for key in (f"{name}{view}" for view in VIEWS):
            if key in lock.definitions and key not in definitions:
                definitions[key] = lock.definitions[key]
                waiting += referenced_names(definitions[key])
    versions = tuple(version for version in lock.versions if version.name in names)
    return replace(lock, routes=kept, versions=versions, definitions=definitions, lines={})


def iter_types(route: RouteFacts) -> Iterator[TypeNode]:
    """Yield the types that the facts of a route name."""
    yield from (segment.type for segment in route.path)
    yield from (each.type for each in route.inputs)
    yield from (body.type for body in route.bodies)
    yield from (field.type for field in route.fields)
    yield from (message.type for message in route.messages)
    yield from (answer.type for answer in route.answers if answer.type is not None)


def select_version(lock: Lock, name: str, *, as_name: str = "") -> Lock:
    """Return a lock with one version alone, under another name if one is given.

    Two versions under one name can be compared, as two states of one version are.
    """
    shown = as_name or name
    routes = tuple(
        replace(route, path=(Segment(shown), *route.path[1:]))
        for route in lock.routes
        if route.version == name
    )
    settings = replace(lock.settings, default_version="")
    versions = (VersionFacts(shown),)
    return replace(lock, routes=routes, versions=versions, settings=settings, lines={})
