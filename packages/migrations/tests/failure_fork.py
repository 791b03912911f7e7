"""Commands that fail in a process of their own, as those of a user do."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

from failure_walk import Walk
from failures import Failure, failing
from run_place import Place, close_sessions, orm_postgres

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
    """A place that is copied and replaced by its copy."""

    loop = asyncio.new_event_loop()
    maintenance: Any = None

    def disconnect(self) -> None:
        """Close all connections of this process to the database."""
        close_all()
        close_sessions()

    def copy_database(self, source: str, target: str) -> None:
        """Replace a database of PostgreSQL by a copy of another one, both by their names."""
        self.disconnect()
        # the default of PostgreSQL 15 and later takes three times as long
        how = "STRATEGY FILE_COPY" if self.maintain("SHOW server_version_num") >= "15" else ""
        self.maintain(f'DROP DATABASE IF EXISTS "{target}" WITH (FORCE)')
        self.maintain(f'CREATE DATABASE "{target}" TEMPLATE "{source}" {how}')
        self.maintain(f'ALTER DATABASE "{target}" SET synchronous_commit = off')

    def maintain(self, sql: str) -> Any:
        """Run a statement in the maintenance database; return its first value."""

        async def work() -> Any:
            if SteadyPlace.maintenance is None:
                server = self.address.rpartition("/")[0]
                SteadyPlace.maintenance = await orm_postgres.driver.connect(f"{server}/postgres")
            return await SteadyPlace.maintenance.fetchval(sql)

        return self.loop.run_until_complete(work())


def clean(place: Place) -> None:
    """Make the database empty."""
    close_all()
    if place.engine == "sqlite":
        for suffix in ("", "-wal", "-shm"):
            Path(place.address + suffix).unlink(missing_ok=True)
        return
    place.ask(f"DROP SCHEMA IF EXISTS {place.schema} CASCADE")
    place.ask(f"CREATE SCHEMA {place.schema}")


def keep_copy(place: SteadyPlace) -> None:
    """Keep a copy of the database, in place of the former one."""
    if place.engine == "sqlite":
        close_all()
        place.ask("PRAGMA wal_checkpoint(TRUNCATE)")
        shutil.copy(place.address, place.address + ".start")
        return
    name = place.address.rpartition("/")[2]
    place.copy_database(name, f"{name}_start")


def restore_copy(place: SteadyPlace) -> None:
    """Make the database what its copy is, in a tenth of the time of the commands that made it."""
    if place.engine == "sqlite":
        clean(place)
        shutil.copy(place.address + ".start", place.address)
        return
    name = place.address.rpartition("/")[2]
    place.copy_database(f"{name}_start", name)


def drop_copy(place: SteadyPlace) -> None:
    """Remove the copy; SQLite's ends with its folder."""
    if place.engine == "postgres":
        name = place.address.rpartition("/")[2]
        place.maintain(f'DROP DATABASE IF EXISTS "{name}_start" WITH (FORCE)')
