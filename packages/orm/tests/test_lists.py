"""Lists: what a request asks for, held against Python over the rows, and what it may not ask."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import datetime as dt
import decimal
import inspect
import json
import os
import random
import uuid
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypedDict, cast, get_args

import pytest
from orm_models import (
    Author,
    Color,
    Comment,
    Country,
    Everything,
    Order,
    Post,
    Profile,
    Tag,
)

from treefold_orm import (
    ConfigurationError,
    Count,
    F,
    FieldError,
    FilterSet,
    InvalidParameter,
    Page,
    record_queries,
)
from treefold_orm._lists.cursors import CursorSeal
from treefold_orm._lists.index_findings import find_unindexed
from treefold_orm._lists.page_results import MAX_LINK, PageResult
from treefold_orm._lists.parameters import find_parameter_function

CASES = int(os.environ.get("TREEFOLD_LIST_CASES", "100"))
SEAL = CursorSeal([b"a secret of thirty-two bytes, no less"])


class Posts(FilterSet):
    """What a request may ask of posts: columns with ties and NULLs, and related rows."""

    model = Post
    fields = {  # noqa: RUF012 - read-only by contract
        "title": ["exact", "icontains", "in", "gt"],
        "views": ["exact", "gte", "lt", "in", "range"],
        "editor": ["isnull", "in"],
        "editor__name": ["exact", "in"],
        "author__age": ["gte", "isnull"],
        "tags__name": ["exact", "in"],
        "comments__likes": ["gte"],
    }
    names = {"editor_name": "editor__name", "tag": "tags__name"}  # noqa: RUF012 - as above
    ordering = ("title", "views", "editor__name", "author__age", "author__country__name", "id")
    page_size = 7
    max_page_size = 20
    total = True


class Row(TypedDict):
    """The key of a post, which tells where it is."""

    id: int


class Known(NamedTuple):
    """A post as Python knows it."""

    id: int
    title: str
    views: int
    editor: int | None
    editor_name: str | None
    age: int | None
    country: str | None
    tags: frozenset[str]
    likes: tuple[int, ...]


async def fill_posts(chance: random.Random) -> list[Known]:
    """Write posts with ties and NULLs everywhere; return what was written."""
    countries = [await Country.objects.acreate(name=name) for name in "xyz"]
    authors = [
        await Author.objects.acreate(
            name=chance.choice(["ann", "bob", "cy"]),
            age=chance.choice([None, 30, 40]),
            country=chance.choice([None, *countries]),
        )
        for _ in range(6)
    ]
    tags = [await Tag.objects.acreate(name=name) for name in ("red", "green", "blue")]
    found: list[Known] = []
    for _ in range(30):
        author, editor = chance.choice(authors), chance.choice([None, *authors])
        title = chance.choice(["ants", "Bees", "bees", "cats, big", "d%d"])
        views = chance.randrange(5)
        post = await Post.objects.acreate(title=title, views=views, author=author, editor=editor)
        own = chance.sample(tags, chance.randrange(3))
        await post.tags.aadd(*own)
        likes = tuple(chance.randrange(3) for _ in range(chance.randrange(3)))
        for each in likes:
            await Comment.objects.acreate(post=post, text="", likes=each)
        country = None if author.country is None else author.country.name
        found.append(
            Known(
                *(post.pk, title, views, None if editor is None else editor.pk),
                *(None if editor is None else editor.name, author.age, country),
                *(frozenset(tag.name for tag in own), likes),
            )
        )
    return found


_Test = Callable[[Known], bool]


def draw_filters(chance: random.Random) -> tuple[dict[str, Any], list[_Test]]:
    """Some filters with typed values, and the same as tests of a row."""
    number, text = chance.randrange(5), chance.choice(["ants", "Bees", "bees", "zebra"])
    texts, numbers = chance.sample(["ants", "bees", "d%d"], 2), chance.sample(range(5), 2)
    low, high = sorted(numbers)
    editors = chance.sample(range(1, 7), 3)
    names, flag = chance.sample(["ann", "bob", "cy"], 2), chance.random() < 0.5
    tag, tags = chance.choice(["red", "green"]), chance.sample(["red", "green", "blue"], 2)
    known: list[tuple[str, Any, _Test]] = [
        ("title", text, lambda r: r.title == text),
        ("title__icontains", "EE", lambda r: "ee" in r.title.lower()),
        ("title__icontains", "%", lambda r: "%" in r.title),
        ("title__in", texts, lambda r: r.title in texts),
        ("title__gt", "bees", lambda r: r.title > "bees"),
        ("views", number, lambda r: r.views == number),
        ("views__gte", number, lambda r: r.views >= number),
        ("views__lt", number, lambda r: r.views < number),
        ("views__in", numbers, lambda r: r.views in numbers),
        ("views__range", [low, high], lambda r: low <= r.views <= high),
        ("editor__isnull", flag, lambda r: (r.editor is None) is flag),
        ("editor__in", editors, lambda r: r.editor in editors),
        ("editor_name", names[0], lambda r: r.editor_name == names[0]),
        ("editor_name__in", names, lambda r: r.editor_name in names),
        ("author__age__gte", 35, lambda r: r.age is not None and r.age >= 35),
        ("author__age__isnull", flag, lambda r: (r.age is None) is flag),
        ("tag", tag, lambda r: tag in r.tags),
        ("tag__in", tags, lambda r: not r.tags.isdisjoint(tags)),
        ("comments__likes__gte", 1, lambda r: any(each >= 1 for each in r.likes)),
    ]
    chosen = chance.sample(known, chance.choice([0, 0, 1, 1, 2]))
    values = {name: value for name, value, _ in chosen}
    # of two with one name the last is sent; and two about tags must hold for one of them
    tests = [test for name, value, test in chosen if values[name] is value]
    if {"tag", "tag__in"} <= values.keys():
        tests.append(lambda r: tag in tags and tag in r.tags)
    return values, tests


_KEYS: dict[str, Callable[[Known], Any]] = {
    "title": lambda r: r.title,
    "views": lambda r: r.views,
    "editor__name": lambda r: r.editor_name,
    "author__age": lambda r: r.age,
    "author__country__name": lambda r: r.country,
    "id": lambda r: r.id,
}


def sort_rows(rows: Sequence[Known], order: Sequence[str]) -> list[int]:
    """The keys of rows in an order: NULL is the largest value, and the key decides between equal
    rows, in the direction of the last term.
    """
    found = sorted(rows, key=lambda r: r.id, reverse=bool(order) and order[-1].startswith("-"))
    for term in reversed(order):
        read = _KEYS[term.removeprefix("-")]
        found.sort(
            key=lambda r, read=read: (read(r) is None, "" if read(r) is None else read(r)),
            reverse=term.startswith("-"),  # equal rows keep their order all the same
        )
    return [row.id for row in found]


def as_texts(values: dict[str, Any]) -> dict[str, Any]:
    """The values as a query string has them."""
    texts: dict[str, Any] = {}
    for name, value in values.items():
        if isinstance(value, bool):
            texts[name] = str(value).lower()
        elif isinstance(value, list):
            items = [str(each) for each in cast("list[object]", value)]
            texts[name] = items if len(items) % 2 else ",".join(items)
        else:
            texts[name] = str(value)
    return texts


async def test_random_lists_agree_with_python_over_the_rows(db: Any, engine: str) -> None:
    chance = random.Random(f"{engine} {CASES}")
    rows = await fill_posts(chance)
    make = find_parameter_function(Posts, SEAL)
    for case in range(CASES):
        values, tests = draw_filters(chance)
        names = chance.sample(list(_KEYS), chance.randrange(4))
        order = [chance.choice(["", "-"]) + name for name in names]
        if order:
            values["order"] = order
        values["limit"] = chance.randint(1, 20)
        wanted = sort_rows([row for row in rows if all(test(row) for test in tests)], order)

        async def fetch_page(
            values: dict[str, Any] = values, case: int = case, **at: str
        ) -> Page[Row]:
            typed = case % 2 == 0
            shelf = make(**values, **at) if typed else Posts({**as_texts(values), **at}, seal=SEAL)
            if case % 4 < 2:
                return await shelf.apage(Row)
            return await asyncio.to_thread(shelf.page, Row)

        page = await fetch_page()
        found = [row["id"] for row in page.items]
        assert page.previous is None, values
        while page.next is not None:
            page = await fetch_page(after=page.next)
            assert page.items, values
            found += [row["id"] for row in page.items]
        assert found == wanted, (values, found, wanted)
        assert page.total == len(wanted), values
        back = [row["id"] for row in page.items]
        while page.previous is not None:
            page = await fetch_page(before=page.previous)
            back = [row["id"] for row in page.items] + back
        assert back == wanted, values


async def test_pages_beside_a_writer_repeat_and_lose_no_row(db: Any, engine: str) -> None:
    chance = random.Random(engine)
    author = await Author.objects.acreate(name="ann")
    there = [
        await Post.objects.acreate(title="t", views=chance.randrange(4), author=author)
        for _ in range(60)
    ]
    others = [await Post.objects.acreate(title="x", views=9, author=author) for _ in range(20)]

    async def write_rows() -> None:
        await Post.objects.acreate(title="new", views=chance.randrange(4), author=author)
        if others:
            await others.pop().adelete()

    async def read_all(order: str) -> list[int]:
        asked: dict[str, Any] = {"order": [order], "limit": 5}
        found: list[int] = []
        page = await find_parameter_function(Posts, SEAL)(**asked).apage(Row)
        while True:
            found += [row["id"] for row in page.items]
            if page.next is None:
                return found
            shelf = find_parameter_function(Posts, SEAL)(**asked, after=page.next)
            page, _ = await asyncio.gather(shelf.apage(Row), write_rows())

    walks = [await read_all("views"), await read_all("-views")]
    for found in walks:
        assert len(set(found)) == len(found)
        assert {post.pk for post in there} <= set(found)


# -- cursors --------------------------------------------------------------------------------------


def encode_plain(*parts: Any) -> str:
    """A cursor of `keyset()` with these parts."""
    return base64.urlsafe_b64encode(json.dumps(parts).encode()).decode().rstrip("=")


FOREIGN: dict[str, Callable[[str], str]] = {
    "no signature": lambda signed: signed.rpartition(".")[0],
    "an empty signature": lambda signed: signed.rpartition(".")[0] + ".",
    "another signature": lambda signed: signed[:-2] + ("AA" if signed[-2:] != "AA" else "BB"),
    "another row": lambda signed: encode_plain("00000000", 1, 1) + "." + signed.rpartition(".")[2],
    "nothing": lambda _: "",
    "a dot": lambda _: ".",
    "no ASCII": lambda signed: f"{signed}é\ud800",
    "a longer one": lambda signed: f"{signed}A",
    "many dots": lambda _: "." * 70_000,
}


@pytest.mark.parametrize("way", FOREIGN)
@pytest.mark.parametrize("name", ["after", "before"])
async def test_a_forged_cursor_is_refused(way: str, name: str) -> None:
    with pytest.raises(InvalidParameter, match="is not a cursor of this list") as error:
        Posts({name: FOREIGN[way](SEAL.sign_cursor(encode_plain("x", 1), ("a",)))}, seal=SEAL).page(
            Row
        )
    assert error.value.field == name


class Others(Posts):
    """Another list of the same model."""


async def test_a_cursor_belongs_to_its_list(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="ann")
    await half(Post.objects).bulk_create(
        [Post(title=f"t{n % 3}", views=n, author=author) for n in range(9)]
    )
    asked = {"order": "-title", "views__gte": "1", "limit": "2"}
    page = await half(Posts(asked, seal=SEAL)).page(Row)
    follow: Any = {**asked, "after": page.next}
    newer = CursorSeal([b"n" * 32, b"a secret of thirty-two bytes, no less"])
    for seal in (SEAL, newer):  # the former secret still counts
        second = await half(Posts({**follow, "limit": "3"}, seal=seal)).page(Row)
        assert len(second.items) == 3

    other: dict[str, tuple[type[Posts], dict[str, str], CursorSeal | None]] = {
        "order": (Posts, {"order": "title"}, SEAL),
        "no order": (Posts, {"order": ""}, SEAL),
        "value": (Posts, {"views__gte": "2"}, SEAL),
        "filter": (Posts, {"title": "t1"}, SEAL),
        "class": (Others, {}, SEAL),
        "secret": (Posts, {}, CursorSeal([b"n" * 32])),
        "order without a seal": (Posts, {"order": "title"}, None),
    }
    for kind, changed, seal in other.values():
        with pytest.raises(InvalidParameter, match="'after' is not a cursor of this list"):
            await half(kind({**follow, **changed}, seal=seal)).page(Row)
    with pytest.raises(InvalidParameter, match="'before' cannot be given beside 'after'"):
        await half(Posts({**follow, "before": page.next}, seal=SEAL)).page(Row)
    with pytest.raises(InvalidParameter, match="'after' is given more than once"):
        await half(Posts({**asked, "after": [page.next, page.next]}, seal=SEAL)).page(Row)
    # without an application there is no secret
    plain = await half(Posts(asked)).page(Row)
    rest = await half(Posts({**asked, "after": plain.next})).page(Row)
    assert [row["id"] for row in rest.items] == [row["id"] for row in second.items[:2]]


def test_a_short_secret_signs_no_cursor() -> None:
    with pytest.raises(ConfigurationError, match="at least 32 bytes, got 31"):
        CursorSeal([b"s" * 31])


# -- what is asked for ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"page": "2"}, "'page' is not known here: use limit, after and before"),
        ({"page_size": "2"}, "'page_size' is not known here"),
        ({"limit": "0"}, "'limit' takes a whole number of at least 1"),
        ({"limit": "²"}, "'limit' takes a whole number"),
        ({"limit": "21"}, "'limit' is at most 20"),
        ({"views__range": "1"}, "'views__range' takes two values"),
        ({"views__range": ["1", "2", "3"]}, "takes two values"),
        ({"views__in": ",".join("1" * 101)}, "takes at most 100 values"),
        ({"title": "a\0"}, "contains a NUL"),
        ({"views": "9" * 30}, "takes a whole number"),
        ({"editor__isnull": "perhaps"}, "takes true or false"),
        ({"order": "body"}, "'body' cannot order this"),
        ({"titel": "x"}, "is not a parameter of Posts"),
    ],
)
def test_a_page_refuses_what_is_not_declared(data: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidParameter, match=message):
        Posts(data).page(Row)


def test_slices_and_pages_do_not_mix() -> None:
    for name in ("limit", "after", "before"):
        with pytest.raises(InvalidParameter, match=f"'{name}' is not known here: use page and"):
            Posts({name: "1"}).apply()
    assert Posts({"page": "3", "page_size": "10"}).slice_bounds() == (20, 10)


# -- shapes ---------------------------------------------------------------------------------------


class AuthorOut(TypedDict):
    """A related row."""

    name: str


@dataclasses.dataclass
class CommentOut:
    """One of many related rows."""

    text: str


@dataclasses.dataclass
class PostOut:
    """Columns, one row, many rows, and a member that no row has."""

    id: int
    title: str
    author_id: int
    author: AuthorOut
    editor: AuthorOut | None
    comments: list[CommentOut]
    note: str = "-"


class Counted(TypedDict):
    """An annotation beside a column."""

    title: str
    replies: int


async def test_a_page_reads_the_columns_of_its_shape(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="ann", password="secret")
    post = await half(Post.objects).create(title="t", body="long", author=ann)
    await half(Post.objects).create(title="u", author=ann, editor=ann)
    for text in "ab":
        await half(Comment.objects).create(post=post, text=text)
    with record_queries() as queries:
        page = await half(Posts({})).page(PostOut)
    author: AuthorOut = {"name": "ann"}
    comments = [CommentOut("a"), CommentOut("b")]
    assert page.items == [
        PostOut(post.pk, "t", ann.pk, author, None, comments),
        PostOut(post.pk + 1, "u", ann.pk, author, author, []),
    ]
    assert page.total == 2
    texts = [event.sql for event in queries.events]
    # the rows, their number, and one for each relation
    assert len(texts) == 5
    for hidden in ('"body"', '"password"', '"likes"', '"age"'):
        assert not any(hidden in text for text in texts), hidden

    query = Post.objects.annotate(replies=Count("comments")).alias(hidden=F("views"))
    counted = await half(Posts({"order": "views"})).page(Counted, query)
    assert counted.items == [{"title": "t", "replies": 2}, {"title": "u", "replies": 0}]
    mine = await half(Posts({})).page(Row, Post.objects.filter(title="u").order_by("-title"))
    assert [row["id"] for row in mine.items] == [post.pk + 1]


class Site(TypedDict):
    """One row the other way."""

    site: str | None


class WithProfile(TypedDict):
    """A reverse relation to one row, which may be missing."""

    name: str
    profile: Site | None


class Authors(FilterSet):
    """A model with a row the other way, in the order of its Meta."""

    model = Author


async def test_a_row_that_is_missing_the_other_way_is_none(db: Any, half: Any) -> None:
    bob = await half(Author.objects).create(name="bob")
    await half(Author.objects).create(name="ann")
    await half(Profile.objects).create(author=bob, site="http://b.example")
    page = await half(Authors({})).page(WithProfile)
    assert page.items == [
        {"name": "ann", "profile": None},
        {"name": "bob", "profile": {"site": "http://b.example"}},
    ]


@dataclasses.dataclass
class Around:
    """A post of an author, with the posts of that author."""

    author: AuthorAround


@dataclasses.dataclass
class AuthorAround:
    posts: list[Around]


def build_shape(**members: Any) -> Any:
    return dataclasses.make_dataclass("Wrong", members.items())


@pytest.mark.parametrize(
    ("shape", "message"),
    [
        (build_shape(titel=str), "Wrong does not fit: Post has no field 'titel': did you mean"),
        (build_shape(author=str), "Wrong.author must have a shape as its type.*'author_id'"),
        (build_shape(comments=list[str]), "Wrong.comments must have a shape as its type"),
        (build_shape(title="Nowhere"), "The types of Wrong cannot be read"),
        (Around, "Around contains itself, and a page reads no rows to any depth"),
        (str, "takes a dataclass, TypedDict, struct or model as its shape"),
        (Post, "takes a dataclass, TypedDict, struct or model as its shape"),
        (list[Row], "takes a dataclass, TypedDict, struct or model as its shape"),
    ],
)
def test_a_shape_that_rows_do_not_have_is_refused(shape: Any, message: str) -> None:
    with pytest.raises(FieldError, match=message):
        Posts({}).page(shape)


# -- parameters -----------------------------------------------------------------------------------


class Anything(FilterSet):
    """A filter on a field of every type."""

    model = Everything
    fields = {
        name: ["exact", "in"]
        for name in (
            *("integer", "big", "flag", "real", "money", "char", "uid", "day", "time", "moment"),
            *("span", "color", "status"),
        )
    } | {"char": ["exact", "in", "icontains", "isnull", "range"], "moment__year": ["gte"]}
    ordering = ("char",)
    ignore = FilterSet.ignore | {"theme"}


def read_signature(kind: type[FilterSet]) -> dict[str, tuple[Any, Any]]:
    """The type and the default of each parameter."""
    parameters = inspect.signature(find_parameter_function(kind, SEAL)).parameters.values()
    assert {p.kind for p in parameters} == {inspect.Parameter.KEYWORD_ONLY}
    return {
        p.name: (get_args(p.annotation)[0] if p.name != "theme" else p.annotation, p.default)
        for p in parameters
    }


def test_parameters_have_the_types_of_their_fields() -> None:
    found = read_signature(Anything)
    types: dict[str, Any] = {
        "integer": int,
        "big": int,
        "flag": bool,
        "real": float,
        "money": decimal.Decimal,
        "char": str,
        "uid": uuid.UUID,
        "day": dt.date,
        "time": dt.time,
        "moment": dt.datetime,
        "span": dt.timedelta,
        "color": Color,
        "status": Literal["a", "b"],
    }
    for name, kind in types.items():
        assert found.pop(name) == (kind | None, None), name
        assert found.pop(f"{name}__in") == (list[kind] | None, None), name
    assert found == {
        "char__icontains": (str | None, None),
        "char__isnull": (bool | None, None),
        "char__range": (list[str] | None, None),
        "moment__year__gte": (int | None, None),
        "theme": (str | None, None),
        "order": (list[Literal["char", "-char"]] | None, None),
        "limit": (int, 50),
        "after": (str | None, None),
        "before": (str | None, None),
    }
    assert find_parameter_function(Anything, SEAL) is find_parameter_function(Anything, SEAL)


def test_typed_values_are_checked_by_their_fields() -> None:
    make = find_parameter_function(Anything, SEAL)
    for values, message in (
        ({"integer": 2**40}, "'integer'"),
        ({"char": "a\0"}, "contains a NUL"),
        ({"moment": dt.datetime(2026, 1, 1)}, "takes an aware datetime"),
        ({"money": decimal.Decimal("1e30")}, "'money'"),
        ({"limit": 101}, "'limit' is at most 100"),
        ({"after": ""}, "'after' is not a cursor"),
    ):
        with pytest.raises(InvalidParameter, match=message):
            make(**values).page(Row)


async def test_an_export_has_all_rows_in_the_order_of_the_list(db: Any) -> None:
    ann, bob = [await Author.objects.acreate(name=name, age=3) for name in ("Ann", "Bob")]
    for title, author in (("a", ann), ("b", bob), ("c", ann), ("d", None)):
        await Post.objects.acreate(title=title, author=author or ann, views=len(title))
    asked = Posts({"title__in": "a,b,c", "order": "-author__age,-title", "limit": "1"})
    found = [post.title async for post in asked.rows(Post.objects.filter(author=ann))]
    assert found == ["c", "a"]
    unordered = Posts({"limit": "1"}).rows(Post.objects.order_by("-title"))
    assert [post.title async for post in unordered] == ["d", "c", "b", "a"]
    with pytest.raises(InvalidParameter):
        Posts({"order": "text"}).rows(Post.objects.all())


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("integer", 3, "3"),
        ("flag", False, "false"),
        ("char__isnull", True, "true"),
        ("real", 0.1, "0.1"),
        ("money", decimal.Decimal("9.50"), "9.50"),
        ("char", "a,b", "a,b"),
        ("uid", uuid.UUID(int=7), str(uuid.UUID(int=7))),
        ("day", dt.date(2026, 1, 2), "2026-01-02"),
        ("time", dt.time(3, 4), "03:04:00"),
        ("moment", dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00+00:00"),
        ("span", dt.timedelta(minutes=1.5), "90.0"),
        ("color", Color.RED, Color.RED.value),
        ("status", "a", "a"),
    ],
)
def test_a_list_as_json_asks_for_the_same_rows(name: str, value: Any, text: str) -> None:
    make = find_parameter_function(Anything, SEAL)
    asked = make(**{name: value}, order=["-char"], limit=3)
    kept = asked.as_json()
    assert kept == {name: [text], "order": ["-char"]}
    again = Anything(json.loads(json.dumps(kept)))
    assert again._collect_lookups() == asked._collect_lookups()
    assert (again.order(), again.as_json()) == (["-char"], kept)


def test_a_list_as_json_has_several_values_and_no_wrong_one() -> None:
    kept = Anything({"status__in": "a,b", "theme": "dark", "after": "x"}).as_json()
    assert kept == {"status__in": ["a", "b"]}
    assert Anything(kept)._collect_lookups() == {"status__in": ["a", "b"]}
    for wrong in ({"integer": "many"}, {"order": "text"}):
        with pytest.raises(InvalidParameter):
            Anything(wrong).as_json()


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"fields": {"title": ["exact"]}, "names": {"class": "title"}}, "'class' cannot be"),
        ({"fields": {"title": ["exact"]}, "names": {"a-b": "title"}}, "'a-b' cannot be a param"),
        ({"fields": {"title": ["exact"]}, "names": {"limit": "title"}}, "have a filter 'limit'"),
        ({"fields": {"title": ["exact"]}, "names": {"order": "title"}}, "have a filter 'order'"),
        ({"ordering": ("tags__name",)}, "'tags__name', which leads to many rows"),
    ],
)
def test_a_list_that_cannot_be_a_parameter_is_refused_at_boot(
    attributes: dict[str, Any], message: str
) -> None:
    kind: Any = type("Wrong", (FilterSet,), {"model": Post, **attributes})
    with pytest.raises(FieldError, match=message):
        find_parameter_function(kind, SEAL)


async def test_a_link_leads_to_the_pages_around_this_one(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="ann")
    for _ in range(3):
        await half(Post.objects).create(title="t", author=ann)
    form = PageResult(Page[Row])
    first = await half(Posts({"limit": "1"})).page(Row)
    middle = await half(Posts({"limit": "1", "after": first.next})).page(Row)
    query = [("title", "a&b"), ("after", "old"), ("limit", "1")]
    assert form.build_fields(middle, query) == {
        "Link": f'<?title=a%26b&limit=1&after={middle.next}>; rel="next", '
        f'<?title=a%26b&limit=1&before={middle.previous}>; rel="prev"'
    }
    assert form.build_fields(first, [("q", "x" * MAX_LINK)]) == {}
    # a page of keyset() may have other parameters, and any other result has no pages
    assert form.build_fields(await half(Post.objects).keyset(1), query) == {}
    assert form.build_fields({"items": []}, query) == {}


class Orders(FilterSet):
    """A model with every kind of index, and columns without."""

    model = Order
    fields = {  # noqa: RUF012 - read-only by contract
        "id": ["exact"],
        "total": ["gte", "range"],
        "shop": ["exact", "in", "icontains"],
        "number": ["exact"],
        "paid": ["exact"],
        "version": ["isnull"],
    }
    ordering = ("total", "number", "id", "paid")


class Indexed(Posts):
    """Related rows, of which two names are accepted as they are."""

    unindexed = ("title__icontains", "views", "title")


def test_filters_and_orders_without_an_index_are_named() -> None:
    found = [text for _, text in find_unindexed(Orders)]
    assert found == [
        # a unique constraint begins with the shop; that of the number holds for some rows only
        "No index serves the filter 'shop__icontains' of Orders: no index finds a part of a value;"
        " add one to Order, or name it in Orders.unindexed = ('shop__icontains',)",
        "No index serves the filter 'number' of Orders: no index begins with it; add one to Order,"
        " or name it in Orders.unindexed = ('number',)",
        *(
            f"No index serves the {what} of Orders: no index begins with it; add one to Order, or"
            f" name it in Orders.unindexed = ('{name}',)"
            for what, name in (
                ("filter 'paid'", "paid"),
                ("filter 'version__isnull'", "version__isnull"),
                ("order 'number'", "number"),
                ("order 'paid'", "paid"),
            )
        ),
    ]
    names = [text.split("'")[1] for _, text in find_unindexed(Indexed)]
    # a foreign key and a unique name have indexes; no order of another table has
    assert names == [
        *("title__in", "title__gt", "views__gte", "views__lt", "views__in", "views__range"),
        *("editor_name", "editor_name__in", "author__age__gte", "author__age__isnull"),
        *("comments__likes__gte", "editor__name", "author__age", "author__country__name"),
    ]


async def test_a_later_page_seeks_in_the_index_of_its_order(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="ann")
    await half(Post.objects).bulk_create(
        [Post(title="t", views=n % 3, author=author) for n in range(9)]
    )
    for order, sign in (("views", ">"), ("-views", "<")):
        page = await half(Post.objects.order_by(order)).keyset(4)
        with record_queries() as queries:
            await half(Post.objects.order_by(order)).keyset(4, after=page.next)
        (event,) = queries.events
        assert f'(t0."views", t0."id") {sign} (' in event.sql
