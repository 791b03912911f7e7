"""What a handler answers, as lines of a lock."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from treefold_http import Settings

Facts = Callable[..., list[str]]
HEAD = """
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any, Literal

@dataclass
class Book:
    isbn: str
    pages: int | None = None
"""


@pytest.mark.parametrize(
    ("returned", "lines"),
    [
        ("", ["2XX any"]),
        (" -> None", ["204"]),
        (" -> Book", ["200 json Book unchecked"]),
        (" -> list[Book]", ["200 json [Book] unchecked"]),
        (" -> Book | None", ["200 json Book unchecked", "204"]),
        (" -> tuple[Book, Literal[201]]", ["201 json Book unchecked"]),
        (" -> tuple[Book, int]", ["2XX json Book unchecked"]),
        (" -> AsyncIterator[Book]", ["200 ndjson Book unchecked"]),
        (" -> str", ["200 text/plain"]),
        (" -> bytes", ["200 application/octet-stream"]),
        (" -> Any", ["2XX any"]),
        (" -> dict", ["200 json {any: any} unchecked"]),
        (" -> Response", ["2XX any"]),
        (" -> EventStream", ["200 events"]),
    ],
)
def test_the_annotation_is_an_answer(facts: Facts, returned: str, lines: list[str]) -> None:
    assert facts(f"{HEAD}\nasync def handler(){returned}: ...") == lines


def test_an_answer_is_checked_where_a_response_model_holds_it(facts: Facts) -> None:
    found = facts(f"{HEAD}\nresponse_model = Book\nasync def handler(): ...")

    assert found == ["200 json Book"]


def test_raised_errors_are_answers_and_implied_ones_are_not(facts: Facts) -> None:
    found = facts(
        f"""{HEAD}
async def handler(id: int, page: int = 1) -> Book:
    if page == 9:
        raise Conflict("no")
    raise NotFound("nothing")
""",
        file="Api/v1/Book/[id]/Get.py",
    )

    assert found == ["query page int = 1", "200 json Book unchecked", "404 problem", "409 problem"]


def test_declared_responses_are_answers(facts: Facts) -> None:
    found = facts(
        f"""{HEAD}
responses = {{
    404: "no such book",
    409: Book,
    410: {{"model": str}},
    200: {{"headers": {{"X-Total": int}}}},
    "5XX": {{"description": "broken"}},
}}
async def handler() -> Book: ...
"""
    )

    assert found == [
        "200 json Book unchecked",
        "200 header X-Total int",
        "404 problem",
        "409 json Book",
        "410 text/plain",
        "5XX problem",
    ]


def test_a_socket_has_messages(facts: Facts) -> None:
    found = facts(
        """
        from dataclasses import dataclass
        @dataclass
        class Move:
            to: str
        async def handler(websocket):
            await websocket.accept()
            async for move in websocket.iter_json(Move):
                await websocket.send_text(move.to)
        """,
        file="Api/v1/Game/Websocket.py",
    )

    assert found == ["in json Move", "out text str"]


def test_messages_of_any_json_are_any(facts: Facts) -> None:
    found = facts(
        """
        class Foreign: ...
        async def handler(websocket):
            async for move in websocket.iter_json():
                await websocket.send_json(move)
            await websocket.receive_json(Foreign)
        """,
        file="Api/v1/Game/Websocket.py",
    )

    assert found == ['in json any | foreign "Foreign"', "out json any"]


def test_a_file_offers_tags_and_ranges(facts: Facts) -> None:
    found = facts('async def handler() -> FileResponse: return FileResponse("a.csv")')

    assert found == ["200 text/csv", "offers etag", "offers ranges"]


def test_the_setting_holds_annotations(facts: Facts) -> None:
    found = facts(
        f"{HEAD}\nasync def handler() -> tuple[Book, Literal[200, 201]]: ...",
        settings=Settings(response_model=True),
    )

    assert found == ["200 json Book", "201 json Book"]
