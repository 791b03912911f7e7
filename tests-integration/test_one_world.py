"""One world for handlers and jobs: parameters, hooks and settings are the same in both.

Each kind of injected parameter, in a worker, in a schedule, in the process and in a test run.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import http_redis
import pytest
from forked_commands import ForkServer
from job_queue import Queue, new_queue
from serving import write_tree

from treefold import Application, Settings
from treefold.jobs import Schedule, aenqueue, alater, enqueue
from treefold.testing import TestClient
from treefold_http import TreefoldError
from treefold_jobs._process import here
from treefold_jobs._retries import Retries
from treefold_jobs._worker import Options, Worker
from treefold_jobs.testing import hold_jobs
from treefold_orm import close_all
from treefold_orm.testing import OwnDatabases

TREE = {
    "settings.py": """
        from dataclasses import dataclass


        @dataclass
        class Shop:
            sender: str = "nobody"


        app_settings = Shop
        """,
    "providers.py": """
        from Services.parts import Clock, Mailer
        from settings import Shop
        from treefold import Depends, Provider


        def make_mailer(shop: Shop):
            yield Mailer(shop.sender)
            with open("closed", "a") as file:
                file.write("mailer ")


        providers = {
            Mailer: Provider(make_mailer, "app"),
            Clock: lambda: Clock(12),
            "tenant": lambda: "acme",
        }
        """,
    "Services/parts.py": """
        class Mailer:
            def __init__(self, sender):
                self.sender = sender


        class Clock:
            def __init__(self, hour=0):
                self.hour = hour
        """,
    "Services/work.py": """
        import json
        from collections.abc import AsyncIterator, Iterator
        from pathlib import Path
        from typing import Annotated

        from Services.parts import Clock, Mailer
        from settings import Shop
        from treefold import BackgroundTasks, Depends, Request

        SYSTEM = Clock(0)


        def note(*words: object) -> None:
            with Path("noted").open("a") as file:
                print(json.dumps(words), file=file)


        def plain(shop: Shop) -> str:
            return f"plain {shop.sender}"


        async def opened() -> AsyncIterator[str]:
            try:
                yield "opened"
            finally:
                note("left")


        def opened_plainly() -> Iterator[str]:
            yield "opened plainly"
            note("left plainly")


        class Cart:
            def __init__(self, clock: Clock):
                self.hour = clock.hour


        async def send(
            number: int,
            *,
            shop: Shop = Depends(),
            mailer: Mailer = Depends(),
            clock: Clock = SYSTEM,
            tenant: str = "none",
            cart: Annotated[Cart, Depends()] = SYSTEM,  # an ordinary default, which is not used
            first: str = Depends(plain),
            second: str = Depends(opened),
            third: str = Depends(opened_plainly),
            own: str = "own default",
            background: BackgroundTasks = Depends(),
        ) -> None:
            background.add(note, "background", number)
            note(number, shop.sender, mailer.sender, clock.hour, tenant, cart.hour, first, second)
            note(third, own)


        def send_plainly(
            number: int, mailer: Mailer = Depends(), third: str = Depends(opened_plainly)
        ) -> None:
            note(number, mailer.sender, third)


        def needs_request(number: int, request: Request = Depends()) -> None: ...


        def typo(number: int, shop: "Shopp" = Depends()) -> None: ...


        async def fails(number: int, second: str = Depends(opened)) -> None:
            raise ValueError("no")
        """,
    "hooks.py": """
        import json
        import os

        from Services.work import note


        def begin(app):
            app.state.begun = True
            note("begin", app.role)
            if os.environ.get("BREAK") == app.role:
                raise ConnectionError("no mail server")


        async def end(app):
            note("end", app.role)


        on_startup = [begin]
        on_shutdown = [end]
        """,
    "Api/v1/Send/[number]/Post.py": """
        from Services.work import send
        from treefold.jobs import aenqueue

        async def handler(number: int):
            await aenqueue(send, number)
        """,
    "Api/v1/Plainly/[number]/Post.py": """
        from Services.work import send_plainly
        from treefold.jobs import enqueue

        def handler(number: int):
            enqueue(send_plainly, number)
        """,
    "treefold.toml": '[app]\nsender = "ada"\n',
}
DONE = "SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'"
SENT = [
    [1, "ada", "ada", 12, "acme", 12, "plain ada", "opened"],
    ["opened plainly", "own default"],
    ["left plainly"],
    ["left"],
    ["background", 1],
]
SENT_PLAINLY = [[2, "ada", "opened plainly"], ["left plainly"]]


@pytest.fixture(scope="module")
def queue(postgres_server: str) -> Iterator[Queue]:
    with new_queue(postgres_server) as made:
        yield made


@pytest.fixture
def root(tmp_path: Path, queue: Queue, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    queue.empty()
    write_tree(tmp_path, TREE)
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    close_all()
    here.app, here.dev, here.loop, here.log, here.queue = None, False, None, None, "treefold"


def make_application(
    root: Path, address: str, *, dev: bool = False, worker_threads: int | None = None
) -> Application:
    databases = {"default": address}
    settings = Settings.load(root, databases=databases, worker_threads=worker_threads)
    return Application(root, dev=dev, settings=settings)


def noted(root: Path) -> list[Any]:
    """What hooks and jobs have noted, and forget it."""
    lines = (root / "noted").read_text().splitlines()
    (root / "noted").unlink()
    return [json.loads(line) for line in lines]


async def run_worker(app: Application, queue: Queue, *, schedules: list[Schedule]) -> None:
    """Work until no job waits, or with schedules until one has run."""
    app.role = "worker"
    options = Options(drain=not schedules, lost_after=5.0, retries=Retries(1))
    async with app.lifespan():
        working = Worker(options, schedules, in_thread=app.threads.run)
        task = asyncio.ensure_future(working.run())
        while schedules and queue.value(DONE) < 2:  # noqa: ASYNC110 - the database tells
            await asyncio.sleep(0.05)
        if schedules:
            working.request_stop()
        await task


def test_a_worker_runs_hooks_and_provides_all_that_a_handler_gets(root: Path, queue: Queue) -> None:
    asyncio.run(enqueue_as_a_server(root, queue))
    assert noted(root) == [["begin", "serve"], ["end", "serve"]]
    kept = "SELECT json_agg(convert_from(payload, 'UTF8')::json->'args' ORDER BY id) FROM pgqueuer"
    assert json.loads(queue.value(kept)) == [[1], [2], [3]]
    asyncio.run(run_worker(make_application(root, queue.dsn), queue, schedules=[]))
    lines = noted(root)
    assert (lines[0], lines[-1]) == (["begin", "worker"], ["end", "worker"])
    for line in [*SENT, *SENT_PLAINLY]:
        lines.remove(line)
    assert lines == [["begin", "worker"], ["left"], ["end", "worker"]]
    assert queue.states() == "failed 0"
    assert (root / "closed").read_text() == "mailer "


async def enqueue_as_a_server(root: Path, queue: Queue) -> None:
    app = make_application(root, queue.dsn)
    async with app.lifespan():
        work: Any = sys.modules["Services.work"]
        await aenqueue(work.send, 1)
        await aenqueue(work.send_plainly, 2)
        await aenqueue(work.fails, 3)
        with pytest.raises(TypeError, match=r"cannot be a job like this: .*needs the request"):
            await aenqueue(work.needs_request, 1)
        with pytest.raises(TypeError, match=r"'Shopp' of 'shop' .*import the names that it uses"):
            await alater(work.typo, delay=1)(1)
        with pytest.raises(TypeError, match=r"injected a default, as in x: X = Depends\(\)"):
            await aenqueue(work.plain)


def test_a_schedule_provides_the_same(root: Path, queue: Queue) -> None:
    app = make_application(root, queue.dsn)
    app.boot()
    work: Any = sys.modules["Services.work"]
    cron = "* * * * * *"
    schedules = [Schedule(cron, work.send, 1), Schedule(cron, work.send_plainly, 2)]
    asyncio.run(run_worker(app, queue, schedules=schedules))
    lines = noted(root)
    for line in [*SENT, *SENT_PLAINLY]:
        assert line in lines


def post_both(app: Application) -> None:
    with TestClient(app) as client:
        assert client.post("/v1/send/1").status_code == 204
        assert client.post("/v1/plainly/2").status_code == 204


@pytest.mark.parametrize("threads", [1, 40])
def test_in_process_a_job_is_provided_with_the_same(root: Path, threads: int) -> None:
    # one that waits for the loop must not keep the job from it
    app = make_application(root, "sqlite:///:memory:", dev=True, worker_threads=threads)
    post_both(app)
    assert app.threads.limit == threads
    lines = noted(root)
    assert lines == [["begin", "test"], *SENT, *SENT_PLAINLY, ["end", "test"]]


def test_in_tests_overrides_reach_jobs(root: Path, queue: Queue, tmp_path: Path) -> None:
    app = make_application(root, queue.dsn)
    own = OwnDatabases(tmp_path, named={"default": queue.dsn})
    with own.active():
        app.boot()
        work: Any = sys.modules["Services.work"]
        app.overrides[work.plain] = lambda: "replaced"
        post_both(app)
    own.close()
    assert [1, "ada", "ada", 12, "acme", 12, "replaced", "opened"] in noted(root)
    assert queue.states() is None


def test_an_outbox_holds_jobs_and_provides_them_when_they_run(root: Path, queue: Queue) -> None:
    app = make_application(root, queue.dsn)
    with TestClient(app) as client, hold_jobs() as outbox:
        assert client.post("/v1/send/1").status_code == 204
        assert client.post("/v1/plainly/2").status_code == 204
        work: Any = sys.modules["Services.work"]
        held = [(job.function, job.args) for job in outbox]
        assert held == [(work.send, (1,)), (work.send_plainly, (2,))]
        assert noted(root) == [["begin", "test"]]
        outbox.run()
    assert noted(root) == [*SENT, *SENT_PLAINLY, ["end", "test"]]
    assert queue.states() is None


def test_without_an_application_a_marker_is_never_an_argument(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = make_application(root, "sqlite:///:memory:", dev=True)
    with TestClient(app):
        here.app = None
        enqueue(sys.modules["Services.work"].send_plainly, 1)
    assert "is provided by an application, and there is none" in caplog.text
    assert noted(root) == [["begin", "test"], ["end", "test"]]


@pytest.mark.parametrize(
    ("broken", "code", "shown", "lines"),
    [
        ("worker", 1, "Error: Startup hook begin failed: ConnectionError('no mail server')", []),
        ("serve", 0, "worker stopped", [*SENT_PLAINLY, ["end", "worker"]]),
    ],
)
def test_a_failing_hook_stops_the_worker_before_a_job(
    root: Path,
    queue: Queue,
    fork_server: ForkServer,
    monkeypatch: pytest.MonkeyPatch,
    broken: str,
    code: int,
    shown: str,
    lines: list[Any],
) -> None:
    queue.run(
        "INSERT INTO pgqueuer (priority, status, entrypoint, payload) VALUES"
        " (0, 'queued', 'treefold:production',"
        """ '{"function": "Services.work:send_plainly", "args": [2], "kwargs": {}}')"""
    )
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
    variables = {"TREEFOLD_DATABASE_URL": queue.dsn, "BREAK": broken}
    done = fork_server.run(["worker", "--drain"], cwd=root, env=plain | variables)
    assert (done.returncode, shown in done.stderr) == (code, True), done.stderr
    assert noted(root) == [["begin", "worker"], *lines]
    assert queue.value("SELECT count(*) FROM pgqueuer") == code


# -- one Redis ------------------------------------------------------------------------------------

SHARED = {
    "Services/shared.py": """
        from treefold import Rooms

        rooms = Rooms(redis=True)
        """,
    "Middleware/__init__.py": """
        from treefold.middleware import RateLimit, Sessions

        middlewares = [Sessions(store="redis"), RateLimit("9/hour", redis=True)]
        """,
    "Api/v1/All/Get.py": """
        from Services.shared import rooms
        from treefold.cache import get_cache


        async def handler(request):
            request.session["seen"] = True
            await get_cache("figures").set("figure", 7, ttl=60)
            await rooms.broadcast("all", "hello")
            return [await get_cache("figures").get("figure")]
        """,
    "hooks.py": "from Services.shared import rooms\n\non_shutdown = [rooms.close]\n",
    "treefold.toml": '[caches]\nfigures = "redis"\n',
}


@pytest.fixture(scope="module")
def redis_url() -> Iterator[str]:
    with http_redis.server() as url:
        yield url


def test_one_address_in_dotenv_serves_all_that_is_shared(tmp_path: Path, redis_url: str) -> None:
    root = write_tree(tmp_path, SHARED)
    root.joinpath(".env").write_text(
        f"TREEFOLD_REDIS_URL={redis_url}\nTREEFOLD_SECRET_KEY={'x' * 40}\n"
    )
    app = Application(root)
    with http_redis.connected(redis_url) as plain, plain.pubsub() as subscribed:
        with TestClient(app, base_url="https://testserver") as client:
            subscribed.psubscribe(f"{app.names.own}*")
            assert subscribed.get_message(timeout=5)["type"] == "psubscribe"
            assert client.get("/v1/all").json() == [7]
            message = subscribed.get_message(timeout=5)
        keys = [key.decode().removeprefix(app.names.own) for key in plain.keys(f"{app.names.own}*")]
    assert message is not None
    assert b'{"text": "hello"}' in message["data"]
    kinds = {key.partition(":")[0] for key in keys}
    assert kinds >= {"session", "limit", "cache"}, kinds


@pytest.mark.parametrize(
    ("files", "text"),
    [
        ({"treefold.toml": "", "Middleware/__init__.py": ""}, "Rooms(redis=True) needs an address"),
        (
            {"Services/shared.py": "", "hooks.py": ""},
            "Setting caches.figures is 'redis', the server of the setting redis_url",
        ),
    ],
)
def test_without_an_address_the_start_names_the_variable(
    tmp_path: Path, files: dict[str, str], text: str
) -> None:
    app = Application(write_tree(tmp_path, SHARED | files))
    with pytest.raises(TreefoldError) as caught, TestClient(app):
        pass
    assert text in str(caught.value)
    assert "set TREEFOLD_REDIS_URL" in str(caught.value)
