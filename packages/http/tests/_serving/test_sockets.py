"""A WebSocket from handshake to log line: who may open it, how it ends, what is logged."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from conftest import Socket

from treefold_http import Application, Settings, WebSocket, under
from treefold_http._serving.open_sockets import OpenSockets
from treefold_logging import flush, get_logger

if TYPE_CHECKING:
    from conftest import Lines

Project = Callable[..., Application]
Talk = Callable[..., "Socket"]

SOCKET = "Api/v1/X/Socket.py"

ECHO = """
async def handler(websocket):
    await websocket.accept()
    async for text in websocket.iter_text():
        await websocket.send_text(text)
"""


def lines_of(lines: Lines) -> list[str]:
    return [text for text in lines.texts() if text.startswith("WEBSOCKET")]


def line(text: str) -> str:
    """The beginning of a line: method, path, code."""
    return text.partition("ms")[0].rpartition(" ")[0]


# -- its life


def test_a_socket_is_served_by_the_file_at_its_path(serving: Project, talk: Talk) -> None:
    app = serving(ECHO, SOCKET)
    client = talk(app, "/v1/x", "a", "b")

    assert client.texts == ["a", "b"]
    assert client.kinds == ["accept", "send", "send"]


@pytest.mark.parametrize("name", ["Socket", "Ws", "Websocket", "websocket"])
def test_each_name_of_a_socket_file_serves(project: Project, talk: Talk, name: str) -> None:
    app = project({f"Api/v1/X/{name}.py": ECHO})

    assert talk(app, "/v1/x", "a").texts == ["a"]


def test_a_handler_gets_what_its_parameters_ask_for(serving: Project, talk: Talk) -> None:
    app = serving(
        """
        from typing import Annotated

        def config(websocket: WebSocket):
            return websocket.headers["x-a"]

        async def handler(
            ws: WebSocket, id: int, limit: int = 5, a: str = Depends(config),
            b: Annotated[str, Header()] = "", sid: Annotated[str, Cookie()] = "",
        ):
            await ws.accept()
            await ws.send_json([id, limit, a, b, sid, ws.path_params, ws.route])
        """,
        "Api/v1/X/[id]/Socket.py",
    )
    client = talk(app, "/v1/x/7?limit=9", headers=[("x-a", "1"), ("b", "2"), ("cookie", "sid=3")])

    assert json.loads(client.texts[0]) == [7, 9, "1", "2", "3", {"id": "7"}, "/v1/x/{id}"]


ENDINGS = [
    ("await websocket.accept()", 1000, "INFO"),
    ("await websocket.accept(); await websocket.close(4000)", 4000, "INFO"),
    ("await websocket.accept(); raise ValueError('s3cret')", 1011, "ERROR"),
    ("await websocket.accept(); raise SystemExit(1)", 1011, "ERROR"),
    ("await websocket.accept(); raise KeyboardInterrupt", 1011, "ERROR"),
    ("await websocket.accept(); import asyncio; raise asyncio.CancelledError", 1011, "ERROR"),
    ("await websocket.accept(); raise BaseException('x')", 1011, "ERROR"),
    ("await websocket.accept(); raise GeneratorExit", 1011, "ERROR"),
    ("await websocket.accept(); raise HTTPError(503)", 1011, "ERROR"),
    ("await websocket.accept(); raise NotFound('no room')", 1008, "INFO"),
    ("await websocket.accept(); raise NotFound('😀' * 50)", 1008, "INFO"),
    ("await websocket.accept(); raise NotFound('\\ud800')", 1008, "INFO"),
    ("await websocket.accept(); raise WebSocketDisconnect(4000)", 1000, "INFO"),
    ("await websocket.accept(); await websocket.receive_bytes()", 1003, "INFO"),
    ("await websocket.accept(); await websocket.receive_json()", 1007, "INFO"),
    ("await websocket.accept(); await websocket.send_json(object())", 1011, "ERROR"),
]


@pytest.mark.parametrize(("body", "code", "level"), ENDINGS, ids=lambda v: str(v)[-40:])
def test_every_way_to_end_closes_with_its_code_and_one_line(
    serving: Project, talk: Talk, lines: Lines, body: str, code: int, level: str
) -> None:
    app = serving(f"async def handler(websocket):\n    {body}\n", SOCKET)
    client = talk(app, "/v1/x", "{")

    assert client.kinds == ["accept", "close"]
    assert client.code == code
    assert b"s3cret" not in str(client.sent).encode()
    records = [r for r in lines.records if r.getMessage().startswith("WEBSOCKET")]
    assert [(line(r.getMessage().replace("-> ", "")), r.levelname) for r in records] == [
        (f"WEBSOCKET /v1/x {code}", level)
    ]


def test_an_exception_of_the_handler_is_in_the_line_with_its_traceback(
    serving: Project, talk: Talk, lines: Lines
) -> None:
    app = serving(
        "async def handler(websocket):\n    await websocket.accept()\n    raise ValueError('no')\n",
        SOCKET,
    )
    talk(app, "/v1/x")

    assert [type(error) for error in lines.errors()] == [ValueError]
    assert [line(text) for text in lines_of(lines)] == ["WEBSOCKET /v1/x -> 1011"]


def test_a_client_that_leaves_ends_the_handler_and_is_no_error(
    serving: Project, talk: Talk, lines: Lines
) -> None:
    app = serving(
        """
        async def handler(websocket):
            await websocket.accept()
            await websocket.receive_text()
        """,
        SOCKET,
    )
    client = talk(app, "/v1/x")

    assert client.kinds == ["accept"]
    assert [line(text) for text in lines_of(lines)] == ["WEBSOCKET /v1/x 1001"]
    assert lines.errors() == []


@pytest.mark.parametrize("lost", [0, 1, 2])
def test_a_connection_that_breaks_at_any_message_is_no_error(
    serving: Project, talk: Talk, lines: Lines, lost: int
) -> None:
    app = serving(
        "async def handler(websocket):\n"
        "    await websocket.accept()\n    await websocket.send_text('a')\n",
        SOCKET,
    )
    client = talk(app, "/v1/x", lost=lost)

    assert len(client.sent) == lost
    assert lines.errors() == []
    assert len(lines_of(lines)) == 1


def test_a_connection_that_breaks_while_it_is_refused_is_no_error(
    serving: Project, talk: Talk, lines: Lines
) -> None:
    talk(serving(ECHO, SOCKET), "/v1/none", lost=0)

    assert lines.errors() == []
    assert [line(text) for text in lines_of(lines)] == ["WEBSOCKET /v1/none 404"]


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        ("return None", ["http.response.start", "http.response.body"]),
        ("raise WebSocketDisconnect(4000)", ["http.response.start", "http.response.body"]),
        ("await websocket.close()", ["close"]),
    ],
)
def test_a_handler_that_never_accepts_refuses(
    serving: Project, talk: Talk, lines: Lines, body: str, kinds: list[str]
) -> None:
    client = talk(serving(f"async def handler(websocket):\n    {body}\n", SOCKET), "/v1/x")

    assert client.kinds == kinds
    assert [line(text) for text in lines_of(lines)] == ["WEBSOCKET /v1/x 403"]


# -- what is refused before it is accepted

CALLED = """
async def handler(websocket, id: int = 0, token: int = 0):
    raise SystemExit("the handler was called")
