"""The places of a query where a value meets another one without an operator between them.

Assignments, `in` with the rows of a query, set operations, joins of CTEs, groups, orders and
aggregates, for every pair of columns or every column.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from crossing import kinds, oracle
from crossing.cases_operators import (
    CHOICES,
    OPERATORS,
    PAIRS,
    arithmetic,
    choice,
    comparison,
    written,
)
from crossing.kinds import BOOL, Kind
from crossing.terms import LEFT_FORMS, Term, beside, constant, offered, operand
from crossing.values import COLUMNS, CONSTANTS, DIGITS, LIMITS, NAMES, ROWS, Cross, Row
from treefold_orm import Avg, Count, Max, Min, Q, Sum

SOME = (1, 2, 3, 4, 5, 6, 7)  # the rows without the edges of the types


# -- assignments ----------------------------------------------------------------------------------


def stored(target: str, source: Term) -> Term | None:
    """The value of a column after an assignment; None where the rules leave it open."""
    wanted = COLUMNS[target]
    assert source.kind is not None
    if source.document:
        seen = beside(source, wanted)
        if seen is None:
            return None
        source = seen
    found = source.kind
    assert found is not None
    if wanted.members is not None and found != wanted:
        return None  # the value may be no member: the rules say nothing
    if wanted.family == "json" and found.family != "json":
        return None
    result = kinds.assigned(wanted, found)
    room: Any = DIGITS.get(target, LIMITS.get(target))

    def value(row: Row, engine: str) -> Any:
        given = source.value(row, engine)
        if found.family == "json" != wanted.family:
            return None  # a document is no number and no text
        if wanted.family in kinds.NUMBERS or found.family != wanted.family:
            return oracle.cast(given, found, wanted, engine, room)
        return given

    return Term(
        f"{target} = {source.label}",
        result,
        source.build,
        value,
        needs=source.needs,
        name=f"to_{target}",
        inner=source.inner,
        unstated=kinds.unstated_assignment(wanted, found),
    )


def assignments(*, long: bool = False) -> Iterator[Term]:
    """Every column assigned from every other one, in the forms that an update takes."""
    forms = ("column", "value", "sub", "case", "json", "note", "agg")
    for place, (target, name) in enumerate(PAIRS):
        chosen = forms if long else ("column", forms[1 + place % 6], "json")
        for form in chosen:
            if form != "value" and not offered(form, name):
                continue
            for turn in range(len(CONSTANTS[name]) if form == "value" else 1):
                source = constant(name, turn) if form == "value" else operand(form, name)
                made = stored(target, source)
                if made is not None:
                    yield made


def computed_assignments() -> Iterator[Term]:
    """Columns assigned from arithmetic and choices of two other columns."""
    numbers = ("num", "real", "money", "fine")
    for target, first, second in itertools.product(numbers, numbers, numbers):
        for term in (
            *(arithmetic(op, operand("column", first), operand("column", second))
              for op in OPERATORS),
            *(choice(what, operand("column", first), operand("column", second))
              for what in CHOICES),
        ):  # fmt: skip
            if term.kind is not None:
                made = stored(target, term)
                if made is not None:
                    yield made


# -- in, with the rows of a query -----------------------------------------------------------------


def membership(left: Term, second: str) -> Term:
    """Return True if a value is among those of a column."""
    assert left.kind is not None
    pair = (left.kind, COLUMNS[second])
    wanted = kinds.common(*pair)

    def value(row: Row, engine: str) -> bool:
        assert wanted is not None
        found = left.value(row, engine)
        met, unsure = False, False
        for key in SOME:
            sides = oracle.both(found, ROWS[key][second], pair=pair, wanted=wanted, engine=engine)
            met = met or oracle.compare("exact", sides[0], sides[1])
            unsure = unsure or sides[2]
        if unsure:
            raise oracle.Unsure(met)
        return met

    def build() -> Any:
        return Q(**{f"{left.name}__in": Cross.objects.filter(id__in=SOME).values(second)})

    return Term(
        f"{left.label} in {second}",
        None if wanted is None else BOOL,
        build,
        value,
        needs=left.needs,
        unstated=kinds.unstated_common(*pair) or left.document or "json" in {
            pair[0].family, pair[1].family,
        } or "binary" in {pair[0].family, pair[1].family},
    )  # fmt: skip


def memberships(*, long: bool = False) -> Iterator[Term]:
    """Every column among the values of every other one."""
    for place, (first, second) in enumerate(PAIRS):
        forms = LEFT_FORMS if long else ("column", LEFT_FORMS[1 + place % (len(LEFT_FORMS) - 1)])
        for form in forms:
            if offered(form, first) and form != "json":
                yield membership(operand(form, first, named=True), second)


def filters(*, long: bool = False) -> Iterator[Term]:
    """Comparisons to filter and exclude by."""
    for place, names in enumerate(PAIRS):
        if kinds.common(COLUMNS[names[0]], COLUMNS[names[1]]) is None or "doc" in names:
            continue
        for op in ("exact", "lt", "gte"):
            for left, other in written(names, place, long=long, named=True):
                yield comparison(op, left, other)


# -- columns of two queries -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Pair:
    """A value of one query and one of another that come to stand in one column, or are equal."""

    label: str
    left: Term
    right: Term
    kind: Kind | None
    unstated: bool

    def side(self, right: bool, row: Row, engine: str) -> Any:
        """The value of one side in their common type."""
        assert self.kind is not None
        term = self.right if right else self.left
        assert term.kind is not None
        return oracle.convert(term.value(row, engine), term.kind, self.kind, engine)


def pairs(*, long: bool = False) -> Iterator[Pair]:
    """Every pair of columns, in the forms that a query of its own can have."""
    forms = ("column", "note", "win", "case", "sub", "agg")
    for place, (first, second) in enumerate(PAIRS):
        both = [*itertools.product(forms, forms)]
        chosen = both if long else [both[0], both[1 + place % (len(both) - 1)]]
        for one, two in chosen:
            if offered(one, first) and offered(two, second):
                left, other = operand(one, first), operand(two, second)
                assert left.kind is not None
                assert other.kind is not None
                yield Pair(
                    f"({left.label}, {other.label})",
                    left,
                    other,
                    kinds.common(left.kind, other.kind),
                    kinds.unstated_common(left.kind, other.kind),
                )


# -- groups, orders and aggregates ----------------------------------------------------------------


def keys_to_group_by() -> Iterator[Term]:
    """Columns and expressions of several types to group, order and tell apart by."""
    for name in NAMES:
        for form in ("column", "related", "case", "sub"):
            yield operand(form, name)
    numbers = ("num", "real", "money", "fine", "day", "moment")
    for first, second in itertools.product(numbers, numbers):
        for what in CHOICES:
            made = choice(what, operand("column", first), operand("column", second))
            if made.kind is not None:
                yield made
        for op in ("+", "*", "/"):
            made = arithmetic(op, operand("column", first), operand("column", second))
            if made.kind is not None:
                yield made


@dataclass(frozen=True, slots=True)
class Aggregated:
    """An aggregate of a term; `compute` is given the values of all rows, NULL among them."""

    label: str
    name: str
    argument: Term
    kind: Kind | None
    build: Any
    unstated: bool
    compute: Callable[[list[Any], Kind, str], Any] | None = None
    window: bool = True

    def value(self, keys: list[int], engine: str) -> Any:
        """The aggregate of some rows."""
        found = [oracle.base(self.argument.value(ROWS[key], engine)) for key in keys]
        summed = any(word in self.name for word in ("sum", "avg", "StdDev", "Variance"))
        if summed and self.argument.kind == kinds.FLOAT and not {*keys} <= {*SOME}:
            # large floats of both signs: the order of adding counts, and squares may overflow
            raise oracle.Unsure(oracle.ANYTHING)
        return self.of(found, engine)

    def of(self, found: list[Any], engine: str) -> Any:
        """The aggregate of some values."""
        assert self.argument.kind is not None
        kind = self.argument.kind
        if self.compute is not None:
            return self.compute(found, kind, engine)
        if kind == kinds.JSON and self.name in {"sum", "avg"}:
            return None  # a document is no number
        values = [value for value in found if value is not None]
        match self.name:
            case "count":
                return len(values)
            case "distinct":
                return len({repr(value) for value in values})
            case "sum":
                return oracle.total(values, kind, engine)
            case "avg":
                return oracle.mean(values, kind, engine)
            case "min":
                return min(values, default=None)
            case _:
                return max(values, default=None)


_AGGREGATES: dict[str, Any] = {
    "count": Count,
    "distinct": partial(Count, distinct=True),
    "sum": Sum,
    "avg": Avg,
    "min": Min,
    "max": Max,
}


def aggregated(name: str, argument: Term) -> Aggregated:
    """One aggregate of one term."""
    kind = argument.kind
    assert kind is not None
    result: Kind | None = kind
    if name in {"count", "distinct"}:
        result = kinds.INT
    elif name in {"sum", "avg"}:
        fits = kind.family in {*kinds.NUMBERS, "duration", "json"}
        plain = kinds.FLOAT if kind == kinds.JSON else kinds.plain(kind)
        result = None if not fits else plain if name == "sum" else oracle.mean_kind(plain)
    odd = kind.family in kinds.UNORDERED and name in {"min", "max"}
    return Aggregated(
        f"{name}({argument.label})",
        name,
        argument,
        result,
        lambda: _AGGREGATES[name](argument.build()),
        unstated=odd or kind.members is not None or (kind == kinds.JSON and name != "count"),
    )


def aggregates() -> Iterator[Aggregated]:
    """Every aggregate of every column, and of expressions of several types."""
    arguments = [
        operand(form, name)
        for name in NAMES
        for form in ("column", "related", "case", "note", "json")
        if offered(form, name) and form != "json"
    ]
    numbers = ("num", "real", "money", "fine", "span")
    for first, second in itertools.product(numbers, numbers):
        one, two = operand("column", first), operand("column", second)
        made = [choice(what, one, two) for what in CHOICES]
        made += [arithmetic(op, one, two) for op in ("+", "*", "/")]
        arguments += [term for term in made if term.kind is not None]
    for name, argument in itertools.product(_AGGREGATES, arguments):
        if name in {"min", "max"} and argument.kind == kinds.JSON:
            continue
        yield aggregated(name, argument)
