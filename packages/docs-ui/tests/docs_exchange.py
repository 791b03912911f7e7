"""An ASGI exchange, spoken as the protocol says, and the elements of a page."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from treefold_docs_ui import DocsApp


@dataclass
class Answer:
    """What came back."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""

    @property
    def text(self) -> str:
        """The body as text."""
        return self.body.decode()


class Elements(HTMLParser):
    """Every start tag of a page with its attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def all(self, tag: str) -> list[dict[str, str | None]]:
        """Give the attributes of every element of a tag."""
        return [attributes for name, attributes in self.found if name == tag]


def ask(
    app: DocsApp,
    path: str = "/",
    *,
    method: str = "GET",
    root_path: str = "",
    headers: Mapping[str, str] | None = None,
    query: bytes = b"",
) -> Answer:
    """Send one request to a docs application and give the answer."""
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "root_path": root_path,
        "query_string": query,
        "headers": [(k.lower().encode(), v.encode()) for k, v in (headers or {}).items()],
    }
    return asyncio.run(_exchange(app, scope))


async def _exchange(app: DocsApp, scope: MutableMapping[str, Any]) -> Answer:
    answer = Answer()
    over = asyncio.Event()
    messages: list[MutableMapping[str, Any]] = [{"type": "http.request", "body": b""}]

    async def receive() -> MutableMapping[str, Any]:
        if messages:
            return messages.pop()
        await over.wait()
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        assert not over.is_set(), f"Sent after the end: {message}"
        if message["type"] == "http.response.start":
            assert answer.status == 0
            answer.status = message["status"]
            pairs = [(key.decode(), value.decode()) for key, value in message["headers"]]
            answer.headers = dict(pairs)
            assert len(answer.headers) == len(pairs), f"A header twice: {pairs}"
            return
        assert answer.status
        answer.body += message.get("body", b"")
        if not message.get("more_body", False):
            over.set()

    await app(scope, receive, send)
    assert over.is_set(), "The application returned in the middle of an answer"
    return answer
