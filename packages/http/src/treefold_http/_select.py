"""Which source a plain parameter is read from, once dependencies and providers are out of question.

Explicit markers first, then uploads and body models, then scalars from path or query (rulings,
'Handlers and injection', 3 to 8). The result is a binder, or None for the parameter's own default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, get_args, get_origin

from treefold_http._binding import Converter, converter, item_converter
from treefold_http._errors import UnprocessableEntity, UnsupportedMediaType
from treefold_http._json import loads
from treefold_http._models import Decode, is_json, model_decoder, text_converter
from treefold_http._parameters import EMPTY, InjectionError, label, shown
from treefold_http._sources import (
    Binder,
    Body,
    Errors,
    File,
    Form,
    Query,
    Source,
    entry,
    file_binder,
    form_binder,
    path_binder,
    text_binder,
)
from treefold_http._uploads import UploadFile


def select(
    parameter: inspect.Parameter,
    annotation: Any,
    markers: tuple[Any, ...],
    *,
    in_path: bool,
    function: Callable[..., Any],
    connected: bool,
) -> Binder | None:
    """Give the binder of a parameter; None where its own default serves.

    Args:
        markers: the metadata of its annotation.
        in_path: whether the route has a path parameter of that name.
        connected: whether there will be a request or socket to read from.

    Raises:
        InjectionError: when nothing can provide it.
    """
    if in_path:
        return _path(parameter, annotation, function)
    if connected:
        source = next((marker for marker in markers if isinstance(marker, Source)), None)
        binder = _explicit(parameter, annotation, source, function) if source else None
        binder = binder or _implied(parameter, annotation)
        if binder is not None:
            return binder
    if parameter.default is not EMPTY:
        return None
    raise InjectionError(
        f"Nothing provides parameter {parameter.name!r} of {label(function)}; name it after a path"
        " parameter, annotate it with a scalar for the query or a model for the body, or give it"
        " Depends(...)"
    )


def _path(parameter: inspect.Parameter, annotation: Any, function: Callable[..., Any]) -> Binder:
    convert = converter(annotation) or text_converter(annotation)
    if convert is None:
        raise InjectionError(
            f"Path parameter {parameter.name!r} of {label(function)} is annotated"
            f" {shown(annotation)}, which text cannot be converted to; use str, int, UUID, an enum"
            " or a date"
        )
    return path_binder(parameter.name, convert)


def _explicit(
    parameter: inspect.Parameter, annotation: Any, source: Source, function: Callable[..., Any]
) -> Binder:
    if isinstance(source, Body):
        decode = model_decoder(annotation, anything=True)
        assert decode is not None  # noqa: S101 - anything was asked for
        return _body_binder(parameter, decode)
    if isinstance(source, File):
        return file_binder(source, parameter, many=get_origin(annotation) is list)
    convert, many = _text(annotation)
    if convert is None:
        raise InjectionError(
            f"Parameter {parameter.name!r} of {label(function)} is annotated {shown(annotation)},"
            f" which {type(source).__name__}() cannot give; use a scalar or a list of one"
        )
    make = form_binder if isinstance(source, Form) else text_binder
    return make(source, parameter, convert, many=many)


def _implied(parameter: inspect.Parameter, annotation: Any) -> Binder | None:
    if annotation is UploadFile or get_args(annotation) == (UploadFile,):
        return file_binder(File(), parameter, many=get_origin(annotation) is list)
    if annotation is EMPTY:
        return None
    decode = model_decoder(annotation)
    if decode is not None:
        return _body_binder(parameter, decode)
    many = item_converter(annotation)
    convert = many or converter(annotation)
    if convert is None:
        return None
    return text_binder(Query(), parameter, convert, many=many is not None)


def _text(annotation: Any) -> tuple[Converter | None, bool]:
    many = item_converter(annotation)
    if many is not None:
        return many, True
    plain = str if annotation is EMPTY else annotation
    return converter(plain) or text_converter(plain), False


def _body_binder(parameter: inspect.Parameter, decode: Decode) -> Binder:
    async def bind(connection: Any, errors: Errors) -> Any:
        if not is_json(connection.content_type):
            raise UnsupportedMediaType(
                f"The body is {connection.content_type!r}; send application/json"
            )
        reader = connection.reader
        body = await reader.read()
        if body:
            reader.document = document = loads(body)
            try:
                return decode(body, document)
            except UnprocessableEntity as error:
                errors.extend(map(dict, error.errors or ()))
                return None
        if parameter.default is EMPTY:
            errors.append(entry(["body"], "is required", "missing"))
        return parameter.default

    return Binder(bind, waits=True)
