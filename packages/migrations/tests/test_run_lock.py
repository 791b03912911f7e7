"""One run at a time: S-111, waiting with a word, and locks whose owner was killed."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from run_support import (
    AUTHOR,
    BOOK,
    LONG,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)

from treefold_migrations import LockTimeout
from treefold_migrations._run.events import Event
from treefold_migrations._run.runner import Runner
from treefold_orm import aclose_all

CHILD = Path(__file__).parent / "run_child.py"
ROUNDS = 50 if LONG else 5


def start(command: str, place: Place, files: Files, **more: Any) -> subprocess.Popen[str]:
    given = {**vars(place), "folder": str(files.folder), **more}
    return subprocess.Popen(
        [sys.executable, CHILD, command, json.dumps(given)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def two_files(files: Files) -> None:
    files.write("0001_initial", AUTHOR, BOOK)
    files.write(
        "0002_more",
        'AddField("author", "rank", fields.IntegerField(null=True))',
        'AddIndex("author", Index(["name"]))',
    )


@pytest.mark.parametrize(
    ("engine", "pooler"), [("sqlite", ""), ("postgres", "session"), ("postgres", "transaction")]
)
def test_s111_ten_runs_at_once_apply_each_file_once(
    make_place: Callable[[str], Place], files: Files, engine: str, pooler: str
) -> None:
    two_files(files)
    rounds = ROUNDS if pooler != "transaction" or LONG else 1
    place = make_place(engine)
    child = start("rounds", place, files, rounds=rounds, runners=10, pooler=pooler or "session")
    out, said = child.communicate(timeout=600)
    assert child.returncode == 0, said[-3000:]
    found = json.loads(out)
    assert len(found) == rounds
    for one in found:
        assert one["codes"] == [0] * 10, said[-3000:]
        assert one["records"] == ["0001_initial", "0002_more"]
        names: list[str] = [name for applied in one["applied"] for name in applied]
        assert sorted(names) == ["0001_initial", "0002_more"]


@contextmanager
def holding(
    place: Place, files: Files, name: str = "0001_initial", operation: str = AUTHOR
) -> Generator[subprocess.Popen[str]]:
    """A run of another process that holds the lock in the middle of a file."""
    marker = files.folder.parent / "inside"
    above = f"""
        import pathlib, time

        def hold(models, work):
            pathlib.Path({str(marker)!r}).touch()
            while not pathlib.Path({str(marker) + ".go"!r}).exists():
                time.sleep(0.01)
    """
    files.write(name, operation, "RunPython(hold)", above=above)
    child = start("migrate", place, files)
    try:
        deadline = time.monotonic() + 30
        while not marker.exists():
            assert child.poll() is None, child.communicate()[1]
            assert time.monotonic() < deadline
            time.sleep(0.01)
        yield child
    finally:
        if child.poll() is None:
            child.kill()
        child.communicate()


def test_a_run_waits_and_says_who_holds_the_lock(place: Place, files: Files) -> None:
    said: list[Event] = []
    with holding(place, files) as child:

        def listen(event: Event) -> None:
            said.append(event)
            Path(str(files.folder.parent / "inside") + ".go").touch()

        assert Runner("default", files.history(), listener=listen).migrate() == []
        assert child.wait(30) == 0
    assert [event.kind for event in said] == ["wait"]
    assert f"process {child.pid} on {os.uname().nodename}" in said[0].text
    assert "since 20" in said[0].text


def test_a_run_gives_up_waiting_with_a_way_out(place: Place, files: Files) -> None:
    with holding(place, files) as child:
        with pytest.raises(LockTimeout, match=r"held the lock of migrations for 0\.3 s") as raised:
            Runner("default", files.history(), wait=0.3).migrate()
        assert f"process {child.pid} on" in str(raised.value)


def test_a_killed_owner_leaves_no_lock_behind(place: Place, files: Files) -> None:
    with holding(place, files) as child:
        child.send_signal(signal.SIGKILL)
        child.wait(10)
        Path(str(files.folder.parent / "inside") + ".go").touch()
        began = time.monotonic()
        done = Runner("default", files.history()).migrate()
    assert [run.name for run in done] == ["0001_initial"]
    assert time.monotonic() - began < 10


def test_nothing_to_do_takes_no_lock(place: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    complete = files.history()
    with holding(place, files, "0002_book", BOOK):
        assert Runner("default", complete, wait=0).migrate() == []


@pytest.fixture
def pooled(make_place: Callable[[str], Place]) -> Place:
    made = make_place("postgres")
    made.configure(pooler="transaction")
    return made


def test_a_row_whose_owner_lives_is_kept_and_a_stale_one_taken(pooled: Place, files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    Runner("default", files.history()).migrate()
    owner = {
        "token": "other",
        "pid": 1,
        "host": "elsewhere",
        "place": "another machine",
        "born": "",
        "since": "2026-01-01 00:00:00+00:00",
    }
    pooled.ask(
        "INSERT INTO treefold_migrations_journal (name, state, at) "
        f"VALUES ('(lock)', '{json.dumps(owner)}', extract(epoch from clock_timestamp()) - 20) "
        "RETURNING 1"
    )
    files.write("0002_book", BOOK)
    with pytest.raises(LockTimeout, match="process 1 on elsewhere, since 2026-01-01"):
        Runner("default", files.history(), wait=0.2).migrate()
    pooled.ask("UPDATE treefold_migrations_journal SET at = at - 11 RETURNING 1")
    assert len(Runner("default", files.history(), wait=0.2).migrate()) == 1
    assert pooled.ask("SELECT count(*) FROM treefold_migrations_journal") == [(0,)]


def test_a_cancelled_run_undoes_its_file_and_gives_the_lock_back(
    place: Place, files: Files
) -> None:
    above = """
        import asyncio

        async def sleep(models, work):
            await models.author.objects.acreate(name="a")
            await asyncio.sleep(60)

        def fill(models, work):
            models.author.objects.create(name="b")
    """
    files.write("0001_initial", AUTHOR, "RunPython(sleep)", above=above)

    async def work() -> None:
        began = asyncio.Event()

        def listen(event: Event) -> None:
            if "sleep" in event.text:
                asyncio.get_running_loop().call_later(0.2, began.set)

        runner = Runner("default", files.history(), listener=listen)
        task = asyncio.create_task(runner.amigrate())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await aclose_all()

    asyncio.run(work())
    files.write("0001_initial", AUTHOR, "RunPython(fill)", above=above, after=[])
    assert len(Runner("default", files.history(), wait=0).migrate()) == 1
    assert place.ask("SELECT name FROM author") == [("b",)]
