"""Functions that the tests of jobs enqueue; run with the address of a queue, it is a worker."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from typing import Any

import hostile_outcomes

from treefold_jobs import aenqueue, job
from treefold_orm import araw, configure

seen: list[Any] = []
"""What the jobs of this process have noted."""

barrier = asyncio.Barrier(1)


async def note(value: Any, **more: Any) -> None:
    seen.append((value, more) if more else value)


def note_plainly(value: Any) -> None:
    seen.append((value, threading.current_thread() is threading.main_thread()))


async def fail(message: str, password: str = "") -> None:
    seen.append(message)
    raise ValueError(message)


@job(attempts=2, backoff=0)
async def fail_twice(message: str) -> None:
    await fail(message)


async def fail_until(attempts: int) -> None:
    seen.append("attempt")
    if len(seen) < attempts:
        raise ValueError("not yet")


def leave() -> None:
    raise SystemExit(3)


def take_first_of_none() -> None:
    next(iter(()))


async def cancel_itself() -> None:
    raise asyncio.CancelledError


async def wait(seconds: float) -> None:
    seen.append("begun")
    await asyncio.sleep(seconds)
    seen.append("ended")


async def meet() -> None:
    """Wait until as many run at once as the barrier of the test is for."""
    seen.append("begun")
    await barrier.wait()
    seen.append("ended")


def block(seconds: float) -> None:
    seen.append("begun")
    time.sleep(seconds)


async def enqueue_another(value: Any) -> None:
    await aenqueue(note, value)


async def run_row(number: int) -> None:
    await asyncio.sleep(0.01)
    await araw("INSERT INTO job_runs VALUES (:number, :pid)", number=number, pid=os.getpid())


async def end_process() -> None:
    await asyncio.sleep(0.2)  # its neighbours have begun by then
    os._exit(9)


async def run_row_slowly(number: int) -> None:
    await asyncio.sleep(0.5)
    await run_row(number)


async def wait_for_gate(number: int) -> None:
    """Note the begin, and run until there is a row with a number below 0."""
    await araw("INSERT INTO job_runs VALUES (:number, :pid)", number=number, pid=os.getpid())
    while not await araw("SELECT number FROM job_runs WHERE number < 0"):  # noqa: ASYNC110 - the test is another process
        await asyncio.sleep(0.02)


def generate() -> Any:
    yield 1


def end_hostile(number: int) -> Any:
    """End as no outcome is expected to end; the number chooses how."""
    seen.append(number)
    return hostile_outcomes.end(number)


async def end_hostile_async(number: int) -> Any:
    seen.append(number)
    return hostile_outcomes.end(number)


def end_long(name: str) -> Any:
    """End with more than a queue should keep; the name chooses how."""
    seen.append(name)
    return (hostile_outcomes.LONG_FAILURES | hostile_outcomes.LONG_RESULTS)[name]()


async def end_long_async(name: str) -> Any:
    return end_long(name)


class Sender:
    def send(self) -> None: ...

    @staticmethod
    def send_all() -> None: ...


if __name__ == "__main__":
    from treefold_jobs._retries import Retries
    from treefold_jobs._worker import Options, Worker

    configure(database=sys.argv[1])
    attempts = int(sys.argv[3]) if len(sys.argv) > 3 else 5
    options = Options(concurrency=4, lost_after=float(sys.argv[2]), retries=Retries(attempts, 0.0))

    async def work() -> None:
        worker = Worker(options, [])
        worker.watch_signals()
        await worker.run()

    asyncio.run(work())
