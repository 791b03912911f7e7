"""Queries and rows of two databases never meet: they are refused, with both aliases, or right.

`hatch run orm:test-two-databases` runs 300 random queries for each pair of engines.
"""

from __future__ import annotations

import itertools
import os
import random
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Country, Post, Tag
from orm_pairs import ALIASES, PAIRS, open_pair

from treefold_orm import (
    CTE,
    Count,
    Exists,
    F,
    FieldError,
    OuterRef,
    Prefetch,
    Q,
    Subquery,
)

QUERIES = int(os.environ.get("TREEFOLD_TWO_DATABASES", "40"))


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """Two databases whose rows have the same keys and nothing else in common."""
    with open_pair(request, request.param, tmp_path, Country, Author, Tag, Post):
        for alias in ALIASES:
            fill(alias)
        yield


def fill(alias: str) -> None:
    shift = 0 if alias == "default" else 3
    names = [f"{alias} {n}" for n in range(6)]
    authors = Author.objects.using(alias).bulk_create(
        [Author(name=name, age=(n + shift) % 6) for n, name in enumerate(names)]
    )
    owners = [authors[(n * 2 + shift) % 6] for n in range(9)]
    Post.objects.using(alias).bulk_create(
        [Post(title=f"{alias} {n}", views=n, author=author) for n, author in enumerate(owners)]
    )
    Tag.objects.using(alias).bulk_create([Tag(name=name) for name in names])


# Each form makes what is asked, and what is right: the inner query is run first, by itself.
Made = tuple[Callable[[], Awaitable[Any]], Callable[[], Awaitable[Any]]]


