"""Casts between all types, and values of all types joined to one text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

from crossing import kinds, oracle
from crossing.functions import Function
from crossing.kinds import DATE, FLOAT, INT, TEXT, TIME, Kind
from crossing.terms import LEFT_FORMS, Term, beside, constant, offered, operand
from crossing.values import COLUMNS, NAMES, Row
from treefold_orm import Cast, Concat, fields


def _decimal_field(digits: int, places: int) -> Any:
    return fields.DecimalField(max_digits=digits, decimal_places=places)


CAST_FIELDS: list[tuple[str, Any, Kind, Any]] = [
    ("small", fields.SmallIntegerField(), INT, (-(2**15), 2**15 - 1)),
    ("int", fields.IntegerField(), INT, (-(2**31), 2**31 - 1)),
    ("bigint", fields.BigIntegerField(), INT, None),
    ("float", fields.FloatField(), FLOAT, None),
    ("decimal(12, 2)", _decimal_field(12, 2), kinds.decimal(2), 10),
    ("decimal(18, 4)", _decimal_field(18, 4), kinds.decimal(4), 14),
    ("text", fields.TextField(), TEXT, None),
    ("date", fields.DateField(), DATE, None),
    ("datetime", fields.DateTimeField(), kinds.DATETIME, None),
    ("time", fields.TimeField(), TIME, None),
    ("bool", fields.BooleanField(), kinds.BOOL, None),
    ("uuid", fields.UUIDField(), kinds.UUID, None),
    ("duration", fields.DurationField(), kinds.DURATION, None),
    ("binary", fields.BinaryField(), kinds.BINARY, None),
]
_STATED = {
    *itertools.product(kinds.NUMBERS, (*kinds.NUMBERS, "text")),
    *(("text", family) for family in (*kinds.NUMBERS, "date")),
    ("date", "text"),
    ("date", "datetime"),
    ("datetime", "date"),
    ("uuid", "text"),
}

# casts that the rules leave open: they may be refused
_OPEN = {
    *(("bool", to) for to in ("int", "text", "float", "decimal")),
    *((found, "text") for found in ("datetime", "time", "duration", "binary", "json")),
    *(("text", to) for to in ("datetime", "time", "bool", "uuid", "duration", "binary", "json")),
    ("int", "bool"),
    ("datetime", "time"),
    ("duration", "int"),
}


def cast_function(label: str, output: Any, wanted: Kind, room: Any) -> Function:
    """A cast to a field's type."""

    def kind_of(kind: Kind) -> Kind | None:
        stated = (kind.family, wanted.family) in _STATED or kind.family == wanted.family
        return wanted if stated else None

    def compute(value: Any, kind: Kind, engine: str) -> Any:
        if kind.family == wanted.family and wanted.family not in kinds.NUMBERS:
            return value
        return oracle.cast(value, kind, wanted, engine, room)

    return Function(
        f"Cast to {label}",
        lambda e: Cast(e, output),
        kind_of,
        compute,
        needs=wanted,
        open=lambda kind: (kind.family, wanted.family) in _OPEN,
    )


CASTS = [cast_function(*row) for row in CAST_FIELDS]


# -- texts joined ---------------------------------------------------------------------------------

JOINED = frozenset({*kinds.NUMBERS, "text", "date", "uuid"})
_REFUSED = frozenset({"bool", "datetime"})


def joined(left: Term, other: Term) -> Term:
    """Two values as one text; NULL is empty."""
    left, other = beside(left, TEXT) or left, beside(other, TEXT) or other
    assert left.kind is not None
    assert other.kind is not None
    pair = (left.kind, other.kind)
    families = {kind.family for kind in pair}

    def value(row: Row, engine: str) -> str:
        sides = zip((left, other), pair, strict=True)
        found = [(term.value(row, engine), kind) for term, kind in sides]
        return "".join("" if v is None else oracle.text_of(v, kind) for v, kind in found)

    return Term(
        f"Concat({left.label}, {other.label})",
        None if families & _REFUSED else TEXT,
        lambda: Concat(left.build(), other.build()),
        value,
        needs=(*left.needs, *other.needs),
        inner=left.inner or other.inner,
        late=left.late or other.late,
    )


def joins(*, long: bool = False) -> Iterator[Term]:
    """Every pair of columns as one text."""
    forms = [*itertools.product(LEFT_FORMS, (*LEFT_FORMS, "outer", "value"))]
    for place, (first, second) in enumerate(itertools.product(NAMES, NAMES)):
        families = {COLUMNS[first].family, COLUMNS[second].family}
        if not families <= JOINED | _REFUSED:
            continue  # whether a time, a span or a document has a text is open
        chosen = forms if long else [forms[0], forms[place * 5 % len(forms)]]
        for left, other in chosen:
            if other == "outer" and left != "column":
                continue
            if offered(left, first) and offered(other, second):
                two = constant(second) if other == "value" else operand(other, second)
                yield joined(operand(left, first), two)
