"""`timeout` of a handler module: what is cut off, how it is answered, what is left alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]


def test_a_handler_that_takes_too_long_is_503_and_sees_the_cancellation(
    serving: Project, ask: Ask, lines: Lines
) -> None:
    app = serving(
        """
        import asyncio
        timeout = 0.01
        entries = []

        async def handler(request):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                entries.append("cancelled")
                raise
        """
    )
    answer = ask(app, "GET", "/v1/x")
    (module,) = app.project.modules.values()

    assert answer.status == 503
    assert answer.json()["detail"] == "The handler took longer than 0.01 seconds"
    assert getattr(module, "handler").__globals__["entries"] == ["cancelled"]  # noqa: B009 - a union
    assert lines.errors() == []


@pytest.mark.parametrize(
    "wait",
    [
        "async def handler(a=Depends(slow)):\n    return 'no'",
        "async def handler(a=Depends(entered)):\n    await asyncio.Event().wait()",
    ],
)
def test_dependencies_count_and_are_left(serving: Project, ask: Ask, wait: str) -> None:
    app = serving(
        "import asyncio\ntimeout = 0.01\nentries = []\n"
        "async def slow():\n    await asyncio.Event().wait()\n"
        "async def entered():\n"
        "    try:\n        yield\n    finally:\n        entries.append('out')\n"
        f"{wait}\n"
    )

    assert ask(app, "GET", "/v1/x").status == 503
    (module,) = app.project.modules.values()
    space = getattr(module, "handler").__globals__  # noqa: B009 - a union
    assert space["entries"] == (["out"] if "entered" in wait.partition("\n")[0] else [])


def test_a_handler_that_is_in_time_is_answered(serving: Project, ask: Ask) -> None:
    app = serving("timeout = 10\nasync def handler(request):\n    return 'ok'\n")

    assert ask(app, "GET", "/v1/x").body == b"ok"


def test_a_time_out_of_the_handler_s_own_is_its_own_failure(
    serving: Project, ask: Ask, lines: Lines
) -> None:
    app = serving("timeout = 10\nasync def handler(request):\n    raise TimeoutError('db')\n")

    assert ask(app, "GET", "/v1/x").status == 500
    assert [str(error) for error in lines.errors()] == ["db"]


def test_middleware_sees_the_answer_of_a_time_out(project: Project, ask: Ask) -> None:
    app = project(
        {
            "Middleware/__init__.py": """
                async def layer(request, call_next):
                    response = await call_next(request)
                    response.headers["x-layer"] = str(response.status)
                    return response

                middlewares = [layer]
                """,
            "Api/v1/X/Get.py": """
                import asyncio
                timeout = 0.01

                async def handler(request):
                    await asyncio.Event().wait()
                """,
        }
    )

    assert ask(app, "GET", "/v1/x").fields("x-layer") == ["503"]


def test_a_stream_is_not_cut_off(serving: Project, ask: Ask) -> None:
    app = serving(
        """
        import asyncio
        timeout = 0.01

        async def handler(request):
            yield "a"
            await asyncio.sleep(0.02)
            yield "b"
        """
    )

    assert ask(app, "GET", "/v1/x").body == b"ab"


def test_a_plain_handler_that_takes_too_long_is_answered_while_its_thread_goes_on(
    serving: Project, ask: Ask
) -> None:
    app = serving(
        """
        import threading
        timeout = 0.01
        gate = threading.Event()

        def handler(request):
            gate.wait(10)
        """
    )
    answer = ask(app, "GET", "/v1/x")
    (module,) = app.project.modules.values()
    getattr(module, "handler").__globals__["gate"].set()  # noqa: B009 - a union

    assert answer.status == 503
