"""Body models: what is one, which body it takes, what a body that does not fit says.

What is here holds whatever is installed: each of the three decoders passes it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

import pytest

from treefold_http import Application
from treefold_http._headers.media_types import is_json
from treefold_http._types.decode import build_model_decoder
from treefold_http._types.read import parse_annotation

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

JSON = [("content-type", "application/json")]

MODELS = """
from dataclasses import asdict, dataclass
from typing import Annotated, Any, TypedDict

@dataclass
class Item:
    name: str
    count: int = 1
    password: str = ""

@dataclass
class Node:
    next: "Node | None" = None
"""


@pytest.fixture
def posting(serving: Project) -> Callable[[str], Application]:
    """An application with one handler of these parameters, which gives its `item` back."""

    def make(parameters: str) -> Application:
        text = f"async def handler({parameters}):\n    return item if item else ['nothing']\n"
        return serving(MODELS + text, "Api/v1/X/Post.py")

    return make


def post(ask: Ask, app: Application, body: bytes, kind: str | None = "application/json") -> Answer:
    headers = [("content-type", kind)] if kind is not None else []
    return ask(app, "POST", "/v1/x", chunks=[body], headers=headers)


@dataclass
class Item:
    name: str


class Point(TypedDict):
    x: int


@pytest.mark.parametrize(
    ("annotation", "is_model"),
    [
        (Item, True),
        (Point, True),
        (list[Item], True),
        (Item | None, True),
        (Item | Point, True),
        (list[Item | Point] | None, True),
        (int, False),
        (int | None, False),
        (list[int], False),
        (dict, False),
        (Any, False),
        (None, False),
        (Item | int, False),
    ],
    ids=str,
)
def test_records_lists_of_them_and_unions_are_models(annotation: Any, is_model: bool) -> None:
    assert (build_model_decoder(parse_annotation(annotation)) is not None) is is_model


@pytest.mark.parametrize(
    ("parameters", "body", "answer"),
    [
        ("item: Item", b'{"name":"a"}', {"name": "a", "count": 1, "password": ""}),
        ("item: Item", b'\xef\xbb\xbf {"name":"a"} ', {"name": "a", "count": 1, "password": ""}),
        ("item: Item", b'{"name":"a:b"}', {"name": "a:b", "count": 1, "password": ""}),
        ("item: list[Item]", b'[{"name":"a"}]', [{"name": "a", "count": 1, "password": ""}]),
        ("item: Item | None", b"null", ["nothing"]),
        ("item: Item | None = None", b'{"name":"a"}', {"name": "a", "count": 1, "password": ""}),
        ("item: Item | None = None", b"", ["nothing"]),
        ("item: Item | Node", b'{"name":"a"}', {"name": "a", "count": 1, "password": ""}),
        ("item: Annotated[dict, Body()]", b'{"a":[1]}', {"a": [1]}),
        ("item: Annotated[list[int], Body()]", b"[1]", [1]),
        ("item: Annotated[Any, Body()]", b'["a"]', ["a"]),
    ],
)
def test_a_body_becomes_the_annotated_type(
    posting: Callable[[str], Application], ask: Ask, parameters: str, body: bytes, answer: Any
) -> None:
    got = post(ask, posting(parameters), body)

    assert (got.status, got.json()) == (200, answer)


@pytest.mark.parametrize(
    ("parameters", "body", "loc"),
    [
        ("item: Item", b"{}", ["body", "name"]),
        ("item: Item", b'{"name":5}', ["body", "name"]),
        ("item: Item", b'{"name":"a","count":[]}', ["body", "count"]),
        ("item: Item", b"[]", ["body"]),
        ("item: Item", b"null", ["body"]),
        ("item: Item", b"", ["body"]),
        ("item: list[Item]", b'[{"name":"a"},{}]', ["body", 1, "name"]),
        ("item: list[Item]", b"{}", ["body"]),
        ("item: Annotated[int, Body()]", b'"a"', ["body"]),
    ],
)
def test_a_body_that_does_not_fit_is_422_and_says_where(
    posting: Callable[[str], Application], ask: Ask, parameters: str, body: bytes, loc: list[Any]
) -> None:
    got = post(ask, posting(parameters), body)

    assert got.status == 422
    (error,) = got.json()["errors"]
    assert set(error) == {"loc", "msg", "type"}
    # msgspec names the object that lacks a member, not the member.
    assert error["loc"] in (loc, loc[:-1])
    assert all(isinstance(error[name], str) and error[name] for name in ("msg", "type"))


HOSTILE = [
    b"{",
    b"{}{}",
    b'{"name":"a","name":"b"}',
    b'{"name":"a","\\u006eame":"b"}',
    b'{"name":"a","other":{"a":1,"a":2}}',
    b'{"name":"a","count":NaN}',
    b'{"name":"a","other":Infinity}',
    b'{"name":"a","count":1e999}',
    b'{"name":"\\ud800"}',
    b'{"name":"a","\\udfff":1}',
    b'{"name":"\xff"}',
    b'{"name":"\xed\xa0\x80"}',
    b'{"name":"a","count":' + b"1" * 5000 + b"}",
    b'\xef\xbb\xbf\xef\xbb\xbf{"name":"a"}',
    '{"name":"a"}'.encode("utf-16"),
    b"{'name':'a'}",
    b'{"name":"a",}',
    b'{"name":"a"/**/}',
    b'{"name":"\x00"}',
    b'{"name":' * 100_000,
]


@pytest.mark.parametrize("body", HOSTILE, ids=lambda body: str(body[:24]))
@pytest.mark.parametrize("parameters", ["item: Item", "item: Annotated[Any, Body()]"])
def test_a_body_that_is_no_strict_json_is_400(
    posting: Callable[[str], Application], ask: Ask, parameters: str, body: bytes
) -> None:
    got = post(ask, posting(parameters), body)

    assert got.status == 400
    assert got.json()["detail"].startswith("The body is not valid JSON: ")


@pytest.mark.parametrize("depth", [300, 900, 5_000, 50_000])
def test_a_nesting_that_is_too_deep_is_never_a_500(
    posting: Callable[[str], Application], ask: Ask, depth: int
) -> None:
    got = post(ask, posting("item: Node"), b'{"next":' * depth + b"null" + b"}" * depth)

    assert got.status in (200, 400)


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("application/vnd.api+json", 200),
        (None, 200),
        ("", 200),
        ("text/plain", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/jsonp", 415),
        ("text/plain; application/json", 415),
        ("application/json, text/plain", 415),
    ],
)
def test_a_model_takes_json_and_what_says_nothing(
    posting: Callable[[str], Application], ask: Ask, kind: str | None, status: int
) -> None:
    got = post(ask, posting("item: Item"), b'{"name":"a"}', kind)

    assert got.status == status
    if status == 415:
        assert got.json()["detail"].endswith("; send application/json")


@pytest.mark.parametrize(
    ("kind", "is_one"),
    [("", True), ("application/json", True), ("a/b+json", True), ("text/json", False)],
)
def test_json_is_a_media_type(kind: str, is_one: bool) -> None:
    assert is_json(kind) is is_one


def test_a_body_above_the_limit_is_413(serving: Project, ask: Ask) -> None:
    app = serving(
        MODELS + "max_body = 20\nasync def handler(item: Item): ...\n", "Api/v1/X/Post.py"
    )

    assert post(ask, app, b'{"name":"' + b"a" * 20 + b'"}').status == 413


def test_errors_of_the_body_and_of_other_parameters_come_together(
    posting: Callable[[str], Application], ask: Ask
) -> None:
    got = post(ask, posting("item: Item, q: int, a: Annotated[int, Header()]"), b"{}")

    assert got.status == 422
    assert [error["loc"][0] for error in got.json()["errors"]] == ["body", "query", "header"]


@pytest.mark.parametrize("body", [b'{"name":"a","password":"s3cret"}', b'{"password":"s3cret"}'])
def test_the_payload_of_a_model_is_masked_in_the_line_whether_it_fits_or_not(
    posting: Callable[[str], Application], ask: Ask, lines: Lines, body: bytes
) -> None:
    got = post(ask, posting("item: Item"), body)
    (text,) = [text for text in lines.texts() if text.startswith("POST")]

    assert '"password":"***"' in text
    assert "s3cret" not in text
    assert got.status == 200 or b"s3cret" not in got.body


def test_a_handler_that_changes_its_body_does_not_change_the_line(
    serving: Project, ask: Ask, lines: Lines
) -> None:
    app = serving(
        """
        from typing import Annotated, Any

        async def handler(item: Annotated[dict[str, Any], Body()]):
            item["added"] = item["list"].append("added")
        """,
        "Api/v1/X/Post.py",
    )

    assert post(ask, app, b'{"list":[1]}').status == 204
    (text,) = [text for text in lines.texts() if text.startswith("POST")]
    assert 'payload={"list":[1]}' in text
