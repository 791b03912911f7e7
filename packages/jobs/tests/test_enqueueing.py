"""Jobs: enqueue commits with the data, or at once; without a queue it runs in this process."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass
from logging.handlers import BufferingHandler
from pathlib import Path
from typing import Any

import hostile_outcomes
import own_jobs
import pytest
from job_queue import Queue, new_queue

from treefold_jobs import aenqueue, enqueue
from treefold_jobs._extension import Jobs
from treefold_jobs._process import here
from treefold_orm import ConfigurationError, SyncCallInAsync, close_all, configure, transaction
from treefold_orm.testing import OwnDatabases


@pytest.fixture(scope="module")
def job_database(postgres_dsn: str) -> Iterator[Queue]:
    with new_queue(postgres_dsn) as queue:
        yield queue


@pytest.fixture
def queue(job_database: Queue) -> Queue:
    """An empty queue, in the default database."""
    job_database.empty()
    configure(database=job_database.dsn)
    return job_database


@pytest.fixture(autouse=True)
def process() -> Iterator[None]:
    own_jobs.seen.clear()
    yield
    here.log, here.dev, here.loop = None, False, None
    close_all()


async def keep(half: str, *args: Any, **kwargs: Any) -> None:
    if half == "async":
        await aenqueue(*args, **kwargs)
    else:
        await asyncio.to_thread(enqueue, *args, **kwargs)


def kept(queue: Queue) -> list[Any]:
    found = queue.value("SELECT json_agg(convert_from(payload, 'UTF8') ORDER BY id) FROM pgqueuer")
    return [json.loads(text)["args"][0] for text in json.loads(found or "[]")]


async def test_outside_a_transaction_a_job_is_kept_at_once(queue: Queue, half: str) -> None:
    await keep(half, own_jobs.note, 1)
    assert kept(queue) == [1]
    assert own_jobs.seen == []


async def test_in_a_transaction_a_job_is_kept_by_its_commit(queue: Queue) -> None:
    async with transaction():
        await aenqueue(own_jobs.note, 1)
        assert kept(queue) == []
        async with transaction():
            await aenqueue(own_jobs.note, 2)
    assert kept(queue) == [1, 2]


def test_in_a_sync_transaction_too(queue: Queue) -> None:
    with transaction():
        enqueue(own_jobs.note, 1)
        assert kept(queue) == []
    assert kept(queue) == [1]


async def test_a_rollback_keeps_no_job(queue: Queue) -> None:
    async with transaction(rollback=True):
        await aenqueue(own_jobs.note, 1)
    async with transaction():
        await aenqueue(own_jobs.note, 2)
        async with transaction(rollback=True):
            await aenqueue(own_jobs.note, 3)
    assert kept(queue) == [2]


async def test_a_sync_call_on_the_event_loop_names_aenqueue(queue: Queue) -> None:
    with pytest.raises(SyncCallInAsync, match="aenqueue"):
        enqueue(own_jobs.note, 1)


async def test_a_wrong_call_is_refused_before_the_database_is_asked(half: str) -> None:
    with pytest.raises(TypeError, match="lambda"):
        await keep(half, lambda: None)


async def test_the_job_carries_the_id_of_the_request(queue: Queue, half: str) -> None:
    here.log = _Log()
    here.log.request_id.set("abc")
    await keep(half, own_jobs.note, 1)
    assert queue.value("SELECT headers->>'request_id' FROM pgqueuer") == "abc"


class _Log:
    request_id: ContextVar[str] = ContextVar("request_id", default="-")

    def mask(self, value: Any) -> Any:
        return {k: "***" if k == "password" else v for k, v in value.items()}

    def scrub(self, text: str) -> str:
        return text


async def test_missing_tables_are_named_with_the_commands(job_database: Queue, half: str) -> None:
    job_database.run("CREATE SCHEMA IF NOT EXISTS without_jobs")
    configure(database=job_database.dsn, server_settings={"search_path": "without_jobs"})
    with pytest.raises(
        ConfigurationError, match="run 'treefold makemigrations' and 'treefold migr"
    ):
        await keep(half, own_jobs.note, 1)


async def test_on_sqlite_a_job_is_refused(half: str) -> None:
    configure("sqlite", ":memory:")
    with pytest.raises(
        ConfigurationError, match="Jobs need PostgreSQL, and the database 'default'"
    ):
        await keep(half, own_jobs.note, 1)


async def test_in_development_on_sqlite_a_job_runs_after_the_commit(half: str) -> None:
    configure("sqlite", ":memory:")
    here.dev = True
    await keep(half, own_jobs.note, 1)
    assert own_jobs.seen == [1]
    async with transaction():
        await aenqueue(own_jobs.note, 2)
        assert own_jobs.seen == [1]
    async with transaction(rollback=True):
        await aenqueue(own_jobs.note, 3)
    assert own_jobs.seen == [1, 2]


def test_in_process_a_sync_transaction_runs_both_kinds_after_its_commit() -> None:
    configure("sqlite", ":memory:")
    here.dev = True
    with transaction():
        enqueue(own_jobs.note_plainly, 1)
        enqueue(own_jobs.note, 2, more=3)
        assert own_jobs.seen == []
    assert own_jobs.seen == [(1, True), (2, {"more": 3})]


async def test_in_process_an_async_job_of_a_thread_runs_on_the_applications_loop() -> None:
    configure("sqlite", ":memory:")
    here.dev, here.loop = True, asyncio.get_running_loop()

    def work() -> None:
        enqueue(own_jobs.note, 1)

    await asyncio.to_thread(work)
    async with transaction():
        await asyncio.to_thread(work)
        await aenqueue(own_jobs.note_plainly, 2)
    assert own_jobs.seen == [1, 1, (2, False)]


async def test_in_process_arguments_are_those_of_the_call() -> None:
    configure("sqlite", ":memory:")
    here.dev = True
    numbers = [1]
    async with transaction():
        await aenqueue(own_jobs.note, numbers)
        numbers.append(2)
    assert own_jobs.seen == [[1]]


@pytest.mark.parametrize("fn", [own_jobs.leave, own_jobs.cancel_itself])
async def test_in_process_a_failing_job_is_logged_and_does_not_raise(
    fn: Any, half: str, caplog: pytest.LogCaptureFixture
) -> None:
    configure("sqlite", ":memory:")
    here.dev, here.log = True, _Log()
    with caplog.at_level(logging.INFO, "treefold.jobs"):
        await keep(half, fn)
        await keep(half, own_jobs.fail, "no address", password="hunter2")
    assert [record.levelname for record in caplog.records] == ["ERROR", "ERROR"]
    assert "failed" in caplog.records[1].message
    assert '{"message": "no address", "password": "***"}' in caplog.records[1].message
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("name", hostile_outcomes.LONG_FAILURES)
async def test_in_process_a_long_failure_is_logged_and_does_not_raise(
    name: str, half: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configure("sqlite", ":memory:")
    here.dev = True
    # not caplog: a report of pytest would carry 5 MB of surrogates to another process
    logger, handler = logging.getLogger("treefold.jobs"), BufferingHandler(capacity=9)
    monkeypatch.setattr(logger, "propagate", False)
    logger.addHandler(handler)
    try:
        await keep(half, own_jobs.end_long, name)
    finally:
        logger.removeHandler(handler)
    (record,) = handler.buffer
    assert record.getMessage().startswith("JOB own_jobs:end_long failed ")
    assert own_jobs.seen == [name]


async def test_a_job_logs_one_line_with_its_arguments_masked(
    caplog: pytest.LogCaptureFixture,
) -> None:
    configure("sqlite", ":memory:")
    here.dev, here.log = True, _Log()
    with caplog.at_level(logging.INFO, "treefold.jobs"):
        await aenqueue(own_jobs.note, 1, password="hunter2")
    (record,) = caplog.records
    assert record.message.startswith("JOB own_jobs:note done ")
    assert record.message.endswith('ms {"value": 1, "more": {"password": "hunter2"}}')


async def test_without_the_log_of_an_application_no_argument_is_shown(
    caplog: pytest.LogCaptureFixture,
) -> None:
    configure("sqlite", ":memory:")
    here.dev = True
    with caplog.at_level(logging.INFO, "treefold.jobs"):
        await aenqueue(own_jobs.note, "hunter2")
    assert caplog.records[0].message.endswith("ms")


async def test_in_a_test_run_jobs_run_in_process_on_either_database(
    queue: Queue, half: str, tmp_path: Path
) -> None:
    own = OwnDatabases(tmp_path, named={"default": queue.dsn})
    with own.active():
        await keep(half, own_jobs.note, 1)
    assert (own_jobs.seen, kept(queue)) == ([1], [])


# -- boot -----------------------------------------------------------------------------------------


@dataclass
class Application:
    root: Path
    dev: bool = False


async def started(app: Application) -> None:
    """Start the extension of an application whose database is SQLite."""
    configure("sqlite", ":memory:")
    extension = Jobs()
    extension.setup(app)
    await extension.startup()


@pytest.mark.parametrize(
    "source",
    [
        "from treefold.jobs import aenqueue",
        "import treefold_orm.jobs",
        "from treefold_jobs import aenqueue",
        "def f():\n    from treefold import jobs",
    ],
)
async def test_a_project_with_jobs_on_sqlite_does_not_start(tmp_path: Path, source: str) -> None:
    folder = tmp_path / "Api" / "v1"
    folder.mkdir(parents=True)
    (folder / "Post.py").write_text(source)
    with pytest.raises(ConfigurationError, match="Jobs need PostgreSQL"):
        await started(Application(tmp_path))
    await started(Application(tmp_path, dev=True))


@pytest.mark.parametrize(
    ("file", "source"),
    [
        ("Services/text.py", '"""\nfrom treefold.jobs import enqueue\n"""'),
        ("Services/other.py", "from treefold_mail import jobs\nfrom . import jobs"),
        ("Tests/test_jobs.py", "from treefold.jobs import enqueue"),
        (".venv/lib/used.py", "from treefold.jobs import enqueue"),
        ("Services/broken.py", "from treefold.jobs import"),
    ],
)
async def test_a_project_without_jobs_starts_on_sqlite(
    tmp_path: Path, file: str, source: str
) -> None:
    path = tmp_path / file
    path.parent.mkdir(parents=True)
    path.write_text(source)
    await started(Application(tmp_path))
