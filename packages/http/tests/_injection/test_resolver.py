"""Parameters of a handler: every source, every kind of dependency, every refusal.

Annotations in this file are text (`from __future__`), as in many projects; those of the files that
`test_application` writes are not.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import enum
import functools
import threading
import uuid
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

import pytest

from treefold_http import Depends, Request, UnprocessableEntity
from treefold_http._injection.resolver import has_only_parameter
from treefold_http._types.parameters import InjectionError

if TYPE_CHECKING:
    from conftest import Lines as Missing

RequestOf = Callable[..., Request]
Call = Callable[..., Any]


class Colour(enum.Enum):
    RED = "red"


# -- the request, and what is called directly


async def direct(request: Request) -> None: ...
async def direct_positional(request: Request, /) -> None: ...
def direct_plain(request: Request) -> None: ...
async def with_default(request: Request | None = None) -> None: ...
async def keyword_only(*, request: Request) -> None: ...
async def gathering(request: Request, *args: Any) -> None: ...
async def gathering_names(request: Request, **kwargs: Any) -> None: ...
async def other_name(req: Request) -> None: ...
async def two(request: Request, id: str) -> None: ...
async def none() -> None: ...


class Handler:
    async def __call__(self, request: Request) -> str:
        return request.id

    async def method(self, request: Request) -> str:
        return request.id


def untyped_request(request):  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - untyped
    return request.id  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType] - untyped


DIRECT: list[tuple[Any, bool]] = [
    (direct, True),
    (direct_positional, True),
    (direct_plain, True),
    (with_default, False),
    (keyword_only, False),
    (gathering, False),
    (gathering_names, False),
    (other_name, False),
    (two, False),
    (none, False),
    (Handler(), True),
    (Handler().method, True),
    (functools.partial(two, id="5"), False),
    (untyped_request, True),
]


@pytest.mark.parametrize(("handler", "answer"), DIRECT)
def test_a_handler_is_direct_if_its_only_parameter_is_named_request(
    handler: Callable[..., Any], answer: bool
) -> None:
    assert has_only_parameter(handler) is answer


async def annotated_request(req: Request, other: Annotated[Request, "note"]) -> tuple[str, str]:
    return req.id, other.id


def unresolvable_request(request: Missing) -> int:
    return id(request)


async def unresolvable_result(id: int) -> Missing | int:
    return id


def test_the_request_is_given_by_name_or_by_annotation(call: Call) -> None:
    assert call(annotated_request) == ("id-1", "id-1")
    assert call(Handler()) == "id-1"
    assert call(Handler().method) == "id-1"
    assert call(keyword_only) is None
    assert call(with_default) is None


def test_an_annotation_that_nobody_needs_may_name_what_is_not_imported(call: Call) -> None:
    assert call(unresolvable_request) > 0
    assert call(unresolvable_result, path={"id": "5"}) == 5


# -- path parameters


async def path_values(
    a: str,
    b: int,
    c: uuid.UUID,
    d: Colour,
    e: dt.date,
    f: Any,
    g: int | None,
    h: Literal["x"],
) -> list[Any]:
    return [a, b, c, d, e, f, g, h]


async def path_plain(a, b="own"):  # pyright: ignore[reportUnknownParameterType, reportMissingParameterType] - untyped
    return [a, b]  # pyright: ignore[reportUnknownVariableType] - untyped


IDENTITY = "12345678-1234-5678-1234-567812345678"


def test_path_parameters_are_converted_by_their_annotation(call: Call) -> None:
    path = dict(
        zip("abcdefgh", ["1", "-2", IDENTITY, "red", "2030-01-02", "3", "4", "x"], strict=True)
    )

    assert call(path_values, path=path) == [
        "1",
        -2,
        uuid.UUID(IDENTITY),
        Colour.RED,
        dt.date(2030, 1, 2),
        "3",
        4,
        "x",
    ]


def test_a_path_parameter_without_annotation_is_verbatim_text(call: Call) -> None:
    assert call(path_plain, path={"a": " 007"}) == [" 007", "own"]
    assert call(path_plain, path={"a": "1", "b": "2"}) == ["1", "2"]


def missed(expected: str) -> dict[str, Any]:
    return {"type": "value_error", "ctx": {"expected": f"'{expected}'"}}


def test_a_path_parameter_that_does_not_fit_is_422_with_every_reason(call: Call) -> None:
    with pytest.raises(UnprocessableEntity) as caught:
        call(path_values, path=dict.fromkeys("abcdefgh", "?"))

    more = "(and 5 more)"
    assert caught.value.message == (
        f"The request is not valid: path.b: b should be an integer {more}"
    )
    assert caught.value.errors == [
        {"loc": ["path", "b"], "msg": "b should be an integer", "type": "value_error"},
        {"loc": ["path", "c"], "msg": "c should be a UUID", "type": "value_error"},
        {
            "loc": ["path", "d"],
            "msg": "d should be one of red",
            "type": "value_error",
            "ctx": {"expected": "'red'"},
        },
        {"loc": ["path", "e"], "msg": "e should be a date in ISO 8601", "type": "value_error"},
        {"loc": ["path", "g"], "msg": "g should be an integer", "type": "value_error"},
        {
            "loc": ["path", "h"],
            "msg": "h should be one of x",
            "type": "value_error",
            "ctx": {"expected": "'x'"},
        },
    ]


class Opaque:
    pass


async def path_of_list(id: list[Opaque]) -> None: ...
async def path_of_class(id: Opaque) -> None: ...


@pytest.mark.parametrize("handler", [path_of_list, path_of_class])
def test_a_path_parameter_of_another_type_is_refused_at_boot(
    call: Call, handler: Callable[..., Any]
) -> None:
    with pytest.raises(
        InjectionError,
        match=rf"^Path parameter 'id' of {handler.__name__}\(\) is annotated .*, which text",
    ):
        call(handler, path={"id": "5"})


# -- query parameters


async def query(
    page: int,
    size: int = 20,
    name: str | None = None,
    day: dt.date = dt.date(2030, 1, 2),
    on: bool = False,
) -> list[Any]:
    return [page, size, name, day, on]


async def lists(a: list[int], b: list[str] = ["own"], c: list[Colour] | None = None) -> list[Any]:  # noqa: B006 - the case
    return [a, b, c]


def test_scalars_come_from_the_query_and_defaults_are_python_s(call: Call) -> None:
    day = dt.date(2030, 1, 2)

    assert call(query, "/v1/x?page=1") == [1, 20, None, day, False]
    assert call(query, "/v1/x?page=1&size=5&name=&day=2031-02-03&on=yes") == [
        1,
        5,
        "",
        dt.date(2031, 2, 3),
        True,
    ]
    assert call(query, "/v1/x?page=1&page=x") == [1, 20, None, day, False]


def test_a_query_that_does_not_fit_is_422_with_every_reason(call: Call) -> None:
    with pytest.raises(UnprocessableEntity) as caught:
        call(query, "/v1/x?size=big&day=&on=2")

    assert caught.value.errors == [
        {"loc": ["query", "page"], "msg": "page is required", "type": "missing"},
        {"loc": ["query", "size"], "msg": "size should be an integer", "type": "value_error"},
        {"loc": ["query", "day"], "msg": "day should be a date in ISO 8601", "type": "value_error"},
        {"loc": ["query", "on"], "msg": "on should be true or false", "type": "value_error"},
    ]


def test_lists_take_every_value_of_their_name(call: Call) -> None:
    assert call(lists, "/v1/x?a=1&a=2") == [[1, 2], ["own"], None]
    assert call(lists, "/v1/x?a=1&b=x&b=&c=red") == [[1], ["x", ""], [Colour.RED]]


def test_a_list_names_the_place_of_what_does_not_fit_and_is_required_without_default(
    call: Call,
) -> None:
    with pytest.raises(UnprocessableEntity) as caught:
        call(lists, "/v1/x?c=red&c=blue&c=red&c=x")

    assert caught.value.errors == [
        {"loc": ["query", "a"], "msg": "a is required", "type": "missing"},
        {
            "loc": ["query", "c", 1],
            "msg": "c should be one of red",
            "type": "value_error",
            "ctx": {"expected": "'red'"},
        },
        {
            "loc": ["query", "c", 3],
            "msg": "c should be one of red",
            "type": "value_error",
            "ctx": {"expected": "'red'"},
        },
    ]


async def shadowed(id: int) -> int:
    return id


def test_a_path_parameter_is_never_filled_from_the_query(call: Call) -> None:
    assert call(shadowed, "/v1/x?id=6&request=1&self=2", path={"id": "5"}) == 5


def plain_names(function: str, self: int, args: int = 0) -> list[Any]:
    return [function, self, args]


def test_a_plain_handler_may_name_its_parameters_as_it_likes(call: Call) -> None:
    assert call(plain_names, "/v1/x?function=f&self=1&args=2") == ["f", 1, 2]


async def positional(opt: object = None, q: int = 2, /, r: int = 3, *, s: int = 4) -> list[Any]:
    return [opt, q, r, s]


async def gathered(q: int = 1, *args: int, r: int = 2, **kwargs: int) -> list[Any]:
    return [q, args, r, kwargs]


def test_positional_only_parameters_stay_in_their_places(call: Call) -> None:
    assert call(positional, "/v1/x?q=5&r=6&s=7&opt=9") == [None, 5, 6, 7]
    assert call(positional) == [None, 2, 3, 4]


def test_what_gathers_arguments_gets_none(call: Call) -> None:
    assert call(gathered, "/v1/x?q=5&args=6&kwargs=7&x=8&r=9") == [5, (), 9, {}]


class Thing: ...


async def untyped(page=1, thing: Thing | None = None):  # pyright: ignore[reportMissingParameterType] - untyped
    return [page, thing]


def test_a_parameter_that_nothing_provides_keeps_its_default(call: Call) -> None:
    assert call(untyped, "/v1/x?page=5&thing=6") == [1, None]


async def unknown(thing): ...  # pyright: ignore[reportMissingParameterType, reportUnknownParameterType] - untyped
async def unknown_type(thing: dict[str, int]) -> None: ...
async def unknown_in_dependency(x: None = Depends(unknown_type)) -> None: ...
async def unresolved(id: Missing) -> None: ...


UNKNOWN: list[tuple[Any, str]] = [
    (
        unknown,
        r"^Nothing provides parameter 'thing' of unknown\(\); name it after a path parameter",
    ),
    (unknown_type, r"^Parameter 'thing' of unknown_type\(\) is annotated dict, which the query"),
    (unknown_in_dependency, r"^Parameter 'thing' of unknown_type\(\) is annotated dict, which"),
    (
        unresolved,
        r"^The annotation 'Missing' of 'id' in unresolved\(\) cannot be resolved: .*; import",
    ),
]


@pytest.mark.parametrize(("handler", "words"), UNKNOWN)
def test_a_parameter_that_nothing_provides_is_an_error_that_names_it(
    call: Call, handler: Callable[..., Any], words: str
) -> None:
    with pytest.raises(InjectionError, match=words):
        call(handler)


# -- kinds of handlers


async def scalar(b: int) -> int:
    return b


async def config() -> str:
    return "config"


def wrapped(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator as users write it: plain, around an async function."""

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        return {"refused": True} if kwargs.get("q") == 0 else function(*args, **kwargs)

    return wrapper


