"""JSON in and out: bytes to values and back, as strict as RFC 8259 asks, and stricter for input.

One encoder and one decoder are kept for the life of the process. msgspec encodes when it is
installed, else the standard library's C encoder; where the two could differ, the standard one
decides. NaN and Infinity are refused both ways, and nothing is rendered through `repr` or `str`.
"""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import math
import re
import uuid
from collections.abc import Callable, Mapping
from typing import Any, cast

from treefold_http._json.pydantic_json import Dump, build_pydantic_dump_functions, to_base64
from treefold_http._wire.aliases import JSONObject
from treefold_http._wire.errors import BadRequest

try:
    import msgspec
except ImportError:  # the `fast` extra is not installed
    msgspec = None


def _format_time(value: datetime.date | datetime.time) -> str:
    text = value.isoformat()
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _format_duration(value: datetime.timedelta) -> str:
    """ISO 8601: days and seconds."""
    # timedelta(seconds=-1) has the days -1 and the seconds 86,399
    sign, value = ("-", -value) if value < datetime.timedelta() else ("", value)
    seconds = f"{value.seconds}.{value.microseconds:06d}".rstrip("0").rstrip(".")
    days = f"{value.days}D" if value.days else ""
    return f"{sign}P{days}T{seconds}S" if seconds != "0" else f"{sign}P{days or '0D'}"


_CONVERSIONS: tuple[tuple[type | tuple[type, ...], Callable[[Any], Any]], ...] = (
    ((datetime.datetime, datetime.date, datetime.time), _format_time),
    (datetime.timedelta, _format_duration),
    ((uuid.UUID, decimal.Decimal), str),
    (enum.Enum, lambda member: member.value),
    ((set, frozenset), list),
    ((bytes, bytearray, memoryview), to_base64),
    (Mapping, dict),
)


