"""Shared caches keep no answer to a credential that they do not know (S-52)."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

KEY = "k" * 20
HANDLER = """
from typing import Annotated
from treefold_http import Depends, Header, HTTPError, Response, secured
from treefold_http.auth import api_key, bearer

by_key = api_key({"ann": "KEY"})
own = secured({"type": "apiKey", "in": "header", "name": "X-Token"})
in_query = secured({"type": "apiKey", "in": "query", "name": "key"})
in_cookie = secured({"type": "apiKey", "in": "cookie", "name": "key"})

@own
def check(request):
    return request.headers.get("x-token")

middlewares = MIDDLEWARES

DECORATOR
async def handler(TAKES):
    return GIVES
"""


def code(
    *, takes: str = "", gives: str = "'ok'", decorator: str = "", middlewares: str = "[]"
) -> str:
    said = {"TAKES": takes, "GIVES": gives, "DECORATOR": decorator, "MIDDLEWARES": middlewares}
    text = HANDLER.replace("KEY", KEY)
    for name, value in said.items():
        text = text.replace(name, value)
    return text


def see(project: Project, ask: Ask, **options: str) -> tuple[list[str], list[str]]:
    app = project({"Api/v1/Get.py": code(**options)})
    answer = ask(app, "GET", "/v1", headers=[("x-api-key", KEY)])
    return answer.fields("cache-control"), answer.fields("vary")


@pytest.mark.parametrize(
    ("options", "vary"),
    [
        ({"takes": "a=Depends(by_key)"}, ["x-api-key"]),
        ({"takes": "a=Depends(check)"}, ["x-token"]),
        ({"takes": "x_api_key: Annotated[str, Header()]"}, ["x-api-key"]),
        ({"takes": "request", "decorator": "@own"}, ["x-token"]),
        ({"takes": "request", "decorator": "@in_query"}, []),
        ({"takes": "request", "decorator": "@in_cookie"}, ["cookie"]),
        (
            {
                "takes": "request",
                "middlewares": "[own(type('Own', (), {'before': lambda self, request: None})())]",
            },
            ["x-token"],
        ),
    ],
)
def test_s52_an_answer_to_a_key_is_private(
    project: Project, ask: Ask, options: dict[str, str], vary: list[str]
) -> None:
    assert see(project, ask, **options) == (["private"], vary)


@pytest.mark.parametrize(
    "options",
    [
        {"takes": "request"},
        {"takes": "a=Depends(bearer(lambda token: token, optional=True))"},
        {"takes": "accept_language: Annotated[str, Header()] = ''"},
        {"takes": "authorization: Annotated[str, Header()] = ''"},
    ],
)
def test_other_answers_say_nothing_of_caches(
    project: Project, ask: Ask, options: dict[str, str]
) -> None:
    assert see(project, ask, **options) == ([], [])


def test_what_the_author_says_takes_precedence(project: Project, ask: Ask) -> None:
    gives = "Response.text('ok', headers={'Cache-Control': 'public, max-age=60'})"
    found = see(project, ask, takes="a=Depends(by_key)", gives=gives)
    assert found == (["public, max-age=60"], ["x-api-key"])


def test_a_refusal_is_private_too(project: Project, ask: Ask) -> None:
    app = project({"Api/v1/Get.py": code(takes="a=Depends(by_key)")})
    answer = ask(app, "GET", "/v1")
    assert (answer.status, answer.fields("cache-control")) == (401, ["private"])


def test_an_answer_to_a_key_is_compressed(project: Project, ask: Ask) -> None:
    gzip = "[__import__('treefold_http.middleware').middleware.GZip()]"
    text = code(takes="a=Depends(by_key)", gives="'ok' * 1000", middlewares=gzip)
    app = project({"Api/v1/Get.py": text})
    sent = [("x-api-key", KEY), ("accept-encoding", "gzip")]
    answer = ask(app, "GET", "/v1", headers=sent)
    assert answer.fields("content-encoding") == ["gzip"]
    assert sorted(answer.fields("vary")) == ["Accept-Encoding", "x-api-key"]


@pytest.mark.parametrize(
    ("given", "vary"),
    [("X-Api-Key", ["X-Api-Key"]), ("accept, x-API-key", ["accept, x-API-key"])],
)
def test_a_field_that_the_response_names_is_named_once(
    project: Project, ask: Ask, given: str, vary: list[str]
) -> None:
    gives = f"Response.text('ok', headers={{'Vary': {given!r}}})"
    assert see(project, ask, takes="a=Depends(by_key)", gives=gives)[1] == vary


def test_a_cached_answer_to_one_of_several_logins_names_each_field_once(
    project: Project, ask: Ask
) -> None:
    route = """
        from treefold_http import Depends
        from treefold_http.auth import api_key, bearer, current_user, one_of
        from treefold_http.cache import cached
        middlewares = [cached(60)]
        login = current_user(lambda id: None)
        anyone = one_of(login, api_key({"ann": "KEY"}), bearer(lambda token: token))
        async def handler(caller=Depends(anyone)):
            return {"caller": caller}
        """
    sessions = "from treefold_http.middleware import Sessions\nmiddlewares = [Sessions()]\n"
    files = {"Api/v1/Get.py": dedent(route).replace("KEY", KEY), "Middleware/__init__.py": sessions}
    app = project(files, dev=True)
    for _ in range(2):
        answer = ask(app, "GET", "/v1", headers=[("x-api-key", KEY)])
        assert answer.json() == {"caller": "ann"}
        assert sorted(answer.fields("vary")) == ["authorization", "cookie", "x-api-key"]
