"""The test client of `docs/coming-from/fastapi.md` beside that of FastAPI: the same calls."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from serving import write_tree

from treefold import Application, TestClient

CLIENTS = {
    "main.py": """
        from contextlib import asynccontextmanager

        from fastapi import FastAPI, Request, WebSocket
        from fastapi.responses import PlainTextResponse, RedirectResponse

        STARTED = []

        @asynccontextmanager
        async def lifespan(app):
            STARTED.append(1)
            yield

        app = FastAPI(lifespan=lifespan)

        @app.get("/v1/show")
        async def show(request: Request):
            return {
                "url": str(request.url), "client": request.client.host,
                "agent": request.headers["user-agent"], "cookies": request.cookies,
            }

        @app.get("/v1/cookie")
        async def cookie():
            answer = PlainTextResponse("")
            answer.set_cookie("theme", "dark")
            return answer

        @app.get("/v1/crash")
        async def crash():
            raise LookupError("no")

        @app.get("/v1/away")
        async def away():
            return RedirectResponse("/v1/show", 303)

        @app.websocket("/v1/chat")
        async def chat(websocket: WebSocket):
            await websocket.accept()
            await websocket.send_json(await websocket.receive_json())
            await websocket.close(4001)
        """,
    "hooks.py": """
        def start(app):
            app.state.started = True

        on_startup = [start]
        on_shutdown = []
        """,
    "Api/v1/Show/Get.py": """
        async def handler(request):
            return {
                "url": str(request.url), "client": request.client.host,
                "agent": request.headers["user-agent"], "cookies": dict(request.cookies),
            }
        """,
    "Api/v1/Cookie/Get.py": """
        from treefold import Response

        async def handler():
            answer = Response.text("")
            answer.set_cookie("theme", "dark")
            return answer
        """,
    "Api/v1/Crash/Get.py": "async def handler(): raise LookupError('no')",
    "Api/v1/Away/Get.py": """
        from treefold import Response

        async def handler():
            return Response.redirect("/v1/show", status=303)
        """,
    "Api/v1/Chat/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            await websocket.send_json(await websocket.receive_json())
            await websocket.close(4001)
        """,
}


def used(client: Any) -> Any:
    """Return what a client sees and does, in the calls that both have."""
    with pytest.raises(LookupError, match="no"):
        client.get("/v1/crash")
    client.get("/v1/cookie")
    shown = client.get("/v1/show", params={"a": 1}, headers={"User-Agent": "mine"}).json()
    with client.websocket_connect("/v1/chat") as socket:
        socket.send_json({"a": [1]})
        said = socket.receive_json()
        with pytest.raises(Exception, match=r"^$|4001") as closed:
            socket.receive_text()
    left: Any = closed.value
    return shown, said, type(left).__name__, left.code, client.get("/v1/none").status_code


@pytest.mark.filterwarnings("ignore:Using .httpx. with .starlette.testclient.")
def test_test_clients_are_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fastapi.testclient import TestClient as TheirClient

    root = write_tree(tmp_path, CLIENTS)
    module = ModuleType("their_main")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec((root / "main.py").read_text("utf-8"), vars(module))
    app = Application(root)
    theirs: Any = TheirClient(module.app)
    ours = TestClient(app)

    assert used(ours) == used(theirs)
    assert used(ours)[0]["cookies"] == {"theme": "dark"}
    assert (theirs.get("/v1/away").status_code, ours.get("/v1/away").status_code) == (200, 303)
    assert ours.get("/v1/away", follow_redirects=True).status_code == 200
    assert module.STARTED == []
    assert app.state.started
    ours.close()
