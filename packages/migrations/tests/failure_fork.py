"""Commands that fail in a process of their own, as those of a user do."""

from __future__ import annotations

import asyncio
import json
import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from failure_walk import Walk
from failures import Failure, failing
from run_place import Place, orm_postgres

from treefold_orm import close_all

IMPATIENT = {"lock_timeout": "0.1", "attempts": "1", "wait": "0.1"}
Command = Callable[[dict[str, str]], Walk]
"""Runs a command with limits of waiting."""


def fail_in_child(failure: Failure, place: Place, command: Command) -> str:
    """Run a command with a failure in a forked process; return what was wrong with its end."""
    close_all()
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        fail_here(failure, place, command, writing)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        told = json.loads(pipe.read() or "{}")
    os.waitpid(child, 0)
    failure.written = told.get("written", False)
    return str(told.get("wrong", ""))


def fail_here(failure: Failure, place: Place, command: Command, writing: int) -> NoReturn:
    """Run a command in this process, and end the process."""
    wrong = ""
    try:
        with failing(place, failure):
            _, code, said = command(IMPATIENT).said[-1]
        if code and "Error: " not in said and "  --fill " not in said:
            wrong = f"names no error and asks for no value: {said}"
    except BaseException:
        wrong = traceback.format_exc()
    os.write(writing, json.dumps({"written": failure.written, "wrong": wrong}).encode())
    os._exit(0)


class SteadyPlace(Place):
    """A place whose own statements share one connection (PostgreSQL)."""

    loop = asyncio.new_event_loop()
    connection: Any = None

    async def _fetch(self, sql: str) -> list[tuple[Any, ...]]:
        if SteadyPlace.connection is None:
            settings = {"search_path": self.schema}
            connect = orm_postgres.driver.connect
            SteadyPlace.connection = await connect(self.address, server_settings=settings)
        return [tuple(row) for row in await SteadyPlace.connection.fetch(sql)]

    def ask(self, sql: str) -> list[tuple[Any, ...]]:
        if self.engine == "sqlite":
            return super().ask(sql)
        return self.loop.run_until_complete(self._fetch(sql))


def clean(place: Place) -> None:
    """Make the database empty."""
    close_all()
    if place.engine == "sqlite":
        for suffix in ("", "-wal", "-shm"):
            Path(place.address + suffix).unlink(missing_ok=True)
        return
    place.ask(f"DROP SCHEMA IF EXISTS {place.schema} CASCADE")
    place.ask(f"CREATE SCHEMA {place.schema}")
