"""The middleware of sockets: every form guards a handshake, or the socket is an error at boot."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, under
from treefold_http._chains.middleware_chain import check_middleware_entry, requests_only
from treefold_http._chains.socket_chain import can_guard_sockets
from treefold_http.cache import cached
from treefold_http.middleware import CORS, CSRF, GZip, SecurityHeaders

if TYPE_CHECKING:
    from conftest import Answer, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

SOCKET = "Api/v1/Chat/[room]/Socket.py"
CHAT = "async def handler(websocket):\n    await websocket.accept()\n"
GET = "async def handler(request):\n    return 'ok'\n"
GUARDS = """
from treefold_http import Forbidden, HTTPError, Response, requests_only, under

async def guard(request, call_next):
    raise Forbidden("guarded")

class Http:
    async def http(self, request, call_next):
        raise Forbidden("guarded")

class Both(Http):
    def before(self, request):
        raise Forbidden("hooks of an object with http are not called")

class Before:
    def __init__(self, answer=None):
        self.answer = answer

    def before(self, request):
        assert request.method == "GET"
        if request.headers.get("x-key") == "right":
            return None
        if self.answer is None:
            raise Forbidden("guarded")
        return self.answer

class Hooks(Before):
    def after(self, request, response):
        raise SystemExit("not for sockets")

class After:
    def after(self, request, response):
        raise SystemExit("not for sockets")

class Stamp:
    async def http(self, request, call_next):
        response = await call_next(request)
        response.headers["x-stamp"] = "1"
        return response

    async def websocket(self, websocket, call_next):
        await call_next(websocket)

class ForRoute:
    def for_route(self, route, entries):
        return guard
