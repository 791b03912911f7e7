"""The type tree: a type of an API as frozen data, without live annotations.

    int >=1 | null        UnionType((Scalar("int", limits=Limits(minimum=1)), NULL))
    [User]                ListType(Reference("User"))
    "a" | "b" | ...       Choice((ChoiceValue('"a"'), ChoiceValue('"b"')), is_open=True)

Records and other named types are definitions, and nodes refer to them by name: trees are finite
although types may contain themselves. Literals and defaults are held as JSON text, since Python
takes 1, 1.0 and True for one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"
Kind: TypeAlias = Literal["str", "int", "float", "bool", "null", "bytes", "file"]
Side: TypeAlias = Literal["request", "response"]
Alphabet: TypeAlias = Literal["text", "json"]

KINDS: tuple[Kind, ...] = ("str", "int", "float", "bool", "null", "bytes", "file")
COMPUTED = "computed"
"""The default of a member whose value is made at run time, such as `now()`."""


@dataclass(frozen=True, slots=True)
class AnyType:
    """Any value: a type that says nothing."""


@dataclass(frozen=True, slots=True)
class ForeignType:
    """A type of which only the name is known."""

    name: str


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of a scalar; None and empty stand for no limit.

    Attributes:
        minimum: the least number; `above` excludes it.
        maximum: the largest number; `below` excludes it.
        above: a number must be greater.
        below: a number must be less.
        step: a number must be a multiple.
        min_length: the least number of characters.
        max_length: the largest number of characters.
        pattern: a regular expression that is found in the text.
    """

    minimum: int | float | None = None
    maximum: int | float | None = None
    above: int | float | None = None
    below: int | float | None = None
    step: int | float | None = None
    min_length: int | None = None
    max_length: int | None = None
    pattern: str = ""


NO_LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Scalar:
    """One value.

    Attributes:
        kind: its kind; `file` is an uploaded file.
        format: the syntax of a str such as `uuid`, or the encoding of bytes.
        limits: its limits.
        is_lax: True for an input that also accepts the value as text, such as "7" for 7.
    """

    kind: Kind
    format: str = ""
    limits: Limits = NO_LIMITS
    is_lax: bool = False


NULL = Scalar("null")


@dataclass(frozen=True, slots=True)
class ChoiceValue:
    """One value of a choice: its JSON text, and the name of the member of an enum."""

    literal: str
    name: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several values; an open one may have more values later."""

    values: tuple[ChoiceValue, ...]
    is_open: bool = False

    @property
    def literals(self) -> frozenset[str]:
        """The JSON texts of the values."""
        return frozenset(value.literal for value in self.values)


@dataclass(frozen=True, slots=True)
class ListType:
    """Any number of items of one type, within limits."""

    item: TypeNode
    min_items: int | None = None
    max_items: int | None = None
    is_unique: bool = False


@dataclass(frozen=True, slots=True)
class TupleType:
    """A list with one type for each of its items."""

    items: tuple[TypeNode, ...]


@dataclass(frozen=True, slots=True)
class MapType:
    """A mapping with any number of keys."""

    key: TypeNode
    value: TypeNode


@dataclass(frozen=True, slots=True)
class UnionType:
    """One of several types; an open one may have more of them later.

    Attributes:
        options: the types.
        is_open: True if clients must expect other types.
        tag: the member that names the option, which must be sent; empty without one.
    """

    options: tuple[TypeNode, ...]
    is_open: bool = False
    tag: str = ""


@dataclass(frozen=True, slots=True)
class Reference:
    """A definition, by its name."""

    name: str


TypeNode: TypeAlias = (
    AnyType | ForeignType | Scalar | Choice | ListType | TupleType | MapType | UnionType | Reference
)


@dataclass(frozen=True, slots=True)
class Member:
    """One member of a record.

    Attributes:
        name: its name in JSON.
        type: its type.
        is_optional: True if it may be absent, in bodies and in answers.
        default: the JSON text of its default, or `COMPUTED`. A member with a default may be absent
            from a body, and is always present in an answer.
    """

    name: str
    type: TypeNode
    is_optional: bool = False
    default: str = ""

    def is_required(self, side: Side) -> bool:
        """Return True if a body must have the member, or each answer has it."""
        return not self.is_optional and (side == "response" or not self.default)


@dataclass(frozen=True, slots=True)
class Record:
    """Named members; a closed record refuses a body with other names."""

    members: tuple[Member, ...]
    is_closed: bool = False

    def get_member(self, name: str) -> Member | None:
        """Return a member by its name, or None."""
        return next((member for member in self.members if member.name == name), None)


Definition: TypeAlias = "TypeNode | Record"
Definitions: TypeAlias = Mapping[str, Definition]
"""Definitions by name. `User in` and `User out` are two views of one name, where they differ."""


def find_definition(definitions: Definitions, name: str, side: Side) -> Definition:
    """Return the definition of a name on one side; a name without one is a foreign type."""
    view = f"{name} {'in' if side == 'request' else 'out'}"
    if view in definitions:
        return definitions[view]
    return definitions.get(name, ForeignType(name))


def base_name(name: str) -> str:
    """Return the name of a type without the version that changed it: `User` of `User@v2`."""
    return name.partition("@")[0]


def inner_types(node: Definition) -> Iterator[TypeNode]:
    """Yield the types directly inside a type."""
    match node:
        case ListType():
            yield node.item
        case TupleType():
            yield from node.items
        case MapType():
            yield node.key
            yield node.value
        case UnionType():
            yield from node.options
        case Record():
            yield from (member.type for member in node.members)
        case _:
            return


def referenced_names(node: Definition) -> Iterator[str]:
    """Yield the names that a type refers to, without those of its definitions."""
    if isinstance(node, Reference):
        yield node.name
    for inner in inner_types(node):
        yield from referenced_names(inner)
