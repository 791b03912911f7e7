"""Comparisons, arithmetic and choices of two operands, for every pair of columns.

The pair of plain columns is always there; of the other forms of the operands the short table takes
some in turn, the long one all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any, cast

from crossing import kinds, oracle
from crossing.kinds import BOOL, JSON, Kind
from crossing.terms import (
    LEFT_FORMS,
    OUTER_FORMS,
    RIGHT_FORMS,
    Term,
    bare,
    beside,
    offered,
    operand,
    right,
)
from crossing.values import COLUMNS, CONSTANTS, NAMES, Row
from treefold_orm import Case, Coalesce, Greatest, Least, NullIf, Q, When

COMPARED = ("exact", "gt", "gte", "lt", "lte")
OPERATORS = ("+", "-", "*", "/", "%")
CHOICES = ("coalesce", "greatest", "least", "nullif", "case")
PAIRS = [*itertools.product(NAMES, NAMES)]
_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
    "%": lambda a, b: a % b,
}
_FUNCTIONS: dict[str, Any] = {"greatest": Greatest, "least": Least, "nullif": NullIf}


def written(
    names: tuple[str, str], place: int, *, long: bool, named: bool = False
) -> Iterator[tuple[Term, Term]]:
    """The operands of a pair in their forms, beginning with the two columns."""
    first, second = names
    forms = [*itertools.product(LEFT_FORMS, RIGHT_FORMS)][1:]
    if not long:
        forms = [forms[(place * 7 + turn * 31) % len(forms)] for turn in range(3)]
        forms.append(("column", RIGHT_FORMS[1 + place % (len(RIGHT_FORMS) - 1)]))
    yield operand("column", first, named=named), operand("column", second)
    for left, other in dict.fromkeys(forms):
        if not offered(left, first) or not offered(other, second):
            continue
        if other in OUTER_FORMS and left != "column":
            continue
        for turn in range(len(CONSTANTS[second]) if long and other == "value" else 1):
            one = operand(left, first, named=named)
            two = right(other, second, turn + place)
            if one.document and two.document:
                continue
            pair = beside(one, COLUMNS[second]), beside(two, COLUMNS[first])
            if pair[0] is not None and pair[1] is not None:
                yield pair[0], pair[1]


def _joined(left: Term, other: Term) -> dict[str, Any]:
    return {
        "needs": (*left.needs, *other.needs),
        "inner": left.inner or other.inner,
        "late": left.late or other.late,
    }


# -- comparisons ----------------------------------------------------------------------------------


def comparison(op: str, left: Term, other: Term) -> Term:
    """`left op other` as a value; the left side is a name."""
    assert left.kind is not None
    assert other.kind is not None
    pair = (left.kind, other.kind)
    wanted = kinds.common(*pair)
    ordered = wanted is None or wanted.family not in kinds.UNORDERED or op == "exact"

    def value(row: Row, engine: str) -> bool:
        assert wanted is not None
        sides = left.value(row, engine), other.value(row, engine)
        a, b, unsure = oracle.both(*sides, pair=pair, wanted=wanted, engine=engine)
        made = _ordered(op, a, b)
        if unsure:
            raise oracle.Unsure(made)
        return made

    return Term(
        f"{left.label} {op} {other.label}",
        None if wanted is None else BOOL,
        lambda: Q(**{f"{left.name}__{op}": other.build()}),
        value,
        unstated=kinds.unstated_common(*pair) or not ordered or left.document,
        **_joined(left, other),
    )


def _ordered(op: str, a: Any, b: Any) -> bool:
    return a == b if isinstance(a, dict) else oracle.compare(op, a, b)


def comparisons(*, long: bool = False) -> Iterator[Term]:
    """Every comparison of every pair."""
    for place, names in enumerate(PAIRS):
        for turn, op in enumerate(COMPARED):
            if "doc" in names and op != "exact":
                continue
            for left, other in written(names, place + turn, long=long, named=True):
                nothing = kinds.common(COLUMNS[names[0]], COLUMNS[names[1]]) is None
                if nothing and op in {"gte", "lt", "lte"} and not long:
                    continue
                yield comparison(op, left, other)


def bare_comparisons() -> Iterator[Term]:
    """Python's values, which are checked by the field beside them."""
    for name in NAMES:
        for op, place in itertools.product(COMPARED, range(len(CONSTANTS[name]))):
            if COLUMNS[name].family in kinds.UNORDERED and op != "exact":
                continue
            for form in ("column", "related", "note", "win", "case", "cte"):
                yield comparison(op, operand(form, name, named=True), bare(name, place))


# -- arithmetic -----------------------------------------------------------------------------------


