"""What a route takes, as facts: parameters, bodies and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from treefold_contract import (
    NULL,
    AnyType,
    Body,
    Input,
    ListType,
    Member,
    Record,
    Reference,
    Scalar,
    TypeNode,
    UnionType,
)
from treefold_http._description.routes import RouteDescription
from treefold_http._facts.named_types import NamedTypes
from treefold_http._facts.records import format_default
from treefold_http._facts.type_reader import TypeReader
from treefold_http._injection.contract import Input as PlannedInput
from treefold_http._types.decode import find_decoding_package
from treefold_http._types.tree import AnyType as AnyAnnotation, TypeNode as AnnotatedType
from treefold_router import parameter_name

_FILE = Scalar("file")
_PARAMETERS: tuple[Literal["query", "header", "cookie"], ...] = ("query", "header", "cookie")


def list_inputs(described: RouteDescription, named: NamedTypes) -> list[Input]:
    """Return the parameters and the files of a route."""
    reader = TypeReader(named, "request")
    found = [
        Input(place, each.name, *_read_value(each, reader))
        for place in _PARAMETERS
        for each in described.select_inputs(place)
    ]
    return found + [_build_file(each) for each in described.select_inputs("file")]


def _read_value(planned: PlannedInput, reader: TypeReader) -> tuple[TypeNode, bool, str]:
    """Return the type of a text, True if it may be left out, and its default."""
    node = _without_null(reader.read(planned.type))
    is_optional = not planned.is_required and planned.default is None
    default = "" if planned.is_required or is_optional else format_default(planned.default)
    # a parameter of several values has the default of none
    return (node, True, "") if default == "[]" else (node, is_optional, default)


def _build_file(planned: PlannedInput) -> Input:
    node = ListType(_FILE) if planned.many else _FILE
    return Input("file", planned.name, node, is_optional=not planned.is_required)


def _without_null(node: TypeNode) -> TypeNode:
    """Return a type without null, which no text of a request can be."""
    if not isinstance(node, UnionType):
        return node
    options = tuple(option for option in node.options if option != NULL)
    return options[0] if len(options) == 1 else replace(node, options=options)


def read_path_types(described: RouteDescription, named: NamedTypes) -> dict[str, TypeNode]:
    """Return the types of the path parameters by the name that the handler has for them."""
    reader = TypeReader(named, "request")
    return {each.name: reader.read(each.type) for each in described.select_inputs("path")}


def list_bodies(described: RouteDescription, named: NamedTypes) -> list[Body]:
    """Return the bodies of a route by media type."""
    models, fields = described.select_inputs("json"), described.select_inputs("form")
    files = described.select_inputs("file")
    if models:
        node = _read_models(described, [model.type for model in models], named)
        return [Body("json", node, not any(model.is_required for model in models))]
    if files and not fields:
        return []  # the files say it
    if fields:
        node = _refer_to_form(described, fields, named)
        is_optional = not any(each.is_required for each in (*fields, *files))
        media = ("multipart",) if files else ("form", "multipart")
        return [Body(each, node, is_optional) for each in media]
    return _list_raw_bodies(described.reading.calls)


def _read_models(
    described: RouteDescription, models: Sequence[AnnotatedType], named: NamedTypes
) -> TypeNode:
    nodes = [read_body_type(model, named) for model in models]
    if len(nodes) == 1:
        return nodes[0]
    # each parameter reads the whole body, which must have the members of all
    members: list[Member] = []
    for node in nodes:
        found = named.types[node.name].views["request"] if isinstance(node, Reference) else None
        if not isinstance(found, Record):
            return AnyType()
        members += found.members
    return _refer_to_record(described, "Body", Record(tuple(members)), named)


def read_body_type(model: AnnotatedType, named: NamedTypes) -> TypeNode:
    """Return the type of a JSON value that a client sends."""
    if isinstance(model, AnyAnnotation):
        return AnyType()
    try:
        package = find_decoding_package(model)
    except Exception:  # the message of a socket may be of a type that nothing decodes
        package = None
    return TypeReader(named, "request", package).read(model)


def _refer_to_form(
    described: RouteDescription, fields: Sequence[PlannedInput], named: NamedTypes
) -> TypeNode:
    reader = TypeReader(named, "request")
    members = tuple(Member(field.name, *_read_value(field, reader)) for field in fields)
    return _refer_to_record(described, "Form", Record(members), named)


def _refer_to_record(
    described: RouteDescription, suffix: str, record: Record, named: NamedTypes
) -> TypeNode:
    """Return a reference to a record that has no class, named by its route."""
    folders = described.route.file.split("/")[1:-1]
    statics = [folder for folder in folders if parameter_name(folder) is None]
    words = [*statics[-1:], described.route.method.capitalize(), suffix]
    name = "".join(word[:1].upper() + word[1:] for word in words)
    identity = (described.handler_function, suffix)
    return named.refer(identity, name, described.handler_function, "request", lambda: record)


def _list_raw_bodies(calls: frozenset[str]) -> list[Body]:
    """Return the bodies of a handler that reads them itself, of any `Content-Type`."""
    media: list[str] = []
    if "json" in calls:
        media.append("json")
    if "form" in calls:
        media.append("form")
    if calls & {"form", "files", "parts"}:
        media.append("multipart")
    if not media and calls & {"body", "stream"}:
        media.append("bytes")
    return [Body(each, AnyType(), is_optional=True, is_lenient=each == "json") for each in media]
