"""The cost of a save: only what changed is loaded and planned again."""

from __future__ import annotations

from http_reloading import CHAIN, Live, MakeLive, X, Y, handler


def plans(app: Live) -> dict[str, object]:
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


def test_project_middleware_that_changes_is_around_every_route(live: MakeLive) -> None:
    source = """
        async def tell(request, call_next):
            response = await call_next(request)
            response.headers["X-Told"] = "{n}"
            return response
        middlewares = [tell]
    """
    app = live({X: handler("1"), Y: handler("1"), "Middleware/__init__.py": source.format(n=1)})
    app.edit({"Middleware/__init__.py": source.format(n=2)})
    for target in ("/v1/x", "/v1/y", "/v1/gone"):
        assert app.answer(target).fields("x-told") == ["2"]


def test_a_file_that_did_not_load_is_tried_again_at_the_next_save(live: MakeLive) -> None:
    app = live({X: handler("late.n", "from Services import late"), Y: handler("1")})
    assert app.get("/v1/x") == 500
    app.edit({"Services/late.py": "n = 7\n"})
    assert app.get("/v1/x") == [7]
    assert plans(app)["v1/X/Get.py"] is not None
