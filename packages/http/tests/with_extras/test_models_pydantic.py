"""Pydantic models as bodies: what they take, what their errors say, which types count as one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Post = Callable[..., "Answer"]

MODELS = """
import datetime as dt
from dataclasses import dataclass
from typing import Annotated, Any, Generic, Literal, Optional, TypeVar, Union

from pydantic import BaseModel, ConfigDict, Field, Json, field_validator
from typing_extensions import TypedDict

T = TypeVar("T")

class Item(BaseModel):
    name: str = Field(min_length=2)
    count: int = 1
    when: dt.date | None = None
    password: str = ""

class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    count: int

class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int

class Dog(BaseModel):
    kind: Literal["dog"]
    tricks: list[str]

class Node(BaseModel):
    next: "Optional[Node]" = None

class Packed(BaseModel):
    count: int
    data: Json[list[int]]

class Page(BaseModel, Generic[T]):
    items: list[T]

class Checked(BaseModel):
    a: int

    @field_validator("a")
    @classmethod
    def positive(cls, value: int) -> int:
        if value < 1:
            raise ValueError("must be positive")
        if value > 1000:
            raise LookupError("a fault of the validator")
        return value

@dataclass
class Record:
    name: str
    at: dt.date

class Point(TypedDict):
    x: int
"""


@pytest.fixture
def post(serving: Project, ask: Ask) -> Post:
    """Send a body to a handler with a parameter `item` of this annotation, which gives it back."""

    def run(annotation: str, body: bytes, kind: str = "application/json") -> Answer:
        text = f"{MODELS}\nasync def handler(item: {annotation}):\n    return [item]\n"
        app = serving(text, "Api/v1/X/Post.py")
        app.boot()
        assert app.report.broken == ()
        return ask(app, "POST", "/v1/x", chunks=[body], headers=[("content-type", kind)])

    return run


ITEM = {"name": "ab", "count": 1, "when": None, "password": ""}

FITS: list[tuple[str, bytes, Any]] = [
    ("Item", b'{"name":"ab"}', ITEM),
    ("Item", b'\xef\xbb\xbf{"name":"ab"}', ITEM),
    (
        "Item",
        b'{"name":"ab","count":"5","when":"2026-01-02"}',
        {**ITEM, "count": 5, "when": "2026-01-02"},
    ),
    ("Item", b'{"name":"ab","other":1}', ITEM),
    ("list[Item]", b'[{"name":"ab"},{"name":"cd"}]', [ITEM, {**ITEM, "name": "cd"}]),
    ("list[Item]", b"[]", []),
    ("Item | None", b"null", None),
    ("Item | None = None", b'{"name":"ab"}', ITEM),
    ("Optional[Item] = None", b"", None),
    ("Union[Cat, Dog]", b'{"kind":"dog","tricks":["sit"]}', {"kind": "dog", "tricks": ["sit"]}),
    (
        "Annotated[Union[Cat, Dog], Field(discriminator='kind'), Body()]",
        b'{"kind":"cat","lives":9}',
        {"kind": "cat", "lives": 9},
    ),
    ("list[Cat | Dog]", b'[{"kind":"cat","lives":9}]', [{"kind": "cat", "lives": 9}]),
    ("Page[Item]", b'{"items":[{"name":"ab"}]}', {"items": [ITEM]}),
    ("Record", b'{"name":"a","at":"2026-01-02"}', {"name": "a", "at": "2026-01-02"}),
    ("Point", b'{"x":1}', {"x": 1}),
    ("Annotated[dict[str, int], Body()]", b'{"a":1}', {"a": 1}),
    ("Annotated[int, Field(gt=1), Body()]", b"5", 5),
]


@pytest.mark.parametrize(("annotation", "body", "value"), FITS, ids=[str(f[:2]) for f in FITS])
def test_a_body_becomes_the_model(post: Post, annotation: str, body: bytes, value: Any) -> None:
    answer = post(annotation, body)

    assert (answer.status, answer.json()) == (200, [value])


FAILS: list[tuple[str, bytes, list[dict[str, Any]]]] = [
    (
        "Item",
        b'{"name":"a","count":"x"}',
        [
            {
                "loc": ["body", "name"],
                "msg": "String should have at least 2 characters",
                "type": "string_too_short",
                "ctx": {"min_length": 2},
            },
            {
                "loc": ["body", "count"],
                "msg": "Input should be a valid integer, unable to parse string as an integer",
                "type": "int_parsing",
            },
        ],
    ),
    ("Item", b"{}", [{"loc": ["body", "name"], "msg": "Field required", "type": "missing"}]),
    (
        "Strict",
        b'{"count":"5","x":1}',
        [
            {
                "loc": ["body", "count"],
                "msg": "Input should be a valid integer",
                "type": "int_type",
            },
            {
                "loc": ["body", "x"],
                "msg": "Extra inputs are not permitted",
                "type": "extra_forbidden",
            },
        ],
    ),
    (
        "list[Item]",
        b'[{"name":"ab"},{}]',
        [{"loc": ["body", 1, "name"], "msg": "Field required", "type": "missing"}],
    ),
    (
        "Checked",
        b'{"a":0}',
        [{"loc": ["body", "a"], "msg": "Value error, must be positive", "type": "value_error"}],
    ),
    (
        "Packed",
        b'{"count":1,"data":"[1,"}',
        [
            {
                "loc": ["body", "data"],
                "msg": "Invalid JSON: EOF while parsing a value at line 1 column 3",
                "type": "json_invalid",
            }
        ],
    ),
    ("Item", b"", [{"loc": ["body"], "msg": "body is required", "type": "missing"}]),
    ("Item | None", b"", [{"loc": ["body"], "msg": "body is required", "type": "missing"}]),
]


@pytest.mark.parametrize(("annotation", "body", "errors"), FAILS, ids=[str(f[:2]) for f in FAILS])
def test_a_body_that_does_not_fit_is_422_with_every_place(
    post: Post, annotation: str, body: bytes, errors: list[dict[str, Any]]
) -> None:
    answer = post(annotation, body)

    # pydantic 2.13 reports an unknown member before the fields of the model, 2.14 after them
    found = sorted(answer.json()["errors"], key=lambda error: error["loc"])
    assert (answer.status, found) == (422, sorted(errors, key=lambda error: error["loc"]))


def test_a_union_says_what_was_wrong_with_each_choice(post: Post) -> None:
    answer = post("Cat | Dog", b'{"kind":"cow"}')

    assert answer.status == 422
    assert {error["loc"][1] for error in answer.json()["errors"]} == {"Cat", "Dog"}


def test_what_was_sent_is_not_in_the_errors(post: Post) -> None:
    answer = post("Item", b'{"name":5,"password":["<s3cret>"],"when":"<s3cret>"}')

    assert answer.status == 422
    assert len(answer.json()["errors"]) == 3
    assert b"s3cret" not in answer.body


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"ab","name":"cd"}',
        b'{"name":"ab","other":{"a":1,"a":2}}',
        b'{"name":"ab","count":NaN}',
        b'{"name":"ab","other":NaN}',
        b'{"name":"ab","other":-Infinity}',
        b'{"name":"\\ud800b"}',
        b'{"name":"ab","\\udc00":1}',
        b'{"name":"\xffb"}',
        b'{"name":"ab","other":"\xff"}',
        b'\xef\xbb\xbf\xef\xbb\xbf{"name":"ab"}',
        b'{"name":"ab","count":' + b"1" * 5000 + b"}",
        b'{"name":"ab"',
        b'{"name":"ab"}x',
    ],
    ids=lambda body: str(body[:40]),
)
def test_what_pydantic_would_take_and_json_does_not_is_400(post: Post, body: bytes) -> None:
    assert post("Item", body).status == 400


@pytest.mark.parametrize("depth", [100, 250, 900, 5_000, 100_000])
def test_a_nesting_that_its_parser_refuses_is_400(post: Post, depth: int) -> None:
    answer = post("Node", b'{"next":' * depth + b"null" + b"}" * depth)

    # 100 is taken, and the answer is as deep as the question.
    assert answer.status == (200 if depth == 100 else 400)
    if depth == 250:
        assert answer.json()["detail"].startswith(
            "The body is not valid JSON: recursion limit exceeded"
        )


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "a/json"])
def test_another_content_type_is_415(post: Post, kind: str) -> None:
    assert post("Item", b'{"name":"ab"}', kind).status == 415


def test_a_validator_that_fails_by_itself_is_a_500_that_hides_it(post: Post, lines: Lines) -> None:
    answer = post("Checked", b'{"a":5000}')

    assert answer.status == 500
    assert b"fault" not in answer.body
    assert [type(error) for error in lines.errors()] == [LookupError]


@pytest.mark.parametrize("body", [b'{"name":"ab","password":"s3cret"}', b'{"password":"s3cret"}'])
def test_the_payload_is_masked_whether_it_fits_or_not(
    post: Post, lines: Lines, body: bytes
) -> None:
    post("Item", body)
    (text,) = [text for text in lines.texts() if text.startswith("POST")]

    assert '"password":"***"' in text
    assert "s3cret" not in text


@pytest.mark.parametrize(
    ("parameters", "query", "value"),
    [
        ("a: Annotated[PositiveInt, Query()]", "?a=5", 5),
        (
            "a: Annotated[HttpUrl, Query()]",
            "?a=https://example.localhost",
            "https://example.localhost/",
        ),
    ],
)
def test_a_type_of_pydantic_reads_one_text(
    serving: Project, ask: Ask, parameters: str, query: str, value: Any
) -> None:
    app = serving(
        "from typing import Annotated\nfrom pydantic import HttpUrl, PositiveInt\n"
        f"async def handler({parameters}):\n    return [a if isinstance(a, int) else str(a)]\n"
    )

    assert ask(app, "GET", f"/v1/x{query}").json() == [value]
    refused = ask(app, "GET", "/v1/x?a=-5")
    assert refused.status == 422
    (error,) = refused.json()["errors"]
    assert error["loc"] == ["query", "a"]
    assert error["msg"].startswith("a input should be ")


@pytest.mark.parametrize(
    ("parameters", "query"),
    [
        ("a: PositiveInt", "?a=-5"),
        ("a: PositiveInt = 1", "?a=-5"),
        ("a: Annotated[int, Field(gt=0)]", "?a=0"),
        ("a: Annotated[int, Gt(0), Query()]", "?a=0"),
        ("a: Annotated[str, Field(pattern='^b$'), Header()] = 'b'", ""),
        ("a: Annotated[list[PositiveInt], Query()]", "?a=5&a=-5"),
    ],
)
def test_a_constraint_is_never_passed_over(
    serving: Project, ask: Ask, parameters: str, query: str
) -> None:
    app = serving(
        "from typing import Annotated\nfrom annotated_types import Gt\n"
        "from pydantic import Field, PositiveInt\n"
        f"async def handler({parameters}):\n    return [a]\n"
    )
    refused = ask(app, "GET", f"/v1/x{query}", headers=[("a", "x")])

    assert refused.status == 422
    assert refused.json()["errors"][0]["loc"][1] == "a"


@pytest.mark.parametrize(
    ("annotation", "body", "status"),
    [
        ("Annotated[int, Field(gt=1), Body()]", b"1", 422),
        ("Annotated[list[Item], Field(max_length=1)]", b"[]", 200),
        ("Annotated[list[Item], Field(max_length=1)]", b'[{"name":"ab"},{"name":"ab"}]', 422),
    ],
)
def test_a_constraint_of_a_body_is_checked(
    post: Post, annotation: str, body: bytes, status: int
) -> None:
    assert post(annotation, body).status == status


def test_a_typed_dict_of_the_standard_library_is_a_model_on_every_python(
    serving: Project, ask: Ask
) -> None:
    app = serving(
        """
        from typing import NotRequired, TypedDict

        class Point(TypedDict):
            x: int
            y: NotRequired[int]

        async def handler(item: Point):
            return item
        """,
        "Api/v1/X/Post.py",
    )

    assert ask(app, "POST", "/v1/x", chunks=[b'{"x":1}']).json() == {"x": 1}
    assert ask(app, "POST", "/v1/x", chunks=[b'{"y":1}']).status == 422
