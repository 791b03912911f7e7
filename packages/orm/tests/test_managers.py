"""Managers: a new query for each call, query classes, and which manager relations use."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Generator
from contextvars import ContextVar
from typing import Any, Self, cast

import pytest
from orm_models import Author, Country, Post, Tag
from test_budgets import calls

from treefold_orm import (
    CTE,
    Exists,
    FieldError,
    Manager,
    Model,
    ModelError,
    OuterRef,
    Prefetch,
    QuerySet,
    Subquery,
    configure,
    create_all,
    fields,
    record_queries,
)

tenant: ContextVar[str] = ContextVar("tenant", default="")


class TenantManager(Manager["Note"]):
    """Sees the notes of the tenant of the moment."""

    def __init__(self, prefix: str = "") -> None:  # as Django users do, without super().__init__
        self.prefix = prefix

    def get_queryset(self) -> QuerySet[Note]:
        """Only the tenant's rows."""
        return super().get_queryset().filter(owner=self.prefix + tenant.get())

    def greet(self) -> str:
        """A method that is not a query."""
        return f"{self.prefix}{tenant.get()} of {self.model.__name__} in {self.db}"


class NoteQuery(QuerySet["Note"]):
    """A query class with methods of every kind."""

    def long(self) -> Self:
        """Notes with much text."""
        return self.filter(text__startswith="long")

    async def atexts(self) -> list[str]:
        """A terminal method of one's own."""
        return await self.values_list(Note.text, flat=True)

    def hidden(self) -> Self:
        """Not on the manager."""
        return self.none()

    def _private(self) -> str:
        return "on the manager all the same"

    cast("Any", hidden).queryset_only = True
    cast("Any", _private).queryset_only = False

    def delete(self) -> int:
        """Mark the rows instead."""
        return self.update(text="deleted")


class Abstract(Model):
    """Managers are inherited from here."""

    owner = fields.CharField(max_length=20, default="")
    mine = TenantManager()
    Meta: Any = type("Meta", (), {"abstract": True})


class Note(Abstract):
    """A note of a tenant."""

    text = fields.CharField(max_length=40, default="")
    objects = Manager["Note"]()
    query = NoteQuery.as_manager()
    prefixed: Any = cast("Any", TenantManager.from_queryset(NoteQuery))("x")


class Folder(Model):
    """The one side of items."""

    name = fields.CharField(max_length=20)


class LiveQuery(QuerySet["Item"]):
    """Methods of the default manager of items."""

    def named(self, name: str) -> Self:
        """Items of a name."""
        return self.filter(name=name)


class LiveManager(Manager["Item"]):
    """Items that are not deleted."""

    def get_queryset(self) -> QuerySet[Item]:
        """Leave the deleted ones out."""
        return super().get_queryset().filter(deleted=False)


class Item(Model):
    """Soft deletion: the default manager leaves rows out."""

    name = fields.CharField(max_length=20)
    deleted = fields.BooleanField(default=False)
    folder = fields.ForeignKey(Folder, null=True, related_name="items")
    live = LiveManager.from_queryset(LiveQuery)()
    everything = Manager["Item"]()


class Label(Model):
    """Many to many with items, both ways."""

    name = fields.CharField(max_length=20)
    items = fields.ManyToManyField(Item, related_name="labels")
    first = fields.ForeignKey(Item, null=True, related_name="+")


TABLES = (Note, Folder, Item, Label)


@pytest.fixture
def tables(empty: Any) -> Any:
    create_all(*TABLES)
    return empty


def untyped(value: Any) -> Any:
    return value


@contextlib.contextmanager
def acting(name: str) -> Generator[None]:
    token = tenant.set(name)
    try:
        yield
    finally:
        tenant.reset(token)


# -- rows are never kept --------------------------------------------------------------------------


async def awaited(manager: Any) -> list[Any]:
    return await manager


async def iterated(manager: Any) -> list[Any]:
    return [row async for row in manager]


async def test_a_manager_reads_the_rows_anew_each_time(db: Any, half: Any) -> None:
    assert await half.rows(Tag.objects) == []
    await half(Tag.objects).create(name="a")
    assert [tag.name for tag in await half.rows(Tag.objects)] == ["a"]
    await half(Tag.objects).create(name="b")
    kept = Tag.objects
    assert len(await half.rows(kept)) == 2
    await half(Tag.objects).delete()
    assert await half.rows(kept) == []


