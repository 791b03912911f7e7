"""The named types of an API while its facts are made: records, enums and `type` statements.

A reference holds a key until all types are known, since a name depends on the other types of that
name. `read` then gives each its name, and returns the definitions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from typing import Any

from treefold_contract import (
    NULL,
    Choice,
    ChoiceValue,
    Definition,
    ListType,
    MapType,
    Record,
    Reference,
    Side,
    TupleType,
    TypeNode,
    UnionType,
    without_input_rules,
    write_type,
)
from treefold_http._description.class_origin import ClassOrigin


@dataclass(slots=True)
class NamedType:
    """One named type.

    Attributes:
        key: the text that references hold until it has a name.
        base: the name of its class.
        origin: where that is defined.
        views: its definitions in bodies and in answers.
    """

    key: str
    base: str
    origin: ClassOrigin
    views: dict[Side, Definition] = field(default_factory=dict[Side, Definition])

    @property
    def shape(self) -> tuple[Definition | None, Definition | None]:
        """The two definitions, of which one is enough where they differ in rules of input only."""
        request, response = self.views.get("request"), self.views.get("response")
        if request is not None and response in (None, without_input_rules(request)):
            return request, None
        return request, response


class NamedTypes:
    """Collects the named types of an API, each once."""

    def __init__(self) -> None:
        self.types: dict[str, NamedType] = {}
        self._keys: dict[Hashable, str] = {}
        self._numbers = count()

    def refer(
        self,
        identity: Hashable,
        base: str,
        defined: Any,
        side: Side,
        build: Callable[[], Definition],
    ) -> Reference:
        """Return a reference to a type, which is built at the first one.

        Args:
            identity: tells it from all other types.
            base: the name of its class.
            defined: the class, or any object that says where it is defined.
            side: of the request or of the response.
            build: returns its definition on that side; it may refer to the type itself.
        """
        key = self._keys.setdefault(identity, f"K{next(self._numbers)}")
        known = self.types.setdefault(key, NamedType(key, base, ClassOrigin(defined)))
        if side not in known.views:
            known.views[side] = Record(())  # a place holder: `build` may come here again
            known.views[side] = build()
        return Reference(key)

    def keep_only(self, keys: Container[str]) -> None:
        """Forget all other types, such as those of modules that were loaded again."""
        self.types = {key: known for key, known in self.types.items() if key in keys}
        self._keys = {identity: key for identity, key in self._keys.items() if key in keys}

    def find_reachable(self, roots: Iterable[TypeNode]) -> set[str]:
        """Return the keys of the types that some types refer to, at any depth."""
        found: set[str] = set()
        waiting = [key for root in roots for key in iter_references(root)]
        while waiting:
            key = waiting.pop()
            if key in found:
                continue
            found.add(key)
            for view in self.types[key].views.values():
                waiting += iter_references(view)
        return found


def iter_references(node: Definition) -> Iterator[str]:
    """Yield the names that a type refers to, without those of its definitions."""
    if isinstance(node, Reference):
        yield node.name
    for inner in _list_inner_types(node):
        yield from iter_references(inner)


def _list_inner_types(node: Definition) -> tuple[TypeNode, ...]:
    match node:
        case ListType():
            return (node.item,)
        case TupleType():
            return node.items
        case MapType():
            return node.key, node.value
        case UnionType():
            return node.options
        case Record():
            return tuple(member.type for member in node.members)
        case _:
            return ()


def rename_references(node: TypeNode, names: Mapping[str, str], side: Side) -> TypeNode:
    """Return a type whose references have other names.

    Values of a choice are sorted, and the options of a union in responses: in requests they are
    tried in their order.
    """

    def rename(inner: TypeNode) -> TypeNode:
        return rename_references(inner, names, side)

    match node:
        case Reference():
            return Reference(names[node.name])
        case ListType():
            return replace(node, item=rename(node.item))
        case TupleType():
            return TupleType(tuple(map(rename, node.items)))
        case MapType():
            return MapType(rename(node.key), rename(node.value))
        case UnionType():
            # typing keeps one object for `List[int | str]` and `List[str | int]`: the order of
            # options depends on which of them the process has met first
            options = map(rename, node.options)
            in_order = sorted(options, key=_rank_option) if side == "response" else options
            return replace(node, options=tuple(in_order))
        case Choice():
            return replace(node, values=tuple(sorted(node.values, key=_rank_value)))
        case _:
            return node


def _rank_option(node: TypeNode) -> tuple[bool, bool, str]:
    return node == NULL, not isinstance(node, Choice), write_type(node)


def _rank_value(value: ChoiceValue) -> tuple[str, Any]:
    plain = json.loads(value.literal)
    return type(plain).__name__, plain


def rename_in_definition(
    definition: Definition, names: Mapping[str, str], side: Side
) -> Definition:
    """Return a definition whose references have other names, as `rename_references` does."""
    if not isinstance(definition, Record):
        return rename_references(definition, names, side)
    members = tuple(
        replace(member, type=rename_references(member.type, names, side))
        for member in definition.members
    )
    return replace(definition, members=members)
