"""Relations: lookups across them, loading along and after, many-to-many, what is not loaded."""

from __future__ import annotations

import asyncio
import datetime as dt
import sqlite3
from typing import Any

import pytest
from orm_models import Author, Club, Comment, Country, Membership, Person, Post, Profile, Tag

from treefold_orm import (
    F,
    FieldError,
    FieldValueError,
    ForeignKeyViolation,
    NotLoaded,
    Prefetch,
    Q,
    UniqueViolation,
    all_of,
    any_of,
    none_of,
    record_queries,
)
from treefold_orm._drivers.sqlite_errors import translate_error


async def library(half: Any) -> dict[str, Any]:
    peru = await half(Country.objects).create(name="Peru")
    ann = await half(Author.objects).create(name="Ann", age=30, country=peru)
    bob = await half(Author.objects).create(name="Bob")
    await half(Author.objects).create(name="Cid")
    a1 = await half(Post.objects).create(title="a1", views=1, author=ann)
    a2 = await half(Post.objects).create(title="a2", views=10, author=ann, editor=bob)
    b1 = await half(Post.objects).create(title="b1", views=5, author=bob)
    red, blue = [await half(Tag.objects).create(name=name) for name in ("red", "blue")]
    await half(a1.tags).add(red, blue)
    await half(b1.tags).add(blue)
    for text, likes, post in (("x", 1, a1), ("y", 2, a1), ("z", 3, b1)):
        await half(Comment.objects).create(text=text, likes=likes, post=post)
    return {
        "peru": peru,
        "ann": ann,
        "bob": bob,
        "a1": a1,
        "a2": a2,
        "b1": b1,
        "red": red,
        "blue": blue,
    }


POSTS: list[tuple[Any, list[str]]] = [
    (Q(author__name="Ann"), ["a1", "a2"]),
    (Q(author__country__name="Peru"), ["a1", "a2"]),
    (Q(author__country__isnull=True), ["b1"]),
    (Q(author__country=None), ["b1"]),
    (Q(editor=None), ["a1", "b1"]),
    (Q(editor__isnull=False), ["a2"]),
    (Q(editor__name="Bob"), ["a2"]),
    (Q(tags__name="blue"), ["a1", "b1"]),
    (Q(tags__name="red") | Q(author__name="Bob"), ["a1", "b1"]),
    (Q(tags=None), ["a2"]),
    (Q(tags__isnull=False), ["a1", "b1"]),
    (Q(comments__likes__gt=1), ["a1", "b1"]),
    (Q(comments__likes=1, comments__text="y"), []),
    (Q(comments__likes=2, comments__text="y"), ["a1"]),
    (Q(comments__isnull=True), ["a2"]),
    (Q(comments__isnull=True, comments__likes=3), []),
    (Q(comments__likes=1) & (Q(comments__text="x") | Q(comments__text="y")), ["a1"]),
    (Q(comments__likes=1) & (Q(comments__text="y") | Q(comments__text="z")), []),
    (Q(comments__likes=1) & (Q(comments__text="y") | Q(views__lt=10)), ["a1"]),
    (
        (Q(comments__likes=1) | Q(title="a2")) & (Q(comments__text="y") | Q(title="a2")),
        ["a2"],
    ),
    (
        (Q(comments__isnull=True) | Q(comments__likes=3))
        & (Q(comments__text="z") | Q(author__name="Ann")),
        ["a2", "b1"],
    ),
    (
        Q(author__posts__comments__likes=1)
        & (Q(author__posts__comments__text="y") | Q(author__posts__views=10)),
        [],
    ),
    (Q(author__posts__views=10), ["a1", "a2"]),
    (Q(author__in=Author.objects.filter(name="Bob")), ["b1"]),
    (Q(author__age__gte=30, tags__name="red"), ["a1"]),
    (any_of("comments", Q(likes__gt=1)), ["a1", "b1"]),
    (none_of("comments", Q(likes=1)), ["a2", "b1"]),
    (all_of("comments", Q(likes__gt=2)), ["a2", "b1"]),
    (any_of("comments"), ["a1", "b1"]),
    (any_of("author__posts", Q(title="a2")), ["a1", "a2"]),
    (Post.author.to.name == "Bob", ["b1"]),
    (Post.author.to.country.to.name == "Peru", ["a1", "a2"]),
    ((Post.views > 3) & (Post.author.to.name != "Bob"), ["a2"]),
    (Post.title.in_(["a1", "b1"]) & Post.editor.is_null(), ["a1", "b1"]),
    (F("views") > F("author__age"), []),
]


