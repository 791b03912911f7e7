"""The error format: declared once, used by every error response and by the documents."""

from __future__ import annotations

import re
from collections.abc import Callable
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest
from http_reloading import MakeLive

from treefold_http import Application, ErrorFormat, HTTPError

if TYPE_CHECKING:
    from conftest import Answer, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]
Document = Callable[..., dict[str, Any]]

FORMAT = """
    from dataclasses import dataclass

    @dataclass
    class Fault:
        code: int
        message: str
        places: list[str]

    def error_format(request, error) -> Fault:
        places = [".".join(map(str, entry["loc"])) for entry in error.errors or ()]
        return Fault(error.status, error.message, places)
"""
FILES = {
    "hooks.py": FORMAT,
    "Api/v1/X/Get.py": "def handler(n: int): return [n]\n",
    "Api/v1/Taken/Get.py": """
        from treefold_http import Conflict
        def handler(): raise Conflict("taken", headers={"X-Why": "name"})
    """,
    "Api/v1/Crash/Get.py": "def handler(): raise ValueError('s3cret')\n",
    "Api/v1/Limited/Get.py": """
        from treefold_http.middleware import RateLimit
        middlewares = [RateLimit("1/hour")]
        def handler(): return "ok"
    """,
    "Api/v1/Broken/Get.py": "import nothing_like_this\n",
    "Api/v2/Live/Socket.py": """
        from treefold_http import Forbidden
        async def handler(websocket): raise Forbidden("members only")
    """,
    "extensions.py": """
        from treefold_http import StaticFiles
        class Mount:
            def setup(self, app):
                app.mount("/static", StaticFiles("web"))
        extensions = [Mount()]
    """,
    "web/page.txt": "page",
}
JSON = "application/json"
PROBLEM = "application/problem+json"
LOCAL = [("host", "localhost")]


def fault(answer: Answer) -> tuple[int, Any]:
    assert answer.fields("content-type") == [JSON]
    assert answer.json()["code"] == answer.status
    return answer.status, answer.json()


@pytest.mark.parametrize(
    ("method", "target", "status", "message", "places"),
    [
        ("GET", "/v1/none", 404, "There is nothing at this path", []),
        ("GET", "/none", 404, "There is nothing at this path", []),
        ("GET", "/v9/x", 404, "There is nothing at this path", []),
        ("GET", "/static/none", 404, "There is nothing at this path", []),
        ("POST", "/v1/x", 405, "This path answers GET", []),
        ("GET", "/v1/x", 422, "The request is not valid: query.n: n is required", ["query.n"]),
        ("GET", "/v1/taken", 409, "taken", []),
        ("GET", "/v1/crash", 500, "The server failed to answer this request", []),
        ("GET", "/v1/broken", 500, "handler failed to load", []),
        ("GET", "/v1/%ff", 400, "Path is not valid UTF-8 once it is percent-decoded", []),
    ],
)
def test_every_error_has_the_declared_form(
    project: Project,
    ask: Ask,
    method: str,
    target: str,
    status: int,
    message: str,
    places: list[str],
) -> None:
    found = fault(ask(project(FILES), method, target))

    assert found == (status, {"code": status, "message": message, "places": places})


def test_the_header_fields_of_an_error_stay(project: Project, ask: Ask) -> None:
    app = project(FILES)

    assert ask(app, "GET", "/v1/taken").fields("x-why") == ["name"]
    assert ask(app, "POST", "/v1/x").fields("allow") == ["GET"]


def test_a_refusal_of_middleware_has_the_declared_form(project: Project, ask: Ask) -> None:
    app = project(FILES)
    assert ask(app, "GET", "/v1/limited").status == 200
    refused = ask(app, "GET", "/v1/limited")

    assert fault(refused)[0] == 429
    assert refused.fields("retry-after") != []


def test_a_head_request_gets_the_header_of_the_error_alone(project: Project, ask: Ask) -> None:
    answer = ask(project(FILES), "HEAD", "/v1/x")

    assert (answer.status, answer.body, answer.fields("content-type")) == (405, b"", [JSON])
    assert int(answer.fields("content-length")[0]) > 20


