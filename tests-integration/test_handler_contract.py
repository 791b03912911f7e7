"""The handler contract: direct calls, injection, dependencies, and where handlers run."""

import time

import pytest
from http_messages import Call
from serving import PATIENCE, Serve, Served

DEPENDENCIES = """
from treefold import Depends, HTTPError
from Services.events import events

class Page:
    def __init__(self, request, size: int = 10):
        self.size = size
        self.path = request.path_params["id"]

async def async_value(): return "async"
def plain_value(): return "plain"

async def outer():
    events.append("enter outer")
    try:
        yield "outer"
    except Exception as error:
        events.append(f"outer saw {type(error).__name__}")
        raise
    finally:
        events.append("leave outer")

def inner(above=Depends(outer)):
    events.append("enter inner")
    yield f"{above} inner"
    events.append("leave inner")
"""
WHERE = """
    import asyncio, threading

    {kind}def handler(request):
        try:
            asyncio.get_running_loop()
            loop = True
        except RuntimeError:
            loop = False
        main = threading.current_thread() is threading.main_thread()
        return {{"loop": loop, "main": main}}
    """
TREE = {
    "Services/events.py": "events = []",
    "Services/deps.py": DEPENDENCIES,
    "Api/v1/Events/Get.py": """
        from Services.events import events

        async def handler(request):
            return events
        """,
    "Api/v1/Events/Delete.py": """
        from Services.events import events

        async def handler(request):
            events.clear()
        """,
    "Api/v1/Direct/[id]/Get.py": "async def handler(request): return type(request).__name__",
    "Api/v1/Nothing/Get.py": "async def handler(): return 'nothing asked'",
    "Api/v1/Defaulted/Get.py": "async def handler(request=None): return type(request).__name__",
    "Api/v1/Typed/Get.py": """
        from treefold import Request

        async def handler(incoming: Request):
            return incoming.method
        """,
    "Api/v1/ByName/[id]/[slug]/Get.py": """
        async def handler(slug, request, id):
            return [id, slug, request.path_params["id"]]
        """,
    "Api/v1/Convert/[id]/Get.py": """
        async def handler(id: int, request):
            return {"id": id, "raw": request.path_params["id"]}
        """,
    "Api/v1/Dates/[day]/Get.py": """
        from datetime import date

        async def handler(day: date):
            return day.strftime("%d.%m.%Y")
        """,
    "Api/v1/Uuid/[id]/Get.py": """
        from uuid import UUID

        async def handler(id: UUID):
            return id.hex
        """,
    "Api/v1/Enum/[color]/Get.py": """
        from enum import Enum

        class Color(Enum):
            RED = "red"

        async def handler(color: Color):
            return color.name
        """,
    "Api/v1/Later/[id]/Get.py": """
        from __future__ import annotations

        async def handler(id: int):
            return {"id": id}
        """,
    "Api/v1/Query/Get.py": """
        async def handler(q: str, n: int = 5, tags: list[str] = ()):
            return [q, n, list(tags)]
        """,
    "Api/v1/Deps/[id]/Get.py": """
        from typing import Annotated
        from Services.deps import Page, async_value, plain_value
        from treefold import Depends

        async def handler(
            page: Annotated[Page, Depends()],
            one=Depends(async_value),
            two: str = Depends(plain_value),
        ):
            return [one, two, page.size, page.path]
        """,
    "Api/v1/Cached/Get.py": """
        from treefold import Depends

        calls = 0

        def count():
            global calls
            calls += 1
            return calls

        def left(n=Depends(count)): return n
        def right(n=Depends(count)): return n

        async def handler(
            a=Depends(left), b=Depends(right), c=Depends(count, use_cache=False)
        ):
            return [a == b, c != a]
        """,
    "Api/v1/Teardown/Get.py": """
        from Services.deps import inner
        from Services.events import events
        from treefold import Depends, StreamingResponse

        async def handler(value=Depends(inner)):
            async def parts():
                for n in range(2):
                    events.append(f"part {n}")
                    yield f"{value} {n};"

            events.append("handler")
            return StreamingResponse(parts())
        """,
    "Api/v1/Teardown/Post.py": """
        from Services.deps import outer
        from treefold import Depends

        async def handler(value=Depends(outer)):
            raise LookupError("handler fails")
        """,
    "Api/v1/Teardown/Put.py": """
        from Services.deps import outer
        from treefold import Depends, HTTPError

        async def handler(value=Depends(outer)):
            raise HTTPError(409, "refused")
        """,
    "Api/v1/Guard/Get.py": """
        from treefold import Depends, Forbidden

        def guard(request):
            if request.headers.get("x-key") != "open":
                raise Forbidden("closed")

        async def handler(_=Depends(guard)):
            return "in"
        """,
    "Api/v1/Where/Async/Get.py": WHERE.format(kind="async "),
    "Api/v1/Where/Plain/Get.py": WHERE.format(kind=""),
    "Api/v1/Gate/Get.py": """
        import threading

        gate = threading.Event()

        def handler(request):
            return {"opened": gate.wait(10)}
        """,
    "Api/v1/Gate/Post.py": """
        import importlib

        async def handler(request):
            importlib.import_module("Api.v1.Gate.Get").gate.set()
        """,
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("/v1/direct/1", "Request"),
        ("/v1/nothing", "nothing asked"),
        ("/v1/defaulted", "Request"),
        ("/v1/typed", "GET"),
        ("/v1/dates/2024-02-29", "29.02.2024"),
        ("/v1/uuid/00000000-0000-0000-0000-0000000000ff", "000000000000000000000000000000ff"),
        ("/v1/enum/red", "RED"),
    ],
)
def test_a_parameter_is_given(app: Served, target: str, text: str) -> None:
    answer = app.get(target)
    assert (answer.status, answer.text) == (200, text)


