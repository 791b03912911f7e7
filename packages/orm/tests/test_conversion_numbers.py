"""Integers, floats and spans: what has no result is an error of the row, the same on both
databases.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, cast

import pytest
from orm_amounts import Amount, D, names, one_row, values
from orm_models import Everything

from treefold_orm import (
    Case,
    Coalesce,
    DataError,
    Exists,
    F,
    FieldError,
    OuterRef,
    Sum,
    Value,
    When,
)

FAILING: list[tuple[Any, dict[str, Any], str]] = [
    (F("n") / F("tiny"), {"tiny": 0, "n": 1}, "divided by zero"),
    (F("n") / 0, {"n": 1}, "divided by zero"),
    (F("n") / 0.0, {"n": 1}, "divided by zero"),
    (F("n") % F("tiny"), {"tiny": 0, "n": 1}, "divided by zero"),
    (F("price") / F("tiny"), {"tiny": 0, "price": 1}, "divided by zero"),
    (F("price") % F("tiny"), {"tiny": 0, "price": 1}, "divided by zero"),
    (F("real") / F("tiny"), {"tiny": 0, "real": 1.0}, "divided by zero"),
    (F("price") / F("real"), {"real": 0.0, "price": 1}, "divided by zero"),
    (F("big") + 1, {"big": 2**63 - 1}, "fit the range"),
    (F("big") - 2, {"big": -(2**63)}, "fit the range"),
    (F("big") * 2, {"big": 2**62}, "fit the range"),
    (F("big") * F("big") - F("big"), {"big": 2**40}, "fit the range"),
    (F("real") * 10, {"real": 1e308}, "fit the range"),
]


@pytest.mark.parametrize(("expression", "row", "words"), FAILING, ids=range(len(FAILING)))
def test_what_has_no_result_is_an_error_of_the_row(
    rows: None, expression: Any, row: dict[str, Any], words: str
) -> None:
    with one_row(**row):
        query = Amount.objects.filter(name="z")
        with pytest.raises(DataError, match=words):
            list(query.annotate(x=expression))


def test_a_sum_beyond_64_bits_is_an_error(rows: None) -> None:
    Amount.objects.filter(name__in=["b", "c"]).update(big=2**63 - 1)
    with pytest.raises(DataError, match="fit the range"):
        Amount.objects.aggregate(x=Sum("big"))


@pytest.mark.parametrize("half_of", ["sync", "async"])
async def test_both_halves_raise_the_same_error(db: Any, half: Any, half_of: str) -> None:
    await half(Everything.objects).create(integer=1, small=0)
    query = Everything.objects.annotate(x=F("integer") / F("small"))
    with pytest.raises(DataError, match="divided by zero"):
        await half.rows(query)
    with pytest.raises(DataError, match="divided by zero"):
        await half(Everything.objects).update(integer=F("integer") % F("small"))


INTEGERS: list[tuple[Any, dict[str, Any], Any]] = [
    (F("n") * F("n"), {"n": 2**31 - 1}, (2**31 - 1) ** 2),
    (F("tiny") * F("tiny"), {"tiny": 2**15 - 1}, (2**15 - 1) ** 2),
    (F("n") + F("n"), {"n": 2**31 - 1}, 2**32 - 2),
    (F("n") - F("tiny") * F("n"), {"n": -(2**31), "tiny": 3}, 2**32),
    (F("big") % 7, {"big": 2**53 + 1}, (2**53 + 1) % 7),
    (F("big") % 7, {"big": -8}, -1),
    (F("big") % -7, {"big": 8}, 1),
    (7 % F("n"), {"n": 4}, 3),
    (F("big") + 0, {"big": 2**53 + 1}, 2**53 + 1),
    (F("n") / 2, {"n": 7}, 3.5),
    (F("n") / -2, {"n": 7}, -3.5),
    (F("n") * 1.5, {"n": 3}, 4.5),
    (F("n") + Value(0.5), {"n": 3}, 3.5),
    (F("real") * F("n"), {"real": 0.1, "n": 3}, 0.1 * 3),
    (F("real") + D("0.2"), {"real": 0.1}, 0.1 + 0.2),
    (F("price") * F("real"), {"price": D("0.10"), "real": 3.0}, 0.1 * 3.0),
    (F("fine") % (2**53 + 1), {"fine": D("1.0000")}, D(1)),
    (F("wide") + F("real"), {"wide": D(2**53 + 1), "real": 0.0}, float(2**53 + 1)),
]


@pytest.mark.parametrize(("expression", "row", "wanted"), INTEGERS, ids=range(len(INTEGERS)))
def test_numbers_are_computed_with_room(
    rows: None, expression: Any, row: dict[str, Any], wanted: Any
) -> None:
    with one_row(**row):
        (found,) = values(expression, name="z")
    assert found == wanted
    assert type(found) is type(wanted)


def test_integers_and_floats_compare_as_floats(rows: None) -> None:
    with one_row(big=2**53 + 1, real=2.0**53):
        assert names(big=F("real"), name="z") == "z"
        assert names(big__gt=F("real"), name="z") == ""
        assert names(F("big") + 0 > F("real"), name="z") == ""


def test_a_choice_of_integers_and_floats_is_a_float(rows: None) -> None:
    found = values(Case(When(n=3, then=F("n")), default=F("real")))
    assert found == [3.0, 7.25, -0.05, None]
    assert type(found[0]) is float
    assert values(Coalesce("n", "big")) == [3, 7, -2, None]


def test_a_query_inside_another_one_computes_with_the_row_around_it(rows: None) -> None:
    inner = Amount.objects.filter(n=OuterRef("n") * 1, price__gte=OuterRef("tiny") / Value(2))
    assert names(Exists(inner)) == "ab"
    twice = Amount.objects.filter(real__gt=OuterRef("price") * 2)
    assert names(Exists(twice)) == "ac"


TEXT: list[Any] = [
    lambda: F("text") + F("text"),
    lambda: F("text") * 2,
    lambda: F("n") + "1",
    lambda: F("n") + Value("1"),
    lambda: F("n") * True,
    lambda: F("n") + Value(True),
    lambda: F("n") + dt.date(2026, 1, 1),
]


@pytest.mark.parametrize("make", TEXT, ids=range(len(TEXT)))
def test_only_numbers_and_times_are_computed_with(make: Any) -> None:
    with pytest.raises(FieldError, match=r"cannot be computed with|has no meaning"):
        Amount.objects.annotate(x=make())


MICROSECOND = dt.timedelta(microseconds=1)
YEARS = dt.timedelta(days=36_000_000)
SPANS: list[tuple[Any, dt.timedelta, dt.timedelta]] = [
    (F("span") * 2.5, MICROSECOND, 3 * MICROSECOND),
    (F("span") * -2.5, MICROSECOND, -3 * MICROSECOND),
    (F("span") * Value(D("2.5")), MICROSECOND, 3 * MICROSECOND),
    (F("span") / 2, 5 * MICROSECOND, 3 * MICROSECOND),
    (F("span") / 2, -5 * MICROSECOND, -3 * MICROSECOND),
    (F("span") / 3, YEARS + MICROSECOND, YEARS / 3),
    (F("span") / 0.5, MICROSECOND, 2 * MICROSECOND),
    (F("span") * 2, YEARS + MICROSECOND, 2 * YEARS + 2 * MICROSECOND),
    (F("span") + F("span"), YEARS + MICROSECOND, 2 * YEARS + 2 * MICROSECOND),
]


@pytest.mark.parametrize(("expression", "span", "wanted"), SPANS, ids=range(len(SPANS)))
def test_spans_are_exact_to_the_microsecond(
    db: Any, expression: Any, span: dt.timedelta, wanted: dt.timedelta
) -> None:
    Everything.objects.create(span=span)
    row = cast("Any", Everything.objects.annotate(x=expression).get())
    assert row.x == wanted


LOST: list[tuple[Any, dict[str, Any]]] = [
    (F("span") * 4, {"span": YEARS}),
    (F("span") * 4.0, {"span": YEARS}),
    (F("span") / 0, {"span": YEARS}),
    (F("span") / 0.0, {"span": YEARS}),
    (F("moment") + dt.timedelta(days=1), {"moment": dt.datetime(9999, 12, 31, tzinfo=dt.UTC)}),
    (F("moment") - dt.timedelta(days=2), {"moment": dt.datetime(1, 1, 2, tzinfo=dt.UTC)}),
    (F("day") + dt.timedelta(days=2), {"day": dt.date(9999, 12, 30)}),
    (F("day") + F("span"), {"day": dt.date(2026, 1, 1), "span": YEARS}),
    (
        F("moment") + dt.timedelta(hours=20) + dt.timedelta(hours=20),
        {"moment": dt.datetime(9999, 12, 30, 12, tzinfo=dt.UTC)},
    ),
]


@pytest.mark.parametrize(("expression", "row"), LOST, ids=range(len(LOST)))
def test_what_leaves_its_type_is_an_error_of_the_row(
    db: Any, expression: Any, row: dict[str, Any]
) -> None:
    Everything.objects.create(**row)
    with pytest.raises(DataError, match=r"fit the range|years 1|divided by zero|does not fit"):
        list(Everything.objects.annotate(x=expression))
