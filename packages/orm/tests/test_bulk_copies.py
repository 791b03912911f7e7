"""Instances that were read, given to `bulk_create` and `bulk_update`: none of their columns is lost
then, and `save` writes each later change.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Iterator
from typing import Any

import pytest
from orm_models import Author, Tag

from treefold_orm import (
    Model,
    acreate_all,
    close_all,
    configure,
    create_all,
    fields,
    record_queries,
    transaction,
)
from treefold_orm.testing import sandbox


class Spot(Model):
    """Two columns of one type, so that a value in the wrong place is not noticed by its type."""

    x = fields.IntegerField()
    y = fields.IntegerField()


class RankedSpot(Model):
    """The database fills one of the columns."""

    x = fields.IntegerField()
    y = fields.IntegerField()
    rank = fields.IntegerField(db_default=7)


@pytest.fixture
def spots(db: Any) -> Iterator[None]:
    with sandbox():
        yield


@pytest.fixture
def two(place: Any, tmp_path: Any) -> Iterator[None]:
    """The test's database, and a SQLite file as `other`."""
    place.configure()
    configure("sqlite", str(tmp_path / "other.sqlite3"), alias="other")
    yield
    close_all()


async def read_in_other_order(half: Any, model: Any) -> Any:
    """A row (x=1, y=2) whose columns were loaded in another order than that of the model."""
    await half.call(lambda: create_all(model), lambda: acreate_all(model))
    await half(model.objects).create(x=1, y=2)
    spot = await half(model.objects.only("y")).get()
    await half(spot).refresh_from_db(fields=["x"])
    if model is RankedSpot:
        await half(spot).refresh_from_db(fields=["rank"])
    return spot


RULES: dict[str, dict[str, Any]] = {
    "plain": {},
    "ignore": {"ignore_conflicts": True},
    "update": {"update_conflicts": True, "unique_fields": ["id"], "update_fields": ["x", "y"]},
}


@pytest.mark.parametrize("way", ["itself", "copied", "pickled", "refreshed"])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("model", [Spot, RankedSpot])
async def test_a_change_after_bulk_create_with_a_key_is_saved(
    spots: None, half: Any, model: Any, rule: str, way: str
) -> None:
    spot = await read_in_other_order(half, model)
    spot.pk = spot.pk + 1
    await half(model.objects).bulk_create([spot], **RULES[rule])
    if way == "copied":
        spot = copy.copy(spot)
    elif way == "pickled":
        spot = pickle.loads(pickle.dumps(spot))
    elif way == "refreshed":
        await half(spot).refresh_from_db(fields=["y"])
    spot.x = 2
    await half(spot).save()
    assert (await half(model.objects).get(pk=spot.pk)).x == 2


@pytest.mark.parametrize("rule", ["plain", "update"])
@pytest.mark.parametrize("model", [Spot, RankedSpot])
async def test_a_change_after_bulk_create_without_a_key_is_saved(
    spots: None, half: Any, model: Any, rule: str
) -> None:
    spot = await read_in_other_order(half, model)
    spot.pk = None
    await half(model.objects).bulk_create([spot], **RULES[rule])
    spot.x = 2
    await half(spot).save()
    assert (await half(model.objects).get(pk=spot.pk)).x == 2


async def test_a_bulk_update_after_bulk_create_is_noted_in_its_column(
    spots: None, half: Any
) -> None:
    spot = await read_in_other_order(half, Spot)
    spot.pk += 1
    await half(Spot.objects).bulk_create([spot])
    spot.y = 3
    await half(Spot.objects).bulk_update([spot], ["y"])
    with record_queries() as seen:
        await half(spot).save()
    assert len(seen) == 0
    spot.x = 3
    await half(spot).save()
    assert (await half(Spot.objects).get(pk=spot.pk)).x == 3


async def test_a_value_chosen_by_the_database_is_noted_in_its_column(
    spots: None, half: Any
) -> None:
    spot = await read_in_other_order(half, RankedSpot)
    spot.pk += 1
    del spot.rank
    await half(RankedSpot.objects).bulk_create([spot])
    assert spot.rank == 7
    spot.x = 2
    await half(spot).save()
    assert (await half(RankedSpot.objects).get(pk=spot.pk)).x == 2


