"""Filters on windows, conditions as values, and distinct aggregates of related rows in groups."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

import pytest
from orm_library import library
from orm_models import Author, Comment, Country, Everything, Post

from treefold_orm import (
    CTE,
    Avg,
    Case,
    Count,
    CumeDist,
    DenseRank,
    Exists,
    F,
    FieldError,
    Lag,
    LastValue,
    Lower,
    Max,
    Model,
    OuterRef,
    PercentRank,
    Q,
    Rank,
    RowNumber,
    Subquery,
    Sum,
    Value,
    When,
    Window,
    acreate_all,
    create_all,
    fields,
)

BY_VIEWS: dict[str, Any] = {"partition_by": ["author"], "order_by": ["-views"]}

FIRST_LIKES = Subquery(
    Comment.objects.filter(post=OuterRef("pk")).order_by("likes").values("likes")[:1]
)


def ranked() -> Any:
    return Post.objects.annotate(place=Window(Rank(), **BY_VIEWS)).order_by("title")


# -- filters on windows ---------------------------------------------------------------------------

WINDOW_FILTERS = [
    (lambda: ranked().filter(place=1), ["a2", "a3", "b1"]),
    (lambda: ranked().filter(place__gt=1), ["a1"]),
    (lambda: ranked().filter(place__in=[1, 3]), ["a1", "a2", "a3", "b1"]),
    (lambda: ranked().exclude(place=1), ["a1"]),
    (lambda: ranked().filter(Q(place=3) | Q(views=5)), ["a1", "b1"]),
    (lambda: ranked().filter(~Q(place=1) & Q(views=1)), ["a1"]),
    (lambda: ranked().filter(place=1, author__name="Bob"), ["b1"]),
    (lambda: ranked().filter(place=1).filter(author__name="Ann"), ["a2", "a3"]),
    (lambda: ranked().filter(place=1).order_by("-title")[:2], ["b1", "a3"]),
    (lambda: ranked().filter(place=1).order_by("-place", "-title")[1:2], ["a3"]),
    (lambda: ranked().filter(place=F("views") - 9), ["a2", "a3"]),
    (
        lambda: (
            Post.objects.annotate(before=Window(Lag("views"), order_by=["title"]))
            .filter(before__isnull=True)
            .order_by("title")
        ),
        ["a1"],
    ),
    (
        lambda: (
            Post.objects.annotate(
                number=Window(RowNumber(), order_by=["title"]),
                total=Window(Sum("views"), partition_by=["author"]),
            )
            .filter(number__gt=1, total__gt=10)
            .order_by("title")
        ),
        ["a2", "a3"],
    ),
]


@pytest.mark.parametrize(("build", "titles"), WINDOW_FILTERS, ids=range(len(WINDOW_FILTERS)))
async def test_a_filter_on_a_window_sees_the_rows_the_other_conditions_left(
    db: Any, half: Any, build: Any, titles: list[str]
) -> None:
    await library(half)
    query = build()
    assert [p.title for p in await half.rows(query)] == titles
    assert await half(query).count() == len(titles)
    assert await half(query).exists()
    if query._high is None:  # values() comes before a slice
        assert await half.rows(query.values_list("title", flat=True)) == titles


async def test_the_window_keeps_the_value_it_had_before_the_filter(db: Any, half: Any) -> None:
    await library(half)
    numbered = Post.objects.annotate(n=Window(RowNumber(), order_by=["title"]))
    found = await half.rows(numbered.filter(n__gte=3).select_related("author").order_by("n"))
    assert [(p.n, p.title, p.author.name) for p in found] == [(3, "a3", "Ann"), (4, "b1", "Bob")]


DISTINCT_OVER_WINDOWS: list[tuple[Callable[[Any], Any], list[Any]]] = [
    (lambda q: q.values_list("views", "body").order_by("-views"), [(10, ""), (5, "")]),
    (lambda q: q.values_list("views", flat=True).order_by("views"), [5, 10]),
    (lambda q: q.values_list("views", flat=True).order_by("-views")[:1], [10]),
    (
        lambda q: q.values_list("place", "title").order_by("place", "-title")[1:],
        [(1, "a3"), (1, "a2")],
    ),
    (lambda q: q.annotate(x=F("views") * 2).values_list("x").order_by("-x"), [(20,), (10,)]),
    (lambda q: q.annotate(x=FIRST_LIKES).values_list("x").order_by("x"), [(3,), (10,), (None,)]),
    (lambda q: q.values_list("author__name").order_by("-author__name"), [("Bob",), ("Ann",)]),
    (lambda q: q.values_list("tags__name").order_by("tags__name"), [("red",), (None,)]),
]


@pytest.mark.parametrize(("build", "wanted"), DISTINCT_OVER_WINDOWS)
async def test_distinct_values_behind_a_filter_on_a_window_are_ordered(
    db: Any, half: Any, build: Any, wanted: list[Any]
) -> None:
    await library(half)
    query = build(ranked().filter(place=1).distinct())
    assert await half.rows(query) == wanted
    assert await half(query).count() == len(wanted)
    assert await half(query).exists()


async def test_distinct_values_behind_a_window_are_ordered_by_what_they_hold(
    db: Any, half: Any
) -> None:
    await library(half)
    with pytest.raises(FieldError, match=r"add the others to values\(\)"):
        await half.rows(ranked().filter(place=1).values("views").order_by("title").distinct())


async def test_distinct_instances_behind_a_filter_on_a_window_are_ordered(
    db: Any, half: Any
) -> None:
    await library(half)
    comments = CTE(Comment.objects.values("post", seen=F("likes")))
    joined = Post.objects.join(comments, post="pk").select_related("author")
    query = joined.annotate(n=Window(RowNumber(), order_by=["title", "seen"])).filter(n__gt=1)
    for terms, wanted in (
        (("-views", "seen"), ["a2", "b1", "a1"]),
        (("-n",), ["b1", "a2", "a1"]),
        (("author__name", "-title"), ["a2", "a1", "b1"]),
    ):
        rows = await half.rows(query.distinct().order_by(*terms))
        assert [post.title for post in rows] == wanted


async def test_update_delete_and_aggregate_follow_a_filter_on_a_window(db: Any, half: Any) -> None:
    await library(half)
    assert await half(ranked().filter(place=1)).aggregate(n=Count("*"), top=Max("views")) == {
        "n": 3,
        "top": 10,
    }
    assert await half(ranked().filter(place=1)).update(body="best") == 3
    assert await half(Post.objects.filter(body="best")).count() == 3
    assert await half(ranked().filter(place=3)).delete() == 1
    assert await half(Post.objects).count() == 3


async def test_a_filter_on_a_window_inside_of_other_queries(db: Any, half: Any) -> None:
    await library(half)
    best = ranked().filter(place=1)
    authors = Author.objects.filter(pk__in=best.filter(views=10).values("author_id"))
    assert [a.name for a in await half.rows(authors)] == ["Ann"]
    rest = Post.objects.filter(title="a1")
    both = best.order_by().values("title").union(rest.values("title")).order_by("title")
    assert [r["title"] for r in await half.rows(both)] == ["a1", "a2", "a3", "b1"]
    assert await half(both).count() == 4


async def test_a_window_over_groups_ranks_the_groups(db: Any, half: Any) -> None:
    await library(half)
    groups = (
        Post.objects.values("author__name")
        .annotate(total=Sum("views"))
        .annotate(place=Window(DenseRank(), order_by=["-total"]))
    )
    rows = await half.rows(groups.order_by("place"))
    assert [(r["author__name"], r["total"], r["place"]) for r in rows] == [
        ("Ann", 21, 1),
        ("Bob", 5, 2),
    ]
    rows = await half.rows(groups.filter(place=2))
    assert [r["author__name"] for r in rows] == ["Bob"]
    rows = await half.rows(groups.filter(place=1, total__gt=100))
    assert rows == []


async def test_functions_that_look_at_the_whole_window(db: Any, half: Any) -> None:
    await library(half)
    query = Post.objects.annotate(
        last=Window(LastValue("title"), order_by=["title"], frame="all"),
        part=Window(PercentRank(), order_by=["title"]),
        share=Window(CumeDist(), order_by=["title"]),
    ).order_by("title")
    rows = [(p.last, round(p.part, 2), p.share) for p in await half.rows(query)]
    assert rows == [("b1", 0.0, 0.25), ("b1", 0.33, 0.5), ("b1", 0.67, 0.75), ("b1", 1.0, 1.0)]


async def test_rows_of_a_filter_on_a_window_cannot_be_locked(db: Any, half: Any) -> None:
    with pytest.raises(FieldError, match="cannot follow a filter on a window"):
        await half.rows(ranked().filter(place=1).select_for_update())


def test_an_aggregate_of_a_window_is_refused() -> None:
    with pytest.raises(FieldError, match="An aggregate cannot be taken of a window"):
        ranked().annotate(n=Sum("place"))


# -- conditions as values -------------------------------------------------------------------------


async def test_conditions_become_true_or_false(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.annotate(
        writes=Exists(Post.objects.filter(author=OuterRef("pk"))),
        old=Q(age__gt=40),
        read=Author.name == "Ann",
    )
    rows = [(a.name, a.writes, a.old, a.read) for a in await half.rows(query)]
    assert rows == [
        ("Ann", True, False, True),
        ("Bob", True, True, False),
        ("Cid", False, False, False),  # unknown is not true
    ]
    assert [a.name for a in await half.rows(query.filter(writes=True, old=False))] == ["Ann"]
    assert [a.name for a in await half.rows(query.exclude(writes=True))] == ["Cid"]
    assert [a.name for a in await half.rows(query.order_by("writes", "-name"))] == [
        "Cid",
        "Bob",
        "Ann",
    ]
    assert [a.name for a in await half.rows(Author.objects.order_by(Q(name="Bob"), "name"))] == [
        "Ann",
        "Cid",
        "Bob",
    ]
    assert await half.rows(Author.objects.values("name", old=Q(age__gt=40))) == [
        {"name": "Ann", "old": False},
        {"name": "Bob", "old": True},
        {"name": "Cid", "old": False},
    ]


async def test_either_but_not_both(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.filter(Q(age__isnull=False) ^ Q(posts__views=5))
    assert [a.name for a in await half.rows(query)] == ["Ann"]


# -- distinct aggregates in groups ----------------------------------------------------------------

DISTINCT = [
    (Count("posts__tags", distinct=True), [(True, 2), (False, 0)], 2),
    (Count("posts__views", distinct=True), [(True, 3), (False, 0)], 3),
    (Sum("posts__views", distinct=True), [(True, 16), (False, None)], 16),
    (Avg("posts__views", distinct=True), [(True, 16 / 3), (False, None)], 16 / 3),
    (Max("posts__title", distinct=True), [(True, "b1"), (False, None)], "b1"),
    (Count("posts__comments__likes", distinct=True), [(True, 4), (False, 0)], 4),
    (
        Count("posts__views", distinct=True, filter=Q(posts__title__startswith="a")),
        [(True, 2), (False, 0)],
        2,
    ),
    (Count("posts__views", distinct=True, filter=Q(age__gt=40)), [(True, 1), (False, 0)], 1),
]


@pytest.mark.parametrize(("aggregate", "groups", "whole"), DISTINCT, ids=range(len(DISTINCT)))
async def test_distinct_values_of_related_rows_are_aggregated_over_groups(
    db: Any, half: Any, aggregate: Any, groups: list[Any], whole: Any
) -> None:
    await library(half)
    aged = Author.objects.annotate(aged=Q(age__isnull=False))
    query = aged.values("aged").annotate(n=aggregate, rows=Count("*"), posts_n=Count("posts"))
    found = await half.rows(query.order_by("-aged"))
    assert [(r["aged"], r["n"]) for r in found] == [
        (aged, pytest.approx(n) if isinstance(n, float) else n) for aged, n in groups
    ]
    assert [(r["rows"], r["posts_n"]) for r in found] == [(2, 4), (1, 0)]  # nothing is multiplied
    total = await half(Author.objects).aggregate(n=aggregate, all=Sum("posts__views"))
    assert total == {"n": pytest.approx(whole) if isinstance(whole, float) else whole, "all": 26}


GROUPS: dict[str, Any] = {
    "a column": F("age"),
    "a condition": Q(age__gt=40),
    "a condition on NULL": Q(age=None),
    "two conditions": Q(age__gt=40) | Q(age=None),
    "a sum": F("age") + 1,
    "a function": Lower("country__name"),
    "a choice": Case(When(age=30, then=Value(1))),
    "a subquery": Subquery(Country.objects.filter(id=OuterRef("country")).values("name")),
}


@pytest.mark.parametrize("group", GROUPS)
async def test_distinct_values_are_joined_to_groups_in_words_of_any_sqlite(
    db: Any, half: Any, engine: str, group: str
) -> None:
    await library(half)
    query = (
        Author.objects.annotate(x=GROUPS[group])
        .values("x")
        .annotate(n=Count("posts__views", distinct=True), rows=Count("*"))
    )
    found = await half.rows(query)
    assert sum(row["n"] for row in found) == 3
    assert sum(row["rows"] for row in found) == 3
    if engine == "sqlite":  # which has IS DISTINCT FROM from 3.39 on
        assert "DISTINCT FROM" not in query.explain_sql()


async def test_groups_of_nulls_and_conditions_on_distinct_aggregates(db: Any, half: Any) -> None:
    await library(half)
    query = Author.objects.values("age").annotate(n=Count("posts__views", distinct=True))
    rows = await half.rows(query.order_by("age"))
    assert [(r["age"], r["n"]) for r in rows] == [(30, 2), (50, 1), (None, 0)]
    rows = await half.rows(query.filter(n__gt=0).order_by("-n"))
    assert [r["age"] for r in rows] == [30, 50]
    rows = await half.rows(query.filter(name__startswith="B"))
    assert rows == [{"age": 50, "n": 1}]
    part = Author.objects.order_by("name")[1:]
    assert await half(part).aggregate(n=Count("posts__views", distinct=True)) == {"n": 1}


async def test_counting_the_rows_of_groups(db: Any, half: Any) -> None:
    await library(half)
    rows = await half.rows(Post.objects.values("views").annotate(n=Count("*")).order_by("views"))
    assert rows == [{"views": 1, "n": 1}, {"views": 5, "n": 1}, {"views": 10, "n": 2}]


async def test_grouped_queries_can_be_combined(db: Any, half: Any) -> None:
    await library(half)
    many = Post.objects.values("author__name").annotate(n=Count("*")).filter(n__gt=2)
    few = Post.objects.values("author__name").annotate(n=Count("*")).filter(n__lt=2)
    rows = await half.rows(many.union(few))
    assert sorted((r["author__name"], r["n"]) for r in rows) == [("Ann", 3), ("Bob", 1)]


async def test_means_of_related_decimals_and_spans_over_groups(empty: Any, half: Any) -> None:
    class Lane(Model):
        name = fields.CharField(max_length=10)

    class Run(Model):
        lane = fields.ForeignKey(Lane, related_name="runs")
        cost = fields.DecimalField(max_digits=8, decimal_places=2, null=True)
        took = fields.DurationField()

    await half.call(lambda: create_all(Lane, Run), lambda: acreate_all(Lane, Run))
    lanes = await half(Lane.objects).bulk_create([Lane(name="a"), Lane(name="a"), Lane(name="b")])
    costs = [decimal.Decimal("1.50"), decimal.Decimal("2.25"), None]
    await half(Run.objects).bulk_create(
        [
            Run(lane=lanes[i % 2], cost=cost, took=dt.timedelta(seconds=i))
            for i, cost in enumerate(costs)
        ]
    )
    means = {"cost": Avg("runs__cost"), "took": Avg("runs__took")}
    whole = {"cost": 1.875, "took": dt.timedelta(seconds=1)}
    assert await half(Lane.objects).aggregate(**means) == whole
    groups = Lane.objects.values("name").annotate(**means).order_by("name")
    assert await half.rows(groups) == [
        {"name": "a", **whole},
        {"name": "b", "cost": None, "took": None},
    ]


async def test_groups_stay_when_other_values_are_named_later(db: Any, half: Any) -> None:
    await library(half)
    grouped = Post.objects.values("author").annotate(total=Sum("views"), n=Count("*"))
    totals = grouped.values_list("total", flat=True)
    assert sorted(await half.rows(totals)) == [5, 21]
    assert await half(totals).count() == 2
    assert await half.rows(grouped.filter(n__gt=1).values("total")) == [{"total": 21}]
    named = grouped.values_list("author__name", "total").order_by("author__name")
    assert await half.rows(named) == [("Ann", 21), ("Bob", 5)]
    ranks = grouped.annotate(place=Window(Rank(), order_by=["-total"])).order_by("place")
    assert await half.rows(ranks.values_list("place", "total")) == [(1, 21), (2, 5)]
    several = Post.objects.filter(author=OuterRef("pk")).values("author").annotate(n=Count("*"))
    writers = Author.objects.filter(Exists(several.filter(n__gt=1).values("n")))
    assert [author.name for author in await half.rows(writers)] == ["Ann"]


async def test_groups_by_a_path_into_json(db: Any, half: Any) -> None:
    themes = ["dark", "light", "dark"]
    await half(Everything.objects).bulk_create(
        [Everything(data={"ui": {"theme": theme}}, integer=i) for i, theme in enumerate(themes)]
    )
    query = Everything.objects.values("data__ui__theme").annotate(n=Count("*"), s=Sum("integer"))
    assert sorted(tuple(row.values()) for row in await half.rows(query)) == [
        ("dark", 2, 2),
        ("light", 1, 1),
    ]
    assert sorted(
        await half.rows(Everything.objects.values_list("data__ui__theme", flat=True).distinct())
    ) == ["dark", "light"]


async def test_a_window_over_the_aggregates_of_groups(db: Any, half: Any) -> None:
    ann, bob = [await Author.objects.acreate(name=n, age=1) for n in ("Ann", "Bob")]
    for author, views in [(ann, 1), (ann, 2), (bob, 4), (bob, 8)]:
        await Post.objects.acreate(title="p", author=author, views=views)
    groups = Post.objects.values("author__name").annotate(v=Sum("views"))
    running = Window(Sum("v"), order_by=["author__name"])
    share = Window(Sum("v"))
    rows = groups.annotate(r=running, s=share).order_by("author__name")
    assert await half.rows(rows.values_list("author__name", "v", "r", "s")) == [
        ("Ann", 3, 3, 15),
        ("Bob", 12, 15, 15),
    ]
    assert await half.rows(rows.filter(r__gt=3).values_list("author__name")) == [("Bob",)]
