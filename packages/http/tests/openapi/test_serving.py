"""The documents over HTTP: where they are, when they are not, and how long one is kept."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from subprocess import run
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings

if TYPE_CHECKING:
    from conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

HANDLER = "async def handler(request): return {}\n"
FILES = {"Api/v1/User/Get.py": HANDLER, "Api/v2/User/Get.py": HANDLER}
TARGETS = (
    "/openapi.json",
    "/openapi/v1.json",
    "/openapi/v2.json",
    "/asyncapi.json",
    "/asyncapi/v1.json",
)


@pytest.mark.parametrize("target", TARGETS)
def test_documents_are_served_in_development(project: Project, ask: Ask, target: str) -> None:
    answer = ask(project(FILES, dev=True), "GET", target)

    assert answer.status == 200
    assert answer.fields("content-type") == ["application/json"]
    assert answer.fields("cache-control") == ["no-cache"]
    kind, version = ("openapi", "3.1.0") if "openapi" in target else ("asyncapi", "3.0.0")
    assert answer.json()[kind] == version


def test_one_version_has_only_its_own_paths(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)

    assert list(ask(app, "GET", "/openapi.json").json()["paths"]) == ["/v1/user", "/v2/user"]
    assert list(ask(app, "GET", "/openapi/v2.json").json()["paths"]) == ["/v2/user"]


@pytest.mark.parametrize(
    ("dev", "docs", "status"),
    [(False, None, 404), (False, True, 200), (True, False, 404), (True, None, 200)],
)
def test_the_setting_decides_and_dev_where_there_is_none(
    project: Project, ask: Ask, dev: bool, docs: bool | None, status: int
) -> None:
    app = project(FILES, dev=dev, settings=Settings(docs=docs))

    assert ask(app, "GET", "/openapi.json").status == status


@pytest.mark.parametrize("target", [*TARGETS, "/openapi", "/docs"])
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
def test_in_production_they_are_like_any_unknown_path(
    project: Project, ask: Ask, target: str, method: str
) -> None:
    app = project(FILES)

    assert seen(ask(app, method, target)) == seen(ask(app, method, "/nothing"))


def seen(answer: Answer) -> tuple[Any, ...]:
    fields = [name for name, _ in answer.headers]
    document: Mapping[str, Any] = json.loads(answer.body) if answer.body else {}
    said = {k: v for k, v in document.items() if k not in ("instance", "request_id")}
    return answer.status, fields, said


@pytest.mark.parametrize(
    "target",
    [
        "/openapi",
        "/openapi/",
        "/openapi/v3.json",
        "/openapi/v1",
        "/openapi/v1.json/x",
        "/openapi/.json",
        "/openapi.json/x",
        "/openapi/..%2Fopenapi.json",
    ],
)
def test_what_is_no_document_is_not_found(project: Project, ask: Ask, target: str) -> None:
    app = project(FILES, dev=True)

    assert seen(ask(app, "GET", target)) == seen(ask(app, "GET", "/nothing"))


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_are_refused(project: Project, ask: Ask, method: str) -> None:
    answer = ask(project(FILES, dev=True), method, "/openapi.json")

    assert answer.status == 405
    assert answer.fields("allow") == ["GET, HEAD"]


def test_head_says_what_get_would(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)
    got = ask(app, "GET", "/openapi.json")
    head = ask(app, "HEAD", "/openapi.json")

    assert head.body == b""
    assert head.fields("content-length") == [str(len(got.body))]
    assert head.fields("etag") == got.fields("etag")


def test_a_client_that_has_it_is_told_so(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)
    tag = ask(app, "GET", "/openapi.json").fields("etag")[0]
    again = ask(app, "GET", "/openapi.json", headers=[("if-none-match", tag)])
    changed = ask(app, "GET", "/openapi.json", headers=[("if-match", '"other"')])

    assert (again.status, again.body) == (304, b"")
    assert again.fields("etag") == [tag]
    assert changed.status == 412


def test_it_is_written_once_and_goes_with_its_site(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)
    first = ask(app, "GET", "/openapi.json")
    kept = app.project.kept["documents"]

    assert ask(app, "GET", "/openapi.json").body == first.body
    assert app.project.kept["documents"] is kept
    assert kept.document("openapi") is kept.document("openapi")

    app.overrides[test_it_is_written_once_and_goes_with_its_site] = dict  # plans everything anew
    assert app.project.kept == {}


def test_documents_run_inside_the_middleware(project: Project, ask: Ask) -> None:
    guard = """
        from treefold_http import Unauthorized

        async def guard(request, call_next):
            if "authorization" not in request.headers:
                raise Unauthorized("Who are you?")
            return await call_next(request)

        middlewares = [guard]
        """
    app = project({**FILES, "Middleware/__init__.py": guard}, dev=True)

    assert ask(app, "GET", "/openapi.json").status == 401
    assert ask(app, "GET", "/openapi.json", headers=[("authorization", "x")]).status == 200


def test_where_the_application_is_mounted_is_the_server(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)
    answer = ask(app, "GET", "/sub/openapi.json", more={"root_path": "/sub"})

    assert answer.json()["servers"] == [{"url": "/sub"}]
    assert "servers" not in ask(app, "GET", "/openapi.json").json()


class Own:
    """Something of the project's own at a path."""

    def check(self, root: Any) -> None: ...

    async def response(self, path_segments: Any, request: Any) -> Any:
        from treefold_http import Response

        return Response.text("ours")


