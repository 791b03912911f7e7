"""What a reload keeps, starts anew, or leaves to another process."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from http_reloading import CHAIN, MakeLive, X, Y, handler

from treefold_http import SettingsError
from treefold_http._modules.modules import ModuleSpace
from treefold_http.reload import Reloaded, RestartNeeded

if TYPE_CHECKING:
    from conftest import Exchange

Write = Callable[..., Path]


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
    live: MakeLive, exchange: type[Exchange]
) -> None:
    app = live(VALUES)

    async def get(target: str) -> Any:
        return (await exchange("GET", target).run(app.app)).json()

    async def main() -> None:
        await app.app.lifespan.run_startup()
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
        await app.app.lifespan.run_shutdown()
        assert not second.open

    asyncio.run(main())


HOOKS = {
    X: handler("1"),
    "Services/db.py": "def start(): ...\ndef stop(): ...\n",
    "Services/other.py": "n = 1\n",
    "hooks.py": "from Services import db, other\n"
    "on_startup = [db.start]\non_shutdown = [db.stop]\n",
}


def test_a_startup_hook_that_does_not_import_restarts_nothing(live: MakeLive) -> None:
    app = live(HOOKS)
    outcome = app.edit({"Services/db.py": "def start(:\n"})
    assert isinstance(outcome, Reloaded)
    assert [broken.cause for broken in outcome.broken] == ["Services/db.py"]


def test_extensions_that_are_new_need_another_process(live: MakeLive) -> None:
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
    extension = app.app.project.boot_files.extensions[0]
    assert isinstance(app.edit({X: handler("2")}), Reloaded)
    assert app.app.project.boot_files.extensions[0] is extension
    assert extension.count == 1
    text = (app.app.root / "extensions.py").read_text()
    outcome = app.edit({"extensions.py": text + "\n"})
    assert outcome == RestartNeeded("extensions.py, or what it imports, changed")


def test_an_extension_is_told_what_goes_and_again_when_it_stays(live: MakeLive) -> None:
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
    told: list[Any] = app.app.project.boot_files.extensions[0].told
    app.edit({X: handler("2")})
    assert told == [["Api.v1.X.Get"]]
    app.edit({X: "def handler(:\n"})
    assert told[1:] == [["Api.v1.X.Get"], ("back", ["Api.v1.X.Get"])]
    app.edit({"extensions.py": "1 / 0\n"})
    assert told[3:5] == [["Api.v1.X.Get", "extensions"], ("back", ["Api.v1.X.Get", "extensions"])]


def test_init_runs_for_what_is_new_and_for_nothing_else(live: MakeLive) -> None:
    init = "import Services.count as c\ndef init(): c.n += 1\ndef handler(): return [c.n]\n"
    app = live({X: init, Y: init, "Services/count.py": "n = 0\n"})
    assert app.get() == [2]
    app.edit({X: init + "#\n"})
    assert app.get("/v1/y") == [3]


@pytest.mark.parametrize("name", [".env", ".env.local"])
def test_an_environment_file_needs_another_process(live: MakeLive, name: str) -> None:
    app = live({X: handler("1")})
    assert app.edit({name: "A=1\n"}) == RestartNeeded(f"{name} changed")


def test_a_settings_file_needs_another_process_where_it_sets_something_else(
    live: MakeLive,
) -> None:
    app = live({X: handler("1"), "treefold.toml": "grace = 5\n"})
    assert app.edit({"treefold.toml": "grace = 5.0 # seconds\n"}) is None
    assert app.edit({"pyproject.toml": "[tool.ruff]\nline-length = 90\n"}) is None
    expected = RestartNeeded("the settings in treefold.toml changed")
    assert app.edit({"treefold.toml": "grace = 6\n"}) == expected
    assert app.edit({"treefold.toml": None}) == expected


def test_a_settings_file_that_is_wrong_is_said_and_its_mending_takes_up_the_rest(
    live: MakeLive,
) -> None:
    app = live({X: handler("1"), "treefold.toml": "grace = 5\n"})
    with pytest.raises(SettingsError):
        app.edit({"treefold.toml": "grace = \n", X: handler("2")})
    assert app.get() == [1]
    assert isinstance(app.edit({"treefold.toml": "grace = 5\n"}), Reloaded)
    assert app.get() == [2]


def test_what_is_imported_sees_no_running_loop_as_at_boot(live: MakeLive) -> None:
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


def test_an_interruption_leaves_everything_as_it_was(live: MakeLive) -> None:
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


def test_another_root_in_the_process_is_left_alone(live: MakeLive, write: Write) -> None:
    app = live(CHAIN)
    other = ModuleSpace.get_or_create_space(write({"Services/b.py": "n = 'other'\n"}, root="other"))
    module = other.load_module("Services.b")
    app.edit({"Services/b.py": "n = 2\n"})

    assert app.get() == [2]
    assert other.load_module("Services.b") is module


SHOP = """
    from dataclasses import dataclass

    @dataclass(frozen=True)
    class Shop:
        size: int = 5

    app_settings = Shop
"""


def test_settings_of_the_project_are_read_again(live: MakeLive) -> None:
    files = {"settings.py": SHOP, X: handler("shop.size", "from settings import Shop")}
    files[X] = files[X].replace("handler()", "handler(shop: Shop)")
    app = live(files)
    assert app.get() == [5]
    app.edit({"settings.py": SHOP.replace("5", "6")})
    assert app.get() == [6]
    app.edit({"settings.py": "1 / 0\n"})
    assert app.get() == [6]
    app.edit({"settings.py": SHOP.replace("int = 5", "int")})
    assert b"Setting app.size is missing; " in app.answer().body
    (broken,) = app.app.report.broken
    assert broken.error.startswith("Setting app.size is missing; ")
    app.edit({"settings.py": SHOP})
    assert app.get() == [5]
    assert isinstance(app.edit({"treefold.toml": "[app]\nsize = 7\n"}), RestartNeeded)
