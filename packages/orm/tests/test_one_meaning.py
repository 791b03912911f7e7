"""What SQLite and PostgreSQL would answer differently by themselves has one meaning."""

from __future__ import annotations

import datetime as dt
import math
import time
from typing import Any, cast

import pytest
from orm_models import Author, Comment, Country, Everything, Post

from treefold_orm import (
    ArrayAgg,
    Avg,
    Concat,
    Count,
    DataError,
    Exists,
    F,
    FieldError,
    GroupRange,
    Max,
    Now,
    OuterRef,
    Q,
    Rank,
    Repeat,
    RowRange,
    StdDev,
    StringAgg,
    Subquery,
    Sum,
    Value,
    Variance,
    Window,
    transaction,
)

HUGE = [2**53 + 1, 2**53 + 3, 2**62 + 1, 2**62 + 513, -(2**61) + 7, 2**62 - 1]
LONGEST = dt.timedelta(microseconds=2**63 - 1)
FAR = dt.timedelta(days=30_000_000)

# -- spans ----------------------------------------------------------------------------------------

SPANS: list[tuple[Any, dt.timedelta | None]] = [
    (F("span") + F("span"), 2 * FAR),
    (F("span") + F("span") + F("span"), 3 * FAR),
    (F("span") + F("span") + F("span") + F("span"), None),
    (F("span") + F("span") + F("span") + F("span") - F("span"), None),
    (Value(-FAR) - F("span") - F("span") - F("span"), None),
    (F("span") * 3 + Value(dt.timedelta(days=16_751_991)), 3 * FAR + dt.timedelta(16_751_991)),
    (F("span") * 3 + Value(dt.timedelta(days=16_751_992)), None),
    (F("span") * 4, None),
]


@pytest.mark.parametrize(("span", "wanted"), SPANS, ids=range(len(SPANS)))
def test_a_span_has_64_bits_of_microseconds(db: Any, span: Any, wanted: Any) -> None:
    Everything.objects.create(span=FAR)
    query = Everything.objects.annotate(x=span).values_list("x", flat=True)
    if wanted is not None:
        assert query.get() == wanted
        assert Everything.objects.filter(span__lt=span).count() == 1
        return
    with pytest.raises(DataError, match="must fit the range"):
        query.get()
    with pytest.raises(DataError, match="must fit the range"):
        Everything.objects.filter(span__lt=span).count()


def test_a_sum_of_spans_has_64_bits_of_microseconds(db: Any) -> None:
    Everything.objects.bulk_create([Everything(integer=n, span=FAR) for n in range(4)])
    three = Everything.objects.filter(integer__lt=3)
    assert three.aggregate(x=Sum("span"), m=Avg("span")) == {"x": 3 * FAR, "m": FAR}
    running = Window(Sum("span"), order_by="id")
    assert three.annotate(x=running).order_by("-id").values_list("x", flat=True)[0] == 3 * FAR
    for query in (
        lambda: Everything.objects.aggregate(x=Sum("span")),
        lambda: list(Everything.objects.annotate(x=running)),
        lambda: list(Everything.objects.values("flag").annotate(x=Sum("span"))),
    ):
        with pytest.raises(DataError, match="must fit the range"):
            query()


# -- means ----------------------------------------------------------------------------------------


def test_a_mean_of_huge_integers_is_the_sum_divided_as_floats(db: Any) -> None:
    Everything.objects.bulk_create([Everything(big=n, small=n % 4) for n in (*HUGE, HUGE[0])])
    rows = Everything.objects.all()

    def mean(values: list[int]) -> float:
        return float(sum(values)) / len(values)

    every = [*HUGE, HUGE[0]]
    assert rows.aggregate(x=Avg("big"))["x"] == mean(every)
    assert rows.aggregate(x=Avg("big", distinct=True))["x"] == mean(HUGE)
    assert rows.aggregate(x=Avg("big", filter=Q(small=1)))["x"] == mean(
        [n for n in every if n % 4 == 1]
    )
    assert rows.filter(id=0).aggregate(x=Avg("big"), y=Avg("big", default=1.5)) == {
        "x": None,
        "y": 1.5,
    }
    running = Window(Avg("big"), order_by="id", frame="rows_to_current")
    found = rows.annotate(x=running).order_by("id").values_list("x", flat=True)
    assert list(found) == [mean(every[: place + 1]) for place in range(len(every))]
    grouped = rows.values("small").annotate(x=Avg("big")).order_by("small").values_list("x")
    assert [x for (x,) in grouped] == [mean([n for n in every if n % 4 == s]) for s in (1, 3)]


