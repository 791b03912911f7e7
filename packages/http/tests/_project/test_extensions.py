"""Extensions, and what a server that is about to stop tells the application."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings
from treefold_http._serving.lifespan import watch_stop_signals

if TYPE_CHECKING:
    from conftest import Answer, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

KINDS = """
entries = []

class Extension:
    def __init__(self, name, fails=None):
        self.name, self.fails = name, fails

    def setup(self, app):
        entries.append(f"{self.name} setup")
        app.state.set_up = True

    async def startup(self):
        entries.append(f"{self.name} startup")
        if self.fails == "startup":
            raise LookupError(self.name)

    async def shutdown(self):
        entries.append(f"{self.name} shutdown")
        if self.fails == "shutdown":
            raise LookupError(self.name)

class Plain:
    def startup(self, app):
        entries.append(f"plain startup {type(app).__name__}")

class Bare: ...

def note(name):
    return lambda: entries.append(name)
"""


def extended(project: Project, extensions: str, hooks: str = "", **options: Any) -> Application:
    return project(
        {
            "Services/kinds.py": KINDS,
            "Api/v1/Get.py": "from Services.kinds import entries\ndef handler(): ...\n",
            "extensions.py": f"from Services.kinds import *\nextensions = {extensions}\n",
            "hooks.py": f"from Services.kinds import *\n{hooks}\n",
        },
        **options,
    )


def entries(app: Application) -> list[str]:
    (module,) = app.project.modules.values()
    return getattr(module, "handler").__globals__["entries"]  # noqa: B009 - a union


def live(app: Application) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await app.lifespan.run_startup()
            await app.lifespan.run_shutdown()

    asyncio.run(main())


def test_extensions_start_in_order_before_the_hooks_and_end_in_reverse(project: Project) -> None:
    app = extended(
        project,
        "[Extension('a'), Plain(), Bare(), Extension('b')]",
        "on_startup = [note('hook up')]\non_shutdown = [note('hook down')]",
    )
    live(app)

    assert app.state.set_up is True
    assert entries(app) == [
        "a setup",
        "b setup",
        "a startup",
        "plain startup Application",
        "b startup",
        "hook up",
        "hook down",
        "b shutdown",
        "a shutdown",
    ]


def test_an_extension_that_fails_to_start_undoes_those_before_it(
    project: Project, lines: Lines
) -> None:
    app = extended(
        project,
        "[Extension('a'), Extension('b', 'startup'), Extension('c')]",
        "on_startup = [note('hook up')]\non_shutdown = [note('hook down')]",
    )
    with pytest.raises(BootError, match=r"^Startup hook Extension\.startup failed: LookupError"):
        live(app)

    assert entries(app)[3:] == ["a startup", "b startup", "a shutdown"]
    assert [str(error) for error in lines.errors()] == ["b"]


def test_an_extension_that_fails_to_end_is_logged_and_the_others_end(
    project: Project, lines: Lines
) -> None:
    app = extended(project, "[Extension('a'), Extension('b', 'shutdown')]")
    live(app)

    assert entries(app)[-2:] == ["b shutdown", "a shutdown"]
    assert [text for text in lines.texts() if "hook" in text] == [
        "shutdown hook Extension.shutdown failed"
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("5", "`extensions` must be a list, got 'int'"),
        ("{}", "`extensions` must be a list, got 'dict'"),
        ("[type('E', (), {'setup': lambda self, app: 1 / 0})()]", "ZeroDivisionError"),
        ("[type('E', (), {'setup': lambda self: 1})()]", "TypeError"),
        ("[type('E', (), {'setup': lambda self, app: exit(1)})()]", "SystemExit"),
    ],
)
def test_what_cannot_be_set_up_stops_the_boot(project: Project, text: str, words: str) -> None:
    with pytest.raises(BootError, match=r"^extensions\.py cannot be used: ") as raised:
        extended(project, text).boot()

    assert words in str(raised.value)


def test_an_extension_receives_the_request_log_after_its_setup(project: Project) -> None:
    use = "lambda self, log: self.seen.append((log.request_id.get(), log.mask({'token': 'x'})))"
    text = f"[type('E', (), {{'seen': [], 'setup': lambda self, app: 0, 'use_log': {use}}})()]"
    app = extended(project, text)
    app.boot()

    assert app.extensions[0].seen == [("-", {"token": "***"})]


# -- the end


def test_the_start_of_the_end_is_seen_once_by_whoever_watches(project: Project) -> None:
    app = extended(project, "[]")

    async def main() -> None:
        await app.lifespan.run_startup()
        watching = asyncio.ensure_future(app.stopping.wait())
        await asyncio.sleep(0)
        assert not app.stopping.is_set()
        app.begin_shutdown()
        app.begin_shutdown()
        async with asyncio.timeout(5):
            assert await watching
        await app.lifespan.run_shutdown()
        await app.lifespan.run_shutdown()
        assert app.stopping.is_set()
        await app.lifespan.run_startup()
        assert not app.stopping.is_set()
        await app.lifespan.run_shutdown()

    asyncio.run(main())


def test_an_application_that_never_started_has_nothing_to_stop(project: Project) -> None:
    app = extended(project, "[]", "on_shutdown = [note('hook down')]")
    asyncio.run(app.lifespan.run_shutdown())
    app.boot()

    assert entries(app) == []


def test_work_that_does_not_end_is_named_and_cancelled_after_the_grace(
    project: Project, lines: Lines
) -> None:
    app = extended(
        project, "[]", "on_shutdown = [note('hook down')]", settings=Settings(grace=0.01)
    )

    async def endless() -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        await app.lifespan.run_startup()
        app.background.start_work(endless)
        await app.lifespan.run_shutdown()

    asyncio.run(main())
    assert entries(app) == ["hook down"]
    (text,) = [text for text in lines.texts() if "unfinished" in text]
    assert "endless unfinished, cancelled" in text


# -- stop signals


@pytest.fixture
def handlers() -> Iterator[None]:
    """The signal handlers as they were."""
    former = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    yield
    for number, handler in former.items():
        signal.signal(number, handler)


pytestmark = pytest.mark.usefixtures("handlers")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_is_noticed_and_reaches_the_server(number: signal.Signals) -> None:
    seen: list[int] = []
    noticed: list[int] = []

    async def main() -> None:
        told = asyncio.Event()

        def notice() -> None:
            noticed.append(1)
            told.set()

        with watch_stop_signals(notice):
            for _ in range(2):
                told.clear()
                signal.raise_signal(number)
                async with asyncio.timeout(5):
                    await told.wait()

    def of_server(number: int, frame: object) -> None:
        seen.append(number)

    signal.signal(number, of_server)
    asyncio.run(main())

    assert seen == [number, number]
    assert len(noticed) == 2
    assert signal.getsignal(number) is of_server


@pytest.mark.parametrize("handler", [signal.SIG_DFL, signal.SIG_IGN])
def test_a_signal_that_nobody_handles_is_left_alone(handler: signal.Handlers) -> None:
    signal.signal(signal.SIGTERM, handler)

    async def main() -> None:
        with watch_stop_signals(lambda: None):
            assert signal.getsignal(signal.SIGTERM) is handler

    asyncio.run(main())
    assert signal.getsignal(signal.SIGTERM) is handler


def test_a_handler_that_the_server_puts_in_later_stays(project: Project) -> None:
    def first(number: int, frame: object) -> None: ...
    def second(number: int, frame: object) -> None: ...

    signal.signal(signal.SIGTERM, first)

    async def main() -> None:
        with watch_stop_signals(lambda: None):
            signal.signal(signal.SIGTERM, second)

    asyncio.run(main())
    assert signal.getsignal(signal.SIGTERM) is second


def test_outside_of_the_main_thread_signals_are_left_alone() -> None:
    before = signal.getsignal(signal.SIGTERM)
    inside: list[Any] = []

    async def main() -> None:
        with watch_stop_signals(lambda: None):
            inside.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    thread.join(10)

    assert inside == [before]


def test_a_stop_signal_while_serving_begins_the_shutdown(project: Project) -> None:
    app = extended(project, "[]")
    signal.signal(signal.SIGTERM, lambda number, frame: None)

    async def main() -> None:
        started, may_end = asyncio.Event(), asyncio.Event()
        asked = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> dict[str, Any]:
            kind = next(asked)
            if kind == "lifespan.shutdown":
                started.set()
                await may_end.wait()
            return {"type": kind}

        async def send(message: Any) -> None: ...

        serving = asyncio.ensure_future(app({"type": "lifespan"}, receive, send))
        await started.wait()
        signal.raise_signal(signal.SIGTERM)
        await app.stopping.wait()
        may_end.set()
        await serving

    async def limited() -> None:
        async with asyncio.timeout(10):
            await main()

    asyncio.run(limited())
