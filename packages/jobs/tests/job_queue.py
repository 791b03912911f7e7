"""A queue of jobs for tests: a database of its own, asked from a thread, beside any event loop."""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, cast

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information

from treefold_jobs._tables import render_scripts

orm_postgres: Any = importlib.import_module("orm_postgres")


class Queue:
    """The database of a queue.

    Args:
        dsn: its address.
    """

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn
        self._thread = ThreadPoolExecutor(1)
        self._loop = asyncio.new_event_loop()
        self._connection: Any = self._wait(cast("Any", asyncpg).connect(dsn))

    def _wait(self, work: Any) -> Any:
        return self._thread.submit(self._loop.run_until_complete, work).result()

    def run(self, sql: str) -> None:
        """Run statements."""
        self._wait(self._connection.execute(sql))

    def value(self, sql: str) -> Any:
        """Return the one value of a query."""
        return self._wait(self._connection.fetchval(sql))

    def states(self) -> str | None:
        """Return the state and the attempts of each job."""
        return self.value("SELECT string_agg(status || ' ' || attempts, ', ') FROM pgqueuer")

    def empty(self) -> None:
        """Remove all jobs."""
        self.run("TRUNCATE pgqueuer, pgqueuer_log, pgqueuer_schedules, job_runs")

    def close(self) -> None:
        """Close the connection."""
        self._wait(self._connection.close())
        self._thread.shutdown()
        self._loop.close()


@contextmanager
def new_queue(server: str) -> Generator[Queue]:
    """Make a database with the tables of jobs, and `job_runs`; drop it at the end."""
    with orm_postgres.database(server) as address:
        made = Queue(address)
        made.run(render_scripts().make)
        made.run("CREATE TABLE job_runs (number int, pid int)")
        yield made
        made.close()
