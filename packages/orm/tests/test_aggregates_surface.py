"""Aggregates without a name, with a default or another type, and those that collect values."""

from __future__ import annotations

import datetime as dt
import decimal
import statistics
import uuid
from typing import Any, cast

import pytest
from orm_library import library
from orm_models import Author, Color, Everything, Post

from treefold_orm import (
    ArrayAgg,
    Avg,
    BoolAnd,
    BoolOr,
    Count,
    Exists,
    F,
    FieldError,
    Lower,
    Max,
    ORMError,
    OuterRef,
    Q,
    RowRange,
    StdDev,
    StringAgg,
    Subquery,
    Sum,
    Value,
    Variance,
    Window,
    fields,
)

D = decimal.Decimal
ONE_PLACE = fields.DecimalField(max_digits=8, decimal_places=1)


@pytest.fixture
def numbers(db: Any) -> None:
    """Four rows, the last one without values."""
    for place, (number, text) in enumerate(((2, "b"), (4, "a"), (4, "c"), (None, None))):
        Everything.objects.create(
            small=place,
            integer=number,
            real=None if number is None else number / 2,
            money=None if number is None else D(number) / 4,
            char=text,
            flag=None if number is None else number == 4,
            day=None if number is None else dt.date(2026, 1, number),
            data={"n": number},
        )


async def test_aggregates_get_a_name_of_their_own(db: Any, half: Any) -> None:
    await library(half)
    annotated = Author.objects.annotate(Count("posts"), Max("posts__views"), last=Max("posts__id"))
    found = await half.rows(annotated.filter(posts__count__gte=1).order_by("-posts__count"))
    assert [(a.posts__count, a.posts__views__max) for a in found] == [(3, 10), (1, 5)]
    grouped = Post.objects.values("views").annotate(Count("id"), Sum(F("views"))).order_by("views")
    assert (await half.rows(grouped))[2] == {"views": 10, "id__count": 2, "views__sum": 20}
    total = await half(Post.objects).aggregate(Sum("views"), Avg(Post.views), n=Count("*"))
    assert total == {"views__sum": 26, "views__avg": 6.5, "n": 4}
    titles = StringAgg("title", ",", order_by="title")
    assert await half(Post.objects).aggregate(StdDev("views"), titles) == {
        "views__stddev": pytest.approx(3.774917, rel=1e-6),
        "title__stringagg": "a1,a2,a3,b1",
    }


UNNAMED = [
    (lambda: Author.objects.annotate(Count("*")), r"Count of an expression must have a name, as"),
    (lambda: Author.objects.annotate(Sum(F("age") + 1)), "total=Sum"),
    (lambda: Everything.objects.annotate(Max("data__a b")), "Max of an expression must have a na"),
    (
        lambda: Author.objects.annotate(cast("Any", Lower("name"))),
        r"Lower must have a name, as in total=...",
    ),
    (lambda: Author.objects.annotate(Count("posts"), Count("posts")), "names two aggregates"),
    (
        lambda: Author.objects.annotate(Count("posts")).annotate(Count("posts")),
        "'posts__count' is an annotation already",
    ),
    (lambda: Author.objects.annotate(Count("nothing")), "has no field 'nothing'"),
    (lambda: Author.objects.annotate(posts__count=Count("posts")), "cannot name an annotation"),
    (lambda: Author.objects.aggregate(Count("*")), "must have a name"),
    (
        lambda: Author.objects.aggregate(n=cast("Any", Q(age=1))),
        "must be given an aggregate, got a condition",
    ),
    (lambda: Count("posts", default=0), "Count cannot have a default"),
]


@pytest.mark.parametrize(("build", "message"), UNNAMED, ids=range(len(UNNAMED)))
def test_names_that_cannot_be_made_are_refused(build: Any, message: str, db: Any) -> None:
    with pytest.raises(FieldError, match=message):
        build()


