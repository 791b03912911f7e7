"""The reading side over a scope: decoded only when asked, and as it was sent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import BadRequest, ClientDisconnect, PayloadTooLarge, Request

RequestOf = Callable[..., Request]


def test_the_parts_of_a_request(request_of: RequestOf) -> None:
    request = request_of("PUT", "/v1/a%2Fb?x=1&x=2", headers=[("x-a", "é"), ("x-a", "2")])

    assert request.method == "PUT"
    assert request.path == "/v1/a/b"
    assert request.raw_path == b"/v1/a%2Fb"
    assert request.query.getlist("x") == ["1", "2"]
    assert request.headers.getlist("X-A") == ["é", "2"]
    assert request.scheme == "http"
    assert request.host == "example.localhost"
    assert str(request.url) == "http://example.localhost/v1/a%2Fb?x=1&x=2"
    assert request.id == "id-1"
    assert request.route is None
    assert request.path_params == {}


def test_path_params_cannot_be_changed_before_routing(request_of: RequestOf) -> None:
    params: Any = request_of().path_params
    with pytest.raises(TypeError):
        params["a"] = "1"


def test_what_a_server_leaves_out_has_a_value(request_of: RequestOf) -> None:
    request = request_of(target="/v1/ä")
    for name in ("raw_path", "scheme", "client"):
        del request.scope[name]

    assert request.raw_path == "/v1/ä".encode()
    assert request.scheme == "http"
    assert request.client is None


@pytest.mark.parametrize("sent", [("127.0.0.1", 51012), ("127.0.0.1", "51012")])
def test_the_port_of_the_client_is_a_number_whatever_the_server_sends(
    request_of: RequestOf, sent: tuple[str, int | str]
) -> None:
    """Granian 2.8 sends `'client': ('127.0.0.1', '51012')`, uvicorn a number."""
    request = request_of()
    request.scope["client"] = sent
    assert request.client == ("127.0.0.1", 51012)


def test_the_host_is_never_taken_from_another_header(request_of: RequestOf) -> None:
    request = request_of(
        headers=[
            ("x-forwarded-host", "evil"),
            ("x_forwarded_for", "1.2.3.4"),
            ("x-forwarded-for", "6.6.6.6"),
        ]
    )

    assert request.host == "example.localhost"
    assert request.client is not None
    assert (request.client.host, request.client.port) == ("127.0.0.1", 54321)


@pytest.mark.parametrize(
    ("field", "kind"),
    [
        ("application/json", "application/json"),
        ("Application/JSON; charset=utf-8", "application/json"),
        (" text/plain ;a=b", "text/plain"),
        ("", ""),
        (";", ""),
    ],
)
def test_the_content_type_is_lower_case_and_without_parameters(
    request_of: RequestOf, field: str, kind: str
) -> None:
    assert request_of(headers=[("content-type", field)]).content_type == kind


def test_no_content_type_is_the_empty_text(request_of: RequestOf) -> None:
    assert request_of().content_type == ""


def test_cookies_of_all_fields_are_kept_and_the_first_wins(request_of: RequestOf) -> None:
    request = request_of(headers=[("cookie", "a=1; b=2"), ("cookie", "a=3")])

    assert request.cookies["a"] == "1"
    assert request.cookies.multi_items() == [("a", "1"), ("b", "2"), ("a", "3")]


def test_at_most_a_hundred_cookies_are_taken_however_they_are_split(request_of: RequestOf) -> None:
    fields = [("cookie", "; ".join(f"c{n}=1" for n in range(80)))] * 3

    assert len(request_of(headers=fields).cookies.multi_items()) == 100


@pytest.mark.parametrize("target", ["/v1/x?a=%ff", "/v1/x?" + "a&" * 1001])
def test_a_query_that_cannot_be_read_is_a_bad_request_each_time(
    request_of: RequestOf, target: str
) -> None:
    request = request_of(target=target)
    for _ in range(2):
        with pytest.raises(BadRequest):
            _ = request.query


@pytest.mark.parametrize("name", ["headers", "query", "cookies", "state", "reader"])
def test_what_is_decoded_once_is_kept(request_of: RequestOf, name: str) -> None:
    request = request_of(headers=[("cookie", "a=1")])

    assert getattr(request, name) is getattr(request, name)


def test_state_starts_with_that_of_the_lifespan_and_is_ones_own(request_of: RequestOf) -> None:
    shared: dict[str, Any] = {"db": "pool"}
    request = request_of(more={"state": shared})
    request.state.user = "ada"

    assert request.state.db == "pool"
    assert shared == {"db": "pool"}


def test_state_is_empty_where_the_server_has_none(request_of: RequestOf) -> None:
    assert vars(request_of().state) == {}


def test_body_and_json_are_read_in_any_order(request_of: RequestOf) -> None:
    async def main() -> None:
        request = request_of("POST", chunks=[b'{"a":', b"1}"])
        assert await request.json() == {"a": 1}
        assert await request.body() == b'{"a":1}'
        assert await request.json() is await request.json()
        assert [chunk async for chunk in request.stream()] == [b'{"a":1}']

    asyncio.run(main())


@pytest.mark.parametrize("chunks", [[], [b""], [b"", b""]])
def test_an_empty_body_is_none_as_json(request_of: RequestOf, chunks: list[bytes]) -> None:
    assert asyncio.run(request_of("POST", chunks=chunks).json()) is None


def test_json_is_parsed_whatever_the_content_type_says(request_of: RequestOf) -> None:
    request = request_of(
        "POST", chunks=[b"[1]"], headers=[("content-type", "text/plain; charset=zzz")]
    )

    assert asyncio.run(request.json()) == [1]


def test_json_that_is_not_valid_is_a_bad_request_each_time(request_of: RequestOf) -> None:
    async def main() -> None:
        request = request_of("POST", chunks=[b"{"])
        for _ in range(2):
            with pytest.raises(BadRequest):
                await request.json()
        assert await request.body() == b"{"

    asyncio.run(main())


@pytest.mark.parametrize("read", ["body", "json"])
def test_a_client_that_leaves_in_mid_body_is_an_error(request_of: RequestOf, read: str) -> None:
    request = request_of("POST", chunks=[b"[1]"], cut=True)
    with pytest.raises(ClientDisconnect):
        asyncio.run(getattr(request, read)())


def test_the_limit_of_the_settings_holds_where_no_route_says_another(request_of: RequestOf) -> None:
    exactly = request_of("POST", chunks=[b"x" * 1024 * 1024])
    above = request_of("POST", chunks=[b"x" * 1024 * 1024, b"x"])

    assert len(asyncio.run(exactly.body())) == 1024 * 1024
    with pytest.raises(PayloadTooLarge):
        asyncio.run(above.body())


def test_the_repr_shows_no_query_and_no_header(request_of: RequestOf) -> None:
    request = request_of(target="/v1/x?token=zz", headers=[("authorization", "zz")])

    assert repr(request) == "<Request GET '/v1/x' id=id-1>"


def test_attributes_of_ones_own_go_into_state(request_of: RequestOf) -> None:
    request: Any = request_of()
    with pytest.raises(AttributeError):
        request.user = "ada"