def test_a_mean_over_a_relation_is_exact_in_rows_and_groups(db: Any) -> None:
    ann, bob = Author.objects.create(name="Ann"), Author.objects.create(name="Bob")
    views = [2**31 - 1, 2**31 - 2, 2**31 - 2]
    for author, counts in ((ann, views), (bob, views[:2])):
        for n in counts:
            Post.objects.create(title="x", author=author, views=n)
    rows = Author.objects.annotate(x=Avg("posts__views")).order_by("id")
    assert [row.x for row in cast("Any", rows)] == [
        float(sum(views)) / 3,
        float(sum(views[:2])) / 2,
    ]
    assert Author.objects.aggregate(x=Avg("posts__views"))["x"] == float(sum(views + views[:2])) / 5


# -- texts that are too long -----------------------------------------------------------------------


def too_long(half: Any, row: Any, way: str) -> Any:
    """Write a text that is too long in one way."""
    objects = half(Everything.objects)
    match way:
        case "update":
            return objects.update(char=Concat("char", "char"))
        case "save":
            return half(row).save()
        case "bulk_update":
            return objects.bulk_update([row], ["char"])
        case _:
            return objects.update_or_create(id=row.id, defaults={"char": Repeat("char", 2)})


@pytest.mark.parametrize("way", ["update", "save", "bulk_update", "update_or_create"])
async def test_a_computed_text_that_is_too_long_is_a_data_error(
    db: Any, half: Any, way: str
) -> None:
    row = await half(Everything.objects).create(char="twelve chars", integer=1)
    row.char = Repeat("char", 2)
    with pytest.raises(DataError, match="must not be longer than its column"):
        await too_long(half, row, way)
    assert (await half(Everything.objects).get()).char == "twelve chars"


# -- the time of a statement -----------------------------------------------------------------------


async def test_now_is_one_time_in_a_statement_however_often_it_stands(db: Any, half: Any) -> None:
    rows = [Everything(integer=n) for n in range(50)]
    await half(Everything.objects).bulk_create(rows)
    times = {f"t{n}": Now() for n in range(12)}
    found = await half.rows(Everything.objects.annotate(**times).values_list(*times))
    assert len({time for row in found for time in row}) == 1
    early = Everything.objects.annotate(a=Now(), b=Now()).filter(a__lt=F("b"))
    assert await half(early).count() == 0
    await half(Everything.objects).update(moment=Now())
    assert await half(Everything.objects.values("moment").distinct()).count() == 1


def test_now_is_the_time_of_the_statement_and_not_of_the_transaction(db: Any) -> None:
    Everything.objects.create()
    with transaction():
        query: Any = Everything.objects.annotate(t=Now())
        found: list[dt.datetime] = [query.get().t for _ in range(3)]
    assert found == sorted(set(found))


# -- values of single rows in groups ---------------------------------------------------------------


