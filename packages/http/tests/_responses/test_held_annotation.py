"""`response_model = True`, and the setting: the return annotation is held."""

from __future__ import annotations

import json
from collections.abc import Callable
from textwrap import dedent
from typing import Any

import pytest

from treefold_http import Application, Settings

HEAD = """
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal
from treefold_http import *

@dataclass
class Book:
    isbn: str
"""
HOLDS = Settings(response_model=True)
FULL = '{"isbn": "1", "secret": "x"}'


@pytest.fixture
def answer(
    project: Callable[..., Application], ask: Callable[..., Any]
) -> Callable[..., tuple[int, Any]]:
    """The status and the content of one handler."""

    def make(text: str, **settings: Any) -> tuple[int, Any]:
        app = project({"Api/v1/X/Get.py": f"{HEAD}\n{dedent(text)}"}, **settings)
        found = ask(app, "GET", "/v1/x")
        return found.status, found.body

    return make


@pytest.mark.parametrize(
    ("annotation", "result", "expected"),
    [
        ("Book", FULL, (200, {"isbn": "1"})),
        ("list[Book]", f"[{FULL}]", (200, [{"isbn": "1"}])),
        ("tuple[Book, Literal[201]]", f"({FULL}, 201)", (201, {"isbn": "1"})),
        ("Book | Response", FULL, (200, {"isbn": "1"})),
        ("dict[str, int]", '{"a": 1}', (200, {"a": 1})),
    ],
)
@pytest.mark.parametrize("by_setting", [True, False])
def test_a_result_has_the_declared_members_alone(
    answer: Callable[..., tuple[int, Any]],
    annotation: str,
    result: str,
    expected: tuple[int, Any],
    by_setting: bool,
) -> None:
    line = "" if by_setting else "response_model = True"
    options = {"settings": HOLDS} if by_setting else {}
    status, body = answer(
        f"{line}\nasync def handler() -> {annotation}: return {result}", **options
    )

    assert (status, json.loads(body)) == expected


def test_a_result_of_another_type_is_500(answer: Callable[..., tuple[int, Any]]) -> None:
    text = "response_model = True\nasync def handler() -> Book: return {'isbn': 7}"

    assert answer(text)[0] == 500


def test_a_stream_is_held_line_by_line(answer: Callable[..., tuple[int, Any]]) -> None:
    status, body = answer(
        f"""
        response_model = True
        async def handler() -> AsyncIterator[Book]:
            yield {FULL}
            yield {FULL}
        """
    )

    assert (status, body) == (200, b'{"isbn":"1"}\n{"isbn":"1"}\n')


@pytest.mark.parametrize(
    "annotation", ["Response", "Any", "str", "bytes", "None", "AsyncIterator[str]", "EventStream"]
)
def test_the_setting_leaves_alone_what_cannot_be_held(
    project: Callable[..., Application], annotation: str
) -> None:
    text = f"{HEAD}\nasync def handler() -> {annotation}: ..."
    app = project({"Api/v1/X/Get.py": text}, settings=HOLDS)

    app.boot()

    assert app.report.broken == ()


def test_a_module_can_say_no(answer: Callable[..., tuple[int, Any]]) -> None:
    text = f"response_model = False\nasync def handler() -> Book: return {FULL}"
    status, body = answer(text, settings=HOLDS)

    assert (status, json.loads(body)) == (200, {"isbn": "1", "secret": "x"})


@pytest.mark.parametrize(
    ("handler", "shown"),
    [
        ("async def handler(): ...", "got nothing"),
        ("async def handler() -> Any: ...", "got Any"),
        ("async def handler() -> Unknown: ...", "got nothing"),
        ("async def handler() -> Response: ...", "got Response"),
    ],
)
def test_true_without_a_type_is_a_broken_file(
    project: Callable[..., Application], handler: str, shown: str
) -> None:
    text = f"from __future__ import annotations\n{HEAD}\nresponse_model = True\n{handler}"
    app = project({"Api/v1/X/Get.py": text})
    app.boot()

    (broken,) = app.report.broken

    assert "`response_model = True` needs a return annotation" in broken.error
    assert shown in broken.error


def test_a_socket_cannot_say_true(project: Callable[..., Application]) -> None:
    text = "response_model = True\nasync def handler(websocket): ..."
    app = project({"Api/v1/X/Websocket.py": text})
    app.boot()

    (broken,) = app.report.broken

    assert "must be the type of JSON messages, got True" in broken.error
