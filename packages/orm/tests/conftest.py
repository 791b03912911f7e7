"""Every behaviour test runs on both databases and in both halves.

`db` configures a fresh database with the tables of `orm_models`; `half` calls a method in one
half: `await half(Post.objects).get(id=1)` awaits `aget` in the async half, and runs `get` in a
thread in the sync half.
"""

from __future__ import annotations

import asyncio
import inspect
import itertools
import shutil
import sys
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information
import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

import orm_amounts
import orm_models
import orm_postgres
from crossing.engines import engines as engines  # a fixture of the tables of types

from treefold_orm import Model, aclose_all, close_all, configure, create_all
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._drivers.base import Database
from treefold_orm._fields.meta import Meta
from treefold_orm._runtime.connections import _databases, database_for
from treefold_orm._schema.create import _collect_models_to_create, plan_tables
from treefold_orm._schema.records import CreateTable

# a limit of the clock for each example would fail on a busy machine
settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")

_numbers = itertools.count()


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run async tests on a loop of their own, and close the connections before it ends."""
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def test() -> None:
        try:
            await pyfuncitem.obj(**arguments)
        finally:
            await aclose_all()

    asyncio.run(test())
    return True


class Half:
    """One half of the interface."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, target: Any) -> Caller:
        return Caller(self.name, target)

    async def rows(self, query: Any) -> list[Any]:
        """All rows of a query."""
        return await query if self.name == "async" else await asyncio.to_thread(list, query)

    async def iterate(self, query: Any, size: int) -> list[Any]:
        """All rows of a query over a cursor."""
        if self.name == "async":
            return [row async for row in query.aiterator(size)]
        return await asyncio.to_thread(lambda: list(query.iterator(size)))

    async def call(self, function: Callable[[], Any], twin: Callable[[], Awaitable[Any]]) -> Any:
        """Either of two functions."""
        return await twin() if self.name == "async" else await asyncio.to_thread(function)


class Caller:
    """Calls the methods of one object in one half."""

    def __init__(self, half: str, target: Any) -> None:
        self._half = half
        self._target = target

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        if self._half == "async":
            return getattr(self._target, f"a{name}")

        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(getattr(self._target, name), *args, **kwargs)

        return call


@pytest.fixture(params=["async", "sync"])
def half(request: pytest.FixtureRequest) -> Half:
    return Half(request.param)


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    try:
        with orm_postgres.server() as maintenance, orm_postgres.database(maintenance) as dsn:
            yield dsn
    except orm_postgres.NoServer as error:
        pytest.fail(f"No real PostgreSQL: {error}")


@pytest.fixture(params=["sqlite", "postgres"])
def engine(request: pytest.FixtureRequest) -> str:
    return request.param


class Place:
    """Where a test's database is, so that a test can configure it again."""

    def __init__(self, engine: str, address: str, schema: str) -> None:
        self.engine = engine
        self.address = address
        self.schema = schema

    def configure(self, **options: Any) -> Database:
        """Configure the test's database with more options."""
        if self.engine == "sqlite":
            configure("sqlite", self.address, **options)
        else:
            settings = {"search_path": self.schema, **options.pop("server_settings", {})}
            configure("postgres", self.address, server_settings=settings, **options)
        return database_for(options.get("alias", "default"))


class Admin:
    """A connection of the tests' own, on a loop of its own, for setting up and cleaning."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._loop = asyncio.new_event_loop()
        connect: Any = cast("Any", asyncpg).connect
        self._connection: Any = self._loop.run_until_complete(connect(dsn))

    def run(self, sql: str) -> Any:
        """Run statements."""
        return self._loop.run_until_complete(self._connection.execute(sql))

    def value(self, sql: str) -> Any:
        """The one value of a query."""
        return self._loop.run_until_complete(self._connection.fetchval(sql))

    def close(self) -> None:
        """Close the connection."""
        self._loop.run_until_complete(self._connection.close())
        self._loop.close()


@pytest.fixture(scope="session")
def admin(postgres_dsn: str) -> Iterator[Admin]:
    made = Admin(postgres_dsn)
    yield made
    made.close()


@pytest.fixture(scope="session")
def postgres_tables(admin: Admin) -> str:
    """A schema with the tables of `orm_models`, emptied between tests."""
    admin.run("CREATE SCHEMA shared")
    place = Place("postgres", admin.dsn, "shared")
    place.configure()
    create_all(*orm_models.ALL)
    close_all()
    return "shared"


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with the tables of `orm_models`, copied for each test."""
    path = tmp_path_factory.mktemp("template") / "template.sqlite3"
    Place("sqlite", str(path), "").configure()
    create_all(*orm_models.ALL)
    close_all()
    return path


@pytest.fixture
def place(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    if engine == "sqlite":
        path = tmp_path / "test.sqlite3"
        shutil.copy(request.getfixturevalue("sqlite_template"), path)
        return Place(engine, str(path), "")
    schema: str = request.getfixturevalue("postgres_tables")
    admin: Admin = request.getfixturevalue("admin")
    tables = [meta.table for meta in reversed(order_of(orm_models.ALL))]
    admin.run("; ".join(f"DELETE FROM {schema}.{table}" for table in tables))
    return Place(engine, admin.dsn, schema)


@pytest.fixture
def empty(engine: str, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """A place without any tables."""
    _databases.clear()
    if engine == "sqlite":
        made = Place(engine, str(tmp_path / "empty.sqlite3"), "")
        made.configure()
        yield made
    else:
        admin: Admin = request.getfixturevalue("admin")
        schema = f"s{next(_numbers)}"
        admin.run(f"CREATE SCHEMA {schema}")
        made = Place(engine, admin.dsn, schema)
        made.configure()
        yield made
        close_all()
        admin.run(f"DROP SCHEMA {schema} CASCADE")
    close_all()
    _databases.clear()


@pytest.fixture
def rows(
    engine: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """The rows of `orm_amounts`, in tables that are made once."""
    _databases.clear()
    place = _amounts.get(engine)
    if place is None:
        if engine == "sqlite":
            file = tmp_path_factory.mktemp("amounts") / "amounts.sqlite3"
            place = Place(engine, str(file), "")
        else:
            admin: Admin = request.getfixturevalue("admin")
            admin.run("CREATE SCHEMA amounts")
            place = Place(engine, admin.dsn, "amounts")
        place.configure()
        create_all(*orm_amounts.ALL)
        _amounts[engine] = place
    else:
        place.configure()
    orm_amounts.fill()
    yield
    close_all()
    _databases.clear()


_amounts: dict[str, Place] = {}


@cache
def order_of(models: tuple[type[Model], ...]) -> list[Meta]:
    """Metas of models and their connecting tables, targets first."""
    by_table = {meta.table_name: meta for meta in _collect_models_to_create(models)}
    operations = plan_tables(by_table.values(), SQLite())
    return [by_table[op.table.name] for op in operations if isinstance(op, CreateTable)]


@pytest.fixture
def db(place: Place) -> Iterator[Database]:
    _databases.clear()
    yield place.configure()
    close_all()
    _databases.clear()
