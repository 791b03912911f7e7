"""`docs/guides/mounting.md` runs: FastAPI, Starlette and Django below us, and we below them."""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Generator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from serving import write_tree

from treefold import Application, Settings
from treefold.testing import TestClient

SHOW = "async def handler(request):\n    return [str(request.url), request.root_path]\n"
HOOKS = """
notes = []

def up():
    notes.append("up")

def down():
    notes.append("down")

on_startup = [up]
on_shutdown = [down]
"""
SITE = {
    "shop/__init__.py": "",
    "shop/settings.py": """
        SECRET_KEY = "x" * 40
        ALLOWED_HOSTS = ["*"]
        ROOT_URLCONF = "shop.urls"
        INSTALLED_APPS = []
        MIDDLEWARE = ["django.middleware.security.SecurityMiddleware"]
        """,
    "shop/urls.py": """
        from django.http import HttpResponse, JsonResponse, StreamingHttpResponse
        from django.urls import path, reverse

        def page(request, name):
            return JsonResponse({"name": name, "self": reverse("page", args=[name]),
                                 "method": request.method, "body": request.body.decode()})

        async def parts(request):
            async def produce():
                for part in ("a", "b", "c"):
                    yield part
            return StreamingHttpResponse(produce())

        def fails(request):
            raise LookupError("no such thing")

        urlpatterns = [path("page/<name>", page, name="page"), path("parts", parts),
                       path("fails", fails)]
        """,
}


@pytest.fixture
def blocks(repository: Path) -> dict[str, str]:
    text = (repository / "docs/guides/mounting.md").read_text(encoding="utf-8")
    return dict(re.findall(r"```python\n# (\S+)\n(.*?)```", text, re.DOTALL))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    """A project; the modules that a test imports from it are forgotten."""
    before = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delenv("DJANGO_SETTINGS_MODULE", raising=False)
    yield write_tree(tmp_path, {"Api/v1/Show/Get.py": SHOW})
    for name in set(sys.modules) - before:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize("prefix", ["", "/api"])
def test_the_fastapi_application_of_the_page_is_served(
    root: Path, blocks: dict[str, str], prefix: str
) -> None:
    write_tree(root, {name: blocks[name] for name in ("hooks.py", "legacy.py")})
    app = Application(root, settings=Settings(root_path=prefix))
    with TestClient(app) as client:
        for target in (f"{prefix}/legacy/users/ann", "/legacy/users/ann"):
            answer = client.get(target)
            assert answer.status_code == 200
            assert "x-request-id" in answer.headers
            own = f"{prefix}/legacy/users/ann"
            assert answer.json()["self"].endswith(f"://{client.base_url.host}{own}")
            assert answer.json() | {"self": 0} == {"name": "ann", "pool": "a pool", "self": 0}
        assert client.get("/legacy/nothing").json() == {"detail": "Not Found"}
        assert client.get("/legacy/openapi.json").json()["servers"] == [{"url": f"{prefix}/legacy"}]
        with client.websocket_connect("/legacy/chat") as socket:
            socket.send_text("hello")
            assert socket.receive_text() == "hello"
        assert client.get("/v1/show").status_code == 200


def test_the_django_site_of_the_page_is_served(root: Path, blocks: dict[str, str]) -> None:
    hooks = blocks["hooks.py"].replace("from legacy", "from django_site")
    write_tree(root, {**SITE, "hooks.py": hooks, "django_site.py": blocks["django_site.py"]})
    with TestClient(Application(root), raise_app_errors=False) as client:
        answer = client.post("/legacy/page/ann", content=b"b" * 100_000)
        expected = {"name": "ann", "self": "/legacy/page/ann", "method": "POST"}
        assert answer.json() == {**expected, "body": "b" * 100_000}
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
        assert client.get("/legacy/parts").text == "abc"
        head = client.head("/legacy/page/ann")
        assert (head.status_code, head.content) == (200, b"")
        assert client.get("/legacy/fails").status_code == 500
        assert client.get("/legacy/nothing").status_code == 404


STARLETTE = """
from starlette.applications import Starlette
from starlette.background import BackgroundTask
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

done = []

async def background(request):
    return PlainTextResponse("ok", background=BackgroundTask(done.append, 1))

async def fails(request):
    raise LookupError("no such thing")

async def stream(request):
    async def produce():
        async for chunk in request.stream():
            yield chunk
    return StreamingResponse(produce())

asgi_app = Starlette(routes=[Route("/background", background), Route("/fails", fails),
                             Route("/stream", stream, methods=["POST"])])
"""


def test_a_starlette_application_is_served(root: Path, blocks: dict[str, str]) -> None:
    write_tree(root, {"hooks.py": blocks["hooks.py"], "legacy.py": STARLETTE})
    with TestClient(Application(root), raise_app_errors=False) as client:
        assert client.get("/legacy/background").text == "ok"
        assert client.post("/legacy/stream", content=b"c" * 2_000_000).content == b"c" * 2_000_000
        assert client.get("/legacy/fails").text == "Internal Server Error"
    assert import_module("legacy").done == [1]


async def through(parent: Any, *targets: str) -> list[Any]:
    """Start a parent as a server does, send requests, stop it; give the bodies."""
    inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    said: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    state: dict[str, Any] = {}
    inbox.put_nowait({"type": "lifespan.startup"})
    scope: dict[str, Any] = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": state}
    living = asyncio.ensure_future(parent(scope, inbox.get, said.put))
    assert (await said.get())["type"] == "lifespan.startup.complete"
    bodies = [json.loads(await body_of(parent, target)) for target in targets]
    inbox.put_nowait({"type": "lifespan.shutdown"})
    assert (await said.get())["type"] == "lifespan.shutdown.complete"
    await living
    return bodies


async def body_of(parent: Any, target: str) -> bytes:
    sent: list[dict[str, Any]] = []
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": target,
        "raw_path": target.encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(b"host", b"example.local")],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
    }

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    await parent(scope, receive, send)
    assert sent[0]["status"] == 200
    return b"".join(message.get("body", b"") for message in sent[1:])


@pytest.mark.parametrize("page", ["parent.py", "parent_with_its_own.py"])
def test_hooks_run_below_a_parent_that_passes_its_lifespan_on(
    root: Path, blocks: dict[str, str], page: str
) -> None:
    tree = {"Api/v1/Show/Get.py": SHOW, "hooks.py": HOOKS}
    write_tree(root / "shop", tree)
    write_tree(root, {page: blocks[page]})
    module = import_module(page.removesuffix(".py"))
    (shown,) = asyncio.run(through(module.parent, "/shop/v1/show"))

    assert shown == ["http://example.local/shop/v1/show", "/shop"]
    assert module.api.project.boot_files.on_startup[0].__globals__["notes"] == ["up", "down"]
    assert getattr(module, "events", ["opened", "closed"]) == ["opened", "closed"]
