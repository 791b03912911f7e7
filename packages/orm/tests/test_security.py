"""The rows of the security catalogue that concern queries, each test named after its ID."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from orm_models import Author, Everything, Person, Post

from treefold_orm import (
    CTE,
    ConfigurationError,
    Count,
    Extract,
    F,
    FieldError,
    FieldValueError,
    Model,
    ModelError,
    Prefetch,
    Q,
    SearchVector,
    Tainted,
    TaintedInput,
    Trunc,
    Window,
    acreate_all,
    create_all,
    fields,
    filter_from,
    record_queries,
    taint,
    transaction,
)

HOSTILE = [
    'a"',
    "a'--",
    "a;",
    "a b",
    "a\x01",
    "a\n",
    "a%",
    "a.b",
    "a)",
    "a" * 64,
    "pk",
    "a__b",
    "_a",
    "a_",
    "",
    "1a",
    "é",
    "objects",
    "name",
    "posts",
    "country_id",
    "save",
    'x" FROM author; DROP TABLE author; --',
]
COLUMNS = {"name", "country_id"}
"""What names columns of the model: rows of `values()` may have these names, instances not."""


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_s_100_annotation_names_are_plain_and_free(name: str) -> None:
    with pytest.raises(FieldError, match="cannot name an annotation"):
        Author.objects.annotate(**{name: Count("posts")})
    if name not in COLUMNS:
        with pytest.raises(FieldError, match="cannot name an annotation"):
            Author.objects.values(**{name: Count("posts")})
    with pytest.raises(FieldError, match="cannot name an annotation"):
        joined_under(name)


def joined_under(name: str) -> Any:
    counts = CTE(Post.objects.values("author").annotate(**{name: Count("id")}))
    return Author.objects.join(counts, author="pk")


@pytest.mark.parametrize("name", [*HOSTILE[:19], "boss", "staff", "boss_id"], ids=range(22))
def test_s_100_names_of_a_recursion_are_plain_and_free(name: str) -> None:
    with pytest.raises(FieldError, match="cannot name an annotation"):
        CTE.recursive(Person.objects.all(), "boss", depth=name)
    with pytest.raises(FieldError, match="cannot name an annotation"):
        CTE.recursive(Person.objects.all(), "boss", carry={name: ("name", "name")})


def test_s_100_annotation_names_never_reach_sql(db: Any) -> None:
    text = Author.objects.annotate(very_visible_name=Count("posts")).explain_sql()
    assert "very_visible_name" not in text
    assert "country" not in Author.objects.values(country_id=Count("posts")).explain_sql()
    counts = CTE(Post.objects.values("author").annotate(very_visible_name=Count("id")))
    assert "very_visible" not in Author.objects.join(counts, author="pk").explain_sql()
    assert "very_visible" not in counts.objects.filter(very_visible_name=1).explain_sql()
    tree = CTE.recursive(Person.objects.all(), "boss", depth="very_visible_name")
    assert "very_visible" not in tree.objects.order_by("very_visible_name").explain_sql()


TERMS: list[Any] = [
    "id;drop",
    "a.b",
    "-id desc",
    "(select 1)",
    "--id",
    "",
    "-",
    "id ",
    " id",
    "id\n",
    "1",
    "id,name",
    "nothing",
    5,
    None,
    b"id",
    "name__icontains",
    "password",
    "-password",
    'id"',
]


@pytest.mark.parametrize("term", TERMS, ids=range(len(TERMS)))
def test_s_101_ordering_takes_declared_names_only(term: Any) -> None:
    reasons = (
        rf"{re.escape(repr(term))} cannot order Author: give a field name",
        "Author has no field 'nothing'",
        "Author: 'name__icontains' is a comparison, not a value",
        "Author: 'password' leads to a sensitive field",
    )
    with pytest.raises(FieldError, match="|".join(reasons)):
        Author.objects.order_by(term)


REFUSED_LOOKUP = (
    r"Author has no (field|lookup) '\w*'|Author\.(id|name|age): takes an? \w+, not |"
    r"id__(in|range) takes a list, not "
)


@pytest.mark.parametrize(
    "lookups",
    [
        {"_connector": "OR 1=1 OR"},
        {"_negated": True},
        {"id": {"$ne": 1}},
        {"name": ["a"]},
        {"name": {"a": 1}},
        {"id__in": "1,2"},
        {"id__in": {"a": 1}},
        {"name__contains": ["a"]},
        {"id": 1.0},
        {"id": "1"},
        {"__class__": "x"},
        {"": 1},
        {"__": 1},
        {"name__": "x"},
        {"id__gt": [1]},
        {"name": 0},
        {"age": False},
        {"pk": None.__class__},
        {"id__range": "ab"},
    ],
    ids=range(19),
)
def test_s_102_no_keyword_steers_the_query_and_values_have_the_fields_type(
    lookups: dict[str, Any],
) -> None:
    for call in (Author.objects.filter, Author.objects.exclude, Author.objects.get):
        with pytest.raises((FieldError, FieldValueError), match=REFUSED_LOOKUP):
            call(**lookups)
    with pytest.raises((FieldError, FieldValueError), match=REFUSED_LOOKUP):
        Author.objects.filter(Q(**lookups))


KEYS = [
    "a'b",
    'x"y',
    "$.a",
    "a]",
    "a[0]",
    "'; --",
    "a\\b",
    "%",
    "{}",
    "a}b",
    "é",
    " ",
    "-1",
    "*",
    "a.b",
    "::",
    "?",
    "$1",
    "a\x01b",
]


@pytest.mark.parametrize("key", KEYS, ids=range(len(KEYS)))
async def test_s_103_json_keys_are_bound(db: Any, half: Any, key: str) -> None:
    await half(Everything.objects).create(integer=1, data={key: {key: 5}})
    await half(Everything.objects).create(integer=2, data={"other": 1})
    path = f"data__{key}__{key}"
    assert [e.integer for e in await half.rows(Everything.objects.filter(**{path: 5}))] == [1]
    assert await half(Everything.objects.filter(**{f"data__{key}__isnull": True})).count() == 1
    assert await half(Everything.objects.filter(**{f"data__{key}__has_key": key})).count() == 1
    rows = await half.rows(Everything.objects.order_by("integer").values_list(path, flat=True))
    assert rows == [5, None]
    sql = Everything.objects.filter(**{path: 5}).explain_sql()
    # keys that PostgreSQL would take for places in a list have a statement of their own
    plain, odd = (Everything.objects.filter(**{f"data__{k}__{k}": 5}) for k in ("k", "-9"))
    assert sql in {plain.explain_sql(), odd.explain_sql()}


def test_s_104_options_are_closed_lists_and_bounds_are_integers() -> None:
    for part in ("year; --", "", "YEAR", "epoch"):
        with pytest.raises(FieldError, match="part must be one of"):
            Extract("moment", part)  # pyright: ignore[reportArgumentType] - refused on purpose
        with pytest.raises(FieldError, match="unit must be one of"):
            Trunc("moment", part)  # pyright: ignore[reportArgumentType] - refused on purpose
    with pytest.raises(FieldError, match="frame"):
        Window(Count("id"), frame="ROWS 1; --")
    with pytest.raises(FieldError, match="is not 'first' or 'last'"):
        Author.name.asc(nulls="first; --")
    for bound in ("1;--", True, 1.0, None.__class__):
        with pytest.raises(TypeError, match="A slice takes int bounds, not "):
            Author.objects.all()[:bound]
        with pytest.raises(TypeError, match="A slice takes int bounds, not "):
            Author.objects.all()[bound:]
    for bad in (slice(-1, None), slice(None, -1)):
        with pytest.raises(ValueError, match="cannot count from the end"):
            Author.objects.all()[bad]
    with pytest.raises(TypeError, match="cannot be sliced in steps of 2"):
        Author.objects.all()[::2]
    with pytest.raises(FieldError, match="must be a number of at least 1"):
        Author.objects.limit_rows(True)
    with pytest.raises(FieldError, match="isolation="):
        transaction(isolation="serializable; --")  # pyright: ignore[reportArgumentType] - refused on purpose


async def test_s_104_names_of_savepoints_are_generated(db: Any, half: Any) -> None:
    for name in ("savepoint", "begin", "name"):
        assert not hasattr(transaction, name)  # there is nothing to pass a name to
    with pytest.raises(TypeError, match="positional argument"):
        transaction("default", "x;y")  # pyright: ignore[reportCallIssue] - refused on purpose
    with pytest.raises(ConfigurationError, match="'x;y' is not configured"):
        async with transaction("x;y"):
            pass
    with record_queries() as seen:
        async with transaction(), transaction():
            await Author.objects.acreate(name="a")
    assert not any("x;y" in event.sql for event in seen.events)


@pytest.mark.parametrize("needle", ["%", "_", "\\", "%_", "\\%", "'", '"', "[a]", "*", "?"])
@pytest.mark.parametrize(
    "lookup",
    [
        "contains",
        "icontains",
        "startswith",
        "istartswith",
        "endswith",
        "iendswith",
        "iexact",
        "exact",
    ],
)
async def test_s_105_wildcards_are_ordinary_characters(
    db: Any, half: Any, needle: str, lookup: str
) -> None:
    for place, text in enumerate([needle, f"{needle}x{needle}", "plain text", "", "x%", "a_b"]):
        await half(Everything.objects).create(integer=place, text=text)
    found = [
        e.text for e in await half.rows(Everything.objects.filter(**{f"text__{lookup}": needle}))
    ]
    checks = {
        "contains": str.__contains__,
        "startswith": str.startswith,
        "endswith": str.endswith,
        "exact": str.__eq__,
    }
    check = checks[lookup.removeprefix("i")]
    everything = [needle, f"{needle}x{needle}", "plain text", "", "x%", "a_b"]
    assert sorted(found) == sorted(
        text for text in everything if check(text.lower(), needle.lower())
    )


@pytest.mark.parametrize(
    "name", ["select", 'a"b', "x; DROP TABLE y", "ñandú", "a.b", "A", "%s", "$1", "a{}b", "?"]
)
async def test_s_106_odd_names_are_quoted_and_work(empty: Any, half: Any, name: str) -> None:
    model = type(
        "Odd",
        (Model,),
        {
            "__module__": __name__,
            "value": fields.TextField(db_column=name, unique=True),
            "other": fields.IntegerField(db_column=f"{name} 2", db_index=True, default=3),
            "Meta": type("Meta", (), {"table": name}),
        },
    )
    await half.call(lambda: create_all(model), lambda: acreate_all(model))
    made = await half(model.objects).create(value="x")
    await half(model.objects).bulk_create([model(value="y"), model(value="z")])
    assert (await half(model.objects.filter(value__contains="x")).get()).pk == made.pk
    assert await half(model.objects.filter(other=3).order_by("value")).update(other=4) == 3
    assert await half(model.objects).aggregate(n=Count("value")) == {"n": 3}
    assert await half(model.objects).delete() == 3


def test_s_106_names_no_database_keeps_are_refused_when_the_model_is_defined() -> None:
    for name in ("x" * 64, "é" * 32, "", "a\0", "a\n"):
        with pytest.raises(ModelError, match="cannot name a table or column"):
            type(
                "Bad", (Model,), {"__module__": __name__, "Meta": type("Meta", (), {"table": name})}
            )


LEAKS: list[Any] = [
    lambda: Author.objects.filter(password="x"),
    lambda: Author.objects.filter(password__startswith="x"),
    lambda: Author.objects.exclude(password__isnull=True),
    lambda: Post.objects.filter(author__password__startswith="x"),
    lambda: Post.objects.filter(Q(author__password="x")),
    lambda: Post.objects.order_by("author__password"),
    lambda: Post.objects.annotate(x=F("author__password")),
    lambda: Author.objects.annotate(n=Count("password")),
    lambda: Author.objects.get(password="x"),
    lambda: Author.objects.in_bulk(["x"], field="password"),
    lambda: CTE(Author.objects.values("name", "password")).objects.filter(password__startswith="x"),
    lambda: CTE(Author.objects.values("name", Author.password)),
    lambda: CTE(Author.objects.annotate(p=Author.password)),
    lambda: CTE(Author.objects.all()).objects.filter(password__startswith="x"),
    lambda: Author.objects.join(CTE(Post.objects.values("title")), title="password"),
    lambda: Author.objects.filter(password__search="x"),
    lambda: Post.objects.filter(author__password__search="x"),
    lambda: Author.objects.filter(SearchVector("password").matches("x")),
]


@pytest.mark.parametrize("leak", LEAKS, ids=range(len(LEAKS)))
def test_s_107_strings_never_reach_sensitive_fields(leak: Any, db: Any) -> None:
    with pytest.raises(FieldError, match="sensitive"):
        leak()


async def test_s_107_typed_expressions_in_code_do(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", password="hunter2")
    assert await half(Author.objects.filter(Author.password == "hunter2")).count() == 1
    assert "hunter2" not in repr(await half(Author.objects).get())


@pytest.mark.parametrize(
    "data",
    [
        {"author__password__startswith": "a"},
        {"author__name__startswith": "a"},
        {"title__regex": "a"},
        {"id": "1"},
        {"title__": "a"},
    ],
)
def test_s_107_untrusted_parameters_outside_of_the_list_are_refused(data: dict[str, str]) -> None:
    with pytest.raises(FieldError, match="is not a parameter of"):
        filter_from(Post.objects, data, allow={"title": ["exact", "icontains"]})
    with pytest.raises(FieldError, match="leads to a sensitive field"):
        filter_from(Post.objects, {}, allow={"author__password": ["exact"]})


TAINTED = taint({"name": "x"})
TAINTS: list[Any] = [
    lambda: Author.objects.filter(**TAINTED),
    lambda: Author.objects.exclude(**TAINTED),
    lambda: Author.objects.get(**TAINTED),
    lambda: Author.objects.filter(Q(**TAINTED)),
    lambda: Author(**TAINTED),
    lambda: Author.objects.create(**TAINTED),
    lambda: Author.objects.order_by(next(iter(TAINTED))),
    lambda: Author.objects.values(next(iter(TAINTED))),
    lambda: F(next(iter(TAINTED))),
    lambda: Author.objects.only(next(iter(TAINTED))),
    lambda: Post.objects.select_related(next(iter(taint({"author": 1})))),
    lambda: Prefetch(next(iter(taint({"posts": 1})))),
    lambda: Author.objects.annotate(**taint({"n": Count("posts")})),
    lambda: Author.objects.in_bulk([1], field=next(iter(taint({"id": 1})))),
    lambda: Post.objects.filter(**taint({"author__name": "x"})),
    lambda: Everything.objects.filter(**taint({"data__a": 1})),
    lambda: Author.objects.join(CTE(Author.objects.values("name")), **TAINTED),
    lambda: CTE(Author.objects.values("name")).objects.filter(**TAINTED),
    lambda: CTE.recursive(Person.objects.all(), next(iter(taint({"boss": 1})))),
    lambda: CTE.recursive(Person.objects.all(), "boss", depth=next(iter(taint({"d": 1})))),
    lambda: SearchVector(next(iter(TAINTED))),
]


@pytest.mark.parametrize("use", TAINTS, ids=range(len(TAINTS)))
def test_s_108_names_from_a_request_are_refused_everywhere(use: Any, db: Any) -> None:
    Author.objects.filter(name="x")
    Post.objects.filter(author__name="x")
    with pytest.raises(TaintedInput, match="comes from a request"):
        use()


async def test_s_108_update_and_defaults_refuse_them_too(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="x")
    with pytest.raises(TaintedInput, match="comes from a request"):
        await half(Author.objects).update(**TAINTED)
    with pytest.raises(TaintedInput, match="comes from a request"):
        await half(Author.objects).update_or_create(taint({"age": 5}), name="x")


def test_s_108_a_tainted_mapping_reads_like_any_other() -> None:
    body: Tainted[Any] = taint(json.loads('{"name": "x", "age": 3}'))
    assert body["name"] == "x"
    assert dict(body) == {"name": "x", "age": 3}
    assert sorted(body) == ["age", "name"]
    assert body == {"name": "x", "age": 3}


async def test_s_108_assign_sets_the_named_fields_and_nothing_else(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann", age=1, password="old")
    data = taint(
        {
            "name": "Eve",
            "age": 99,
            "pk": -5,
            "id": -5,
            "password": "new",
            "__class__": "y",
            "country_id": 2,
            "save": 1,
        }
    )
    assert author.assign(data, fields=["name"]) == ["name"]
    assert (author.name, author.age, author.id != -5, author.password, author.country_id) == (
        "Eve",
        1,
        True,
        "old",
        None,
    )
    with pytest.raises(FieldValueError, match=r"Author.name: takes a str, not int"):
        author.assign({"name": 5, "age": 3}, fields=["age", "name"])
    assert author.age == 1
    with pytest.raises(FieldError, match="takes a list of names, not one text"):
        author.assign(data, fields="name")
    with pytest.raises(FieldError, match="Author has no field 'nothing'"):
        author.assign(data, fields=["nothing"])
    with pytest.raises(FieldError, match="Author has no field 'is_admin'"):
        Author(name="x", is_admin=True)


class Sent(dict[str, Any]):
    """What a request sent under names that code allows; `treefold.Changes` is one."""

    def assignable_values(self) -> dict[str, Any]:
        return dict(self)


async def test_changes_name_the_fields_that_assign_sets(db: Any, half: Any) -> None:
    author = await half(Author.objects).create(name="Ann", age=1, password="old")
    assert author.assign(Sent()) == []
    assert author.assign(Sent(name="Eve", age=None)) == ["name", "age"]
    assert (author.name, author.age) == ("Eve", None)
    # the list at the call goes before that of the model
    assert author.assign(Sent(name="Bob", age=3), fields=["age"]) == ["age"]
    assert (author.name, author.age) == ("Eve", 3)
    with pytest.raises(FieldValueError, match="takes a str, not int"):
        author.assign(Sent(age=4, name=5))
    for key in ("id", "pk"):
        with pytest.raises(FieldValueError, match="is the key, which cannot be changed"):
            author.assign(Sent({"age": 4, key: 9}))
    with pytest.raises(FieldError, match="Author has no field 'nam': did you mean 'name'"):
        author.assign(Sent(nam="x"))
    with pytest.raises(FieldError, match=r"a dict; name those that a request may"):
        author.assign({"name": "x"})
    # a request can send any name, and no method
    with pytest.raises(FieldError, match="cannot set any name of a Tainted"):
        author.assign(taint({"assignable_values": "x"}))
    assert (author.name, author.age, author.password) == ("Eve", 3, "old")
    await half(author).save()
    assert (await half(Author.objects).get(pk=author.pk)).age == 3