@pytest.mark.parametrize("key", ["given", "generated"])
@pytest.mark.parametrize("model", [Spot, RankedSpot])
async def test_a_copy_whose_bulk_create_was_rolled_back_is_saved_as_before(
    spots: None, half: Any, model: Any, key: str
) -> None:
    spot = await read_in_other_order(half, model)
    first = spot.pk

    def undo() -> None:
        with transaction(rollback=True):
            model.objects.bulk_create([spot])

    async def aundo() -> None:
        async with transaction(rollback=True):
            await model.objects.abulk_create([spot])

    spot.pk = None if key == "generated" else first + 1
    await half.call(undo, aundo)
    spot.pk = first
    spot.x = 2
    await half(spot).save()
    assert (await half(model.objects).get()).x == 2


async def test_a_copy_made_by_bulk_create_is_saved_in_its_own_database(
    two: None, half: Any
) -> None:
    await half.call(lambda: create_all(Tag, using="other"), lambda: acreate_all(Tag, using="other"))
    for key in (None, 4711):
        tag = await half(Tag.objects.using("other")).create(name="red")
        first, tag.pk = tag.pk, key
        await half(Tag.objects).bulk_create([tag])
        tag.name = f"blue {key}"
        await half(tag).save()
        assert (await half(Tag.objects).get(pk=tag.pk)).name == f"blue {key}"
        assert (await half(Tag.objects.using("other")).get(pk=first)).name == "red"
        await half(Tag.objects.using("other")).delete()


# -- columns that were not loaded -----------------------------------------------------------------


@pytest.mark.parametrize("key", ["given", "generated"])
async def test_bulk_create_copies_columns_that_were_not_loaded(
    db: Any, half: Any, key: str
) -> None:
    await half(Author.objects).create(name="Ann", age=30, password="secret")
    lean = await half(Author.objects.only("name")).get()
    lean.pk = lean.pk + 1 if key == "given" else None
    lean.name = "Copy"
    await half(Author.objects).bulk_create([lean])
    made = await half(Author.objects).get(name="Copy")
    assert (made.age, made.password) == (30, "secret")


async def test_bulk_create_copies_a_column_with_a_default_that_was_not_loaded(
    spots: None, half: Any
) -> None:
    await half.call(lambda: create_all(RankedSpot), lambda: acreate_all(RankedSpot))
    await half(RankedSpot.objects).create(x=1, y=2, rank=3)
    lean = await half(RankedSpot.objects.only("x")).get()
    lean.pk = None
    await half(RankedSpot.objects).bulk_create([lean])
    assert (await half(RankedSpot.objects).get(pk=lean.pk)).rank == 3


async def test_bulk_update_keeps_a_column_that_was_not_loaded(db: Any, half: Any) -> None:
    await half(Author.objects).create(name="Ann", age=30)
    lean = await half(Author.objects.only("name")).get()
    await half(Author.objects).bulk_update([lean], ["age"])
    assert (await half(Author.objects).get()).age == 30


async def test_columns_that_were_not_loaded_are_read_by_one_query(db: Any, half: Any) -> None:
    await half(Author.objects).bulk_create([Author(name=f"a{n}", age=n) for n in range(50)])
    lean = await half.rows(Author.objects.only("name"))
    with record_queries() as seen:
        await half(Author.objects).bulk_update(lean, ["age"])
    assert sum(event.sql.startswith("SELECT") for event in seen.events) == 1
    assert sorted(await half.rows(Author.objects.values_list("age", flat=True))) == [*range(50)]


async def test_an_upsert_of_partly_loaded_rows_keeps_their_other_columns(
    db: Any, half: Any
) -> None:
    await half(Author.objects).bulk_create(
        [Author(name="Ann", age=1, password="a"), Author(name="Bob", age=2, password="b")]
    )
    first, second = await half.rows(Author.objects.only("name").order_by("name"))
    first.name, second.age = "Anna", 3
    await half(Author.objects).bulk_create(
        [first, second],
        update_conflicts=True,
        unique_fields=["id"],
        update_fields=["name", "age", "password"],
    )
    rows = await half.rows(
        Author.objects.order_by("id").values_list("name", "age", Author.password)
    )
    assert rows == [("Anna", 1, "a"), ("Bob", 3, "b")]


async def test_bulk_create_of_a_partly_loaded_row_that_is_gone_is_refused(
    db: Any, half: Any
) -> None:
    await half(Author.objects).create(name="Ann", age=30)
    lean = await half(Author.objects.only("name")).get()
    await half(Author.objects).delete()
    lean.pk = None
    with pytest.raises(Author.DoesNotExist, match=r"Author was deleted, and age, .* cannot be"):
        await half(Author.objects).bulk_create([lean])
