"""Membership: True if a type has a value. Each witness is confirmed with it.

In an answer, unknown members are ignored, and open choices and unions have values that are not
listed: clients must expect both. In a request only a choice is open, and accepts any value of the
kinds of its values. Of a foreign type no value is known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treefold_contract._relation.view import View
from treefold_contract._types.literals import format_text, read_literal, write_literal
from treefold_contract._types.nodes import (
    AnyType,
    Choice,
    Definition,
    JsonValue,
    ListType,
    MapType,
    Record,
    Scalar,
    TupleType,
    TypeNode,
    UnionType,
)
from treefold_contract._types.scalars import has_scalar, is_testable


def has_value(node: Definition, value: JsonValue, view: View) -> bool:
    """Return True if a type has a value."""
    node = view.follow(node)
    match node:
        case AnyType():
            return True
        case Scalar():
            if node.is_lax and view.side == "response":
                node = replace(node, is_lax=False)
            value = unwrap_text(value, view)
            if node.limits.pattern and view.is_reader and isinstance(value, str):
                node = _drop_unknown_pattern(node, value)
            return has_scalar(node, value, view.alphabet)
        case Choice():
            return _has_choice(node, unwrap_text(value, view), view)
        case ListType():
            return _has_list(node, value, view)
        case TupleType(items):
            return isinstance(value, list) and _has_items(items, value, view)
        case MapType(key, item):
            return isinstance(value, dict) and all(
                has_value(key, name, replace(view, alphabet="text")) and has_value(item, each, view)
                for name, each in value.items()
            )
        case UnionType():
            return _has_option(node, value, view)
        case Record():
            return isinstance(value, dict) and _has_members(node, value, view)
        case _:
            return False


def _drop_unknown_pattern(node: Scalar, text: str) -> Scalar:
    """Return a scalar without a pattern that cannot be tried: it refuses no text then."""
    if is_testable(node.limits.pattern, text):
        return node
    return replace(node, limits=replace(node.limits, pattern=""))


def unwrap_text(value: JsonValue, view: View) -> JsonValue:
    """Return the one text of a list of one: `?a=1` is both."""
    if view.alphabet == "text" and isinstance(value, list) and len(value) == 1:
        return value[0]
    return value


def open_kinds(node: Choice) -> list[Scalar]:
    """Return the kinds of the values of a choice, of which an open one may have others."""
    kinds: dict[Scalar, None] = {}
    for literal in sorted(node.literals):
        match read_literal(literal):
            case bool():
                kinds[Scalar("bool")] = None
            case str():
                kinds[Scalar("str")] = None
            case _:
                kinds[Scalar("float" if "." in literal else "int")] = None
    return list(kinds)


def _has_choice(node: Choice, value: JsonValue, view: View) -> bool:
    if node.is_open and any(has_value(kind, value, view) for kind in open_kinds(node)):
        return True
    if view.alphabet == "text":
        return value in {format_text(literal) for literal in node.literals}
    return not isinstance(value, (list, dict)) and write_literal(value) in node.literals


def _has_list(node: ListType, value: JsonValue, view: View) -> bool:
    if view.alphabet == "text" and isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return False
    if len(value) < (node.min_items or 0):
        return False
    if node.max_items is not None and len(value) > node.max_items:
        return False
    if node.is_unique and len(set(map(write_literal, value))) < len(value):
        return False
    return all(has_value(node.item, each, view) for each in value)


def _has_items(items: Sequence[TypeNode], values: list[JsonValue], view: View) -> bool:
    return len(items) == len(values) and all(
        has_value(item, value, view) for item, value in zip(items, values, strict=True)
    )


def _has_option(node: UnionType, value: JsonValue, view: View) -> bool:
    if node.is_open and view.side == "response":
        return True
    if node.tag and isinstance(value, dict) and node.tag not in value:
        return False
    return any(has_value(option, value, view) for option in node.options)


def _has_members(node: Record, value: dict[str, JsonValue], view: View) -> bool:
    for member in node.members:
        if member.name not in value:
            if member.is_required(view.side):
                return False
        elif not has_value(member.type, value[member.name], view):
            return False
    if view.side == "response" or not node.is_closed:
        return True
    return set(value) <= {member.name for member in node.members}
