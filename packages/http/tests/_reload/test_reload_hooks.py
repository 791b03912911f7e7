"""Hooks that change need another process, once every file loads; until then nothing is half new."""

from __future__ import annotations

from collections.abc import Mapping
from textwrap import dedent
from typing import TYPE_CHECKING

import pytest
from http_reloading import MakeLive, X, Y, header

from treefold_http.reload import Reloaded, RestartNeeded

if TYPE_CHECKING:
    from conftest import Lines

Z = "Api/v1/Z/Get.py"
RESTART = RestartNeeded("hooks.py, or what it imports, changed")

DB = """
    class Pool:
        open = True

    pool = None

    async def start(app):
        global pool
        pool = Pool()

    async def stop(app):
        pool.open = False

    def look():
        return [{n}]
"""
FILES = {
    X: "import Services.db\ndef handler():\n    return Services.db.look()\n",
    Y: "def handler():\n    from Services import db\n    return db.look()\n",
    Z: "def handler():\n    return [0]\n",
    "Services/__init__.py": "",
    "Services/db.py": DB.format(n=1),
    "hooks.py": "from Services import db\non_startup = [db.start]\non_shutdown = [db.stop]\n",
}
WRAPPED = """
    from Services import db
    async def begin(app):
        await db.start(app)
    on_startup = [begin]
"""
IN_A_FUNCTION = """
    async def begin(app):
        import Services.db
        await Services.db.start(app)
    on_startup = [begin]
"""
BY_NAME = """
    import importlib
    async def end(app):
        await importlib.import_module("Services.db").stop(app)
    on_shutdown = [end]
"""
A_CLASS = """
    from Services.db import Pool
    def begin(app):
        app.state.pool = Pool()
    on_startup = [begin]
"""


@pytest.mark.parametrize("hooks", [WRAPPED, IN_A_FUNCTION, BY_NAME, A_CLASS])
@pytest.mark.parametrize("files", [{"hooks.py"}, {"Services/db.py"}, {"hooks.py", X}])
def test_changed_hooks_or_their_imports_need_a_restart(
    live: MakeLive, hooks: str, files: set[str]
) -> None:
    texts = {**FILES, "hooks.py": hooks}
    app = live(texts)
    site = app.app.project
    outcome = app.edit({name: f"{dedent(texts[name])}# changed\n" for name in files})
    assert outcome == RESTART
    assert app.app.project is site
    assert (app.get(), app.get("/v1/y")) == ([1], [1])


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, "def start(): ...\non_startup = [start]\n"),
        ("def start(): ...\non_startup = [start]\n", None),
        ("def stop(): ...\non_shutdown = [stop]\n", "on_shutdown = []\n"),
        ("on_startup = []\n", "from Services import db\non_startup = [db.start]\n"),
    ],
)
def test_hooks_that_come_or_go_need_a_restart(
    live: MakeLive, before: str | None, after: str | None
) -> None:
    others = {name: text for name, text in FILES.items() if name != "hooks.py"}
    app = live(others if before is None else {**others, "hooks.py": before})
    assert app.edit({"hooks.py": after}) == RESTART


def test_modules_that_hooks_do_not_import_are_swapped(live: MakeLive) -> None:
    app = live(FILES)
    assert isinstance(app.edit({Z: "def handler():\n    return [5]\n"}), Reloaded)
    assert app.get("/v1/z") == [5]


def test_the_same_functions_in_changed_hooks_are_swapped(live: MakeLive) -> None:
    app = live(FILES)
    former = app.app.project.boot_files.on_startup
    outcome = app.edit({"hooks.py": f"{FILES['hooks.py']}# changed\n"})
    assert isinstance(outcome, Reloaded)
    assert outcome.files == ("hooks.py",)
    assert app.app.project.boot_files.on_startup == former


