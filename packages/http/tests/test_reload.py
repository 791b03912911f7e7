"""Reload: what changed and what imports it is new, the rest is the object that it was."""

from __future__ import annotations

import asyncio
import gc
import importlib
import os
import sys
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, SettingsError
from treefold_http._modules import ModuleSpace
from treefold_http._reload import Reloaded, Reloader, RestartNeeded
from treefold_logging import get_logger

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Write = Callable[..., Path]
Project = Callable[..., Application]
Ask = Callable[..., "Answer"]


class Live:
    """A booted application, its files, and what reloads it."""

    def __init__(self, app: Application, ask: Ask) -> None:
        self.app, self._ask = app, ask
        app.boot()
        self.reloader = Reloader(app)
        self.reloader.look_around()

    def save(self, **files: str | None) -> Reloaded | RestartNeeded | None:
        """Write files (None deletes), and reload: `_` stands for `/`, `__init__` for itself."""
        return self.edit({_path(name): text for name, text in files.items()})

    def edit(self, files: dict[str, str | None]) -> Reloaded | RestartNeeded | None:
        for name, text in files.items():
            file = self.app.root / name
            if text is None:
                file.unlink()
            else:
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(dedent(text), encoding="utf-8")
        return self.reloader.reload(files)

    def get(self, target: str = "/v1/x") -> Any:
        answer = self._ask(self.app, "GET", target)
        return answer.json() if answer.status == 200 else answer.status

    def answer(self, target: str = "/v1/x") -> Answer:
        return self._ask(self.app, "GET", target)


def _path(name: str) -> str:
    return f"{name.replace('__init__', '%').replace('_', '/').replace('%', '__init__')}.py"


@pytest.fixture
def live(project: Project, ask: Ask) -> Callable[..., Live]:
    def make(files: dict[str, str]) -> Live:
        return Live(project(files, dev=True), ask)

    return make


def header(answer: Answer, name: str) -> str | None:
    values = answer.fields(name)
    return values[0] if values else None


def handler(expression: str, *lines: str) -> str:
    return "\n".join([*lines, f"def handler():\n    return [{expression}]\n"])


X = "Api/v1/X/Get.py"
Y = "Api/v1/Y/Get.py"


def test_a_changed_handler_serves_and_the_others_stay_the_same_objects(
    live: Callable[..., Live],
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
    live: Callable[..., Live],
) -> None:
    app = live({X: handler("0", "from Services.n import n"), "Services/n.py": "n = 0\n"})
    for number in range(1, 6):
        file = app.app.root / X
        file.write_text(handler(f"{number}"))
        os.utime(file, (1_700_000_000, 1_700_000_000))
        app.reloader.reload([X])
        assert app.get() == [number]


def test_the_next_start_does_not_run_the_bytecode_of_a_former_save(
    live: Callable[..., Live], ask: Ask, write: Write
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


CHAIN = {
    X: handler("a.value()", "from Services import a"),
    Y: handler("1"),
    "Services/__init__.py": "",
    "Services/a.py": "from Services.b import n\ndef value(): return n\n",
    "Services/b.py": "n = 1\n",
    "Services/c.py": "n = 1\n",
}


def test_what_imports_a_changed_service_follows_through_others(live: Callable[..., Live]) -> None:
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
def test_every_way_to_import_a_service_is_followed(live: Callable[..., Live], line: str) -> None:
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


def test_local_services_middleware_and_models_reload_too(live: Callable[..., Live]) -> None:
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


def test_modules_in_a_circle_are_all_new(live: Callable[..., Live]) -> None:
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
    live: Callable[..., Live],
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
    live: Callable[..., Live],
) -> None:
    app = live({X: handler("n", "try:", "    from . import n", "except ImportError:", "    n = 0")})
    assert app.get() == [0]
    app.edit({"Api/v1/X/__init__.py": "n = 1\n"})
    assert app.get() == [1]
    app.edit({"Api/v1/X/__init__.py": None})
    assert app.get() == [0]


def test_new_moved_and_deleted_files_change_the_routes(live: Callable[..., Live]) -> None:
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


