"""Databases: found by entry point only where a project asks for them, and what they may do."""

from __future__ import annotations

import asyncio
import importlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application, BootError, Settings
from treefold_http._plans.installed import install, list_model_modules

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

EXTENSION = """
import sys

entries = []

class Busy(Exception): ...

class Databases:
    refusals = {Busy: lambda error: (503, "Come back later", None)}

    def setup(self, app):
        entries.append(f"setup {dict(app.settings.databases)} {'Models' in sys.modules}")
        if "bad" in app.settings.databases:
            raise ValueError("no such place")

    async def startup(self):
        entries.append("startup")

    async def shutdown(self):
        entries.append("shutdown")

    def watch(self):
        entries.append("watch")
        return lambda: entries.append("watched") or "2 queries in 0.10ms"
"""
HANDLER = {"Api/v1/Get.py": "async def handler(request): return await request.json()"}


@pytest.fixture
def entries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """An installed distribution with databases, and what was called of it."""
    site = tmp_path / "site"
    (site / "rows-1.0.dist-info").mkdir(parents=True)
    (site / "rows-1.0.dist-info" / "METADATA").write_text("Name: rows\nVersion: 1.0\n")
    (site / "rows-1.0.dist-info" / "entry_points.txt").write_text(
        "[treefold.extensions]\ndatabases = rows_databases:Databases\n"
    )
    (site / "rows_databases.py").write_text(EXTENSION)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    importlib.invalidate_caches()
    noted: list[str] = importlib.import_module("rows_databases").entries
    yield noted
    del sys.modules["rows_databases"]


def live(app: Application) -> None:
    async def main() -> None:
        await app.lifespan.run_startup()
        await app.lifespan.run_shutdown()

    asyncio.run(main())


def test_models_are_the_modules_below_their_folder(tmp_path: Path) -> None:
    for file in (
        "Models/__init__.py",
        "Models/shop.py",
        "Models/art/__init__.py",
        "Models/art/paint.py",
        "Models/deep/er/x.py",
        "Models/not-a-name.py",
        "Models/.hidden/y.py",
        "Models/__pycache__/shop.cpython-311.pyc",
        "Models/readme.md",
    ):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("")
    assert list_model_modules(tmp_path) == ["Models.art.paint", "Models.deep.er.x", "Models.shop"]
    (tmp_path / "Models/__init__.py").write_text("from Models.shop import *")
    assert list_model_modules(tmp_path)[0] == "Models"


def test_a_single_file_of_models_will_do(tmp_path: Path) -> None:
    (tmp_path / "Models.py").write_text("")
    assert list_model_modules(tmp_path) == ["Models"]


def test_without_models_and_setting_nobody_looks(tmp_path: Path) -> None:
    (tmp_path / "Api" / "v1").mkdir(parents=True)
    (tmp_path / "Models").mkdir()
    (tmp_path / "Models" / "__init__.py").write_text("")  # what `treefold new` leaves
    code = (
        "import sys; from treefold_http import Application; app = Application('.'); app.boot();"
        "print(app.extensions, 'treefold_orm' in sys.modules, 'importlib.metadata' in sys.modules)"
    )
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["()", "False", "False"]


def test_databases_are_set_up_before_models_and_end_last(
    project: Project, entries: list[str]
) -> None:
    app = project(
        {
            **HANDLER,
            "Models/shop.py": "import rows_databases\nrows_databases.entries.append('models')",
            "hooks.py": (
                "from rows_databases import entries\n"
                "on_startup = [lambda: entries.append('up')]\n"
                "on_shutdown = [lambda: entries.append('down')]\n"
            ),
        },
        settings=Settings(databases={"default": "x"}),
    )
    live(app)
    assert entries == [
        "setup {'default': 'x'} False",
        "models",
        "startup",
        "up",
        "down",
        "shutdown",
    ]


def test_databases_end_also_when_the_boot_fails(project: Project, entries: list[str]) -> None:
    app = project({**HANDLER, "Models/shop.py": "", "hooks.py": "raise LookupError"})
    with pytest.raises(BootError):
        live(app)
    assert entries[1:] == ["shutdown"]