"""

REFUSED: list[tuple[str, dict[str, Any], int]] = [
    ("/v1/none", {}, 404),
    ("/", {}, 404),
    ("/x", {}, 404),
    ("/v9/x", {}, 404),
    ("/v1/x/..", {}, 404),
    ("/v1/%ff", {}, 400),
    ("/v1/get", {}, 405),
    ("/v1/x?token=no", {}, 422),
    ("/v1/x?a=%ff", {}, 400),
    ("/v1/x", {"host": False}, 400),
    ("/v1/x", {"headers": [("host", "other")]}, 400),
    ("/v1/x", {"headers": [("a", "b" * 40_000)]}, 431),
    ("/v1/x?" + "a" * 9000, {}, 414),
    ("/v1/broken", {}, 500),
    ("/v1/plain", {}, 500),
]


@pytest.mark.parametrize(
    ("target", "options", "status"), REFUSED, ids=[f"{r[0][:14]}-{r[2]}" for r in REFUSED]
)
def test_what_cannot_be_served_is_refused_as_an_http_answer_and_one_line(
    project: Project,
    talk: Talk,
    lines: Lines,
    target: str,
    options: dict[str, Any],
    status: int,
) -> None:
    app = project(
        {
            SOCKET: CALLED,
            "Api/v1/Get/Get.py": "def handler(): ...",
            "Api/v1/Broken/Socket.py": "1 / 0",
            "Api/v1/Plain/Socket.py": "def handler(websocket): ...",
        }
    )
    app.boot()
    lines.records.clear()
    client = talk(app, target, **options)

    assert client.kinds == ["http.response.start", "http.response.body"]
    assert client.refusal.status == status
    assert client.refusal.json()["status"] == status
    assert client.refusal.fields("content-type") == ["application/problem+json"]
    assert client.refusal.fields("x-content-type-options") == ["nosniff"]
    identity = client.refusal.fields("x-request-id")
    assert client.refusal.json()["request_id"] == identity[0]
    assert len(lines_of(lines)) == 1
    assert f" {status} " in lines_of(lines)[0]
    assert f"id={identity[0]}" in lines_of(lines)[0]
    if status == 405:
        assert client.refusal.fields("allow") == ["GET"]


def test_a_server_that_cannot_answer_http_closes_instead(
    serving: Project, talk: Talk, lines: Lines
) -> None:
    client = talk(serving(CALLED, SOCKET), "/v1/none", more={"extensions": {}})

    assert client.sent == [{"type": "websocket.close", "code": 1008}]
    assert [line(text) for text in lines_of(lines)] == ["WEBSOCKET /v1/none 404"]


@pytest.mark.parametrize("dev", [False, True])
def test_a_handler_that_fails_before_accept_is_a_500_that_hides_why(
    serving: Project, talk: Talk, lines: Lines, dev: bool
) -> None:
    app = serving("async def handler(websocket):\n    raise ValueError('s3cr')\n", SOCKET, dev=dev)
    client = talk(app, "/v1/x")

    assert client.refusal.status == 500
    assert (b"s3cr" in client.refusal.body) is dev
    assert [type(error) for error in lines.errors()] == [ValueError]


def test_errors_without_a_json_form_are_a_500(serving: Project, talk: Talk) -> None:
    app = serving(
        "async def handler(websocket):\n    raise HTTPError(422, errors=[{'a': object()}])\n",
        SOCKET,
    )

    assert talk(app, "/v1/x").refusal.status == 500


def test_a_plain_function_as_a_handler_is_refused_at_boot(serving: Project) -> None:
    app = serving("def handler(websocket): ...", SOCKET)
    app.boot()

    assert [broken.error for broken in app.report.broken] == [
        "InjectionError: The handler of a WebSocket must be an `async def`: it awaits messages"
    ]


@pytest.mark.parametrize(
    "parameter",
    [
        "a: Annotated[dict, Body()]",
        "a: Annotated[str, Form()]",
        "a: Annotated[UploadFile, File()]",
        "a: UploadFile",
        "a: Model",
        "a: Model | None = None",
        "request",
        "a: Request",
    ],
)
def test_a_parameter_that_needs_a_body_is_refused_at_boot(serving: Project, parameter: str) -> None:
    app = serving(
        "from dataclasses import dataclass\nfrom typing import Annotated\n"
        "@dataclass\nclass Model:\n    a: int\n"
        f"async def handler(websocket, {parameter}): ...\n",
        SOCKET,
    )
    app.boot()

    (broken,) = app.report.broken
    assert broken.error.startswith("InjectionError: ")


# -- the origin

ALLOWED = Settings(ws_allowed_origins=("https://app.example", "null"))


@pytest.mark.parametrize(
    ("origins", "scheme", "allowed"),
    [
        ([], "ws", True),
        (["http://example.localhost"], "ws", True),
        (["http://example.localhost:80"], "ws", True),
        (["HTTP://EXAMPLE.localhost"], "ws", True),
        (["https://example.localhost"], "wss", True),
        (["https://example.localhost:443"], "wss", True),
        (["https://example.localhost"], "ws", False),
        (["http://example.localhost"], "wss", False),
        (["http://example.localhost:8080"], "ws", False),
        (["https://evil.example"], "ws", False),
        (["null"], "ws", False),
        ([""], "ws", False),
        (["example.localhost"], "ws", False),
        (["http://example.localhost.evil.example"], "ws", False),
        (["http://evilexample.localhost"], "ws", False),
        (["http://example.localhost@evil.example"], "ws", False),
        (["http://user@example.localhost"], "ws", False),
        (["http://example.localhost/path"], "ws", False),
        (["http://example.localhost?x"], "ws", False),
        (["http://example.localhost#x"], "ws", False),
        (["ws://example.localhost"], "ws", False),
        (["http://example.localhost:port"], "ws", False),
        (["http://[::1"], "ws", False),
        (["http://example.localhost http://evil.example"], "ws", False),
        (["http://example.localhost", "http://example.localhost"], "ws", False),
        (["http://example.localhost", "https://evil.example"], "ws", False),
    ],
    ids=str,
)
def test_only_this_site_and_what_is_no_browser_may_open_a_socket(
    serving: Project, talk: Talk, origins: list[str], scheme: str, allowed: bool
) -> None:
    client = talk(
        serving(ECHO if allowed else CALLED, SOCKET),
        "/v1/x",
        headers=[("origin", origin) for origin in origins],
        more={"scheme": scheme},
    )

    assert client.kinds[0] == ("accept" if allowed else "http.response.start")
    if not allowed:
        assert client.refusal.status == 403


@pytest.mark.parametrize(
    ("origin", "allowed"),
    [
        ("https://app.example", True),
        ("null", True),
        ("http://app.example", False),
        ("https://app.example.evil", False),
        ("https://app.exampl", False),
        ("https://evil", False),
    ],
)
def test_an_origin_of_the_settings_may_open_a_socket(
    serving: Project, talk: Talk, origin: str, allowed: bool
) -> None:
    app = serving(ECHO, SOCKET, settings=ALLOWED)
    client = talk(app, "/v1/x", headers=[("origin", origin)])

    assert client.kinds[0] == ("accept" if allowed else "http.response.start")


# -- paths and versions


def test_the_default_version_serves_sockets_and_says_so(
    project: Project, talk: Talk, lines: Lines
) -> None:
    app = project({SOCKET: ECHO, "Api/v1/Token/[token]/Socket.py": ECHO}, default_version="latest")

    assert talk(app, "/x", "a").texts == ["a"]
    assert talk(app, "/token/s3cret", "a").texts == ["a"]
    assert talk(app, "/none").refusal.status == 404
    assert [text for text in lines.texts() if text.startswith("no version")] == [
        "no version in WEBSOCKET /x -> served v1",
        "no version in WEBSOCKET /token/*** -> served v1",
    ]


def test_a_mounted_application_leaves_the_root_path_out(serving: Project, talk: Talk) -> None:
    app = serving(ECHO, SOCKET)

    assert talk(app, "/sub/v1/x", "a", more={"root_path": "/sub"}).texts == ["a"]


def test_no_secret_of_the_target_is_in_any_line(project: Project, talk: Talk, lines: Lines) -> None:
    app = project({"Api/v1/[token]/Socket.py": ECHO})
    talk(app, "/v1/s3cret?access_token=s3cret&a=1", "s3cret")

    assert "s3cret" not in "\n".join(lines.texts())
    assert lines_of(lines)[0].startswith("WEBSOCKET /v1/***?access_token=***&a=1 1001 ")


@pytest.mark.parametrize(
    ("target", "headers", "status"),
    [
        ("/v1/s3cret", [("origin", "http://elsewhere")], 403),
        ("/v1/s3cret/page", [], 405),
        ("/sub/v1/s3cret/page", [], 405),
        ("/s3cret/page", [], 405),
    ],
)
def test_no_secret_of_the_target_is_in_the_line_of_a_refusal(
    project: Project,
    talk: Talk,
    lines: Lines,
    target: str,
    headers: list[tuple[str, str]],
    status: int,
) -> None:
    page = "async def handler(request): ..."
    app = project(
        {"Api/v1/[token]/Socket.py": ECHO, "Api/v1/[token]/Page/Get.py": page},
        default_version="latest",
    )
    talk(app, target, headers=headers, more={"root_path": "/sub"})

    assert "s3cret" not in "\n".join(lines.texts())
    assert f"/*** {status} " in lines_of(lines)[0].replace("/page", "")


@pytest.mark.parametrize(("sent", "kept"), [("abc-1", True), ("a b", False), ("a\r\nb", False)])
def test_an_inbound_request_id_is_honoured_where_it_is_safe(
    serving: Project, talk: Talk, lines: Lines, sent: str, kept: bool
) -> None:
    client = talk(serving(ECHO, SOCKET), "/v1/x", headers=[("x-request-id", sent)])
    (identity,) = [value for name, value in client.sent[0]["headers"] if name == b"x-request-id"]

    assert (identity == sent.encode()) is kept
    assert f"id={identity.decode()}" in lines_of(lines)[0]


def test_sockets_at_once_keep_their_ids_apart(
    serving: Project, socket: type[Socket], lines: Lines
) -> None:
    app = serving(
        """
        from treefold_logging import get_logger

        def plain():
            get_logger().info("in a thread")

        async def later():
            get_logger().info("in the background")

        async def handler(websocket, background, a=Depends(plain)):
            await websocket.accept()
            get_logger().info("in the handler")
            background.add(later)
        """,
        SOCKET,
    )

    async def main() -> None:
        clients = [socket("/v1/x", headers=[("x-request-id", f"id-{n}")]) for n in range(50)]
        await asyncio.gather(*(client.run(app) for client in clients))
        await app.background.drain_tasks(5)

    app.boot()
    lines.records.clear()
    asyncio.run(main())
    ids = [getattr(record, "request_id", None) for record in lines.records]
    assert {ids.count(f"id-{n}") for n in range(50)} == {4}


# -- dependencies and middleware

JOURNAL = """
entries = []

