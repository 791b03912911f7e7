"""The cost of a save: only what changed is loaded and planned again."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from http_reloading import CHAIN, Live, MakeLive, X, Y, handler, header

from treefold_http._modules.modules import ModuleSpace
from treefold_http._plans.plans import Plan


def plans(app: Live) -> dict[str, Plan]:
    project = app.app.project
    return {route.file: project.plans[route] for route in project.table.routes}


def test_a_save_plans_the_routes_that_it_reaches_and_no_others(live: MakeLive) -> None:
    app = live(CHAIN)
    before, table = plans(app), app.app.project.table
    app.edit({"Services/b.py": "n = 2\n"})
    after = plans(app)
    assert app.get("/v1/x") == [2]
    assert after["v1/X/Get.py"] is not before["v1/X/Get.py"]
    assert after["v1/Y/Get.py"] is before["v1/Y/Get.py"]
    assert app.app.project.table is table


def test_other_providers_plan_the_routes_that_look_for_them(live: MakeLive) -> None:
    provided = "providers = {{'word': lambda: {n}}}\n"
    source = "def handler(word):\n    return [word]\n"
    app = live({X: source, Y: handler("1"), "providers.py": provided.format(n=1)})
    assert app.get("/v1/x") == [1]
    before = plans(app)
    app.edit({"providers.py": provided.format(n=2)})
    assert app.get("/v1/x") == [2]
    assert plans(app)["v1/Y/Get.py"] is before["v1/Y/Get.py"]


NESTED = """
    class Db:
        n = {n}
    def connect(word):
        db = Db()
        db.word = word
        return db
    providers = {providers}
"""


def test_providers_that_come_change_and_go_reach_those_that_need_them(live: MakeLive) -> None:
    """By type, by name, for a parameter of a provider, and in place of a query."""
    typed = "from providers import Db\ndef handler(db: Db):\n    return [db.n, db.word]\n"
    plain = "def handler(word: str = 'none'):\n    return [word]\n"

    def provided(n: int, providers: str) -> dict[str, str]:
        return {"providers.py": NESTED.replace("{n}", f"{n}").replace("{providers}", providers)}

    app = live({X: typed, Y: plain} | provided(1, "{Db: connect, 'word': lambda: 'a'}"))
    assert (app.get("/v1/x"), app.get("/v1/y")) == ([1, "a"], ["a"])
    app.edit(provided(2, "{Db: connect, 'word': lambda: 'b'}"))
    assert (app.get("/v1/x"), app.get("/v1/y")) == ([2, "b"], ["b"])
    app.edit(provided(2, "{Db: connect}"))
    assert (app.get("/v1/y"), app.get("/v1/y?word=q")) == (["none"], ["q"])
    app.edit(provided(3, "{Db: connect, 'word': lambda: 'c'}"))
    assert (app.get("/v1/x"), app.get("/v1/y")) == ([3, "c"], ["c"])
    assert app.app.report.broken == ()


def test_middleware_of_one_module_comes_and_goes_with_it(live: MakeLive) -> None:
    wrapped = """
        async def tell(request, call_next):
            response = await call_next(request)
            response.headers["X-Told"] = "yes"
            return response
        middlewares = [tell]
        def handler():
            return [2]
    """
    app = live({X: handler("1"), Y: handler("1")})
    app.edit({X: wrapped})
    assert app.answer("/v1/x").fields("x-told") == ["yes"]
    assert app.answer("/v1/y").fields("x-told") == []
    app.edit({X: handler("3")})
    assert app.answer("/v1/x").fields("x-told") == []


TOLD = """
    class Told:
        def after(self, request, response):
            response.headers["X-Told"] = "{n}"
    middlewares = [Told()]
