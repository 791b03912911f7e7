"""The page that explains a 404 or 405 to a browser, in development only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application, Settings

Ask = Callable[..., Any]
Project = Callable[..., Application]

BROWSER = (("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"),)
HANDLER = "async def handler(request):\n    return {}\n"
FILES = {"Api/v1/Health/Get.py": HANDLER, "Api/V1/User/Get.py": HANDLER}


def text_of(answer: Any) -> str:
    assert answer.fields("content-type") == ["text/html; charset=utf-8"]
    return answer.body.decode()


def test_a_browser_sees_what_why_prints(project: Project, ask: Ask) -> None:
    answer = ask(project(FILES, dev=True), "GET", "/v1/helth?token=zz", headers=BROWSER)
    page = text_of(answer)
    assert answer.status == 404
    assert "<h1>404 Not Found: GET /v1/helth</h1>" in page
    assert "matches nothing: there is health" in page
    assert "GET /v1/health  Api/v1/Health/Get.py" in page
    assert "treefold create v1/helth get" in page
    assert answer.fields("x-request-id")[0] in page
    assert "zz" not in page


def test_a_skipped_file_is_shown_with_its_reason(project: Project, ask: Ask) -> None:
    page = text_of(ask(project(FILES, dev=True), "GET", "/v1/user", headers=BROWSER))
    assert "Api/V1/User/Get.py: not under a version folder (vN)" in page


def test_a_missing_method_is_explained_and_allow_is_kept(project: Project, ask: Ask) -> None:
    answer = ask(project(FILES, dev=True), "POST", "/v1/health", headers=BROWSER)
    assert (answer.status, answer.fields("allow")) == (405, ["GET"])
    assert "405: the path exists, but for GET only" in text_of(answer)


def test_a_path_without_a_version_is_explained_in_the_default_version(
    project: Project, ask: Ask
) -> None:
    app = project(FILES, dev=True, default_version="latest")
    page = text_of(ask(app, "GET", "/helth", headers=BROWSER))
    assert "none in the path, default_version is v1" in page
    assert "no default_version serves it" not in page


@pytest.mark.parametrize("root_path", ["", "/shop"])
def test_the_page_links_to_the_docs(project: Project, ask: Ask, root_path: str) -> None:
    app = project(FILES, dev=True, settings=Settings(root_path=root_path))
    page = text_of(ask(app, "GET", f"{root_path}/", headers=BROWSER))
    assert f'<a href="{root_path}/docs">{root_path}/docs</a>' in page


def test_without_docs_the_page_links_to_nothing(project: Project, ask: Ask) -> None:
    app = project(FILES, dev=True, settings=Settings(docs=False))
    assert "<a " not in text_of(ask(app, "GET", "/", headers=BROWSER))


def test_everything_is_escaped_and_nothing_runs(project: Project, ask: Ask) -> None:
    target = "/v1/%3Cscript%3Ealert(1)%3C/script%3E%22%27/$(reboot)"
    answer = ask(project(FILES, dev=True), "GET", target, headers=BROWSER)
    page = text_of(answer)
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "treefold why GET &#x27;/v1/" in page
    assert answer.fields("content-security-policy") == [
        "default-src 'none'; style-src 'unsafe-inline'"
    ]


@pytest.mark.parametrize("accept", ["application/json", "*/*", "text/plain", ""])
def test_other_clients_get_the_problem_document(project: Project, ask: Ask, accept: str) -> None:
    answer = ask(project(FILES, dev=True), "GET", "/v1/x", headers=(("accept", accept),))
    assert (answer.status, answer.json()["title"]) == (404, "Not Found")


def test_production_tells_a_browser_nothing(project: Project, ask: Ask) -> None:
    answer = ask(project(FILES), "GET", "/v1/helth", headers=BROWSER)
    assert answer.fields("content-type") == ["application/problem+json"]
    assert b"health" not in answer.body


def test_a_404_of_a_handler_is_its_own(project: Project, ask: Ask) -> None:
    raising = (
        "from treefold_http import NotFound\n\nasync def handler(request):\n    raise NotFound()\n"
    )
    app = project({"Api/v1/X/Get.py": raising}, dev=True)
    answer = ask(app, "GET", "/v1/x", headers=BROWSER)
    assert answer.fields("content-type") == ["application/problem+json"]


def test_a_malformed_path_stays_a_problem(project: Project, ask: Ask) -> None:
    answer = ask(project(FILES, dev=True), "GET", "/v1/%ff", headers=BROWSER)
    assert (answer.status, answer.json()["status"]) == (400, 400)


def test_a_prefix_of_the_server_is_no_part_of_the_path(project: Project, ask: Ask) -> None:
    more = {"root_path": "/shop"}
    answer = ask(project(FILES, dev=True), "GET", "/shop/v1/helth", headers=BROWSER, more=more)
    assert "GET /v1/helth</h1>" in text_of(answer)


def test_an_exception_handler_of_the_project_wins(project: Project, ask: Ask) -> None:
    from treefold_http import NotFound

    app = project(FILES, dev=True)

    @app.exception_handler(NotFound)
    async def shown(request: Any, error: Exception) -> Any:
        return "mine", 404

    assert ask(app, "GET", "/v1/x", headers=BROWSER).body == b"mine"
