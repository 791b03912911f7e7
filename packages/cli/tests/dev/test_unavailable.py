"""What answers in a development server whose project does not start."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

from treefold_cli._dev.unavailable import Unavailable


def answers(
    scope: dict[str, Any], reason: str | Callable[[], str] = "hooks.py failed"
) -> list[Any]:
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": f"{scope['type']}.startup"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(Unavailable(reason)(scope, receive, send))
    return sent


def test_while_nothing_can_serve_every_request_is_told_why():
    start, body = answers({"type": "http", "method": "GET"})
    assert start["status"] == 503
    assert (b"content-length", b"%d" % len(body["body"])) in start["headers"]
    assert json.loads(body["body"])["detail"] == "hooks.py failed"
    assert b"hook b" in answers({"type": "http", "method": "GET"}, lambda: "hook b")[1]["body"]
    assert answers({"type": "http", "method": "HEAD"})[1]["body"] == b""
    assert answers({"type": "websocket"}) == [{"type": "websocket.close", "code": 1013}]
    assert [message["type"] for message in answers({"type": "lifespan"})] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
