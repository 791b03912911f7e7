"""The plan of a route: the bare handler, the chain around it, its limits, a broken file."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import pytest

from treefold_http import Application, HTTPError, Request, Response
from treefold_http._plans.handlers import HandlerModule
from treefold_http._plans.plans import Plan, build_broken_file_plan, compose_route_plan
from treefold_http._responses.endpoints import CallNext
from treefold_router import Route


def app_of(request: Request) -> Application:
    return cast("Application", request.app)


RequestOf = Callable[..., Request]


def route(template: str = "/v1/x", *parameters: str) -> Route:
    return Route("GET", "v1", template, "v1/X/Get.py", parameters)


def note(name: str, journal: list[str]) -> Any:
    async def layer(request: Request, call_next: CallNext) -> Response:
        journal.append(f"{name} in")
        response = await call_next(request)
        journal.append(f"{name} out")
        return response

    return layer


async def handler(request: Request) -> dict[str, str]:
    return {"id": request.id}


async def created(request: Request) -> str:
    return "made"


def run(chain: Any, request: Request) -> Any:
    return asyncio.run(chain(request))


def test_without_middleware_an_async_handler_is_the_plan(tmp_path: Path) -> None:
    plan = compose_route_plan(Application(tmp_path), route(), HandlerModule(handler=handler), [])

    assert plan.run is handler


def test_the_first_middleware_is_outermost_and_the_module_s_own_are_innermost(
    request_of: RequestOf,
) -> None:
    journal: list[str] = []
    request = request_of()
    module = HandlerModule(handler=handler, middlewares=[note("own", journal)])
    plan = compose_route_plan(
        cast("Application", request.app), route(), module, [note("a", journal), note("b", journal)]
    )

    assert run(plan.run, request).body == b'{"id":"id-1"}'
    assert journal == ["a in", "b in", "own in", "own out", "b out", "a out"]


def test_a_middleware_sees_a_response_with_the_status_of_the_module(request_of: RequestOf) -> None:
    seen: list[int] = []

    async def look(request: Request, call_next: CallNext) -> Response:
        response = await call_next(request)
        seen.append(response.status)
        return response

    request = request_of()
    plan = compose_route_plan(
        cast("Application", request.app),
        route(),
        HandlerModule(handler=created, status_code=201),
        [look],
    )

    assert run(plan.run, request).status == 201
    assert seen == [201]


def test_what_a_middleware_returns_is_coerced_without_the_status_of_the_module(
    request_of: RequestOf,
) -> None:
    async def short(request: Request, call_next: CallNext) -> Any:
        return {"short": True}

    request = request_of()
    plan = compose_route_plan(
        cast("Application", request.app),
        route(),
        HandlerModule(handler=created, status_code=201),
        [short],
    )
    response = run(plan.run, request)

    assert (response.status, response.body) == (200, b'{"short":true}')


def test_the_limits_of_a_module_win_over_the_settings(tmp_path: Path) -> None:
    app = Application(tmp_path)

    def plan(**options: Any) -> Plan:
        return compose_route_plan(app, route(), HandlerModule(handler=handler, **options), [])

    assert plan().max_body == 1024 * 1024
    assert plan(max_body=5).max_body == 5
    assert plan(max_body=0).max_body == 0
    assert plan(log_payload=False).log_payload is False
    assert plan(status_code=201).status == 201


@pytest.mark.parametrize("dev", [False, True])
def test_a_file_that_failed_to_load_answers_500(
    tmp_path: Path, request_of: RequestOf, dev: bool
) -> None:
    app = Application(tmp_path, dev=dev)
    journal: list[str] = []
    plan = build_broken_file_plan(app, route(), "ValueError: s3cret", [note("a", journal)])
    bare = build_broken_file_plan(app, route(), "ValueError: s3cret", [])
    response = run(plan.run, request_of())

    assert response.status == 500
    assert b"handler failed to load" in response.body
    assert (b"s3cret" in response.body) is dev
    assert journal == ["a in", "a out"]
    with pytest.raises(HTTPError, match="handler failed to load"):
        run(bare.run, request_of())
