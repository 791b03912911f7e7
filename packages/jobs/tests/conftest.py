"""Tests of jobs share the PostgreSQL of the ORM's tests, and run enqueueing in both halves."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))
sys.path.append(str(Path(__file__).parents[2] / "orm" / "tests"))

from treefold_orm import aclose_all

# a limit of the clock for each example would fail on a busy machine
settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")

orm_postgres: Any = importlib.import_module("orm_postgres")


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


@pytest.fixture(params=["async", "sync"])
def half(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="session")
def postgres_dsn() -> Iterator[str]:
    try:
        with orm_postgres.server() as maintenance, orm_postgres.database(maintenance) as dsn:
            yield dsn
    except orm_postgres.NoServer as error:
        pytest.fail(f"No real PostgreSQL: {error}")
