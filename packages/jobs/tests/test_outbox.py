"""The outbox of a test: jobs are held in place of running, and run when the test says so."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import own_jobs
import pytest
from job_queue import Queue, new_queue

from treefold_jobs import aenqueue, alater, enqueue
from treefold_jobs._process import here
from treefold_jobs.testing import HeldJob, Outbox, hold_jobs
from treefold_orm import close_all, configure, transaction


@pytest.fixture(scope="module")
def job_database(postgres_dsn: str) -> Iterator[Queue]:
    with new_queue(postgres_dsn) as queue:
        yield queue


@pytest.fixture(autouse=True, params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, job_database: Queue) -> Iterator[Queue]:
    """Neither of the two is asked for a queue."""
    own_jobs.seen.clear()
    configure(database=job_database.dsn if request.param == "postgres" else "sqlite:///:memory:")
    yield job_database
    assert job_database.states() is None
    close_all()


def calls(outbox: Outbox) -> list[tuple[Any, ...]]:
    return [(job.function, job.args, job.kwargs) for job in outbox]


async def test_an_outbox_holds_what_was_enqueued_and_committed(outbox: Outbox, half: str) -> None:
    if half == "async":
        await aenqueue(own_jobs.note, 1, more=[2])
    else:
        await asyncio.to_thread(enqueue, own_jobs.note, 1, more=[2])
    at = datetime.now(UTC)
    await alater(own_jobs.fail, at=at, unique="x")("y")
    await alater(own_jobs.fail, delay=60, unique="x")("z")
    async with transaction():
        await aenqueue(own_jobs.note_plainly, 3)
        await alater(own_jobs.fail, delay=60, unique="x")("z")
        assert len(outbox) == 2
    async with transaction(rollback=True):
        await aenqueue(own_jobs.note, 4)
    assert calls(outbox) == [
        (own_jobs.note, (1,), {"more": [2]}),
        (own_jobs.fail, ("y",), {}),
        (own_jobs.note_plainly, (3,), {}),
    ]
    assert (outbox[1].delay, outbox[1].at, outbox[1].unique) == (timedelta(), at, "x")
    assert [job.args for job in outbox[::2]] == [(1,), (3,)]
    assert own_jobs.seen == []
    outbox.clear()
    assert (len(outbox), list(outbox), repr(outbox)) == (0, [], "Outbox([])")


async def test_held_jobs_run_on_demand_with_those_that_they_enqueue(outbox: Outbox) -> None:
    await aenqueue(own_jobs.enqueue_another, 1)
    await alater(own_jobs.note_plainly, delay=999)(2)
    await outbox.arun()
    assert own_jobs.seen == [(2, False), 1]
    assert len(outbox) == 0


def test_held_jobs_run_in_sync_code(outbox: Outbox) -> None:
    enqueue(own_jobs.enqueue_another, 1)
    enqueue(own_jobs.note_plainly, 2)
    outbox.run()
    assert own_jobs.seen == [(2, True), 1]


async def test_a_held_job_that_fails_raises_in_the_test(outbox: Outbox) -> None:
    await aenqueue(own_jobs.fail, "no address")
    await aenqueue(own_jobs.note, 1)
    with pytest.raises(ValueError, match=r"^no address$"):
        await outbox.arun()
    assert calls(outbox) == [(own_jobs.note, (1,), {})]
    await asyncio.to_thread(outbox.run)
    await aenqueue(own_jobs.fail, "still none")
    with pytest.raises(ValueError, match=r"^still none$"):
        await asyncio.to_thread(outbox.run)


async def test_a_wrong_call_is_refused_as_without_an_outbox(outbox: Outbox) -> None:
    with pytest.raises(TypeError, match="lambda"):
        await aenqueue(lambda: None)
    assert len(outbox) == 0


def test_outboxes_may_lie_in_each_other_and_end(outbox: Outbox) -> None:
    inner = Outbox()

    def fail_inside() -> None:
        nonlocal inner
        with hold_jobs() as inner:
            enqueue(own_jobs.note, 1)
            raise KeyError

    with pytest.raises(KeyError):
        fail_inside()
    assert ([job.args for job in inner], len(outbox), here.outbox) == ([(1,)], 0, outbox)
    job: HeldJob = inner[0]
    assert job == inner[:1][0]
