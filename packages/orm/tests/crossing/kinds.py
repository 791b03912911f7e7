"""Types of values: which are compared, combined and assigned, and what is the type of the result.

This is the statement of the rules, written apart from the package. None means that there is no
conversion and that the query must be refused.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any


class Tint(enum.Enum):
    """A choice kept as text."""

    RED = "red"
    BLUE = "blue"
    EMPTY = ""


class Level(enum.Enum):
    """A choice kept as an integer."""

    NONE = 0
    LOW = 7
    HIGH = 100_000
    BELOW = -3


@dataclass(frozen=True, slots=True)
class Kind:
    """A type of values: a family, the places of a decimal, the class of an enum, the type of the
    items of a list.
    """

    family: str
    places: int = 0
    members: Any = None
    items: Any = None

    def __str__(self) -> str:
        if self.members is not None:
            return f"enum({self.family})"
        return f"decimal({self.places})" if self.family == "decimal" else self.family


INT = Kind("int")
FLOAT = Kind("float")
TEXT = Kind("text")
BOOL = Kind("bool")
DATE = Kind("date")
DATETIME = Kind("datetime")
TIME = Kind("time")
DURATION = Kind("duration")
UUID = Kind("uuid")
BINARY = Kind("binary")
JSON = Kind("json")
TINT = Kind("text", members=Tint)
LEVEL = Kind("int", members=Level)

NUMBERS = ("int", "decimal", "float")
POINTS = {"datetime": DATETIME, "date": DATE, "time": TIME}
SCALARS = frozenset({*NUMBERS, "text", "bool"})  # what a JSON value may be
UNORDERED = frozenset({"bool", "uuid", "binary", "json"})  # not everything orders these


def decimal(places: int) -> Kind:
    """A decimal of so many places."""
    return Kind("decimal", places)


def list_of(kind: Kind) -> Kind:
    """A list of values of one type."""
    return Kind("list", items=kind)


def plain(kind: Kind) -> Kind:
    """The kind without its enum."""
    return Kind(kind.family, kind.places)


def common(a: Kind, b: Kind) -> Kind | None:
    """The type that two values are brought to before they are compared or put in one column."""
    if a == b:
        return a
    families = {a.family, b.family}
    if len(families) == 1:
        return decimal(max(a.places, b.places)) if a.family == "decimal" else plain(a)
    if families <= {*NUMBERS}:
        return FLOAT if "float" in families else decimal(max(a.places, b.places))
    if "json" in families and families & SCALARS:
        return _beside_document(a if b.family == "json" else b)
    return DATETIME if families == {"date", "datetime"} else None


def _beside_document(kind: Kind) -> Kind:
    return FLOAT if kind.family == "decimal" else plain(kind)


def unstated_common(a: Kind, b: Kind) -> bool:
    """Return True if a pair may or may not have a common type: an enum or a document beside
    another type.
    """
    if a.family == b.family:
        return False
    return not (a.members is None and b.members is None) or "json" in {a.family, b.family}


def arithmetic(op: str, a: Kind, b: Kind) -> Kind | None:
    """The type of `a op b`."""
    families = {a.family, b.family}
    if families <= {*NUMBERS}:
        return _number(op, a, b)
    if "json" in families:
        number = a if b.family == "json" else b
        if number == JSON:
            return None if op == "%" else FLOAT
        if number.family in NUMBERS:
            return _number(op, number, number)
        return DURATION if number == DURATION and op in {"*", "/"} else None
    return _timed(op, a.family, b.family)


def _number(op: str, a: Kind, b: Kind) -> Kind | None:
    families = {a.family, b.family}
    if "float" in families:
        return None if op == "%" else FLOAT
    if "decimal" not in families:
        return FLOAT if op == "/" else INT
    if op == "*":
        return decimal(a.places + b.places)
    widest = max(a.places, b.places)
    return decimal(max(widest, 6)) if op == "/" else decimal(widest)


def _timed(op: str, a: str, b: str) -> Kind | None:
    if op in {"+", "-"}:
        if a == b == "duration" or (op == "-" and a == b and a in POINTS):
            return DURATION
        if a in POINTS and b == "duration":
            return POINTS[a]
        if op == "+" and a == "duration" and b in POINTS:
            return POINTS[b]
    if a == "duration" and b in NUMBERS and op in {"*", "/"}:
        return DURATION
    return DURATION if op == "*" and a in NUMBERS and b == "duration" else None


def unstated_arithmetic(a: Kind, b: Kind) -> bool:
    """Return True if an operation may or may not be refused."""
    families = {a.family, b.family}
    enums = a.members is not None or b.members is not None
    return enums or "json" in families or families == {"duration", "decimal"}


def assigned(target: Kind, source: Kind) -> Kind | None:
    """The type that a column reads back after a value of another type was stored in it."""
    if target.family == source.family:
        return target
    pair = {target.family, source.family}
    if pair <= {*NUMBERS} or pair == {"date", "datetime"}:
        return target
    return target if unstated_assignment(target, source) else None


def unstated_assignment(target: Kind, source: Kind) -> bool:
    """Return True if an assignment may either be refused or write the converted value."""
    if target.family == "text":
        return source.family in {*NUMBERS, "date", "uuid", "json"}
    if source.family == "json":
        return target.family in SCALARS
    return source.members is not None and source.family != target.family
