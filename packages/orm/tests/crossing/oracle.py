"""What expressions mean, computed with exact Python values.

`Fault` is an expression that the database must answer with an error when it meets the row. The
engines differ in one thing: a decimal above 18 digits is an error on SQLite.
"""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import math
import uuid
from fractions import Fraction
from typing import Any

from crossing.kinds import Kind, decimal as decimal_kind

D = decimal.Decimal
WIDE = decimal.Context(prec=400, rounding=decimal.ROUND_HALF_UP)
UTC = dt.UTC
MICROSECOND = dt.timedelta(microseconds=1)
EIGHTEEN = 10**18


class Fault(Exception):
    """The row has no value: the database must raise `DataError`."""


ANYTHING: Any = object()  # the value is not known; the query must only not break otherwise


class Near(int):
    """A sum of doubles as an integer, whose last digit depends on the order of the rows."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, int) and math.isclose(int(self), other, rel_tol=2**-52)

    __hash__ = None  # pyright: ignore - equal ones would differ in it


class Unsure(Exception):
    """A value that an engine may also answer with an error."""

    def __init__(self, value: Any) -> None:
        super().__init__("unsure")
        self.value = value


def base(value: Any) -> Any:
    """The stored value of an enum member, else the value."""
    return value.value if isinstance(value, enum.Enum) else value


def fits(value: D, places: int, engine: str) -> D:
    """A decimal of so many places; a fault where SQLite has no room for it."""
    if engine == "sqlite" and abs(value.scaleb(places, WIDE)) >= EIGHTEEN:
        raise Fault
    return value


def integer(value: int) -> int:
    """An integer of 64 bits."""
    if not -(2**63) <= value < 2**63:
        raise Fault
    return value


def real(value: float) -> float:
    """A finite float."""
    if not math.isfinite(value):
        raise Fault
    return value


def half_away(value: Fraction | D | float, places: int) -> D:
    """Rounded half away from zero, exactly."""
    exact = Fraction(value) * 10**places
    whole = math.floor(abs(exact) + Fraction(1, 2))
    return D(whole if exact >= 0 else -whole).scaleb(-places, WIDE)


def convert(value: Any, found: Kind, wanted: Kind, engine: str) -> Any:
    """A value in a common type; conversions to it lose nothing but the digits of a float."""
    if value is None or found == wanted:
        return value
    value = base(value)
    if found.family == "json":
        return None  # a document is no number and no text
    if wanted.family == "float":
        return float(value)
    if wanted.family == "decimal":
        made = D(value)
        try:
            return fits(made, wanted.places, engine)
        except Fault:  # a wider engine may still compare it
            raise Unsure(made) from None
    if (found.family, wanted.family) == ("date", "datetime"):
        return dt.datetime.combine(value, dt.time(), UTC)
    return value


def both(
    a: Any, b: Any, pair: tuple[Kind, Kind], wanted: Kind, engine: str
) -> tuple[Any, Any, bool]:
    """Two values in their common type, and whether an engine may refuse them."""
    made: list[Any] = []
    unsure = False
    for value, kind in ((a, pair[0]), (b, pair[1])):
        try:
            made.append(convert(value, kind, wanted, engine))
        except Unsure as open_question:
            made.append(open_question.value)
            unsure = True
    return base(made[0]), base(made[1]), unsure


def compare(op: str, a: Any, b: Any) -> bool:
    """A comparison of values of one type; unknown counts as false."""
    if a is None or b is None:
        return False
    match op:
        case "exact":
            return a == b
        case "gt":
            return a > b
        case "gte":
            return a >= b
        case "lt":
            return a < b
        case _:
            return a <= b


def arithmetic(op: str, a: Any, b: Any, kinds: tuple[Kind, Kind, Kind], engine: str) -> Any:
    """`a op b` for types that have a result."""
    if a is None or b is None or "json" in {kinds[0].family, kinds[1].family}:
        for side in (a, b):  # a value that SQLite has no room for may be refused beside a NULL
            if isinstance(side, (int, D)) and kinds[2].family == "decimal" and op != "*":
                _unsure_beyond(D(side), kinds[2].places, None, engine)
        return None
    a, b = base(a), base(b)
    first, second, result = kinds
    if result.family == "int":
        return _integers(op, a, b)
    if result.family == "float":
        return _floats(op, float(a), float(b))
    if result.family == "decimal":
        return _decimals(op, D(a), D(b), (first, second, result), engine)
    return _timed(op, a, b, (first, second, result), engine)


def _integers(op: str, a: int, b: int) -> int:
    if op == "%":
        if b == 0:
            raise Fault
        return int(math.copysign(1, a)) * (abs(a) % abs(b))
    return integer({"+": a + b, "-": a - b, "*": a * b}[op])


def _floats(op: str, a: float, b: float) -> float:
    if op == "/":
        if b == 0:
            raise Fault
        return real(a / b)
    return real({"+": a + b, "-": a - b, "*": a * b}[op])


def _decimals(op: str, a: D, b: D, kinds: tuple[Kind, Kind, Kind], engine: str) -> D:
    places = kinds[2].places
    if op in {"/", "%"} and b == 0:
        raise Fault
    if op == "/":
        return fits(half_away(Fraction(a) / Fraction(b), places), places, engine)
    if op == "%":
        made = abs(Fraction(a)) % abs(Fraction(b))  # not abs(a), which keeps 28 digits
        value = half_away(made if a >= 0 else -made, places)
        for side in (a, b):
            _unsure_beyond(side, places, value, engine)
        return value
    exact = {"+": WIDE.add, "-": WIDE.subtract, "*": WIDE.multiply}[op](a, b)
    return fits(exact, places, engine)


def _unsure_beyond(side: D, places: int, value: Any, engine: str) -> None:
    try:
        fits(side, places, engine)
    except Fault:
        raise Unsure(value) from None


def _timed(op: str, a: Any, b: Any, kinds: tuple[Kind, Kind, Kind], engine: str) -> Any:
    first, second, result = (kind.family for kind in kinds)
    try:
        if result == "duration":
            return span(_span(op, a, b), engine)
        if first == "duration":
            a, b, first = b, a, second
        moved = b if op == "+" else -b
        if first == "time":
            return (dt.datetime.combine(dt.date(2000, 1, 1), a) + moved % dt.timedelta(1)).time()
        if first == "date":
            return (dt.datetime.combine(a, dt.time()) + moved).date()
        return a + moved
    except (OverflowError, ValueError):
        raise Fault from None


def span(value: dt.timedelta, engine: str) -> dt.timedelta:
    """A duration, whole microseconds in 64 bits."""
    if not -(2**63) <= value // MICROSECOND < 2**63:
        raise Fault
    return value


def _span(op: str, a: Any, b: Any) -> dt.timedelta:
    if isinstance(a, dt.time):
        a, b = (dt.datetime.combine(dt.date(2000, 1, 1), side) for side in (a, b))
    if op == "-":
        return a - b
    if op == "+":
        return a + b
    if not isinstance(a, dt.timedelta):
        a, b = b, a
    if op == "/":
        if b == 0:
            raise Fault
        return microseconds(Fraction(a // MICROSECOND) / Fraction(b))
    return microseconds(Fraction(a // MICROSECOND) * Fraction(b))


def microseconds(count: Fraction) -> dt.timedelta:
    """A duration of so many microseconds, rounded half away from zero."""
    return dt.timedelta(microseconds=int(half_away(count, 0)))


# -- text forms and casts -------------------------------------------------------------------------


def float_text(value: float) -> str:
    """A float as PostgreSQL writes it: the fewest digits that read back as the same number."""
    sign, digits, exponent = D(repr(value)).normalize(WIDE).as_tuple()
    assert isinstance(exponent, int)
    text = "".join(map(str, digits))
    point = len(digits) + exponent - 1  # of the first digit
    if value == 0:
        made = "0"
    elif -4 <= point < 15:
        made = f"{D((0, digits, exponent)):f}"
    else:
        rest = f".{text[1:]}" if len(text) > 1 else ""
        made = f"{text[0]}{rest}e{'-' if point < 0 else '+'}{abs(point):02d}"
    return f"-{made}" if sign else made


def text_of(value: Any, kind: Kind) -> str:
    """The text form of a value, as `Concat` and `Cast` to text write it."""
    value = base(value)
    match kind.family:
        case "float":
            return float_text(value)
        case "decimal":
            return f"{value or D(0):.{kind.places}f}"  # there is no negative zero
        case "date":
            return value.isoformat()
        case _:
            return str(value)


def cast(value: Any, found: Kind, wanted: Kind, engine: str, room: Any = None) -> Any:
    """`Cast`, and assignment to a column; `room` is the range of a narrower type."""
    if value is None:
        return None
    value = base(value)
    family = found.family
    match wanted.family:
        case "int":
            return _to_int(value, family, room)
        case "float":
            return _to_float(value, family)
        case "decimal":
            return _to_decimal(value, family, wanted, engine, room)
        case "text":
            return text_of(value, found)
        case "date":
            return _to_date(value, family)
        case "datetime" if family == "date":
            return dt.datetime.combine(value, dt.time(), UTC)
        case "uuid" if family == "text":
            return _read(uuid.UUID, value)
        case _:
            return value


def _to_int(value: Any, family: str, room: Any) -> int:
    low, high = room or (-(2**63), 2**63 - 1)
    made = _read(int, value) if family == "text" else int(half_away(value, 0))
    if not low <= made <= high:
        raise Fault
    return made


def _to_float(value: Any, family: str) -> float:
    return real(_read(float, value)) if family == "text" else float(value)


def _to_decimal(value: Any, family: str, wanted: Kind, engine: str, room: Any) -> D:
    if family == "text":
        exact = _read(D, value)
    elif family == "float":
        exact = D(f"{value:.15g}")  # the digits that a double has for certain
    else:
        exact = D(value)
    made = half_away(exact, wanted.places)
    if room is not None and abs(made) >= D(10) ** room:
        raise Fault
    return fits(made, wanted.places, engine)


def _to_date(value: Any, family: str) -> Any:
    if family == "text":
        return _read(dt.date.fromisoformat, value)
    return value.astimezone(UTC).date() if family == "datetime" else value


def _read(kind: Any, text: str) -> Any:
    try:
        return kind(text)
    except (ValueError, decimal.InvalidOperation):
        raise Fault from None


def mean(values: list[Any], kind: Kind, engine: str) -> Any:
    """The average of values that are not NULL."""
    if not values:
        return None
    if kind.family == "duration":
        return microseconds(Fraction(sum(v // MICROSECOND for v in values), len(values)))
    if kind.family == "decimal":
        places = max(kind.places, 6)
        total = sum((Fraction(v) for v in values), Fraction(0))
        return fits(half_away(total / len(values), places), places, engine)
    if kind.family == "int":
        return float(sum(map(base, values))) / len(values)
    return real(math.fsum(map(float, map(base, values))) / len(values))


def mean_kind(kind: Kind) -> Kind:
    """The type of an average."""
    if kind.family == "decimal":
        return decimal_kind(max(kind.places, 6))
    return kind if kind.family == "duration" else Kind("float")


def total(values: list[Any], kind: Kind, engine: str) -> Any:
    """The sum of values that are not NULL, None for none."""
    if not values:
        return None
    values = [*map(base, values)]
    match kind.family:
        case "int":
            made: Any = integer(sum(values))
            _unsure_before(sum(map(abs, values)), made, engine)
            return made
        case "decimal":
            made = D(0)
            for value in values:
                made = WIDE.add(made, value)
            fits(made, kind.places, engine)
            most = sum(int(abs(value).scaleb(kind.places, WIDE)) for value in values)
            _unsure_before(most, made, engine)
            return made
        case "duration":
            return span(sum(values, dt.timedelta()), engine)
        case _:
            return real(math.fsum(values))


def _unsure_before(most: int, made: Any, engine: str) -> None:
    if engine == "sqlite" and most >= 2**63:  # it may leave 64 bits on the way to the sum
        raise Unsure(made)
