"""Scalars: from text to the annotated type, and their JSON Schemas.

A converter takes the text of one value and returns the typed value, or raises `ValueError` with a
message for the client. It ignores constraints, which `constraints` checks on the typed value.
"""

from __future__ import annotations

import datetime
import decimal
import math
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from treefold_http._runtime.settings import SPELLINGS
from treefold_http._types import tree
from treefold_http._types.limits_missed import LimitMissed, build_expected_values_context
from treefold_http._types.parameters import format_annotation

Converter: TypeAlias = Callable[[str], Any]


class ScalarForm(NamedTuple):
    """The forms of a scalar outside of Python.

    Attributes:
        schema: the JSON Schema of its JSON form.
        convert: converts text; None for a type that path, query and header cannot have.
    """

    schema: Mapping[str, Any]
    convert: Converter | None = None


# `[0-9]`, since `int` and `\d` accept digits of all scripts. `int` refuses more than 4,300 of them,
# and would take quadratic time.
_integer = re.compile(r"[+-]?[0-9]{1,4300}").fullmatch
# Possessive, so that no text makes it backtrack. The exponent is bounded: `Decimal("1E+999999999")`
# is small until it is written without an exponent, and then has a gigabyte.
_number = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,6}+)?").fullmatch
# The same in the syntax of JSON Schema, which has no possessive quantifiers.
_NUMBER_PATTERN = r"^[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?$"
# `uuid.UUID` also takes braces, `urn:uuid:` and hyphens anywhere
_uuid = re.compile(r"[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}").fullmatch


def _parse_int(text: str) -> int:
    if not _integer(text):
        raise ValueError("should be an integer")
    return int(text)


def _parse_float(text: str) -> float:
    # "1e999" has the form of a number and is infinite
    if not _number(text) or math.isinf(value := float(text)):
        raise ValueError("should be a finite number")
    return value


def _parse_decimal(text: str) -> decimal.Decimal:
    if not _number(text):
        raise ValueError("should be a finite number")
    return decimal.Decimal(text)


def _parse_uuid(text: str) -> uuid.UUID:
    if not _uuid(text):
        raise ValueError("should be a UUID")
    return uuid.UUID(text)


def _parse_bool(text: str) -> bool:
    try:
        return SPELLINGS[text.lower()]
    except KeyError:
        raise ValueError("should be true or false") from None


# The look-aheads refuse "P" and "P1DT"; the bounds keep numbers small before they are multiplied.
_iso_duration = re.compile(
    r"([+-]?)P(?=.*[0-9])(?:([0-9]{1,9})W)?(?:([0-9]{1,9})D)?"
    r"(?:T(?=.)(?:([0-9]{1,9})H)?(?:([0-9]{1,9})M)?(?:([0-9]{1,12}(?:\.[0-9]{1,9})?)S)?)?"
).fullmatch


def _parse_duration(text: str) -> datetime.timedelta:
    if (found := _iso_duration(text)) is None:
        raise ValueError
    sign, weeks, days, hours, minutes, seconds = found.groups(default="")
    whole = datetime.timedelta(
        weeks=int(weeks or 0), days=int(days or 0), hours=int(hours or 0), minutes=int(minutes or 0)
    )
    # decimal: `int(float("1.001") * 1_000_000)` is 1000999
    whole += datetime.timedelta(microseconds=int(decimal.Decimal(seconds or 0) * 1_000_000))
    return -whole if sign == "-" else whole


def _with_error_message(parse: Converter, words: str) -> Converter:
    def convert_text(text: str) -> Any:
        try:
            return parse(text)
        # "P999999999W" has the form, and more days than a timedelta can have
        except (ValueError, OverflowError):
            raise ValueError(words) from None

    return convert_text


def _build_text_schema(format_name: str) -> Mapping[str, Any]:
    return {"type": "string", "format": format_name}


DECIMAL = {**_build_text_schema("decimal"), "pattern": _NUMBER_PATTERN}
"""The JSON Schema of a decimal: the texts that `_parse_decimal` converts."""
_BASE64 = {"type": "string", "contentEncoding": "base64"}
SCALARS: Mapping[Any, ScalarForm] = {
    type(None): ScalarForm({"type": "null"}),
    bool: ScalarForm({"type": "boolean"}, _parse_bool),
    int: ScalarForm({"type": "integer"}, _parse_int),
    float: ScalarForm({"type": "number"}, _parse_float),
    str: ScalarForm({"type": "string"}, str),
    bytes: ScalarForm(_BASE64),
    bytearray: ScalarForm(_BASE64),
    decimal.Decimal: ScalarForm(DECIMAL, _parse_decimal),
    uuid.UUID: ScalarForm(_build_text_schema("uuid"), _parse_uuid),
    datetime.datetime: ScalarForm(
        _build_text_schema("date-time"),
        _with_error_message(
            datetime.datetime.fromisoformat, "should be a date and time in ISO 8601"
        ),
    ),
    datetime.date: ScalarForm(
        _build_text_schema("date"),
        _with_error_message(datetime.date.fromisoformat, "should be a date in ISO 8601"),
    ),
    datetime.time: ScalarForm(
        _build_text_schema("time"),
        _with_error_message(datetime.time.fromisoformat, "should be a time in ISO 8601"),
    ),
    datetime.timedelta: ScalarForm(
        _build_text_schema("duration"),
        _with_error_message(_parse_duration, "should be a duration in ISO 8601, such as PT90S"),
    ),
}
"""Type to its forms; subclasses of these types are foreign."""


def build_scalar_converter(node: tree.TypeNode) -> Converter | None:
    """Return the converter for a scalar, an enum, `Literal`, or a union of them, also with None.

    None for any other type.
    """
    match node:
        case tree.Scalar():
            return SCALARS[node.kind].convert
        case tree.Choice(kind=None):
            return _build_choice_converter(dict(_iter_spellings(node.members)))
        case tree.Choice():
            texts = map(_to_text, node.json_values)
            return _build_choice_converter(dict(zip(texts, node.members, strict=True)))
        case tree.UnionType():
            options = tree.list_options_without_none(node)
            options = sorted(options, key=lambda option: option.bare_annotation is str)
            return _build_union_converter(options)
        case _:
            return None


def _iter_spellings(choices: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for choice in choices:
        yield _to_text(choice), choice
        if isinstance(choice, bool):
            # for `Literal[True]`, the spellings that `bool` takes
            yield from (each for each in SPELLINGS.items() if each[1] is choice)


def _build_union_converter(options: Sequence[tree.TypeNode]) -> Converter | None:
    """The converter of a union: the first option that takes the text, and str takes any."""
    converters = [made for made in map(build_scalar_converter, options) if made is not None]
    if len(converters) < 2 or len(converters) < len(options):
        return converters[0] if len(converters) == len(options) == 1 else None
    shown = ", ".join(format_annotation(option.bare_annotation) for option in options)
    words = f"should be one of {shown}"

    def convert_text(text: str) -> Any:
        for each in converters:
            try:
                return each(text)
            except ValueError:
                continue
        raise ValueError(words)

    return convert_text


def _to_text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _build_choice_converter(choices: Mapping[str, Any]) -> Converter:
    words = f"should be one of {', '.join(choices)}"
    context = build_expected_values_context(choices)

    def convert_text(text: str) -> Any:
        try:
            return choices[text]
        except KeyError:
            raise LimitMissed(words, context) from None

    return convert_text
