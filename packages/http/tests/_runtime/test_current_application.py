"""Entering an application, and what is left of it in the context."""

from __future__ import annotations

import asyncio
from contextvars import Context, copy_context
from pathlib import Path

from treefold_http import Application
from treefold_http._runtime.current_application import enter_application, entered, leave_application
from treefold_http._wire.asgi import Message, Scope


def make_application(root: Path) -> Application:
    route = root / "Api" / "v1" / "Hello" / "Get.py"
    route.parent.mkdir(parents=True)
    route.write_text("async def handler(request):\n    return {}\n")
    return Application(root)


def test_a_boot_leaves_no_variable_in_the_context(tmp_path: Path) -> None:
    def boot() -> bool:
        make_application(tmp_path).boot()
        return entered in copy_context()

    assert not Context().run(boot)


def test_a_first_request_leaves_no_variable_in_the_context(tmp_path: Path) -> None:
    app = make_application(tmp_path)

    async def receive() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None: ...

    async def serve_one() -> bool:
        scope: Scope = {"type": "http", "method": "GET", "path": "/v1/hello", "headers": []}
        await app({**scope, "query_string": b""}, receive, send)
        return entered in copy_context()

    assert not Context().run(asyncio.run, serve_one())


def test_an_application_in_another_gives_way_to_it(tmp_path: Path) -> None:
    outer, inner = make_application(tmp_path / "a"), make_application(tmp_path / "b")
    with enter_application(outer):
        with enter_application(inner):
            assert entered.get() is inner
        assert entered.get() is outer
    assert entered.get() is None


def test_leaving_from_another_context_restores_what_was_before(tmp_path: Path) -> None:
    app = make_application(tmp_path)
    entry = Context().run(entered.set, app)

    def leave_there() -> object:
        entered.set(app)
        leave_application(entry)
        return entered.get()

    assert Context().run(leave_there) is None