@pytest.mark.parametrize(("condition", "titles"), POSTS, ids=range(len(POSTS)))
async def test_conditions_across_relations_select_each_row_once(
    db: Any, half: Any, condition: Any, titles: list[str]
) -> None:
    await library(half)
    query = Post.objects.filter(condition).order_by("title")
    assert [p.title for p in await half.rows(query)] == titles
    assert await half(query).count() == len(titles)
    assert await half(query).exists() is bool(titles)
    others = [p.title for p in await half.rows(Post.objects.exclude(condition).order_by("title"))]
    assert sorted(titles + others) == ["a1", "a2", "b1"]
    assert [
        p.title for p in await half.rows(Post.objects.filter(~condition).order_by("title"))
    ] == others


async def test_one_filter_speaks_of_one_row_and_a_chain_of_several(db: Any, half: Any) -> None:
    await library(half)
    together = Post.objects.filter(comments__likes=1, comments__text="y")
    chained = Post.objects.filter(comments__likes=1).filter(comments__text="y")
    assert await half.rows(together) == []
    assert [p.title for p in await half.rows(chained)] == ["a1"]


async def test_update_and_delete_across_relations(db: Any, half: Any) -> None:
    await library(half)
    assert (
        await half(Post.objects.filter(author__name="Ann", tags__name="red")).update(views=77) == 1
    )
    assert (await half(Post.objects).get(title="a1")).views == 77
    assert await half(Comment.objects.filter(post__author__name="Bob")).delete() == 1
    assert await half(Comment.objects).count() == 2


async def test_values_across_relations(db: Any, half: Any) -> None:
    await library(half)
    rows = await half.rows(
        Post.objects.order_by("title").values("title", "author__name", "editor__name")
    )
    assert rows[1] == {"title": "a2", "author__name": "Ann", "editor__name": "Bob"}
    assert rows[2] == {"title": "b1", "author__name": "Bob", "editor__name": None}


async def test_values_over_a_to_many_relation_give_one_row_each(db: Any, half: Any) -> None:
    await library(half)
    rows = await half.rows(Post.objects.order_by("title", "id").values_list("title", "tags__name"))
    assert sorted(rows, key=str) == sorted(
        [("a1", "red"), ("a1", "blue"), ("a2", None), ("b1", "blue")], key=str
    )


async def test_ordering_across_a_relation(db: Any, half: Any) -> None:
    await library(half)
    assert [p.title for p in await half.rows(Post.objects.order_by("-author__name", "title"))] == [
        "b1",
        "a1",
        "a2",
    ]


def test_ordering_and_values_of_many_rows_are_refused_where_one_is_needed() -> None:
    from treefold_orm._compile.plans import build_rows_plan
    from treefold_orm._dialects.sqlite import SQLite

    query = Post.objects.order_by("tags__name")
    with pytest.raises(
        FieldError, match=r"Post.tags leads to many rows: use an aggregate, Subquery or Exists"
    ):
        build_rows_plan(SQLite(), query._key, given=0)


# -- loading --------------------------------------------------------------------------------------


