"""`treefold_orm.connections`: SQL of other packages goes where the queries of the code go."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import pytest

from treefold_orm import ConfigurationError, DatabaseError, SyncCallInAsync, transaction
from treefold_orm.connections import (
    afetch_rows,
    backend_of,
    connect_arguments_of,
    fetch_rows,
    require_blocking_allowed,
)

NAME = "`await afetch_rows()`"


async def fetch(half: Any, sql: str, *args: Any) -> list[dict[str, Any]]:
    return await half.call(
        lambda: fetch_rows("default", sql, args, async_name=NAME),
        lambda: afetch_rows("default", sql, args),
    )


def placeholder(engine: str) -> str:
    return "$1" if engine == "postgres" else "?"


async def test_rows_come_by_the_names_of_their_columns(db: Any, half: Any, engine: str) -> None:
    sql = f"SELECT CAST({placeholder(engine)} AS text) AS word, 2 AS n"
    assert await fetch(half, sql, "one") == [{"word": "one", "n": 2}]


async def test_a_statement_in_a_transaction_is_part_of_it(db: Any, engine: str) -> None:
    insert = f"INSERT INTO author (name) VALUES ({placeholder(engine)})"
    async with transaction(rollback=True):
        await afetch_rows("default", insert, ["Ann"])
        assert await afetch_rows("default", "SELECT name FROM author") == [{"name": "Ann"}]
    assert await afetch_rows("default", "SELECT name FROM author") == []


async def test_a_refused_statement_raises_with_the_code_of_the_server(db: Any, half: Any) -> None:
    with pytest.raises(DatabaseError) as caught:
        await fetch(half, "SELECT * FROM no_such_table")
    if backend_of("default") == "postgres":
        assert caught.value.code == "42P01"


async def test_a_blocking_call_on_the_event_loop_names_the_one_for_async_code(db: Any) -> None:
    for call in (
        lambda: fetch_rows("default", "SELECT 1", async_name=NAME),
        lambda: require_blocking_allowed(NAME),
    ):
        with pytest.raises(SyncCallInAsync, match="use `await afetch_rows"):
            call()


def test_the_backend_is_that_of_the_alias(db: Any, engine: str) -> None:
    assert backend_of("default") == engine
    with pytest.raises(ConfigurationError, match="'nowhere' is not configured"):
        backend_of("nowhere")


async def test_the_arguments_of_a_connection_open_one_beside_the_pool(db: Any, engine: str) -> None:
    if engine == "sqlite":
        with pytest.raises(ConfigurationError, match="is SQLite, which has no server"):
            connect_arguments_of("default")
        return
    driver: Any = importlib.import_module("asyncpg")
    connection = await driver.connect(**connect_arguments_of("default"))
    sql = "SELECT current_schema()"
    assert (
        await connection.fetchval(sql) == (await afetch_rows("default", sql))[0]["current_schema"]
    )
    await connection.close()


def test_without_treefold_jobs_its_former_name_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "treefold_jobs", None)  # as if it were not installed
    monkeypatch.delitem(sys.modules, "treefold_orm.jobs", raising=False)
    with pytest.raises(ModuleNotFoundError, match="pip install treefold-jobs"):
        importlib.import_module("treefold_orm.jobs")
