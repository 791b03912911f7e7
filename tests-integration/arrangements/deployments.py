"""Deployments beside each other on one Redis: who they are, and what each of them asks the others.

A deployment is a name, an environment and a secret; its processes share sessions, limits, kept
pages, values and rooms, and no other deployment does. `ask_for_traces` looks in one process for all
that another one has left. As in `oracle`, what is right is computed from the names alone.
"""

from __future__ import annotations

import json
import os
import re
import signal
import urllib.error
import urllib.request
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from forked_commands import Forked, ForkServer
from serving import Lines, write_tree
from websockets.sync.client import connect

TREE = {
    "Middleware/__init__.py": """
        from treefold.middleware import Sessions

        middlewares = [Sessions(store="redis", csrf=False)]
        """,
    "Services/rooms.py": """
        import os
        from treefold import Rooms

        rooms = Rooms(redis=os.environ["TREEFOLD_REDIS_URL"])
        """,
    "Services/made.py": """
        import os
        from treefold.cache import cached

        @cached(60, tags=["made"])
        async def make() -> int:
            return os.getpid()
        """,
    "Api/v1/Page/Get.py": """
        import os
        from treefold.cache import cached

        @cached(60)
        async def handler(request):
            return {"page": os.getpid()}
        """,
    "Api/v1/Value/Get.py": """
        from Services.made import make
        from treefold.cache import get_cache

        async def handler():
            return {"value": await get_cache().get("value"), "function": await make()}
        """,
    "Api/v1/Value/Post.py": """
        from treefold.cache import get_cache

        async def handler(text: str):
            await get_cache().set("value", text, ttl=60)
        """,
    "Api/v1/Value/Delete.py": """
        from treefold.cache import get_cache

        async def handler():
            await get_cache().invalidate("made")
            await get_cache().clear()
        """,
    "Api/v1/Limit/Get.py": """
        from treefold.middleware import RateLimit

        middlewares = [RateLimit("1/hour", redis=True)]

        async def handler():
            return {}
        """,
    "Api/v1/Session/Post.py": """
        from treefold.auth import login

        async def handler(request):
            login(request, 1)
        """,
    "Api/v1/Session/Get.py": """
        async def handler(request):
            return {"user": request.session.user}
        """,
    "Api/v1/Room/Socket.py": """
        from Services.rooms import rooms
        from treefold import WebSocket

        async def handler(websocket: WebSocket):
            await websocket.accept()
            async with rooms.joined("oaks", websocket):
                await websocket.send_text("joined")
                async for _ in websocket.iter_text():
                    pass
        """,
    "Api/v1/Room/Post.py": """
        from Services.rooms import rooms

        async def handler(text: str):
            await rooms.broadcast("oaks", text)
        """,
}

SHARED = frozenset({"page", "value", "function", "limit", "session", "room"})
"""What the processes of one deployment share."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The names of a process, and what tells it apart from a stranger of the same names.

    Attributes:
        environment: None for what `serve` is without the setting.
        test_run: the number of the test run that started it; None outside of tests.
        database: its number in Redis.
        tables: the address of the database of its models.
    """

    name: str = "shop"
    environment: str | None = None
    test_run: str | None = None
    database: int = 0
    secret: str = "the secret of the deployments, which has 32 bytes"
    tables: str | None = None

    def shares_with(self, other: Deployment) -> frozenset[str]:
        """Return what two processes must share: everything or nothing."""
        return SHARED if self == other else frozenset()

    def variables(self, redis: str) -> Mapping[str, str]:
        """Return the environment variables of its processes."""
        address = f"{redis}/{self.database}"
        variables = {
            "TREEFOLD_NAME": self.name,
            "TREEFOLD_REDIS_URL": address,
            "TREEFOLD_CACHE_URL": address,
            "TREEFOLD_SECRET_KEY": self.secret,
        }
        if self.environment is not None:
            variables["TREEFOLD_ENVIRONMENT"] = self.environment
        if self.tables is not None:
            variables["TREEFOLD_DATABASE_URL"] = self.tables
        if self.test_run is not None:
            variables["TREEFOLD_TEST_RUN"] = self.test_run
        return variables


