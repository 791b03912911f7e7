"""An import that blocks: it is ended, and all that needs it keeps its last good version."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from http_reloading import CHAIN, Live, MakeLive, X, Y, handler

from treefold_http.reload import Reloaded, Reloader, RestartNeeded

if TYPE_CHECKING:
    from conftest import Lines

LOOP = "while True: pass\n"


@pytest.fixture
def quick(live: MakeLive) -> Callable[[dict[str, str]], Live]:
    def make(files: dict[str, str]) -> Live:
        app = live(files)
        app.reloader = Reloader(app.app, import_seconds=0.3)
        return app

    return make


@pytest.mark.parametrize(
    "blocking",
    [
        LOOP,
        "import time\nwhile True: time.sleep(0.1)\n",
        "try:\n    while True: pass\nexcept Exception: pass\n",
        "import time; time.sleep(3)\n",
    ],
)
def test_a_service_that_blocks_is_left_out_until_it_is_mended(
    quick: MakeLive, lines: Lines, blocking: str
) -> None:
    app = quick(CHAIN)
    outcome = app.edit({"Services/b.py": blocking})
    assert isinstance(outcome, Reloaded)
    (broken,) = outcome.broken
    assert (broken.cause, broken.kept) == ("Services/b.py", True)
    assert broken.error == "TimeoutError: the import took longer than 0.3 seconds"
    assert app.get() == [1]

    app.edit({Y: handler("2")})
    assert (app.get(), app.get("/v1/y")) == ([1], [2])
    tried = [line for line in lines.texts() if "Services/b.py failed to load: Timeout" in line]
    assert len(tried) == 1  # another save does not wait for it again

    app.edit({"Services/b.py": "n = 3\n"})
    assert (app.get(), app.app.report.broken) == ([3], ())


def test_a_new_handler_that_blocks_answers_500_until_what_it_imports_is_mended(
    quick: MakeLive,
) -> None:
    app = quick({X: handler("1"), "Services/__init__.py": ""})
    app.edit({Y: handler("slow.n", "from Services import slow"), "Services/slow.py": LOOP})
    assert [(one.file, one.cause, one.kept) for one in app.app.report.broken] == [
        ("v1/Y/Get.py", "Services/slow.py", False)
    ]
    assert (app.get(), app.get("/v1/y")) == ([1], 500)
    app.edit({X: handler("2")})
    assert (app.get(), app.get("/v1/y")) == ([2], 500)
    app.edit({"Services/slow.py": "n = 3\n"})
    assert (app.get("/v1/y"), app.app.report.broken) == ([3], ())


@pytest.mark.parametrize("file", ["hooks.py", "extensions.py", "providers.py"])
def test_a_boot_file_that_blocks_keeps_what_it_said(quick: MakeLive, file: str) -> None:
    app = quick({X: handler("1"), "hooks.py": "", "extensions.py": "", "providers.py": ""})
    outcome = app.edit({file: LOOP, X: handler("2")})
    assert isinstance(outcome, Reloaded)
    assert [(one.cause, one.kept) for one in outcome.broken] == [(file, True)]
    assert app.get() == [2]


def test_an_init_that_blocks_keeps_the_former_handler(quick: MakeLive) -> None:
    app = quick({X: handler("1")})
    app.edit({X: handler("2", "def init():\n    while True: pass")})
    assert [(one.cause, one.kept) for one in app.app.report.broken] == [(X, True)]
    assert app.get() == [1]


def test_many_modules_that_take_a_while_together_are_no_failure(quick: MakeLive) -> None:
    pause = "import time; time.sleep(0.15)\n"
    services = {f"Services/s{n}.py": pause for n in range(4)}
    lines = [f"from Services import s{n}" for n in range(4)]
    app = quick({X: handler("1"), "Services/__init__.py": "", **services})
    app.edit({X: handler("2", *lines)})
    assert (app.get(), app.app.report.broken) == ([2], ())


SLOW = """
    import time
    from pathlib import Path
    (Path(__file__).parent / "begun").touch()
    while not (Path(__file__).parent / "go").exists():
        time.sleep(0.005)
    n = 2
"""
LAZY = """
    import importlib

    def handler():
        from Services import a
        import Services.b
        return [a.value(), Services.b.n, importlib.import_module("Services.b").n]
"""


def test_requests_import_the_former_modules_while_an_import_takes_long(live: MakeLive) -> None:
    """Also in functions, by name, and for the first time."""
    late = {"Services/late.py": "from Services.b import n\nm = n\n"}
    first = "def handler():\n    from Services import late\n    return [late.m]\n"
    app = live({**CHAIN, **late, X: LAZY, Y: first})
    assert app.get() == [1, 1, 1]
    services = app.app.root / "Services"
    with ThreadPoolExecutor() as threads:
        reload = threads.submit(app.edit, {"Services/b.py": SLOW})
        deadline = time.monotonic() + 15
        while not (services / "begun").exists():
            assert time.monotonic() < deadline
        assert [app.get(), app.get("/v1/y"), app.get()] == [[1, 1, 1], [1], [1, 1, 1]]
        (services / "go").touch()
        assert isinstance(reload.result(), Reloaded)
    assert [app.get(), app.get("/v1/y")] == [[2, 2, 2], [2]]


GATE = """
    from threading import Event
    reloading, resume, begun, go = Event(), Event(), Event(), Event()
"""
LATE = """
    from Services import gate
    gate.begun.set()
    gate.go.wait(10)
    from Services.b import n
    from Services import more
    m = [n, more.n]
"""
WAITS = "from Services import gate\ngate.reloading.set()\ngate.resume.wait(10)\n"
OUTCOMES = {
    "swapped": ("n = 2\n", Reloaded, [2, 2]),
    "broken": ("1 / 0\n", Reloaded, [1, 1]),
    "restart": (
        "import threading\nthreading.Thread(target=int).start()\nn = 2\n",
        RestartNeeded,
        [1, 1],
    ),
}


@pytest.mark.parametrize("imports", ["from Services import late", "import Services.late as late"])
@pytest.mark.parametrize("requests", [1, 3])
@pytest.mark.parametrize("outcome", OUTCOMES)
def test_a_request_imports_a_module_for_the_first_time_while_a_reload_ends(
    live: MakeLive, outcome: str, requests: int, imports: str
) -> None:
    text, kind, after = OUTCOMES[outcome]
    app = live(
        {
            X: f"def handler():\n    {imports}\n    return late.m\n",
            Y: handler("b.n", "from Services import b, gate"),
            "Services/__init__.py": "",
            "Services/gate.py": GATE,
            "Services/b.py": "n = 1\n",
            "Services/late.py": LATE,
            "Services/more.py": "from Services.b import n\n",
        }
    )
    gate: Any = sys.modules["Services.gate"]
    with ThreadPoolExecutor(1 + requests) as threads:
        reload = threads.submit(app.edit, {"Services/b.py": WAITS + text})
        assert gate.reloading.wait(10)
        asked = [threads.submit(app.get)]
        assert gate.begun.wait(10)
        gate.resume.set()
        assert isinstance(reload.result(10), kind)
        asked += [threads.submit(app.get) for _ in range(requests - 1)]
        if requests > 1:
            time.sleep(0.1)  # they wait for the same import
        gate.go.set()
        answers = [one.result(10) for one in asked]
    assert answers[0] == [1, 1]
    assert all(answer in ([1, 1], after) for answer in answers)
    assert app.get() == after
    assert app.get("/v1/y") == after[:1]
