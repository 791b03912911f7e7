"""Reports as applications write them, on both databases, against the same in plain Python.

Top N of groups, running and moving totals, cohorts, trees, pivots, shares, existence, upserts and
queues. The same shapes run on a schema of others with `hatch run chinook FOLDER`.
"""

from __future__ import annotations

import datetime as dt
from collections import defaultdict
from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_UP, Decimal
from itertools import accumulate
from typing import Any

import pytest
from conftest import Half
from orm_bakery import ALL, HEADS, Baker, Bread, PlainSale, Sale, breads, fill, sales

from treefold_orm import (
    CTE,
    Avg,
    Case,
    Coalesce,
    Count,
    Exists,
    Extract,
    F,
    Lag,
    Max,
    Min,
    OuterRef,
    Q,
    Rank,
    Round,
    RowNumber,
    RowRange,
    Subquery,
    Sum,
    Trunc,
    Value,
    When,
    Window,
    acreate_all,
    transaction,
)

CENT = Decimal("0.01")
MICRO = Decimal("0.000001")
Rows = list[tuple[Any, ...]]


def by(
    key: Callable[[PlainSale], Any], rows: Iterable[PlainSale] = ()
) -> dict[Any, list[PlainSale]]:
    found: dict[Any, list[PlainSale]] = defaultdict(list)
    for sale in rows or sales():
        found[key(sale)].append(sale)
    return dict(found)


def paid(rows: Iterable[PlainSale]) -> Decimal:
    return sum((sale.paid for sale in rows), Decimal(0))


def month(sale: PlainSale) -> dt.datetime:
    return sale.at.replace(day=1, hour=0, minute=0)


def in_order() -> list[PlainSale]:
    return sorted(sales(), key=lambda s: (s.at, s.id))


def top_of_each() -> Rows:
    found: Rows = []
    for rows in by(lambda s: s.bread).values():
        best = sorted(rows, key=lambda s: (-s.paid, s.id))[:2]
        found += [(sale.bread, sale.id) for sale in best]
    return found


def best_bread_of_each_town() -> Rows:
    found: Rows = []
    for town, rows in by(lambda s: s.town).items():
        pieces = {b: sum(s.pieces for s in r) for b, r in by(lambda s: s.bread, rows).items()}
        best = max(pieces.values())
        found += [(town, bread, n) for bread, n in pieces.items() if n == best]
    return found


def moving() -> Rows:
    rows = in_order()
    found: Rows = []
    for i, sale in enumerate(rows):
        part = rows[max(0, i - 4) : i + 1]
        found.append((sale.id, (paid(part) / len(part)).quantize(MICRO, ROUND_HALF_UP)))
    return found


def before() -> Rows:
    found: Rows = []
    for rows in by(lambda s: s.town, in_order()).values():
        found += [
            (sale.id, None if i == 0 else sale.at - rows[i - 1].at) for i, sale in enumerate(rows)
        ]
    return found


def cohorts() -> Rows:
    first = {bread: min(s.at.year for s in rows) for bread, rows in by(lambda s: s.bread).items()}
    groups = by(lambda s: (first[s.bread], s.at.year))
    return [(*key, len({s.bread for s in rows}), paid(rows)) for key, rows in groups.items()]


def depth(baker: int) -> int:
    head = HEADS[baker]
    return 0 if head is None else depth(head) + 1


def year_sum(year: int) -> Any:
    return Sum(Case(When(at__year=year, then=F("paid")), default=Value(0)))