@pytest.mark.parametrize("read", [awaited, iterated])
async def test_awaiting_a_manager_keeps_nothing(db: Any, read: Callable[..., Any]) -> None:
    assert await read(Tag.objects) == []
    await Tag.objects.acreate(name="a")
    assert [tag.name for tag in await read(Tag.objects)] == ["a"]


def test_another_database_shows_its_own_rows(db: Any, tmp_path: Any) -> None:
    Tag.objects.create(name="first")
    assert [tag.name for tag in Tag.objects] == ["first"]
    configure("sqlite", str(tmp_path / "other.sqlite3"))
    create_all(Tag)
    assert list(Tag.objects) == []


def test_a_manager_can_be_indexed_and_sliced(db: Any) -> None:
    assert list(Author.objects[:1]) == []
    Author.objects.create(name="Ann")
    assert Author.objects[0].name == "Ann"
    Author.objects.create(name="Abe")
    assert [author.name for author in Author.objects[:2]] == ["Abe", "Ann"]


def test_a_manager_holds_no_rows_and_no_key(db: Any) -> None:
    Tag.objects.create(name="a")
    list(Tag.objects)
    assert not isinstance(Tag.objects, QuerySet)
    assert {name for name in vars(Tag.objects) if name not in {"_meta", "_plain"}} == set()


def test_length_and_truth_of_a_manager_are_refused() -> None:
    with pytest.raises(TypeError, match=r"<Manager of Tag> has no length: call count\(\)"):
        len(Tag.objects)
    with pytest.raises(TypeError, match=r"<Manager of Tag> has no truth value: call exists\(\)"):
        bool(Tag.objects)


def test_list_of_a_manager_is_one_statement(db: Any) -> None:
    with record_queries() as seen:
        list(Tag.objects)
    assert len(seen) == 1


# -- get_queryset ---------------------------------------------------------------------------------


async def test_get_queryset_runs_for_each_query(tables: Any, half: Any) -> None:
    for owner in ("ann", "bob", "bob"):
        await half(Note.objects).create(owner=owner)
    for name, count in (("ann", 1), ("bob", 2), ("eve", 0)):
        with acting(name):
            assert await half(Note.mine).count() == count
            assert len(await half.rows(Note.mine)) == count
            assert len(await half.rows(Note.mine.all())) == count
            assert len(await half.rows(Note.mine.filter(text=""))) == count
    assert await half(Note.objects).count() == 3


async def test_get_by_key_goes_through_get_queryset(tables: Any, half: Any) -> None:
    note = await half(Note.objects).create(owner="ann")
    with acting("ann"):
        assert (await half(Note.mine).get(id=note.pk)).pk == note.pk
    with acting("bob"), pytest.raises(Note.DoesNotExist, match="No Note matches the query"):
        await half(Note.mine).get(id=note.pk)


def test_a_manager_knows_its_model_and_database(tables: Any) -> None:
    with acting("ann"):
        assert Note.mine.greet() == "ann of Note in default"
        assert Note.mine.db_manager("other").greet() == "ann of Note in other"
    assert Note.mine._db == "default"
    assert (NoteQuery(Note).model, NoteQuery(Note, using="other").db) == (Note, "other")


def test_a_manager_of_an_abstract_model_cannot_query() -> None:
    with pytest.raises(ModelError, match="Abstract is abstract: query a model that inherits"):
        Abstract.mine.all()
    with pytest.raises(ModelError, match="Abstract is abstract: query a model that inherits"):
        Abstract.mine.get(id=1)


def test_a_manager_without_a_model_cannot_query() -> None:
    with pytest.raises(ModelError, match="Manager must be an attribute of a model before it is"):
        Manager[Any]().all()
    assert repr(Manager[Any]()) == "<Manager of no model>"


def test_managers_of_an_abstract_model_are_separate_and_can_be_replaced() -> None:
    class Memo(Abstract):
        mine: Any = None

    class Letter(Abstract):
        pass

    assert (Letter.mine.model, Note.mine.model, Memo.mine) == (Letter, Note, None)
    assert Memo._meta.default_manager is None


# -- query classes --------------------------------------------------------------------------------


