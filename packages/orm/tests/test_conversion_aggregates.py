"""Aggregates have the type of what they take: sums and means of decimals are exact decimals."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from orm_amounts import Amount, D, Part, values
from orm_models import Author, Everything, Profile

from treefold_orm import (
    Avg,
    Case,
    Coalesce,
    Count,
    F,
    FieldError,
    Max,
    Min,
    OuterRef,
    Q,
    Subquery,
    Sum,
    Value,
    When,
    Window,
)

AGGREGATES: list[tuple[Any, Any]] = [
    (Sum("price"), D("10.45")),
    (Sum(F("price") * F("n")), D("59.60")),
    (Sum(F("price") + F("fine")), D("20.9001")),
    (Avg("price"), D("3.483333")),
    (Avg("fine"), D("3.483367")),
    (Avg(F("price") * 2), D("6.966667")),
    (Avg("n"), pytest.approx(8 / 3)),
    (Avg("real"), pytest.approx(10.7 / 3)),
    (Max(F("price") * D("1.5")), D("10.5")),
    (Min(Coalesce("price", "n")), D("-0.05")),
    (Sum(Case(When(n__gt=0, then=F("price")), default=Value(0))), D("10.50")),
    (Sum(Case(When(n__gt=0, then=1), default=0)), 2),
    (Avg("price", filter=Q(n__gt=0)), D("5.250000")),
    (Avg("price", distinct=True), D("3.483333")),
    (Sum("price", filter=Q(n__gt=99)), None),
    (Avg("price", filter=Q(n__gt=99)), None),
    (Sum("price") / Count("n"), D("3.483333")),
    (Sum("tiny") / Count("n"), 3.0),
]


@pytest.mark.parametrize(("aggregate", "wanted"), AGGREGATES, ids=range(len(AGGREGATES)))
def test_an_aggregate_has_the_type_of_what_it_takes(
    rows: None, aggregate: Any, wanted: Any
) -> None:
    found = Amount.objects.aggregate(x=aggregate)["x"]
    assert found == wanted
    assert isinstance(wanted, D) is isinstance(found, D)


def test_a_mean_compares_with_decimals(rows: None) -> None:
    a, b = Amount.objects.filter(n__gt=0).order_by("name")
    Part.objects.bulk_create(
        [
            Part(amount=a, price=D("0.01"), n=1),
            Part(amount=a, price=D("0.02"), n=2),
            Part(amount=b, price=D("5.00"), n=4),
        ]
    )
    query: Any = Amount.objects.annotate(m=Avg("parts__price"), k=Avg("parts__n"))
    query = query.order_by("name")
    assert [row.m for row in query] == [D("0.015"), D(5), None, None]
    assert [row.name for row in query.filter(m__gt=D("0.0149999999"))] == ["a", "b"]
    assert [row.name for row in query.filter(m=D("0.015"))] == ["a"]
    assert [row.name for row in query.filter(m__lt=F("price"))] == ["a", "b"]
    assert [row.name for row in query.filter(m__lt=F("n"))] == ["a", "b"]
    assert [row.name for row in query.filter(m__in=[D("0.015"), 5])] == ["a", "b"]
    assert [row.name for row in query.filter(m__range=(D("0.0001"), 1))] == ["a"]
    assert [row.name for row in query.filter(k__gt=D("1.5"))] == ["b"]
    assert [row.name for row in query.filter(k__in=[D("1.5")])] == ["a"]


def test_means_of_groups_over_a_relation_are_exact(rows: None) -> None:
    a, b = Amount.objects.filter(n__gt=0).order_by("name")
    for amount, prices in ((a, ("0.01", "0.02", "0.04")), (b, ("5.00", "6.00"))):
        Part.objects.bulk_create([Part(amount=amount, price=D(p)) for p in prices])
    grouped = Amount.objects.filter(n__gt=0).values("tiny").annotate(m=Avg("parts__price"))
    assert [row["m"] for row in grouped.order_by("tiny")] == [D("0.023333"), D("5.5")]
    assert Amount.objects.aggregate(m=Avg("parts__price"))["m"] == D("2.214")
    by_part = Part.objects.values("amount__name").annotate(m=Avg("price")).order_by("amount__name")
    assert [row["m"] for row in by_part] == [D("0.023333"), D("5.5")]


def test_a_window_over_decimals_is_exact(rows: None) -> None:
    mean = Window(Avg("price"))
    assert values(mean) == [D("3.483333")] * 4
    running = Window(Sum("price"), order_by=["name"], frame="rows_to_current")
    assert values(running) == [D("3.50"), D("10.50"), D("10.45"), D("10.45")]
    moving = Window(Avg("price"), order_by=["name"], frame="rows_to_current")
    assert values(moving) == [D("3.50"), D("5.25"), D("3.483333"), D("3.483333")]
    whole = Window(Avg("n"), order_by=["name"], frame="rows_to_current")
    assert values(whole) == [3.0, 5.0, pytest.approx(8 / 3), pytest.approx(8 / 3)]
    few = Window(Avg("price", filter=Q(n__gt=0)))
    assert values(few) == [D("5.25")] * 4
    dear = Amount.objects.annotate(m=mean).filter(price__gt=F("m")).order_by("name")
    assert [row.name for row in dear] == ["a", "b"]


REFUSED: list[tuple[Any, str]] = [
    (Sum, "char"),
    (Sum, "flag"),
    (Sum, "day"),
    (Sum, "time"),
    (Sum, "uid"),
    (Sum, "color"),
    (Avg, "day"),
    (Avg, "moment"),
    (Avg, "time"),
    (Avg, "char"),
    (Avg, "flag"),
    (Avg, "color"),
    (Min, "flag"),
    (Max, "data"),
    (Max, "uid"),
    (Min, "blob"),
]


@pytest.mark.parametrize(("kind", "name"), REFUSED, ids=str)
def test_what_has_no_sum_mean_or_order_is_refused(kind: Any, name: str) -> None:
    for taken in (kind(name), kind(F(name)), Window(kind(name))):
        with pytest.raises(
            FieldError, match=rf"{kind.__name__} cannot take Everything\.{name} .*Cast"
        ):
            Everything.objects.values("integer").annotate(x=taken)


def test_sums_and_means_of_spans_are_exact(db: Any) -> None:
    tick = dt.timedelta(microseconds=1)
    spans = [tick, 2 * tick, dt.timedelta(days=30_000_000)]
    Everything.objects.bulk_create([Everything(span=span, integer=1) for span in spans])
    wanted = dt.timedelta(days=10_000_000, microseconds=1)
    assert Everything.objects.aggregate(s=Sum("span"), m=Avg("span")) == {
        "s": sum(spans, dt.timedelta()),
        "m": wanted,
    }
    assert Everything.objects.filter(span__lt=dt.timedelta(1)).aggregate(m=Avg("span")) == {
        "m": 2 * tick
    }
    query: Any = Everything.objects.annotate(m=Window(Avg("span")))
    assert {row.m for row in query} == {wanted}


def test_an_enum_of_integers_adds_up_as_integers(db: Any) -> None:
    Everything.objects.bulk_create([Everything(integer=n, char="x") for n in (1, 2)])
    found = Everything.objects.values("char").annotate(m=Avg("integer"), s=Sum("small"))
    assert list(found) == [{"char": "x", "m": 1.5, "s": None}]


def test_a_one_to_one_relation_is_counted(db: Any) -> None:
    ann, _ = (Author.objects.create(name=name, age=age) for name, age in (("Ann", 30), ("Bob", 40)))
    Profile.objects.create(author=ann, site="https://example.org")
    query: Any = Author.objects.annotate(n=Count("profile"), site=Max("profile__site"))
    assert [(row.name, row.n, row.site) for row in query] == [
        ("Ann", 1, "https://example.org"),
        ("Bob", 0, None),
    ]
    assert [row.name for row in query.filter(n=0)] == ["Bob"]
    assert Author.objects.aggregate(n=Count("profile")) == {"n": 1}
    grouped = Author.objects.values("age").annotate(n=Count("profile")).order_by("age")
    assert list(grouped) == [{"age": 30, "n": 1}, {"age": 40, "n": 0}]


def test_a_case_over_related_rows_is_added_up_row_by_row(rows: None) -> None:
    a, b = Amount.objects.filter(n__gt=0).order_by("name")
    for amount, price, n in ((a, "1.50", 1), (a, "4.00", 2), (b, "9.00", 3)):
        Part.objects.create(amount=amount, price=D(price), n=n)
    dear = Sum(Case(When(parts__price__gt=2, then=1), default=0))
    total = Sum(Case(When(parts__n__gte=2, then=F("parts__price")), default=Value(0)))
    over = Count("parts", filter=Q(parts__price__gt=F("n")))
    query: Any = Amount.objects.annotate(dear=dear, total=total, over=over).order_by("name")
    assert [(row.dear, row.total, row.over) for row in query] == [
        (1, D("4.00"), 1),
        (1, D("9.00"), 1),
        (None, None, 0),
        (None, None, 0),
    ]
    assert [row.name for row in query.filter(total__gt=F("n"))] == ["a", "b"]
    assert Amount.objects.aggregate(dear=dear, total=total) == {"dear": 2, "total": D("13.00")}


def test_an_aggregate_inside_a_subquery_takes_the_outer_row(rows: None) -> None:
    a = Amount.objects.get(n=3)
    Part.objects.bulk_create([Part(amount=a, price=D(p)) for p in ("1.00", "2.50")])
    inner = (
        Part.objects.filter(amount=OuterRef("pk"))
        .values("amount")
        .annotate(t=Sum(F("price") * OuterRef("rate")))
        .values("t")
    )
    query: Any = Amount.objects.annotate(t=Subquery(inner)).order_by("name")
    assert [row.t for row in query] == [D("0.66500"), None, None, None]
    assert [row.name for row in query.filter(t__lt=F("price"))] == ["a"]


def test_an_annotation_of_outer_rows_and_aggregates_is_typed_as_a_whole(rows: None) -> None:
    a = Amount.objects.get(n=3)
    Part.objects.create(amount=a, price=D("1.25"))
    inner = Amount.objects.filter(id=OuterRef("id"))
    inner = inner.annotate(x=Value(7) - OuterRef("n") + Max("parts__price")).values("x")
    query: Any = Amount.objects.annotate(y=Subquery(inner)).order_by("name")
    assert [row.y for row in query] == [D("5.25"), None, None, None]
    assert [row.name for row in query.filter(y__gt=F("n"))] == ["a"]