ORDER: dict[str, Any] = {"order_by": ["at", "id"]}
TOP = Window(RowNumber(), partition_by=["bread"], order_by=["-paid", "id"])
BEST = Window(Rank(), partition_by=["town"], order_by=["-n"])
REPORTS: list[tuple[str, Callable[[], Any], Callable[[], Rows]]] = [
    (
        "sales by town",
        lambda: (
            Sale.objects.values("town")
            .annotate(n=Count("id"), t=Sum("paid"), a=Avg("paid"))
            .values_list("town", "n", "t", "a")
        ),
        lambda: [
            (town, len(r), paid(r), (paid(r) / len(r)).quantize(MICRO, ROUND_HALF_UP))
            for town, r in by(lambda s: s.town).items()
        ],
    ),
    (
        "revenue before rebates, by baker",
        lambda: (
            Sale.objects.values("bread__baker")
            .annotate(t=Sum(F("pieces") * F("bread__price")))
            .values_list("bread__baker", "t")
        ),
        lambda: [
            (baker, sum((s.pieces * breads()[s.bread].price for s in r), Decimal(0)))
            for baker, r in by(lambda s: breads()[s.bread].baker).items()
        ],
    ),
    (
        "two best sales of each bread",
        lambda: Sale.objects.annotate(r=TOP).filter(r__lte=2).values_list("bread", "id"),
        top_of_each,
    ),
    (
        "best bread of each town, ties included",
        lambda: (
            Sale.objects.values("town", "bread")
            .annotate(n=Sum("pieces"))
            .annotate(r=BEST)
            .filter(r=1)
            .values_list("town", "bread", "n")
        ),
        best_bread_of_each_town,
    ),
    (
        "running total",
        lambda: Sale.objects.annotate(
            t=Window(Sum("paid"), **ORDER, frame="rows_to_current")
        ).values_list("id", "t"),
        lambda: list(
            zip((s.id for s in in_order()), accumulate(s.paid for s in in_order()), strict=True)
        ),
    ),
    (
        "moving mean of five",
        lambda: Sale.objects.annotate(
            t=Window(Avg("paid"), **ORDER, frame=RowRange(-4, 0))
        ).values_list("id", "t"),
        moving,
    ),
    (
        "time since the sale before in town",
        lambda: Sale.objects.annotate(
            d=F("at") - Window(Lag("at"), partition_by=["town"], **ORDER)
        ).values_list("id", "d"),
        before,
    ),
    (
        "sales by month",
        lambda: (
            Sale.objects.annotate(m=Trunc("at", "month"))
            .values("m")
            .annotate(t=Sum("paid"))
            .values_list("m", "t")
        ),
        lambda: [(at, paid(r)) for at, r in by(month).items()],
    ),
    (
        "cohorts by year of the first sale",
        lambda: (
            Sale.objects.join(
                CTE(Sale.objects.values("bread").annotate(first=Min(Extract("at", "year")))),
                bread="bread",
            )
            .annotate(y=Extract("at", "year"))
            .values("first", "y")
            .annotate(n=Count("bread", distinct=True), t=Sum("paid"))
            .values_list("first", "y", "n", "t")
        ),
        cohorts,
    ),
    (
        "bakers by depth",
        lambda: CTE.recursive(
            Baker.objects.filter(head=None), "team", depth="d"
        ).objects.values_list("id", "d"),
        lambda: [(baker, depth(baker)) for baker in HEADS],
    ),
    (
        "years as columns",
        lambda: (
            Sale.objects.values("town")
            .annotate(a=year_sum(2022), b=year_sum(2023), c=year_sum(2024))
            .values_list("town", "a", "b", "c")
        ),
        lambda: [
            (town, *(paid(s for s in r if s.at.year == y) for y in (2022, 2023, 2024)))
            for town, r in by(lambda s: s.town).items()
        ],
    ),
    (
        "breads that were never sold",
        lambda: Bread.objects.filter(
            ~Exists(Sale.objects.filter(bread=OuterRef("pk")))
        ).values_list("id"),
        lambda: [(8,)],
    ),
    (
        "every bread with its sales, none counted as 0",
        lambda: Bread.objects.annotate(
            n=Count("sales"), t=Coalesce(Sum("sales__paid"), Value(Decimal(0)))
        ).values_list("id", "n", "t"),
        lambda: [
            (key, len(rows), paid(rows))
            for key in breads()
            for rows in [[s for s in sales() if s.bread == key]]
        ],
    ),
    (
        "mean number of sales of a bread",
        lambda: [
            Bread.objects.annotate(n=Count("sales")).aaggregate(a=Avg("n"), x=Max("n")),
        ],
        lambda: [(200 / 8, max(len(r) for r in by(lambda s: s.bread).values()))],
    ),
    (
        "sales above the mean of their town",
        lambda: (
            Sale.objects.annotate(
                mean=Subquery(
                    Sale.objects.filter(town=OuterRef("town"))
                    .values("town")
                    .annotate(a=Avg("paid"))
                    .values("a")
                )
            )
            .filter(paid__gt=F("mean"))
            .values_list("id")
        ),
        lambda: [
            (s.id,)
            for r in by(lambda s: s.town).values()
            for s in r
            if s.paid > (paid(r) / len(r)).quantize(MICRO, ROUND_HALF_UP)
        ],
    ),
    (
        "share of each town in percent",
        lambda: (
            Sale.objects.values("town")
            .annotate(t=Sum("paid"))
            .annotate(s=Round(F("t") * 100 / Window(Sum("t")), 2))
            .values_list("town", "s")
        ),
        lambda: [
            (town, (paid(r) * 100 / paid(sales())).quantize(CENT, ROUND_HALF_UP))
            for town, r in by(lambda s: s.town).items()
        ],
    ),
    (
        "price of a kilogram",
        lambda: Bread.objects.annotate(k=F("price") * 1000 / F("grams")).values_list("id", "k"),
        lambda: [
            (b.id, (b.price * 1000 / b.grams).quantize(MICRO, ROUND_HALF_UP))
            for b in breads().values()
        ],
    ),
    (
        "towns without a sale of many pieces of a dear bread",
        lambda: Sale.objects.values_list("town").difference(
            Sale.objects.filter(pieces=5, bread__price__gt=9).values_list("town")
        ),
        lambda: sorted(
            {(s.town,) for s in sales()}
            - {(s.town,) for s in sales() if s.pieces == 5 and breads()[s.bread].price > 9}
        ),
    ),
]


