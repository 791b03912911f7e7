"""Types of a lock in TypeScript: interfaces, unions written out, no conditional or mapped types.

str email                      string
"a" | "b" | ...                "a" | "b" | (string & {})
[User | null]                  (User | null)[]
{str: int}                     { [key: string]: number }
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from treefold_contract._clients.type_names import find_tag, stands_for_itself
from treefold_contract._types.literals import read_literal
from treefold_contract._types.nodes import (
    AnyType,
    Choice,
    Definitions,
    ForeignType,
    ListType,
    MapType,
    Record,
    Reference,
    Scalar,
    Side,
    TupleType,
    TypeNode,
    UnionType,
    find_definition,
)

KINDS = {
    "str": "string",
    "int": "number",
    "float": "number",
    "bool": "boolean",
    "null": "null",
    "bytes": "string",
    "file": "Blob",
}
PLAIN = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
RESERVED = frozenset(("constructor", "get", "new", "readonly", "set", "static"))


class TypeScriptTypes:
    """Writes types with the names that definitions have in one client."""

    def __init__(self, definitions: Definitions, names: Mapping[tuple[str, Side], str]) -> None:
        self.definitions = definitions
        self.names = names

    def write(self, node: TypeNode, side: Side, *, is_text: bool = False) -> str:
        """Return a type; in text, where there is no null, a file is a part of a form."""
        return " | ".join(self.list_options(node, side, is_text))

    def list_options(self, node: TypeNode, side: Side, is_text: bool = False) -> list[str]:
        """Return the options of the union that a type is."""
        match node:
            case AnyType() | ForeignType():
                return ["unknown"]
            case Scalar():
                return [KINDS[node.kind]] if not (is_text and node.kind == "null") else []
            case Choice():
                return write_choice(node)
            case ListType(item):
                return [f"{wrap(self.list_options(item, side, is_text))}[]"]
            case TupleType(items):
                return [f"[{', '.join(self.write(each, side) for each in items)}]"]
            case MapType(_, value):
                return [f"{{ [key: string]: {self.write(value, side)} }}"]
            case UnionType():
                options = [
                    text
                    for option in node.options
                    for text in self.list_options(option, side, is_text)
                ]
                return list(dict.fromkeys([*options, *self.list_others(node, side)]))
            case Reference(name):
                return [self.names.get((name, side), "unknown")]

    def list_others(self, node: UnionType, side: Side) -> list[str]:
        """Return the option of an open union that stands for those that are not known yet."""
        if not node.is_open:
            return []
        tag = find_tag(node, side, self.definitions)
        return [f"{{ {write_property(tag)}: Unlisted }}" if tag else "Unlisted"]

    def write_definition(self, name: str, side: Side) -> str:
        """Return the declaration of a definition."""
        own = self.names[name, side]
        definition = find_definition(self.definitions, name, side)
        if not isinstance(definition, Record):
            is_endless = stands_for_itself(name, side, self.definitions)
            text = "unknown" if is_endless else self.write(definition, side)
            return f"export type {own} = {text or 'never'};"
        lines = [
            f"  {write_property(each.name)}{'' if each.is_required(side) else '?'}: "
            f"{self.write(each.type, side)};"
            for each in sorted(definition.members, key=lambda member: member.name)
        ]
        return "\n".join([f"export interface {own} {{", *lines, "}"])


def write_choice(node: Choice) -> list[str]:
    """Return the literals of a choice; an open one has their kind beside them."""
    values = [read_literal(value.literal) for value in node.values]
    options = [json.dumps(value, ensure_ascii=False) for value in values]
    if node.is_open:
        kinds = dict.fromkeys(
            "boolean"
            if isinstance(value, bool)
            else "string"
            if isinstance(value, str)
            else "number"
            for value in values
        )
        options += [f"({kind} & {{}})" for kind in kinds]
    return options


def wrap(options: list[str]) -> str:
    """Return a union that can be the item of a list."""
    text = " | ".join(options) or "never"
    return f"({text})" if len(options) > 1 else text


def write_property(name: str) -> str:
    """Return the name of a property, in quotes where it needs them."""
    is_plain = PLAIN.fullmatch(name) is not None and name not in RESERVED
    return name if is_plain else json.dumps(name, ensure_ascii=False)
