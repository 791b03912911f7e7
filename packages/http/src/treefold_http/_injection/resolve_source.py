"""Resolve the source of a parameter that is neither a dependency nor has a provider.

The first line that applies decides; the result is an input of the contract:

    parameter                                   place   name
    id: int  (in /book/[id])                    path    id
    token: Annotated[str, Header("x-token")]    header  x-token
    x_token: Annotated[str, Header()]           header  x-token
    theme: Annotated[str, Cookie()]             cookie  theme
    title: Annotated[str, Form()]               form    title
    scan: Annotated[list[UploadFile], File()]   file    scan
    filters: Annotated[Filters, Query()]        query   the members of the model, see `text_models`
    numbers: Annotated[list[int], Body()]       json    the whole body
    cover: UploadFile                           file    cover
    book: Book  (a model)                       json    the whole body
    q: str                                      query   q
    tags: list[str]                             query   tags, each value of `?tags=a&tags=b`
    clock: Clock = SYSTEM  (a class)            none, its default is used
    clock: Clock  (a class)                     InjectionError, at boot

`resolver` asks here last, after connections, dependencies and providers; `markers` finds the source
that an annotation names.
"""

from __future__ import annotations

import inspect
from dataclasses import replace
from typing import Annotated, Any, NamedTuple

from treefold_http._bodies.uploads import UploadFile
from treefold_http._injection import sources
from treefold_http._injection.contract import Input, Place
from treefold_http._injection.markers import find_source_class, is_source
from treefold_http._injection.text_models import build_model_input
from treefold_http._injection.text_readers import (
    build_text_reader,
    find_list_type,
    is_client_data_type,
    is_pydantic_text_class,
    with_result_check,
)
from treefold_http._json.json import loads
from treefold_http._types import constraints, tree
from treefold_http._types.decode import Decoder, build_model_decoder, build_pydantic_text_converter
from treefold_http._types.parameters import (
    EMPTY,
    InjectionError,
    format_annotation,
    format_callable,
)
from treefold_http._types.scalars import build_scalar_converter
from treefold_http._types.validate import Errors, make_error_entry
from treefold_http._wire.aliases import AnyCallable
from treefold_http._wire.errors import UnprocessableEntity

_PLACES: dict[type[sources.Source], Place] = {
    sources.Query: "query",
    sources.Header: "header",
    sources.Cookie: "cookie",
    sources.Body: "json",
    sources.Form: "form",
    sources.File: "file",
}


class _Declared(NamedTuple):
    """A parameter without its markers, and the function that has it."""

    parameter: inspect.Parameter
    node: tree.TypeNode
    function: AnyCallable

    def make_error(self, text: str) -> InjectionError:
        owner = format_callable(self.function)
        return InjectionError(f"Parameter {self.parameter.name!r} of {owner} {text}")

    def format_type(self) -> str:
        return format_annotation(constraints.build_unconstrained_annotation(self.node))


def resolve_source(
    parameter: inspect.Parameter,
    node: tree.TypeNode,
    source: sources.Source | None,
    *,
    in_path: bool,
    function: AnyCallable,
    kind: str,
) -> Input | None:
    """Return the input that provides a parameter; None if its own default is used.

    Args:
        source: the source that its annotation names.
        in_path: True if the route has a path parameter of that name.
        kind: the connection of the call: `request`, `websocket` or `nothing`.

    Raises:
        InjectionError: when no source can provide the value.
    """
    constraints.refuse_alias_or_default_markers(node.markers)
    find = constraints.find_constraint_package
    kept = tuple(m for m in node.markers if find(m) or hasattr(m, "documentation"))
    if kept != node.markers:
        annotation = Annotated[node.bare_annotation, *kept] if kept else node.bare_annotation
        node = replace(node, annotation=annotation, markers=kept)
    declared = _Declared(parameter, node, function)
    if in_path:
        return _build_path_input(declared)
    if kind != "nothing":
        _refuse_marker_default(declared)
        _refuse_class_without_body(declared)
        if source is not None:
            sent = _build_marked_input(declared, source)
        else:
            sent = _infer_input_from_type(declared)
        if sent is not None and sent.binder.waits and kind == "websocket":
            raise declared.make_error(
                "comes from a body, and a WebSocket has none; receive it as a message"
            )
        if sent is not None:
            return sent
    if parameter.default is not EMPTY:
        return None
    if isinstance(node, tree.Table):
        shown = declared.format_type()
        raise declared.make_error(
            f"is annotated {shown}, which the query cannot provide; annotate it with a model of the"
            f" body, or write Annotated[{shown}, Body()] for any JSON object"
        )
    raise InjectionError(
        f"Nothing provides parameter {parameter.name!r} of {format_callable(function)}; name it"
        " after a path parameter, annotate it with a scalar for the query or a model for the body,"
        " or give it Depends(...)"
    )


def _build_path_input(declared: _Declared) -> Input:
    name, node = declared.parameter.name, declared.node
    convert = build_scalar_converter(node) or build_pydantic_text_converter(node)
    if convert is None:
        raise InjectionError(
            f"Path parameter {name!r} of {format_callable(declared.function)} is annotated"
            f" {declared.format_type()}, which text cannot be converted to; use str, int, UUID,"
            " an enum or a date"
        )
    checked = with_result_check(convert, constraints.build_constraint_check(node))
    binder = sources.build_path_binder(name, checked)
    return Input(place="path", name=name, type=node, binder=binder)


def _refuse_marker_default(declared: _Declared) -> None:
    """Refuse a marker or a constraint as the default, where it would be ignored."""
    default = declared.parameter.default
    if constraints.is_field_or_meta(default):
        raise declared.make_error(
            "has a constraint as its default; write it into Annotated[..., ...]"
        )
    if is_source(default):
        name = find_source_class(default).__name__
        raise declared.make_error(f"has {name}() as its default; write Annotated[..., {name}()]")


