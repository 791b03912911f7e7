"""Keys of models as users declare them: strict pyright knows the types of `id` and `pk`.

mypy compares the key that a model declares with that of the base class, so that to it an automatic
key is Any; a model that says `id: int` gives it the type.
"""

from __future__ import annotations

import uuid
from typing import Any, assert_type

from treefold.orm import Column, CompositePrimaryKey, Model, fields


class Plant(Model):
    name = fields.CharField(max_length=40)


class Seed(Model):
    id = fields.UUIDField(primary_key=True)
    plant = fields.ForeignKey(Plant)


class Tool(Model):
    pk: uuid.UUID
    code = fields.UUIDField(primary_key=True)


class Bed(Model):
    pk = CompositePrimaryKey("row", "place")
    row = fields.IntegerField()
    place = fields.IntegerField()


async def automatic(plant: Plant) -> None:
    assert_type(plant.id, int)
    assert_type(plant.pk, int)
    assert_type(Plant.id, Column[int])
    assert_type(Plant.pk, Column[int])
    assert_type(await Plant.objects.values_list(Plant.id, flat=True), list[int])
    assert_type(await Plant.objects.values_list(Plant.id, Plant.name), list[tuple[int, str]])
    Plant.objects.filter(Plant.id > 3, Plant.pk.in_([1, 2]))
    plant.id = plant.pk = 5
    plant.pk = None  # a copy: it is inserted with a key of its own
    plant.id = "5"  # pyright: ignore[reportAttributeAccessIssue] - the key is a number


async def declared(seed: Seed, tool: Tool, bed: Bed) -> None:
    assert_type(seed.id, uuid.UUID)
    assert_type(seed.pk, uuid.UUID)
    assert_type(Seed.id, Column[uuid.UUID])
    assert_type(await Seed.objects.values_list(Seed.pk, flat=True), list[uuid.UUID])
    assert_type(seed.plant.id, int)
    assert_type(Seed.plant.to.id, Column[int])
    assert_type(tool.pk, uuid.UUID)
    assert_type(bed.pk, tuple[Any, ...] | None)
    bed.pk = (1, 2)
