"""`&` and `|` of queries: the rows of both, and of either."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Comment, Post, Tag

from treefold_orm import CTE, Count, Exists, F, FieldError, OuterRef, Q, QuerySet


async def fill(half: Any) -> None:
    """Six authors of every age and number of posts that the conditions below tell apart."""
    red, blue = [await half(Tag.objects).create(name=name) for name in ("red", "blue")]
    for number, age in enumerate((20, 30, 40, None, 30, 50)):
        author = await half(Author.objects).create(name=f"a{number}", age=age)
        for place in range(number % 4):
            post = await half(author.posts).create(title=f"t{place}", views=10 * place)
            await half(post.tags).add(*([red] if place % 2 else [red, blue]))
            await half(post.comments).create(text="x", likes=place)


def by_counts() -> QuerySet[Author]:
    return Author.objects.annotate(n=Count("posts")).filter(n__gte=2)


PARTS: list[Callable[[], QuerySet[Author]]] = [
    Author.objects.all,
    Author.objects.none,
    lambda: Author.objects.filter(age=30),
    lambda: Author.objects.filter(age__gt=20).exclude(name="a1"),
    lambda: Author.objects.exclude(age__gte=40),
    lambda: Author.objects.filter(Q(age=20) | Q(age=None)),
    lambda: Author.objects.filter(posts__views=10, posts__tags__name="red"),
    lambda: Author.objects.filter(posts__views=0).filter(posts__views=20),
    lambda: Author.objects.filter(posts__tags__name="blue").filter(posts__comments__likes=1),
    lambda: Author.objects.filter(id__in=Post.objects.filter(views=20).values("author")),
    lambda: Author.objects.filter(Exists(Post.objects.filter(author=OuterRef("pk"), views=10))),
    by_counts,
    lambda: Author.objects.alias(next=F("age") + 10).filter(next=40),
    lambda: Author.objects.filter(name__in=["a0", "a5"], age__range=(10, 60)),
]


@pytest.mark.parametrize("row", range(len(PARTS)))
async def test_and_or_are_the_meeting_and_the_union(db: Any, half: Any, row: int) -> None:
    await fill(half)
    wanted = [{a.pk for a in await half.rows(part())} for part in PARTS]
    for (i, left), (j, right) in itertools.product([(row, PARTS[row])], enumerate(PARTS)):
        both = [a.pk for a in await half.rows(left() & right())]
        either = [a.pk for a in await half.rows(left() | right())]
        assert sorted(both) == sorted(wanted[i] & wanted[j]), (i, j)
        assert sorted(either) == sorted(wanted[i] | wanted[j]), (i, j)


async def test_what_is_met_goes_on_like_any_query(db: Any, half: Any) -> None:
    await fill(half)
    query = (Author.objects.filter(age=30) | Author.objects.filter(age=50)) & by_counts()
    assert await half(query).count() == 0
    query = (Author.objects.filter(age=30) | Author.objects.filter(name="a2")) | by_counts()
    assert [a.name for a in await half.rows(query.filter(age__gt=25)[:2])] == ["a1", "a2"]
    assert await half(query.exclude(age=30)).count() == 2
    assert await half(query.values_list("name", flat=True)).count() == 4
    inner = Post.objects.filter(author__in=query)
    assert await half(inner).count() == 6


async def test_the_first_query_says_what_is_loaded(db: Any, half: Any) -> None:
    await fill(half)
    left = Post.objects.select_related("author").annotate(n=Count("tags")).order_by("-id")
    right = Post.objects.filter(views=20).prefetch_related("tags").only("title")
    (found, *_) = await half.rows(left & right)
    assert (found.is_loaded("author"), found.is_loaded("body"), found.n) == (True, True, 2)


async def test_the_second_query_orders_where_it_has_an_order(db: Any, half: Any) -> None:
    await fill(half)
    young = Author.objects.filter(age__lt=35)
    for query, wanted in (
        (young.order_by("-name") & Author.objects.all(), ["a4", "a1", "a0"]),
        (young.order_by("-name") | young.order_by("age", "-name"), ["a0", "a4", "a1"]),
        (young & Author.objects.order_by((F("age") * -1).asc(), "name"), ["a1", "a4", "a0"]),
    ):
        assert [a.name for a in await half.rows(query)] == wanted


async def test_managers_meet_as_their_queries_do(db: Any, half: Any) -> None:
    await fill(half)
    assert await half(Author.objects & Author.objects.filter(age=30)).count() == 2
    assert await half(Author.objects.filter(age=30) | Author.objects).count() == 6
    author = await half(Author.objects).get(name="a3")
    assert await half(author.posts & Post.objects.filter(views__gt=0)).count() == 2
    assert isinstance(Post.objects.popular() | Post.objects, type(Post.objects.all()))


async def test_rows_in_other_forms_meet_where_the_forms_agree(db: Any, half: Any) -> None:
    await fill(half)
    young = Author.objects.filter(age=20).values_list("name", flat=True)
    old = Author.objects.filter(age=50).values_list("name", flat=True)
    assert sorted(await half.rows(young | old)) == ["a0", "a5"]


def total() -> Any:
    return CTE(Post.objects.values("author").annotate(n=Count("id")))


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("& takes queries of one model, got Author and Post", lambda q: q & Post.objects.all()),
    ("& cannot follow a slice", lambda q: q[:3] & q),
    ("| cannot follow a slice", lambda q: q | q[2:]),
    (r"| cannot follow union\(\)", lambda q: q | q.union(q)),
    (r"& cannot follow distinct\(fields\)", lambda q: q & q.distinct("age")),
    ("& cannot follow a joined CTE", lambda q: q & q.join(total(), author="pk")),
    ("takes another query after &, got Q; use filter", lambda q: q & Q(age=3)),
    ("takes another query after |, got list", lambda q: q | [1]),
    ("of the database 'other' and the query of 'default'", lambda q: q | q.using("other")),
    (r"the same values\(\), or without on both", lambda q: q | q.values("name")),
    (r"two queries with distinct\(\), or two without", lambda q: q & q.distinct()),
    (
        "& cannot follow groups",
        lambda q: q.values("age").annotate(n=Count("id")) & q.values("age").annotate(n=Count("id")),
    ),
]


@pytest.mark.parametrize(("message", "build"), REFUSED, ids=range(len(REFUSED)))
def test_what_cannot_meet_is_refused(message: str, build: Callable[[Any], Any]) -> None:
    with pytest.raises(FieldError, match=message.replace("|", r"\|")):
        build(Author.objects.all())


def test_values_never_split_the_plans_of_what_is_met(db: Any) -> None:
    before = len(db.plans)
    for number in range(10):
        left = Comment.objects.filter(likes=number)
        list(left | Comment.objects.filter(text=str(number)))
    assert len(db.plans) - before == 1