class Forms:
    """The ways in which a query takes in another one, or a write takes in rows."""

    def __init__(self, half: Any, outer: str, inner: str, draw: random.Random) -> None:
        self.half = half
        self.authors = Author.objects.using(outer).order_by("pk")
        self.posts = Post.objects.using(inner).filter(views__gte=draw.randrange(9))
        self.outer, self.inner = outer, inner
        self.plain = Author.objects.using(outer)

    async def keys(self, query: Any) -> list[int]:
        return sorted(await self.half.rows(query.values_list("pk", flat=True)))

    async def wanted(self) -> list[int]:
        return await self.half.rows(self.posts.values_list("author", flat=True))

    async def members(self, *, inside: bool) -> list[int]:
        wanted = await self.wanted()
        query = self.plain.filter(pk__in=wanted) if inside else self.plain.exclude(pk__in=wanted)
        return await self.keys(query)

    def is_in(self) -> Made:
        return (
            lambda: self.keys(self.plain.filter(pk__in=self.posts.values("author"))),
            lambda: self.members(inside=True),
        )

    def is_excluded(self) -> Made:
        return (
            lambda: self.keys(self.plain.exclude(pk__in=self.posts.values("author"))),
            lambda: self.members(inside=False),
        )

    def exists(self) -> Made:
        held = self.posts.filter(author=OuterRef("pk"))
        return (
            lambda: self.keys(self.plain.filter(Exists(held))),
            lambda: self.members(inside=True),
        )

    def in_q_of_an_aggregate(self) -> Made:
        async def asked() -> Any:
            test = Q(pk__in=self.posts.values("author"))
            return (await self.half(self.plain).aggregate(n=Count("pk", filter=test)))["n"]

        async def right() -> Any:
            return len(await self.members(inside=True))

        return asked, right

    def subquery(self) -> Made:
        last = self.posts.filter(author=OuterRef("pk")).order_by("-views").values("views")[:1]

        async def asked() -> Any:
            rows = self.authors.annotate(x=Subquery(last)).values_list("pk", "x")
            return await self.half.rows(rows)

        async def right() -> Any:
            query = self.posts.order_by("views").values_list("author", "views")
            found = dict(await self.half.rows(query))
            return [(key, found.get(key)) for key in await self.keys(self.plain)]

        return asked, right

    def ordered_by(self) -> Made:
        many = self.posts.filter(author=OuterRef("pk")).values("author").annotate(n=Count("*"))

        async def asked() -> Any:
            query = self.plain.alias(n=Subquery(many.values("n"))).order_by(
                F("n").desc(nulls="last"), "pk"
            )
            return await self.half.rows(query.values_list("pk", flat=True))

        async def right() -> Any:
            wanted = await self.wanted()
            return sorted(await self.keys(self.plain), key=lambda key: (-wanted.count(key), key))

        return asked, right

    def _combined(self, name: str) -> Made:
        async def asked() -> Any:
            made = getattr(self.plain.values("pk"), name)(self.posts.values("author"))
            return sorted(row["pk"] for row in await self.half.rows(made))

        async def right() -> Any:
            mine, theirs = set(await self.keys(self.plain)), set(await self.wanted())
            return sorted(getattr(mine, name)(theirs))

        return asked, right

    def union(self) -> Made:
        return self._combined("union")

    def intersection(self) -> Made:
        return self._combined("intersection")

    def difference(self) -> Made:
        return self._combined("difference")

    def joined_by_sign(self) -> Made:
        some = Author.objects.using(self.inner).filter(age__gt=2)

        async def asked() -> Any:
            return await self.keys(self.plain.filter(age__lt=1) | some)

        async def right() -> Any:
            return await self.keys(self.plain.filter(Q(age__lt=1) | Q(age__gt=2)))

        return asked, right

    def cte(self) -> Made:
        held = CTE(self.posts.values("author").distinct())
        return (
            lambda: self.keys(self.plain.join(held, author="pk")),
            lambda: self.members(inside=True),
        )

    def moved_later(self) -> Made:
        """The outer query changes its database after it has taken the inner one in."""
        taken = Author.objects.using(self.inner)
        return (
            lambda: self.keys(taken.filter(pk__in=self.posts.values("author")).using(self.outer)),
            lambda: self.members(inside=True),
        )

    def updated_by(self) -> Made:
        most = self.posts.filter(author=OuterRef("pk")).order_by("-views").values("views")[:1]

        async def asked() -> Any:
            await self.half(self.plain).update(age=Subquery(most))
            return await self.half.rows(self.authors.values_list("pk", "age"))

        async def right() -> Any:
            return await self.subquery()[1]()

        return asked, right

    def deleted(self) -> Made:
        async def asked() -> Any:
            lonely = self.plain.exclude(pk__in=Post.objects.using(self.inner).values("author"))
            await self.half(lonely).delete()
            return await self.keys(self.plain)

        async def right() -> Any:
            query = Post.objects.using(self.inner).values_list("author", flat=True)
            return sorted(set(await self.half.rows(query)))

        return asked, right

    def prefetched(self) -> Made:
        async def asked() -> Any:
            query = self.authors.prefetch_related(Prefetch("posts", self.posts.order_by("pk")))
            rows = await self.half.rows(query)
            return [[post.title for post in row._cached_posts] for row in rows]

        async def right() -> Any:
            titles = await self.half.rows(self.posts.order_by("pk").values_list("author", "title"))
            keys = await self.keys(self.plain)
            return [[title for author, title in titles if author == key] for key in keys]

        return asked, right

    def _written_in_bulk(self, manager: Any) -> Made:
        kept = {alias: Author.objects.using(alias).order_by("pk") for alias in ALIASES}

        async def read_ages() -> list[list[int]]:
            return [
                await self.half.rows(query.values_list("age", flat=True)) for query in kept.values()
            ]

        async def asked() -> Any:
            rows = await self.half.rows(kept[self.inner])
            for row in rows:
                row.age = 77
            await self.half(manager).bulk_update(rows, ["age"])
            return await read_ages()

        async def right() -> Any:
            before = await read_ages()
            place = ALIASES.index(self.inner)
            before[place] = [77] * len(before[place])
            return before

        return asked, right

    def written_in_bulk(self) -> Made:
        return self._written_in_bulk(Author.objects)

    def written_in_bulk_with_using(self) -> Made:
        return self._written_in_bulk(self.plain)

    def set_by_a_query(self) -> Made:
        tags = Tag.objects.using(self.inner).filter(pk__lte=3)

        async def asked() -> Any:
            post = await self.half(Post.objects.using(self.outer)).earliest("pk")
            await self.half(post.tags).set(tags)
            return await self.keys(post.tags.all())

        async def right() -> Any:
            return await self.keys(tags)

        return asked, right

    def updated_to_a_row(self) -> Made:
        async def asked() -> Any:
            author = await self.half(Author.objects.using(self.inner)).earliest("pk")
            posts = Post.objects.using(self.outer)
            await self.half(posts).update(author=author)
            return set(await self.half.rows(posts.values_list("author", flat=True)))

        async def right() -> Any:
            return {(await self.half(Author.objects.using(self.inner)).earliest("pk")).pk}

        return asked, right


FORMS = [name for name in vars(Forms) if not name.startswith("_")][3:]
APART = {"prefetched", "written_in_bulk"}
"""Forms whose parts run by themselves, each in its database."""


async def state_of(half: Any) -> list[Any]:
    found: list[Any] = []
    for alias in ALIASES:
        found += await half.rows(Author.objects.using(alias).order_by("pk").values_list())
        found += await half.rows(Post.objects.using(alias).order_by("pk").values_list())
    return found


async def check(half: Any, name: str, outer: str, inner: str, draw: random.Random) -> None:
    asked, right = getattr(Forms(half, outer, inner, draw), name)()
    before = await state_of(half)
    if outer == inner or name in APART:
        wanted = await right()
        assert await asked() == wanted, (name, outer, inner)
        return
    try:
        found = await asked()
    except FieldError as error:
        assert all(repr(alias) in str(error) for alias in ALIASES), (name, str(error))  # noqa: PT017 - the outcome is named
    else:
        pytest.fail(f"{name} of {outer!r} took in {inner!r}: {found!r}")
    assert await state_of(half) == before, name


async def test_queries_of_two_databases_never_meet(pair: Any, half: Any) -> None:
    for name, (outer, inner) in itertools.product(FORMS, itertools.permutations(ALIASES)):
        await check(half, name, outer, inner, random.Random(1))


