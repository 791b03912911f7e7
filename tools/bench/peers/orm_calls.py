"""Three calls by each ORM and the raw driver: one row by key, 1,000 instances, one insert.

Async on both engines, over one table of five columns. Each library opens its own connections.
"""

from __future__ import annotations

import importlib
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any
from urllib.parse import urlsplit

from orm_data import NOW, BenchItem, connect

Call = Callable[[], Awaitable[Any]]
Calls = dict[str, Call]
TABLE = "benchitem"
SELECT = 'SELECT "id", "title", "body", "views", "created" FROM "benchitem" WHERE '
INSERT = 'INSERT INTO "benchitem" ("title", "body", "views", "created") VALUES '
NEW = {"title": "title", "body": "body", "views": 3, "created": NOW}


async def raw_sqlite(path: str, stack: AsyncExitStack) -> Calls:
    """aiosqlite with one hop a call."""
    import aiosqlite

    database = await aiosqlite.connect(path, isolation_level=None, cached_statements=1000)
    stack.push_async_callback(database.close)
    values = ("title", "body", 3, str(NOW))
    return {
        "get": lambda: database.execute_fetchall(f"{SELECT}id = ?", (7,)),
        "list": lambda: database.execute_fetchall(f"{SELECT}id <= 1000"),
        "insert": lambda: database.execute_fetchall(f"{INSERT}(?, ?, ?, ?) RETURNING id", values),
    }


async def raw_postgres(dsn: str, stack: AsyncExitStack) -> Calls:
    """asyncpg on a connection held open."""
    database = await connect(dsn)
    stack.push_async_callback(database.close)
    insert = f"{INSERT}($1, $2, $3, $4) RETURNING id"
    return {
        "get": lambda: database.fetchrow(f"{SELECT}id = $1", 7),
        "list": lambda: database.fetch(f"{SELECT}id <= 1000"),
        "insert": lambda: database.fetchval(insert, "title", "body", 3, NOW),
    }


async def treefold(address: str, stack: AsyncExitStack) -> Calls:
    """treefold, configured before for this database."""
    objects = BenchItem.objects
    return {
        "get": lambda: objects.aget(id=7),
        "list": lambda: _awaited(objects.filter(id__lte=1000)),
        "insert": lambda: objects.acreate(**NEW),
    }


async def _awaited(query: Any) -> Any:
    return await query


async def sqlalchemy(address: str, stack: AsyncExitStack) -> Calls:
    """SQLAlchemy's ORM with a session for each call, as a request has one."""
    library: Any = importlib.import_module("sqlalchemy")
    orm: Any = importlib.import_module("sqlalchemy.orm")
    aio: Any = importlib.import_module("sqlalchemy.ext.asyncio")

    class Base(orm.DeclarativeBase):
        pass

    Item: Any = type(
        "Item",
        (Base,),
        {
            "__tablename__": TABLE,
            "id": library.Column(library.Integer, primary_key=True),
            "title": library.Column(library.String(100)),
            "body": library.Column(library.Text),
            "views": library.Column(library.Integer),
            "created": library.Column(library.DateTime(timezone=True)),
        },
    )
    url = address.replace("postgresql://", "postgresql+asyncpg://")
    if not address.startswith("postgresql"):
        url = f"sqlite+aiosqlite:///{address}"
    engine = aio.create_async_engine(url)
    stack.push_async_callback(engine.dispose)
    session = aio.async_sessionmaker(engine, expire_on_commit=False)

    async def get() -> Any:
        async with session() as work:
            return await work.get(Item, 7)

    async def rows() -> Any:
        async with session() as work:
            return (await work.scalars(library.select(Item).where(Item.id <= 1000))).all()

    async def insert() -> Any:
        async with session() as work:
            work.add(Item(**NEW))
            await work.commit()

    return {"get": get, "list": rows, "insert": insert}


async def django(address: str, stack: AsyncExitStack) -> Calls:
    """Django's ORM by its async methods."""
    conf: Any = importlib.import_module("django.conf")
    library: Any = importlib.import_module("django")
    found = urlsplit(address)
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": address}
    if address.startswith("postgresql"):
        database = {
            "ENGINE": "django.db.backends.postgresql",
            "NAME": found.path[1:],
            "HOST": found.hostname,
            "PORT": found.port,
            "USER": found.username,
            "PASSWORD": found.password or "",
        }
    if not conf.settings.configured:
        databases = {"default": database}
        conf.settings.configure(DATABASES=databases, USE_TZ=True, INSTALLED_APPS=[])
        library.setup()
    models: Any = importlib.import_module("django.db.models")
    meta = type("Meta", (), {"app_label": "bench", "db_table": TABLE, "managed": False})
    Item: Any = type(
        "Item",
        (models.Model,),
        {
            "__module__": __name__,
            "Meta": meta,
            "title": models.CharField(max_length=100),
            "body": models.TextField(),
            "views": models.IntegerField(),
            "created": models.DateTimeField(),
        },
    )

    async def rows() -> Any:
        return [one async for one in Item.objects.filter(id__lte=1000)]

    return {
        "get": lambda: Item.objects.aget(id=7),
        "list": rows,
        "insert": lambda: Item.objects.acreate(**NEW),
    }


async def tortoise(address: str, stack: AsyncExitStack) -> Calls:
    """Tortoise ORM."""
    library: Any = importlib.import_module("tortoise")
    models: Any = importlib.import_module("tortoise_models")
    url = address if address.startswith("postgresql") else f"sqlite://{address}"
    await library.Tortoise.init(
        db_url=url.replace("postgresql://", "asyncpg://"), modules={"models": ["tortoise_models"]}
    )
    stack.push_async_callback(library.Tortoise.close_connections)

    async def get() -> Any:
        return await models.Item.get(id=7)

    async def rows() -> Any:
        return await models.Item.filter(id__lte=1000)

    async def insert() -> Any:
        return await models.Item.create(**NEW)

    return {"get": get, "list": rows, "insert": insert}


PEERS: dict[str, tuple[str, Callable[[str, AsyncExitStack], Awaitable[Calls]]]] = {
    "SQLAlchemy": ("sqlalchemy", sqlalchemy),
    "Django": ("django", django),
    "Tortoise": ("tortoise-orm", tortoise),
}
"""Name to distribution and calls."""
