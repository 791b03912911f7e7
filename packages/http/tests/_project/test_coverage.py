"""A prefix of `under` that covers nothing: refused at boot, told and kept in a reload."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from http_reloading import Live

from treefold_http import Application, BootError, StaticFiles

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

GET = "async def handler(request):\n    return 'ok'\n"
REFUSE = """
from treefold_http import Forbidden
from treefold_http.middleware import *

class Refuse:
    def before(self, connection):
        raise Forbidden("guarded")
"""
TREE = {
    "Api/v1/Admin/Get.py": GET,
    "Api/v1/User/[id]/Posts/Get.py": GET,
    "Api/v2/Reports/Get.py": GET,
    "web/Private/a.css": "",
}
HOOKS = """
from treefold_http import StaticFiles

def mount(app):
    app.mount("/later", StaticFiles("web"))

on_startup = [mount]
"""


def guarded(project: Project, *prefixes: str, **more: str) -> Application:
    entries = ", ".join(f"under({prefix!r}, Refuse())" for prefix in prefixes)
    middleware = {"Middleware/__init__.py": f"{REFUSE}\nmiddlewares = [{entries}]\n"}
    return project({**TREE, **middleware, **more})


@pytest.mark.parametrize(
    ("prefix", "nearest"),
    [
        ("/v1/admni", "/v1/admin"),
        ("/v1/Adminn", "/v1/admin"),
        ("/v3/admin", "/v1/admin"),
        ("/v1/admin/users", "/v1/admin"),
        ("/v1/user/me", "/v1/user/{id}"),
        ("/v1/user/[name]/posts", "/v1/user/{id}/posts"),
        ("/v1/*/pots", "/v1/user/{id}"),
        ("/admin", "/v1/admin"),
        ("/reports", "/v2/reports"),
        ("/doc", "/docs"),
        ("/livez/x", "/livez"),
        ("/openapi/v9.json", "/openapi"),
        ("/sttic", "/static"),
        ("/static/privat", "/static/Private"),
        ("/**/admin", "/v1/admin"),
        ("/*/admni", "/v1/admin"),
        ("/docs/admin", "/docs"),
        ("/static/{id}", "/static"),
    ],
)
def test_a_prefix_that_covers_nothing_does_not_boot(
    project: Project, prefix: str, nearest: str
) -> None:
    app = guarded(project, prefix)
    app.mount("/static", StaticFiles("web"))
    with pytest.raises(BootError) as refused:
        app.boot()

    shown = prefix.lower().replace("[", "{").replace("]", "}")
    assert f"Prefix of under() must cover something that is served, got {shown!r}; " in str(
        refused.value
    )
    assert str(refused.value).rpartition("the nearest is ")[2] == repr(nearest)


@pytest.mark.parametrize(
    "prefix",
    [
        *("/", "/v1", "/v1/Admin", "/v1/user/[id]", "/v1/user/{id}/posts", "/*/reports", "/*"),
        *("/docs", "/docs/assets", "/openapi", "/openapi.json", "/openapi/v1.json"),
        *("/openapi/default.json", "/asyncapi", "/asyncapi.json", "/livez", "/readyz", "/metrics"),
        *("/static", "/static/private", "/static/*", "/static/private/a.css", "/legacy/any"),
    ],
)
def test_a_prefix_that_covers_something_boots(project: Project, prefix: str) -> None:
    async def legacy(scope: Any, receive: Any, send: Any) -> None: ...

    app = guarded(project, prefix)
    app.mount("/static", StaticFiles("web"))
    app.mount("/legacy", legacy)
    asyncio.run(app.lifespan.run_startup())
    asyncio.run(app.lifespan.run_shutdown())


def test_mounts_count_after_the_startup_hooks(project: Project, ask: Ask) -> None:
    app = guarded(project, "/later/private", **{"hooks.py": HOOKS})

    assert ask(app, "GET", "/later/Private/a.css").status == 403


def test_a_prefix_that_no_hook_mounts_stops_the_start(project: Project) -> None:
    notes = "\nfrom Services.journal import notes\non_shutdown = [lambda: notes.append('down')]\n"
    files = {"hooks.py": HOOKS + notes, "Services/journal.py": "notes = []\n"}
    app = guarded(project, "/latter", **files)
    app.boot()
    assert [str(entry) for entry in app.project.unserved] == ["/latter"]
    with pytest.raises(BootError, match=r"got '/latter'; the nearest is '/later'$"):
        asyncio.run(app.lifespan.run_startup())
    hook: Any = app.project.boot_files.on_shutdown[0]
    assert hook.__globals__["notes"] == ["down"]


def test_a_prefix_of_a_version_is_refused_before_the_hooks(project: Project) -> None:
    app = guarded(project, "/v1/later", **{"hooks.py": HOOKS})
    with pytest.raises(BootError, match="got '/v1/later'"):
        app.boot()


def test_an_entry_of_a_handler_must_cover_its_route(project: Project, ask: Ask) -> None:
    own = f"{REFUSE}\nmiddlewares = [under('/v1/admn', Refuse())]\n{GET}"
    app = project({**TREE, "Api/v1/Admin/Get.py": own})

    assert ask(app, "GET", "/v1/admin").status == 500
    (broken,) = app.report.broken
    assert "Prefix of under() in Api/v1/Admin/Get.py must cover its route /v1/admin" in broken.error


# -- reloads


@pytest.fixture
def live(project: Project, ask: Ask) -> Callable[..., Live]:
    def make(*prefixes: str, **more: str) -> Live:
        entries = ", ".join(f"under({prefix!r}, Refuse())" for prefix in prefixes)
        middleware = {"Middleware/__init__.py": f"{REFUSE}\nmiddlewares = [{entries}]\n"}
        return Live(project({**TREE, **middleware, **more}, dev=True), ask)

    return make


def status(live: Live, target: str) -> int:
    return live.answer(target).status


def test_the_last_covered_folder_is_deleted_and_comes_back(
    live: Callable[..., Live], lines: Lines
) -> None:
    served = live("/v1/admin", "/v2/reports")
    assert (status(served, "/v1/admin"), status(served, "/v2/reports")) == (403, 403)

    gone = served.edit({"Api/v1/Admin/Get.py": None})
    assert [(one.file, one.kept) for one in getattr(gone, "broken", ())] == [
        ("Middleware/__init__.py", True)
    ]
    assert any("got '/v1/admin'; the nearest is " in text for text in lines.texts())
    assert (status(served, "/v1/admin"), status(served, "/v2/reports")) == (404, 403)

    served.edit({"Api/v1/User/[id]/Posts/Get.py": GET.replace("ok", "changed")})
    assert served.app.report.broken != ()
    served.edit({"Api/v1/Admin/Get.py": GET})
    assert served.app.report.broken == ()
    assert (status(served, "/v1/admin"), status(served, "/v2/reports")) == (403, 403)


def test_a_renamed_folder_keeps_the_other_guards(live: Callable[..., Live]) -> None:
    served = live("/v1/admin", "/v2/reports")
    served.edit({"Api/v1/Admin/Get.py": None, "Api/v1/Office/Get.py": GET})

    assert (status(served, "/v1/office"), status(served, "/v2/reports")) == (200, 403)
    assert "got '/v1/admin'; the nearest is" in served.app.report.broken[0].error
    entries = "under('/v1/office', Refuse()), under('/v2/reports', Refuse())"
    served.edit({"Middleware/__init__.py": f"{REFUSE}\nmiddlewares = [{entries}]\n"})
    assert served.app.report.broken == ()
    assert (status(served, "/v1/office"), status(served, "/v2/reports")) == (403, 403)


def test_a_typing_error_in_a_saved_list_keeps_the_last_good_chain(
    live: Callable[..., Live], lines: Lines
) -> None:
    served = live("/v1/admin")
    typed = f"{REFUSE}\nmiddlewares = [under('/v1/admni', Refuse())]\n"
    served.edit({"Middleware/__init__.py": typed})

    assert status(served, "/v1/admin") == 403
    assert any("got '/v1/admni'; the nearest is '/v1/admin'" in text for text in lines.texts())
    served.edit({"Middleware/__init__.py": typed.replace("admni", "admin")})
    assert (served.app.report.broken, status(served, "/v1/admin")) == ((), 403)