AGGREGATES: list[tuple[Any, Any]] = [
    (Sum("integer"), 10),
    (Sum("integer", filter=Q(integer=9)), None),
    (Sum("integer", filter=Q(integer=9), default=0), 0),
    (Sum("money", filter=Q(integer=9), default=0), D("0.000")),
    (Max("char", filter=Q(integer=9), default=Value("-")), "-"),
    (Sum("integer", output_field=ONE_PLACE), D("10.0")),
    (Avg("money", output_field=ONE_PLACE), D("0.8")),
    (Avg("integer", output_field=ONE_PLACE, default=0, filter=Q(integer=9)), D("0.0")),
    (Avg("integer", output_field=fields.IntegerField()), 3),
    (StdDev("integer"), statistics.pstdev([2, 4, 4])),
    (StdDev("integer", sample=True), statistics.stdev([2, 4, 4])),
    (Variance("money"), statistics.pvariance([0.5, 1.0, 1.0])),
    (Variance("real", sample=True), statistics.variance([1.0, 2.0, 2.0])),
    (Variance("integer", distinct=True), 1.0),
    (Variance("integer", filter=Q(integer=2)), 0.0),
    (Variance("integer", filter=Q(integer=2), sample=True), None),
    (StdDev("integer", filter=Q(integer=9), default=0.5), 0.5),
    (StdDev("data__n"), statistics.pstdev([2, 4, 4])),
    (BoolAnd("flag"), False),
    (BoolOr("flag"), True),
    (BoolAnd("flag", filter=Q(integer=4)), True),
    (BoolOr("flag", filter=Q(integer=9)), None),
    (BoolAnd(Q(integer__gte=2)), False),
    (BoolAnd(Q(integer__gte=2) | Q(integer=None)), True),
    (BoolOr(F("integer") > F("small") + 2), True),
    (StringAgg("char", ", ", order_by="char"), "a, b, c"),
    (StringAgg("char", ", ", order_by="-char"), "c, b, a"),
    (StringAgg("char", "", order_by="small"), "bac"),
    (StringAgg("integer", "/", order_by=("-integer", "-small")), "4/4/2"),
    (StringAgg("integer", "/", distinct=True), "2/4"),
    (StringAgg("money", "|", order_by=F("small").desc()), "1.000|1.000|0.500"),
    (StringAgg("day", " ", order_by=["day", "small"]), "2026-01-02 2026-01-04 2026-01-04"),
    (StringAgg("char", "'", order_by="char", filter=Q(integer=4)), "a'c"),
    (StringAgg("char", ",", filter=Q(integer=9)), None),
    (StringAgg("char", ",", filter=Q(integer=9), default=Value("")), ""),
    (StringAgg(Lower("char"), "; ", order_by=F("small").asc(nulls="first")), "b; a; c"),
    (ArrayAgg("integer", order_by="small"), [2, 4, 4, None]),
    (ArrayAgg("integer", order_by="-integer"), [None, 4, 4, 2]),
    (ArrayAgg("integer", order_by=(F("integer").desc(nulls="last"), "id")), [4, 4, 2, None]),
    (ArrayAgg("integer", distinct=True), [2, 4, None]),
    (ArrayAgg("money", order_by="small", filter=~Q(char=None)), [D("0.500"), D(1), D(1)]),
    (ArrayAgg("char", filter=Q(integer=9)), None),
    (ArrayAgg("char", filter=Q(integer=9), default=[]), []),
    (ArrayAgg("char", filter=Q(integer=9), default=["x"]), ["x"]),
]


async def test_aggregates_over_all_rows(db: Any, numbers: None, half: Any) -> None:
    named = {f"a{i}": one for i, (one, _) in enumerate(AGGREGATES)}
    found = await half(Everything.objects).aggregate(**named)
    for place, (_, wanted) in enumerate(AGGREGATES):
        got = found[f"a{place}"]
        assert got == (pytest.approx(wanted, rel=1e-12) if type(wanted) is float else wanted), place
        assert type(got) is type(wanted), place


EVERY_TYPE = {
    "integer": 7,
    "big": 2**53 + 1,
    "flag": True,
    "real": 0.1 + 0.2,
    "money": D("1.500"),
    "char": 'é "x"',
    "uid": uuid.UUID(int=5),
    "day": dt.date(2026, 5, 14),
    "time": dt.time(23, 59, 59, 999999),
    "moment": dt.datetime(2026, 5, 14, 23, 59, 59, 999999, tzinfo=dt.UTC),
    "span": dt.timedelta(days=3, microseconds=1),
    "data": {"k": [1, None]},
    "blob": b"\x00\xff",
    "color": Color.RED,
}


async def test_lists_hold_values_of_every_type(db: Any, half: Any) -> None:
    await half(Everything.objects).create(**EVERY_TYPE)
    await half(Everything.objects).create()
    lists = {f"x_{name}": ArrayAgg(name, order_by="id") for name in EVERY_TYPE}
    found = await half(Everything.objects).aggregate(**lists)
    assert found == {f"x_{name}": [value, None] for name, value in EVERY_TYPE.items()}


async def test_related_values_are_collected_for_each_row(db: Any, half: Any) -> None:
    await library(half)
    rows = Author.objects.annotate(
        titles=StringAgg("posts__title", ",", order_by="-posts__title"),
        tags=ArrayAgg("posts__tags__name", order_by=("posts__title", "posts__tags__name")),
        views=StdDev("posts__views"),
        seen=BoolAnd(Q(posts__views__gt=1)),
        likes=Sum("posts__comments__likes", default=0),
        late=ArrayAgg("posts__title", filter=Q(posts__views=10), order_by="posts__title"),
    ).order_by("name")
    ann, bob, cid = await half.rows(rows)
    assert (ann.titles, ann.tags, ann.seen, ann.likes, ann.late) == (
        "a3,a2,a1",
        ["blue", "red", "red"],
        False,
        13,
        ["a2", "a3"],
    )
    assert ann.views == pytest.approx(statistics.pstdev([1, 10, 10]))
    assert (bob.titles, bob.tags, bob.views, bob.seen, bob.likes) == ("b1", None, 0.0, True, 3)
    assert (cid.titles, cid.tags, cid.views, cid.seen, cid.likes) == (None, None, None, None, 0)
    assert [a.name for a in await half.rows(rows.filter(titles="b1"))] == ["Bob"]


