"""Middleware scoped to a version, whose place another version inherits."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application
from treefold_http.extensions import find_lost_guards

if TYPE_CHECKING:
    from conftest import Lines

Project = Callable[..., Application]

GET = "def handler(): return 'ok'\n"
GUARDS = """
from treefold_http.middleware import under, requests_only

async def refuse(request, call_next):
    return ("no", 403)

async def other(request, call_next):
    return await call_next(request)

class Gate:
    def before(self, connection): ...

middlewares = [{entries}]
"""


def guarded(project: Project, entries: str, **more: str) -> Application:
    return project(
        {
            "Api/v1/Admin/[id]/Get.py": GET,
            "Api/v1/Get.py": GET,
            "Api/v2/version.toml": 'inherits = "v1"',
            "Middleware/__init__.py": GUARDS.format(entries=entries),
            **more,
        }
    )


def lost(app: Application) -> list[str]:
    app.boot()
    project = app.project
    listed = project.boot_files.middlewares
    return [str(one) for one in find_lost_guards(app.table, listed, project.modules)]


def test_a_guard_of_the_base_only_is_lost(project: Project, lines: Lines) -> None:
    app = guarded(project, "under('/v1/admin', refuse)")
    text = (
        "refuse covers /v1/admin and not /v2/admin/{id}, which v2 inherits; write"
        " under('/*/admin', ...)"
    )
    assert lost(app) == [text]
    assert [line for line in lines.texts() if "lost guard" in line] == [f"lost guard: {text}"]


def test_a_guard_of_a_whole_version_names_the_form_for_all(project: Project) -> None:
    (text,) = lost(guarded(project, "under('/v1', requests_only(Gate()))"))
    assert text == (
        "Gate covers /v1 and not /v2/admin/{id}, which v2 inherits; write under('/*', ...)"
    )


@pytest.mark.parametrize(
    "entries",
    [
        "under('/*/admin', refuse)",
        "refuse",
        "under('/v1/admin', refuse), under('/v2/admin', refuse)",
        "under('/v1/admin', Gate()), under('/v2/admin', Gate())",
        "under('/v1/admin', refuse), under('/v2', refuse)",
        "under('/v2/admin', refuse)",
        "under('/v1/admin/[id]', refuse), under('/v2/admin/[id]', refuse)",
    ],
)
def test_a_guard_that_covers_both_is_not_lost(project: Project, entries: str) -> None:
    assert lost(guarded(project, entries)) == []


def test_another_guard_does_not_stand_for_the_lost_one(project: Project) -> None:
    assert len(lost(guarded(project, "under('/v1/admin', refuse), under('/v2/admin', other)"))) == 1


def test_a_place_that_is_gone_needs_no_guard(project: Project) -> None:
    app = guarded(project, "under('/v1/admin', refuse)", **{"Api/v2/admin.gone": ""})
    assert lost(app) == []


def test_a_parameter_with_another_name_is_the_same_place(project: Project) -> None:
    more = {"Api/v2/Admin/[aaa]/Put.py": GET}
    assert len(lost(guarded(project, "under('/v1/admin/[id]', refuse)", **more))) == 1


def test_a_copy_reports_nothing(project: Project) -> None:
    copy = {"Api/v2/version.toml": "", "Api/v2/Admin/[id]/Get.py": GET}
    assert lost(guarded(project, "under('/v1/admin', refuse)", **copy)) == []