async def rows_of(half: Half, query: Any) -> Rows:
    if isinstance(query, list):
        works: list[Any] = query  # pyright: ignore[reportUnknownVariableType] - from a table of Any
        return [tuple((await work).values()) for work in works]
    return [tuple(row) for row in await half.rows(query)]


@pytest.mark.parametrize(("query", "wanted"), [r[1:] for r in REPORTS], ids=[r[0] for r in REPORTS])
async def test_a_report_agrees_with_plain_python(
    empty: Any, half: Half, query: Callable[[], Any], wanted: Callable[[], Rows]
) -> None:
    await acreate_all(*ALL)
    await fill()
    assert sorted(await rows_of(half, query()), key=repr) == sorted(wanted(), key=repr)


async def test_prices_are_raised_and_rounded_to_cents(empty: Any, half: Half) -> None:
    await acreate_all(*ALL)
    await fill()
    await half(Bread.objects).update(price=F("price") * Decimal("1.075"))
    assert dict(await half.rows(Bread.objects.values_list("id", "price"))) == {
        b.id: (b.price * Decimal("1.075")).quantize(CENT, ROUND_HALF_UP) for b in breads().values()
    }


async def test_rows_are_inserted_or_updated(empty: Any, half: Half) -> None:
    await acreate_all(*ALL)
    await fill()
    rows = [Baker(id=1, name="Ada"), Baker(id=9, name="Bo")]
    await half(Baker.objects).bulk_create(rows, update_conflicts=["name"], unique_fields=["id"])
    names = dict(await half.rows(Baker.objects.values_list("id", "name")))
    assert (len(names), names[1], names[2], names[9]) == (7, "Ada", "baker 2", "Bo")


async def test_a_queue_is_worked_off_in_pieces(empty: Any) -> None:
    await acreate_all(*ALL)
    await fill()
    done: list[int] = []
    while True:
        async with transaction():
            part = await Sale.objects.order_by("id").select_for_update()[:60]
            await Sale.objects.filter(id__in=[sale.id for sale in part]).adelete()
        if not part:
            break
        done += [sale.id for sale in part]
    assert done == [sale.id for sale in sales()]


async def test_totals_are_copied_from_a_subquery(empty: Any, half: Half) -> None:
    await acreate_all(*ALL)
    await fill()
    best = Sale.objects.filter(bread=OuterRef("pk")).order_by("-paid", "id").values("paid")[:1]
    await half(Bread.objects.filter(Q(sales__pieces__gt=0))).update(price=Subquery(best))
    wanted = {bread: max(s.paid for s in rows) for bread, rows in by(lambda s: s.bread).items()}
    assert dict(await half.rows(Bread.objects.exclude(id=8).values_list("id", "price"))) == wanted