@pytest.mark.parametrize(
    ("target", "status"), [("/v2/live", 403), ("/v2/none", 404), ("/v1/x", 405)]
)
def test_a_refused_socket_gets_the_declared_form(
    project: Project, talk: Talk, target: str, status: int
) -> None:
    refusal = talk(project(FILES), target).refusal

    assert fault(refusal)[0] == status


def test_a_socket_that_cannot_be_answered_is_closed(project: Project, talk: Talk) -> None:
    assert talk(project(FILES), "/v2/live", more={"extensions": {}}).code == 1008


def test_an_error_document_holds_no_markup(project: Project, ask: Ask) -> None:
    taken = {"Api/v1/Taken/Get.py": FILES["Api/v1/Taken/Get.py"].replace("taken", "<script>")}
    answer = ask(project(FILES | taken), "GET", "/v1/taken")

    assert b"<" not in answer.body
    assert answer.json()["message"] == "<script>"


WRONG = [
    "raise LookupError(f's3cret {error.message}')",
    "return {'code': 's3cret'}",
    "return 's3cret'",
    "return None",
    "return Fault('s3cret', 1, 2)",
    "return {'code': 1, 'message': 'm', 'places': [b's3cret']}",
    "raise SystemExit('s3cret')",
]


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("style", ["def", "async def"])
def test_a_format_that_fails_leaves_the_problem_document(
    project: Project, ask: Ask, lines: Lines, wrong: str, style: str
) -> None:
    head, _, _ = dedent(FORMAT).partition("def error_format")
    code = f"{head}{style} error_format(request, error) -> Fault:\n    {wrong}\n"
    answer = ask(project(FILES | {"hooks.py": code}), "GET", "/v1/taken")

    assert (answer.status, answer.json()["detail"]) == (409, "taken")
    assert answer.fields("content-type") == [PROBLEM]
    assert answer.fields("x-why") == ["name"]
    assert b"s3cret" not in answer.body
    logged = [text for text in lines.texts() if text.startswith("error_format failed")]
    assert logged == ["error_format failed for status 409: the problem document was sent"]


def test_a_crash_behind_a_failing_format_is_still_hidden(project: Project, ask: Ask) -> None:
    head, _, _ = dedent(FORMAT).partition("def error_format")
    code = f"{head}def error_format(request, error) -> Fault: raise ValueError('other')\n"
    answer = ask(project(FILES | {"hooks.py": code}), "GET", "/v1/crash")

    assert (answer.status, answer.fields("content-type")) == (500, [PROBLEM])
    assert b"s3cret" not in answer.body
    assert b"other" not in answer.body


def test_development_names_the_exception_in_the_declared_form(project: Project, ask: Ask) -> None:
    answer = ask(project(FILES, dev=True), "GET", "/v1/crash", headers=LOCAL, host=False)

    assert fault(answer)[1]["message"] == "ValueError: s3cret"


def test_code_may_declare_the_format_with_a_media_type(project: Project, ask: Ask) -> None:
    app = project({"Api/v1/X/Get.py": FILES["Api/v1/X/Get.py"]})

    async def render(request: Any, error: HTTPError) -> dict[str, str]:
        return {"error": error.title, "at": request.path}

    app.error_format(ErrorFormat(render, media_type="application/vnd.me+json"))
    answer = ask(app, "GET", "/v1/none")

    assert answer.fields("content-type") == ["application/vnd.me+json"]
    assert answer.json() == {"error": "Not Found", "at": "/v1/none"}


def test_a_registered_exception_handler_goes_before_the_format(project: Project, ask: Ask) -> None:
    app = project(FILES)

    @app.exception_handler(HTTPError)
    def page(request: Any, error: HTTPError) -> Any:
        return "own", error.status

    assert ask(app, "GET", "/v1/none").body == b"own"


