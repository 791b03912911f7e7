"""A service that many handlers import: these are imported again at their first use."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from http_reloading import Live, handler, header

from treefold_http import Application
from treefold_http.reload import Reloaded, Reloader, RestartNeeded

if TYPE_CHECKING:
    from conftest import Answer

COUNT = 120
SHARED = "Services/shared.py"
COUNTED = "import sys\nsys.treefold_imports.append(__name__)\n"
USE = COUNTED + "from Services.shared import n\n" + handler("n")
FILES = {f"Api/v1/R{number}/Get.py": USE for number in range(COUNT)} | {
    "Services/__init__.py": "",
    SHARED: COUNTED + "n = 1\n",
    "Api/v1/Own/Get.py": handler("1"),
}


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that begin with `COUNTED`, in the order of their imports."""
    found: list[str] = []
    monkeypatch.setattr(sys, "treefold_imports", found, raising=False)
    return found


@pytest.fixture
def live(
    project: Callable[..., Application], ask: Callable[..., Answer], imported: list[str]
) -> Callable[..., Live]:
    def make(files: dict[str, str]) -> Live:
        app = Live(project(files, dev=True), ask)

        async def import_later(module: str) -> None:
            app.reloader.reload_waiting([module])

        app.reloader = Reloader(app.app, import_later=import_later)
        app.reloader.read_imports()
        imported.clear()
        return app

    return make


def test_only_what_is_used_is_imported_again(
    live: Callable[..., Live], imported: list[str]
) -> None:
    app = live(FILES)
    outcome = app.edit({SHARED: COUNTED + "n = 2\n"})
    assert isinstance(outcome, Reloaded)
    assert (outcome.files, outcome.later) == ((SHARED,), COUNT)
    assert imported == ["Services.shared"]

    for _ in range(2):
        assert app.get("/v1/r7") == [2]
        assert imported == ["Services.shared", "Api.v1.R7.Get"]
    assert len(app.reloader.waiting) == COUNT - 1

    app.edit({SHARED: COUNTED + "n = 3\n"})
    assert (app.get("/v1/r7"), app.get("/v1/r8")) == ([3], [3])
    app.reloader.reload_waiting(app.reloader.waiting)
    assert not app.reloader.waiting
    imported.clear()
    assert {app.get(f"/v1/r{number}")[0] for number in range(COUNT)} == {3}
    assert imported == []


def test_a_save_of_a_waiting_handler_is_served(live: Callable[..., Live]) -> None:
    app = live(FILES)
    app.edit({SHARED: COUNTED + "n = 2\n"})
    app.edit({"Api/v1/R7/Get.py": USE.replace("[n]", "[n, 7]")})
    assert "Api.v1.R7.Get" not in app.reloader.waiting
    assert (app.get("/v1/r7"), app.get("/v1/r8")) == ([2, 7], [2])
    app.edit({"Api/v1/R9/Get.py": None})
    assert (app.get("/v1/r9"), app.get("/v1/r10")) == (404, [2])
    app.edit({"Middleware/__init__.py": "middlewares = []\n"})
    assert app.get("/v1/r11") == [2]


def test_one_that_fails_at_its_first_use_keeps_its_last_good_version(
    live: Callable[..., Live],
) -> None:
    app = live(FILES)
    app.edit({SHARED: "other = 2\n"})
    assert app.app.report.broken == ()
    assert app.get("/v1/r7") == [1]
    assert [one.cause for one in app.app.report.broken] == ["Api/v1/R7/Get.py"]
    assert "cannot import name 'n'" in (header(app.answer("/v1/own"), "x-treefold-broken") or "")
    app.edit({SHARED: "n = 3\n"})
    assert app.app.report.broken == ()
    assert (app.get("/v1/r7"), app.get("/v1/r8")) == ([3], [3])


def test_a_shared_module_that_fails_leaves_nothing_to_wait_for(
    live: Callable[..., Live], imported: list[str]
) -> None:
    app = live(FILES)
    outcome = app.edit({SHARED: COUNTED + "n = (\n"})
    assert isinstance(outcome, Reloaded)
    assert (outcome.later, len(outcome.broken)) == (0, 1)
    assert not app.reloader.waiting
    assert app.get("/v1/r7") == [1]

    imported.clear()
    outcome = app.edit({SHARED: COUNTED + "n = 2\n"})
    assert isinstance(outcome, Reloaded)
    assert (outcome.later, outcome.broken) == (COUNT, ())
    assert imported == ["Services.shared"]
    assert app.get("/v1/r7") == [2]

    # what waits for a good version goes on to wait for it beside a later save that fails
    app.edit({SHARED: COUNTED + "n = )\n"})
    assert app.get("/v1/r8") == [2]
    assert [one.cause for one in app.app.report.broken] == [SHARED]
    app.edit({SHARED: COUNTED + "n = 3\n"})
    assert (app.get("/v1/r7"), app.get("/v1/r8"), app.get("/v1/r9")) == ([3], [3], [3])


def test_failures_are_not_tried_again_for_each_module_that_waits(
    live: Callable[..., Live], imported: list[str]
) -> None:
    app = live(FILES)
    app.edit({SHARED: "other = 2\n"})
    names = sorted(app.reloader.waiting)
    for half in (names[:60], names[60:]):
        imported.clear()
        outcome = app.reloader.reload_waiting(half)
        assert isinstance(outcome, Reloaded)
        assert sorted(imported) == half
    assert len(app.app.report.broken) == COUNT
    assert app.get("/v1/r7") == [1]

    app.edit({SHARED: "n = 3\n"})
    assert app.app.report.broken == ()
    assert (app.get("/v1/r7"), app.get("/v1/r119")) == ([3], [3])


def test_one_that_starts_something_restarts_at_its_first_use(live: Callable[..., Live]) -> None:
    starting = USE.replace(
        "import sys", "import sys, threading\nthreading.Thread(target=int).start()"
    )
    app = live(FILES | {"Api/v1/R7/Get.py": starting})
    assert isinstance(app.edit({SHARED: "n = 2\n"}), Reloaded)
    assert isinstance(app.reloader.reload_waiting(["Api.v1.R7.Get"]), RestartNeeded)
    assert isinstance(app.reloader.reload_waiting(["Api.v1.R8.Get"]), Reloaded)


@pytest.mark.parametrize(
    "files",
    [
        {SHARED: "n = 1\nfound = []\ndef register(f):\n    found.append(f)\n    return f\n"}
        | {
            f"Api/v1/R{number}/Get.py": USE.replace(" n\n", " n, register\n@register\n")
            for number in range(COUNT)
        },
        {SHARED: "n = 1\nclass Base:\n    def __init_subclass__(cls): pass\n"}
        | {
            f"Api/v1/R{number}/Get.py": USE.replace(" n\n", " n, Base\nclass Own(Base): pass\n")
            for number in range(COUNT)
        },
        {"providers.py": "from Services import shared\nproviders = {}\n"},
        {"Models/book.py": "from Services import shared\n"},
        {f"Api/v1/R{number}/Get.py": handler("1") for number in range(40)},
    ],
    ids=["registry", "subclasses", "providers", "models", "few"],
)
def test_nothing_waits_where_that_could_be_told(
    live: Callable[..., Live], files: dict[str, str]
) -> None:
    app = live(FILES | files)
    app.edit({SHARED: (FILES | files)[SHARED].replace("n = 1", "n = 2")})
    assert not app.reloader.waiting
    assert app.get("/v1/r50") == [2]
