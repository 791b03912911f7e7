"""Functions of one text, number, date or time."""

from __future__ import annotations

import datetime as dt
import hashlib
import math
from collections.abc import Callable
from decimal import Decimal as D
from typing import Any, cast

from crossing import kinds, oracle
from crossing.functions import Function
from crossing.kinds import DATE, FLOAT, INT, TEXT, TIME, Kind
from treefold_orm import (
    MD5,
    SHA256,
    Abs,
    Ceil,
    Exp,
    Extract,
    Floor,
    Left,
    Length,
    Ln,
    Log,
    Lower,
    LPad,
    LTrim,
    Position,
    Power,
    Repeat,
    Replace,
    Reverse,
    Right,
    Round,
    RPad,
    RTrim,
    Sign,
    Sqrt,
    Substr,
    Trim,
    Trunc,
    Upper,
)

UTC = dt.UTC


# -- texts ----------------------------------------------------------------------------------------


def _of_text(result: Kind) -> Callable[[Kind], Kind | None]:
    return lambda kind: result if kind.family == "text" else None


def _upper(text: str) -> str:
    # letter by letter: a letter whose upper case is two letters stays as it is
    return "".join(c.upper() if len(c.upper()) == 1 else c for c in text)


def _padding(text: str, fill: str, length: int) -> str:
    return (fill * length)[: max(0, length - len(text))]


_TEXTS: list[tuple[str, Callable[[Any], Any], Kind, Callable[[str], Any]]] = [
    ("Lower", Lower, TEXT, str.lower),
    ("Upper", Upper, TEXT, _upper),
    ("Trim", Trim, TEXT, lambda text: text.strip(" ")),
    ("LTrim", LTrim, TEXT, lambda text: text.lstrip(" ")),
    ("RTrim", RTrim, TEXT, lambda text: text.rstrip(" ")),
    ("Length", Length, INT, len),
    ("Position", lambda e: Position(e, "e"), INT, lambda text: text.find("e") + 1),
    ("Replace", lambda e: Replace(e, "e", "xy"), TEXT, lambda text: text.replace("e", "xy")),
    ("Substr", lambda e: Substr(e, 2, 3), TEXT, lambda text: text[1:4]),
    ("Left", lambda e: Left(e, 2), TEXT, lambda text: text[:2]),
    ("Right", lambda e: Right(e, 2), TEXT, lambda text: text[-2:]),
    ("LPad", lambda e: LPad(e, 5, "xy"), TEXT, lambda text: _padding(text, "xy", 5) + text[:5]),
    ("RPad", lambda e: RPad(e, 5, "xy"), TEXT, lambda text: text[:5] + _padding(text, "xy", 5)),
    ("Repeat", lambda e: Repeat(e, 2), TEXT, lambda text: text * 2),
    ("Reverse", Reverse, TEXT, lambda text: text[::-1]),
    ("MD5", MD5, TEXT, lambda text: hashlib.md5(text.encode()).hexdigest()),
    ("SHA256", SHA256, TEXT, lambda text: hashlib.sha256(text.encode()).hexdigest()),
]
TEXTS = [
    Function(
        label, build, _of_text(result), lambda value, kind, engine, c=compute: c(value), needs=TEXT
    )
    for label, build, result, compute in _TEXTS
]

# -- numbers --------------------------------------------------------------------------------------


def _same_number(kind: Kind) -> Kind | None:
    return kinds.plain(kind) if kind.family in kinds.NUMBERS else None


def _two_places(kind: Kind) -> Kind | None:
    return kinds.decimal(min(kind.places, 2)) if kind.family == "decimal" else _same_number(kind)


def _whole(kind: Kind) -> Kind | None:
    return kinds.decimal(0) if kind.family == "decimal" else _same_number(kind)


def _absolute(value: Any, kind: Kind, engine: str) -> Any:
    return oracle.integer(abs(value)) if kind.family == "int" else abs(value)


def _rounded(value: Any, kind: Kind, engine: str) -> Any:
    if kind.family == "int":
        return value
    if kind.family == "float" and abs(value) >= 2**52:
        return value
    made = oracle.half_away(value, 0)
    return float(made) if kind.family == "float" else made


def _to_places(value: Any, kind: Kind, engine: str) -> Any:
    if kind.family == "int":
        return value
    if kind.family == "decimal":
        return oracle.half_away(value, 2)
    return value if abs(value) >= 2**52 else float(oracle.half_away(D(repr(value)), 2))


def _cut(function: Callable[[Any], int]) -> Callable[[Any, Kind, str], Any]:
    def compute(value: Any, kind: Kind, engine: str) -> Any:
        if kind.family == "int":
            return value
        if kind.family == "decimal":
            return D(function(value))
        if abs(value) >= 2**63:  # whether the result is an integer is open
            raise oracle.Unsure(value)
        return function(value)

    return compute


def _or_integer(kind: Kind) -> tuple[Kind, ...]:
    return (INT,) if kind.family == "float" else ()


def _signed(kind: Kind) -> Kind | None:
    return kind if kind == kinds.DURATION else _same_number(kind)


