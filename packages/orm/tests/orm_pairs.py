"""Two databases behind the aliases `default` and `other`, on each pair of engines."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from treefold_orm import Model, close_all, configure, create_all
from treefold_orm._runtime.connections import _databases

ALIASES = ("default", "other")
PAIRS = [("sqlite", "sqlite"), ("postgres", "postgres"), ("sqlite", "postgres")]
_numbers = itertools.count()


@contextmanager
def open_pair(
    request: pytest.FixtureRequest, engines: tuple[str, str], folder: Path, *models: type[Model]
) -> Generator[None]:
    """Configure a database on each of two engines, with tables."""
    _databases.clear()
    schemas: list[str] = []
    for alias, engine in zip(ALIASES, engines, strict=True):
        if engine == "sqlite":
            configure("sqlite", folder / f"{alias}.sqlite3", alias=alias)
        else:
            admin: Any = request.getfixturevalue("admin")
            schemas.append(f"pair{next(_numbers)}")
            admin.run(f"CREATE SCHEMA {schemas[-1]}")
            settings = {"search_path": schemas[-1]}
            configure("postgres", admin.dsn, alias=alias, server_settings=settings)
        create_all(*models, using=alias)
    yield
    close_all()
    _databases.clear()
    for schema in schemas:
        request.getfixturevalue("admin").run(f"DROP SCHEMA {schema} CASCADE")