def test_a_file_that_nothing_imports_changes_nothing(live: Callable[..., Live]) -> None:
    app = live({X: handler("1"), "Tests/test_x.py": ""})
    site = app.app.site
    assert app.edit({"Tests/test_x.py": "n = 1\n", "notes.py": "n = 1\n"}) is None
    assert app.app.site.table is not site.table or app.app.site is site
    assert app.get() == [1]


def test_a_new_module_at_the_root_can_be_imported(live: Callable[..., Live]) -> None:
    app = live({X: handler("1")})
    app.edit({"own_words.py": "n = 5\n", X: handler("n", "from own_words import n")})
    assert app.get() == [5]


# -- what fails ------------------------------------------------------------------------------------

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
    live: Callable[..., Live], lines: Lines, text: str
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
    live: Callable[..., Live],
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
    live: Callable[..., Live], lines: Lines
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
    live: Callable[..., Live],
) -> None:
    app = live(CHAIN)
    app.edit({"Services/b.py": None})
    assert app.get() == [1]
    assert app.app.report.broken[0].cause == "Services/a.py"
    app.edit({"Services/b.py": "n = 3\n"})
    assert app.get() == [3]
    assert app.app.report.broken == ()


def test_a_service_that_is_imported_in_a_function_keeps_its_last_good_version_too(
    live: Callable[..., Live],
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
    live: Callable[..., Live],
) -> None:
    app = live({X: handler("n", "from Services.late import n"), "Services/__init__.py": ""})
    assert app.get() == 500
    app.edit({"Services/late.py": "n = 1\n"})
    assert app.get() == [1]


@pytest.mark.parametrize("file", ["Middleware/__init__.py", "hooks.py", "providers.py"])
def test_a_boot_file_that_fails_keeps_what_it_said(live: Callable[..., Live], file: str) -> None:
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


def test_the_header_carries_no_line_break_and_only_ascii(live: Callable[..., Live]) -> None:
    app = live({X: handler("1")})
    app.edit({X: "raise ValueError('ünö\\r\\nX-Evil: 1')\n"})
    told = header(app.answer(), "x-treefold-broken")
    assert told == f"{X}: ValueError: \\xfcn\\xf6 X-Evil: 1"


def test_production_tells_nothing(project: Project, ask: Ask) -> None:
    app = project({X: "1 / 0\n"})
    assert header(ask(app, "GET", "/v1/x"), "x-treefold-broken") is None
    assert app.site.good == {}


# -- what goes on on the old code ------------------------------------------------------------------


def test_a_request_in_flight_ends_on_the_code_that_it_began_on(
    live: Callable[..., Live], exchange: type[Exchange]
) -> None:
    source = """
        import asyncio
        from Services import words
        gate, reached, waiting, n = asyncio.Event(), asyncio.Event(), [], {n}
        async def handler(request):
            before = words.n
            waiting.append(1)
            if len(waiting) == 300:
                reached.set()
            await gate.wait()
            return [before, words.n, n]
    """
    app = live({X: source.format(n=1), "Services/words.py": "n = 1\n", "Services/__init__.py": ""})
    old = sys.modules["Api.v1.X.Get"]

    async def main() -> tuple[list[Any], Any]:
        waiting = [asyncio.ensure_future(exchange("GET", "/v1/x").run(app.app)) for _ in range(300)]
        await old.reached.wait()
        for number in range(2, 5):
            app.edit({X: source.format(n=number), "Services/words.py": f"n = {number}\n"})
        sys.modules["Api.v1.X.Get"].gate.set()
        fresh = await exchange("GET", "/v1/x").run(app.app)
        old.gate.set()
        return [answer.json() for answer in await asyncio.gather(*waiting)], fresh.json()

    stale, fresh = asyncio.run(main())
    assert stale == [[1, 1, 1]] * 300
    assert fresh == [4, 4, 4]


