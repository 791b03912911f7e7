"""The application as a server sees it: from the scope to the last message."""

from __future__ import annotations

import asyncio
import copy
import logging
from collections.abc import Callable, Iterable
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import treefold_http
from treefold_http import Application, BootError, Settings, create_app
from treefold_logging import request_id

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

HEAD = "from treefold_http import *\n"


# -- from the path to the handler


def test_a_request_is_answered_by_the_file_at_its_path(project: Project, ask: Ask) -> None:
    app = project(
        {
            "Api/v1/User/Role/Get.py": "async def handler(request):\n    return [request.route]",
            "Api/v1/User/[id]/Get.py": """
                async def handler(id: int, request):
                    return [id, request.path_params["id"], request.route]
            """,
            "Api/v1/User/Role/Post.py": "status_code = 201\ndef handler():\n    return 'made'",
        }
    )
    role = ask(app, "GET", "/v1/user/role")
    user = ask(app, "GET", "/v1/user/7")
    made = ask(app, "POST", "//v1/user/role/")

    assert (role.status, role.json()) == (200, ["/v1/user/role"])
    assert user.json() == [7, "7", "/v1/user/{id}"]
    assert (made.status, made.body) == (201, b"made")
    assert all(answer.complete for answer in (role, user, made))


def test_every_answer_carries_what_is_common(serving: Project, ask: Ask) -> None:
    app = serving("async def handler(request):\n    return {'id': request.id}")
    answer = ask(app, "GET", "/v1/x")

    assert answer.fields("x-content-type-options") == ["nosniff"]
    assert answer.fields("x-request-id") == [answer.json()["id"]]
    assert answer.fields("content-length") == [str(len(answer.body))]


def test_a_path_parameter_is_decoded_once_and_never_splits(project: Project, ask: Ask) -> None:
    app = project(
        {
            "Api/v1/Item/[id]/Get.py": "async def handler(id):\n    return id",
            "Api/v1/Item/[id]/Secret/Get.py": "async def handler(id):\n    return 'secret'",
        }
    )

    assert ask(app, "GET", "/v1/item/x%2Fsecret").body == b"x/secret"
    assert ask(app, "GET", "/v1/item/a%252Fb").body == b"a%2Fb"
    assert ask(app, "GET", "/v1/item/%C3%A9").body == "é".encode()


@pytest.mark.parametrize(
    ("method", "target", "status", "detail"),
    [
        ("GET", "/v1/nowhere", 404, "There is nothing at this path"),
        ("GET", "/v9/x", 404, "There is nothing at this path"),
        ("GET", "/x", 404, "There is nothing at this path"),
        ("GET", "/", 404, "There is nothing at this path"),
        ("GET", "/v1/../v1/x", 404, None),
        ("GET", "/V1/x", 404, None),
        ("GET", "/v1/X", 404, None),
        ("POST", "/v1/x", 405, "This path answers GET"),
        ("HEAD", "/v1/x", 405, None),
        ("OPTIONS", "/v1/x", 405, None),
        ("get", "/v1/x", 405, None),
        ("WEBSOCKET", "/v1/x", 405, None),
        ("__class__", "/v1/x", 405, None),
        ("TRACE", "/v1/nowhere", 404, None),
        ("GET", "/v1/%ff", 400, None),
        ("GET", "/v1/a%00b", 400, None),
        ("GET", "/v1/x%0a", 400, None),
        ("GET", "v1/x", 400, None),
    ],
)
def test_what_no_file_serves_is_a_problem(
    serving: Project,
    ask: Ask,
    lines: Lines,
    method: str,
    target: str,
    status: int,
    detail: str | None,
) -> None:
    app = serving("async def handler(request):\n    raise AssertionError")
    app.boot()
    lines.records.clear()
    answer = ask(app, method, target)

    assert answer.status == status
    assert answer.fields("content-type") == ["application/problem+json"]
    assert answer.fields("x-content-type-options") == ["nosniff"]
    assert answer.fields("allow") == (["GET"] if status == 405 else [])
    assert len(lines.records) == 1
    assert lines.records[0].levelno == logging.INFO
    if method != "HEAD":
        assert answer.json()["request_id"] == answer.fields("x-request-id")[0]
        assert detail is None or answer.json()["detail"] == detail


def test_plain_http_on_a_socket_path_says_upgrade(serving: Project, ask: Ask) -> None:
    answer = ask(
        serving("async def handler(websocket): ...", "Api/v1/Chat/Ws.py"), "GET", "/v1/chat"
    )

    assert (answer.status, answer.fields("allow"), answer.fields("upgrade")) == (
        405,
        ["WEBSOCKET"],
        ["websocket"],
    )


