"""Aggregates over relations, groups by annotations, and what `aggregate()` refuses."""

from __future__ import annotations

import asyncio
import decimal
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Everything, Post
from orm_world import PlainAuthor, World, mean, most, total, world

from treefold_orm import (
    CTE,
    Avg,
    Count,
    Exists,
    F,
    FieldError,
    Max,
    OuterRef,
    Q,
    RowNumber,
    Subquery,
    Sum,
    Window,
)

Found = dict[str, Any]
Case3 = tuple[str, Callable[[], Any], dict[str, Any], Callable[[World], Found]]


def counted() -> Any:
    return Author.objects.annotate(n=Count("posts"))


def posts_of(authors: list[PlainAuthor]) -> list[int]:
    return [len(author.posts) for author in authors]


def old(w: World) -> list[PlainAuthor]:
    return [a for a in w.authors if a.age is not None and a.age > 20]


OVER_RELATIONS: list[Case3] = [
    (
        "all rows",
        lambda: Author.objects.all(),
        {
            "n": Count("posts"),
            "s": Sum("posts__views"),
            "m": Avg("posts__views"),
            "t": Count("posts__tags", distinct=True),
            "top": Max("posts__comments__likes"),
            "few": Count("posts", filter=Q(posts__views__lt=4)),
        },
        lambda w: {
            "n": len(w.posts),
            "s": total(p.views for p in w.posts),
            "m": mean(p.views for p in w.posts),
            "t": len({t for p in w.posts for t in p.tags}),
            "top": most(n for p in w.posts for n in p.likes),
            "few": sum(p.views < 4 for p in w.posts),
        },
    ),
    (
        "sliced",
        lambda: Author.objects.order_by("-age", "id")[2:6],
        {
            "n": Count("posts"),
            "m": Avg("posts__views"),
            "t": Count("posts__tags", distinct=True),
        },
        lambda w: (
            lambda posts: {
                "n": len(posts),
                "m": mean(p.views for p in posts),
                "t": len({t for p in posts for t in p.tags}),
            }
        )(
            [
                p
                for a in sorted(w.authors, key=lambda a: (a.age is not None, -(a.age or 0), a.id))[
                    2:6
                ]
                for p in a.posts
            ]
        ),
    ),
    (
        "no rows",
        lambda: Author.objects.filter(name="nobody"),
        {"n": Count("posts"), "s": Sum("posts__views"), "rows": Count("*")},
        lambda w: {"n": 0, "s": None, "rows": 0},
    ),
    (
        "union",
        lambda: Author.objects.filter(age=20).union(Author.objects.filter(age=30)),
        {"n": Count("posts"), "s": Sum("posts__views")},
        lambda w: {
            "n": sum(len(a.posts) for a in w.authors if a.age in {20, 30}),
            "s": total(p.views for a in w.authors if a.age in {20, 30} for p in a.posts),
        },
    ),
    (
        "beside a window",
        lambda: Author.objects.annotate(place=Window(RowNumber(), order_by=["id"])),
        {"n": Count("posts"), "last": Max("place"), "old": Sum("place", filter=Q(age__gt=20))},
        lambda w: {
            "n": len(w.posts),
            "last": 8,
            "old": total(i for i, a in enumerate(w.authors, 1) if a in old(w)),
        },
    ),
    (
        "with conditions on annotations",
        counted,
        {
            "old": Sum("n", filter=Q(age__gt=20)),
            "busy": Count("id", filter=Q(n__gt=2)),
            "views": Sum("posts__views", filter=Q(n__gt=2)),
            "writes": Count("id", filter=Q(Exists(Post.objects.filter(author=OuterRef("pk"))))),
        },
        lambda w: {
            "old": total(len(a.posts) for a in old(w)),
            "busy": sum(len(a.posts) > 2 for a in w.authors),
            "views": total(p.views for a in w.authors if len(a.posts) > 2 for p in a.posts),
            "writes": sum(bool(a.posts) for a in w.authors),
        },
    ),
    (
        "arithmetic of aggregates",
        counted,
        {"ratio": Sum("n") * 10 + Count("id")},
        lambda w: {"ratio": len(w.posts) * 10 + len(w.authors)},
    ),
    (
        "distinct values of an annotation",
        counted,
        {"n": Count("n", distinct=True), "s": Sum("n", distinct=True)},
        lambda w: {"n": len(set(posts_of(w.authors))), "s": sum(set(posts_of(w.authors)))},
    ),
    (
        "groups",
        lambda: Author.objects.values("country__name").annotate(n=Count("posts")),
        {"s": Sum("n"), "top": Max("n"), "named": Count("country__name")},
        lambda w: {
            "s": len(w.posts),
            "top": most(
                sum(len(a.posts) for a in w.authors if a.country == country)
                for country in ("Peru", "Mali", None)
            ),
            "named": len({a.country for a in w.authors} - {None}),
        },
    ),
]

