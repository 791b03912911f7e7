"""Which source a plain parameter is read from, once dependencies and providers are out of question.

Explicit markers first, then uploads and body models, then scalars from path or query (rulings,
'Handlers and injection', 3 to 8). The result is a binder, or None for the parameter's own default.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Annotated, Any, get_args, get_origin

from treefold_http._binding import Converter, converter, item_converter
from treefold_http._errors import UnprocessableEntity
from treefold_http._json import loads
from treefold_http._models import Decoder, model_decoder, text_converter
from treefold_http._parameters import EMPTY, InjectionError, label, options_of, shown
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
    kind: str,
) -> Binder | None:
    """Give the binder of a parameter; None where its own default serves.

    Args:
        markers: the metadata of its annotation.
        in_path: whether the route has a path parameter of that name.
        kind: what there will be to read from: `request`, `websocket` or `nothing`.

    Raises:
        InjectionError: when nothing can provide it.
    """
    annotation = _constrained(annotation, markers)
    if in_path:
        return _path(parameter, annotation, function)
    if kind != "nothing":
        source = _source(parameter, markers, function)
        if source is not None:
            binder = _explicit(parameter, annotation, source, function)
        else:
            binder = _implied(parameter, annotation)
        if binder is not None and binder.waits and kind == "websocket":
            raise InjectionError(
                f"Parameter {parameter.name!r} of {label(function)} comes from a body, and a"
                " WebSocket has none; receive it as a message"
            )
        if binder is not None:
            return binder
    if parameter.default is not EMPTY:
        return None
    raise InjectionError(
        f"Nothing provides parameter {parameter.name!r} of {label(function)}; name it after a path"
        " parameter, annotate it with a scalar for the query or a model for the body, or give it"
        " Depends(...)"
    )


def _constrained(annotation: Any, markers: tuple[Any, ...]) -> Any:
    """The annotation with what among its metadata is a constraint; pydantic checks these."""
    kept = [m for m in markers if type(m).__module__.partition(".")[0] in _CONSTRAINING]
    return Annotated[annotation, *kept] if kept else annotation


_CONSTRAINING = ("annotated_types", "pydantic")


def _path(parameter: inspect.Parameter, annotation: Any, function: Callable[..., Any]) -> Binder:
    convert = converter(annotation) or text_converter(annotation)
    if convert is None:
        raise InjectionError(
            f"Path parameter {parameter.name!r} of {label(function)} is annotated"
            f" {shown(annotation)}, which text cannot be converted to; use str, int, UUID, an enum"
            " or a date"
        )
    return path_binder(parameter.name, convert)


def _source(
    parameter: inspect.Parameter, markers: tuple[Any, ...], function: Callable[..., Any]
) -> Source | None:
    """The explicit source of a parameter; one whose marker would be passed over is refused."""
    if _is_source(parameter.default):
        name = getattr(parameter.default, "__name__", type(parameter.default).__name__)
        raise InjectionError(
            f"Parameter {parameter.name!r} of {label(function)} has {name}() as its default;"
            f" write Annotated[..., {name}()]"
        )
    found = next(filter(_is_source, markers), None)
    return found() if isinstance(found, type) else found


def _is_source(marker: Any) -> bool:
    return isinstance(marker, Source) or (isinstance(marker, type) and issubclass(marker, Source))


def _explicit(
    parameter: inspect.Parameter, annotation: Any, source: Source, function: Callable[..., Any]
) -> Binder:
    if isinstance(source, Body):
        decoder = model_decoder(annotation, anything=True)
        assert decoder is not None  # noqa: S101 - anything was asked for
        return _body_binder(parameter, decoder)
    if isinstance(source, File):
        many = _is_upload(annotation)
        if many is None and annotation is not EMPTY:
            raise InjectionError(
                f"Parameter {parameter.name!r} of {label(function)} is annotated"
                f" {shown(annotation)}, which File() cannot give; use UploadFile or a list of it"
            )
        return file_binder(source, parameter, many=bool(many))
    convert, many = _text(annotation)
    if convert is None:
        raise InjectionError(
            f"Parameter {parameter.name!r} of {label(function)} is annotated {shown(annotation)},"
            f" which {type(source).__name__}() cannot give; use a scalar or a list of one"
        )
    make = form_binder if isinstance(source, Form) else text_binder
    return make(source, parameter, convert, many=many)


def _implied(parameter: inspect.Parameter, annotation: Any) -> Binder | None:
    if annotation is EMPTY:
        return None
    uploads = _is_upload(annotation)
    if uploads is not None:
        return file_binder(File(), parameter, many=uploads)
    decoder = model_decoder(annotation)
    if decoder is not None:
        return _body_binder(parameter, decoder)
    many = item_converter(annotation)
    convert = many or converter(annotation)
    if convert is None and get_origin(annotation) is Annotated:
        convert = text_converter(annotation)
        if convert is None:
            raise InjectionError(
                f"The constraint on parameter {parameter.name!r} cannot be checked; it takes"
                " pydantic and a scalar, or a list whose items are constrained"
            )
    if convert is None:
        return None
    return text_binder(Query(), parameter, convert, many=many is not None)


def _is_upload(annotation: Any) -> bool | None:
    """Whether it is a list of uploads or one upload, each also with None; None for neither."""
    options = [option for option in options_of(annotation) if option is not type(None)]
    if len(options) != 1:
        return None
    many = get_origin(options[0]) is list
    kind = get_args(options[0])[0] if many else options[0]
    return many if kind is UploadFile else None


def _text(annotation: Any) -> tuple[Converter | None, bool]:
    many = item_converter(annotation)
    if many is not None:
        return many, True
    if get_origin(annotation) is list:
        return text_converter(get_args(annotation)[0]), True
    plain = str if annotation is EMPTY else annotation
    return converter(plain) or text_converter(plain), False


def _body_binder(parameter: inspect.Parameter, decoder: Decoder) -> Binder:
    async def bind(connection: Any, errors: Errors) -> Any:
        connection.check_json_type()
        reader = connection.reader
        body = await reader.read()
        if body:
            try:
                if decoder.quick is not None and (found := decoder.quick(body)) is not None:
                    reader.names = decoder.names
                    return found
                document = loads(body)
                if not decoder.shares:
                    reader.document = document
                return decoder.decode(body, document)
            except UnprocessableEntity as error:
                errors.extend(map(dict, error.errors or ()))
                return None
        if parameter.default is EMPTY:
            errors.append(entry(["body"], "is required", "missing"))
        return parameter.default

    return Binder(bind, waits=True)
