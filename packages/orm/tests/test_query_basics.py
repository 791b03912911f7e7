"""Reading and writing rows: the methods of queries, on both databases and in both halves."""

from __future__ import annotations

from typing import Any

import pytest
from orm_models import Author, Country, Keyed, Post, Tag

from treefold_orm import (
    Exists,
    FieldError,
    FieldValueError,
    OuterRef,
    Subquery,
    TooManyRows,
    UniqueViolation,
)


async def people(half: Any) -> list[Author]:
    names = [("Ann", 30), ("Bob", 40), ("Cid", None), ("Dee", 40)]
    return [await half(Author.objects).create(name=name, age=age) for name, age in names]


async def test_a_list_with_text_longer_than_the_column_finds_nothing(db: Any, half: Any) -> None:
    await half(Tag.objects).create(name="x" * 40)
    assert await half(Tag.objects.filter(name__in=["x" * 41])).count() == 0


async def test_create_sets_the_generated_key_and_get_returns_equal_values(
    db: Any, half: Any
) -> None:
    made = await half(Author.objects).create(name="Ann", age=30)
    found = await half(Author.objects).get(id=made.pk)
    assert (found.id, found.name, found.age, found.country_id) == (made.pk, "Ann", 30, None)
    assert found == made
    assert hash(found) == hash(made)


async def test_get_without_a_row_raises_the_models_own_error(db: Any, half: Any) -> None:
    with pytest.raises(Author.DoesNotExist, match="No Author matches the query"):
        await half(Author.objects).get(id=1)
    assert not issubclass(Author.DoesNotExist, Post.DoesNotExist)


async def test_get_with_several_rows_raises(db: Any, half: Any) -> None:
    await people(half)
    with pytest.raises(
        Author.MultipleObjectsReturned,
        match=r"More than one Author matches the query: use filter\(\)",
    ):
        await half(Author.objects).get(age=40)


@pytest.mark.parametrize(
    ("lookups", "names"),
    [
        ({"name": "Ann"}, ["Ann"]),
        ({"age": 40}, ["Bob", "Dee"]),
        ({"age": None}, ["Cid"]),
        ({"age__isnull": False}, ["Ann", "Bob", "Dee"]),
        ({"age__gt": 30}, ["Bob", "Dee"]),
        ({"age__gte": 30}, ["Ann", "Bob", "Dee"]),
        ({"age__lt": 40}, ["Ann"]),
        ({"age__lte": 40}, ["Ann", "Bob", "Dee"]),
        ({"age__in": [30, None, 99]}, ["Ann"]),
        ({"age__in": []}, []),
        ({"name__in": ["Ann", "Dee"]}, ["Ann", "Dee"]),
        ({"age__range": (30, 39)}, ["Ann"]),
        ({"name__iexact": "aNN"}, ["Ann"]),
        ({"name__contains": "n"}, ["Ann"]),
        ({"name__contains": "A"}, ["Ann"]),
        ({"name__contains": "a"}, []),
        ({"name__icontains": "a"}, ["Ann"]),
        ({"name__startswith": "B"}, ["Bob"]),
        ({"name__startswith": "b"}, []),
        ({"name__istartswith": "b"}, ["Bob"]),
        ({"name__endswith": "d"}, ["Cid"]),
        ({"name__endswith": ""}, ["Ann", "Bob", "Cid", "Dee"]),
        ({"name__iendswith": "D"}, ["Cid"]),
        ({"pk__in": [-1]}, []),
        ({"name": "Bob", "age": 40}, ["Bob"]),
        ({"name__length": 3, "age__gt": 35}, ["Bob", "Dee"]),
    ],
)
async def test_filter_finds(db: Any, half: Any, lookups: dict[str, Any], names: list[str]) -> None:
    await people(half)
    assert [a.name for a in await half.rows(Author.objects.filter(**lookups))] == names
    complement = [a.name for a in await half.rows(Author.objects.exclude(**lookups))]
    assert sorted([*names, *complement]) == ["Ann", "Bob", "Cid", "Dee"]


