"""`response_model = True`: responses are held to the return annotation, so that it is written once.

    response_model = True

    async def handler(id: int) -> Book: ...                    Book
    async def handler() -> tuple[Book, Literal[201]]: ...      Book
    async def handler() -> AsyncIterator[Book]: ...            each Book
    async def handler() -> Response: ...                       nothing: it is sent as it is

The setting `response_model = true` does the same for every handler whose annotation says a type
that can be held; `response_model = False` in a module leaves it alone.
"""

from __future__ import annotations

import collections.abc
from typing import Any

from treefold_http._responses.response import Response
from treefold_http._responses.return_types import read_return_annotation
from treefold_http._types import tree
from treefold_http._types.parameters import (
    EMPTY,
    InjectionError,
    format_annotation,
    format_callable,
)
from treefold_http._types.read import parse_annotation
from treefold_http._wire.aliases import AnyCallable

_STREAMS = (collections.abc.AsyncIterator, collections.abc.Iterator)
_PLAIN = (str, bytes, bytearray, memoryview, type(None))


def resolve_response_model(given: Any, handler: AnyCallable, *, holds_annotations: bool) -> Any:
    """Return the type that responses are held to; None for none.

    Args:
        given: the `response_model` of the module; None if it has none.
        handler: its handler.
        holds_annotations: the setting `response_model`.

    Raises:
        InjectionError: for True, where the annotation says no type that can be held.
    """
    if given is not None and not isinstance(given, bool):
        return given
    if given is False or not (given or holds_annotations):
        return None
    annotation = read_return_annotation(handler)
    held = _select_content(annotation)
    if held is None and given:
        shown = "nothing" if annotation is EMPTY else format_annotation(annotation)
        raise InjectionError(
            f"`response_model = True` needs a return annotation of {format_callable(handler)} that"
            f" responses can be checked against, got {shown}; annotate a dataclass, a TypedDict, a"
            " model or a list of these, or leave response_model out"
        )
    return held


def _select_content(annotation: Any) -> Any:
    """Return the type of the content that an annotation says; None if it cannot be held."""
    node = parse_annotation(annotation)
    if isinstance(node, tree.TupleType) and len(node.items) in (2, 3):
        node = node.items[0]
    options = tree.list_direct_union_options(node)
    kinds = [option for option in options if not _is_sent_unchecked(option)]
    return node.annotation if kinds and all(map(_can_be_held, kinds)) else None


def _is_sent_unchecked(node: tree.TypeNode) -> bool:
    """Return True for None and for a response, whose content the handler has made."""
    if not isinstance(node, tree.ForeignType):
        return tree.is_none(node)
    return isinstance(node.kind, type) and issubclass(node.kind, Response)


def _can_be_held(node: tree.TypeNode) -> bool:
    match node:
        case tree.AnyType() | tree.TupleType():
            return False
        case tree.ForeignType():
            return node.kind in _STREAMS and bool(node.arguments)
        case tree.Scalar():
            return node.kind not in _PLAIN
        case tree.ListType():
            return node.kind is not tuple and not isinstance(node.item, tree.ForeignType)
        case _:
            return not any(isinstance(part, tree.ForeignType) for part in node.inner_types)
