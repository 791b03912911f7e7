"""Orderings by names, which a model keeps: the same rows, and no way around a check."""

from __future__ import annotations

from typing import Any

import pytest

from treefold_orm import F, FieldError, Model, TaintedInput, create_all, fields, taint


class Shelf(Model):
    _space = "orderings"  # not among the models that `create_all()` makes without a name
    name = fields.CharField(max_length=20)
    secret = fields.CharField(max_length=20, default="s")


class Volume(Model):
    _space = "orderings"
    title = fields.CharField(max_length=20)
    pages = fields.IntegerField()
    shelf = fields.ForeignKey(Shelf, related_name="volumes")


def last_step(*names: Any) -> Any:
    return Volume.objects.order_by(*names)._key[-1]


@pytest.fixture
def volumes(db: Any) -> None:
    create_all(Shelf, Volume)
    Volume.objects.all().delete()
    Shelf.objects.all().delete()
    upper, lower = Shelf.objects.create(name="upper"), Shelf.objects.create(name="lower")
    for title, pages, shelf in (("b", 1, upper), ("a", 2, lower), ("c", 3, upper)):
        Volume.objects.create(title=title, pages=pages, shelf=shelf)


@pytest.mark.usefixtures("volumes")
def test_a_query_finds_the_ordering_of_the_one_before() -> None:
    for _ in range(2):
        assert [v.title for v in Volume.objects.order_by("shelf__name", "-title")] == list("acb")
        assert [v.title for v in Volume.objects.order_by("-pages").reverse()] == list("bac")
    assert last_step("shelf__name", "-title") is last_step("shelf__name", "-title")
    assert last_step("title") != last_step("-title")


def test_a_name_from_a_request_is_refused_though_its_text_is_known(db: Any) -> None:
    (name,) = taint({"title": "x"})
    assert last_step("title") is last_step("title")
    with pytest.raises(TaintedInput):
        last_step(name)


def test_a_sensitive_field_is_refused_each_time(db: Any) -> None:
    for _ in range(2):
        with pytest.raises(FieldError, match="sensitive"):
            last_step("shelf__secret")


@pytest.mark.usefixtures("volumes")
def test_a_computed_value_goes_before_the_field_that_was_ordered_by() -> None:
    assert [v.title for v in Volume.objects.order_by("title")] == list("abc")
    found = Volume.objects.values(title=F("shelf__name"), n=F("pages")).order_by("-title", "n")
    assert [row["n"] for row in found] == [1, 3, 2]


def test_orderings_are_forgotten_with_lookups_when_a_relation_comes(db: Any) -> None:
    last_step("shelf__name")
    assert Volume._meta.orderings

    class Label(Model):
        _space = "orderings"
        volume = fields.ForeignKey(Volume, related_name="labels")

    assert Label._meta.relations
    assert not Volume._meta.orderings
