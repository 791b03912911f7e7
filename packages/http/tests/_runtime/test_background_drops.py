"""Background tasks of a request that fails (S-141): its handler's are dropped, others stay."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange, Socket

Project = Callable[..., Application]

START = """
import asyncio
from treefold_http import BackgroundTasks, Depends, HTTPError, Response
from treefold_http.middleware import Timeout

RAN = []

def first(background: BackgroundTasks):
    background.add(RAN.append, "dependency")

def fails(background: BackgroundTasks):
    background.add(RAN.append, "failing dependency")
    raise LookupError

async def owns():
    yield
    raise LookupError("the commit failed")

"""

FAILURES = {
    "an HTTPError": ("", "raise HTTPError(404, 'none')", 404),
    "an exception": ("", "raise ValueError('x')", 500),
    "an exception with a handler": ("", "raise LookupError", 299),
    "a cancellation": ("", "raise asyncio.CancelledError", 500),
    "the end of the process": ("", "raise SystemExit(1)", 500),
    "NaN": ("", "return {'n': float('nan')}", 500),
    "a type without a form": ("", "return object()", 500),
    "a response_model": ("response_model = int", "return 'text'", 500),
    "a missing file": ("", "return Response.file('missing')", 500),
    "a time limit": ("timeout = 0.01", "await asyncio.Event().wait()", 503),
    "a middleware with a limit": (
        "middlewares = [Timeout(0.01)]",
        "await asyncio.Event().wait()",
        503,
    ),
}
"""What is said in the module and what the handler ends with; 299 is the exception handler's."""

OUTER = """
RAN = []

async def outer(request, call_next):
    request.background.add(RAN.append, "before")
    response = await call_next(request)
    request.background.add(RAN.append, "after")
    return response

class Hook:
    def before(self, request):
        request.background.add(RAN.append, "hook before")
"""


def ran(app: Application, exchange: type[Exchange], *, method: str = "GET") -> tuple[Any, int]:
    """Send one request and return the tasks that ran, with the status."""

    async def main() -> Answer:
        answer = await exchange(method, "/v1/x").run(app)
        await app.background.drain_tasks(5)
        return answer

    status = asyncio.run(main()).status
    return ran_in(app), status


def ran_in(app: Application) -> Any:
    """Return the list that the tasks of the only handler fill."""
    (module,) = app.project.modules.values()
    handler: Any = module
    return handler.handler.__globals__["RAN"]


def ran_in_middleware(app: Application, method: str = "") -> Any:
    layer: Any = app.project.middlewares[0]
    return (getattr(layer, method) if method else layer).__globals__["RAN"]


def handler(top: str, end: str, parameters: str = "") -> str:
    return (
        f"{START}{top}\n"
        f"async def handler(request, background: BackgroundTasks, _=Depends(first){parameters}):\n"
        "    background.add(RAN.append, 'injected')\n"
        "    request.background.add(RAN.append, 'of the request')\n"
        f"    {end}\n"
    )


def answer_lookup(app: Application) -> Application:
    async def answer(request: Any, error: LookupError) -> Any:
        request.background.add(ran_in(app).append, "exception handler")
        return "found out", 299

    app.exception_handler(LookupError)(answer)
    return app


@pytest.mark.parametrize("failure", FAILURES)
def test_a_failed_handler_runs_no_background_task(
    serving: Project, exchange: type[Exchange], failure: str
) -> None:
    top, end, status = FAILURES[failure]
    app = answer_lookup(serving(handler(top, end)))
    kept = ["exception handler"] if status == 299 else []
    assert ran(app, exchange) == (kept, status)


def test_a_handler_that_returns_runs_all_of_them(
    serving: Project, exchange: type[Exchange]
) -> None:
    app = serving(handler("", "return 'done'"))
    assert ran(app, exchange) == (["dependency", "injected", "of the request"], 200)


@pytest.mark.parametrize("failure", FAILURES)
def test_tasks_of_outer_middleware_stay(
    project: Project, exchange: type[Exchange], failure: str
) -> None:
    top, end, status = FAILURES[failure]
    app = answer_lookup(
        project(
            {
                "Api/v1/X/Get.py": handler(top, end),
                "Middleware/__init__.py": f"{OUTER}\nmiddlewares = [outer, Hook()]",
            }
        )
    )
    dropped, found = ran(app, exchange)
    assert (dropped, found) == (["exception handler"] if status == 299 else [], status)
    assert ran_in_middleware(app) == ["before", "hook before", "after"]


def test_tasks_of_a_hook_alone_stay(project: Project, exchange: type[Exchange]) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": handler("", "raise HTTPError(409, 'x')"),
            "Middleware/__init__.py": f"{OUTER}\nmiddlewares = [Hook()]",
        }
    )
    assert ran(app, exchange) == ([], 409)
    assert ran_in_middleware(app, "before") == ["hook before"]


def test_a_failing_dependency_drops_the_tasks_of_the_others(
    serving: Project, exchange: type[Exchange]
) -> None:
    app = answer_lookup(serving(handler("", "return 1", ", __=Depends(fails)")))
    assert ran(app, exchange) == (["exception handler"], 299)