async def test_select_related_needs_one_query(db: Any, half: Any) -> None:
    await library(half)
    with record_queries() as seen:
        query = Post.objects.select_related("author__country", "editor").order_by("title")
        posts = await half.rows(query)
        names = [
            (p.author.name, p.author.country and p.author.country.name, p.editor and p.editor.name)
            for p in posts
        ]
    assert len(seen) == 1
    assert names == [("Ann", "Peru", None), ("Ann", "Peru", "Bob"), ("Bob", None, None)]


async def test_prefetch_related_needs_one_query_for_each_table(db: Any, half: Any) -> None:
    await library(half)
    with record_queries() as seen:
        authors = await half.rows(Author.objects.prefetch_related("posts__comments", "country"))
        found = {
            a.name: [(p.title, len(list(p.comments.all()))) for p in a.posts.all()] for a in authors
        }
        countries = [a.country and a.country.name for a in authors]
    assert len(seen) == 4
    assert found == {"Ann": [("a1", 2), ("a2", 0)], "Bob": [("b1", 1)], "Cid": []}
    assert countries == ["Peru", None, None]


async def test_prefetch_of_many_to_many_both_ways(db: Any, half: Any) -> None:
    await library(half)
    posts = await half.rows(Post.objects.order_by("title").prefetch_related("tags"))
    assert [sorted(t.name for t in p.tags.all()) for p in posts] == [["blue", "red"], [], ["blue"]]
    tags = await half.rows(Tag.objects.order_by("name").prefetch_related("posts"))
    assert [sorted(p.title for p in t.posts.all()) for t in tags] == [["a1", "b1"], ["a1"]]


async def test_prefetch_takes_a_query_and_an_attribute(db: Any, half: Any) -> None:
    await library(half)
    spec = Prefetch("posts", Post.objects.filter(views__gte=5).order_by("-views"), to_attr="busy")
    authors = await half.rows(Author.objects.prefetch_related(spec))
    assert [[p.title for p in a.busy] for a in authors] == [["a2"], ["b1"], []]


async def test_prefetched_children_know_their_parent(db: Any, half: Any) -> None:
    await library(half)
    author = await half(Author.objects.prefetch_related("posts")).get(name="Ann")
    assert all(p.author is author for p in author.posts.all())


async def test_async_code_never_loads_behind_your_back(db: Any) -> None:
    from conftest import Half

    await library(Half("async"))
    post = await Post.objects.aget(title="a1")
    with pytest.raises(
        NotLoaded, match=r"Post.author is not loaded: add .select_related\('author'\) to the query"
    ):
        _ = post.author
    await post.aload("author")
    assert post.author.name == "Ann"
    partial = await Post.objects.only("title").aget(title="a1")
    with pytest.raises(NotLoaded, match=r"Post.views is not loaded"):
        _ = partial.views
    await partial.aload("views")
    assert partial.views == 1


async def test_sync_code_loads_for_the_whole_result_at_once(db: Any) -> None:
    from conftest import Half

    half = Half("sync")
    await library(half)

    def read() -> tuple[list[str], int, int]:
        with record_queries() as seen:
            names = [p.author.name for p in Post.objects.order_by("title")]
            related = len(seen)
            [p.views for p in Post.objects.only("title")]
        return names, related, len(seen) - related

    assert await asyncio.to_thread(read) == (["Ann", "Ann", "Bob"], 2, 2)


