"""Which application the running code belongs to, with one and with several in a process."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from treefold_http import Application
from treefold_http._runtime.current_application import current_application, has_several_applications
from treefold_http.testing import TestClient

HANDLER = """
from treefold_http._runtime.current_application import current_application

def handler():
    app = current_application()
    return {"name": app.root.name}
"""
SOCKET = """
from treefold_http._runtime.current_application import current_application

async def handler(websocket):
    await websocket.accept()
    await websocket.send_text(current_application().root.name)
"""
TASK = """
from treefold_http import BackgroundTasks
from treefold_http._runtime.current_application import current_application

def note(app, seen):
    seen.append(current_application().root.name)

def handler(request, background: BackgroundTasks):
    background.add(note, request.app, request.app.state.seen)
    return {}
"""
HOOKS = """
from treefold_http._runtime.current_application import current_application

def start(app):
    app.state.seen = [current_application().root.name]

def stop(app):
    app.state.seen.append(current_application().root.name)

on_startup, on_shutdown = [start], [stop]
"""


def application(root: Path) -> Application:
    for path, text in {
        "Api/v1/Who/Get.py": HANDLER,
        "Api/v1/Who/Socket.py": SOCKET,
        "Api/v1/Task/Post.py": TASK,
        "hooks.py": HOOKS,
    }.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return Application(root)


@pytest.fixture
def two(tmp_path: Path) -> Iterator[tuple[TestClient, TestClient]]:
    with (
        TestClient(application(tmp_path / "shop")) as shop,
        TestClient(application(tmp_path / "blog")) as blog,
    ):
        yield shop, blog


def test_a_request_belongs_to_its_application(two: tuple[TestClient, TestClient]) -> None:
    shop, blog = two
    for _ in range(2):
        assert shop.get("/v1/who").json() == {"name": "shop"}
        assert blog.get("/v1/who").json() == {"name": "blog"}


def test_a_socket_belongs_to_its_application(two: tuple[TestClient, TestClient]) -> None:
    for client, name in zip(two, ("shop", "blog"), strict=True):
        with client.websocket_connect("/v1/who") as socket:
            assert socket.receive_text() == name


def test_hooks_and_background_work_belong_to_their_application(tmp_path: Path) -> None:
    with TestClient(application(tmp_path / "shop")) as shop:
        with TestClient(application(tmp_path / "blog")) as blog:
            for client in (shop, blog, shop):
                client.post("/v1/task")
        assert blog.app.state.seen == ["blog", "blog", "blog"]
    assert shop.app.state.seen == ["shop", "shop", "shop", "shop"]


def test_a_mounted_application_is_the_current_one_inside_only(tmp_path: Path) -> None:
    outer, inner = application(tmp_path / "outer"), application(tmp_path / "inner")
    outer.mount("/inner", inner)

    with TestClient(outer) as client:
        assert client.get("/inner/v1/who").json() == {"name": "inner"}
        assert client.get("/v1/who").json() == {"name": "outer"}


def test_a_scope_enters_its_application(tmp_path: Path) -> None:
    shop, blog = application(tmp_path / "shop"), application(tmp_path / "blog")

    async def enter() -> None:
        async with shop.scope():
            assert current_application() is shop
            async with blog.scope():
                assert current_application() is blog
            assert current_application() is shop

    asyncio.run(enter())


def test_code_of_no_application_is_refused_while_two_run(
    two: tuple[TestClient, TestClient],
) -> None:
    with pytest.raises(RuntimeError, match=r"run it inside of `async with app.scope\(\):`"):
        current_application()


def test_the_one_that_runs_is_current_beside_those_that_do_not(tmp_path: Path) -> None:
    shop = application(tmp_path / "shop")
    with TestClient(shop):
        application(tmp_path / "blog")
        assert current_application() is shop


def test_a_request_takes_the_short_path_again_once_one_is_left(tmp_path: Path) -> None:
    gc.collect()
    with TestClient(application(tmp_path / "shop")) as shop:
        assert shop.app.lifespan.is_direct
        with TestClient(application(tmp_path / "blog")):
            assert has_several_applications()
            assert not shop.app.lifespan.is_direct
        assert shop.app.lifespan.is_direct
        assert shop.get("/v1/who").json() == {"name": "shop"}


def test_an_application_that_is_gone_is_not_current(tmp_path: Path) -> None:
    app = Application(tmp_path)
    assert current_application() is app

    del app
    gc.collect()
    assert current_application() is None
