"""Functions and lookups that an application declares for itself."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from decimal import Decimal as D
from typing import Any

import pytest
from orm_models import Author, Everything, Post

from treefold_orm import (
    Exists,
    F,
    FieldError,
    FieldValueError,
    Func,
    ModelError,
    OuterRef,
    Q,
    Sum,
    TaintedInput,
    UnsupportedFeature,
    Value,
    fields,
    register_lookup,
    taint,
)
from treefold_orm._expressions.lookups import custom_lookups


class Dashed(Func):
    """Two texts with a dash between."""

    template = "{} || '-' || {}"


class Shout(Func):
    """Text in capitals: one way of saying it on each database."""

    postgres = "upper({}) || '!'"
    sqlite = "(upper({}) || '!')"
    output_field = fields.TextField()


class Remainder(Func):
    """What is left of a division."""

    template = "({} % {})"
    output_field = fields.IntegerField()


class OnlyHere(Func):
    """A function that SQLite does not have."""

    postgres = "md5({})"
    output_field = fields.TextField()


@pytest.fixture
def lookups() -> Iterator[None]:
    """Lookups registered by one test are forgotten after it."""
    before = {name: list(known) for name, known in custom_lookups.items()}
    yield
    custom_lookups.clear()
    custom_lookups.update(before)
    for model in (Author, Post, Everything):
        model._meta.lookups.clear()


class Half(Func):
    """Half of a number, whatever type it has."""

    template = "({} / 2)"
    takes = (fields.FloatField(),)
    output_field = fields.FloatField()


class Doubled(Func):
    """Twice of what it is given, in any form."""

    template = "({} * 2)"


# -- functions ------------------------------------------------------------------------------------


def test_an_argument_is_converted_to_what_the_function_takes(db: Any) -> None:
    Everything.objects.create(money=D("2.500"), integer=3, real=0.5, data={"k": 7, "s": "x"})
    query: Any = Everything.objects.annotate(
        a=Half("money"), b=Half("integer"), c=Half("real"), d=Half("data__k"), e=Half("data__s")
    )
    row = query.get()
    assert (row.a, row.b, row.c, row.d, row.e) == (1.25, 1.5, 0.25, 3.5, None)
    inner = Everything.objects.filter(real=Half(OuterRef("integer")) - 1)
    assert Everything.objects.filter(Exists(inner)).count() == 1
    with pytest.raises(FieldError, match=r"Everything\.char \(text\) cannot be used as float"):
        Everything.objects.annotate(x=Half("char"))


def test_a_scaled_decimal_is_not_given_to_a_function_that_expects_none(
    db: Any, engine: str
) -> None:
    Everything.objects.create(money=D("2.500"))
    query: Any = Everything.objects.annotate(x=Doubled("money"))
    if engine == "sqlite":
        with pytest.raises(UnsupportedFeature, match="Doubled cannot take a decimal on sqlite"):
            query.get()
    else:
        assert query.get().x == 5


def test_takes_names_the_type_of_each_argument() -> None:
    with pytest.raises(ModelError, match="takes must name the types of 1 arguments, got 2"):

        class Wrong(Func):  # pyright: ignore[reportUnusedClass] - the class itself is the test
            template = "abs({})"
            takes = (None, None)


async def test_a_declared_function_works_wherever_expressions_do(db: Any, half: Any) -> None:
    ann = await half(Author.objects).create(name="Ann", age=7)
    await half(Post.objects).create(title="p", views=3, author=ann)
    found = await half(
        Author.objects.annotate(loud=Shout("name"), twice=Dashed("name", Value("x")))
    ).get()
    assert (found.loud, found.twice) == ("ANN!", "Ann-x")
    assert await half(Author.objects.annotate(r=Remainder("age", 4)).filter(r=3)).count() == 1
    assert await half(Author.objects.filter(Remainder(F("age"), 4) > 3)).count() == 0
    assert (
        await half(Post.objects.order_by(Shout("author__name"))).update(views=Remainder("views", 2))
        == 1
    )
    assert await half(Post.objects).aggregate(n=Sum(Remainder(F("views") + 4, 3))) == {"n": 2}
    rows = await half.rows(Post.objects.values_list(Post.title).annotate(s=Shout("title")))
    assert rows == [("p", "P!")]


async def test_a_function_one_database_lacks_says_so(db: Any, half: Any, engine: str) -> None:
    await half(Author.objects).create(name="Ann")
    query = Author.objects.annotate(digest=OnlyHere("name"))
    if engine == "sqlite":
        with pytest.raises(UnsupportedFeature, match="OnlyHere is not available on sqlite"):
            await half.rows(query)
    else:
        assert len((await half(query).get()).digest) == 32


def test_values_of_declared_functions_are_bound_and_names_are_fields() -> None:
    hostile = "x'); DROP TABLE author; --"
    query = Author.objects.annotate(x=Dashed("name", Value(hostile)))
    assert hostile in query._params
    with pytest.raises(FieldError, match="Author has no field"):
        Author.objects.annotate(x=Shout(hostile))
    with pytest.raises(FieldError, match="leads to a sensitive field"):
        Author.objects.annotate(x=Shout("password"))
    with pytest.raises(TaintedInput, match="comes from a request"):
        Author.objects.annotate(x=Shout(next(iter(taint({"name": 1})))))
    with pytest.raises(FieldError, match="Remainder takes 2 arguments, not 1"):
        Remainder("age")


BAD_TEMPLATES = [
    "",
    " ",
    "upper({}); DROP TABLE author",
    "upper({}) -- rest",
    "upper({}) /* rest */",
    'upper("{}")',
    "upper({})'",
    "upper({0})",
    "upper({name})",
    "upper({!r})",
    "upper({:>9})",
    "upper({)",
    "upper(({})",
    "upper({})) OR (1=1",
    "upper({}) = $1",
    "upper({}) = ?",
    "upper({}) = :name",
    "upper({})\0",
    "upper({})\n",
]


@pytest.mark.parametrize("template", BAD_TEMPLATES, ids=range(len(BAD_TEMPLATES)))
def test_a_template_is_one_expression_and_checked_where_it_is_declared(template: Any) -> None:
    with pytest.raises(ModelError, match=r"(has SQL|marks its arguments|needs SQL)"):
        type("Bad", (Func,), {"template": template})
    with pytest.raises(ModelError, match=r"(has SQL|marks its arguments|needs SQL)"):
        register_lookup("bad", template, on=fields.CharField)


def test_both_databases_take_the_same_arguments() -> None:
    with pytest.raises(ModelError, match="a different number of arguments on each database"):
        type("Bad", (Func,), {"postgres": "f({})", "sqlite": "f({}, {})"})
    with pytest.raises(ModelError, match="needs SQL: template=, postgres= or sqlite="):
        type("Bad", (Func,), {})


def test_a_template_may_not_come_from_a_request() -> None:
    text: Any = next(iter(taint({"upper({})": 1})))
    with pytest.raises(TaintedInput, match="comes from a request"):
        type("Bad", (Func,), {"template": text})


# -- lookups --------------------------------------------------------------------------------------


async def test_a_registered_lookup_works_like_one_of_the_package(
    db: Any, half: Any, lookups: None
) -> None:
    register_lookup(
        "differs_from", "{} IS DISTINCT FROM {}", sqlite="{} IS NOT {}", on=fields.Field
    )
    ann = await half(Author.objects).create(name="Ann", age=7)
    await half(Author.objects).create(name="Bob")
    await half(Post.objects).create(title="p", author=ann)

    assert await half(Author.objects.filter(age__differs_from=7)).count() == 1
    assert await half(Author.objects.filter(name__differs_from="Cid")).count() == 2
    assert await half(Author.objects.exclude(age__differs_from=7)).count() == 1
    assert await half(Post.objects.filter(author__name__differs_from="Ann")).count() == 0
    assert await half(Author.objects.filter(posts__title__differs_from="q")).count() == 1
    assert await half(Post.objects.filter(author__differs_from=ann)).count() == 0
    assert await half(Post.objects.filter(title__differs_from=F("author__name"))).count() == 1
    assert await half(Author.objects.filter(Q(name="x") | Q(age__differs_from=7))).count() == 1
    assert await half(Author.objects.filter(age__differs_from=7)).update(age=9) == 1


async def test_a_lookup_may_take_a_value_of_another_type(db: Any, half: Any, lookups: None) -> None:
    register_lookup(
        "longer_than", "length({}) > {}", on=fields.CharField, takes=fields.IntegerField()
    )
    await half(Author.objects).create(name="Ann")
    assert await half(Author.objects.filter(name__longer_than=2)).count() == 1
    assert await half(Author.objects.filter(name__longer_than=3)).count() == 0
    with pytest.raises(FieldValueError, match="takes an int"):
        Author.objects.filter(name__longer_than="3")


async def test_a_lookup_may_follow_a_part_of_a_date(db: Any, half: Any, lookups: None) -> None:
    register_lookup("multiple_of", "{} % {} = 0", on=fields.IntegerField)
    moment = dt.datetime(2024, 6, 1, tzinfo=dt.UTC)
    await half(Everything.objects).create(moment=moment, integer=9)
    assert await half(Everything.objects.filter(moment__year__multiple_of=4)).count() == 1
    assert await half(Everything.objects.filter(integer__multiple_of=4)).count() == 0


async def test_the_closest_class_of_fields_decides(db: Any, half: Any, lookups: None) -> None:
    register_lookup("like_this", "{} = {}", on=fields.Field)
    register_lookup("like_this", "lower({}) = lower({})", on=fields.CharField)
    await half(Author.objects).create(name="Ann", age=3)
    assert await half(Author.objects.filter(name__like_this="ANN")).count() == 1
    assert await half(Author.objects.filter(age__like_this=3)).count() == 1


async def test_a_lookup_on_json_takes_the_document(
    db: Any, half: Any, engine: str, lookups: None
) -> None:
    register_lookup("within", postgres="{} <@ {}", on=fields.JSONField)
    await half(Everything.objects).create(data={"a": 1})
    query = Everything.objects.filter(data__within={"a": 1, "b": 2})
    if engine == "sqlite":
        with pytest.raises(UnsupportedFeature, match="'within' is not available on sqlite"):
            await half.rows(query)
    else:
        assert await half(query).count() == 1


@pytest.mark.parametrize("name", ["data__k__longer_than", "data__k__0__longer_than"])
def test_a_lookup_on_json_takes_no_path(name: str, lookups: None) -> None:
    register_lookup(
        "longer_than",
        postgres="length({}::text) > {}",
        sqlite="length({}) > {}",
        on=fields.JSONField,
        takes=fields.IntegerField(),
    )
    message = (
        rf"Everything: '{name}' must not have a path before 'longer_than', a registered lookup "
        "takes the whole document"
    )
    with pytest.raises(FieldError, match=message):
        Everything.objects.filter(**{name: 3})
    with pytest.raises(FieldError, match=message):
        Everything.objects.exclude(Q(**{name: 3}))
    # as a key it can be asked for all the same
    assert Everything.objects.filter(**{f"{name}__exact": 3}) is not None


def test_lookups_that_cannot_be_registered_say_why(lookups: None) -> None:
    for name in ("exact", "year", "length", "pk", "A", "a__b", "_a", "a b", "", "a;"):
        with pytest.raises(ModelError, match="cannot name a lookup"):
            register_lookup(name, "{} = {}", on=fields.Field)
    with pytest.raises(ModelError, match=r"needs two \{\}"):
        register_lookup("half_open", "{} > 1", on=fields.Field)
    register_lookup("same", "{} = {}", on=fields.CharField)
    with pytest.raises(ModelError, match="is registered already for CharField"):
        register_lookup("same", "{} = {}", on=(fields.CharField, fields.TextField))


def test_registered_lookups_keep_the_rules_of_all_lookups(lookups: None) -> None:
    register_lookup("same", "{} = {}", on=fields.CharField)
    with pytest.raises(FieldError, match="leads to a sensitive field"):
        Author.objects.filter(password__same="x")
    with pytest.raises(FieldError, match="cannot compare with None"):
        Author.objects.filter(name__same=None)
    with pytest.raises(FieldError, match="has no lookup 'same' for 'age'"):
        Author.objects.filter(age__same=3)
    with pytest.raises(TaintedInput, match="comes from a request"):
        Author.objects.filter(**taint({"name__same": "x"}))
