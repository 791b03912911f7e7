"""Aliases: `configure` gives a name to a database, everything else looks it up here.

A second `configure` for an alias replaces the first and closes its connections. Nothing is opened
before it is used, and no driver imported before it is configured.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib import import_module
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from treefold_orm._base.databases import DEFAULT
from treefold_orm._base.errors import ConfigurationError
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._fields.registry import registry
from treefold_orm._runtime.addresses import check_synchronous_option, parse_sqlite_address

if TYPE_CHECKING:
    import asyncio

    from treefold_orm._drivers.base import Database

Backend = Literal["sqlite", "postgres"]

_databases: dict[str, Database] = {}


@frozen_record
class _Options(Record):
    """The options of `configure`, as they are where they are not given."""

    login: Mapping[str, Any] = MappingProxyType({})
    pool_size: int | None = None
    pool_timeout: float = 10.0
    statement_timeout: float = 30.0
    connect_timeout: float = 5.0
    pooler: str = "session"
    synchronous: str | None = None
    regex: bool = False
    driver_options: Mapping[str, Any] = MappingProxyType({})

    @property
    def given_login(self) -> dict[str, Any]:
        return {name: value for name, value in self.login.items() if value is not None}


def has_several_databases() -> bool:
    """True where more than one database is configured, so that rows may be of different ones."""
    return len(_databases) > 1


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
    synchronous: Literal["normal", "full"] | None = None,
    regex: bool = False,
    **driver_options: Any,
) -> None:
    """Register the database behind `alias`; a second call for the same alias silently replaces the
    first.

    `backend` is "sqlite" or "postgres" and may be left out when `database` is an address such as
    `sqlite:///db.sqlite3` or `postgresql://user@host/name?pool_size=10`. A relative SQLite path is
    relative to the working directory. `pooler="transaction"` suits a pooler that hands out
    connections per transaction. `synchronous="full"` makes a commit to a SQLite file survive a
    power cut; with "normal" the last ones may be lost, never the file. `regex`
    allows the regex lookups. Further options go to the driver as they are. Raises
    `ConfigurationError` for an unknown backend or a missing driver.
    """
    for name in ("plans", "writes"):  # all that compiles: else a request waits for it
        import_module(f"treefold_orm._compile.{name}")
    options = _Options(
        login={"host": host, "port": port, "user": user, "password": password},
        pool_size=pool_size,
        pool_timeout=pool_timeout,
        statement_timeout=statement_timeout,
        connect_timeout=connect_timeout,
        pooler=pooler,
        synchronous=synchronous,
        regex=regex,
        driver_options=driver_options,
    )
    made = _make_database(alias, backend, database, options)
    previous = _databases.get(alias)
    if previous is not None and previous.outer is not None:
        raise ConfigurationError(
            f"Database {alias!r} is in a sandbox: configure it before the test asks for one"
        )
    _databases[alias] = made if _divert is None else _divert(made)
    if previous is not None:
        _close_replaced_database(previous)


_divert: Callable[[Database], Database] | None = None


@contextmanager
def replace_databases_on_configure(
    make_replacement: Callable[[Database], Database],
) -> Generator[None]:
    """Register the result of `make_replacement`, unless a database is configured meanwhile."""
    global _divert  # noqa: PLW0603, RUF100 - of the whole process, as the databases are
    former, _divert = _divert, make_replacement
    try:
        yield
    finally:
        _divert = former


def is_diverted() -> bool:
    """True while databases are replaced, which is while tests run."""
    return _divert is not None


def make_unregistered_database(alias: str, address: str) -> Database:
    """Make the database of an address without registering it."""
    return _make_database(alias, None, address, _Options())


def _make_database(
    alias: str,
    backend: Backend | str | None,
    database: str | os.PathLike[str] | None,
    options: _Options,
) -> Database:
    kind, place, named = _parse_database_location(backend, database)
    if kind == "postgres":
        if options.synchronous is not None:
            raise ConfigurationError(
                "synchronous is an option of SQLite: PostgreSQL has synchronous_commit, to be "
                "given in server_settings"
            )
        return _make_postgres_database(alias, place, options)
    if options.synchronous is not None:
        check_synchronous_option(options.synchronous)
        named["synchronous"] = options.synchronous
    if unknown := sorted((*options.given_login, *options.driver_options)):
        raise ConfigurationError(
            f"SQLite takes no option {unknown[0]!r}: a database path is all it needs"
        )
    given: dict[str, Any] = {"regex": options.regex, "timeout": options.pool_timeout, **named}
    if options.pool_size is not None:
        given["readers"] = options.pool_size
    from treefold_orm._drivers.sqlite import SQLiteDatabase

    return SQLiteDatabase(alias, database=place, **given)


def make_unregistered_postgres(address: str, *, connect_timeout: float) -> Database:
    """Make the PostgreSQL database of an address, which no alias is to name.

    Raises:
        ConfigurationError: as `configure`.
    """
    options = _Options(
        pool_size=1,
        pool_timeout=connect_timeout,
        statement_timeout=connect_timeout,
        connect_timeout=connect_timeout,
    )
    return _make_postgres_database("default", address, options)


def _parse_database_location(
    backend: str | None, database: str | os.PathLike[str] | None
) -> tuple[Backend, str, dict[str, Any]]:
    place = "" if database is None else os.fspath(database)
    scheme = place.partition("://")[0] if "://" in place else None
    if backend is None:
        if scheme is None:
            raise ConfigurationError(
                "configure() needs backend='sqlite' or 'postgres', or a database address"
            )
        backend = scheme
    if backend == "sqlite":
        path, options = place, dict[str, str]()
        if scheme == "sqlite":
            path, options = parse_sqlite_address(place.removeprefix("sqlite://"))
            # sqlite:///x.db is relative, sqlite:////srv/x.db absolute, as in other tools
            path = path.removeprefix("/")
        if not path:
            raise ConfigurationError(
                "configure(backend='sqlite') needs database=: a path or ':memory:'"
            )
        # absolute: connections are opened later, perhaps in another working directory
        return "sqlite", path if path == ":memory:" else os.path.abspath(path), options
    if backend in {"postgres", "postgresql"}:
        return "postgres", place, {}
    raise ConfigurationError(f"{backend!r} is not a known backend: use 'sqlite' or 'postgres'")


def _make_postgres_database(alias: str, place: str, options: _Options) -> Database:
    try:
        from treefold_orm._drivers.postgres import PostgresDatabase
    except ImportError:
        raise ConfigurationError(
            "PostgreSQL needs asyncpg: pip install 'treefold-orm[postgres]'"
        ) from None
    from urllib.parse import parse_qsl, unquote, urlencode, urlsplit

    given, pool_size = options.given_login, options.pool_size
    connect = dict(options.driver_options)
    if "://" in place:
        address = urlsplit(place)
        query = dict(parse_qsl(address.query))
        if "pool_size" in query:
            pool_size = int(query.pop("pool_size"))
        if "application_name" in query:  # in the address, it would yield to our own
            named = {"application_name": query.pop("application_name")}
            connect["server_settings"] = {**named, **connect.get("server_settings", {})}
        host = address.hostname
        connect["dsn"] = address._replace(query=urlencode(query)).geturl()
        if host is not None and "sslmode" not in query and "ssl" not in connect:
            # the folder of a socket comes percent-encoded here, as %2Fvar%2Frun
            connect["ssl"] = _choose_tls_mode(unquote(host))
    else:
        connect["database"] = place
        given.setdefault("host", "127.0.0.1")
        connect.setdefault("ssl", _choose_tls_mode(str(given["host"])))
    return PostgresDatabase(
        alias,
        connect={**connect, **given},
        size=pool_size or 10,
        timeout=options.pool_timeout,
        statement_timeout=options.statement_timeout,
        connect_timeout=options.connect_timeout,
        pooler=options.pooler,
        regex=options.regex,
    )


def _choose_tls_mode(host: str) -> Any:
    if host.startswith("/") or host == "localhost":
        return "prefer"
    import ipaddress
    import ssl

    try:
        local = ipaddress.ip_address(host).is_loopback
    except ValueError:
        local = False
    # "prefer" goes on in plain text where TLS is refused, as by an attacker on the way: elsewhere
    # the server must prove its name
    return "prefer" if local else ssl.create_default_context()


def _close_replaced_database(previous: Database) -> None:
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


# a loop holds its tasks weakly: without this set one could vanish before it has run
_closing: set[asyncio.Task[None]] = set()


def database_for(alias: str) -> Database:
    """Return the database behind an alias, or raise `ConfigurationError`."""
    found = _databases.get(alias)
    if found is None:
        raise _build_not_configured_error(alias)
    return found


def _build_not_configured_error(alias: str) -> ConfigurationError:
    known = ", ".join(sorted(_databases)) or "none is"
    living = sorted({meta.name for meta in registry if meta.database == alias != DEFAULT})
    if not living:
        return ConfigurationError(
            f"Database {alias!r} is not configured ({known}): call configure() first"
        )
    return ConfigurationError(
        f"Database {alias!r} is not configured ({known}), and Meta.database of {', '.join(living)} "
        f"names it: add {alias!r} to the setting databases, or call configure(alias={alias!r}) "
        "first"
    )


def aliases() -> list[str]:
    """Return the configured aliases."""
    return list(_databases)


def close_all() -> None:
    """Close every connection of every database, blocking this thread; later use opens new ones."""
    for database in list(_databases.values()):
        database.close()


async def aclose_all() -> None:
    """Close every connection of every database; call it before the event loop ends."""
    if _closing:
        import asyncio

        await asyncio.gather(*_closing)
    for database in list(_databases.values()):
        await database.aclose()


def _forget_connections_after_fork() -> None:
    for database in _databases.values():
        database.forget_connections()


# Windows has no fork
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_connections_after_fork)
atexit.register(close_all)