def test_a_saved_format_serves_and_a_broken_one_does_not(live: MakeLive) -> None:
    app = live({"hooks.py": FORMAT, "Api/v1/X/Get.py": "def handler(): return [1]\n"})
    assert app.answer("/v1/none").json()["code"] == 404

    app.edit({"hooks.py": FORMAT.replace("error.status, ", "error.status + 1, ")})
    assert app.answer("/v1/none").json()["code"] == 405

    app.edit({"hooks.py": "error_format = 5\n"})
    assert app.answer("/v1/none").json()["code"] == 405


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("error_format = 5", "An error format must be a function of the request and the error"),
        ("def error_format(request, error): ...", "error_format() must say the model of all"),
        ("def error_format(request, error) -> int: ...", "got the annotation int"),
        ("def error_format(request, error) -> None: ...", "got the annotation NoneType"),
        ("def error_format(error) -> dict: ...", "error_format() must take the request and"),
        ("def error_format(request, error) -> 'Gone': ...", "import the names that it uses"),
    ],
)
def test_a_format_without_a_model_stops_the_boot(project: Project, code: str, message: str) -> None:
    app = project(FILES | {"hooks.py": f"{code}\n"})

    with pytest.raises(Exception, match=re.escape(message)) as raised:
        app.boot()
    assert "hooks.py" in str(raised.value)


# -- documents


def test_documents_promise_the_declared_form_everywhere(document: Document) -> None:
    found = document(FILES)
    schemas = {
        (path, status): said["content"]
        for path, item in found["paths"].items()
        for status, said in item.get("get", {}).get("responses", {}).items()
        if status[0] in "45"
    }

    assert {status for _, status in schemas} >= {"400", "409", "422", "429"}
    promised = {JSON: {"schema": {"$ref": "#/components/schemas/Fault"}}}
    assert all(content == promised for content in schemas.values())
    assert list(found["components"]["schemas"]) == ["Fault"]


def test_responses_of_an_operation_win_over_the_format(document: Document) -> None:
    text = """
        responses = {404: {"model": list[str]}, 409: "Taken", "5XX": "Down"}
        def handler(n: int): return [n]
    """
    found = document(FILES | {"Api/v1/X/Get.py": text})["paths"]["/v1/x"]["get"]["responses"]

    assert found["404"]["content"][JSON]["schema"]["type"] == "array"
    promised = {JSON: {"schema": {"$ref": "#/components/schemas/Fault"}}}
    assert [found[status]["content"] for status in ("409", "5XX", "422")] == [promised] * 3


def test_a_format_that_code_declares_later_is_in_the_documents(project: Project, ask: Ask) -> None:
    app = project({"Api/v1/X/Get.py": FILES["Api/v1/X/Get.py"]}, dev=True)
    assert PROBLEM in ask(app, "GET", "/openapi.json", headers=LOCAL, host=False).body.decode()

    def render(request: Any, error: HTTPError) -> dict[str, str]:
        return {"error": error.title}

    app.error_format(render)
    written = ask(app, "GET", "/openapi.json", headers=LOCAL, host=False).body.decode()
    assert PROBLEM not in written


# -- examples of problem documents


def test_an_example_says_the_status_that_it_stands_under(document: Document) -> None:
    files = {name: text for name, text in FILES.items() if name != "hooks.py"}
    found = document(files)
    examples = {
        (status, said["content"][PROBLEM]["example"]["status"])
        for item in found["paths"].values()
        for status, said in item.get("get", {}).get("responses", {}).items()
        if status[0] in "45"
    }

    assert {status for status, _ in examples} >= {"400", "409", "422", "429"}
    assert all(int(status) == shown for status, shown in examples)


def test_an_example_of_the_author_stays(document: Document) -> None:
    text = """
        responses = {404: {"description": "Gone", "example": {"status": 404}}, "4XX": "Refused"}
        def handler(): return []
    """
    found = document({"Api/v1/X/Get.py": text})["paths"]["/v1/x"]["get"]["responses"]

    assert found["404"]["content"][PROBLEM]["example"] == {"status": 404}
    assert "example" not in found["4XX"]["content"][PROBLEM]
