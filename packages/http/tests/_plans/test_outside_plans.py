"""`under` outside the route table: mounts, documents, probes, metrics, and what they are given."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, StaticFiles

if TYPE_CHECKING:
    from conftest import Answer, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

GET = "async def handler(request):\n    return 'ok'\n"
GUARDED = """
from treefold_http import Forbidden, requests_only
from treefold_http.middleware import *


class Refuse:
    def before(self, connection):
        raise Forbidden("guarded")


class Note:
    def __init__(self, name):
        self.name = name

    def before(self, connection):
        connection.add_answer_fields([(b"x-note", self.name.encode())])
"""


class Legacy:
    """An ASGI application that notes the path of each scope."""

    def __init__(self) -> None:
        self.paths: list[tuple[str, bytes]] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            return
        self.paths.append((scope["path"], scope["raw_path"]))
        if scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.accept"})
            await send({"type": "websocket.close", "code": 1000})
            return
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"legacy"})


@pytest.fixture
def legacy() -> Legacy:
    return Legacy()


@pytest.fixture
def guarded(project: Project, legacy: Legacy) -> Callable[..., Application]:
    """An application with files at `/static` and an application at `/legacy`."""

    def make(entries: str, **options: Any) -> Application:
        middleware = f"{GUARDED}\nmiddlewares = [{entries}]\n"
        files = {
            "Api/v1/Admin/Get.py": GET,
            "Api/v2/Admin/Get.py": GET,
            "Middleware/__init__.py": middleware,
            "web/a.css": "a {}",
            "web/Private/b.css": "b {}",
            "treefold.toml": "docs = true\nhealth = true\n",
        }
        app = project(files, **options)
        app.mount("/static", StaticFiles(app.root / "web"))
        app.mount("/legacy", legacy)
        return app

    return make


REFUSED = [
    ("/static", "/static/a.css", True),
    ("/static", "/static/none", True),
    ("/static", "/static", True),
    ("/static/private", "/static/Private/b.css", True),
    ("/static/private", "/static/a.css", False),
    ("/legacy", "/legacy", True),
    ("/legacy", "/legacy/x", True),
    ("/legacy/admin", "/legacy/x", False),
    ("/docs", "/docs", True),
    ("/docs", "/docs/site.json", True),
    ("/docs", "/docs/assets/x.js", True),
    ("/docs", "/openapi.json", False),
    ("/openapi.json", "/openapi.json", True),
    ("/openapi.json", "/openapi/v1.json", True),
    ("/openapi", "/openapi/v1.json", True),
    ("/openapi", "/openapi.json", True),
    ("/openapi/v1.json", "/openapi/v1.json", True),
    ("/openapi/v1.json", "/openapi/v2.json", False),
    ("/asyncapi", "/asyncapi.json", True),
    ("/asyncapi.json", "/asyncapi/v1.json", True),
    ("/livez", "/livez", True),
    ("/livez", "/readyz", False),
    ("/", "/readyz", True),
    ("/*", "/livez", True),
    ("/*/admin", "/legacy/admin", True),
    ("/*/admin", "/v1/admin", True),
    ("/*/admin", "/v2/admin", True),
    ("/*/admin", "/legacy/other", False),
]


@pytest.mark.parametrize(("prefix", "target", "refused"), REFUSED)
def test_under_covers_whatever_is_served_below_it(
    guarded: Callable[..., Application], ask: Ask, prefix: str, target: str, refused: bool
) -> None:
    app = guarded(f"under({prefix!r}, Refuse())")

    for method in ("GET", "HEAD", "POST", "OPTIONS"):
        assert (ask(app, method, target).status == 403) is refused, method


@pytest.mark.parametrize(("prefix", "target", "refused"), REFUSED)
def test_a_function_guards_the_same_paths(
    guarded: Callable[..., Application], ask: Ask, prefix: str, target: str, refused: bool
) -> None:
    app = guarded(f"under({prefix!r}, requests_only(refuse))")
    app.root.joinpath("Middleware/__init__.py").write_text(
        f"{GUARDED}\nasync def refuse(request, call_next):\n    raise Forbidden()\n"
        f"middlewares = [under({prefix!r}, requests_only(refuse))]\n"
    )

    assert (ask(app, "GET", target).status == 403) is refused


SPELLINGS = [
    # the path as sent, the status, and the path that the application gets if it is asked
    (b"/legacy/open", 200, "/legacy/open"),
    (b"/legacy/private", 403, None),
    (b"/legacy/private/", 403, None),
    (b"/legacy/private/x", 403, None),
    (b"//legacy//private//x", 403, None),
    (b"/legacy/PRIVATE/x", 403, None),
    (b"/legacy/%70rivate/x", 403, None),
    (b"/%6Cegacy/private", 403, None),
    (b"/legacy/private%2Fx", 403, None),
    (b"/legacy/private%5Cx", 403, None),
    (b"/legacy/private\\x", 403, None),
    (b"/legacy/private;v=1/x", 403, None),
    (b"/legacy/private%3Bv=1", 403, None),
    (b"/legacy/private./x", 403, None),
    (b"/legacy/private%20/x", 403, None),
    (b"/legacy/%2570rivate/x", 403, None),
    (b"/legacy/private%252Fx", 403, None),
    (b"/legacy/open%252F..%252Fprivate", 403, None),
    (b"/legacy/%252e%252e/private", 403, None),
    (b"/legacy/%EF%BD%90rivate", 403, None),
    (b"/legacy/priv%E2%80%8Bate", 403, None),
    (b"/legacy/./private", 404, None),
    (b"/legacy/%2e/private", 404, None),
    (b"/legacy/open/../private", 404, None),
    (b"/legacy/open/%2e%2e/private", 404, None),
    (b"/legacy/open/%2E./private", 404, None),
    (b"/legacy/open%2F..%2Fprivate", 404, None),
    (b"/legacy/open%5C..%5Cprivate", 404, None),
    (b"/legacy/private%00", 400, None),
    (b"/legacy/%c0%afprivate", 400, None),
    (b"/legacy%2Fprivate", 404, None),
    (b"/LEGACY/private", 403, None),
    (b"http://example.localhost/legacy/private", 403, None),
    (b"http://example.localhost/legacy/open", 200, "/legacy/open"),
    (b"//legacy//open//a/", 200, "/legacy/open/a/"),
    (b"/legacy/open%2Fa", 200, "/legacy/open/a"),
    (b"/legacy/%252e%252e/open", 200, "/legacy/%2e%2e/open"),
    (b"/legacy/privately", 200, "/legacy/privately"),
]


@pytest.mark.parametrize(("target", "status", "path"), SPELLINGS)
def test_s06_no_spelling_leads_past_a_guard_below_an_application(
    guarded: Callable[..., Application],
    ask: Ask,
    talk: Talk,
    legacy: Legacy,
    target: bytes,
    status: int,
    path: str | None,
) -> None:
    app = guarded("under('/legacy/private', Refuse())")
    more = {"raw_path": target}

    assert ask(app, "GET", target.decode(), more=more).status == status
    assert [each for each, _ in legacy.paths] == ([] if path is None else [path])
    legacy.paths.clear()
    if target.startswith(b"/LEGACY"):  # nothing is there, so no guard is asked
        status = 404
    socket = talk(app, target.decode(), more=more)
    assert (socket.refusal.status if status >= 400 else 200) == status
    assert [each for each, _ in legacy.paths] == ([] if path is None else [path])


def test_entries_of_a_path_run_in_the_order_of_the_list(
    guarded: Callable[..., Application], ask: Ask, talk: Talk
) -> None:
    app = guarded(
        "Note('every'), under('/legacy', Note('legacy')), under('/static', Note('static')),"
        " under('/legacy/a', Note('a'))"
    )

    def notes(target: str) -> list[str]:
        return ask(app, "GET", target).fields("x-note")

    assert notes("/legacy/b") == ["every", "legacy"]
    assert notes("/legacy/a") == ["every", "legacy", "a"]
    assert notes("/static/a.css") == ["every", "static"]
    assert notes("/v1/admin") == ["every"]
    assert notes("/legacy/a/c") == ["every", "legacy", "a"]
    assert notes("/unknown") == ["every"]


def test_a_guard_below_a_root_path_sees_the_path_without_it(
    guarded: Callable[..., Application], ask: Ask
) -> None:
    app = guarded("under('/legacy/private', Refuse())")

    more = {"root_path": "/sub"}
    assert ask(app, "GET", "/sub/legacy/private", more=more).status == 403
    assert ask(app, "GET", "/sub/legacy/open", more=more).status == 200


def test_a_covered_path_that_nothing_serves_is_guarded_too(project: Project, ask: Ask) -> None:
    middleware = f"{GUARDED}\nmiddlewares = [under('/docs', Refuse())]\n"
    app = project({"Api/v1/Get.py": GET, "Middleware/__init__.py": middleware})

    assert ask(app, "GET", "/docs").status == 403
    assert ask(app, "GET", "/other").status == 404


def test_a_probe_runs_inside_the_entries_of_its_prefix_only(
    guarded: Callable[..., Application], ask: Ask
) -> None:
    app = guarded("Note('every'), under('/livez', Note('probe'))")

    assert ask(app, "GET", "/livez").fields("x-note") == ["probe"]
    assert ask(app, "GET", "/readyz").fields("x-note") == []


PAGE = """
class Page:
    page = "/figures"

    async def http(self, request, call_next):
        if request.raw_path == b"/figures":
            return "figures"
        return await call_next(request)
"""


@pytest.mark.parametrize(
    "entries",
    [
        "under('/figures', Refuse()), Page()",
        "Page(), under('/figures', Refuse())",
        "Page(), Note('b'), under('/*', Refuse())",
    ],
)
@pytest.mark.parametrize("default_version", [None, "latest"])
def test_a_guard_of_a_page_runs_before_the_entry_that_answers_it(
    project: Project, ask: Ask, entries: str, default_version: str | None
) -> None:
    middleware = f"{GUARDED}{PAGE}\nmiddlewares = [{entries}]\n"
    files = {"Api/v1/Get.py": GET, "Middleware/__init__.py": middleware}
    app = project(files, default_version=default_version)

    assert ask(app, "GET", "/figures").status == 403
    assert ask(app, "GET", "/v1").status == (403 if "'/*'" in entries else 200)


def test_a_mount_before_the_default_version_stays_guarded(
    guarded: Callable[..., Application], ask: Ask
) -> None:
    app = guarded(
        "under('/legacy', Refuse()), under('/v2/admin', Note('v2'))", default_version="v2"
    )

    assert ask(app, "GET", "/legacy/x").status == 403
    assert ask(app, "GET", "/admin").fields("x-note") == ["v2"]
