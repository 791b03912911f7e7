"""Random pairs of small types, and an oracle that enumerates their values.

The oracle shares no code with the package: it makes all values that a writer sends, and asks for
each whether the reader accepts it. Types are small enough for that: choices, bools, ints between
two bounds, short texts, lists of at most two items, records of at most two members, and unions.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from random import Random

from treefold_contract import (
    NULL,
    Choice,
    ChoiceValue,
    Definition,
    Limits,
    ListType,
    MapType,
    Member,
    Record,
    Reference,
    Scalar,
    TupleType,
    TypeNode,
    UnionType,
)
from treefold_contract._types.nodes import JsonValue, Side

LETTERS = "ab"
MOST = 4000
"""Types with more values are drawn again."""
Definitions = dict[str, Definition]


class TypeDrawer:
    """Draws types; records become definitions."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.definitions: Definitions = {}

    def draw_type(self, depth: int = 0) -> TypeNode:
        kinds = ["choice", "int", "text", "bool", "null"]
        if depth < 2:
            kinds += ["list", "tuple", "record", "record", "union", "union", "map"]
        match self.random.choice(kinds):
            case "choice":
                return self.draw_choice()
            case "int":
                least = self.random.randint(-1, 2)
                most = least + self.random.randint(0, 3)
                return Scalar("int", limits=Limits(least, most, step=self.random.choice([None, 2])))
            case "text":
                least = self.random.randint(0, 2)
                return Scalar("str", limits=Limits(min_length=least, max_length=least + 1))
            case "bool":
                return Scalar("bool")
            case "list":
                sizes = sorted((self.random.randint(0, 2), self.random.randint(0, 2)))
                least, most = sizes
                return ListType(self.draw_type(depth + 1), least, most, self.random.random() < 0.3)
            case "tuple":
                count = self.random.randint(0, 2)
                return TupleType(tuple(self.draw_type(depth + 1) for _ in range(count)))
            case "map":
                key = Choice((ChoiceValue('"a"'), ChoiceValue('"b"')))
                return MapType(key, self.draw_type(depth + 2))
            case "record":
                return self.draw_record(depth)
            case "union":
                options = [self.draw_type(depth + 1) for _ in range(self.random.randint(2, 3))]
                return flatten(options)
            case _:
                return NULL

    def draw_choice(self) -> Choice:
        literals = self.random.sample(['"a"', '"b"', '"aa"', "0", "1", "true"], 2)
        return Choice(tuple(map(ChoiceValue, literals)))

    def draw_record(self, depth: int) -> Reference:
        names = self.random.sample(LETTERS, self.random.randint(0, 2))
        record = Record(tuple(self.draw_member(name, depth) for name in names), self.flip())
        name = f"R{len(self.definitions)}"
        self.definitions[name] = record
        return Reference(name)

    def draw_member(self, name: str, depth: int = 1) -> Member:
        default = self.random.choice(["", "", "computed"])
        return Member(name, self.draw_type(depth + 1), self.flip(), default)

    def flip(self) -> bool:
        return self.random.random() < 0.5

    def mutate(self, node: Definition) -> Definition:
        """Return the type with one small change somewhere."""
        match node:
            case ListType() if self.flip():
                return replace(node, item=self.mutate_node(node.item))
            case ListType():
                return replace(node, max_items=self.random.choice([1, 2, 3]), is_unique=self.flip())
            case TupleType(items) if items:
                index = self.random.randrange(len(items))
                changed = self.mutate_node(items[index])
                return TupleType((*items[:index], changed, *items[index + 1 :]))
            case UnionType(options) if self.flip():
                index = self.random.randrange(len(options))
                changed = self.mutate_node(options[index])
                return flatten([*options[:index], changed, *options[index + 1 :]])
            case UnionType(options):
                kept = list(options[: self.random.randint(1, len(options))])
                return flatten([*kept, self.draw_type(2)]) if self.flip() else flatten(kept)
            case Reference(name):
                name_after = f"{name}x{len(self.definitions)}"
                self.definitions[name_after] = self.mutate(self.definitions[name])
                return Reference(name_after)
            case Record():
                return self.mutate_record(node)
            case Scalar("int", _, limits):
                least, most = limits.minimum or 0, limits.maximum or 0
                return replace(node, limits=Limits(least + self.random.randint(-1, 1), most + 1))
            case Choice(values) if self.flip():
                return Choice(values[:1])
            case _:
                return flatten([node, NULL]) if self.flip() else self.draw_type(1)

    def mutate_node(self, node: TypeNode) -> TypeNode:
        changed = self.mutate(node)
        assert not isinstance(changed, Record)
        return changed

    def mutate_record(self, node: Record) -> Record:
        if not node.members or self.random.random() < 0.2:
            return replace(node, is_closed=not node.is_closed)
        index = self.random.randrange(len(node.members))
        member = node.members[index]
        others = (*node.members[:index], *node.members[index + 1 :])
        match self.random.randrange(4):
            case 0:
                return replace(node, members=others)
            case 1:
                changed = replace(member, is_optional=not member.is_optional)
            case 2:
                changed = replace(member, default="" if member.default else "computed")
            case _:
                changed = replace(member, type=self.mutate_node(member.type))
        return replace(node, members=(*others, changed))


