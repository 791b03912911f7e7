"""Reload: what changed and what imports it is new, the rest is the object that it was."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from http_reloading import CHAIN, MakeLive, X, Y, handler, header

from treefold_http.reload import Reloaded

if TYPE_CHECKING:
    from conftest import Answer

Write = Callable[..., Path]
Ask = Callable[..., "Answer"]


def test_a_changed_handler_serves_and_the_others_stay_the_same_objects(
    live: MakeLive,
) -> None:
    app = live({X: handler("1"), Y: handler("1")})
    before = sys.modules["Api.v1.Y.Get"]
    outcome = app.edit({X: handler("2")})

    assert isinstance(outcome, Reloaded)
    assert (outcome.files, outcome.added, outcome.removed, outcome.broken) == ((X,), (), (), ())
    assert (app.get(), app.get("/v1/y")) == ([2], [1])
    assert sys.modules["Api.v1.Y.Get"] is before
    assert importlib.import_module("Api.v1.X.Get").handler() == [2]


def test_two_saves_in_one_second_with_the_same_size_are_both_seen(
    live: MakeLive,
) -> None:
    app = live({X: handler("0", "from Services.n import n"), "Services/n.py": "n = 0\n"})
    for number in range(1, 6):
        file = app.app.root / X
        file.write_text(handler(f"{number}"))
        os.utime(file, (1_700_000_000, 1_700_000_000))
        app.reloader.reload([X])
        assert app.get() == [number]


def test_the_next_start_does_not_run_the_bytecode_of_a_former_save(
    live: MakeLive, ask: Ask, write: Write
) -> None:
    from py_compile import compile as compile_file

    app = live({X: handler("1")})
    file = app.app.root / X
    os.utime(file, (1_700_000_000, 1_700_000_000))
    cached = compile_file(str(file), doraise=True)
    file.write_text(handler("2"))
    os.utime(file, (1_700_000_000, 1_700_000_000))
    app.reloader.reload([X])

    assert cached is not None
    assert not Path(cached).exists()


def test_what_imports_a_changed_service_follows_through_others(live: MakeLive) -> None:
    app = live(CHAIN)
    outcome = app.edit({"Services/b.py": "n = 2\n"})

    assert isinstance(outcome, Reloaded)
    assert outcome.files == (X, "Services/a.py", "Services/b.py")
    assert app.get() == [2]


@pytest.mark.parametrize(
    "line",
    [
        "from Services.mail import name",
        "from Services import mail; name = mail.name",
        "import Services.mail; name = Services.mail.name",
        "import Services.mail as m; name = m.name",
        "from Services.mail import *",
        "import importlib; name = importlib.import_module('Services.mail').name",
        "import importlib; name = importlib.import_module('Services.' + 'mail').Kind.name",
        "def late():\n    from Services import mail\n    return mail.name\nname = late()",
        "import Services.other, Services.mail; name = Services.mail.name",
        "from Services.mail import Kind; Kinds = [Kind]; name = Kind.name",
    ],
)
def test_every_way_to_import_a_service_is_followed(live: MakeLive, line: str) -> None:
    def service(value: int) -> str:
        return f"name = {value}\nclass Kind:\n    name = {value}\nkind = Kind()\n"

    held = line if "'Services.' +" not in line else f"{line}\nkind = importlib.import_module("
    held += "'Services.' + 'mail').kind" if held != line else ""
    app = live(
        {
            X: handler("name", held),
            "Services/__init__.py": "",
            "Services/mail.py": service(1),
            "Services/other.py": "",
        }
    )
    assert app.get() == [1]
    for value in (2, 3):
        app.edit({"Services/mail.py": service(value)})
        assert app.get() == [value]


def test_local_services_middleware_and_models_reload_too(live: MakeLive) -> None:
    app = live(
        {
            X: handler("name, kind", "from .Services.n import name", "from Models.k import kind"),
            "Api/v1/X/Services/n.py": "name = 1\n",
            "Models/k.py": "kind = 1\n",
            "Middleware/__init__.py": """
                from Services.head import value
                async def mark(request, call_next):
                    response = await call_next(request)
                    response.headers["X-Mark"] = value
                    return response
                middlewares = [mark]
            """,
            "Services/head.py": "value = 'old'\n",
        }
    )
    assert header(app.answer(), "x-mark") == "old"
    app.edit({"Api/v1/X/Services/n.py": "name = 2\n"})
    assert app.get() == [2, 1]
    app.edit({"Models/k.py": "kind = 2\n"})
    assert app.get() == [2, 2]
    app.edit({"Services/head.py": "value = 'new'\n"})
    assert header(app.answer(), "x-mark") == "new"
    assert header(app.answer("/v1/nowhere"), "x-mark") == "new"


def test_modules_in_a_circle_are_all_new(live: MakeLive) -> None:
    files = {
        X: handler("a.call()", "from Services import a"),
        "Services/__init__.py": "",
        "Services/a.py": "from Services import b\nn = 1\ndef call(): return [n, b.ask()]\n",
        "Services/b.py": "from Services import a\nimport Services.a\ndef ask(): return a.n\n",
    }
    app = live(files)
    assert app.get() == [[1, 1]]
    app.edit({"Services/a.py": files["Services/a.py"].replace("n = 1", "n = 2")})
    assert app.get() == [[2, 2]]
    app.edit({"Services/b.py": "from Services import a\ndef ask(): return -a.n\n"})
    assert app.get() == [[2, -2]]


def test_a_package_that_is_new_still_has_the_modules_that_are_not(
    live: MakeLive,
) -> None:
    app = live(
        {
            X: handler("Services.own, Services.mail.n", "import Services.mail"),
            "Services/__init__.py": "own = 1\n",
            "Services/mail.py": "n = 1\nstate = []\n",
        }
    )
    before = sys.modules["Services.mail"]
    app.edit({"Services/__init__.py": "own = 2\n"})

    assert app.get() == [2, 1]
    assert sys.modules["Services.mail"] is before


def test_a_folder_becomes_a_package_with_an_init_file_and_is_none_without(
    live: MakeLive,
) -> None:
    app = live({X: handler("n", "try:", "    from . import n", "except ImportError:", "    n = 0")})
    assert app.get() == [0]
    app.edit({"Api/v1/X/__init__.py": "n = 1\n"})
    assert app.get() == [1]
    app.edit({"Api/v1/X/__init__.py": None})
    assert app.get() == [0]


def test_new_moved_and_deleted_files_change_the_routes(live: MakeLive) -> None:
    app = live({X: handler("1")})
    outcome = app.edit({"Api/v1/New/[id]/Get.py": "def handler(id: int):\n    return [id]\n"})
    assert isinstance(outcome, Reloaded)
    assert [route.template for route in outcome.added] == ["/v1/new/{id}"]
    assert app.get("/v1/new/7") == [7]

    (app.app.root / "Api/v1/New").rename(app.app.root / "Api/v1/Moved")
    app.reloader.reload(["Api/v1/New/[id]/Get.py", "Api/v1/Moved/[id]/Get.py"])
    assert (app.get("/v1/new/7"), app.get("/v1/moved/7")) == (404, [7])
    assert "Api.v1.New.[id].Get" not in sys.modules

    outcome = app.edit({"Api/v1/Moved/[id]/Get.py": None})
    assert isinstance(outcome, Reloaded)
    assert [route.template for route in outcome.removed] == ["/v1/moved/{id}"]
    assert app.get("/v1/moved/7") == 404


def test_a_file_that_nothing_imports_changes_nothing(live: MakeLive) -> None:
    app = live({X: handler("1"), "Tests/test_x.py": ""})
    module = sys.modules["Api.v1.X.Get"]
    assert app.edit({"Tests/test_x.py": "n = 1\n", "notes.py": "n = 1\n"}) is None
    assert sys.modules["Api.v1.X.Get"] is module
    assert [route.template for route in app.app.table.routes] == ["/v1/x"]
    assert app.get() == [1]


def test_a_new_module_at_the_root_can_be_imported(live: MakeLive) -> None:
    app = live({X: handler("1")})
    app.edit({"own_words.py": "n = 5\n", X: handler("n", "from own_words import n")})
    assert app.get() == [5]
