"""The error format of an application: one model, and the function that renders errors as it.

Declared once, in `hooks.py` or by `app.error_format`; responses, sockets and documents read it from
here. The model is checked like a `response_model`, so that documents and responses agree.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from treefold_http._headers.header_fields import encode_header
from treefold_http._types import tree
from treefold_http._types.parameters import (
    EMPTY,
    InjectionError,
    format_annotation,
    format_callable,
    list_parameters,
)
from treefold_http._types.read import parse_annotation, resolve_return_annotation
from treefold_http._wire.aliases import AnyCallable

if TYPE_CHECKING:
    from treefold_http._requests.connection import Connection
    from treefold_http._wire.errors import HTTPError

Render: TypeAlias = "Callable[[Connection, HTTPError], Awaitable[Any] | Any]"


class ErrorFormat:
    """The format of all error responses of an application.

    Args:
        render: takes the request, or the socket before it is accepted, and the `HTTPError`; returns
            the model. It is called on the event loop, or awaited if it is async.
        model: the type of all error bodies; by default the return annotation of `render`.
        media_type: the content type of error responses.

    Attributes:
        render: the function.
        model: the type, as read from the annotation.
        media_type: the content type.

    Raises:
        TypeError: when `render` does not take two arguments, or the model is missing or no type of
            a JSON object or list.
    """

    def __init__(
        self, render: Render, *, model: Any = EMPTY, media_type: str = "application/json"
    ) -> None:
        if not callable(render):
            raise TypeError(
                f"An error format must be a function of the request and the error, got {render!r};"
                " write `def error_format(request, error) -> MyError`"
            )
        self.render = render
        self.media_type = media_type
        self.content_type = encode_header("content-type", media_type)
        _require_request_and_error(render)
        # Imported for a project that declares a format: others do not pay for it.
        from treefold_http._types.serialize import build_serializer

        try:
            self.model = _read_error_model(render, model)
            self._shape = build_serializer(self.model)
        except InjectionError as error:
            raise TypeError(str(error)) from error

    def serialize_error(self, value: Any) -> Any:
        """Return the JSON form of a rendered error.

        Raises:
            TypeError: for None, which is no error body.
            SerializationError: for a value that is not the model; it never quotes the value.
        """
        if value is None:
            raise TypeError(f"{format_callable(self.render)} returned None")
        return self._shape(value)


def as_error_format(given: Any) -> ErrorFormat:
    """Return an error format; a function is one whose annotation names the model.

    Raises:
        TypeError: as `ErrorFormat`.
    """
    return given if isinstance(given, ErrorFormat) else ErrorFormat(given)


def _require_request_and_error(render: AnyCallable) -> None:
    try:
        # at boot: otherwise each error would be answered without the format
        inspect.signature(render).bind(None, None)
    except TypeError as error:
        raise TypeError(
            f"{format_callable(render)} must take the request and the error: {error};"
            " write `def error_format(request, error) -> MyError`"
        ) from error
    except ValueError:  # a function without a readable signature
        return


def _read_error_model(render: AnyCallable, model: Any) -> tree.TypeNode:
    if model is EMPTY:
        list_parameters(render)  # an unreadable signature is an error with its reason
        model = resolve_return_annotation(inspect.signature(render).return_annotation, render)
    node = parse_annotation(model)
    options = tree.list_direct_union_options(node)
    if model is EMPTY or any(isinstance(each, (tree.AnyType, *_NO_MODELS)) for each in options):
        got = f"the annotation {format_annotation(model)}"
        if model is EMPTY:
            got = "no return annotation"
        raise TypeError(
            f"{format_callable(render)} must say the model of all error bodies, got {got};"
            " annotate it with a dataclass, a TypedDict, or a model of pydantic or msgspec"
        )
    return node


_NO_MODELS = (tree.Scalar, tree.Choice, tree.ForeignType)
