"""The docs at `/docs`: when they are there, and what stands in their place without the package."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from subprocess import run
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application, Settings

if TYPE_CHECKING:
    from conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

FILES: Mapping[str, str] = {"Api/v1/User/Get.py": "async def handler(request): return {}\n"}
LOCAL = [("host", "localhost:8000")]


@pytest.mark.parametrize("target", ["/docs", "/docs/", "/docs/site.json", "/docs/log"])
@pytest.mark.parametrize(
    ("dev", "docs"), [(False, None), (False, False), (True, False)], ids=["production", "off", "-"]
)
def test_s116_off_they_are_not_there(
    project: Project, ask: Ask, target: str, dev: bool, docs: bool | None
) -> None:
    app = project(FILES, dev=dev, settings=Settings(docs=docs))

    assert ask(app, "GET", target, headers=LOCAL, host=False).status == 404


def test_without_the_package_the_answer_says_what_to_install(
    project: Project, ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "treefold_docs_ui", None)
    answer = ask(project(FILES, dev=True), "GET", "/docs", headers=LOCAL, host=False)

    assert answer.status == 501
    assert answer.fields("content-type") == ["application/problem+json"]
    assert answer.json()["detail"] == (
        'The docs need treefold-docs-ui: pip install "treefold-http[docs]"'
    )


def test_a_mount_of_the_project_comes_first(project: Project, ask: Ask) -> None:
    from treefold_http import StaticFiles

    app = project({**FILES, "Web/docs.txt": "mine"}, dev=True)
    app.mount("/docs", StaticFiles("Web"))

    assert ask(app, "GET", "/docs/docs.txt").body == b"mine"


def test_off_nothing_of_them_is_imported(project: Project) -> None:
    app = project(FILES)
    code = f"""
import sys
from treefold_http import Application
Application({str(app.root)!r}).boot()
names = "treefold_docs_ui", "treefold_http._built_in.docs"
print([name for name in names if name in sys.modules])
"""
    done = run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
