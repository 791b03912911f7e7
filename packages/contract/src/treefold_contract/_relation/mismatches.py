"""The place where a value leaves its type: `.items[3].price` is text, and a float is declared.

    type Page               {"items": [{"price": 1.5}, {"price": "2"}]}
      items   [Item]
    type Item               Mismatch(("items", 1, "price"), Scalar("float"), "2")
      price   float

Foreign types, formats without a syntax and references without a definition take any value: nothing
is known of them. Of a union, the mismatch lies inside the one option that a value has the shape of,
if there is one.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace

from treefold_contract._relation.values import has_value
from treefold_contract._relation.view import EMPTY, View
from treefold_contract._types.nodes import (
    Alphabet,
    AnyType,
    Choice,
    Definitions,
    JsonValue,
    ListType,
    MapType,
    Record,
    Scalar,
    Side,
    TupleType,
    TypeNode,
    UnionType,
)
from treefold_contract._types.scalars import FORMATS

ValuePath = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A part of a value that does not belong to its type.

    Attributes:
        path: the members and indexes that lead to it.
        declared: the type that it must have.
        value: the part; None where it is missing.
        is_missing: True if a member is missing that must be there.
    """

    path: ValuePath
    declared: TypeNode
    value: JsonValue
    is_missing: bool = False

    @property
    def place(self) -> str:
        """The path as text, such as `.items[3].price`; empty for the whole value."""
        return "".join(map(_format_step, self.path))


def find_mismatch(
    declared: TypeNode,
    value: JsonValue,
    *,
    side: Side = "response",
    alphabet: Alphabet = "json",
    definitions: Definitions = EMPTY,
) -> Mismatch | None:
    """Return the first part of a value that does not belong to a type, or None.

    Args:
        declared: the type.
        value: the value, as it is read from JSON; of text, a text or a list of texts.
        side: whether it is one of a request or of an answer.
        alphabet: whether it is JSON, or the text of a header field or a query.
        definitions: what references of the type lead to.
    """
    view = View(side, alphabet, definitions, is_reader=True)
    return MismatchFinder(view).find(declared, value)


def _format_step(step: str | int) -> str:
    if isinstance(step, int):
        return f"[{step}]"
    return f".{step}" if step.isidentifier() else f"[{json.dumps(step)}]"


class MismatchFinder:
    """Finds mismatches; each pair of a union and a container is tried once.

    Without it, unions of records that contain each other would be tried once for each combination
    of their options.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._known: dict[tuple[TypeNode, int], Mismatch | None] = {}

    def find(self, declared: TypeNode, value: JsonValue) -> Mismatch | None:
        """Return the mismatch of a value, with the path from it."""
        node = self._view.follow(declared)
        match node:
            case Scalar() | Choice():
                if isinstance(node, Scalar) and node.format not in FORMATS:
                    node = replace(node, format=node.format if node.kind == "bytes" else "")
                fits = has_value(node, value, self._view)
                return None if fits else Mismatch((), declared, value)
            case ListType():
                return self._find_in_list(node, value)
            case TupleType(items):
                if not isinstance(value, list) or len(value) != len(items):
                    return Mismatch((), declared, value)
                pairs = zip(items, value, strict=True)
                return _find_first((i, self.find(*pair)) for i, pair in enumerate(pairs))
            case MapType():
                return self._find_in_map(node, value)
            case UnionType():
                return self._find_in_union_once(node, value)
            case Record():
                return self._find_in_record(declared, node, value)
            case _:
                return None

    def _find_in_list(self, node: ListType, value: JsonValue) -> Mismatch | None:
        if not isinstance(value, list):
            return Mismatch((), node, value)
        found = _find_first((i, self.find(node.item, each)) for i, each in enumerate(value))
        is_within = found is not None or has_value(replace(node, item=AnyType()), value, self._view)
        return found if is_within else Mismatch((), node, value)

    def _find_in_map(self, node: MapType, value: JsonValue) -> Mismatch | None:
        if not isinstance(value, dict):
            return Mismatch((), node, value)
        names = MismatchFinder(replace(self._view, alphabet="text"))
        for name, each in value.items():
            found = names.find(node.key, name) or self.find(node.value, each)
            if found is not None:
                return replace(found, path=(name, *found.path))
        return None

    def _find_in_record(
        self, declared: TypeNode, node: Record, value: JsonValue
    ) -> Mismatch | None:
        if not isinstance(value, dict):
            return Mismatch((), declared, value)
        for member in node.members:
            if member.name in value:
                found = self.find(member.type, value[member.name])
                if found is not None:
                    return replace(found, path=(member.name, *found.path))
            elif member.is_required(self._view.side):
                return Mismatch((member.name,), member.type, None, is_missing=True)
        if self._view.side == "request" and node.is_closed:
            names = {member.name for member in node.members}
            for name in value:
                if name not in names:
                    return Mismatch((name,), declared, value[name])
        return None

    def _find_in_union_once(self, node: UnionType, value: JsonValue) -> Mismatch | None:
        if not isinstance(value, (dict, list)):
            return self._find_in_union(node, value)
        key = node, id(value)
        if key not in self._known:
            self._known[key] = None  # a union that contains itself at the same value adds nothing
            self._known[key] = self._find_in_union(node, value)
        return self._known[key]

    def _find_in_union(self, node: UnionType, value: JsonValue) -> Mismatch | None:
        if node.is_open and self._view.side == "response":
            return None
        options = node.options
        if node.tag and isinstance(value, dict):
            if node.tag not in value:
                return Mismatch((node.tag,), node, None, is_missing=True)
            options = tuple(each for each in options if self._has_tag(each, node.tag, value))
        inside: list[Mismatch] = []
        for option in options:
            found = self.find(option, value)
            if found is None:
                return None
            if found.path:
                inside.append(found)
        return inside[0] if len(inside) == 1 else Mismatch((), node, value)

    def _has_tag(self, option: TypeNode, tag: str, value: dict[str, JsonValue]) -> bool:
        record = self._view.follow(option)
        member = record.get_member(tag) if isinstance(record, Record) else None
        return member is None or self.find(member.type, value[tag]) is None


def _find_first(found: Iterable[tuple[int, Mismatch | None]]) -> Mismatch | None:
    """Return the first mismatch, with the index before its path."""
    for index, mismatch in found:
        if mismatch is not None:
            return replace(mismatch, path=(index, *mismatch.path))
    return None
