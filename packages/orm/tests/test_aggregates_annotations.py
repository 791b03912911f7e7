"""Aggregates over annotations in every form, beside plain Python over the same random rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Post, Tag
from orm_world import PlainAuthor, World, least, mean, most, total, world

from treefold_orm import (
    CTE,
    Avg,
    Case,
    Count,
    F,
    Max,
    Min,
    OuterRef,
    Q,
    Rank,
    RowNumber,
    Subquery,
    Sum,
    When,
    Window,
)

Found = dict[str, Any]
Case3 = tuple[str, Callable[[], Any], dict[str, Any], Callable[[World], Found]]


def counted() -> Any:
    return Author.objects.annotate(n=Count("posts"))


def posts_of(authors: list[PlainAuthor]) -> list[int]:
    return [len(author.posts) for author in authors]


def by_posts(w: World) -> list[PlainAuthor]:
    return sorted(w.authors, key=lambda a: (-len(a.posts), a.id))


def figures(values: list[Any]) -> Found:
    found = [value for value in values if value is not None]
    return {
        "mean": mean(values),
        "sum": total(values),
        "top": most(values),
        "low": least(values),
        "n_n": len(found),
        "rows": len(values),
    }


def of(name: str) -> dict[str, Any]:
    return {
        "mean": Avg(name),
        "sum": Sum(name),
        "top": Max(name),
        "low": Min(name),
        "n_n": Count(name),
        "rows": Count("*"),
    }


def old(w: World) -> list[PlainAuthor]:
    return [a for a in w.authors if a.age is not None and a.age > 20]


def related_cte() -> Any:
    return CTE(Post.objects.values("author").annotate(views_sum=Sum("views")))


OVER_ANNOTATIONS: list[Case3] = [
    ("all rows", counted, of("n"), lambda w: figures(posts_of(w.authors))),
    (
        "filtered before",
        lambda: Author.objects.filter(age__gt=20).annotate(n=Count("posts")),
        of("n"),
        lambda w: figures(posts_of(old(w))),
    ),
    (
        "filtered after",
        lambda: counted().filter(n__gt=1),
        of("n"),
        lambda w: figures([n for n in posts_of(w.authors) if n > 1]),
    ),
    (
        "alias",
        lambda: Author.objects.alias(n=Count("posts")).filter(n__gt=1),
        of("n"),
        lambda w: figures([n for n in posts_of(w.authors) if n > 1]),
    ),
    (
        "alias of an annotation, sliced",
        lambda: counted().alias(m=F("n") + 1).order_by("-m", "id")[:3],
        of("m"),
        lambda w: figures([n + 1 for n in posts_of(by_posts(w)[:3])]),
    ),
    (
        "filtered by key",
        lambda: counted().filter(name="a1"),
        of("n"),
        lambda w: figures(posts_of(w.authors[1:2])),
    ),
    (
        "excluded",
        lambda: counted().exclude(n__in=[0, 1]).filter(age__gt=20),
        of("n"),
        lambda w: figures([n for n in posts_of(old(w)) if n > 1]),
    ),
    (
        "sliced",
        lambda: counted().order_by("-n", "id")[:3],
        of("n"),
        lambda w: figures(posts_of(by_posts(w)[:3])),
    ),
    (
        "sliced in the middle",
        lambda: counted().order_by("-n", "id")[2:5],
        of("n"),
        lambda w: figures(posts_of(by_posts(w)[2:5])),
    ),
    ("ordered", lambda: counted().order_by("-n"), of("n"), lambda w: figures(posts_of(w.authors))),
    ("distinct", lambda: counted().distinct(), of("n"), lambda w: figures(posts_of(w.authors))),
    (
        "distinct by a field",
        lambda: counted().distinct("age").order_by("age", "id"),
        of("n"),
        lambda w: figures(posts_of(list({a.age: a for a in reversed(w.authors)}.values()))),
    ),
    ("none", lambda: counted().none(), of("n"), lambda w: figures([])),
    (
        "no rows",
        lambda: counted().filter(name="nobody"),
        of("n"),
        lambda w: figures([]),
    ),
    (
        "sums of related rows",
        lambda: Author.objects.annotate(n=Sum("posts__views")),
        of("n"),
        lambda w: figures([total(p.views for p in a.posts) for a in w.authors]),
    ),
    (
        "means of related rows",
        lambda: Author.objects.annotate(n=Avg("posts__views")),
        of("n"),
        lambda w: figures([mean(p.views for p in a.posts) for a in w.authors]),
    ),
    (
        "least of related rows",
        lambda: Author.objects.annotate(n=Min("posts__views")),
        of("n"),
        lambda w: figures([least(p.views for p in a.posts) for a in w.authors]),
    ),
    (
        "distinct related rows",
        lambda: Author.objects.annotate(n=Count("posts__tags", distinct=True)),
        of("n"),
        lambda w: figures([len({t for p in a.posts for t in p.tags}) for a in w.authors]),
    ),
    (
        "two relations away",
        lambda: Author.objects.annotate(n=Sum("posts__comments__likes")),
        of("n"),
        lambda w: figures([total(n for p in a.posts for n in p.likes) for a in w.authors]),
    ),
    (
        "many-to-many",
        lambda: Post.objects.annotate(n=Count("tags")),
        of("n"),
        lambda w: figures([len(p.tags) for p in w.posts]),
    ),
    (
        "many-to-many from the other side",
        lambda: Tag.objects.annotate(n=Sum("posts__views")),
        of("n"),
        lambda w: figures([total(p.views for p in w.posts if t in p.tags) for t in "abcd"]),
    ),
    (
        "over a foreign key",
        lambda: Post.objects.annotate(n=Count("author__posts")),
        of("n"),
        lambda w: figures([len(p.author.posts) for p in w.posts]),
    ),
    (
        "over a foreign key that may be missing",
        lambda: Post.objects.annotate(n=Sum("editor__posts__views")),
        of("n"),
        lambda w: figures([p.editor and total(q.views for q in p.editor.posts) for p in w.posts]),
    ),
    (
        "a column over a foreign key",
        lambda: Post.objects.annotate(n=F("editor__age")),
        of("n"),
        lambda w: figures([p.editor and p.editor.age for p in w.posts]),
    ),
    (
        "several relations",
        lambda: Author.objects.annotate(
            p=Count("posts"), e=Count("edited"), s=Sum("edited__views")
        ).annotate(n=F("p") * 100 + F("e") + F("s")),
        of("n"),
        lambda w: figures(
            [
                None
                if not a.edited
                else len(a.posts) * 100 + len(a.edited) + sum(p.views for p in a.edited)
                for a in w.authors
            ]
        ),
    ),
    (
        "annotations of annotations",
        lambda: counted().annotate(m=F("n") * 2).annotate(k=F("m") + F("age")),
        of("k"),
        lambda w: figures([a.age and len(a.posts) * 2 + a.age for a in w.authors]),
    ),
    (
        "condition in the annotation",
        lambda: Author.objects.annotate(n=Count("posts", filter=Q(posts__views__gt=5))),
        of("n"),
        lambda w: figures([sum(p.views > 5 for p in a.posts) for a in w.authors]),
    ),
    (
        "condition on the owner in the annotation",
        lambda: Author.objects.annotate(
            n=Count("posts", filter=Q(posts__views__gt=5) | Q(age__gt=20))
        ),
        of("n"),
        lambda w: figures(
            [
                sum(p.views > 5 or (a.age is not None and a.age > 20) for p in a.posts)
                for a in w.authors
            ]
        ),
    ),
    (
        "condition on another annotation",
        lambda: counted().annotate(m=Count("edited", filter=Q(n__gt=2))),
        of("m"),
        lambda w: figures([len(a.edited) if len(a.posts) > 2 else 0 for a in w.authors]),
    ),
    (
        "condition that compares two columns of the related row",
        lambda: Author.objects.annotate(
            n=Count("posts", filter=Q(posts__views__gt=F("posts__author__age") - 22))
        ),
        of("n"),
        lambda w: figures(
            [sum(a.age is not None and p.views > a.age - 22 for p in a.posts) for a in w.authors]
        ),
    ),
    (
        "values of both rows",
        lambda: Author.objects.annotate(n=Sum(F("posts__views") * F("age"))),
        of("n"),
        lambda w: figures([a.age and total(p.views * a.age for p in a.posts) for a in w.authors]),
    ),
    (
        "an annotation beside related rows",
        lambda: counted().annotate(m=Sum(F("posts__views") * F("n"))),
        of("m"),
        lambda w: figures([total(p.views * len(a.posts) for p in a.posts) for a in w.authors]),
    ),
    (
        "cases of related rows",
        lambda: Author.objects.annotate(
            n=Sum(Case(When(posts__views__gt=5, then=F("posts__views")), default=1))
        ),
        of("n"),
        lambda w: figures(
            [total(p.views if p.views > 5 else 1 for p in a.posts) for a in w.authors]
        ),
    ),
    (
        "subqueries",
        lambda: Author.objects.annotate(
            n=Subquery(
                Post.objects.filter(author=OuterRef("pk")).order_by("-views").values("views")[:1]
            )
        ),
        of("n"),
        lambda w: figures([most(p.views for p in a.posts) for a in w.authors]),
    ),
    (
        "row numbers",
        lambda: Author.objects.annotate(n=Window(RowNumber(), order_by=["id"])),
        of("n"),
        lambda w: figures(list(range(1, 9))),
    ),
    (
        "filtered row numbers",
        lambda: Author.objects.annotate(n=Window(RowNumber(), order_by=["id"])).filter(n__gt=3),
        of("n"),
        lambda w: figures(list(range(4, 9))),
    ),
    (
        "sliced row numbers",
        lambda: Author.objects.annotate(n=Window(RowNumber(), order_by=["id"])).order_by("-n")[:2],
        of("n"),
        lambda w: figures([8, 7]),
    ),
    (
        "ranks of annotations",
        lambda: counted().annotate(place=Window(Rank(), order_by=["-n"])).filter(place__lte=3),
        of("n"),
        lambda w: figures(
            [n for n in posts_of(w.authors) if sum(other > n for other in posts_of(w.authors)) < 3]
        ),
    ),
    (
        "running totals of annotations",
        lambda: counted().annotate(m=Window(Sum("n"), order_by=["id"])),
        of("m"),
        lambda w: figures([sum(posts_of(w.authors)[: i + 1]) for i in range(8)]),
    ),
    (
        "groups",
        lambda: Author.objects.values("country__name").annotate(n=Count("id")),
        of("n"),
        lambda w: figures(list(Counter(a.country for a in w.authors).values())),
    ),
    (
        "groups filtered",
        lambda: Author.objects.values("age").annotate(n=Count("id")).filter(n__gt=1),
        of("n"),
        lambda w: figures([n for n in Counter(a.age for a in w.authors).values() if n > 1]),
    ),
    (
        "groups sliced",
        lambda: Author.objects.values("age").annotate(n=Count("id")).order_by("-n")[:2],
        of("n"),
        lambda w: figures(sorted(Counter(a.age for a in w.authors).values())[-2:]),
    ),
    (
        "what groups are by",
        lambda: Author.objects.values("age").annotate(n=Count("id")),
        of("age"),
        lambda w: figures(list({a.age for a in w.authors})),
    ),
    (
        "sums of groups of annotated rows",
        lambda: counted().values("age").annotate(m=Sum("n")),
        of("m"),
        lambda w: figures(
            [
                sum(len(a.posts) for a in w.authors if a.age == age)
                for age in {a.age for a in w.authors}
            ]
        ),
    ),
    (
        "groups by an annotation",
        lambda: counted().values("n").annotate(m=Count("id")),
        of("m"),
        lambda w: figures(list(Counter(posts_of(w.authors)).values())),
    ),
    (
        "groups by an annotation with a condition on the owner",
        lambda: (
            Author.objects.annotate(n=Count("posts", filter=Q(age__gt=20)))
            .values("n")
            .annotate(m=Count("id"))
        ),
        of("m"),
        lambda w: figures(
            list(Counter(len(a.posts) if a in old(w) else 0 for a in w.authors).values())
        ),
    ),
    (
        "groups of rows filtered by an annotation",
        lambda: counted().filter(n__gt=1).values("age").annotate(m=Count("id")),
        of("m"),
        lambda w: figures(list(Counter(a.age for a in w.authors if len(a.posts) > 1).values())),
    ),
    (
        "groups over a relation",
        lambda: Post.objects.values("tags__name").annotate(n=Sum("views")),
        of("n"),
        lambda w: figures(
            [
                sum(p.views for p in w.posts if tag in (p.tags or [None]))
                for tag in {tag for p in w.posts for tag in (p.tags or [None])}
            ]
        ),
    ),
    (
        "values",
        lambda: counted().values("name", "n"),
        of("n"),
        lambda w: figures(posts_of(w.authors)),
    ),
    (
        "distinct values",
        lambda: Post.objects.values("views").distinct(),
        of("views"),
        lambda w: figures(list({p.views for p in w.posts})),
    ),
    (
        "distinct values of an annotation",
        lambda: counted().values_list("n", flat=True).distinct(),
        of("n"),
        lambda w: figures(list(set(posts_of(w.authors)))),
    ),
    (
        "rows repeated by a relation",
        lambda: Post.objects.values("tags__name", "views"),
        of("views"),
        lambda w: figures([p.views for p in w.posts for _ in (p.tags or [None])]),
    ),
    (
        "union",
        lambda: Author.objects.filter(age=20).union(Author.objects.filter(age__gte=20)),
        of("age"),
        lambda w: figures([a.age for a in w.authors if a.age is not None]),
    ),
    (
        "union of annotated rows",
        lambda: counted().filter(age=20).union(counted().filter(n__gt=1)),
        of("n"),
        lambda w: figures([len(a.posts) for a in w.authors if a.age == 20 or len(a.posts) > 1]),
    ),
    (
        "sliced union of values",
        lambda: (
            Author.objects.values_list("age")
            .union(Author.objects.values_list("age"), all=True)
            .order_by("age")[:5]
        ),
        of("age"),
        lambda w: figures(
            (sorted([a.age for a in w.authors if a.age is not None] * 2) + [None] * 5)[:5]
        ),
    ),
    (
        "joined CTE",
        lambda: Author.objects.join(related_cte(), author="pk"),
        of("views_sum"),
        lambda w: figures([sum(p.views for p in a.posts) for a in w.authors if a.posts]),
    ),
    (
        "joined CTE, annotated and filtered",
        lambda: counted().left_join(related_cte(), author="pk").filter(n__lt=4),
        of("views_sum"),
        lambda w: figures([total(p.views for p in a.posts) for a in w.authors if len(a.posts) < 4]),
    ),
    (
        "joined CTE, sliced",
        lambda: counted().left_join(related_cte(), author="pk").order_by("-n", "id")[:3],
        of("views_sum"),
        lambda w: figures([total(p.views for p in a.posts) for a in by_posts(w)[:3]]),
    ),
    (
        "joined CTE, distinct",
        lambda: (
            Author.objects.join(CTE(Post.objects.values("author", "views")), author="pk")
            .annotate(m=F("views") * 2)
            .distinct()
        ),
        of("m"),
        lambda w: figures([v * 2 for a in w.authors for v in {p.views for p in a.posts}]),
    ),
    (
        "rows of a CTE",
        lambda: related_cte().objects.filter(views_sum__gt=5),
        of("views_sum"),
        lambda w: figures(
            [s for a in w.authors if a.posts and (s := sum(p.views for p in a.posts)) > 5]
        ),
    ),
    (
        "sliced rows of a CTE",
        lambda: related_cte().objects.order_by("-views_sum")[:2],
        of("views_sum"),
        lambda w: figures(sorted(sum(p.views for p in a.posts) for a in w.authors if a.posts)[-2:]),
    ),
    (
        "CTE of annotated instances",
        lambda: CTE(counted().filter(n__gt=0)).objects,
        of("n"),
        lambda w: figures([n for n in posts_of(w.authors) if n]),
    ),
]


def close(found: Found) -> Found:
    return {k: pytest.approx(v) if isinstance(v, float) else v for k, v in found.items()}


@pytest.mark.parametrize(
    ("build", "aggregates", "expected"),
    [case[1:] for case in OVER_ANNOTATIONS],
    ids=[case[0].replace(" ", "-") for case in OVER_ANNOTATIONS],
)
def test_aggregates_over_annotations_equal_python(
    db: Any, build: Any, aggregates: dict[str, Any], expected: Any
) -> None:
    rows = world(seed=len(OVER_ANNOTATIONS))
    assert build().aggregate(**aggregates) == close(expected(rows))
