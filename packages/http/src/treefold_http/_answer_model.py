"""`response_model`: responses are checked against the type that the handler module declares.

The check is composed into the plan at boot, only for routes that declare a model. The client gets
the declared fields of a return value and no other; a value of another type is a 500 whose log
line names the field. A `Response` object is sent unchecked.
"""

from __future__ import annotations

import typing
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, cast

from treefold_http._events import EventStream
from treefold_http._parameters import InjectionError, options_of, shown
from treefold_http._projection import Mismatch, Shape, shape_of
from treefold_http._response import BODILESS, Response
from treefold_http._types import Endpoint

if TYPE_CHECKING:
    from treefold_http._loader import HandlerModule


def hold_answers(run: Endpoint, module: HandlerModule, file: str) -> Endpoint:
    """Return an endpoint whose return values are serialized by the `response_model` of its module.

    Args:
        run: the handler with its injection.
        file: the path of the module, for error messages.

    Raises:
        InjectionError: for a type that cannot be a response model.
    """
    hold = _AnswerModel(module, file).hold

    async def held(connection: Any) -> Any:
        return hold(await run(connection))

    return held


def hold_messages(run: Endpoint, module: HandlerModule, file: str) -> Endpoint:
    """Return a WebSocket endpoint that serializes its JSON messages by the `response_model`."""
    shape = _named(module.response_model, file, "response_model")

    async def held(websocket: Any) -> Any:
        websocket.shape = shape
        return await run(websocket)

    return held


class _AnswerModel:
    """The response models of one route, by status."""

    def __init__(self, module: HandlerModule, file: str) -> None:
        self._model = _named(module.response_model, file, "response_model")
        self._status = module.status_code or 200
        self._said = {
            str(status): _named(model, file, f"responses[{status!r}]")
            for status, said in (module.responses or {}).items()
            if (model := _model_in(said)) is not None
        }

    def hold(self, result: Any) -> Any:
        if isinstance(result, Response):
            if isinstance(result, EventStream):
                result.hold(self._model)
            return result
        if isinstance(result, (AsyncIterator, Iterator)):
            return cast("object", result)  # text or bytes, which hold no fields
        parts = cast("tuple[Any, ...]", result)
        if not isinstance(result, tuple) or hasattr(parts, "_fields"):
            return self._shape(self._status)(parts)
        if len(parts) not in (2, 3) or isinstance(parts[0], (tuple, Response)):
            return parts  # the coercion raises with the reason
        return (self._shape(parts[1])(parts[0]), *parts[1:])

    def _shape(self, status: Any) -> Shape:
        """The shape for a response status, as the OpenAPI document declares it."""
        if status in BODILESS:
            return _as_it_is
        text = str(int(status)) if isinstance(status, int) else ""
        known = self._said.get(text) or self._said.get(f"{text[:1]}XX")
        if known is not None:
            return known
        return self._model if text.startswith("2") else self._said.get("default", _as_it_is)


def _as_it_is(value: Any) -> Any:
    return value


def _model_in(said: Any) -> Any:
    if isinstance(said, Mapping):
        return cast("Mapping[str, Any]", said).get("model")
    return None if isinstance(said, str) else said


def _named(model: Any, file: str, name: str) -> Callable[[Any], Any]:
    """The shape of a model; its errors name the file and the option that declares the model."""
    kinds = [kind for kind in options_of(model) if not _passes(kind)]
    if any((typing.get_origin(kind) or kind) is tuple for kind in kinds):
        raise InjectionError(
            f"`{name}` is a tuple, which is how a handler says a status; give the type of the"
            " content here, and the status as `status_code`"
        )
    try:
        shape = shape_of(typing.Union[tuple(kinds)]) if kinds else _none_of_it  # noqa: UP007
    except InjectionError as error:
        raise InjectionError(
            f"`{name}` is {shown(model)}, which no answer can be held to: {error};"
            " give a dataclass, a TypedDict, a model of pydantic or msgspec, or a list or union"
        ) from error

    def shaped(value: Any) -> Any:
        try:
            return shape(value)
        except Mismatch as error:
            raise TypeError(f"What Api/{file} gave does not fit its `{name}`: {error}") from None

    return shaped


def _passes(kind: Any) -> bool:
    """Return True for a `Response` or iterator type, whose content is not checked."""
    origin = typing.get_origin(kind) or kind
    return isinstance(origin, type) and (
        issubclass(origin, Response) or issubclass(origin, (AsyncIterator, Iterator))
    )


def _none_of_it(value: Any) -> Any:
    raise Mismatch("should be a response")