async def entered():
    entries.append("in")
    try:
        yield "value"
        entries.append("through")
    except BaseException as error:
        entries.append(type(error).__name__)
        raise
"""


@pytest.mark.parametrize(
    ("body", "entry", "code"),
    [
        ("pass", "through", 1000),
        ("raise ValueError", "ValueError", 1011),
        ("raise NotFound", "NotFound", 1008),
        ("await websocket.receive_text()", "WebSocketDisconnect", None),
    ],
)
def test_a_dependency_is_left_and_sees_how_the_handler_ended(
    serving: Project, talk: Talk, body: str, entry: str, code: int | None
) -> None:
    app = serving(
        f"{JOURNAL}\nasync def handler(websocket, a=Depends(entered)):\n"
        f"    await websocket.accept()\n    {body}\n",
        SOCKET,
    )
    client = talk(app, "/v1/x")
    (module,) = app.project.modules.values()

    assert getattr(module, "handler").__globals__["entries"] == ["in", entry]  # noqa: B009 - a union
    assert client.code == code


def test_a_dependency_that_fails_afterwards_is_1011_and_an_error(
    serving: Project, talk: Talk, lines: Lines
) -> None:
    app = serving(
        """
        async def broken():
            yield
            raise LookupError("afterwards")

        async def handler(websocket, a=Depends(broken)):
            await websocket.accept()
        """,
        SOCKET,
    )

    assert talk(app, "/v1/x").code == 1011
    assert [str(error) for error in lines.errors()] == ["afterwards"]


MIDDLEWARE = """
class Guard:
    async def websocket(self, websocket, call_next):
        websocket.state.seen = [*getattr(websocket.state, "seen", []), self.name]
        await call_next(websocket)

    def __init__(self, name):
        self.name = name

