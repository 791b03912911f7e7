"""`models_of`: models of tables given as data, with all queries, in no registry."""

from __future__ import annotations

from typing import Any

import pytest
from orm_models import Author, Country

from treefold_orm import FieldError, fields, registry
from treefold_orm._drivers.base import Database
from treefold_orm.schema import TableShape, models_of

SHAPES = {
    "country": TableShape(
        "country",
        "Country",
        {
            "id": fields.BigAutoField(primary_key=True),
            "name": fields.CharField(max_length=40, unique=True),
        },
    ),
    "author": TableShape(
        "author",
        "Author",
        {
            "id": fields.BigAutoField(primary_key=True),
            "name": fields.CharField(max_length=40),
            "country": fields.ForeignKey("country", null=True, related_name="authors"),
        },
    ),
}


def test_they_query_the_tables_and_follow_relations(db: Database) -> None:
    Country.objects.create(name="Austria")
    models: dict[str, Any] = models_of(SHAPES, "default")
    country = models["country"].objects.get(name="Austria")
    models["author"].objects.create(name="Ada", country=country)
    assert [author.name for author in country.authors.all()] == ["Ada"]
    found = models["author"].objects.filter(country__name="Austria").select_related("country")
    assert [author.country.name for author in found] == ["Austria"]
    ada: Any = Author.objects.get(name="Ada")
    assert ada.country_id == country.id


def test_they_are_in_no_registry_and_lack_what_the_shape_lacks() -> None:
    before = list(registry)
    models: dict[str, Any] = models_of(SHAPES, "default")
    assert list(registry) == before
    with pytest.raises(FieldError, match="Author has no field 'age'"):
        models["author"].objects.filter(age=3)


def test_tables_may_point_to_each_other_and_to_themselves() -> None:
    node: dict[str, Any] = {"id": fields.BigAutoField(primary_key=True)}
    shapes = {
        "a": TableShape("a", "A", {**node, "b": fields.ForeignKey("b"), "up": _key("a")}),
        "b": TableShape("b", "B", {**node, "a": fields.ForeignKey("a", null=True)}),
    }
    models = models_of(shapes, "default")
    assert models["a"]._meta.relations["b"].target is models["b"]._meta
    assert models["b"]._meta.relations["a"].target is models["a"]._meta
    assert models["a"]._meta.relations["up"].target is models["a"]._meta


def _key(table: str) -> Any:
    return fields.ForeignKey(table, null=True)


def test_ways_back_of_the_same_name_are_left_out() -> None:
    node: dict[str, Any] = {"id": fields.BigAutoField(primary_key=True)}
    shapes = {
        "a": TableShape("a", "A", node),
        "b": TableShape("b", "B", {**node, "one": _key("a"), "two": _key("a")}),
        "c": TableShape("c", "C", {**node, "one": fields.ForeignKey("a", related_name="id")}),
    }
    models = models_of(shapes, "default")
    assert models["a"]._meta.relations == {}
    assert set(models["b"]._meta.relations) == {"one", "two"}


def test_a_key_of_several_columns_and_another_alias() -> None:
    keys = {"x": fields.IntegerField(), "y": fields.IntegerField()}
    models = models_of({"grid": TableShape("grid", "Grid", keys, ("x", "y"))}, "other")
    assert [key.name for key in models["grid"]._meta.keys] == ["x", "y"]
    assert models["grid"].objects.db == "other"
    assert models["grid"]._alias == "other"
