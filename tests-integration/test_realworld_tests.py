"""`treefold test` in the RealWorld application: its tests pass beside rows of development, which
they neither read nor change.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
import subprocess
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, TypeVar

import orm_postgres
from serving import NewDatabase, migrate

T = TypeVar("T")

ROWS = """
INSERT INTO "user" (username, email, password_hash) VALUES ('ann', 'ann@example.org', '-');
INSERT INTO tag (name) VALUES ('oak'), ('elm');
INSERT INTO article (slug, title, description, body, created_at, updated_at, author_id)
VALUES ('trees', 'Trees', 'd', 'b', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, 1);
INSERT INTO article_tags (article_id, tag_id) VALUES (1, 1);
"""
"""Values that the tests of the application use themselves; each of them may be there once."""

WITHOUT_PLUGINS = ["-p", "no:schemathesis", "-p", "no:valkey"]
"""What is installed for the tests of this repository, and no user has."""


def test_the_tests_of_a_project_leave_its_development_database_alone(
    engine: str, realworld: Path, new_database: NewDatabase
) -> None:
    with new_database() as database:
        migrate(realworld, database)
        fill, look = OF_ENGINE[engine]
        fill(database)
        before = look(database)

        done = subprocess.run(
            [sys.executable, "-m", "treefold", "test", *WITHOUT_PLUGINS],
            cwd=realworld,
            env=os.environ | {"TREEFOLD_DATABASE_URL": database},
            capture_output=True,
            text=True,
            check=False,
        )

        assert done.returncode == 0, done.stdout + done.stderr
        assert "12 passed" in done.stdout
        assert look(database) == before


def fill_file(database: str) -> None:
    with closing(sqlite3.connect(path_of(database))) as connection:
        connection.executescript(ROWS)


def bytes_of_files(database: str) -> dict[str, bytes]:
    """Return the content of the database and of the files that SQLite keeps beside it."""
    path = path_of(database)
    return {each.name: each.read_bytes() for each in path.parent.glob(f"{path.name}*")}


def path_of(database: str) -> Path:
    return Path(database.removeprefix("sqlite:///"))


def fill_server(database: str) -> None:
    asked(database, lambda connection: connection.execute(ROWS))


def state_of_server(database: str) -> Sequence[str]:
    """Return all rows and sequences of a database, and the databases that are named after it."""

    async def read(connection: Any) -> Sequence[str]:
        tables = await connection.fetch(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
        )
        names = [row[0] for row in tables]
        assert "article_tags" in names
        statements = [
            *(f'SELECT * FROM "{name}" ORDER BY 1' for name in names),
            "SELECT sequencename, last_value FROM pg_sequences ORDER BY 1",
            "SELECT datname FROM pg_database WHERE datname LIKE '%' || current_database() || '%'",
        ]
        return [repr(await connection.fetch(statement)) for statement in statements]

    return asked(database, read)


def asked(database: str, use: Callable[[Any], Awaitable[T]]) -> T:
    async def work() -> T:
        connection: Any = await orm_postgres.driver.connect(database)
        try:
            return await use(connection)
        finally:
            await connection.close()

    return asyncio.run(work())


OF_ENGINE: dict[str, tuple[Callable[[str], None], Callable[[str], Any]]] = {
    "sqlite": (fill_file, bytes_of_files),
    "postgres": (fill_server, state_of_server),
}
