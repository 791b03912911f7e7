"""What a handler returns becomes this answer: the table of the specification and the rulings."""

import json

import pytest
from http_messages import Answer
from serving import Serve, Served

CASES = {
    "dict": "{'a': 1}",
    "empty dict": "{}",
    "list": "[1, 'two', None, True]",
    "dict subclass": "OrderedDict(a=1)",
    "list subclass": "type('L', (list,), {})([1])",
    "text": "'plain'",
    "empty text": "''",
    "html": "'<html><script>alert(1)</script>'",
    "unicode": "'gr\u00fc\u00df \U0001f333'",
    "text subclass": "type('S', (str,), {})('sub')",
    "enum text": "Color.RED",
    "none": "None",
    "bytes": "b'\\x00\\xff'",
    "dataclass": "Point(1, 2)",
    "dataclasses": "[Point(1, 2)]",
    "async stream": "numbers()",
    "plain stream": "(str(n) for n in range(3))",
    "response": "Response.json({'a': 1}, status=201)",
    "default status": "Response.json({'a': 1})",
    "plain response": "Response('x', 202, {'X-One': '1'}, 'text/csv')",
    "streaming response": "StreamingResponse(numbers(), 201, {'X-One': '1'}, 'text/csv')",
    "text and status": "('accepted', 202)",
    "dict and status": "({'a': 1}, 201)",
    "list and status": "([1], 207)",
    "none and status": "(None, 404)",
    "none and 200": "(None, 200)",
    "dict and 204": "({'a': 1}, 204)",
    "text and 304": "('cached', 304, {'ETag': '\"1\"'})",
    "with headers": "({'a': 1}, 201, {'Location': '/v1/a/1', 'X-Two': '2'})",
    "with content type": "('a,b', 200, {'Content-Type': 'text/csv'})",
    "values": "{'d': date(2024, 2, 29), 'u': UUID(int=1), 'e': Color.RED, 'n': Decimal('1.50')}",
    "nested null": "{'a': None, 'b': [None]}",
    # refused
    "set": "{1}",
    "int": "5",
    "bool": "True",
    "float": "1.5",
    "object": "object()",
    "class": "Point",
    "named tuple": "namedtuple('Pair', 'a b')(1, 200)",
    "empty tuple": "()",
    "one tuple": "('a',)",
    "four tuple": "('a', 200, {}, 1)",
    "status text": "('a', '200')",
    "status bool": "('a', True)",
    "status low": "('a', 199)",
    "status high": "('a', 600)",
    "status huge": "('a', 2000)",
    "headers list": "('a', 200, [('X-One', '1')])",
    "headers number": "('a', 200, {'X-One': 1})",
    "response and status": "(Response('a'), 201)",
    "nan": "{'a': float('nan')}",
    "infinity": "[float('-inf')]",
    "nan and null": "[None, float('nan')]",
    "inner object": "{'a': object()}",
    "object key": "{Point(1, 2): 1}",
    "surrogate": "'\\ud800'",
    "surrogate in json": "{'a': '\\ud800'}",
    "crlf value": "('a', 200, {'X-One': 'a\\r\\nSet-Cookie: e=1'})",
    "lf value": "('a', 200, {'X-One': 'a\\nb'})",
    "nul value": "('a', 200, {'X-One': 'a\\x00b'})",
    "truncating value": "('a', 200, {'X-One': 'a\\u010aSet-Cookie: e=1'})",
    "crlf name": "('a', 200, {'X-One: 1\\r\\nX-Two': '2'})",
    "space in name": "('a', 200, {'X One': '1'})",
    "empty name": "('a', 200, {'': '1'})",
}
PREAMBLE = """
from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from enum import Enum
from uuid import UUID
from treefold import Response, StreamingResponse

class Color(str, Enum):
    RED = "red"

@dataclass(frozen=True)
class Point:
    x: int
    y: int

async def numbers():
    for n in range(3):
        yield str(n)

"""


def path_of(case: str) -> str:
    return "/v1/" + case.replace(" ", "-")


