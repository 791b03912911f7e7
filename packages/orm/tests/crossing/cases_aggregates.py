"""Aggregates of one column or expression: deviations, collected values, truth, distinct values, and
what `default=` and `output_field=` make of a result.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

from crossing import kinds, oracle
from crossing.cases_casts import CAST_FIELDS, JOINED
from crossing.cases_operators import OPERATORS, PAIRS, arithmetic, choice
from crossing.cases_roles import Aggregated, aggregated
from crossing.kinds import BOOL, FLOAT, INT, TEXT, Kind
from crossing.terms import Term, bare, beside, constant, operand
from crossing.values import COLUMNS, NAMES
from treefold_orm import (
    ArrayAgg,
    Avg,
    BoolAnd,
    BoolOr,
    Count,
    Max,
    Min,
    Q,
    StdDev,
    StringAgg,
    Sum,
    Variance,
)

Compute = Callable[[list[Any], Kind, str], Any]
_NOTHING = Q(id__lt=0)


def _there(found: list[Any]) -> list[Any]:
    return [value for value in found if value is not None]


def deviation(*, root: bool, sample: bool) -> Compute:
    """The deviation or variance of numbers, from exact sums."""

    def compute(found: list[Any], kind: Kind, engine: str) -> Any:
        values = [Fraction(float(value)) for value in _there(found)]
        divisor = len(values) - sample
        if divisor < 1:
            return None
        mean = sum(values) / len(values)
        squares = sum(((value - mean) ** 2 for value in values), Fraction(0))
        try:
            made = float(squares / divisor)
        except OverflowError:
            raise oracle.Fault from None
        return math.sqrt(made) if root else made

    return compute


def joined(delimiter: str) -> Compute:
    """The texts of values with a delimiter between them."""

    def compute(found: list[Any], kind: Kind, engine: str) -> Any:
        texts = [oracle.text_of(value, kind) for value in _there(found)]
        return delimiter.join(texts) if texts else None

    return compute


def listed(found: list[Any], kind: Kind, engine: str) -> Any:
    """The values as a list."""
    return [*found] or None


def _sorted(found: list[Any]) -> list[Any]:
    there = sorted({*_there(found)})
    return [*there, *([None] if None in found else [])]


def all_true(found: list[Any], kind: Kind, engine: str) -> Any:
    """Return True if all values are true."""
    there = _there(found)
    return all(there) if there else None


def any_true(found: list[Any], kind: Kind, engine: str) -> Any:
    """Return True if a value is true."""
    there = _there(found)
    return any(there) if there else None


def _number(kind: Kind) -> Kind | None:
    return FLOAT if kind.family in {*kinds.NUMBERS, "json"} else None


def _text(kind: Kind) -> Kind | None:
    return TEXT if kind.family in {*JOINED, "json"} else None


def _truth(kind: Kind) -> Kind | None:
    return BOOL if kind.family in {"bool", "json"} else None


# what each takes beside a JSON path, what it gives, how it is written and computed
_MORE: dict[
    str, tuple[Kind | None, Callable[[Kind], Kind | None], Callable[[Any], Any], Compute]
] = {
    "StdDev": (FLOAT, _number, StdDev, deviation(root=True, sample=False)),
    "StdDev of a sample": (
        FLOAT, _number, lambda e: StdDev(e, sample=True), deviation(root=True, sample=True),
    ),
    "Variance": (FLOAT, _number, Variance, deviation(root=False, sample=False)),
    "Variance of a sample": (
        FLOAT, _number, lambda e: Variance(e, sample=True), deviation(root=False, sample=True),
    ),
    "distinct StdDev": (
        FLOAT,
        _number,
        lambda e: StdDev(e, distinct=True),
        lambda found, kind, engine: deviation(root=True, sample=False)(
            [*{float(value) for value in _there(found)}], kind, engine
        ),
    ),
    "StringAgg": (TEXT, _text, lambda e: StringAgg(e, ", ", order_by="id"), joined(", ")),
    "distinct StringAgg": (
        TEXT,
        _text,
        lambda e: StringAgg(e, "", distinct=True),
        lambda found, kind, engine: "".join(
            sorted({oracle.text_of(value, kind) for value in _there(found)})
        ) if _there(found) else None,
    ),
    "ArrayAgg": (None, kinds.list_of, lambda e: ArrayAgg(e, order_by="id"), listed),
    "falling ArrayAgg": (
        None,
        kinds.list_of,
        lambda e: ArrayAgg(e, order_by=["-id"]),
        lambda found, kind, engine: [*reversed(found)] or None,
    ),
    "distinct ArrayAgg": (
        None,
        lambda kind: None if kind.family in kinds.UNORDERED else kinds.list_of(kind),
        lambda e: ArrayAgg(e, distinct=True),
        lambda found, kind, engine: _sorted(found) or None,
    ),
    "BoolAnd": (BOOL, _truth, BoolAnd, all_true),
    "BoolOr": (BOOL, _truth, BoolOr, any_true),
}  # fmt: skip
_OF_NO_WINDOW = ("distinct", "StringAgg", "ArrayAgg", "falling")


def of_more(name: str, argument: Term) -> Aggregated | None:
    """One of the further aggregates of a term; None where the rules leave the result open."""
    needs, result, build, compute = _MORE[name]
    kind = argument.kind
    assert kind is not None
    if argument.document:
        seen = None if needs is None else beside(argument, needs)
        if seen is None:
            return None
        argument, kind = seen, seen.kind or kind
    given = result(kind)
    if given == TEXT and kind.family not in {*JOINED, "json"}:
        return None
    if needs == TEXT and given is None and kind.family not in {"bool", "datetime"}:
        return None  # whether a time, a span or a document has a text is open
    if "distinct ArrayAgg" in name and given is None:
        return None  # the order of such values is open

    def computed(found: list[Any], kind: Kind, engine: str) -> Any:
        missing = kind == kinds.JSON and needs is not None  # a document is no number and no text
        return compute([None] * len(found) if missing else found, kind, engine)

    return Aggregated(
        f"{name}({argument.label})",
        name,
        argument,
        given,
        lambda: build(argument.build()),
        unstated=kind.members is not None or kind == kinds.JSON,
        compute=computed,
        window=not name.startswith(_OF_NO_WINDOW),
    )


def _arguments() -> list[Term]:
    forms = ("related", "case", "note")
    found = [operand("column", name) for name in NAMES]
    found += [operand(forms[place % 3], name) for place, name in enumerate(NAMES)]
    found += [operand("json", name) for name in ("num", "real", "text", "flag")]
    for first, second in (("num", "money"), ("fine", "money"), ("num", "real")):
        one, two = operand("column", first), operand("column", second)
        made = [choice("coalesce", one, two), *(arithmetic(op, one, two) for op in OPERATORS)]
        found += [term for term in made if term.kind is not None]
    return found


def more() -> Iterator[Aggregated]:
    """The further aggregates of every column, and of expressions of several types."""
    for name, argument in itertools.product(_MORE, _arguments()):
        found = of_more(name, argument)
        if found is not None:
            yield found
    for name, build, compute in (("BoolAnd", BoolAnd, all), ("BoolOr", BoolOr, any)):
        argument = operand("column", "num")
        yield Aggregated(
            f"{name}(condition)",
            name,
            argument,
            BOOL,
            lambda build=build: build(Q(num__gt=3)),
            unstated=False,
            compute=lambda found, kind, engine, c=compute: (
                c([value is not None and value > 3 for value in found]) if found else None
            ),
        )


def distinct() -> Iterator[Aggregated]:
    """Sums and means of distinct values."""
    for name, build in (("sum", Sum), ("avg", Avg)):
        for argument in _arguments():
            kind = argument.kind
            if kind is None or argument.document or kind.members or kind.family not in {
                "int", "decimal", "duration",
            }:  # fmt: skip
                continue
            plain = aggregated(name, argument)
            compute = oracle.total if name == "sum" else oracle.mean
            yield Aggregated(
                f"distinct {plain.label}",
                f"distinct {name}",
                argument,
                plain.kind,
                lambda b=build, a=argument: b(a.build(), distinct=True),
                unstated=plain.unstated,
                compute=lambda found, kind, engine, c=compute: c([*{*_there(found)}], kind, engine),
                window=False,
            )


# -- default= and output_field= -------------------------------------------------------------------

_BUILDERS: dict[str, Any] = {
    "sum": Sum,
    "avg": Avg,
    "min": Min,
    "max": Max,
    "StdDev": StdDev,
    "BoolAnd": BoolAnd,
    "ArrayAgg": ArrayAgg,
    "count": Count,
}


def _plain(name: str, argument: Term) -> Aggregated | None:
    return of_more(name, argument) if name in _MORE else aggregated(name, argument)


def defaulted(cell: Aggregated, default: Term, *, empty: bool) -> Aggregated:
    """An aggregate with a default; `empty` where a filter leaves nothing to aggregate."""
    assert default.kind is not None
    pair = cell.kind, default.kind
    wanted = None if pair[0] is None else kinds.common(pair[0], pair[1])
    options: dict[str, Any] = {"filter": _NOTHING} if empty else {}

    def compute(found: list[Any], kind: Kind, engine: str) -> Any:
        assert pair[0] is not None
        assert wanted is not None
        made = None if empty else cell.of(found, engine)
        if made is None:
            return oracle.convert(default.value({}, engine), pair[1], wanted, engine)
        return oracle.convert(made, pair[0], wanted, engine)

    builder = _BUILDERS[cell.name]
    return Aggregated(
        f"{cell.label} or {default.label}{' of nothing' if empty else ''}",
        cell.name,
        cell.argument,
        wanted,
        lambda: builder(cell.argument.build(), default=default.build(), **options),
        unstated=cell.unstated
        or (pair[0] is not None and kinds.unstated_common(pair[0], pair[1]))
        or kinds.JSON in pair,
        compute=compute,
    )


def defaults() -> Iterator[Aggregated]:
    """Defaults of every type beside results of every type, and bare values of the result's own."""
    for place, (first, second) in enumerate(PAIRS):
        if COLUMNS[first].family in kinds.UNORDERED:
            continue
        cell = aggregated("min", operand("column", first))
        yield defaulted(cell, constant(second), empty=place % 2 == 0)
    for name, first in itertools.product(
        ("sum", "avg", "StdDev"), ("num", "real", "money", "fine")
    ):
        plain = _plain(name, operand("column", first))
        assert plain is not None
        for second, empty in itertools.product(("num", "real", "money", "fine"), (True, False)):
            yield defaulted(plain, constant(second), empty=empty)
        own = {kinds.INT: "num", FLOAT: "real", kinds.decimal(2): "money"}
        yield defaulted(plain, bare(own.get(plain.kind or INT, "fine")), empty=True)
    truth = of_more("BoolAnd", operand("column", "flag"))
    assert truth is not None
    for empty, name in itertools.product((True, False), ("flag", "num", "text")):
        yield defaulted(truth, constant(name), empty=empty)


