"""Expressions: aggregates, F, Q, Case, functions, subqueries, windows, JSON paths, unions."""

from __future__ import annotations

import datetime as dt
import decimal
from typing import Any, cast

import pytest
from orm_library import library
from orm_models import Author, Comment, Everything, Order, Post, Tag

from treefold_orm import (
    Abs,
    Avg,
    Case,
    Cast,
    Ceil,
    Coalesce,
    Concat,
    Count,
    DenseRank,
    Exists,
    Expression,
    Extract,
    F,
    FieldError,
    FirstValue,
    Floor,
    Greatest,
    Lag,
    Lead,
    Least,
    Length,
    Lower,
    LTrim,
    Max,
    Min,
    Now,
    Ntile,
    NullIf,
    OuterRef,
    Position,
    Q,
    Rank,
    Replace,
    Round,
    RowNumber,
    RTrim,
    Subquery,
    Substr,
    Sum,
    Trim,
    Trunc,
    Upper,
    Value,
    When,
    Window,
    fields,
)
from treefold_orm._expressions.resolving import resolve

MOMENT = dt.datetime(2026, 5, 14, 13, 45, 59, 999999, tzinfo=dt.UTC)


AGGREGATES = [
    (Count("posts"), {"Ann": 3, "Bob": 1, "Cid": 0}),
    (Sum("posts__views"), {"Ann": 21, "Bob": 5, "Cid": None}),
    (Avg("posts__views"), {"Ann": 7.0, "Bob": 5.0, "Cid": None}),
    (
        Count("posts", filter=Q(posts__comments__likes=1, posts__comments__text="y")),
        {"Ann": 0, "Bob": 0, "Cid": 0},
    ),
    (
        Count("posts", filter=~Q(posts__comments__likes=1, posts__comments__text="x")),
        {"Ann": 2, "Bob": 1, "Cid": 0},
    ),
    (Min("posts__views"), {"Ann": 1, "Bob": 5, "Cid": None}),
    (Max("posts__title"), {"Ann": "a3", "Bob": "b1", "Cid": None}),
    (Count("posts__comments"), {"Ann": 3, "Bob": 1, "Cid": 0}),
    (Sum("posts__comments__likes"), {"Ann": 13, "Bob": 3, "Cid": None}),
    (Count("posts__views", distinct=True), {"Ann": 2, "Bob": 1, "Cid": 0}),
    (Count("posts__tags"), {"Ann": 3, "Bob": 0, "Cid": 0}),
    (Count("posts__tags", distinct=True), {"Ann": 2, "Bob": 0, "Cid": 0}),
    (Count("posts", filter=Q(posts__views__gte=10)), {"Ann": 2, "Bob": 0, "Cid": 0}),
    (Count("posts", filter=Q(posts__tags__name="red")), {"Ann": 2, "Bob": 0, "Cid": 0}),
    (Count("posts", filter=Q(age__gt=40)), {"Ann": 0, "Bob": 1, "Cid": 0}),
    (Count("posts", filter=~Q(posts__views=10)), {"Ann": 1, "Bob": 1, "Cid": 0}),
    (Sum(F("posts__views") * 2), {"Ann": 42, "Bob": 10, "Cid": None}),
    (Coalesce(Sum("posts__views"), 0), {"Ann": 21, "Bob": 5, "Cid": 0}),
]


@pytest.mark.parametrize(("aggregate", "wanted"), AGGREGATES, ids=range(len(AGGREGATES)))
async def test_annotated_aggregates_over_relations(
    db: Any, half: Any, aggregate: Expression, wanted: dict[str, Any]
) -> None:
    await library(half)
    found = {a.name: a.n for a in await half.rows(Author.objects.annotate(n=aggregate))}
    assert found == wanted


