"""`Depends`: nesting, caching, classes, generators, overrides, circles.

Annotations in this file are text (`from __future__`), as in many projects.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from treefold_http import Depends, Request, UnprocessableEntity
from treefold_http._types.parameters import InjectionError

Call = Callable[..., Any]


class Journal:
    """What ran, in order; one for all tests, emptied before each."""

    entries: list[str]


@pytest.fixture(autouse=True)
def _empty_journal() -> None:
    Journal.entries = []


def log(entry: str) -> str:
    Journal.entries.append(entry)
    return entry


async def config() -> str:
    return log("config")


async def database(c: str = Depends(config)) -> str:
    return log(f"database({c})")


def user(db: str = Depends(database), c: Annotated[str, Depends(config)] = "-") -> str:
    log("thread" if threading.current_thread() is not threading.main_thread() else "loop")
    return log(f"user({db},{c})")


async def nested(u: str = Depends(user), db: str = Depends(database)) -> list[str]:
    return [u, db]


async def uncached(
    a: str = Depends(config), b: str = Depends(config, use_cache=False), c: str = Depends(config)
) -> list[str]:
    return [a, b, c]


def test_dependencies_nest_and_run_once_for_a_request(call: Call) -> None:
    assert call(nested) == ["user(database(config),config)", "database(config)"]
    assert Journal.entries == [
        "config",
        "database(config)",
        "thread",
        "user(database(config),config)",
    ]


class Filter:
    def __init__(self, q: int = 1) -> None:
        self.q = q


async def perhaps(
    user: Annotated[str, Depends(config)] | None = None,
    filter: Annotated[Filter, Depends()] | None = None,
    same: Annotated[Annotated[str, Depends(config)] | None, "note"] = None,
) -> list[Any]:
    return [user, filter and filter.q, same]


def test_a_client_cannot_send_what_a_dependency_beside_none_provides(call: Call) -> None:
    assert call(perhaps, "/v1/x?user=admin&same=admin&filter=5&q=2") == ["config", 2, "config"]
    assert Journal.entries == ["config"]


def test_without_cache_a_dependency_runs_for_that_use_again(call: Call) -> None:
    call(uncached)

    assert Journal.entries == ["config", "config"]


async def ordered(
    a: str = Depends(lambda: log("a")),
    b: str = Depends(lambda: log("b")),
    c: str = Depends(lambda: log("c")),
) -> str:
    return a + b + c


def test_dependencies_run_in_the_order_of_the_parameters(call: Call) -> None:
    assert call(ordered) == "abc"
    assert Journal.entries == ["a", "b", "c"]


class Service:
    def __init__(self, request: Request, db: str = Depends(database)) -> None:
        self.db = db
        self.id = request.id


@dataclass
class Paging:
    page: int = 1
    size: int = 20


class Bare:
    pass


async def classes(
    s: Service = Depends(),
    p: Paging = Depends(Paging),
    b: Annotated[Bare, Depends()] = Bare(),  # noqa: B008 - replaced
) -> list[Any]:
    return [s.db, s.id, p, type(b)]


def test_a_class_is_made_with_its_own_parameters(call: Call) -> None:
    assert call(classes, "/v1/x?page=3") == ["database(config)", "id-1", Paging(3, 20), Bare]


class Checker:
    def __init__(self, word: str) -> None:
        self.word = word

    def __call__(self, q: str = "-") -> str:
        return f"{self.word}:{q}"


class AsyncChecker(Checker):
    async def __call__(self, q: str = "-") -> str:  # pyright: ignore[reportIncompatibleMethodOverride] - the case
        return f"async {self.word}:{q}"

    async def method(self, q: str = "-") -> str:
        return f"method {self.word}:{q}"


async def add(a: int, b: int) -> int:
    return a + b


async def callables(
    a: str = Depends(Checker("a")),
    b: str = Depends(AsyncChecker("b")),
    c: str = Depends(AsyncChecker("c").method),
    d: int = Depends(functools.partial(add, b=2)),
    e: str = Depends(lambda: "e"),
) -> list[Any]:
    return [a, b, c, d, e]


def test_instances_methods_partials_and_lambdas_are_dependencies(call: Call) -> None:
    assert call(callables, "/v1/x?q=q&a=1") == ["a:q", "async b:q", "method c:q", 3, "e"]


def test_handlers_may_be_partials(call: Call) -> None:
    assert call(functools.partial(add, b=2), "/v1/x?a=1") == 3
    assert call(functools.partial(add, 5), "/v1/x?b=1") == 6


async def scalar(b: int) -> int:
    log("scalar ran")
    return b


async def between(a: int, s: int = Depends(scalar), c: int = 0) -> list[int]:
    log("handler ran")
    return [a, s, c]


@pytest.mark.parametrize(
    ("query_string", "where"),
    [
        ("a=x&b=1&c=1", [["query", "a"]]),
        ("a=1&b=x&c=1", [["query", "b"]]),
        ("a=1&b=1&c=x", [["query", "c"]]),
        ("b=1&c=x", [["query", "a"], ["query", "c"]]),
    ],
)
def test_no_failure_is_lost_where_a_dependency_stands_between_parameters(
    call: Call, query_string: str, where: list[list[str]]
) -> None:
    with pytest.raises(UnprocessableEntity) as caught:
        call(between, f"/v1/x?{query_string}")

    assert [entry["loc"] for entry in caught.value.errors or ()] == where
    assert "handler ran" not in Journal.entries


def test_a_handler_gets_each_value_of_such_parameters(call: Call) -> None:
    assert call(between, "/v1/x?a=1&b=2&c=3") == [1, 2, 3]


async def resource(c: str = Depends(config)) -> AsyncIterator[str]:
    log("resource in")
    try:
        yield f"resource({c})"
    except BaseException as error:
        log(f"resource saw {type(error).__name__}")
        raise
    finally:
        log("resource out")


def plain_resource(r: str = Depends(resource)) -> Iterator[str]:
    log("plain in")
    try:
        yield f"plain({r})"
    finally:
        log("plain out")


async def with_resources(p: str = Depends(plain_resource), r: str = Depends(resource)) -> list[str]:
    log("handler")
    return [p, r]


async def failing(p: str = Depends(plain_resource)) -> None:
    raise LookupError("no")


def test_generators_are_entered_once_and_left_in_reverse(call: Call) -> None:
    assert call(with_resources) == ["plain(resource(config))", "resource(config)"]
    assert Journal.entries == [
        "config",
        "resource in",
        "plain in",
        "handler",
        "plain out",
        "resource out",
    ]


def test_generators_see_the_error_of_the_handler(call: Call) -> None:
    with pytest.raises(LookupError):
        call(failing)

    assert Journal.entries[-3:] == ["plain out", "resource saw LookupError", "resource out"]


class Entered:
    async def __call__(self) -> AsyncIterator[str]:
        log("in")
        yield "entered"
        log("out")


async def instance_resource(
    a: str = Depends(Entered()), b: str = Depends(functools.partial(resource, c="given"))
) -> list[str]:
    return [a, b]


def test_generators_may_be_instances_and_partials(call: Call) -> None:
    assert call(instance_resource) == ["entered", "resource(given)"]
    assert Journal.entries == ["in", "resource in", "resource out", "out"]


async def late_failure(
    r: str = Depends(resource), broken: int = Depends(functools.partial(add, b=1))
) -> None: ...


def test_a_later_dependency_that_fails_still_leaves_the_earlier(call: Call) -> None:
    with pytest.raises(UnprocessableEntity):
        call(late_failure, "/v1/x?a=x")

    assert Journal.entries[-2:] == ["resource saw UnprocessableEntity", "resource out"]


# -- overrides


async def fake_database() -> str:
    return "fake"


def fake_resource(q: int = 5) -> Iterator[str]:
    log("fake in")
    yield f"fake {q}"
    log("fake out")


def test_an_override_takes_the_place_of_a_dependency_wherever_it_is_used(call: Call) -> None:
    assert call(nested, overrides={database: fake_database}) == ["user(fake,config)", "fake"]


def test_an_override_may_be_of_another_kind_and_have_parameters(call: Call) -> None:
    assert call(with_resources, "/v1/x?q=6", overrides={resource: fake_resource}) == [
        "plain(fake 6)",
        "fake 6",
    ]
    assert Journal.entries == ["fake in", "plain in", "handler", "plain out", "fake out"]


def test_an_override_of_what_is_not_used_changes_nothing(call: Call) -> None:
    assert call(database, overrides={user: fake_database}) == "database(config)"


# -- circles


def start_of_circle() -> int:
    return 0


async def circle_a(b: int = Depends(start_of_circle)) -> int:
    return b


async def circle_b(a: int = Depends(circle_a)) -> int:
    return a


async def circled(b: int = Depends(circle_b)) -> int:
    return b


def test_dependencies_in_a_circle_are_an_error_that_shows_it(call: Call) -> None:
    with pytest.raises(
        InjectionError,
        match=r"^Dependencies form a cycle: (circle_.\(\) -> ){2}circle_b\(\); break it at",
    ):
        call(circled, overrides={start_of_circle: circle_b})


async def diamond(a: str = Depends(database), b: str = Depends(user)) -> str:
    return a + b


def test_a_diamond_is_no_circle(call: Call) -> None:
    assert call(diamond) == "database(config)user(database(config),config)"


async def nothing_to_call(x=Depends()): ...  # pyright: ignore[reportMissingParameterType] - untyped
async def not_callable(x: int = Depends(5)) -> None: ...  # pyright: ignore[reportArgumentType, reportCallIssue] - the case


@pytest.mark.parametrize("handler", [nothing_to_call, not_callable])
def test_depends_without_something_to_call_is_an_error(
    call: Call, handler: Callable[..., Any]
) -> None:
    with pytest.raises(
        InjectionError,
        match=rf"^Depends\(\) in {handler.__name__}\(\) must name a function or a class$",
    ):
        call(handler)
