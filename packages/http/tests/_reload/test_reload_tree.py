"""Files that come, go and move: after each save the project answers like a new application."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from http_reloading import Live, handler

from treefold_http import Application, BootError

if TYPE_CHECKING:
    from conftest import Answer

FILES = (
    "v1/User/Get.py",
    "v1/user/Get.py",
    "v1/User/Put.py",
    "v1/User/Head.py",
    "v1/User/Options.py",
    "v1/User/[id]/Get.py",
    "v1/User/[a]/Delete.py",  # the first folder names the parameter of both
    "v1/User/[id]/Book/Get.py",
    "v1/User/me/Get.py",
    "v2/User/Get.py",
    "v2/Shop/Get.py",
    "v1/Shop/Get.py",
    "v1/Shop/wrong.py",
)
SAME_ROUTE = ("Api/v1/User/Get.py", "Api/v1/user/Get.py")
TARGETS = (
    *("/v1/user", "/v1/user/5", "/v1/user/me", "/v1/user/5/book", "/v1/shop", "/v2/user"),
    *("/v2/shop", "/user", "/shop", "/v1/nothing"),
)
METHODS = ("GET", "HEAD", "PUT", "DELETE", "OPTIONS")
HANDLER = "def handler(request, p):\n    return [{number}, p, dict(request.path_params)]\n"
OWN = """
async def own(request, call_next):
    answer = await call_next(request)
    answer.headers["own"] = "{number}"
    return answer
middlewares = [own]
"""
MIDDLEWARE = """
from treefold_http.middleware import under
async def outer(request, call_next):
    answer = await call_next(request)
    answer.headers["outer"] = "{number}"
    return answer
middlewares = [{entry}]
"""
ENTRIES = ("", "outer", "outer", "under('/v1/user', outer)", "under('/v1/user/{id}', outer)")


class History:
    """Saves drawn by lot, and the files that a new application needs to answer like the live one.

    Attributes:
        files: what is below the root; a broken file has its last good version here.
    """

    def __init__(self, seed: int) -> None:
        self.files: dict[str, str] = {}
        self._lot = random.Random(seed)
        self._number = 0
        self._write_settings("outer")

    def draw_saves(self) -> dict[str, str | None]:
        """Return up to three changes, which are saved together."""
        saves: dict[str, str | None] = {}
        for _ in range(self._lot.randint(1, 3)):
            self._number += 1
            name, kind = f"Api/{self._lot.choice(FILES)}", self._lot.random()
            if kind < 0.1:
                saves |= self._write_settings(self._lot.choice(ENTRIES))
            elif name in saves:
                continue
            elif kind < 0.4 and name in self.files:
                del self.files[name]
                saves[name] = None
            # not of two files for one route: of one of them no version was loaded
            elif kind < 0.5 and name in self.files and name not in SAME_ROUTE:
                saves[name] = f"this is no Python {self._number}"  # the former version serves
            else:
                text = HANDLER.format(number=self._number)
                if self._lot.random() < 0.2:
                    text += OWN.format(number=self._number)
                self.files[name] = saves[name] = text
        return saves

    def _write_settings(self, entry: str) -> dict[str, str | None]:
        written: dict[str, str | None] = {
            "providers.py": f"providers = {{'p': lambda: {self._number}}}\n",
            "Middleware/__init__.py": MIDDLEWARE.format(number=self._number, entry=entry),
        }
        self.files |= {name: str(text) for name, text in written.items()}
        return written


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_that_changes_answers_like_a_new_application(
    live: Callable[..., Live], ask: Callable[..., Answer], tmp_path: Path, seed: int
) -> None:
    history = History(seed)
    served = live({**history.files, "Api/v3/Always/Get.py": handler("1")})

    def describe(app: Application) -> dict[str, object]:
        answers: dict[str, object] = {}
        for target in TARGETS:
            for method in METHODS:
                answer = ask(app, method, target)
                told = {name: answer.fields(name) for name in ("outer", "own", "allow")}
                body = answer.body if answer.status < 400 else b""
                answers[f"{method} {target}"] = (answer.status, told, body)
        routes = [(route.method, route.template, route.file) for route in app.table.routes]
        return {**answers, "routes": routes, "duplicates": app.table.duplicates}

    for step in range(10):
        served.edit(history.draw_saves())
        root = tmp_path / f"new-{step}"
        files = {**history.files, "Api/v3/Always/Get.py": handler("1")}
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text)
        new = Application(root, dev=True)
        with suppress(BootError):  # a prefix of under() covers nothing: the live one goes on
            new.boot()
            assert describe(served.app) == describe(new), (seed, step)
        new.threads.shutdown()
        shutil.rmtree(root)