async def test_filters_chain(db: Any, half: Any) -> None:
    await people(half)
    query = Author.objects.filter(age=40).filter(name="Dee").exclude(name="Bob")
    assert [a.name for a in await half.rows(query)] == ["Dee"]


@pytest.mark.parametrize(
    ("terms", "names"),
    [
        (("-name",), ["Dee", "Cid", "Bob", "Ann"]),
        (("age", "-name"), ["Ann", "Dee", "Bob", "Cid"]),
        (("-age", "name"), ["Cid", "Bob", "Dee", "Ann"]),
        ((Author.age.desc(nulls="last"), Author.name), ["Bob", "Dee", "Ann", "Cid"]),
        ((Author.age.asc(nulls="first"), "name"), ["Cid", "Ann", "Bob", "Dee"]),
        (("pk",), ["Ann", "Bob", "Cid", "Dee"]),
    ],
)
async def test_order_by(db: Any, half: Any, terms: tuple[Any, ...], names: list[str]) -> None:
    await people(half)
    assert [a.name for a in await half.rows(Author.objects.order_by(*terms))] == names


async def test_the_models_ordering_holds_until_it_is_changed(db: Any, half: Any) -> None:
    for name in ("b", "a", "c"):
        await half(Author.objects).create(name=name)
    assert [a.name for a in await half.rows(Author.objects.all())] == ["a", "b", "c"]
    assert [a.name for a in await half.rows(Author.objects.order_by("-id"))] == ["c", "a", "b"]


@pytest.mark.parametrize(
    ("part", "names"),
    [
        (slice(None, 2), ["Ann", "Bob"]),
        (slice(1, 3), ["Bob", "Cid"]),
        (slice(3, None), ["Dee"]),
        (slice(2, 2), []),
        (slice(3, 99), ["Dee"]),
    ],
)
async def test_slices(db: Any, half: Any, part: slice, names: list[str]) -> None:
    await people(half)
    query = Author.objects.all()[part]
    assert [a.name for a in await half.rows(query)] == names
    assert await half(query).count() == len(names)


async def test_a_slice_of_a_slice_stays_inside(db: Any, half: Any) -> None:
    await people(half)
    assert [a.name for a in await half.rows(Author.objects.all()[1:3][1:9])] == ["Cid"]


async def test_reverse(db: Any, half: Any) -> None:
    for name, age in (("a", 1), ("b", None), ("c", 3)):
        await half(Author.objects).create(name=name, age=age)
    cases = {
        Author.objects.reverse(): "cba",
        Author.objects.order_by("age").reverse(): "bca",
        Author.objects.order_by("-age").reverse(): "acb",
        Author.objects.order_by(Author.age.asc(nulls="first")).reverse(): "cab",
        Author.objects.order_by("name").reverse().reverse(): "abc",
        Author.objects.order_by("name").reverse()[:2]: "cb",
    }
    for query, names in cases.items():
        assert "".join([a.name for a in await half.rows(query)]) == names
    with pytest.raises(FieldError, match=r"reverse\(\) cannot follow a slice"):
        Author.objects.all()[:2].reverse()


async def test_count_exists_first_last(db: Any, half: Any) -> None:
    assert await half(Author.objects).count() == 0
    assert await half(Author.objects).exists() is False
    assert await half(Author.objects).first() is None
    assert await half(Author.objects).last() is None
    await people(half)
    assert await half(Author.objects).count() == 4
    assert await half(Author.objects.filter(age=40)).exists() is True
    assert (await half(Author.objects).first()).name == "Ann"
    assert (await half(Author.objects).last()).name == "Dee"
    assert (await half(Author.objects.order_by("age")).last()).name == "Cid"


async def test_update_returns_the_number_of_rows(db: Any, half: Any) -> None:
    await people(half)
    assert await half(Author.objects.filter(age=40)).update(age=41) == 2
    assert await half(Author.objects.filter(age=41)).count() == 2


async def test_update_without_conditions_changes_every_row(db: Any, half: Any) -> None:
    await people(half)
    assert await half(Author.objects).update(age=None) == 4


