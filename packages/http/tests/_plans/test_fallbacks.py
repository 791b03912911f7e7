"""Which middleware runs where no route serves a request."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

MIDDLEWARE = """
from treefold_http.middleware import IPAllowlist, requests_only, under

async def stamp(request, call_next):
    response = await call_next(request)
    response.headers["x-stamp"] = "stamped"
    return response

middlewares = [requests_only(stamp), under("/v1/inside", IPAllowlist(["10.0.0.0/8"]))]
"""


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v1/outside/chat", 405),
        ("/v1/inside/chat", 403),
        ("/v1/inside/none", 404),
        ("/v1/none", 404),
    ],
)
def test_a_guard_covers_a_request_where_only_a_socket_is(
    project: Callable[..., Application], ask: Callable[..., Answer], path: str, status: int
) -> None:
    socket = "async def handler(websocket): ...\n"
    app = project(
        {
            "Middleware/__init__.py": MIDDLEWARE,
            "Api/v1/Inside/Chat/Socket.py": socket,
            "Api/v1/Outside/Chat/Socket.py": socket,
        }
    )
    answer = ask(app, "GET", path)
    assert (answer.status, answer.fields("x-stamp")) == (status, ["stamped"])
