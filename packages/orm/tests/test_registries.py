"""Models with a registry of their own: unknown to `create_all` and to names in other models."""

from __future__ import annotations

from typing import Any

from treefold_orm import Model, fields, registry
from treefold_orm._drivers.base import Database
from treefold_orm._fields.meta import Registry


def twins() -> tuple[type[Any], type[Any], Registry]:
    """Two models that name each other, in a registry of their own, for the alias "default"."""
    apart = Registry()

    class Apart(Model):
        _registry = apart

        class Meta:
            abstract = True

    class Country(Apart):
        _space = ""
        name: Any = fields.CharField(max_length=100)
        tags: Any = fields.ManyToManyField("Label")

    class Label(Apart):
        _space = ""
        country: Any = fields.ForeignKey("Country", related_name="labels")

    return Country, Label, apart


def test_they_stand_beside_registered_models_of_the_same_name() -> None:
    before = list(registry)
    country, label, apart = twins()
    assert list(registry) == before
    assert {meta.name for meta in apart} == {"Country", "Label", "Country_tags"}
    assert label._meta.relations["country"].target is country._meta
    assert country._meta.relations["tags"].target is label._meta


def test_their_queries_reach_the_rows(db: Database) -> None:
    country, _, _ = twins()
    country.objects.create(name="Austria")
    assert [row.name for row in country.objects.filter(name__startswith="Au")] == ["Austria"]
