"""Shapes: members of columns, what a request may set of them, and what is refused."""

from __future__ import annotations

import copy
import datetime as dt
import pickle
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from orm_models import Author, Country, Post, Tag

from treefold_orm import (
    CompositePrimaryKey,
    Count,
    FieldError,
    FieldValueError,
    FilterSet,
    Model,
    NotLoaded,
    Shape,
    acreate_all,
    fields,
    record_queries,
)


class AuthorOut(Shape):
    """A related row."""

    id = Author.id
    name = Author.name


class NewAuthor(Shape):
    """What a request sets."""

    id = Author.id
    name = Author.name
    age = Author.age
    password = Author.password
    nickname: str = ""


class LongAuthor(AuthorOut):
    """The members of another one, and one more."""

    age = Author.age


class Stamp(Model):
    """A row that others than a request write: the key, times, a counter, a default."""

    code = fields.CharField(max_length=3, primary_key=True)
    made = fields.DateTimeField(auto_now_add=True)
    changed = fields.DateTimeField(auto_now=True)
    turn = fields.IntegerField(default=0)
    rank = fields.IntegerField(db_default=7)
    notes = fields.JSONField(default=["first"])
    tags = fields.JSONField(default=dict)

    class Meta:
        version_field = "turn"


class StampShape(Shape):
    """All columns of a stamp, of which one has a type of its own."""

    code = Stamp.code
    made = Stamp.made
    changed: dt.datetime
    turn = Stamp.turn
    rank = Stamp.rank
    notes = Stamp.notes
    tags = Stamp.tags


def test_members_are_those_of_a_dataclass() -> None:
    shape = NewAuthor(name="Ann", password="secret")
    assert (shape.name, shape.age, shape.nickname) == ("Ann", None, "")
    assert repr(shape) == "NewAuthor(name='Ann', age=None, password=***, nickname='')"
    assert shape == NewAuthor(name="Ann", password="secret")
    assert shape != NewAuthor(name="Bob", password="secret")
    assert copy.copy(shape) == pickle.loads(pickle.dumps(shape)) == shape
    with pytest.raises(AttributeError, match=r"NewAuthor.id has no value: it was not given"):
        _ = shape.id
    with pytest.raises(TypeError, match="NewAuthor must have a value for 'name'"):
        NewAuthor(age=3)
    with pytest.raises(TypeError, match="NewAuthor has no member 'nam'"):
        NewAuthor(nam="x")
    assert LongAuthor(id=1, name="x", age=2).name == "x"
    assert str(AuthorOut.name == "x")  # the column itself, for queries


def test_defaults_are_those_of_the_columns_and_shared_by_nobody() -> None:
    first, second = StampShape(code="a"), StampShape(code="a")
    assert (first.notes, first.tags) == (["first"], {})
    first.notes.append("x")
    assert second.notes == ["first"]
    for name in ("made", "changed", "turn", "rank"):
        assert not hasattr(first, name)
    # a key that exists is not changed, and one that a request chooses is given once
    assert set(StampShape.plan_rows().columns) == {field.name for field in Stamp._meta.columns}
    assert StampShape.__changeable__ == {"rank", "notes", "tags"}


async def test_assign_sets_what_was_given_of_the_columns(db: Any, half: Any) -> None:
    author = Author()
    assert author.assign(NewAuthor(id=9, name="Ann", nickname="A", password="p")) == [
        *("name", "password")
    ]
    await half(author).save()
    assert (author.pk != 9, author.name, author.password) == (True, "Ann", "p")
    assert author.assign(NewAuthor(name="Eve", password="p"), fields=["name"]) == ["name"]
    with pytest.raises(FieldValueError, match="takes a str, not int"):
        author.assign(NewAuthor(name=3, password="new"))
    assert (author.name, author.password) == ("Eve", "p")
    await acreate_all(Stamp)
    await Stamp.objects.all().adelete()
    stamp = Stamp()
    given = StampShape(code="abc", rank=3, turn=8)
    assert stamp.assign(given) == ["code", "rank"]
    with pytest.raises(FieldValueError, match="code: longer than 3 characters"):
        stamp.assign(StampShape(code="abcd"))
    await half(stamp).save()
    with pytest.raises(FieldValueError, match="is the key, which cannot be changed"):
        stamp.assign(StampShape(code="b"))
    stored: Any = await half(Author.objects).get(pk=author.pk)
    assert stored.name == "Ann"


