"""One Redis and one PostgreSQL for everything: what belongs together meets, and nothing else does.

Real processes: two servers in two folders, as on two machines, the server of development, a worker,
a shell, a script, a test run, and another application.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import sys
from collections.abc import Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import http_redis
import pytest
from job_queue import Queue, new_queue
from serving import PATIENCE, Process, StartFailed, write_tree
from websockets.sync.client import ClientConnection, connect

TREE = {
    "Services/figures.py": """
        import secrets
        from treefold import Rooms
        from treefold.cache import get_cache

        rooms = Rooms(redis={redis!r})


        async def figure():
            async def make():
                return secrets.token_hex(8)

            return await get_cache().get_or_set("figure", make, ttl=600, tags=["figures"])


        async def renew(text):
            await get_cache().invalidate("figures")
            await rooms.broadcast("all", text)
        """,
    "Api/v1/Figure/Get.py": """
        from Services.figures import figure

        async def handler(request):
            return [await figure()]
        """,
    "Api/v1/Renew/Post.py": """
        from Services.figures import renew
        from treefold.jobs import aenqueue

        async def handler(request):
            await aenqueue(renew, request.query["text"])
        """,
    "Api/v1/Login/Post.py": """
        from treefold.auth import login

        async def handler(request):
            login(request, 1)
        """,
    "Api/v1/Me/Get.py": """
        async def handler(request):
            return [request.session.user]
        """,
    "Api/v1/Limited/Get.py": "async def handler(request): return {}",
    "Api/v1/Room/Socket.py": """
        from Services.figures import rooms

        async def handler(websocket):
            await websocket.accept()
            async with rooms.joined("all", websocket):
                await websocket.send_text("joined")
                async for text in websocket.iter_text():
                    await rooms.broadcast("all", text)
        """,
    "hooks.py": "from Services.figures import rooms\n\non_shutdown = [rooms.close]\n",
    "Middleware/__init__.py": """
        from treefold.middleware import RateLimit, Sessions, under

        middlewares = [
            Sessions(store="redis"),
            under("/v1/limited", RateLimit("2/hour", redis=True)),
        ]
        """,
    "treefold.toml": """
        name = "shop"
        redis_url = {redis!r}

        [caches]
        default = {redis!r}
        """,
    "Tests/test_shop.py": """
        def test_it_keeps_a_figure_and_logs_in(client):
            figure = client.get("/v1/figure").json()
            assert client.get("/v1/figure").json() == figure
            assert client.post("/v1/login").status_code == 204
            print("FIGURE", figure[0], "COOKIE", client.cookies["__Host-session"], "END")
        """,
}
SAME_SITE = ("Sec-Fetch-Site", "same-origin")


@dataclass
class World:
    """The servers of a database and a Redis, and the commands of one project.

    Attributes:
        root: the folder of the project.
        variables: those of the deployment.
    """

    root: Path
    variables: Mapping[str, str]
    queue: Queue
    stack: ExitStack
    running: list[Process] = field(default_factory=list[Process])

    def serve(
        self,
        root: Path | None = None,
        *,
        dev: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> Process:
        """Start a server, with other variables if given."""
        process = Process(
            root or self.root,
            "httptools",
            dev=dev,
            default_version=None,
            variables={**self.variables, **(variables or {})},
        )
        self.running.append(process)
        return process

    def run(self, *command: str, **variables: str) -> str:
        """Run Python with arguments in the folder of the project; return what it prints."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
        done = subprocess.run(
            [sys.executable, *command],
            cwd=self.root,
            env={**environment, **self.variables, **variables},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout


@pytest.fixture(scope="module")
def world(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with ExitStack() as stack:
        redis = stack.enter_context(http_redis.started())
        queue = stack.enter_context(new_queue(postgres_server))
        tree = {file: source.replace("{redis!r}", repr(redis.url)) for file, source in TREE.items()}
        root = write_tree(tmp_path_factory.mktemp("names"), tree)
        variables = {
            "TREEFOLD_SECRET_KEY": secrets.token_hex(32),
            "TREEFOLD_DATABASE_URL": queue.dsn,
            "TREEFOLD_TEST_RUN": "",  # names of deployments, not of this test run
        }
        made = World(root, variables, queue, stack)
        yield made
        written = [process.stop() for process in made.running]
    assert [line for text in written for line in text.splitlines() if "[ERROR]" in line] == []


@pytest.fixture(scope="module")
def shop(world: World) -> Process:
    return world.serve()


@pytest.fixture(scope="module")
def second(world: World, shop: Process, tmp_path_factory: pytest.TempPathFactory) -> Process:
    """The same project in another folder, as on a second machine."""
    copy = tmp_path_factory.mktemp("second") / "release-7"
    shutil.copytree(world.root, copy)
    return world.serve(copy)


@pytest.fixture(scope="module")
def development(world: World, shop: Process) -> Process:
    return world.serve(dev=True)


@pytest.fixture(scope="module")
def blog(world: World, shop: Process, tmp_path_factory: pytest.TempPathFactory) -> Process:
    """Another application: its name, its secret."""
    own = {"TREEFOLD_NAME": "blog", "TREEFOLD_SECRET_KEY": secrets.token_hex(32)}
    return world.serve(variables=own)


def figure_of(server: Process) -> str:
    return server.get("/v1/figure").json()[0]


def login_at(server: Process) -> tuple[str, str]:
    answer = server.request("POST", "/v1/login", headers=[SAME_SITE])
    assert answer.status == 204, answer
    return "Cookie", answer.value("set-cookie").partition(";")[0]


@contextmanager
def in_room(server: Process) -> Generator[ClientConnection]:
    host, port = server.address
    with connect(f"ws://{host}:{port}/v1/room", proxy=None) as socket:
        assert socket.recv(PATIENCE) == "joined"
        yield socket


# -- what belongs together


def test_two_machines_are_one_application(shop: Process, second: Process) -> None:
    cookie = login_at(shop)
    assert second.get("/v1/me", cookie).json() == [1]
    assert figure_of(second) == figure_of(shop)
    statuses = [server.get("/v1/limited").status for server in (shop, second, shop, second)]
    assert statuses == [200, 200, 429, 429]
    with in_room(shop) as here, in_room(second) as there:
        here.send("hello")
        assert [here.recv(PATIENCE), there.recv(PATIENCE)] == ["hello", "hello"]


def test_a_job_in_a_worker_reaches_values_and_sockets_of_all(
    world: World, shop: Process, second: Process
) -> None:
    before = figure_of(shop)
    with in_room(shop) as here, in_room(second) as there:
        assert shop.request("POST", "/v1/renew?text=renewed", headers=[SAME_SITE]).status == 204
        world.run("-m", "treefold", "worker", "--drain")
        assert [here.recv(PATIENCE), there.recv(PATIENCE)] == ["renewed", "renewed"]
    after = figure_of(second)
    assert after != before
    assert figure_of(shop) == after


@pytest.mark.long
def test_a_schedule_reaches_the_sockets_of_servers(world: World, second: Process) -> None:
    """The shortest schedule is due each minute."""
    schedules = (
        "from Services.figures import renew\nfrom treefold.jobs import Schedule\n"
        "schedules = [Schedule('* * * * *', renew, 'on time')]\n"
    )
    (world.root / "schedules.py").write_text(schedules)
    environment = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
    with in_room(second) as socket:
        worker = subprocess.Popen(
            [sys.executable, "-m", "treefold", "worker"],
            cwd=world.root,
            env={**environment, **world.variables},
        )
        try:
            assert socket.recv(90) == "on time"
        finally:
            worker.terminate()
            worker.wait(PATIENCE)
            (world.root / "schedules.py").unlink()


READ = "from treefold.cache import get_cache; print(get_cache().sync.get('figure'))"


@pytest.mark.parametrize("command", [("-c", READ), ("-m", "treefold", "shell", "-c", READ)])
def test_a_script_and_a_shell_read_the_values_of_servers(
    world: World, shop: Process, command: tuple[str, ...]
) -> None:
    assert world.run(*command).strip() == figure_of(shop)


# -- what does not


def test_development_and_production_never_meet(
    world: World, shop: Process, development: Process
) -> None:
    known = figure_of(shop)
    assert figure_of(development) != known
    cookie = login_at(development)[1].replace("session=", "__Host-session=", 1)
    assert shop.get("/v1/me", ("Cookie", cookie)).json() == [None]
    with in_room(shop) as there, in_room(development) as here:
        # A worker of production leaves the jobs of development alone.
        assert development.request("POST", "/v1/renew?text=x", headers=[SAME_SITE]).status == 204
        world.run("-m", "treefold", "worker", "--drain")
        assert world.queue.value("SELECT count(*) FROM pgqueuer") == 1
        listed = world.run("-m", "treefold", "jobs", "list").splitlines()
        assert listed == [
            "0 waiting, 0 running, 0 failed",
            "1 waiting in queue treefold:shop:development, of other names",
        ]
        listed = world.run("-m", "treefold", "jobs", "list", "--dev").splitlines()
        assert listed == ["1 waiting, 0 running, 0 failed"]
        world.run("-m", "treefold", "worker", "--drain", "--dev")
        assert here.recv(PATIENCE) == "x"
        there.send("last")
        assert there.recv(PATIENCE) == "last"
    assert figure_of(shop) == known


def test_a_test_run_beside_a_server_leaves_nothing_there(world: World, shop: Process) -> None:
    known = figure_of(shop)
    printed = world.run("-m", "pytest", "Tests", "-q", "-s", "-p", "no:cacheprovider")
    figure, cookie = (printed.split(f"{word} ")[1].split()[0] for word in ("FIGURE", "COOKIE"))
    assert figure != known
    assert figure_of(shop) == known
    # A server with the secret of the tests would know their session, had they met.
    assert shop.get("/v1/me", ("Cookie", f"__Host-session={cookie}")).json() == [None]


def test_another_application_meets_nothing(shop: Process, blog: Process) -> None:
    cookie = login_at(blog)
    assert shop.get("/v1/me", cookie).json() == [None]
    assert figure_of(blog) != figure_of(shop)
    assert blog.get("/v1/limited").status == 200
    with in_room(shop) as there, in_room(blog) as here:
        there.send("for the shop")
        here.send("for the blog")
        assert [there.recv(PATIENCE), here.recv(PATIENCE)] == ["for the shop", "for the blog"]


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        ({"TREEFOLD_SECRET_KEY": "x" * 40}, "got another secret_key than a running process has"),
        ({"TREEFOLD_DATABASE_URL": "postgresql://nowhere/shop"}, "got nowhere:5432/shop where"),
    ],
)
def test_a_server_with_the_name_of_another_deployment_does_not_start(
    world: World, shop: Process, variables: dict[str, str], text: str
) -> None:
    with pytest.raises(StartFailed) as caught:
        world.serve(variables=variables)
    assert "The names treefold:shop:production:* in Redis must belong to one deployment" in (
        caught.value.stderr
    )
    assert text in caught.value.stderr
    assert "set name = '...' in treefold.toml" in caught.value.stderr
    assert shop.get("/v1/me", login_at(shop)).json() == [1]
