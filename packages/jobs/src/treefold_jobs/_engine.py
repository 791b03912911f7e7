"""PgQueuer: what is asked of it over connections of the ORM.

Its queries run wherever the current code is: inside a transaction they are part of it. Only this
module and the worker import it, and only when a job is enqueued, shown or run.
"""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from treefold_jobs._call import Call
from treefold_jobs._process import QUEUE, here
from treefold_jobs._retries import find_retries
from treefold_orm import ConfigurationError, DatabaseError, IntegrityError
from treefold_orm.connections import afetch_rows, backend_of, fetch_rows

if TYPE_CHECKING:
    from pgqueuer.models import Job, Log

ALIAS = "default"
INSTALL = "Jobs need PgQueuer: pip install 'treefold-jobs[postgres]'"
NO_TABLES = "Jobs need the tables of PgQueuer: run 'treefold makemigrations' and 'treefold migrate'"

HISTORY = 1000
"""Steps of a job that are read at most."""
_UNDEFINED = {"42P01", "42704", "42883"}
"""Codes of a table, a type and a function that are not there."""


def require_pgqueuer() -> None:
    """Raise `ConfigurationError` without PgQueuer."""
    # looked for without importing it, which takes a third of a second
    if importlib.util.find_spec("pgqueuer") is None:
        raise ConfigurationError(INSTALL)


def require_postgres_database() -> None:
    """Raise `ConfigurationError` unless the default database is PostgreSQL."""
    if backend_of(ALIAS) != "postgres":
        raise ConfigurationError(
            f"Jobs need PostgreSQL, and the database {ALIAS!r} is SQLite; configure PostgreSQL, or"
            " use 'treefold dev' (dev=True), where jobs run in the process that enqueues them"
        )


class _Connection:
    """A driver of PgQueuer over the connections of the ORM, async.

    Enqueueing and listing use `fetch` and `execute` alone. The members that raise belong to a
    consumer; the worker has a driver of PgQueuer's own for them.
    """

    async def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        with _report_missing_tables():
            return await afetch_rows(ALIAS, query, args)

    async def execute(self, query: str, *args: object) -> str:
        await self.fetch(query, *args)
        return ""

    async def add_listener(self, channel: str, callback: Any) -> None:
        raise NotImplementedError

    async def notify(self, channel: str, payload: str) -> None:
        raise NotImplementedError

    @property
    def shutdown(self) -> asyncio.Event:
        raise NotImplementedError

    @property
    def tm(self) -> Any:
        raise NotImplementedError

    async def __aenter__(self) -> _Connection:
        return self

    async def __aexit__(self, *_: object) -> None: ...


class _BlockingConnection:
    """The same for code without an event loop."""

    def fetch(self, query: str, *args: object) -> list[dict[str, object]]:
        with _report_missing_tables():
            return fetch_rows(ALIAS, query, args, async_name="`await aenqueue()`")


@contextmanager
def _report_missing_tables() -> Generator[None]:
    """Raise `ConfigurationError` with the commands to run if the database lacks the tables."""
    try:
        yield
    except DatabaseError as error:
        if error.code not in _UNDEFINED:
            raise
        raise ConfigurationError(NO_TABLES) from None


def insert_job(call: Call) -> None:
    """Keep a job, blocking this thread; in a transaction it is kept if that commits."""
    from pgqueuer.queries import SyncQueries

    SyncQueries(_BlockingConnection()).enqueue(
        here.queue,
        call.to_json().encode(),
        headers=_build_headers(call),
        execute_after=call.delivery.compute_delay(),
        dedupe_key=_build_unique_key(call.unique_name),
        on_conflict="skip",
    )


async def ainsert_job(call: Call, *, once: str = "") -> None:
    """Keep a job; in a transaction it is kept if that commits.

    Args:
        once: a name; a job is not kept while another one of this name waits or runs.
    """
    from pgqueuer.queries import Queries

    await Queries(_Connection()).enqueue(
        here.queue,
        call.to_json().encode(),
        headers=_build_headers(call),
        execute_after=call.delivery.compute_delay(),
        dedupe_key=_build_unique_key(once or call.unique_name),
        on_conflict="skip",
    )


def _build_unique_key(name: str) -> str | None:
    # with the queue: applications that share a database share the unique index of these keys
    return f"{here.queue} {name}" if name else None


