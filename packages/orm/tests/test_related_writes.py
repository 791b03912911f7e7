"""Writing through relations: add, remove, set, clear and create, from both sides."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Club, Country, Membership, Order, Person, Post, Profile, Tag

from treefold_orm import (
    SET_NULL,
    CompositePrimaryKey,
    Count,
    F,
    FieldError,
    ForeignKeyViolation,
    Model,
    NotLoaded,
    Reverse,
    StaleObject,
    acreate_all,
    configure,
    create_all,
    fields,
    record_queries,
    transaction,
)
from treefold_orm.testing import sandbox


class In:
    """Calls methods of a relation in one half, inside or outside of a transaction."""

    def __init__(self, half: Any, *, inside: bool) -> None:
        self.half, self.inside = half, inside

    async def __call__(self, target: Any, name: str, /, *args: Any, **options: Any) -> Any:
        @contextmanager
        def perhaps() -> Generator[None]:
            if not self.inside:
                yield
                return
            with transaction():
                yield

        def work() -> Any:
            with perhaps():
                return getattr(target, name)(*args, **options)

        async def awork() -> Any:
            if not self.inside:
                return await getattr(target, f"a{name}")(*args, **options)
            async with transaction():
                return await getattr(target, f"a{name}")(*args, **options)

        return await self.half.call(work, awork)


@pytest.fixture(params=[False, True], ids=["outside", "inside"])
def call(request: pytest.FixtureRequest, half: Any) -> In:
    return In(half, inside=request.param)


async def shop(half: Any) -> dict[str, Any]:
    """Two authors, and three posts of the first."""
    ann = await half(Author.objects).create(name="Ann")
    bob = await half(Author.objects).create(name="Bob")
    posts = [await half(Post.objects).create(title=t, author=ann) for t in ("p1", "p2", "p3")]
    return {"ann": ann, "bob": bob, **{post.title: post for post in posts}}


async def titles(half: Any, query: Any) -> list[str]:
    """Titles of rows, in order."""
    return [post.title for post in await half.rows(query.order_by("title"))]


# -- reverse foreign keys -------------------------------------------------------------------------


async def test_add_lets_rows_point_to_the_instance(db: Any, half: Any, call: In) -> None:
    made = await shop(half)
    ann, bob, p1, p2 = made["ann"], made["bob"], made["p1"], made["p2"]
    await call(bob.posts, "add", p1, p2.pk)
    assert await titles(half, bob.posts) == ["p1", "p2"]
    assert await titles(half, ann.posts) == ["p3"]
    assert (p1.author is bob, p1.author_id) == (True, bob.pk)
    with record_queries() as seen:
        await half(p1).save()
    assert len(seen) == 0
    await call(bob.posts, "add")
    await call(bob.posts, "add", p1, p1)
    assert await half(bob.posts).count() == 2


async def test_add_takes_instances_that_were_loaded_in_other_ways(
    db: Any, half: Any, call: In
) -> None:
    made = await shop(half)
    lean = await half(Post.objects.only("title").annotate(n=Count("tags"))).get(title="p1")
    mine = Post(id=made["p2"].pk, title="mine", author=made["ann"])
    owner = await half(Author.objects.only("age").annotate(n=Count("posts"))).get(name="Bob")
    await call(owner.edited, "add", lean, mine)
    assert await titles(half, made["bob"].edited) == ["p1", "p2"]
    assert (lean.editor_id, lean.n, lean.is_loaded("body")) == (owner.pk, 0, False)
    assert mine.editor is owner


async def test_add_forgets_the_rows_that_were_prefetched(db: Any, half: Any, call: In) -> None:
    made = await shop(half)
    bob = await half(Author.objects.prefetch_related("edited")).get(name="Bob")
    manager = bob.edited
    assert await half.rows(manager.all()) == []
    await call(manager, "add", made["p1"])
    assert await titles(half, manager.all()) == ["p1"]
    assert [post.title for post in await half.rows(bob.edited.all())] == ["p1"]
    await half(bob.edited).create(title="p9", author=bob)
    assert len(await half.rows(bob.edited.all())) == 2


ADD: list[tuple[Callable[[dict[str, Any]], Any], type[Exception], str]] = [
    (lambda made: Post(title="x"), FieldError, "Post must be saved before it is added"),
    (lambda made: made["ann"], FieldError, "A Post or its key is needed, got Author"),
    (lambda made: "x", ValueError, r"Post\.id: takes an int, not str"),
    (lambda made: -1, Post.DoesNotExist, r"Post with key -1 does not exist; save it before it is"),
]


@pytest.mark.parametrize(("other", "error", "message"), ADD, ids=range(len(ADD)))
async def test_what_cannot_be_added_is_refused_and_nothing_is_written(
    db: Any, half: Any, call: In, other: Any, error: Any, message: str
) -> None:
    made = await shop(half)
    p1 = made["p1"]
    with pytest.raises(error, match=message):
        await call(made["bob"].edited, "add", p1, other(made))
    assert await half(made["bob"].edited).count() == 0
    assert p1.editor is None


async def test_remove_sets_the_key_to_null(db: Any, half: Any, call: In) -> None:
    made = await shop(half)
    bob, p1, p2, p3 = made["bob"], made["p1"], made["p2"], made["p3"]
    await half(bob.edited).add(p1, p2)
    await half(made["ann"].edited).add(p3)
    assert await call(bob.edited, "remove", p1, p3, -1) == 1
    assert await titles(half, bob.edited) == ["p2"]
    assert (p1.editor, p1.editor_id, p3.editor_id) == (None, None, made["ann"].pk)
    with record_queries() as seen:
        await half(p1).save()
    assert len(seen) == 0
    assert await call(bob.edited, "remove") == 0
    assert await call(bob.edited, "remove", p2.pk) == 1
    assert await half(bob.edited).count() == 0


async def test_clear_sets_all_keys_to_null(db: Any, half: Any, call: In) -> None:
    made = await shop(half)
    bob = made["bob"]
    await half(bob.edited).add(made["p1"], made["p2"])
    await half(made["ann"].edited).add(made["p3"])
    assert await call(bob.edited, "clear") == 2
    assert await half(bob.edited).count() == 0
    assert await half(made["ann"].edited).count() == 1


@pytest.mark.parametrize(
    ("name", "args", "said"),
    [
        ("remove", ["p1"], r"remove\(\)"),
        ("clear", [], r"clear\(\)"),
        ("set", [["p1"]], r"set\(\) without some of the present rows"),
    ],
)
async def test_rows_cannot_lose_a_key_that_is_not_nullable(
    db: Any, half: Any, call: In, name: str, args: Any, said: str
) -> None:
    made = await shop(half)
    given = [[made["p1"]] if isinstance(arg, list) else made[arg] for arg in args]
    with pytest.raises(
        FieldError, match=rf"^{said} cannot set Post\.author to NULL; delete\(\) the rows"
    ):
        await call(made["ann"].posts, name, *given)
    assert await half(made["ann"].posts).count() == 3


async def test_set_leaves_exactly_the_given_rows(db: Any, half: Any, call: In) -> None:
    made = await shop(half)
    bob, p1, p2, p3 = made["bob"], made["p1"], made["p2"], made["p3"]
    await call(bob.edited, "set", [p1, p2])
    await call(bob.edited, "set", iter([p2.pk, p3]))
    assert await titles(half, bob.edited) == ["p2", "p3"]
    await call(bob.edited, "set", Post.objects.filter(title="p1"), clear=True)
    assert await titles(half, bob.edited) == ["p1"]
    await call(bob.edited, "set", [])
    assert await half(bob.edited).count() == 0
    await call(made["ann"].posts, "set", [p1, p2, p3])  # nothing goes: a key may stay required
    with pytest.raises(Post.DoesNotExist, match="Post with key -1 does not exist"):
        await call(bob.edited, "set", [p1, -1])
    assert await half(bob.edited).count() == 0


async def test_a_rollback_takes_instances_back_too(db: Any, half: Any) -> None:
    made = await shop(half)
    bob, p1, p2 = made["bob"], made["p1"], made["p2"]
    await half(bob.edited).add(p2)

    async def body(h: Handle) -> None:
        async with h.transaction(rollback=True):
            await h(bob.edited).add(p1)
            await h(bob.edited).remove(p2)

    await in_half(half, body)
    assert (p1.editor_id, p2.editor_id) == (None, bob.pk)
    assert p2.editor is bob
    assert await titles(half, bob.edited) == ["p2"]
    p1.editor = bob
    await half(p1).save()
    assert await titles(half, bob.edited) == ["p1", "p2"]


async def test_writing_needs_two_statements_whatever_the_number_of_rows(db: Any, half: Any) -> None:
    made = await shop(half)
    rows = await half(Post.objects).bulk_create(
        [Post(title=f"n{i}", author=made["ann"]) for i in range(300)]
    )
    with record_queries() as seen:
        await half(made["bob"].edited).add(*rows)
    sent = [event.sql.split()[0] for event in seen.events]
    assert [word for word in sent if word in {"SELECT", "UPDATE"}] == ["SELECT", "UPDATE"]
    assert await half(made["bob"].edited).count() == 300


class Owned(Model):
    """An abstract model with a relation."""

    name = fields.CharField(max_length=10)
    machine = fields.ForeignKey("Machine", SET_NULL, null=True, related_name="parts")

    class Meta:
        abstract = True


class Machine(Model):
    """The one side; its key is made by Python."""

    code = fields.CharField(max_length=10, primary_key=True)
    parts: Reverse[Wheel]


class Wheel(Owned):
    """Inherits its relation, and counts its writes."""

    version = fields.IntegerField(default=1)

    class Meta:  # pyright: ignore[reportIncompatibleVariableOverride] - options are not inherited
        version_field = "version"


@pytest.fixture
def machines(db: Any) -> Iterator[None]:
    with sandbox():
        yield


async def test_rows_with_a_version_count_the_change(machines: None, half: Any) -> None:
    await half.call(lambda: create_all(Machine, Wheel), lambda: acreate_all(Machine, Wheel))
    machine = await half(Machine.objects).create(code="m")
    fresh = await half(Wheel.objects).create(name="w")
    stale = await half(Wheel.objects).get()
    await half(machine.parts).add(fresh)
    assert (fresh.version, (await half(Wheel.objects).get()).version) == (2, 2)
    fresh.name = "x"
    await half(fresh).save()
    stale.name = "y"
    with pytest.raises(StaleObject, match="was changed since it was read"):
        await half(stale).save()
    await half(machine.parts).add(stale)  # it points there, and is still stale
    assert (stale.version, stale.machine_id) == (1, "m")
    with pytest.raises(StaleObject, match="was changed since it was read"):
        await half(stale).save()
    await half(fresh).refresh_from_db()
    assert await half(machine.parts).remove(fresh) == 1
    fresh.name = "z"
    await half(fresh).save()
    assert [(w.name, w.machine_id) for w in await half.rows(Wheel.objects.all())] == [("z", None)]


class Bolt(Model):
    """The many side, with a key of two columns."""

    pk = CompositePrimaryKey("tenant", "number")
    tenant = fields.IntegerField()
    number = fields.IntegerField()
    size = fields.IntegerField(default=3)
    machine = fields.ForeignKey(Machine, null=True, related_name="bolts")


async def test_rows_with_a_key_of_several_columns(machines: None, half: Any, call: In) -> None:
    await half.call(lambda: create_all(Machine, Bolt), lambda: acreate_all(Machine, Bolt))
    machine: Any = await half(Machine.objects).create(code="m")
    first = await half(Bolt.objects).create(tenant=1, number=2)
    await half(Bolt.objects).create(tenant=2, number=1)
    await call(machine.bolts, "add", first, (2, 1))
    assert first.machine is machine
    assert await call(machine.bolts, "remove", first, (1, 1)) == 1
    assert [bolt.pk for bolt in await half.rows(machine.bolts.all())] == [(2, 1)]
    await call(machine.bolts, "set", [first])
    assert [bolt.pk for bolt in await half.rows(machine.bolts.all())] == [(1, 2)]
    with pytest.raises(Bolt.DoesNotExist, match=r"Bolt with key \(9, 9\) does not exist"):
        await call(machine.bolts, "add", (9, 9))
    with pytest.raises(ValueError, match="takes a tuple of 2 values, not int"):
        await call(machine.bolts, "add", 1)


async def test_a_row_with_a_key_of_several_columns_is_copied(machines: None, half: Any) -> None:
    await half.call(lambda: create_all(Machine, Bolt), lambda: acreate_all(Machine, Bolt))
    await half(Bolt.objects).create(tenant=1, number=2, size=5)
    lean = await half(Bolt.objects.only("machine")).get()
    lean.number = 3
    with pytest.raises(FieldError, match=r"The key of a stored Bolt cannot change, got \(1, 3\)"):
        await half(lean).save()
    await half(lean).save(force_insert=True)
    found = await half.rows(Bolt.objects.order_by("number").values_list("number", "size"))
    assert found == [(2, 5), (3, 5)]
    lean.size = F("size") + 1
    await half(lean).save()
    assert lean.size == 6
    await half(lean).delete()
    with pytest.raises(StaleObject, match=r"Bolt with key \(1, 3\) was deleted"):
        await half(lean).save()


async def test_the_way_back_of_a_one_to_one_relation_may_be_assigned(db: Any, half: Any) -> None:
    ann: Any = await half(Author.objects).create(name="Ann")
    profile = Profile(site="https://example.org/")
    ann.profile = profile
    assert (profile.author, ann.profile) == (ann, profile)
    await half(profile).save()
    found = await half(Author.objects.select_related("profile")).get()
    assert found.profile == profile
    with pytest.raises(FieldError, match=r"Author\.profile takes a Profile, not a Author"):
        ann.profile = ann
    with pytest.raises(
        FieldError, match=r"Author\.posts cannot be assigned; use its add\(\), set\(\) or create"
    ):
        ann.posts = [profile]


# -- many-to-many ---------------------------------------------------------------------------------


async def names(half: Any, query: Any) -> list[str]:
    """Names of rows, in order."""
    return [row.name for row in await half.rows(query.order_by("name"))]


async def tagged(half: Any) -> tuple[Any, list[Any]]:
    """A post, and three tags."""
    made = await shop(half)
    tags = [await half(Tag.objects).create(name=name) for name in ("blue", "green", "red")]
    return made["p1"], tags


async def test_many_to_many_takes_instances_keys_and_queries(db: Any, half: Any, call: In) -> None:
    post, (blue, green, red) = await tagged(half)
    await call(post.tags, "add", blue, green.pk, blue)
    assert await names(half, post.tags) == ["blue", "green"]
    await call(post.tags, "set", Tag.objects.filter(name__in=["green", "red"]))
    assert await names(half, post.tags) == ["green", "red"]
    await call(post.tags, "set", Tag.objects)
    assert await names(half, post.tags) == ["blue", "green", "red"]
    await call(post.tags, "set", [blue], clear=True)
    assert await names(half, post.tags) == ["blue"]
    assert await call(post.tags, "remove", blue, red) == 1
    await call(red.posts, "add", post)  # the other way
    assert await call(post.tags, "clear") == 1
    assert await call(post.tags, "remove") == 0
    with pytest.raises(ForeignKeyViolation, match="A referenced row is missing"):
        await call(post.tags, "add", blue, -1)
    assert await half(post.tags).count() == 0


async def test_many_to_many_forgets_what_was_prefetched(db: Any, half: Any, call: In) -> None:
    await tagged(half)
    post = await half(Post.objects.prefetch_related("tags")).get(title="p1")
    assert await half.rows(post.tags.all()) == []
    await call(post.tags, "set", Tag.objects.all())
    assert len(await half.rows(post.tags.all())) == 3
    await half(post.tags).create(name="new")
    assert len(await half.rows(post.tags.all())) == 4


async def test_a_relation_gives_its_through_model(db: Any, half: Any) -> None:
    post, (blue, _, _) = await tagged(half)
    await half(post.tags).add(blue)
    through = Post.tags.through
    way_back: Any = Tag
    assert through is way_back.posts.through
    assert through is post.tags.through
    assert Club.members.through is Membership
    assert await half(through.objects.filter(post=post, tag__name="blue")).count() == 1
    await half(through.objects).create(post=post, tag=await half(Tag.objects).get(name="red"))
    assert await names(half, post.tags) == ["blue", "red"]
    with pytest.raises(AttributeError, match=r"Author\.posts has no through model: it is the way"):
        _ = Author.posts.through


async def club(half: Any) -> tuple[Any, list[Any]]:
    """A club, and three people."""
    made = await half(Club.objects).create(name="Chess")
    return made, [await half(Person.objects).create(name=name) for name in ("Ann", "Bob", "Cid")]


async def since(half: Any) -> dict[str, int]:
    """The year of each membership."""
    found = Membership.objects.select_related("person")
    return {m.person.name: m.since.year for m in await half.rows(found)}


def lately() -> dt.date:
    """A value that is made when it is needed."""
    return dt.date(2002, 1, 1)


def day(year: int) -> dict[str, Any]:
    """Values of the through model."""
    return {"since": dt.date(year, 1, 1)}


async def test_through_defaults_fill_new_rows_of_the_through_model(
    db: Any, half: Any, call: In
) -> None:
    chess, (ann, bob, cid) = await club(half)
    await call(chess.members, "add", ann, bob, through_defaults=day(2001))
    await call(chess.members, "add", bob, cid, through_defaults={"since": lately})
    assert await since(half) == {"Ann": 2001, "Bob": 2001, "Cid": 2002}
    await call(chess.members, "set", [ann, cid], through_defaults=day(2003))
    assert await since(half) == {"Ann": 2001, "Cid": 2002}
    await call(chess.members, "set", [ann, bob], clear=True, through_defaults=day(2004))
    assert await since(half) == {"Ann": 2004, "Bob": 2004}
    await call(chess.members, "create", name="Dan", through_defaults=day(2005))
    for created in (True, False):
        found = await call(chess.members, "get_or_create", name="Eve", through_defaults=day(2006))
        assert found[1] is created
    await call(
        chess.members, "update_or_create", name="Fay", defaults={}, through_defaults=day(2007)
    )
    assert await since(half) == {
        "Ann": 2004,
        "Bob": 2004,
        "Dan": 2005,
        "Eve": 2006,
        "Fay": 2007,
    }
    await call(ann.clubs, "create", name="Go", through_defaults=day(2008))
    assert await half(Membership.objects.filter(club__name="Go", since__year=2008)).count() == 1


async def test_wrong_through_defaults_are_refused(db: Any, half: Any, call: In) -> None:
    chess, (ann, _, _) = await club(half)
    with pytest.raises(FieldError, match="Membership has no field 'snce'"):
        await call(chess.members, "add", ann, through_defaults={"snce": 1})
    with pytest.raises(FieldError, match="Membership has no field 'snce'"):
        await call(chess.members, "create", name="Zoe", through_defaults={"snce": 1})
    assert not await half(Person.objects.filter(name="Zoe")).exists()


# -- several databases ----------------------------------------------------------------------------


@pytest.fixture
def two(db: Any, tmp_path: Any) -> None:
    configure("sqlite", str(tmp_path / "other.sqlite3"), alias="other")


@pytest.mark.parametrize("name", ["add", "remove", "set"])
async def test_rows_of_two_databases_are_not_connected(two: None, half: Any, name: str) -> None:
    models = (Country, Author, Tag, Post)
    await half.call(
        lambda: create_all(*models, using="other"), lambda: acreate_all(*models, using="other")
    )
    made = await shop(half)
    tag = await half(Tag.objects.using("other")).create(name="red")
    bob = await half(Author.objects.using("other")).create(name="Bob")
    for manager, other, kind in ((bob.edited, made["p1"], "Post"), (made["p1"].tags, tag, "Tag")):
        with pytest.raises(
            FieldError, match=rf"cannot hold a row of another database, got a {kind} of"
        ):
            await getattr(half(manager), name)([other] if name == "set" else other)
    assert await half(bob.edited).count() == 0
    mine = await half(bob.edited).create(title="there", author=bob)
    await half(bob.posts).add(mine)
    assert await titles(half, Post.objects.using("other")) == ["there"]


async def test_async_code_is_told_what_was_not_loaded(db: Any) -> None:
    ann: Any = await Author.objects.acreate(name="Ann")
    post = await Post.objects.acreate(title="x", author=ann)
    fresh = await Post.objects.aget(pk=post.pk)
    await ann.edited.aadd(fresh)
    assert fresh.editor is ann  # the assigned instance is known
    again = await Post.objects.aget(pk=post.pk)
    with pytest.raises(NotLoaded, match=r"Post\.editor is not loaded"):
        _ = again.editor


async def test_a_saved_relation_is_needed(db: Any, half: Any) -> None:
    with pytest.raises(FieldError, match="This Author is not saved: it has no posts yet"):
        _ = Author(name="x").posts
    assert Order.objects is not None


@pytest.mark.parametrize("way", ["save", "bulk_create", "update", "bulk_update", "assign"])
async def test_a_row_cannot_point_into_another_database(two: None, half: Any, way: str) -> None:
    models = (Country, Author, Tag, Post)
    await half.call(
        lambda: create_all(*models, using="other"), lambda: acreate_all(*models, using="other")
    )
    mine = await half(Author.objects).create(name="Ann")
    theirs = await half(Author.objects.using("other")).create(name="Bob")
    message = (
        r"Post\.author cannot point to a row of another database, got a Author of 'other' for a "
        r"Post of 'default'"
    )
    if way in {"save", "bulk_create"}:
        new = Post(title="x", author=theirs)
        with pytest.raises(FieldError, match=message):
            await (half(new).save() if way == "save" else half(Post.objects).bulk_create([new]))
        await half(new).save(using="other")
        assert await half(Post.objects.using("other")).count() == 1
        return
    post = await half(Post.objects).create(title="x", author=mine)
    if way == "assign":
        with pytest.raises(FieldError, match=message):
            post.author = theirs
        return
    fresh = Author(name="Cid")
    post.editor = fresh
    await half(fresh).save(using="other")
    with pytest.raises(FieldError, match=message.replace("author", "editor")):
        await (
            half(post).save()
            if way == "update"
            else half(Post.objects).bulk_update([post], ["editor"])
        )
    assert (await half(Post.objects).get()).editor_id is None