def test_hooks_files_without_a_hook_are_swapped(live: MakeLive) -> None:
    app = live({**FILES, "hooks.py": "from Services import db\non_startup = []\n"})
    assert isinstance(app.edit({"Services/db.py": DB.format(n=2)}), Reloaded)
    assert (app.get(), app.get("/v1/y")) == ([2], [2])


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("hooks.py", "from Services import db\n1 / 0\n"),
        ("hooks.py", "on_startup = [5]\n"),
        ("hooks.py", "raise SystemExit(3)\n"),
        ("Services/db.py", "async def start(:\n"),
    ],
)
@pytest.mark.parametrize("hooks", [FILES["hooks.py"], WRAPPED, IN_A_FUNCTION])
def test_hooks_that_do_not_load_defer_the_restart_and_keep_their_imports(
    live: MakeLive, lines: Lines, file: str, text: str, hooks: str
) -> None:
    files = {**FILES, "hooks.py": hooks}
    app = live(files)
    outcome = app.edit({file: text})
    assert isinstance(outcome, Reloaded)
    assert (outcome.files, outcome.deferred) == ((), (file,))
    assert {(one.cause, one.kept) for one in outcome.broken} == {(file, True)}
    assert (header(app.answer(), "x-treefold-broken") or "").startswith(f"{file}: ")
    assert len([line for line in lines.texts() if "failed to load" in line]) == 1
    # Other files are taken up, but none that the hooks must have started.
    outcome = app.edit({Z: "def handler():\n    return [7]\n"})
    assert isinstance(outcome, Reloaded)
    assert (outcome.files, outcome.deferred) == ((Z,), ())
    assert app.get("/v1/z") == [7]
    if file == "hooks.py":
        outcome = app.edit({"Services/db.py": DB.format(n=3)})
        assert isinstance(outcome, Reloaded)
        assert outcome.deferred == ("Services/db.py",)
    assert (app.get(), app.get("/v1/y")) == ([1], [1])
    assert len([line for line in lines.texts() if "failed to load" in line]) == 1

    assert app.edit({file: files[file]}) == RESTART


def test_a_module_that_broken_hooks_lack_mends_them(live: MakeLive) -> None:
    app = live(FILES)
    outcome = app.edit({"hooks.py": f"from Services import extra\n{FILES['hooks.py']}"})
    assert isinstance(outcome, Reloaded)
    assert [one.cause for one in outcome.broken] == ["hooks.py"]
    outcome = app.edit({"Services/extra.py": "ready = True\n", "Services/db.py": DB.format(n=2)})
    assert outcome == RESTART


@pytest.mark.parametrize("change", [{"Services/db.py": DB.format(n=2)}, {"hooks.py": WRAPPED}])
def test_a_restart_waits_while_another_file_serves_its_last_good_version(
    live: MakeLive, change: Mapping[str, str]
) -> None:
    app = live(FILES)
    app.edit({Z: "def handler(:\n"})
    outcome = app.edit(change)
    assert isinstance(outcome, Reloaded)
    assert (outcome.deferred, [one.cause for one in outcome.broken]) == ((*change,), [Z])
    assert (app.get(), app.get("/v1/y"), app.get("/v1/z")) == ([1], [1], [0])
    assert app.edit({Z: "def handler():\n    return [8]\n"}) == RESTART


def test_a_handler_that_the_change_breaks_defers_the_restart(live: MakeLive) -> None:
    strict = "from Services.db import look\ndef handler():\n    return look()\n"
    app = live({**FILES, X: strict})
    outcome = app.edit({"Services/db.py": DB.format(n=2).replace("def look", "def looks")})
    assert isinstance(outcome, Reloaded)
    assert [one.cause for one in outcome.broken] == [X]
    assert (app.get(), app.get("/v1/y")) == ([1], [1])
    assert app.edit({X: strict.replace("look", "looks")}) == RESTART


def test_a_file_that_never_loaded_does_not_defer_a_restart(live: MakeLive) -> None:
    app = live({**FILES, Z: "def handler(:\n"})
    assert app.edit({"Services/db.py": DB.format(n=2)}) == RESTART


def test_extensions_that_do_not_load_keep_their_imports(live: MakeLive) -> None:
    extensions = "from Services.db import Pool\nextensions = [Pool()]\n"
    app = live({**FILES, "hooks.py": "", "extensions.py": extensions})
    before = app.app.project.boot_files.extensions
    outcome = app.edit({"Services/db.py": DB.format(n=2), "extensions.py": "1 / 0\n"})
    assert isinstance(outcome, Reloaded)
    assert outcome.deferred == ("Services/db.py", "extensions.py")
    assert (app.get(), app.get("/v1/y")) == ([1], [1])
    assert app.app.project.boot_files.extensions is before
    outcome = app.edit({"extensions.py": extensions})
    assert outcome == RestartNeeded("extensions.py, or what it imports, changed")


@pytest.mark.parametrize("file", ["hooks.py", "providers.py", "Middleware/__init__.py"])
def test_the_first_file_of_its_name_is_reported(live: MakeLive, file: str) -> None:
    app = live({X: "def handler():\n    return [1]\n"})
    outcome = app.edit({file: "middlewares = []\n"})
    assert isinstance(outcome, Reloaded)
    assert (outcome.files, outcome.broken) == ((file,), ())


def test_a_first_module_that_nothing_imports_changes_nothing(live: MakeLive) -> None:
    app = live({X: "def handler():\n    return [1]\n"})
    assert app.edit({"Services/new.py": "1 / 0\n"}) is None
