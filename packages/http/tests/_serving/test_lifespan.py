"""Start and end: hooks, their order, their failures, the protocol, requests without a lifespan."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, BootError, Settings
from treefold_http._serving import lifespan

if TYPE_CHECKING:
    from conftest import Exchange, Lines

Project = Callable[..., Application]

GET = "async def handler(request):\n    return 'ok'\n"

JOURNAL = "import Services.journal as j\n"


async def live(app: Application, *, state: dict[str, Any] | None = None) -> list[dict[str, Any]]:
    """Start and stop an application as a server does; give what it said."""
    said: list[dict[str, Any]] = []
    asked = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        return {"type": next(asked)}

    async def send(message: Any) -> None:
        said.append(dict(message))

    scope: dict[str, Any] = {"type": "lifespan", "asgi": {"version": "3.0"}}
    if state is not None:
        scope["state"] = state
    async with asyncio.timeout(20):
        await app(scope, receive, send)
    return said


def types(said: list[dict[str, Any]]) -> list[str]:
    return [message["type"].removeprefix("lifespan.") for message in said]


def journal(app: Application) -> list[Any]:
    """What the hooks noted."""
    hooks = [*app.project.boot_files.on_startup, *app.project.boot_files.on_shutdown]
    return next(hook.__globals__["j"].entries for hook in hooks if hasattr(hook, "__globals__"))


def with_hooks(project: Project, text: str, **options: Any) -> Application:
    return project(
        {"Api/v1/Get.py": GET, "Services/journal.py": "entries = []\n", "hooks.py": JOURNAL + text},
        **options,
    )


KINDS = """
def plain():
    j.entries.append("plain")

async def loud():
    j.entries.append("loud")

def plain_app(app):
    j.entries.append(("plain", type(app).__name__))

async def loud_app(application, /):
    j.entries.append(("loud", type(application).__name__))

class Hook:
    async def __call__(self, app):
        j.entries.append(("instance", type(app).__name__))

def defaulted(url="own"):
    j.entries.append(url)

def gathering(**options):
    j.entries.append(options)

on_startup = [plain, loud, plain_app, loud_app, Hook(), defaulted, gathering]
on_startup.append(lambda: j.entries.append("lambda"))
"""


def test_hooks_of_every_kind_run_in_list_order(project: Project) -> None:
    app = with_hooks(project, KINDS)

    assert types(asyncio.run(live(app))) == ["startup.complete", "shutdown.complete"]
    assert journal(app) == [
        "plain",
        "loud",
        ("plain", "Application"),
        ("loud", "Application"),
        ("instance", "Application"),
        "own",
        {},
        "lambda",
    ]


ORDER = """
def note(name):
    async def hook():
        j.entries.append(name)
    return hook

on_startup = [note("a"), note("b")]
on_shutdown = [note("c"), note("d")]
"""


def test_shutdown_hooks_run_in_list_order_at_the_end(project: Project) -> None:
    app = with_hooks(project, ORDER)
    asyncio.run(live(app))

    assert journal(app) == ["a", "b", "c", "d"]


def test_shutdown_hooks_run_without_startup_hooks(project: Project) -> None:
    app = with_hooks(project, "on_shutdown = [lambda: j.entries.append('end')]")
    asyncio.run(live(app))

    assert journal(app) == ["end"]


def test_an_application_can_live_twice(project: Project) -> None:
    app = with_hooks(project, ORDER)
    asyncio.run(live(app))
    asyncio.run(live(app))

    assert journal(app) == ["a", "b", "c", "d"] * 2


FAILING = """
def note(name):
    async def hook():
        j.entries.append(name)
    return hook

async def broken():
    raise {error}

on_startup = [note("a"), broken, note("never")]
on_shutdown = [note("c"), note("d")]
"""


@pytest.mark.parametrize("error", ["ValueError('no')", "SystemExit(1)", "BaseException('x')"])
def test_a_startup_hook_that_fails_stops_the_server_and_undoes_what_had_started(
    project: Project, lines: Lines, error: str
) -> None:
    app = with_hooks(project, FAILING.format(error=error))
    said = asyncio.run(live(app))

    assert types(said) == ["startup.failed"]
    assert said[0]["message"].startswith("Startup hook broken failed: ")
    assert error.partition("(")[0] in said[0]["message"]
    assert journal(app) == ["a", "c", "d"]
    assert [text for text in lines.texts() if "startup hook" in text] == [
        "startup hook broken failed"
    ]


def test_a_first_startup_hook_that_fails_undoes_nothing(project: Project) -> None:
    app = with_hooks(
        project,
        "def broken():\n    raise ValueError\n"
        "on_startup = [broken]\non_shutdown = [lambda: j.entries.append('end')]",
    )

    assert types(asyncio.run(live(app))) == ["startup.failed"]
    assert journal(app) == []


def test_a_startup_hook_that_hangs_is_given_up(project: Project) -> None:
    app = with_hooks(
        project,
        "import asyncio\nasync def hangs():\n    await asyncio.Event().wait()\n"
        "on_startup = [hangs]",
        settings=Settings(startup_timeout=0.01),
    )
    said = asyncio.run(live(app))

    assert types(said) == ["startup.failed"]
    assert "Startup hook hangs failed: TimeoutError" in said[0]["message"]


CANCELLING = """
async def last(app):
    app.state.server.cancel()  # and it ends before the loop gets to that
