"""Startup hooks that change: they run beside what serves, which ends after its last request."""

from __future__ import annotations

import asyncio
import gc
import socket as sockets
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import pytest
from http_reloading import Live, MakeLive, X, Y

from treefold_http import Settings
from treefold_http._reload import Reloaded, RestartNeeded
from treefold_http._starting import Starting
from treefold_logging import get_logger

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Outcome = Reloaded | RestartNeeded | Starting | None

Z = "Api/v1/Z/Get.py"

DB = """
    class Pool:
        open = True

    pool = None

    async def start(app):
        global pool
        pool = Pool()
        app.state.journal.append("start {n}")

    async def stop(app):
        pool.open = False
        app.state.journal.append("stop {n}")

    def look():
        return [{n}, pool is not None and pool.open]
"""
FILES = {
    X: "import Services.db\ndef handler():\n    return Services.db.look()\n",
    Y: "def handler():\n    from Services import db\n    return db.look()\n",
    Z: "def handler():\n    return [0]\n",
    "Services/__init__.py": "",
    "Services/db.py": DB.format(n=1),
    "hooks.py": "from Services import db\non_startup = [db.start]\non_shutdown = [db.stop]\n",
}


class Served:
    """A started application, and what its hooks noted."""

    def __init__(self, app: Live, exchange: type[Exchange]) -> None:
        self.live, self.app, self._exchange = app, app.app, exchange
        self.journal: list[str] = []
        self.app.state.journal = self.journal

    async def answer(self, target: str = "/v1/x") -> Answer:
        return await self._exchange("GET", target).run(self.app)

    async def get(self, target: str = "/v1/x") -> Any:
        answer = await self.answer(target)
        return answer.json() if answer.status == 200 else answer.status

    async def save(self, files: Mapping[str, str | None]) -> Outcome:
        """Write files and take them up, with every hook that runs for it."""
        return await self.settle(self.live.edit(files))

    async def settle(self, outcome: Outcome) -> Outcome:
        while isinstance(outcome, Starting):
            await outcome.begin()
            outcome = self.live.reloader.finish(outcome)
        return outcome

    async def end(self, outcome: Outcome) -> list[str]:
        """End the life that came before, as when its last request is over."""
        assert isinstance(outcome, Reloaded)
        assert outcome.former is not None
        return await self.app.lifespan.end_life(outcome.former)