def _refuse_class_without_body(declared: _Declared) -> None:
    """Refuse a class that says what to write in its place, such as a model of a database."""
    for each, _ in tree.walk_types(declared.node):
        kind = each.kind if isinstance(each, tree.ForeignType) else None
        if (remedy := getattr(kind, "__parameter_remedy__", None)) is not None:
            raise declared.make_error(f"cannot be of type {format_annotation(kind)}: {remedy}")


def _build_marked_input(declared: _Declared, source: sources.Source) -> Input:
    parameter, node, function = declared
    if isinstance(source, sources.Body):
        if source.alias is not None:
            raise InjectionError(
                f"Body({source.alias!r}) of parameter {parameter.name!r} of"
                f" {format_callable(function)} names a member, but a parameter takes the whole"
                " body; declare a model with that member"
            )
        decoder = build_model_decoder(node, allow_any_type=True)
        assert decoder is not None  # noqa: S101 - guaranteed by `allow_any_type`
        return _build_body_input(declared, decoder)
    if isinstance(source, sources.File):
        many = find_upload_multiplicity(node)
        if many is None and node.annotation is not EMPTY:
            raise declared.make_error(
                f"is annotated {format_annotation(node.bare_annotation)}, which File() cannot"
                " provide; use UploadFile or a list of it"
            )
        return _build_file_input(declared, source, many=bool(many))
    if isinstance(source, (sources.Query, sources.Form)):
        model_input = build_model_input(parameter, node, source, format_callable(function))
        if model_input is not None:
            return model_input
    if (reader := build_text_reader(node, allow_pydantic_types=True)) is None:
        raise declared.make_error(
            f"is annotated {declared.format_type()}, which {type(source).__name__}() cannot"
            " provide; use a scalar or a list of scalars"
        )
    return _build_text_input(declared, source, reader)


def _infer_input_from_type(declared: _Declared) -> Input | None:
    node, source = declared.node, sources.Query()
    if node.annotation is EMPTY:
        return None
    if (uploads := find_upload_multiplicity(node)) is not None:
        return _build_file_input(declared, source, many=uploads)
    if (decoder := build_model_decoder(node)) is not None:
        return _build_body_input(declared, decoder)
    constrained = bool(constraints.find_constraint_packages(node))
    reader = build_text_reader(
        node, allow_pydantic_types=constrained or is_pydantic_text_class(node)
    )
    if reader is not None:
        return _build_text_input(declared, source, reader)
    if constrained:
        raise InjectionError(
            f"The constraint on parameter {declared.parameter.name!r} cannot be checked on"
            f" {declared.format_type()}; use a scalar or a list of scalars"
        )
    if declared.parameter.default is not EMPTY and is_client_data_type(node):
        raise declared.make_error(
            f"is annotated {declared.format_type()}, which the query cannot provide, and its"
            " default would always be used; use a scalar or a list of scalars, or"
            " Annotated[..., Body()]"
        )
    return None


def _build_text_input(
    declared: _Declared, source: sources.Source, reader: sources.TextReader
) -> Input:
    place, default = _PLACES[type(source)], declared.parameter.default
    name = _resolve_source_name(source, declared.parameter)
    if place == "form":
        binder = sources.build_form_field_binder(name, reader, default)
    else:
        binder = sources.build_text_binder(place, name, reader, default)
    return Input(place=place, name=name, type=declared.node, default=default, binder=binder)


def _build_file_input(declared: _Declared, source: sources.Source, *, many: bool) -> Input:
    parameter, node, _ = declared
    name, default = _resolve_source_name(source, parameter), parameter.default
    binder = sources.build_file_binder(name, default, many=many)
    return Input(place="file", name=name, type=node, default=default, many=many, binder=binder)


def _resolve_source_name(source: sources.Source, parameter: inspect.Parameter) -> str:
    """The name of a parameter in its source."""
    if source.alias is not None:
        return source.alias
    name = parameter.name
    return name.replace("_", "-") if isinstance(source, sources.Header) else name


def find_upload_multiplicity(node: tree.TypeNode) -> bool | None:
    """Return True for a list of uploads, False for one upload, each also with None; else None."""
    options = tree.list_options_without_none(node)
    if len(options) != 1:
        return None
    listed = find_list_type(node)
    if listed is not None and listed.kind is list:
        return True if listed.item.bare_annotation is UploadFile else None
    return False if options[0].bare_annotation is UploadFile else None


def _build_body_input(declared: _Declared, decoder: Decoder) -> Input:
    parameter, quick = declared.parameter, decoder.quick

    async def bind_body(connection: Any, errors: Errors) -> Any:
        fields = connection.fields
        # the value that most clients send exactly so needs no parsing
        if fields.get(b"content-type") != b"application/json" or b"content-encoding" in fields:
            connection.check_json_type()
        reader = connection.reader
        if body := await reader.read():
            try:
                if quick is not None and (value := quick.decode(body)) is not None:
                    reader.names = quick.names
                    return value
                document = loads(body)
                # for the log, unless the handler gets parts of it, which it could change
                if not decoder.shares:
                    reader.document = document
                return decoder.decode(body, document)
            except UnprocessableEntity as error:
                errors.extend(map(dict, error.errors or ()))
                return None
        if parameter.default is EMPTY:
            errors.append(make_error_entry(["body"], "is required", "missing"))
        return parameter.default

    binder = sources.Binder(bind_body, waits=True, body="json")
    name, default = parameter.name, parameter.default
    return Input(place="json", name=name, type=declared.node, default=default, binder=binder)
