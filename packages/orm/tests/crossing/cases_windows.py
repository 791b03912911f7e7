"""Values that come from other rows of a window: of each column, and of expressions of several
types, in frames that grow, that move and that are whole.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from crossing import kinds, oracle
from crossing.cases_aggregates import all_true, any_true, deviation, joined, listed
from crossing.cases_casts import JOINED
from crossing.cases_operators import OPERATORS, PAIRS, arithmetic, choice
from crossing.cases_roles import SOME
from crossing.kinds import BOOL, FLOAT, INT, TEXT, Kind
from crossing.terms import Term, bare, operand
from crossing.values import COLUMNS, NAMES, ROWS
from treefold_orm import (
    ArrayAgg,
    Avg,
    BoolAnd,
    BoolOr,
    Count,
    CumeDist,
    DenseRank,
    FirstValue,
    Lag,
    LastValue,
    Lead,
    Max,
    Min,
    NthValue,
    Ntile,
    PercentRank,
    Rank,
    RowNumber,
    RowRange,
    StdDev,
    StringAgg,
    Sum,
    Variance,
)

Compute = Callable[[list[Any], int, Kind, str], Any]


@dataclass(frozen=True, slots=True)
class Windowed:
    """A function of other rows: of the rows so far, ordered by key."""

    label: str
    kind: Kind | None
    argument: Term
    build: Callable[[], Any]
    compute: Compute
    options: dict[str, Any]
    unstated: bool = False

    def value(self, keys: list[int], place: int, engine: str) -> Any:
        """The value in the row at `place` of those rows."""
        found = [oracle.base(self.argument.value(ROWS[key], engine)) for key in keys]
        assert self.argument.kind is not None
        return self.compute(found, place, self.argument.kind, engine)


_SO_FAR: dict[str, Any] = {"order_by": ["id"], "frame": "rows_to_current"}
_OF_ALL: dict[str, Any] = {"order_by": ["id"], "frame": "all"}
_OF_THREE: dict[str, Any] = {"order_by": ["id"], "frame": RowRange(-2, 0)}
_BEFORE: dict[str, Any] = {"order_by": ["id"], "frame": RowRange(-2, -1)}
_BY_KEY: dict[str, Any] = {"order_by": ["id"]}


def _there(found: list[Any], place: int) -> list[Any]:
    return [value for value in found[: place + 1] if value is not None]


def _nth(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return found[2] if place >= 2 else None


def _nth_of_all(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return found[3] if len(found) > 3 else None


def so_far(compute: Compute) -> Compute:
    """An aggregate of the rows up to the current one."""
    return lambda found, place, kind, engine: compute(found[: place + 1], 0, kind, engine)


def of_three(compute: Compute) -> Compute:
    """An aggregate of the current row and two before it."""

    def made(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
        frame = found[max(0, place - 2) : place + 1]
        return compute(frame, len(frame) - 1, kind, engine)

    return made


def of_two_before(compute: Compute) -> Compute:
    """An aggregate of the two rows before the current one, of which the first row has none."""

    def made(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
        frame = found[max(0, place - 2) : place]
        return compute(frame, len(frame) - 1, kind, engine)

    return made


def _whole(compute: Callable[[list[Any], Kind, str], Any]) -> Compute:
    return lambda found, place, kind, engine: compute(found, kind, engine)


def _lag(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return found[place - 1] if place else None


def _lead(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return found[place + 1] if place + 1 < len(found) else None


def _first(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return found[0]


def _last(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return found[-1]


def _sum(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return oracle.total(_there(found, place), kind, engine)


def _avg(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return oracle.mean(_there(found, place), kind, engine)


def _count(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return len(_there(found, place))


def _min(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return min(_there(found, place), default=None)


def _max(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return max(_there(found, place), default=None)


_WINDOWS: dict[str, tuple[Any, Compute, dict[str, Any]]] = {
    "lag": (Lag, _lag, _BY_KEY),
    "lead": (Lead, _lead, _BY_KEY),
    "first": (FirstValue, _first, _SO_FAR),
    "last": (LastValue, _last, _OF_ALL),
    "sum": (Sum, _sum, _SO_FAR),
    "avg": (Avg, _avg, _SO_FAR),
    "count": (Count, _count, _SO_FAR),
    "min": (Min, _min, _SO_FAR),
    "max": (Max, _max, _SO_FAR),
}


_STD_DEV = _whole(deviation(root=True, sample=False))
_VARIANCE = _whole(deviation(root=False, sample=True))
_SAMPLE: Any = partial(Variance, sample=True)
_PIPED: Any = partial(StringAgg, delimiter="|")
_MORE: dict[str, tuple[Any, Compute, dict[str, Any]]] = {
    "nth": (partial(NthValue, nth=3), _nth, _SO_FAR),
    "nth of all": (partial(NthValue, nth=4), _nth_of_all, _OF_ALL),
    "moving sum": (Sum, of_three(_sum), _OF_THREE),
    "moving avg": (Avg, of_three(_avg), _OF_THREE),
    "std": (StdDev, so_far(_STD_DEV), _SO_FAR),
    "moving std": (StdDev, of_three(_STD_DEV), _OF_THREE),
    "var": (_SAMPLE, so_far(_VARIANCE), _SO_FAR),
    "moving var": (_SAMPLE, of_three(_VARIANCE), _OF_THREE),
    "string": (_PIPED, so_far(_whole(joined("|"))), _SO_FAR),
    "moving string": (_PIPED, of_three(_whole(joined("|"))), _OF_THREE),
    "array": (ArrayAgg, so_far(_whole(listed)), _SO_FAR),
    "moving array": (ArrayAgg, of_three(_whole(listed)), _OF_THREE),
    "earlier avg": (Avg, of_two_before(_avg), _BEFORE),
    "earlier std": (StdDev, of_two_before(_STD_DEV), _BEFORE),
    "earlier string": (_PIPED, of_two_before(_whole(joined("|"))), _BEFORE),
    "earlier array": (ArrayAgg, of_two_before(_whole(listed)), _BEFORE),
    "all true": (BoolAnd, so_far(_whole(all_true)), _SO_FAR),
    "moving true": (BoolOr, of_three(_whole(any_true)), _OF_THREE),
}
_ALL = {**_WINDOWS, **_MORE}


def _result(name: str, kind: Kind, *, column: bool) -> Kind | None:
    """The type of a window function's values; None where it has no meaning or an open one."""
    word = name.rpartition(" ")[2]
    plain = kind.members is None and kind != kinds.JSON
    if word in {"sum", "avg"}:
        if not plain or kind.family not in {*kinds.NUMBERS, "duration"}:
            return None
        return oracle.mean_kind(kind) if word == "avg" else kind
    if word in {"std", "var"}:
        fits = plain and kind.family in kinds.NUMBERS
        return FLOAT if fits and (kind != FLOAT or column) else None  # the last digits are open
    if word == "string":
        return TEXT if kind.family in JOINED else None
    if word == "true":
        return BOOL if kind.family == "bool" else None
    if word in {"min", "max"} and not plain:
        return None
    return {"count": INT, "array": kinds.list_of(kind)}.get(word, kind)


