"""Generators that clean up: entered for a request, left in reverse with the error of it."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Generator
from typing import Any

import pytest

from treefold_http import Request
from treefold_http._runtime.exit_callbacks import (
    enter_async_generator,
    enter_sync_generator,
    run_exit_callbacks,
)

RequestOf = Callable[..., Request]


class Journal(list[str]):
    """What happened, in order."""

    async def loud(self, name: str) -> AsyncGenerator[str, None]:
        try:
            yield name
        except BaseException as error:
            self.append(f"{name} saw {type(error).__name__}")
            raise
        finally:
            self.append(f"{name} left")

    def plain(self, name: str) -> Generator[str, None, None]:
        try:
            yield name
        except BaseException as error:
            self.append(f"{name} saw {type(error).__name__}")
            raise
        finally:
            self.append(f"{name} left")

    async def swallow(self, name: str) -> AsyncGenerator[str, None]:
        try:
            yield name
        except ValueError:
            self.append(f"{name} swallowed")

    async def fail(self, name: str, error: BaseException) -> AsyncGenerator[str, None]:
        try:
            yield name
        finally:
            self.append(f"{name} fails")
            raise error


async def leave(request: Request, error: BaseException | None) -> BaseException | None:
    outcome = await run_exit_callbacks(request.exit_callbacks or [], error)
    request.app.threads.shutdown()
    return outcome


def test_generators_are_left_in_reverse_order_of_entry(request_of: RequestOf) -> None:
    async def main() -> None:
        journal, request = Journal(), request_of()
        assert await enter_async_generator(journal.loud("a"), request) == "a"
        assert await enter_sync_generator(journal.plain("b"), request) == "b"
        assert await enter_async_generator(journal.loud("c"), request) == "c"
        assert journal == []
        assert await leave(request, None) is None
        assert journal == ["c left", "b left", "a left"]

    asyncio.run(main())


@pytest.mark.parametrize(
    "error",
    [ValueError("x"), SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()],
    ids=lambda error: type(error).__name__,
)
def test_the_error_of_the_request_is_thrown_into_every_generator(
    request_of: RequestOf, error: BaseException
) -> None:
    async def main() -> None:
        journal, request = Journal(), request_of()
        await enter_async_generator(journal.loud("a"), request)
        await enter_sync_generator(journal.plain("b"), request)
        await enter_async_generator(journal.loud("c"), request)
        assert await leave(request, error) is error
        seen = type(error).__name__
        assert journal == [
            f"c saw {seen}",
            "c left",
            f"b saw {seen}",
            "b left",
            f"a saw {seen}",
            "a left",
        ]

    asyncio.run(main())


def test_a_generator_that_fails_does_not_keep_the_others_from_leaving(
    request_of: RequestOf,
) -> None:
    async def main() -> None:
        journal, request = Journal(), request_of()
        failure = RuntimeError("teardown")
        await enter_async_generator(journal.loud("a"), request)
        await enter_async_generator(journal.fail("b", failure), request)
        await enter_async_generator(journal.loud("c"), request)
        assert await leave(request, None) is failure
        assert journal == ["c left", "b fails", "a saw RuntimeError", "a left"]

    asyncio.run(main())


@pytest.mark.parametrize(
    "failure",
    [SystemExit(1), KeyboardInterrupt(), asyncio.CancelledError()],
    ids=lambda e: type(e).__name__,
)
def test_a_generator_that_raises_what_ends_a_process_does_not_keep_the_others_from_leaving(
    request_of: RequestOf, failure: BaseException
) -> None:
    async def main() -> None:
        journal, request = Journal(), request_of()
        await enter_async_generator(journal.loud("a"), request)
        await enter_async_generator(journal.fail("b", failure), request)
        assert await leave(request, None) is failure
        assert journal == ["b fails", f"a saw {type(failure).__name__}", "a left"]

    asyncio.run(main())


def test_an_error_raised_while_leaving_replaces_the_first_and_keeps_it_as_context(
    request_of: RequestOf,
) -> None:
    async def main() -> None:
        journal, request = Journal(), request_of()
        first, second = ValueError("first"), RuntimeError("second")
        await enter_async_generator(journal.fail("a", second), request)
        assert await leave(request, first) is second
        assert second.__context__ is first

    asyncio.run(main())


def test_swallowing_the_error_does_not_make_the_request_succeed(request_of: RequestOf) -> None:
    async def main() -> None:
        journal, request, error = Journal(), request_of(), ValueError("x")
        await enter_async_generator(journal.loud("a"), request)
        await enter_async_generator(journal.swallow("b"), request)
        assert await leave(request, error) is error
        assert journal == ["b swallowed", "a saw ValueError", "a left"]

    asyncio.run(main())


@pytest.mark.parametrize("plain", [False, True])
def test_a_generator_that_yields_nothing_is_an_error(request_of: RequestOf, plain: bool) -> None:
    async def silent() -> AsyncGenerator[int, None]:
        if plain:
            yield 1

    def silent_plain() -> Generator[int, None, None]:
        yield from ()

    async def main() -> None:
        request = request_of()
        with pytest.raises(
            RuntimeError, match=r"silent(_plain)?\(\) did not yield; yield one value$"
        ):
            await (
                enter_sync_generator(silent_plain(), request)
                if plain
                else enter_async_generator(silent(), request)
            )
        assert await leave(request, None) is None

    asyncio.run(main())


@pytest.mark.parametrize("error", [None, ValueError("x")])
def test_a_second_yield_is_an_error_and_the_generator_is_closed(
    request_of: RequestOf, error: BaseException | None
) -> None:
    closed: list[str] = []

    async def twice() -> AsyncGenerator[int, None]:
        try:
            with contextlib.suppress(ValueError):
                yield 1
            yield 2
        finally:
            closed.append("loud")

    def twice_plain() -> Generator[int, None, None]:
        try:
            with contextlib.suppress(ValueError):
                yield 1
            yield 2
        finally:
            closed.append("plain")

    async def main() -> None:
        for each in ("loud", "plain"):
            request = request_of()
            await (
                enter_async_generator(twice(), request)
                if each == "loud"
                else enter_sync_generator(twice_plain(), request)
            )
            outcome = await leave(request, error)
            assert isinstance(outcome, RuntimeError)
            assert "yielded twice; yield one value" in str(outcome)
        assert closed == ["loud", "plain"]

    asyncio.run(main())


def test_a_plain_generator_runs_in_a_worker_thread_from_end_to_end(request_of: RequestOf) -> None:
    where: list[bool] = []

    def watched() -> Generator[None, None, None]:
        where.append(threading.current_thread() is threading.main_thread())
        try:
            yield
        finally:
            where.append(threading.current_thread() is threading.main_thread())

    async def main() -> None:
        request = request_of()
        await enter_sync_generator(watched(), request)
        await leave(request, ValueError("x"))
        request = request_of()
        await enter_sync_generator(watched(), request)
        await leave(request, None)

    asyncio.run(main())
    assert where == [False] * 4


def test_an_error_before_the_yield_is_raised_and_nothing_is_left(request_of: RequestOf) -> None:
    async def broken() -> AsyncGenerator[int, None]:
        raise ValueError("no database")
        yield 1

    async def main() -> None:
        request = request_of()
        with pytest.raises(ValueError, match=r"^no database$"):
            await enter_async_generator(broken(), request)
        assert not request.exit_callbacks

    asyncio.run(main())


def test_a_generator_may_turn_the_error_into_another(request_of: RequestOf) -> None:
    async def translating() -> AsyncGenerator[int, None]:
        try:
            yield 1
        except ValueError as error:
            raise LookupError("translated") from error

    async def main() -> Any:
        request = request_of()
        await enter_async_generator(translating(), request)
        return await leave(request, ValueError("x"))

    outcome = asyncio.run(main())
    assert isinstance(outcome, LookupError)
    assert isinstance(outcome.__cause__, ValueError)
