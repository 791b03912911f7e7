"""Saves in versions that inherit: after each one the project answers like a new application."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from http_reloading import Live, MakeLive

from treefold_http import Application, BootError

if TYPE_CHECKING:
    from conftest import Answer

Ask = Callable[..., "Answer"]

GET = "from .shelf import book\ndef handler(): return [__name__, book]\n"
BASE = {
    "Api/v1/X/Get.py": GET,
    "Api/v1/X/shelf.py": "book = 1\n",
    "Api/v2/version.toml": 'inherits = "v1"',
    "Api/v3/version.toml": 'inherits = "v2"',
}


def books(served: Live) -> list[object]:
    answers = [served.get(f"/v{number}/x") for number in (1, 2, 3)]
    return [answer[1] if isinstance(answer, list) else answer for answer in answers]


def test_a_saved_base_file_reloads_in_every_version(live: MakeLive) -> None:
    served = live(BASE)
    assert books(served) == [1, 1, 1]
    served.edit({"Api/v1/X/shelf.py": "book = 2\n"})
    assert books(served) == [2, 2, 2]
    served.edit({"Api/v1/X/Get.py": GET.replace("book]", "book + 10]")})
    assert books(served) == [12, 12, 12]
    assert served.get("/v3/x")[0] == "Api.v3.X.Get"


def test_a_save_of_one_version_leaves_the_modules_of_the_others(live: MakeLive) -> None:
    counting = "book = [0]\ndef count():\n    book[0] += 1\n    return book[0]\n"
    source = "from .shelf import count\ndef handler(): return [__name__, count()]\n"
    served = live({**BASE, "Api/v1/X/Get.py": source, "Api/v1/X/shelf.py": counting})
    assert books(served) == [1, 1, 1]
    served.edit({"Api/v2/X/shelf.py": counting.replace("[0]\ndef", "[100]\ndef")})
    assert books(served) == [2, 101, 101]


def test_an_own_file_hides_the_inherited_one_and_is_deleted_again(live: MakeLive) -> None:
    served = live(BASE)
    served.edit({"Api/v2/X/shelf.py": "book = 'own'\n"})
    assert books(served) == [1, "own", "own"]
    served.edit({"Api/v2/X/Get.py": "def handler(): return [__name__, 'handler']\n"})
    assert books(served) == [1, "handler", "handler"]
    served.edit({"Api/v2/X/Get.py": None})
    assert books(served) == [1, "own", "own"]
    served.edit({"Api/v2/X/shelf.py": None})
    assert books(served) == [1, 1, 1]


def test_marks_remove_a_route_and_a_module_and_give_them_back(live: MakeLive) -> None:
    tolerant = (
        "try:\n    from .shelf import book\nexcept ImportError:\n    book = 'none'\n"
        "def handler(): return [__name__, book]\n"
    )
    served = live({**BASE, "Api/v1/X/Get.py": tolerant})
    served.edit({"Api/v2/X/Get.gone": ""})
    assert books(served) == [1, 404, 404]
    served.edit({"Api/v2/X/Get.gone": None, "Api/v2/X/shelf.gone": ""})
    assert books(served) == [1, "none", "none"]
    served.edit({"Api/v3/X/shelf.py": "book = 3\n"})
    assert books(served) == [1, "none", 3]
    served.edit({"Api/v2/X/shelf.gone": None, "Api/v3/X/shelf.py": None})
    assert books(served) == [1, 1, 1]


def test_a_new_module_of_the_base_reaches_what_missed_it(live: MakeLive) -> None:
    tolerant = (
        "try:\n    from .late import book\nexcept ImportError:\n    book = 'none'\n"
        "def handler(): return [__name__, book]\n"
    )
    served = live({**BASE, "Api/v1/X/Get.py": tolerant})
    assert books(served) == ["none"] * 3
    served.edit({"Api/v1/X/late.py": "book = 'late'\n"})
    assert books(served) == ["late"] * 3


def test_version_files_come_change_and_go(live: MakeLive) -> None:
    served = live(
        {
            "Api/v1/X/Get.py": GET,
            "Api/v1/X/shelf.py": "book = 1\n",
            "Api/v2/X/shelf.py": "book = 2\n",
            "Api/v2/X/Get.py": GET,
            "Api/v3/Y/Get.py": "def handler(): ...\n",
        }
    )
    assert books(served) == [1, 2, 404]
    served.edit({"Api/v3/version.toml": 'inherits = "v1"'})
    assert books(served) == [1, 2, 1]
    served.edit({"Api/v3/version.toml": 'inherits = "v2"'})
    assert books(served) == [1, 2, 2]
    served.edit({"Api/v3/version.toml": "serve = false"})
    assert books(served) == [1, 2, 404]
    served.edit({"Api/v3/version.toml": None})
    assert books(served) == [1, 2, 404]


def test_a_broken_base_file_leaves_each_version_its_last_good_one(live: MakeLive) -> None:
    served = live({**BASE, "Api/v2/X/shelf.py": "book = 2\n"})
    served.edit({"Api/v1/X/Get.py": "this is no Python"})
    assert books(served) == [1, 2, 2]
    assert {(one.place, one.kept) for one in served.app.report.broken} == {
        ("v1/X/Get.py", True),
        ("v2/X/Get.py", True),
        ("v3/X/Get.py", True),
    }
    served.edit({"Api/v2/X/shelf.py": "book = 3\n"})
    assert books(served) == [1, 2, 2]
    served.edit({"Api/v1/X/Get.py": GET})
    assert books(served) == [1, 3, 3]
    assert served.app.report.broken == ()


def test_a_file_that_names_its_version_now_keeps_its_former_one_above(live: MakeLive) -> None:
    served = live(BASE)
    source = "from Api.v1.X.shelf import book\ndef handler(): return [1, book + 1]\n"
    served.edit({"Api/v1/X/Get.py": source})
    assert books(served) == [2, 1, 1]
    assert {one.place for one in served.app.report.broken} == {"v2/X/Get.py", "v3/X/Get.py"}
    served.edit({"Api/v1/X/shelf.py": "book = 5\n"})
    assert books(served) == [6, 1, 1]
    served.edit({"Api/v1/X/Get.py": GET})
    assert books(served) == [5, 5, 5]


@pytest.mark.parametrize("text", ["inherit = 1", 'inherits = "v9"', 'inherits = "v3"', "= ="])
def test_an_invalid_version_file_leaves_everything_as_it_was(live: MakeLive, text: str) -> None:
    served = live(BASE)
    with pytest.raises(BootError, match=r"version\.toml"):
        served.edit({"Api/v2/version.toml": text})
    assert books(served) == [1, 1, 1]
    with pytest.raises(BootError):
        served.edit({"Api/v1/X/shelf.py": "book = 2\n"})
    served.edit({"Api/v2/version.toml": 'inherits = "v1"'})
    assert books(served) == [2, 2, 2]


FILES = (
    *("X/Get.py", "x/Get.py", "X/Put.py", "X/[id]/Get.py", "X/[key]/Delete.py", "X/shelf.py"),
    *("X/Services/names.py", "X/__init__.py", "Get.py"),
)
MARKS = ("X.gone", "X/Get.gone", "X/shelf.gone", "X/[id].gone", "X/Services.gone", "X/put.gone")
TARGETS = ("", "/x", "/x/5")
METHODS = ("GET", "PUT", "DELETE")
HANDLER = """
import importlib
found = []
for name in (".shelf", ".Services.names", "..shelf", "."):
    try:
        found.append(importlib.import_module(name, __package__).book)
    except (ImportError, AttributeError) as error:
        found.append(type(error).__name__)