def windowed(name: str, argument: Term) -> Windowed | None:
    """One window function of one term; None where it has no meaning."""
    kind = argument.kind
    assert kind is not None
    function, compute, options = _ALL[name]
    result = _result(name, kind, column=bool(argument.form))
    if result is None:
        return None
    return Windowed(
        f"{name}({argument.label})",
        result,
        argument,
        lambda: function(argument.build()),
        compute,
        options,
        kind.family in kinds.UNORDERED and name in {"min", "max"},
    )


def windows() -> Iterator[Windowed]:
    """Every window function of columns, and of expressions of several types."""
    arguments = [operand(form, name) for name in NAMES for form in ("column", "related", "case")]
    numbers = ("num", "real", "money", "fine", "span")
    mixed: list[Term] = []
    for first, second in itertools.product(numbers, numbers):
        one, two = operand("column", first), operand("column", second)
        made = [choice(what, one, two) for what in ("coalesce", "case", "greatest")]
        made += [arithmetic(op, one, two) for op in OPERATORS]
        mixed += [term for term in made if term.kind is not None and not term.unstated]
    cells = [
        *itertools.product(_WINDOWS, [*arguments, *mixed]),
        *itertools.product(_MORE, [*arguments[::2], *mixed[::4]]),
    ]
    for name, argument in cells:
        found = windowed(name, argument)
        if found is not None:
            yield found


