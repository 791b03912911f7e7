"""Unions whose options a member tells apart: pydantic's discriminator, or the tags of structs."""

from __future__ import annotations

from typing import Annotated, Any, Union

from treefold_http._types import tree
from treefold_http._types.read import parse_annotation


def is_discriminated(node: tree.TypeNode) -> bool:
    """Return True for a union whose options a member tells apart: pydantic's, or tagged structs."""
    if not isinstance(node, tree.UnionType):
        return False
    return _has_discriminator(node) or all(map(_is_tagged_struct, node.options))


def list_options_merging_discriminated(node: tree.TypeNode) -> list[tree.TypeNode]:
    """Return the options of a union, of which those with a discriminator are one."""
    if not isinstance(node, tree.UnionType):
        return [node]
    whole = _has_discriminator(node)
    options = (each for each in node.options if not tree.is_none(each))
    told = [each for each in options if whole or _is_tagged_struct(each)]
    if len(told) < 2:
        return list(node.options)
    union = Union[tuple(option.annotation for option in told)]  # noqa: UP007 - made of a tuple
    united = parse_annotation(Annotated[union, *node.markers] if whole else union)
    return [united, *(option for option in node.options if option not in told)]


def _has_discriminator(node: tree.UnionType) -> bool:
    return any(getattr(marker, "discriminator", None) for marker in node.markers)


def _is_tagged_struct(node: tree.TypeNode) -> bool:
    if not isinstance(node, tree.Record) or node.family != "struct":
        return False
    kind: Any = node.kind
    return kind.__struct_config__.tag is not None and not kind.__struct_config__.array_like