def test_a_mount_of_the_project_comes_first(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)
    app.mount("/openapi.json", Own())

    assert ask(app, "GET", "/openapi.json").body == b"ours"


@pytest.mark.parametrize("file", ["Api/v1/openapi.json/Get.py", "Api/v1/[page]/Get.py"])
def test_a_route_of_the_default_version_comes_first(
    project: Project, ask: Ask, lines: Any, file: str
) -> None:
    text = "async def handler(request): return 'ours'\n"
    app = project({file: text}, dev=True, default_version="latest")

    assert ask(app, "GET", "/openapi.json").body == b"ours"
    assert ask(app, "GET", "/asyncapi/v1.json").json()["asyncapi"] == "3.0.0"
    assert [t for t in lines.texts() if "/openapi.json" in t and "docs" in t] == [
        f"GET /openapi.json is answered by Api/{file.removeprefix('Api/')}, not by the docs"
    ]


def test_without_a_default_version_a_route_hides_nothing(project: Project, ask: Ask) -> None:
    app = project({"Api/v1/[page]/Get.py": HANDLER}, dev=True)

    assert ask(app, "GET", "/openapi.json").json()["openapi"] == "3.1.0"


def test_nothing_of_it_is_imported_where_docs_are_off(write: Callable[..., Any]) -> None:
    root = write(FILES)
    check = (
        "import sys, treefold_http\n"
        f"treefold_http.Application({str(root)!r}).boot()\n"
        "print([name for name in sys.modules if name.startswith('treefold_http.openapi')])"
    )
    done = run([sys.executable, "-c", check], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"


def test_a_reload_writes_them_anew(live: Callable[..., Any]) -> None:
    model = """
        from dataclasses import dataclass
        @dataclass
        class Item:
            {0}: int
        response_model = Item
        async def handler(request): return {{"{0}": 1, "other": 2}}
        """
    app = live({"Api/v1/X/Get.py": model.format("old")})
    before = app.answer("/openapi.json")
    app.edit({"Api/v1/X/Get.py": model.format("new")})
    after = app.answer("/openapi.json")

    assert after.fields("etag") != before.fields("etag")
    assert list(after.json()["components"]["schemas"]["Item"]["properties"]) == ["new"]
    assert app.get() == {"new": 1}

    app.edit({"Api/v2/X/Get.py": model.format("newer")})
    assert list(app.get("/openapi/v2.json")["paths"]) == ["/v2/x"]
    assert list(app.get("/openapi.json")["components"]["schemas"]) == ["Item", "Item_v2"]
