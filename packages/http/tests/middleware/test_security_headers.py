"""SecurityHeaders: on every answer, never over a field of the answer's own (S-49, S-57, D-14)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.middleware import SecurityHeaders

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request):\n    return '<html>'\n",
    "Api/v1/Crash/Get.py": "async def handler(request):\n    raise LookupError('no')\n",
    "Api/v1/Body/Post.py": "max_body = 2\n"
    "async def handler(request):\n    return len(await request.body())\n",
    "Api/v1/Stream/Get.py": "async def handler(request):\n    yield 'a'\n",
    "Api/v1/Page/Get.py": "from treefold_http import Response\n"
    "async def handler(request):\n"
    "    return Response.html('<p>', headers={'Content-Security-Policy': \"default-src 'self'\","
    " 'Cache-Control': 'private'})\n",
    "Public/app.css": "p {}",
    "hooks.py": "from treefold_http import StaticFiles\n"
    "def mount(app):\n    app.mount('/static', StaticFiles('Public'))\n"
    "on_startup = [mount]\n",
}
DEFAULTS = {
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
}
NAMES = {*DEFAULTS, "cache-control", "strict-transport-security", "permissions-policy"}


def application(project: Project, entries: str = "SecurityHeaders()", **more: Any) -> Application:
    code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
    return project({**TREE, "Middleware/__init__.py": code}, **more)


def security_fields(answer: Answer) -> dict[str, str]:
    found = [(name, value) for name, value in answer.headers if name in NAMES]
    assert len(dict(found)) == len(found), found
    return dict(found)


@pytest.mark.parametrize(
    ("method", "target", "status", "body"),
    [
        ("GET", "/v1/ok", 200, b""),
        ("GET", "/v1/stream", 200, b""),
        ("GET", "/v1/none", 404, b""),
        ("POST", "/v1/ok", 405, b""),
        ("POST", "/v1/body", 413, b"long"),
        ("GET", "/v1/%ff", 400, b""),
        ("GET", "/v1/crash", 500, b""),
    ],
)
def test_s49_s57_every_answer_carries_the_fields(
    project: Project, ask: Ask, method: str, target: str, status: int, body: bytes
) -> None:
    answer = ask(application(project), method, target, chunks=[body] if body else [])

    assert (answer.status, security_fields(answer)) == (status, DEFAULTS)


def test_s49_text_is_text_whatever_it_looks_like(project: Project, ask: Ask) -> None:
    answer = ask(application(project), "GET", "/v1/ok")

    assert answer.fields("content-type") == ["text/plain; charset=utf-8"]


def test_d14_a_field_of_the_answer_wins(project: Project, ask: Ask) -> None:
    answer = ask(application(project), "GET", "/v1/page", headers=[("authorization", "Bearer x")])

    assert security_fields(answer) == DEFAULTS | {
        "content-security-policy": "default-src 'self'",
        "cache-control": "private",
    }


@pytest.mark.parametrize("target", ["/v1/ok", "/v1/none", "/v1/crash"])
def test_d14_an_answer_to_credentials_is_not_stored(
    project: Project, ask: Ask, target: str
) -> None:
    answer = ask(application(project), "GET", target, headers=[("authorization", "Basic x")])

    assert security_fields(answer) == DEFAULTS | {"cache-control": "no-store"}


def test_d14_a_mounted_folder_keeps_its_own_policy(project: Project, ask: Ask) -> None:
    answer = ask(application(project), "GET", "/static/app.css")

    without = {k: v for k, v in DEFAULTS.items() if k != "content-security-policy"}
    assert (answer.status, answer.body) == (200, b"p {}")
    assert {k: v for k, v in security_fields(answer).items() if k != "cache-control"} == without
    assert ask(application(project), "GET", "/static/none").status == 404


@pytest.mark.parametrize(
    "order", ["CORS(['*']), SecurityHeaders()", "SecurityHeaders(), CORS(['*'])"]
)
@pytest.mark.parametrize("target", ["/v1/ok", "/v1/none"])
def test_d14_a_route_that_other_origins_read_says_nothing_of_resources(
    project: Project, ask: Ask, order: str, target: str
) -> None:
    answer = ask(application(project, order), "GET", target)

    without = {k: v for k, v in DEFAULTS.items() if k != "cross-origin-resource-policy"}
    assert security_fields(answer) == without


@pytest.mark.parametrize(
    ("options", "scheme", "sent"),
    [
        ("", "https", None),
        ("hsts=True", "http", None),
        ("hsts=True", "https", "max-age=31536000"),
        (
            "hsts=True, hsts_max_age=60, hsts_subdomains=True",
            "https",
            "max-age=60; includeSubDomains",
        ),
    ],
)
@pytest.mark.parametrize("target", ["/v1/ok", "/v1/none", "/static/app.css"])
def test_d14_hsts_is_asked_for_and_on_https_only(
    project: Project, ask: Ask, options: str, scheme: str, sent: str | None, target: str
) -> None:
    app = application(project, f"SecurityHeaders({options})")

    answer = ask(app, "GET", target, more={"scheme": scheme})
    assert answer.fields("strict-transport-security") == ([sent] if sent else [])


def test_hsts_follows_the_scheme_that_a_trusted_proxy_tells(project: Project, ask: Ask) -> None:
    app = application(project, "ProxyHeaders(['127.0.0.1']), SecurityHeaders(hsts=True)")
    headers = [("x-forwarded-proto", "https")]

    answer = ask(app, "GET", "/v1/ok", headers=headers)
    assert answer.fields("strict-transport-security") == ["max-age=31536000"]


def test_fields_are_left_out_changed_and_added(project: Project, ask: Ask) -> None:
    app = application(
        project,
        "SecurityHeaders(content_security_policy=None, frame_options='SAMEORIGIN',"
        " referrer_policy=None, resource_policy=None,"
        " more={'Permissions-Policy': 'camera=()'})",
    )

    assert security_fields(ask(app, "GET", "/v1/ok")) == {
        "x-content-type-options": "nosniff",
        "x-frame-options": "SAMEORIGIN",
        "permissions-policy": "camera=()",
    }


def test_a_field_that_cannot_be_sent_is_refused() -> None:
    with pytest.raises(ValueError, match="x-one"):
        SecurityHeaders(more={"x-one": "a\r\nb: c"})
    with pytest.raises(ValueError, match="hsts_max_age must be 0 or more seconds, got -1"):
        SecurityHeaders(hsts_max_age=-1)