GROUPS: list[tuple[str, Callable[[], Any], Callable[[World], list[tuple[Any, ...]]]]] = [
    (
        "by an annotation",
        lambda: counted().values_list("n").annotate(m=Count("id")).order_by("n"),
        lambda w: sorted(Counter(posts_of(w.authors)).items()),
    ),
    (
        "by an annotation, filtered by it",
        lambda: counted().values_list("n").annotate(m=Count("id")).filter(n__gt=1).order_by("-n"),
        lambda w: sorted(
            (i for i in Counter(posts_of(w.authors)).items() if i[0] > 1), reverse=True
        ),
    ),
    (
        "by an annotation with a condition on the owner",
        lambda: (
            Author.objects.annotate(n=Sum("posts__views", filter=Q(age__gt=20)))
            .values_list("n")
            .annotate(m=Count("id"))
            .filter(m__gt=1)
        ),
        lambda w: [
            item
            for item in Counter(
                total(p.views for p in a.posts) if a in old(w) else None for a in w.authors
            ).items()
            if item[1] > 1
        ],
    ),
    (
        "by a subquery",
        lambda: (
            Author.objects.annotate(
                n=Subquery(
                    Post.objects.filter(author=OuterRef("pk"))
                    .order_by("-views")
                    .values("views")[:1]
                )
            )
            .filter(n__isnull=False)
            .values_list("n")
            .annotate(m=Count("id"))
            .order_by("n")
        ),
        lambda w: sorted(
            Counter(most(p.views for p in a.posts) for a in w.authors if a.posts).items()
        ),
    ),
    (
        "by a condition on related rows",
        lambda: (
            Author.objects.annotate(n=Q(posts__views__gt=9))
            .values_list("n")
            .annotate(m=Count("id"), k=Count("posts"))
            .order_by("n")
        ),
        lambda w: sorted(
            (
                key,
                sum(any(p.views > 9 for p in a.posts) is key for a in w.authors),
                sum(len(a.posts) for a in w.authors if any(p.views > 9 for p in a.posts) is key),
            )
            for key in {any(p.views > 9 for p in a.posts) for a in w.authors}
        ),
    ),
    (
        "of annotated rows",
        lambda: (
            counted()
            .filter(n__gt=0)
            .values_list("age")
            .annotate(m=Sum("n"), k=Count("posts__tags"), d=Count("posts__tags", distinct=True))
            .filter(m__gt=1, age__isnull=False)
            .order_by("age")
        ),
        lambda w: [
            row
            for age in (20, 30, 40)
            for row in [
                (
                    age,
                    sum(len(a.posts) for a in w.authors if a.age == age),
                    sum(len(p.tags) for p in w.posts if p.author.age == age),
                    len({t for p in w.posts if p.author.age == age for t in p.tags}),
                )
            ]
            if row[1] > 1
        ],
    ),
    (
        "with distinct related rows, by an annotation",
        lambda: (
            counted().values_list("n").annotate(d=Count("posts__tags", distinct=True)).order_by("n")
        ),
        lambda w: [
            (n, len({t for a in w.authors if len(a.posts) == n for p in a.posts for t in p.tags}))
            for n in sorted(set(posts_of(w.authors)))
        ],
    ),
]


def close(found: Found) -> Found:
    return {k: pytest.approx(v) if isinstance(v, float) else v for k, v in found.items()}


@pytest.mark.parametrize(
    ("build", "aggregates", "expected"),
    [case[1:] for case in OVER_RELATIONS],
    ids=[case[0].replace(" ", "-") for case in OVER_RELATIONS],
)
async def test_aggregates_over_relations_equal_python(
    db: Any, half: Any, build: Any, aggregates: dict[str, Any], expected: Any
) -> None:
    rows = await asyncio.to_thread(world, 7)
    assert await half(build()).aggregate(**aggregates) == close(expected(rows))


@pytest.mark.parametrize(
    ("build", "expected"),
    [case[1:] for case in GROUPS],
    ids=[case[0].replace(" ", "-") for case in GROUPS],
)
def test_groups_by_and_of_annotations_equal_python(db: Any, build: Any, expected: Any) -> None:
    rows = world(5)
    query = build()
    found, wanted = list(query), expected(rows)
    assert found == wanted if query._find_order_terms() else Counter(found) == Counter(wanted)


def test_a_cte_row_is_aggregated_once_where_it_is_distinct(db: Any) -> None:
    rows = world(3)
    views = CTE(Post.objects.values("views")).objects.distinct()
    assert views.aggregate(n=Count("views")) == {"n": len({p.views for p in rows.posts})}


def test_a_union_of_two_types_is_aggregated_in_their_common_type(db: Any) -> None:
    Everything.objects.create(integer=7, money=decimal.Decimal("1.250"))
    numbers = Everything.objects.values("integer").union(Everything.objects.values("money"))
    assert numbers.aggregate(s=Sum("integer"), top=Max("integer")) == {
        "s": decimal.Decimal("8.250"),
        "top": decimal.Decimal("7.000"),
    }


REFUSED: list[tuple[str, Callable[[], Any]]] = [
    (
        r"takes what these rows hold, got 'views': add it to values\(\)",
        lambda: Post.objects.values("title").annotate(n=Count("id")).aggregate(s=Sum("views")),
    ),
    (
        r"takes what these rows hold, got 'author__age'",
        lambda: Post.objects.values("title").distinct().aggregate(s=Sum("author__age")),
    ),
    (
        r"cannot count the distinct rows of a relation after",
        lambda: Author.objects.union(Author.objects.all()).aggregate(
            n=Count("posts", distinct=True)
        ),
    ),
    (
        r"aggregate\(n=...\) takes aggregates of all rows, got a value of one row",
        lambda: Post.objects.aggregate(n=F("views")),
    ),
    (
        r"aggregate\(n=...\) takes aggregates of all rows, got a value of one row",
        lambda: Author.objects.values("age").annotate(m=Count("id")).aggregate(n=F("m")),
    ),
    (
        r"aggregate\(n=...\) takes aggregates of all rows, got a value of one row",
        lambda: Post.objects.aggregate(n=Sum("views") + F("views")),
    ),
    (
        "cannot take fields of two to-many relations",
        lambda: Post.objects.aggregate(n=Sum(F("tags__id") * F("comments__likes"))),
    ),
]


@pytest.mark.parametrize(("message", "build"), REFUSED, ids=range(len(REFUSED)))
def test_aggregates_without_meaning_are_refused(db: Any, message: str, build: Any) -> None:
    with pytest.raises(FieldError, match=message):
        build()
