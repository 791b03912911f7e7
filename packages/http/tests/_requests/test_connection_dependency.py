"""A dependency of `Connection` serves requests and sockets; public types have readable help."""

from __future__ import annotations

import pydoc
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application, Connection, HTTPError, Request, WebSocket

if TYPE_CHECKING:
    from conftest import Answer, Socket

FILES = {
    "Services/who.py": """
        from treefold_http import Connection
        def who(connection: Connection) -> str:
            return connection.query["name"]
    """,
    "Services/__init__.py": "",
    "Api/v1/X/Get.py": """
        from treefold_http import Depends
        from Services.who import who
        def handler(name=Depends(who)): return [name]
    """,
    "Api/v1/X/Socket.py": """
        from treefold_http import Depends
        from Services.who import who
        async def handler(websocket, name=Depends(who)):
            await websocket.accept()
            await websocket.send_text(name)
    """,
}


def test_one_dependency_serves_requests_and_sockets(
    project: Callable[..., Application],
    ask: Callable[..., Answer],
    talk: Callable[..., Socket],
) -> None:
    app = project(FILES)

    assert ask(app, "GET", "/v1/x?name=ann").json() == ["ann"]
    assert talk(app, "/v1/x?name=ann").texts == ["ann"]


@pytest.mark.parametrize("kind", [Request, WebSocket])
def test_the_base_is_public(kind: type[Connection]) -> None:
    assert issubclass(kind, Connection)


@pytest.mark.parametrize("name", ["status", "message", "headers", "errors", "title"])
def test_help_of_an_error_names_its_attributes(name: str) -> None:
    text = pydoc.plain(pydoc.render_doc(HTTPError))

    assert f"{name}: " in text.partition("Attributes:")[2].partition("Raises:")[0]
