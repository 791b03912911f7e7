"""Two databases behind two aliases, and files whose operations live on both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from run_support import AUTHOR, Files, Place

from treefold_migrations import amigrate, migrate
from treefold_orm import aclose_all, close_all, configure
from treefold_orm._runtime.connections import _databases

EVENT = (
    'CreateTable("event", {"id": fields.BigAutoField(primary_key=True), '
    '"kind": fields.CharField(max_length=40)}, model="Event", database="analytics")'
)
KIND = 'AddField("event", "size", fields.IntegerField(null=True))'
AGE = 'AddField("author", "age", fields.IntegerField(null=True))'
ALIASES: tuple[str, ...] = ("default", "analytics")
Places = dict[str, Place]


@pytest.fixture(
    params=[("sqlite", "sqlite"), ("sqlite", "postgres"), ("postgres", "postgres")], ids="-".join
)
def places(request: pytest.FixtureRequest, make_place: Callable[[str], Place]) -> Iterator[Places]:
    """An empty database behind each alias."""
    _databases.clear()
    made = dict(zip(ALIASES, map(make_place, request.param), strict=True))
    for alias, place in made.items():
        configure_place(place, alias)
    yield made
    close_all()
    _databases.clear()


def configure_place(place: Place, alias: str) -> None:
    """Put a database behind an alias."""
    if place.engine == "sqlite":
        configure("sqlite", place.address, alias=alias)
    else:
        settings = {"search_path": place.schema}
        configure(database=place.address, alias=alias, server_settings=settings)


@pytest.fixture(params=["sync", "async"])
def apply(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """`migrate` in one half."""
    if request.param == "sync":
        return migrate

    async def in_a_loop(*args: Any, **options: Any) -> Any:
        try:
            return await amigrate(*args, **options)
        finally:
            await aclose_all()

    return lambda *args, **options: asyncio.run(in_a_loop(*args, **options))


def tables(places: Places) -> list[set[str]]:
    """The tables of each database, but for those of the records."""
    return [
        {t for t in place.tables() if not t.startswith("treefold_")} for place in places.values()
    ]


def recorded(places: Places) -> list[list[str]]:
    query = "SELECT name FROM treefold_migrations ORDER BY name"
    return [[name for (name,) in place.ask(query)] for place in places.values()]


def two_files(files: Files) -> None:
    files.write("0001_initial", AUTHOR, EVENT, 'RunSQL("SELECT 1", "", database="analytics")')
    files.write("0002_size", KIND)