async def test_methods_of_a_query_class_are_on_the_manager(tables: Any, half: Any) -> None:
    for text in ("long 1", "long 2", "short"):
        await half(Note.objects).create(text=text)
    assert await half(Note.query.long()).count() == 2
    found = await half.rows(Note.query.filter(text__endswith="2").long().order_by("text"))
    assert [note.text for note in found] == ["long 2"]
    assert sorted(await Note.query.atexts()) == ["long 1", "long 2", "short"]
    assert isinstance(Note.query.exclude(text=""), NoteQuery)


def test_queryset_only_decides_what_the_manager_has() -> None:
    assert not hasattr(Note.query, "hidden")
    assert Note.query.all()._private() == Note.query._private() == "on the manager all the same"


def test_an_overridden_method_of_a_query_class_is_what_the_manager_calls(tables: Any) -> None:
    Note.objects.create(text="x")
    assert Note.query.delete() == 1
    assert [note.text for note in Note.objects] == ["deleted"]


async def test_from_queryset_keeps_the_manager_it_is_called_on(tables: Any, half: Any) -> None:
    await half(Note.objects).create(owner="xann", text="long")
    await half(Note.objects).create(owner="xbob", text="long")
    with acting("ann"):
        found = await half.rows(Note.prefixed.long())
    assert [note.owner for note in found] == ["xann"]


def test_from_queryset_names_its_class() -> None:
    assert Manager.from_queryset(NoteQuery).__name__ == "ManagerFromNoteQuery"
    assert Manager.from_queryset(NoteQuery, "Named").__name__ == "Named"
    with pytest.raises(ModelError, match="takes a subclass of QuerySet, got <class 'int'>"):
        untyped(Manager).from_queryset(int)


def test_a_query_needs_a_model_that_is_not_abstract() -> None:
    with pytest.raises(ModelError, match="Abstract is abstract"):
        QuerySet(Abstract)
    with pytest.raises(FieldError, match=r"QuerySet\(\) takes a model, got None"):
        untyped(QuerySet)()


def test_a_method_of_the_manager_is_missed_with_the_way_out() -> None:
    with pytest.raises(
        AttributeError, match=r"a method of the manager Note\.\w+, not of its queries"
    ):
        untyped(Note.mine.all()).greet()
    with pytest.raises(AttributeError, match="'QuerySet' object has no attribute 'nothing'"):
        untyped(Note.mine.all()).nothing()


def test_every_public_method_of_a_query_is_on_a_manager() -> None:
    public = {name for name in dir(QuerySet) if not name.startswith("_")}
    assert public - set(dir(Manager)) == {"as_manager"}


# -- where a query is expected --------------------------------------------------------------------


def test_a_manager_stands_for_its_query(tables: Any) -> None:
    Note.objects.create(owner="ann", text="a")
    Note.objects.create(owner="bob", text="b")
    with acting("ann"):
        assert [note.text for note in Note.objects.filter(id__in=Note.mine)] == ["a"]
        assert [note.text for note in Note.objects.filter(id=Note.mine)] == ["a"]
        assert Note.mine.union(Note.mine).count() == 1
        assert [note.text for note in Note.objects.difference(Note.mine)] == ["b"]
        assert [note.text for note in CTE(Note.mine).objects] == ["a"]
        assert Note.objects.filter(Exists(Note.mine)).count() == 2
        own = Note.objects.annotate(own=Subquery(Note.mine)).order_by("id").first()
        assert own is not None
        assert untyped(own).own == own.pk
    assert Note.objects.filter(Exists(Note.objects.filter(id=OuterRef("id")))).count() == 2


# -- relations ------------------------------------------------------------------------------------