@pytest.mark.parametrize(
    "headers",
    [
        [("x-http-method-override", "POST")],
        [("x-original-url", "/v1/admin"), ("x-rewrite-url", "/v1/admin")],
        [("x-middleware-subrequest", "1"), ("x-forwarded-host", "evil")],
    ],
)
def test_no_header_changes_what_serves(
    project: Project, ask: Ask, headers: list[tuple[str, str]]
) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": """
                async def handler(request):
                    return [request.method, request.host]
            """,
            "Api/v1/X/Post.py": "async def handler(request):\n    return 'post'",
            "Api/v1/Admin/Get.py": "async def handler(request):\n    return 'admin'",
        }
    )

    assert ask(app, "GET", "/v1/x", headers=headers).json() == ["GET", "example.localhost"]


def test_auto_head_and_auto_options_answer_where_no_file_does(project: Project, ask: Ask) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": "async def handler(request):\n    return 'four'",
            "treefold.toml": "auto_head = true\nauto_options = true\n",
        }
    )
    head = ask(app, "HEAD", "/v1/x")
    options = ask(app, "OPTIONS", "/v1/x")
    refused = ask(app, "PUT", "/v1/x")

    assert (head.status, head.body, head.fields("content-length")) == (200, b"", ["4"])
    assert (options.status, options.body) == (204, b"")
    assert options.fields("allow") == refused.fields("allow") == ["GET, HEAD, OPTIONS"]
    assert options.fields("x-content-type-options") == ["nosniff"]
    assert ask(app, "OPTIONS", "/v1/nowhere").status == 404


def test_a_server_without_raw_path_is_served_by_its_path(serving: Project, ask: Ask) -> None:
    app = serving("async def handler(id):\n    return id", "Api/v1/[id]/Get.py")

    assert ask(app, "GET", "/v1/a%2541", more={"raw_path": None}).body == b"a%41"
    assert ask(app, "GET", "/v1/%C3%A9", more={"raw_path": None}).body == "é".encode()


@pytest.mark.parametrize(
    ("root", "target", "status"),
    [
        ("/api", "/api/v1/x", 200),
        ("/api", "/v1/x", 200),
        ("/api", "/apix/v1/x", 404),
        ("/v1", "/v1/v1/x", 200),
        ("", "/v1/x", 200),
    ],
)
def test_a_mounted_application_leaves_the_root_path_out(
    serving: Project, ask: Ask, root: str, target: str, status: int
) -> None:
    app = serving("async def handler(request):\n    return 'ok'")

    assert ask(app, "GET", target, more={"root_path": root}).status == status


# -- the gate


@pytest.mark.parametrize(
    ("options", "status"),
    [
        ({"host": False}, 400),
        ({"headers": [("host", "b")]}, 400),
        ({"host": False, "headers": [("host", "a@evil")]}, 400),
        ({"headers": [(f"x-{n}", "1") for n in range(200)]}, 431),
        ({"headers": [("x", "v" * 40_000)]}, 431),
        ({"headers": [("content-length", "abc")]}, 400),
        ({"headers": [("content-length", "1"), ("content-length", "2")]}, 400),
    ],
)
def test_what_the_gate_refuses_is_an_answer_and_a_line(
    serving: Project, ask: Ask, lines: Lines, options: dict[str, Any], status: int
) -> None:
    app = serving("async def handler(request):\n    raise AssertionError('ran')")
    app.boot()
    lines.records.clear()
    answer = ask(app, "GET", "/v1/x", **options)

    assert (answer.status, answer.complete) == (status, True)
    assert answer.fields("content-type") == ["application/problem+json"]
    assert answer.fields("x-content-type-options") == ["nosniff"]
    assert len(answer.fields("x-request-id")) == 1
    assert len(lines.records) == 1
    assert lines.errors() == []


def test_a_target_that_is_too_long_is_414(serving: Project, ask: Ask) -> None:
    app = serving("async def handler(request):\n    return 'ok'")

    assert ask(app, "GET", "/v1/x?" + "a" * 9000).status == 414
    assert ask(app, "GET", "/v1/x?" + "a&" * 1001).status == 200  # nobody asked for the query
    assert (
        ask(
            serving("async def handler(a: str = ''):\n    return a", root="two"),
            "GET",
            "/v1/x?" + "a&" * 1001,
        ).status
        == 400
    )


# -- default to latest


VERSIONS = {
    "Api/v1/X/Get.py": "async def handler(request):\n    return 'v1'",
    "Api/v2/X/Get.py": "async def handler(request):\n    return 'v2'",
    "Api/v10/X/Get.py": "async def handler(request):\n    return 'v10'",
    "Api/v10/Only/Post.py": "async def handler(request):\n    return 'v10'",
}


def test_an_unversioned_request_is_served_by_the_latest_version_and_says_so(
    project: Project, ask: Ask, lines: Lines
) -> None:
    app = project(VERSIONS, default_version="latest")
    app.boot()
    lines.records.clear()

    assert ask(app, "GET", "/x").body == b"v10"
    assert lines.texts()[0] == "no version in GET /x -> served v10"
    assert ask(app, "GET", "/v1/x").body == b"v1"
    assert ask(app, "GET", "/v99/x").status == 404
    assert ask(app, "GET", "/V2/x").status == 404
    assert ask(app, "GET", "/nowhere").status == 404
    assert ask(app, "GET", "/only").fields("allow") == ["POST"]
    assert sum("no version" in text for text in lines.texts()) == 1


@pytest.mark.parametrize(("chosen", "body"), [("v2", b"v2"), ("v1", b"v1"), (None, None)])
def test_a_fixed_version_serves_unversioned_requests(
    project: Project, ask: Ask, chosen: str | None, body: bytes | None
) -> None:
    answer = ask(project(VERSIONS, default_version=chosen), "GET", "/x")

    assert answer.status == (404 if body is None else 200)
    assert body is None or answer.body == body


def test_a_fixed_version_is_logged_for_debugging_only(
    project: Project, ask: Ask, lines: Lines
) -> None:
    app = project(VERSIONS, settings=Settings(default_version="v2", log_level="DEBUG"))

    assert ask(app, "GET", "/x").status == 200
    (line,) = [one for one in lines.records if "no version" in one.getMessage()]
    assert (line.levelname, line.getMessage()) == ("DEBUG", "no version in GET /x -> served v2")


NO_FOLDER = (
    "Setting default_version must name a folder of Api/, got 'v9'; use 'latest', v1, v2, v10"
)


def test_a_default_version_that_no_folder_has_stops_the_boot(project: Project) -> None:
    with pytest.raises(BootError) as refused:
        project(VERSIONS, default_version="v9").boot()
    assert str(refused.value) == NO_FOLDER


def test_in_development_it_is_logged_and_other_paths_are_served(
    project: Project, ask: Ask, lines: Lines
) -> None:
    app = project(VERSIONS, default_version="v9", dev=True)

    assert (ask(app, "GET", "/v2/x").status, ask(app, "GET", "/x").status) == (200, 404)
    assert lines.texts().count(NO_FOLDER) == 1
    assert [one.error for one in app.report.broken] == [NO_FOLDER]


def test_a_default_version_may_name_a_folder_without_a_route_yet(project: Project) -> None:
    app = project(VERSIONS | {"Api/v3/later.txt": ""}, default_version="v3")
    app.boot()

    assert app.report.broken == ()


def test_the_setting_may_come_from_the_environment(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFOLD_DEFAULT_VERSION", "latest")

    assert ask(project(VERSIONS), "GET", "/x").body == b"v10"


# -- middleware, overrides, background


MARK = """
    async def mark(request, call_next):
        response = await call_next(request)
        response.headers["x-mark"] = request.route or "-"
        return response

    middlewares = [mark]
