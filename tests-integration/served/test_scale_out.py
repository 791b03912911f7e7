"""Two servers of two workers each, on one Redis and one PostgreSQL, behave as one application.

Every check asks each of the four processes.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from itertools import cycle
from typing import Any, TypeVar

import http_redis
import orm_postgres
import pytest
from http_messages import Answer
from serving import PATIENCE, Process, write_tree
from websockets.sync.client import ClientConnection, connect

T = TypeVar("T")

TREE = {
    "Api/v1/Login/Post.py": """
        from treefold.auth import login

        async def handler(request):
            login(request, "ada")
        """,
    "Api/v1/Logout/Post.py": """
        from treefold.auth import logout

        async def handler(request):
            logout(request)
        """,
    "Api/v1/Pid/Get.py": """
        import os
        from treefold import Response

        async def handler(request):
            return Response.json(os.getpid())
        """,
    "Api/v1/Me/Get.py": """
        async def handler(request):
            return [request.session.user]
        """,
    "Api/v1/Note/Post.py": """
        from Models.note import Note
        from treefold.cache import get_cache

        async def handler(request):
            await Note.objects.acreate(text=(await request.json())["text"])
            await get_cache().invalidate({name!r})
        """,
    "Api/v1/Note/Get.py": """
        from Models.note import Note

        async def handler(request):
            return list(await Note.objects.values_list("text", flat=True))
        """,
    "Services/overview.py": """
        import secrets
        from Models.note import Note
        from treefold.cache import cached

        @cached(600, tags=[{name!r}], key=lambda: {name!r})  # the Redis may be one of other runs
        async def overview():
            return {"computed": secrets.token_hex(8), "notes": await Note.objects.acount()}
        """,
    "Api/v1/Overview/Get.py": """
        from Services.overview import overview

        async def handler(request):
            return await overview()
        """,
    "Api/v1/Limited/Get.py": "async def handler(request): return {}",
    "Api/v1/Room/Socket.py": """
        import os
        from Services.chat import rooms

        async def handler(websocket):
            await websocket.accept()
            async with rooms.joined("all", websocket):
                await websocket.send_text(str(os.getpid()))
                async for text in websocket.iter_text():
                    await rooms.broadcast("all", text)
        """,
    "Services/chat.py": "from treefold import Rooms\n\nrooms = Rooms(redis={redis!r})\n",
    "hooks.py": "from Services.chat import rooms\n\non_shutdown = [rooms.close]\n",
    "Models/note.py": """
        from treefold.orm import Model, fields

        class Note(Model):
            text = fields.CharField(max_length=50)
        """,
    "Middleware/__init__.py": """
        from treefold.middleware import RateLimit, Sessions, under

        middlewares = [
            Sessions(store="redis"),
            under("/v1/limited", RateLimit("20/hour", burst=20, redis=True, name={name!r})),
        ]
        """,
    "treefold.toml": """
        redis_url = {redis!r}

        [caches]
        default = {redis!r}
        """,
}
SAME_SITE = ("Sec-Fetch-Site", "same-origin")


class Fleet:
    """The servers, asked in turn as a balancer would, or each process of them."""

    def __init__(self, servers: list[Process]) -> None:
        self._servers = servers
        self._turn = cycle(servers)

    def ask(self, method: str, target: str, *fields: tuple[str, str], body: Any = None) -> Answer:
        """Send a request to the next server."""
        content = b"" if body is None else json.dumps(body).encode()
        given = [SAME_SITE, ("Content-Type", "application/json"), *fields]
        answer = next(self._turn).request(method, target, headers=given, body=content)
        assert answer.status < 300, answer
        return answer

    def of_each_process(self, connected: Callable[[Process], tuple[int, T]]) -> list[T]:
        """Return a connection with each of the four processes.

        While the first process of a server is stopped, the second one accepts.

        Args:
            connected: connects to a server; returns the id of the process, and the connection.
        """
        found: dict[int, T] = {}
        for server in self._servers:
            pid, first = connected(server)
            os.kill(pid, signal.SIGSTOP)
            try:
                other, second = connected(server)
            finally:
                os.kill(pid, signal.SIGCONT)
            found |= {pid: first, other: second}
        assert len(found) == 4
        return list(found.values())

    @contextmanager
    def lines(self) -> Generator[list[HTTPConnection]]:
        """Connections for requests, one with each process."""
        with ExitStack() as stack:

            def connected(server: Process) -> tuple[int, HTTPConnection]:
                line = HTTPConnection(*server.address, timeout=PATIENCE)
                stack.callback(line.close)
                return fetch(line, "/v1/pid")[1], line

            yield self.of_each_process(connected)

    def answers(self, target: str, *fields: tuple[str, str]) -> list[Any]:
        """Return what each process answers."""
        with self.lines() as lines:
            return [fetch(line, target, *fields)[1] for line in lines]


def fetch(line: HTTPConnection, target: str, *fields: tuple[str, str]) -> tuple[int, Any]:
    """Return the status and the document of a GET on a connection that stays open."""
    line.request("GET", target, headers=dict(fields))
    answer = line.getresponse()
    return answer.status, json.loads(answer.read())


@pytest.fixture(scope="module")
def fleet(postgres_server: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with ExitStack() as stack:
        redis = stack.enter_context(http_redis.server())
        database = stack.enter_context(orm_postgres.database(postgres_server))
        orm_postgres.ask(database, "CREATE TABLE note (id bigserial PRIMARY KEY, text varchar(50))")
        name = f"scale-{secrets.token_hex(6)}"
        tree = {
            file: source.replace("{redis!r}", repr(redis)).replace("{name!r}", repr(name))
            for file, source in TREE.items()
        }
        root = write_tree(tmp_path_factory.mktemp("scale"), tree)
        secret = secrets.token_hex(32)
        # The names of a deployment, not those of this test run: both servers claim them.
        variables = {"TREEFOLD_SECRET_KEY": secret, "TREEFOLD_NAME": name, "TREEFOLD_TEST_RUN": ""}
        servers = [
            Process(
                root,
                parser,
                dev=False,
                default_version=None,
                database=database,
                workers=2,
                variables=variables,
            )
            for parser in ("h11", "httptools")
        ]
        try:
            yield Fleet(servers)
        finally:
            written = [server.stop() for server in servers]
            with http_redis.connected(redis) as client:
                client.delete(*client.scan_iter(f"treefold:{name}:*"))
        assert [line for text in written for line in text.splitlines() if "[ERROR]" in line] == []


def test_a_session_of_one_server_is_read_and_ended_on_all(fleet: Fleet) -> None:
    made = fleet.ask("POST", "/v1/login").value("set-cookie")
    cookie = ("Cookie", made.partition(";")[0])
    assert fleet.answers("/v1/me", cookie) == [["ada"]] * 4
    fleet.ask("POST", "/v1/logout", cookie)
    assert fleet.answers("/v1/me", cookie) == [[None]] * 4


def test_rows_and_cached_values_and_their_invalidation_are_shared(fleet: Fleet) -> None:
    for notes in (0, 1):
        first = fleet.ask("GET", "/v1/overview").json()
        assert first["notes"] == notes
        assert fleet.answers("/v1/overview") == [first] * 4
        if not notes:
            fleet.ask("POST", "/v1/note", body={"text": "Oaks"})
    assert fleet.answers("/v1/note") == [["Oaks"]] * 4


def test_a_rate_limit_counts_the_requests_of_all_processes(fleet: Fleet) -> None:
    with fleet.lines() as lines, ThreadPoolExecutor(4) as threads:

        def ask_often(line: HTTPConnection) -> list[int]:
            return [fetch(line, "/v1/limited")[0] for _ in range(10)]

        statuses = [status for found in threads.map(ask_often, lines) for status in found]
    assert sorted(statuses) == [200] * 20 + [429] * 20


def test_a_message_reaches_the_sockets_of_all_processes(fleet: Fleet) -> None:
    with ExitStack() as stack:

        def connected(server: Process) -> tuple[int, ClientConnection]:
            host, port = server.address
            socket = stack.enter_context(connect(f"ws://{host}:{port}/v1/room", proxy=None))
            return int(socket.recv(PATIENCE)), socket

        members = fleet.of_each_process(connected)
        for number, member in enumerate(members):
            member.send(f"{number}")
            assert [other.recv(PATIENCE) for other in members] == [f"{number}"] * 4
