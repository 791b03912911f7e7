"""Middleware: what may stand in the list, the subtree it covers, errors inside the chain."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from http_ids import stable_repr

from treefold_http import HTTPError, Request, Response
from treefold_http._chains.middleware_chain import (
    build_route_layers,
    check_middleware_entry,
    compose_middleware_chain,
    select_route_middlewares,
    under,
)
from treefold_http._responses.endpoints import CallNext
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
    ids=stable_repr,
)
def test_a_middleware_sees_a_response_where_the_handler_fails(
    request_of: RequestOf, error: BaseException, status: int
) -> None:
    async def failing(request: Request) -> None:
        raise error

    request = request_of()
    chain = compose_middleware_chain(request.app, [Layer()], failing)
    response = run(chain, request)

    assert response.status == status
    assert response.headers["x-layer"] == "1"
    assert b"s3cret" not in response.body


def test_a_middleware_that_fails_is_rendered_inside_the_outer_ones(request_of: RequestOf) -> None:
    async def failing(request: Request, call_next: CallNext) -> Response:
        raise LookupError("no")

    request = request_of()
    response = run(compose_middleware_chain(request.app, [Layer(), failing], handler), request)

    assert response.status == 500
    assert response.headers["x-layer"] == "1"
    assert isinstance(request.error, LookupError)


@pytest.mark.parametrize("result", [5, object()])
def test_a_middleware_that_returns_what_has_no_form_is_a_500(
    request_of: RequestOf, result: Any
) -> None:
    async def wrong(request: Request, call_next: CallNext) -> Any:
        return result

    assert (
        run(compose_middleware_chain(request_of().app, [wrong], handler), request_of()).status
        == 500
    )


def test_a_middleware_that_returns_nothing_is_a_500_that_names_it(request_of: RequestOf) -> None:
    async def forgetful(request: Request, call_next: CallNext) -> Any:
        await call_next(request)

    request = request_of()
    response = run(compose_middleware_chain(request.app, [Layer(), forgetful], handler), request)

    assert (response.status, response.headers["x-layer"]) == (500, "1")
    assert "forgetful must return a response, got None; return the result of call_next" in str(
        request.error
    )


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

    assert (
        run(compose_middleware_chain(request_of().app, [retry], flaky), request_of()).body
        == b"second"
    )


class Hook:
    """Middleware that never waits; it notes what it sees."""

    def __init__(self, name: str, notes: list[str], answer: Any = None) -> None:
        self.name, self.notes, self.answer = name, notes, answer

    def before(self, request: Request) -> Any:
        self.notes.append(f"+{self.name}")
        if isinstance(self.answer, BaseException):
            raise self.answer
        return self.answer

    def after(self, request: Request, response: Response) -> None:
        self.notes.append(f"-{self.name} {response.status}")


class Gate(Hook):
    after: Any = None


@pytest.mark.parametrize(
    ("answer", "status", "notes"),
    [
        (None, 200, ["+a", "+b", "+c", "+d", "-d 200", "-c 200", "-a 200"]),
        (HTTPError(418, "tea"), 418, ["+a", "+b", "-a 418"]),
        (LookupError("no"), 500, ["+a", "+b", "-a 500"]),
        (Response.text("mine", 201), 201, ["+a", "+b", "-a 201"]),
        ("plain", 200, ["+a", "+b", "-a 200"]),
    ],
    ids=stable_repr,
)
@pytest.mark.parametrize("between", [False, True])
def test_hooks_run_in_order_and_only_inside_of_what_lets_pass(
    request_of: RequestOf, answer: Any, status: int, notes: list[str], between: bool
) -> None:
    seen: list[str] = []
    entries: list[Any] = [Hook("a", seen), Gate("b", seen, answer), Hook("c", seen)]
    entries += [plain_layer] if between else []
    request = request_of()
    response = run(
        compose_middleware_chain(request.app, [*entries, Hook("d", seen)], handler), request
    )

    assert response.status == status
    assert seen == notes


def test_a_hook_that_fails_afterwards_is_rendered_inside_the_outer_ones(
    request_of: RequestOf,
) -> None:
    class Failing:
        def after(self, request: Request, response: Response) -> None:
            raise LookupError("no")

    seen: list[str] = []
    request = request_of()
    chain = compose_middleware_chain(
        request.app, [Hook("a", seen), Failing(), Hook("b", seen)], handler
    )

    assert run(chain, request).status == 500
    assert seen == ["+a", "+b", "-b 200", "-a 500"]
    assert isinstance(request.error, LookupError)


def test_a_hook_may_put_another_response_in_its_place(request_of: RequestOf) -> None:
    class Replacing:
        def after(self, request: Request, response: Response) -> Response:
            return Response.text(f"was {response.status}")

    request = request_of()
    assert (
        run(compose_middleware_chain(request.app, [Replacing()], handler), request).body
        == b"was 200"
    )


def test_hooks_that_only_look_before_leave_the_result_as_it_is(request_of: RequestOf) -> None:
    request = request_of()
    chain = compose_middleware_chain(
        request.app, [Gate("a", []), SocketLayer(), Gate("b", [])], handler
    )

    assert run(chain, request) == {"id": "id-1"}
    refusing = compose_middleware_chain(request.app, [Gate("a", [], HTTPError(418))], handler)
    with pytest.raises(HTTPError, match="418"):
        run(refusing, request)
    answering = compose_middleware_chain(request.app, [Gate("a", [], ("no", 202))], handler)
    assert run(answering, request) == ("no", 202)


def test_an_entry_is_asked_for_its_form_at_each_route(request_of: RequestOf) -> None:
    class Named:
        def for_route(self, at: Route | None, entries: Sequence[Any]) -> Any:
            return Hook(f"{at and at.template} of {len(entries)}", seen)

        def before(self, request: Request) -> None:
            raise AssertionError("it has another form for the route")

    seen: list[str] = []
    request = request_of()
    for at in (route("/v1/x"), None):
        layers = build_route_layers(at, [Named(), plain_layer])
        run(compose_middleware_chain(request.app, layers, handler), request)
    assert seen == ["+/v1/x of 2", "-/v1/x of 2 200", "+None of 2", "-None of 2 200"]


def test_a_middleware_for_sockets_only_is_left_out_of_http(request_of: RequestOf) -> None:
    chain = compose_middleware_chain(request_of().app, [SocketLayer()], handler)

    assert run(chain, request_of()).body == b'{"id":"id-1"}'


@pytest.mark.parametrize(
    "entry", [plain_layer, Layer(), SocketLayer(), Hook("", []), under("/v1", Layer())]
)
def test_a_function_and_an_object_with_a_side_are_middleware(entry: Any) -> None:
    check_middleware_entry(entry)


@pytest.mark.parametrize("entry", [5, None, "name", {}, object()], ids=stable_repr)
def test_an_entry_that_cannot_be_called_is_refused(entry: Any) -> None:
    words = r"^A middleware entry must be an `async def \(request, call_next\)` or .*, got "
    words += re.escape(repr(entry)) + "$"
    with pytest.raises(TypeError, match=words):
        check_middleware_entry(entry)
    with pytest.raises(TypeError, match=words):
        under("/v1", entry)


@pytest.mark.parametrize("entry", [Layer, SocketLayer, dict])
def test_a_class_in_the_list_is_refused(entry: type) -> None:
    name = entry.__qualname__
    expected = f"^A middleware entry must be an instance, got the class {name}; put an instance"
    with pytest.raises(TypeError, match=expected):
        check_middleware_entry(entry)


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

    assert select_route_middlewares(route(template), [under(prefix, layer)]) == (
        [layer] if covered else []
    )


def test_a_path_without_a_route_lies_below_no_prefix_but_the_whole(request_of: RequestOf) -> None:
    layer = Layer()

    assert select_route_middlewares(None, [under("/v1", layer), layer]) == [layer]


@pytest.mark.parametrize("prefix", ["", "v1/admin", "[id]"])
def test_a_prefix_starts_with_a_slash(prefix: str) -> None:
    with pytest.raises(
        ValueError,
        match=rf"^Prefix must start with '/', got {re.escape(repr(prefix))}; write a path such as",
    ):
        under(prefix, plain_layer)
