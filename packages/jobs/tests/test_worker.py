"""Jobs: a worker runs what was kept, again where it failed, and loses nothing when it dies."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import hostile_outcomes
import own_jobs
import pytest
from job_queue import Queue, new_queue

from treefold_jobs import (
    Schedule,
    _commands as commands,
    _engine as engine,
    aenqueue,
    alater,
    enqueue,
    job as declare,
)
from treefold_jobs._process import choose_queue_name, here
from treefold_jobs._retries import Retries
from treefold_jobs._schedules import load_schedules
from treefold_jobs._worker import Options, Worker
from treefold_orm import ConfigurationError, aclose_all, close_all, configure, transaction

KILLS = int(os.environ.get("TREEFOLD_JOB_KILLS", "2"))
HOSTILE = int(os.environ.get("TREEFOLD_JOB_OUTCOMES", "40"))
LONGEST_RECORD = 60_000
"""Characters of JSON: those of message and traceback, and room for escapes."""


@pytest.fixture(scope="module")
def job_database(postgres_dsn: str) -> Iterator[Queue]:
    with new_queue(postgres_dsn) as queue:
        yield queue


@pytest.fixture
def queue(job_database: Queue) -> Iterator[Queue]:
    """An empty queue, in the default database."""
    job_database.empty()
    configure(database=job_database.dsn)
    own_jobs.seen.clear()
    yield job_database
    here.log, here.dev, here.loop, here.queue = None, False, None, "treefold"
    close_all()


def worker(**options: Any) -> Worker:
    retries = Retries(options.pop("attempts", 5), options.pop("backoff", 0.0))
    given: dict[str, Any] = {"drain": True, "retries": retries, **options}
    return Worker(Options(**given), [])


@pytest.fixture
def short_log() -> Iterator[None]:
    """The lines of jobs without tracebacks, whose text pytest-xdist could not send as UTF-8."""

    def without_traceback(record: logging.LogRecord) -> bool:
        record.exc_info = None
        return True

    logger = logging.getLogger("treefold.jobs")
    logger.addFilter(without_traceback)
    yield
    logger.removeFilter(without_traceback)


async def test_a_worker_runs_what_was_kept_and_forgets_it(queue: Queue) -> None:
    await aenqueue(own_jobs.note, 1, more=[None])
    await aenqueue(own_jobs.note_plainly, 2)
    await aenqueue(own_jobs.enqueue_another, 3)
    await worker().run()
    assert sorted(own_jobs.seen, key=str) == [(1, {"more": [None]}), (2, False), 3]
    assert queue.states() is None


async def test_a_failing_job_is_tried_again_and_then_kept_as_failed(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "treefold.jobs"):
        await aenqueue(own_jobs.fail, "no address")
        await worker(attempts=3, backoff=0.05).run()
    assert own_jobs.seen == ["no address"] * 3
    assert queue.states() == "failed 2"
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("JOB")]
    assert "failed at attempt 1 of 3 (ValueError: no address), again in 0.05 s" in lines[0]
    assert "failed at attempt 2 of 3 (ValueError: no address), again in 0.1 s" in lines[1]
    assert "failed at attempt 3 of 3, kept as job" in lines[2]
    (job,) = await engine.list_failed_jobs(10)
    assert await engine.read_last_error(job.id) == "ValueError: no address"


async def test_a_failed_job_can_be_put_back(queue: Queue) -> None:
    await aenqueue(own_jobs.fail_until, 2)
    await worker(attempts=1).run()
    assert queue.states() == "failed 0"
    await engine.requeue_failed_jobs([queue.value("SELECT id FROM pgqueuer")])
    assert await engine.count_jobs_by_state() == {"queued": 1}
    await worker(attempts=1).run()
    assert queue.states() is None


@pytest.mark.parametrize(
    "fn", [own_jobs.leave, own_jobs.cancel_itself, own_jobs.take_first_of_none]
)
async def test_a_job_cannot_end_or_block_its_worker(queue: Queue, fn: Callable[[], Any]) -> None:
    await aenqueue(fn)
    await aenqueue(own_jobs.note, 1)
    await asyncio.wait_for(worker(attempts=1).run(), 20)
    assert own_jobs.seen == [1]
    assert queue.states() == "failed 0"


async def test_a_job_of_an_unknown_function_or_payload_is_kept_as_failed(queue: Queue) -> None:
    await aenqueue(own_jobs.note, 1)
    queue.run(
        """UPDATE pgqueuer SET payload = '{"function": "gone:f", "args": [], "kwargs": {}}'"""
    )
    await aenqueue(own_jobs.note, 1)
    queue.run("UPDATE pgqueuer SET payload = 'x' WHERE id = (SELECT max(id) FROM pgqueuer)")
    await worker(attempts=1).run()
    assert queue.states() == "failed 0, failed 0"


@pytest.mark.usefixtures("short_log")
async def test_an_error_that_no_database_keeps_stays_with_its_job(queue: Queue) -> None:
    """A lone surrogate once kept the outcomes of all neighbours out of the queue."""
    for text in ("file \udcff.txt", "nul \0 byte"):
        await aenqueue(own_jobs.fail, text)
    for number in range(8):
        await aenqueue(own_jobs.note, number)
    await asyncio.wait_for(worker(attempts=2, backoff=0.01).run(), 20)
    assert sorted(own_jobs.seen, key=str) == sorted(
        [*range(8), *["file \udcff.txt", "nul \0 byte"] * 2], key=str
    )
    assert queue.states() == "failed 1, failed 1"
    errors = [await engine.read_last_error(job.id) for job in await engine.list_failed_jobs(10)]
    assert sorted(errors) == [r"ValueError: file \udcff.txt", r"ValueError: nul \x00 byte"]


@pytest.mark.usefixtures("short_log")
async def test_hostile_ends_are_recorded_once_and_alone(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    draw = random.Random(28)
    ends = [draw.randrange(10**9) for _ in range(HOSTILE)]
    for number in ends:
        await aenqueue(draw.choice([own_jobs.end_hostile, own_jobs.end_hostile_async]), number)
        await aenqueue(own_jobs.note, -number)
    with caplog.at_level(logging.INFO, "treefold.jobs"):
        await asyncio.wait_for(worker(attempts=3, backoff=0.001).run(), 20 + HOSTILE)
    failing = [number for number in ends if hostile_outcomes.is_failure(number)]
    runs = Counter(own_jobs.seen)
    assert runs == Counter([-n for n in ends] + ends + failing * 2)
    assert queue.value("SELECT count(*) FROM pgqueuer WHERE status = 'failed'") == len(failing)
    assert queue.value("SELECT count(*) FROM pgqueuer") == len(failing)
    ended = "SELECT status || ' ' || count(*) FROM pgqueuer_log WHERE status = 'successful'"
    done = 2 * HOSTILE - len(failing)
    assert queue.value(f"{ended} GROUP BY status") == f"successful {done}"
    assert sum("kept as job" in record.getMessage() for record in caplog.records) == len(failing)
    assert all(
        [await engine.read_last_error(job.id) for job in await engine.list_failed_jobs(10**6)]
    )


@pytest.mark.usefixtures("short_log")
@pytest.mark.parametrize("name", hostile_outcomes.LONG_FAILURES)
async def test_a_long_failure_is_recorded_once_within_a_bound(queue: Queue, name: str) -> None:
    ends = [own_jobs.end_long, own_jobs.end_long_async]
    for number, end in enumerate(ends):
        await aenqueue(end, name)
        await aenqueue(own_jobs.note, number)
    await asyncio.wait_for(worker(attempts=2, backoff=0.001).run(), 60)
    assert Counter(own_jobs.seen) == {name: 4, 0: 1, 1: 1}
    assert queue.states() == "failed 1, failed 1"
    logged = "FROM pgqueuer_log WHERE traceback IS NOT NULL"
    assert queue.value(f"SELECT count(*) {logged}") == 4
    assert queue.value(f"SELECT max(length(traceback::text)) {logged}") < LONGEST_RECORD
    assert queue.value("SELECT max(length(headers::text)) FROM pgqueuer") < 500
    for job in await engine.list_failed_jobs(10):
        assert await engine.read_last_error(job.id)
    # where it was raised is kept, however long its text is
    assert queue.value(f"SELECT count(*) {logged} AND traceback::text LIKE '%hostile_out%'") == 4


@pytest.mark.parametrize("name", hostile_outcomes.LONG_RESULTS)
async def test_a_long_result_is_dropped(queue: Queue, name: str) -> None:
    for end in (own_jobs.end_long, own_jobs.end_long_async):
        await aenqueue(end, name)
    await asyncio.wait_for(worker(attempts=2).run(), 60)
    assert (own_jobs.seen, queue.states()) == ([name] * 2, None)
    ended = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful' AND traceback IS NULL"
    assert queue.value(ended) == 2


@pytest.mark.parametrize("concurrency", [1, 3])
async def test_no_more_jobs_run_at_once_than_asked_for(queue: Queue, concurrency: int) -> None:
    own_jobs.barrier = asyncio.Barrier(concurrency)
    for _ in range(6):
        await aenqueue(own_jobs.meet)
    await asyncio.wait_for(worker(concurrency=concurrency).run(), 60)
    running = most = 0
    for what in own_jobs.seen:
        running += 1 if what == "begun" else -1
        most = max(most, running)
    assert (len(own_jobs.seen), most) == (12, concurrency)


async def until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.01)


async def stopped(working: Worker, task: asyncio.Task[None]) -> None:
    working.request_stop(signal.SIGTERM)
    await asyncio.wait_for(task, 10)


async def test_a_job_that_is_enqueued_wakes_a_waiting_worker(queue: Queue) -> None:
    working = worker(drain=False)
    task = asyncio.ensure_future(working.run())
    await until(lambda: working._queue is not None and working._queue.qm.entrypoint_registry)
    await asyncio.sleep(0.1)
    await aenqueue(own_jobs.note, 1)
    await until(lambda: own_jobs.seen)  # a worker that is not woken looks again after 30 seconds
    await stopped(working, task)


async def test_a_stopped_worker_finishes_its_jobs_and_begins_no_other(queue: Queue) -> None:
    await aenqueue(own_jobs.wait, 0.2)
    working = worker(concurrency=1, drain=False)
    task = asyncio.ensure_future(working.run())
    await until(lambda: own_jobs.seen)
    await aenqueue(own_jobs.note, "another")
    await stopped(working, task)
    assert own_jobs.seen == ["begun", "ended"]
    assert (queue.states() or "").startswith("queued")
    assert working.put_back == 0


@pytest.mark.parametrize("fn", [own_jobs.wait, own_jobs.block])
async def test_after_the_grace_period_a_running_job_is_put_back(
    queue: Queue, fn: Callable[[float], Any]
) -> None:
    await aenqueue(fn, 1.0)
    working = worker(drain=False, grace=0.05)
    task = asyncio.ensure_future(working.run())
    await until(lambda: own_jobs.seen)
    await stopped(working, task)
    assert own_jobs.seen == ["begun"]
    assert queue.states() == "queued 1"
    assert working.put_back == 1


async def test_a_job_that_loses_its_worker_each_time_fails_in_the_end(queue: Queue) -> None:
    await aenqueue(own_jobs.note, 1)
    mark = '{"treefold": {"attempt": 0, "alone": true, "losses": 2}}'
    queue.run(f"UPDATE pgqueuer SET headers = '{mark}'")
    await worker(attempts=3).run()
    assert (own_jobs.seen, queue.states()) == ([], "failed 0")
    (job,) = await engine.list_failed_jobs(10)
    assert await engine.read_last_error(job.id) == "its worker was lost 3 times while it ran"
    await engine.requeue_failed_jobs([job.id])
    await worker(attempts=3).run()
    assert (own_jobs.seen, queue.states()) == ([1], None)


@pytest.mark.parametrize("attempts", [1, 3])
def test_a_job_that_kills_its_worker_takes_no_neighbour_with_it(
    queue: Queue, attempts: int
) -> None:
    enqueue(own_jobs.end_process)
    for number in range(12):
        enqueue(own_jobs.run_row_slowly, number)
    command = [sys.executable, str(Path(own_jobs.__file__)), queue.dsn, "1.0", str(attempts)]
    deaths, deadline = 0, time.monotonic() + 60
    process = subprocess.Popen(command)
    while queue.value("SELECT count(*) FROM pgqueuer WHERE status <> 'failed'"):
        assert time.monotonic() < deadline, queue.states()
        if process.poll() is not None:
            deaths += 1
            process = subprocess.Popen(command)
        time.sleep(0.02)
    process.terminate()
    assert process.wait(10) == 0
    rows = queue.value("SELECT json_agg(DISTINCT number) FROM job_runs")
    assert set(json.loads(rows)) == set(range(12))
    payload = "SELECT convert_from(payload, 'UTF8') FROM pgqueuer"
    assert "end_process" in queue.value(payload)
    assert queue.value("SELECT count(*) FROM pgqueuer") == 1
    assert deaths in (attempts, attempts + 1)  # one more where it began in company


async def test_a_claim_without_a_start_is_no_loss(queue: Queue) -> None:
    await aenqueue(own_jobs.note, 1)
    queue.run(
        "UPDATE pgqueuer SET created = now() - interval '1 hour', status = 'picked',"
        " heartbeat = now() - interval '1 hour', execute_after = now() - interval '1 hour';"
        "INSERT INTO pgqueuer_log (job_id, status, priority, entrypoint)"
        " SELECT id, 'picked', 0, 'treefold' FROM pgqueuer, generate_series(1, 9)"
    )
    working = worker(attempts=1, drain=False)
    task = asyncio.ensure_future(working.run())
    await until(lambda: queue.states() is None)
    await stopped(working, task)
    assert own_jobs.seen == [1]


async def test_a_suspect_runs_alone_and_nothing_is_claimed_beside_it(queue: Queue) -> None:
    await aenqueue(own_jobs.wait, 0.4)
    mark = '{"treefold": {"attempt": 0, "alone": false, "losses": 0}}'
    queue.run(f"UPDATE pgqueuer SET headers = '{mark}'")
    for number in range(4):
        await aenqueue(own_jobs.note, number)
    working = worker(drain=False)
    task = asyncio.ensure_future(working.run())
    await until(lambda: own_jobs.seen)
    picked = "SELECT count(*) FROM pgqueuer WHERE status = 'picked'"
    assert (own_jobs.seen, queue.value(picked)) == (["begun"], 1)
    await until(lambda: queue.states() is None)
    await stopped(working, task)
    assert own_jobs.seen[:2] == ["begun", "ended"]
    assert sorted(own_jobs.seen[2:]) == [0, 1, 2, 3]


def test_suspects_of_two_workers_run_at_the_same_time(queue: Queue) -> None:
    command = [sys.executable, str(Path(own_jobs.__file__)), queue.dsn, "1.0"]
    held = "SELECT count(DISTINCT number) FROM job_runs WHERE number IN (1, 2)"
    pids = "SELECT json_agg(DISTINCT pid) FROM job_runs WHERE number"
    picked = "SELECT count(*) FROM pgqueuer WHERE status = 'picked'"
    started: list[subprocess.Popen[bytes]] = []

    def start() -> subprocess.Popen[bytes]:
        started.append(subprocess.Popen(command))
        return started[-1]

    def wait_until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 30
        while not condition():
            assert time.monotonic() < deadline, queue.states()
            time.sleep(0.02)

    try:
        lost = [start(), start()]
        for number in (1, 2):
            enqueue(own_jobs.wait_for_gate, number)
        wait_until(lambda: queue.value(held) == 2)
        for process in lost:
            process.kill()
            process.wait(10)
        queue.run("DELETE FROM job_runs")

        # each of two workers has one suspect, and neither waits for that of the other
        suspicious = {start().pid, start().pid}
        wait_until(lambda: queue.value(held) == 2)
        assert set(json.loads(queue.value(f"{pids} IN (1, 2)"))) == suspicious
        mark = "SELECT json_agg(headers -> 'treefold' -> 'losses') FROM pgqueuer"
        assert json.loads(queue.value(mark)) == [1, 1]

        # meanwhile they claim no neighbour, within several of their looks at the queue
        for number in range(10, 16):
            enqueue(own_jobs.run_row, number)
        time.sleep(1.5)
        assert (queue.value(picked), queue.value(f"{pids} >= 10")) == (2, None)
        other = start()
        wait_until(lambda: queue.value("SELECT count(*) FROM pgqueuer") == 2)
        assert json.loads(queue.value(f"{pids} >= 10")) == [other.pid]

        queue.run("INSERT INTO job_runs VALUES (-1, 0)")
        wait_until(lambda: queue.states() is None)
        assert queue.value("SELECT count(*) FROM job_runs WHERE number > 0") == 8
        for process in started[2:]:
            process.terminate()
            assert process.wait(10) == 0
    finally:
        for process in started:
            process.kill()
            process.wait(10)


async def test_a_stop_is_neither_a_loss_nor_an_attempt(queue: Queue) -> None:
    for _ in range(3):
        if queue.states() is None:
            await aenqueue(own_jobs.wait, 30.0)
        working = worker(drain=False, grace=0.0, attempts=1)
        task = asyncio.ensure_future(working.run())
        await until(lambda: own_jobs.seen)
        await stopped(working, task)
        own_jobs.seen.clear()
    assert (queue.states() or "").startswith("queued")
    mark = queue.value("SELECT headers -> 'treefold' ->> 'losses' FROM pgqueuer")
    assert mark == "0"


async def test_the_queue_waits_for_a_database_that_is_away(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    await aenqueue(own_jobs.note, 1)
    working = worker()
    first: Any = working._connect_and_run_queue

    async def refused() -> None:
        working._connect_and_run_queue = first
        raise ConnectionRefusedError("not there")

    working._connect_and_run_queue = refused
    with caplog.at_level(logging.INFO, "treefold.jobs"):
        await working.run()
    assert own_jobs.seen == [1]
    assert "no connection to the queue, again in 1 s: ConnectionRefusedError" in caplog.text


def test_killed_workers_lose_no_accepted_job(queue: Queue) -> None:
    accepted = 15 * KILLS
    for number in range(accepted):
        with transaction(rollback=number % 10 == 9):
            enqueue(own_jobs.run_row, number)
    kept = {number for number in range(accepted) if number % 10 != 9}
    command = [sys.executable, str(Path(own_jobs.__file__)), queue.dsn, "1.0"]

    def done() -> int:
        return queue.value("SELECT count(DISTINCT number) FROM job_runs")

    code = None
    for kill in range(KILLS + 1):
        process = subprocess.Popen(command)
        wanted = len(kept) if kill == KILLS else done() + 4
        deadline = time.monotonic() + 30
        while done() < min(wanted, len(kept)):
            assert time.monotonic() < deadline, queue.value("SELECT count(*) FROM pgqueuer")
            assert process.poll() is None
            time.sleep(0.01)
        if kill < KILLS:
            process.kill()
        else:
            while queue.value("SELECT count(*) FROM pgqueuer"):
                assert time.monotonic() < deadline
                time.sleep(0.02)
            process.terminate()
        code = process.wait(10)
    assert code == 0
    rows = queue.value("SELECT json_agg(DISTINCT number) FROM job_runs")
    assert set(json.loads(rows)) == kept


# -- schedules ------------------------------------------------------------------------------------


async def test_a_schedule_enqueues_its_job_when_it_is_due(queue: Queue) -> None:
    schedules = [Schedule("* * * * * *", own_jobs.note, 1), Schedule("0 0 1 1 *", own_jobs.note, 2)]
    working = Worker(Options(lost_after=5.0), schedules)
    task = asyncio.ensure_future(working.run())
    await until(lambda: own_jobs.seen)
    await stopped(working, task)
    assert set(own_jobs.seen) == {1}


async def test_a_schedule_is_passed_over_while_its_last_job_waits(queue: Queue) -> None:
    schedule = Schedule("* * * * *", own_jobs.note, 1)
    for _ in range(2):
        await engine.ainsert_job(schedule.call, once="digest")
    assert await engine.count_jobs_by_state() == {"queued": 1}


@pytest.mark.parametrize("cron", ["* * *", "every day", "99 * * * *", 5])
def test_a_schedule_that_cannot_be_read_is_refused(cron: Any) -> None:
    with pytest.raises(ConfigurationError, match="must have five fields of cron"):
        Schedule(cron, own_jobs.note, 1)


def test_the_call_of_a_schedule_is_checked_where_it_is_declared() -> None:
    with pytest.raises(TypeError, match="lambda"):
        Schedule("* * * * *", lambda: None)


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("", "must set schedules = "),
        ("schedules = ['x']", "must hold Schedule objects, got 'x'"),
        (
            "import own_jobs\nfrom treefold_jobs import Schedule\n"
            "schedules = [Schedule('* * * * *', own_jobs.note, 1)] * 2",
            "is declared twice",
        ),
    ],
)
def test_a_wrong_list_of_schedules_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, text: str
) -> None:
    (tmp_path / "schedules.py").write_text(source)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "schedules", raising=False)
    with pytest.raises(ConfigurationError, match=text):
        load_schedules()
    monkeypatch.delitem(sys.modules, "schedules", raising=False)


# -- options --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"concurrency": 0}, "--concurrency must be above 0, got 0"),
        ({"lost_after": 0}, "--lost-after must be above 0, got 0"),
        ({"grace": -1.0}, "--grace must not be below 0, got -1.0"),
    ],
)
def test_an_option_that_cannot_work_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        Options(**options)
    assert str(caught.value) == text


def test_each_attempt_waits_twice_as_long_up_to_an_hour_and_hours_in_all() -> None:
    retries = Retries()
    assert [retries.compute_delay(n) for n in (1, 2, 3, 20, 5000)] == [5, 10, 20, 3600, 3600]
    total = sum(retries.compute_delay(n) for n in range(1, retries.attempts))
    assert 5 * 3600 < total < 6 * 3600


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"attempts": 0}, "attempts of a job must be a number from 1, got 0"),
        ({"attempts": True}, "attempts of a job must be a number from 1, got True"),
        ({"attempts": 2.0}, "attempts of a job must be a number from 1, got 2.0"),
        ({"backoff": -1}, "backoff of a job must be seconds from 0, got -1"),
        ({"backoff": float("nan")}, "backoff of a job must be seconds from 0, got nan"),
        ({"backoff": "5"}, "backoff of a job must be seconds from 0, got '5'"),
    ],
)
def test_retries_without_a_meaning_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        declare(**options)


async def test_a_job_is_tried_as_its_function_says(queue: Queue) -> None:
    await aenqueue(own_jobs.fail_twice, "x")
    await aenqueue(own_jobs.fail, "y")
    assert queue.value("SELECT headers->>'attempts' FROM pgqueuer ORDER BY id LIMIT 1") == "2"
    await worker(attempts=4).run()
    assert sorted(own_jobs.seen) == ["x", "x", "y", "y", "y", "y"]
    assert queue.states() == "failed 1, failed 3"


async def test_a_job_that_ends_its_workers_is_given_up_before_its_last_attempt(
    queue: Queue,
) -> None:
    """By what was kept with it: the import of its module may be what ends the worker."""
    await aenqueue(own_jobs.note, 1)
    await aenqueue(own_jobs.fail_twice, "2")
    lost = '{"treefold": {"attempt": 0, "alone": true, "losses": %d}}'
    for number, losses in ((1, 4), (2, 1)):
        queue.run(
            "UPDATE pgqueuer SET headers ="
            f" coalesce(nullif(headers, 'null'), '{{}}') || '{lost % losses}'"
            f" WHERE id = (SELECT id FROM pgqueuer ORDER BY id OFFSET {number - 1} LIMIT 1)"
        )
    await worker(attempts=15).run()
    assert own_jobs.seen == []
    assert queue.states() == "failed 0, failed 0"


async def test_a_worker_that_drains_leaves_what_is_due_later(queue: Queue) -> None:
    await alater(own_jobs.note, delay=60)(1)
    await aenqueue(own_jobs.fail, "x")
    await asyncio.wait_for(worker(backoff=60.0).run(), 20)
    assert own_jobs.seen == ["x"]
    assert queue.states() == "queued 0, queued 1"


async def test_old_steps_of_ended_jobs_of_this_application_are_deleted(queue: Queue) -> None:
    await aenqueue(own_jobs.note, 1)
    await aenqueue(own_jobs.fail, "x")
    await worker(attempts=1).run()
    here.queue = "treefold:other"
    await aenqueue(own_jobs.note, 2)
    await worker(attempts=1).run()
    here.queue = "treefold"
    queue.run("UPDATE pgqueuer_log SET created = created - interval '29 days'")
    steps = "SELECT count(DISTINCT job_id) FROM pgqueuer_log"
    for days, left in ((0, 3), (30, 3), (28, 2)):
        await worker(log_days=days).run()
        assert queue.value(steps) == left
    (failed,) = await engine.list_failed_jobs(10)
    assert await engine.read_last_error(failed.id) == "ValueError: x"


# -- commands -------------------------------------------------------------------------------------


def run_command(command: Callable[..., int], *ids: int) -> int:
    return command([*ids]) if ids else command()


def test_jobs_are_listed_put_back_and_discarded(
    queue: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    async def prepare() -> None:
        await alater(own_jobs.fail, unique="u")("x")
        await worker(attempts=1).run()
        await alater(own_jobs.fail, unique="u")("y")
        await alater(own_jobs.note, delay=600)(1)
        here.queue = "treefold:other"
        await alater(own_jobs.note, delay=600)(1)
        here.queue = "treefold"
        await aclose_all()

    asyncio.run(prepare())
    failed, again, waiting, foreign = json.loads(
        queue.value("SELECT json_agg(id ORDER BY id) FROM pgqueuer")
    )
    assert run_command(commands.list_jobs) == 0
    assert capsys.readouterr().out.splitlines()[:3] == [
        "2 waiting, 0 running, 1 failed",
        "1 waiting in queue treefold:other, of other names",
        f"{failed} own_jobs:fail ValueError",
    ]
    assert run_command(commands.retry_jobs, failed, waiting, foreign) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"Error: job {waiting} has not failed",
        f"Error: job {foreign} has not failed",
        f"Error: job {failed} stays failed: another one of its unique name waits or runs",
    ]
    queue.run(f"UPDATE pgqueuer SET status = 'picked', heartbeat = now() WHERE id = {waiting}")
    assert run_command(commands.discard_jobs, again, waiting, foreign) == 1
    assert capsys.readouterr().err.splitlines() == [
        f"Error: no job {waiting} waits or has failed",
        f"Error: no job {foreign} waits or has failed",
    ]
    assert sorted((queue.states() or "").split(", ")) == ["failed 0", "picked 0", "queued 0"]
    assert run_command(commands.retry_jobs, failed) == 0
    assert run_command(commands.discard_jobs, failed) == 0
    assert sorted((queue.states() or "").split(", ")) == ["picked 0", "queued 0"]
    last = "SELECT status FROM pgqueuer_log ORDER BY id DESC LIMIT 1"
    assert queue.value(last) == "deleted"


@pytest.mark.parametrize(
    "command", [commands.list_jobs, commands.retry_jobs, commands.discard_jobs]
)
def test_on_sqlite_the_commands_say_what_is_missing(
    command: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    configure("sqlite", ":memory:")
    assert run_command(command, *([] if command is commands.list_jobs else [1])) == 1
    assert capsys.readouterr().err.startswith("Error: Jobs need PostgreSQL, and the database")
    close_all()


# -- two applications on one database


async def test_a_worker_takes_the_jobs_of_its_application_and_names_the_others(
    queue: Queue, caplog: pytest.LogCaptureFixture
) -> None:
    for here.queue in ("treefold:shop:production", "treefold:shop:development"):
        await aenqueue(own_jobs.note, here.queue)
        await aenqueue(own_jobs.fail, "lost")
    here.queue = "treefold:shop:production"
    await worker(attempts=1).run()

    assert sorted(own_jobs.seen) == ["lost", "treefold:shop:production"]  # side by side
    assert await engine.count_jobs_by_state() == {"failed": 1}
    assert [job.entrypoint for job in await engine.list_failed_jobs(1)] == [here.queue]
    told = [text for text in caplog.messages if "jobs wait" in text]
    assert told == [
        "2 jobs wait in queue treefold:shop:development, which this worker"
        " (treefold:shop:production) does not take; its name is that of the settings name and"
        " environment, and of development with --dev"
    ]


async def test_failed_jobs_of_others_do_not_hide_those_of_an_application(queue: Queue) -> None:
    for here.queue in ("treefold:a", *["treefold:b"] * 5):
        await aenqueue(own_jobs.fail, "lost")
        await worker(attempts=1).run()
    here.queue = "treefold:a"
    assert len(await engine.list_failed_jobs(1)) == 1


async def test_a_schedule_of_two_applications_is_kept_for_each(queue: Queue) -> None:
    call = Schedule("* * * * *", own_jobs.note, 1).call
    for here.queue in ("treefold:a", "treefold:b", "treefold:b"):
        await engine.ainsert_job(call, once="the same")
    assert queue.value("SELECT count(*) FROM pgqueuer") == 2


@dataclass
class Names:
    """As `app.names` of treefold-http."""

    own: str
    environment: str
    is_folder: bool


@pytest.mark.parametrize(
    ("names", "queue"),
    [
        (None, "treefold"),
        (Names("treefold:shop:production:", "production", False), "treefold:shop:production"),
        (Names("treefold:release-7:production:", "production", True), "treefold:production"),
    ],
)
def test_a_queue_has_the_names_of_the_settings_not_of_a_folder(
    names: Names | None, queue: str
) -> None:
    assert choose_queue_name(names) == queue
