"""Return annotations that no response can be made of, refused at boot.

`coercion` answers a closed list of types; an annotation such as `-> int` promises a value outside
of it, which would be a 500 for each request. Only types whose values can never be answered are
refused: a class may have a subclass with a response form.
"""

from __future__ import annotations

import collections.abc
import datetime
import decimal
import uuid
from inspect import signature
from types import FunctionType
from typing import Any, cast

from treefold_http._types import tree
from treefold_http._types.parameters import EMPTY, InjectionError, format_annotation
from treefold_http._types.read import parse_annotation, resolve_return_annotation
from treefold_http._wire.aliases import AnyCallable

_ANSWERED = (str, bytes, bytearray, dict, list, type(None))
_SETS = (set, frozenset, collections.abc.Set, collections.abc.MutableSet)
_NEVER = (
    *(int, float, complex, decimal.Decimal, uuid.UUID, set, frozenset, range, BaseException),
    *(datetime.date, datetime.time, datetime.timedelta),
)
_KNOWN = {"None", "dict", "list", "str", "bytes", "Response", "StreamingResponse", "FileResponse"}


def check_return_type(handler: AnyCallable, response_model: Any = None) -> tree.TypeNode:
    """Refuse a handler whose response model or return annotation no response can be made of.

    A model of single values is allowed where the annotation says what sends them, such as
    `-> EventStream` or `-> AsyncIterator[int]`.

    Returns:
        The type of the return annotation; without one, and for the plainest ones, that of any
        value.

    Raises:
        InjectionError: names the type and the way out.
    """
    annotated = _read_return_type(handler)
    if response_model is not None:
        refused = _find_non_response_type(parse_annotation(response_model))
        if refused is not None and (
            _find_non_response_type(annotated) or not _may_have_return_annotation(handler)
        ):
            raise InjectionError(
                "`response_model` must be a type that can be a response, got"
                f" {format_annotation(refused.bare_annotation)}; use a type of objects or lists,"
                " or annotate a handler"
                " that sends events or lines with -> EventStream or -> AsyncIterator[...]"
            )
        return annotated
    if (refused := _find_non_response_type(annotated)) is not None:
        raise InjectionError(
            "The return annotation of `handler` must be a type that can be a response, got"
            f" {format_annotation(refused.bare_annotation)}; return a dict such as "
            '{"value": ...}, a text with str(...), or Response.json(...), and annotate that'
        )
    return annotated


def read_return_annotation(handler: AnyCallable) -> Any:
    """Return the resolved return annotation; EMPTY without one, or if a name in it is unknown."""
    try:
        return resolve_return_annotation(find_return_annotation(handler), handler)
    except Exception:  # the annotation may use a name imported for the type checker only
        return EMPTY


def find_return_annotation(handler: AnyCallable) -> Any:
    """Return the return annotation as it is written; EMPTY without one.

    Raises:
        TypeError, ValueError: for a callable without a signature that can be read.
    """
    given = getattr(handler, "__annotations__", None)
    if given is None or hasattr(handler, "__wrapped__"):
        return signature(handler).return_annotation
    return given.get("return", EMPTY)


def _may_have_return_annotation(handler: AnyCallable) -> bool:
    if not isinstance(handler, FunctionType) or hasattr(handler, "__wrapped__"):
        return True
    return "return" in handler.__annotations__


def _read_return_type(handler: AnyCallable) -> tree.TypeNode:
    # A wrapper has the annotations of the function in it, and may return anything.
    if not isinstance(handler, FunctionType) or hasattr(handler, "__wrapped__"):
        return _UNKNOWN
    annotation = handler.__annotations__.get("return", EMPTY)
    if annotation in (EMPTY, None, dict, list, str):
        return _UNKNOWN
    if isinstance(annotation, str):  # resolving a text takes 50 us, looking up a name does not
        if "|" not in annotation and annotation.partition("[")[0] in _KNOWN:
            return _UNKNOWN
        annotation = handler.__globals__.get(annotation, annotation)
    try:
        return parse_annotation(resolve_return_annotation(annotation, handler))
    except InjectionError:  # a name that is imported for the type checker only
        return _UNKNOWN


_UNKNOWN = parse_annotation(EMPTY)


def _find_non_response_type(node: tree.TypeNode) -> tree.TypeNode | None:
    """Return the first type in an annotation that cannot be answered; None if there is none."""
    match node:
        case tree.TypeStatement():
            return _find_non_response_type(node.target_type)
        case tree.UnionType():
            return next(filter(None, map(_find_non_response_type, node.options)), None)
        case tree.TupleType():
            return _find_non_response_type(node.items[0]) if len(node.items) in (2, 3) else node
        case _:
            return node if _is_non_response_type(node) else None


def _is_non_response_type(node: tree.TypeNode) -> bool:
    match node:
        case tree.Scalar():
            return node.kind not in _ANSWERED
        case tree.Choice():
            return not any(isinstance(member, _ANSWERED) for member in node.members)
        case tree.ListType():
            return node.kind in _SETS
        case tree.ForeignType(kind=type()):
            return _is_non_response_class(node.kind)
        case _:
            return False


def _is_non_response_class(kind: Any) -> bool:
    is_named_tuple = issubclass(kind, tuple) and hasattr(cast("Any", kind), "_fields")
    return is_named_tuple or issubclass(kind, _NEVER)
