"""Types of annotations as types of a lock: the same tree without live annotations.

Annotated[int, Field(ge=1)] | None      int >=1 | null
list[User]                              [User]
Literal["a", "b"]                       "a" | "b"
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from treefold_contract import (
    NULL,
    AnyType,
    Choice,
    ChoiceValue,
    Definition,
    ForeignType,
    ListType,
    MapType,
    Scalar,
    Side,
    TupleType,
    TypeNode,
    UnionType,
    write_literal,
)
from treefold_http._description.constraint_keywords import to_json_value
from treefold_http._facts.foreign_types import SCALARS, read_foreign_type
from treefold_http._facts.limits import apply_markers
from treefold_http._facts.named_types import NamedTypes
from treefold_http._facts.records import find_tag, is_closed, read_members
from treefold_http._types import tree
from treefold_http._types.constraints import PYDANTIC
from treefold_http._types.open_choices import is_open_marker
from treefold_http._types.parameters import format_annotation
from treefold_http._types.read import build_type_name, read_named_tuple_items

_LAX_KINDS = ("int", "float", "bool")
_SETS = (set, frozenset)


class TypeReader:
    """Reads types on one side.

    Args:
        named: takes the named types.
        side: of the request or of the response.
        package: decodes the types of a body: `pydantic`, `msgspec`, or empty for the framework.
    """

    def __init__(self, named: NamedTypes, side: Side, package: str | None = None) -> None:
        self._named = named
        self._side: Side = side
        self._package = package

    def read(self, node: tree.TypeNode) -> TypeNode:
        """Return a type; one that cannot be described is a foreign type."""
        try:
            made = apply_markers(self._read_bare(node), node.markers)
        except Exception:  # the types are user code and may raise anything
            return ForeignType(format_annotation(node.bare_annotation))
        if any(map(is_open_marker, node.markers)) and isinstance(made, Choice | UnionType):
            return replace(made, is_open=True)
        return made

    def _read_bare(self, node: tree.TypeNode) -> TypeNode:
        match node:
            case tree.AnyType():
                return AnyType()
            case tree.Scalar():
                return self._read_scalar(SCALARS[node.kind])
            case tree.Choice(kind=None):
                return Choice(tuple(ChoiceValue(_write(value)) for value in node.json_values))
            case tree.Choice(kind=kind):
                return self._refer(kind, kind, build_type_name(kind), lambda: _read_enum(node))
            case tree.PartialRecord():
                return self._refer_to_changes(node)
            case tree.TypeStatement(bare_annotation=bare):
                name = build_type_name(bare)
                return self._refer(bare, bare, name, lambda: self.read(node.target_type))
            case tree.UnionType():
                return self._read_union(node)
            case tree.ListType():
                return ListType(self.read(node.item), is_unique=node.kind in _SETS)
            case tree.TupleType():
                return TupleType(tuple(map(self.read, node.items)))
            case tree.Table():
                return MapType(self.read(node.key), self.read(node.value))
            case tree.Record():
                return self._refer_to_record(node)
            case tree.ForeignType():
                return self._read_foreign(node)
            case _:
                return ForeignType(format_annotation(node.bare_annotation))

    def _refer(self, identity: Any, defined: Any, name: str, build: Any) -> TypeNode:
        return self._named.refer(identity, name, defined, self._side, build)

    def _read_scalar(self, scalar: Scalar) -> Scalar:
        is_lax = self._package == PYDANTIC and scalar.kind in _LAX_KINDS
        return replace(scalar, is_lax=True) if is_lax else scalar

    def _refer_to_changes(self, node: tree.PartialRecord) -> TypeNode:
        target = node.target_type
        if not isinstance(target, tree.Record):
            return self.read(target)
        identity = ("changes", node.bare_annotation)
        name = build_type_name(node.bare_annotation)
        return self._refer(
            identity,
            target.kind,
            name,
            lambda: read_members(target, self.read, self._side, is_partial=True),
        )

    def _refer_to_record(self, node: tree.Record) -> TypeNode:
        if getattr(node.kind, "__pydantic_root_model__", False):
            return self.read(node.declared_members[0].type)
        name = "_".join([node.kind.__name__, *map(build_type_name, node.arguments)])
        key = node.record_type_key
        return self._refer(key, node.kind, name, lambda: self._read_record(node))

    def _read_record(self, node: tree.Record) -> Definition:
        record = read_members(node, self.read, self._side)
        config = getattr(node.kind, "__struct_config__", None)
        if config is not None and config.array_like:
            return TupleType(tuple(member.type for member in record.members))
        closed = self._side == "request" and is_closed(node.kind, self._package)
        return replace(record, is_closed=closed)

    def _read_union(self, node: tree.UnionType) -> TypeNode:
        options = list(dict.fromkeys(map(self.read, node.options)))
        literals = [option for option in options if isinstance(option, Choice)]
        others = [each for each in options if each is not NULL and not isinstance(each, Choice)]
        merged = _merge_choices(literals)
        if merged is not None and others == [Scalar("str")] and _is_of_texts(merged):
            merged, others = replace(merged, is_open=True), []
        made = [*([] if merged is None else [merged]), *others]
        made += [NULL] if NULL in options and NULL not in made else []
        return made[0] if len(made) == 1 else UnionType(tuple(made), tag=find_tag(node))

    def _read_foreign(self, node: tree.ForeignType) -> TypeNode:
        if isinstance(node.kind, type) and hasattr(node.kind, "_fields"):
            return TupleType(tuple(map(self.read, read_named_tuple_items(node.kind))))
        shown = format_annotation(node.bare_annotation)
        found = read_foreign_type(node.kind, shown)
        return self._read_scalar(found) if isinstance(found, Scalar) else found


def _write(value: Any) -> str:
    return write_literal(to_json_value(value))


def _read_enum(node: tree.Choice) -> Definition:
    if issubclass(cast("type[enum.Enum]", node.kind), enum.Flag):
        return Scalar("int")  # its values are combinations of the members
    pairs = zip(node.json_values, node.members, strict=True)
    return Choice(tuple(ChoiceValue(_write(value), member.name) for value, member in pairs))


def _merge_choices(choices: Iterable[Choice]) -> Choice | None:
    values = dict.fromkeys(value for choice in choices for value in choice.values)
    return Choice(tuple(values)) if values else None


def _is_of_texts(choice: Choice) -> bool:
    return all(value.literal.startswith('"') for value in choice.values)
