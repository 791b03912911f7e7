"""Jobs with a time or a name: options are bound before the call, whose types stay."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import own_jobs
import pytest
from job_queue import Queue, new_queue

from treefold_jobs import aenqueue, alater, enqueue, later
from treefold_jobs._process import here
from treefold_jobs._worker import Options, Worker
from treefold_orm import close_all, configure, transaction


@pytest.fixture(scope="module")
def job_database(postgres_dsn: str) -> Iterator[Queue]:
    with new_queue(postgres_dsn) as queue:
        yield queue


@pytest.fixture
def queue(job_database: Queue) -> Queue:
    job_database.empty()
    configure(database=job_database.dsn)
    return job_database


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    own_jobs.seen.clear()
    yield
    here.dev, here.queue = False, "treefold"
    close_all()


async def keep(half: str, value: Any, **options: Any) -> None:
    if half == "async":
        await alater(own_jobs.note, **options)(value)
    else:
        await asyncio.to_thread(later(own_jobs.note, **options), value)


def count(queue: Queue) -> int:
    return queue.value("SELECT count(*) FROM pgqueuer")


@pytest.mark.parametrize(
    "options",
    [
        {"delay": 60},
        {"delay": 60.0},
        {"delay": timedelta(minutes=1)},
        {"at": datetime.now(UTC) + timedelta(minutes=1)},
        {"at": datetime.now(timezone(timedelta(hours=9))) + timedelta(minutes=1)},
    ],
)
async def test_a_job_waits_for_its_time(queue: Queue, half: str, options: Any) -> None:
    await keep(half, 1, **options)
    wait = queue.value("SELECT extract(epoch FROM execute_after - now())::float FROM pgqueuer")
    assert 0 < wait <= 60
    assert queue.value("SELECT convert_from(payload, 'UTF8') FROM pgqueuer").endswith(
        '"args": [1], "kwargs": {}}'
    )


async def test_a_worker_runs_a_job_at_its_time_and_not_before(queue: Queue) -> None:
    past = datetime.now(UTC) - timedelta(days=1)
    begun = time.monotonic()
    await alater(own_jobs.note, delay=0.7)("later")
    await alater(own_jobs.note, at=past)("past")
    await aenqueue(own_jobs.note, "now")
    await asyncio.wait_for(Worker(Options(drain=True), []).run(), 20)
    assert own_jobs.seen[2:] == ["later"]
    assert time.monotonic() - begun >= 0.7


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"delay": -1}, ValueError, "must be 0 to 36525 days"),
        ({"delay": 10.0**300}, ValueError, "must be 0 to 36525 days"),
        ({"delay": timedelta.max}, ValueError, "must be 0 to 36525 days"),
        ({"delay": float("nan")}, TypeError, "must be seconds or a timedelta, got nan"),
        ({"delay": float("inf")}, TypeError, "must be seconds or a timedelta, got inf"),
        ({"delay": True}, TypeError, "must be seconds or a timedelta, got True"),
        ({"delay": "60"}, TypeError, "must be seconds or a timedelta, got '60'"),
        ({"at": datetime(2030, 1, 1)}, ValueError, "must have a zone"),
        ({"at": 60}, TypeError, "must be a datetime with a zone, got 60"),
        ({"delay": 1, "at": datetime.now(UTC)}, ValueError, "must have delay or at, got both"),
        ({"unique": ""}, ValueError, "must be 1 to 200 characters"),
        ({"unique": "x" * 201}, ValueError, "must be 1 to 200 characters"),
        ({"unique": "a\0"}, ValueError, "without NUL"),
        ({"unique": "\udcff"}, ValueError, "without NUL and surrogates"),
        ({"unique": 7}, TypeError, "must be text, got 7"),
    ],
)
def test_an_option_without_a_meaning_is_refused(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    for bind in (later, alater):
        with pytest.raises(error, match=text):
            bind(own_jobs.note, **options)


def test_the_call_of_a_later_job_is_checked_as_any_other() -> None:
    with pytest.raises(TypeError, match="missing a required argument"):
        later(own_jobs.note, delay=1)()  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="lambda"):
        later(lambda: None, delay=1)()
    fail: Any = own_jobs.fail
    for option in ("at", "delay", "unique"):
        with pytest.raises(TypeError, match=rf"options are bound before: later\(fn, {option}="):
            enqueue(fail, "x", **{option: 1})


async def test_one_unique_job_waits_of_each_function_name_and_application(
    queue: Queue, half: str
) -> None:
    for value in range(3):
        await keep(half, value, unique="x")
    assert count(queue) == 1
    await keep(half, 1, unique="y")
    await alater(own_jobs.note_plainly, unique="x")(1)
    here.queue = "treefold:other"
    await keep(half, 1, unique="x")
    here.queue = "treefold"
    assert count(queue) == 4
    async with transaction(rollback=True):
        await alater(own_jobs.note, unique="z")(1)
    await Worker(Options(drain=True), []).run()
    assert count(queue) == 1
    await keep(half, 2, unique="x")  # the first one has run
    assert count(queue) == 2


async def test_in_process_a_job_runs_at_once_and_a_unique_one_once(half: str) -> None:
    configure("sqlite", ":memory:")
    here.dev = True
    await keep(half, 1, delay=60, unique="x")
    await keep(half, 2, unique="x")
    async with transaction():
        await alater(own_jobs.note, unique="x")(3)
        await alater(own_jobs.note, unique="x")(4)
        await alater(own_jobs.note, unique="y")(5)
        assert own_jobs.seen == [1, 2]
    async with transaction(rollback=True):
        await alater(own_jobs.note, unique="x")(6)
    await alater(own_jobs.fail, unique="x")("7")
    await keep(half, 8, unique="x")
    assert own_jobs.seen == [1, 2, 3, 5, "7", 8]