def _negated(value: Any, kind: Kind, engine: str) -> Any:
    return oracle.integer(-value) if kind.family == "int" else -value


def _real(kind: Kind) -> Kind | None:
    return FLOAT if kind.family in kinds.NUMBERS else None


def _sign(kind: Kind) -> Kind | None:
    return INT if kind.family in kinds.NUMBERS else None


def _any_number(kind: Kind) -> tuple[Kind, ...]:
    return (kinds.plain(kind),)


def _of_float(function: Callable[[float], float]) -> Callable[[Any, Kind, str], Any]:
    def compute(value: Any, kind: Kind, engine: str) -> float:
        try:
            made = oracle.real(function(float(value)))
        except (OverflowError, ValueError):
            raise oracle.Fault from None
        if made == 0 != value:  # too small for a float: zero, or an error
            raise oracle.Unsure(made)
        return made

    return compute


NUMBERS = [
    Function("Abs", Abs, _same_number, _absolute, needs=FLOAT),
    Function("Round", Round, _whole, _rounded, needs=FLOAT),
    Function("Round 2", lambda e: cast("Any", Round)(e, 2), _two_places, _to_places, needs=FLOAT),
    Function("Floor", Floor, _whole, _cut(math.floor), _or_integer, needs=FLOAT),
    Function("Ceil", Ceil, _whole, _cut(math.ceil), _or_integer, needs=FLOAT),
    Function("Negated", lambda e: -e, _signed, _negated, needs=FLOAT),
    Function("Sign", Sign, _sign, lambda v, k, e: (v > 0) - (v < 0), _any_number, needs=FLOAT),
    Function("Sqrt", Sqrt, _real, _of_float(math.sqrt), needs=FLOAT),
    Function("Exp", Exp, _real, _of_float(math.exp), needs=FLOAT),
    Function("Ln", Ln, _real, _of_float(math.log), needs=FLOAT),
    Function("Log", lambda e: Log(2, e), _real, _of_float(math.log2), needs=FLOAT),
    Function("Power", lambda e: Power(e, 3), _real, _of_float(lambda v: v**3), needs=FLOAT),
    Function("Squared", lambda e: e**2, _real, _of_float(lambda v: v**2), needs=FLOAT),
]

# -- dates ----------------------------------------------------------------------------------------

_PARTS: dict[str, Callable[[Any], Any]] = {
    "year": lambda v: v.year,
    "quarter": lambda v: (v.month + 2) // 3,
    "month": lambda v: v.month,
    "week": lambda v: v.isocalendar().week,
    "day": lambda v: v.day,
    "week_day": lambda v: v.isoweekday() % 7 + 1,
    "hour": lambda v: v.hour,
    "minute": lambda v: v.minute,
    "second": lambda v: v.second,
    "date": lambda v: v.date() if isinstance(v, dt.datetime) else v,
    "time": lambda v: v.time() if isinstance(v, dt.datetime) else v,
}
_OF_TIMES = ("hour", "minute", "second")


def _part_kind(part: str) -> Callable[[Kind], Kind | None]:
    result = {"date": DATE, "time": TIME}.get(part, INT)

    def kind_of(kind: Kind) -> Kind | None:
        if kind.family == "datetime":
            return result
        if kind.family == "date":
            return None if part in {*_OF_TIMES, "time"} else result
        return result if kind.family == "time" and part in {*_OF_TIMES, "time"} else None

    return kind_of


def _trunc(unit: str) -> Callable[[Any, Kind, str], Any]:
    def compute(value: Any, kind: Kind, engine: str) -> Any:
        day = value.date() if kind.family == "datetime" else value
        clock = value.time() if kind.family == "datetime" else dt.time()
        match unit:
            case "year":
                day, clock = day.replace(month=1, day=1), dt.time()
            case "quarter":
                day, clock = day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1), dt.time()
            case "month":
                day, clock = day.replace(day=1), dt.time()
            case "week":
                day, clock = day - dt.timedelta(days=day.weekday()), dt.time()
            case "day":
                clock = dt.time()
            case "hour":
                clock = clock.replace(minute=0, second=0, microsecond=0)
            case "minute":
                clock = clock.replace(second=0, microsecond=0)
            case _:
                clock = clock.replace(microsecond=0)
        return dt.datetime.combine(day, clock, UTC) if kind.family == "datetime" else day

    return compute


def _trunc_kind(unit: str) -> Callable[[Kind], Kind | None]:
    families = {"datetime"} if unit in _OF_TIMES else {"date", "datetime"}
    return lambda kind: kind if kind.family in families else None


_UNITS = ("year", "quarter", "month", "week", "day", *_OF_TIMES)
DATES = [
    *(
        Function(
            f"Extract {part}",
            lambda e, p=part: Extract(e, cast("Any", p)),
            _part_kind(part),
            lambda value, kind, engine, c=compute: c(value),
        )
        for part, compute in _PARTS.items()
    ),
    *(
        Function(f"Trunc {u}", lambda e, u=u: Trunc(e, u), _trunc_kind(u), _trunc(u))
        for u in _UNITS
    ),
]
