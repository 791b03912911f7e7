"""Saving instances as Django users expect it: copies, deleted rows, times, other databases."""

from __future__ import annotations

import copy
import datetime as dt
import decimal
import pickle
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from orm_halves import Handle, in_half
from orm_models import Author, Comment, Country, Keyed, Order, Post, Profile, Stamped, Tag

from treefold_orm import (
    Count,
    F,
    FieldError,
    Model,
    StaleObject,
    UniqueViolation,
    acreate_all,
    close_all,
    create_all,
    fields,
    record_queries,
    transaction,
)
from treefold_orm.testing import sandbox

LONG_AGO = dt.datetime(2001, 2, 3, tzinfo=dt.UTC)


class Dated(Model):
    """An abstract model with times and a text."""

    made = fields.DateTimeField(auto_now_add=True)
    changed = fields.DateTimeField(auto_now=True)
    note = fields.TextField(default="")

    class Meta:
        abstract = True


class Letter(Dated):
    """Inherits fields from an abstract model; the database fills one."""

    subject = fields.CharField(max_length=20)
    rank = fields.IntegerField(db_default=7)


@pytest.fixture
def letters(db: Any) -> Iterator[None]:
    with sandbox():
        yield


@contextmanager
def perhaps(inside: bool) -> Generator[None]:
    """Inside of a transaction, or outside of one."""
    if not inside:
        yield
        return
    with transaction():
        yield


class In:
    """Runs a step inside or outside of a transaction, in one half."""

    def __init__(self, half: Any, *, inside: bool) -> None:
        self.half, self.inside = half, inside

    async def save(self, instance: Any, **options: Any) -> None:
        """Save the instance."""

        def work() -> None:
            with perhaps(self.inside):
                instance.save(**options)

        async def awork() -> None:
            if not self.inside:
                await instance.asave(**options)
                return
            async with transaction():
                await instance.asave(**options)

        await self.half.call(work, awork)


@pytest.fixture(params=[False, True], ids=["outside", "inside"])
def step(request: pytest.FixtureRequest, half: Any) -> In:
    return In(half, inside=request.param)


# -- copies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pk", "id"])
async def test_an_instance_without_its_key_is_saved_as_a_copy(
    db: Any, half: Any, step: In, name: str
) -> None:
    ann = await half(Author.objects).create(name="Ann", age=30)
    first = ann.pk
    setattr(ann, name, None)
    await step.save(ann)
    assert ann.pk not in {None, first}
    rows = await half.rows(Author.objects.order_by("id").values_list("name", "age"))
    assert rows == [("Ann", 30)] * 2
    ann.age = 31
    await half(ann).save()
    assert (await half(Author.objects).get(pk=first)).age == 30


async def test_a_copy_of_a_partly_loaded_row_has_all_its_columns(
    db: Any, half: Any, step: In
) -> None:
    peru = await half(Country.objects).create(name="Peru")
    await half(Author.objects).create(name="Ann", age=30, country=peru, password="secret")
    lean = await half(Author.objects.only("name").annotate(n=Count("posts"))).get()
    lean.pk = None
    lean.name = "Copy"
    await step.save(lean)
    copy = await half(Author.objects).get(name="Copy")
    assert (copy.age, copy.country_id, copy.password) == (30, peru.pk, "secret")
    assert (lean.age, lean.n) == (30, 0)
    with record_queries() as seen:
        await half(lean).save()
    assert len(seen) == 0


async def test_a_copy_of_a_partly_loaded_row_that_is_gone_is_refused(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=30)
    lean = await half(Author.objects.only("name")).get()
    await half(Author.objects).delete()
    lean.pk = None
    with pytest.raises(Author.DoesNotExist, match=r"Author was deleted, and age, .* cannot be"):
        await half(lean).save()