def _build_headers(call: Call) -> dict[str, str] | None:
    headers = {"request_id": call.request_id} if call.request_id else {}
    if (retries := find_retries(call.function)) is not None:
        headers["attempts"] = str(retries.attempts)
    return headers or None


def parse_attempts(job: Job) -> int:
    """Return how often a job was to be tried when it was enqueued; 0 if it did not say.

    Read without the function, whose import may end the worker.
    """
    found = str((job.headers or {}).get("attempts"))
    return int(found) if found.isdecimal() else 0


def parse_call(job: Job) -> Call:
    """Return the call that a job of PgQueuer holds.

    Raises:
        ValueError: its payload is something else.
    """
    request_id = str((job.headers or {}).get("request_id") or f"job-{job.id}")
    return Call.from_json(job.payload or b"", request_id)


async def list_failed_jobs(limit: int) -> list[Job]:
    """Return the jobs of this application that have failed for good, the newest first."""
    from pgqueuer.queries import Queries

    while True:
        found = await Queries(_Connection()).list_failed_jobs(limit)
        own = [job for job in found if job.entrypoint == here.queue]
        if len(found) < limit or len(own) == len(found):
            return own
        limit *= 4  # between those of other applications


async def read_history(job_id: int) -> list[Log]:
    """Return the last steps of a job, the oldest first."""
    from pgqueuer.queries import Queries
    from pgqueuer.types import JobId

    return await Queries(_Connection()).job_log_history(JobId(job_id), HISTORY)


async def read_last_error(job_id: int) -> str:
    """Return the type and the message of the error of a failed job."""
    errors = [step.traceback for step in await read_history(job_id) if step.traceback is not None]
    return errors[-1].exception_message if errors else ""


async def requeue_failed_jobs(ids: Sequence[int]) -> list[int]:
    """Put failed jobs back into the queue, as new ones.

    Returns:
        Those that stay failed: another job of their unique name waits or runs.
    """
    from pgqueuer.queries import Queries
    from pgqueuer.types import JobId

    from treefold_jobs._claiming import build_reset_starts_sql

    queries, left = Queries(_Connection()), list[int]()
    reset = build_reset_starts_sql(queries.qbq.qualified.queue_table)
    for one in ids:  # a statement for all would fail with one of them
        # the starts first: a job that is queued again is not 'failed', as the statement asks
        await queries.driver.execute(reset, [one])
        try:
            await queries.requeue_jobs([JobId(one)])
        except IntegrityError:
            left.append(one)
    return left


async def discard_jobs(ids: Sequence[int]) -> set[int]:
    """Delete jobs of this application that wait or have failed; return those that it did."""
    from pgqueuer.queries import Queries

    queries = Queries(_Connection())
    names = queries.qbq.qualified
    rows = await queries.driver.fetch(
        f"WITH gone AS (DELETE FROM {names.queue_table} WHERE id = ANY($1::bigint[])"  # noqa: S608 - names of PgQueuer
        " AND entrypoint = $2 AND status IN ('queued', 'failed')"
        " RETURNING id, entrypoint, priority)"
        f" INSERT INTO {names.queue_table_log} (job_id, status, entrypoint, priority)"
        " SELECT id, 'deleted', entrypoint, priority FROM gone RETURNING job_id",
        list(ids),
        here.queue,
    )
    return {int(str(row["job_id"])) for row in rows}


async def count_jobs_by_state() -> dict[str, int]:
    """Return how many jobs of this application there are in each state."""
    from pgqueuer.queries import Queries

    found: dict[str, int] = {}
    for entry in await Queries(_Connection()).queue_size():
        if entry.entrypoint == here.queue:
            found[entry.status] = found.get(entry.status, 0) + entry.count
    return found


async def count_waiting_in_other_queues() -> dict[str, int]:
    """Return how many jobs wait under other names in this database, by the name of their queue."""
    from pgqueuer.queries import Queries

    found: dict[str, int] = {}
    for entry in await Queries(_Connection()).queue_size():
        name = entry.entrypoint
        if name != here.queue and name.partition(":")[0] == QUEUE and entry.status == "queued":
            found[name] = found.get(name, 0) + entry.count
    return found
