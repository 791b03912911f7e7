"""ASGI application for a failed start: it answers every request with 503 and the reason."""

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any


class Unavailable:
    """An ASGI application of the development server; production would rather end.

    Args:
        reason: one line, or a function that returns it for each request.
    """

    def __init__(self, reason: str | Callable[[], str]) -> None:
        self._reason = reason

    def _render_body(self) -> bytes:
        document = {
            "type": "about:blank",
            "title": "Service Unavailable",
            "status": 503,
            "detail": self._reason if isinstance(self._reason, str) else self._reason(),
        }
        return json.dumps(document).encode()

    async def __call__(
        self,
        scope: MutableMapping[str, Any],
        receive: Callable[[], Awaitable[MutableMapping[str, Any]]],
        send: Callable[[MutableMapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Answer one connection scope (ASGI 3.0)."""
        if scope["type"] == "lifespan":
            for stage in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{stage}.complete"})
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1013})
        else:
            document = self._render_body()
            headers = [
                (b"content-type", b"application/problem+json"),
                (b"content-length", b"%d" % len(document)),
                (b"cache-control", b"no-store"),
            ]
            await send({"type": "http.response.start", "status": 503, "headers": headers})
            body = b"" if scope["method"] == "HEAD" else document
            await send({"type": "http.response.body", "body": body})