try:
    from .shelf import book
except ImportError:
    book = "none"

def handler(request):
    return [{number}, __name__, found, book, dict(request.path_params)]
"""


class History:
    """Saves drawn by lot in three versions."""

    def __init__(self, seed: int) -> None:
        always = {"Api/v1/Always/Get.py": "def handler(): ...\n"}
        self.files = {**BASE, "Api/v1/X/Get.py": HANDLER.format(number=0), **always}
        self._lot = random.Random(seed)
        self._number = 0

    def draw_saves(self) -> dict[str, str | None]:
        saves: dict[str, str | None] = {}
        for _ in range(self._lot.randint(1, 3)):
            self._number += 1
            version, kind = self._lot.choice(("v1", "v2", "v2", "v3")), self._lot.random()
            name = f"Api/{version}/{self._lot.choice(FILES if kind < 0.75 else MARKS)}"
            if kind > 0.93 and version != "v1":
                name = f"Api/{version}/version.toml"
                lines = ("", 'inherits = "v1"', 'inherits = "v1"\nserve = false')
                self.files[name] = saves[name] = self._lot.choice(lines)
            elif name in saves:
                continue
            elif name in self.files and self._lot.random() < 0.5:
                del self.files[name]
                saves[name] = None
            else:
                self.files[name] = saves[name] = self._write(name)
        return saves

    def _write(self, name: str) -> str:
        if name.endswith(".gone"):
            return ""
        is_handler = name.rpartition("/")[2] in ("Get.py", "Put.py", "Delete.py")
        return HANDLER.format(number=self._number) if is_handler else f"book = {self._number}\n"


@pytest.mark.parametrize("seed", range(8))
def test_layers_that_change_answer_like_a_new_application(
    live: MakeLive, ask: Ask, tmp_path: Path, seed: int
) -> None:
    history = History(seed)
    served = live(history.files)

    def describe(app: Application) -> dict[str, object]:
        answers: dict[str, object] = {}
        for version in ("/v1", "/v2", "/v3"):
            for target in TARGETS:
                for method in METHODS:
                    answer = ask(app, method, f"{version}{target}")
                    body = answer.body if answer.status < 400 else b""
                    found = (answer.status, answer.fields("allow"), body)
                    answers[f"{method} {version}{target}"] = found
        routes = [(route.method, route.template, route.file) for route in app.table.routes]
        broken = sorted(one.place for one in app.report.broken)
        return {**answers, "routes": routes, "broken": broken}

    for step in range(12):
        saves = history.draw_saves()
        served.edit(saves)
        root = tmp_path / f"new-{step}"
        for name, text in history.files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        new = Application(root, dev=True)
        new.boot()
        assert describe(served.app) == describe(new), (seed, step, saves)
        new.threads.shutdown()
        shutil.rmtree(root)
