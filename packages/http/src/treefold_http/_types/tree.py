"""The type tree: what an annotation says, as data.

Only data lives here; `read` makes it and nothing else takes annotations apart. Nodes are frozen and
compare by their content. Records and named types are read one level at a time, so that they may be
recursive: `declared_members` and `target_type` are read at their first use.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from treefold_http._types.parameters import EMPTY

Family: TypeAlias = Literal["dataclass", "typed_dict", "struct", "model"]


@dataclass(frozen=True, kw_only=True)
class TypeNode:
    """One type.

    Attributes:
        annotation: the type as it is written, which pydantic and msgspec understand.
        markers: the metadata of `Annotated`, the innermost first.
    """

    annotation: Any
    markers: tuple[Any, ...] = ()

    @property
    def bare_annotation(self) -> Any:
        """The annotation without its metadata."""
        given = self.annotation
        return given.__origin__ if hasattr(given, "__metadata__") else given

    @property
    def inner_types(self) -> tuple[TypeNode, ...]:
        """The types inside this one, without the members of a record."""
        return ()


class AnyType(TypeNode):
    """Any value: `Any`, `object`, a free type variable, or no annotation."""


@dataclass(frozen=True, kw_only=True)
class Scalar(TypeNode):
    """One value of a type of `scalars.SCALARS`, such as int or date."""

    kind: type


@dataclass(frozen=True, kw_only=True)
class Choice(TypeNode):
    """One of several values: an enum, or a `Literal` with `kind` None."""

    kind: type[enum.Enum] | None
    members: tuple[Any, ...]

    @property
    def json_values(self) -> list[Any]:
        """The values in JSON, in the order of `members`."""
        return [each.value if self.kind else each for each in self.members]


@dataclass(frozen=True, kw_only=True)
class ListType(TypeNode):
    """Any number of items; `kind` is the class, such as list, set, Sequence or tuple."""

    kind: Any
    item: TypeNode

    @property
    def inner_types(self) -> tuple[TypeNode, ...]:
        return (self.item,)


@dataclass(frozen=True, kw_only=True)
class TupleType(TypeNode):
    """A tuple with one type for each of its items."""

    items: tuple[TypeNode, ...]

    @property
    def inner_types(self) -> tuple[TypeNode, ...]:
        return self.items


@dataclass(frozen=True, kw_only=True)
class Table(TypeNode):
    """A mapping with any keys; `kind` is the class, such as dict or Mapping."""

    kind: Any
    key: TypeNode
    value: TypeNode

    @property
    def has_restricted_keys(self) -> bool:
        """True if the names are limited to some texts, which JSON can say."""
        if isinstance(self.key, Choice):
            return all(isinstance(value, str) for value in self.key.json_values)
        return self.key.bare_annotation is str and bool(self.key.markers)

    @property
    def inner_types(self) -> tuple[TypeNode, ...]:
        return self.key, self.value


@dataclass(frozen=True, kw_only=True)
class UnionType(TypeNode):
    """One of several types."""

    options: tuple[TypeNode, ...]

    @property
    def inner_types(self) -> tuple[TypeNode, ...]:
        return self.options


@dataclass(frozen=True, kw_only=True)
class TypeStatement(TypeNode):
    """The name of a `type` statement; it may be recursive."""

    # a closure, of which no two are equal; and comparing what it returns would not end for a type
    # that contains itself
    read: Callable[[], TypeNode] = field(compare=False, repr=False)

    @cached_property
    def target_type(self) -> TypeNode:
        """The type that the name stands for."""
        return self.read()

    @property
    def inner_types(self) -> tuple[TypeNode, ...]:
        return (self.target_type,)


class PartialRecord(TypeStatement):
    """`Changes[Model]`: a body with some members of a model.

    `target_type` is a record with these members, none of them required.
    """


@dataclass(frozen=True, kw_only=True)
class ForeignType(TypeNode):
    """A type that only pydantic or msgspec may know.

    Attributes:
        kind: the class; the annotation itself if it is none.
        arguments: the types in its brackets.
    """

    kind: Any
    arguments: tuple[TypeNode, ...] = ()

    @property
    def inner_types(self) -> tuple[TypeNode, ...]:
        return self.arguments


@dataclass(frozen=True, kw_only=True)
class Member:
    """One member of a record.

    Attributes:
        name: the attribute of the instance.
        type: the type of its value.
        read_as: the name in a body; None if there are several.
        written_as: the name in a response.
        required: True if a body must have it.
        default: its default value; EMPTY for none.
        factory: makes its default value.
        is_input, is_output: False for a member that bodies or responses never have: the fields
            that a dataclass sets by itself, and its `InitVar`s.
    """

    name: str
    type: TypeNode
    read_as: str | None
    written_as: str
    required: bool
    default: Any = EMPTY
    factory: Callable[[], Any] | None = None
    is_input: bool = True
    is_output: bool = True


@dataclass(frozen=True, kw_only=True)
class Record(TypeNode):
    """A dataclass, TypedDict, struct of msgspec, or model of pydantic.

    Attributes:
        kind: the class.
        arguments: the types in its brackets, as written.
        family: the kind of class; dataclasses of pydantic are models.
        reader: the only package that decodes it; empty for any.
        fills_base: True if its base is a generic record with types filled in, which pydantic does
            not read.
    """

    kind: Any
    arguments: tuple[Any, ...] = ()
    family: Family
    reader: str = ""
    fills_base: bool = False
    read: Callable[[], tuple[Member, ...]] = field(compare=False, repr=False)

    @property
    def record_type_key(self) -> Any:
        """Identifies the record, whatever its metadata."""
        return self.kind, self.arguments

    @cached_property
    def declared_members(self) -> tuple[Member, ...]:
        """The members, in order of declaration."""
        return self.read()


def walk_types(node: TypeNode, place: str = "the model") -> Iterator[tuple[TypeNode, str]]:
    """Yield all types in a type with their places, the outer ones first, a record only once."""
    return _walk_types(node, place, set())


def _walk_types(node: TypeNode, place: str, seen: set[Any]) -> Iterator[tuple[TypeNode, str]]:
    yield node, place
    key = node.annotation if isinstance(node, TypeStatement) else None
    if isinstance(node, Record):
        key = node.record_type_key
    if key is not None:
        if key in seen:
            return
        seen.add(key)
    for part in node.inner_types:
        yield from _walk_types(part, place, seen)
    if isinstance(node, Record):
        for member in node.declared_members:
            yield from _walk_types(member.type, f"{node.kind.__name__}.{member.name}", seen)


def list_direct_union_options(node: TypeNode) -> tuple[TypeNode, ...]:
    """Return the options of a union, or the type itself as the only one."""
    return node.options if isinstance(node, UnionType) else (node,)


def is_none(node: TypeNode) -> bool:
    """Return True for the type of None."""
    return isinstance(node, Scalar) and node.kind is type(None)


def list_options_without_none(node: TypeNode) -> list[TypeNode]:
    """Return the options of a type other than None."""
    return [option for option in list_direct_union_options(node) if not is_none(option)]


def iter_leaf_types(node: TypeNode) -> Iterator[TypeNode]:
    """Yield the options of a type and of the items of its lists, without None."""
    for option in list_options_without_none(node):
        if isinstance(option, ListType) and option.kind is list:
            yield from iter_leaf_types(option.item)
        else:
            yield option


def build_recursive_type_proxy(
    node: TypeStatement, built: dict[Any, Any], build: Callable[[TypeNode], Any]
) -> Any:
    """Return a function of a named type that calls the planned one: the type may be recursive.

    Args:
        built: the functions of named types; each type is planned once.
    """

    def call_planned(*args: Any) -> Any:
        return built[node.bare_annotation](*args)

    if node.bare_annotation not in built:
        # Entered before the type is planned, which ends the recursion; the function looks its
        # target up at each call, when the plan has replaced it.
        built[node.bare_annotation] = call_planned
        built[node.bare_annotation] = build(node.target_type)
    return call_planned
