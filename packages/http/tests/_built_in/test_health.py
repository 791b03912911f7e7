"""`/livez` and `/readyz`: who is asked, what is said, what stays out of the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Settings
from treefold_logging import get_logger

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request):\n    return 'ok'\n",
    "Middleware/__init__.py": "from treefold_http.middleware import IPAllowlist, TrustedHosts\n"
    "middlewares = [TrustedHosts(['example.localhost']), IPAllowlist(['10.0.0.0/8'])]\n",
    "extensions.py": """
        import asyncio
        from dataclasses import dataclass

        @dataclass
        class Check:
            ok: bool
            topic: str = "spool"
            name: str = "outgoing"
            text: str = "s3cret address"
            advice: str = ""

        class Spool:
            ok, asked, hangs, fails = True, 0, False, False

            async def ready(self):
                self.asked += 1
                if self.hangs:
                    await asyncio.Event().wait()
                if self.fails:
                    raise LookupError("s3cret")
                return [Check(self.ok)]

        extensions = [Spool()]
        """,
}


@pytest.fixture
def app(project: Project, monkeypatch: pytest.MonkeyPatch) -> Application:
    monkeypatch.setattr("treefold_http._built_in.health.KEPT", 0.0)
    monkeypatch.setattr("treefold_http._built_in.health.LIMIT", 0.05)
    return project(TREE, settings=Settings(health=True))


def spool(app: Application) -> Any:
    app.boot()
    return app.extensions[-1]


@pytest.mark.parametrize(("target", "status"), [("/livez", "alive"), ("/readyz", "ready")])
def test_a_probe_is_answered_whoever_asks_from_wherever(
    app: Application, ask: Ask, target: str, status: str
) -> None:
    answer = ask(app, "GET", target, host=False, headers=[("host", "10.1.2.3:8000")])

    assert (answer.status, answer.json()) == (200, {"status": status})
    assert answer.fields("cache-control") == ["no-store"]
    assert (ask(app, "HEAD", target).status, ask(app, "HEAD", target).body) == (200, b"")
    refused = ask(app, "POST", target)
    assert (refused.status, refused.fields("allow")) == (405, ["GET, HEAD"])
    assert ask(app, "GET", "/v1/ok").status == 403


@pytest.mark.parametrize("target", ["/livez", "/readyz", "/v1/livez", "/livez/x"])
def test_without_the_setting_and_elsewhere_there_is_nothing(
    project: Project, ask: Ask, target: str
) -> None:
    health = target in ("/v1/livez", "/livez/x")
    files = {"Api/v1/Ok/Get.py": TREE["Api/v1/Ok/Get.py"]}
    app = project(files, settings=Settings(health=health))

    assert ask(app, "GET", target).status == 404


def test_a_part_of_a_mounted_application_keeps_requests_away(
    app: Application, project: Project, exchange: type[Exchange]
) -> None:
    files, settings = {"Api/v1/Ok/Get.py": TREE["Api/v1/Ok/Get.py"]}, Settings(health=True)
    outer = project(files, root="outer", settings=settings)
    beside = project(files, root="beside", settings=settings)
    outer.mount("/inner", app)

    async def main() -> list[Any]:
        found: list[Any] = []
        for part_is_ready in (True, False):
            spool(app).ok = part_is_ready
            found += [(await exchange("GET", "/readyz").run(a)).json() for a in (outer, beside)]
        return found

    ready = {"status": "ready"}
    unready = {"status": "unavailable", "failed": ["spool outgoing"]}
    assert asyncio.run(main()) == [ready, ready, unready, ready]


def test_a_part_that_is_not_ready_keeps_requests_away(
    app: Application, ask: Ask, lines: Lines
) -> None:
    part = spool(app)
    part.ok = False
    unready = [ask(app, "GET", "/readyz") for _ in range(2)][-1]
    alive = ask(app, "GET", "/livez")
    part.ok = True
    ready = ask(app, "GET", "/readyz")

    assert unready.status == 503
    assert unready.json() == {"status": "unavailable", "failed": ["spool outgoing"]}
    assert (alive.status, ready.status) == (200, 200)
    assert lines.texts()[-2:] == ["not ready: spool outgoing", "ready again"]


@pytest.mark.parametrize("fault", ["hangs", "fails"])
def test_a_part_that_cannot_say_is_not_ready(app: Application, ask: Ask, fault: str) -> None:
    setattr(spool(app), fault, True)
    answer = ask(app, "GET", "/readyz")

    assert answer.json() == {"status": "unavailable", "failed": ["extension Spool"]}
    assert b"s3cret" not in answer.body


def test_many_probes_ask_once(
    app: Application, exchange: type[Exchange], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("treefold_http._built_in.health.KEPT", 60.0)

    async def main() -> None:
        probes = [exchange("GET", "/readyz") for _ in range(50)]
        await asyncio.gather(*(probe.run(app) for probe in probes))
        await exchange("GET", "/readyz").run(app)

    asyncio.run(main())
    assert spool(app).asked == 1


def test_a_process_that_stops_is_alive_and_not_ready(
    app: Application, exchange: type[Exchange]
) -> None:
    async def main() -> None:
        await exchange("GET", "/v1/ok").run(app)
        app.begin_shutdown()
        stopping = await exchange("GET", "/readyz").run(app)
        assert (stopping.status, stopping.json()) == (503, {"status": "stopping"})
        assert (await exchange("GET", "/livez").run(app)).status == 200

    asyncio.run(main())


def test_probes_are_not_logged_at_info(
    app: Application, ask: Ask, capsys: pytest.CaptureFixture[str], lines: Lines
) -> None:
    for target in ("/livez", "/readyz", "/v1/ok"):
        ask(app, "GET", target)
    assert [text for text in lines.texts() if "GET" in text] == [
        text for text in lines.texts() if "/v1/ok" in text
    ]
    get_logger().setLevel(logging.DEBUG)
    ask(app, "GET", "/livez")
    assert any("GET /livez 200" in text for text in lines.texts())


def test_a_route_that_the_default_version_finds_comes_first(project: Project, ask: Ask) -> None:
    files = {"Api/v1/Livez/Get.py": "async def handler(request):\n    return 'mine'\n"}
    app = project(files, settings=Settings(health=True, default_version="latest"))

    assert ask(app, "GET", "/livez").body == b"mine"
    assert ask(app, "GET", "/readyz").json() == {"status": "ready"}
