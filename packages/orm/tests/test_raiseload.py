"""`raiseload()`: instances that never send a statement where an attribute is read."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import orm_models
import pytest

from treefold_orm import NotLoaded, Prefetch, prefetch_related_objects, record_queries

Author: Any = orm_models.Author
Country: Any = orm_models.Country
Person: Any = orm_models.Person
Post: Any = orm_models.Post
Profile: Any = orm_models.Profile
Tag: Any = orm_models.Tag


@pytest.fixture
def rows(db: Any) -> None:
    country = Country.objects.create(name="Peru")
    ann = Author.objects.create(name="Ann", country=country)
    Profile.objects.create(author=ann)
    post = Post.objects.create(title="p", author=ann)
    post.tags.add(Tag.objects.create(name="a"))


REFUSED = [
    (lambda: Post.objects.raiseload().get(title="p").author, "Post.author is not loaded, and rai"),
    (lambda: Post.objects.raiseload().get(pk=Post.objects.get().pk).author, "Post.author"),
    (lambda: Post.objects.raiseload()[0].author, r"add .select_related\('author'\) to the query"),
    (lambda: Post.objects.raiseload().first().author, "Post.author"),
    (lambda: Post.objects.order_by("id").raiseload().last().author, "Post.author"),
    (lambda: next(Post.objects.raiseload().iterator()).author, "Post.author"),
    (lambda: Post.objects.raiseload().keyset(5).items[0].author, "Post.author"),
    (lambda: next(iter(Post.objects.raiseload().in_bulk().values())).author, "Post.author"),
    (lambda: Post.objects.raiseload().filter(views=0).order_by("id").get().author, "Post.author"),
    (lambda: Post.objects.filter(views=0).raiseload().only("title").get().views, "Post.views"),
    (lambda: Post.objects.raiseload().defer("body").get().body, r"load\('body'\)"),
    (lambda: Author.objects.raiseload().get().profile, "Author.profile is not loaded"),
    (
        lambda: Post.objects.raiseload().select_related("author").get().author.country,
        "Author.country",
    ),
    (
        lambda: Post.objects.raiseload().prefetch_related("author").get().author.country,
        "Author.country",
    ),
    (
        lambda: (
            Author.objects.raiseload()
            .prefetch_related(Prefetch("posts", Post.objects.only("author"), to_attr="found"))
            .get()
            .found[0]
            .title
        ),
        "Post.title",
    ),
    (
        lambda: (
            Author.objects.prefetch_related(
                Prefetch("posts", Post.objects.defer("title").raiseload())
            )
            .get()
            .posts.all()[0]
            .title
        ),
        "Post.title",
    ),
    (
        lambda: (
            Author.objects.prefetch_related(
                Prefetch("posts", Post.objects.defer("title").raiseload()[:1])
            )
            .get()
            .posts.all()[0]
            .title
        ),
        "Post.title",
    ),
    (
        lambda: (
            Post.objects.prefetch_related(Prefetch("tags", Tag.objects.defer("name").raiseload()))
            .get()
            .tags.all()[0]
            .name
        ),
        "Tag.name",
    ),
]


@pytest.mark.parametrize(("read", "message"), REFUSED, ids=range(len(REFUSED)))
def test_reading_what_is_missing_is_refused(rows: None, read: Any, message: str) -> None:
    with pytest.raises(NotLoaded, match=message):
        read()


def test_what_is_there_is_read_without_a_statement(rows: None) -> None:
    query = Post.objects.raiseload().select_related("author__country").prefetch_related("tags")
    (post,) = query
    with record_queries() as recorded:
        assert (post.author.country.name, post.editor, post.views) == ("Peru", None, 0)
        assert [tag.name for tag in post.tags.all()] == ["a"]
    assert len(recorded) == 0


def test_calls_that_name_what_they_load_work(rows: None) -> None:
    author = Author.objects.raiseload().only("name").get()
    assert [post.title for post in author.posts.all()] == ["p"]
    assert author.posts.count() == 1
    author.load("age", "profile", "country")
    assert (author.age, author.country.name) == (None, "Peru")
    with pytest.raises(NotLoaded, match=r"Author.profile"):
        _ = Author.objects.raiseload().get().profile
    post = Post.objects.raiseload().get()
    prefetch_related_objects([post], "author")
    with pytest.raises(NotLoaded, match=r"Author.country is not loaded, and raiseload\(\)"):
        _ = post.author.country
    post.refresh_from_db()
    post.title = "q"
    post.save()
    assert Post.objects.get().title == "q"
    assert post.delete() == 1


def test_other_queries_load_as_before(rows: None) -> None:
    query = Post.objects.filter(title="p")
    assert query.raiseload() is not query
    assert query.get().author.name == "Ann"
    assert Post.objects.get().author.name == "Ann"
    assert list(Post.objects.raiseload().values("title")) == [{"title": "p"}]
    assert Author.objects.filter(pk__in=Post.objects.raiseload().values("author")).count() == 1


def test_copies_and_pickles_refuse_too(rows: None) -> None:
    post = Post.objects.raiseload().only("title").get()
    for other in (copy.copy(post), copy.deepcopy(post), pickle.loads(pickle.dumps(post))):
        with pytest.raises(NotLoaded):
            _ = other.views


def test_rows_that_point_to_each_other_are_marked_once(rows: None) -> None:
    boss = Person.objects.create(name="boss")
    boss.friends.add(boss)
    staff = Prefetch("staff", Person.objects.select_related("boss"))
    (found,) = Person.objects.raiseload().prefetch_related(staff, "friends__friends")
    assert [friend.name for friend in found.friends.all()] == ["boss"]


async def test_async_code_refuses_with_its_own_words(db: Any) -> None:
    author = await Author.objects.acreate(name="Ann")
    await Post.objects.acreate(title="p", author=author)
    async for post in Post.objects.raiseload():
        with pytest.raises(NotLoaded, match=r"await instance.aload\('author'\)"):
            _ = post.author
        await post.aload("author")
        assert post.author.name == "Ann"
