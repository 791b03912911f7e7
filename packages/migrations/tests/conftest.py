"""Tests of migrations share the helpers of the ORM's tests, and a database of each engine."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "orm" / "tests"))

from plan_engines import Bench, PostgresBench, SQLiteBench
from run_place import close_sessions

from treefold_orm import close_all

# a limit of the clock for each example would fail on a busy machine
settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")

orm_postgres: Any = importlib.import_module("orm_postgres")


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    try:
        with orm_postgres.server() as maintenance, orm_postgres.database(maintenance) as dsn:
            yield dsn
            close_sessions()
    except orm_postgres.NoServer as error:
        pytest.fail(f"No real PostgreSQL: {error}")


@pytest.fixture(scope="module")  # other modules close all connections
def benches(postgres_dsn: str) -> Iterator[dict[str, Bench]]:
    found: dict[str, Bench] = {"sqlite": SQLiteBench(), "postgres": PostgresBench(postgres_dsn)}
    yield found
    close_all()


@pytest.fixture(params=["sqlite", "postgres"])
def bench(request: pytest.FixtureRequest, benches: dict[str, Bench]) -> Bench:
    return benches[request.param]