def test_assign_sets_a_default_of_the_shapes_own() -> None:
    class Renamed(NewAuthor):
        """A column with a type and a default of the shape's own."""

        age: int = 30

    older: Any = type("Older", (Renamed,), {"age": Author.age})
    author = Author()
    assert author.assign(Renamed(name="Ann", password="p")) == ["name", "age", "password"]
    assert author.age == 30
    assert author.assign(Renamed(name="Ann", password="p", age=31), fields=["age"]) == ["age"]
    assert author.age == 31
    assert author.assign(older(name="Ann", password="p")) == ["name", "password"]


class TagOut(Shape):
    """A row of many."""

    name = Tag.name


class PostOut(Shape):
    """A row with related rows, a property, and an annotation of the query."""

    id = Post.id
    title = Post.title
    author: AuthorOut
    tags: list[TagOut]
    n: int = 0


class AuthorPosts(Shape):
    """The way back, and a chain of relations."""

    name = Author.name
    password = Author.password
    posts: list[PostOut]
    country: CountryOut | None


class CountryOut(Shape):
    """A row that may be missing."""

    id = Country.id
    name = Country.name


class PostList(FilterSet):
    """A list of posts."""

    model = Post
    fields = {"title": ["exact"]}  # noqa: RUF012 - read-only by contract
    ordering = ("title",)


@dataclass
class Titled:
    """A dataclass of the same rows, with a shape in it."""

    author: AuthorOut


class Loud(Model):
    """A row with a property."""

    name = fields.CharField(max_length=9)
    size = fields.IntegerField(default=3)

    @property
    def label(self) -> str:
        """Two columns as one text."""
        return f"{self.name} {self.size}"


class LoudOut(Shape):
    """The property, without the columns that it reads."""

    id = Loud.id
    label: str


async def test_a_property_reads_the_whole_row(db: Any, half: Any) -> None:
    await acreate_all(Loud)
    row = await half(Loud.objects).create(name="x")
    with record_queries() as seen:
        found = [LoudOut.of(each) async for each in Loud.objects.only(LoudOut) if each == row]
    assert (found, len(seen)) == ([LoudOut(id=row.pk, label="x 3")], 1)


async def test_a_shape_loads_what_a_changed_row_lacks(db: Any) -> None:
    ann, bob = [await Author.objects.acreate(name=name) for name in ("Ann", "Bob")]
    made = await Post.objects.acreate(title="a", author_id=ann.pk)
    with pytest.raises(NotLoaded):
        PostOut.of(made)
    expected = PostOut(id=made.pk, title="a", author=AuthorOut.of(ann), tags=[])
    assert await PostOut.aof(made) == expected
    with record_queries() as seen:
        post = await Post.objects.only(PostOut).aget(pk=made.pk)
        assert await PostOut.aof(post) == expected
        count = len(seen)
        assert post.assign({"author_id": bob.pk}, fields=["author_id"]) == ["author_id"]
        assert (await PostOut.aof(post)).author == AuthorOut.of(bob)
        assert len(seen) == count + 1
    lyra = await Country.objects.acreate(name="Lyra")
    ann.country = lyra
    assert (await AuthorPosts.aof(ann)).country == CountryOut.of(lyra)
    assert (await AuthorPosts.aof(bob)).posts == []


