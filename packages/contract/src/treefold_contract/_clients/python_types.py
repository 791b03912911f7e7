"""Types of a lock in Python, as a stub writes them: TypedDict, Literal, unions.

str email                      str
"a" | "b" | ...                Literal["a", "b"] | str
[User | null]                  list[User | None]
(int, str)                     list[int | str], since JSON has no tuples
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterable, Mapping

from treefold_contract._clients.type_names import stands_for_itself
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
    "str": "str",
    "int": "int",
    "float": "float",
    "bool": "bool",
    "null": "None",
    "bytes": "str",
    "file": "FileContent",
}
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]*")


class PythonTypes:
    """Writes types with the names that definitions have in one client."""

    def __init__(self, definitions: Definitions, names: Mapping[tuple[str, Side], str]) -> None:
        self.definitions = definitions
        self.names = names

    def write(self, node: TypeNode, side: Side, *, is_text: bool = False) -> str:
        """Return a type; in text, where there is no null, a file is a part of a form."""
        options = list(dict.fromkeys(self.list_options(node, side, is_text)))
        return "Any" if "Any" in options else " | ".join(options) or "None"

    def list_options(self, node: TypeNode, side: Side, is_text: bool = False) -> list[str]:
        """Return the options of the union that a type is."""
        match node:
            case AnyType() | ForeignType():
                return ["Any"]
            case Scalar():
                return [KINDS[node.kind]] if not (is_text and node.kind == "null") else []
            case Choice():
                return write_choice(node)
            case ListType(item):
                return [f"list[{self.write(item, side, is_text=is_text)}]"]
            case TupleType(items):
                return [f"list[{self.write(UnionType(items), side) if items else 'Any'}]"]
            case MapType(_, value):
                return [f"dict[str, {self.write(value, side)}]"]
            case UnionType():
                # an open union has the options that are known: no other one can be told apart
                return [
                    text
                    for option in node.options
                    for text in self.list_options(option, side, is_text)
                ]
            case Reference(name):
                return [self.names.get((name, side), "Any")]

    def write_definition(self, name: str, side: Side) -> str:
        """Return the declaration of a definition."""
        own = self.names[name, side]
        definition = find_definition(self.definitions, name, side)
        if not isinstance(definition, Record):
            is_endless = stands_for_itself(name, side, self.definitions)
            text = "Any" if is_endless else self.write(definition, side)
            return f"{own}: TypeAlias = {text}\n"
        members = sorted(definition.members, key=lambda member: member.name)
        return write_table(
            own,
            [(each.name, self.write(each.type, side), each.is_required(side)) for each in members],
        )


def write_table(name: str, members: Iterable[tuple[str, str, bool]]) -> str:
    """Return a TypedDict with members by name, type, and whether they must be there."""
    rows = [
        (member, text if is_required else f"NotRequired[{text}]")
        for member, text, is_required in members
    ]
    if all(is_name(member) for member, _ in rows):
        lines = [f"    {member}: {text}" for member, text in rows]
        return "\n".join([f"class {name}(TypedDict):", *(lines or ["    pass"]), ""])
    inside = ", ".join(f"{write_text(member)}: {text}" for member, text in rows)
    return f"{name} = TypedDict({write_text(name)}, {{{inside}}})\n"


def is_name(text: str) -> bool:
    """Return True for a text that can be a name in Python as it is."""
    return NAME.fullmatch(text) is not None and not keyword.iskeyword(text)


def write_text(text: str) -> str:
    """Return the literal of a text."""
    return json.dumps(text, ensure_ascii=False)


def write_choice(node: Choice) -> list[str]:
    """Return the literals of a choice; an open one has their kind beside them."""
    values = [read_literal(value.literal) for value in node.values]
    kinds = dict.fromkeys(type(value).__name__ for value in values)
    literals = [
        write_text(value) if isinstance(value, str) else repr(value)
        for value in values
        if not isinstance(value, float)
    ]
    options = [f"Literal[{', '.join(literals)}]"] if literals else []
    return [*options, *(kind for kind in kinds if node.is_open or kind == "float")]
