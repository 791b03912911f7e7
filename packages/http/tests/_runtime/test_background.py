"""Work after the answer: order, threads, failures, the drain (R-19, R-20)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import BackgroundTasks
from treefold_http._runtime.background import BackgroundOwner, run_in_loop_or_thread
from treefold_http._runtime.threads import WorkerThreads
from treefold_logging import request_id

if TYPE_CHECKING:
    from conftest import Lines

who: ContextVar[str] = ContextVar("who", default="-")


@pytest.fixture
def threads() -> Iterator[WorkerThreads]:
    made = WorkerThreads()
    yield made
    made.shutdown()


@pytest.fixture
def owner(threads: WorkerThreads) -> BackgroundOwner:
    return BackgroundOwner(threads)


def test_calls_run_in_the_order_added_with_their_arguments(owner: BackgroundOwner) -> None:
    seen: list[Any] = []

    async def loud(*args: int, **kwargs: int) -> None:
        seen.append((args, kwargs))

    def plain(*args: int, **kwargs: int) -> None:
        seen.append((args, kwargs, threading.current_thread() is threading.main_thread()))

    async def main() -> None:
        tasks = BackgroundTasks()
        tasks.add(loud, 1, a=2)
        tasks.add(plain, 3, b=4)
        tasks.add(loud)
        owner.start_work(tasks)
        assert seen == []
        await owner.drain_tasks(5)

    asyncio.run(main())
    assert seen == [((1,), {"a": 2}), ((3,), {"b": 4}, False), ((), {})]


def test_keywords_may_have_any_name(owner: BackgroundOwner) -> None:
    seen: dict[str, int] = {}

    def call(**kwargs: int) -> None:
        seen.update(kwargs)

    async def main() -> None:
        tasks = BackgroundTasks()
        add: Callable[..., None] = tasks.add
        add(call, fn=1, self=2, function=3)
        owner.start_work(tasks)
        await owner.drain_tasks(5)

    asyncio.run(main())
    assert seen == {"fn": 1, "self": 2, "function": 3}


def test_a_single_callable_is_work_too(owner: BackgroundOwner) -> None:
    seen: list[int] = []

    async def main() -> None:
        owner.start_work(partial(seen.append, 1))
        await owner.drain_tasks(5)

    asyncio.run(main())
    assert seen == [1]


def test_no_calls_are_no_task(owner: BackgroundOwner) -> None:
    async def main() -> None:
        before = asyncio.all_tasks()
        owner.start_work(BackgroundTasks())
        assert asyncio.all_tasks() == before
        await owner.drain_tasks(0)

    asyncio.run(main())


def test_calling_the_tasks_directly_says_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"run by the application; return it with the response$"):
        asyncio.run(BackgroundTasks()())


@pytest.mark.parametrize(
    "error",
    [
        ValueError("x"),
        SystemExit(1),
        KeyboardInterrupt(),
        asyncio.CancelledError(),
        StopIteration(),
        GeneratorExit(),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_a_call_that_fails_is_logged_and_the_next_ones_run(
    owner: BackgroundOwner, lines: Lines, error: BaseException, plain: bool
) -> None:
    seen: list[str] = []

    async def failing() -> None:
        raise error

    def failing_plain() -> None:
        raise error

    async def main() -> None:
        request_id.set("one")
        tasks = BackgroundTasks()
        tasks.add(failing_plain if plain else failing)
        tasks.add(seen.append, "next")
        owner.start_work(tasks)
        await owner.drain_tasks(5)

    asyncio.run(main())
    assert seen == ["next"]
    assert [text.partition(" failed")[1] for text in lines.texts()] == [" failed"]
    assert "failing" in lines.texts()[0]
    assert len(lines.errors()) == 1


def test_work_runs_in_the_context_of_its_request(owner: BackgroundOwner) -> None:
    seen: list[str] = []

    async def loud() -> None:
        seen.append(who.get())

    def plain() -> None:
        seen.append(who.get())

    async def ask(name: str) -> None:
        who.set(name)
        tasks = BackgroundTasks()
        tasks.add(loud)
        tasks.add(plain)
        owner.start_work(tasks)

    async def main() -> None:
        await asyncio.create_task(ask("one"))
        await owner.drain_tasks(5)
        await asyncio.create_task(ask("two"))
        await owner.drain_tasks(5)

    asyncio.run(main())
    assert seen == ["one", "one", "two", "two"]


def test_the_drain_waits_for_all(owner: BackgroundOwner, lines: Lines) -> None:
    async def main() -> None:
        free, done = asyncio.Event(), [0]

        async def call() -> None:
            await free.wait()
            done[0] += 1

        for _ in range(200):
            owner.start_work(call)
        asyncio.get_running_loop().call_soon(free.set)
        await owner.drain_tasks(10)
        assert done == [200]

    asyncio.run(main())
    assert lines.records == []


def test_the_drain_names_and_cancels_what_is_left(owner: BackgroundOwner, lines: Lines) -> None:
    cleaned: list[str] = []

    async def endless() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cleaned.append("yes")

    async def main() -> None:
        owner.start_work(endless)
        async with asyncio.timeout(5):
            await owner.drain_tasks(0.01)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())
    assert cleaned == ["yes"]
    assert [record.levelname for record in lines.records] == ["WARNING"]
    assert "endless unfinished, cancelled" in lines.texts()[0]


def test_a_cancelled_call_is_not_followed_by_the_next(owner: BackgroundOwner, lines: Lines) -> None:
    seen: list[str] = []

    async def main() -> None:
        tasks = BackgroundTasks()
        tasks.add(asyncio.Event().wait)
        tasks.add(seen.append, "next")
        owner.start_work(tasks)
        async with asyncio.timeout(5):
            await owner.drain_tasks(0.01)

    asyncio.run(main())
    assert seen == []
    assert len(lines.records) == 1


def test_a_drain_with_nothing_to_do_ends_at_once(owner: BackgroundOwner) -> None:
    asyncio.run(owner.drain_tasks(0))


class Caller:
    async def __call__(self) -> str:
        return "called"

    async def method(self) -> str:
        return "method"


async def coroutine() -> str:
    return "coroutine"


@pytest.mark.parametrize(
    ("call", "result"),
    [
        (coroutine, "coroutine"),
        (partial(coroutine), "coroutine"),
        (partial(partial(coroutine)), "coroutine"),
        (Caller(), "called"),
        (Caller().method, "method"),
        (lambda: "plain", "plain"),
        (lambda: coroutine(), "coroutine"),
        (partial(str, 5), "5"),
    ],
)
def test_any_callable_is_run_by_its_kind(threads: WorkerThreads, call: Any, result: str) -> None:
    assert asyncio.run(run_in_loop_or_thread(threads, call)) == result