async def test_several_aggregates_do_not_multiply_each_other(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.annotate(
        posts_n=Count("posts"), comments_n=Count("posts__comments"), views=Sum("posts__views")
    )
    rows = [(a.name, a.posts_n, a.comments_n, a.views) for a in await half.rows(query)]
    assert rows == [("Ann", 3, 3, 21), ("Bob", 1, 1, 5), ("Cid", 0, 0, None)]


async def test_annotations_can_be_filtered_ordered_and_counted(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.annotate(n=Count("posts"))
    assert [a.name for a in await half.rows(query.filter(n__gte=1).order_by("-n"))] == [
        "Ann",
        "Bob",
    ]
    assert [a.name for a in await half.rows(query.exclude(n=0).filter(name__startswith="B"))] == [
        "Bob"
    ]
    assert await half(query.filter(n=0)).count() == 1
    assert await half(query.filter(n__in=[1, 3])).exists() is True
    assert [a.name for a in await half.rows(query.filter(n__range=(1, 2)))] == ["Bob"]
    assert await half(query.filter(n=0)).delete() == 1


async def test_values_then_annotate_groups(db: Any, half: Any) -> None:
    await library(half)
    query = Post.objects.values("views").annotate(n=Count("id")).order_by("views")
    assert await half.rows(query) == [
        {"views": 1, "n": 1},
        {"views": 5, "n": 1},
        {"views": 10, "n": 2},
    ]
    assert await half.rows(query.filter(n__gt=1)) == [{"views": 10, "n": 2}]
    assert await half(query).count() == 3


async def test_groups_over_a_relation_add_up(db: Any, half: Any) -> None:
    await library(half)
    query = (
        Post.objects.values("author__name")
        .annotate(c=Count("comments"), likes=Sum("comments__likes"))
        .order_by("author__name")
    )
    assert await half.rows(query) == [
        {"author__name": "Ann", "c": 3, "likes": 13},
        {"author__name": "Bob", "c": 1, "likes": 3},
    ]
    mean = (
        Post.objects.values("author__name")
        .annotate(m=Avg("comments__likes"))
        .order_by("author__name")
    )
    assert [round(row["m"], 3) for row in await half.rows(mean)] == [4.333, 3.0]


async def test_aggregate_over_all_rows(db: Any, half: Any) -> None:
    await library(half)
    found = await half(Post.objects).aggregate(
        n=Count("id"), total=Sum("views"), mean=Avg("views"), c=Count("comments")
    )
    assert found == {"n": 4, "total": 26, "mean": 6.5, "c": 4}
    assert await half(Post.objects.none()).aggregate(total=Sum("views"), n=Count("id")) == {
        "total": None,
        "n": 0,
    }
    assert await half(Post.objects.order_by("-views", "id")[:2]).aggregate(total=Sum("views")) == {
        "total": 20
    }
    assert await half(Post.objects).aggregate(n=Count("id", filter=Q(views=10))) == {"n": 2}
    assert await half(Post.objects).aggregate() == {}


async def test_aggregates_of_decimals_are_exact(db: Any, half: Any) -> None:
    for number, total in enumerate(("0.10", "0.20", "0.30")):
        await half(Order.objects).create(
            number=number, shop="s", total=decimal.Decimal(total), paid=True
        )
    found = await half(Order.objects).aggregate(
        total=Sum("total"), top=Max("total"), mean=Avg("total")
    )
    assert found["total"] == decimal.Decimal("0.60")
    assert str(found["top"]) == "0.30"
    assert str(found["mean"]) == "0.200000"
    query = Order.objects.annotate(more=F("total") + decimal.Decimal("0.005"), twice=F("total") * 2)
    rows = [(str(o.more.normalize()), o.twice) for o in await half.rows(query.order_by("number"))]
    assert rows[0] == ("0.105", decimal.Decimal("0.20"))
    assert await half(Order.objects.filter(total__gt=decimal.Decimal("0.1"))).count() == 2
    assert await half(Order.objects.filter(F("total") > decimal.Decimal("0.105"))).count() == 2


async def test_update_with_expressions(db: Any, half: Any) -> None:
    await library(half)
    await half(Post.objects.filter(title="a1")).update(
        views=F("views") + 5, body=Concat(F("title"), Value("!"))
    )
    post = await half(Post.objects).get(title="a1")
    assert (post.views, post.body) == (6, "a1!")
    newest = Comment.objects.filter(post=OuterRef("pk")).order_by("-likes").values("text")[:1]
    await half(Post.objects).update(body=Coalesce(Subquery(newest), Value("-")))
    assert [p.body for p in await half.rows(Post.objects.order_by("title"))] == ["y", "w", "-", "z"]


def test_update_from_another_table_is_refused() -> None:
    from treefold_orm._compile.writes import build_update_plan
    from treefold_orm._dialects.sqlite import SQLite

    query = Post.objects.all()
    node = resolve(F("author__name"), query._make_scope())
    with pytest.raises(
        FieldError, match=r"update\(\) cannot take values from another table: use Subquery"
    ):
        build_update_plan(SQLite(), query._key, ((Post._meta.fields["title"], node),), given=0)


async def test_case_when(db: Any, half: Any) -> None:
    await library(half)
    size = Case(
        When(views__gte=10, then=Value("big")),
        When(Q(views__gt=1), then=Value("middle")),
        default=Value("small"),
    )
    rows = [p.size for p in await half.rows(Post.objects.annotate(size=size).order_by("title"))]
    assert rows == ["small", "big", "big", "middle"]
    assert await half(Post.objects.annotate(size=size).filter(size="big")).count() == 2


async def test_a_text_in_case_is_a_field_as_in_functions(db: Any, half: Any) -> None:
    await library(half)
    shown = Case(When(views__gte=10, then="title"), default="author__name")
    query = Post.objects.select_related("author").annotate(shown=shown).order_by("title")
    rows = [(p.shown, p.title if p.views >= 10 else p.author.name) for p in await half.rows(query)]
    assert [found for found, _ in rows] == [wanted for _, wanted in rows]
    assert len({name in {"a1", "a2", "b1", "b2", "b3"} for name, _ in rows}) == 2
    for wrong in (
        Case(When(views=1, then="big"), default="title"),
        Case(When(views=1, then="title"), default="big"),
    ):
        with pytest.raises(FieldError, match="Post has no field 'big'"):
            Post.objects.annotate(shown=wrong)
    with pytest.raises(FieldError, match="'author__password' leads to a sensitive field"):
        Post.objects.annotate(shown=Case(When(views=1, then="author__password")))


async def test_subquery_and_exists(db: Any, half: Any) -> None:
    await library(half)
    top = Post.objects.filter(author=OuterRef("pk")).order_by("-views", "title").values("title")[:1]
    rows = {a.name: a.top for a in await half.rows(Author.objects.annotate(top=Subquery(top)))}
    assert rows == {"Ann": "a2", "Bob": "b1", "Cid": None}
    busy = Exists(Post.objects.filter(author=OuterRef("pk"), views__gte=10))
    assert [a.name for a in await half.rows(Author.objects.filter(busy))] == ["Ann"]
    assert [a.name for a in await half.rows(Author.objects.filter(~busy, age__gt=1))] == ["Bob"]


async def test_queries_inside_queries_keep_their_own_values(db: Any, half: Any) -> None:
    await library(half)
    for low, wanted in ((6, ["Ann"]), (5, ["Ann", "Bob"])):
        inner = Post.objects.filter(views__gte=low).values("author")
        query = Author.objects.filter(age__gt=1).filter(pk__in=inner).filter(name__length=3)
        assert [a.name for a in await half.rows(query)] == wanted


FUNCTIONS = [
    (Lower("char"), "añb c "),
    (Upper("char"), "AÑB C "),
    (Length("char"), 6),
    (Trim("char"), "AñB c"),
    (LTrim(Value(" a ")), "a "),
    (RTrim("char"), "AñB c"),
    (Position("char", "B"), 3),
    (Position("char", Value("z")), 0),
    (Concat("char", Value("-"), "text"), "AñB c -"),
    (Replace("char", "c", "d"), "AñB d "),
    (Substr("char", 2, 2), "ñB"),
    (Coalesce("text", Value("none")), "none"),
    (NullIf("char", Value("AñB c ")), None),
    (Abs("integer"), 7),
    (Abs(F("integer") - 3), 10),
    (Greatest("small", "positive"), 9),
    (Least("small", "positive"), 3),
    (Round("real"), 2.0),
    (Floor("real"), 2),
    (Ceil("real"), 3),
    (F("small") / Value(2), 1.5),
    (F("positive") % 4, 1),
    (10 - F("small"), 7),
    (F("small") * F("positive") + 1, 28),
    (Cast("small", fields.TextField()), "3"),
    (Extract("moment", "year"), 2026),
    (Extract("moment", "hour"), 13),
    (Extract("moment", "second"), 59),
    (Extract("moment", "week"), 20),
    (Extract("moment", "week_day"), 5),
    (Extract("moment", "quarter"), 2),
    (Extract("moment", "date"), dt.date(2026, 5, 14)),
    (Extract("day", "month"), 1),
    (F("moment__year"), 2026),
    (F("data__a__b"), [1, "x"]),
    (Trunc("moment", "month"), dt.datetime(2026, 5, 1, tzinfo=dt.UTC)),
    (Trunc("moment", "hour"), dt.datetime(2026, 5, 14, 13, tzinfo=dt.UTC)),
    (Trunc("moment", "quarter"), dt.datetime(2026, 4, 1, tzinfo=dt.UTC)),
    (Trunc("moment", "week"), dt.datetime(2026, 5, 11, tzinfo=dt.UTC)),
    (Trunc("day", "year"), dt.date(2027, 1, 1)),
    (Value("x"), "x"),
    (Value(decimal.Decimal("1.25")), decimal.Decimal("1.25")),
    (Value(dt.timedelta(seconds=90)), dt.timedelta(seconds=90)),
    (Value(True), True),
]


@pytest.mark.parametrize(("expression", "wanted"), FUNCTIONS, ids=range(len(FUNCTIONS)))
async def test_functions(db: Any, half: Any, expression: Expression, wanted: Any) -> None:
    await half(Everything.objects).create(
        char="AñB c ",
        integer=-7,
        small=3,
        positive=9,
        real=2.4,
        moment=MOMENT,
        day=dt.date(2027, 1, 1),
        data={"a": {"b": [1, "x"]}},
    )
    row = await half(Everything.objects.annotate(result=expression)).get()
    assert row.result == wanted
    assert type(row.result) is type(wanted)


async def test_now_is_the_present(db: Any, half: Any) -> None:
    await half(Everything.objects).create()
    row = await half(Everything.objects.annotate(now=Now())).get()
    assert abs(row.now - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=1)


WINDOWS = [
    (Window(RowNumber(), order_by=["title"]), [1, 2, 3, 4]),
    (Window(Rank(), order_by=["-views"]), [4, 1, 1, 3]),
    (Window(DenseRank(), order_by=["-views"]), [3, 1, 1, 2]),
    (Window(RowNumber(), partition_by=["author"], order_by=["title"]), [1, 2, 3, 1]),
    (Window(Sum("views"), partition_by=["author"]), [21, 21, 21, 5]),
    (Window(Sum("views"), order_by=["title"], frame="rows_to_current"), [1, 11, 21, 26]),
    (Window(Lag("views"), order_by=["title"]), [None, 1, 10, 10]),
    (Window(Lead("views", 2), order_by=["title"]), [10, 5, None, None]),
    (Window(FirstValue("title"), order_by=["title"]), ["a1"] * 4),
    (Window(Ntile(2), order_by=["title"]), [1, 1, 2, 2]),
    (Window(Count("id"), frame="all"), [4] * 4),
]


@pytest.mark.parametrize(("window", "wanted"), WINDOWS, ids=range(len(WINDOWS)))
async def test_windows(db: Any, half: Any, window: Window, wanted: list[Any]) -> None:
    await library(half)
    assert [
        p.w for p in await half.rows(Post.objects.annotate(w=window).order_by("title"))
    ] == wanted


async def test_union_intersection_difference(db: Any, half: Any) -> None:
    await library(half)
    low, high = Post.objects.filter(views__lte=5), Post.objects.filter(views__gte=5)
    assert [p.title for p in await half.rows(low.union(high).order_by("-title"))] == [
        "b1",
        "a3",
        "a2",
        "a1",
    ]
    assert await half(low.union(high, all=True)).count() == 5
    assert [p.title for p in await half.rows(low.intersection(high))] == ["b1"]
    assert [p.title for p in await half.rows(low.difference(high).order_by("title"))] == ["a1"]
    assert [p.title for p in await half.rows(low.union(high).order_by("title")[1:3])] == [
        "a2",
        "a3",
    ]
    names = Post.objects.values_list("title", flat=True).union(
        Author.objects.values_list("name", flat=True)
    )
    assert "Ann" in await half.rows(names)


def _titled(*titles: str) -> Any:
    return Post.objects.filter(title__in=titles)


SETS_OF_SETS = [
    (lambda: _titled("a1", "a2", "b1").difference(_titled("a1").union(_titled("a2"))), ["b1"]),
    (lambda: _titled("a1").union(_titled("a1", "a2").difference(_titled("a1"))), ["a1", "a2"]),
    (lambda: _titled("a1").intersection(_titled("a2").union(_titled("a1"))), ["a1"]),
    (lambda: _titled("a3").union(_titled("a1").intersection(_titled("a1", "a2"))), ["a1", "a3"]),
    (lambda: _titled("a1", "a2").difference(_titled("a1").difference(_titled("a1"))), ["a1", "a2"]),
    (lambda: Post.objects.filter(pk__in=_titled("a1").union(_titled("b1"))), ["a1", "b1"]),
    (
        lambda: Post.objects.filter(
            Exists(
                Tag.objects.filter(posts=OuterRef("pk")).difference(
                    Tag.objects.filter(posts=OuterRef("pk"), name="red")
                )
            )
        ),
        ["a1"],
    ),
]


@pytest.mark.parametrize(("build", "wanted"), SETS_OF_SETS, ids=range(len(SETS_OF_SETS)))
async def test_combined_queries_are_combined_and_nested_as_wholes(
    db: Any, half: Any, build: Any, wanted: list[str]
) -> None:
    await library(half)
    assert sorted(post.title for post in await half.rows(build())) == wanted
    assert await half(build()).count() == len(wanted)


async def test_combined_queries_are_ordered_by_any_column_of_theirs(db: Any, half: Any) -> None:
    await library(half)
    young, rest = Author.objects.filter(age=30), Author.objects.exclude(age=30)

    async def ages(*terms: Any, only: tuple[str, ...] = ()) -> list[Any]:
        parts = [part.only(*only) if only else part for part in (young, rest)]
        return [a.age for a in await half.rows(parts[0].union(parts[1]).order_by(*terms))]

    assert await ages("age") == [30, 50, None]
    assert await ages("-age") == [None, 50, 30]
    assert await ages(F("age").asc(nulls="first")) == [None, 30, 50]
    assert await ages("-age", only=("age",)) == [None, 50, 30]
    counted = [part.annotate(n=Count("posts")) for part in (young, rest)]
    assert [a.n for a in await half.rows(counted[0].union(counted[1]).order_by("-n"))] == [3, 1, 0]
    named = [part.values("author__name", "title") for part in (_titled("b1"), _titled("a1", "a3"))]
    rows = await half.rows(named[0].union(named[1]).order_by("-title"))
    assert [row["title"] for row in rows] == ["b1", "a3", "a1"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: Post.objects.annotate(n=Count("title")).explain_sql(),
            "Count has nothing to aggregate here",
        ),
        (lambda: Post.objects.annotate(n=F("nothing")), "Post has no field 'nothing'"),
        (lambda: Post.objects.annotate(n=cast("Any", 5)), r"annotate\(n=...\) takes an expression"),
        (
            lambda: Post.objects.annotate(n=Value(object())),
            "has no column type: give an output_field",
        ),
        (
            lambda: Post.objects.filter(views=OuterRef("pk")).explain_sql(),
            "stands outside of Subquery and Exists",
        ),
        (lambda: Post.objects.filter(Q(views=3) and Q(views=4)), "no truth value"),
        (lambda: Post.objects.annotate(w=Window(Count("comments"))), "cannot go over a relation"),
        (lambda: Window(RowNumber(), frame="rows"), "is not 'rows_to_current' or 'all'"),
        (lambda: Post.objects.union(Post.objects.all()[:2]), "A sliced query cannot be combined"),
        (lambda: Post.objects.union(Tag.objects.all()), r"use values\(\) on both"),
        (lambda: Post.objects.union(Post.objects.all()).filter(views=1), "cannot follow union"),
        (
            lambda: Post.objects.union(Post.objects.all()).difference(Post.objects.all()),
            "cannot be mixed",
        ),
        (
            lambda: Post.objects.only("views").union(Post.objects.only("title")).explain_sql(),
            "UNION needs the same columns on both sides: use values",
        ),
        (
            lambda: Post.objects.union(Post.objects.all()).order_by("author__name").explain_sql(),
            "is ordered by its own columns only",
        ),
        (lambda: Case(), "Case needs at least one When"),
        (
            lambda: Post.objects.filter(title__regex="x").explain_sql(),
            r"'regex' is off: call configure\(..., regex=True\)",
        ),
        (lambda: Author.objects.annotate(n=Count("password")), "sensitive"),
        (
            lambda: Author.objects.annotate(n=Sum(F("posts__views") + F("edited__views"))),
            "cannot take fields of two to-many relations",
        ),
    ],
)
def test_wrong_expressions_say_what_is_wrong(build: Any, message: str, tmp_path: Any) -> None:
    from treefold_orm import configure

    configure("sqlite", tmp_path / "unused.sqlite3")
    with pytest.raises(FieldError, match=message):
        build()


async def test_regex_works_where_it_is_switched_on(db: Any, half: Any, place: Any) -> None:
    await library(half)
    place.configure(regex=True)
    assert await half(Post.objects.filter(title__regex="^a[12]$")).count() == 2
    assert await half(Post.objects.filter(title__iregex="^B")).count() == 1


@pytest.mark.parametrize("name", ["None", "class", "lambda", "import"])
def test_words_of_python_name_no_annotation(name: str) -> None:
    with pytest.raises(FieldError, match="not a keyword of Python"):
        Post.objects.annotate(**{name: Value(1)})
