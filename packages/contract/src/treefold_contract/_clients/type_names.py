"""The names of types in a client: each definition that its routes reach, on each side.

A record whose members have defaults is two types: bodies may leave a member out that answers always
have. Where a client uses both, the one of bodies has `_in` after its name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from treefold_contract._clients.places import Place
from treefold_contract._facts.facts import RouteFacts
from treefold_contract._types.nodes import (
    Choice,
    Definition,
    Definitions,
    Record,
    Reference,
    Side,
    TypeNode,
    UnionType,
    find_definition,
    referenced_names,
)
from treefold_contract._types.views import without_input_rules

SIDES: tuple[Side, ...] = ("request", "response")


class Names:
    """Names that are taken, so that no two things have the same one."""

    def __init__(self, reserved: Iterable[str]) -> None:
        self.taken = set(reserved)

    def claim(self, name: str) -> str:
        """Return a name that nothing else has: the given one, or with `_` behind it."""
        name = re.sub(r"[^0-9A-Za-z_]", "_", name) or "_"
        if name[0].isdigit():
            name = f"_{name}"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        return name


def name_types(root: Place, definitions: Definitions, names: Names) -> dict[tuple[str, Side], str]:
    """Return the name of each definition on each side that the routes of a client reach."""
    reached = set(list_reached(root, definitions))
    differing = find_differing(definitions)
    found: dict[tuple[str, Side], str] = {}
    for name in sorted({name for name, _ in reached}):
        sides: list[Side] = [side for side in reversed(SIDES) if (name, side) in reached]
        for index, side in enumerate(sides):
            is_shared = index and name not in differing
            suffix = "_in" if index else ""
            found[name, side] = found[name, sides[0]] if is_shared else names.claim(name + suffix)
    return found


def list_declared(names: Mapping[tuple[str, Side], str]) -> Iterator[tuple[str, Side]]:
    """Yield one definition and side for each name, in the order of the names."""
    first: dict[str, tuple[str, Side]] = {}
    for key, name in names.items():
        first.setdefault(name, key)
    yield from (first[name] for name in sorted(first))


def list_reached(root: Place, definitions: Definitions) -> Iterator[tuple[str, Side]]:
    """Yield the definitions that routes reach, with the side on which they do."""
    waiting: list[tuple[str, Side]] = [
        (name, side)
        for place in root.walk()
        for node, side in _list_place_types(place)
        for name in referenced_names(node)
    ]
    seen: set[tuple[str, Side]] = set()
    while waiting:
        name, side = waiting.pop()
        if (name, side) not in seen:
            seen.add((name, side))
            yield name, side
            inner = referenced_names(find_definition(definitions, name, side))
            waiting.extend((each, side) for each in inner)


def _list_place_types(place: Place) -> Iterator[tuple[TypeNode, Side]]:
    for node in place.types:
        yield node, "request"
    for route in place.routes.values():
        yield from list_route_types(route)


def list_route_types(route: RouteFacts) -> Iterator[tuple[TypeNode, Side]]:
    """Yield the types of a route without those of its path, with the side of each."""
    for each in route.inputs:
        yield each.type, "request"
    for body in route.bodies:
        yield body.type, "request"
    for answer in route.answers:
        if answer.type is not None:
            yield answer.type, "response"
    for field in route.fields:
        if field.place == "event":
            yield field.type, "response"
    for message in route.messages:
        yield message.type, "request" if message.direction == "in" else "response"


def find_differing(definitions: Definitions) -> set[str]:
    """Return the names of definitions that are two types, one for each side."""
    views = {key.partition(" ")[0] for key in definitions}
    differing = {name for name in views if _differs(name, definitions)}
    users = {
        name: {
            each
            for side in SIDES
            for each in referenced_names(find_definition(definitions, name, side))
        }
        for name in views
    }
    while found := {name for name in views - differing if users[name] & differing}:
        differing |= found
    return differing


def _differs(name: str, definitions: Definitions) -> bool:
    request, response = (
        without_input_rules(find_definition(definitions, name, side)) for side in SIDES
    )
    if request != response or not isinstance(request, Record):
        return request != response
    return any(
        each.is_required("request") != each.is_required("response") for each in request.members
    )


def stands_for_itself(name: str, side: Side, definitions: Definitions) -> bool:
    """Return True for a name whose definition leads back to it without a record or a list."""
    waiting: list[str] = [name]
    seen: set[str] = set()
    while waiting:
        for each in direct_names(find_definition(definitions, waiting.pop(), side)):
            if each == name:
                return True
            if each not in seen:
                seen.add(each)
                waiting.append(each)
    return False


def direct_names(node: Definition) -> Iterator[str]:
    """Yield the names that a type is, alone or as an option of a union."""
    if isinstance(node, Reference):
        yield node.name
    elif isinstance(node, UnionType):
        for option in node.options:
            yield from direct_names(option)


def find_tag(node: UnionType, side: Side, definitions: Definitions) -> str:
    """Return the member by which the options of a union are told apart; empty if there is none.

    It is the one that the union names, or the first that is one of some values in all options.
    """
    if node.tag:
        return node.tag
    found: list[set[str]] = []
    for option in node.options:
        if not isinstance(option, Reference):
            return ""
        found.append(_list_choices(find_definition(definitions, option.name, side)))
    shared = found[0].intersection(*found[1:]) if found else set[str]()
    return min(shared, default="")


def _list_choices(node: Definition) -> set[str]:
    members = node.members if isinstance(node, Record) else ()
    return {each.name for each in members if isinstance(each.type, Choice)}