TREE = {
    f"Api{path_of(case)}/Get.py": f"{PREAMBLE}async def handler(request):\n    return {value}\n"
    for case, value in CASES.items()
} | {
    "Api/v1/Status-Code/Post.py": "status_code = 201\nasync def handler(request): return {'a': 1}",
    "Api/v1/Text/Head.py": "async def handler(request): return 'plain'",
    "Api/v1/Cookie/Get.py": """
        from treefold import Response

        async def handler(request):
            response = Response.text("baked")
            response.set_cookie("a", "1")
            response.set_cookie("b", "2", secure=False, httponly=False, samesite=None)
            return response
        """,
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.fixture(scope="module")
def dev(serve: Serve) -> Served:
    return serve(TREE, dev=True)


def own_headers(answer: Answer) -> dict[str, str]:
    """The header without what servers and the framework add to every answer."""
    common = {"date", "connection", "transfer-encoding", "x-request-id", "x-content-type-options"}
    return {name: value for name, value in answer.headers if name not in common}


@pytest.mark.parametrize(
    ("case", "status", "value"),
    [
        ("dict", 200, {"a": 1}),
        ("empty dict", 200, {}),
        ("list", 200, [1, "two", None, True]),
        ("dict subclass", 200, {"a": 1}),
        ("list subclass", 200, [1]),
        ("dataclass", 200, {"x": 1, "y": 2}),
        ("dataclasses", 200, [{"x": 1, "y": 2}]),
        ("response", 201, {"a": 1}),
        ("default status", 200, {"a": 1}),
        ("dict and status", 201, {"a": 1}),
        ("list and status", 207, [1]),
        (
            "values",
            200,
            {
                "d": "2024-02-29",
                "u": "00000000-0000-0000-0000-000000000001",
                "e": "red",
                "n": "1.50",
            },
        ),
        ("nested null", 200, {"a": None, "b": [None]}),
    ],
)
def test_becomes_json(app: Served, case: str, status: int, value: object) -> None:
    answer = app.get(path_of(case))
    assert (answer.status, answer.json()) == (status, value)
    length = str(len(answer.body))
    assert own_headers(answer) == {"content-type": "application/json", "content-length": length}


@pytest.mark.parametrize(
    ("case", "status", "text"),
    [
        ("text", 200, "plain"),
        ("empty text", 200, ""),
        ("html", 200, "<html><script>alert(1)</script>"),
        ("unicode", 200, "gr\u00fc\u00df \U0001f333"),
        ("text subclass", 200, "sub"),
        ("enum text", 200, "red"),
        ("text and status", 202, "accepted"),
    ],
)
def test_becomes_plain_text(app: Served, case: str, status: int, text: str) -> None:
    answer = app.get(path_of(case))
    assert (answer.status, answer.text) == (status, text)
    assert answer.value("content-type") == "text/plain; charset=utf-8"
    assert answer.value("content-length") == str(len(answer.body))


@pytest.mark.parametrize(("case", "status"), [("none", 204), ("dict and 204", 204)])
def test_204_carries_no_body_and_no_content_headers(app: Served, case: str, status: int) -> None:
    answer = app.get(path_of(case))
    assert (answer.status, answer.body, own_headers(answer)) == (status, b"", {})


def test_304_carries_no_body_and_no_content_headers(app: Served) -> None:
    answer = app.get("/v1/text-and-304")
    assert (answer.status, answer.body, own_headers(answer)) == (304, b"", {"etag": '"1"'})


@pytest.mark.parametrize(("case", "status"), [("none and status", 404), ("none and 200", 200)])
def test_none_with_another_status_is_an_empty_body(app: Served, case: str, status: int) -> None:
    answer = app.get(path_of(case))
    assert (answer.status, answer.body, own_headers(answer)) == (
        status,
        b"",
        {"content-length": "0"},
    )


def test_bytes_become_an_octet_stream(app: Served) -> None:
    answer = app.get("/v1/bytes")
    assert (answer.status, answer.body) == (200, b"\x00\xff")
    assert answer.value("content-type") == "application/octet-stream"


@pytest.mark.parametrize("case", ["async stream", "plain stream"])
def test_a_generator_becomes_a_stream(app: Served, case: str) -> None:
    answer = app.get(path_of(case))
    assert (answer.status, answer.body) == (200, b"012")
    assert answer.values("content-length") == []


def test_a_response_is_used_as_it_is(app: Served) -> None:
    answer = app.get("/v1/plain-response")
    assert (answer.status, answer.body) == (202, b"x")
    assert own_headers(answer) == {"x-one": "1", "content-type": "text/csv", "content-length": "1"}


def test_a_streaming_response_is_used_as_it_is(app: Served) -> None:
    answer = app.get("/v1/streaming-response")
    assert (answer.status, answer.body) == (201, b"012")
    assert own_headers(answer) == {"x-one": "1", "content-type": "text/csv"}


def test_a_tuple_of_three_sets_headers(app: Served) -> None:
    answer = app.get("/v1/with-headers")
    assert (answer.status, answer.json()) == (201, {"a": 1})
    assert (answer.value("location"), answer.value("x-two")) == ("/v1/a/1", "2")


def test_a_tuple_of_three_may_replace_the_content_type(app: Served) -> None:
    answer = app.get("/v1/with-content-type")
    assert (answer.text, answer.value("content-type")) == ("a,b", "text/csv")


def test_status_code_of_the_module_is_the_status_of_a_plain_value(app: Served) -> None:
    assert app.request("POST", "/v1/status-code").status == 201


def test_head_answers_with_the_length_and_no_body(app: Served) -> None:
    answer = app.request("HEAD", "/v1/text")
    assert (answer.status, answer.body, answer.value("content-length")) == (200, b"", "5")


def test_repeated_headers_are_all_sent_in_order(app: Served) -> None:
    cookies = app.get("/v1/cookie").values("set-cookie")
    assert [cookie.partition(";")[0] for cookie in cookies] == ["a=1", "b=2"]


def test_cookies_are_safe_by_default(app: Served) -> None:
    first, second = app.get("/v1/cookie").values("set-cookie")
    attributes = {part.strip().lower() for part in first.split(";")}
    assert {"secure", "httponly", "samesite=lax", "path=/"} <= attributes
    assert second == "b=2; Path=/"


REFUSED = {
    "set": "'set'",
    "int": "'int'",
    "bool": "'bool'",
    "float": "'float'",
    "object": "'object'",
    "class": "'type'",
    "named tuple": "'Pair'",
    "empty tuple": "a tuple of 0",
    "one tuple": "a tuple of 1",
    "four tuple": "a tuple of 4",
    "status text": "A status must be an int such as 200, got '200'",
    "status bool": "A status must be an int such as 200, got True",
    "status low": "A status must be from 200 to 599, got 199",
    "status high": "A status must be from 200 to 599, got 600",
    "status huge": "A status must be from 200 to 599, got 2000",
    "headers list": "'list'",
    "headers number": "X-One",
    "response and status": "'Response'",
    "nan": "not JSON compliant",
    "infinity": "not JSON compliant",
    "nan and null": "not JSON compliant",
    "inner object": "'object'",
    "object key": "Point",
    "surrogate": "surrogates not allowed",
    "surrogate in json": "surrogates not allowed",
    "crlf value": "X-One",
    "lf value": "X-One",
    "nul value": "X-One",
    "truncating value": "X-One",
    "crlf name": r"X-One: 1\r\nX-Two",
    "space in name": "X One",
    "empty name": "''",
}


@pytest.mark.parametrize("case", REFUSED)
def test_anything_else_is_a_500_that_says_nothing_to_the_client(app: Served, case: str) -> None:
    answer = app.get(path_of(case))
    assert answer.status == 500
    assert answer.json()["detail"] == "The server failed to answer this request"
    assert {"set-cookie", "x-one", "x-two"}.isdisjoint(name for name, _ in answer.headers)


@pytest.mark.parametrize(("case", "words"), REFUSED.items())
def test_anything_else_names_the_culprit_with_dev(dev: Served, case: str, words: str) -> None:
    answer = dev.get(path_of(case))
    assert answer.status == 500
    assert words.lower() in json.loads(answer.body)["detail"].lower()


@pytest.mark.parametrize("case", ["set", "nan", "crlf value"])
def test_a_refused_value_is_logged_with_its_traceback(app: Served, case: str) -> None:
    block = app.block(app.get(path_of(case)))
    assert block.startswith(f"[ERROR] GET {path_of(case)} -> 500 ")
    assert "Traceback (most recent call last)" in block


def test_nothing_is_ever_rendered_through_repr(app: Served) -> None:
    assert b"object at 0x" not in app.get("/v1/object").body
