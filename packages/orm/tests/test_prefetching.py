"""Rows that are loaded along: joined instances, many-to-many rows, and the database they are of."""

from __future__ import annotations

import functools
from typing import Any

import pytest
from orm_models import Author, Country, Post, Tag

from treefold_orm import Count, Model, Prefetch, Rank, Window, create_all, fields


class Badge(Model):
    """Its key is not its first column."""

    _space = "badges"
    word = fields.CharField(max_length=20)
    code = fields.CharField(max_length=20, primary_key=True)


class Guest(Model):
    _space = "badges"
    name = fields.CharField(max_length=20)
    badges = fields.ManyToManyField(Badge, related_name="guests")


@pytest.mark.parametrize("path", ["author", "editor", "author__country"])
async def test_joined_instances_of_one_row_are_one_object(db: Any, half: Any, path: str) -> None:
    country = await half(Country.objects).create(name="Peru")
    ann = await half(Author.objects).create(name="Ann", country=country)
    for number in range(3):
        await half(Post.objects).create(title=f"p{number}", author=ann, editor=ann)
    await half(Post.objects).create(title="p3", author=ann)
    found = await half.rows(Post.objects.select_related(path).order_by("id"))
    first, *rest = (functools.reduce(getattr, path.split("__"), post) for post in found)
    assert [one is first for one in rest] == [True, True, path != "editor"]


async def test_prefetched_rows_come_in_the_order_of_their_query(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    names = ["c", "a", "b"]
    tags = [await half(Tag.objects).create(name=name) for name in names]
    for number in range(3):
        post = await half(Post.objects).create(title=f"p{number}", author=ann)
        await half(post.tags).add(*tags[number:])
    spec = Prefetch("tags", Tag.objects.order_by("-name").annotate(n=Count("posts")))
    found = await half.rows(Post.objects.prefetch_related(spec).order_by("id"))
    rows = [[(tag.name, tag.n) for tag in post.tags.all()] for post in found]
    assert rows == [[("c", 1), ("b", 3), ("a", 2)], [("b", 3), ("a", 2)], [("b", 3)]]
    assert found[0].tags.all()[1] is found[1].tags.all()[0]


@pytest.fixture
def guests(db: Any) -> None:
    create_all(Badge, Guest)
    Guest.objects.all().delete()
    Badge.objects.all().delete()


@pytest.mark.usefixtures("guests")
async def test_a_key_that_is_not_the_first_column_tells_rows_apart(half: Any) -> None:
    badges = [await half(Badge.objects).create(word="press", code=code) for code in "ab"]
    for name in ("Ann", "Bob"):
        guest = await half(Guest.objects).create(name=name)
        await half(guest.badges).add(*badges)
    found = await half.rows(Guest.objects.prefetch_related("badges").order_by("id"))
    first, second = (sorted(guest.badges.all(), key=lambda badge: badge.code) for guest in found)
    assert [badge.code for badge in first] == ["a", "b"]
    assert all(one is other for one, other in zip(first, second, strict=True))


PREFETCH_QUERIES = [
    (lambda: Tag.objects.filter(name__in=["a", "b"]), ["a", "b"]),
    (lambda: Tag.objects.only("name"), ["a", "b", "c"]),
    (lambda: Tag.objects.filter(posts__title="p1").distinct(), ["a", "b"]),
    (lambda: Tag.objects.annotate(place=Window(Rank(), order_by=["name"])), ["a", "b", "c"]),
    (lambda: Tag.objects.distinct("name").order_by("name"), ["a", "b", "c"]),
    (lambda: Tag.objects.limit_rows(3), ["a", "b", "c"]),
]


@pytest.mark.parametrize(("build", "names"), PREFETCH_QUERIES, ids=range(len(PREFETCH_QUERIES)))
async def test_any_query_may_prefetch_a_many_to_many_relation(
    db: Any, half: Any, build: Any, names: list[str]
) -> None:
    ann = await half(Author.objects).create(name="Ann")
    tags = [await half(Tag.objects).create(name=name) for name in "abcd"]
    first = await half(Post.objects).create(title="p0", author=ann)
    second = await half(Post.objects).create(title="p1", author=ann)
    await half(first.tags).add(*tags[:3])
    await half(second.tags).add(*tags[:2])
    found = await half.rows(Post.objects.prefetch_related(Prefetch("tags", build())).order_by("id"))
    assert sorted(tag.name for tag in found[0].tags.all()) == names
    assert sorted(t.name for t in found[1].tags.all()) == [n for n in names if n != "c"]


@pytest.mark.usefixtures("db")
def test_rows_of_another_database_know_it(place: Any) -> None:
    place.configure(alias="other")
    ann = Author.objects.using("other").create(name="Ann")
    post = Post.objects.using("other").create(title="p", author=ann)
    post.tags.add(Tag.objects.using("other").create(name="a"))
    joined = Post.objects.using("other").select_related("author").get()
    prefetched = Post.objects.using("other").prefetch_related("tags", "author")[0]
    raw = Post.objects.using("other").raw("SELECT id, title FROM post")[0]
    found = [joined, joined.author, prefetched, prefetched.tags.all()[0], prefetched.author, raw]
    assert {item._alias for item in found} == {"other"}


async def test_prefetched_rows_load_the_columns_that_place_them(db: Any, half: Any) -> None:
    peru = await half(Country.objects).create(name="Peru")
    ann = await half(Author.objects).create(name="Ann", country=peru)
    post = await half(Post.objects).create(title="p", author=ann)
    red = await half(Tag.objects).create(name="a")
    await half(post.tags).add(red)
    posts = Prefetch("posts", Post.objects.only("title"))
    (found,) = await half.rows(Author.objects.prefetch_related(posts))
    assert [each.title for each in found.posts.all()] == ["p"]
    tagged = Prefetch("posts__tags", Tag.objects.defer("name"))
    (found,) = await half.rows(Author.objects.prefetch_related(posts, tagged))
    assert [tag.pk for each in found.posts.all() for tag in each.tags.all()] == [red.pk]
    for query in (
        Post.objects.only("title").prefetch_related("author"),
        Post.objects.prefetch_related("author").only("title"),
        Post.objects.defer("author").prefetch_related("author"),
    ):
        (loaded,) = await half.rows(query)
        assert loaded.author.name == "Ann"
    author = Prefetch("author", Author.objects.only("name"))
    (loaded,) = await half.rows(Post.objects.prefetch_related(author, "author__country"))
    assert loaded.author.country.name == "Peru"
