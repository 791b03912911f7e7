"""The values of scalars: which JSON values and which texts a scalar has.

A value of the alphabet `text` is what a path, a query, a header or a form can carry. The readers
here accept what the converters of treefold accept: `date` in text is also a datetime, since ISO
8601 says at which time the day begins.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from ipaddress import ip_address

from treefold_contract._types.nodes import Alphabet, JsonValue, Limits, Scalar

INTEGER = re.compile(r"[+-]?[0-9]{1,4300}")
NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?")
BOOLEANS = frozenset(("true", "false", "1", "0", "yes", "no", "on", "off"))
LONGEST_MATCHED = 12
"""Patterns are tried on short texts only: a lock may come from a stranger, and some patterns take
time that is exponential in the length."""


def _is_date(text: str) -> bool:
    return "T" not in text and _parses(date.fromisoformat, text)


def _is_naive_datetime(text: str) -> bool:
    return "T" in text and _parses(datetime.fromisoformat, text) and not _is_aware_datetime(text)


def _is_aware_datetime(text: str) -> bool:
    return "T" in text and re.search(r"(Z|[+-][0-9]{2}:?[0-9]{2})$", text) is not None


def _is_datetime(text: str) -> bool:
    return _is_naive_datetime(text) or _is_aware_datetime(text)


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "uuid": lambda text: re.fullmatch(r"[0-9a-fA-F]{8}(-?[0-9a-fA-F]{4}){6}", text) is not None,
    "email": lambda text: re.fullmatch(r"[^@\s]+@[^@\s]+", text) is not None,
    "url": lambda text: re.match(r"[a-z][a-z0-9+.-]*:", text) is not None,
    "date": _is_date,
    "time": lambda text: _parses(time.fromisoformat, text),
    "datetime": _is_datetime,
    "datetime-naive": _is_naive_datetime,
    "datetime-aware": _is_aware_datetime,
    "duration": lambda text: re.fullmatch(r"[+-]?P.*[0-9][WDHMS]", text) is not None,
    "decimal": lambda text: NUMBER.fullmatch(text) is not None,
    "ip": lambda text: _parses(ip_address, text),
    "ipv4": lambda text: "." in text and _parses(ip_address, text),
    "ipv6": lambda text: ":" in text and _parses(ip_address, text),
}
"""The formats of a str that are known; of any other, only the name is."""

EXAMPLES: Mapping[str, tuple[str, ...]] = {
    "uuid": ("7c9e6679-7425-40de-944b-e07fc1f90ae7",),
    "email": ("a@example.org",),
    "url": ("https://example.org",),
    "date": ("2026-11-29",),
    "time": ("12:30:00",),
    "datetime": ("2026-11-29T12:30:00", "2026-11-29T12:30:00Z"),
    "datetime-naive": ("2026-11-29T12:30:00",),
    "datetime-aware": ("2026-11-29T12:30:00Z",),
    "duration": ("PT90S",),
    "decimal": ("1.50",),
    "ip": ("192.0.2.1", "2001:db8::1"),
    "ipv4": ("192.0.2.1",),
    "ipv6": ("2001:db8::1",),
}

WIDER_FORMATS = {
    "datetime-naive": {"datetime"},
    "datetime-aware": {"datetime"},
    "ipv4": {"ip"},
    "ipv6": {"ip"},
}
"""The formats that have all values of a format."""
WIDER_IN_TEXT = {"date": {"datetime", "datetime-naive"}}


def is_format_within(inner: str, outer: str, alphabet: Alphabet) -> bool:
    """Return True if each text of one format is one of another; no format is any text."""
    wider = WIDER_FORMATS.get(inner, set[str]())
    if alphabet == "text":
        wider = wider | WIDER_IN_TEXT.get(inner, set[str]())
    return outer in ("", inner) or outer in wider


def has_scalar(node: Scalar, value: JsonValue, alphabet: Alphabet) -> bool:
    """Return True if a scalar has a value."""
    if alphabet == "text":
        return isinstance(value, str) and _has_text(node, value)
    match node.kind:
        case "null":
            return value is None
        case "bool":
            is_spelling = isinstance(value, str) and value in BOOLEANS
            return isinstance(value, bool) or (node.is_lax and is_spelling)
        case "int" | "float":
            return _has_number(node, value)
        case "str" | "bytes" | "file":
            return isinstance(value, str) and _has_string(node, value, alphabet)


def _has_number(node: Scalar, value: JsonValue) -> bool:
    if node.is_lax and isinstance(value, str):
        return _has_text(node, value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return False
    return (node.kind == "float" or isinstance(value, int)) and is_within(value, node.limits)


def _has_text(node: Scalar, text: str) -> bool:
    match node.kind:
        case "null":
            return False
        case "bool":
            return text.lower() in BOOLEANS
        case "int":
            return INTEGER.fullmatch(text) is not None and is_within(int(text), node.limits)
        case "float":
            return NUMBER.fullmatch(text) is not None and is_within(float(text), node.limits)
        case "str" | "bytes" | "file":
            return _has_string(node, text, "text")


def is_within(number: int | float, limits: Limits) -> bool:
    """Return True if a number is within limits."""
    return (
        (limits.minimum is None or number >= limits.minimum)
        and (limits.maximum is None or number <= limits.maximum)
        and (limits.above is None or number > limits.above)
        and (limits.below is None or number < limits.below)
        and (not limits.step or number % limits.step == 0)
    )


def _has_string(node: Scalar, text: str, alphabet: Alphabet) -> bool:
    limits = node.limits
    if limits.min_length is not None and len(text) < limits.min_length:
        return False
    if limits.max_length is not None and len(text) > limits.max_length:
        return False
    if limits.pattern and not has_match(limits.pattern, text):
        return False
    if node.kind != "str":
        return node.format != "hex" or re.fullmatch("([0-9a-fA-F]{2})*", text) is not None
    return not node.format or any(
        is_format_within(name, node.format, alphabet) and FORMATS[name](text) for name in FORMATS
    )


def has_match(pattern: str, text: str) -> bool:
    """Return True if a pattern is found in a text; False if that is not known."""
    return is_testable(pattern, text) and re.search(pattern, text) is not None


def is_testable(pattern: str, text: str) -> bool:
    """Return True if a pattern can be tried: it is one of Python, and the text is short."""
    try:
        re.compile(pattern)
    except (re.error, RecursionError, OverflowError):
        return False
    return len(text) <= LONGEST_MATCHED
