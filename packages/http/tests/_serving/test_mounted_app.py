"""Mounted ASGI applications: what they are given, and what becomes of what they send."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

GET = "async def handler(request):\n    return 'ok'\n"
FILES = {
    "Api/v1/Get.py": GET,
    "Middleware/__init__.py": """
        from treefold_http import requests_only

        async def mark(request, call_next):
            response = await call_next(request)
            response.headers["x-seen"] = f"{response.status} {response.headers.get('x-own')}"
            return response

        middlewares = [requests_only(mark)]
        """,
}


class Legacy:
    """An ASGI application that answers as its methods say, by the last segment of the path."""

    def __init__(self) -> None:
        self.scopes: list[dict[str, Any]] = []
        self.after = asyncio.Event()
        self.left = asyncio.Event()
        self.notes: list[str] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            raise NotImplementedError
        self.scopes.append(dict(scope))
        name = scope["path"].rpartition("/")[2]
        await getattr(self, name, self.plain)(receive, send)

    async def start(self, send: Any, status: int = 200) -> None:
        headers = [(b"X-Own", b"1"), (b"x-request-id", b"theirs"), (b"set-cookie", b"a=1")]
        await send({"type": "http.response.start", "status": status, "headers": headers})

    async def plain(self, receive: Any, send: Any) -> None:
        await self.start(send, 201)
        await send({"type": "http.response.body", "body": b"plain"})

    async def echo(self, receive: Any, send: Any) -> None:
        await self.start(send)
        more = True
        while more:
            message = await receive()
            more = message["more_body"]
            await send({"type": "http.response.body", "body": message["body"], "more_body": True})
        await send({"type": "http.response.body"})

    async def nothing(self, receive: Any, send: Any) -> None: ...

    async def raises(self, receive: Any, send: Any) -> None:
        raise LookupError("before")

    async def raises_after(self, receive: Any, send: Any) -> None:
        await self.start(send, 500)
        await send({"type": "http.response.body", "body": b"own page"})
        raise LookupError("after")

    async def works_on(self, receive: Any, send: Any) -> None:
        await self.plain(receive, send)
        await self.after.wait()
        self.notes.append("worked on")

    async def endless(self, receive: Any, send: Any) -> None:
        await self.start(send)
        try:
            while True:
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
                await asyncio.sleep(0)
        finally:
            self.left.set()


@pytest.fixture
def legacy() -> Legacy:
    return Legacy()


@pytest.fixture
def app(project: Project, legacy: Legacy) -> Application:
    made = project(FILES)
    made.mount("/legacy", legacy)
    return made


@pytest.mark.parametrize(
    ("target", "path", "raw_path"),
    [
        ("/legacy", "/legacy", b"/legacy"),
        ("/legacy/", "/legacy/", b"/legacy/"),
        ("/legacy/a%20b/%C3%A4?q=1", "/legacy/a b/ä", b"/legacy/a%20b/%C3%A4"),
        ("/legacy/a%2Fb", "/legacy/a/b", b"/legacy/a%2Fb"),
        ("/%6cegacy/a", "/legacy/a", b"/legacy/a"),
        ("//legacy//a", "/legacy/a", b"/legacy/a"),
        ("/legacy/a//", "/legacy/a/", b"/legacy/a/"),
    ],
)
@pytest.mark.parametrize("has_raw_path", [True, False])
def test_the_path_below_the_mount_is_given_as_a_server_gives_it(
    app: Application,
    ask: Ask,
    legacy: Legacy,
    target: str,
    path: str,
    raw_path: bytes,
    has_raw_path: bool,
) -> None:
    answer = ask(app, "GET", target, more={} if has_raw_path else {"raw_path": None})
    (scope,) = legacy.scopes

    assert answer.status == 201
    assert (scope["root_path"], scope["path"]) == ("/legacy", path)
    assert not has_raw_path or scope["raw_path"] == raw_path
    assert (scope["state"], scope["extensions"]) == ({}, {})


def test_the_middleware_sees_the_response_and_the_log_has_its_line(
    app: Application, ask: Ask, lines: Lines
) -> None:
    answer = ask(app, "GET", "/legacy/x", headers=[("x-request-id", "mine")])

    assert answer.fields("x-seen") == ["201 1"]
    assert answer.fields("x-request-id") == ["mine"]
    assert answer.fields("set-cookie") == ["a=1"]
    assert (answer.body, answer.fields("content-length")) == (b"plain", ["5"])
    assert any(text.startswith("GET /legacy/x 201 ") for text in lines.texts())


def test_a_body_is_passed_on_as_it_arrives(app: Application, ask: Ask) -> None:
    chunks = [b"a" * 700_000, b"b" * 700_000, b"c"]
    answer = ask(app, "POST", "/legacy/echo", chunks=chunks)

    assert answer.body == b"".join(chunks)
    assert answer.fields("x-seen") == ["200 1"]


def test_a_body_that_middleware_has_read_is_given_once_more(
    project: Project, ask: Ask, legacy: Legacy
) -> None:
    reads = """
        async def read(request, call_next):
            await request.body()
            return await call_next(request)

        middlewares = [read]
        """
    app = project({**FILES, "Middleware/__init__.py": reads})
    app.mount("/legacy", legacy)

    assert ask(app, "POST", "/legacy/echo", chunks=[b"read"]).body == b"read"


RESET = {"Api/v1/Reset/[token]/Get.py": GET, "Api/v1/Get.py": GET}


@pytest.mark.parametrize("prefix", ["/inner", "/two/parts"])
@pytest.mark.parametrize(
    ("below", "shown"),
    [
        ("/v1/reset/S3cret", "/v1/reset/***"),
        ("/reset/S3cret", "/reset/***"),
        ("/v1/reset/S3cret/none", "/v1/reset/***/none"),
        ("//v1/Reset//S3cret?token=S3cret", "//v1/Reset//***?token=***"),
        ("/v1/none", "/v1/none"),
    ],
)
def test_s81_the_line_of_a_mount_masks_what_a_mounted_application_masks(
    project: Project, ask: Ask, lines: Lines, prefix: str, below: str, shown: str
) -> None:
    app = project(FILES)
    app.mount(prefix, project(RESET, root="inner"))

    ask(app, "GET", f"{prefix}{below}")

    assert not [text for text in lines.texts() if "S3cret" in text]
    assert any(f"GET {prefix}{shown} " in text for text in lines.texts())


@pytest.mark.parametrize("sent", ["/api/inner", "/inner"])
def test_s81_a_mount_below_a_root_path_is_masked_too(
    project: Project, ask: Ask, lines: Lines, sent: str
) -> None:
    app = project(FILES, settings=Settings(root_path="/api"))
    app.mount("/inner", project(RESET, root="inner"))

    ask(app, "GET", f"{sent}/v1/reset/S3cret")

    assert not [text for text in lines.texts() if "S3cret" in text]
    assert any("/v1/reset/*** " in text for text in lines.texts())


def test_s81_a_mount_below_a_mount_is_masked_too(project: Project, ask: Ask, lines: Lines) -> None:
    inner, middle, app = (
        project(files, root=name) for name, files in (("a", RESET), ("b", FILES), ("c", FILES))
    )
    middle.mount("/inner", inner)
    app.mount("/middle", middle)

    ask(app, "GET", "/middle/inner/v1/reset/S3cret")

    assert not [text for text in lines.texts() if "S3cret" in text]


@pytest.mark.parametrize(
    ("name", "error"), [("raises", "before"), ("nothing", "/legacy sent no response")]
)
def test_a_failure_before_the_response_is_a_problem(
    app: Application, ask: Ask, lines: Lines, name: str, error: str
) -> None:
    answer = ask(app, "GET", f"/legacy/{name}")

    assert (answer.status, answer.fields("x-seen")) == (500, ["500 None"])
    assert answer.json()["title"] == "Internal Server Error"
    (found,) = lines.errors()
    assert error in str(found)


def test_a_failure_after_the_response_is_in_its_line(
    app: Application, ask: Ask, lines: Lines
) -> None:
    answer = ask(app, "GET", "/legacy/raises_after")

    assert (answer.status, answer.body) == (500, b"own page")
    (found,) = lines.errors()
    assert str(found) == "after"


def test_work_after_the_response_goes_on_when_it_is_sent(
    app: Application, exchange: type[Exchange], legacy: Legacy
) -> None:
    async def main() -> None:
        answer = await exchange("GET", "/legacy/works_on").run(app)
        assert (answer.body, legacy.notes) == (b"plain", [])
        legacy.after.set()
        await app.lifespan.run_shutdown()
        assert legacy.notes == ["worked on"]

    asyncio.run(asyncio.wait_for(main(), 20))


def test_a_client_that_leaves_ends_the_response(
    app: Application, exchange: type[Exchange], legacy: Legacy
) -> None:
    async def main() -> None:
        made = exchange("GET", "/legacy/endless")
        running = asyncio.ensure_future(made.run(app))
        await made.first_chunk.wait()
        made.gone.set()
        await legacy.left.wait()
        await running

    asyncio.run(asyncio.wait_for(main(), 20))


def test_head_keeps_the_header_of_the_application(app: Application, ask: Ask) -> None:
    answer = ask(app, "HEAD", "/legacy/x")

    assert (answer.status, answer.body, answer.fields("x-own")) == (201, b"", ["1"])


def test_routes_come_before_a_mount_and_others_stay_404(app: Application, ask: Ask) -> None:
    assert ask(app, "GET", "/v1").body == b"ok"
    assert ask(app, "GET", "/legacyx").status == 404


# -- sockets


class Sockets:
    """An ASGI application of sockets: accepts with a subprotocol, echoes, or refuses."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        assert (await receive())["type"] == "websocket.connect"
        if scope["path"].endswith("/refused"):
            await send({"type": "websocket.close", "code": 4001})
            return
        subprotocol = (scope["subprotocols"] or [None])[0]
        await send({"type": "websocket.accept", "subprotocol": subprotocol})
        await send({"type": "websocket.send", "text": f"{scope['root_path']} {scope['path']}"})
        while (message := await receive())["type"] == "websocket.receive":
            if message["text"] == "boom":
                raise LookupError("in a socket")
            await send({"type": "websocket.send", "text": message["text"]})


