"""What a handler takes, as lines of a lock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

Facts = Callable[..., list[str]]
TYPES = """
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, Literal, NotRequired, TypedDict
from uuid import UUID

class Limit:
    def __init__(self, **limits): self.__dict__.update(limits)

class Role(Enum):
    ADMIN = "admin"
    MEMBER = "member"
"""


@pytest.mark.parametrize(
    ("parameter", "line"),
    [
        ("q: str", "query q str"),
        ("q: int = 3", "query q int = 3"),
        ("q: int | None = None", "query q int ?"),
        ("q: list[str] = []", "query q [str] ?"),
        ("q: list[int] = [1]", "query q [int] = [1]"),
        ("q: bool = False", "query q bool = false"),
        ("q: float", "query q float"),
        ("q: Decimal", "query q str decimal"),
        ("q: UUID", "query q str uuid"),
        ("q: date", "query q str date"),
        ("q: datetime", "query q str datetime"),
        ("q: time", "query q str time"),
        ("q: timedelta", "query q str duration"),
        ("q: Literal['b', 'a']", 'query q "a" | "b"'),
        ("q: Role", "query q Role"),
        ("q: Annotated[int, Query()] = 1", "query q int = 1"),
        ("agent: Annotated[str, Header('User-Agent')]", "header User-Agent str"),
        ("token: Annotated[str | None, Cookie()] = None", "cookie token str ?"),
        ("order: Annotated[str, Query('order by')]", 'query "order by" str'),
    ],
)
def test_a_parameter_is_a_line(facts: Facts, parameter: str, line: str) -> None:
    found = facts(f"{TYPES}\nasync def handler({parameter}) -> dict[str, int]: ...")

    assert found == [line, "200 json {str: int} unchecked"]


@pytest.mark.parametrize(
    ("annotation", "path"),
    [
        ("id", "{id:str}"),
        ("id: int", "{id:int}"),
        ("id: UUID", "{id:str}"),
    ],
)
def test_a_path_parameter_has_its_type(
    lock: Callable[..., str], annotation: str, path: str
) -> None:
    text = lock(
        f"from uuid import UUID\nasync def handler({annotation}) -> None: ...",
        file="Api/v1/User/[id]/Get.py",
    )

    assert f"GET /v1/user/{path}\n" in text or "path    id str uuid" in text


def test_a_handler_that_takes_the_request_is_opaque(facts: Facts) -> None:
    found = facts("async def handler(request) -> dict[str, int]: return await request.json()")

    assert found == ["opaque", "body json any lenient ?", "200 json {str: int} unchecked"]


@pytest.mark.parametrize(
    "body",
    [
        "return {}",
        "return {request.path_params['id']: 1}",
        "login(request, 1)",
        "logout(request); return {request.method: 1}",
    ],
)
@pytest.mark.parametrize("signature", ["request", "n: int, request: Request, /"])
def test_a_request_of_which_no_input_is_read_is_not_opaque(
    facts: Facts, signature: str, body: str
) -> None:
    start = "from treefold_http.auth import login, logout\nasync def handler"

    assert "opaque" not in facts(f"{start}({signature}) -> dict[str, int]: {body}")


@pytest.mark.parametrize(
    "body",
    [
        "return request.headers",
        "return read(request)",
        "given = request; return given.query_params",
        "return [each for each in (lambda: request.cookies)()]",
        "return locals()",
        "return eval('request.headers')",
        "return path_params(request)",
        "login(1, request)",
        "login(request, request.cookies['name'])",
    ],
)
@pytest.mark.parametrize("signature", ["request", "n: int, *, request: Request"])
def test_a_request_that_may_be_read_is_opaque(facts: Facts, signature: str, body: str) -> None:
    start = "from treefold_http.auth import login\ndef read(given): ...\nasync def handler"

    assert "opaque" in facts(f"{start}({signature}): {body}")


def test_a_handler_without_known_source_is_opaque(facts: Facts) -> None:
    text = (
        "made = {}\nexec('async def handler(request): return {}', made)\nhandler = made['handler']"
    )

    assert "opaque" in facts(text)


def test_files_alone_are_the_body(facts: Facts) -> None:
    assert facts("async def handler(image: UploadFile) -> None: ...") == ["file image file", "204"]


def test_a_body_is_closed_where_the_framework_checks_it(
    lock: Callable[..., str],
) -> None:
    text = lock(
        """
        from typing import Annotated, NotRequired, TypedDict
        class Positive:
            def check_field_value(self, value): return value

        class Line(TypedDict):
            isbn: str
            count: NotRequired[Annotated[int, Positive()]]
        class Order(TypedDict):
            lines: list[Line]
            note: str | None
        async def handler(order: Order) -> None: ...
        """,
        file="Api/v1/Order/Post.py",
    )

    assert "body    json Order\n" in text
    assert text.endswith(
        "type Line closed\n  count   int ?\n  isbn    str\n\n"
        "type Order closed\n  lines   [Line]\n  note    str | null\n"
    )


def test_form_fields_and_files_are_a_body(facts: Facts, lock: Callable[..., str]) -> None:
    handler = """
        from typing import Annotated
        async def handler(
            title: Annotated[str, Form()], image: UploadFile, more: list[UploadFile] = []
        ) -> None: ...
        """
    found = facts(handler, file="Api/v1/Cover/Post.py")

    assert found == [
        "file image file",
        "file more [file] ?",
        "body multipart CoverPostForm",
        "204",
    ]
    assert "type CoverPostForm\n  title   str\n" in lock(handler, file="Api/v1/Cover/Post.py")


def test_limits_are_facts_where_the_module_says_them(facts: Facts) -> None:
    found = facts(
        """
        from treefold_http.middleware import RateLimit
        max_body = 1000
        timeout = 2.5
        middlewares = [RateLimit("90/min")]
        async def handler(title: str) -> None: ...
        """
    )

    assert found == [
        "query title str",
        "limit body 1000",
        "limit rate 90",
        "limit timeout 2.5",
        "204",
    ]