async def test_a_sliced_update_and_delete_touch_exactly_their_rows(db: Any, half: Any) -> None:
    await people(half)
    assert await half(Author.objects.all()[1:3]).update(age=7) == 2
    assert [a.name for a in await half.rows(Author.objects.filter(age=7))] == ["Bob", "Cid"]
    assert await half(Author.objects.order_by("-name")[:1]).delete() == 1
    assert [a.name for a in await half.rows(Author.objects.all())] == ["Ann", "Bob", "Cid"]


async def test_none_selects_updates_and_deletes_nothing(db: Any, half: Any) -> None:
    await people(half)
    nothing = Author.objects.none()
    assert await half.rows(nothing) == []
    assert await half(nothing).count() == 0
    assert await half(nothing).exists() is False
    assert await half(nothing).update(age=1) == 0
    assert await half(nothing).delete() == 0
    assert await half(Author.objects).count() == 4


async def test_delete_returns_the_number_of_rows(db: Any, half: Any) -> None:
    await people(half)
    assert await half(Author.objects.filter(age=40)).delete() == 2
    assert await half(Author.objects).delete() == 2
    assert await half(Author.objects).count() == 0


async def test_values_and_values_list(db: Any, half: Any) -> None:
    await people(half)
    query = Author.objects.filter(name="Ann")
    row = (await half.rows(query.values("name", "age")))[0]
    assert row == {"name": "Ann", "age": 30}
    assert await half.rows(query.values_list("name", "age")) == [("Ann", 30)]
    assert await half.rows(query.values_list(Author.name, Author.age)) == [("Ann", 30)]
    assert await half.rows(query.values_list("name", flat=True)) == ["Ann"]
    named = (await half.rows(query.values_list("name", "age", named=True)))[0]
    assert (named.name, named.age) == ("Ann", 30)


