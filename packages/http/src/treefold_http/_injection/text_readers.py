"""Readers of texts: from the texts of one name to the value of a parameter or a member.

A scalar has one text; a list, set or open tuple has one text for each item. Constraints are checked
after the conversion.
"""

from __future__ import annotations

import collections.abc
from collections.abc import Callable, Mapping
from typing import Any

from treefold_http._injection.sources import TextReader
from treefold_http._types import constraints, tree
from treefold_http._types.decode import build_pydantic_text_converter
from treefold_http._types.parameters import EMPTY
from treefold_http._types.read import parse_annotation
from treefold_http._types.scalars import build_scalar_converter


def is_pydantic_text_class(node: tree.TypeNode) -> bool:
    """Return True for a class that pydantic reads from text, such as `HttpUrl` or an IP address."""
    options = tree.list_options_without_none(node)
    kinds = [getattr(_unwrap_list_item(option), "kind", None) for option in options]
    return bool(kinds) and all(
        hasattr(kind, "__get_pydantic_core_schema__") or _read_module_name(kind) == "ipaddress"
        for kind in kinds
    )


def _read_module_name(kind: Any) -> str:
    return getattr(kind, "__module__", "")


def is_client_data_type(node: tree.TypeNode) -> bool:
    """Return True for a type of values that clients send, False for the author's own objects."""
    if isinstance(node, tree.TypeStatement):
        return is_client_data_type(node.target_type)
    if isinstance(node, tree.UnionType):
        return all(map(is_client_data_type, tree.list_options_without_none(node)))
    if isinstance(node, tree.ForeignType):
        return is_pydantic_text_class(node)
    return not isinstance(node, tree.AnyType)


def build_text_reader(node: tree.TypeNode, *, allow_pydantic_types: bool) -> TextReader | None:
    """Return the reader of a scalar or of a list of scalars; None for any other type.

    Args:
        allow_pydantic_types: also types that only pydantic can convert from text.
    """
    if node.annotation is EMPTY:
        node = parse_annotation(str)
    listed = find_list_type(node)
    wanted = node if listed is None else listed.item
    convert = build_scalar_converter(wanted)
    if convert is None and allow_pydantic_types:
        convert = build_pydantic_text_converter(wanted)
    if convert is None:
        return None
    if listed is None:
        return TextReader(with_result_check(convert, constraints.build_constraint_check(node)))
    make = _CONTAINERS.get(listed.kind)
    if constraints.find_constraint_packages(node, include_items=False):
        check = constraints.build_constraint_check(node)
        whole = check if make is None or check is None else with_result_check(make, check)
        return TextReader(convert, many=True, whole=whole)
    each = with_result_check(convert, constraints.build_constraint_check(wanted))
    return TextReader(each, many=True, whole=make)


_CONTAINERS: Mapping[Any, Callable[[Any], Any]] = {
    set: set,
    frozenset: frozenset,
    tuple: tuple,
    collections.abc.Set: frozenset,
}
"""The containers of many texts that are no lists."""


def find_list_type(node: tree.TypeNode) -> tree.ListType | None:
    """Return the list, set or open tuple that a type is, also beside None, or None."""
    options = tree.list_options_without_none(node)
    found = options[0] if len(options) == 1 else None
    if not isinstance(found, tree.ListType) or found.item.annotation is EMPTY:
        return None
    return found


def _unwrap_list_item(node: tree.TypeNode) -> tree.TypeNode:
    listed = find_list_type(node)
    return node if listed is None else listed.item


def with_result_check(
    convert: constraints.Check, check: constraints.Check | None
) -> constraints.Check:
    """Return a converter that also checks its result."""
    if check is None:
        return convert
    return lambda text: check(convert(text))
