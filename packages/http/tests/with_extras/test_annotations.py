"""A table of annotations: read, enforced in, enforced out and documented as the tree says.

`fits` is what the tree says of a JSON value, written without a look at the visitors. The reader of
bodies, the serializer of responses and the two schemas are held to it for every pair of an
annotation and a body.
"""

from __future__ import annotations

import base64
import datetime as dt
import decimal
import json
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

import pytest
from http_annotations import JSON, SOURCES, TABLE, UNKNOWN
from jsonschema import Draft202012Validator

from treefold_http import Application
from treefold_http._json.json import dumps, loads
from treefold_http._types.decode import Decoder, build_model_decoder
from treefold_http._types.parameters import InjectionError
from treefold_http._types.read import parse_annotation
from treefold_http._types.serialize import SerializationError, build_serializer
from treefold_http._types.tree import (
    AnyType,
    Choice,
    ForeignType,
    ListType,
    Member,
    Record,
    Scalar,
    Table,
    TupleType,
    TypeNode,
    TypeStatement,
    UnionType,
    walk_types,
)
from treefold_http._types.validate import build_json_check
from treefold_http._wire.errors import UnprocessableEntity
from treefold_http.openapi import openapi_document
from treefold_http.openapi._components import Components
from treefold_http.openapi._schemas import Schemas

LIMITS = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length")


def described(node: TypeNode) -> str:
    """A tree in words."""
    return _limited(node, [])


def _limited(node: TypeNode, seen: list[Any]) -> str:
    limits = " ".join(f"{name}={value}" for name, value in limits_of(node))
    return _described(node, seen) + (f" where {limits}" if limits else "")


def _described(node: TypeNode, seen: list[Any]) -> str:
    def words(part: TypeNode) -> str:
        return _limited(part, seen)

    match node:
        case AnyType():
            return "any"
        case Scalar():
            return node.kind.__name__.replace("NoneType", "None")
        case Choice():
            return f"one of {', '.join(map(repr, node.json_values))}"
        case ListType():
            return f"{node.kind.__name__}[{words(node.item)}]"
        case Table():
            return f"{node.kind.__name__}[{words(node.key)}, {words(node.value)}]"
        case TupleType():
            return f"({', '.join(map(words, node.items))})"
        case UnionType():
            return f"({' | '.join(map(words, node.options))})"
        case TypeStatement():
            name = node.annotation.__name__
            if name in seen:
                return f"{name}: ..."
            seen.append(name)
            return f"{name}: {words(node.target_type)}"
        case Record():
            if node.record_type_key in seen:
                return f"{node.kind.__name__}(...)"
            seen.append(node.record_type_key)
            members = [f"{_name(node, each)}: {words(each.type)}" for each in node.declared_members]
            return f"{node.kind.__name__}({', '.join(members)})"
        case ForeignType():
            return f"foreign {node.kind.__name__}"
        case _:
            raise AssertionError(node)


def _name(record: Record, member: Member) -> str:
    side = "" if member.is_input and member.is_output else " (in)" if member.is_input else " (out)"
    mark = "" if member.required else "?" if record.family == "typed_dict" else "="
    return f"{member.read_as}{side}{mark}"


def limits_of(node: TypeNode) -> list[tuple[str, Any]]:
    """The limits in the metadata of a type, whichever package they are of."""
    flat = [inner for each in node.markers for inner in getattr(each, "metadata", None) or [each]]
    named = [(name, getattr(each, name, None)) for each in flat for name in LIMITS]
    return [(name, value) for name, value in named if value is not None]


class Unsaid(Exception):
    """The tree leaves it open: unknown members, and the JSON form of bytes and durations."""


def _parses(parse: Callable[[str], Any]) -> Callable[[Any], bool]:
    def fit(value: Any) -> bool:
        try:
            parse(value)
        except (ValueError, TypeError, AttributeError, decimal.InvalidOperation):
            return False
        return isinstance(value, str)

    return fit


SCALARS: Mapping[Any, Callable[[Any], bool]] = {
    str: lambda value: isinstance(value, str),
    int: lambda value: type(value) is int,
    float: lambda value: type(value) in (int, float),
    bool: lambda value: isinstance(value, bool),
    type(None): lambda value: value is None,
    decimal.Decimal: _parses(decimal.Decimal),
    uuid.UUID: _parses(uuid.UUID),
    dt.datetime: _parses(dt.datetime.fromisoformat),
    dt.date: _parses(dt.date.fromisoformat),
    dt.time: _parses(dt.time.fromisoformat),
}
FORMATS = (decimal.Decimal, uuid.UUID, dt.datetime, dt.date, dt.time)
"""Types whose schema has a `format`, which a validator does not check."""


