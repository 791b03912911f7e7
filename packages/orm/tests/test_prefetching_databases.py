"""`Prefetch` with a query of another database: a statement of its own, there alone.

Rows of both databases have the same keys, other texts, other owners and other links: whatever is
read in the wrong one is seen.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Country, Post, Profile, Tag
from orm_pairs import ALIASES, PAIRS, open_pair

from treefold_orm import (
    ConfigurationError,
    FieldError,
    Manager,
    Model,
    NotLoaded,
    Prefetch,
    QuerySet,
    TransactionRequired,
    acreate_all,
    aprefetch_related_objects,
    create_all,
    fields,
    prefetch_related_objects,
    record_queries,
)

MODELS = (Country, Author, Tag, Post, Profile)
DIRECTIONS = [("default", "other"), ("other", "default")]


@pytest.fixture(params=PAIRS, ids="-".join)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    with open_pair(request, request.param, tmp_path, *MODELS):
        for alias in ALIASES:
            fill(alias)
        yield


@pytest.fixture
def files(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """The same on two files of SQLite, where the engine makes no difference."""
    with open_pair(request, ("sqlite", "sqlite"), tmp_path, *MODELS):
        for alias in ALIASES:
            fill(alias)
        yield


def fill(alias: str) -> None:
    """Five authors, seven posts, four tags and three profiles, under the keys from 1."""
    shift = 0 if alias == "default" else 2
    authors = Author.objects.using(alias).bulk_create(
        [Author(name=f"{alias} author {n}") for n in range(5)]
    )
    posts = Post.objects.using(alias).bulk_create(
        [
            Post(
                title=f"{alias} post {n}",
                views=(n * 5 + shift) % 7,
                author=authors[(n * 2 + shift) % 4],
                editor=authors[(n + shift) % 5] if n % 3 == shift else None,
            )
            for n in range(7)
        ]
    )
    tags = Tag.objects.using(alias).bulk_create([Tag(name=f"{alias} tag {n}") for n in range(4)])
    pairs = {(n, (n + shift) % 4) for n in range(6)} | {(n, (n * n + shift) % 3) for n in range(5)}
    links = cast("Any", Post.tags).through
    links.objects.using(alias).bulk_create(
        [links(post=posts[post], tag=tags[tag]) for post, tag in sorted(pairs)]
    )
    Profile.objects.using(alias).bulk_create(
        [Profile(author=authors[n + shift], site=f"https://{alias}/{n}") for n in range(3)]
    )


@dataclasses.dataclass
class Shop:
    """All rows of one database, each read by a statement of its own."""

    authors: dict[int, str]
    posts: dict[int, tuple[str, int, int | None, int]]
    tags: dict[int, str]
    links: list[tuple[int, int]]
    profiles: dict[int, tuple[str, int]]

    def posts_of(self, author: int) -> list[int]:
        return [key for key, post in self.posts.items() if post[1] == author]

    def titles_of(self, author: int) -> list[str]:
        return [self.posts[key][0] for key in self.posts_of(author)]

    def tags_of(self, post: int) -> list[str]:
        return [self.tags[tag] for other, tag in self.links if other == post]


async def read_shop(h: Handle, alias: str) -> Shop:
    async def rows(model: Any, *names: str) -> list[Any]:
        return await h.rows(model.objects.using(alias).order_by("pk").values_list("pk", *names))

    pairs = await rows(cast("Any", Post.tags).through, "post", "tag")
    posts = await rows(Post, "title", "author", "editor", "views")
    return Shop(
        dict(await rows(Author, "name")),
        {key: tuple(values) for key, *values in posts},
        dict(await rows(Tag, "name")),
        sorted((post, tag) for _, post, tag in pairs),
        {key: (site, author) for key, site, author in await rows(Profile, "site", "author")},
    )


@dataclasses.dataclass
class Kind:
    """A relation: how it is asked for, what an instance has then, and what is right."""

    model: type[Model]
    lookups: Callable[[str, str], list[Any]]
    found: Callable[[Any], Any]
    right: Callable[[int, Shop, Shop], Any]


def of(model: Any, alias: str) -> Any:
    """All rows of a database in the order of their keys."""
    return model.objects.using(alias).order_by("pk")


def texts(rows: Any) -> list[str]:
    return [row.title if isinstance(row, Post) else row.name for row in rows]


def tags_by_post(posts: Any) -> list[list[str]]:
    return [texts(post.tags.all()) for post in posts]


def site_of(author: Any) -> str | None:
    return author._cached_profile and author._cached_profile.site


def right_site(key: int, shop: Shop) -> str | None:
    return next((site for site, author in shop.profiles.values() if author == key), None)


def most_viewed(key: int, shop: Shop) -> list[str]:
    posts = sorted(shop.posts_of(key), key=lambda post: (-shop.posts[post][3], post))
    return [shop.posts[post][0] for post in posts[:2]]


KINDS: dict[str, Kind] = {
    "forward": Kind(
        Post,
        lambda outer, inner: [Prefetch("author", of(Author, inner))],
        lambda post: post.author.name,
        lambda key, here, there: there.authors[here.posts[key][1]],
    ),
    "forward_null": Kind(
        Post,
        lambda outer, inner: [Prefetch("editor", of(Author, inner))],
        lambda post: post.editor and post.editor.name,
        lambda key, here, there: there.authors.get(cast("int", here.posts[key][2])),
    ),
    "one_to_one": Kind(
        Profile,
        lambda outer, inner: [Prefetch("author", of(Author, inner))],
        lambda profile: profile.author.name,
        lambda key, here, there: there.authors[here.profiles[key][1]],
    ),
    "one_to_one_back": Kind(
        Author,
        lambda outer, inner: [Prefetch("profile", of(Profile, inner))],
        site_of,
        lambda key, here, there: right_site(key, there),
    ),
    "reverse": Kind(
        Author,
        lambda outer, inner: [Prefetch("posts", of(Post, inner))],
        lambda author: texts(author.posts.all()),
        lambda key, here, there: there.titles_of(key),
    ),
    "many": Kind(
        Post,
        lambda outer, inner: [Prefetch("tags", of(Tag, inner))],
        lambda post: texts(post.tags.all()),
        lambda key, here, there: there.tags_of(key),
    ),
    "many_back": Kind(
        Tag,
        lambda outer, inner: [Prefetch("posts", of(Post, inner))],
        lambda tag: texts(tag.posts.all()),
        lambda key, here, there: [there.posts[post][0] for post, tag in there.links if tag == key],
    ),
    "many_by_keys": Kind(  # no join of the rows and their links may be limited
        Post,
        lambda outer, inner: [Prefetch("tags", of(Tag, inner).limit_rows(99))],
        lambda post: texts(post.tags.all()),
        lambda key, here, there: there.tags_of(key),
    ),
    "to_attr": Kind(
        Author,
        lambda outer, inner: [Prefetch("posts", of(Post, inner), to_attr="theirs"), "posts"],
        lambda author: (texts(author.theirs), sorted(texts(author.posts.all()))),
        lambda key, here, there: (there.titles_of(key), sorted(here.titles_of(key))),
    ),
    "to_attr_of_one": Kind(
        Profile,
        lambda outer, inner: [Prefetch("author", of(Author, inner), to_attr="theirs")],
        lambda profile: profile.theirs.name,
        lambda key, here, there: there.authors[here.profiles[key][1]],
    ),
    "sliced": Kind(
        Author,
        lambda outer, inner: [
            Prefetch("posts", Post.objects.using(inner).order_by("-views", "pk")[:2])
        ],
        lambda author: texts(author.posts.all()),
        lambda key, here, there: most_viewed(key, there),
    ),
    "many_sliced": Kind(
        Post,
        lambda outer, inner: [Prefetch("tags", of(Tag, inner)[:1])],
        lambda post: texts(post.tags.all()),
        lambda key, here, there: there.tags_of(key)[:1],
    ),
    "nested": Kind(
        Author,
        lambda outer, inner: [Prefetch("posts__tags", of(Tag, inner))],
        lambda author: {post.title: texts(post.tags.all()) for post in author.posts.all()},
        lambda key, here, there: {
            here.posts[post][0]: there.tags_of(post) for post in here.posts_of(key)
        },
    ),
    "nested_back": Kind(
        Author,
        lambda outer, inner: [
            Prefetch("posts", Post.objects.only("title").order_by("pk")),
            Prefetch("posts__author", of(Author, inner)),
        ],
        lambda author: [(post.title, post.author.name) for post in author.posts.all()],
        lambda key, here, there: [(title, there.authors[key]) for title in here.titles_of(key)],
    ),
    "below": Kind(
        Author,
        lambda outer, inner: [Prefetch("posts", of(Post, inner)), "posts__tags__posts"],
        lambda author: [sorted(tags) for tags in tags_by_post(author.posts.all())],
        lambda key, here, there: [there.tags_of(post) for post in there.posts_of(key)],
    ),
    "below_with_a_query": Kind(
        Author,
        lambda outer, inner: [
            Prefetch("posts", of(Post, inner)),
            Prefetch("posts__tags", Tag.objects.order_by("-pk")),
        ],
        lambda author: tags_by_post(author.posts.all()),
        lambda key, here, there: [there.tags_of(post)[::-1] for post in there.posts_of(key)],
    ),
    "inside": Kind(
        Author,
        lambda outer, inner: [
            Prefetch(
                "posts",
                Post.objects.order_by("pk").prefetch_related(Prefetch("tags", of(Tag, inner))),
                to_attr="mine",
            )
        ],
        lambda author: tags_by_post(author.mine),
        lambda key, here, there: [there.tags_of(post) for post in here.posts_of(key)],
    ),
    "there_and_back": Kind(
        Author,
        lambda outer, inner: [
            Prefetch("posts", of(Post, inner).prefetch_related(Prefetch("tags", of(Tag, outer))))
        ],
        lambda author: tags_by_post(author.posts.all()),
        lambda key, here, there: [here.tags_of(post) for post in there.posts_of(key)],
    ),
}

Entry = Callable[[Handle, Any, Kind, tuple[str, str]], Awaitable[list[Any]]]


def prefetching(kind: Kind, outer: str, inner: str) -> Any:
    """The query; on `default`, one that nothing has placed."""
    model: Any = kind.model
    query = model.objects if outer == "default" else model.objects.using(outer)
    return query.prefetch_related(*kind.lookups(outer, inner)).order_by("pk")


async def read_one(h: Handle, query: Any, name: str, *args: Any, **lookups: Any) -> list[Any]:
    found = await getattr(h(query), name)(*args, **lookups)
    return [found[0] if isinstance(found, tuple) else found]


async def read_mapping(h: Handle, query: Any, *keys: Any) -> list[Any]:
    return list((await h(query).in_bulk(*keys)).values())


async def read_page(h: Handle, query: Any) -> list[Any]:
    return (await h(query).keyset(2)).items


async def iterate(h: Handle, query: Any) -> list[Any]:
    if h.name == "async":
        return [row async for row in query.aiterator(2)]
    return list(query.iterator(2))


async def iterate_whole(h: Handle, query: Any) -> list[Any]:
    if h.name == "async":
        return [row async for row in query]
    return [query[0], query[1]]


async def prefetch_objects(h: Handle, instances: Any, *lookups: Any) -> None:
    if h.name == "async":
        await aprefetch_related_objects(instances, *lookups)
    else:
        prefetch_related_objects(instances, *lookups)


async def prefetch_later(
    h: Handle, query: Any, kind: Kind, direction: tuple[str, str]
) -> list[Any]:
    found = await h.rows(of(kind.model, direction[0]))
    await prefetch_objects(h, found, *kind.lookups(*direction))
    return found


async def move_later(h: Handle, query: Any, kind: Kind, direction: tuple[str, str]) -> list[Any]:
    """The outer query is moved after the other one was given to it."""
    outer, inner = direction
    return await h.rows(query.using(inner).using(outer))


ENTRIES: dict[str, Entry] = {
    "rows": lambda h, query, kind, direction: h.rows(query),
    "loop": lambda h, query, kind, direction: iterate_whole(h, query),
    "get": lambda h, query, kind, direction: read_one(h, query, "get", pk=2),
    "first": lambda h, query, kind, direction: read_one(h, query, "first"),
    "last": lambda h, query, kind, direction: read_one(h, query, "last"),
    "earliest": lambda h, query, kind, direction: read_one(h, query, "earliest", "pk"),
    "latest": lambda h, query, kind, direction: read_one(h, query, "latest", "pk"),
    "in_bulk": lambda h, query, kind, direction: read_mapping(h, query),
    "in_bulk_of_keys": lambda h, query, kind, direction: read_mapping(h, query, [1, 3]),
    "keyset": lambda h, query, kind, direction: read_page(h, query),
    "iterator": lambda h, query, kind, direction: iterate(h, query),
    "get_or_create": lambda h, query, kind, direction: read_one(h, query, "get_or_create", pk=3),
    "update_or_create": lambda h, query, kind, direction: read_one(
        h, query, "update_or_create", pk=3
    ),
    "objects": prefetch_later,
    "moved": move_later,
}


async def check(
    h: Handle, kind: str, entry: str, direction: tuple[str, str], shops: tuple[Shop, Shop]
) -> None:
    asked = KINDS[kind]
    rows = await ENTRIES[entry](h, prefetching(asked, *direction), asked, direction)
    assert rows
    for row in rows:
        assert row._alias == direction[0]
        assert asked.found(row) == asked.right(row.pk, *shops), (kind, entry, direction, row.pk)


async def test_each_relation_comes_from_the_other_database(pair: None, half: Any) -> None:
    async def body(h: Handle) -> None:
        for direction in DIRECTIONS:
            shops = await read_shop(h, direction[0]), await read_shop(h, direction[1])
            for kind, entry in itertools.product(KINDS, ENTRIES):
                await check(h, kind, entry, direction, shops)

    await in_half(half, body)


@pytest.mark.parametrize("places", [(0,), (1,), (0, 1)], ids=["outer", "other", "both"])
async def test_the_statement_runs_in_the_transaction_of_its_database(
    pair: None, half: Any, places: tuple[int, ...]
) -> None:
    """Inside of it, the statement sees what nobody else does."""

    async def check_all(h: Handle, direction: tuple[str, str]) -> None:
        shops = await read_shop(h, direction[0]), await read_shop(h, direction[1])
        for place in places:
            assert shops[place].posts[2][0] == "changed"
        for kind, entry in itertools.product(KINDS, ("rows", "iterator", "get", "objects")):
            await check(h, kind, entry, direction, shops)

    async def enter(h: Handle, direction: tuple[str, str], left: tuple[int, ...]) -> None:
        if not left:
            await check_all(h, direction)
            return
        alias = direction[left[0]]
        async with h.transaction(alias, rollback=True):
            posts = Post.objects.using(alias)
            await h(posts.filter(pk=2)).update(title="changed", author=4)
            post = await h(posts).get(pk=2)
            await h(post.tags).set([1, 4])
            await enter(h, direction, left[1:])

    async def body(h: Handle) -> None:
        for direction in DIRECTIONS:
            await enter(h, direction, places)

    await in_half(half, body)


async def test_each_database_gets_one_statement(pair: None, half: Any) -> None:
    query = Author.objects.prefetch_related(
        Prefetch("posts", of(Post, "other")), "posts__tags", "country"
    )
    with record_queries() as recorded:
        await half.rows(query)
    assert [event.sql.split(" FROM ")[1].split()[0].strip('"') for event in recorded.events] == [
        "author",
        "post",
        "tag",
    ]
    with record_queries() as recorded:
        await half.rows(query.none())
    assert len(recorded) <= 1


# -- rows of two databases ------------------------------------------------------------------------


async def test_the_way_back_stays_in_the_database_of_a_row(pair: None, half: Any) -> None:
    query = Author.objects.prefetch_related(
        Prefetch("posts", of(Post, "other")), Prefetch("profile", of(Profile, "other"))
    )
    author = await half(query).get(pk=3)
    for row in (author.posts.all()[0], author.profile):
        assert row._alias == "other"
        assert not row.is_loaded("author")
        if half.name == "async":
            with pytest.raises(NotLoaded, match="author is not loaded"):
                _ = row.author
            await row.aload("author")
            assert row.author.name == "other author 2"
        else:
            assert await half.call(lambda row=row: row.author.name, None) == "other author 2"
    post = author.posts.all()[0]
    post.title = "new"
    await half(post).save()
    assert (await half(Post.objects.using("other")).get(pk=post.pk)).title == "new"
    assert not await half(Post.objects.filter(title="new")).exists()


WRITES: dict[str, Callable[[Any, Any], Awaitable[Any]]] = {
    "save": lambda half, post: half(post).save(),
    "save_fields": lambda half, post: half(post).save(update_fields=["title", "author"]),
    "bulk": lambda half, post: half(Post.objects).bulk_update([post], ["title"]),
    "bulk_of_the_key": lambda half, post: half(Post.objects).bulk_update(
        [post], ["title", "author"]
    ),
}


@pytest.mark.parametrize("way", WRITES)
async def test_a_row_is_saved_beside_a_related_row_of_another_database(
    pair: None, half: Any, way: str
) -> None:
    query = Post.objects.prefetch_related(
        Prefetch("author", of(Author, "other")), Prefetch("editor", of(Author, "other"))
    )
    post = await half(query).get(pk=1)
    assert (post.author._alias, post.editor._alias) == ("other", "other")
    post.title = "new"
    await WRITES[way](half, post)
    stored = await half(Post.objects).get(pk=1)
    assert (stored.title, stored.author_id) == ("new", post.author_id)
    assert not await half(Post.objects.using("other").filter(title="new")).exists()
    post.editor_id = None
    await half(post).save()
    assert (await half(Post.objects).get(pk=1)).editor_id is None
    post.pk = None
    await half(post).save()  # a copy has the key that was read
    assert (await half(Post.objects).get(pk=post.pk)).author_id == stored.author_id


async def test_a_row_of_another_database_is_no_less_refused(pair: None, half: Any) -> None:
    query = Post.objects.prefetch_related(Prefetch("author", of(Author, "other")))
    post = await half(query).get(pk=2)
    message = r"Post\.author cannot point to a row of another database, got a Author of 'other'"
    for author in (post.author, await half(Author.objects.using("other")).get(pk=4)):
        with pytest.raises(FieldError, match=message):
            post.author = author
        new = Post(title="x", author=author)
        for write in (half(new).save, lambda new=new: half(Post.objects).bulk_create([new])):
            with pytest.raises(FieldError, match=message):
                await write()


async def test_a_key_that_is_taken_from_a_row_of_another_database_is_refused(
    pair: None, half: Any
) -> None:
    """A column that is not written is not checked."""
    post = await half(Post.objects).get(pk=2)
    fresh = Author(name="x")
    post.editor, post.title = fresh, "new"
    await half(fresh).save(using="other")
    for write in (
        lambda: half(post).save(),
        lambda: half(post).save(update_fields=["editor"]),
        lambda: half(Post.objects).bulk_update([post], ["editor"]),
    ):
        with pytest.raises(FieldError, match=r"Post\.editor cannot point to a row of another"):
            await write()
    await half(post).save(update_fields=["title"])
    await half(Post.objects).bulk_update([post], ["title"])
    stored = await half(Post.objects).get(pk=2)
    assert (stored.title, stored.editor_id) == ("new", None)


# -- what a query says besides --------------------------------------------------------------------


async def test_the_key_is_loaded_that_the_statement_needs(files: None, half: Any) -> None:
    spec = Prefetch("author", of(Author, "other"))
    for query in (
        Post.objects.only("title").prefetch_related(spec),
        Post.objects.prefetch_related(spec).only("title"),
    ):
        with record_queries() as recorded:
            post = await half(query).get(pk=2)
        assert len(recorded) == 2
        assert post.author.name == "other author 2"
    found = [await half(Post.objects.only("title")).get(pk=2)]

    async def body(h: Handle) -> None:
        await prefetch_objects(h, found, spec)

    await in_half(half, body)
    assert found[0].author.name == "other author 2"


async def test_raiseload_counts_for_rows_of_the_other_database(files: None, half: Any) -> None:
    query = Author.objects.raiseload().prefetch_related(
        Prefetch("posts", of(Post, "other")), "posts__tags"
    )
    author = await half(query).get(pk=3)
    post = author.posts.all()[0]
    for name, row in (("author", post), ("posts", post.tags.all()[0])):
        assert row._raises_lazy, name
    if half.name == "sync":
        with pytest.raises(NotLoaded, match=r"raiseload\(\) lets no attribute load"):
            await half.call(lambda: post.author, None)


async def test_a_lock_needs_a_transaction_of_the_other_database(files: None, half: Any) -> None:
    query = Author.objects.order_by("pk").prefetch_related(
        Prefetch("posts", of(Post, "other").select_for_update())
    )

    async def body(h: Handle) -> None:
        async with h.transaction("default"):
            with pytest.raises(TransactionRequired, match="select_for_update"):
                await h.rows(query.all())
        async with h.transaction("other"):
            assert len(await h.rows(query.all())) == 5

    await in_half(half, body)


async def test_a_failed_statement_leaves_no_rows_behind(files: None, half: Any) -> None:
    query = Author.objects.prefetch_related(Prefetch("posts", of(Post, "nowhere")))
    for _ in range(2):
        with pytest.raises(ConfigurationError, match="'nowhere' is not configured"):
            await half.rows(query)


async def test_a_rollback_of_the_other_database_takes_its_rows_back(files: None, half: Any) -> None:
    async def body(h: Handle) -> None:
        authors = await h.rows(of(Author, "default"))
        await prefetch_objects(h, authors, "posts")
        before = [texts(author.posts.all()) for author in authors]
        async with h.transaction("other", rollback=True):
            await prefetch_objects(h, authors, Prefetch("posts", of(Post, "other")))
            assert [texts(author.posts.all()) for author in authors] != before
        assert [texts(author.posts.all()) for author in authors] == before

    await in_half(half, body)


async def test_instances_of_both_databases_are_still_refused(files: None, half: Any) -> None:
    mixed = [await half(Author.objects.using(alias)).get(pk=1) for alias in ALIASES]

    async def body(h: Handle) -> None:
        with pytest.raises(FieldError, match="rows of 'default' and 'other'"):
            await prefetch_objects(h, mixed, Prefetch("posts", of(Post, "other")))

    await in_half(half, body)


class Drawer(Model):
    cabinet = fields.ForeignKey("Cabinet", related_name="drawers")
    knobs = fields.ManyToManyField("Knob", related_name="drawers")

    class Checked(Manager["Drawer"]):
        def get_queryset(self) -> QuerySet[Drawer]:
            return (
                super()
                .get_queryset()
                .prefetch_related(Prefetch("knobs", Knob.objects.using("other")))
            )

    objects = Checked()


class Cabinet(Model):
    name = fields.CharField(max_length=20)


class Knob(Model):
    name = fields.CharField(max_length=20)


async def test_a_manager_loads_from_another_database_by_its_own_queries(
    files: None, half: Any
) -> None:
    for alias in ALIASES:
        await half.call(
            lambda alias=alias: create_all(Cabinet, Drawer, Knob, using=alias),
            lambda alias=alias: acreate_all(Cabinet, Drawer, Knob, using=alias),
        )
        cabinet = await half(Cabinet.objects.using(alias)).create(name=alias)
        drawer = await half(Drawer.objects.using(alias)).create(cabinet=cabinet)
        await half(drawer.knobs).create(name=alias)
    cabinet = await half(Cabinet.objects).get()
    for query in (Drawer.objects.all(), cabinet.drawers.all()):
        (drawer,) = await half.rows(query)
        assert texts(drawer.knobs.all()) == ["other"]
    with pytest.raises(FieldError, match=r"manager of Drawer prefetches 'knobs' from another"):
        await half.rows(Cabinet.objects.prefetch_related("drawers"))
    (cabinet,) = await half.rows(
        Cabinet.objects.prefetch_related(Prefetch("drawers", Drawer.objects.all()))
    )
    assert texts(cabinet.drawers.all()[0].knobs.all()) == ["other"]