def test_an_open_socket_goes_on_on_the_code_that_it_began_on(
    live: Callable[..., Live], socket: Any
) -> None:
    source = """
        async def handler(websocket):
            await websocket.accept()
            async for message in websocket.iter_text():
                await websocket.send_text(f"{{message}} {n}")
    """
    file = "Api/v1/X/Socket.py"
    app = live({file: dedent(source).format(n=1)})

    async def main() -> tuple[Any, Any]:
        old = socket("/v1/x", messages=["a"], stays=True)
        running = asyncio.ensure_future(old.run(app.app))
        await old.until("send")
        app.edit({file: dedent(source).format(n=2)})
        old.say("b")
        await old.until("send", 2)
        app.edit({file: None})
        old.say("c")
        await old.until("send", 3)
        old.leave()
        await running
        return old.texts, app.app.site.table.routes

    texts, routes = asyncio.run(main())
    assert texts == ["a 1", "b 1", "c 1"]
    assert routes == ()


def test_threads_on_old_code_find_what_they_use_while_modules_change_places(
    live: Callable[..., Live],
) -> None:
    files = {
        X: handler("Services.mail.n", "import Services.mail"),
        "Services/__init__.py": "",
        "Services/mail.py": "from Services import post\nn = 1\n",
        "Services/post.py": "from Services import mail\n",
    }
    app = live(files)
    old = sys.modules["Api.v1.X.Get"].handler
    ended, wrong = threading.Event(), list[BaseException]()

    def run() -> None:
        while not ended.is_set():
            try:
                assert old()[0] in range(1, 25)
            except BaseException as error:
                wrong.append(error)

    threads = [threading.Thread(target=run) for _ in range(2)]
    for thread in threads:
        thread.start()
    for n in range(2, 25):
        app.edit({"Services/mail.py": files["Services/mail.py"].replace("1", str(n))})
    ended.set()
    for thread in threads:
        thread.join()

    assert wrong == []
    assert app.get() == [24]


def test_an_import_in_another_thread_waits_for_the_reload(live: Callable[..., Live]) -> None:
    app = live(
        {
            X: "def handler():\n    from Services.mail import n\n    return [n]\n",
            "Services/__init__.py": "",
            "Services/mail.py": "n = 1\n",
            Y: handler("1", "import Services.mail"),
        }
    )
    old = sys.modules["Api.v1.X.Get"].handler
    seen: list[Any] = []
    thread = threading.Thread(target=lambda: seen.append(old()))
    sys.modules["treefold_thread_of_the_test"] = thread  # type: ignore[assignment]
    try:
        app.edit(
            {
                "Services/mail.py": "import sys\n"
                "sys.modules.pop('treefold_thread_of_the_test').start()\n1 / 0\n"
            }
        )
    finally:
        sys.modules.pop("treefold_thread_of_the_test", None)
    thread.join(10)

    assert seen == [[1]]


def test_a_thousand_reloads_leave_nothing_behind(live: Callable[..., Live]) -> None:
    app = live(
        {
            X: handler("words.n", "from Services import words"),
            "Services/__init__.py": "",
            "Services/words.py": "class Word: ...\nn = 0\n",
            "providers.py": "from Services.words import Word\nproviders = {Word: Word}\n",
        }
    )
    get_logger().setLevel("CRITICAL")  # pytest would keep the traceback of every failure
    left: list[weakref.ref[Any]] = []
    sizes: list[int] = []
    for number in range(1, 1001):
        if number % 5 == 0:
            left.append(weakref.ref(sys.modules["Services.words"].Word))
            left.append(weakref.ref(sys.modules["Api.v1.X.Get"].handler))
            left.append(weakref.ref(app.app.site.plans[app.app.table.routes[0]].run))
        text = "n = \n" if number % 10 == 0 else f"class Word: ...\nn = {number}\n"
        app.edit({"Services/words.py": text})
        if number in (500, 1000):
            gc.collect()
            sizes.append(len(gc.get_objects()))
    app.edit({"Services/words.py": "class Word: ...\nn = -1\n"})
    assert app.get() == [-1]
    gc.collect()

    assert [ref for ref in left if ref() is not None] == []
    assert sizes[1] - sizes[0] < 1000


# -- providers, hooks, extensions ------------------------------------------------------------------

