"""Primary keys of several columns in queries: filters, orders, groups, subqueries, pages, CTEs."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any, ClassVar

import pytest
from orm_composite import ALL, Lid, Line, Reading, Tenant

from treefold_orm import (
    CTE,
    Count,
    Exists,
    F,
    FieldError,
    FieldValueError,
    FilterSet,
    Max,
    OuterRef,
    Prefetch,
    Q,
    RowNumber,
    Subquery,
    Sum,
    Window,
    create_all,
    record_queries,
    transaction,
)

ROWS = [(tenant, number) for tenant in (1, 2, 3) for number in (1, 2, 3)]


@pytest.fixture
def lines(empty: Any) -> Any:
    """Three tenants with three lines each; the titles repeat, the prices do not."""
    create_all(*ALL)
    Tenant.objects.bulk_create([Tenant(id=i, name=f"t{i}") for i in (1, 2, 3)])
    Line.objects.bulk_create(
        [
            Line(pk=pk, title=f"n{pk[1]}", price=decimal.Decimal(f"{pk[0]}.{pk[1]}0"))
            for pk in reversed(ROWS)
        ]
    )
    return empty


async def keys(half: Any, query: Any) -> list[tuple[int, int]]:
    return [line.pk for line in await half.rows(query)]


FILTERS: list[Any] = [
    (Q(pk=(2, 3)), [(2, 3)]),
    (Q(pk__exact=(2, 3)), [(2, 3)]),
    (Q(pk__in=[(1, 1), (3, 2), (9, 9)]), [(1, 1), (3, 2)]),
    (Q(pk__in=[]), []),
    (~Q(pk__in=[(1, 1), (1, 2)]), ROWS[2:]),
    (~Q(pk=(1, 1)), ROWS[1:]),
    (Q(pk__gt=(2, 2)), ROWS[5:]),
    (Q(pk__gte=(2, 2)), ROWS[4:]),
    (Q(pk__lt=(2, 2)), ROWS[:4]),
    (Q(pk__lte=(2, 2)), ROWS[:5]),
    (Q(pk__range=((1, 3), (2, 1))), ROWS[2:4]),
    (Q(pk=(1, 1)) | Q(pk__gt=(3, 2)), [ROWS[0], ROWS[-1]]),
    (Q(pk__isnull=True), []),
    (Q(pk=None), []),
    (Q(pk__isnull=False), ROWS),
    (Q(pk=F("pk")), ROWS),
    (Q(pk__in=Line.objects.filter(price__gt=3)), ROWS[6:]),
    (Q(pk__in=Line.objects.filter(title="n1").values("tenant_id", "number")), ROWS[::3]),
    (Q(pk__in=Line.objects.order_by("-pk")[:2]), ROWS[7:]),
    (Q(pk__in=Line.objects.filter(pk=(1, 1)).union(Line.objects.filter(pk=(2, 2)))), ROWS[:5:4]),
    (Exists(Line.objects.filter(pk=OuterRef("pk"), title="n2")), ROWS[1::3]),
    (Line.pk == (1, 2), [(1, 2)]),
    (Line.pk.in_([(1, 2), (1, 3)]), [(1, 2), (1, 3)]),
    (Line.pk > (3, 1), ROWS[7:]),
]


@pytest.mark.parametrize(("condition", "wanted"), FILTERS, ids=range(len(FILTERS)))
async def test_filters_by_key(lines: Any, half: Any, condition: Any, wanted: list[Any]) -> None:
    query = Line.objects.filter(condition)
    assert await keys(half, query.order_by("pk")) == wanted
    assert await half(query).count() == len(wanted)
    assert await half(query).exists() == bool(wanted)
    assert sorted(await keys(half, Line.objects.exclude(condition))) == sorted(
        set(ROWS) - set(wanted)
    )


RELATED: list[Any] = [
    (Q(lines__pk=(2, 3)), [2]),
    (Q(lines__pk__in=[(1, 1), (3, 2)]), [1, 3]),
    (Q(lines__pk__gt=(2, 2)), [2, 3]),
    (Q(lines__pk__range=((1, 2), (1, 9)), lines__title="n1"), []),
    (Q(lines__pk__range=((1, 2), (1, 9)), lines__title="n3"), [1]),
    (Q(lines=(2, 3)), [2]),
    (Q(lines=None), []),
    (~Q(lines__pk=(1, 1)), [2, 3]),
    (Q(lines__in=Line.objects.filter(pk__lt=(1, 3))), [1]),
    (Q(lines__pk__isnull=False), [1, 2, 3]),
]


@pytest.mark.parametrize(("condition", "wanted"), RELATED, ids=range(len(RELATED)))
async def test_filters_by_keys_of_related_rows(
    lines: Any, half: Any, condition: Any, wanted: list[int]
) -> None:
    found = await half.rows(Tenant.objects.filter(condition).order_by("id"))
    assert [tenant.id for tenant in found] == wanted
    others = await half.rows(Tenant.objects.exclude(condition).order_by("id"))
    assert [tenant.id for tenant in others] == [i for i in (1, 2, 3) if i not in wanted]


async def test_a_row_without_related_rows_has_no_key_of_one(lines: Any, half: Any) -> None:
    await half(Tenant.objects).create(id=4, name="t4")
    for condition in (Q(lines=None), Q(lines__pk=None), Q(lines__pk__isnull=True)):
        found = await half.rows(Tenant.objects.filter(condition))
        assert [tenant.id for tenant in found] == [4]
    rows = await half.rows(Tenant.objects.filter(id__gte=3).order_by("id").values("id", "lines"))
    assert {row["lines"] for row in rows} == {*ROWS[6:], None}


async def test_an_instance_stands_for_its_key(lines: Any, half: Any) -> None:
    line = await half(Line.objects).get(pk=(2, 2))
    assert await keys(half, Line.objects.filter(pk=line)) == [(2, 2)]
    assert await keys(half, Line.objects.filter(pk__in=[line])) == [(2, 2)]
    found = await half.rows(Tenant.objects.filter(lines=line))
    assert [tenant.id for tenant in found] == [2]
    assert await half(Line.objects.filter(number=2)).contains(line)
    assert not await half(Line.objects.filter(number=1)).contains(line)


async def test_orders_by_key(lines: Any, half: Any) -> None:
    assert await keys(half, Line.objects.order_by("pk")) == ROWS
    assert await keys(half, Line.objects.order_by("-pk")) == ROWS[::-1]
    assert await keys(half, Line.objects.order_by(Line.pk.desc())) == ROWS[::-1]
    assert await keys(half, Line.objects.order_by(F("pk").asc())) == ROWS
    assert await keys(half, Line.objects.order_by("pk").reverse()) == ROWS[::-1]
    by_title = sorted(ROWS, key=lambda pk: (pk[1], -pk[0]))
    assert await keys(half, Line.objects.order_by("title", "-pk")) == by_title
    assert (await half(Line.objects).first()).pk == ROWS[0]
    assert (await half(Line.objects).last()).pk == ROWS[-1]


async def test_rows_by_key_in_bulk(lines: Any, half: Any) -> None:
    found = await half(Line.objects).in_bulk([(1, 1), (3, 3), (7, 7)])
    assert {pk: line.title for pk, line in found.items()} == {(1, 1): "n1", (3, 3): "n3"}
    assert len(await half(Line.objects).in_bulk()) == 9


async def test_values_of_a_key_are_tuples(lines: Any, half: Any) -> None:
    query = Line.objects.order_by("pk")
    assert await half.rows(query.values_list("pk", flat=True)) == ROWS
    assert (await half.rows(query.values("pk", "title")))[0] == {"pk": (1, 1), "title": "n1"}
    assert (await half.rows(query.values_list("title", Line.pk)))[1] == ("n2", (1, 2))
    assert (await half.rows(query.values_list("pk", "title", named=True)))[1].pk == (1, 2)
    rows = await half.rows(Tenant.objects.filter(id=1).values_list("lines__pk"))
    assert sorted(rows) == [((1, 1),), ((1, 2),), ((1, 3),)]


async def test_distinct_and_groups(lines: Any, half: Any) -> None:
    assert len(await half.rows(Line.objects.distinct())) == 9
    assert (
        await half.rows(Line.objects.order_by("pk").values_list("pk", flat=True).distinct()) == ROWS
    )
    assert await keys(half, Line.objects.order_by("title", "-pk").distinct("title")) == [
        (3, 1),
        (3, 2),
        (3, 3),
    ]
    assert await keys(half, Line.objects.distinct("pk")) == ROWS
    groups = Line.objects.values("pk").annotate(total=Sum("price")).order_by("pk")
    found = await half.rows(groups)
    assert (found[0], len(found)) == ({"pk": (1, 1), "total": decimal.Decimal("1.10")}, 9)


async def test_counts_of_keys(lines: Any, half: Any) -> None:
    await half(Tenant.objects).create(id=4, name="t4")
    assert await half(Line.objects).aggregate(n=Count("pk"), m=Count("pk", distinct=True)) == {
        "n": 9,
        "m": 9,
    }
    tenants = Tenant.objects.annotate(
        n=Count("lines"),
        m=Count("lines", distinct=True),
        some=Count("lines", filter=Q(lines__pk__gt=(2, 1))),
        top=Max("lines__price"),
    )
    found = await half.rows(tenants.order_by("id").values_list("n", "m", "some", "top"))
    assert found == [
        (3, 3, 0, decimal.Decimal("1.30")),
        (3, 3, 2, decimal.Decimal("2.30")),
        (3, 3, 3, decimal.Decimal("3.30")),
        (0, 0, 0, None),
    ]
    grouped = Line.objects.values("title").annotate(n=Count("pk"), m=Count("pk", distinct=True))
    assert await half.rows(grouped.order_by("title").values_list("title", "n", "m")) == [
        ("n1", 3, 3),
        ("n2", 3, 3),
        ("n3", 3, 3),
    ]
    with pytest.raises(FieldError, match="'pk' is a key of several columns, which can only be"):
        await half(Line.objects).aggregate(n=Max("pk"))


async def test_writes_over_slices_and_joins(lines: Any, half: Any) -> None:
    assert await half(Line.objects.order_by("-pk")[:2]).update(title="last") == 2
    assert await keys(half, Line.objects.filter(title="last").order_by("pk")) == ROWS[7:]
    assert await half(Line.objects.filter(tenant__name="t1")).update(price=F("price") + 1) == 3
    assert (await half(Line.objects).get(pk=(1, 1))).price == decimal.Decimal("2.10")
    assert await half(Line.objects.filter(tenant__name="t2", number__lt=3)).delete() == 2
    assert await half(Line.objects.order_by("pk")[1:3]).delete() == 2
    assert await keys(half, Line.objects.order_by("pk")) == [(1, 1), (2, 3), *ROWS[6:]]


async def test_combined_queries(lines: Any, half: Any) -> None:
    low, high = Line.objects.filter(pk__lte=(2, 1)), Line.objects.filter(pk__gte=(1, 3))
    assert sorted(await keys(half, low.union(high))) == ROWS
    assert sorted(await keys(half, low.intersection(high))) == ROWS[2:4]
    assert sorted(await keys(half, low.difference(high))) == ROWS[:2]
    both = low.values_list("pk").union(high.values_list("pk"))
    assert await half(both).count() == 9
    assert sorted(await half.rows(both)) == [(pk,) for pk in ROWS]


async def test_pages_by_key(lines: Any, half: Any) -> None:
    for query in (Line.objects.all(), Line.objects.order_by("title"), Line.objects.order_by("-pk")):
        seen: list[Any] = []
        page = await half(query).keyset(4)
        while True:
            seen += [line.pk for line in page.items]
            if page.next is None:
                break
            page = await half(query).keyset(4, after=page.next)
        assert len(seen) == 9
        assert set(seen) == set(ROWS)
    back = await half(Line.objects.order_by("-pk")).keyset(4, before=page.previous)
    assert len(back.items) == 4


async def test_pages_by_an_annotation_of_a_unique_column_lose_no_row(lines: Any, half: Any) -> None:
    for i in (4, 5):
        await half(Tenant.objects).create(id=i, name=f"t{i}")
    query = Tenant.objects.annotate(
        other=Subquery(Tenant.objects.filter(id__lt=OuterRef("id"), id__gt=3).values("id")[:1])
    ).order_by("other")
    seen: list[int] = []
    page = await half(query).keyset(2)
    while True:
        seen += [tenant.id for tenant in page.items]
        if page.next is None:
            break
        page = await half(query).keyset(2, after=page.next)
    assert sorted(seen) == [1, 2, 3, 4, 5]


async def test_ctes_of_such_rows(lines: Any, half: Any) -> None:
    dear = CTE(Line.objects.filter(price__gt=2).annotate(twice=F("price") * 2))
    found = await half.rows(dear.objects.order_by("pk"))
    assert (found[0].pk, found[0].twice) == ((2, 1), decimal.Decimal("4.20"))
    joined = Line.objects.join(dear, tenant_id="tenant_id", number="number").order_by("pk")
    assert await keys(half, joined) == ROWS[3:]
    pairs = CTE(Line.objects.filter(number=1).values("pk", cost=F("price")))
    assert (
        await keys(
            half, Line.objects.join(pairs, tenant_id="tenant", number="number").order_by("pk")
        )
        == ROWS[::3]
    )
    assert [row["tenant_id"] for row in await half.rows(pairs.objects.order_by("tenant_id"))] == [
        1,
        2,
        3,
    ]


async def test_rows_are_streamed_and_prefetched(lines: Any, half: Any) -> None:
    assert [line.pk for line in await half.iterate(Line.objects.order_by("pk"), 4)] == ROWS
    spec = Prefetch("lines", Line.objects.filter(pk__gt=(2, 2)).order_by("-pk"))
    tenants = await half.rows(Tenant.objects.prefetch_related(spec).order_by("id"))
    assert [[line.pk for line in tenant.lines.all()] for tenant in tenants] == [
        [],
        [(2, 3)],
        [(3, 3), (3, 2), (3, 1)],
    ]


async def test_locks_and_raw_rows(lines: Any, half: Any) -> None:
    text = "SELECT tenant_id, number FROM line WHERE number = :number ORDER BY tenant_id"
    found = await half(Line.objects).raw(text, number=2)
    assert [line.pk for line in found] == [(1, 2), (2, 2), (3, 2)]
    with pytest.raises(FieldError, match="must give 'tenant_id' and 'number', and each column"):
        await half(Line.objects).raw("SELECT tenant_id FROM line")


@pytest.mark.parametrize(
    ("lookups", "error", "message"),
    [
        ({"pk": 5}, FieldValueError, "takes a tuple of 2 values, not int"),
        ({"pk": (1, 2, 3)}, FieldValueError, "takes 2 values, not 3"),
        ({"pk": (1, None)}, FieldValueError, "no part of a key may be null"),
        ({"pk": (1, "x")}, FieldValueError, "number takes an int, not str"),
        ({"pk__in": (1, 2)}, FieldValueError, "takes a tuple of 2 values, not int"),
        ({"pk__in": "ab"}, FieldError, "takes a list of tuples, not str"),
        ({"pk__gt": None}, FieldError, "cannot compare with None"),
        ({"pk__range": [(1, 2)]}, FieldError, "takes two keys"),
        ({"pk__contains": (1, 2)}, FieldError, "has no lookup 'contains' for 'pk'"),
        ({"pk__tenant": 1}, FieldError, "has no lookup 'tenant' for 'pk'"),
        ({"pk": F("number")}, FieldError, "'number' is another kind of value"),
        ({"pk": Sum("number")}, FieldError, "takes a tuple, F or OuterRef, not Sum"),
    ],
)
def test_comparisons_that_have_no_meaning_say_so(
    lookups: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Line.objects.filter(**lookups)


async def test_subqueries_must_have_the_columns_of_the_key(lines: Any, half: Any) -> None:
    for query in (
        Line.objects.filter(pk__in=Tenant.objects.all()),
        Line.objects.filter(pk__in=Line.objects.values("number")),
    ):
        with pytest.raises(FieldError, match="must give its 2 columns, got 1"):
            await half.rows(query)
    with pytest.raises(FieldError, match="must give one column"):
        await half.rows(Line.objects.filter(number__in=Line.objects.all()))
    for outer, condition in (
        (Tenant, {"pk": OuterRef("pk")}),
        (Line, {"number": OuterRef("pk")}),
    ):
        with pytest.raises(FieldError, match="must name a key with as many columns"):
            outer.objects.filter(Exists(Line.objects.filter(**condition)))


async def test_encoded_parts_are_compared(lines: Any, half: Any) -> None:
    made = [
        Reading(sensor=uuid.UUID(int=i), day=dt.date(2026, 1, i), rank=decimal.Decimal("0.5") * i)
        for i in (1, 2, 3)
    ]
    await half(Reading.objects).bulk_create(made)
    wanted: list[Any] = [row.pk for row in made]
    assert [row.pk for row in await half.rows(Reading.objects.all())] == wanted[::-1]
    for condition, found in (
        (Q(pk=wanted[1]), wanted[1:2]),
        (Q(pk__in=wanted[:2]), wanted[:2]),
        (Q(pk__gt=wanted[0]), wanted[1:]),
        (Q(pk__in=[(str(wanted[2][0]), "2026-01-03", "1.5")]), wanted[2:]),
    ):
        query = Reading.objects.filter(condition).order_by("pk")
        assert [row.pk for row in await half.rows(query)] == found
    assert await half(Reading.objects.filter(pk__gt=wanted[0])).update(value=9) == 2
    assert await half.rows(Reading.objects.values_list("pk", flat=True)) == wanted[::-1]


async def test_aggregates_over_slices_and_the_latest_row(lines: Any, half: Any) -> None:
    last = Line.objects.order_by("-pk")[:2]
    assert await half(last).aggregate(n=Count("pk"), total=Sum("number")) == {"n": 2, "total": 5}
    assert (await half(Line.objects).latest("pk")).pk == (3, 3)
    assert (await half(Line.objects).earliest("pk")).pk == (1, 1)
    ranked = Line.objects.annotate(
        place=Window(RowNumber(), partition_by=["tenant"], order_by=["-pk"])
    )
    assert await keys(half, ranked.filter(place=1).order_by("pk")) == ROWS[2::3]


async def test_rows_are_locked_and_changed(lines: Any) -> None:
    async with transaction():
        locked = await Line.objects.select_for_update().filter(pk__in=ROWS[:2]).order_by("pk")
        assert [line.pk for line in locked] == ROWS[:2]
        assert await Line.objects.filter(pk__in=ROWS[:2]).aupdate(title="x") == 2


async def test_a_row_that_may_be_missing_is_joined(lines: Any, half: Any) -> None:
    await half(Lid.objects).create(tenant_id=2, size=4, color="red")
    tenants = await half.rows(Tenant.objects.select_related("lid").order_by("id"))
    assert [tenant.is_loaded("lid") for tenant in tenants] == [True] * 3
    assert tenants[1].lid.pk == (2, 4)
    with pytest.raises(Lid.DoesNotExist, match="This Tenant has no lid"):
        _ = tenants[0].lid
    assert await half(Tenant.objects.filter(lid=None)).count() == 2
    assert await half(Tenant.objects.filter(lid__pk=(2, 4))).count() == 1


def test_lazy_loads_from_such_rows_are_batched(lines: Any) -> None:
    with record_queries() as seen:
        found = [line.tenant.name for line in Line.objects.order_by("pk")]
        assert found == ["t1"] * 3 + ["t2"] * 3 + ["t3"] * 3
        assert [len(tenant.lines.all()) for tenant in Tenant.objects.prefetch_related("lines")]
    assert len(seen) == 4


def test_requests_filter_by_parts_of_a_key() -> None:
    class Lines(FilterSet):
        model = Line
        fields: ClassVar[Any] = {"number": ["exact", "gt"], "pk": ["exact"]}

    Lines({"number__gt": "2"}).apply()
    with pytest.raises(FieldValueError, match="cannot come from one text"):
        Lines({"pk": "1,2"}).apply()
