"""Random types and their real values: whatever our JSON writes fits the schema of the type."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import re
import uuid
from importlib import import_module
from typing import Annotated, Any, Literal, TypedDict, cast, get_args

import msgspec
import pydantic
import pytest
from hypothesis import given, settings, strategies as st
from jsonschema import Draft202012Validator, ValidationError

from treefold_http._json.json import dumps
from treefold_http._types.decode import build_model_decoder
from treefold_http._types.read import parse_annotation
from treefold_http._types.scalars import DECIMAL, SCALARS
from treefold_http._types.serialize import SerializationError, build_serializer
from treefold_http._types.validate import build_json_check
from treefold_http._wire.errors import HTTPError
from treefold_http.openapi._components import Components
from treefold_http.openapi._schemas import Mode, Schemas


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Rank(enum.IntEnum):
    LOW = 1
    HIGH = 2


NAMES = st.sampled_from(["name", "size", "items", "class_", "Ü", "a_b"])
LEAVES: list[tuple[Any, st.SearchStrategy[Any]]] = [
    (str, st.text(st.characters(codec="utf-8"), max_size=5)),
    (int, st.integers(-(2**60), 2**60)),
    (bool, st.booleans()),
    (float, st.floats(allow_nan=False, allow_infinity=False)),
    (type(None), st.none()),
    (bytes, st.binary(max_size=5)),
    (decimal.Decimal, st.decimals(allow_nan=False, allow_infinity=False)),
    (uuid.UUID, st.uuids()),
    (datetime.datetime, st.datetimes(timezones=st.just(datetime.UTC))),
    (datetime.date, st.dates()),
    (datetime.time, st.times()),
    (datetime.timedelta, st.timedeltas()),
    (Colour, st.sampled_from(Colour)),
    (Rank, st.sampled_from(Rank)),
    (Literal["a", 1], st.sampled_from(["a", 1])),
]
"""Types and what makes values of them."""

JSON_LEAVES = [pair for pair in LEAVES if pair[0] not in (bytes, datetime.timedelta)]
"""Those that a body can hold without pydantic and msgspec."""

Typed = tuple[Any, st.SearchStrategy[Any]]


@st.composite
def types(draw: st.DrawFn, leaves: list[Typed], depth: int = 3) -> Typed:
    """A type with what makes values of it."""
    form = draw(st.sampled_from(["leaf", "list", "dict", "optional", "union", "class", "typed"]))
    if depth == 0 or form == "leaf":
        return draw(st.sampled_from(leaves))
    if form in ("class", "typed"):
        return draw(records(leaves, depth, typed=form == "typed"))
    kind, values = draw(types(leaves, depth - 1))
    if form == "list":
        return list[kind], st.lists(values, max_size=3)
    if form == "dict":
        return dict[str, kind], st.dictionaries(st.text("abc", max_size=3), values, max_size=3)
    if form == "optional":
        return kind | None, st.none() | values
    other, more = draw(types(leaves, depth - 1))
    return kind | other, values | more


@st.composite
def records(draw: st.DrawFn, leaves: list[Typed], depth: int, *, typed: bool) -> Typed:
    """A dataclass, some of its fields with a default; or a TypedDict."""
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    fields = {name: draw(types(leaves, depth - 1)) for name in names}
    if typed:
        hints = {name: kind for name, (kind, _) in fields.items()}
        made: Any = cast("Any", TypedDict)("Table", hints)
        return made, st.fixed_dictionaries({name: values for name, (_, values) in fields.items()})
    optional = {name for name in names if draw(st.booleans())}
    ordered = sorted(names, key=lambda name: name in optional)
    made = dataclasses.make_dataclass(
        draw(st.sampled_from(["Item", "Other"])),
        [
            (name, fields[name][0] | None, dataclasses.field(default=None))
            if name in optional
            else (name, fields[name][0])
            for name in ordered
        ],
        kw_only=True,
    )
    return made, st.builds(made, **{name: values for name, (_, values) in fields.items()})


def validator_of(kind: Any, mode: Mode) -> Any:
    components = Components()
    schema = Schemas(components).build_type_schema(parse_annotation(kind), mode)
    named = components.resolve_named_schemas()
    document = {**schema, "components": {"schemas": named}}
    Draft202012Validator.check_schema(document)
    return Draft202012Validator(document)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_written_fits_the_schema_of_what_is_given(data: st.DataObject) -> None:
    kind, values = data.draw(types(LEAVES))
    validator = validator_of(kind, "output")

    for _ in range(3):
        validator.validate(json.loads(dumps(data.draw(values))))


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_is_taken_fits_the_schema_of_what_is_taken(data: st.DataObject) -> None:
    """Our own checks of a body and the schema agree on the values of a type."""
    kind, values = data.draw(types(JSON_LEAVES))
    check, validator = build_json_check(parse_annotation(kind)), validator_of(kind, "checked")
    document = json.loads(dumps(data.draw(values)))
    errors: list[dict[str, Any]] = []

    check(document, ["body"], errors)
    assert errors == []
    validator.validate(document)


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text("ab", max_size=2),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(st.sampled_from(["name", "size", "x"]), inner, max_size=3)
    ),
    max_leaves=5,
)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_fits_the_schema_is_taken_and_what_does_not_is_refused(data: st.DataObject) -> None:
    plain = [pair for pair in LEAVES if pair[0] in (str, int, bool, type(None), Colour, Rank)]
    kind, _ = data.draw(types(plain))
    check, validator = build_json_check(parse_annotation(kind)), validator_of(kind, "checked")
    document = data.draw(ANYTHING)
    errors: list[dict[str, Any]] = []
    check(document, ["body"], errors)

    assert validator.is_valid(document) is (errors == [])


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_what_a_response_model_lets_out_is_the_value_and_fits_its_schema(
    data: st.DataObject,
) -> None:
    kind, values = data.draw(types(LEAVES))
    shape, validator = build_serializer(parse_annotation(kind)), validator_of(kind, "output")
    value = data.draw(values)
    sent = json.loads(dumps(shape(value)))

    validator.validate(sent)
    if "|" not in repr(fields_of(kind)):  # of two tables that take a value, the first one sends
        assert sent == json.loads(dumps(value))


def fields_of(kind: Any) -> Any:
    """A type with the types of its fields, all the way down."""
    arguments = tuple(map(fields_of, get_args(kind)))
    hints: dict[str, Any] = getattr(kind, "__annotations__", {})
    return kind, arguments, {name: fields_of(hint) for name, hint in hints.items()}


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_a_response_model_lets_out_of_anything_fits_its_schema(data: st.DataObject) -> None:
    kind, _ = data.draw(types(LEAVES))
    try:
        sent = build_serializer(parse_annotation(kind))(data.draw(ANYTHING))
    except SerializationError:
        return
    validator_of(kind, "output").validate(json.loads(dumps(sent)))


def test_the_validator_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValidationError):
        validator_of(list[int], "output").validate(["text"])


@dataclasses.dataclass
class Price:
    amount: decimal.Decimal


class PriceModel(pydantic.BaseModel):
    amount: decimal.Decimal


class PriceStruct(msgspec.Struct):
    amount: decimal.Decimal


HOSTILE = (
    *("", " ", "1", "1.5", "-0", "+1", ".5", "5.", ".", "+", "-", "--1", "1..5", "1.5.1", "00.10"),
    *("1e5", "1E+5", "1e-5", "1e", "e5", "1e+", ".e5", "1e999999", "1e1000000", "1e5.5"),
    *("NaN", "nan", "sNaN", "Infinity", "-Infinity", "inf", "null", "0x1", "1L", "1,5", "1_000"),
    *(
        " 1",
        "1 ",
        "\t1",
        "1\n",
        "\n",
        "1\u2028",
        "\u0661",
        "1\u0662",
        "\u0967.5",
        "\uff11",
        "\u00b2",
    ),
    *("1\0", "\u22121", "1" * 5000, "1" * 5000 + "x"),
)
NUMBERS = st.text(st.sampled_from("0015..eE+-_ \n,N\u0661"), max_size=8)


def match_pattern(validator: Any, pattern: str, instance: Any, schema: Any) -> Any:
    """Evaluate a pattern as JSON Schema says: `$` is the end, in Python also before a line end."""
    assert pattern.endswith("$")
    if isinstance(instance, str) and not re.search(pattern[:-1] + r"\Z", instance):
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


_validators: Any = import_module("jsonschema.validators")
EcmaValidator = _validators.extend(Draft202012Validator, {"pattern": match_pattern})


def decimal_outcomes(kind: Any, text: str) -> tuple[bool, bool]:
    """True if the schema of a body admits a text; True if the reader of the body takes it."""
    node = parse_annotation(kind)
    components = Components()
    schema = Schemas(components).build_body_schema(node)
    named = {"schemas": components.resolve_named_schemas()}
    document = {"amount": text}
    decoder = build_model_decoder(node)
    assert decoder is not None
    try:
        decoder.decode(json.dumps(document).encode(), document)
    except HTTPError:
        taken = False
    else:
        taken = True
    return EcmaValidator({**schema, "components": named}).is_valid(document), taken


def check_decimal_text(text: str) -> None:
    convert = SCALARS[decimal.Decimal].convert
    assert convert is not None
    errors: list[dict[str, Any]] = []
    build_json_check(parse_annotation(Price))({"amount": text}, ["body"], errors)
    try:
        convert(text)
    except ValueError:
        converted = False
    else:
        converted = True

    assert EcmaValidator(DECIMAL).is_valid(text) is converted is (errors == [])
    for kind in (Price, PriceModel, PriceStruct):
        admitted, taken = decimal_outcomes(kind, text)
        assert admitted is converted
        # pydantic and msgspec take some texts more, such as `1_000`, as they do of other types
        assert taken or not admitted


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: ascii(text)[:20])
def test_the_schema_of_a_decimal_admits_what_its_reader_takes(text: str) -> None:
    check_decimal_text(text)


@settings(max_examples=300, deadline=None)
@given(NUMBERS | st.decimals(allow_nan=False, allow_infinity=False).map(str))
def test_any_text_is_a_decimal_to_the_schema_and_the_reader_or_to_neither(text: str) -> None:
    check_decimal_text(text)


@pytest.mark.parametrize("kind", [Price, PriceModel, PriceStruct])
def test_no_reader_of_a_decimal_takes_an_empty_text(kind: Any) -> None:
    assert decimal_outcomes(kind, "") == (False, False)
    assert decimal_outcomes(kind, "1.50") == (True, True)


def test_a_decimal_that_may_be_infinite_has_no_pattern() -> None:
    class Open(pydantic.BaseModel):
        amount: Annotated[decimal.Decimal, pydantic.Field(allow_inf_nan=True)]

    assert decimal_outcomes(Open, "Infinity")[0]
    assert not decimal_outcomes(PriceModel, "Infinity")[0]
