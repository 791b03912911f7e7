"""The Chinook sample database, loaded from its two files into SQLite and PostgreSQL.

The folder holds `chinook_sqlite.sql.gz` and `chinook_postgres.sql.gz`, as their author publishes
them. On PostgreSQL the tables get a schema of their own.
"""

from __future__ import annotations

import gzip
import importlib.util
import re
import sqlite3
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information

_OF_PSQL = re.compile(r"^(?:DROP DATABASE|CREATE DATABASE|\\c) .*$", re.MULTILINE)
SCHEMA = "chinook"


def models(engine: str) -> ModuleType:
    """Load the models of `engine`, "sqlite" or "postgres"."""
    name = f"chinook_{engine}"
    if name not in sys.modules:
        place = Path(__file__).with_name("models.py")
        spec = importlib.util.spec_from_file_location(name, place)
        if spec is None or spec.loader is None:
            raise FileNotFoundError(place)
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def load_sqlite(folder: Path, path: Path) -> None:
    """Make a SQLite file of the data."""
    text = _read(folder / "chinook_sqlite.sql.gz")
    connection = sqlite3.connect(path)
    try:
        connection.executescript(f"BEGIN; {text}; COMMIT;")
    finally:
        connection.close()


async def load_postgres(folder: Path, dsn: str) -> None:
    """Make a schema of the data in a database; one that is there is replaced."""
    text = _OF_PSQL.sub("", _read(folder / "chinook_postgres.sql.gz"))
    connect: Any = cast("Any", asyncpg).connect
    connection: Any = await connect(dsn)
    try:
        await connection.execute(f"DROP SCHEMA IF EXISTS {SCHEMA} CASCADE; CREATE SCHEMA {SCHEMA}")
        await connection.execute(f"SET search_path = {SCHEMA}")
        await connection.execute(text)
    finally:
        await connection.close()


def _read(path: Path) -> str:
    return gzip.decompress(path.read_bytes()).decode("utf-8-sig")
