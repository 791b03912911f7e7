"""Sessions for pages of other sites: the cookie that browsers then keep, and a login they drop."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application, Settings

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

PAGE = "https://app.pages.example"
SETTINGS = Settings(secret_key="0123456789abcdef" * 2)
NONE = {"Max-Age=1209600", "Path=/", "Secure", "HttpOnly", "SameSite=None"}


def application(project: Project, options: str, *, dev: bool = False) -> Application:
    tree = {
        "Middleware/__init__.py": f"""
            from treefold_http.middleware import Sessions
            middlewares = [Sessions(trusted_origins=[{PAGE!r}]{options})]
            """,
        "Api/v1/Session/Post.py": """
            from treefold_http.auth import login

            async def handler(request):
                login(request, (await request.json())["user"])
            """,
        "Api/v1/Session/Delete.py": """
            from treefold_http.auth import logout

            async def handler(request):
                logout(request)
            """,
        "Api/v1/User/Get.py": "async def handler(request): return request.session.user or 'no'",
    }
    return project(tree, settings=SETTINGS, dev=dev)


def login(ask: Ask, app: Application, site: str, origin: str | None = PAGE) -> Answer:
    headers = [("sec-fetch-site", site), *([("origin", origin)] if origin else [])]
    chunks = [json.dumps({"user": "ann"}).encode()]
    return ask(app, "POST", "/v1/session", headers=headers, chunks=chunks)


@pytest.mark.parametrize("dev", [False, True])
@pytest.mark.parametrize(
    ("options", "attributes"),
    [
        (", samesite='none'", NONE | {"Partitioned"}),
        (", samesite='none', partitioned=False", NONE),
        (", partitioned=True", NONE - {"SameSite=None"} | {"SameSite=Lax", "Partitioned"}),
        (", samesite='none', store='cookie'", NONE | {"Partitioned"}),
    ],
)
def test_a_cookie_for_other_sites_is_secure_everywhere(
    project: Project, ask: Ask, options: str, attributes: set[str], dev: bool
) -> None:
    app = application(project, options, dev=dev)
    (field,) = login(ask, app, "cross-site").fields("set-cookie")
    cookie, *found = field.split("; ")
    assert cookie.startswith("__Host-session=")
    assert set(found) == attributes

    page = [("origin", PAGE), ("cookie", cookie)]
    assert ask(app, "GET", "/v1/user", headers=page).body == b"ann"
    (field,) = ask(app, "DELETE", "/v1/session", headers=page).fields("set-cookie")
    cookie, *found = field.split("; ")
    assert cookie == "__Host-session="
    assert set(found) == attributes - {"Max-Age=1209600"} | {"Max-Age=0"}


@pytest.mark.parametrize("options", ["", ", samesite='strict'", ", store='cookie'"])
def test_a_login_that_the_browser_drops_is_told_once(
    project: Project, ask: Ask, lines: Lines, options: str
) -> None:
    app = application(project, options)
    for _ in range(3):
        assert login(ask, app, "cross-site").status == 204

    (warning,) = lines.texts(logging.WARNING)
    samesite = "Strict" if "strict" in options else "Lax"
    assert warning == (
        f"login from {PAGE}, a page of another site: its browser drops the session, whose cookie is"
        f" SameSite={samesite}; serve both from one site, or set Sessions(samesite='none')"
    )


@pytest.mark.parametrize(
    ("options", "site", "origin"),
    [
        ("", "same-site", PAGE),
        ("", "same-origin", None),
        ("", "none", None),
        (", samesite='none'", "cross-site", PAGE),
    ],
)
def test_a_login_that_the_browser_keeps_is_no_warning(
    project: Project, ask: Ask, lines: Lines, options: str, site: str, origin: str | None
) -> None:
    assert login(ask, application(project, options), site, origin).status == 204
    assert lines.texts(logging.WARNING) == []


def test_a_foreign_page_cannot_cause_the_warning(project: Project, ask: Ask, lines: Lines) -> None:
    assert login(ask, application(project, ""), "cross-site", "https://evil.example").status == 403
    assert lines.texts(logging.WARNING) == []
