"""Databases of a test run: made once, in place of those that are configured, dropped at its end.

A SQLite file becomes a file in a folder of the run; PostgreSQL gets a database `test_<name>` on
the same server, which no other run uses meanwhile. A database that is named for tests is used as
it is. Nothing here knows pytest.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Generator, Iterable, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from treefold_orm._base.errors import ConfigurationError, DatabaseError, ORMError
from treefold_orm._base.names import quote
from treefold_orm._base.statement import CoroutineOf, Operation, Statement
from treefold_orm._drivers.base import Database, make_statement_operation
from treefold_orm._drivers.sqlite import SQLiteDatabase
from treefold_orm._fields.meta import registry
from treefold_orm._runtime.connections import (
    _databases,
    make_unregistered_database,
    replace_databases_on_configure,
)
from treefold_orm._runtime.sandbox import Sandbox
from treefold_orm._schema.create import create_all

if TYPE_CHECKING:
    from treefold_orm._drivers.postgres import PostgresDatabase

T = TypeVar("T")

LONGEST_NAME = 63
"""Bytes of a name in PostgreSQL."""
TRIES = 9
"""Runs side by side on one server."""
NAME_ONE = "name one for tests: [test.databases] in treefold.toml, or TREEFOLD_TEST_DATABASE_URL"

_active: list[OwnDatabases] = []


class OwnDatabases:
    """The databases of one run.

    Args:
        folder: where SQLite files go.
        worker: the name that tells parallel workers of one run apart; empty without any.
        named: alias to the address of a database to use as it is.
        reuse: keep the databases on servers, and use those that an earlier run has kept.

    Attributes:
        prepared: True once the tables were made, by an application or by `prepare`.
    """

    def __init__(
        self,
        folder: Path,
        *,
        worker: str = "",
        named: Mapping[str, str] | None = None,
        reuse: bool = False,
    ) -> None:
        self.named = dict(named or {})
        self.prepared = False
        self._folder = folder
        self._worker = worker
        self._reuse = reuse
        self._made: list[Database] = []  # by this run; all are closed at its end
        # the file of this run by that of the application, and the test database by its server
        self._files: dict[str, str] = {}
        self._servers: dict[str, _TestDatabase] = {}
        self._tables_of = 0  # the number of models that had tables: further ones get theirs

    @contextmanager
    def active(self) -> Generator[None]:
        """Put databases of this run in the place of those that are or get configured."""
        with ExitStack() as stack:
            if not _active:
                stack.enter_context(replace_databases_on_configure(self._replace_database))
            _active.append(self)
            stack.callback(_active.pop)
            for alias, database in list(_databases.items()):
                if not isinstance(database, Sandbox) and database not in self._made:
                    _databases[alias] = self._replace_database(database)
                    database.close()
            yield

    def prepare(self, root: Path) -> None:
        """Make the tables of the models that there are, unless an application has prepared.

        Args:
            root: where the project is; its migrations make the tables, if it has any.
        """
        # more models than before: some were imported since, and lack their tables
        if not self.prepared and len(list(registry)) != self._tables_of:
            if not _apply_migrations(root):
                create_tables(_databases)
            self._tables_of = len(list(registry))

    def close(self) -> None:
        """Close the databases of this run and drop those on servers, unless they are kept."""
        for alias, database in list(_databases.items()):
            if database in self._made:
                del _databases[alias]
        while self._made:
            self._made.pop().close()
        while self._servers:
            self._servers.popitem()[1].close()

    def _replace_database(self, database: Database) -> Database:
        made = self._build_replacement(database)
        self._made.append(made)
        return made

    def _build_replacement(self, database: Database) -> Database:
        alias = database.alias
        if alias in self.named:
            made = make_unregistered_database(alias, self.named[alias])
            made.dialect.regex = database.dialect.regex
            return made
        if isinstance(database, SQLiteDatabase):
            # one in memory would lose its tables when an application closes its connections
            return database.with_database(
                self._assign_test_file(alias if database.single else database.database)
            )
        from treefold_orm._drivers.postgres import PostgresDatabase

        assert isinstance(database, PostgresDatabase)  # noqa: S101 - there are two kinds
        server = self._servers.get(database.place)
        if server is None:
            server = _TestDatabase(database, self._worker, reuse=self._reuse)
            self._servers[database.place] = server
        return database.with_database(server.name)

    def _assign_test_file(self, path: str) -> str:
        name = f"{len(self._files)}-{Path(path).name}"
        return self._files.setdefault(path, str(self._folder / name))


def register_test_addresses(addresses: Mapping[str, str]) -> None:
    """Tell the run, if there is one, which databases are named for tests; earlier names win."""
    for own in _active:
        own.named = {**addresses, **own.named}


def create_test_tables(root: Path) -> None:
    """Make the tables of a project that started in a run, unless the run has them already."""
    for own in _active[-1:]:
        own.prepare(root)


def create_tables(aliases: Iterable[str]) -> None:
    """Create the missing tables of the models that live on each of these databases."""
    for alias in list(aliases):
        create_all(using=alias)


@dataclass(frozen=True, slots=True)
class _Project:
    """Stand-in for an application: the attributes that an installed extension reads."""

    root: Path

    @property
    def settings(self) -> _Project:
        return self

    @property
    def databases(self) -> Mapping[str, str]:
        return {}


def _apply_migrations(root: Path) -> bool:
    """Apply the migrations of the project through the installed extensions; return False without
    any.
    """
    outcomes: list[object] = []
    for point in entry_points(group="treefold.extensions"):
        extension: Any = point.load()()
        if hasattr(extension, "apply"):
            extension.setup(_Project(root))
            outcomes.append(extension.apply())
    return any(outcome is not None for outcome in outcomes)


class _TestDatabase:
    """A database `test_<name>` on a server, locked against other runs until it is closed.

    It is new and dropped at the end, or with `reuse` taken as it is and kept. The lock is one of a
    session, on a connection that stays open on a loop in a thread.
    """

    def __init__(self, real: PostgresDatabase, worker: str, *, reuse: bool) -> None:
        self._reuse = reuse
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="treefold-test-database", daemon=True
        )
        self._thread.start()
        # CREATE DATABASE needs a connection, and that to another database
        self._maintenance = real.with_database("postgres")
        self._session: Any = None
        try:
            self.name = self._run_on_loop(
                self._lock_and_create_database(_build_test_database_name(real.database, worker))
            )
        except ORMError as error:
            self._close_connections_and_loop()
            failure = _build_creation_error(_build_test_database_name(real.database, worker), error)
        else:
            return
        raise failure

    def close(self) -> None:
        """Drop the database, unless it is kept, and end the lock."""
        try:
            if not self._reuse:
                self._run_on_loop(
                    self._run(f"DROP DATABASE IF EXISTS {quote(self.name)} WITH (FORCE)")
                )
        finally:
            self._close_connections_and_loop()

    async def _lock_and_create_database(self, wanted: str) -> str:
        self._session = await self._maintenance.acheckout(write=True)
        for number in range(1, TRIES + 1):
            name = wanted if number == 1 else _shorten_database_name(f"{wanted}_{number}")
            if await self._session.arun(_query_boolean(_LOCK, name)):
                if self._reuse and await self._session.arun(_query_boolean(_EXISTS, name)):
                    return name
                # left by a run that was killed; FORCE, for connections that are still open there
                await self._run(f"DROP DATABASE IF EXISTS {quote(name)} WITH (FORCE)")
                await self._run(f"CREATE DATABASE {quote(name)}")
                return name
        raise DatabaseError(f"{TRIES} test runs use databases of this name now")

    async def _run(self, sql: str) -> None:
        await self._session.arun(make_statement_operation(sql))

    def _run_on_loop(self, work: CoroutineOf[T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def _close_connections_and_loop(self) -> None:
        self._run_on_loop(self._release_connections())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _release_connections(self) -> None:
        if self._session is not None:
            await self._maintenance.acheckin(self._session)
        await self._maintenance.aclose()


_LOCK = "SELECT pg_try_advisory_lock(hashtext($1))"
_EXISTS = "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)"


def _query_boolean(sql: str, name: str) -> Operation[bool]:
    rows = yield Statement("rows", sql, (name,))
    return bool(rows[0][0])


def _build_test_database_name(name: str, worker: str) -> str:
    return _shorten_database_name(f"test_{name}" + (f"_{worker}" if worker else ""))


def _shorten_database_name(name: str) -> str:
    # PostgreSQL cuts longer names without a word, and two of them would be one database
    if len(name.encode()) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(name.encode()).hexdigest()[:8]
    # the cut may go through the bytes of a letter, which errors="ignore" drops
    kept = name.encode()[: LONGEST_NAME - len(digest) - 1].decode(errors="ignore")
    return f"{kept}_{digest}"


def _build_creation_error(name: str, error: ORMError) -> ConfigurationError:
    # insufficient_privilege
    denied = isinstance(error, DatabaseError) and error.code == "42501"
    way = f"grant CREATEDB to its user, or {NAME_ONE}" if denied else NAME_ONE
    return ConfigurationError(
        f"Tests use a database of their own, and {name!r} cannot be made: {error}; {way}"
    )
