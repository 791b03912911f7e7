"""A project on the disk, and a server that speaks ASGI 3.0 to its application, exactly.

`receive` gives the chunks, then waits, and gives the disconnect when the client leaves or the
answer is complete; `send` refuses what a server would refuse.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import dedent
from typing import Any, cast
from urllib.parse import unquote

import pytest
from hypothesis import settings

# Under importlib mode pytest adds no folder; the support modules lie beside this one.
sys.path.insert(0, str(Path(__file__).parent))

from http_reloading import Live

from treefold_http import Application, Request, WebSocket
from treefold_http._injection.resolver import plan_call
from treefold_http._runtime.exit_callbacks import run_exit_callbacks
from treefold_http._runtime.name_space import TEST_RUN
from treefold_http.openapi import openapi_document
from treefold_logging import flush, get_logger

# a limit of the clock for each example would fail on a busy machine
settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")

Fields = Sequence[tuple[str, str]]
Message = Mapping[str, Any]

HOST: Fields = (("host", "example.localhost"),)


@dataclass(slots=True)
class Answer:
    """What the application sent."""

    messages: list[Message] = field(default_factory=list[Message])

    @property
    def status(self) -> int:
        return self.messages[0]["status"]

    @property
    def headers(self) -> list[tuple[str, str]]:
        raw: list[tuple[bytes, bytes]] = self.messages[0]["headers"]
        return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in raw]

    def fields(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key == name]

    @property
    def chunks(self) -> list[bytes]:
        return [message["body"] for message in self.messages[1:]]

    @property
    def body(self) -> bytes:
        return b"".join(self.chunks)

    @property
    def complete(self) -> bool:
        if not self.messages:
            return False
        last = self.messages[-1]
        return last["type"] == "http.response.body" and not last.get("more_body", False)

    def json(self) -> Any:
        return json.loads(self.body)


class Exchange:
    """One HTTP request on its way through an application.

    Args:
        chunks: the body as it arrives; more than one means chunked.
        cut: the client leaves after the chunks, before the end of its body.
        host: whether a `Host` field is added.
    """

    def __init__(
        self,
        method: str,
        target: str,
        *,
        headers: Fields = (),
        chunks: Sequence[bytes] = (),
        cut: bool = False,
        host: bool = True,
        more: Mapping[str, Any] | None = None,
    ) -> None:
        raw_path, _, query = target.partition("?")
        given = [*(HOST if host else ()), *headers]
        names = {name for name, _ in given}
        if len(chunks) == 1 and not cut and not names & {"content-length", "transfer-encoding"}:
            given.append(("content-length", str(len(chunks[0]))))
        elif chunks and not names & {"content-length", "transfer-encoding"}:
            given.append(("transfer-encoding", "chunked"))
        self.scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": unquote(raw_path),
            "raw_path": raw_path.encode("latin-1"),
            "query_string": query.encode("latin-1"),
            "root_path": "",
            "headers": [(n.encode("latin-1"), v.encode("latin-1")) for n, v in given],
            "client": ("127.0.0.1", 54321),
            "server": ("127.0.0.1", 8000),
            **(more or {}),
        }
        self.answer = Answer()
        self.gone = asyncio.Event()
        self.told = asyncio.Event()
        self.first_chunk = asyncio.Event()
        self._pending = list(chunks)
        self._cut = cut
        self._whole = False

    async def receive(self) -> dict[str, Any]:
        if not self._whole and not (self._cut and not self._pending):
            body = self._pending.pop(0) if self._pending else b""
            self._whole = not self._pending and not self._cut
            return {"type": "http.request", "body": body, "more_body": not self._whole}
        if not self._cut:
            await self.gone.wait()
        self.told.set()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        answer = self.answer
        assert not answer.complete, "nothing follows a complete answer"
        if not answer.messages:
            assert message["type"] == "http.response.start"
            assert all(name == name.lower() for name, _ in message["headers"])
        else:
            assert message["type"] == "http.response.body"
            assert isinstance(message["body"], bytes)
        answer.messages.append(dict(message))
        if len(answer.messages) > 1:
            self.first_chunk.set()
        if answer.complete:
            self.gone.set()
        await asyncio.sleep(0)  # as a server that looks whether the socket takes more

    async def run(self, app: Application) -> Answer:
        await app(self.scope, self.receive, self.send)
        return self.answer


class Socket:
    """One WebSocket on its way through an application: the client, and the server between.

    What a server would refuse is noted, and raised when the socket is over: the application could
    take it for an exception of the handler.

    Args:
        messages: what the client sends, text or bytes; then it leaves, unless it `stays`.
        lost: the connection breaks after so many messages from the application (ASGI 2.4).
    """

    def __init__(
        self,
        target: str,
        *,
        messages: Sequence[str | bytes] = (),
        headers: Fields = (),
        stays: bool = False,
        lost: int | None = None,
        host: bool = True,
        subprotocols: Sequence[str] = (),
        more: Mapping[str, Any] | None = None,
    ) -> None:
        made = Exchange("GET", target, headers=headers, host=host)
        self.scope: dict[str, Any] = {
            name: value for name, value in made.scope.items() if name != "method"
        }
        self.scope |= {
            "type": "websocket",
            "scheme": "ws",
            "subprotocols": list(subprotocols),
            "extensions": {"websocket.http.response": {}},
            **(more or {}),
        }
        self.sent: list[Message] = []
        self.wrong: list[str] = []
        self.reads = asyncio.Event()
        """Cleared for a client that does not read: what is sent to it waits."""
        self.reads.set()
        self._lost = lost
        self._news = asyncio.Event()
        self._inbox: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._inbox.put_nowait({"type": "websocket.connect"})
        for message in messages:
            self.say(message)
        if not stays:
            self.leave()

    def say(self, message: str | bytes) -> None:
        kind = "text" if isinstance(message, str) else "bytes"
        self._inbox.put_nowait({"type": "websocket.receive", kind: message})

    def leave(self, code: int | None = 1001, reason: str = "") -> None:
        said = {} if code is None else {"code": code, "reason": reason}
        self._inbox.put_nowait({"type": "websocket.disconnect", **said})

    async def receive(self) -> dict[str, Any]:
        return await self._inbox.get()

    async def send(self, message: Message) -> None:
        kind = message["type"].removeprefix("websocket.")
        before = self.kinds[-1] if self.sent else "connect"
        if kind not in _AFTER[before]:
            self.wrong.append(f"{kind} after {before}")
        if kind == "send":
            await self.reads.wait()
        if len(self.sent) == self._lost:
            raise OSError("the client has left")
        self.sent.append(dict(message))
        self._news.set()
        if kind == "close":
            self.leave(message["code"])
        await asyncio.sleep(0)

    async def until(self, kind: str, count: int = 1) -> None:
        """Wait for the so many-th message of a kind from the application."""
        while self.kinds.count(kind) < count:
            self._news.clear()
            await self._news.wait()

    async def run(self, app: Application) -> Socket:
        await app(self.scope, self.receive, self.send)
        assert self.wrong == []
        return self

    async def open(self, app: Application) -> WebSocket:
        """Give the application's end, not yet accepted, without a handler."""
        await self.receive()
        return WebSocket(self.scope, self.receive, app, "id-1", self.send)

    @property
    def kinds(self) -> list[str]:
        return [message["type"].removeprefix("websocket.") for message in self.sent]

    @property
    def texts(self) -> list[str | bytes]:
        found = [message for message in self.sent if message["type"] == "websocket.send"]
        return [message["text"] if "text" in message else message["bytes"] for message in found]

    @property
    def code(self) -> int | None:
        """The code it was closed with by the application."""
        return next((m["code"] for m in self.sent if m["type"] == "websocket.close"), None)

    @property
    def refusal(self) -> Answer:
        """The HTTP answer that it was refused with."""
        return Answer([m for m in self.sent if m["type"].startswith("websocket.http.response.")])


