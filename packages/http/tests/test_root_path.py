"""The setting `root_path`: the prefix is cut where a request has it, and kept in links."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings, SettingsError

if TYPE_CHECKING:
    from conftest import Answer, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

SHOW = """
    async def handler(request):
        return [str(request.url), request.path, request.raw_path.decode(), request.root_path]
    """
FILES = {
    "Api/v1/Get.py": SHOW,
    "Api/v1/Show/[name]/Get.py": SHOW,
    "Api/v1/[token]/Page/Get.py": SHOW,
    "Api/v1/Chat/Socket.py": """
        async def handler(websocket):
            await websocket.accept()
            await websocket.send_json([str(websocket.url), websocket.root_path])
        """,
    "web/guide/index.html": "guide",
    "hooks.py": """
        from treefold_http import StaticFiles

        async def mount(app):
            app.mount("/static", StaticFiles("web", index="index.html"))

        on_startup = [mount]
        """,
}


@pytest.fixture
def app(project: Project) -> Application:
    settings = Settings(root_path="/api", health=True, default_version="latest")
    return project(FILES, dev=True, settings=settings)


URL = "http://example.localhost/api/v1/show/a%20b?q=1"


@pytest.mark.parametrize("target", ["/api/v1/show/a%20b?q=1", "/v1/show/a%20b?q=1"])
@pytest.mark.parametrize("server", ["", "/api", "/api/"])
def test_a_request_is_served_with_and_without_the_prefix(
    app: Application, ask: Ask, target: str, server: str
) -> None:
    path, _, query = target.partition("?")
    given = server.rstrip("/") + path
    more = {"root_path": server, "path": given.replace("%20", " "), "raw_path": given.encode()}
    answer = ask(app, "GET", f"/?{query}", more=more)

    assert answer.json() == [URL, "/api/v1/show/a b", "/api/v1/show/a%20b", "/api"]


@pytest.mark.parametrize("path", ["/api/v1/show/a%20b", "/v1/show/a%20b"])
def test_an_absolute_target_has_the_prefix_once(app: Application, ask: Ask, path: str) -> None:
    target = f"http://example.localhost{path}".encode()
    found = ask(app, "GET", "/?q=1", more={"path": "", "raw_path": target})
    twice = ask(app, "GET", "/", more={"path": "", "raw_path": target.replace(b"/v1", b"/api/v1")})

    assert found.json() == [URL, "/api/v1/show/a b", "/api/v1/show/a%20b", "/api"]
    assert twice.status == (404 if path.startswith("/api") else 200)


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("/api", 200),
        ("/api/", 200),
        ("/api/show/x", 200),
        ("/show/x", 200),
        ("/api/livez", 200),
        ("/livez", 200),
        ("/api/openapi.json", 200),
        ("/apiary/v1/show/x", 404),
        ("/API/v1/show/x", 404),
        ("/api/api/v1/show/x", 404),
        ("//api/v1/show/x", 404),
        ("/api/../v1/show/x", 404),
    ],
)
def test_the_prefix_is_cut_once_and_only_as_it_is_spelt(
    app: Application, ask: Ask, target: str, status: int
) -> None:
    assert ask(app, "GET", target).status == status


def test_a_server_that_sends_no_raw_path_is_served_alike(app: Application, ask: Ask) -> None:
    for target in ("/api/v1/show/x", "/v1/show/x"):
        answer = ask(app, "GET", target, more={"raw_path": None})
        assert answer.json()[1:] == ["/api/v1/show/x", "/api/v1/show/x", "/api"]


def test_a_parent_application_adds_its_own_prefix(app: Application, ask: Ask) -> None:
    for target in ("/sub/api/v1/show/x", "/sub/v1/show/x"):
        answer = ask(app, "GET", target, more={"root_path": "/sub"})
        assert answer.json()[1:] == ["/sub/api/v1/show/x", "/sub/api/v1/show/x", "/sub/api"]


@pytest.mark.parametrize("target", ["/api/v1/chat", "/v1/chat"])
def test_a_socket_is_served_with_and_without_the_prefix(
    app: Application, talk: Talk, target: str
) -> None:
    assert talk(app, target).texts == ['["ws://example.localhost/api/v1/chat","/api"]']


def test_documents_name_the_prefix_as_their_server(app: Application, ask: Ask) -> None:
    from treefold_http.openapi import openapi_document

    for target in ("/openapi.json", "/api/openapi.json", "/openapi/v1.json"):
        assert ask(app, "GET", target).json()["servers"] == [{"url": "/api"}]
    assert openapi_document(app)["servers"] == [{"url": "/api"}]


@pytest.mark.parametrize("target", ["/api/static/guide?a=1", "/static/guide?a=1"])
def test_the_redirect_of_a_folder_stays_below_the_prefix(
    app: Application, ask: Ask, target: str
) -> None:
    answer = ask(app, "GET", target)

    assert (answer.status, answer.fields("location")) == (307, ["./guide/?a=1"])
    assert ask(app, "GET", "/api/static/guide/").body == b"guide"


def test_the_log_and_problems_show_the_public_path(
    app: Application, ask: Ask, lines: Lines
) -> None:
    for target in ("/v1/s3cret/page", "/api/v1/s3cret/page"):
        assert ask(app, "POST", target).json()["instance"] == "/api/v1/s3cret/page"
    shown = [text for text in lines.texts() if text.startswith("POST")]

    assert [text.split()[1] for text in shown] == ["/api/v1/***/page"] * 2


@pytest.mark.parametrize(
    "value",
    ["api", "/", "/api/", "/a//b", "/a/../b", "/a?b", "/a%20b", "/ä", "/v1", "/v2/api", "/."],
)
def test_a_value_that_is_no_prefix_is_refused(tmp_path: Path, value: str) -> None:
    with pytest.raises(SettingsError, match="Setting root_path must be a prefix such as '/api'"):
        Settings(root_path=value)


@pytest.mark.parametrize("value", ["", "/api", "/team-1/api.v2", "/v1beta", "/~x/_y"])
def test_a_prefix_is_read_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    (tmp_path / "treefold.toml").write_text('root_path = "/other"\n')
    monkeypatch.setenv("TREEFOLD_ROOT_PATH", value)

    assert Settings.load(tmp_path).root_path == value


def test_without_the_setting_no_request_is_prepared(project: Project, ask: Ask) -> None:
    prepared: list[Any] = []

    class Counted(Application):
        async def _serve_unless_http(self, scope: Any, receive: Any, send: Any) -> Any:
            prepared.append(scope["type"])
            return await super()._serve_unless_http(scope, receive, send)

    app = Counted(project(FILES).root)
    for _ in range(3):
        assert ask(app, "GET", "/v1/show/x").status == 200

    assert prepared == ["http"]  # the first one, which starts the application
    app.threads.shutdown()
