"""Middleware: what may stand in the list, the subtree it covers, errors inside the chain."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import HTTPError, Request, Response
from treefold_http._middleware import check_entry, compose, entries_for, under
from treefold_http._types import CallNext
from treefold_router import Route

RequestOf = Callable[..., Request]


class Layer:
    """A middleware object, with both sides."""

    async def http(self, request: Request, call_next: CallNext) -> Response:
        response = await call_next(request)
        response.headers["x-layer"] = "1"
        return response

    async def websocket(self, websocket: Any, call_next: Any) -> None: ...


class SocketLayer:
    async def websocket(self, websocket: Any, call_next: Any) -> None: ...


async def handler(request: Request) -> dict[str, str]:
    return {"id": request.id}


async def plain_layer(request: Request, call_next: CallNext) -> Response:
    return await call_next(request)


def run(chain: Any, request: Request) -> Any:
    return asyncio.run(chain(request))


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (HTTPError(418, "tea"), 418),
        (ValueError("s3cret"), 500),
        (SystemExit(1), 500),
        (KeyboardInterrupt(), 500),
    ],
    ids=repr,
)
def test_a_middleware_sees_a_response_where_the_handler_fails(
    request_of: RequestOf, error: BaseException, status: int
) -> None:
    async def failing(request: Request) -> None:
        raise error

    request = request_of()
    chain = compose(request.app, [Layer()], failing)
    response = run(chain, request)

    assert response.status == status
    assert response.headers["x-layer"] == "1"
    assert b"s3cret" not in response.body


def test_a_middleware_that_fails_is_rendered_inside_the_outer_ones(request_of: RequestOf) -> None:
    async def failing(request: Request, call_next: CallNext) -> Response:
        raise LookupError("no")

    request = request_of()
    response = run(compose(request.app, [Layer(), failing], handler), request)

    assert response.status == 500
    assert response.headers["x-layer"] == "1"
    assert isinstance(request.error, LookupError)


@pytest.mark.parametrize("result", [5, object()])
def test_a_middleware_that_returns_what_has_no_form_is_a_500(
    request_of: RequestOf, result: Any
) -> None:
    async def wrong(request: Request, call_next: CallNext) -> Any:
        return result

    assert run(compose(request_of().app, [wrong], handler), request_of()).status == 500


def test_a_middleware_that_returns_nothing_is_a_500_that_names_it(request_of: RequestOf) -> None:
    async def forgetful(request: Request, call_next: CallNext) -> Any:
        await call_next(request)

    request = request_of()
    response = run(compose(request.app, [Layer(), forgetful], handler), request)

    assert (response.status, response.headers["x-layer"]) == (500, "1")
    assert "forgetful returned None; return what call_next gave" in str(request.error)


def test_a_middleware_may_call_the_rest_again(request_of: RequestOf) -> None:
    calls: list[int] = []

    async def flaky(request: Request) -> str:
        calls.append(1)
        if len(calls) == 1:
            raise LookupError("first")
        return "second"

    async def retry(request: Request, call_next: CallNext) -> Response:
        response = await call_next(request)
        return await call_next(request) if response.status == 500 else response

    assert run(compose(request_of().app, [retry], flaky), request_of()).body == b"second"


def test_a_middleware_for_sockets_only_is_left_out_of_http(request_of: RequestOf) -> None:
    chain = compose(request_of().app, [SocketLayer()], handler)

    assert run(chain, request_of()).body == b'{"id":"id-1"}'


@pytest.mark.parametrize("entry", [plain_layer, Layer(), SocketLayer(), under("/v1", Layer())])
def test_a_function_and_an_object_with_a_side_are_middleware(entry: Any) -> None:
    check_entry(entry)


@pytest.mark.parametrize("entry", [5, None, "name", {}, object()], ids=repr)
def test_an_entry_that_cannot_be_called_is_refused(entry: Any) -> None:
    words = r"^Middleware entry .* cannot be called; give an `async def \(request, call_next\)`"
    with pytest.raises(TypeError, match=words):
        check_entry(entry)
    with pytest.raises(TypeError, match=words):
        under("/v1", entry)


@pytest.mark.parametrize("entry", [Layer, SocketLayer, dict])
def test_a_class_in_the_list_is_refused(entry: type) -> None:
    with pytest.raises(TypeError, match=f"^Middleware {entry.__qualname__} is a class; put an"):
        check_entry(entry)


def route(template: str) -> Route:
    return Route("GET", "v1", template, "v1/X/Get.py", ())


@pytest.mark.parametrize(
    ("prefix", "template", "covered"),
    [
        ("/v1/admin", "/v1/admin", True),
        ("/v1/admin", "/v1/admin/user/{id}", True),
        ("/v1/Admin/", "/v1/admin/user", True),
        ("//v1//admin", "/v1/admin", True),
        ("/", "/v1/admin", True),
        ("/v1/user/[id]", "/v1/user/{id}/posts", True),
        ("/v1/user/{id}", "/v1/user/{id}", True),
        ("/v1/admin", "/v1/administrator", False),
        ("/v1/admin", "/v2/admin", False),
        ("/v1/admin", "/v1", False),
        ("/v1/user/[id]", "/v1/user/me", False),
    ],
)
def test_a_prefix_covers_the_routes_below_it_segment_by_segment(
    prefix: str, template: str, covered: bool
) -> None:
    layer = Layer()

    assert entries_for(route(template), [under(prefix, layer)]) == ([layer] if covered else [])


def test_a_path_without_a_route_lies_below_no_prefix_but_the_whole(request_of: RequestOf) -> None:
    layer = Layer()

    assert entries_for(None, [under("/v1", layer), layer]) == [layer]


@pytest.mark.parametrize("prefix", ["", "v1/admin", "[id]"])
def test_a_prefix_starts_with_a_slash(prefix: str) -> None:
    with pytest.raises(
        ValueError, match=r"^Prefix .* does not start with '/'; give a path such as"
    ):
        under(prefix, plain_layer)