@pytest.fixture
def sockets(project: Project) -> Application:
    made = project(FILES)
    made.mount("/legacy", Sockets())
    return made


def test_a_socket_below_a_mount_is_served(sockets: Application, talk: Talk, lines: Lines) -> None:
    client = talk(sockets, "/legacy/ws", "a", "b", subprotocols=["chat"])

    assert client.texts == ["/legacy /legacy/ws", "a", "b"]
    assert client.sent[0]["subprotocol"] == "chat"
    assert b"x-request-id" in dict(client.sent[0]["headers"])
    assert any(text.startswith("WEBSOCKET /legacy/ws 1001 ") for text in lines.texts())


def test_a_socket_can_be_refused_and_fail(sockets: Application, talk: Talk, lines: Lines) -> None:
    assert talk(sockets, "/legacy/refused").kinds == ["close"]
    assert talk(sockets, "/legacy/ws", "boom", stays=True).code == 1011
    (found,) = lines.errors()
    assert str(found) == "in a socket"
    foreign = talk(sockets, "/legacy/ws", headers=[("origin", "http://elsewhere.example")])
    assert foreign.refusal.status == 403


# -- lifespan


class Living:
    """An ASGI application that notes its lifespan in a list."""

    def __init__(self, notes: list[str], *, fails: bool = False) -> None:
        self.notes = notes
        self.fails = fails

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            self.notes.append(f"request {scope['state']}")
            await send({"type": "http.response.start", "status": 204, "headers": []})
            await send({"type": "http.response.body"})
            return
        await receive()
        if self.fails:
            await send({"type": "lifespan.startup.failed", "message": "no database"})
            return
        self.notes.append("mounted up")
        scope["state"]["pool"] = 1
        await send({"type": "lifespan.startup.complete"})
        await receive()
        self.notes.append("mounted down")
        await send({"type": "lifespan.shutdown.complete"})