# -- defaults of neighbours -----------------------------------------------------------------------


def neighbours() -> Iterator[Windowed]:
    """Lag and Lead with a default of every type beside a value of every type."""
    for first, second in PAIRS:
        left = operand("column", first)
        yield _neighbour(left, operand("column", second), by=-2)
        if first == second and first not in {"doc", "text"}:  # a bare text names a field
            yield _neighbour(left, bare(first), by=1)


def _neighbour(left: Term, default: Term, *, by: int) -> Windowed:
    assert left.kind is not None
    assert default.kind is not None
    pair = left.kind, default.kind
    wanted = kinds.common(*pair)

    def compute(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
        assert wanted is not None
        for key, value in zip(SOME, found, strict=True):  # each of them is converted
            oracle.convert(value, pair[0], wanted, engine)
            oracle.convert(oracle.base(default.value(ROWS[key], engine)), pair[1], wanted, engine)
        there = place + by
        if 0 <= there < len(found):
            return oracle.convert(found[there], pair[0], wanted, engine)
        given = oracle.base(default.value(ROWS[place + 1], engine))
        return oracle.convert(given, pair[1], wanted, engine)

    def build() -> Any:
        return (Lag if by < 0 else Lead)(left.build(), abs(by), default=default.build())

    return Windowed(
        f"neighbour({left.label}, {default.label})",
        wanted,
        left,
        build,
        compute,
        _BY_KEY,
        kinds.unstated_common(*pair),
    )


# -- ranks ----------------------------------------------------------------------------------------


def _places(found: list[Any]) -> list[int]:
    """For each row the number of rows before it, those without a value last."""
    there = [value for value in found if value is not None]
    return [
        sum(other < value for other in there) if value is not None else len(there)
        for value in found
    ]


def _rank(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return _places(found)[place] + 1


def _dense_rank(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    places = _places(found)
    return len({other for other in places if other < places[place]}) + 1


def _row_number(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    places = _places(found)
    return sorted(range(len(found)), key=lambda row: (places[row], row)).index(place) + 1


def _ntile(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    number = _row_number(found, place, kind, engine) - 1
    size, larger = divmod(len(found), 3)
    ends = itertools.accumulate(size + (bucket < larger) for bucket in range(3))
    return next(bucket for bucket, end in enumerate(ends, start=1) if number < end)


def _percent_rank(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    return _places(found)[place] / (len(found) - 1) if len(found) > 1 else 0.0


def _cume_dist(found: list[Any], place: int, kind: Kind, engine: str) -> Any:
    places = _places(found)
    return sum(other <= places[place] for other in places) / len(found)


_RANKS: dict[str, tuple[Callable[[], Any], Compute, Kind, bool]] = {
    "Rank": (Rank, _rank, INT, False),
    "DenseRank": (DenseRank, _dense_rank, INT, False),
    "RowNumber": (RowNumber, _row_number, INT, True),
    "Ntile": (lambda: Ntile(3), _ntile, INT, True),
    "PercentRank": (PercentRank, _percent_rank, FLOAT, False),
    "CumeDist": (CumeDist, _cume_dist, FLOAT, False),
}


def ranks() -> Iterator[Windowed]:
    """Every rank, in the order of columns and of expressions of several types."""
    found = [
        operand(form, name)
        for name in NAMES
        for form in ("column", "related", "note")
        if COLUMNS[name].family not in kinds.UNORDERED
    ]
    numbers = ("num", "real", "money", "fine")
    for first, second in itertools.product(numbers, numbers):
        one, two = operand("column", first), operand("column", second)
        made = choice("coalesce", one, two), arithmetic("*", one, two), arithmetic("/", one, two)
        found += [term for term in made if term.kind is not None]
    for (name, row), argument in itertools.product(_RANKS.items(), found):
        build, compute, result, unique = row
        terms = [argument.build(), *(["id"] if unique else [])]
        yield Windowed(
            f"{name} by {argument.label}", result, argument, build, compute, {"order_by": terms}
        )
