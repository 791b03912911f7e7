"""Latest and earliest rows, the dates there are, the first row of each, and rows of one's own."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st
from orm_library import library
from orm_models import Author, Comment, Country, Everything, Post

from treefold_orm import (
    Concat,
    Count,
    FieldError,
    Length,
    Model,
    TaintedInput,
    Trunc,
    Value,
    acreate_all,
    create_all,
    fields,
    read_only,
)
from treefold_orm._fields.zones import truncate_in_zone

UTC = dt.UTC
BERLIN = zoneinfo.ZoneInfo("Europe/Berlin")


def at(*parts: int, zone: dt.tzinfo = UTC) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=zone)


# -- latest and earliest --------------------------------------------------------------------------


class Release(Model):
    """A model that says what its latest row is."""

    name = fields.CharField(max_length=20)
    day = fields.DateField(null=True)
    rank = fields.IntegerField(default=0)

    class Meta:
        get_latest_by = ("day", "-rank")


class Report(Model):
    """A model that says so with one name."""

    day = fields.DateField()

    class Meta:
        get_latest_by = "day"


async def releases(half: Any) -> None:
    await half.call(lambda: create_all(Release), lambda: acreate_all(Release))
    for name, day, rank in (("a", 1, 1), ("b", 3, 2), ("c", 3, 1), ("d", None, 9), ("e", 1, 2)):
        found = None if day is None else dt.date(2026, 1, day)
        await half(Release.objects).create(name=name, day=found, rank=rank)


async def test_latest_and_earliest_go_by_fields_or_by_the_model(empty: Any, half: Any) -> None:
    await releases(half)
    assert (await half(Release.objects).latest()).name == "c"
    assert (await half(Release.objects).earliest()).name == "e"
    assert (await half(Release.objects).latest("rank")).name == "d"
    assert (await half(Release.objects).latest("day", "rank")).name == "b"
    assert (await half(Release.objects).earliest("-day", "name")).name == "b"
    assert (await half(Release.objects.filter(rank=2)).earliest("day")).name == "e"
    assert await half(Release.objects.values_list("name", flat=True)).latest("rank") == "d"
    assert Report._meta.latest_by == ("day",)


async def test_latest_without_rows_or_sense_is_refused(empty: Any, half: Any) -> None:
    await releases(half)
    for query in (Release.objects.none(), Release.objects.filter(name="x")):
        for name in ("latest", "earliest"):
            with pytest.raises(Release.DoesNotExist, match="No Release matches the query"):
                await getattr(half(query), name)()
    with pytest.raises(FieldError, match=r"latest.. cannot follow a slice"):
        await half(Release.objects.all()[:3]).latest()
    with pytest.raises(FieldError, match="cannot follow union"):
        await half(Release.objects.union(Release.objects.all())).earliest("day")
    with pytest.raises(FieldError, match=r"needs a field, or Meta.get_latest_by in Author"):
        await half(Author.objects).latest()
    with pytest.raises(FieldError, match="has no field 'dya'"):
        await half(Release.objects).latest("dya")
    with pytest.raises(FieldError, match="sensitive"):
        await half(Author.objects).latest("password")


# -- dates and datetimes --------------------------------------------------------------------------


async def moments(half: Any) -> None:
    for number, moment in enumerate(
        [
            at(2026, 3, 28, 23, 30, 15, 999999),
            at(2026, 3, 29, 0, 59, 59),  # the night in which Berlin goes to summer time
            at(2026, 3, 29, 1, 0, 0, 1),
            at(2025, 12, 31, 23, 0),
            at(2026, 10, 25, 0, 30),  # the hour that comes twice
            at(2026, 10, 25, 1, 30),
            at(2026, 3, 28, 23, 30, 15, 1),
        ]
    ):
        await half(Everything.objects).create(integer=number, moment=moment, day=moment.date())
    await half(Everything.objects).create(integer=99)


async def test_dates_are_the_different_days_there_are(db: Any, half: Any) -> None:
    await moments(half)
    everything = Everything.objects.all()
    d = dt.date
    for query, wanted in (
        (everything.dates("day", "year"), [d(2025, 1, 1), d(2026, 1, 1)]),
        (everything.dates("day", "month", "DESC"), [d(2026, 10, 1), d(2026, 3, 1), d(2025, 12, 1)]),
        (everything.dates("day", "week"), [d(2025, 12, 29), d(2026, 3, 23), d(2026, 10, 19)]),
        (everything.filter(integer__lt=3).dates("day", "day"), [d(2026, 3, 28), d(2026, 3, 29)]),
        (everything.dates("day", "month")[1:2], [d(2026, 3, 1)]),
        (everything.none().dates("day", "day"), []),
        (everything.filter(integer=99).dates("day", "year"), []),
    ):
        assert await half.rows(query) == wanted
    assert await half(everything.dates("day", "month")).count() == 3


async def test_datetimes_are_cut_in_a_zone(db: Any, half: Any) -> None:
    await moments(half)
    everything = Everything.objects.all()
    early = everything.filter(integer__in=[0, 1, 2, 6])
    late = everything.filter(integer__in=[4, 5])
    fixed = dt.timezone(dt.timedelta(hours=-5, minutes=-30))
    tokyo = zoneinfo.ZoneInfo("Asia/Tokyo")
    for query, wanted in (
        (early.datetimes("moment", "day"), [at(2026, 3, 28), at(2026, 3, 29)]),
        (early.datetimes("moment", "day", tzinfo=BERLIN), [at(2026, 3, 29, zone=BERLIN)]),
        (early.datetimes("moment", "day", "DESC", tzinfo=tokyo), [at(2026, 3, 29, zone=tokyo)]),
        (
            early.datetimes("moment", "hour", tzinfo=BERLIN),
            [at(2026, 3, 28, 23), at(2026, 3, 29, 0), at(2026, 3, 29, 1)],
        ),
        (
            late.datetimes("moment", "hour", tzinfo=BERLIN),
            [at(2026, 10, 25, 0), at(2026, 10, 25, 1)],
        ),
        (late.datetimes("moment", "day", tzinfo=BERLIN), [at(2026, 10, 24, 22)]),
        (early.datetimes("moment", "day", tzinfo=fixed), [at(2026, 3, 28, zone=fixed)]),
        (
            everything.datetimes("moment", "year", tzinfo=BERLIN),
            [at(2026, 1, 1, zone=BERLIN)],
        ),
        (
            everything.datetimes("moment", "month", tzinfo=UTC),
            [at(2025, 12, 1), at(2026, 3, 1), at(2026, 10, 1)],
        ),
        (
            early.datetimes("moment", "second", tzinfo=fixed),
            [at(2026, 3, 28, 23, 30, 15), at(2026, 3, 29, 0, 59, 59), at(2026, 3, 29, 1)],
        ),
        (everything.none().datetimes("moment", "day", tzinfo=BERLIN), []),
    ):
        # in the hour that comes twice, Python takes datetimes of two zones for different always
        found = [moment.astimezone(UTC) for moment in await half.rows(query)]
        assert found == [moment.astimezone(UTC) for moment in wanted], query.explain_sql()
    (day,) = await half.rows(early.datetimes("moment", "day", tzinfo=BERLIN))
    assert (day.hour, day.day, day.utcoffset()) == (0, 29, dt.timedelta(hours=1))


async def test_a_cut_in_a_zone_groups_and_filters(db: Any, half: Any) -> None:
    await moments(half)
    by_day = (
        Everything.objects.filter(moment__isnull=False)
        .values(unit=Trunc("moment", "day", BERLIN))
        .annotate(n=Count("*"))
        .order_by("unit")
    )
    assert [row["n"] for row in await half.rows(by_day)] == [1, 4, 2]
    cut = Everything.objects.annotate(unit=Trunc("moment", "day", BERLIN))
    assert await half(cut.filter(unit=at(2026, 3, 28, 23))).count() == 4


async def test_groups_and_distinct_rows_by_an_expression_with_a_value(db: Any, half: Any) -> None:
    await library(half)
    named = Post.objects.values(x=Concat("author__name", Value("!")))
    counted = named.annotate(n=Count("*")).order_by("x")
    assert await half.rows(counted) == [{"x": "Ann!", "n": 3}, {"x": "Bob!", "n": 1}]
    assert await half.rows(named.distinct().order_by("x")) == [{"x": "Ann!"}, {"x": "Bob!"}]


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    st.datetimes(dt.datetime(1970, 1, 2), dt.datetime(2025, 1, 1)),  # noqa: DTZ001, RUF100 - made aware below
    st.sampled_from(["America/Sao_Paulo", "America/Havana", "Asia/Kathmandu", "Europe/Berlin"]),
    st.sampled_from(["year", "month", "week", "day", "hour", "minute", "second"]),
)
def test_sqlite_cuts_like_postgresql(admin: Any, moment: dt.datetime, zone: str, unit: str) -> None:
    text = moment.replace(tzinfo=UTC).isoformat(" ", "microseconds")
    sql = f"SELECT date_trunc('{unit}', '{text}'::timestamptz, '{zone}') AT TIME ZONE 'UTC'"  # noqa: S608, RUF100 - texts of this test
    wanted = admin.value(sql).replace(tzinfo=UTC)
    assert truncate_in_zone(unit, text, zone) == wanted.isoformat(" ", "microseconds")


DATES_REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda q: q.dates("moment", "day"), "dates.. takes a DateField, and 'moment' is none"),
    (lambda q: q.datetimes("day", "day"), "takes a DateTimeField, and 'day' is none"),
    (lambda q: q.dates("day__year", "day"), "takes a DateField"),
    (lambda q: q.dates("day", "hour"), "'hour' is not a unit of days"),
    (lambda q: q.datetimes("moment", "decade"), "unit must be one of .*, got 'decade'"),
    (lambda q: q.dates("day", "day", "asc"), "is not 'ASC' or 'DESC'"),
    (lambda q: q.dates("nothing", "day"), "has no field 'nothing'"),
    (lambda q: q.all()[:3].dates("day", "day"), "cannot follow a slice"),
    (lambda q: q.datetimes("moment", "day", tzinfo="UTC"), "takes a zoneinfo.ZoneInfo"),
    (
        lambda q: q.annotate(x=Trunc("day", "month", BERLIN)),
        "a tzinfo must be given a datetime",
    ),
    (
        lambda q: q.datetimes("moment", "day", tzinfo=dt.timezone(dt.timedelta(microseconds=1))),
        "not a whole number of seconds",
    ),
]


@pytest.mark.parametrize(("make", "words"), DATES_REFUSED, ids=range(len(DATES_REFUSED)))
def test_dates_of_something_else_are_refused(make: Any, words: str) -> None:
    with pytest.raises(FieldError, match=words):
        make(Everything.objects)


# -- the first row of each ------------------------------------------------------------------------


async def titles(half: Any, query: Any) -> list[str]:
    return [post.title for post in await half.rows(query)]


async def test_distinct_fields_take_the_first_row_of_each(db: Any, half: Any) -> None:
    await library(half)
    posts = Post.objects.all()
    first = posts.order_by("author", "-views", "title").distinct("author")
    assert await titles(half, first) == ["a2", "b1"]
    assert await titles(half, posts.distinct("author")) == ["a1", "b1"]
    assert await titles(half, posts.order_by("-author", "title").distinct("author")) == ["b1", "a1"]
    assert await titles(half, posts.order_by("views", "-title").distinct("views")) == [
        "a1",
        "b1",
        "a3",
    ]
    by_both = posts.order_by("views", "author", "-title").distinct("author", "views")
    assert await titles(half, by_both) == ["a1", "b1", "a3"]
    assert await titles(half, first[1:]) == ["b1"]
    assert await titles(half, first.filter(views__lt=10)) == ["a1", "b1"]
    assert await titles(half, first.select_related("author")) == ["a2", "b1"]
    assert await titles(half, posts.none().distinct("author")) == []
    over = posts.order_by("author__name", "-title").distinct("author__name")
    assert await titles(half, over) == ["a3", "b1"]
    long = posts.annotate(n=Length("title")).distinct("n")
    assert await titles(half, long) == ["a1"]
    flat = first.values_list("title", flat=True)
    assert await half.rows(flat) == ["a2", "b1"]


async def test_models_with_an_order_of_their_own_keep_it_within_each(db: Any, half: Any) -> None:
    for name, age in (("Cid", 30), ("Ann", 30), ("Bob", 50), ("Eve", None), ("Dan", None)):
        await half(Author.objects).create(name=name, age=age)
    found = await half.rows(Author.objects.distinct("age"))
    assert [author.name for author in found] == ["Ann", "Bob", "Dan"]


async def test_the_first_rows_of_each_count_and_change_as_these_rows(db: Any, half: Any) -> None:
    await library(half)
    first = Post.objects.order_by("author", "-views", "title").distinct("author")
    assert await half(first).count() == 2
    assert await half(first).exists() is True
    assert (await half(first).first()).title == "a2"
    assert (await half(first[:1]).get()).title == "a2"
    assert (await half(first.filter(author__name="Ann")).get()).title == "a2"
    assert (await half(Post.objects.distinct("author")).first()).title == "a1"
    assert await half(first).aggregate(n=Count("*")) == {"n": 2}
    within = Author.objects.filter(posts__in=Post.objects.distinct("author"))
    assert await half(within).count() == 2
    assert await half(first).update(body="first") == 2
    assert await half(Post.objects.filter(body="first", title__in=["a2", "b1"])).count() == 2
    await half(Comment.objects).delete()
    await half(Post.objects.filter(tags__isnull=False)[:0]).delete()
    assert await half(Post.objects.order_by("views", "-title").distinct("views")[2:]).delete() == 1
    assert await titles(half, Post.objects.order_by("title")) == ["a1", "a2", "b1"]


DISTINCT_REFUSED: list[tuple[Callable[[Any], Any], str]] = [
    (lambda q: q.order_by("title").distinct("author").explain_sql(), "must begin with the same"),
    (lambda q: q.distinct("author").reverse(), "would take other rows"),
    (lambda q: q.distinct("author").union(q.all()), "cannot be combined"),
    (lambda q: q.union(q.distinct("author")), "cannot be combined"),
    (lambda q: q.distinct("author").select_for_update().explain_sql(), "lock by key"),
    (lambda q: q.distinct("comments__text").explain_sql(), "many"),
    (lambda q: q.distinct("author__password"), "sensitive"),
    (lambda q: q.distinct("nothing"), "has no field 'nothing'"),
    (lambda q: q.distinct(5), "takes names of fields, not int"),
    (lambda q: q.all()[:2].distinct("author"), "cannot follow a slice"),
    (
        lambda q: q.values("author").annotate(n=Count("*")).distinct("author").explain_sql(),
        "no groups",
    ),
]


@pytest.mark.parametrize(("make", "words"), DISTINCT_REFUSED, ids=range(len(DISTINCT_REFUSED)))
def test_distinct_fields_that_make_no_sense_are_refused(db: Any, make: Any, words: str) -> None:
    with pytest.raises(FieldError, match=words):
        make(Post.objects)


# -- one's own rows -------------------------------------------------------------------------------


async def test_contains_asks_for_one_row(db: Any, half: Any) -> None:
    await library(half)
    a1, a2, a3, b1 = await half.rows(Post.objects.order_by("title"))
    assert await half(Post.objects).contains(a1) is True
    assert await half(Post.objects.filter(views=10)).contains(a1) is False
    assert await half(Post.objects.none()).contains(a1) is False
    assert await half(Post.objects.order_by("title")[:2]).contains(a2) is True
    assert await half(Post.objects.order_by("title")[:2]).contains(a3) is False
    assert await half(Post.objects.order_by("title").all()[3:]).contains(b1) is True
    assert await half(Post.objects.distinct("author")).contains(a2) is False
    assert await half(Post.objects.distinct("author")).contains(b1) is True
    kept = Post.objects.filter(author=a1.author_id)
    await half.rows(kept)
    await half(Post.objects.filter(title="a3")).update(author=b1.author_id)
    assert await half(kept).contains(a3) is True  # as `in` would say: the rows are there already
    assert await half(kept.all()).contains(a3) is False


async def test_contains_of_something_else_is_refused(db: Any, half: Any) -> None:
    await library(half)
    post = await half(Post.objects).first()
    for query, item, words in (
        (Author.objects, post, "takes a Author, not Post"),
        (Post.objects, Post(title="x"), "this one has no key yet"),
        (Post.objects.values("id"), post, "before values"),
        (Post.objects.union(Post.objects.all()), post, "before values.. and union"),
    ):
        with pytest.raises(FieldError, match=words):
            await half(query).contains(item)


# -- get_or_create and update_or_create by name ---------------------------------------------------


class Preset(Model):
    """A model whose fields have the names of arguments."""

    name = fields.CharField(max_length=20)
    defaults = fields.CharField(max_length=20, default="")
    create_defaults = fields.CharField(max_length=20, default="")


async def test_defaults_may_be_given_by_name(db: Any, half: Any) -> None:
    made, created = await half(Author.objects).get_or_create(name="Ann", defaults={"age": 5})
    assert (created, made.age) == (True, 5)
    found, created = await half(Author.objects).get_or_create(name="Ann", defaults={"age": 9})
    assert (created, found.age) == (False, 5)
    made, created = await half(Author.objects).get_or_create(name__exact="Bob", defaults=None)
    assert (created, made.name) == (True, "Bob")
    changed, created = await half(Author.objects).update_or_create(
        name="Ann", defaults={"age": lambda: 6}, create_defaults={"age": 1}
    )
    assert (created, changed.age) == (False, 6)
    made, created = await half(Author.objects).update_or_create(
        name="Cid", defaults={"age": 6}, create_defaults={"age": 1}
    )
    assert (created, made.age) == (True, 1)
    made, created = await half(Author.objects).update_or_create(
        name="Dan", defaults={"age": 6}, create_defaults={}
    )
    assert (created, made.age) == (True, None)
    made, _ = await half(Author.objects).update_or_create({"age": 7}, {"age": 8}, name="Eve")
    assert made.age == 8


async def test_fields_called_defaults_are_reached_with_mappings_by_place(
    empty: Any, half: Any
) -> None:
    await half.call(lambda: create_all(Preset), lambda: acreate_all(Preset))
    made, created = await half(Preset.objects).get_or_create({"name": "a"}, defaults="x")
    assert (created, made.name, made.defaults) == (True, "a", "x")
    found, created = await half(Preset.objects).get_or_create({"name": "b"}, defaults="x")
    assert (created, found.pk) == (False, made.pk)
    found, created = await half(Preset.objects).get_or_create(
        defaults__exact="y", defaults={"name": "c"}
    )
    assert (created, found.name, found.defaults) == (True, "c", "y")
    found, created = await half(Preset.objects).update_or_create(
        {"name": "d"}, {"name": "e"}, defaults="z", create_defaults="w"
    )
    assert (created, found.name, found.create_defaults) == (True, "e", "w")


async def test_wrong_defaults_write_nothing(db: Any, half: Any) -> None:
    class Sent(str):
        """The key of a request's mapping."""

        __slots__ = ()

    for arguments, error, words in (
        ({"name": "x", "defaults": 5}, FieldError, "takes a mapping, not int"),
        ({"name": "x", "defaults": {"agee": 5}}, FieldError, "did you mean 'age'"),
        ({"name": "x", Sent("defaults"): {"age": 5}}, TaintedInput, "comes from a request"),
        ({"name": "x", "defaults": {Sent("age"): 5}}, TaintedInput, "comes from a request"),
    ):
        for name in ("get_or_create", "update_or_create"):
            with pytest.raises(error, match=words):
                await getattr(half(Author.objects), name)(**arguments)
    with pytest.raises(FieldError, match="create_defaults takes a mapping"):
        await half(Author.objects).update_or_create(name="x", create_defaults="y")
    assert await half(Author.objects).count() == 0


async def test_reading_methods_read_only(db: Any, half: Any) -> None:
    await half(Country.objects).create(name="Peru")
    with read_only():
        peru = await half(Country.objects).latest("name")
        assert await half(Country.objects).contains(peru) is True
        assert await half.rows(Country.objects.distinct("name")) == [peru]