HOOKS = """
    from Services.journal import notes

    def up():
        notes.append("up")

    def down():
        notes.append("down")

    on_startup = [up]
    on_shutdown = [down]
    """


@pytest.fixture
def living(project: Project) -> Application:
    return project({**FILES, "hooks.py": HOOKS, "Services/journal.py": "notes = []\n"})


def test_its_lifespan_runs_inside_the_hooks_of_the_project(
    living: Application, exchange: type[Exchange]
) -> None:
    async def main() -> list[str]:
        living.boot()
        notes: list[str] = living.project.boot_files.on_startup[0].__globals__["notes"]
        living.mount("/legacy", Living(notes))
        await living.lifespan.run_startup()
        await exchange("GET", "/legacy").run(living)
        await living.lifespan.run_shutdown()
        return notes

    notes = asyncio.run(asyncio.wait_for(main(), 20))
    assert notes == ["up", "mounted up", "request {'pool': 1}", "mounted down", "down"]


def test_a_mounted_application_that_cannot_start_stops_the_start(living: Application) -> None:
    living.boot()
    notes: list[str] = living.project.boot_files.on_startup[0].__globals__["notes"]
    living.mount("/legacy", Living(notes, fails=True))
    message = "Startup hook of the mount /legacy failed: .* did not start: no database"
    with pytest.raises(BootError, match=message):
        asyncio.run(living.lifespan.run_startup())
    assert notes == ["up", "down"]


@pytest.mark.parametrize("receives", [False, True])
def test_a_mounted_application_without_a_lifespan_leaves_no_error(
    living: Application, exchange: type[Exchange], caplog: pytest.LogCaptureFixture, receives: bool
) -> None:
    async def requests_only(scope: Any, receive: Any, send: Any) -> None:
        if receives:
            await receive()
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    async def main() -> int:
        living.mount("/plain", requests_only)
        await living.lifespan.run_startup()
        gc.collect()
        one = exchange("GET", "/plain")
        await one.run(living)
        await living.lifespan.run_shutdown()
        return one.answer.status

    assert asyncio.run(asyncio.wait_for(main(), 20)) == 204
    assert [one.getMessage() for one in caplog.records if one.levelno > logging.INFO] == []


def test_a_parent_runs_the_hooks_by_the_lifespan_that_is_passed_on(living: Application) -> None:
    async def main() -> list[str]:
        living.state.pool = 1
        async with living.lifespan(object()) as state:
            notes: list[str] = living.project.boot_files.on_startup[0].__globals__["notes"]
            assert (notes, state) == (["up"], {"pool": 1})
        return notes

    assert asyncio.run(asyncio.wait_for(main(), 20)) == ["up", "down"]


def test_a_mount_of_another_kind_or_too_late_is_refused(app: Application, ask: Ask) -> None:
    for wrong in ("web", 5, Legacy):
        with pytest.raises(TypeError, match="must be a StaticFiles or an ASGI application, got"):
            app.mount("/other", wrong)  # pyright: ignore[reportArgumentType]
    ask(app, "GET", "/v1")
    with pytest.raises(RuntimeError, match="must be mounted before the startup ends, got '/late'"):
        app.mount("/late", Legacy())
