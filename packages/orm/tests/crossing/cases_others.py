"""Functions of an application, JSON objects, queries inside queries, times of the statement."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Iterator
from typing import Any

from crossing import kinds, oracle
from crossing.cases_casts import CAST_FIELDS
from crossing.cases_operators import COMPARED, PAIRS, comparison
from crossing.functions import Function
from crossing.kinds import BOOL, DURATION, FLOAT, JSON, Kind
from crossing.terms import LEFT_FORMS, Term, constant, offered, operand
from crossing.values import COLUMNS, NAMES, Cross, Row
from treefold_orm import (
    Cast,
    Exists,
    Extract,
    F,
    Floor,
    Func,
    JSONObject,
    Now,
    OuterRef,
    Q,
    Random,
    Value,
    fields,
)

# -- functions of an application ------------------------------------------------------------------


def _func(label: str, field: Any) -> type[Func]:
    body = {"__slots__": (), "template": "({})", "takes": (field,), "output_field": field}
    return type(f"To{label.title().replace(' ', '')}", (Func,), body)


class Same(Func):
    """What it is given."""

    __slots__ = ()
    template = "({})"


class Added(Func):
    """The sum of a float and a decimal of four places, each as it is declared."""

    __slots__ = ()
    template = "({} + {})"
    sqlite = "({} + {} / 10000.0)"
    postgres = "({} + {}::double precision)"
    takes = (fields.FloatField(), fields.DecimalField(max_digits=18, decimal_places=4))
    output_field = fields.FloatField()


def _taking(label: str, field: Any, wanted: Kind) -> Function:
    made = _func(label, field)

    def kind_of(kind: Kind) -> Kind | None:
        narrow = kind.family == wanted.family == "decimal" and kind.places > wanted.places
        return wanted if kinds.common(kind, wanted) == wanted and not narrow else None

    def compute(value: Any, kind: Kind, engine: str) -> Any:
        try:
            return oracle.convert(value, kind, wanted, engine)
        except oracle.Unsure:
            raise oracle.Fault from None

    return Function(
        f"Func of {label}",
        lambda e: made(e),
        kind_of,
        compute,
        needs=wanted if wanted.family in kinds.SCALARS and wanted.family != "decimal" else None,
        open=lambda kind: kinds.unstated_common(kind, wanted) or kind.members is not None,
    )


OWN = [
    *(
        _taking(label, field, wanted)
        for label, field, wanted, _ in CAST_FIELDS
        if label not in {"small", "int", "decimal(12, 2)"}
    ),
    Function(
        "Func of anything",
        Same,
        lambda kind: None if kind.family in {"decimal", "json"} else kind,
        lambda value, kind, engine: value,
        open=lambda kind: True,  # SQLite keeps a decimal as a scaled integer
    ),
]


def sums_of_two() -> Iterator[Term]:
    """A function of two arguments that are converted to two types."""
    numbers = ("small", "num", "big", "real", "money", "fine")
    for first, second in itertools.product(numbers, numbers):
        left, other = operand("column", first), operand("column", second)
        kept = COLUMNS[second].family != "float"

        def value(row: Row, engine: str, first: str = first, second: str = second) -> Any:
            one, two = row[first], row[second]
            if two is not None:  # a large one may be refused beside a NULL
                fine = oracle.convert(two, COLUMNS[second], kinds.decimal(4), engine)
                two = fine
            return None if one is None or two is None else float(one) + float(two)

        yield Term(
            f"Added({first}, {second})",
            FLOAT if kept else None,
            lambda left=left, other=other: Added(left.build(), other.build()),
            value,
        )


# -- JSON objects ---------------------------------------------------------------------------------


def _form(value: Any, kind: Kind) -> Any:
    match kind.family:
        case "decimal":
            return float(value)
        case "date" | "uuid":
            return str(value)
        case "datetime":
            return value.isoformat(" ", "microseconds")
        case "time":
            whole = value.isoformat("microseconds")
            return whole.rstrip("0").rstrip(".") if value.microsecond else whole[:8]
        case _:
            return value


def documents() -> Iterator[Term]:
    """A JSON object of every column in every form."""
    for name, form in itertools.product(NAMES, (*LEFT_FORMS, "outer", "outnote", "value")):
        if form != "value" and not offered(form, name):
            continue
        argument = constant(name) if form == "value" else operand(form, name)
        kind = argument.kind
        assert kind is not None
        fits = kind.family not in {"duration", "binary"}

        def value(row: Row, engine: str, argument: Term = argument, kind: Kind = kind) -> Any:
            found = oracle.base(argument.value(row, engine))
            return {"a": None if found is None else _form(found, kind), "b": "ß", "c": None}

        yield Term(
            f"JSONObject({argument.label})",
            JSON if fits else None,
            lambda argument=argument: JSONObject(
                a=argument.build(), b=Value("ß"), c=Value(None, fields.IntegerField(null=True))
            ),
            value,
            needs=argument.needs,
            inner=argument.inner,
            late=argument.late,
        )


# -- queries inside queries -----------------------------------------------------------------------


def existences() -> Iterator[Term]:
    """Return True if there is a row whose column has the value of another column of this row."""
    for place, (first, second) in enumerate(PAIRS):
        if "doc" in {first, second}:
            continue
        unordered = {COLUMNS[first].family, COLUMNS[second].family} & kinds.UNORDERED
        op = "exact" if unordered else COMPARED[place % 5]
        test = comparison(op, operand("column", first, named=True), operand("outer", second))
        for form in ("outer", "outnote"):
            outer = operand(form, second)

            def build(first: str = first, op: str = op, outer: Term = outer) -> Any:
                same = {f"{first}__{op}": outer.build()}
                return Exists(Cross.objects.filter(id=OuterRef("id"), **same))

            yield Term(
                f"Exists({form} {test.label})",
                test.kind,
                build,
                test.value,
                needs=outer.needs,
                unstated=test.unstated,
                late=True,
            )


# -- the time of the statement, and chance --------------------------------------------------------

_ZERO = dt.timedelta()


def _before(row: Row, engine: str) -> bool:
    return row["moment"] is not None and row["moment"] < dt.datetime.now(dt.UTC)


def _earlier(row: Row, engine: str) -> bool:
    return row["day"] is not None and row["day"] < dt.datetime.now(dt.UTC).date()


def times() -> Iterator[Term]:
    """What the statement's time is, and numbers of chance, as far as they are known."""
    yield Term("Now() - Now()", DURATION, lambda: Now() - Now(), lambda row, engine: _ZERO)
    yield Term("moment < Now()", BOOL, lambda: Q(moment__lt=Now()), _before)
    yield Term("day < Now()", BOOL, lambda: Q(day__lt=Cast(Now(), fields.DateField())), _earlier)
    yield Term(
        "date of Now() - Cast of Now()",
        DURATION,
        lambda: Extract(Now(), "date") - Cast(Now(), fields.DateField()),
        lambda row, engine: _ZERO,
    )
    yield Term(
        "Cast(Now() + span) - Cast(Now() + span)",
        DURATION,
        lambda: (Now() + F("span")) - (Now() + F("span")),
        lambda row, engine: None if row["span"] is None else _ZERO,
    )
    yield Term(
        "Floor(Random())",
        kinds.INT,
        lambda: Floor(Random()),
        lambda row, engine: 0,
        kinds=(FLOAT,),
    )
