"""Worker threads: the limit, contexts, cancellation, whatever the function raises, the end."""

from __future__ import annotations

import asyncio
import gc
import threading
import weakref
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from treefold_http._runtime.threads import WorkerThreads

WAIT = 10.0
"""Longest wait for an event that must come; never a pause."""

name: ContextVar[str] = ContextVar("name", default="-")


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    made = WorkerThreads(limit=4)
    yield made
    made.shutdown()


def test_a_function_runs_beside_the_loop_with_its_arguments(threads: WorkerThreads) -> None:
    def call(*args: int, **kwargs: int) -> tuple[Any, ...]:
        return args, kwargs, threading.current_thread() is threading.main_thread()

    assert asyncio.run(threads.run(call, 1, 2, a=3)) == ((1, 2), {"a": 3}, False)
    assert asyncio.run(threads.run(call)) == ((), {}, False)


def test_keywords_may_have_any_name(threads: WorkerThreads) -> None:
    def call(**kwargs: int) -> dict[str, int]:
        return kwargs

    run: Callable[..., Any] = threads.run
    given = {"self": 1, "function": 2, "args": 3, "kwargs": 4}
    assert asyncio.run(run(call, **given)) == given


def test_the_loop_keeps_turning_while_a_function_blocks(threads: WorkerThreads) -> None:
    async def main() -> None:
        free = threading.Event()
        blocked = asyncio.ensure_future(threads.run(free.wait, WAIT))
        assert await threads.run(lambda: 5) == 5
        assert not blocked.done()
        free.set()
        assert await blocked

    asyncio.run(main())


def test_at_most_the_limit_run_at_a_time_and_the_rest_follows(threads: WorkerThreads) -> None:
    lock = threading.Lock()
    running = most = 0
    everyone = threading.Barrier(4)

    def call() -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        everyone.wait(WAIT)  # passes only when four run at once
        with lock:
            running -= 1

    async def main() -> None:
        await asyncio.gather(*(threads.run(call) for _ in range(40)))

    asyncio.run(main())
    assert most == 4


def test_an_idle_thread_is_used_again(threads: WorkerThreads) -> None:
    async def main() -> set[str]:
        # One after the other; a thread that has not yet come back may cost a second one.
        return {await threads.run(lambda: threading.current_thread().name) for _ in range(50)}

    assert len(asyncio.run(main())) <= 2


def test_context_variables_travel_in_and_do_not_leak_out(threads: WorkerThreads) -> None:
    def call() -> str:
        seen = name.get()
        name.set("inner")
        return seen

    async def ask(value: str) -> tuple[str, str]:
        name.set(value)
        return await threads.run(call), name.get()

    async def main() -> list[tuple[str, str]]:
        return await asyncio.gather(*(asyncio.create_task(ask(f"r{n}")) for n in range(20)))

    assert asyncio.run(main()) == [(f"r{n}", f"r{n}") for n in range(20)]


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no"),
        KeyError("k"),
        SystemExit(3),
        KeyboardInterrupt(),
        GeneratorExit(),
        asyncio.CancelledError(),
    ],
    ids=lambda error: type(error).__name__,
)
def test_whatever_a_function_raises_reaches_its_caller(
    threads: WorkerThreads, error: BaseException
) -> None:
    def call() -> None:
        raise error

    async def main() -> BaseException | None:
        try:
            await threads.run(call)
        except BaseException as raised:
            assert await threads.run(lambda: "alive") == "alive"
            return raised
        return None

    assert type(asyncio.run(main())) is type(error)


@pytest.mark.parametrize("error", [StopIteration, StopIteration(5)])
def test_a_stop_iteration_becomes_an_error_that_a_coroutine_can_carry(
    threads: WorkerThreads, error: Any
) -> None:
    def call() -> None:
        raise error

    with pytest.raises(RuntimeError, match=r"^A sync handler or dependency raised StopIteration$"):
        asyncio.run(threads.run(call))


