"""Both engines with the rows of the table, under the names that the runner asks for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crossing.values import Cross, store
from treefold_orm import close_all, configure, create_all
from treefold_orm._runtime.connections import _databases

ENGINES = ("sqlite", "postgres")


@pytest.fixture(scope="module")
def engines(
    tmp_path_factory: pytest.TempPathFactory, postgres_dsn: str, admin: Any
) -> Iterator[tuple[str, ...]]:
    """Both engines with the rows, each under its name."""
    _databases.clear()
    path: Path = tmp_path_factory.mktemp("crossing") / "crossing.sqlite3"
    configure("sqlite", str(path), alias="sqlite")
    admin.run("CREATE SCHEMA crossing")
    # a value must not depend on the zone of the session
    settings = {"search_path": "crossing", "TimeZone": "America/New_York"}
    configure("postgres", postgres_dsn, alias="postgres", server_settings=settings)
    for alias in ENGINES:
        create_all(Cross, using=alias)
        store(alias)
    yield ENGINES
    close_all()
    _databases.clear()
    admin.run("DROP SCHEMA crossing CASCADE")
