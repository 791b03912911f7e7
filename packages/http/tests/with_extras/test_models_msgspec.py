"""msgspec structs as bodies: what they take, what their errors say, what is refused before them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http._types.decode import _parse_msgspec_path

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Post = Callable[..., "Answer"]

MODELS = """
import datetime as dt
from typing import Annotated, Optional, Union

from msgspec import Meta, Struct

class Item(Struct):
    name: Annotated[str, Meta(min_length=2)]
    count: int = 1
    when: Optional[dt.date] = None
    password: str = ""

class Strict(Struct, forbid_unknown_fields=True):
    count: int

class Cat(Struct, tag="cat", tag_field="kind"):
    lives: int

class Dog(Struct, tag="dog", tag_field="kind"):
    tricks: list[str]

class Node(Struct):
    next: "Optional[Node]" = None

class Order(Struct):
    items: list[Item]
    notes: dict[str, int] = {}

class Checked(Struct):
    a: int

    def __post_init__(self):
        if self.a < 1:
            raise ValueError("must be positive")
        if self.a > 1000:
            raise LookupError("a fault of the struct")
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
    ("Item", b'{"name":"ab","when":"2026-01-02"}', {**ITEM, "when": "2026-01-02"}),
    ("Item", b'{"name":"ab","other":1}', ITEM),
    ("list[Item]", b'[{"name":"ab"}]', [ITEM]),
    ("Item | None", b"null", None),
    ("Optional[Item] = None", b'{"name":"ab"}', ITEM),
    ("Optional[Item] = None", b"", None),
    ("Union[Cat, Dog]", b'{"kind":"dog","tricks":["sit"]}', {"kind": "dog", "tricks": ["sit"]}),
    ("list[Cat | Dog]", b'[{"kind":"cat","lives":9}]', [{"kind": "cat", "lives": 9}]),
    ("Annotated[Item, 'a note']", b'{"name":"ab"}', ITEM),
]


@pytest.mark.parametrize(("annotation", "body", "value"), FITS, ids=[str(f[:2]) for f in FITS])
def test_a_body_becomes_the_struct(post: Post, annotation: str, body: bytes, value: Any) -> None:
    answer = post(annotation, body)

    assert (answer.status, answer.json()) == (200, [value])


FAILS: list[tuple[str, bytes, list[Any], str]] = [
    ("Item", b"{}", ["body"], "Object missing required field `name`"),
    ("Item", b'{"name":5}', ["body", "name"], "Expected `str`, got `int`"),
    ("Item", b'{"name":"a"}', ["body", "name"], "Expected `str` of length >= 2"),
    ("Item", b'{"name":"ab","count":"5"}', ["body", "count"], "Expected `int`, got `str`"),
    ("Item", b"[]", ["body"], "Expected `object`, got `array`"),
    ("Strict", b'{"count":1,"x":2}', ["body"], "Object contains unknown field `x`"),
    ("list[Item]", b'[{"name":"ab"},{"name":5}]', ["body", 1, "name"], "Expected `str`"),
    ("Order", b'{"items":[{"name":5}]}', ["body", "items", 0, "name"], "Expected `str`"),
    ("Order", b'{"items":[],"notes":{"k":"x"}}', ["body", "notes", "..."], "Expected `int`"),
    ("Cat | Dog", b'{"kind":"cow"}', ["body", "kind"], "Invalid value"),
    ("Checked", b'{"a":0}', ["body"], "must be positive"),
]


@pytest.mark.parametrize(
    ("annotation", "body", "loc", "message"), FAILS, ids=[str(f[:2]) for f in FAILS]
)
def test_a_body_that_does_not_fit_is_422_and_says_where(
    post: Post, annotation: str, body: bytes, loc: list[Any], message: str
) -> None:
    answer = post(annotation, body)

    assert answer.status == 422
    (error,) = answer.json()["errors"]
    assert (error["loc"], error["type"]) == (loc, "value_error")
    assert error["msg"].startswith(message)


def test_an_empty_body_is_422(post: Post) -> None:
    answer = post("Item", b"")

    assert answer.json()["errors"] == [
        {"loc": ["body"], "msg": "body is required", "type": "missing"}
    ]


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"ab","name":"cd"}',
        b'{"name":"ab","other":{"a":1,"a":2}}',
        b'{"name":"ab","other":NaN}',
        b'{"name":"ab","other":1e999}',
        b'{"name":"\\ud800b"}',
        b'{"name":"ab","other":"\\udfff"}',
        b'{"name":"ab","\\udc00":1}',
        b'{"name":"\xffb"}',
        b'{"name":"ab","other":"\xff"}',
        b'{"name":"ab","other":"\xed\xa0\x80"}',
        b'\xef\xbb\xbf\xef\xbb\xbf{"name":"ab"}',
        b'{"name":"ab","other":' + b"1" * 5000 + b"}",
        b'{"name":"ab"',
        b'{"name":"ab"}x',
        b'{"name":"ab","other":"\x01"}',
    ],
    ids=lambda body: str(body[:40]),
)
def test_what_msgspec_would_pass_over_is_400(post: Post, body: bytes) -> None:
    assert post("Item", body).status == 400


@pytest.mark.parametrize("depth", [1_500, 5_000, 100_000])
def test_a_nesting_that_is_too_deep_is_never_a_500(post: Post, depth: int) -> None:
    status = post("Node", b'{"next":' * depth + b"null" + b"}" * depth).status

    # How deep is too deep is Python's to say: 1,000 until 3.11, more since.
    assert status == 400 or (status == 200 and depth < 100_000)


@pytest.mark.parametrize("kind", ["text/plain", "application/msgpack"])
def test_another_content_type_is_415(post: Post, kind: str) -> None:
    assert post("Item", b'{"name":"ab"}', kind).status == 415


def test_a_struct_that_fails_by_itself_is_a_500_that_hides_it(post: Post, lines: Lines) -> None:
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


def test_structs_that_cannot_be_told_apart_are_refused_at_boot(serving: Project) -> None:
    app = serving(f"{MODELS}\nasync def handler(item: Item | Strict): ...\n", "Api/v1/X/Post.py")
    app.boot()

    (broken,) = app.report.broken
    assert broken.error.startswith("TypeError: ")


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("", ["body"]),
        (".name`", ["body", "name"]),
        ("[0]`", ["body", 0]),
        (".items[10].name`", ["body", "items", 10, "name"]),
        ("[...].a[...]`", ["body", "...", "a", "..."]),
    ],
)
def test_a_path_becomes_steps(path: str, steps: list[Any]) -> None:
    assert _parse_msgspec_path(path) == steps
