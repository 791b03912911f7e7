"""Swap where it is safe, restart where it is not: the patterns by which modules enter something."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from http_reloading import MakeLive, X, Y, handler, header

from treefold_http.reload import Reloaded, RestartNeeded

PART = "Services/part.py"
REGISTRY = "Services/registry.py"
COMMON = {"Services/__init__.py": "", Y: handler("1")}
USE = handler("part.n", "from Services import part")

PATTERNS = {
    "append": ("found = []\n", "from Services import registry\nregistry.found.append(1)\n"),
    "dictionary": ("found = {}\n", "from Services.registry import found\nfound['a'] = object()\n"),
    "set": ("found = set()\n", "from Services.registry import found\nfound.add(object())\n"),
    "decorator": (
        "found = {}\ndef register(f):\n    found[f.__name__] = f\n    return f\n",
        "from Services.registry import register\n@register\ndef act(): pass\n",
    ),
    "guarded": (
        "found = {}\n",
        "from Services.registry import found\ndef act(): pass\n"
        "if 'act' not in found:\n    found['act'] = act\n",
    ),
    "setdefault": (
        "found = {}\ndef register(f):\n    return found.setdefault(f.__name__, f)\n",
        "from Services.registry import register\n@register\ndef act(): pass\n",
    ),
    "guarded class": (
        "class Kinds:\n    def __init__(self):\n        self.known = []\nkinds = Kinds()\n",
        "from Services.registry import kinds\nclass Own: pass\n"
        "if 'Own' not in [one.__name__ for one in kinds.known]:\n    kinds.known.append(Own)\n",
    ),
    "object": (
        """
        class Events:
            def __init__(self):
                self.listeners = {}
            def on(self, name):
                return lambda f: self.listeners.setdefault(name, []).append(f) or f
        events = Events()
        """,
        "from Services.registry import events\n@events.on('created')\ndef act(): pass\n",
    ),
    "subclass": (
        "class Base:\n    def __init_subclass__(cls): pass\n",
        "from Services.registry import Base\nclass Own(Base): pass\n",
    ),
    "subclasses": (
        "class Base: pass\ndef found():\n    return Base.__subclasses__()\n",
        "from Services.registry import Base\nclass Own(Base): pass\n",
    ),
    "thread": ("", "import threading\nthreading.Thread(target=int).start()\n"),
    "atexit": ("", "import atexit\natexit.register(int)\natexit.unregister(int)\n"),
    "signal": ("", "import signal\nsignal.signal(signal.SIGUSR2, signal.SIG_IGN)\n"),
    "sqlite3": ("", "import sqlite3\nsqlite3.connect(':memory:').close()\n"),
    "log handler": (
        "",
        "import logging\nlog = logging.getLogger('own')\nlog.addHandler(logging.NullHandler())\n",
    ),
    "switch": ("", "restart_on_change = True\n"),
}


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_module_that_enters_something_elsewhere_restarts(live: MakeLive, pattern: str) -> None:
    registry, part = PATTERNS[pattern]
    app = live(COMMON | {X: USE, REGISTRY: registry, PART: f"{part}n = 1\n"})
    assert app.get() == [1]
    assert isinstance(app.edit({PART: f"{part}n = 2\n"}), RestartNeeded)
    assert app.get() == [1]


@pytest.mark.parametrize(
    ("registry", "part"),
    [
        ("", ""),
        (
            "def timed(f):\n    return f\n",
            "from Services.registry import timed\n@timed\ndef act(): pass\n",
        ),
        ("class Base: pass\n", "from Services.registry import Base\nclass Own(Base): pass\n"),
        ("found = []\n", "from Services.registry import found\nn = len(found)\n"),
        ("", "import sqlite3\nsqlite3.connect(':memory:', check_same_thread=False).close()\n"),
    ],
    ids=["plain", "decorator", "subclass", "reader", "connection for all threads"],
)
def test_a_plain_service_is_swapped(live: MakeLive, registry: str, part: str) -> None:
    app = live(COMMON | {X: USE, REGISTRY: registry, PART: f"{part}n = 1\n"})
    assert isinstance(app.edit({PART: f"{part}n = 2\n"}), Reloaded)
    assert app.get() == [2]


def test_a_container_that_requests_change_too_restarts_nothing(live: MakeLive) -> None:
    count = handler("state.count()", "from Services import state, part")
    state = "seen = {}\ndef count():\n    seen[len(seen)] = 1\n    return len(seen)\n"
    part = "from Services import state\n{}n = 1\n"
    app = live(COMMON | {X: count, "Services/state.py": state, PART: part.format("")})
    assert [app.get(), app.get()] == [[1], [2]]
    assert isinstance(app.edit({PART: part.format("state.count()\n")}), Reloaded)
    assert app.get() == [4]


@pytest.mark.parametrize("entered", ["part.Own()", "part.act"])
def test_what_requests_put_into_a_container_restarts_nothing(live: MakeLive, entered: str) -> None:
    use = handler("part.n, len(state.keep(part))", "from Services import state, part")
    state = f"kept = {{}}\ndef keep(part):\n    kept.setdefault(1, {entered})\n    return kept\n"
    part = "from Services import state\nclass Own: pass\ndef act(): pass\nn = {n}\n"
    app = live(COMMON | {X: use, "Services/state.py": state, PART: part.format(n=1)})
    assert app.get() == [1, 1]
    assert isinstance(app.edit({PART: part.format(n=2)}), Reloaded)
    assert app.get() == [2, 1]


def test_what_was_entered_is_taken_back_until_the_restart(live: MakeLive) -> None:
    part = "from Services.registry import found\nfound.append({n})\n"
    use = handler("*registry.found", "from Services import part, registry")
    app = live(COMMON | {X: use, REGISTRY: "found = []\n", PART: part.format(n=1)})
    assert isinstance(app.edit({PART: part.format(n=2)}), RestartNeeded)
    assert app.get() == [1]


def test_what_requests_have_stored_meanwhile_is_not_taken_back(live: MakeLive) -> None:
    store = handler("state.store()", "from Services import state, part")
    state = "seen = []\ndef store():\n    seen.append(1)\n    return len(seen)\n"
    part = "from Services import state\n{}n = 1\n"
    app = live(COMMON | {X: store, "Services/state.py": state, PART: part.format("")})
    assert app.get() == [1]
    # the import itself calls what a request would call meanwhile
    meanwhile = "restart_on_change = True\nstate.store()\n"
    assert isinstance(app.edit({PART: part.format(meanwhile)}), RestartNeeded)
    assert app.get() == [3]


def test_the_restart_waits_until_no_file_is_broken(live: MakeLive) -> None:
    part = "from Services.registry import found\nfound.append(1)\nn = {n}\n"
    app = live(COMMON | {X: USE, REGISTRY: "found = []\n", PART: part.format(n=1)})
    outcome = app.edit({PART: part.format(n=2), Y: "1 / 0\n"})
    assert isinstance(outcome, Reloaded)
    assert app.get() == [1]
    assert isinstance(app.edit({Y: handler("2")}), RestartNeeded)


COUNT = """
import sys
counts = sys.__dict__.setdefault("treefold_reload_counts", [])
counts.append(1)
if len(counts) > 20:
    raise SystemExit("imported again and again")
