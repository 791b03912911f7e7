"""`prefetch_related_objects` and `aprefetch_related_objects`: relations of instances at hand."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from operator import attrgetter
from typing import Any, cast

import pytest
from orm_models import Author, Comment, Country, Post, Tag

from treefold_orm import (
    F,
    FieldError,
    NotLoaded,
    Prefetch,
    SyncCallInAsync,
    TaintedInput,
    aprefetch_related_objects,
    prefetch_related_objects,
    record_queries,
    taint,
    transaction,
)


async def prefetch(half: Any, instances: Any, *lookups: Any) -> int:
    """Load relations; return how many statements it took."""
    with record_queries() as recorded:
        await half.call(
            lambda: prefetch_related_objects(instances, *lookups),
            lambda: aprefetch_related_objects(instances, *lookups),
        )
    return len(recorded)


async def filled(half: Any) -> list[Any]:
    """Three posts of two authors in the order of their keys, as they are made."""
    country = await half(Country.objects).create(name="Peru")
    ann = await half(Author.objects).create(name="Ann", country=country)
    bob = await half(Author.objects).create(name="Bob")
    tags = [await half(Tag.objects).create(name=name) for name in "ab"]
    for title, author in (("p0", ann), ("p1", ann), ("p2", bob)):
        post = await half(Post.objects).create(title=title, author=author)
        await half(post.tags).add(*tags)
        await half(Comment.objects).create(post=post, text=f"on {title}")
    return await half.rows(Post.objects.order_by("id"))


async def test_relations_of_a_list_are_loaded_once(db: Any, half: Any) -> None:
    posts = await filled(half)
    assert await prefetch(half, posts, "author__country", "tags", "comments") == 4
    with record_queries() as recorded:
        assert [post.author.name for post in posts] == ["Ann", "Ann", "Bob"]
        assert posts[0].author.country.name == "Peru"
        assert posts[2].author.country is None
        assert [[tag.name for tag in post.tags.all()] for post in posts] == [["a", "b"]] * 3
        assert [post.comments.all()[0].text for post in posts] == ["on p0", "on p1", "on p2"]
        assert posts[0].comments.all()[0].post is posts[0]
    assert len(recorded) == 0
    assert await prefetch(half, posts, "author__country", "tags", "comments") == 0


async def test_only_what_is_missing_is_asked_for(db: Any, half: Any) -> None:
    posts = await filled(half)
    await prefetch(half, posts[:1], "author", "tags")
    ann, tags = posts[0].author, posts[0].tags.all()
    with record_queries() as recorded:
        await half.call(
            lambda: prefetch_related_objects(posts, "author", "tags"),
            lambda: aprefetch_related_objects(posts, "author", "tags"),
        )
    assert len(recorded) == 2
    assert posts[0].author is ann
    assert list(posts[0].tags.all()) == list(tags)
    assert posts[1].author.name == "Ann"
    joined = await half.rows(Post.objects.select_related("author").order_by("id"))
    assert await prefetch(half, joined, "author__country") == 1


async def test_a_changed_key_loads_its_new_target(db: Any, half: Any) -> None:
    posts = await filled(half)
    await prefetch(half, posts, "author")
    posts[0].author_id = posts[2].author_id
    assert await prefetch(half, posts, "author") == 1
    assert [post.author.name for post in posts] == ["Bob", "Ann", "Bob"]
    posts[0].editor_id = None
    await prefetch(half, posts, "editor")
    assert [post.editor for post in posts] == [None, None, None]


async def test_a_prefetch_with_a_query_names_its_rows(db: Any, half: Any) -> None:
    posts = await filled(half)
    await prefetch(half, posts, "tags")
    some = Prefetch("tags", Tag.objects.filter(name="b"))
    assert await prefetch(half, posts, some) == 1
    assert [tag.name for tag in posts[0].tags.all()] == ["b"]
    apart = Prefetch("tags", Tag.objects.order_by("-name"), to_attr="sorted_tags")
    assert await prefetch(half, posts, apart) == 1
    assert [tag.name for tag in posts[0].sorted_tags] == ["b", "a"]
    assert [tag.name for tag in posts[0].tags.all()] == ["b"]


async def test_instances_without_the_foreign_key_load_it_first(db: Any, half: Any) -> None:
    await filled(half)
    partly = await half.rows(Post.objects.only("title"))
    for posts in (partly, await half(Post.objects).raw("SELECT id, title FROM post")):
        posts.sort(key=attrgetter("title"))
        assert await prefetch(half, posts, "author") == 2
        assert [post.author.name for post in posts] == ["Ann", "Ann", "Bob"]
    (post,) = await half.rows(Post.objects.only("title").filter(title="p0"))
    await half(post).load("author")
    assert post.author.name == "Ann"
    (post,) = await half.rows(Post.objects.only("title").filter(title="p1"))
    await half(Post.objects.filter(title="p1")).delete()
    with pytest.raises(Post.DoesNotExist, match="The row of this Post is gone"):
        await prefetch(half, [post], "author")


async def test_one_row_may_come_twice(db: Any, half: Any) -> None:
    posts = await filled(half)
    again = await half.rows(Post.objects.order_by("id"))
    assert await prefetch(half, (post for post in [*posts, posts[0], *again]), "tags") == 1
    assert [len(post.tags.all()) for post in (*posts, *again)] == [2] * 6


async def test_nothing_is_sent_for_nothing(db: Any, half: Any) -> None:
    posts = await filled(half)
    assert await prefetch(half, [], "nothing") == 0
    assert await prefetch(half, posts) == 0
    assert await prefetch(half, [Post(title="x", author=Author(name="y"))], "author") == 0


async def test_a_rollback_forgets_what_was_loaded_in_it(db: Any, half: Any) -> None:
    posts = await filled(half)

    def blocking() -> None:
        with transaction():
            posts[0].tags.create(name="undone")
            prefetch_related_objects(posts, "tags")
            assert len(posts[0].tags.all()) == 3
            raise KeyError

    async def awaited() -> None:
        async with transaction():
            await posts[0].tags.acreate(name="undone")
            await aprefetch_related_objects(posts, "tags")
            assert len(posts[0].tags.all()) == 3
            raise KeyError

    with pytest.raises(KeyError):
        await half.call(blocking, awaited)
    assert await prefetch(half, posts, "tags") == 1
    assert len(posts[0].tags.all()) == 2


async def test_columns_that_are_left_out_stay_so(db: Any, half: Any) -> None:
    await filled(half)
    posts = await half.rows(Post.objects.only("title"))
    await prefetch(half, posts, "author")
    assert not posts[0].is_loaded("views")
    if half.name == "async":
        with pytest.raises(NotLoaded):
            _ = posts[0].views


REFUSED: list[tuple[Callable[[Any], Any], list[Any], str]] = [
    (lambda p: p[0], ["author"], "takes a list of instances, got Post"),
    (lambda p: "ab", ["author"], "takes a list of instances, got str"),
    (lambda p: [{"id": 1}], ["author"], "takes instances, got dict"),
    (lambda p: [*p, None], ["author"], "takes instances, got NoneType"),
    (lambda p: [*p, Tag(name="x")], ["tags"], "of one model, got Post and Tag; call it for each"),
    (lambda p: p, [None], "takes names and Prefetch, got NoneType"),
    (lambda p: p, ["nothing"], "Post has no field 'nothing'"),
    (lambda p: p, ["author__nothing"], "Author has no field 'nothing'"),
    (lambda p: p, ["title"], "Post has no field 'title'"),
    (lambda p: p, [Prefetch("tags", Post.objects.all())], "needs a query of Tag, not of Post"),
    (lambda p: [Post(title="x")], ["tags"], "Post.tags cannot be loaded for an instance without"),
    (lambda p: [Post(author_id=F("id"))], ["author"], "Post.author is not known before save"),
]


@pytest.mark.parametrize(("build", "lookups", "message"), REFUSED, ids=range(len(REFUSED)))
async def test_what_cannot_be_loaded_is_refused(
    db: Any, half: Any, build: Any, lookups: list[Any], message: str
) -> None:
    posts = await filled(half)
    with pytest.raises(FieldError, match=message):
        await prefetch(half, build(posts), *lookups)


async def test_names_of_a_request_are_refused(db: Any, half: Any) -> None:
    posts = await filled(half)
    name = next(iter(cast("Any", taint({"author": 1}))))
    with pytest.raises(TaintedInput):
        await prefetch(half, posts, name)


async def test_rows_of_two_databases_are_loaded_apart(place: Any, db: Any, half: Any) -> None:
    place.configure(alias="other")
    posts = await filled(half)
    others = await half.rows(Post.objects.using("other").order_by("id"))
    with pytest.raises(FieldError, match="of one database, got rows of 'default' and 'other'"):
        await prefetch(half, [*posts, *others], "author")
    await prefetch(half, others, "author", "tags")
    assert others[0].author._alias == others[0].tags.all()[0]._alias == "other"


async def test_the_blocking_half_is_refused_in_a_loop(db: Any, half: Any) -> None:
    posts = await filled(half)
    with pytest.raises(SyncCallInAsync, match=r"await aprefetch_related_objects\(\)"):
        prefetch_related_objects(posts, "author")


def test_both_halves_take_the_same() -> None:
    one, other = map(inspect.signature, (prefetch_related_objects, aprefetch_related_objects))
    assert one.parameters == other.parameters
    assert inspect.iscoroutinefunction(aprefetch_related_objects)
