"""A file that fails in a reload: its last good version serves, and it is reported (S-118)."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from http_reloading import CHAIN, MakeLive, X, Y, handler, header

from treefold_http import Application
from treefold_http.reload import Reloaded

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]


BROKEN = {
    "syntax": "def handler(:\n",
    "import": "import nothing_of_this_name\ndef handler(): return [2]\n",
    "raises": "1 / 0\n",
    "exits": "raise SystemExit(3)\n",
    "no handler": "x = 1\n",
    "parameter": "from typing import Protocol\nclass P(Protocol): ...\ndef handler(p: P): ...\n",
    "init": "def init(): 1 / 0\ndef handler(): return [2]\n",
    "null": "\0",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_a_file_that_fails_keeps_its_last_good_version_and_says_so(
    live: MakeLive, lines: Lines, text: str
) -> None:
    app = live({X: handler("1"), Y: handler("1")})
    for round_ in range(3):  # an error, mended, an error again
        good = 10 * round_
        app.edit({X: handler(f"{good}")})
        assert app.get() == [good]
        assert header(app.answer(), "x-treefold-broken") is None
        outcome = app.edit({X: text})
        assert isinstance(outcome, Reloaded)
        (broken,) = outcome.broken
        assert (broken.file, broken.cause, broken.kept) == ("v1/X/Get.py", X, True)
        assert app.app.report.broken == outcome.broken
        assert app.get() == [good]
        for target in ("/v1/x", "/v1/y", "/v1/nothing"):
            assert (header(app.answer(target), "x-treefold-broken") or "").startswith(f"{X}: ")
        said = [line for line in lines.texts() if line.startswith(f"{X} failed to load: ")]
        assert len(said) == round_ + 1
        app.edit({Y: handler(f"{round_}")})  # something else is mended meanwhile
        assert (app.get(), app.get("/v1/y")) == ([good], [round_])


def test_a_file_that_was_never_good_answers_500_until_it_is_mended(
    live: MakeLive,
) -> None:
    app = live({X: BROKEN["raises"]})
    answer = app.answer()
    assert answer.status == 500
    assert header(answer, "x-treefold-broken") == f"{X}: ZeroDivisionError: division by zero"
    app.edit({Y: handler("1")})
    assert app.get() == 500
    app.edit({X: handler("1")})
    assert app.get() == [1]
    assert header(app.answer(), "x-treefold-broken") is None


def test_a_service_that_fails_is_named_once_and_all_that_import_it_go_on(
    live: MakeLive, lines: Lines
) -> None:
    app = live(
        {**CHAIN, Y: handler("a.value()", "from Services.a import value", "from Services import a")}
    )
    outcome = app.edit({"Services/b.py": "n = \n"})

    assert isinstance(outcome, Reloaded)
    assert {broken.cause for broken in outcome.broken} == {"Services/b.py"}
    assert {broken.file for broken in outcome.broken} == {"v1/X/Get.py", "v1/Y/Get.py"}
    assert (app.get(), app.get("/v1/y")) == ([1], [1])
    assert len([line for line in lines.texts() if "failed to load" in line]) == 1
    assert importlib.import_module("Services.b").n == 1
    app.edit({"Services/b.py": "n = 2\n"})
    assert (app.get(), app.get("/v1/y")) == ([2], [2])


def test_a_deleted_service_leaves_what_needs_it_running_until_it_is_back(
    live: MakeLive,
) -> None:
    app = live(CHAIN)
    app.edit({"Services/b.py": None})
    assert app.get() == [1]
    assert app.app.report.broken[0].cause == "Services/a.py"
    app.edit({"Services/b.py": "n = 3\n"})
    assert app.get() == [3]
    assert app.app.report.broken == ()


def test_a_service_that_is_imported_in_a_function_keeps_its_last_good_version_too(
    live: MakeLive,
) -> None:
    lazy = "def handler():\n    from Services.mail import n\n    return [n]\n"
    app = live({X: lazy, "Services/__init__.py": "", "Services/mail.py": "n = 1\n"})
    assert app.get() == [1]
    outcome = app.edit({"Services/mail.py": "n = \n"})
    assert isinstance(outcome, Reloaded)
    assert [(broken.file, broken.kept) for broken in outcome.broken] == [("Services/mail.py", True)]
    assert app.get() == [1]
    app.edit({"Services/mail.py": "n = 2\n"})
    assert (app.get(), app.app.report.broken) == ([2], ())
    app.edit({"Services/mail.py": None, X: handler("3")})
    assert (app.get(), app.app.report.broken) == ([3], ())


def test_what_failed_to_import_a_module_tries_again_when_it_is_there(
    live: MakeLive,
) -> None:
    app = live({X: handler("n", "from Services.late import n"), "Services/__init__.py": ""})
    assert app.get() == 500
    app.edit({"Services/late.py": "n = 1\n"})
    assert app.get() == [1]


@pytest.mark.parametrize("file", ["Middleware/__init__.py", "hooks.py", "providers.py"])
def test_a_boot_file_that_fails_keeps_what_it_said(live: MakeLive, file: str) -> None:
    app = live(
        {
            X: "def handler(n):\n    return [n]\n",
            "Middleware/__init__.py": "middlewares = []\n",
            "hooks.py": "on_startup = []\n",
            "providers.py": "providers = {'n': lambda: 7}\n",
        }
    )
    good = (app.app.root / file).read_text()
    for _ in range(2):
        outcome = app.edit({file: "1 / 0\n"})
        assert isinstance(outcome, Reloaded)
        assert [(broken.file, broken.kept) for broken in outcome.broken] == [(file, True)]
        assert app.get() == [7]
        app.edit({X: "def handler(n):\n    return [n, n]\n"})
        assert app.get() == [7, 7]
        app.edit({X: "def handler(n):\n    return [n]\n"})
        app.edit({file: good})
        assert app.app.report.broken == ()


def test_a_request_is_watched_once_however_often_the_middleware_fails(live: MakeLive) -> None:
    app = live(
        {
            X: "def handler():\n    return []\n",
            "Middleware/__init__.py": "middlewares = []\n",
            "extensions.py": """
                class Counts:
                    begun = 0

                    def watch(self):
                        self.begun += 1
                        return lambda: ""

                extensions = [Counts()]
                """,
        }
    )
    for n in range(3):
        app.edit({"Middleware/__init__.py": f"1 / 0  # {n}\n"})
    app.get()

    (counts,) = app.app.project.boot_files.extensions
    assert counts.begun == 1


def test_the_header_carries_no_line_break_and_only_ascii(live: MakeLive) -> None:
    app = live({X: handler("1")})
    app.edit({X: "raise ValueError('ünö\\r\\nX-Evil: 1')\n"})
    told = header(app.answer(), "x-treefold-broken")
    assert told == f"{X}: ValueError: \\xfcn\\xf6 X-Evil: 1"


def test_production_tells_nothing(project: Project, ask: Ask) -> None:
    app = project({X: "1 / 0\n"})
    assert header(ask(app, "GET", "/v1/x"), "x-treefold-broken") is None
    assert app.project.good == {}