"""
BROKEN = "def handler(:\n"
W = "Api/v1/W/Get.py"


@pytest.fixture
def counts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each import of a module that begins with `COUNT`."""
    found: list[int] = []
    monkeypatch.setattr(sys, "treefold_reload_counts", found, raising=False)
    return found


STARTING = ["thread", "atexit", "signal", "sqlite3", "log handler"]
NEW = {
    "handler": {Y: COUNT + "{}" + handler("1")},
    "service of a handler": {
        "Services/new.py": COUNT + "{}n = 1\n",
        Y: handler("new.n", "from Services import new"),
    },
    "model": {"Models/New.py": COUNT + "{}"},
    "middleware": {"Middleware/__init__.py": COUNT + "{}middlewares = []\n"},
    "handler that fails": {Y: COUNT + "{}1 / 0\n"},
}


@pytest.mark.parametrize("together", [False, True], ids=["before", "in the same save"])
@pytest.mark.parametrize("new", NEW)
@pytest.mark.parametrize("broken", [X, "Services/part.py", "hooks.py"])
@pytest.mark.parametrize("pattern", STARTING)
def test_a_new_file_that_starts_something_waits_for_a_broken_one(
    live: MakeLive, counts: list[int], pattern: str, broken: str, new: str, together: bool
) -> None:
    files = COMMON | {X: USE, PART: "n = 1\n", W: handler("1"), "hooks.py": "", "Models/Old.py": ""}
    del files[Y]
    starts = PATTERNS[pattern][1]
    added = {name: text.replace("{}", starts) for name, text in NEW[new].items()}
    app = live(files)
    if not together:
        app.edit({broken: BROKEN})
    outcome = app.edit({broken: BROKEN, **added} if together else added)
    assert isinstance(outcome, Reloaded)
    assert set(added) <= set(outcome.deferred)
    assert (outcome.files, outcome.added) == ((), ())
    assert broken in {one.cause for one in outcome.broken}
    assert app.app.report.broken == outcome.broken
    assert (app.get(), app.get("/v1/y"), app.get("/v1/w")) == ([1], 404, [1])
    assert (header(app.answer(), "x-treefold-broken") or "").startswith(f"{broken}: ")
    assert len(counts) <= 3

    tried = len(counts)
    outcome = app.edit({W: handler("2")})
    assert isinstance(outcome, Reloaded)
    assert (outcome.deferred, app.get("/v1/w")) == ((W,), [1])
    assert len(counts) - tried <= 3

    outcome = app.edit({broken: files[broken]})
    assert isinstance(outcome, RestartNeeded)
    file = next(name for name in added if COUNT in added[name])
    assert outcome.reason.startswith(f"{file} ")


