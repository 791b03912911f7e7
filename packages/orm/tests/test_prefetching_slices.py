"""A slice in `Prefetch` counts for each owner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from orm_models import Author, Comment, Country, Person, Post, Profile, Tag

from treefold_orm import (
    CTE,
    Count,
    F,
    FieldError,
    Prefetch,
    RowNumber,
    Window,
    prefetch_related_objects,
    record_queries,
)

VIEWS = {"Ann": [5, 3, 9, 1], "Bob": [2], "Cid": []}


async def filled(half: Any) -> None:
    tags = [await half(Tag.objects).create(name=name) for name in "abcd"]
    for name, views in VIEWS.items():
        author = await half(Author.objects).create(name=name)
        for number in views:
            post = await half(Post.objects).create(title=f"{name}{number}", author=author)
            await half(Post.objects.filter(pk=post.pk)).update(views=number)
            await half(post.tags).add(*tags[: number % 4])
            for likes in range(number):
                await half(Comment.objects).create(post=post, text=f"c{likes}", likes=likes)


def views_of(authors: list[Any]) -> list[list[int]]:
    return [[post.views for post in author.posts.all()] for author in authors]


CASES: list[tuple[Callable[[], Any], list[list[int]]]] = [
    (lambda: Post.objects.order_by("-views")[:2], [[9, 5], [2], []]),
    (lambda: Post.objects.order_by("-views")[1:3], [[5, 3], [], []]),
    (lambda: Post.objects.order_by("-views")[2:], [[3, 1], [], []]),
    (lambda: Post.objects.order_by("views")[:1], [[1], [2], []]),
    (lambda: Post.objects.all()[:2], [[5, 3], [2], []]),
    (lambda: Post.objects.all()[:0], [[], [], []]),
    (lambda: Post.objects.order_by("-views")[:10][1:], [[5, 3, 1], [], []]),
    (lambda: Post.objects.filter(views__lt=9).order_by("-views")[:1], [[5], [2], []]),
    (lambda: Post.objects.filter(comments__likes=4).order_by("views")[:1], [[5], [], []]),
    (lambda: Post.objects.none()[:2], [[], [], []]),
    (lambda: Post.objects.order_by(F("views").desc()).distinct()[:1], [[9], [2], []]),
    (lambda: Post.objects.order_by("author__name", "-views").only("title")[:1], [[9], [2], []]),
    (lambda: Post.objects.select_related("author").order_by("-views")[:1], [[9], [2], []]),
    (lambda: Post.objects.annotate(n=Count("comments")).order_by("-n")[:2], [[9, 5], [2], []]),
    (lambda: Post.objects.order_by("-views")[: 2**62], [[9, 5, 3, 1], [2], []]),
]


@pytest.mark.parametrize(("build", "expected"), CASES, ids=range(len(CASES)))
async def test_every_owner_has_a_slice_of_its_own(
    db: Any, half: Any, build: Any, expected: list[list[int]]
) -> None:
    await filled(half)
    query = Author.objects.prefetch_related(Prefetch("posts", build())).order_by("name")
    with record_queries() as recorded:
        authors = await half.rows(query)
    assert len(recorded) == 2
    for author in authors:
        for post in author.posts.all():
            if not post.is_loaded("views"):
                await half(post).load("views")
    assert views_of(authors) == expected


async def test_rows_of_a_many_to_many_relation_have_slices(db: Any, half: Any) -> None:
    await filled(half)
    for query, expected in (
        (Tag.objects.order_by("-name")[:2], {"Ann3": "cb", "Ann9": "a", "Ann5": "a", "Bob2": "ba"}),
        (Tag.objects.all()[1:3], {"Ann3": "bc", "Bob2": "b"}),
        (Tag.objects.exclude(name="b").order_by("name")[1:], {"Ann3": "c"}),
        (
            Tag.objects.annotate(n=Count("posts")).order_by("n", "name")[:1],
            {"Ann1": "a", "Ann3": "c", "Ann5": "a", "Ann9": "a", "Bob2": "b"},
        ),
    ):
        with record_queries() as recorded:
            posts = await half.rows(Post.objects.prefetch_related(Prefetch("tags", query)))
        assert len(recorded) == 2
        found = {post.title: "".join(tag.name for tag in post.tags.all()) for post in posts}
        expected = {"Ann1": "a", **expected} if query._low == 0 else expected
        assert {title: names for title, names in found.items() if names} == expected


async def test_slices_nest_and_go_to_attributes(db: Any, half: Any) -> None:
    await filled(half)
    comments = Prefetch("comments", Comment.objects.order_by("-likes")[:2], to_attr="best")
    posts = Prefetch("posts", Post.objects.order_by("-views").prefetch_related(comments)[:1])
    authors = await half.rows(Author.objects.prefetch_related(posts).order_by("name"))
    assert [[c.likes for c in p.best] for a in authors for p in a.posts.all()] == [[8, 7], [1, 0]]
    assert authors[0].posts.all()[0].author is authors[0]
    nested = Prefetch("posts__comments", Comment.objects.order_by("likes")[:1])
    (bob,) = await half.rows(Author.objects.filter(name="Bob").prefetch_related(nested))
    assert [[c.likes for c in post.comments.all()] for post in bob.posts.all()] == [[0]]


async def test_instances_at_hand_take_slices(db: Any, half: Any) -> None:
    await filled(half)
    authors = await half.rows(Author.objects.order_by("name"))
    spec = Prefetch("posts", Post.objects.order_by("-views")[:1])
    await half.call(
        lambda: prefetch_related_objects(authors, spec),
        lambda: _awaited(authors, spec),
    )
    assert views_of(authors) == [[9], [2], []]


async def _awaited(authors: list[Any], spec: Prefetch) -> None:
    from treefold_orm import aprefetch_related_objects

    await aprefetch_related_objects(authors, spec)


async def test_rows_that_the_order_leaves_equal_go_by_key(db: Any, half: Any) -> None:
    boss = await half(Person.objects).create(name="boss")
    people = [await half(Person.objects).create(name="x", boss=boss) for _ in range(5)]
    await half(Person.objects.filter(pk=people[0].pk)).update(name="x")
    staff = Prefetch("staff", Person.objects.order_by("-name")[1:3])
    (found,) = await half.rows(Person.objects.filter(name="boss").prefetch_related(staff))
    assert list(found.staff.all()) == people[1:3]
    countries = await half(Country.objects).create(name="Peru")
    for name in "cab":
        await half(Author.objects).create(name=name, country=countries)
    ordered = Prefetch("authors", Author.objects.all()[:2])  # by the order of the model
    (found,) = await half.rows(Country.objects.prefetch_related(ordered))
    assert [author.name for author in found.authors.all()] == ["a", "b"]


def over_window() -> Any:
    return Post.objects.annotate(place=Window(RowNumber(), order_by=["views"]))


REFUSED = [
    (lambda: Prefetch("posts", Post.objects.union(Post.objects.all())[:1]), "union"),
    (lambda: Prefetch("posts", Post.objects.distinct("title")[:1]), r"distinct\(fields\)"),
    (lambda: Prefetch("posts", Post.objects.select_for_update()[:1]), "select_for_update"),
    (lambda: Prefetch("posts", Post.objects.limit_rows(5)[:1]), "limit_rows"),
    (lambda: Prefetch("posts", over_window().filter(place=1)[:1]), "filter on a window"),
    (lambda: Prefetch("posts", CTE(Post.objects.all()).objects.all()[:1]), "a CTE"),
]


@pytest.mark.parametrize(("build", "what"), REFUSED, ids=[what for _, what in REFUSED])
def test_rows_without_a_place_are_refused(build: Any, what: str) -> None:
    with pytest.raises(FieldError, match=f"takes no slice of a query with .*{what}.*; filter by"):
        build()


async def test_slices_of_one_row_and_of_linked_windows_are_refused(db: Any, half: Any) -> None:
    await filled(half)
    for spec in (
        Prefetch("author", Author.objects.all()[:1]),
        Prefetch("author__profile", Profile.objects.all()[:1]),
    ):
        with pytest.raises(FieldError, match="leads to one row, got a query with a slice"):
            Post.objects.prefetch_related(spec)
    tags = Tag.objects.annotate(place=Window(RowNumber(), order_by=["name"]))
    query = Post.objects.prefetch_related(Prefetch("tags", tags[:1]))
    with pytest.raises(FieldError, match=r"Prefetch\('tags'\) takes no slice of a query that anno"):
        await half.rows(query)
    posts = over_window().order_by("-views")[:1]
    authors = await half.rows(Author.objects.prefetch_related(Prefetch("posts", posts)))
    assert [[p.views for p in a.posts.all()] for a in authors if a.name == "Bob"] == [[2]]