class Instance:
    """A process that serves a deployment."""

    def __init__(self, port: int) -> None:
        self.address = f"127.0.0.1:{port}"

    def ask(self, method: str, path: str, cookie: str = "") -> tuple[int, Mapping[str, str], str]:
        """Send a request; return status, cookie fields and body."""
        request = urllib.request.Request(f"http://{self.address}{path}", method=method)
        request.add_header("Host", "shop.example")  # kept pages are those of a host
        if cookie:
            request.add_header("Cookie", cookie)
        try:
            with urllib.request.urlopen(request, timeout=15) as response:
                return response.status, dict(response.headers), response.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, dict(refusal.headers), refusal.read().decode()


@contextmanager
def serving(
    deployment: Deployment, *, fork_server: ForkServer, root: Path, redis: str
) -> Generator[Instance]:
    """Serve a deployment with `treefold serve`."""
    process = _start(deployment, fork_server=fork_server, root=root, redis=redis)
    assert process.stdout is not None
    with process.stdout:
        lines = Lines(os.fdopen(os.dup(process.stdout.fileno()), "rb"))
        try:
            yield Instance(lines.wait_for(_find_port))
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(20)
            lines.close()


def fail_to_serve(
    deployment: Deployment, *, fork_server: ForkServer, root: Path, redis: str
) -> str:
    """Return what `treefold serve` prints for a deployment that it must not serve."""
    process = _start(deployment, fork_server=fork_server, root=root, redis=redis)
    try:
        output, _ = process.communicate(20)
    finally:
        process.kill()
    assert process.returncode == 1, output
    return output


def _start(deployment: Deployment, *, fork_server: ForkServer, root: Path, redis: str) -> Forked:
    write_tree(root, TREE)
    return fork_server.start(
        ["serve", "--port", "0", "--app-dir", str(root)],
        cwd=root,
        env={"PATH": "/usr/bin:/bin", **deployment.variables(redis)},
    )


def _find_port(lines: list[str]) -> int | None:
    found = re.search(r"serving on http://127\.0\.0\.1:([0-9]+)", "\n".join(lines))
    return int(found[1]) if found else None


def find_traces(one: Instance, other: Instance) -> frozenset[str]:
    """Leave everything in one process, and return what of it is found in another."""
    found: set[str] = set()
    one.ask("POST", "/v1/value?text=oak")
    cookie = one.ask("POST", "/v1/session")[1]["set-cookie"].partition(";")[0]
    assert one.ask("GET", "/v1/limit")[0] in (200, 429)
    for name, path in (("page", "/v1/page"), ("function", "/v1/value")):
        if _read(one, path)[name] == _read(other, path)[name]:
            found.add(name)
    if _read(other, "/v1/value")["value"] == "oak":
        found.add("value")
    if other.ask("GET", "/v1/limit")[0] == 429:
        found.add("limit")
    if _read(other, "/v1/session", cookie)["user"] == 1:
        found.add("session")
    if "from the one" in _listen(one, other):
        found.add("room")
    return frozenset(found)


def is_emptied_by(one: Instance, other: Instance) -> bool:
    """Return True if values of one process are gone after `clear` and `invalidate` of another."""
    one.ask("POST", "/v1/value?text=elm")
    before = _read(one, "/v1/value")
    assert before["value"] == "elm"
    other.ask("DELETE", "/v1/value")
    return _read(one, "/v1/value") != before


def _listen(one: Instance, other: Instance) -> list[str]:
    """Return what a socket of `other` hears of both, up to its own message, which is the last."""
    heard: list[str] = []
    with connect(f"ws://{other.address}/v1/room") as socket:
        assert socket.recv(15) == "joined"
        one.ask("POST", "/v1/room?text=from%20the%20one")
        other.ask("POST", "/v1/room?text=end")
        while not heard or heard[-1] != "end":
            heard.append(str(socket.recv(15)))
    return heard


def _read(instance: Instance, path: str, cookie: str = "") -> dict[str, object]:
    status, _, body = instance.ask("GET", path, cookie)
    assert status == 200, body
    return json.loads(body)