def test_a_new_file_that_starts_something_does_not_wait_for_the_default_version(
    live: MakeLive, counts: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFOLD_DEFAULT_VERSION", "v2")
    app = live({X: handler("1"), "Api/v2/X/Get.py": handler("2")})
    (app.app.root / "Api/v2/X/Get.py").unlink()
    (app.app.root / "Api/v2/X").rmdir()
    (app.app.root / "Api/v2").rmdir()
    outcome = app.reloader.reload(["Api/v2/X/Get.py"])
    assert isinstance(outcome, Reloaded)
    assert [one.file for one in outcome.broken] == ["settings"]
    outcome = app.edit({Y: COUNT + PATTERNS["thread"][1] + handler("1")})
    assert isinstance(outcome, RestartNeeded)
    assert len(counts) <= 3


@pytest.mark.parametrize("text", [None, handler("2")], ids=["removed", "mended"])
def test_a_new_file_that_starts_nothing_any_more_waits_no_longer(
    live: MakeLive, counts: list[int], text: str | None
) -> None:
    app = live({X: handler("1"), W: handler("1")})
    app.edit({X: BROKEN})
    app.edit({Y: COUNT + PATTERNS["thread"][1] + handler("1"), W: handler("2")})
    assert (app.get("/v1/y"), app.get("/v1/w")) == (404, [1])
    outcome = app.edit({Y: text})
    assert isinstance(outcome, Reloaded)
    assert outcome.deferred == ()
    assert (app.get("/v1/y"), app.get("/v1/w")) == ([2] if text else 404, [2])
    assert app.get() == [1]
    assert isinstance(app.edit({X: handler("3")}), Reloaded)
    assert app.get() == [3]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_a_new_module_of_each_pattern_is_imported_a_few_times(
    live: MakeLive, counts: list[int], pattern: str
) -> None:
    """While the module that it enters something into is broken, or another one that uses it."""
    registry, part = PATTERNS[pattern]
    use = handler("1", "from Services import registry")
    app = live(COMMON | {X: use, Y: use, REGISTRY: registry})
    app.edit({X: BROKEN})
    outcome = app.edit({PART: f"{COUNT}{part}n = 1\n", W: USE, Y: f"{use}# changed\n"})
    assert isinstance(outcome, Reloaded)
    assert len(counts) <= 4
    assert app.get() == [1]
    tried = len(counts)
    assert isinstance(app.edit({X: use}), RestartNeeded | Reloaded)
    assert len(counts) - tried <= 3


@pytest.mark.parametrize("act", ["signal.signal(signal.SIGUSR2, signal.SIG_IGN)", "int()"])
def test_a_signal_handler_of_a_reload_outside_the_main_thread(live: MakeLive, act: str) -> None:
    """Only the main thread may set one: the next process does."""
    source = handler("{n}", "import signal", f"def init():\n    {act}")
    app = live({X: source.replace("{n}", "1")})
    with ThreadPoolExecutor() as threads:
        outcome = threads.submit(app.edit, {X: source.replace("{n}", "2")}).result()
    assert isinstance(outcome, RestartNeeded) is act.startswith("signal")
    assert app.app.report.broken == ()


SCAN = "for one in pkgutil.iter_modules({path}):\n    {save}(importlib.import_module({name}))\n"
SCANS = {
    "registry": (
        "import importlib, pkgutil\nfrom Services import plugins\nfound = []\n"
        + SCAN.format(
            path="plugins.__path__", save="found.append", name="f'Services.plugins.{one.name}'"
        ),
        "",
    ),
    "package": (
        "from Services.plugins import found\n",
        "from importlib import import_module\nimport importlib, pkgutil\nfound = set()\n"
        + SCAN.format(path="__path__", save="found.add", name="f'.{one.name}', __name__"),
    ),
    "helper": (
        "from Services.scan import scan\nfound = scan('Services.plugins')\n",
        "",
    ),
}
HELPER = """
    from importlib import import_module
    import os
    def scan(package):
        folder = os.path.dirname(import_module(package).__file__)
        names = [name[:-3] for name in os.listdir(folder) if name[0] != "_" and name[-3:] == ".py"]
        return {name: import_module(f"{package}.{name}") for name in names}.values()
"""


@pytest.mark.parametrize("scan", SCANS)
def test_a_plugin_scan_is_done_again(live: MakeLive, scan: str) -> None:
    """By computed names, which no source says: after a change, a new and a removed plugin."""
    registry, package = SCANS[scan]
    use = handler("*sorted(one.N for one in registry.found)", "from Services import registry")
    plugins = {"Services/plugins/__init__.py": package, "Services/plugins/a.py": "N = 1\n"}
    app = live(COMMON | plugins | {X: use, REGISTRY: registry, "Services/scan.py": HELPER})
    assert app.get() == [1]
    for edit, expected in (
        ({"Services/plugins/a.py": "N = 2\n"}, [2]),
        ({"Services/plugins/b.py": "N = 3\n"}, [2, 3]),
        ({"Services/plugins/a.py": None}, [3]),
    ):
        assert isinstance(app.edit(edit), Reloaded)
        assert app.get() == expected