def test_parameters_named_like_path_parameters_get_their_verbatim_string(app: Served) -> None:
    assert app.get("/v1/byname/007/a%2Fb").json() == ["007", "a/b", "007"]


@pytest.mark.parametrize("target", ["/v1/convert/007", "/v1/later/007"])
def test_an_annotated_path_parameter_is_converted_by_injection(app: Served, target: str) -> None:
    assert app.get(target).json()["id"] == 7


def test_path_params_stay_strings_beside_a_converted_parameter(app: Served) -> None:
    assert app.get("/v1/convert/007").json() == {"id": 7, "raw": "007"}


@pytest.mark.parametrize(
    ("target", "loc"),
    [
        ("/v1/convert/abc", ["path", "id"]),
        ("/v1/convert/1.5", ["path", "id"]),
        ("/v1/convert/%D9%A1", ["path", "id"]),
        ("/v1/convert/1_0", ["path", "id"]),
        ("/v1/dates/2024-02-30", ["path", "day"]),
        ("/v1/uuid/no-uuid", ["path", "id"]),
        ("/v1/enum/blue", ["path", "color"]),
        ("/v1/query", ["query", "q"]),
        ("/v1/query?q=a&n=x", ["query", "n"]),
    ],
)
def test_what_cannot_be_converted_is_422(app: Served, target: str, loc: list[str]) -> None:
    answer = app.get(target)
    assert answer.status == 422
    (error,) = answer.json()["errors"]
    assert set(error) - {"ctx"} == {"loc", "msg", "type"}
    assert error["loc"] == loc


def test_every_failure_is_listed(app: Served) -> None:
    errors = app.get("/v1/query?n=x").json()["errors"]
    assert [error["loc"] for error in errors] == [["query", "q"], ["query", "n"]]


QUERIES: list[tuple[str, list[object]]] = [
    ("q=a", ["a", 5, []]),
    ("q=a&n=7", ["a", 7, []]),
    ("q=a&tags=x&tags=y", ["a", 5, ["x", "y"]]),
]


@pytest.mark.parametrize(("query", "given"), QUERIES)
def test_scalars_come_from_the_query(app: Served, query: str, given: list[object]) -> None:
    assert app.get(f"/v1/query?{query}").json() == given


def test_dependencies_may_be_async_plain_and_classes(app: Served) -> None:
    assert app.get("/v1/deps/9?size=3").json() == ["async", "plain", 3, "9"]


def test_a_dependency_runs_once_per_request_unless_told_otherwise(app: Served) -> None:
    assert app.get("/v1/cached").json() == [True, True]


def test_a_dependency_may_refuse_the_request(app: Served) -> None:
    assert app.get("/v1/guard").status == 403
    assert app.get("/v1/guard", ("X-Key", "open")).text == "in"


def recorded(app: Served, method: str, *, last: str) -> list[str]:
    """The events of one request; teardown may end after the answer, so they are asked for again."""
    app.request("DELETE", "/v1/events")
    app.request(method, "/v1/teardown")
    deadline = time.monotonic() + PATIENCE
    while True:
        events: list[str] = app.get("/v1/events").json()
        if last in events:
            return events
        assert time.monotonic() < deadline, f"{last!r} never happened: {events}"


def test_generators_are_left_after_the_answer_in_reverse_order(app: Served) -> None:
    assert recorded(app, "GET", last="leave outer") == [
        "enter outer",
        "enter inner",
        "handler",
        "part 0",
        "part 1",
        "leave inner",
        "leave outer",
    ]


@pytest.mark.parametrize(("method", "error"), [("POST", "LookupError"), ("PUT", "HTTPError")])
def test_generators_see_the_error_of_the_handler(app: Served, method: str, error: str) -> None:
    assert recorded(app, method, last="leave outer") == [
        "enter outer",
        f"outer saw {error}",
        "leave outer",
    ]


def test_async_handlers_run_on_the_event_loop(app: Served) -> None:
    assert app.get("/v1/where/async").json() == {"loop": True, "main": True}


def test_sync_handlers_run_in_a_worker_thread(app: Served) -> None:
    assert app.get("/v1/where/plain").json() == {"loop": False, "main": False}


def test_a_blocked_sync_handler_does_not_stop_others(app: Served) -> None:
    waiting, opening = app.send([Call(target="/v1/gate"), Call(method="POST", target="/v1/gate")])
    assert (waiting.json(), opening.status) == ({"opened": True}, 204)
