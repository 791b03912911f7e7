"""Secrets in paths that no route serves: a mistyped path is logged like the right one (S-81)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application, Settings

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

HANDLER = "async def handler(request):\n    return {}\n"
FILES = {
    "Api/v1/Reset/[token]/Get.py": HANDLER,
    "Api/v1/Reset/Help/Get.py": HANDLER,
    "Api/v1/User/[id]/Key/[api_key]/Item/[item]/Post.py": HANDLER,
    "Api/v2/Team/[name]/Invite/[secret]/Get.py": HANDLER,
    "Api/v1/Plain/[name]/Get.py": HANDLER,
}


def logged(lines: Lines) -> list[str]:
    return [getattr(record, "path", "") for record in lines.records]


@pytest.mark.parametrize(
    ("target", "status", "shown"),
    [
        ("/v1/reset/S3cret/more", 404, "/v1/reset/***/more"),
        ("/v1/reset/S3cret%00", 400, "/v1/reset/***"),
        ("/v1/reset/S3cret/%ff", 400, "/v1/reset/***/%ff"),
        ("/reset/S3cret", 404, "/reset/***"),
        ("/v9/reset/S3cret", 404, "/v9/reset/***"),
        ("/V1/RESET/S3cret", 404, "/V1/RESET/***"),
        ("/v2/reset/S3cret", 404, "/v2/reset/***"),
        ("//v1//reset//S3cret//x", 404, "//v1//reset//***//x"),
        ("/v1/res%65t/S3cret/x", 404, "/v1/res%65t/***/x"),
        ("/v1/reset%2FS3cret", 404, "/v1/***"),
        ("/v1/user/7/key/S3cret", 404, "/v1/user/7/key/***"),
        ("/v1/user/7/key/S3cret/item/9/x", 404, "/v1/user/7/key/***/item/9/x"),
        ("/team/red/invite/S3cret?a=1", 404, "/team/red/invite/***?a=1"),
        ("http://other/v1/reset/S3cret", 400, "http://other/v1/reset/***"),
    ],
)
def test_s81_a_secret_in_a_path_without_a_route_is_masked(
    project: Project, ask: Ask, lines: Lines, target: str, status: int, shown: str
) -> None:
    app = project(FILES)
    app.boot()
    lines.records.clear()

    assert ask(app, "GET", target).status == status
    assert logged(lines) == [shown]


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/v1/reset", 404),
        ("PUT", "/v1/reset/help", 405),
        ("GET", "/v1/plain/name/more", 404),
        ("GET", "/v1/other/reset/x", 404),
        ("GET", "/v1/user/7/key", 404),
    ],
)
def test_other_paths_without_a_route_are_shown(
    project: Project, ask: Ask, lines: Lines, method: str, target: str, status: int
) -> None:
    app = project(FILES)
    app.boot()
    lines.records.clear()

    assert ask(app, method, target).status == status
    assert logged(lines) == [target]


@pytest.mark.parametrize("target", ["/api/v1/reset/S3cret/x", "/v1/reset/S3cret/x"])
def test_s81_the_prefix_of_a_proxy_is_no_part_of_the_template(
    project: Project, ask: Ask, lines: Lines, target: str
) -> None:
    app = project(FILES, settings=Settings(root_path="/api"))
    app.boot()
    lines.records.clear()

    assert ask(app, "GET", target).status == 404
    assert logged(lines) == ["/api/v1/reset/***/x"]


@pytest.mark.parametrize("headers", [[("content-length", "x")], [("host", "a"), ("host", "b")]])
def test_s81_a_request_that_is_refused_before_routing_is_masked_too(
    project: Project, ask: Ask, lines: Lines, headers: list[tuple[str, str]]
) -> None:
    app = project(FILES)
    app.boot()
    lines.records.clear()

    assert ask(app, "GET", "/v1/reset/S3cret/x", headers=headers).status == 400
    assert logged(lines) == ["/v1/reset/***/x"]