def _refused() -> list[Any]:
    grouped = Post.objects.values("title").annotate(n=Count("id"))
    inner = Subquery(Author.objects.filter(id=OuterRef("views")).values("age"))
    rows = Post.objects.values("title").annotate(two=F("views") * 2, n=Count("id"))
    return [
        lambda: grouped.annotate(x=F("views") + F("n")),
        lambda: grouped.alias(x=F("views") + F("n")).filter(x__gt=1),
        lambda: grouped.annotate(x=F("author__age") + F("n")),
        lambda: grouped.annotate(x=F("n") + inner),
        lambda: grouped.annotate(x=Window(Sum("views"))),
        lambda: grouped.annotate(x=Window(Rank(), order_by="views")),
        lambda: grouped.annotate(x=Window(Rank(), partition_by="views", order_by="n")),
        lambda: grouped.filter(n__gt=F("views")),
        lambda: grouped.filter(Q(n__gt=1) | Q(views=1)),
        lambda: grouped.filter(Q(n__gt=1) | Q(comments__text="x")),
        lambda: grouped.exclude(Q(n__gt=1) & Q(views=1)),
        lambda: grouped.order_by("views"),
        lambda: grouped.order_by(F("views") + F("n")),
        lambda: rows.annotate(x=F("two") + F("n")).filter(x__gt=F("views")),
    ]


@pytest.mark.parametrize("number", range(len(_refused())))
async def test_a_value_of_single_rows_is_refused_in_a_grouped_query(
    db: Any, half: Any, number: int
) -> None:
    with pytest.raises(FieldError, match="has many values in a group: add it to values"):
        await half.rows(_refused()[number]())


async def test_groups_aggregates_and_what_has_one_value_in_them_are_taken(
    db: Any, half: Any
) -> None:
    country = await half(Country.objects).create(name="Norway")
    ann = await half(Author.objects).create(name="Ann", age=30, country=country)
    for views in (1, 2, 2):
        post = await half(Post.objects).create(title="x", author=ann, views=views)
    await half(Comment.objects).create(post=post, text="c")
    grouped = Post.objects.values("views").annotate(n=Count("id")).order_by("views")
    taken: list[tuple[Any, list[Any]]] = [
        (grouped.annotate(x=F("views") + F("n")).values_list("x"), [2, 4]),
        (grouped.filter(n__gte=F("views")).values_list("views"), [1, 2]),
        (grouped.filter(Q(n__gt=1) | Q(views=1)).values_list("views"), [1, 2]),
        (grouped.annotate(x=Window(Sum("n"), order_by="views")).values_list("x"), [1, 3]),
        (grouped.annotate(x=F("n") * 2).order_by("-x").values_list("x"), [4, 2]),
        (grouped.annotate(x=Max("author__age") + F("n")).values_list("x"), [31, 32]),
    ]
    for query, wanted in taken:
        assert [row[0] for row in await half.rows(query)] == wanted
    # the key names the row: all of its columns have one value
    by_key = Author.objects.values("id").annotate(n=Count("posts"))
    named = by_key.annotate(x=Concat("name", Value(":"), F("n"))).values_list("x", flat=True)
    assert await half.rows(named) == ["Ann:3"]


# -- annotations of the query around ---------------------------------------------------------------