def closed(app): app.state.closed = True
on_startup, on_shutdown = [last], [closed]
"""


def test_a_cancellation_that_comes_too_late_is_a_shutdown(project: Project) -> None:
    app = with_hooks(project, CANCELLING)

    async def serve() -> None:
        app.state.server = asyncio.ensure_future(live(app))
        await app.state.server

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(serve())
    assert app.state.closed


@pytest.mark.parametrize("error", ["ValueError('no')", "SystemExit(1)", "BaseException('x')"])
def test_a_shutdown_hook_that_fails_is_logged_and_the_next_runs(
    project: Project, lines: Lines, error: str
) -> None:
    app = with_hooks(
        project,
        f"def broken():\n    raise {error}\n"
        "on_shutdown = [broken, lambda: j.entries.append('next')]",
    )

    assert types(asyncio.run(live(app))) == ["startup.complete", "shutdown.complete"]
    assert journal(app) == ["next"]
    assert [text for text in lines.texts() if "hook" in text] == ["shutdown hook broken failed"]


@pytest.mark.parametrize("blocks", [False, True])
def test_a_shutdown_hook_that_takes_long_is_named_once(
    project: Project, lines: Lines, monkeypatch: pytest.MonkeyPatch, blocks: bool
) -> None:
    monkeypatch.setattr(lifespan, "_SLOW_SHUTDOWN_SECONDS", 0.2)
    wait = "time.sleep(0.5)" if blocks else "await asyncio.sleep(0.5)"
    app = with_hooks(
        project,
        f"import asyncio, time\nasync def slow():\n    {wait}\ndef quick(): ...\n"
        "on_shutdown = [slow, quick]",
    )
    asyncio.run(live(app))

    assert [text for text in lines.texts() if "hook" in text] == [
        "shutdown hook slow has not ended after 0.2 s; a second stop signal ends the process"
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"hooks.py": "1 / 0"},
        {"pyproject.toml": "tool = 5"},
        {"pyproject.toml": "[tool.treefold]\nlog_level = 'LOUD'"},
        {"Middleware/__init__.py": "middlewares = [5]"},
    ],
)
def test_a_boot_that_fails_is_a_failed_startup(project: Project, files: dict[str, str]) -> None:
    said = asyncio.run(live(project({"Api/v1/Get.py": GET, **files})))

    assert types(said) == ["startup.failed"]
    assert said[0]["message"]
    assert "\n" not in said[0]["message"]


def test_a_missing_api_folder_is_a_failed_startup(tmp_path: Any) -> None:
    said = asyncio.run(live(Application(tmp_path)))

    assert types(said) == ["startup.failed"]
    assert "Api" in said[0]["message"]


def test_the_state_of_the_application_goes_into_that_of_the_server(project: Project) -> None:
    state: dict[str, Any] = {}
    app = with_hooks(project, "def start(app):\n    app.state.pool = 'pool'\non_startup = [start]")
    asyncio.run(live(app, state=state))

    assert state == {"pool": "pool"}


def test_the_end_waits_for_work_in_the_background(project: Project) -> None:
    app = with_hooks(project, "on_shutdown = [lambda: j.entries.append('hook')]")
    app.boot()
    entries = journal(app)

    async def main() -> None:
        async def work() -> None:
            await asyncio.sleep(0)
            entries.append("work")

        async def start() -> None:
            app.background.start_work(work)

        await app(*_parts(start))

    def _parts(start: Callable[[], Any]) -> tuple[Any, Any, Any]:
        asked = iter(["lifespan.startup", "lifespan.shutdown"])

        async def receive() -> dict[str, Any]:
            kind = next(asked)
            if kind == "lifespan.shutdown":
                await start()
            return {"type": kind}

        async def send(message: Any) -> None: ...

        return {"type": "lifespan"}, receive, send

    asyncio.run(main())
    assert entries == ["work", "hook"]


SLOW = """
import asyncio