async def test_random_queries_over_two_databases_are_refused_or_right(pair: Any, half: Any) -> None:
    draw = random.Random(28)
    for _ in range(QUERIES):
        name, outer, inner = draw.choice(FORMS), draw.choice(ALIASES), draw.choice(ALIASES)
        await check(half, name, outer, inner, draw)


async def test_a_condition_on_a_row_of_a_replica_compares_its_key(pair: Any, half: Any) -> None:
    author = await half(Author.objects.using("other")).earliest("pk")
    assert [post.title for post in await half.rows(Post.objects.filter(author=author))] == [
        post.title for post in await half.rows(Post.objects.filter(author=author.pk))
    ]
    assert await half(Author.objects).contains(author)


async def test_an_inner_query_without_a_database_runs_where_the_outer_one_does(
    pair: Any, half: Any
) -> None:
    """As in Django: a reusable condition need not know which replica is asked."""
    posts = Post.objects.filter(views__gte=5)
    for alias in ALIASES:
        plain = Author.objects.using(alias)
        keys = await half.rows(posts.using(alias).values_list("author", flat=True))
        wanted = await half.rows(plain.filter(pk__in=keys).order_by("pk"))
        within = Author.objects.filter(pk__in=posts.values("author"))
        for asked in (
            plain.filter(pk__in=posts.values("author")),
            plain.filter(Exists(posts.filter(author=OuterRef("pk")))),
            plain.join(CTE(posts.values("author").distinct()), author="pk"),
            plain.filter(pk__in=within.values("pk")),
            plain & within,
            within.using(alias),
        ):
            assert await half.rows(asked.order_by("pk")) == wanted, alias


async def test_rows_of_an_inner_query_without_a_database_are_of_the_outer_one(
    pair: Any, half: Any
) -> None:
    """They are saved where they were read."""
    posts = Post.objects.order_by("pk").prefetch_related(Prefetch("author", Author.objects.all()))
    query = Author.objects.using("other").prefetch_related(Prefetch("posts", posts))
    author = next(row for row in await half.rows(query) if row._cached_posts)
    post = author._cached_posts[0]
    assert (post._alias, post.author._alias) == ("other", "other")
    post.title = "new"
    await half(post).save()
    counts = [await half(Post.objects.using(a).filter(title="new")).count() for a in ALIASES]
    assert counts == [0, 1]


TAKING: list[Callable[[Any], Any]] = [
    lambda held: Author.objects.filter(pk__in=held.values("author")).values("pk"),
    lambda held: Author.objects.filter(Q(age__gt=1) | ~Q(pk__in=held.values("author"))).values(
        "pk"
    ),
    lambda held: Author.objects.filter(Exists(held.filter(author=OuterRef("pk")))).values("pk"),
    lambda held: Author.objects.annotate(n=Subquery(held.values("views")[:1])).values("pk"),
    lambda held: Author.objects.join(CTE(held.values("author").distinct()), author="pk").values(
        "pk"
    ),
    lambda held: Author.objects.values("pk").union(held.values("author")),
    lambda held: (Author.objects.all() | Author.objects.using("default")).values("pk"),
    lambda held: (Author.objects.all() & Author.objects.using("default")).values("pk"),
]
"""Queries without a database of their own that take in one with a database."""


@pytest.mark.parametrize("taking", TAKING)
async def test_a_query_takes_the_database_of_one_that_it_holds(
    pair: Any, half: Any, taking: Callable[[Any], Any]
) -> None:
    """`default` that was chosen is no less chosen two levels further in."""
    held = Post.objects.using("default")
    with pytest.raises(FieldError, match=r"'default'.*'other'"):
        Post.objects.using("other").filter(author__in=taking(held))


async def test_rows_of_two_databases_are_not_written_in_bulk(pair: Any, half: Any) -> None:
    rows = [await half(Author.objects.using(alias)).get(pk=1) for alias in ALIASES]
    before = await state_of(half)
    for row in rows:
        row.age = 77
    message = r"bulk_update\(\) takes rows of one database, got rows of 'default' and 'other'"
    with pytest.raises(FieldError, match=message):
        await half(Author.objects).bulk_update(rows, ["age"])
    assert await state_of(half) == before


async def test_a_bulk_update_is_of_the_transaction_of_its_rows(pair: Any, half: Any) -> None:
    async def body(h: Handle) -> None:
        before = await state_of(h)
        rows = await h.rows(Author.objects.using("other"))
        async with h.transaction("other", rollback=True):
            for row in rows:
                row.age = F("age") + 70 if row.pk == 1 else 77
            unsaved = Author(id=1, name="x", age=76)  # it is written where the others are
            assert await h(Author.objects).bulk_update([*rows[1:], unsaved], ["age"]) > 0
            assert await h(Author.objects.using("other").filter(age=76)).count() == 1
            assert await h(Author.objects).bulk_update(rows, ["age"]) == len(rows)
        assert await state_of(h) == before

    await in_half(half, body)
