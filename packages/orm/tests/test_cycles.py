"""Results hold no reference cycle: each is freed with its last name, without the collector.

The short form reads few rows of each relation; `hatch run orm:test-cycles-long` reads 10,000, five
times over.
"""

from __future__ import annotations

import asyncio
import copy
import gc
import os
import pickle
import time
import weakref
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest
from orm_models import Author, Country, Person, Post, Profile, Tag

from treefold_orm import Model, NotLoaded, Prefetch, record_queries

ROWS = int(os.environ.get("TREEFOLD_CYCLE_ROWS", "60"))
TIMES = 5


def rows() -> None:
    """`ROWS` of each model, connected in every way."""
    country = Country.objects.create(name="Peru")
    authors = [Author(name=f"a{i}", country=country) for i in range(ROWS)]
    Author.objects.bulk_create(authors)
    posts = [Post(title=f"p{i}", author=author) for i, author in enumerate(authors)]
    Post.objects.bulk_create(posts)
    Profile.objects.bulk_create([Profile(author=author) for author in authors])
    tags = [Tag(name=f"t{i}") for i in range(ROWS)]
    Tag.objects.bulk_create(tags)
    link: Any = Post.tags.through
    links = [link(post_id=p.id, tag_id=t.id) for p, t in zip(posts, tags, strict=True)]
    links += [link(post_id=p.id, tag_id=tags[0].id) for p in posts[1:]]
    link.objects.bulk_create(links)
    boss = Person.objects.create(name="boss")
    Person.objects.bulk_create([Person(name=f"p{i}", boss=boss) for i in range(ROWS)])


READS: dict[str, Callable[[], Any]] = {
    "plain": lambda: Post.objects.all(),
    "partial": lambda: Post.objects.only("title"),
    "joined": lambda: Post.objects.select_related("author__country", "editor"),
    "joined one-to-one": lambda: Author.objects.select_related("profile"),
    "prefetched forward": lambda: Post.objects.prefetch_related("author__country"),
    "prefetched children": lambda: Author.objects.prefetch_related("posts"),
    "prefetched and joined back": lambda: Author.objects.prefetch_related(
        Prefetch("posts", Post.objects.select_related("author"))
    ),
    "prefetched to an attribute": lambda: Author.objects.prefetch_related(
        Prefetch("posts", Post.objects.all(), to_attr="their_posts")
    ),
    "prefetched one-to-one": lambda: Author.objects.prefetch_related("profile"),
    "prefetched many-to-many": lambda: Post.objects.prefetch_related("tags"),
    "prefetched many-to-many, way back": lambda: Tag.objects.prefetch_related("posts"),
    "prefetched there and back": lambda: Author.objects.prefetch_related("posts__author__posts"),
    "prefetched over two": lambda: Author.objects.prefetch_related("profile", "posts__tags__posts"),
    "prefetched within a model": lambda: Person.objects.prefetch_related("staff", "boss"),
}
LAZY: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "forward": (lambda: Post.objects.all(), lambda post: post.author.country),
    "one-to-one": (lambda: Author.objects.all(), lambda author: author.profile.author),
    "one-to-one, way there": (lambda: Profile.objects.all(), lambda one: one.author.profile),
    "column": (lambda: Post.objects.only("title"), lambda post: post.body),
    "children": (lambda: Author.objects.all()[:50], lambda author: list(author.posts.all())),
    "loaded later": (lambda: Author.objects.all()[:50], lambda author: author.load("posts")),
    "within a model": (lambda: Person.objects.all(), lambda person: person.boss),
    "streamed": (lambda: Post.objects.iterator(), lambda post: post.author.country),
}


@pytest.fixture
def without_collector() -> Iterator[None]:
    gc.collect()
    gc.freeze()  # what was there before is not looked through again
    gc.disable()
    yield
    gc.unfreeze()
    gc.set_debug(0)
    gc.garbage.clear()
    gc.enable()


