"""Aliases: `configure` gives a name to a database, everything else looks it up here.

A second `configure` for an alias replaces the first and closes its connections. Nothing is opened
before it is used, and no driver imported before it is configured.
"""

from __future__ import annotations

import atexit
import os
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

from treefold_orm._errors import ConfigurationError

if TYPE_CHECKING:
    import asyncio

    from treefold_orm.drivers._base import Database

Backend = Literal["sqlite", "postgres"]

_databases: dict[str, Database] = {}


def configure(
    backend: Backend | str | None = None,
    database: str | os.PathLike[str] | None = None,
    *,
    alias: str = "default",
    host: str | None = None,
    port: int | None = None,
    user: str | None = None,
    password: str | None = None,
    pool_size: int | None = None,
    pool_timeout: float = 10.0,
    statement_timeout: float = 30.0,
    connect_timeout: float = 5.0,
    pooler: Literal["session", "transaction"] = "session",
    regex: bool = False,
    **driver_options: Any,
) -> None:
    """Register the database behind `alias`; a second call for the same alias silently replaces the
    first.

    `backend` is "sqlite" or "postgres" and may be left out when `database` is an address such as
    `sqlite:///db.sqlite3` or `postgresql://user@host/name?pool_size=10`. A relative SQLite path is
    relative to the working directory. `pooler="transaction"` suits a pooler that hands out
    connections per transaction; `regex` allows the regex lookups. Further options go to the driver
    as they are. Raises `ConfigurationError` for an unknown backend or a missing driver.
    """
    import_module("treefold_orm._compile._writes")  # all that compiles: else a request waits for it
    given = {"host": host, "port": port, "user": user, "password": password}
    kind, place = _split(backend, database)
    options: dict[str, Any] = {"regex": regex, "timeout": pool_timeout}
    if kind == "sqlite":
        if unknown := sorted([k for k, v in given.items() if v is not None] + list(driver_options)):
            raise ConfigurationError(
                f"SQLite takes no option {unknown[0]!r}: a database path is all it needs"
            )
        if pool_size is not None:
            options["readers"] = pool_size
        from treefold_orm.drivers._sqlite import SQLiteDatabase

        made: Database = SQLiteDatabase(alias, database=place, **options)
    else:
        made = _postgres(
            alias,
            place,
            {k: v for k, v in given.items() if v is not None},
            options,
            pool_size=pool_size,
            statement_timeout=statement_timeout,
            connect_timeout=connect_timeout,
            pooler=pooler,
            driver_options=driver_options,
        )
    previous = _databases.get(alias)
    if previous is not None and previous.outer is not None:
        raise ConfigurationError(
            f"Database {alias!r} is in a sandbox: configure it before the test asks for one"
        )
    _databases[alias] = made
    if previous is not None:
        _replace(previous)


def unnamed(address: str, *, connect_timeout: float) -> Database:
    """Make the PostgreSQL database of an address, which no alias is to name.

    Raises:
        ConfigurationError: as `configure`.
    """
    options = {"regex": False, "timeout": connect_timeout}
    return _postgres(
        "default",
        address,
        {},
        options,
        pool_size=1,
        statement_timeout=connect_timeout,
        connect_timeout=connect_timeout,
        pooler="session",
        driver_options={},
    )


def _split(backend: str | None, database: str | os.PathLike[str] | None) -> tuple[Backend, str]:
    place = "" if database is None else os.fspath(database)
    scheme = place.partition("://")[0] if "://" in place else None
    if backend is None:
        if scheme is None:
            raise ConfigurationError(
                "configure() needs backend='sqlite' or 'postgres', or a database address"
            )
        backend = scheme
    if backend == "sqlite":
        path = place.removeprefix("sqlite://").removeprefix("/") if scheme == "sqlite" else place
        if not path:
            raise ConfigurationError(
                "configure(backend='sqlite') needs database=: a path or ':memory:'"
            )
        return "sqlite", path if path == ":memory:" else os.path.abspath(path)
    if backend in {"postgres", "postgresql"}:
        return "postgres", place
    raise ConfigurationError(f"{backend!r} is not a known backend: use 'sqlite' or 'postgres'")


def _postgres(
    alias: str,
    place: str,
    given: dict[str, Any],
    options: dict[str, Any],
    *,
    pool_size: int | None,
    statement_timeout: float,
    connect_timeout: float,
    pooler: str,
    driver_options: dict[str, Any],
) -> Database:
    try:
        from treefold_orm.drivers._postgres import PostgresDatabase
    except ImportError:
        raise ConfigurationError(
            "PostgreSQL needs asyncpg: pip install 'treefold-orm[postgres]'"
        ) from None
    from urllib.parse import parse_qsl, unquote, urlsplit

    connect = dict(driver_options)
    if "://" in place:
        address = urlsplit(place)
        query = dict(parse_qsl(address.query))
        if "pool_size" in query:
            pool_size = int(query.pop("pool_size"))
        host = address.hostname
        place = address._replace(query="&".join(f"{k}={v}" for k, v in query.items())).geturl()
        connect["dsn"] = place
        if host is not None and "sslmode" not in query and "ssl" not in connect:
            connect["ssl"] = _tls(unquote(host))
    else:
        connect["database"] = place
        given.setdefault("host", "127.0.0.1")
        connect.setdefault("ssl", _tls(str(given["host"])))
    return PostgresDatabase(
        alias,
        connect={**connect, **given},
        size=pool_size or 10,
        statement_timeout=statement_timeout,
        connect_timeout=connect_timeout,
        pooler=pooler,
        **options,
    )


def _tls(host: str) -> Any:
    if host.startswith("/") or host == "localhost":
        return "prefer"
    import ipaddress
    import ssl

    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    return "prefer" if local else ssl.create_default_context()


def _replace(previous: Database) -> None:
    if not previous.in_use:
        return
    import asyncio
    import logging

    logging.getLogger("treefold.orm").warning(
        "Database %r was configured again: the connections of the first configuration are closed",
        previous.alias,
    )
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        previous.close()
    else:
        task = loop.create_task(previous.aclose())
        _closing.add(task)
        task.add_done_callback(_closing.discard)


_closing: set[asyncio.Task[None]] = set()


def database_for(alias: str) -> Database:
    """Return the database behind an alias, or raise `ConfigurationError`."""
    found = _databases.get(alias)
    if found is None:
        known = ", ".join(sorted(_databases)) or "none is"
        raise ConfigurationError(
            f"Database {alias!r} is not configured ({known}): call configure() first"
        )
    return found


def aliases() -> list[str]:
    """Return the configured aliases."""
    return list(_databases)


def close_all() -> None:
    """Close every connection of every database, blocking this thread; later use opens them anew."""
    for database in list(_databases.values()):
        database.close()


async def aclose_all() -> None:
    """Close every connection of every database; call it before the event loop ends."""
    if _closing:
        import asyncio

        await asyncio.gather(*_closing)
    for database in list(_databases.values()):
        await database.aclose()


def _after_fork() -> None:
    for database in _databases.values():
        database.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(close_all)
