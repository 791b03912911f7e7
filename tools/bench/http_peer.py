"""BlackSheep with a request line of the standard library's logging: what a peer does for `hello`.

It is installed in the environment `peers` only; elsewhere its row is not measured. The line is
written in the request, as applications that log through the standard library do.
"""

from __future__ import annotations

import importlib
import importlib.util
import logging
import os
from time import perf_counter
from typing import Any
from uuid import uuid4

from http_cases import App

NAME = "BlackSheep"
HOW_TO_MEASURE = "hatch run peers:bench-http"


def is_installed() -> bool:
    """Return True if the peer can be measured here."""
    return importlib.util.find_spec("blacksheep") is not None


async def logging_peer() -> App:
    """Return the peer, started, with one route and one line for each request."""
    library: Any = importlib.import_module("blacksheep")
    app: Any = library.Application()

    async def hello() -> Any:
        return library.json({"message": "Hello"})

    app.router.add_get("/v1/hello", hello)
    await app.start()
    return _Lines(app)


class _Lines:
    """A line and a request id for every request of an application."""

    def __init__(self, app: App) -> None:
        self._app = app
        handler = logging.FileHandler(os.devnull)
        handler.setFormatter(logging.Formatter("%(asctime)s [%(levelname)s] %(message)s"))
        self._log = logging.Logger("peer", logging.INFO)
        self._log.addHandler(handler)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        started = perf_counter()
        sent = [value for name, value in scope["headers"] if name == b"x-request-id"]
        request_id = sent[0].decode("latin-1") if sent else uuid4().hex
        status = 0

        async def send_with_id(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                id_field = (b"x-request-id", request_id.encode())
                message["headers"] = [*message["headers"], id_field]
            await send(message)

        try:
            await self._app(scope, receive, send_with_id)
        finally:
            spent = (perf_counter() - started) * 1000
            line = "%s %s %d %.2fms id=%s"
            self._log.info(line, scope["method"], scope["path"], status, spent, request_id)