async def test_related_values_are_collected_for_each_group(db: Any, half: Any) -> None:
    await library(half)
    groups = (
        Author.objects.values("age")
        .annotate(
            titles=StringAgg("posts__title", ",", order_by="posts__title"),
            views=ArrayAgg("posts__views", order_by="-posts__views"),
            spread=Variance("posts__views"),
            seen=BoolOr(Q(posts__views__gt=5)),
            n=Count("posts"),
        )
        .order_by("age")
    )
    assert await half.rows(groups) == [
        {
            "age": 30,
            "titles": "a1,a2,a3",
            "views": [10, 10, 1],
            "spread": 18.0,
            "seen": True,
            "n": 3,
        },
        {"age": 50, "titles": "b1", "views": [5], "spread": 0.0, "seen": False, "n": 1},
        {"age": None, "titles": None, "views": None, "spread": None, "seen": None, "n": 0},
    ]
    whole = await half(Author.objects).aggregate(
        t=StringAgg("posts__title", "", order_by="-posts__id")
    )
    assert whole == {"t": "b1a3a2a1"}


async def test_collected_values_in_windows_and_subqueries(
    db: Any, numbers: None, half: Any
) -> None:
    frame = RowRange(-1, 0)
    rows = Everything.objects.order_by("small").values(
        texts=Window(StringAgg("char", "-"), order_by="small", frame=frame),
        lists=Window(ArrayAgg("integer"), order_by="small", frame=frame),
        spread=Window(Variance("integer"), order_by="small", frame=frame),
        both=Window(BoolAnd("flag"), order_by="small", frame=frame),
        total=Window(Sum("integer", default=0), order_by="small", frame=RowRange(1, 1)),
        whole=Window(Avg("integer", output_field=ONE_PLACE)),
    )
    found = await half.rows(rows)
    assert [row["texts"] for row in found] == ["b", "b-a", "a-c", "c"]
    assert [row["lists"] for row in found] == [[2], [2, 4], [4, 4], [4, None]]
    assert [row["spread"] for row in found] == [0.0, 1.0, 0.0, 0.0]
    assert [row["both"] for row in found] == [False, False, True, True]
    assert [row["total"] for row in found] == [4, 4, 0, 0]
    assert [row["whole"] for row in found] == [D("3.3")] * 4
    inner = Everything.objects.filter(integer=OuterRef("integer")).values("integer")
    joined = inner.annotate(x=StringAgg("char", "+", order_by="char")).values("x")
    texts = Everything.objects.order_by("small").values(x=Subquery(joined))
    assert [row["x"] for row in await half.rows(texts)] == ["b", "a+c", "a+c", None]


REFUSED: list[tuple[Any, str]] = [
    (lambda: StdDev("char"), r"StdDev cannot take Everything.char \(text\): use Cast"),
    (lambda: Variance("day"), "Variance cannot take Everything.day"),
    (lambda: BoolAnd("integer"), r"BoolAnd cannot take Everything.integer \(int\)"),
    (lambda: BoolOr("char"), "BoolOr cannot take"),
    (lambda: StringAgg("flag", ","), "StringAgg must be given text, a number, a date"),
    (lambda: StringAgg("char", cast("Any", 1)), "StringAgg: delimiter must be text, got 1"),
    (
        lambda: StringAgg("char", ",", distinct=True, order_by="id"),
        "StringAgg of distinct values must be ordered by these values",
    ),
    (
        lambda: Window(StringAgg("char", ",", order_by="id"), order_by="id"),
        "A window cannot collect values in an order of their own",
    ),
    (lambda: Sum("integer", output_field=fields.DateField()), "cannot be set to int"),
    (lambda: Sum("integer", default=Value("x")), "have no type in common"),
    (lambda: ArrayAgg("char", default=5), "takes a list, not int"),
]


@pytest.mark.parametrize(("build", "message"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_be_aggregated_is_refused_when_the_query_is_made(
    build: Any, message: str
) -> None:
    with pytest.raises(ORMError, match=message):
        Everything.objects.values("small").annotate(x=build())


async def test_conditions_with_queries_are_aggregated(db: Any, half: Any) -> None:
    await library(half)
    busy = Exists(Post.objects.filter(author=OuterRef("pk")))
    found = await half(Author.objects).aggregate(every=BoolAnd(busy), some=BoolOr(busy))
    assert found == {"every": False, "some": True}