def fits(node: TypeNode, value: Any, *, out: bool = False) -> bool:
    """Return True for a JSON value of a type; `out` for a response.

    Raises:
        Unsaid: where the tree does not say.
    """
    return _is_of(node, value, out) and all(_holds(*limit, value) for limit in limits_of(node))


def _is_of(node: TypeNode, value: Any, out: bool) -> bool:
    match node:
        case AnyType():
            return True
        case Scalar():
            if node.kind not in SCALARS:
                raise Unsaid
            return SCALARS[node.kind](value)
        case Choice():
            return any(type(value) is type(each) and value == each for each in node.json_values)
        case ListType():
            if node.kind is set and {"[[", "[{"} & {json.dumps(value)[:2]}:
                raise Unsaid  # Python cannot hold a list in a set
            return isinstance(value, list) and all(
                fits(node.item, each, out=out) for each in cast("list[Any]", value)
            )
        case TupleType():
            items = cast("list[Any]", value)
            return (
                isinstance(value, list)
                and len(items) == len(node.items)
                and all(
                    fits(kind, each, out=out) for kind, each in zip(node.items, items, strict=True)
                )
            )
        case Table():
            return isinstance(value, dict) and all(
                fits(node.key, name, out=out) and fits(node.value, each, out=out)
                for name, each in cast("dict[str, Any]", value).items()
            )
        case UnionType():
            return _any(node, value, out)
        case TypeStatement():
            return fits(node.target_type, value, out=out)
        case Record():
            return _is_record(node, value, out)
        case _:
            raise Unsaid


def _any(node: UnionType, value: Any, out: bool) -> bool:
    unsaid = False
    for option in node.options:
        try:
            if fits(option, value, out=out):
                return True
        except Unsaid:
            unsaid = True
    if unsaid:
        raise Unsaid
    return False


def _is_record(node: Record, value: Any, out: bool) -> bool:
    if not isinstance(value, dict):
        return False
    given = cast("dict[str, Any]", value)
    members = {
        (each.written_as if out else each.read_as): each
        for each in node.declared_members
        if (each.is_output if out else each.is_input)
    }
    known = [
        fits(members[name].type, each, out=out) for name, each in given.items() if name in members
    ]
    if not all(known) or any(each.required and name not in given for name, each in members.items()):
        return False
    if given.keys() - members.keys():
        raise Unsaid
    return True


def _holds(name: str, limit: Any, value: Any) -> bool:
    checks: Mapping[str, Callable[[], bool]] = {
        "gt": lambda: value > limit,
        "ge": lambda: value >= limit,
        "lt": lambda: value < limit,
        "le": lambda: value <= limit,
        "multiple_of": lambda: value % limit == 0,
        "min_length": lambda: len(value) >= limit,
        "max_length": lambda: len(value) <= limit,
    }
    return checks[name]()


def is_plain(node: TypeNode) -> bool:
    """True for a type that the standard library reads from JSON."""
    match node:
        case ListType():
            return node.kind is list
        case Table():
            return node.kind in (dict, Mapping) and fits_text(node.key)
        case Record():
            return node.family in ("dataclass", "typed_dict")
        case _:
            return isinstance(node, Scalar) and node.kind in SCALARS


def fits_text(key: TypeNode) -> bool:
    return isinstance(key, AnyType) or (isinstance(key, Scalar) and key.kind is str)


def said(node: TypeNode, *, out: bool = False) -> list[tuple[Any, bool]]:
    """The bodies of which the tree says something, each with what it says."""
    found: list[tuple[Any, bool]] = []
    for value in JSON:
        try:
            found.append((value, fits(node, value, out=out)))
        except Unsaid:
            continue
    return found


def accepts(decoder: Decoder, value: Any) -> tuple[bool, Any]:
    body = json.dumps(value).encode()
    try:
        return True, decoder.decode(body, loads(body))
    except UnprocessableEntity:
        return False, None


def validator(node: TypeNode, *, out: bool) -> Any:
    components = Components()
    schemas = Schemas(components)
    schema = schemas.build_type_schema(node, "output") if out else schemas.build_body_schema(node)
    named = components.resolve_named_schemas()
    return Draft202012Validator({**schema, "components": {"schemas": named}})


def is_exact(node: TypeNode) -> bool:
    """True if the schema says all that is enforced."""
    return not any(
        isinstance(each, Scalar) and each.kind in FORMATS for each, _ in walk_types(node)
    )


