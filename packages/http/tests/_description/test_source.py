"""Reading the source of handlers: names, nested functions, files that change after the import."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from http_reloading import X, Y

from treefold_http import Application, Depends, EventStream, HTTPError, NotFound
from treefold_http._description.source_reader import SourceReader
from treefold_http.openapi import openapi_document

if TYPE_CHECKING:
    from conftest import Lines

Operation = Callable[..., dict[str, Any]]
_Call = Callable[[Any], Any]

HEAD = """
import treefold_http
from treefold_http import *

class Gone(HTTPError):
    code = 410
"""


def error_statuses(found: dict[str, Any]) -> set[str]:
    return {status for status in found["responses"] if status[0] in "45"}


BODIES: list[tuple[str, set[str]]] = [
    ("raise treefold_http.NotFound('x')", {"404"}),
    ("raise NotFound('x') if request.id else Conflict('y')", {"404", "409"}),
    ("raise HTTPError(status=418)", {"418"}),
    ("raise HTTPError('x', 418)", set()),
    ("raise HTTPError(200)", set()),
    ("raise Gone(410, 'x')", {"410"}),
    ("assert not isinstance(request, NotFound)", set()),
    ("NotFound = ValueError\n    raise NotFound('x')", set()),
    ("error = NotFound('x')\n    raise error", set()),
    ("async def inner(): raise NotFound('x')", set()),
    ("inner = lambda: request.json()", set()),
    ("class Inner:\n        async def read(self): raise NotFound('x')", set()),
    ("[await request.json() for _ in range(2)]", {"400", "413", "415"}),
    ("match request.id:\n        case '1': raise Conflict('x')", {"409"}),
    ("raise", set()),
]


@pytest.mark.parametrize(("body", "statuses"), BODIES)
def test_statuses_come_from_the_body_of_the_function(
    operation: Operation, body: str, statuses: set[str]
) -> None:
    found = operation(f"{HEAD}async def handler(request):\n    {body}\n", file="Api/v1/X/Post.py")

    assert error_statuses(found) == statuses


@pytest.mark.parametrize(
    "text",
    [
        "@secured('bearer', optional=True)\n@secured(\n    'basic', optional=True\n)\n"
        "async def handler(request):\n    raise Conflict('x')",
        "class Handler:\n    async def __call__(self, request): raise Conflict('x')\n"
        "handler = Handler()",
        "class Handler:\n    async def handle(self, request): raise Conflict('x')\n"
        "handler = Handler().handle",
        "from functools import partial\nasync def base(request, *, x): raise Conflict('x')\n"
        "handler = partial(base, x=1)",
        "def level(request): raise Conflict('x')\nasync def handler(x=Depends(level)): ...",
        "if True:\n    async def handler(request): raise Conflict('x')\n"
        "else:\n    async def handler(request): raise NotFound('x')",
    ],
    ids=["decorated", "callable", "method", "partial", "dependency", "branch"],
)
def test_the_function_is_found_in_its_file(operation: Operation, text: str) -> None:
    assert error_statuses(operation(HEAD + text)) >= {"409"}


def test_an_event_stream_of_a_module_name_is_seen(operation: Operation) -> None:
    found = operation(f"{HEAD}async def handler(request): return treefold_http.EventStream([])")

    assert "text/event-stream" in found["responses"]["200"]["content"]


def test_functions_outside_of_a_project_are_read_too() -> None:
    async def one(request: Any) -> Any:
        if await request.form():
            raise NotFound("x")
        return EventStream(request.stream())

    read = SourceReader()

    assert read(one).statuses == {404}
    assert read(one).calls == {"form", "stream"}
    assert read(one).events
    assert read(one) is read(one)


def test_two_lambdas_on_one_line_are_not_told_apart() -> None:
    pair: list[_Call] = [lambda request: request.json(), lambda request: request.body()]
    only: _Call = lambda request: request.body()  # noqa: E731 - what this is about
    read = SourceReader()

    assert [read(each).calls for each in pair] == [set(), set()]
    assert read(only).calls == {"body"}


def test_a_function_without_a_source_reads_nothing() -> None:
    names: dict[str, Any] = {"HTTPError": HTTPError, "Depends": Depends}
    exec("async def handler(request): raise HTTPError(418)", names)

    assert SourceReader()(names["handler"]).statuses == set()
    assert SourceReader()(print).statuses == set()
    assert SourceReader()(dict).statuses == set()


def test_a_file_that_changes_after_its_import_is_not_read(
    project: Callable[..., Application], lines: Lines
) -> None:
    before = f"{HEAD}async def handler(request): raise NotFound('x')\n"
    app = project({X: before, Y: before})
    app.boot()
    (app.root / X).write_text(before.replace("NotFound", "Conflict"), encoding="utf-8")
    paths = openapi_document(app)["paths"]

    assert error_statuses(paths["/v1/x"]["get"]) == set()
    assert error_statuses(paths["/v1/y"]["get"]) == {"404"}
    (text,) = lines.texts(logging.WARNING)
    assert text.startswith(f"{app.root / X} changed after it was imported; ")


def test_a_reloaded_file_is_read_as_it_was_compiled(live: Callable[..., Any]) -> None:
    text = f"{HEAD}async def handler(request): raise NotFound('x')\n"
    running = live({X: text})
    running.edit({X: text.replace("NotFound", "Conflict")})
    (running.app.root / X).write_text(text.replace("NotFound", "Forbidden"), encoding="utf-8")

    found = openapi_document(running.app)["paths"]["/v1/x"]["get"]
    assert error_statuses(found) == {"409"}