def to_json_compatible(value: object) -> Any:
    """Return the JSON-ready form of a value of another type than JSON's own, one level deep.

    Dates and durations are ISO 8601, UUID and Decimal strings, enums their values, sets lists,
    bytes base64; dataclasses, pydantic models (by alias) and msgspec structs are objects.

    Raises:
        TypeError: for any other type; the message names it.
    """
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    if (dump := get_pydantic_dump_functions(value.__class__)) is not None:
        return dump[0](value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    own = getattr(value, "model_dump", None)
    if own is not None and not isinstance(value, type):
        return own(mode="json")
    if msgspec is not None and isinstance(value, msgspec.Struct):
        return msgspec.to_builtins(value)
    raise TypeError(
        f"{type(value).__qualname__!r} has no JSON form; return a type that has one, or set"
        " response_model"
    )


_dumps: dict[type, tuple[Dump, Dump] | None] = {}
_MAX_DUMPS = 1024
"""Classes whose functions are kept."""


def get_pydantic_dump_functions(kind: type) -> tuple[Dump, Dump] | None:
    """Return the functions that dump a class of pydantic, as plain data and as text; else None."""
    try:
        return _dumps[kind]
    except KeyError:
        if len(_dumps) >= _MAX_DUMPS:  # classes of former reloads
            _dumps.clear()
        found = _dumps[kind] = build_pydantic_dump_functions(kind)
        return found


def _build_standard_encoder() -> Callable[[Any], bytes]:
    # JSONEncoder.encode makes a new C encoder on every call: 1,195 ns for a small response, 365
    # with one that is kept. No cycle markers: a failed call would leave its ids behind, and a
    # cycle still ends in RecursionError.
    library = cast("Any", json.encoder)
    if library.c_make_encoder is None:  # another Python implementation
        whole = json.JSONEncoder(
            ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=to_json_compatible
        )
        return lambda value: whole.encode(value).encode()
    escape = library.encode_basestring
    encode = library.c_make_encoder(
        None, to_json_compatible, escape, None, ":", ",", False, False, False
    )
    return lambda value: "".join(encode(value, 0)).encode()


_encode = _build_standard_encoder()


def encode_json_with_stdlib(value: Any) -> bytes:
    """Encode as `dumps` does, by the standard library alone."""
    try:
        return _encode(value)
    except TypeError:
        return _encode(_with_text_keys(value))  # raises again if the keys were not the cause


def _with_text_keys(value: Any) -> Any:
    if isinstance(value, dict):
        members = cast("dict[Any, Any]", value).items()
        return {_to_json_key(key): _with_text_keys(member) for key, member in members}
    if isinstance(value, (list, tuple)):
        return [_with_text_keys(item) for item in cast("list[Any]", value)]
    if isinstance(value, (str, int, float, type(None))):
        return value
    return _with_text_keys(to_json_compatible(value))


def _to_json_key(key: Any) -> Any:
    plain = key if isinstance(key, (str, int, float, bool, type(None))) else to_json_compatible(key)
    if isinstance(plain, (str, int, float)) or plain is None:
        return plain
    raise TypeError(f"{type(key).__qualname__!r} cannot be a JSON member name; use str")


quick_encode: Callable[[Any], bytes] | None = None if msgspec is None else msgspec.json.encode
"""msgspec's own encoder, for values that consist of JSON types only."""

_first_dumps: Callable[[Any], bytes] = (
    encode_json_with_stdlib
    if msgspec is None
    else msgspec.json.Encoder(enc_hook=to_json_compatible).encode
)


def dumps(value: Any) -> bytes:
    """Encode a value as compact UTF-8 JSON.

    Raises:
        TypeError: when a part of it has no JSON form.
        ValueError: for NaN, Infinity or a lone surrogate.
        RecursionError: for a cycle or a nesting that is too deep.
    """
    try:
        body = _first_dumps(value)
    # the standard encoder decides about a value that msgspec refuses, and words the error
    except (TypeError, ValueError, RecursionError):
        return encode_json_with_stdlib(value)
    # msgspec writes NaN and Infinity as null; only a body with null is encoded a second time.
    return body if body.find(b"null") < 0 else encode_json_with_stdlib(value)


def use_stdlib_encoder() -> None:
    """Encode with the standard library from now on.

    msgspec writes every dataclass by itself, those of pydantic as well, without their aliases and
    serializers; its hook is not called for them.
    """
    global _first_dumps
    _first_dumps = encode_json_with_stdlib


BACKSLASH = ord("\\")
"""Searched for as a number: `in` with bytes takes seven times as long."""


def _require_unique_names(pairs: list[tuple[str, Any]]) -> JSONObject:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has two members of the same name")
    return members


def _parse_finite_float(text: str) -> float:
    number = float(text)
    # `1e999` is valid JSON, and inf as a float
    if math.isinf(number):
        raise ValueError("a number is out of range")
    return number


def _refuse_nan_and_infinity(constant: str) -> None:
    raise ValueError(f"{constant} is not a JSON value")


_parse_names, _parse_constant = _require_unique_names, _refuse_nan_and_infinity
_decode = json.JSONDecoder(
    object_pairs_hook=_parse_names, parse_float=_parse_finite_float, parse_constant=_parse_constant
).decode
_surrogate_escape = re.compile(r"\\u[dD][89a-fA-F]").search


def loads(body: bytes) -> Any:
    """Decode a JSON body: strict UTF-8 with at most one byte order mark, one value.

    Refuses NaN, Infinity, numbers out of range, integers above 4,300 digits, repeated member names,
    lone surrogates and nesting too deep to parse: each would be an error of the handler later, or
    mean another value to another parser (S-31 to S-35).

    Raises:
        BadRequest: for anything that is not such a document.
    """
    if quick_encode is not None and _quick_loads is not None and BACKSLASH not in body:
        try:
            value = _quick_loads(body)
            # msgspec refuses all of the above except repeated names, of which it keeps the last.
            # Each member has a colon, and without escapes a string has the same colons when it is
            # encoded again: only a document that lost a member has fewer.
            if quick_encode(value).count(b":") == body.count(b":"):
                return value
        except (ValueError, RecursionError):
            pass  # the strict decoder raises with the reason
    return _decode_json_with_stdlib(body)


def parse_validated_body(body: bytes) -> Any:
    """Decode a body that `loads` is known to accept."""
    if _quick_loads is not None:
        try:
            return _quick_loads(body)
        except (ValueError, RecursionError):
            pass  # a byte order mark, or a number that only the strict decoder accepts
    return _decode_json_with_stdlib(body)


def minify_json(body: bytes) -> str | None:
    """Return a valid JSON body as text without white space; None without msgspec."""
    return None if msgspec is None else msgspec.json.format(body, indent=-1).decode()


BOM = b"\xef\xbb\xbf"

_quick_loads = None if msgspec is None else msgspec.json.decode


def _decode_json_with_stdlib(body: bytes) -> Any:
    try:
        text = body.decode("utf-8-sig")
        value = _decode(text)
        if _surrogate_escape(text):
            encode_json_with_stdlib(value)  # fails where an escape was one half of a pair
    except UnicodeError:
        raise BadRequest("The body is not valid JSON: it is not UTF-8 text") from None
    except RecursionError:
        raise BadRequest("The body is not valid JSON: it is nested too deeply") from None
    except ValueError as error:
        raise BadRequest(f"The body is not valid JSON: {_describe_json_error(error)}") from None
    return value


def _describe_json_error(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} at line {error.lineno} column {error.colno}"
    # Python limits the digits of an int, as the conversion is quadratic (CVE-2020-10735)
    if "integer string conversion" in str(error):
        return "an integer has too many digits"
    return str(error)