VALUES = {
    X: "from Services.db import Db\nasync def handler(db: Db):\n    return [db.n, db.open]\n",
    Y: "async def handler(clock):\n    return [id(clock)]\n",
    "Services/__init__.py": "",
    "Services/db.py": """
        class Db:
            n, open = 1, True
        async def connect():
            db = Db()
            yield db
            db.open = False
    """,
    "Services/clock.py": "class Clock: ...\n",
    "providers.py": """
        from Services.clock import Clock
        from Services.db import Db, connect
        from treefold_http import Provider
        providers = {Db: Provider(connect, "app"), "clock": Provider(Clock, "app")}
    """,
}


def test_a_value_of_the_application_is_made_anew_only_where_its_factory_is_new(
    live: Callable[..., Live], exchange: type[Exchange]
) -> None:
    app = live(VALUES)

    async def get(target: str) -> Any:
        return (await exchange("GET", target).run(app.app)).json()

    async def main() -> None:
        await app.app.lifespan.start()
        assert await get("/v1/x") == [1, True]
        clock = await get("/v1/y")
        (db,) = [v for v in app.app.providers.values.values() if type(v).__name__ == "Db"]
        text = (app.app.root / "Services/db.py").read_text().replace("1, True", "2, True")
        outcome = app.edit({"Services/db.py": text})
        assert isinstance(outcome, Reloaded)
        assert await get("/v1/x") == [2, True]
        assert await get("/v1/y") == clock
        assert db.open
        await app.app.providers.close(outcome.replaced)
        assert not db.open
        assert await get("/v1/x") == [2, True]
        (second,) = [v for v in app.app.providers.values.values() if type(v).__name__ == "Db"]
        await app.app.lifespan.stop()
        assert not second.open

    asyncio.run(main())


HOOKS = {
    X: handler("1"),
    "Services/db.py": "def start(): ...\ndef stop(): ...\n",
    "Services/other.py": "n = 1\n",
    "hooks.py": "from Services import db, other\n"
    "on_startup = [db.start]\non_shutdown = [db.stop]\n",
}


def test_hooks_are_exchanged_unless_a_startup_hook_is_another_one(
    live: Callable[..., Live],
) -> None:
    app = live(HOOKS)
    old = app.app.site
    assert isinstance(app.edit({"Services/other.py": "n = 2\n"}), Reloaded)
    assert app.app.site.on_startup[0] is old.on_startup[0]
    text = "from Services import db\non_startup = [db.start]\non_shutdown = []\n"
    assert isinstance(app.edit({"hooks.py": text}), Reloaded)
    assert app.app.site.on_shutdown == []

    site, module = app.app.site, sys.modules["Services.db"]
    assert app.edit({"Services/db.py": "def start(): ...\n"}) == RestartNeeded(
        "a startup hook changed"
    )
    assert app.app.site is site
    assert sys.modules["Services.db"] is module
    assert app.get() == [1]


def test_a_startup_hook_that_does_not_import_restarts_nothing(live: Callable[..., Live]) -> None:
    app = live(HOOKS)
    outcome = app.edit({"Services/db.py": "def start(:\n"})
    assert isinstance(outcome, Reloaded)
    assert [broken.cause for broken in outcome.broken] == ["Services/db.py"]


def test_extensions_that_are_new_need_another_process(live: Callable[..., Live]) -> None:
    app = live(
        {
            X: handler("1"),
            "extensions.py": """
                class E:
                    count = 0
                    def setup(self, app): E.count += 1
                extensions = [E()]
            """,
        }
    )
    extension = app.app.site.extensions[0]
    assert isinstance(app.edit({X: handler("2")}), Reloaded)
    assert app.app.site.extensions[0] is extension
    assert extension.count == 1
    text = (app.app.root / "extensions.py").read_text()
    outcome = app.edit({"extensions.py": text + "\n"})
    assert outcome == RestartNeeded("extensions.py, or what it imports, changed")


def test_an_extension_is_told_what_goes_and_again_when_it_stays(live: Callable[..., Live]) -> None:
    app = live(
        {
            **HOOKS,
            "extensions.py": """
                class E:
                    def __init__(self): self.told = []
                    def reload(self, modules):
                        self.told.append(sorted(modules))
                        return lambda back: self.told.append(("back", sorted(back)))
                extensions = [E()]
            """,
        }
    )
    told: list[Any] = app.app.site.extensions[0].told
    app.edit({X: handler("2")})
    assert told == [["Api.v1.X.Get"]]
    app.edit({"Services/db.py": HOOKS["Services/db.py"] + "\n"})
    assert told[1:] == [["Services.db", "hooks"], ("back", ["Services.db", "hooks"])]
    app.edit({"Services/other.py": "n = \n"})
    assert told[3:] == [["Services.other", "hooks"], ("back", ["Services.other", "hooks"])]