Serve = Callable[[Mapping[str, str], Callable[[Served], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def serve(live: MakeLive, exchange: type[Exchange]) -> Serve:
    def run(
        files: Mapping[str, str], scenario: Callable[[Served], Coroutine[Any, Any, None]]
    ) -> None:
        served = Served(live(dict(files)), exchange)

        async def main() -> None:
            async with asyncio.timeout(20):
                await served.app.lifespan.start()
                try:
                    await scenario(served)
                finally:
                    await served.app.lifespan.stop()

        asyncio.run(main())

    return run


def test_what_serves_goes_on_until_the_new_startup_hooks_have_run(serve: Serve) -> None:
    waits = DB.format(n=2).replace("pool = Pool()", "await app.state.gate.wait(); pool = Pool()")

    async def scenario(served: Served) -> None:
        served.app.state.gate = asyncio.Event()
        starting = served.live.edit({"Services/db.py": waits})
        assert isinstance(starting, Starting)
        running = starting.begin()
        for target in ("/v1/x", "/v1/y", "/v1/x"):  # by attribute, and imported at the call
            assert await served.get(target) == [1, True]
        served.app.state.gate.set()
        await running
        assert await served.get() == [1, True]
        outcome = served.live.reloader.finish(starting)
        assert isinstance(outcome, Reloaded)
        assert outcome.started == ("start",)
        assert (await served.get(), await served.get("/v1/y")) == ([2, True], [2, True])
        assert served.journal == ["start 1", "start 2"]
        assert await served.end(outcome) == ["stop"]
        assert await served.end(outcome) == []
        assert served.journal == ["start 1", "start 2", "stop 1"]
        assert await served.get() == [2, True]

    serve(FILES, scenario)


WRAPPED = """
    from Services import db
    async def begin(app):
        await db.start(app)
    async def end(app):
        await db.stop(app)
    on_startup = [begin]
    on_shutdown = [end]
"""
LAZY = """
    async def begin(app):
        import Services.db
        from Services.db import start
        await start(app)
        assert Services.db.pool.open
    async def end(app):
        import importlib
        await importlib.import_module("Services.db").stop(app)
    on_startup = [begin]
    on_shutdown = [end]
"""
STATE = """
    from Services.db import Pool, look
    import Services.db
    async def begin(app):
        app.state.pool = Services.db.pool = Pool()
    async def end(app):
        app.state.pool.open = False
    on_startup = [begin]
    on_shutdown = [end]
"""
IN_A_THREAD = """
    import Services.db
    def begin(app):
        from Services.db import Pool
        Services.db.pool = Pool()
    def end():
        from Services import db
        db.pool.open = False
    on_startup = [begin]
    on_shutdown = [end]
"""


@pytest.mark.parametrize("hooks", [WRAPPED, LAZY, STATE, IN_A_THREAD])
@pytest.mark.parametrize("files", [{"hooks.py"}, {"Services/db.py"}, {"hooks.py", X}])
def test_what_the_former_hooks_end_is_never_what_the_new_ones_began(
    serve: Serve, hooks: str, files: set[str]
) -> None:
    """Although `Services/db.py`, which both use, may not have changed at all."""

    async def scenario(served: Served) -> None:
        texts = {**FILES, "hooks.py": hooks}
        for _ in range(3):
            outcome = await served.save({name: f"{texts[name]}\n" for name in files})
            assert await served.get() == [1, True]
            await served.end(outcome)
            assert (await served.get(), await served.get("/v1/y")) == ([1, True], [1, True])

    serve({**FILES, "hooks.py": hooks}, scenario)


def test_what_hooks_have_nothing_to_do_with_runs_none(serve: Serve) -> None:
    async def scenario(served: Served) -> None:
        outcome = await served.save({Z: "def handler():\n    return [5]\n"})
        assert isinstance(outcome, Reloaded)
        assert (outcome.started, outcome.former) == ((), None)
        text = f"{FILES['hooks.py']}# nothing new to run\n"
        pinned = await served.save({"hooks.py": text.replace("db.stop", "print")})
        assert isinstance(pinned, Reloaded)
        assert served.journal == ["start 1", "start 1"]

    serve(FILES, scenario)


@pytest.mark.parametrize("error", ["OSError('no database')", "SystemExit(3)", "BaseException('x')"])
def test_a_startup_hook_that_fails_keeps_all_that_hangs_on_it_and_says_so(
    serve: Serve, lines: Lines, error: str
) -> None:
    failing = DB.format(n=2).replace("pool = Pool()", f"raise {error}")

    async def scenario(served: Served) -> None:
        for number in (1, 2):
            outcome = await served.save({"Services/db.py": failing})
            assert isinstance(outcome, Reloaded)
            assert [(b.file, b.cause, b.kept) for b in outcome.broken] == [
                ("hooks.py", "Services/db.py", True)
            ]
            assert await served.get() == [1, True]
            (told,) = (await served.answer("/v1/z")).fields("x-treefold-broken")
            assert told.startswith("Services/db.py: startup hook start failed: ")
            said = [text for text in lines.texts() if text.startswith("startup hook start failed")]
            assert len(said) == number
            # What the hooks have nothing to do with is taken up, and they are left alone.
            await served.save({Z: f"def handler():\n    return [{number}]\n"})
            assert await served.get("/v1/z") == [number]
            assert served.app.report.broken == outcome.broken
            assert len(said) == number
            await served.save({"Services/db.py": DB.format(n=1)})
            assert served.app.report.broken == ()
            assert await served.get() == [1, True]
        assert served.journal == ["start 1"] * 3

    serve(FILES, scenario)


def test_a_file_that_mends_a_failing_hook_is_known_although_nothing_imported_it(
    serve: Serve,
) -> None:
    hooks = """
        from Services import db
        async def begin(app):
            from Services.extra import ready
            await db.start(app)
        on_startup = [begin]
    """

    async def scenario(served: Served) -> None:
        outcome = await served.save({"hooks.py": hooks})
        assert isinstance(outcome, Reloaded)
        assert [one.cause for one in outcome.broken] == ["hooks.py"]
        outcome = await served.save({"Services/extra.py": "ready = True\n"})
        assert isinstance(outcome, Reloaded)
        assert (outcome.broken, outcome.started) == ((), ("begin",))

    serve(FILES, scenario)


def test_what_had_started_before_a_hook_that_fails_is_undone(serve: Serve) -> None:
    hooks = """
        from Services import db
        def fails():
            raise ValueError
        on_startup = [db.start, fails]
        on_shutdown = [db.stop]
    """

    async def scenario(served: Served) -> None:
        await served.save({"Services/db.py": DB.format(n=2), "hooks.py": hooks})
        assert served.journal == ["start 1", "start 2", "stop 2"]
        assert await served.get() == [1, True]

    serve(FILES, scenario)


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("hooks.py", "from Services import db\n1 / 0\n"),
        ("Services/db.py", "async def start(:\n"),
        ("hooks.py", "on_startup = [5]\n"),
    ],
)
def test_hooks_that_do_not_load_leave_everything_they_import_as_it_is(
    serve: Serve, file: str, text: str
) -> None:
    async def scenario(served: Served) -> None:
        outcome = await served.save({file: text})
        assert isinstance(outcome, Reloaded)
        assert {(one.cause, one.kept) for one in outcome.broken} == {(file, True)}
        assert (outcome.started, await served.get()) == ((), [1, True])
        if file == "hooks.py":  # it is not to serve without its start
            await served.save({"Services/db.py": DB.format(n=3)})
            assert await served.get() == [1, True]
        await served.save({Z: "def handler():\n    return [7]\n"})
        assert await served.get("/v1/z") == [7]
        outcome = await served.save({file: FILES[file]})
        assert isinstance(outcome, Reloaded)
        assert outcome.broken == ()
        assert outcome.started == ("start",)
        await served.end(outcome)
        assert (await served.get())[1] is True

    serve(FILES, scenario)


def test_a_handler_that_cannot_follow_keeps_what_it_uses_started(serve: Serve) -> None:
    without = DB.format(n=2).replace("def look", "def looks")

    async def scenario(served: Served) -> None:
        strict = "from Services.db import look\ndef handler():\n    return look()\n"
        first = await served.save({X: strict})
        assert isinstance(first, Reloaded)
        outcome = await served.save({"Services/db.py": without})
        assert isinstance(outcome, Reloaded)
        assert [one.cause for one in outcome.broken] == [X]
        assert (outcome.former, await served.get()) == (None, [1, True])
        fit = "from Services.db import looks\ndef handler():\n    return looks()\n"
        outcome = await served.save({X: fit})
        assert isinstance(outcome, Reloaded)
        assert outcome.broken == ()
        await served.end(outcome)
        assert await served.get() == [2, True]

    serve(FILES, scenario)


@pytest.mark.parametrize("waits", ["await asyncio.Event().wait()", "import time; time.sleep(0.3)"])
def test_a_startup_hook_that_never_returns_is_given_up(
    live: MakeLive, exchange: type[Exchange], waits: str
) -> None:
    app = live(FILES)
    vars(app.app)["settings"] = Settings(startup_timeout=0.05)
    served = Served(app, exchange)
    hangs = f"import asyncio\ndef start():\n    {waits}\non_startup = [start]\n"
    if "await" in waits:
        hangs = hangs.replace("def start", "async def start")

    async def main() -> None:
        async with asyncio.timeout(20):
            await served.app.lifespan.start()
            outcome = await served.save({"hooks.py": hangs})
            assert isinstance(outcome, Reloaded)
            assert outcome.broken[0].error == "startup hook start failed: TimeoutError: "[:-1]
            assert await served.get() == [1, True]
            await served.app.lifespan.stop()

    asyncio.run(main())
    assert served.journal == ["start 1", "stop 1"]


SLOW = """
    from Services import db
    async def slow(app):
        app.state.journal.append("slow {n}")
        app.state.reached.set()
        await app.state.gate.wait()
    on_startup = [db.start, slow]
    on_shutdown = [db.stop]
"""


def test_a_save_while_hooks_run_undoes_them_and_starts_on_the_newest(serve: Serve) -> None:
    async def scenario(served: Served) -> None:
        served.app.state.gate, served.app.state.reached = asyncio.Event(), asyncio.Event()
        first = served.live.edit({"hooks.py": SLOW.format(n=1)})
        assert isinstance(first, Starting)
        first.begin()
        await served.app.state.reached.wait()
        await first.abandon()
        assert served.journal == ["start 1", "start 1", "slow 1", "stop 1"]
        assert await served.get() == [1, True]
        # A handler is not made to wait for hooks that it has nothing to do with.
        outcome = served.live.edit({Z: "def handler():\n    return [8]\n"})
        assert isinstance(outcome, Reloaded)
        assert await served.get("/v1/z") == [8]
        assert served.live.reloader.is_behind
        second = served.live.edit({})
        assert isinstance(second, Starting)
        second.begin()
        await second.abandon()
        third = served.live.edit({"hooks.py": SLOW.format(n=3)})
        assert isinstance(third, Starting)
        served.app.state.gate.set()
        outcome = await served.settle(third)
        assert served.live.reloader.finish(second) is None
        await served.end(outcome)
        assert await served.get() == [1, True]
        assert served.journal[-3:] == ["start 1", "slow 3", "stop 1"]

    serve(FILES, scenario)


def test_a_plain_hook_that_is_abandoned_ends_before_the_next_begins(serve: Serve) -> None:
    hooks = """
        def start(app):
            app.state.begun.set()
            app.state.gate.wait()
            app.state.journal.append("begun {n}")
        def stop(app):
            app.state.journal.append("ended {n}")
        on_startup, on_shutdown = [start], [stop]
    """

    async def scenario(served: Served) -> None:
        served.app.state.begun, served.app.state.gate = threading.Event(), threading.Event()
        first = served.live.edit({"hooks.py": hooks.replace("{n}", "1")})
        assert isinstance(first, Starting)
        first.begin()
        assert await asyncio.to_thread(served.app.state.begun.wait, 10)
        giving_up = asyncio.ensure_future(first.abandon())
        await asyncio.sleep(0)
        served.app.state.gate.set()
        await giving_up
        assert served.journal == ["start 1", "begun 1", "ended 1"]
        await served.save({"hooks.py": hooks.replace("{n}", "2")})
        assert served.journal[3:] == ["begun 2"]

    serve(FILES, scenario)


def test_a_hook_that_wants_the_port_of_the_running_one_needs_another_process(
    serve: Serve,
) -> None:
    with sockets.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hooks = f"""
        import socket
        def start(app):
            app.state.listener = socket.create_server(("127.0.0.1", {port}))
        def stop(app):
            app.state.listener.close()
        on_startup, on_shutdown = [start], [stop]
    """

    async def scenario(served: Served) -> None:
        outcome = await served.save({"hooks.py": hooks.replace("socket\n", "socket  # again\n")})
        assert isinstance(outcome, RestartNeeded)
        assert outcome.reason.startswith("startup hook start failed: OSError: ")
        assert await served.get() == [1, False]

    serve({**FILES, "hooks.py": hooks}, scenario)


def test_hooks_that_say_so_start_over_in_another_process(serve: Serve) -> None:
    text = f"restart_on_change = True\n{FILES['hooks.py']}"

    async def scenario(served: Served) -> None:
        outcome = await served.save({"Services/db.py": DB.format(n=2)})
        assert outcome == RestartNeeded(
            "a startup hook changed, and hooks.py says restart_on_change"
        )
        assert await served.get() == [1, True]

    serve({**FILES, "hooks.py": text}, scenario)


EXTENSIONS = "from Services.db import Pool\nextensions = [Pool()]\n"


def test_hooks_start_over_beside_extensions_that_use_nothing_they_end(serve: Serve) -> None:
    hooks = "from Services import db\ndef more(): ...\non_startup = [db.start]\n"

    async def scenario(served: Served) -> None:
        extension = served.app.site.extensions[0]
        outcome = await served.save({"hooks.py": hooks.replace("[db.start]", "[db.start, more]")})
        assert isinstance(outcome, Reloaded)
        assert outcome.started == ("more",)
        assert served.app.site.extensions[0] is extension
        ends = hooks.replace("[db.start]", "[more]\nasync def stop(app): await db.stop(app)\n")
        await served.save({"hooks.py": f"{ends}on_shutdown = [stop]\n"})
        outcome = await served.save({"hooks.py": f"{ends}on_shutdown = [stop]\n#\n"})
        assert outcome == RestartNeeded(
            "hooks.py changed, and extensions.py uses Services/db.py as well"
        )

    serve({**FILES, "hooks.py": hooks, "extensions.py": EXTENSIONS}, scenario)


def test_what_hooks_set_up_in_the_application_is_replaced(serve: Serve) -> None:
    hooks = """
        from pathlib import Path
        from treefold_http import Provider, StaticFiles
        from Services.db import Pool
        async def start(app):
            app.provide("number", lambda: {n})
            app.mount("/web", StaticFiles("web{n}"))
            async with app.scope() as scope:
                await scope.call(check)
            app.state.number = {n}
        def check(pool: Pool, word):
            assert word == {n}, word
        on_startup = [start]
    """
    files = {
        **FILES,
        "web1/a.txt": "1",
        "web2/a.txt": "2",
        "hooks.py": hooks.replace("{n}", "1"),
        "providers.py": "from Services.db import Pool\n"
        "providers = {Pool: Pool, 'word': lambda: 1}\n",
        Z: "def handler(request, number: int):\n    return [number, request.state.number]\n",
    }

    async def scenario(served: Served) -> None:
        served.app.lifespan._shared = shared = {"number": 1}
        assert (await served.answer("/web/a.txt")).body == b"1"
        assert await served.save({"hooks.py": "def start(): 1 / 0\non_startup = [start]\n"})
        assert (await served.answer("/web/a.txt")).body == b"1"
        changed = {"hooks.py": hooks.replace("{n}", "2"), "providers.py": files["providers.py"]}
        changed["providers.py"] = changed["providers.py"].replace("lambda: 1", "lambda: 2")
        outcome = await served.save(changed)
        assert isinstance(outcome, Reloaded)
        assert outcome.broken == ()
        assert (await served.answer("/web/a.txt")).body == b"2"
        assert shared["number"] == 2
        plan = served.app.site.plans[next(iter(served.app.table.routes))]
        assert plan is not None

    serve(files, scenario)


def test_what_was_set_while_hooks_ran_is_kept(serve: Serve) -> None:
    async def scenario(served: Served) -> None:
        served.app.state.gate = asyncio.Event()
        served.app.state.hits, served.app.state.gone = 1, 1
        served.app.state.reached = asyncio.Event()
        starting = served.live.edit({"hooks.py": SLOW.format(n=1)})
        assert isinstance(starting, Starting)
        running = starting.begin()
        served.app.state.hits = 2
        served.app.state.new = 3
        del served.app.state.gone
        served.app.state.gate.set()
        await running
        served.live.reloader.finish(starting)
        state = vars(served.app.state)
        assert (state["hits"], state["new"], "gone" in state) == (2, 3, False)

    serve(FILES, scenario)


def test_the_end_of_the_application_ends_every_life(serve: Serve) -> None:
    async def scenario(served: Served) -> None:
        for n in (2, 3):
            await served.save({"Services/db.py": DB.format(n=n)})
        await served.app.lifespan.stop()
        assert served.journal == ["start 1", "start 2", "start 3", "stop 1", "stop 2", "stop 3"]

    serve(FILES, scenario)


def test_lives_that_have_ended_leave_nothing_behind(serve: Serve) -> None:
    left: list[weakref.ref[Any]] = []

    async def scenario(served: Served) -> None:
        get_logger().setLevel("CRITICAL")  # pytest would keep the traceback of every failure
        for n in range(40):
            module = sys.modules["Services.db"]
            left.extend(
                map(weakref.ref, (module, module.Pool, module.start, served.app.lifespan.life))
            )
            failing = DB.format(n=n).replace("pool = Pool()", "raise ValueError")
            await served.save({"Services/db.py": failing if n % 4 == 0 else DB.format(n=n)})
            if n % 4:
                outcome = await served.save({"Services/db.py": DB.format(n=-n)})
                await served.end(outcome)
        for life in list(served.app.lifespan._former):
            await served.app.lifespan.end_life(life)
        await served.save({"Services/db.py": DB.format(n=-1)})
        for life in list(served.app.lifespan._former):
            await served.app.lifespan.end_life(life)
        for _ in range(200):  # a loop forgets cancelled timeouts when they are many
            asyncio.get_running_loop().call_later(60, print).cancel()
        await asyncio.sleep(0.01)
        gc.collect()
        alive = [n for n, ref in enumerate(left) if ref() is not None]
        assert [n for n in alive if n < len(left) - 8] == []  # this test holds the last ones itself

    serve(FILES, scenario)


def test_a_hook_that_goes_ends_what_it_started(serve: Serve) -> None:
    async def scenario(served: Served) -> None:
        outcome = await served.save({"hooks.py": None})
        assert await served.end(outcome) == ["stop"]
        assert served.journal == ["start 1", "stop 1"]
        outcome = await served.save({"hooks.py": FILES["hooks.py"]})
        assert isinstance(outcome, Reloaded)
        assert outcome.started == ("start",)
        assert await served.get() == [1, True]

    serve(FILES, scenario)


def test_hooks_do_not_run_where_the_application_has_not_started(live: MakeLive) -> None:
    app = live(FILES)
    app.app.state.journal = journal = []
    assert isinstance(app.edit({"Services/db.py": DB.format(n=2)}), Reloaded)
    assert journal == []
