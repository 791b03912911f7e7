"""Inclusion of scalars: True if one has all values of another.

Limits are compared as intervals: `int >0` is `int >=1`. Of two patterns, neither of which is the
other, nothing is known without a value that one of them refuses.
"""

from __future__ import annotations

import math
from dataclasses import replace

from treefold_contract._types.nodes import Alphabet, JsonValue, Limits, Scalar
from treefold_contract._types.scalars import is_format_within, is_within

MOST_ENUMERATED = 64
NUMBERS = ("int", "float")


def is_scalar_within(inner: Scalar, outer: Scalar, alphabet: Alphabet) -> bool:
    """Return True if it is certain that a scalar has all values of another."""
    if inner.is_lax and not outer.is_lax and inner.kind != "str":
        return False
    if inner.kind in NUMBERS and outer.kind in NUMBERS:
        return (inner.kind == "int" or outer.kind == "float") and is_range_within(inner, outer)
    if outer.kind == "str" and alphabet == "text" and inner.kind in (*NUMBERS, "bool"):
        is_decimal = outer.format == "decimal" and inner.kind != "bool"
        return (is_decimal or not outer.format) and is_unlimited(outer)
    if inner.kind == outer.kind == "str":
        is_format = is_format_within(inner.format, outer.format, alphabet)
        return is_format and are_texts_within(inner.limits, outer.limits)
    if inner.kind != outer.kind:
        return outer.kind == "str" and inner.kind == "bytes" and outer == Scalar("str")
    return inner.format == outer.format and are_texts_within(inner.limits, outer.limits)


def is_unlimited(node: Scalar) -> bool:
    """Return True for a scalar without limits."""
    return node.limits == Limits()


def normalize_number(node: Scalar) -> Scalar:
    """Return an int with limits that it can have: `>0` as `>=1`, and `<=2.5` as `<=2`."""
    limits = node.limits
    if node.kind != "int" or limits == Limits():
        return node
    least = [math.ceil(limits.minimum)] if limits.minimum is not None else []
    least += [math.floor(limits.above) + 1] if limits.above is not None else []
    most = [math.floor(limits.maximum)] if limits.maximum is not None else []
    most += [math.ceil(limits.below) - 1] if limits.below is not None else []
    changed = replace(
        limits,
        minimum=max(least, default=None),
        maximum=min(most, default=None),
        above=None,
        below=None,
    )
    return replace(node, limits=changed)


def is_range_within(inner: Scalar, outer: Scalar) -> bool:
    """Return True if all numbers of a scalar are within the limits of another."""
    one, other = normalize_number(inner).limits, outer.limits
    least = max((each for each in (one.minimum, one.above) if each is not None), default=-math.inf)
    most = min((each for each in (one.maximum, one.below) if each is not None), default=math.inf)
    is_least = other.minimum is None or least >= other.minimum
    is_above = other.above is None or least > other.above or one.above == least == other.above
    is_most = other.maximum is None or most <= other.maximum
    is_below = other.below is None or most < other.below or one.below == most == other.below
    step = one.step or (1 if inner.kind == "int" else 0)
    is_step = not other.step or (step != 0 and step % other.step == 0)
    return is_least and is_above and is_most and is_below and is_step


def are_texts_within(inner: Limits, outer: Limits) -> bool:
    """Return True if all texts of some limits are within others."""
    longest = math.inf if inner.max_length is None else inner.max_length
    return (
        (inner.min_length or 0) >= (outer.min_length or 0)
        and (outer.max_length is None or longest <= outer.max_length)
        and outer.pattern in ("", inner.pattern)
    )


def enumerate_scalar(node: Scalar) -> list[JsonValue] | None:
    """Return all JSON values of a scalar that has few; None if it has many."""
    if node.is_lax:
        return None
    if node.kind == "null":
        return [None]
    if node.kind == "bool":
        return [True, False]
    limits = normalize_number(node).limits
    if node.kind != "int" or limits.minimum is None or limits.maximum is None:
        return None
    if limits.maximum - limits.minimum > MOST_ENUMERATED:
        return None
    numbers = range(int(limits.minimum), int(limits.maximum) + 1)
    return [number for number in numbers if is_within(number, limits)]