def test_a_cancelled_caller_stops_waiting_and_the_function_runs_to_its_end(
    threads: WorkerThreads,
) -> None:
    begun, free, ended = threading.Event(), threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        free.wait(WAIT)
        ended.set()

    async def main() -> None:
        task = asyncio.ensure_future(threads.run(call))
        assert await threads.run(begun.wait, WAIT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not ended.is_set()
        free.set()
        assert await threads.run(ended.wait, WAIT)

    asyncio.run(main())


def test_a_cancelled_caller_of_a_failing_function_leaves_no_trace(threads: WorkerThreads) -> None:
    begun, free = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        free.wait(WAIT)
        raise ValueError("nobody waits")

    async def main() -> None:
        complaints: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: complaints.append(context)
        )
        task = asyncio.ensure_future(threads.run(call))
        await threads.run(begun.wait, WAIT)
        task.cancel()
        await asyncio.wait([task])
        free.set()
        await threads.run(lambda: None)
        await asyncio.sleep(0)
        assert complaints == []

    asyncio.run(main())


def test_a_loop_that_closed_while_a_call_ran_does_not_end_the_thread(
    threads: WorkerThreads,
) -> None:
    begun, free = threading.Event(), threading.Event()

    def call() -> None:
        begun.set()
        free.wait(WAIT)

    async def main() -> None:
        waiting = asyncio.ensure_future(threads.run(call))
        await threads.run(begun.wait, WAIT)
        assert not waiting.done()

    asyncio.run(main())
    free.set()

    assert asyncio.run(threads.run(lambda: "alive")) == "alive"


def test_an_idle_thread_keeps_nothing_alive(threads: WorkerThreads) -> None:
    class Thing:
        pass

    async def main() -> weakref.ref[Thing]:
        thing = Thing()
        await threads.run(id, thing)
        return weakref.ref(thing)

    seen = asyncio.run(main())
    asyncio.run(threads.run(lambda: None))
    gc.collect()

    assert seen() is None


def test_shutdown_lets_the_work_that_is_queued_finish() -> None:
    threads = WorkerThreads(limit=1)
    free = threading.Event()

    async def main() -> list[Any]:
        waiting = [asyncio.ensure_future(threads.run(free.wait, WAIT))]
        waiting += [asyncio.ensure_future(threads.run(lambda: True)) for _ in range(3)]
        await asyncio.sleep(0)
        threads.shutdown()
        free.set()
        return await asyncio.gather(*waiting)

    assert asyncio.run(main()) == [True] * 4


def test_shutdown_ends_every_thread() -> None:
    threads = WorkerThreads()
    ours: list[threading.Thread] = []

    def call() -> None:
        ours.append(threading.current_thread())

    asyncio.run(threads.run(call))
    threads.shutdown()
    threads.shutdown()
    for thread in ours:
        thread.join(WAIT)

    assert ours
    assert not any(thread.is_alive() for thread in ours)


def test_new_work_after_shutdown_starts_new_threads() -> None:
    threads = WorkerThreads()
    assert asyncio.run(threads.run(lambda: 1)) == 1
    threads.shutdown()

    assert asyncio.run(threads.run(lambda: 2)) == 2
    threads.shutdown()


def test_new_work_after_shutdown_does_not_wait_for_the_old() -> None:
    threads = WorkerThreads()
    free = threading.Event()

    async def main() -> None:
        old = asyncio.ensure_future(threads.run(free.wait, WAIT))
        await threads.run(lambda: None)
        threads.shutdown()
        try:
            async with asyncio.timeout(WAIT / 2):
                assert await threads.run(lambda: "new") == "new"
        finally:
            free.set()
        assert await old

    asyncio.run(main())
    threads.shutdown()


def test_a_thread_that_waits_for_the_loop_leaves_room_for_another() -> None:
    threads = WorkerThreads(limit=1)

    async def main() -> int:
        loop = asyncio.get_running_loop()

        def wait_for_loop() -> int:
            with threads.allow_one_more():
                return asyncio.run_coroutine_threadsafe(threads.run(lambda: 7), loop).result(WAIT)

        return await threads.run(wait_for_loop)

    assert asyncio.run(main()) == 7
    assert threads.limit == 1
    threads.shutdown()