async def test_related_managers_keep_no_rows(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann")
    posts = author.posts
    assert await half.rows(posts) == []
    post = await half(posts).create(title="a")
    tags = post.tags
    assert [p.title for p in await half.rows(posts)] == ["a"]
    assert await half.rows(tags) == []
    await half(tags).create(name="red")
    assert [t.name for t in await half.rows(tags)] == ["red"]
    assert await half.rows(tags.all()) == await half.rows(tags)


async def test_prefetched_rows_come_without_a_query(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann")
    await half(author.posts).create(title="a")
    (found,) = await half.rows(Author.objects.prefetch_related("posts"))
    with record_queries() as seen:
        assert [p.title for p in await half.rows(found.posts)] == ["a"]
        assert [p.title for p in await half.rows(found.posts.all())] == ["a"]
    assert len(seen) == 0
    with record_queries() as seen:
        assert await half.rows(found.posts.filter(title="b")) == []
    assert len(seen) == 1


async def test_rows_made_by_a_narrowed_related_query_belong_to_the_instance(
    db: Any, half: Any
) -> None:
    author = await half(Author.objects).create(name="Ann")
    post, created = await half(author.posts.filter(views=0)).get_or_create(title="a")
    assert (post.author_id, created) == (author.pk, True)
    tag = await half(post.tags.exclude(name="x")).create(name="red")
    assert await half.rows(post.tags) == [tag]


async def test_relations_to_many_rows_use_the_default_manager(tables: Any, half: Any) -> None:
    folder = await half(Folder.objects).create(name="f")
    label = await half(Label.objects).create(name="l")
    for name, deleted in (("a", False), ("b", True)):
        item = await half(Item.everything).create(name=name, deleted=deleted, folder=folder)
        await half(label.items).add(item)
    assert [i.name for i in await half.rows(folder.items)] == ["a"]
    assert [i.name for i in await half.rows(label.items)] == ["a"]
    assert await half(folder.items.named("a")).count() == 1
    assert await half(folder.items.named("b")).exists() is False
    for query, name in ((Folder.objects, "items"), (Label.objects, "items")):
        (found,) = await half.rows(query.prefetch_related(name))
        assert [i.name for i in await half.rows(found.items)] == ["a"]
        whole = Prefetch(name, Item.everything)
        (found,) = await half.rows(query.prefetch_related(whole))
        assert sorted(i.name for i in await half.rows(found.items)) == ["a", "b"]
    gone = await half(Item.everything).get(name="b")
    assert await half.rows(gone.labels) == [label]


async def test_relations_to_one_row_see_all_rows(tables: Any, half: Any) -> None:
    gone = await half(Item.everything).create(name="b", deleted=True)
    await half(Label.objects).create(name="l", first=gone)
    (label,) = await half.rows(Label.objects.prefetch_related("first"))
    assert label.first.name == "b"
    (label,) = await half.rows(Label.objects.select_related("first"))
    assert label.first.name == "b"
    label = await half(Label.objects).get(name="l")
    assert (await half(label).load("first")).first.name == "b"


def test_the_first_manager_of_a_model_is_its_default() -> None:
    assert (Item._meta.default_manager, Folder._meta.default_manager) == (Item.live, None)
    assert Note._meta.default_manager is Note.objects


def test_meta_names_another_default_manager() -> None:
    class Named(Abstract):
        other = Manager["Named"]()

        Meta = type("Meta", (), {"default_manager_name": "mine"})

    assert Named._meta.default_manager is Named.mine
    message = "default_manager_name must name a manager of the model, got 'nothing'; it has mine"
    with pytest.raises(ModelError, match=message):

        class _Wrong(Abstract):  # pyright: ignore[reportUnusedClass] - what is tested
            Meta = type("Meta", (), {"default_manager_name": "nothing"})


# -- cost -----------------------------------------------------------------------------------------


def test_manager_access_is_one_call() -> None:
    Tag.objects.all()
    assert sum(calls(lambda: Tag.objects).values()) == 2  # with the lambda itself


def test_a_manager_adds_three_calls_to_a_filter(db: Any) -> None:
    query = Tag.objects.all()
    Tag.objects.filter(name="a")
    plain = sum(calls(lambda: query.filter(name="a")).values())
    assert sum(calls(lambda: Tag.objects.filter(name="a")).values()) <= plain + 5


def test_get_on_a_manager_makes_no_query_object(db: Any) -> None:
    Tag.objects.create(name="a")
    Tag.objects.get(name="a")
    found = calls(lambda: Tag.objects.get(name="a"))
    assert found["treefold_orm._queries.base_query"] == 0
    assert sum(n for name, n in found.items() if name.startswith("treefold_orm")) <= 20


async def test_an_async_iterator_of_a_manager_ends(db: Any) -> None:
    found: AsyncIterator[Country] = aiter(Country.objects)
    assert [row async for row in found] == []


async def test_a_post_is_found_by_its_manager(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann")
    made = await half(Post.objects).create(title="a", author=author)
    assert (await half(Post.objects).get(id=made.pk)).title == "a"
