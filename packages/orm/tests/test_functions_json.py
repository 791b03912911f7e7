"""JSONObject: every type as JSON, read and stored alike on both databases."""

from __future__ import annotations

import datetime as dt
import decimal
import uuid
from typing import Any

import pytest
from orm_library import library
from orm_models import Author, Color, Everything

from treefold_orm import Count, F, FieldError, JSONObject, OuterRef, Subquery, Value

ROW = {
    "integer": -7,
    "big": 2**53 + 1,
    "real": 0.1 + 0.2,
    "money": decimal.Decimal("1.500"),
    "char": 'Añ "B"\\ \n',
    "flag": False,
    "uid": uuid.UUID(int=5),
    "day": dt.date(826, 5, 14),
    "time": dt.time(23, 59, 59, 999999),
    "moment": dt.datetime(2026, 5, 14, 23, 59, 59, 999999, tzinfo=dt.UTC),
    "data": {"k": [1, {"a": None}], "n": 5},
    "color": Color.RED,
}
WANTED = {
    "integer": -7,
    "big": 2**53 + 1,
    "real": 0.1 + 0.2,
    "money": 1.5,
    "char": 'Añ "B"\\ \n',
    "flag": False,
    "uid": str(uuid.UUID(int=5)),
    "day": "0826-05-14",
    "time": "23:59:59.999999",
    "moment": "2026-05-14 23:59:59.999999+00:00",
    "data": {"k": [1, {"a": None}], "n": 5},
    "color": "red",
}


async def test_every_type_as_json(db: Any, half: Any) -> None:
    await half(Everything.objects).create(**ROW)
    rows = Everything.objects.values(x=JSONObject(**{name: name for name in WANTED}))
    assert await half.rows(rows) == [{"x": WANTED}]
    empty = Everything.objects.filter(integer=-7).values(x=JSONObject(text="text", span=Value(1)))
    assert await half.rows(empty) == [{"x": {"text": None, "span": 1}}]


async def test_expressions_paths_and_objects_in_objects(db: Any, half: Any) -> None:
    await half(Everything.objects).create(**ROW)
    inner = JSONObject(twice=F("money") * 2, key="data__n", path="data__k")
    rows = Everything.objects.values(x=JSONObject(b=inner, a=Value("x"), c=JSONObject()))
    wanted = {"a": "x", "b": {"twice": 3.0, "key": 5, "path": [1, {"a": None}]}, "c": {}}
    assert await half.rows(rows) == [{"x": wanted}]


async def test_aggregates_and_outer_columns_in_objects(db: Any, half: Any) -> None:
    await library(half)
    posts = Author.objects.values(x=JSONObject(name="name", posts=Count("posts"))).order_by("name")
    assert [row["x"]["posts"] for row in await half.rows(posts)] == [3, 1, 0]
    inner = Author.objects.filter(pk=OuterRef("pk")).values(x=JSONObject(n=OuterRef("name")))
    rows = Author.objects.values(x=Subquery(inner)).order_by("name")
    assert (await half.rows(rows))[0] == {"x": {"n": "Ann"}}


async def test_a_stored_object_equals_the_same_document(db: Any, half: Any) -> None:
    await half(Everything.objects).create(**ROW)
    await half(Everything.objects.all()).update(data=JSONObject(z="integer", a="real", m="char"))
    document = {"a": 0.1 + 0.2, "m": ROW["char"], "z": -7}
    assert await half(Everything.objects.filter(data=document)).count() == 1
    await half(Everything.objects).create(data=document)
    assert len(await half.rows(Everything.objects.values("data").distinct())) == 1


def test_values_without_a_form_in_json_are_refused() -> None:
    for name in ("span", "blob"):
        with pytest.raises(FieldError, match="JSONObject must be given values that JSON has a"):
            Everything.objects.values(x=JSONObject(y=name))
    with pytest.raises(FieldError, match="at most 50 values, got 51"):
        JSONObject(**{f"k{number}": Value(1) for number in range(51)})