async def test_a_copy_has_none_of_the_rows_that_belong_to_the_original(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    post = await half(Post.objects).create(title="x", author=ann)
    await half(post.tags).add(await half(Tag.objects).create(name="red"))
    await half(Comment.objects).create(post=post, text="y")
    await half(Profile.objects).create(author=ann)
    found = await half(
        Post.objects.select_related("author").prefetch_related("tags", "comments")
    ).get()
    first = found.pk
    found.pk = None
    await half(found).save()
    assert found.author.name == "Ann"  # what a copy points to is the same
    assert await half.rows(found.tags.all()) == []
    assert await half.rows(found.comments.all()) == []
    assert await half((await half(Post.objects).get(pk=first)).tags).count() == 1
    owner = await half(Author.objects.select_related("profile")).get(name="Ann")
    owner.pk = None
    await half(owner).save()
    assert not owner.is_loaded("profile")


async def test_a_copy_with_a_key_that_python_makes_gets_a_new_one(db: Any, half: Any) -> None:
    made = await half(Keyed.objects).create(label="x")
    first = made.pk
    made.pk = None
    await half(made).save()
    assert made.pk not in {None, first}
    assert await half(Keyed.objects).count() == 2


async def test_a_copy_begins_with_new_times_and_the_first_version(db: Any, half: Any) -> None:
    stamp = await half(Stamped.objects).create(name="x", created=LONG_AGO)
    stamp.pk = None
    await half(stamp).save()
    assert stamp.created > LONG_AGO
    order = await half(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
    order.paid = True
    await half(order).save()
    assert order.version == 2
    order.pk, order.number = None, 2
    await half(order).save()
    assert order.version == 1


async def test_a_copy_that_is_refused_can_be_mended_and_saved(db: Any, half: Any) -> None:
    tag = await half(Tag.objects).create(name="red")
    tag.pk = None
    with pytest.raises(UniqueViolation, match=r"Tag\.name exists already"):
        await half(tag).save()
    tag.name = "blue"
    await half(tag).save()
    assert await half(Tag.objects).count() == 2


async def test_force_insert_with_another_key_copies_a_partly_loaded_row(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=30)
    lean = await half(Author.objects.only("name")).get()
    lean.pk = 4711
    await half(lean).save(force_insert=True)
    assert (await half(Author.objects).get(pk=4711)).age == 30


async def test_update_fields_cannot_make_a_copy(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    ann.pk = None
    with pytest.raises(FieldError, match=r"save\(update_fields=...\) cannot insert a new Author"):
        await half(ann).save(update_fields=["name"])


async def test_a_model_with_inherited_fields_is_copied(letters: None, half: Any) -> None:
    await half.call(lambda: create_all(Letter), lambda: acreate_all(Letter))
    letter = await half(Letter.objects).create(subject="x", note="y")
    letter.rank = 8
    await half(letter).save()
    lean = await half(Letter.objects.only("subject")).get()
    lean.pk = None
    await half(lean).save()
    found = Letter.objects.values_list("subject", "note", "rank")
    assert await half.rows(found) == [("x", "y", 8)] * 2
    with record_queries() as seen:
        await half(lean).save(update_fields=["rank", "note"])
    assert sum("UPDATE" in event.sql for event in seen.events) == 1


# -- deleted rows ---------------------------------------------------------------------------------


async def test_saving_an_instance_that_was_deleted_says_so(db: Any, half: Any, step: In) -> None:
    ann = await half(Author.objects).create(name="Ann")
    await half(ann).delete()
    for _ in range(2):
        with pytest.raises(
            StaleObject,
            match=rf"Author with key {ann.pk} was deleted; save\(force_insert=True\) inserts it",
        ):
            await step.save(ann)
    ann.pk = None
    await step.save(ann)
    assert await half(Author.objects).count() == 1


async def test_saving_a_row_that_someone_deleted_says_so(db: Any, half: Any, step: In) -> None:
    ann = await half(Author.objects).create(name="Ann")
    lean = await half(Author.objects.only("name")).get()
    await half(Author.objects).delete()
    for author in (ann, lean):
        author.name = "Anna"
        with pytest.raises(
            StaleObject, match=rf"Author with key {ann.pk} was deleted since it was read"
        ):
            await step.save(author)
    await step.save(ann, force_insert=True)
    assert (await half(Author.objects).get()).name == "Anna"


async def test_saving_a_changed_row_names_its_version(db: Any, half: Any, step: In) -> None:
    order = await half(Order.objects).create(number=1, shop="s", total=decimal.Decimal(1))
    await half(Order.objects).update(paid=True)
    order.shop = "t"
    with pytest.raises(
        StaleObject,
        match=rf"Order with key {order.pk} was changed since it was read: its version is no longer "
        r"1; refresh_from_db\(\)",
    ):
        await step.save(order)
    assert order.version == 1
    await half(order).refresh_from_db()
    order.shop = "t"
    await step.save(order)
    assert order.version == 3


class Session(Model):
    """A key that is a secret."""

    token = fields.CharField(max_length=20, primary_key=True)
    n = fields.IntegerField(default=0)


async def test_a_secret_key_is_not_told(letters: None, half: Any) -> None:
    await half.call(lambda: create_all(Session), lambda: acreate_all(Session))
    session = await half(Session.objects).create(token="hunter2")
    await half(Session.objects).delete()
    session.n = 1
    with pytest.raises(StaleObject, match=r"Session with key \*\*\* was deleted"):
        await half(session).save()


# -- times ----------------------------------------------------------------------------------------


async def test_an_unchanged_save_sets_the_time_of_change(db: Any, half: Any, step: In) -> None:
    stamp = await half(Stamped.objects).create(name="x")
    await half(Stamped.objects).update(changed=LONG_AGO, created=LONG_AGO)
    lean = await half(Stamped.objects.only("name")).get()
    for each in (lean, await half(Stamped.objects).get()):
        with record_queries() as seen:
            await step.save(each)
        assert sum("UPDATE" in event.sql for event in seen.events) == 1
    found = await half(Stamped.objects).get(pk=stamp.pk)
    assert found.changed > LONG_AGO
    assert found.created == LONG_AGO
    assert found.changed == each.changed


async def test_a_save_of_no_fields_writes_nothing(db: Any, half: Any) -> None:
    stamp = await half(Stamped.objects).create(name="x")
    stamp.name = "y"
    with record_queries() as seen:
        await half(stamp).save(update_fields=[])
    assert len(seen) == 0


# -- relations ------------------------------------------------------------------------------------


async def test_a_key_set_to_none_forgets_the_loaded_relation(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    await half(Post.objects).create(title="x", author=ann, editor=ann)
    post: Any = await half(Post.objects.select_related("editor")).get()
    post.editor_id = None
    assert post.editor is None
    await half(post).save()
    assert (await half(Post.objects).get()).editor_id is None


async def test_an_assigned_relation_gives_way_to_a_key(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    post: Any = Post(title="x", author=Author(name="New"))
    post.author_id = ann.pk
    await half(post).load("author")
    assert post.author.name == "Ann"
    await half(post).save()
    assert (await half(Post.objects).get()).author_id == ann.pk


async def test_a_relation_that_is_saved_later_is_taken_over_once(db: Any, half: Any) -> None:
    ann, bob = Author(name="Ann"), Author(name="Bob")
    post: Any = Post(title="x", author=ann, editor=bob)
    await half(ann).save()
    await half(bob).save()
    await half(post).save()
    assert (post.author_id, post.editor_id) == (ann.pk, bob.pk)
    post.editor_id = None
    await half(post).save()
    assert (await half(Post.objects).get()).editor_id is None


@pytest.mark.parametrize("bulk", [False, True])
async def test_an_unsaved_relation_is_named_in_the_error(db: Any, half: Any, bulk: bool) -> None:
    ann = await half(Author.objects).create(name="Ann")
    post = Post(title="x", author=ann, editor=Author(name="Bob"))
    with pytest.raises(
        ValueError,
        match=r"Post\.editor: that Author is not saved yet; save it before the Post",
    ):
        await (half(Post.objects).bulk_create([post]) if bulk else half(post).save())


# -- identity -------------------------------------------------------------------------------------


def test_instances_without_a_key_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="Author without a key cannot be hashed; save it first"):
        hash(Author(name="x"))


async def test_equal_rows_are_equal_instances(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    lean = await half(Author.objects.only("age").annotate(n=Count("posts"))).get()
    assert ann == lean
    assert {ann, lean} == {ann}
    assert ann != Author(name="Ann")
    assert Author(name="Ann") != Author(name="Ann")
    assert Tag(id=ann.pk, name="x") != ann
    assert ann != ann.pk


@pytest.mark.parametrize(
    "error",
    [Author.DoesNotExist("gone"), Author.MultipleObjectsReturned("many"), StaleObject("old")],
    ids=lambda error: type(error).__qualname__,
)
def test_errors_of_a_model_travel(error: Exception) -> None:
    twin = pickle.loads(pickle.dumps(error))
    assert (type(twin), str(twin)) == (type(error), str(error))


async def test_rows_of_a_table_between_models_travel(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann")
    post = await half(Post.objects).create(title="x", author=made)
    await half(post.tags).add(await half(Tag.objects).create(name="red"))
    link = await half(Post.tags.through.objects).get()
    for twin in (pickle.loads(pickle.dumps(link)), copy.copy(link), copy.deepcopy(link)):
        assert twin == link
        assert await half(twin).delete() in {0, 1}


async def test_a_copied_or_pickled_instance_knows_its_row(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=3)
    lean = await half(Author.objects.only("name").annotate(n=Count("posts"))).get()
    for twin in (pickle.loads(pickle.dumps(lean)), copy.copy(lean), copy.deepcopy(lean)):
        assert (twin.n, twin.is_loaded("age")) == (0, False)
        with record_queries() as seen:
            await half(twin).save()
        assert len(seen) == 0
        twin.name = "Bob"
        assert lean.name == "Ann"
    await half(lean).delete()
    twin = pickle.loads(pickle.dumps(lean))
    with pytest.raises(StaleObject, match="was deleted"):
        await half(twin).save()


# -- several databases ----------------------------------------------------------------------------


@pytest.fixture
def two(place: Any, tmp_path: Any) -> Iterator[None]:
    """The test's database, and a SQLite file as `other`."""
    from treefold_orm import configure

    place.configure()
    configure("sqlite", str(tmp_path / "other.sqlite3"), alias="other")
    yield
    close_all()


async def test_a_row_is_saved_in_its_own_database(two: None, half: Any) -> None:
    await half.call(lambda: create_all(Tag, using="other"), lambda: acreate_all(Tag, using="other"))
    tag = await half(Tag.objects).create(name="red")
    tag.name = "blue"
    with pytest.raises(
        FieldError, match=r"Tag with key \d+ is stored in the database 'default', got using='other'"
    ):
        await half(tag).save(using="other")
    await half(tag).save(using="other", force_insert=True)
    assert [t.name for t in await half.rows(Tag.objects.using("other"))] == ["blue"]
    tag.name = "green"
    await half(tag).save()  # it is the row of the other database now
    assert [t.name for t in await half.rows(Tag.objects.using("other"))] == ["green"]
    assert [t.name for t in await half.rows(Tag.objects.all())] == ["red"]
    await half(tag).refresh_from_db(using="default")
    assert tag.name == "red"
    tag.name = "white"
    await half(tag).save()
    assert [t.name for t in await half.rows(Tag.objects.all())] == ["white"]


async def test_a_partly_loaded_row_is_not_copied_to_another_database(two: None, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=3)
    lean = await half(Author.objects.only("name")).get()
    with pytest.raises(
        FieldError, match=r"A copy of a Author needs all its columns, got one without age, country"
    ):
        await half(lean).save(using="other", force_insert=True)


# -- reading again --------------------------------------------------------------------------------


async def test_refresh_reads_columns_and_forgets_relations(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    bob = await half(Author.objects).create(name="Bob")
    await half(Post.objects).create(title="x", author=ann, views=1)
    query = Post.objects.select_related("author").prefetch_related("tags")
    post = await half(query).get()
    await half(Post.objects).update(title="y", author=bob, views=2)
    post.title = "mine"
    await half(post).refresh_from_db(fields=["views"])
    assert (post.title, post.views, post.author.name) == ("mine", 2, "Ann")
    await half(post).refresh_from_db(fields=["author"])
    assert (post.author_id, post.is_loaded("author"), post.title) == (bob.pk, False, "mine")
    assert post.is_loaded("tags")
    await half(post).refresh_from_db(fields=["tags", "title"])
    assert (post.is_loaded("tags"), post.title) == (False, "y")
    await half(post).refresh_from_db()
    with record_queries() as seen:
        await half(post).save()
    assert len(seen) == 0


async def test_refresh_leaves_what_was_not_loaded(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=1)
    lean = await half(Author.objects.only("name").annotate(twice=F("age") * 2)).get()
    await half(Author.objects).update(name="Anna", age=2)
    await half(lean).refresh_from_db()
    assert (lean.name, lean.is_loaded("age"), lean.twice) == ("Anna", False, 2)
    lean.age = 5
    await half(lean).refresh_from_db()
    assert lean.age == 2


async def test_refresh_of_an_instance_made_by_hand_reads_everything(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann", age=1)
    mine = Author(id=made.pk, name="x")
    await half(mine).refresh_from_db()
    assert (mine.name, mine.age) == ("Ann", 1)
    mine.age = 2
    await half(mine).save()
    assert (await half(Author.objects).get()).age == 2


@pytest.mark.parametrize("fields", [None, ["name"]])
async def test_refresh_of_a_row_that_is_gone_says_so(db: Any, half: Any, fields: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    await half(Author.objects).delete()
    with pytest.raises(
        Author.DoesNotExist, match=rf"Author with key {ann.pk} does not exist; it was deleted"
    ):
        await half(ann).refresh_from_db(fields=fields)
    await half(ann).delete()
    with pytest.raises(Author.DoesNotExist, match="does not exist; it was deleted"):
        await half(ann).refresh_from_db(fields=fields)


async def test_wrong_uses_of_refresh_say_what_is_wrong(db: Any, half: Any) -> None:
    with pytest.raises(FieldError, match="This Author has no key: it was never saved"):
        await half(Author(name="x")).refresh_from_db()
    ann = await half(Author.objects).create(name="Ann")
    with pytest.raises(FieldError, match="Author has no field 'nme'"):
        await half(ann).refresh_from_db(fields=["nme"])


# -- rollbacks ------------------------------------------------------------------------------------


async def test_a_rollback_takes_a_copy_and_a_deletion_back(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann")
    first = ann.pk

    async def body(h: Handle) -> None:
        async with h.transaction(rollback=True):
            ann.pk = None
            await h(ann).save()
        assert ann.pk is None
        ann.pk, ann.name = first, "Anna"
        await h(ann).save()
        async with h.transaction(rollback=True):
            await h(ann).delete()
        ann.name = "Anne"
        await h(ann).save()
        assert [a.name for a in await h.rows(Author.objects.all())] == ["Anne"]

    await in_half(half, body)


@pytest.mark.parametrize("assigned", ["before", "inside"])
async def test_a_relation_that_was_undone_takes_the_next_key(
    db: Any, half: Any, assigned: str
) -> None:
    ann = Author(name="Ann")
    post: Any = Post(title="x", author=ann)

    async def body(h: Handle) -> None:
        async with h.transaction(rollback=True):
            await h(ann).save()
            if assigned == "inside":
                post.author = ann
            await h(post).save()
        await h(Author.objects).create(name="other")
        await h(ann).save()
        await h(post).save()
        assert post.author is ann
        assert (await h(Post.objects.select_related("author")).get()).author.name == "Ann"

    await in_half(half, body)