async def test_an_inner_query_sees_the_annotations_around_it(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann", age=2)
    bob = await half(Author.objects).create(name="Bob", age=3)
    for author, views in ((ann, 1), (ann, 4), (bob, 6), (bob, 6), (bob, 1)):
        await half(Post.objects).create(title="x", author=author, views=views)
    authors = Author.objects.annotate(double=F("age") * 2, n=Count("posts")).order_by("id")
    same = Post.objects.filter(author=OuterRef("pk"), views=OuterRef("double"))
    counted = same.values("views").annotate(n=Count("*")).values("n")
    found = authors.annotate(x=Subquery(counted)).values_list("name", "x")
    assert await half.rows(found) == [("Ann", 1), ("Bob", 2)]
    of_count = authors.filter(
        Exists(Post.objects.filter(author=OuterRef("pk"), views__gt=OuterRef("n")))
    )
    assert await half.rows(of_count.values_list("name", flat=True)) == ["Ann", "Bob"]
    assert await half(of_count).count() == 2
    less = Post.objects.filter(author=OuterRef("pk"), views__lt=OuterRef("n"))
    assert (
        await half(Author.objects.annotate(n=Count("posts")).filter(Exists(less))).update(age=9)
        == 2
    )


@pytest.mark.parametrize(
    "named",
    [
        lambda: Author.objects.annotate(x=Window(Rank(), order_by="age")),
        lambda: Author.objects.values("name").annotate(x=Count("id")),
    ],
)
def test_an_inner_query_cannot_see_a_window_or_a_group(db: Any, named: Any) -> None:
    with pytest.raises(FieldError, match="must name a value of one row, got a window"):
        named().annotate(y=Subquery(Post.objects.filter(views=OuterRef("x")).values("views")))


# -- frames without rows ---------------------------------------------------------------------------

FRAMES: list[tuple[Any, list[list[int]]]] = [
    (RowRange(-2, -1), [[], [1], [1, 2], [2, 4], [4, 8]]),
    (RowRange(1, 1), [[2], [4], [8], [16], []]),
    (RowRange(0, 0, exclude="current"), [[], [], [], [], []]),
    (GroupRange(0, 0, exclude="group"), [[], [], [], [], []]),
    (RowRange(-1, 1, exclude="current"), [[2], [1, 4], [2, 8], [4, 16], [8]]),
    ("rows_to_current", [[1], [1, 2], [1, 2, 4], [1, 2, 4, 8], [1, 2, 4, 8, 16]]),
]


@pytest.mark.parametrize(("frame", "rows"), FRAMES, ids=range(len(FRAMES)))
@pytest.mark.parametrize("none", [False, True])
async def test_aggregates_over_a_frame_without_rows_are_null(
    db: Any, half: Any, frame: Any, rows: list[list[int]], none: bool
) -> None:
    await half(Everything.objects).bulk_create([Everything(integer=2**n) for n in range(5)])
    only = Q(integer__lt=0) if none else None
    rows = [[] for _ in rows] if none else rows
    given: dict[str, Any] = {
        "total": Sum("integer", filter=only),
        "mean": Avg("integer", filter=only),
        "deviation": StdDev("integer", filter=only),
        "variance": Variance("integer", sample=True, filter=only),
        "joined": StringAgg("integer", "-", filter=only),
        "listed": ArrayAgg("integer", filter=only),
    }
    windows = {name: Window(made, order_by="id", frame=frame) for name, made in given.items()}
    query = Everything.objects.annotate(**windows).order_by("id").values(*windows)
    for row, values in zip(await half.rows(query), rows, strict=True):
        close = {name: cast("Any", pytest).approx(value) for name, value in _of(values).items()}
        texts = {"joined": "-".join(map(str, values)) or None, "listed": values or None}
        assert row == {**close, **texts}


def _of(values: list[int]) -> dict[str, float | None]:
    """The sum, the mean, the deviation and the variance of a sample; None for those without."""
    if not values:
        return dict.fromkeys(("total", "mean", "deviation", "variance"))
    mean = sum(values) / len(values)
    squares = sum((value - mean) ** 2 for value in values)
    return {
        "total": sum(values),
        "mean": mean,
        "deviation": math.sqrt(squares / len(values)),
        "variance": squares / (len(values) - 1) if len(values) > 1 else None,
    }


def test_windows_of_many_rows_take_time_in_proportion(db: Any) -> None:
    """Four times the rows take about four times the time, where squares would take sixteen."""
    costs: list[float] = []
    for number in (4_000, 16_000):
        Everything.objects.delete()
        Everything.objects.bulk_create([Everything(real=n * 0.5) for n in range(number)])
        frame = RowRange(-number // 2, 0)
        dev = Window(StdDev("real"), order_by="id", frame="rows_to_current")
        start = time.process_time()
        last = Everything.objects.annotate(a=dev, b=Window(StdDev("real"), frame="all"))
        list(last.order_by("-id").values_list("a", "b")[:1])
        if db.name == "sqlite":  # the server starts over at every row that leaves the frame
            moving = Window(StdDev("real"), order_by="id", frame=frame)
            list(Everything.objects.annotate(a=moving).order_by("-id").values_list("a")[:1])
        costs.append(time.process_time() - start)
    assert costs[1] < 9 * costs[0] + 0.1
