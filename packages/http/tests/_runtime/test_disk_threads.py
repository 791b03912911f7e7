"""The threads of the disk: apart from those of handlers, restartable, and new after a fork."""

from __future__ import annotations

import asyncio
import os
import sys
import threading

import pytest

from treefold_http import Application
from treefold_http._runtime.threads import DISK_LIMIT, release_disk_threads, run_in_disk_thread

WAIT = 10.0


def test_a_call_runs_in_a_thread_with_its_arguments() -> None:
    def call(*args: int, **kwargs: int) -> tuple[object, ...]:
        return args, kwargs, threading.current_thread() is threading.main_thread()

    assert asyncio.run(run_in_disk_thread(call, 1, a=2)) == ((1,), {"a": 2}, False)


def test_what_a_call_raises_is_raised() -> None:
    with pytest.raises(FileNotFoundError):
        asyncio.run(run_in_disk_thread(os.stat, "/nowhere/at/all"))


def test_the_disk_answers_while_every_thread_of_the_handlers_is_blocked(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    app = Application(tmp_path_factory.mktemp("app"))
    free = threading.Event()

    async def main() -> None:
        blocked = [
            asyncio.ensure_future(app.threads.run(free.wait, WAIT))
            for _ in range(app.threads.limit)
        ]
        async with asyncio.timeout(WAIT):
            assert await run_in_disk_thread(os.getpid) == os.getpid()
        assert not any(task.done() for task in blocked)
        free.set()
        assert all(await asyncio.gather(*blocked))

    asyncio.run(main())
    app.threads.shutdown()


def test_no_more_calls_than_the_limit_run_at_a_time() -> None:
    together = threading.Barrier(DISK_LIMIT)
    inside: list[int] = []

    def call() -> None:
        together.wait(WAIT)
        inside.append(threading.get_ident())

    async def main() -> None:
        await asyncio.gather(*(run_in_disk_thread(call) for _ in range(2 * DISK_LIMIT)))

    asyncio.run(main())
    assert len(set(inside)) <= DISK_LIMIT


def test_released_threads_end_and_later_work_starts_new_ones() -> None:
    async def main() -> None:
        first = await run_in_disk_thread(threading.current_thread)
        release_disk_threads()
        first.join(WAIT)
        assert not first.is_alive()
        assert (await run_in_disk_thread(threading.current_thread)).is_alive()

    asyncio.run(main())
    release_disk_threads()


def test_a_forked_process_has_threads_of_its_own() -> None:
    code = (
        "import asyncio, os, sys\n"
        "from treefold_http._runtime.threads import run_in_disk_thread\n"
        "asyncio.run(run_in_disk_thread(os.getpid))\n"
        "pid = os.fork()\n"
        "if pid == 0:\n"
        "    done = asyncio.wait_for(run_in_disk_thread(os.getpid), 10)\n"
        "    os._exit(asyncio.run(done) != os.getpid())\n"
        "sys.exit(os.waitpid(pid, 0)[1])\n"
    )

    async def main() -> int:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-W",
            "ignore",
            "-c",
            code,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        return await process.wait()

    assert asyncio.run(main()) == 0