async def test_one_to_one_both_ways(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    bob = await half(Author.objects).create(name="Bob")
    made = await half(Profile.objects).create(author=ann, site="https://example.org/")
    with pytest.raises(UniqueViolation, match=r"Profile\.author exists already"):
        await half(Profile.objects).create(author=ann)
    found = await half(Author.objects.select_related("profile")).get(name="Ann")
    assert found.profile.pk == made.pk
    lonely = await half(Author.objects.select_related("profile")).get(pk=bob.pk)
    with pytest.raises(Profile.DoesNotExist, match="This Author has no profile"):
        _ = lonely.profile
    assert [a.name for a in await half.rows(Author.objects.filter(profile=None))] == ["Bob"]
    assert [
        a.name for a in await half.rows(Author.objects.filter(profile__site__contains="example"))
    ] == ["Ann"]


async def test_a_related_manager_is_narrowed_and_creates_for_its_owner(db: Any, half: Any) -> None:
    facts = await library(half)
    made = await half(facts["bob"].posts).create(title="b2")
    assert made.author_id == facts["bob"].pk
    assert await half(facts["bob"].posts).count() == 2
    assert [p.title for p in await half.rows(facts["bob"].posts.filter(title="b1"))] == ["b1"]
    for title in ("b3", "b3", "a1"):  # a1 is another author's
        found, created = await half(facts["bob"].posts).get_or_create(title=title)
        assert found.author_id == facts["bob"].pk
    assert (found.pk != facts["a1"].pk, created) == (True, True)
    for views in (4, 5):
        found, _ = await half(facts["bob"].posts).update_or_create(
            title="b4", defaults={"views": views}
        )
    assert (found.author_id, found.views) == (facts["bob"].pk, 5)
    assert await half(facts["bob"].posts).count() == 5


async def test_many_to_many_add_remove_set_clear(db: Any, half: Any) -> None:
    facts = await library(half)
    post, red, blue = facts["a2"], facts["red"], facts["blue"]

    async def names() -> list[str]:
        return sorted(t.name for t in await half.rows(post.tags.all()))

    await half(post.tags).add(red, red.pk)
    await half(post.tags).add(red)
    assert await names() == ["red"]
    await half(post.tags).set([blue])
    assert await names() == ["blue"]
    green = await half(post.tags).create(name="green")
    assert await names() == ["blue", "green"]
    for created in (True, False):
        assert (await half(post.tags).get_or_create(name="grey"))[1] is created
    assert await names() == ["blue", "green", "grey"]
    for created in (True, False):
        changed = {"defaults": {"name": "light grey"}, "create_defaults": {"name": "grey2"}}
        assert (await half(post.tags).update_or_create(name="grey2", **changed))[1] is created
    assert await names() == ["blue", "green", "grey", "light grey"]
    assert await half(post.tags.filter(name__contains="grey")).delete() == 2
    assert await half(post.tags).remove(green) == 1
    assert await half(post.tags).clear() == 1
    assert await names() == []


async def test_many_to_many_to_the_same_model(db: Any, half: Any) -> None:
    ann, bob = [await half(Person.objects).create(name=name) for name in ("Ann", "Bob")]
    await half(ann.friends).add(bob)
    assert [p.name for p in await half.rows(ann.friends.all())] == ["Bob"]
    assert [p.name for p in await half.rows(bob.friend_of.all())] == ["Ann"]
    assert [p.name for p in await half.rows(Person.objects.filter(friends__name="Bob"))] == ["Ann"]


async def test_many_to_many_through_a_model(db: Any, half: Any) -> None:
    ann = await half(Person.objects).create(name="Ann")
    club = await half(Club.objects).create(name="Chess")
    await half(Membership.objects).create(club=club, person=ann, since=dt.date(2020, 1, 1))
    assert [p.name for p in await half.rows(club.members.all())] == ["Ann"]
    assert [c.name for c in await half.rows(ann.clubs.all())] == ["Chess"]
    assert [c.name for c in await half.rows(Club.objects.filter(members__name="Ann"))] == ["Chess"]
    bob = await half(Person.objects).create(name="Bob")
    for _ in range(2):
        await half(club.members).add(ann, bob)
    assert sorted(p.name for p in await half.rows(club.members.all())) == ["Ann", "Bob"]
    assert await half(Membership.objects).count() == 2


async def test_a_row_that_cannot_be_connected_is_not_left_behind(db: Any, half: Any) -> None:
    facts = await library(half)
    tags = facts["a2"].tags
    await half(facts["a2"]).delete()
    with pytest.raises(
        ForeignKeyViolation, match="A referenced row is missing, or this one is still referenced"
    ):
        await half(tags).create(name="lost")
    assert not await half(Tag.objects.filter(name="lost")).exists()


async def test_what_happens_on_delete_is_done_by_the_database(db: Any, half: Any) -> None:
    boss = await half(Person.objects).create(name="Boss")
    worker = await half(Person.objects).create(name="Worker", boss=boss)
    await half(boss).delete()
    await half(worker).refresh()
    assert worker.boss_id is None
    facts = await library(half)
    with pytest.raises(
        ForeignKeyViolation, match="A referenced row is missing, or this one is still referenced"
    ):
        await half(facts["ann"]).delete()
    await half(facts["a1"]).delete()
    assert await half(Comment.objects).count() == 1


async def test_a_missing_target_is_refused(db: Any, half: Any) -> None:
    with pytest.raises(
        ForeignKeyViolation, match="A referenced row is missing, or this one is still referenced"
    ):
        await half(Post.objects).create(title="x", author_id=999)


def test_a_missing_target_is_told_by_the_text_of_older_sqlite() -> None:
    # the error of 3.38 for INSERT ... RETURNING, with the code SQLITE_ERROR
    error = translate_error(sqlite3.OperationalError("FOREIGN KEY constraint failed"))
    assert isinstance(error, ForeignKeyViolation)
    assert error.code == "SQLITE_CONSTRAINT_FOREIGNKEY"


async def test_an_unsaved_target_is_refused_and_a_saved_one_is_taken_over(
    db: Any, half: Any
) -> None:
    author = Author(name="Ann")
    post = Post(title="x", author=author)
    with pytest.raises(FieldValueError, match="that Author is not saved yet"):
        await half(post).save()
    await half(author).save()
    await half(post).save()
    assert post.author_id == author.pk


def test_assignments_of_other_models_are_refused() -> None:
    with pytest.raises(FieldError, match=r"Post.author takes a Author, not a Tag"):
        Post(title="x", author=Tag(name="y"))
    with pytest.raises(FieldValueError, match="takes a Author, not a Tag"):
        Post.objects.filter(author=Tag(name="y"))
    with pytest.raises(FieldError, match=r"cannot be assigned; use its add\(\), set\(\) or create"):
        Author(name="x").posts = []  # pyright: ignore[reportAttributeAccessIssue] - refused on purpose
    with pytest.raises(FieldError, match="is not saved: it has no posts yet"):
        _ = Author(name="x").posts


async def test_changing_the_key_forgets_the_loaded_instance(db: Any, half: Any) -> None:
    facts = await library(half)
    post = await half(Post.objects.select_related("author")).get(title="a1")
    post.author_id = facts["bob"].pk
    await half(post).load("author")
    assert post.author.name == "Bob"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Post.objects.select_related("tags"), "leads to many rows: use prefetch_related"),
        (lambda: Post.objects.select_related("title"), "Post has no field 'title'"),
        (lambda: Post.objects.prefetch_related("nothing"), "Post has no field 'nothing'"),
        (
            lambda: Author.objects.prefetch_related(Prefetch("posts", Tag.objects.all())),
            "needs a query of Post, not of Tag",
        ),
        (lambda: Prefetch("posts", to_attr="a b"), "must be a plain attribute name"),
        *(
            (
                lambda name=name: Author.objects.prefetch_related(
                    Prefetch("posts__tags", to_attr=name)
                ),
                f"to_attr='{name}' cannot replace an attribute of Post; choose a name",
            )
            for name in ("title", "save", "comments", "objects")
        ),
        (
            lambda: Post.objects.filter(Author.name == "x"),
            "cannot be used in a query of Post; start at Post",
        ),
        (lambda: Post.objects.filter(any_of("title")), "Post has no field 'title'"),
    ],
)
def test_wrong_uses_of_relations_say_what_is_wrong(build: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        build()
