"""One source served by treefold and by FastAPI, with what its clients see and its handlers note.

The source is read with the names of either; `EVENTS` is what it notes. Nothing here knows what is
right.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from types import ModuleType
from typing import Any

import httpx
import pytest
from serving import write_tree

from treefold import Application, TestClient

Call = Callable[[Any], Any]
Compared = tuple[Any, list[Any]]
"""What a client saw, and what the handler noted."""
Both = Callable[..., tuple[Compared, Compared]]

TOP = """
from __future__ import annotations
import asyncio
from typing import Annotated
from annotated_types import MinLen
EVENTS = []
"""
OURS = """
from treefold import (
    BackgroundTasks, Body, Cookie, Depends, File, Form, Header, HTTPError, Query, Request, Response,
    UploadFile,
)
HTTPException = HTTPError
text = Response.text
"""
THEIRS = """
from fastapi import (
    BackgroundTasks, Body, Cookie, Depends, File, Form, Header, HTTPException, Query, Request,
    UploadFile,
)
from fastapi import FastAPI
from fastapi.responses import PlainTextResponse as text
"""


class Peer:
    """A client of an application of FastAPI."""

    def __init__(self, app: Any) -> None:
        self._app = app

    def _send(self, method: str, target: str, **options: Any) -> httpx.Response:
        async def main() -> httpx.Response:
            transport = httpx.ASGITransport(self._app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
                return await client.request(method, target, **options)

        return asyncio.run(main())

    def get(self, target: str, **options: Any) -> httpx.Response:
        return self._send("GET", target, **options)

    def post(self, target: str, **options: Any) -> httpx.Response:
        return self._send("POST", target, **options)


def ask_peer(source: str, register: str, call: Call, method: str) -> Compared:
    module = ModuleType("coming_from_fastapi")
    sys.modules[module.__name__] = module  # annotations are resolved in it
    try:
        exec(f"{TOP}{THEIRS}{dedent(register)}{dedent(source)}", vars(module))
        app = module.FastAPI()
        getattr(app, method)("/v1/x")(module.handler)
        if register:
            module.register(app)
        return call(Peer(app)), module.EVENTS
    finally:
        del sys.modules[module.__name__]


def ask_ours(root: Path, source: str, register: str, call: Call, method: str) -> Compared:
    tree = {f"Api/v1/X/{method.title()}.py": f"{TOP}{OURS}{dedent(source)}"}
    if register:
        tree["hooks.py"] = f"{TOP}{OURS}{dedent(register)}\non_startup = [register]\n"
    app = Application(write_tree(root, tree))
    with TestClient(app, raise_app_errors=False) as client:
        answer = call(client)
    (module,) = app.project.modules.values()
    own: Any = module
    return answer, own.handler.__globals__["EVENTS"]


@pytest.fixture
def both(tmp_path: Path) -> Both:
    """Serve one source by both; `call` takes a client and returns what is compared."""

    def ask(
        source: str, call: Call, *, method: str = "get", register: str = ""
    ) -> tuple[Compared, Compared]:
        ours = ask_ours(
            tmp_path / f"ours-{len(list(tmp_path.iterdir()))}", source, register, call, method
        )
        return ours, ask_peer(source, register, call, method)

    return ask
