"""The documents over HTTP: where they are, when they are not, and how long one is kept."""

from __future__ import annotations

import gzip
import json
import sys
from collections.abc import Callable, Mapping
from subprocess import run
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings
from treefold_http.openapi import openapi_document

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
    assert kept.build_document("openapi") is kept.build_document("openapi")

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


def test_the_default_version_has_a_document_without_the_version(project: Project, ask: Ask) -> None:
    files = {**FILES, "Api/v2/Get.py": HANDLER, "Api/v2/User/[id]/Get.py": HANDLER}
    app = project(files, dev=True, default_version="latest")
    found = ask(app, "GET", "/openapi/default.json").json()
    versioned = ask(app, "GET", "/openapi/v2.json").json()

    assert list(found["paths"]) == ["/", "/user", "/user/{id}"]
    for path, item in found["paths"].items():
        known = versioned["paths"]["/v2" + path.rstrip("/")]
        assert item["get"]["operationId"] == known["get"]["operationId"]
        assert ask(app, "GET", path.replace("{id}", "1")).status == 200
    assert found["paths"]["/user"]["get"]["summary"] == "GET /user"
    assert list(ask(app, "GET", "/openapi.json").json()["paths"]) == [
        *("/v1/user", "/v2", "/v2/user", "/v2/user/{id}"),
    ]
    assert openapi_document(app, unversioned=True) == found


def test_a_fixed_default_version_is_the_one_that_is_described(project: Project, ask: Ask) -> None:
    files = {**FILES, "Api/v2/New/Get.py": HANDLER}
    app = project(files, dev=True, default_version="v1")

    found = ask(app, "GET", "/openapi/default.json").json()
    assert (list(found["paths"]), found["info"]["version"]) == (["/user"], "v1")


def test_without_a_default_version_there_is_no_such_document(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)

    assert ask(app, "GET", "/openapi/default.json").status == 404
    with pytest.raises(ValueError, match="needs a default version; set `default_version"):
        openapi_document(app, unversioned=True)
    other = project(FILES, root="other", dev=True, default_version="latest")
    assert ask(other, "GET", "/asyncapi/default.json").status == 404
    with pytest.raises(ValueError, match="got version 'v1'; leave one out"):
        openapi_document(other, "v1", unversioned=True)


@pytest.mark.parametrize(
    ("accepted", "coding"),
    [
        ("gzip", "gzip"),
        ("br, gzip;q=0.5", "gzip"),
        ("deflate, GZIP ; q=0.001", "gzip"),
        ("*", "gzip"),
        ("identity;q=0.5, *;q=1", "gzip"),
        ("gzip;q=1.0, identity; q=0.5, *;q=0", "gzip"),
        ("identity;q=0, gzip", "gzip"),
        ("", None),
        ("gzip;q=0", None),
        ("gzip;q=0.000, *", None),
        ("*;q=0", None),
        ("identity", None),
        ("identity;q=1, gzip;q=0.5", None),
        ("br", None),
        ("gzip;q=2", None),
        ("gzip;q=-1", None),
        ("gzip," * 500, None),
    ],
)
def test_a_document_is_compressed_where_the_client_takes_it(
    project: Project, ask: Ask, accepted: str, coding: str | None
) -> None:
    app = project(FILES, dev=True)
    plain = ask(app, "GET", "/openapi.json")
    answer = ask(app, "GET", "/openapi.json", headers=[("accept-encoding", accepted)])

    assert plain.fields("content-encoding") == []
    assert answer.fields("content-encoding") == ([coding] if coding else [])
    assert answer.fields("vary") == plain.fields("vary") == ["Accept-Encoding"]
    body = gzip.decompress(answer.body) if coding else answer.body
    assert body == plain.body
    assert answer.fields("content-length") == [str(len(answer.body))]
    assert (answer.fields("etag") == plain.fields("etag")) is (coding is None)


def test_compressed_bytes_are_kept_and_have_their_own_tag(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True)
    takes = ("accept-encoding", "gzip")
    first = ask(app, "GET", "/openapi.json", headers=[takes])
    tag = first.fields("etag")[0]
    documents = app.project.kept["documents"]
    kept = documents.find_encoded("openapi", None, "", "gzip")
    again = ask(app, "GET", "/openapi.json", headers=[takes, ("if-none-match", tag)])
    head = ask(app, "HEAD", "/openapi.json", headers=[takes])

    assert kept == (first.body, tag)
    assert documents.find_encoded("openapi", None, "", "gzip") is kept
    assert (again.status, again.body, again.fields("vary")) == (304, b"", ["Accept-Encoding"])
    assert again.fields("etag") == [tag]
    assert head.fields("content-length") == [str(len(first.body))]
    assert ask(app, "GET", "/openapi.json", headers=[("if-none-match", tag)]).status == 200


def test_the_project_s_own_compression_leaves_it_as_it_is(project: Project, ask: Ask) -> None:
    text = "from treefold_http.middleware import GZip\nmiddlewares = [GZip(minimum=1)]\n"
    app = project({**FILES, "Middleware/__init__.py": text}, dev=True)
    answer = ask(app, "GET", "/openapi.json", headers=[("accept-encoding", "gzip")])

    assert answer.fields("content-encoding") == ["gzip"]
    assert answer.fields("vary") == ["Accept-Encoding"]
    assert json.loads(gzip.decompress(answer.body))["openapi"] == "3.1.0"


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