async def http_only(request, call_next):
    raise SystemExit("not for sockets")

class Closed:
    async def websocket(self, websocket, call_next):
        await websocket.close(4001)

class Limited:
    async def websocket(self, websocket, call_next):
        raise TooManyRequests(headers={"Retry-After": "5"})
"""


def chained(project: Project, entries: str, own: str = "") -> Application:
    return project(
        {
            "Middleware/__init__.py": "from treefold_http import *\n"
            "from Middleware.kinds import *\n"
            f"middlewares = [{entries}]\n",
            "Middleware/kinds.py": f"from treefold_http import *\n{MIDDLEWARE}",
            SOCKET: f"""
from Middleware.kinds import *
middlewares = [{own}]
async def handler(websocket):
    await websocket.accept()
    await websocket.send_json(websocket.state.seen)
""",
        }
    )


def test_the_socket_side_of_middleware_runs_outermost_first(project: Project, talk: Talk) -> None:
    app = chained(
        project,
        'Guard("a"), requests_only(http_only), under("/v1/x", Guard("b")),under("/docs", Closed())',
        own='Guard("own")',
    )

    assert talk(app, "/v1/x").texts == ['["a","b","own"]']


def test_a_middleware_may_refuse_with_an_answer(project: Project, talk: Talk) -> None:
    client = talk(chained(project, "Limited()"), "/v1/x")

    assert client.refusal.status == 429
    assert client.refusal.fields("retry-after") == ["5"]


def test_a_middleware_may_close_without_the_handler(project: Project, talk: Talk) -> None:
    assert talk(chained(project, "Closed()"), "/v1/x").kinds == ["close"]


# -- the end of the server


WAITING = """
async def handler(websocket):
    await websocket.accept()
    async for _ in websocket.iter_text():
        pass
