"""The docs with `treefold-docs-ui`: what development shows, and production does not."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from html import unescape
from typing import Any, TypeAlias

import pytest

from treefold_http import Application, Settings
from treefold_logging import flush, get_logger
from treefold_logging._writer import WRITER

Project = Callable[..., Application]
Ask = Callable[..., Any]
Answer: TypeAlias = Any
Exchange: TypeAlias = Any

HANDLER = "async def handler(request): return {}\n"
FILES: Mapping[str, str] = {
    "Api/v1/User/[id]/Get.py": HANDLER,
    "Api/v2/User/Get.py": HANDLER,
    "Api/v2/Chat/Socket.py": "async def handler(websocket): await websocket.accept()\n",
    "Api/v2/User/Put.py": "import nothing_of_this_name\n",
    "Api/v2/User/Services/Get.py": HANDLER,
    "pyproject.toml": '[project]\nname = "shop"\n',
}
LOCAL = [("host", "localhost:8000")]


def get(ask: Ask, app: Application, target: str, host: str = "localhost", **more: Any) -> Answer:
    return ask(app, "GET", target, headers=[("host", host)], host=False, **more)


def config(answer: Answer) -> dict[str, Any]:
    found = re.search(r'data-config="([^"]*)"', answer.body.decode())
    assert found
    return json.loads(unescape(found[1]))


@pytest.mark.parametrize("target", ["/docs", "/docs/", "//docs"])
def test_the_page_is_there_in_development(project: Project, ask: Ask, target: str) -> None:
    answer = get(ask, project(FILES, dev=True), target)

    assert answer.status == 200
    assert answer.fields("content-type") == ["text/html; charset=utf-8"]
    assert len(answer.fields("x-request-id")) == len(answer.fields("x-content-type-options")) == 1
    said = config(answer)
    assert (said["title"], said["site"], said["log"]) == ("shop", True, True)
    assert [each["name"] for each in said["documents"]] == ["All versions", "v1", "v2"]
    assert [each["url"] for each in said["documents"]] == [
        "../openapi.json",
        "../openapi/v1.json",
        "../openapi/v2.json",
    ]


def test_every_document_of_the_page_is_there(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)
    documents = config(get(ask, app, "/docs"))["documents"]
    urls = [each[key].removeprefix("..") for each in documents for key in ("url", "asyncapi")]

    assert [get(ask, app, url).status for url in urls] == [200] * 6


def test_one_version_needs_no_choice(project: Project, ask: Ask) -> None:
    app = project({"Api/v1/User/Get.py": HANDLER}, dev=True)

    assert [each["name"] for each in config(get(ask, app, "/docs"))["documents"]] == ["v1"]


@pytest.mark.parametrize("path", ["/api/docs", "/docs"])
def test_it_works_where_the_application_is_mounted(project: Project, ask: Ask, path: str) -> None:
    app = project(FILES, dev=True)
    more = {"root_path": "/api", "path": path, "raw_path": path.encode()}
    answer = get(ask, app, path, more=more)

    assert config(answer)["base"] == "./docs/"


def test_the_site_of_a_developer_has_sources_and_failures(project: Project, ask: Ask) -> None:
    site = get(ask, project(FILES, dev=True), "/docs/site.json").json()

    assert {(each["method"], each["url"], each["file"]) for each in site["files"]} == {
        ("GET", "/v1/user/{id}", "v1/User/[id]/Get.py"),
        ("GET", "/v2/user", "v2/User/Get.py"),
        ("PUT", "/v2/user", "v2/User/Put.py"),
        ("WEBSOCKET", "/v2/chat", "v2/Chat/Socket.py"),
    }
    ((file, reason),) = [(each["file"], each["reason"]) for each in site["skipped"]]
    assert file == "v2/User/Services/Get.py"
    assert reason
    (broken,) = site["broken"]
    assert broken["file"] == "v2/User/Put.py"
    assert "nothing_of_this_name" in broken["error"]
    assert "Traceback" in broken["traceback"]


def test_s116_production_with_docs_on_shows_neither_source_nor_log(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(WRITER, "tail", None)  # a test before this one may have begun to keep it
    app = project(FILES, settings=Settings(docs=True))
    page = get(ask, app, "/docs", host="shop.example")

    assert page.status == 200
    assert (config(page)["site"], config(page)["log"]) == (False, False)
    for target in ("/docs/site.json", "/docs/log"):
        assert get(ask, app, target, host="shop.example").status == 404
    assert b"Get.py" not in page.body
    assert WRITER.tail is None


@pytest.mark.parametrize("target", ["/docs", "/docs/site.json", "/docs/log"])
@pytest.mark.parametrize("host", ["evil.example", "evil.example:8000", "127.0.0.1.evil.example"])
def test_s117_a_name_of_somebody_else_is_refused_in_development(
    project: Project, ask: Ask, target: str, host: str
) -> None:
    assert get(ask, project(FILES, dev=True), target, host=host).status == 400


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8000", "127.0.0.1:8000", "[::1]:8000", "192.168.1.7", "app.localhost"],
)
def test_s117_local_names_and_addresses_are_served(project: Project, ask: Ask, host: str) -> None:
    assert get(ask, project(FILES, dev=True), "/docs", host=host).status == 200


def test_fields_of_the_docs_are_not_doubled_by_those_of_middleware(
    project: Project, ask: Ask
) -> None:
    middleware = """
    async def stamped(request, call_next):
        response = await call_next(request)
        response.headers["X-Stamp"] = "here"
        response.headers["Content-Security-Policy"] = "default-src *"
        return response
    middlewares = [stamped]
    """
    app = project({**FILES, "Middleware/__init__.py": middleware}, dev=True)
    answer = get(ask, app, "/docs")

    assert answer.fields("x-stamp") == ["here"]
    (policy,) = answer.fields("content-security-policy")
    assert policy.startswith("default-src 'none'")


def test_the_status_of_the_docs_is_in_the_log(
    project: Project, ask: Ask, capsys: pytest.CaptureFixture[str]
) -> None:
    app = project(FILES, dev=True)
    get(ask, app, "/docs/assets/none")
    assert flush()

    assert "GET /docs/assets/none 404 " in capsys.readouterr().err


class Reader:
    """A client that reads the log, message for message."""

    def __init__(self, exchange: Exchange) -> None:
        self.exchange = exchange
        self.lines: list[str] = []
        self._news = asyncio.Event()

    async def send(self, message: Mapping[str, Any]) -> None:
        """Take a message of the application."""
        await self.exchange.send(message)
        if message.get("body", b"").startswith(b"data: "):
            self.lines += json.loads(message["body"][6:])
            self._news.set()

    async def until(self, text: str) -> None:
        """Wait until a line has the text."""
        async with asyncio.timeout(5):
            while not any(text in line for line in self.lines):
                await self._news.wait()
                self._news.clear()


def test_the_log_is_live_masked_and_ends_with_the_application(
    project: Project, exchange: Callable[..., Exchange]
) -> None:
    app = project(FILES, dev=True)

    async def read() -> Reader:
        get_logger().info("before postgres://ann:hunter2@db/shop")
        made = exchange("GET", "/docs/log", headers=LOCAL, host=False)
        reader = Reader(made)
        answering = asyncio.ensure_future(app(made.scope, made.receive, reader.send))
        await reader.until("before postgres")
        get_logger().info("while it was read")
        await reader.until("while it was read")
        app.begin_shutdown()
        await asyncio.wait_for(answering, 5)
        return reader

    reader = asyncio.run(read())
    assert reader.exchange.answer.complete
    assert any("booted in" in line for line in reader.lines)
    assert "hunter2" not in "".join(reader.lines)


def test_assets_of_the_page_stay_out_of_the_terminal(
    project: Project, ask: Ask, lines: Any
) -> None:
    app = project(FILES, dev=True)
    assets = config(get(ask, app, "/docs"))["assets"].removeprefix("./docs")
    found = get(ask, app, f"/docs{assets}/main.js")
    missing = get(ask, app, f"/docs{assets}/nothing.js")
    said = [line for line in lines.texts() if "GET /docs" in line]

    assert (found.status, missing.status) == (200, 404)
    assert [line.split()[1] for line in said] == ["/docs", f"/docs{assets}/nothing.js"]
