"""Expressions as places of `values_list()`."""

from __future__ import annotations

from typing import Any

import pytest
from orm_models import Author, Country

from treefold_orm import Count, F, FieldError, Length, Lower, Q, Upper, Value


async def test_expressions_are_places_of_a_row(db: Any, half: Any) -> None:
    peru = await half(Country.objects).create(name="Peru")
    await half(Author.objects).create(name="Ann", age=30, country=peru)
    await half(Author.objects).create(name="Bo", age=40)
    authors = Author.objects.order_by("name")
    assert await half.rows(authors.values_list(Lower("name"), flat=True)) == ["ann", "bo"]
    rows = await half.rows(
        authors.values_list("age", Upper("name"), Author.name, F("age") + 1, Q(age__gt=35))
    )
    assert rows == [(30, "ANN", "Ann", 31, False), (40, "BO", "Bo", 41, True)]
    counted = Country.objects.values_list("name", Count("authors"))
    assert await half.rows(counted) == [("Peru", 1)]
    ordered = Author.objects.values_list(Lower("name"), flat=True).order_by("-lower1")
    assert await half(ordered).first() == "bo"
    assert await half(Author.objects.values_list(Value("x"), flat=True).distinct()).count() == 1


async def test_named_rows_name_expressions_by_class_and_place(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=30)
    query = Author.objects.annotate(lower2=Length("name"))
    (row,) = await half.rows(query.values_list("id", Lower("name"), "lower2", named=True))
    assert row._fields == ("id", "lower3", "lower2")
    assert (row.lower3, row.lower2) == ("ann", 3)


WRONG: list[Any] = [None, 10**30, 1.5, b"name", object(), ["name"]]


@pytest.mark.parametrize("wrong", WRONG, ids=range(len(WRONG)))
def test_what_is_no_expression_is_refused(wrong: Any) -> None:
    with pytest.raises(FieldError, match="takes names and columns, not"):
        Author.objects.values_list(wrong)


@pytest.mark.parametrize("name", ["\0", "\ud800", "nothing"])
def test_expressions_of_unknown_names_are_refused(name: str) -> None:
    with pytest.raises(FieldError, match="Author has no field"):
        Author.objects.values_list(Lower(name))
    with pytest.raises(FieldError, match="sensitive"):
        Author.objects.values_list(Lower("password"))