def flatten(options: list[TypeNode]) -> TypeNode:
    """Return a union without unions in it, as facts have them."""
    found: dict[TypeNode, None] = {}
    for option in options:
        found.update(dict.fromkeys(option.options if isinstance(option, UnionType) else [option]))
    return next(iter(found)) if len(found) == 1 else UnionType(tuple(found))


class Oracle:
    """The values of types of one side, by enumeration."""

    def __init__(self, side: Side, definitions: Definitions) -> None:
        self.side = side
        self.definitions = definitions

    def sent(self, node: Definition) -> list[JsonValue]:
        """Return all values that a writer sends; more than MOST if there are too many."""
        found = {json.dumps(value): value for value in islice(self.iter_sent(node), MOST + 1)}
        return list(found.values())

    def iter_sent(self, node: Definition) -> Iterator[JsonValue]:
        match node:
            case Reference(name):
                yield from self.iter_sent(self.definitions[name])
            case Choice(values):
                yield from (json.loads(value.literal) for value in values)
            case Scalar("int", _, limits):
                assert limits.minimum is not None
                assert limits.maximum is not None
                numbers = range(int(limits.minimum), int(limits.maximum) + 1)
                yield from (each for each in numbers if not limits.step or each % 2 == 0)
            case Scalar("str", _, limits):
                for size in range(limits.min_length or 0, (limits.max_length or 0) + 1):
                    yield from ("".join(letters) for letters in product(LETTERS, repeat=size))
            case Scalar("bool"):
                yield from (True, False)
            case Scalar():
                yield None
            case ListType(item, least, most):
                values = self.sent(item) if most else []
                for size in range(least or 0, (most or 0) + 1):
                    drawn = (list(each) for each in product(values, repeat=size))
                    yield from (each for each in drawn if not node.is_unique or is_unique(each))
            case TupleType(items):
                yield from map(list, product(*map(self.sent, items)))
            case MapType(_, value):
                values = self.sent(value)[:3]
                yield from ({}, *({name: each} for name in LETTERS for each in values))
            case UnionType(options):
                yield from (value for option in options for value in self.iter_sent(option))
            case Record():
                yield from self.iter_records(node)
            case _:
                raise AssertionError(node)

    def iter_records(self, node: Record) -> Iterator[JsonValue]:
        choices: list[list[dict[str, JsonValue]]] = []
        for member in node.members:
            values: list[dict[str, JsonValue]]
            values = [{member.name: value} for value in self.sent(member.type)]
            choices.append(values if self.is_required(member) else [{}, *values])
        for parts in product(*choices):
            record = {name: value for part in parts for name, value in part.items()}
            yield record
            # what a client sends beside the members that a service reads
            if self.side == "request" and not node.is_closed:
                yield {**record, "z": None}

    def is_required(self, member: Member) -> bool:
        return not member.is_optional and not (self.side == "request" and member.default)

    def accepts(self, node: Definition, value: JsonValue) -> bool:
        """Return True if a reader accepts a value."""
        match node:
            case Reference(name):
                return self.accepts(self.definitions[name], value)
            case ListType(item, least, most):
                return (
                    isinstance(value, list)
                    and (least or 0) <= len(value) <= (most if most is not None else 99)
                    and (not node.is_unique or is_unique(value))
                    and all(self.accepts(item, each) for each in value)
                )
            case TupleType(items):
                return (
                    isinstance(value, list)
                    and len(value) == len(items)
                    and all(map(self.accepts, items, value))
                )
            case MapType(_, item):
                return isinstance(value, dict) and all(
                    name in LETTERS and self.accepts(item, each) for name, each in value.items()
                )
            case UnionType(options):
                return any(self.accepts(option, value) for option in options)
            case Record():
                return isinstance(value, dict) and self.accepts_record(node, value)
            case _:
                return json.dumps(value) in {json.dumps(each) for each in self.iter_sent(node)}

    def accepts_record(self, node: Record, value: dict[str, JsonValue]) -> bool:
        names = {member.name for member in node.members}
        if self.side == "request" and node.is_closed and set(value) - names:
            return False
        return all(
            self.accepts(member.type, value[member.name])
            if member.name in value
            else not self.is_required(member)
            for member in node.members
        )


def is_unique(values: list[JsonValue]) -> bool:
    return len({json.dumps(value) for value in values}) == len(values)