def _converted(name: str, argument: Term, label: str, output: Any, wanted: Kind, room: Any) -> Any:
    cell = _plain(name, argument)
    if cell is None or cell.kind is None:
        return None
    found = cell.kind
    family = wanted.family
    result = kinds.assigned(wanted, found)

    def compute(values: list[Any], kind: Kind, engine: str) -> Any:
        try:
            made = cell.of(values, engine)
        except oracle.Unsure as open_question:
            made = oracle.cast(open_question.value, found, wanted, engine, room)
            raise oracle.Unsure(made) from None
        if found.family == family and family not in kinds.NUMBERS:
            return made
        cast = oracle.cast(made, found, wanted, engine, room)
        in_any_order = found == FLOAT and isinstance(cast, int) and abs(cast) >= 2**52
        return oracle.Near(cast) if in_any_order else cast

    return Aggregated(
        f"{cell.label} as {label}",
        name,
        argument,
        result,
        lambda: _BUILDERS[name](argument.build(), output_field=output),
        unstated=cell.unstated or kinds.unstated_assignment(wanted, found) or found == kinds.JSON,
        compute=compute,
    )


def outputs() -> Iterator[Aggregated]:
    """Results of every type as every other one."""
    numbers = ("small", "num", "big", "real", "money", "fine")
    pairs = [
        *itertools.product(("min",), NAMES),
        *itertools.product(("sum", "avg"), (*numbers, "span")),
        *itertools.product(("StdDev", "count"), ("num", "money")),
        ("BoolAnd", "flag"),
    ]
    for (name, column), row in itertools.product(pairs, CAST_FIELDS):
        if COLUMNS[column].family in kinds.UNORDERED and name == "min":
            continue
        made = _converted(name, operand("column", column), *row)
        if made is not None:
            yield made
