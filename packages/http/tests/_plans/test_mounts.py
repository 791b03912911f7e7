"""Mounts: which paths a folder of files answers, beside routes and versions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Request, Response, StaticFiles
from treefold_http._plans.mounts import Mounts

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]


class Named:
    """Something that can be mounted, and says how it was asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def check(self, root: Path) -> None: ...

    async def response(self, path_segments: Sequence[str], request: Request) -> Response:
        return Response.json([self.name, list(path_segments)])


def mounts(*prefixes: str) -> Mounts:
    made = Mounts()
    for prefix in prefixes:
        made.add_mount(prefix, Named(prefix))
    return made


FOUND: list[tuple[bytes | str, list[Any] | None]] = [
    (b"/static", ["/static", []]),
    (b"/static/", ["/static", []]),
    (b"//static//a", ["/static", ["a"]]),
    (b"/static/a/b.css", ["/static", ["a", "b.css"]]),
    (b"/static/a%20b/%C3%A4", ["/static", ["a b", "ä"]]),
    (b"/%73tatic/a", ["/static", ["a"]]),
    (b"/static/a%2Fb", ["/static", ["a/b"]]),
    (b"/static/%252e%252e", ["/static", ["%2e%2e"]]),
    (b"/static/deep/a", ["/static/deep", ["a"]]),
    (b"/static/deeper", ["/static", ["deeper"]]),
    ("/static/ä%20", ["/static", ["ä%20"]]),
    (b"/statics", None),
    (b"/Static", None),
    (b"/stati", None),
    (b"/", None),
    (b"/other/static", None),
    (b"/static%2Fdeep/a", None),
]


@pytest.mark.parametrize(("path", "found"), FOUND)
def test_the_longest_prefix_of_whole_segments_answers(
    request_of: Callable[..., Request], path: bytes | str, found: list[Any] | None
) -> None:
    async def main() -> None:
        answer = mounts("/static", "/static/deep").find_mount(path)
        assert (answer is None) is (found is None)
        if answer is not None:
            response = await answer(request_of())
            assert response.body == Response.json(found).body

    asyncio.run(main())


@pytest.mark.parametrize(
    ("prefix", "message"),
    [
        (
            "",
            r"^Mount prefix must start with '/' and a name, got ''; write a path such as"
            r" '/static'$",
        ),
        ("/", r"^Mount prefix must start with '/' and a name, got '/'; "),
        ("static", r"^Mount prefix must start with '/' and a name, got 'static'; "),
        ("/v1", r"^Mount prefix '/v1' is inside a version; choose one outside$"),
        ("/v1/static", r"is inside a version"),
        ("//v01", r"is inside a version"),
        ("/taken", r"^Mount prefix '/taken' is taken; choose another$"),
        ("/taken/", r"is taken"),
        ("//taken", r"is taken"),
    ],
)
def test_a_prefix_that_nothing_can_answer_is_refused(prefix: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        mounts("/taken", prefix)


def test_nothing_mounted_is_false() -> None:
    assert not mounts()
    assert mounts("/static")


@pytest.fixture
def mounted(project: Project) -> Application:
    """An application with a folder of files at `/static`, and a version that serves by default."""
    app = project(
        {
            "Api/v1/Static/Get.py": "def handler():\n    return 'route'\n",
            "Api/v1/Other/Get.py": "def handler():\n    return 'route'\n",
            "Middleware/__init__.py": """
                async def layer(request, call_next):
                    response = await call_next(request)
                    response.headers["x-layer"] = str(request.route)
                    return response

                middlewares = [layer]
                """,
            "web/a.css": "a {}",
        },
        default_version="latest",
    )
    app.mount("/static", StaticFiles(app.root / "web"))
    return app


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/static/a.css", 200),
        ("HEAD", "/static/a.css", 200),
        ("POST", "/static/a.css", 405),
        ("GET", "/static/none", 404),
        ("GET", "/static/%2e%2e/Api/v1/Other/Get.py", 404),
        ("GET", "/static/..", 404),
        ("GET", "/static/%ff", 400),
        ("GET", "/static/%00", 400),
        ("GET", "/v1/static", 200),
        ("GET", "/v1/static/a.css", 404),
        ("GET", "/v9/static/a.css", 404),
        ("GET", "/other", 200),
    ],
)
def test_files_are_answered_outside_of_versions_and_inside_the_middleware(
    mounted: Application, ask: Ask, lines: Lines, method: str, target: str, status: int
) -> None:
    mounted.boot()
    lines.records.clear()
    answer = ask(mounted, method, target)

    assert answer.status == status
    assert len(answer.fields("x-layer")) == 1
    assert answer.fields("x-content-type-options") == ["nosniff"]
    assert [t.split(" ")[:3] for t in lines.texts() if t.startswith(method)] == [
        [method, target, str(status)]
    ]


def test_a_mount_comes_before_the_default_version(mounted: Application, ask: Ask) -> None:
    assert ask(mounted, "GET", "/static/a.css").body == b"a {}"
    assert ask(mounted, "GET", "/other").body == b"route"


def test_a_mounted_application_leaves_the_root_path_out(mounted: Application, ask: Ask) -> None:
    answer = ask(mounted, "GET", "/sub/static/a.css", more={"root_path": "/sub"})

    assert answer.body == b"a {}"


@pytest.mark.parametrize("folder", ["none", ".", "Api", "Api/v1"])
def test_a_folder_that_must_not_be_served_is_refused(mounted: Application, folder: str) -> None:
    with pytest.raises(BootError):
        mounted.mount("/more", StaticFiles(mounted.root / folder))

    assert mounted.mounts.find_mount(b"/more/a") is None
