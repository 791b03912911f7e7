"""Records of the four families as records of a lock."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from treefold_contract import (
    COMPUTED,
    Choice,
    ChoiceValue,
    Member,
    Record,
    Side,
    TypeNode,
    write_literal,
)
from treefold_http._description.constraint_keywords import to_json_value
from treefold_http._types import tree
from treefold_http._types.constraints import MSGSPEC, PYDANTIC
from treefold_http._types.parameters import EMPTY
from treefold_http._types.read import parse_annotation

ReadType = Callable[[tree.TypeNode], TypeNode]


def read_members(
    node: tree.Record, read: ReadType, side: Side, *, is_partial: bool = False
) -> Record:
    """Return a record with its members on one side.

    Args:
        read: reads the types of the members.
        is_partial: True for a body of changes, which may leave out each member and no other is
            accepted.
    """
    members = [
        _read_member(member, read, side, is_partial=is_partial)
        for member in node.declared_members
        if (member.is_input if side == "request" else member.is_output)
    ]
    if (tag := _read_struct_tag(node)) is not None:
        members.insert(0, tag)
    if side == "response":
        members += _iter_computed_members(node, read)
    if side == "response" and _omits_defaults(node):
        members = [
            Member(each.name, each.type, is_optional=True) if each.default else each
            for each in members
        ]
    return Record(tuple(members), is_closed=is_partial)


def _read_member(member: tree.Member, read: ReadType, side: Side, *, is_partial: bool) -> Member:
    name = member.written_as if side == "response" else member.read_as or member.name
    if is_partial:
        return Member(name, read(member.type), is_optional=True)
    default = format_default(member.default, has_factory=member.factory is not None)
    is_optional = not member.required and not default
    return Member(name, read(member.type), is_optional, default)


def format_default(default: object, *, has_factory: bool = False) -> str:
    """Return a default as a lock holds it; empty for none."""
    if default is EMPTY:
        return COMPUTED if has_factory else ""
    value = to_json_value(default)
    return COMPUTED if value is None and default is not None else write_literal(value)


def _read_struct_tag(node: tree.Record) -> Member | None:
    config = getattr(node.kind, "__struct_config__", None)
    if config is None or config.tag is None or config.array_like:
        return None
    return Member(config.tag_field, Choice((ChoiceValue(write_literal(config.tag)),)))


def _omits_defaults(node: tree.Record) -> bool:
    config = getattr(node.kind, "__struct_config__", None)
    return config is not None and config.omit_defaults


def _iter_computed_members(node: tree.Record, read: ReadType) -> Iterator[Member]:
    """Yield the members that a model of pydantic computes for its answers."""
    fields: dict[str, Any] = getattr(node.kind, "model_computed_fields", None) or {}
    for name, field in fields.items():
        yield Member(field.alias or name, read(parse_annotation(field.return_type)))


def is_closed(kind: Any, package: str | None) -> bool:
    """Return True if a body with other members than those of a record is refused.

    Args:
        package: decodes the body; empty for the framework, None for what is no body.
    """
    if package == "":
        return True
    if package == MSGSPEC:
        config = getattr(kind, "__struct_config__", None)
        return config is not None and config.forbid_unknown_fields
    given: Any = getattr(kind, "model_config", None) or getattr(kind, "__pydantic_config__", None)
    return package == PYDANTIC and bool(given) and given.get("extra") == "forbid"


def find_tag(node: tree.UnionType) -> str:
    """Return the member that tells the options of a union apart; empty if there is none."""
    for marker in node.markers:
        given = getattr(marker, "discriminator", None)
        if isinstance(given, str):
            return given
    configs = [_find_struct_config(each) for each in node.options if not tree.is_none(each)]
    tags = {config.tag_field for config in configs if config is not None and config.tag is not None}
    return tags.pop() if len(tags) == 1 and all(configs) else ""


def _find_struct_config(node: tree.TypeNode) -> Any:
    return getattr(getattr(node, "kind", None), "__struct_config__", None)
