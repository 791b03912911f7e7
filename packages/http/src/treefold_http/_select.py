"""Select the source of a parameter that is neither a dependency nor has a provider.

Explicit markers first, then uploads and body models, then scalars from path or query (rulings,
'Handlers and injection', 3 to 8). The result is a binder, or None for the parameter's own default.
"""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from types import UnionType
from typing import (
    Annotated,
    Any,
    NamedTuple,
    NewType,
    Optional,
    TypeAlias,
    Union,
    get_args,
    get_origin,
)

from treefold_http._binding import Converter, converter
from treefold_http._constraints import (
    Check,
    constraints,
    families,
    is_constraint,
    unconstrained,
    value_check,
)
from treefold_http._dependencies import Dependency
from treefold_http._errors import UnprocessableEntity
from treefold_http._json import loads
from treefold_http._models import Decoder, model_decoder, text_converter
from treefold_http._parameters import EMPTY, InjectionError, label, options_of, shown, split
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
    """Return the binder of a parameter; None if its own default is used.

    Args:
        markers: the metadata of its annotation.
        in_path: True if the route has a path parameter of that name.
        kind: the connection of the call: `request`, `websocket` or `nothing`.

    Raises:
        InjectionError: when no source can provide the value.
    """
    annotation = constrained(annotation, markers)
    if in_path:
        return _path(parameter, annotation, function)
    if kind != "nothing":
        source = explicit_source(parameter, markers, function)
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


def constrained(annotation: Any, markers: tuple[Any, ...]) -> Any:
    """Return the annotation with only the constraints among its metadata."""
    kept = constraints(markers)
    return Annotated[annotation, *kept] if kept else annotation


def lifted(annotation: Any, name: str, function: Callable[..., Any]) -> Any:
    """Return `Annotated[str | None, Header()]` for `Annotated[str, Header()] | None`.

    A source marker applies to the whole parameter. If one inside a union were ignored, a client
    could send in the query a value that a dependency should provide.

    Raises:
        InjectionError: for a marker inside a list, or on one of several types.
    """
    if isinstance(annotation, type):
        return annotation
    bare, markers = split(annotation)
    options = [option for option in options_of(bare) if option is not type(None)]
    if len(options) == 1 and options[0] is not bare:
        inner, found = split(options[0])
        if said := [_of(inner, marker) for marker in found if _says_where(marker)]:
            kept = [marker for marker in found if not _says_where(marker)]
            bare = Optional[Annotated[inner, *kept] if kept else inner]  # noqa: UP045 - made here
            annotation = Annotated[bare, *said, *markers]
    hidden = next(_hidden(bare), None)
    if hidden is not None:
        kind = "Depends" if isinstance(hidden, Dependency) else _class_of(hidden).__name__
        raise InjectionError(
            f"{kind}() of parameter {name!r} of {label(function)} is inside another type, where it"
            f" says nothing; write Annotated[..., {kind}(...)] around the whole type"
        )
    return annotation


def _says_where(marker: Any) -> bool:
    return isinstance(marker, Dependency) or _is_source(marker)


def _of(inner: Any, marker: Any) -> Any:
    nameless = isinstance(marker, Dependency) and marker.call is None
    return replace(marker, call=inner) if nameless else marker


def _class_of(source: Any) -> type:
    return source if isinstance(source, type) else type(source)


def _hidden(annotation: Any) -> Iterator[Any]:
    """Yield the source and dependency markers inside unions and lists."""
    if get_origin(annotation) not in (list, Union, UnionType):
        return
    for each in get_args(annotation):
        inner, markers = split(each)
        yield from filter(_says_where, markers)
        yield from _hidden(inner)


Taken: TypeAlias = tuple[Callable[..., Any], str, Binder]
"""A function, the name of its parameter, and the binder."""


def check_bodies(taken: Sequence[Taken]) -> None:
    """Refuse a function with two JSON bodies, and a JSON body beside parts of a form.

    Args:
        taken: the bound parameters of a handler and its dependencies, grouped by function.

    Raises:
        InjectionError: with the names of the two parameters; a request has one body, and each
            parameter would get all of it.
    """
    models = [(function, name) for function, name, binder in taken if binder.body == "json"]
    forms = [(function, name) for function, name, binder in taken if binder.body == "form"]
    for (function, name), (other, again) in itertools.pairwise(models):
        if function is other and name != again:
            raise InjectionError(
                f"{label(function)} takes the body twice, as {name!r} and as {again!r};"
                " put both into one model"
            )
    if models and forms:
        (function, model), (other, field) = models[0], forms[0]
        beside = "" if function is other else f"{label(other)} takes "
        raise InjectionError(
            f"{label(function)} takes {model!r} from a JSON body and {beside}{field!r} from a form;"
            " a request carries one of them"
        )


def _path(parameter: inspect.Parameter, annotation: Any, function: Callable[..., Any]) -> Binder:
    plain = unconstrained(annotation)
    convert = converter(plain) or text_converter(plain)
    if convert is None:
        raise InjectionError(
            f"Path parameter {parameter.name!r} of {label(function)} is annotated"
            f" {shown(plain)}, which text cannot be converted to; use str, int, UUID, an enum"
            " or a date"
        )
    return path_binder(parameter.name, _checked(convert, value_check(annotation)))