"""


@pytest.mark.parametrize(
    ("method", "target", "status", "mark"),
    [
        ("GET", "/v1/x", 200, "/v1/x"),
        ("GET", "/v1/bad", 500, "/v1/bad"),
        ("GET", "/v1/crash", 500, "/v1/crash"),
        ("GET", "/v1/nowhere", 404, "-"),
        ("PUT", "/v1/x", 405, "-"),
        ("GET", "/v1/%ff", 400, "-"),
    ],
)
def test_the_project_s_middleware_is_around_every_answer(
    project: Project, ask: Ask, method: str, target: str, status: int, mark: str
) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": "async def handler(request):\n    return 'ok'",
            "Api/v1/Crash/Get.py": "async def handler(request):\n    1 / 0",
            "Api/v1/Bad/Get.py": "1 / 0",
            "Middleware/__init__.py": MARK,
        }
    )
    answer = ask(app, method, target)

    assert (answer.status, answer.fields("x-mark")) == (status, [mark])


def test_overrides_take_hold_before_and_after_the_boot_and_can_be_undone(
    project: Project, serving: Project, ask: Ask
) -> None:
    app = project(
        {
            "Services/db.py": "async def get_db():\n    return 'real'",
            "Api/v1/X/Get.py": "from treefold_http import Depends\nfrom Services.db import get_db\n"
            "async def handler(db=Depends(get_db)):\n    return db",
        }
    )
    assert ask(app, "GET", "/v1/x").body == b"real"
    (module,) = app.project.modules.values()
    handler: Any = getattr(module, "handler", None)
    get_db = handler.__globals__["get_db"]
    app.overrides[get_db] = lambda: "fake"
    assert ask(app, "GET", "/v1/x").body == b"fake"
    app.overrides.clear()
    assert ask(app, "GET", "/v1/x").body == b"real"
    again = project({}, root="project")
    again.overrides[get_db] = lambda: "early"
    assert ask(again, "GET", "/v1/x").body == b"early"


def test_work_for_afterwards_runs_when_the_answer_is_sent(
    serving: Project, exchange: type[Exchange]
) -> None:
    app = serving(
        "async def handler(request):\n    tasks = BackgroundTasks()\n"
        "    tasks.add(request.app.state.journal.append, 'work')\n"
        "    return Response('ok', background=tasks)",
    )

    async def main() -> None:
        app.state.journal = []
        made = exchange("GET", "/v1/x")

        async def send(message: Any) -> None:
            app.state.journal.append(message["type"].rpartition(".")[2])
            await made.send(message)

        await app(made.scope, made.receive, send)
        await app.background.drain_tasks(5)

    asyncio.run(main())
    assert app.state.journal == ["start", "body", "work"]


def test_work_that_fails_leaves_the_answer_alone(
    serving: Project, exchange: type[Exchange], lines: Lines
) -> None:
    app = serving(
        "def fail():\n    raise SystemExit('s3cret')\n"
        "async def handler(request):\n    return Response('ok', background=fail)",
    )

    async def main() -> None:
        assert (await exchange("GET", "/v1/x").run(app)).body == b"ok"
        await app.background.drain_tasks(5)
        assert (await exchange("GET", "/v1/x").run(app)).body == b"ok"
        await app.background.drain_tasks(5)

    asyncio.run(main())
    assert sum("background task fail failed" in text for text in lines.texts()) == 2


# -- other scopes and other ways in


@pytest.mark.parametrize("target", ["/v1/x", "/v1/nowhere", "/v1/%ff"])
def test_a_socket_without_a_file_is_refused_before_it_is_accepted(
    serving: Project, exchange: type[Exchange], target: str
) -> None:
    app = serving("async def handler(request): ...")
    said: list[str] = []

    async def receive() -> dict[str, Any]:
        return {"type": "websocket.connect"}

    async def send(message: Any) -> None:
        said.append(message["type"])

    scope: dict[str, Any] = {**exchange("GET", target).scope, "type": "websocket"}
    asyncio.run(app(scope, receive, send))
    assert said == ["websocket.close"]


def test_create_app_serves_the_folder_of_the_environment(
    serving: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = serving("async def handler(request):\n    1 / 0").root
    monkeypatch.setenv("TREEFOLD_APP_DIR", str(root))

    assert ask(create_app(), "GET", "/v1/x").json()["detail"].startswith("The server failed")
    for text in ("1", "true", "YES", "on"):
        monkeypatch.setenv("TREEFOLD_DEV", text)
        assert create_app().dev
    monkeypatch.setenv("TREEFOLD_DEV", "0")
    assert not create_app().dev


def test_create_app_serves_the_working_directory(
    serving: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = serving("async def handler(request): ...").root
    monkeypatch.chdir(root)
    app = create_app()
    monkeypatch.chdir("/")

    assert app.root == Path(root)
    assert app.report.routes == 1


def test_serving_changes_neither_the_scope_nor_the_context_of_the_server(
    serving: Project, exchange: type[Exchange]
) -> None:
    app = serving("async def handler(request):\n    request.state.user = 1\n    return 'ok'")

    async def main() -> Iterable[Any]:
        made = exchange("GET", "/v1/x", more={"state": {"pool": 1}})
        before = copy.deepcopy(made.scope)
        await made.run(app)
        assert made.scope == before
        assert made.scope["state"] == {"pool": 1}
        return copy_context().items()

    assert dict(asyncio.run(main())).get(request_id, "-") == "-"


def test_every_public_name_is_there_once() -> None:
    names = vars(treefold_http)["__all__"]

    assert len(set(names)) == len(names)
    assert [name for name in names if not hasattr(treefold_http, name)] == []


@pytest.mark.parametrize("source", ["('text', 205)", "Response.json({}, status=205)"])
def test_a_205_has_no_content(project: Project, ask: Ask, source: str) -> None:
    handler = "from treefold_http import Response\n\nasync def handler(request):\n    return "
    answer = ask(project({"Api/v1/X/Get.py": handler + source}), "GET", "/v1/x")

    assert (answer.status, answer.body) == (205, b"")
    assert dict(answer.headers).get("content-length") == "0"
