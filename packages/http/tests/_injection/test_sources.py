"""Header, cookie, query, form, file: each value from the place it was asked from, and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http._injection.sources import Query
from treefold_http._types.validate import make_error_entry

if TYPE_CHECKING:
    from conftest import Answer

Ask = Callable[..., "Answer"]
Take = Callable[..., "Answer"]

FORM = ("content-type", "application/x-www-form-urlencoded")


@pytest.fixture
def take(serving: Callable[..., Application], ask: Ask) -> Take:
    """Send a request to a handler of these parameters, which gives the value of `a` back."""

    def run(
        parameters: str,
        *,
        query: str = "",
        headers: list[tuple[str, str]] | None = None,
        body: bytes | None = None,
    ) -> Answer:
        app = serving(
            "import enum\nfrom typing import Annotated\nfrom uuid import UUID\n"
            f"async def handler({parameters}):\n    return [a]\n",
            "Api/v1/X/Post.py",
        )
        app.boot()
        assert app.report.broken == ()
        chunks = [] if body is None else [body]
        return ask(app, "POST", f"/v1/x{query}", headers=headers or [], chunks=chunks)

    return run


def cookies(*fields: str) -> list[tuple[str, str]]:
    return [("cookie", field) for field in fields]


PLACES: list[tuple[str, dict[str, Any], Any]] = [
    ("a: Annotated[str, Query()]", {"query": "?a=1&a=2"}, "1"),
    ("a: Annotated[str, Query('b')]", {"query": "?a=1&b=2"}, "2"),
    ("a: Annotated[list[int], Query()]", {"query": "?a=1&b=5&a=2"}, [1, 2]),
    ("a: Annotated[str, Query()]", {"query": "?a=%C3%A4%20%2B+%26"}, "ä + &"),
    ("a: Annotated[str, Query()]", {"query": "?a="}, ""),
    ("a: Annotated[str, Header()]", {"headers": [("a", "1"), ("a", "2")]}, "1"),
    ("a: Annotated[int, Header('X-Count')]", {"headers": [("x-count", "5")]}, 5),
    ("x_b_c: Annotated[str, Header()], a=5", {"headers": [("x-b-c", "5")]}, 5),
    ("a: Annotated[list[str], Header()]", {"headers": [("a", "1"), ("a", "é")]}, ["1", "é"]),
    ("a: Annotated[str, Header]", {"query": "?a=query", "headers": [("a", "header")]}, "header"),
    (
        "a: Annotated[str, Header()] | None = None",
        {"query": "?a=query", "headers": [("a", "header")]},
        "header",
    ),
    ("a: Annotated[int, Query('b')] | None", {"query": "?a=1&b=2"}, 2),
    ("a: 'Annotated[list[int], Cookie()] | None'", {"headers": cookies("a=1; a=2")}, [1, 2]),
    ("a: Annotated[str, Form] | None = None", {"headers": [FORM], "body": b"a=1"}, "1"),
    ("a: Annotated[str, Cookie()]", {"headers": cookies("a=1; a=2", "a=3")}, "1"),
    ("a: Annotated[list[str], Cookie()]", {"headers": cookies("a=1; b=2", "a=3")}, ["1", "3"]),
    ("a: Annotated[bool, Cookie('on')]", {"headers": cookies("on=true")}, True),
    ("a: Annotated[str, Form()]", {"headers": [FORM], "body": b"a=1&a=2"}, "1"),
    ("a: Annotated[list[int], Form()]", {"headers": [FORM], "body": b"a=1&a=2"}, [1, 2]),
    ("a: Annotated[int, Form('b')]", {"headers": [FORM], "body": b"a=1&b=2"}, 2),
    ("a: Annotated[str, Form()]", {"headers": [FORM], "body": b"a=%C3%A4+b"}, "ä b"),
]


@pytest.mark.parametrize(("parameters", "sent", "value"), PLACES)
def test_a_value_comes_from_its_place(
    take: Take, parameters: str, sent: dict[str, Any], value: Any
) -> None:
    answer = take(parameters, **sent)

    assert (answer.status, answer.json()) == (200, [value])


@pytest.mark.parametrize(
    ("source", "label"),
    [("Query()", "query"), ("Header()", "header"), ("Cookie()", "cookie"), ("Form()", "form")],
)
def test_a_value_never_comes_from_another_place(take: Take, source: str, label: str) -> None:
    places: dict[str, Any] = {
        "query": "?a=query",
        "headers": [FORM, ("a", "header"), ("cookie", "a=cookie")],
        "body": b"a=form",
    }
    assert take(f"a: Annotated[str, {source}]", **places).json() == [label]

    emptied: dict[str, Any] = {
        "query": {**places, "query": ""},
        "header": {**places, "headers": [FORM, ("cookie", "a=cookie")]},
        "cookie": {**places, "headers": [FORM, ("a", "header")]},
        "form": {**places, "body": b""},
    }
    answer = take(f"a: Annotated[str, {source}]", **emptied[label])
    assert answer.status == 422
    assert answer.json()["errors"] == [
        {"loc": [label, "a"], "msg": "a is required", "type": "missing"}
    ]


@pytest.mark.parametrize("source", ["Query()", "Header()", "Cookie()", "Form()"])
@pytest.mark.parametrize(
    ("kind", "default"), [("str", "'x'"), ("int | None", "None"), ("list[int]", "[]")]
)
def test_what_is_not_sent_has_the_default(take: Take, source: str, kind: str, default: str) -> None:
    answer = take(f"a: Annotated[{kind}, {source}] = {default}", headers=[FORM], body=b"b=1")

    assert answer.json() == [{"'x'": "x", "None": None, "[]": []}[default]]


@pytest.mark.parametrize(
    ("source", "sent", "label"),
    [
        ("Query()", {"query": "?a=x&a=1&a=y"}, "query"),
        ("Header()", {"headers": [("a", "x"), ("a", "1"), ("a", "y")]}, "header"),
        ("Cookie()", {"headers": cookies("a=x; a=1; a=y")}, "cookie"),
        ("Form()", {"headers": [FORM], "body": b"a=x&a=1&a=y"}, "form"),
    ],
)
def test_items_that_do_not_fit_are_named_by_their_place(
    take: Take, source: str, sent: dict[str, Any], label: str
) -> None:
    answer = take(f"a: Annotated[list[int], {source}]", **sent)

    assert answer.status == 422
    assert answer.json()["errors"] == [
        {"loc": [label, "a", index], "msg": "a should be an integer", "type": "value_error"}
        for index in (0, 2)
    ]


def test_all_that_is_wrong_comes_at_once_by_the_name_that_was_sent(take: Take) -> None:
    answer = take(
        "a: Annotated[int, Query('page')], user_agent: Annotated[int, Header()],"
        " c: Annotated[UUID, Cookie()], d: Annotated[bool, Form()]",
        query="?page=x",
        headers=[FORM, ("user-agent", "y"), ("cookie", "c=z")],
        body=b"d=maybe",
    )

    assert [error["loc"] for error in answer.json()["errors"]] == [
        ["query", "page"],
        ["header", "user-agent"],
        ["cookie", "c"],
        ["form", "d"],
    ]


def test_a_value_that_does_not_fit_is_not_repeated(take: Take) -> None:
    answer = take("a: Annotated[int, Header()]", headers=[("a", "<s3cret>")])

    assert answer.status == 422
    assert b"s3cret" not in answer.body


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ([("content-type", "application/json")], b"{}", 415),
        ([], b"a=1", 415),
        ([FORM], b"a=%ff", 400),
        ([FORM], b"a=1&" * 1001, 400),
        ([FORM], b"a=" + b"x" * 1024 * 1024, 413),
    ],
)
def test_a_form_that_is_none_is_refused(
    take: Take, headers: list[tuple[str, str]], body: bytes, status: int
) -> None:
    assert take("a: Annotated[str, Form()]", headers=headers, body=body).status == status


def test_two_fields_of_one_form_are_read_once(take: Take) -> None:
    answer = take(
        "a: Annotated[str, Form()], b: Annotated[int, Form()], request",
        headers=[FORM],
        body=b"a=1&b=2",
    )

    assert answer.json() == ["1"]


@pytest.mark.parametrize("kind", ["UploadFile", "list[UploadFile]"])
def test_a_file_that_is_not_there_is_required(take: Take, kind: str) -> None:
    answer = take(f"a: {kind}", headers=[FORM], body=b"a=1")

    assert answer.status == 422
    assert answer.json()["errors"] == [
        {"loc": ["file", "a"], "msg": "a is required", "type": "missing"}
    ]


@pytest.mark.parametrize(
    ("parameters", "status"),
    [
        ("a: Annotated[str, Form()] = 'x', b: UploadFile | None = None", 200),
        ("a: Annotated[str, Form()]", 422),
        ("a: UploadFile", 422),
    ],
)
def test_a_request_without_a_body_is_a_form_without_fields(
    take: Take, parameters: str, status: int
) -> None:
    assert take(parameters).status == status


@pytest.mark.parametrize(
    "parameter",
    [
        "a: UploadFile | None = None",
        "a: list[UploadFile] | None = None",
        "a: Annotated[UploadFile | None, File()] = None",
        "a: Annotated[list[UploadFile], File('b')] = []",
    ],
)
def test_a_file_that_is_not_there_has_the_default(take: Take, parameter: str) -> None:
    assert take(parameter, headers=[FORM], body=b"a=1").json() in ([None], [[]])


def test_an_entry_names_the_last_step_that_is_a_name() -> None:
    assert make_error_entry(["query", "ids", 3], "should be an integer") == {
        "loc": ["query", "ids", 3],
        "msg": "ids should be an integer",
        "type": "value_error",
    }


@pytest.mark.parametrize("loc", [[], [3]])
def test_an_entry_of_a_place_without_a_name_is_of_a_value(loc: list[str | int]) -> None:
    assert make_error_entry(loc, "should be int")["msg"] == "value should be int"


def test_a_source_says_its_name_and_cannot_be_changed() -> None:
    source: Any = Query("page")

    assert source == Query("page") != Query()
    with pytest.raises(AttributeError):
        source.alias = "other"