def explicit_source(
    parameter: inspect.Parameter, markers: tuple[Any, ...], function: Callable[..., Any]
) -> Source | None:
    """Return the source marker of a parameter, None without one.

    Raises:
        InjectionError: for a marker or a constraint as the default, where it would be ignored.
    """
    if is_constraint(parameter.default):
        raise InjectionError(
            f"Parameter {parameter.name!r} of {label(function)} has a constraint as its default;"
            " write it into Annotated[..., ...]"
        )
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
        if source.alias is not None:
            raise InjectionError(
                f"Body({source.alias!r}) of parameter {parameter.name!r} of {label(function)} names"
                " a part, and a parameter takes the whole body; write a model with that member"
            )
        decoder = model_decoder(annotation, anything=True)
        assert decoder is not None  # noqa: S101 - guaranteed by `anything`
        return _body_binder(parameter, annotation, decoder)
    if isinstance(source, File):
        many = is_upload(annotation)
        if many is None and annotation is not EMPTY:
            raise InjectionError(
                f"Parameter {parameter.name!r} of {label(function)} is annotated"
                f" {shown(annotation)}, which File() cannot give; use UploadFile or a list of it"
            )
        return file_binder(source, parameter, many=bool(many))
    reader = _reader(annotation, anything=True)
    if reader is None:
        raise InjectionError(
            f"Parameter {parameter.name!r} of {label(function)} is annotated"
            f" {shown(unconstrained(annotation))}, which {type(source).__name__}() cannot give;"
            " use a scalar or a list of one"
        )
    make = form_binder if isinstance(source, Form) else text_binder
    return make(source, parameter, reader.convert, many=reader.many, whole=reader.whole)


def _implied(parameter: inspect.Parameter, annotation: Any) -> Binder | None:
    if annotation is EMPTY:
        return None
    uploads = is_upload(annotation)
    if uploads is not None:
        return file_binder(File(), parameter, many=uploads)
    decoder = model_decoder(annotation)
    if decoder is not None:
        return _body_binder(parameter, annotation, decoder)
    constrained = bool(families(annotation))
    reader = _reader(annotation, anything=constrained)
    if reader is not None:
        return text_binder(Query(), parameter, reader.convert, many=reader.many, whole=reader.whole)
    if constrained:
        raise InjectionError(
            f"The constraint on parameter {parameter.name!r} cannot be checked on"
            f" {shown(unconstrained(annotation))}; use a scalar or a list of one"
        )
    return None


def is_text(annotation: Any) -> bool:
    """Return True if a parameter of that type is read from the query without a marker."""
    return _reader(annotation, anything=bool(families(annotation))) is not None


def is_upload(annotation: Any) -> bool | None:
    """Return True for a list of uploads, False for one upload, each also with None; else None."""
    options = [option for option in options_of(annotation) if option is not type(None)]
    if len(options) != 1:
        return None
    many = get_origin(options[0]) is list
    kind = get_args(options[0])[0] if many else options[0]
    return many if kind is UploadFile else None


class _Reader(NamedTuple):
    """Converts the texts of a request to the value of a parameter.

    Attributes:
        convert: converts and checks one text.
        many: True if the parameter is a list, with one item for each text.
        whole: checks the list, if the list itself has constraints.
    """

    convert: Converter
    many: bool = False
    whole: Check | None = None


def _reader(annotation: Any, *, anything: bool) -> _Reader | None:
    """The reader of a scalar or of a list of scalars; None for any other type.

    Args:
        anything: also types that only pydantic can convert from text.
    """
    if annotation is EMPTY:
        annotation = str
    item = _item(annotation)
    wanted = annotation if item is None else item
    plain = unconstrained(wanted)
    convert = converter(plain)
    if convert is None and anything:
        convert = text_converter(plain)
    if convert is None:
        return None
    if item is None:
        return _Reader(_checked(convert, value_check(annotation)))
    if families(annotation, items=False):
        return _Reader(convert, many=True, whole=value_check(annotation))
    return _Reader(_checked(convert, value_check(item)), many=True)


def _item(annotation: Any) -> Any:
    """The annotation of the items of a list, also of a list or None; None for other types."""
    if get_origin(annotation) is Annotated:
        return _item(get_args(annotation)[0])
    options = [option for option in options_of(annotation) if option is not type(None)]
    if len(options) != 1:
        return None
    if get_origin(options[0]) is Annotated:
        return _item(options[0])
    if isinstance(options[0], NewType):
        return _item(options[0].__supertype__)
    return get_args(options[0])[0] if get_origin(options[0]) is list else None


def _checked(convert: Converter, check: Check | None) -> Converter:
    if check is None:
        return convert
    return lambda text: check(convert(text))


def _body_binder(parameter: inspect.Parameter, annotation: Any, decoder: Decoder) -> Binder:
    async def bind(connection: Any, errors: Errors) -> Any:
        fields = connection.fields
        if fields.get(b"content-type") != b"application/json" or b"content-encoding" in fields:
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

    return Binder(bind, waits=True, body="json")
