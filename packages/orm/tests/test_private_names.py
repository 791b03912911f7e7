"""The private names of other packages that the ORM uses are there: a release without one fails here
and says where it is used.
"""

from __future__ import annotations

import asyncio
import importlib
import sys
from pathlib import Path
from typing import Any

import aiosqlite
import pytest

from treefold_orm._base import interpreter
from treefold_orm._drivers import sqlite_worker

WORKER: Any = aiosqlite.Connection(lambda: None, 64)  # pyright: ignore[reportArgumentType] - it is never started


@pytest.mark.parametrize("name", ["_thread", "_tx", "_execute", "_connection", "_running"])
def test_a_worker_of_aiosqlite_has_what_it_is_driven_by(name: str) -> None:
    assert hasattr(WORKER, name), (
        f"aiosqlite {aiosqlite.__version__} has no Connection.{name}: see {sqlite_worker.__file__}"
    )


def test_aiosqlite_has_what_ends_a_worker() -> None:
    core: Any = aiosqlite.core
    assert hasattr(core, "_STOP_RUNNING_SENTINEL"), (
        f"aiosqlite {aiosqlite.__version__} has no _STOP_RUNNING_SENTINEL: see "
        f"{sqlite_worker.__file__}"
    )


@pytest.mark.parametrize("name", ["_get_running_loop", "_set_running_loop"])
def test_asyncio_tells_the_running_loop_without_an_error(name: str) -> None:
    assert hasattr(asyncio.events, name), (
        f"asyncio of Python {sys.version_info} has no {name}: see {interpreter.__file__}"
    )


@pytest.mark.parametrize("name", ["_leave_task", "_enter_task"])
def test_asyncio_has_what_leaves_a_task(name: str) -> None:
    assert hasattr(asyncio.tasks, name), (
        f"asyncio of Python {sys.version_info} has no {name}: see {interpreter.__file__}"
    )


async def test_the_running_loop_is_found() -> None:
    assert interpreter.running_loop() is asyncio.get_running_loop()


async def test_another_loop_runs_inside_of_a_task_and_of_a_callback() -> None:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()

    def run_inside() -> asyncio.Task[Any] | None:
        async def work() -> asyncio.Task[Any] | None:
            await asyncio.sleep(0)
            return asyncio.current_task()

        with interpreter.leave_running_loop():
            assert interpreter.running_loop() is None
            return asyncio.run(asyncio.wait_for(work(), 5))

    assert run_inside() not in (None, task)
    assert (asyncio.get_running_loop(), asyncio.current_task()) == (loop, task)
    done: asyncio.Future[asyncio.Task[Any] | None] = loop.create_future()
    loop.call_soon(lambda: done.set_result(run_inside()))
    assert await done is not None


def test_importlib_marks_a_module_that_is_being_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = (
        "from treefold_orm._base.interpreter import is_being_imported\n"
        "during = is_being_imported(__name__)\n"
    )
    (tmp_path / "half_imported.py").write_text(body, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    module: Any = importlib.import_module("half_imported")
    assert (module.during, interpreter.is_being_imported("half_imported")) == (True, False), (
        f"importlib of Python {sys.version_info} has no _initializing: see {interpreter.__file__}"
    )
