"""A few values of a type, the smallest first: what witnesses are made of.

    int >=5             5, 6, ...       edges of limits
    User                {"id": 0}       required members, then one more with each optional member

The values of two types are drawn together, since the edges of one are what the other refuses.
Recursive types end at a depth, where a list is empty and an optional member is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice

from treefold_contract._relation.values import has_value, open_kinds
from treefold_contract._relation.view import View
from treefold_contract._types.literals import format_text, read_literal, write_literal
from treefold_contract._types.nodes import (
    Alphabet,
    AnyType,
    Choice,
    Definition,
    JsonValue,
    Limits,
    ListType,
    MapType,
    Record,
    Scalar,
    Side,
    TupleType,
    TypeNode,
    UnionType,
)
from treefold_contract._types.scalars import EXAMPLES

DEEPEST = 6
MOST = 12
"""How many values are drawn of one type."""
ANYTHING: tuple[JsonValue, ...] = (None, "x", 0, 1.5, True, [], {})
TEXTS = ("x", "", "7", "1.5", "true", "X", "a-b", "a b", "é", "~", "0a")
LONGEST = 10_000
"""Texts for limits beyond this length are not made."""


def sample_values(node: Definition, view: View, depth: int = 0) -> list[JsonValue]:
    """Return some values of a type; none if none is known."""
    if depth > DEEPEST:
        return []
    node = view.follow(node)
    return [value for value in islice(_draw_values(node, view, depth), MOST)]


def first_value(node: Definition, view: View, depth: int = 0) -> list[JsonValue]:
    """Return a list of the smallest known value of a type; it is empty if none is known."""
    return list(islice(_draw_values(view.follow(node), view, depth), 1)) if depth <= DEEPEST else []


@lru_cache(maxsize=8192)
def _sample_scalar(node: Scalar, side: Side, alphabet: Alphabet) -> tuple[JsonValue, ...]:
    view = View(side, alphabet)
    drawn = (value for value in scalar_edges(view, node) if has_value(node, value, view))
    return tuple(islice(drawn, MOST))


def _draw_values(node: Definition, view: View, depth: int) -> Iterator[JsonValue]:
    match node:
        case AnyType():
            yield from TEXTS[:3] if view.alphabet == "text" else ANYTHING
        case Scalar():
            yield from _sample_scalar(node, view.side, view.alphabet)
        case Choice():
            texts = view.alphabet == "text"
            yield from (
                format_text(each.literal) if texts else read_literal(each.literal)
                for each in node.values
            )
            if node.is_open:
                kinds = (sample_values(kind, view) for kind in open_kinds(node))
                yield from (value for values in kinds for value in values[:2])
        case ListType():
            yield from _draw_lists(node, view, depth)
        case TupleType(items):
            yield from _draw_tuples(items, view, depth)
        case MapType():
            yield {}
            yield from _draw_maps(node, view, depth)
        case UnionType(options):
            # the first of each option, then the others
            for option in options:
                yield from first_value(option, view, depth + 1)
            drawn = [sample_values(option, view, depth + 1) for option in options]
            for index in range(1, MOST):
                yield from (values[index] for values in drawn if index < len(values))
        case Record():
            yield from _draw_records(node, view, depth)
        case _:
            return


def _draw_lists(node: ListType, view: View, depth: int) -> Iterator[JsonValue]:
    items = sample_values(node.item, view, depth + 1)
    sizes = {node.min_items or 0, node.max_items, (node.min_items or 0) + 1, 2}
    for size in sorted(each for each in sizes if each is not None and each <= MOST * 2):
        for first in range(min(len(items), 3)) if size else (0,):
            chosen = [items[(first + index) % len(items)] for index in range(size)] if items else []
            if has_value(node, chosen, view):
                yield chosen


def _draw_tuples(items: tuple[TypeNode, ...], view: View, depth: int) -> Iterator[JsonValue]:
    drawn = [sample_values(item, view, depth + 1) for item in items]
    if not all(drawn):
        return
    smallest = [values[0] for values in drawn]
    yield list(smallest)
    for index, values in enumerate(drawn):
        for value in values[1:3]:
            yield [*smallest[:index], value, *smallest[index + 1 :]]


def _draw_maps(node: MapType, view: View, depth: int) -> Iterator[JsonValue]:
    keys = sample_values(node.key, replace(view, alphabet="text"), depth + 1)
    values = sample_values(node.value, view, depth + 1)
    for key in keys[:2]:
        yield from ({str(key): value} for value in values[:3])


def _draw_records(node: Record, view: View, depth: int) -> Iterator[JsonValue]:
    if (smallest := smallest_record(node, view, depth)) is None:
        return
    yield smallest
    for member in node.members:
        for value in sample_values(member.type, view, depth + 1)[:3]:
            if smallest.get(member.name, node) != value:
                yield {**smallest, member.name: value}


def smallest_record(node: Record, view: View, depth: int = 0) -> dict[str, JsonValue] | None:
    """Return a record with its required members alone; None if one of them has no known value."""
    found: dict[str, JsonValue] = {}
    for member in node.members:
        if member.is_required(view.side):
            values = first_value(member.type, view, depth + 1)
            if not values:
                return None
            found[member.name] = values[0]
    return found


def scalar_edges(view: View, *nodes: Scalar) -> Iterator[JsonValue]:
    """Yield values around the limits of scalars; some of them belong to none."""
    seen: set[str] = set()
    for value in _draw_edges(nodes):
        text = write_literal(value)
        if view.alphabet == "text":
            value = format_text(text)
            text = write_literal(value)
        if text not in seen:
            seen.add(text)
            yield value


def _draw_edges(nodes: Iterable[Scalar]) -> Iterator[JsonValue]:
    for node in nodes:
        match node.kind:
            case "null":
                yield None
            case "bool":
                yield from (True, False)
            case "int" | "float":
                yield from _draw_numbers(node)
            case "str" | "bytes" | "file":
                yield from _draw_texts(node)
        if node.is_lax:
            yield from ("7", "1.5", "true", "yes")


def _draw_numbers(node: Scalar) -> Iterator[JsonValue]:
    limits = node.limits
    edges = [limits.minimum, limits.maximum, limits.above, limits.below, 0]
    found = sorted({each for each in edges if each is not None}, key=abs)
    step = limits.step or 1
    whole = [int(edge // step) * step + step * offset for edge in found for offset in (0, 1, -1, 2)]
    yield from sorted((round(each, 12) for each in whole if node.kind == "float"), key=abs)
    yield from sorted((int(each) for each in whole if each == int(each)), key=abs)
    yield from (edge + offset for edge in found for offset in (0, 1, -1))
    if node.kind == "float":
        yield from (edge + offset for edge in found for offset in (0.5, -0.5))


def _draw_texts(node: Scalar) -> Iterator[JsonValue]:
    limits: Limits = node.limits
    if node.kind == "bytes":
        yield from ("AAEC", "00ff")
    yield from EXAMPLES.get(node.format, ())
    yield from TEXTS
    edges = {each for each in (limits.min_length, limits.max_length) if each is not None}
    sizes = {edge + offset for edge in edges for offset in (0, 1, -1)}
    yield from ("x" * size for size in sorted(sizes) if 0 <= size <= LONGEST)
    if limits.pattern:
        plain = limits.pattern.strip("^$").replace("\\", "")
        yield from (plain, "a", "A", "0", "ab", "123", "abc-1")