def arithmetic(op: str, left: Term, other: Term) -> Term:
    """`left op other`."""
    assert left.kind is not None
    assert other.kind is not None
    first, second = left.kind, other.kind
    result = kinds.arithmetic(op, first, second)
    document = left.document or other.document
    unstated = kinds.unstated_arithmetic(first, second) or (document and op == "%")

    def value(row: Row, engine: str) -> Any:
        assert result is not None
        sides = left.value(row, engine), other.value(row, engine)
        try:
            return oracle.arithmetic(op, *sides, kinds=(first, second, result), engine=engine)
        except oracle.Fault:
            if document and result == kinds.INT:  # a JSON number may go on as a float
                raise oracle.Unsure(oracle.ANYTHING) from None
            raise

    return Term(
        f"{left.label} {op} {other.label}",
        result,
        lambda: _SIGNS[op](left.build(), other.build()),
        value,
        unstated=unstated,
        kinds=(kinds.FLOAT,) if document and result == kinds.INT else (),
        **_joined(left, other),
    )


def arithmetics(*, long: bool = False) -> Iterator[Term]:
    """Every operator between every pair."""
    for place, names in enumerate(PAIRS):
        for turn, op in enumerate(OPERATORS):
            for left, other in written(names, place + turn, long=long):
                yield arithmetic(op, left, other)


def bare_arithmetics() -> Iterator[Term]:
    """Numbers of Python beside columns, on both sides."""
    numbers = [name for name in NAMES if COLUMNS[name].family in kinds.NUMBERS]
    numbers.remove("level")
    for first, second, op in itertools.product(numbers, numbers, OPERATORS):
        for place in range(2):
            yield arithmetic(op, operand("column", first), bare(second, place))
            yield arithmetic(op, bare(second, place), operand("column", first))


# -- choices --------------------------------------------------------------------------------------


def choice(what: str, left: Term, other: Term) -> Term:
    """One of two values."""
    assert left.kind is not None
    assert other.kind is not None
    pair = (left.kind, other.kind)
    wanted = kinds.common(*pair)
    ordered = wanted is None or wanted.family not in kinds.UNORDERED
    document = wanted is not None and wanted.family == "json"

    def value(row: Row, engine: str) -> Any:
        assert wanted is not None
        sides = _lazily(what, left, other, row, engine)
        a, b, unsure = oracle.both(*sides, pair=pair, wanted=wanted, engine=engine)
        made = chosen(what, a, b, row)
        if unsure:
            raise oracle.Unsure(made)
        return made

    return Term(
        f"{what}({left.label}, {other.label})",
        wanted,
        lambda: _built(what, left.build(), other.build()),
        value,
        unstated=kinds.unstated_common(*pair)
        or (what in {"greatest", "least"} and not ordered)
        or (what == "nullif" and document),
        kinds=_other_kinds(what, pair),
        **_joined(left, other),
    )


def _lazily(what: str, left: Term, other: Term, row: Row, engine: str) -> tuple[Any, Any]:
    """The values of both sides; one that is not chosen may be left out, and its fault with it."""
    if what == "case":
        needed, spare = (left, other) if row["flag"] else (other, left)
    elif what == "coalesce" and left.kind != JSON and left.value(row, engine) is not None:
        needed, spare = left, other
    else:
        return left.value(row, engine), other.value(row, engine)
    made = needed.value(row, engine)
    try:
        spare.value(row, engine)
    except oracle.Fault:  # a database may compute constants before it chooses
        raise oracle.Unsure(oracle.ANYTHING) from None
    return (made, None) if needed is left else (None, made)


def chosen(what: str, a: Any, b: Any, row: Row) -> Any:
    """The value of a choice between two values of one type."""
    match what:
        case "coalesce":
            return b if a is None else a
        case "case":
            return a if row["flag"] else b
        case "nullif":
            return None if a is not None and a == b else a
        case _:
            there = [side for side in (a, b) if side is not None]
            if there and isinstance(there[0], dict):
                return cast("Any", there[0])
            return (max if what == "greatest" else min)(there, default=None)


def _other_kinds(what: str, pair: tuple[Kind, Kind]) -> tuple[Kind, ...]:
    # a result may keep the type of the first operand, which all its values come from
    if what == "nullif":
        return (pair[0],)
    return tuple(kinds.plain(kind) for kind in pair[:1] if kind.members is not None)


def _built(what: str, a: Any, b: Any) -> Any:
    if what == "coalesce":
        return Coalesce(a, b)
    if what == "case":
        return Case(When(flag=True, then=a), default=b)
    return _FUNCTIONS[what](a, b)


def choices(*, long: bool = False) -> Iterator[Term]:
    """Every choice between every pair."""
    for place, names in enumerate(PAIRS):
        for turn, what in enumerate(CHOICES):
            for left, other in written(names, place + turn, long=long):
                yield choice(what, left, other)
