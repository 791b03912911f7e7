"""Responses: what they are made of, what they refuse, what goes out."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Callable
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import pytest
from http_ids import stable_repr
from hypothesis import given, strategies as st

from treefold_http import Request, Response, StreamingResponse
from treefold_http._responses.response import check_status

if TYPE_CHECKING:
    from conftest import Answer, Exchange

RequestOf = Callable[..., Request]


def sent(response: Response, exchange: type[Exchange], app: Any, method: str = "GET") -> Answer:
    """Send a response through a protocol-exact exchange."""

    async def main() -> Answer:
        made = exchange(method, "/v1/x")
        request = Request(made.scope, made.receive, app, "id-1")
        await response.send(request, made.send, common=[(b"x-common", b"1")])
        return made.answer

    return asyncio.run(main())


@pytest.fixture
def send(request_of: RequestOf, exchange: type[Exchange]) -> Callable[..., Answer]:
    app = request_of().app

    def call(response: Response, method: str = "GET") -> Answer:
        return sent(response, exchange, app, method)

    return call


JSON = "application/json"
TEXT = "text/plain; charset=utf-8"
BYTES = "application/octet-stream"
HTML = "text/html; charset=utf-8"


@pytest.mark.parametrize(
    ("response", "status", "kind", "body"),
    [
        (Response(), 200, None, b""),
        (Response(""), 200, TEXT, b""),
        (Response("é"), 200, TEXT, "é".encode()),
        (Response(b"\xff"), 200, BYTES, b"\xff"),
        (Response("x", 418), 418, TEXT, b"x"),
        (Response("x", media_type="text/csv"), 200, "text/csv", b"x"),
        (Response("x", 200, {"Content-Type": "text/csv"}), 200, "text/csv", b"x"),
        (Response("x", 200, {"Content-Type": "a/b"}, "text/csv"), 200, "text/csv", b"x"),
        (Response.json({"a": [1]}), 200, JSON, b'{"a":[1]}'),
        (Response.json(None), 200, JSON, b"null"),
        (Response.json("x", status=201), 201, JSON, b'"x"'),
        (
            Response.json({}, 201, headers={"content-type": "application/x+json"}),
            201,
            "application/x+json",
            b"{}",
        ),
        (Response.text("x", 202), 202, TEXT, b"x"),
        (Response.html("<p>", 202), 202, HTML, b"<p>"),
        (Response.bytes(b"x", 202), 202, BYTES, b"x"),
        (Response.bytes(b"x", headers={"Content-Type": "image/png"}), 200, "image/png", b"x"),
        (Response.empty(202), 202, None, b""),
        (Response.redirect("/v1/a"), 307, None, b""),
        (Response("x", HTTPStatus.CREATED), 201, TEXT, b"x"),
    ],
)
def test_each_constructor_sends_what_it_says(
    send: Callable[..., Answer], response: Response, status: int, kind: str | None, body: bytes
) -> None:
    answer = send(response)

    assert (answer.status, answer.body) == (status, body)
    assert answer.fields("content-type") == ([] if kind is None else [kind])
    assert answer.fields("content-length") == [str(len(body))]
    assert answer.fields("x-common") == ["1"]
    assert type(response.status) is int


OF_STATUS: list[Callable[[int], Response]] = [
    lambda status: Response("x", status),
    lambda status: Response.json({}, status),
    lambda status: Response(None, status),
]


@pytest.mark.parametrize("status", [204, 304])
@pytest.mark.parametrize("make", OF_STATUS)
def test_an_answer_that_may_have_no_body_has_no_content_fields(
    send: Callable[..., Answer], make: Callable[[int], Response], status: int
) -> None:
    response = make(status)
    response.headers["etag"] = '"1"'
    answer = send(response)

    assert answer.body == b""
    assert sorted(answer.headers) == [("etag", '"1"'), ("x-common", "1")]


def test_head_gets_the_fields_of_get_and_no_body(send: Callable[..., Answer]) -> None:
    response = Response("four")

    assert send(response, "HEAD").headers == send(response, "GET").headers
    assert send(response, "HEAD").body == b""


@pytest.mark.parametrize("name", ["Content-Length", "content-length"])
def test_a_content_length_of_the_author_does_not_stand_beside_ours(
    send: Callable[..., Answer], name: str
) -> None:
    answer = send(Response("four", 200, {name: "999"}))

    assert answer.fields("content-length") == ["4"]


def test_a_transfer_coding_of_the_author_is_not_sent(send: Callable[..., Answer]) -> None:
    answer = send(Response("four", 200, {"Transfer-Encoding": "chunked"}))

    assert answer.fields("transfer-encoding") == []
    assert answer.fields("content-length") == ["4"]


def test_a_response_can_be_sent_twice(send: Callable[..., Answer]) -> None:
    response = Response("x", 200, {"x-a": "1"})

    assert send(response).headers == send(response).headers


def test_the_headers_given_are_copied() -> None:
    headers = {"x-a": "1"}
    response = Response("x", 200, headers)
    headers["x-a"] = "2"
    response.headers["x-b"] = "3"

    assert response.headers["x-a"] == "1"
    assert headers == {"x-a": "2"}


WITH_HEADERS: list[Callable[[dict[str, str]], object]] = [
    lambda headers: Response("x", 200, headers),
    lambda headers: Response.json({}, headers=headers),
    lambda headers: Response.text("x", headers=headers),
    lambda headers: Response.html("x", headers=headers),
    lambda headers: Response.bytes(b"x", headers=headers),
    lambda headers: Response.empty(headers=headers),
    lambda headers: Response.redirect("/", headers=headers),
    lambda headers: Response.stream([], headers=headers),
    lambda headers: Response("x").headers.update(headers),
]


@pytest.mark.parametrize("headers", [{"x": "a\r\nb"}, {"x\n": "1"}, {"x": "\u010a"}, {"x": "\x00"}])
@pytest.mark.parametrize("make", WITH_HEADERS)
def test_a_header_that_would_split_the_answer_is_refused_where_it_is_set(
    make: Callable[[dict[str, str]], object], headers: dict[str, str]
) -> None:
    with pytest.raises(ValueError, match="eader"):
        make(headers)


@pytest.mark.parametrize("kind", ["a\r\nb", "\x00", "é\u20ac"])
def test_a_media_type_that_would_split_the_answer_is_refused(kind: str) -> None:
    for make in (Response, StreamingResponse):
        with pytest.raises(ValueError, match="content-type"):
            make("x", media_type=kind)


@pytest.mark.parametrize(
    "content", [5, {"a": 1}, ["x"], object(), True], ids=lambda c: type(c).__name__
)
def test_content_of_another_type_is_refused_by_name(content: Any) -> None:
    name = type(content).__qualname__
    with pytest.raises(
        TypeError, match=rf"^Response content must be str or bytes, got '{name}'; use Response.json"
    ):
        Response(content)


@pytest.mark.parametrize("content", [5, 10**12, "text", None, True], ids=stable_repr)
def test_bytes_are_made_of_bytes_only(content: Any) -> None:
    with pytest.raises(TypeError):
        Response.bytes(content)


@pytest.mark.parametrize("make", [Response.text, Response.html])
@pytest.mark.parametrize("content", [5, None, {"a": 1}], ids=stable_repr)
def test_text_is_made_of_text_only(make: Callable[[Any], Response], content: Any) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'encode'"):
        make(content)


@given(st.integers())
def test_a_status_is_from_200_to_599(status: int) -> None:
    if 200 <= status <= 599:
        assert check_status(status) == status
    else:
        with pytest.raises(ValueError, match=f"^A status must be from 200 to 599, got {status}$"):
            check_status(status)


@pytest.mark.parametrize("status", ["200", 200.0, None, True, b"200"], ids=stable_repr)
def test_a_status_that_is_no_int_is_refused(status: Any) -> None:
    expected = f"^A status must be an int such as 200, got {re.escape(repr(status))}$"
    with pytest.raises(ValueError, match=expected):
        Response("x", status)
    with pytest.raises(ValueError, match=expected):
        Response.json({}, status)
    with pytest.raises(ValueError, match=expected):
        StreamingResponse([], status)


def test_json_refuses_what_json_has_not() -> None:
    with pytest.raises(ValueError, match=r"(?i)float"):
        Response.json({"a": math.nan})
    with pytest.raises(TypeError, match="has no JSON form"):
        Response.json({"a": object()})


@pytest.mark.parametrize(
    ("location", "sent_as"),
    [
        ("/", "/"),
        ("/v1/user/5?x=1&y=%20#z", "/v1/user/5?x=1&y=%20#z"),
        ("/ä", "/%C3%A4"),
        ('/"<x>', "/%22%3Cx%3E"),
        ("/a//b", "/a//b"),
        ("/@evil.example", "/@evil.example"),
        ("/%5cevil", "/%5cevil"),
    ],
)
def test_a_redirect_stays_on_the_site(location: str, sent_as: str) -> None:
    assert Response.redirect(location).headers["location"] == sent_as


@pytest.mark.parametrize(
    "location",
    [
        "",
        "v1/a",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil",
        "///evil",
        "/\t/evil.example",
        "\t//evil.example",
        " //evil",
        "/\n/evil",
        "/a\r\nSet-Cookie: e=1",
        "/\x00",
        "/a\x7f",
        "javascript:alert(1)",
        "data:text/html,x",
        "http://evil.example",
        "https://evil.example/login.example.localhost",
        "https:/evil",
        "https:evil",
        "/\ud800",
    ],
)
def test_a_redirect_that_could_leave_the_site_is_refused(location: str) -> None:
    with pytest.raises(
        ValueError, match=r"^A redirect to .* could lead to another site; |surrogates not allowed"
    ):
        Response.redirect(location)


ALLOW = ("https://login.example.localhost",)


@pytest.mark.parametrize(
    "location",
    [
        "https://login.example.localhost",
        "https://login.example.localhost/",
        "https://login.example.localhost/a?b=c#d",
    ],
)
def test_a_redirect_may_go_to_an_origin_that_is_allowed(location: str) -> None:
    assert Response.redirect(location, allow=ALLOW).headers["location"] == location


@pytest.mark.parametrize(
    "location",
    [
        "http://login.example.localhost/",
        "https://login.example.localhost.evil/",
        "https://login.example.localhost@evil/",
        "https://login.example.localhost:8443/",
        "https://evil/https://login.example.localhost",
        "https://login.example.localhost\\@evil/",
        "https:///login.example.localhost",
        "//login.example.localhost/",
    ],
)
def test_an_origin_is_compared_whole(location: str) -> None:
    with pytest.raises(
        ValueError, match=r"^A redirect to .* could lead to another site; use a path that starts"
    ):
        Response.redirect(location, allow=ALLOW)


@pytest.mark.parametrize("status", [200, 300, 304, 305, 306, 309, 404])
def test_a_status_that_is_no_redirect_is_refused(status: int) -> None:
    with pytest.raises(
        ValueError,
        match=rf"^A redirect must have the status 301, 302, 303, 307 or 308, got {status}$",
    ):
        Response.redirect("/", status)


def test_cookies_are_added_one_by_one() -> None:
    response = Response("x")
    response.set_cookie("a", "1")
    response.set_cookie("b", "2", max_age=5, samesite="strict", httponly=False, path="/v1")

    assert response.headers.getlist("set-cookie") == [
        "a=1; Path=/; Secure; HttpOnly; SameSite=Lax",
        "b=2; Max-Age=5; Path=/v1; Secure; SameSite=Strict",
    ]


def test_a_cookie_that_cannot_be_sent_leaves_the_response_as_it_was() -> None:
    response = Response("x")
    with pytest.raises(ValueError, match=r"^The value of cookie"):
        response.set_cookie("a", "1; Domain=evil")

    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("name", ["s", "__Host-s", "__Secure-s"])
def test_a_cookie_is_deleted_with_the_attributes_it_was_set_with(name: str) -> None:
    response = Response("x")
    response.delete_cookie(name)

    assert response.headers["set-cookie"] == (
        f"{name}=; Max-Age=0; Path=/; Secure; HttpOnly; SameSite=Lax"
    )


def test_stream_makes_a_streaming_response() -> None:
    response = Response.stream([b"x"], 206, headers={"x-a": "1"}, background=print)

    assert isinstance(response, StreamingResponse)
    assert (response.status, response.headers["x-a"], response.background) == (206, "1", print)


WITH_WORK: list[Callable[[Any], Response]] = [
    lambda work: Response("x", background=work),
    lambda work: Response.json({}, background=work),
    lambda work: Response.text("x", background=work),
    lambda work: Response.html("x", background=work),
    lambda work: Response.bytes(b"x", background=work),
    lambda work: Response.empty(background=work),
    lambda work: Response.redirect("/", background=work),
]


@pytest.mark.parametrize("make", WITH_WORK)
def test_each_constructor_takes_work_for_afterwards(make: Callable[[Any], Response]) -> None:
    assert make(print).background is print


@pytest.mark.parametrize("make", WITH_WORK)
def test_work_that_cannot_be_called_is_refused_where_it_is_given(
    make: Callable[[Any], Response],
) -> None:
    async def mail() -> None: ...

    work = mail()  # what `mail` itself was meant to be
    expected = r"^The background of a response must be callable, got 'coroutine'; pass the function"
    with pytest.raises(TypeError, match=expected):
        make(work)
    work.close()


def test_the_repr_of_a_response_shows_its_status_only() -> None:
    assert repr(Response("s3cret", 201)) == "<Response 201>"
    assert repr(StreamingResponse([])) == "<StreamingResponse 200>"