def test_init_runs_for_what_is_new_and_for_nothing_else(live: Callable[..., Live]) -> None:
    init = "import Services.count as c\ndef init(): c.n += 1\ndef handler(): return [c.n]\n"
    app = live({X: init, Y: init, "Services/count.py": "n = 0\n"})
    assert app.get() == [2]
    app.edit({X: init + "#\n"})
    assert app.get("/v1/y") == [3]


# -- settings, loops, interruptions ----------------------------------------------------------------


@pytest.mark.parametrize("name", [".env", ".env.local"])
def test_an_environment_file_needs_another_process(live: Callable[..., Live], name: str) -> None:
    app = live({X: handler("1")})
    assert app.edit({name: "A=1\n"}) == RestartNeeded(f"{name} changed")


def test_a_settings_file_needs_another_process_where_it_sets_something_else(
    live: Callable[..., Live],
) -> None:
    app = live({X: handler("1"), "treefold.toml": "grace = 5\n"})
    assert app.edit({"treefold.toml": "grace = 5.0 # seconds\n"}) is None
    assert app.edit({"pyproject.toml": "[tool.ruff]\nline-length = 90\n"}) is None
    expected = RestartNeeded("the settings in treefold.toml changed")
    assert app.edit({"treefold.toml": "grace = 6\n"}) == expected
    assert app.edit({"treefold.toml": None}) == expected


def test_a_settings_file_that_is_wrong_is_said_and_its_mending_takes_up_the_rest(
    live: Callable[..., Live],
) -> None:
    app = live({X: handler("1"), "treefold.toml": "grace = 5\n"})
    with pytest.raises(SettingsError):
        app.edit({"treefold.toml": "grace = \n", X: handler("2")})
    assert app.get() == [1]
    assert isinstance(app.edit({"treefold.toml": "grace = 5\n"}), Reloaded)
    assert app.get() == [2]


def test_what_is_imported_sees_no_running_loop_as_at_boot(live: Callable[..., Live]) -> None:
    source = """
        import asyncio
        async def number(): return {n}
        n = asyncio.run(number())
        def handler(): return [n]
    """
    app = live({X: source.format(n=1)})

    async def main() -> None:
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def reload() -> None:
            app.edit({X: source.format(n=2)})
            done.set()

        loop.call_soon(reload)
        await done.wait()
        assert asyncio.get_running_loop() is loop

    asyncio.run(main())
    assert app.get() == [2]


def test_an_interruption_leaves_everything_as_it_was(live: Callable[..., Live]) -> None:
    app = live({**CHAIN, "providers.py": "from Services import b\nproviders = {'n': lambda: 1}\n"})
    before = {name: m for name, m in sys.modules.items() if name.startswith(("Api", "Services"))}
    declared = dict(app.app.providers.declared)
    with pytest.raises(KeyboardInterrupt):
        app.edit({"Services/b.py": "n = 2\n", Y: "import Services.c\nraise KeyboardInterrupt\n"})

    assert before == {n: m for n, m in sys.modules.items() if n.startswith(("Api", "Services"))}
    assert app.app.providers.declared == declared
    assert (app.get(), app.get("/v1/y")) == ([1], [1])
    app.edit({Y: handler("2")})  # what was interrupted is taken up now
    assert (app.get(), app.get("/v1/y")) == ([2], [2])


def test_another_root_in_the_process_is_left_alone(live: Callable[..., Live], write: Write) -> None:
    app = live(CHAIN)
    other = ModuleSpace.of(write({"Services/b.py": "n = 'other'\n"}, root="other"))
    module = other.load("Services.b")
    app.edit({"Services/b.py": "n = 2\n"})

    assert app.get() == [2]
    assert other.load("Services.b") is module