def wrapped_async(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    async def wrapper(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **kwargs)

    return wrapper


@wrapped
async def decorated(q: int) -> int:
    return q


@wrapped_async
def decorated_plain(q: int) -> int:
    return q


@wrapped
async def decorated_direct(request: Request) -> str:
    return request.id


def test_a_decorated_handler_keeps_the_parameters_of_what_it_wraps(call: Call) -> None:
    assert call(decorated, "/v1/x?q=5") == 5
    assert call(decorated, "/v1/x?q=0") == {"refused": True}
    assert call(decorated_plain, "/v1/x?q=5") == 5
    assert call(decorated_direct) == "id-1"


@contextlib.contextmanager
def manager() -> Generator[str]:
    yield "managed"


async def with_manager(m: Any = Depends(manager)) -> str:
    with m as value:
        return value


def test_a_context_manager_function_gives_its_context_manager(call: Call) -> None:
    assert call(with_manager) == "managed"


def plain_handler(q: int) -> bool:
    return threading.current_thread() is threading.main_thread()


async def streaming(q: int) -> AsyncIterator[int]:
    yield q


def streaming_plain(q: int) -> Iterator[int]:
    yield q


def gives_awaitable(q: int) -> Any:
    return scalar(q)


def test_a_plain_handler_runs_in_a_worker_thread(call: Call) -> None:
    assert call(plain_handler, "/v1/x?q=1") is False


def test_an_awaitable_of_a_plain_handler_is_awaited(call: Call) -> None:
    assert call(gives_awaitable, "/v1/x?q=1") == 1


def test_a_generator_handler_gives_its_generator(call: Call) -> None:
    assert list(call(streaming_plain, "/v1/x?q=1")) == [1]
    assert hasattr(call(streaming, "/v1/x?q=1"), "__anext__")


async def many(
    request: Request,
    a: int = 1,
    b: str = Depends(config),
    errors: int = 2,
    v0: int = 3,
    handler: int = 4,
    in_thread: int = 5,
    check: int = 6,
    run: int = 7,
    f1: int = 8,
    été: int = 9,
) -> list[Any]:
    return [request.id, a, b, errors, v0, handler, in_thread, check, run, f1, été]


def test_no_name_of_a_parameter_meets_one_of_the_generated_source(call: Call) -> None:
    assert call(many, "/v1/x?errors=20&v0=30&f1=80&%C3%A9t%C3%A9=90") == [
        "id-1",
        1,
        "config",
        20,
        30,
        4,
        5,
        6,
        7,
        80,
        90,
    ]