"""


def test_project_middleware_that_changes_is_around_every_route(live: MakeLive) -> None:
    app = live({X: handler("1"), Y: handler("1"), "Middleware/__init__.py": TOLD.format(n=1)})
    app.edit({"Middleware/__init__.py": TOLD.format(n=2)})
    for target in ("/v1/x", "/v1/y", "/v1/gone"):
        assert app.answer(target).fields("x-told") == ["2"]


def test_a_file_that_did_not_load_is_tried_again_at_the_next_save(live: MakeLive) -> None:
    app = live({X: handler("late.n", "from Services import late"), Y: handler("1")})
    assert app.get("/v1/x") == 500
    app.edit({"Services/late.py": "n = 7\n"})
    assert app.get("/v1/x") == [7]
    assert plans(app)["v1/X/Get.py"] is not None


def test_a_folder_that_comes_is_taken_before_an_installed_module_of_its_name(
    live: MakeLive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = ModuleType("Services")
    installed.__file__ = str(tmp_path / "installed" / "Services" / "__init__.py")
    app = live({X: handler("late.n", "from Services import late"), Y: handler("1")})
    monkeypatch.setitem(sys.modules, "Services", installed)
    app.edit({"Services/late.py": "n = 7\n"})
    assert app.get("/v1/x") == [7]
    ModuleSpace.get_or_create_space(tmp_path).make_current_root()  # another project
    assert sys.modules["Services"] is installed


def test_other_middleware_is_put_around_the_handlers_as_they_were_planned(live: MakeLive) -> None:
    own = """
        async def inside(request, call_next):
            response = await call_next(request)
            response.headers["X-Inside"] = "yes"
            return response
        middlewares = [inside]
        status_code = 201
        def handler(n: int):
            return {"n": n, "secret": 1}
        response_model = dict[str, int]
    """
    app = live({X: own, Y: handler("1"), "Middleware/__init__.py": TOLD.format(n=1)})
    before = plans(app)
    app.edit({"Middleware/__init__.py": TOLD.format(n=2)})
    after = plans(app)
    assert all(after[file].inner is before[file].inner for file in after)
    answer = app.answer("/v1/x?n=5")
    assert (answer.status, answer.json()) == (201, {"n": 5, "secret": 1})
    assert answer.fields("x-inside") == ["yes"]
    assert answer.fields("x-told") == app.answer("/v1/y").fields("x-told") == ["2"]
    assert app.answer("/v1/x?n=no").fields("x-told") == ["2"]


def test_one_save_of_middleware_providers_and_a_handler(live: MakeLive) -> None:
    app = live(
        {
            X: "def handler(word):\n    return [word]\n",
            Y: handler("1"),
            "Api/v1/Z/Get.py": handler("1"),
            "providers.py": "providers = {'word': lambda: 1}\n",
            "Middleware/__init__.py": TOLD.format(n=1),
        }
    )
    app.edit(
        {
            Y: handler("2"),
            "providers.py": "providers = {'word': lambda: 2}\n",
            "Middleware/__init__.py": TOLD.format(n=2),
        }
    )
    answers = {target: app.answer(target) for target in ("/v1/x", "/v1/y", "/v1/z")}
    assert [each.json() for each in answers.values()] == [[2], [2], [1]]
    assert all(each.fields("x-told") == ["2"] for each in answers.values())


def test_a_last_good_version_has_the_middleware_of_now(live: MakeLive) -> None:
    app = live({X: handler("1"), Y: handler("1"), "Middleware/__init__.py": TOLD.format(n=1)})
    app.edit({"Middleware/__init__.py": TOLD.format(n=2)})
    app.edit({X: "1 / 0\n"})
    assert (app.get("/v1/x"), app.answer("/v1/x").fields("x-told")) == ([1], ["2"])
    app.edit({"Middleware/__init__.py": TOLD.format(n=3)})
    assert (app.get("/v1/x"), app.answer("/v1/x").fields("x-told")) == ([1], ["3"])
    assert "ZeroDivisionError" in (header(app.answer("/v1/y"), "x-treefold-broken") or "")
    app.edit({X: handler("4")})
    assert (app.get("/v1/x"), app.answer("/v1/x").fields("x-told")) == ([4], ["3"])
    assert header(app.answer("/v1/y"), "x-treefold-broken") is None


BOTH = "from treefold_http.middleware import Sessions, CSRF\n"


def test_middleware_that_does_not_go_with_a_module_s_own_keeps_the_former(live: MakeLive) -> None:
    own = BOTH + "middlewares = [Sessions(secret='x' * 32)]\n" + handler("1")
    app = live({X: own, Y: handler("1"), "Middleware/__init__.py": TOLD.format(n=1)})
    app.edit({"Middleware/__init__.py": BOTH + "middlewares = [CSRF()]\n"})
    assert [broken.file for broken in app.app.report.broken] == ["v1/X/Get.py"]
    assert "list it after Sessions" in app.app.report.broken[0].error
    assert (app.get("/v1/x"), app.answer("/v1/x").fields("x-told")) == ([1], ["1"])
    app.edit({"Middleware/__init__.py": TOLD.format(n=2)})
    assert app.app.report.broken == ()
    assert (app.get("/v1/x"), app.answer("/v1/x").fields("x-told")) == ([1], ["2"])


COUNTED = "import sys\nsys.treefold_imports.append(__name__)\n"


@pytest.fixture
def imported(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the modules that begin with `COUNTED`, in the order of their imports."""
    found: list[str] = []
    monkeypatch.setattr(sys, "treefold_imports", found, raising=False)
    return found


@pytest.mark.parametrize("file", [X, "Services/a.py", "hooks.py", "Services/__init__.py"])
def test_a_touch_without_a_change_imports_nothing(
    live: MakeLive, imported: list[str], file: str
) -> None:
    files = {name: COUNTED + text for name, text in (CHAIN | {"hooks.py": ""}).items()}
    app = live(files)
    imported.clear()
    for _ in range(2):
        assert app.edit({file: files[file]}) is None
    assert imported == []

    app.edit({"Services/b.py": COUNTED + "n = 2\n"})
    assert app.get() == [2]
    imported.clear()
    assert app.edit({"Services/b.py": COUNTED + "n = 2\n", file: files[file]}) is None
    assert imported == []


def test_a_touch_tries_what_is_broken_again(live: MakeLive) -> None:
    app = live({X: handler("1"), Y: handler("1")})
    app.edit(
        {X: "import os\nif 'TREEFOLD_X' not in os.environ:\n    raise OSError\n" + handler("2")}
    )
    assert app.get() == [1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TREEFOLD_X", "1")
        app.edit({X: (app.app.root / X).read_text()})
        assert app.get() == [2]
    text = (app.app.root / Y).read_text()
    app.edit({Y: None})
    assert app.get("/v1/y") == 404
    app.edit({Y: text})
    assert app.get("/v1/y") == [1]