async def test_values_without_names_leave_out_sensitive_fields(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", password="hunter2")
    row = (await half.rows(Author.objects.values()))[0]
    assert sorted(row) == ["age", "country_id", "id", "name"]
    assert await half.rows(Author.objects.values(Author.password)) == [{"password": "hunter2"}]


async def test_distinct_values(db: Any, half: Any) -> None:
    await people(half)
    ages = (
        Author.objects.filter(age__isnull=False)
        .values_list("age", flat=True)
        .order_by("age")
        .distinct()
    )
    assert await half.rows(ages) == [30, 40]
    assert await half(ages).count() == 2


async def test_distinct_instances_take_any_order(db: Any, half: Any) -> None:
    peru, chad = await half(Country.objects).bulk_create(
        [Country(name="Peru"), Country(name="Chad")]
    )
    await half(Author.objects).bulk_create(
        [Author(name="a", country=peru), Author(name="b", country=chad), Author(name="c")]
    )
    query = Author.objects.distinct().order_by("country__name")
    assert [author.name for author in await half.rows(query)] == ["b", "a", "c"]
    assert [author.name for author in await half.rows(query[1:])] == ["a", "c"]
    assert await half(query).count() == 3


async def test_distinct_values_are_ordered_by_what_they_hold(db: Any, half: Any) -> None:
    peru = await half(Country.objects).create(name="Peru")
    await half(Author.objects).bulk_create(
        [Author(name=name, age=age, country=peru) for name, age in (("a", 2), ("b", 1), ("c", 2))]
    )
    query = Author.objects.values_list("country__name", "age").distinct()
    assert await half.rows(query.order_by("-age")) == [("Peru", 2), ("Peru", 1)]
    with pytest.raises(FieldError, match=r"add the others to values\(\)"):
        await half.rows(query.order_by("name"))


async def test_distinct_values_are_ordered_by_a_subquery_that_they_hold(db: Any, half: Any) -> None:
    await half(Author.objects).bulk_create(
        [Author(name=name, age=age) for name, age in (("a", 2), ("b", 1), ("c", 2), ("d", None))]
    )
    same_age = Author.objects.filter(age=OuterRef("age"))
    first = Subquery(same_age.order_by("name").values("name")[:1])
    query = Author.objects.annotate(x=first).values_list("x").distinct()
    assert await half.rows(query.order_by("x")) == [("a",), ("b",), (None,)]
    assert await half.rows(query.order_by("-x")[1:]) == [("b",), ("a",)]
    twins = same_age.exclude(name=OuterRef("name"))
    query = Author.objects.annotate(x=Exists(twins)).values_list("x", flat=True).distinct()
    assert await half.rows(query.order_by("-x")) == [True, False]


async def test_only_loads_the_named_columns_and_saves_only_those(db: Any, half: Any) -> None:
    made = await half(Author.objects).create(name="Ann", age=30)
    partial = await half(Author.objects.only("name")).get(id=made.id)
    assert not partial.is_loaded("age")
    await half(Author.objects).update(age=99)
    partial.name = "Anna"
    await half(partial).save()
    fresh = await half(Author.objects).get(id=made.id)
    assert (fresh.name, fresh.age) == ("Anna", 99)


async def test_defer_leaves_columns_out(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=30)
    partial = await half(Author.objects.defer("age")).get()
    assert partial.is_loaded("name")
    assert not partial.is_loaded("age")
    await half(partial).load("age")
    assert partial.age == 30


@pytest.mark.parametrize(
    ("query", "loaded"),
    [
        (Author.objects.defer("age").defer("password"), {"name", "country"}),
        (Author.objects.only("name", "age").defer("age"), {"name"}),
        (Author.objects.defer("name").only("name"), {"name"}),
        (Author.objects.defer("country_id", "pk", "country__name"), {"name", "age", "password"}),
    ],
    ids=range(4),
)
async def test_defer_takes_away_from_what_was_chosen_before(
    db: Any, half: Any, query: Any, loaded: set[str]
) -> None:
    await half(Author.objects).create(name="Ann", age=30)
    found = await half(query).get()
    names = ("id", "name", "age", "country", "password")
    assert {name for name in names if found.is_loaded(name)} == {"id", *loaded}


async def test_defer_leaves_columns_of_a_joined_row_out(db: Any, half: Any) -> None:
    peru = await half(Country.objects).create(name="Peru")
    ann = await half(Author.objects).create(name="Ann", age=30, country=peru)
    await half(Post.objects).create(title="a", author=ann)
    query = Post.objects.select_related("author__country").defer("author__age", "author__name")
    for less in (query, query.defer("author__password")):
        post = await half(less).get()
        assert post.is_loaded("title")
        assert not post.author.is_loaded("age")
        assert not post.author.is_loaded("name")
        assert post.author.is_loaded("password") is (less is query)
        assert post.author.country.name == "Peru"


async def test_a_key_that_python_makes(db: Any, half: Any) -> None:
    made = await half(Keyed.objects).create(label="x")
    assert (await half(Keyed.objects).get(pk=made.code)).label == "x"
    with pytest.raises(UniqueViolation, match=r"Keyed\.code exists already"):
        await half(Keyed.objects).create(code=made.code, label="y")


async def test_get_or_create_creates_once(db: Any, half: Any) -> None:
    first, created = await half(Country.objects).get_or_create(name="Peru")
    again, created_again = await half(Country.objects).get_or_create(name="Peru")
    assert (created, created_again, first.pk == again.pk) == (True, False, True)


async def test_get_or_create_takes_defaults_for_new_rows_only(db: Any, half: Any) -> None:
    made, _ = await half(Author.objects).get_or_create({"age": 5}, name="Ann")
    found, _ = await half(Author.objects).get_or_create({"age": 9}, name="Ann")
    assert (made.age, found.age) == (5, 5)


async def test_update_or_create(db: Any, half: Any) -> None:
    _, created = await half(Author.objects).update_or_create({"age": 5}, name="Ann")
    changed, created_again = await half(Author.objects).update_or_create({"age": 9}, name="Ann")
    assert (created, created_again, changed.age) == (True, False, 9)
    assert (await half(Author.objects).get(name="Ann")).age == 9


async def test_limit_rows_refuses_more_than_that(db: Any, half: Any) -> None:
    await people(half)
    assert len(await half.rows(Author.objects.limit_rows(4))) == 4
    with pytest.raises(
        TooManyRows, match=r"Author: more than 3 rows: page the query or raise limit_rows\(\)"
    ):
        await half.rows(Author.objects.limit_rows(3))


async def test_methods_of_a_query_class_follow_each_other(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann")
    await half(Post.objects).create(title="a", views=5, author=author)
    await half(Post.objects).create(title="b", views=500, author=author)
    assert [p.title for p in await half.rows(Post.objects.filter(author=author).popular())] == ["b"]


def test_methods_that_take_no_part_in_sql_check_their_arguments() -> None:
    with pytest.raises(TypeError, match="A slice takes int bounds, not str"):
        Author.objects.all()["1;--":]
    with pytest.raises(TypeError, match="A slice takes int bounds, not bool"):
        Author.objects.all()[:True]
    with pytest.raises(ValueError, match="A slice cannot count from the end: -1 is negative"):
        Author.objects.all()[-1:]
    with pytest.raises(TypeError, match="A query cannot be sliced in steps of 2"):
        Author.objects.all()[::2]
    with pytest.raises(FieldError, match="slice last"):
        Author.objects.all()[:3].filter(name="x")
    end = r"An index cannot count from the end, got -1; use last\(\)"
    with pytest.raises(ValueError, match=end):
        Author.objects.all()[-1]
    both = r"values_list\(\) cannot be both flat=True and named=True; drop one"
    with pytest.raises(TypeError, match=both):
        Author.objects.values_list("name", flat=True, named=True)
    with pytest.raises(TypeError, match=r"values_list\(flat=True\) takes one name, not 2"):
        Author.objects.values_list("name", "age", flat=True)


@pytest.mark.parametrize(
    ("lookups", "message"),
    [
        ({"nam": "x"}, "Author has no field 'nam': did you mean 'name'?"),
        (
            {"name__contians": "x"},
            "Author has no lookup 'contians' for 'name': did you mean 'contains'?",
        ),
        ({"age__contains": "x"}, "Author has no lookup 'contains' for 'age'"),
        ({"name__exact__gt": "x"}, "nothing can follow 'exact'"),
        ({"age__gt": None}, "age__gt cannot compare with None: use isnull"),
        ({"age__isnull": 1}, "age__isnull takes True or False, not int"),
        ({"age__in": 5}, "age__in takes a list, not int"),
        ({"age__range": [1]}, "age__range takes two values"),
        ({"posts__nothing": 1}, "Post has no field 'nothing'"),
    ],
)
def test_wrong_lookups_say_what_is_wrong(lookups: dict[str, Any], message: str) -> None:
    with pytest.raises(FieldError, match=message.replace("?", r"\?")):
        Author.objects.filter(**lookups)


@pytest.mark.parametrize("value", ["5", 5.0, True, b"5", [5], {"$ne": 1}, object(), 2**31])
def test_values_of_another_type_are_refused(value: Any) -> None:
    with pytest.raises(FieldValueError, match=r"Author\.age: "):
        Author.objects.filter(age=value)


async def test_unknown_names_in_create_and_update_are_refused(db: Any, half: Any) -> None:
    with pytest.raises(FieldError, match="Author has no field 'nam'"):
        await half(Author.objects).create(nam="x")
    with pytest.raises(FieldError, match="Author has no field 'nam'"):
        await half(Author.objects).update(nam="x")
    with pytest.raises(FieldError, match="is the key and cannot be updated"):
        await half(Author.objects).update(id=3)
    with pytest.raises(FieldError, match="at least one field"):
        await half(Author.objects).update()


def test_objects_belongs_to_the_class() -> None:
    with pytest.raises(
        AttributeError, match="A manager belongs to the model class, not to an instance"
    ):
        _ = Author(name="x").objects