def collected() -> list[Any]:
    """The instances that only the collector frees, and as what."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    wanted: Any = (Model, list)
    found: list[Any] = [type(item) for item in gc.garbage if isinstance(item, wanted)]
    gc.garbage.clear()
    return found


async def settled(half: Any, read: Callable[[], Any]) -> None:
    """Run once what stays for the life of the process: plans, connections, caches."""
    await half.rows(read())
    gc.collect()


async def freed(instance: weakref.ref[Any]) -> None:
    """Wait until the future and the thread of the last call have let go of its result."""
    deadline = time.monotonic() + 5
    while instance() is not None:
        assert time.monotonic() < deadline, "The instance is still held"
        await asyncio.sleep(0.001)


@pytest.mark.parametrize("name", READS)
@pytest.mark.usefixtures("without_collector")
async def test_a_result_is_freed_without_the_collector(db: Any, half: Any, name: str) -> None:
    await asyncio.to_thread(rows)
    await settled(half, READS[name])
    for _ in range(TIMES):
        found = await half.rows(READS[name]())
        assert len(found) >= ROWS
        del found
    assert collected() == []


@pytest.mark.parametrize("name", LAZY)
@pytest.mark.usefixtures("db", "without_collector")
def test_lazy_loads_are_freed_without_the_collector(name: str) -> None:
    rows()
    query, action = LAZY[name]
    for _ in range(TIMES):
        found = list(query())
        for item in found:
            action(item)
        item = None
        del found
    assert collected() == []


async def test_prefetched_rows_know_their_owner_without_a_statement(db: Any, half: Any) -> None:
    await asyncio.to_thread(rows)
    found = await half.rows(Author.objects.prefetch_related("posts", "profile"))
    with record_queries() as seen:
        assert all(post.author is author for author in found for post in author.posts.all())
        assert all(author.profile.author is author for author in found)
    assert len(seen) == 0


@pytest.mark.usefixtures("db")
async def test_async_code_sends_no_statement_for_a_dropped_owner() -> None:
    await asyncio.to_thread(rows)
    found: list[Any] = await Author.objects.prefetch_related("posts", "profile")
    post, profile = found[0].posts.all()[0], found[0].profile
    owner = weakref.ref(found[0])
    del found
    await freed(owner)
    with record_queries() as seen:
        with pytest.raises(NotLoaded, match=r"Post\.author is not loaded any more: the Author it"):
            _ = post.author
        with pytest.raises(NotLoaded, match=r"Profile\.author is not loaded any more"):
            _ = profile.author
    assert (len(seen), post.is_loaded("author")) == (0, False)
    await post.aload("author")
    assert post.author.name == "a0"


@pytest.mark.usefixtures("db")
def test_sync_code_loads_dropped_owners_with_one_query() -> None:
    rows()
    found: Any = Author.objects.order_by("id").prefetch_related("posts")
    posts = [post for author in found for post in author.posts.all()]
    del found
    with record_queries() as seen:
        assert [post.author.name for post in posts] == [f"a{i}" for i in range(ROWS)]
    assert len(seen) == 1


async def test_an_owner_may_be_joined_to_prefetched_rows(db: Any, half: Any) -> None:
    await asyncio.to_thread(rows)
    spec = Prefetch("posts", Post.objects.select_related("author"))
    found = await half.rows(Author.objects.prefetch_related(spec).order_by("id"))
    post = found[0].posts.all()[0]
    del found
    assert post.author.name == "a0"


@pytest.mark.usefixtures("db")
def test_another_key_is_looked_up_though_the_owner_is_gone() -> None:
    rows()
    (post, *_), (other, *_) = [list(a.posts.all()) for a in Author.objects.order_by("id")[:2]]
    (found,) = Author.objects.filter(id=post.author_id).prefetch_related("posts")
    post = found.posts.all()[0]
    del found
    post.author_id = other.author_id
    assert post.author.id == other.author_id


@pytest.mark.usefixtures("db")
def test_a_lazily_read_one_to_one_loads_its_owner_again() -> None:
    rows()
    profile: Any = cast("Any", Author.objects.get(name="a0")).profile
    assert profile.author.name == "a0"


@pytest.mark.usefixtures("db")
def test_copies_of_prefetched_rows_hold_their_owner() -> None:
    rows()
    (found,) = Author.objects.filter(name="a0").prefetch_related("posts")
    copies = [pickle.loads(pickle.dumps(found)), copy.deepcopy(found)]
    posts = [copied.posts.all()[0] for copied in copies]
    with record_queries() as seen:
        assert [post.author.name for post in posts] == ["a0", "a0"]
        assert [post.author is copied for post, copied in zip(posts, copies, strict=True)] == [
            True,
            True,
        ]
    assert len(seen) == 0


@pytest.mark.usefixtures("db")
def test_a_copy_made_after_the_owner_is_gone_travels_alone() -> None:
    rows()
    (found,) = Author.objects.filter(name="a0").prefetch_related("posts")
    post = found.posts.all()[0]
    del found
    assert pickle.loads(pickle.dumps(post)).author.name == "a0"
