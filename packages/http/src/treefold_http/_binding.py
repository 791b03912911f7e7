"""From text to the annotated type: path parameters and query values (rulings, 'Handlers').

A converter takes the text of one value and returns the typed value, or raises `ValueError` with a
message for the client. `_injection` decides the source of each parameter.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import math
import re
import types
import typing
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

Converter: TypeAlias = Callable[[str], Any]

_integer = re.compile(r"[+-]?[0-9]{1,4300}").fullmatch
_number = re.compile(r"[+-]?(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]{1,6}+)?").fullmatch
_uuid = re.compile(r"[0-9A-Fa-f]{8}-?(?:[0-9A-Fa-f]{4}-?){3}[0-9A-Fa-f]{12}").fullmatch
_SPELLINGS = {"true": True, "1": True, "on": True, "yes": True} | {
    "false": False,
    "0": False,
    "off": False,
    "no": False,
}


def _int(text: str) -> int:
    if not _integer(text):
        raise ValueError("should be an integer")
    return int(text)


def _float(text: str) -> float:
    if not _number(text) or math.isinf(value := float(text)):
        raise ValueError("should be a finite number")
    return value


def _decimal(text: str) -> decimal.Decimal:
    if not _number(text):
        raise ValueError("should be a finite number")
    return decimal.Decimal(text)


def _uuid_value(text: str) -> uuid.UUID:
    if not _uuid(text):
        raise ValueError("should be a UUID")
    return uuid.UUID(text)


def _bool(text: str) -> bool:
    try:
        return _SPELLINGS[text.lower()]
    except KeyError:
        raise ValueError("should be true or false") from None


def _by(parse: Converter, words: str) -> Converter:
    def convert(text: str) -> Any:
        try:
            return parse(text)
        except (ValueError, OverflowError):
            raise ValueError(words) from None

    return convert


_SCALARS: Mapping[Any, Converter] = {
    str: str,
    int: _int,
    float: _float,
    bool: _bool,
    decimal.Decimal: _decimal,
    uuid.UUID: _uuid_value,
    datetime.datetime: _by(
        datetime.datetime.fromisoformat, "should be a date and time in ISO 8601"
    ),
    datetime.date: _by(datetime.date.fromisoformat, "should be a date in ISO 8601"),
    datetime.time: _by(datetime.time.fromisoformat, "should be a time in ISO 8601"),
}


def converter(annotation: Any) -> Converter | None:
    """Return the converter for a scalar annotation; None for any other annotation.

    Scalars are str, int, float, bool, Decimal, UUID, datetime, date, time, enums, `Literal`, a
    `NewType` of one, and unions of them, also with None.
    """
    known = _SCALARS.get(annotation) if isinstance(annotation, type) else None
    if known is not None:
        return known
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return _member({_text(member.value): member for member in annotation})
    origin = typing.get_origin(annotation)
    if origin is Literal:
        return _member(dict(_spellings(typing.get_args(annotation))))
    if origin in (typing.Union, types.UnionType):
        options = [option for option in typing.get_args(annotation) if option is not type(None)]
        return _first_of(sorted(options, key=lambda option: option is str))
    if isinstance(annotation, typing.NewType):
        return converter(annotation.__supertype__)
    return None


def _spellings(choices: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    for choice in choices:
        yield _text(choice), choice
        if isinstance(choice, bool):
            yield from (each for each in _SPELLINGS.items() if each[1] is choice)


def _first_of(options: Sequence[Any]) -> Converter | None:
    """The converter of a union: the first option that takes the text, and str takes any."""
    converters = [made for made in map(converter, options) if made is not None]
    if len(converters) < 2 or len(converters) < len(options):
        return converters[0] if len(converters) == len(options) == 1 else None
    words = f"should be one of {', '.join(getattr(o, '__name__', str(o)) for o in options)}"

    def convert(text: str) -> Any:
        for each in converters:
            try:
                return each(text)
            except ValueError:
                continue
        raise ValueError(words)

    return convert


def _text(value: object) -> str:
    return value if isinstance(value, str) else str(value)


def _member(choices: Mapping[str, Any]) -> Converter:
    def convert(text: str) -> Any:
        try:
            return choices[text]
        except KeyError:
            raise ValueError(f"should be one of {', '.join(choices)}") from None

    return convert