async def slow(app):
    j.entries.append("begin")
    await app.state.gate.wait()
    j.entries.append("end")

on_startup = [slow]
"""


def test_without_a_lifespan_every_request_waits_for_the_hooks(
    project: Project, exchange: type[Exchange]
) -> None:
    app = with_hooks(project, SLOW)

    async def main() -> None:
        app.state.gate = asyncio.Event()
        requests = [exchange("GET", "/v1") for _ in range(3)]
        running = [asyncio.ensure_future(request.run(app)) for request in requests]
        for _ in range(20):
            await asyncio.sleep(0)
        assert journal(app) == ["begin"]
        assert not any(request.answer.messages for request in requests)
        app.state.gate.set()
        answers = await asyncio.gather(*running)
        assert [answer.status for answer in answers] == [200] * 3
        assert journal(app) == ["begin", "end"]

    asyncio.run(main())


def test_without_a_lifespan_the_hooks_run_although_the_boot_was_asked_for(
    project: Project, exchange: type[Exchange]
) -> None:
    app = with_hooks(project, "on_startup = [lambda: j.entries.append('hook')]")
    app.boot()

    async def main() -> None:
        for _ in range(2):
            assert (await exchange("GET", "/v1").run(app)).status == 200

    asyncio.run(main())
    assert journal(app) == ["hook"]


def test_a_first_request_that_is_cancelled_does_not_cancel_the_start(
    project: Project, exchange: type[Exchange]
) -> None:
    app = with_hooks(project, SLOW)

    async def main() -> None:
        app.state.gate = asyncio.Event()
        first = asyncio.ensure_future(exchange("GET", "/v1").run(app))
        for _ in range(5):
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        app.state.gate.set()
        assert (await exchange("GET", "/v1").run(app)).status == 200
        assert journal(app) == ["begin", "end"]

    asyncio.run(main())


def test_without_a_lifespan_a_boot_that_fails_fails_each_request(
    project: Project, exchange: type[Exchange]
) -> None:
    app = project({"Api/v1/Get.py": GET, "hooks.py": "1 / 0"})

    async def main() -> None:
        for _ in range(2):
            with pytest.raises(BootError, match=r"^hooks\.py cannot be used"):
                await exchange("GET", "/v1").run(app)

    asyncio.run(main())


ONCE = """
def flaky():
    j.entries.append("try")
    if j.entries.count("try") == 1:
        raise ConnectionError("no database")

on_startup = [flaky]
on_shutdown = [lambda: j.entries.append("end")]
"""


def test_without_a_lifespan_a_start_that_failed_is_tried_again(
    project: Project, exchange: type[Exchange]
) -> None:
    app = with_hooks(project, ONCE)

    async def main() -> None:
        with pytest.raises(BootError, match="flaky failed"):
            await exchange("GET", "/v1").run(app)
        assert (await exchange("GET", "/v1").run(app)).status == 200
        assert (await exchange("GET", "/v1").run(app)).status == 200
        assert journal(app) == ["try", "try"]
        await app.lifespan.run_shutdown()
        assert journal(app) == ["try", "try", "end"]

    asyncio.run(main())


def test_requests_that_wait_for_one_start_share_its_failure(
    project: Project, exchange: type[Exchange]
) -> None:
    app = with_hooks(project, ONCE)

    async def main() -> None:
        requests = [exchange("GET", "/v1").run(app) for _ in range(3)]
        outcomes = await asyncio.gather(*requests, return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [BootError] * 3
        assert journal(app) == ["try"]

    asyncio.run(main())


def test_a_server_may_start_again_what_did_not_start(project: Project) -> None:
    app = with_hooks(project, ONCE)

    assert types(asyncio.run(live(app))) == ["startup.failed"]
    assert types(asyncio.run(live(app))) == ["startup.complete", "shutdown.complete"]


def test_a_boot_that_failed_leaves_no_mount_in_the_way_of_the_next(
    project: Project, exchange: type[Exchange]
) -> None:
    app = project(
        {
            "Api/v1/Get.py": GET,
            "web/a.txt": "text",
            "hooks.py": "1 / 0",
            "extensions.py": """
                from treefold_http import StaticFiles

                class Web:
                    def setup(self, app):
                        app.mount("/static", StaticFiles("web"))

                extensions = [Web()]
                """,
        }
    )

    async def main() -> None:
        with pytest.raises(BootError, match=r"^hooks\.py cannot be used"):
            await app.lifespan.run_startup()
        (app.root / "hooks.py").write_text("on_startup = []")
        await app.lifespan.run_startup()
        assert (await exchange("GET", "/static/a.txt").run(app)).body == b"text"
        await app.lifespan.run_shutdown()

    asyncio.run(main())