"""


def test_the_shutdown_closes_open_sockets_with_1012(
    serving: Project, socket: type[Socket], lines: Lines
) -> None:
    app = serving(WAITING, SOCKET)

    async def main() -> None:
        await app.lifespan.run_startup()
        clients = [socket("/v1/x", stays=True) for _ in range(3)]
        running = [asyncio.ensure_future(client.run(app)) for client in clients]
        for client in clients:
            await client.until("accept")
        app.begin_shutdown()
        async with asyncio.timeout(5):
            await asyncio.gather(*running)
        assert [client.code for client in clients] == [1012] * 3
        await app.lifespan.run_shutdown()

    asyncio.run(main())
    assert [line(text) for text in lines_of(lines)] == ["WEBSOCKET /v1/x 1012"] * 3


def test_one_socket_that_hangs_or_fails_does_not_keep_the_others_open(
    project: Project, socket: type[Socket]
) -> None:
    app = project({SOCKET: WAITING})

    async def main() -> None:
        sockets = OpenSockets()
        clients = [socket("/v1/x", stays=True) for _ in range(4)]
        ends: list[WebSocket] = [await client.open(app) for client in clients]
        never = asyncio.Event()

        async def hang(message: Any) -> None:
            await never.wait()

        async def fail(message: Any) -> None:
            raise RuntimeError("the server is in a bad state")

        for websocket in ends[:3]:
            await websocket.accept()
        ends[0]._send = hang
        ends[1]._send = fail
        for websocket in ends:
            sockets.add_socket(websocket)
        closing = asyncio.ensure_future(sockets.close_all())
        await clients[2].until("close")
        assert clients[3].sent == []
        closing.cancel()
        await asyncio.wait([closing])

    async def limited() -> None:
        async with asyncio.timeout(5):
            await main()

    asyncio.run(limited())


def test_a_cancellation_leaves_dependencies_goes_on_and_is_logged_as_lost(
    serving: Project, socket: type[Socket], lines: Lines
) -> None:
    app = serving(
        f"{JOURNAL}\nimport asyncio\nasync def handler(websocket, a=Depends(entered)):\n"
        "    await websocket.accept()\n    await asyncio.Event().wait()\n",
        SOCKET,
    )

    async def main() -> None:
        client = socket("/v1/x", stays=True)
        running = asyncio.ensure_future(client.run(app))
        await client.until("accept")
        running.cancel()
        await asyncio.wait([running])
        assert running.cancelled()

    asyncio.run(main())
    (module,) = app.project.modules.values()
    assert getattr(module, "handler").__globals__["entries"] == ["in", "CancelledError"]  # noqa: B009 - a union
    assert [line(text) for text in lines_of(lines)] == ["WEBSOCKET /v1/x 1006"]
    assert lines.errors() == []


def test_a_timeout_of_the_module_closes_with_1011(
    serving: Project, talk: Talk, lines: Lines
) -> None:
    app = serving(f"timeout = 0.01\n{WAITING}", SOCKET)

    assert talk(app, "/v1/x", stays=True).code == 1011


def test_a_socket_of_a_prefix_is_refused_like_its_route(project: Project, talk: Talk) -> None:
    app = project({SOCKET: ECHO})
    app.boot()

    class Refuse:
        async def websocket(self, websocket: WebSocket, call_next: Any) -> None:
            await websocket.close()

    entry = under("/v1/X", Refuse())
    (route,) = app.table.routes
    assert entry.covers_route(route)
    assert talk(app, "/v1//x/", "a").texts == ["a"]


def test_a_refused_socket_has_no_line_below_the_level_of_the_log(
    project: Project, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    app = project({SOCKET: ECHO})
    app.boot()
    # as in production: pytest adds handlers of its own, for which records are made
    monkeypatch.setattr(get_logger(), "handlers", get_logger().handlers[:1])
    for level, lines in ((logging.ERROR, 0), (logging.INFO, 1)):
        flush()
        capfd.readouterr()
        get_logger().setLevel(level)
        talk = Socket("/v1/x", headers=[("host", "a b")], host=False)
        asyncio.run(talk.run(app))
        flush()
        assert talk.refusal.status == 400
        assert capfd.readouterr().err.count(" 400 ") == lines
