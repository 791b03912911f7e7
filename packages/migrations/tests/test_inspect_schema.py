"""Catalogs read back: what `create_all` made is read as the records that it was made of."""

from __future__ import annotations

import asyncio
import importlib

import inspect_models
import pytest
from inspect_place import Place, make_place as make_place, place as place

from treefold_migrations._inspect.live import (
    acompare_database,
    aread_schema,
    compare_database,
    read_schema,
)
from treefold_orm import aclose_all
from treefold_orm.schema import Meta, registry

MODELS = ("orm_amounts", "orm_articles", "orm_bakery", "orm_composite", "orm_models")


def metas_of(module: str) -> list[Meta]:
    """The models of a module of the ORM's tests, and the tables between them."""
    importlib.import_module(module)
    registry.resolve_pending_targets()
    return [
        m
        for m in registry.list_application_models()
        if m.model.__module__ == module and not m.abstract
    ]


@pytest.mark.parametrize("module", MODELS)
def test_tables_are_read_as_they_were_declared(place: Place, module: str) -> None:
    wanted = place.create(metas_of(module))
    assert wanted
    assert read_schema(place.alias, wanted) == wanted
    assert compare_database(wanted, place.alias) == []


def test_every_kind_of_part_is_read_as_it_was_declared(place: Place) -> None:
    models = inspect_models.BOTH
    if place.engine == "postgres":
        models += inspect_models.POSTGRES
    wanted = place.create(model._meta for model in models)
    assert read_schema(place.alias, wanted) == wanted
    assert compare_database(wanted, place.alias) == []


def test_the_async_half_reads_the_same(place: Place) -> None:
    wanted = place.create(model._meta for model in inspect_models.BOTH)

    async def read() -> None:
        try:
            assert await aread_schema(place.alias, wanted) == wanted
            assert await acompare_database(wanted, place.alias) == []
        finally:
            await aclose_all()

    asyncio.run(read())


def test_types_nulls_and_keys_are_read_without_declarations(place: Place) -> None:
    models = inspect_models.BOTH
    if place.engine == "postgres":
        models += inspect_models.POSTGRES
    wanted = place.create(model._meta for model in models)
    found = read_schema(place.alias)
    for name, table in wanted.items():
        columns = [(c.name, c.type, c.null, c.identity) for c in table.columns]
        assert [(c.name, c.type, c.null, c.identity) for c in found[name].columns] == columns
        assert found[name].primary_key == table.primary_key
        assert set(found[name].foreign_keys) == set(table.foreign_keys)
        assert {c.name for c in found[name].checks} == {
            *(c.check_name for c in table.columns if c.checks),
            *(c.name for c in table.checks),
        }
