"""Streams of models: one JSON value a line (`application/x-ndjson`).

Decided at boot by the return annotation or the `response_model`: an iterator or generator of
anything but text and bytes. Iterators of these, and those without an item type, stay streams of
chunks.
"""

from __future__ import annotations

import collections.abc
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any, cast

from treefold_http._json.json import dumps
from treefold_http._responses.endpoints import Endpoint
from treefold_http._responses.return_types import find_return_annotation
from treefold_http._responses.streams import close_producer
from treefold_http._types import tree
from treefold_http._types.parameters import EMPTY
from treefold_http._types.read import parse_annotation, resolve_return_annotation
from treefold_http._wire.aliases import AnyCallable

NDJSON = "application/x-ndjson"
STREAMS = (
    collections.abc.AsyncIterator,
    collections.abc.AsyncGenerator,
    collections.abc.AsyncIterable,
    collections.abc.Iterator,
    collections.abc.Generator,
)
_CHUNKS = (str, bytes, bytearray, memoryview)
_WORDS = ("Iterator", "Generator", "AsyncIterable")


def find_stream_item_type(node: tree.TypeNode) -> tree.TypeNode | None:
    """Return the type of the JSON values that a stream yields.

    None for a type that is not a stream, and for a stream of text, bytes or anything.
    """
    if not isinstance(node, tree.ForeignType) or node.kind not in STREAMS or not node.arguments:
        return None
    item = node.arguments[0]
    kinds = tree.list_direct_union_options(item)
    options = [option for each in kinds for option in _expand_named_type(each)]
    is_open = any(isinstance(o, tree.AnyType) or o.bare_annotation in _CHUNKS for o in options)
    return None if is_open else item


def _expand_named_type(node: tree.TypeNode) -> tuple[tree.TypeNode, ...]:
    if isinstance(node, tree.TypeStatement):
        return tree.list_direct_union_options(node.target_type)
    return (node,)


def find_declared_item_type(handler: AnyCallable, response_model: Any) -> tree.TypeNode | None:
    """Return the item type of a handler that streams JSON values; None for another handler."""
    for declared in (response_model, _read_stream_annotation(handler)):
        if declared is None or declared is EMPTY:
            continue
        for option in tree.list_direct_union_options(parse_annotation(declared)):
            if isinstance(option, tree.TupleType) and option.items:
                option = option.items[0]
            if (item := find_stream_item_type(option)) is not None:
                return item
    return None


def _read_stream_annotation(handler: Any) -> Any:
    """The return annotation, if it may be a stream; its names are resolved only then."""
    try:
        given = find_return_annotation(handler)
        may_stream = not isinstance(given, type) and any(word in str(given) for word in _WORDS)
        return resolve_return_annotation(given, handler) if may_stream else EMPTY
    except Exception:  # the annotation may use a name imported for the type checker only
        return EMPTY


def wrap_as_json_lines(
    run: Endpoint, status: int | None, serialize: Callable[[Any], Any]
) -> Endpoint:
    """Return an endpoint whose iterators are sent as lines of JSON.

    Args:
        run: the handler with its injection.
        status: the status of its plain return values.
        serialize: reduces each item to the declared fields.
    """

    async def run_as_lines(connection: Any) -> Any:
        result: Any = await run(connection)
        parts = _to_tuple(result)
        items: Any = parts[0] if parts else None
        if not isinstance(items, (AsyncIterator, Iterator)) or len(parts) > 3:
            return result
        lines = _encode_lines_async if isinstance(items, AsyncIterator) else _encode_lines
        headers: Any = parts[2] if len(parts) == 3 else {}
        if not isinstance(headers, Mapping):
            return result  # the coercion raises with the reason
        given = parts[1] if len(parts) > 1 else status or 200
        said = cast("Mapping[str, str]", headers)
        return lines(items, serialize), given, {"content-type": NDJSON, **said}

    return run_as_lines


def _to_tuple(result: Any) -> tuple[Any, ...]:
    return cast("tuple[Any, ...]", result) if isinstance(result, tuple) else (result,)


def _encode_line(item: Any) -> bytes:
    return dumps(item) + b"\n"


async def _encode_lines_async(items: Any, serialize: Callable[[Any], Any]) -> AsyncIterator[bytes]:
    try:
        async for item in items:
            yield _encode_line(serialize(item))
    finally:
        await close_producer(items)


def _encode_lines(items: Any, serialize: Callable[[Any], Any]) -> Iterator[bytes]:
    try:
        for item in items:
            yield _encode_line(serialize(item))
    finally:
        if (end := getattr(items, "close", None)) is not None:
            end()