"""


def chat(project: Project, entries: str = "", own: str = "", **options: Any) -> Application:
    module = f"from Middleware.guards import *\nmiddlewares = [{entries}]\n"
    return project(
        {
            "Middleware/guards.py": GUARDS,
            "Middleware/__init__.py": module,
            SOCKET: f"from Middleware.guards import *\nmiddlewares = [{own}]\n{CHAT}",
            "Api/v1/Ok/Get.py": GET,
        },
        **options,
    )


@pytest.mark.parametrize(
    ("entries", "own", "status"),
    [
        ("Before()", "", 403),
        ("Hooks()", "", 403),
        ("under('/v1/chat', Before())", "", 403),
        ("", "Before()", 403),
        ("Stamp(), Before()", "", 403),
        ("Before(('later', 429))", "", 429),
        ("Before(Response.text('closed', 503))", "", 503),
        ("Before({'no': 1})", "", 200),
        ("Before(object())", "", 500),
    ],
)
def test_s71_before_runs_for_handshakes(
    project: Project, talk: Talk, entries: str, own: str, status: int
) -> None:
    app = chat(project, entries, own)

    refused = talk(app, "/v1/chat/a")
    assert (refused.kinds[0], refused.refusal.status) == ("http.response.start", status)
    assert talk(app, "/v1/chat/a", headers=[("x-key", "right")]).kinds[0] == "accept"


def test_an_answer_of_a_hook_is_no_error_in_the_log(
    project: Project, talk: Talk, lines: Lines
) -> None:
    talk(chat(project, "Before('later')"), "/v1/chat/a")

    assert lines.errors() == []


@pytest.mark.parametrize(
    ("entries", "own", "name"),
    [
        ("guard", "", "guard"),
        ("Http()", "", "Http"),
        ("Both()", "", "Both"),
        ("ForRoute()", "", "ForRoute"),
        ("under('/v1/chat', guard)", "", "guard"),
        ("under('/v1/chat/[room]', Http())", "", "Http"),
        ("under('/', guard)", "", "guard"),
        ("under('/*/chat', guard)", "", "guard"),
        ("", "guard", "guard"),
        ("Before(), guard", "", "guard"),
    ],
)
def test_s71_an_entry_that_cannot_guard_a_socket_is_named_at_boot(
    project: Project, ask: Ask, talk: Talk, entries: str, own: str, name: str
) -> None:
    app = chat(project, entries, own)

    assert talk(app, "/v1/chat/a", headers=[("x-key", "right")]).refusal.status in (403, 500)
    (broken,) = app.report.broken
    assert broken.file == SOCKET.removeprefix("Api/")
    assert (
        "Middleware of the socket /v1/chat/{room} must have a method before or websocket, got"
        f" {name!r}, which runs around requests only; write an object with"
        " `def before(self, request)`, or requests_only(...) if it guards nothing"
    ) in broken.error
    assert ask(app, "GET", "/v1/ok").status == (200 if own or "chat" in entries else 403)


@pytest.mark.parametrize(
    "entries",
    [
        "",
        "Stamp()",
        "After()",
        "requests_only(guard)",
        "requests_only(Http())",
        "under('/v1/chat', requests_only(guard))",
        "under('/v1/ok', guard)",
    ],
)
def test_an_entry_that_guards_no_socket_leaves_it_open(
    project: Project, talk: Talk, entries: str
) -> None:
    app = chat(project, entries)

    assert talk(app, "/v1/chat/a").kinds[0] == "accept"
    assert app.report.broken == ()


def test_an_entry_for_requests_only_still_runs_around_requests(project: Project, ask: Ask) -> None:
    assert ask(chat(project, "requests_only(guard)"), "GET", "/v1/ok").status == 403
    app = chat(project, "under('/v1/ok', requests_only(Stamp()))", root="other")
    assert ask(app, "GET", "/v1/ok").fields("x-stamp") == ["1"]


def test_what_is_marked_here_is_a_guard_elsewhere(project: Project, talk: Talk) -> None:
    app = chat(project, "requests_only(Before()), under('/v1/chat', Before())")

    assert talk(app, "/v1/chat/a").refusal.status == 403


@pytest.mark.parametrize(
    "entry", [CORS(["*"]), CSRF(), GZip(), SecurityHeaders(), cached(60)], ids=type
)
def test_shipped_entries_without_a_check_of_sockets_leave_them_open(
    project: Project, talk: Talk, entry: Any
) -> None:
    app = project({SOCKET: CHAT, "Middleware/__init__.py": "middlewares = []\n"})
    app.boot()
    listed: Any = app.project.middlewares
    listed.append(entry)
    app.overrides[print] = print  # plans all routes again

    assert talk(app, "/v1/chat/a").kinds[0] == "accept"


@pytest.mark.parametrize(
    "entry", [5, None, dict, object()], ids=["number", "none", "class", "object"]
)
def test_only_middleware_is_marked(entry: Any) -> None:
    with pytest.raises(TypeError, match="A middleware entry must be"):
        requests_only(entry)
    with pytest.raises(TypeError, match=r"got under\('/v1'\); write under\('/v1', requests_only"):
        requests_only(under("/v1", cached(60)))
    check_middleware_entry(requests_only(cached(60)))


def test_a_layer_without_a_side_guards_nothing_and_hides_nothing() -> None:
    class Nothing:
        websocket = None

    assert can_guard_sockets(Nothing())


# -- below a mount


async def legacy(scope: Any, receive: Any, send: Any) -> None:
    if scope["type"] == "websocket":
        await receive()
        await send({"type": "websocket.accept"})
        await send({"type": "websocket.close", "code": 1000})


@pytest.mark.parametrize(
    ("entries", "kind", "status"),
    [
        ("guard", "http.response.start", 500),
        ("under('/legacy', Http())", "http.response.start", 500),
        ("under('/legacy', Before())", "http.response.start", 403),
        ("under('/legacy/ws', Before())", "http.response.start", 403),
        ("under('/legacy/other', Before())", "accept", None),
        ("under('/legacy/other', guard)", "accept", None),
        ("requests_only(guard)", "accept", None),
    ],
)
def test_s71_a_socket_of_a_mounted_application_is_guarded(
    project: Project, talk: Talk, lines: Lines, entries: str, kind: str, status: int | None
) -> None:
    app = chat(project, f"{entries}, After()" if "After" in entries else entries)
    app.mount("/legacy", legacy)
    socket = talk(app, "/legacy/ws")

    assert socket.kinds[0] == kind
    assert status is None or socket.refusal.status == status
    named = [text for text in lines.texts() if "sockets below /legacy are refused" in text]
    assert len(named) == (status == 500)


def test_a_hook_refuses_after_the_layers_around_it(project: Project, talk: Talk) -> None:
    app = chat(project, "Stamp(), Before('no')")

    assert talk(app, "/v1/chat/a").refusal.body == b"no"
    asyncio.run(app.lifespan.run_shutdown())
