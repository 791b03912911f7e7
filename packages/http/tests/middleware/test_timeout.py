"""Timeout: what is cancelled, what is answered, what is never cut off (D-06)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.middleware import Timeout

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

TREE = {
    "Middleware/__init__.py": "from treefold_http.middleware import Timeout\n"
    "class Field:\n"
    "    def before(self, request):\n        request.add_answer_fields([(b'x-outer', b'1')])\n"
    "middlewares = [Field(), Timeout(0.05)]\n",
    "Services/notes.py": "notes = []\n",
    "Api/v1/Hang/Get.py": """
        import asyncio
        from treefold_http import Depends
        from Services.notes import notes

        async def held():  # a plain one waits for a thread, perhaps longer than the limit
            try:
                yield
            finally:
                notes.append("left")

        async def handler(held=Depends(held)):
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                notes.append("cancelled")
                raise
        """,
    "Api/v1/Notes/Get.py": "from Services.notes import notes\n"
    "async def handler(request):\n    return notes\n",
    "Api/v1/Body/Post.py": "async def handler(request):\n    return len(await request.body())\n",
    "Api/v1/Chunks/Post.py": "async def handler(request):\n"
    "    return sum([len(chunk) async for chunk in request.stream()])\n",
    "Api/v1/Late/Post.py": "import asyncio\n"
    "async def handler(request):\n    await asyncio.Event().wait()\n",
    "Api/v1/Own/Get.py": "async def handler(request):\n    raise TimeoutError('mine')\n",
    "Api/v1/Stream/Get.py": """
        import asyncio

        async def handler(request):
            for part in "abc":
                yield part
                await asyncio.sleep(0.03)
        """,
    "Api/v1/Hang/Ws.py": "import asyncio\n"
    "async def handler(websocket):\n    await asyncio.Event().wait()\n",
    "Api/v1/Long/Ws.py": """
        import asyncio

        async def handler(websocket):
            await websocket.accept()
            await asyncio.sleep(0.1)
            await websocket.send_text("still here")
        """,
}
SLOW = "The handler took longer than 0.05 seconds"


def test_a_handler_is_cancelled_and_the_client_answered(
    project: Project, ask: Ask, lines: Lines
) -> None:
    app = project(TREE)
    answer = ask(app, "GET", "/v1/hang")
    notes = ask(app, "GET", "/v1/notes")

    assert notes.json() == ["cancelled", "left"]
    assert (answer.status, answer.json()["detail"]) == (503, SLOW)
    assert answer.fields("x-outer") == ["1"]
    assert ask(app, "GET", "/v1/own").status == 500
    assert [str(error) for error in lines.errors()] == ["mine"]


@pytest.mark.parametrize(
    ("target", "status"), [("/v1/body", 408), ("/v1/chunks", 408), ("/v1/late", 503)]
)
def test_a_body_that_does_not_arrive_is_408(
    project: Project, exchange: type[Exchange], target: str, status: int
) -> None:
    async def main() -> None:
        made = exchange("POST", target, headers=[("content-length", "100")])
        never = asyncio.Event()

        async def receive() -> dict[str, object]:
            await never.wait()
            return {}

        await project(TREE)(made.scope, receive, made.send)
        assert made.answer.status == status
        assert made.answer.fields("connection") == ["close"]

    asyncio.run(main())


async def mounted(scope: Any, receive: Any, send: Any) -> None:
    """Read the body where the path says so, then wait for ever."""
    if scope["type"] == "http":
        if scope["path"].endswith("/read"):
            while (await receive()).get("more_body"):
                pass
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("method", "target", "arrives", "status"),
    [
        ("GET", "/legacy/hang", True, 503),
        ("GET", "/legacy/read", True, 503),
        ("POST", "/legacy/hang", True, 503),
        ("POST", "/legacy/read", True, 503),
        ("POST", "/legacy/hang", False, 503),
        ("POST", "/legacy/read", False, 408),
    ],
)
def test_a_mount_is_408_only_while_it_waits_for_the_body(
    project: Project, exchange: type[Exchange], method: str, target: str, arrives: bool, status: int
) -> None:
    async def main() -> None:
        app = project(TREE)
        app.mount("/legacy", mounted)
        fields = [("content-length", "3")] if method == "POST" else []
        made = exchange(method, target, headers=fields, chunks=[b"abc"] if fields else [])
        never = asyncio.Event()

        async def wait_for_ever() -> dict[str, Any]:
            await never.wait()
            return {}

        await app(made.scope, made.receive if arrives else wait_for_ever, made.send)
        assert made.answer.status == status

    asyncio.run(main())


def test_a_stream_that_has_begun_is_never_cut_off(project: Project, ask: Ask) -> None:
    answer = ask(project(TREE), "GET", "/v1/stream")

    assert (answer.status, answer.body, answer.complete) == (200, b"abc", True)


def test_s71_a_socket_must_be_accepted_in_time_and_may_then_stay(
    project: Project, talk: Talk
) -> None:
    app = project(TREE)

    refused = talk(app, "/v1/hang", stays=True)
    assert (refused.refusal.status, refused.refusal.json()["detail"]) == (503, SLOW)
    assert talk(app, "/v1/long", stays=True).texts == ["still here"]


@pytest.mark.parametrize("seconds", [0, -1, float("nan"), float("inf")])
def test_seconds_that_limit_nothing_are_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="seconds must be a number above 0"):
        Timeout(seconds)