def test_a_failure_after_the_yield_drops_the_tasks_of_the_handler(
    serving: Project, exchange: type[Exchange]
) -> None:
    app = serving(handler("", "return 'done'", ", __=Depends(owns)"))
    assert ran(app, exchange) == ([], 200)


def test_a_failing_middleware_drops_the_tasks_of_the_handler_that_it_undid(
    project: Project, exchange: type[Exchange]
) -> None:
    fails = """
async def fails(request, call_next):
    await call_next(request)
    raise ValueError
"""
    app = project(
        {
            "Api/v1/X/Get.py": handler("", "return 'done'"),
            "Middleware/__init__.py": f"{OUTER}{fails}\nmiddlewares = [outer, fails]",
        }
    )
    assert ran(app, exchange) == ([], 500)
    assert ran_in_middleware(app) == ["before", "after"]


def test_the_tasks_of_a_refusing_middleware_stay(
    project: Project, exchange: type[Exchange]
) -> None:
    refuses = """
class Refuses:
    def before(self, request):
        from treefold_http import HTTPError
        request.background.add(RAN.append, "refused")
        raise HTTPError(401, "no")
"""
    app = project(
        {
            "Api/v1/X/Get.py": handler("", "return 'done'"),
            "Middleware/__init__.py": f"{OUTER}{refuses}\nmiddlewares = [outer, Refuses()]",
        }
    )
    assert ran(app, exchange) == ([], 401)
    assert ran_in_middleware(app) == ["before", "refused", "after"]


def test_tasks_of_middleware_stay_without_a_route(
    project: Project, exchange: type[Exchange]
) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": handler("", "return 'done'"),
            "Middleware/__init__.py": f"{OUTER}\nmiddlewares = [outer, Hook()]",
        }
    )
    assert ran(app, exchange, method="PUT")[1] == 405
    assert ran_in_middleware(app) == ["before", "hook before", "after"]


def test_a_thread_that_outlives_its_request_adds_nothing(
    project: Project, exchange: type[Exchange]
) -> None:
    source = """
        import threading
        from treefold_http import BackgroundTasks
        from treefold_http.middleware import Timeout

        RAN = []
        middlewares = [Timeout(0.01)]
        late, added = threading.Event(), threading.Event()

        def handler(background: BackgroundTasks):
            late.wait(20)
            background.add(RAN.append, "late")
            added.set()
        """
    wait = """
        async def wait(request, call_next):
            response = await call_next(request)
            handler = next(iter(request.app.project.modules.values())).handler
            handler.__globals__["late"].set()
            await request.app.run_in_thread(handler.__globals__["added"].wait, 20)
            return response

        middlewares = [wait]
        """
    app = project({"Api/v1/X/Get.py": source, "Middleware/__init__.py": wait})
    assert ran(app, exchange) == ([], 503)


def test_the_background_of_a_response_runs_though_the_tasks_are_dropped(
    serving: Project, exchange: type[Exchange]
) -> None:
    end = "return Response.text('x', background=lambda: RAN.append('response'))"
    app = serving(handler("", end, ", __=Depends(owns)"))
    assert ran(app, exchange) == (["response"], 200)


def test_work_starts_when_the_part_after_the_yield_is_done(
    serving: Project, exchange: type[Exchange]
) -> None:
    top = """
async def commits():
    yield
    await asyncio.sleep(0)
    RAN.append("committed")
"""
    app = serving(handler(top, "return 'done'", ", __=Depends(commits)"))
    expected = ["committed", "dependency", "injected", "of the request"]
    assert ran(app, exchange) == (expected, 200)


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("raise ValueError", []),
        ("raise HTTPError(403, 'x')", []),
        ("await websocket.receive_text()", ["injected"]),
        ("pass", ["injected"]),
    ],
)
@pytest.mark.parametrize("layers", ["", "layer"])
def test_a_socket_drops_the_tasks_of_a_failed_handler(
    project: Project, socket: type[Socket], end: str, expected: list[str], layers: str
) -> None:
    app = project(
        {
            "Middleware/__init__.py": f"""
                class Layer:
                    async def websocket(self, websocket, call_next):
                        websocket.background.add(RAN.append, "layer")
                        await call_next(websocket)

                RAN = []
                layer = Layer()
                middlewares = [{layers}]
                """,
            "Api/v1/Ws.py": f"""
                from treefold_http import BackgroundTasks, HTTPError
                RAN = []

                async def handler(websocket, background: BackgroundTasks):
                    background.add(RAN.append, "injected")
                    await websocket.accept()
                    {end}
                """,
        }
    )

    async def main() -> None:
        async with asyncio.timeout(20):
            await socket("/v1").run(app)
            await app.background.drain_tasks(5)

    asyncio.run(main())
    assert ran_in(app) == expected
    if layers:
        assert ran_in_middleware(app, "websocket") == ["layer"]


def test_a_scope_that_fails_drops_its_tasks(serving: Project) -> None:
    app = serving("async def handler(): return 1")
    seen: list[str] = []

    async def main() -> None:
        failed = app.scope()
        failed.background.add(seen.append, "dropped")
        await failed.close(ValueError("x"))
        async with app.scope() as scope:
            scope.background.add(seen.append, "kept")
        await app.background.drain_tasks(5)

    asyncio.run(main())
    assert seen == ["kept"]