_AFTER: Mapping[str, set[str]] = {
    "connect": {"accept", "close", "http.response.start"},
    "accept": {"send", "close"},
    "send": {"send", "close"},
    "http.response.start": {"http.response.body"},
    "http.response.body": set(),
    "close": set(),
}


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """No settings from outside; the level as it was; lines written before capture ends."""
    for name in list(os.environ):
        if name.startswith("TREEFOLD_") and name != TEST_RUN:
            monkeypatch.delenv(name)
    level = get_logger().level
    yield
    get_logger().setLevel(level)
    flush()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write files of a project, dedented, and give its root: `write({"Api/v1/Get.py": ...})`."""

    def make(files: Mapping[str, str], root: str = "project") -> Path:
        base = tmp_path / root
        (base / "Api").mkdir(parents=True, exist_ok=True)
        for name, text in files.items():
            file = base / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(dedent(text), encoding="utf-8")
        return base

    return make


@pytest.fixture
def project(write: Callable[..., Path]) -> Iterator[Callable[..., Application]]:
    """An application over files; ends its threads after the test."""
    made: list[Application] = []

    def make(files: Mapping[str, str], *, root: str = "project", **options: Any) -> Application:
        made.append(Application(write(files, root), **options))
        return made[-1]

    yield make
    for app in made:
        app.threads.shutdown()


@pytest.fixture
def serving(project: Callable[..., Application]) -> Callable[..., Application]:
    """An application over one handler file, with the public names imported in it."""

    def make(text: str, file: str = "Api/v1/X/Get.py", **options: Any) -> Application:
        return project({file: f"from treefold_http import *\n{dedent(text)}"}, **options)

    return make


@pytest.fixture
def document(project: Callable[..., Application]) -> Callable[..., dict[str, Any]]:
    """The OpenAPI document of files, or of one handler; held to the standard where it is installed.

    A document of one handler is that of `Api/v1/X/Get.py`, unless `file` says otherwise.
    """

    def make(given: str | Mapping[str, str], version: str | None = None, **options: Any) -> Any:
        file = options.pop("file", "Api/v1/X/Get.py")
        if isinstance(given, str):
            given = {file: f"from treefold_http import *\n{dedent(given)}"}
        made = openapi_document(project(given, **options), version)
        if find_spec("openapi_spec_validator"):
            import_module("openapi_spec_validator").validate(made)
        return made

    return make


@pytest.fixture
def operation(document: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """The one operation of one handler, and of no other."""

    def make(text: str, **options: Any) -> dict[str, Any]:
        ((_, item),) = document(text, **options)["paths"].items()
        ((_, found),) = item.items()
        return found

    return make


@pytest.fixture
def ask() -> Callable[..., Answer]:
    """Send one request in an event loop of its own and give the answer."""

    def send(app: Application, method: str, target: str, **options: Any) -> Answer:
        async def main() -> Answer:
            async with asyncio.timeout(20):
                return await Exchange(method, target, **options).run(app)

        return asyncio.run(main())

    return send


@pytest.fixture
def exchange() -> type[Exchange]:
    """For tests that hold more than one end of a request."""
    return Exchange


@pytest.fixture
def socket() -> type[Socket]:
    """For tests that hold both ends of a WebSocket."""
    return Socket


@pytest.fixture
def talk() -> Callable[..., Socket]:
    """Open a WebSocket in a loop of its own, send the messages, leave; give what was sent."""

    def run(app: Application, target: str, *messages: str | bytes, **options: Any) -> Socket:
        async def main() -> Socket:
            async with asyncio.timeout(20):
                return await Socket(target, messages=messages, **options).run(app)

        return asyncio.run(main())

    return run


@pytest.fixture
def request_of(tmp_path: Path) -> Callable[..., Request]:
    """A request as a handler sees it, of an application that has no project."""

    def make(method: str = "GET", target: str = "/v1/x", **options: Any) -> Request:
        made = Exchange(method, target, **options)
        return Request(made.scope, made.receive, Application(tmp_path), "id-1")

    return make


@pytest.fixture
def call(request_of: Callable[..., Request]) -> Iterator[Callable[..., Any]]:
    """Plan a handler, call it for one request, leave its generators, give the result."""
    apps: list[Application] = []

    def run(
        handler: Callable[..., Any],
        target: str = "/v1/x",
        *,
        path: Mapping[str, str] | None = None,
        overrides: Mapping[Callable[..., Any], Callable[..., Any]] | None = None,
    ) -> Any:
        request = request_of(target=target)
        app = cast("Application", request.app)
        apps.append(app)
        request.path_params = path or {}
        injection = dataclasses.replace(app.injection, overrides=overrides or {})
        endpoint, _ = plan_call(handler, injection, path_parameters=tuple(path or ()))

        async def main() -> Any:
            try:
                result = await endpoint(request)
            except BaseException as error:
                await run_exit_callbacks(request.exit_callbacks or [], error)
                raise
            await run_exit_callbacks(request.exit_callbacks or [], None)
            return result

        return asyncio.run(main())

    yield run
    for app in apps:
        app.threads.shutdown()


class Lines(logging.Handler):
    """Every record of the framework's logger."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record)

    def texts(self, level: int = logging.NOTSET) -> list[str]:
        return [record.getMessage() for record in self.records if record.levelno >= level]

    def errors(self) -> list[BaseException]:
        found = [record.exc_info[1] for record in self.records if record.exc_info]
        return [error for error in found if error is not None]


@pytest.fixture
def lines() -> Iterator[Lines]:
    """What the framework logs during the test."""
    handler = Lines()
    get_logger().addHandler(handler)
    yield handler
    get_logger().removeHandler(handler)


@pytest.fixture
def live(project: Callable[..., Application], ask: Callable[..., Answer]) -> Callable[..., Live]:
    def make(files: dict[str, str]) -> Live:
        return Live(project(files, dev=True), ask)

    return make
