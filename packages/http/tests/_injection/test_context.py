"""Injection outside of requests: calls, what they enter, and how a scope ends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from treefold_http import (
    Application,
    BackgroundTasks,
    BootError,
    Depends,
    InjectionContext,
    Request,
)
from treefold_http._types.parameters import InjectionError

Work = Callable[[InjectionContext], Awaitable[Any]]


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    (tmp_path / "Api").mkdir()
    made = Application(tmp_path)
    yield made
    made.threads.shutdown()


def run(app: Application, work: Work) -> Any:
    async def main() -> Any:
        async with app.scope() as scope:
            return await work(scope)

    return asyncio.run(main())


def config() -> str:
    return "config"


async def later(value: str = Depends(config)) -> str:
    return f"later {value}"


class Service:
    def __init__(self, value: str = Depends(later)) -> None:
        self.value = value


def plain(service: Service = Depends(Service)) -> str:
    return service.value


async def loud(service: Service = Depends(Service), limit: int = 5) -> tuple[str, int]:
    return service.value, limit


@pytest.mark.parametrize(("fn", "value"), [(plain, "later config"), (loud, ("later config", 5))])
def test_a_function_is_called_with_what_it_depends_on(
    app: Application, fn: Callable[..., Any], value: Any
) -> None:
    assert run(app, lambda scope: scope.call(fn)) == value


def test_providers_and_overrides_hold_outside_of_requests(app: Application) -> None:
    app.provide("name", lambda: "provided")
    app.overrides[config] = lambda: "fake"

    def use(name: str, value: str = Depends(config)) -> list[str]:
        return [name, value]

    assert run(app, lambda scope: scope.call(use)) == ["provided", "fake"]


def needs_request(request: Request) -> None: ...
def needs_annotated(a: Request) -> None: ...
def needs_query(page: int) -> None: ...
def needs_something(a: Any) -> None: ...
def needs_it_deeper(a: None = Depends(needs_request)) -> None: ...


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (needs_request, r"^needs_request\(\) needs the request, but this call has no connection$"),
        (needs_annotated, r"^needs_annotated\(\) needs the request, but"),
        (needs_query, r"^Nothing provides parameter 'page' of needs_query\(\)"),
        (needs_something, r"^Nothing provides parameter 'a'"),
        (needs_it_deeper, r"^needs_request\(\) needs the request, but"),
    ],
)
def test_what_needs_a_request_is_refused(
    app: Application, fn: Callable[..., Any], message: str
) -> None:
    with pytest.raises(InjectionError, match=message):
        run(app, lambda scope: scope.call(fn))


class Journal:
    def __init__(self) -> None:
        self.entries: list[str] = []

    def dependency(self, name: str, *, fails: bool = False) -> Callable[[], AsyncIterator[str]]:
        async def enter() -> AsyncIterator[str]:
            self.entries.append(f"{name} in")
            try:
                yield name
            except BaseException as error:
                self.entries.append(f"{name} {type(error).__name__}")
                raise
            self.entries.append(f"{name} out")
            if fails:
                raise LookupError(name)

        return enter


def using(*dependencies: Callable[..., Any], error: Exception | None = None) -> Work:
    async def work(scope: InjectionContext) -> None:
        for dependency in dependencies:

            async def use(value: str = Depends(dependency)) -> str:
                return value

            await scope.call(use)
        if error is not None:
            raise error

    return work


def test_what_was_entered_is_left_at_the_end_last_first(app: Application) -> None:
    journal = Journal()
    run(app, using(journal.dependency("a"), journal.dependency("b")))

    assert journal.entries == ["a in", "b in", "b out", "a out"]


def test_what_was_entered_sees_how_the_scope_failed(app: Application) -> None:
    journal = Journal()
    with pytest.raises(ValueError, match="of the scope"):
        run(app, using(journal.dependency("a"), error=ValueError("of the scope")))

    assert journal.entries == ["a in", "a ValueError"]


def test_an_end_that_fails_is_raised_after_all_are_left(app: Application) -> None:
    journal = Journal()
    with pytest.raises(LookupError, match="b"):
        run(app, using(journal.dependency("a"), journal.dependency("b", fails=True)))

    assert journal.entries == ["a in", "b in", "b out", "a LookupError"]


def test_background_work_of_a_scope_is_run_by_the_application(app: Application) -> None:
    ran: list[str] = []

    async def main() -> None:
        async with app.scope() as scope:

            def use(background: BackgroundTasks) -> None:
                background.add(ran.append, "done")

            await scope.call(use)
            assert ran == []
        await app.background.drain_tasks(5)

    asyncio.run(main())
    assert ran == ["done"]


def test_a_scope_is_closed_once(app: Application) -> None:
    journal = Journal()

    async def main() -> None:
        scope = app.scope()
        await using(journal.dependency("a"))(scope)
        await scope.close()
        await scope.close()

    asyncio.run(main())
    assert journal.entries == ["a in", "a out"]


def test_a_scope_before_the_boot_has_what_providers_py_gives(tmp_path: Path) -> None:
    (tmp_path / "Api").mkdir()
    (tmp_path / "providers.py").write_text("providers = {'mail': lambda: 'provided'}\n")

    async def use(mail: Any) -> Any:
        return mail

    assert run(Application(tmp_path), lambda scope: scope.call(use)) == "provided"


def test_a_scope_of_no_project_says_so(tmp_path: Path) -> None:
    with pytest.raises(BootError, match="Api"):
        Application(tmp_path).scope()


class Clock:
    def __init__(self, hour: int = 0) -> None:
        self.hour = hour


def opened() -> Iterator[str]:
    yield "opened"


def mixed(
    number: int,
    clock: Clock = Depends(),
    name: str = "own",
    tenant: str = "own",
    text: str = Depends(opened),
    background: BackgroundTasks = Depends(),
    *more: int,
    **others: int,
) -> None: ...


def test_the_values_of_a_call_are_those_that_it_does_not_pass(app: Application) -> None:
    app.provide(Clock, lambda: Clock(12))
    app.provide("tenant", lambda: "acme")

    async def plan(scope: InjectionContext) -> None:
        resolve = scope.plan_values(mixed, given=["number"])
        assert resolve is not None
        values = await resolve()
        assert values.pop("clock").hour == 12
        assert values.pop("background") is scope.background
        assert values == {"tenant": "acme", "text": "opened"}
        given = ["number", "clock", "tenant", "text", "background"]
        assert scope.plan_values(mixed, given=given) is None
        with pytest.raises(InjectionError, match="Nothing provides parameter 'number'"):
            scope.plan_values(mixed)

    run(app, plan)


def wrapped(clock: Clock = Depends()) -> Clock:
    return Clock(clock.hour + 1)


def test_depends_alone_is_the_value_of_its_type_but_not_in_its_factory(app: Application) -> None:
    assert run(app, lambda scope: scope.call(wrapped)).hour == 1
    app.provide(Clock, wrapped)
    assert run(app, lambda scope: scope.call(wrapped)).hour == 2
