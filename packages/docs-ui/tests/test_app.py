"""The application as a part of others: methods, paths, and what only an inspector adds."""

import asyncio
import json
from collections.abc import AsyncIterator, MutableMapping, Sequence
from typing import Any

import pytest
from docs_exchange import ask

from treefold_docs_ui import (
    BrokenFile,
    DocsApp,
    Document,
    Inspector,
    SiteView,
    SkippedFile,
    SourceFile,
)

DOCUMENTS = [Document("v1", "/v1.json")]
NO_HEADERS: list[tuple[bytes, bytes]] = []
VIEW = SiteView(
    files=[SourceFile("GET", "/v1/user", "v1/User/Get.py")],
    skipped=[SkippedFile("v1/User/gett.py", "no method")],
    broken=[BrokenFile("v1/Book/Get.py", "ImportError: x", "Traceback")],
)


async def two_batches() -> AsyncIterator[Sequence[str]]:
    yield ["[INFO] one\n", "[INFO] two\n"]
    yield ["[INFO] three\n"]


@pytest.fixture
def plain() -> DocsApp:
    """What production serves."""
    return DocsApp(DOCUMENTS)


@pytest.fixture
def inspected() -> DocsApp:
    """What a developer sees."""
    return DocsApp(DOCUMENTS, inspector=Inspector(site=lambda: VIEW, log=two_batches))


@pytest.mark.parametrize("path", ["/site.json", "/log", "/nothing", "/page", "/assets"])
def test_without_an_inspector_there_is_neither_source_nor_log(plain: DocsApp, path: str) -> None:
    assert ask(plain, path).status == 404


def test_without_a_log_there_is_none() -> None:
    docs = DocsApp(DOCUMENTS, inspector=Inspector(site=SiteView))

    assert ask(docs, "/log").status == 404
    assert ask(docs, "/site.json").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "get"])
def test_other_methods_are_refused(plain: DocsApp, method: str) -> None:
    answer = ask(plain, method=method)

    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


@pytest.mark.parametrize("path", ["/", "/site.json", "/log", "/nothing"])
def test_head_is_get_without_the_body(inspected: DocsApp, path: str) -> None:
    get, head = ask(inspected, path), ask(inspected, path, method="HEAD")

    assert (head.status, head.body) == (get.status, b"")
    assert head.headers["content-type"] == get.headers["content-type"]


def test_the_site_is_what_the_inspector_says(inspected: DocsApp) -> None:
    answer = ask(inspected, "/docs/site.json", root_path="/docs")

    assert answer.headers["cache-control"] == "no-store"
    assert json.loads(answer.body) == {
        "root": "Api",
        "files": [{"method": "GET", "url": "/v1/user", "file": "v1/User/Get.py"}],
        "skipped": [{"file": "v1/User/gett.py", "reason": "no method"}],
        "broken": [{"file": "v1/Book/Get.py", "error": "ImportError: x", "traceback": "Traceback"}],
    }


def test_the_site_is_asked_for_each_time() -> None:
    views = iter([SiteView(root="one"), SiteView(root="two")])
    docs = DocsApp(DOCUMENTS, inspector=Inspector(site=lambda: next(views)))

    assert [json.loads(ask(docs, "/site.json").body)["root"] for _ in range(2)] == ["one", "two"]


def test_the_log_is_an_event_stream_of_batches(inspected: DocsApp) -> None:
    answer = ask(inspected, "/log")

    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["cache-control"] == "no-store"
    assert answer.text == (
        'data: ["[INFO] one\\n", "[INFO] two\\n"]\n\ndata: ["[INFO] three\\n"]\n\n'
    )


@pytest.mark.parametrize("path", ["/site.json", "/log"])
@pytest.mark.parametrize(
    ("site", "status"),
    [("cross-site", 403), ("same-site", 403), ("same-origin", 200), ("none", 200)],
)
def test_s117_another_site_reads_neither_source_nor_log(
    inspected: DocsApp, path: str, site: str, status: int
) -> None:
    answer = ask(inspected, path, headers={"Sec-Fetch-Site": site})

    assert answer.status == status
    assert "access-control-allow-origin" not in answer.headers


def test_a_reader_who_leaves_ends_the_source_of_the_log() -> None:
    events: list[str] = []

    async def endless() -> AsyncIterator[Sequence[str]]:
        try:
            yield ["one"]
            await asyncio.Event().wait()
        finally:
            events.append("closed")

    async def leave_after_the_first() -> None:
        first = asyncio.Event()

        async def receive() -> MutableMapping[str, Any]:
            await first.wait()
            return {"type": "http.disconnect"}

        async def send(message: MutableMapping[str, Any]) -> None:
            events.append(message["type"])
            if message.get("body"):
                first.set()

        docs = DocsApp(DOCUMENTS, inspector=Inspector(site=SiteView, log=endless))
        scope = {"type": "http", "method": "GET", "path": "/log", "headers": NO_HEADERS}
        await docs(scope, receive, send)

    asyncio.run(leave_after_the_first())
    assert events == ["http.response.start", "http.response.body", "closed"]


def test_silence_is_filled_with_comments(monkeypatch: pytest.MonkeyPatch) -> None:
    over = asyncio.Event()

    async def silent() -> AsyncIterator[Sequence[str]]:
        await over.wait()
        yield []

    monkeypatch.setattr("treefold_docs_ui._log.KEEP_ALIVE", 0.01)
    docs = DocsApp(DOCUMENTS, inspector=Inspector(site=SiteView, log=silent))
    sent: list[bytes] = []

    async def listen() -> None:
        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message.get("body", b""))
            if len(sent) == 4:
                over.set()

        scope = {"type": "http", "method": "GET", "path": "/log", "headers": NO_HEADERS}
        await docs(scope, asyncio.Event().wait, send)  # pyright: ignore[reportArgumentType] - silent for ever

    asyncio.run(listen())
    assert sent[1:4] == [b": keep-alive\n\n"] * 3
    assert sent[-1] == b""


def test_it_has_a_lifespan_where_it_is_served_alone(plain: DocsApp) -> None:
    messages = [{"type": "lifespan.shutdown"}, {"type": "lifespan.startup"}]
    sent: list[str] = []

    async def receive() -> MutableMapping[str, Any]:
        return messages.pop()

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])

    asyncio.run(plain({"type": "lifespan"}, receive, send))
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


def test_it_takes_no_sockets(plain: DocsApp) -> None:
    sent: list[str] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message["type"])

    asyncio.run(plain({"type": "websocket", "path": "/docs"}, receive, send))
    assert sent == ["websocket.close"]
