"""`response_model`: responses are checked against the type that the handler module declares.

The check is composed into the plan at boot, only for routes that declare a model. The client gets
the declared fields of a return value and no other; a value of another type is a 500 whose log
line names the field. A `Response` object is sent unchecked.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Annotated, Any, Union, cast

from treefold_http._extensions.members import ResultForm
from treefold_http._responses.coercion import refuse_unawaited
from treefold_http._responses.endpoints import Endpoint
from treefold_http._responses.events import EventStream
from treefold_http._responses.response import BODILESS, Response
from treefold_http._types.outputs import Output
from treefold_http._types.parameters import InjectionError, format_annotation
from treefold_http._types.read import parse_annotation
from treefold_http._types.serialize import SerializationError, Serializer, build_serializer
from treefold_http._types.tree import (
    ForeignType,
    ListType,
    TupleType,
    TypeNode,
    list_direct_union_options,
)
from treefold_logging import is_sensitive


def apply_response_model(
    run: Endpoint, outputs: Sequence[Output], status: int | None, file: str
) -> Endpoint:
    """Return an endpoint whose return values are serialized by the declared types.

    Args:
        run: the handler with its injection.
        outputs: the declared types; that of the `response_model` first.
        status: the status of its plain return values.
        file: the path of the module, for error messages.

    Raises:
        InjectionError: for a type that cannot be a response model.
    """
    hold = _ResponseModel(outputs, status, file).serialize_result

    async def run_and_serialize(connection: Any) -> Any:
        return hold(await run(connection))

    return run_and_serialize


def apply_result_form(
    run: Endpoint, form: ResultForm, outputs: Sequence[Output], status: int | None, file: str
) -> Endpoint:
    """Return the endpoint of `apply_response_model` with the header fields of an extension.

    Args:
        form: builds the fields of each result.
    """
    hold = build_result_hold(form, outputs, status, file)

    async def run_and_add_fields(connection: Any) -> Any:
        return hold(connection, await run(connection))

    return run_and_add_fields


def build_result_hold(
    form: ResultForm | None, outputs: Sequence[Output], status: int | None, file: str
) -> Callable[[Any, Any], Any]:
    """Return a function that takes a connection and a return value, and serializes the value.

    Args:
        form: builds the header fields of each result; None for none.
        outputs, status, file: as those of `apply_response_model`.

    Raises:
        InjectionError: for a type that cannot be a response model.
    """
    hold = _ResponseModel(outputs, status, file).serialize_result
    if form is None:
        return lambda connection, result: hold(result)
    build_fields = form.build_fields

    def hold_and_add_fields(connection: Any, result: Any) -> Any:
        held: object = hold(result)
        if isinstance(held, Response):
            return held
        query = [pair for pair in connection.query.multi_items() if not is_sensitive(pair[0])]
        if not isinstance(held, tuple):
            own = build_fields(result, query)
            return (held, status or 200, own) if own else held
        content, code, *given = cast("tuple[object, ...]", held)
        own = build_fields(result[0], query)
        return content, code, {**own, **cast("dict[str, str]", given[0] if given else {})}

    return hold_and_add_fields


def apply_websocket_message_model(run: Endpoint, outputs: Sequence[Output], file: str) -> Endpoint:
    """Return a WebSocket endpoint that serializes its JSON messages by the `response_model`."""
    shape = _build_serializer(outputs[0], file)

    async def run_with_message_serializer(websocket: Any) -> Any:
        websocket.shape = shape
        return await run(websocket)

    return run_with_message_serializer


def build_item_serializer(response_model: Any, item: TypeNode, file: str) -> Serializer:
    """Return the serializer of one item of a stream.

    Args:
        response_model: that of the module: a stream of items, or the type of each.
        item: the type of the items that the module declares.
        file: the path of the module, for error messages.
    """
    node = parse_annotation(response_model)
    written = item if _has_unchecked_content(node) else node
    return _build_serializer(Output(status=None, type=written), file)


class _ResponseModel:
    """The response models of one route, by status."""

    def __init__(self, outputs: Sequence[Output], status: int | None, file: str) -> None:
        self._status = status or 200
        self._said = {output.status: _build_serializer(output, file) for output in outputs}
        self._model = self._said[None]

    def serialize_result(self, result: Any) -> Any:
        if isinstance(result, Response):
            if isinstance(result, EventStream):
                result.hold(self._model)
            return result
        if isinstance(result, (AsyncIterator, Iterator)):
            return cast("object", result)  # text or bytes, or items that are held one by one
        parts = cast("tuple[Any, ...]", result)
        if not isinstance(result, tuple) or hasattr(parts, "_fields"):
            return self._find_serializer(self._status)(parts)
        if len(parts) not in (2, 3) or isinstance(parts[0], (tuple, Response)):
            return parts  # the coercion raises with the reason
        return (self._find_serializer(parts[1])(parts[0]), *parts[1:])

    def _find_serializer(self, status: Any) -> Serializer:
        """The shape for a response status, as the OpenAPI document declares it."""
        # such as `None, 204`, whose content is no model
        if status in BODILESS:
            return _return_unchanged
        text = str(int(status)) if isinstance(status, int) else ""
        known = self._said.get(text) or self._said.get(f"{text[:1]}XX")
        if known is not None:
            return known
        return self._model if text.startswith("2") else self._said.get("default", _return_unchanged)


def _return_unchanged(value: Any) -> Any:
    return value


def _build_serializer(output: Output, file: str) -> Serializer:
    """The serializer of an output; its errors name the file and the option that declares it."""
    status = output.status or ""
    key = status if status.isdigit() else repr(status)
    name = f"responses[{key}]" if status else "response_model"
    options = list_direct_union_options(output.type)
    kinds = [kind for kind in options if not _has_unchecked_content(kind)]
    if any(_is_tuple(kind) for kind in kinds):
        raise InjectionError(
            f"`{name}` must be the type of the content, got a tuple; set the status with"
            " `status_code`"
        )
    try:
        node = output.type if kinds == list(options) else _narrow_union(output.type, kinds)
        shape = build_serializer(node) if kinds else _refuse_any_value
    except InjectionError as error:
        raise InjectionError(
            f"`{name}` must be a type that responses can be checked against, got"
            f" {format_annotation(output.type.annotation)}: {error}; use a dataclass, a"
            " TypedDict, a model of pydantic or msgspec, or a list or union of these"
        ) from error

    def serialize_value(value: Any) -> Any:
        try:
            return shape(value)
        except SerializationError as error:
            refuse_unawaited(value)
            message = f"The result of Api/{file} does not fit its `{name}`: {error}"
            raise TypeError(message) from None

    return serialize_value


def _narrow_union(node: TypeNode, options: list[TypeNode]) -> TypeNode:
    """Return the union of some options of a union, with the `Annotated` metadata of the union."""
    union = Union[tuple(option.annotation for option in options) or (None,)]  # noqa: UP007
    return parse_annotation(Annotated[union, *node.markers] if node.markers else union)


def _is_tuple(node: TypeNode) -> bool:
    return isinstance(node, TupleType) or (isinstance(node, ListType) and node.kind is tuple)


def _has_unchecked_content(node: TypeNode) -> bool:
    """Return True for a `Response` or iterator type, whose content is not checked."""
    if not isinstance(node, ForeignType) or not isinstance(node.kind, type):
        return False
    return issubclass(node.kind, (Response, AsyncIterator, Iterator))


def _refuse_any_value(value: Any) -> Any:
    raise SerializationError("should be a response")