ROWS = [pytest.param(*row, id=re.sub(r"\W+", " ", row[1])[:50]) for row in TABLE]
KNOWN = [
    pytest.param(annotation, id=row.id) for (annotation, _), row in zip(TABLE, ROWS, strict=True)
]


def test_the_table_is_long() -> None:
    assert len(TABLE) + len(UNKNOWN) >= 150


@pytest.mark.parametrize(("annotation", "tree"), [*TABLE, *UNKNOWN])
def test_an_annotation_is_read(annotation: Any, tree: str) -> None:
    assert described(parse_annotation(annotation)) == tree


@pytest.mark.parametrize("annotation", KNOWN)
def test_a_tree_is_equal_to_that_of_the_same_annotation(annotation: Any) -> None:
    assert parse_annotation(annotation) == parse_annotation(annotation)


@pytest.mark.parametrize("annotation", KNOWN)
def test_a_type_is_enforced_in(annotation: Any) -> None:
    """What fits is accepted, and what is accepted fits once it is read: pydantic reads "5" as 5."""
    node = parse_annotation(annotation)
    decoder = build_model_decoder(node, allow_any_type=True)
    assert decoder is not None
    write = build_serializer(node)

    for value, fit in said(node):
        accepted, made = accepts(decoder, value)
        assert accepted or not fit, value
        if accepted and not fit:
            written = json.loads(dumps(write(made)))
            assert fits(node, written, out=True), (value, written)


@pytest.mark.parametrize("annotation", KNOWN)
def test_a_type_is_enforced_in_by_the_standard_library(annotation: Any) -> None:
    """Without pydantic and msgspec, exactly what fits is accepted; other types are refused."""
    node = parse_annotation(annotation)
    try:
        check = build_json_check(node)
    except InjectionError:
        kept = (ListType, TupleType, Table, Scalar, Record)
        assert any(isinstance(each, kept) and not is_plain(each) for each, _ in walk_types(node))
        return
    for value, fit in said(node):
        errors: list[dict[str, Any]] = []
        check(value, ["body"], errors)
        assert (errors == []) is fit, value


@pytest.mark.parametrize("annotation", KNOWN)
def test_a_type_is_enforced_out(annotation: Any) -> None:
    """What fits is sent, and what is sent fits, with the schema of the response as well."""
    node = parse_annotation(annotation)
    write, schema = build_serializer(node), validator(node, out=True)

    for value, fit in said(node, out=True):
        try:
            written = json.loads(dumps(write(value)))
        except SerializationError:
            assert not fit, value
            continue
        assert fits(node, written, out=True), (value, written)
        assert schema.is_valid(written), (value, written)


@pytest.mark.parametrize("annotation", KNOWN)
def test_a_type_is_documented(annotation: Any) -> None:
    """The schema of a body accepts what fits, and nothing else where it can say so."""
    node = parse_annotation(annotation)
    schema = validator(node, out=False)
    Draft202012Validator.check_schema(schema.schema)

    for value, fit in said(node):
        valid = schema.is_valid(value)
        assert valid or not fit, value
        assert fit or not valid or not is_exact(node), value


HANDLER = """
from annotated_types import Gt, MinLen
from typing import Annotated
from http_annotations import Item

async def handler({}): ...
"""


@pytest.mark.parametrize(("parameter", "place", "name", "tree", "required"), SOURCES)
def test_a_parameter_is_read_and_documented(
    serving: Callable[..., Application],
    parameter: str,
    place: str,
    name: str,
    tree: str,
    required: bool,
) -> None:
    app = serving(HANDLER.format(parameter), file="Api/v1/X/[id]/Post.py")
    document = openapi_document(app)["paths"]["/v1/x/{id}"]["post"]
    (plan,) = app.project.plans.values()
    (sent,) = plan.contract.inputs

    assert (sent.place, sent.name, described(sent.type)) == (place, name, tree)
    assert sent.is_required is required
    if place in ("json", "form", "file"):
        assert document["requestBody"]["required"] is required
        media = "application/json" if place == "json" else "multipart/form-data"
        schema = document["requestBody"]["content"][media]["schema"]
        assert place == "json" or list(schema["properties"]) == [name]
    else:
        known = {(each["in"], each["name"]): each["required"] for each in document["parameters"]}
        assert known[place, name] is required


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes_are_sent_as_base64_and_documented_so(kind: type[bytes]) -> None:
    node = parse_annotation(kind)
    written = json.loads(dumps(build_serializer(node)(kind(b"ab"))))

    assert base64.b64decode(written) == b"ab"
    assert validator(node, out=True).schema["contentEncoding"] == "base64"
    with pytest.raises(SerializationError, match="should be"):
        build_serializer(node)("ab")