def test_databases_end_also_when_a_hook_fails(project: Project, entries: list[str]) -> None:
    hooks = "def fail(): raise LookupError\non_startup = [fail]"
    app = project({**HANDLER, "Models/shop.py": "", "hooks.py": hooks})
    with pytest.raises(BootError):
        live(app)
    assert entries[1:] == ["startup", "shutdown"]


def test_databases_that_cannot_be_used_stop_the_boot(project: Project, entries: list[str]) -> None:
    app = project(HANDLER, settings=Settings(databases={"bad": "x"}))
    with pytest.raises(BootError, match=r"^databases cannot be used: ValueError: no such place$"):
        app.boot()


def test_a_model_that_fails_stops_the_boot_and_is_reported(
    project: Project, entries: list[str]
) -> None:
    app = project({**HANDLER, "Models/a.py": "raise LookupError('x')", "Models/b.py": "1 / 0"})
    with pytest.raises(BootError, match=r"Models/b\.py cannot be used: ZeroDivision") as failed:
        app.boot()
    assert failed.value.report is not None
    assert [broken.file for broken in failed.value.report.broken] == ["Models/a.py", "Models/b.py"]


def test_what_databases_refuse_is_a_problem_document(
    project: Project, entries: list[str], ask: Ask
) -> None:
    handler = "from rows_databases import Busy\nasync def handler(request): raise Busy"
    app = project({"Models/shop.py": "", "Api/v1/Get.py": handler})
    answer = ask(app, "GET", "/v1")
    assert (answer.status, answer.json()["detail"]) == (503, "Come back later")
    assert answer.fields("content-type") == ["application/problem+json"]


def test_only_with_databases_a_json_object_carries_marks(
    project: Project, entries: list[str], ask: Ask
) -> None:
    handler = "async def handler(request): return type(await request.json()).__name__"
    tree = {"Api/v1/Post.py": handler}
    with_models = project({**tree, "Models/shop.py": ""}, root="one")
    without = project(tree, root="two")
    assert ask(with_models, "POST", "/v1", chunks=[b'{"a":1}']).body == b"ClientObject"
    assert ask(with_models, "POST", "/v1", chunks=[b"[1]"]).body == b"list"
    assert ask(without, "POST", "/v1", chunks=[b'{"a":1}']).body == b"dict"


def test_a_marked_object_is_answered_as_it_came(
    project: Project, entries: list[str], ask: Ask
) -> None:
    handler = "async def handler(request):\n data = await request.json()\n return {**data}"
    app = project(
        {"Models/shop.py": "", "Api/v1/Post.py": handler, "Api/v1/Put.py": HANDLER["Api/v1/Get.py"]}
    )
    for method in ("POST", "PUT"):
        answer = ask(app, method, "/v1", chunks=[b'{"a":{"b":[1]},"c":null}'])
        assert answer.body == b'{"a":{"b":[1]},"c":null}'


def test_watching_is_for_development_only(
    project: Project, entries: list[str], ask: Ask, lines: Lines
) -> None:
    tree = {**HANDLER, "Models/shop.py": ""}
    ask(project(tree, root="one"), "GET", "/v1")
    assert "watch" not in entries
    app = project(tree, root="two", dev=True)
    ask(app, "GET", "/v1")
    assert entries[-2:] == ["watch", "watched"]
    assert app.report.middleware == 0


def test_without_the_package_the_setting_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [])  # nothing is installed, as far as metadata goes
    for address, wanted in (
        ("sqlite:///x", "pip install treefold-orm"),
        ("postgresql://h/x", "pip install 'treefold-orm[postgres]'"),
    ):
        app = Application(tmp_path, settings=Settings(databases={"default": address}))
        failures: dict[str, BaseException] = {}
        install(app, failures.__setitem__)
        message = str(failures["databases"])
        assert message == f"Setting databases needs treefold-orm: {wanted}"