async def test_only_reads_the_columns_of_a_shape(db: Any, half: Any) -> None:
    lyra = await half(Country.objects).create(name="Lyra")
    ann = await half(Author.objects).create(name="Ann", age=3, country=lyra, password="p")
    bob = await half(Author.objects).create(name="Bob")
    red = await half(Tag.objects).create(name="red")
    for title in ("a", "b"):
        post = await half(Post.objects).create(title=title, author=ann)
        await half(post.tags).add(red)
    expected = [
        PostOut(id=post.pk - 1, title="a", author=AuthorOut.of(ann), tags=[TagOut(name="red")]),
        PostOut(id=post.pk, title="b", author=AuthorOut.of(ann), tags=[TagOut(name="red")]),
    ]
    with record_queries() as seen:
        query = Post.objects.order_by("id").only(PostOut).raiseload()
        found = [row async for row in query]
        assert [PostOut.of(row) for row in found] == expected
    assert len(seen) == 2  # the rows with their author, and the tags of all
    assert "views" not in seen.events[0].sql
    assert "age" not in seen.events[0].sql
    counted = Post.objects.filter(title="a").annotate(n=Count("tags")).only(PostOut)
    assert [PostOut.of(row).n async for row in counted] == [1]
    authors = [AuthorPosts.of(row) async for row in Author.objects.order_by("id").only(AuthorPosts)]
    authors[0].posts.sort(key=lambda post: post.title)
    assert authors == [
        AuthorPosts(name="Ann", password="p", posts=expected, country=CountryOut.of(lyra)),
        AuthorPosts(name="Bob", password=None, posts=[], country=None),
    ]
    page = await PostList({"order": "title", "limit": "1"}).apage(PostOut)
    assert page.items == expected[:1]
    page = await PostList({"after": page.next, "order": "title"}).apage(PostOut)
    assert page.items == expected[1:]
    titled = (await PostList({"title": "a"}).apage(Titled)).items
    assert titled == [Titled(author=AuthorOut.of(ann))]
    assert AuthorOut.of(bob) == AuthorOut(id=bob.pk, name="Bob")


class NoShape(Shape):
    """A relation without a shape."""

    title = Post.title
    author: str


class Nameless(Shape):
    """No column that names a model."""

    title: str


class Within(Shape):
    """The rows of a row, and the row of those."""

    id = Author.id
    posts: list[Around]


class Around(Shape):
    """The other side."""

    id = Post.id
    author: Within


async def test_a_shape_of_any_depth_is_not_loaded(db: Any) -> None:
    ann = await Author.objects.acreate(name="Ann")
    with pytest.raises(
        FieldError, match=r"Around contains itself, and aof\(\) reads no rows to any"
    ):
        await Around.aof(ann)


def test_only_refuses_other_classes() -> None:
    queries: list[tuple[Any, str]] = [
        ((TagOut,), "cannot be used in a query of Post; start at Post"),
        ((PostOut, "title"), "takes names and columns, or one shape, got PostOut"),
        ((int,), "takes names and columns, or one shape, got int"),
        ((NoShape,), "NoShape.author must be a shape of Author, got <class 'str'>"),
        ((Around,), "Around contains itself, and only() reads no rows to any depth"),
        ((Nameless,), "Nameless must have a column, which names its model"),
    ]
    for given, message in queries:
        with pytest.raises(FieldError, match=re.escape(message)):
            Post.objects.only(*given)


class Base(Model):
    """An abstract model."""

    name = fields.CharField(max_length=3)

    class Meta:
        abstract = True


class Leaf(Base):
    """A model of it."""

    size = fields.IntegerField()


class Pair(Model):
    """A key of two columns."""

    pk = CompositePrimaryKey("left", "right")
    left = fields.IntegerField()
    right = fields.IntegerField()


def make_shape(**body: Any) -> Any:
    return type("Made", (Shape,), {"__module__": __name__, **body})


def test_columns_of_an_abstract_base_are_those_of_the_model() -> None:
    assert set(make_shape(name=Base.name, size=Leaf.size).__changeable__) == {"name", "size"}
    assert make_shape(left=Pair.left, right=Pair.right).__changeable__ == frozenset()


REFUSED: list[tuple[Callable[[], Any], str]] = [
    (lambda: {"author": Post.author}, "annotate author: S with a shape of the related row"),
    (lambda: {"tags": Post.tags}, r"annotate tags: list\[S\] with a shape of the related rows"),
    (lambda: {"author": AuthorOut}, "annotate it, author: AuthorOut"),
    (lambda: {"name": fields.TextField()}, "take a column of a model, such as Book.title"),
    (lambda: {"label": Post.title}, "Made.label cannot be a member; name it 'title'"),
    (lambda: {"name": Post.author.to.name}, "annotate author: S with a shape of the related row"),
    (lambda: {"title": Post.title, "name": Tag.name}, "columns of one model, got"),
]


@pytest.mark.parametrize(("body", "message"), REFUSED)
def test_other_members_are_refused(body: Callable[[], Any], message: str) -> None:
    with pytest.raises(FieldError, match=message):
        make_shape(**body())
