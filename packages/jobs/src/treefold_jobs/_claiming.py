"""PgQueuer's statements as a worker uses them: a suspect is claimed alone, and its starts are kept.

A suspect is a job whose last run was lost with its worker. One that takes the process along, as by
using all its memory, must not take the jobs beside it along a second time:

| Step | Jobs |
|---|---|
| PgQueuer claims a batch | `confirm`, `convert` (a suspect), `report` |
| the worker runs | `convert` |
| it releases at once, for other workers | `confirm`, `report` |
| it claims, until `convert` has ended | none |
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterable
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from pgqueuer.queries import Queries

from treefold_jobs._running import log
from treefold_jobs._starts import KEY, JobStarts

if TYPE_CHECKING:
    from pgqueuer.models import Job, TracebackRecord
    from pgqueuer.queries import EntrypointExecutionParameter
    from pgqueuer.types import QueueEntrypoint, QueueManagerId

# NULL || object is NULL, and an array || object is an array with the object in it
_HEADERS = "(CASE jsonb_typeof(headers) WHEN 'object' THEN headers ELSE '{}' END)"
DRAIN_WAIT = timedelta(seconds=1)
"""A worker that drains waits for a job that is due so soon."""
PRUNE_PAUSE = 3600.0
"""Seconds between two times that old steps are deleted."""
AWAY_PAUSE = 1.0
"""Seconds between two attempts to write to a database that is away."""


class ClaimQueries(Queries):
    """The statements of one connected worker.

    Attributes:
        away: errors of a database that cannot be reached.
        stopping: set when the worker takes no further job.
        drains: the worker ends when no job is due.
        held: keys of the jobs that the worker has; a late sign of life lets it claim them again.
    """

    away: tuple[type[BaseException], ...] = ()
    stopping: asyncio.Event
    held: set[int]
    drains: bool
    _free: asyncio.Event

    def init_state(
        self,
        connection_errors: tuple[type[BaseException], ...],
        stopping: asyncio.Event,
        *,
        drains: bool,
    ) -> None:
        """Set what the constructor of PgQueuer does not take."""
        self.away = connection_errors
        self.stopping = stopping
        self.held = set()
        self.drains = drains
        self._free = asyncio.Event()
        self._free.set()

    async def dequeue(
        self,
        batch_size: int,
        entrypoints: dict[QueueEntrypoint, EntrypointExecutionParameter],
        queue_manager_id: QueueManagerId,
        global_concurrency_limit: int | None,
        heartbeat_timeout: timedelta = timedelta(seconds=30),
    ) -> list[Job]:
        """Claim jobs; none while a suspect is claimed, and a suspect alone."""
        if not self._free.is_set():
            await _wait_for_either(self._free, self.stopping, heartbeat_timeout.total_seconds() / 3)
            if not self._free.is_set():
                return []
        jobs = await super().dequeue(
            batch_size, entrypoints, queue_manager_id, global_concurrency_limit, heartbeat_timeout
        )
        new = [job for job in jobs if job.id not in self.held]
        suspect = next((job for job in new if JobStarts.from_job(job).was_lost_with_worker), None)
        if suspect is None:
            return new
        self._free.clear()
        await self._release_jobs(job for job in new if job is not suspect)
        return [suspect]

    async def queued_work(self, entrypoints: list[QueueEntrypoint]) -> int:
        """Return how many jobs wait; for a worker that drains, how many it waits for."""
        if not self.drains:
            return await super().queued_work(entrypoints)
        due = await self.eligible_queued_work(entrypoints)
        # a retry may wait for hours, and a job with a time for days
        wait = await self.next_deferred_eta(entrypoints)
        return due or int(wait is not None and wait <= DRAIN_WAIT)

    async def prune_log_hourly(self, queue: str, days: int) -> None:
        """Delete the steps of jobs of a queue that ended so many days ago; never with 0 days."""
        while days:
            with contextlib.suppress(*self.away):
                for statement in build_prune_sql(self.qbq.qualified):
                    await self.driver.execute(statement, timedelta(days=days), queue)
            await asyncio.sleep(PRUNE_PAUSE)

    def resume_claiming(self) -> None:
        """Claim jobs again: the suspect has ended."""
        self._free.set()

    async def _release_jobs(self, jobs: Iterable[Job]) -> None:
        ids = [job.id for job in jobs]
        if ids:
            await self.driver.execute(
                f"UPDATE {self.qbq.qualified.queue_table} SET status = 'queued', "  # noqa: S608 - a name of PgQueuer
                "queue_manager_id = NULL, updated = now() WHERE id = ANY($1::bigint[])",
                ids,
            )

    async def save_starts_with_retry(self, job: Job, starts: JobStarts) -> None:
        """Write the starts of a job into its row; waits for a database that is away.

        Raises an error of `away` where the worker stops meanwhile.
        """
        while True:
            try:
                await self.driver.execute(
                    f"UPDATE {self.qbq.qualified.queue_table} SET headers = "  # noqa: S608 - a name of PgQueuer
                    f"{_HEADERS} || $2::text::jsonb WHERE id = $1::bigint",
                    job.id,
                    starts.to_json(),
                )
            except self.away:
                if self.stopping.is_set():
                    raise
                await _wait_for_either(self.stopping, self.stopping, AWAY_PAUSE)
            else:
                return

    async def retry_job(
        self, job: Job, delay: timedelta, traceback_record: TracebackRecord | None
    ) -> None:
        """Put a job back; where the database is away, it is claimed again as a stale one."""
        try:
            await super().retry_job(job, delay, traceback_record)
        except self.away as error:
            kind = type(error).__name__
            log.warning("job %d could not be put back, again after --lost-after: %s", job.id, kind)


def build_reset_starts_sql(table: str) -> str:
    """Return the statement that makes failed jobs new ones."""
    return (
        f"UPDATE {table} SET headers = {_HEADERS} - '{KEY}' "  # noqa: S608 - a name of PgQueuer
        "WHERE id = ANY($1::bigint[]) AND status = 'failed'"
    )


def build_prune_sql(names: Any) -> list[str]:
    """Return the statements that delete old rows; jobs that wait or have failed keep theirs."""
    old = "created < now() - $1::interval AND entrypoint = $2"
    kept = f"AND job_id NOT IN (SELECT id FROM {names.queue_table})"  # noqa: S608 - names of PgQueuer
    return [
        f"DELETE FROM {names.queue_table_log} WHERE {old} {kept}",  # noqa: S608 - names of PgQueuer
        f"DELETE FROM {names.statistics_table} WHERE {old}",  # noqa: S608 - names of PgQueuer
    ]


async def _wait_for_either(one: asyncio.Event, other: asyncio.Event, seconds: float) -> None:
    waiting = {asyncio.ensure_future(event.wait()) for event in {one, other}}
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
