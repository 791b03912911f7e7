"""The lock and a client follow the saves of `treefold dev`: written again, or left as they are."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from treefold import Application
from treefold_cli._contract.clients import ClientTarget
from treefold_cli._contract.followers import ContractFollower
from treefold_http.contract import LockBuilder, build_project_lock
from treefold_http.reload import Reloaded, Reloader

HANDLER = """
from dataclasses import dataclass

@dataclass
class User:
    id: int
    {member}

async def handler(page: int = {page}) -> list[User]:
    '''List the users.'''
    return []
"""
MODEL = "from dataclasses import dataclass\n@dataclass\nclass U:\n"
FILE = "Api/v1/User/Get.py"


class Project:
    """A project as `dev` has it: booted, and reloaded after each save."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.save(FILE, HANDLER.format(member="name: str", page=1))
        self.save("Api/v1/Health/Get.py", "async def handler() -> dict[str, bool]: ...")
        self.app = Application(root, dev=True)
        self.app.boot()
        self.reloader = Reloader(self.app)

    def save(self, name: str, text: str) -> None:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def save_and_reload(self, name: str, text: str) -> None:
        self.save(name, text)
        assert isinstance(self.reloader.reload([name]), Reloaded | None)

    def follow(self) -> ContractFollower:
        client = ClientTarget.parse("ts:web/api", self.root)
        return ContractFollower(self.app, writes_lock=True, clients=[client])

    def read(self, name: str) -> str:
        return (self.root / name).read_text()


def test_a_save_writes_the_lock_and_the_client(tmp_path: Path) -> None:
    project = Project(tmp_path)
    follower = project.follow()

    follower.write()
    assert "query   page int = 1\n" in project.read("routes.lock")
    assert "List the users." in project.read("web/api/client.d.ts")

    project.save_and_reload(FILE, HANDLER.format(member="mail: str | None", page=2))
    follower.write()
    assert "query   page int = 2\n" in project.read("routes.lock")
    assert "  mail    str | null\n" in project.read("routes.lock")
    assert "mail: string | null" in project.read("web/api/client.d.ts")


SLOW = """
import asyncio

async def handler(page: int = {page}) -> list[int]:
    for _ in range(20):
        await asyncio.sleep(0)
    return [page]
"""


class NotingThreads(ThreadPoolExecutor):
    """Threads that note what they begin, and how often they let the event loop run."""

    def __init__(self, notes: list[str]) -> None:
        super().__init__(1)
        self.notes = notes

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.notes.append(f"lock in turns of at most 1 ms: {sys.getswitchinterval() <= 0.001}")
        return super().submit(fn, *args, **kwargs)


async def ask(app: Application, path: str) -> list[dict[str, Any]]:
    """Send a request to an application; return the messages of its answer."""
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": path, "raw_path": path.encode()}
    scope |= {"query_string": b"", "headers": [(b"host", b"localhost")], "http_version": "1.1"}
    scope |= {"scheme": "http", "root_path": "", "client": ("127.0.0.1", 1), "server": None}
    await app({**scope, "asgi": {"version": "3.0"}}, receive, send)
    return sent


def test_a_saved_route_is_served_before_its_lock_is_made(tmp_path: Path) -> None:
    project = Project(tmp_path)
    follower = project.follow()
    follower.write()
    project.save_and_reload("Api/v1/Slow/Get.py", SLOW.format(page=7))
    notes: list[str] = []
    interval = sys.getswitchinterval()

    async def serve() -> None:
        asyncio.get_running_loop().set_default_executor(NotingThreads(notes))
        await follower.report_after_reload(["Api/v1/Slow/Get.py"])
        _, body = await ask(project.app, "/v1/slow")
        notes.append(f"served {body['body'].decode()}")
        assert follower._running is not None
        await follower._running

    asyncio.run(asyncio.wait_for(serve(), 30))

    assert "page int = 7" in project.read("routes.lock")
    assert notes == ["served [7]", "lock in turns of at most 1 ms: True"]
    assert sys.getswitchinterval() == interval


def test_a_save_that_clients_do_not_notice_writes_nothing(tmp_path: Path) -> None:
    project = Project(tmp_path)
    follower = project.follow()
    follower.write()
    files = [path for path in tmp_path.rglob("*") if path.suffix in (".lock", ".ts", ".js")]
    before = {path: path.stat().st_mtime_ns for path in files}

    text = HANDLER.format(member="name: str", page=1)
    project.save_and_reload(FILE, text.replace("return []", "return [User(1, 'Ann')]"))
    follower.write()

    assert len(before) == 4
    assert {path: path.stat().st_mtime_ns for path in files} == before


def test_nothing_is_written_while_a_file_is_broken(tmp_path: Path) -> None:
    project = Project(tmp_path)
    follower = project.follow()
    follower.write()
    before = project.read("routes.lock")

    project.save_and_reload(FILE, "broken(")
    project.save_and_reload("Api/v1/Health/Get.py", "async def handler() -> None: ...")
    follower.write()
    assert project.read("routes.lock") == before

    project.save_and_reload(FILE, HANDLER.format(member="name: str", page=3))
    follower.write()
    assert "page int = 3" in project.read("routes.lock")
    assert "GET /v1/health\n  204\n" in project.read("routes.lock")


def test_what_is_kept_is_what_would_be_made_again(tmp_path: Path) -> None:
    project = Project(tmp_path)
    builder = LockBuilder(project.app)
    builder.build()
    saves: list[tuple[str, str]] = [
        (FILE, HANDLER.format(member="name: int", page=1)),
        ("Services/models.py", f"{MODEL}    a: int"),
        (FILE, "from Services.models import U\nasync def handler() -> U: ..."),
        ("Services/models.py", f"{MODEL}    b: int"),
        ("Api/v1/User/[id]/Get.py", "async def handler(id: int) -> None: ..."),
        ("Api/v2/User/Get.py", HANDLER.format(member="b: int", page=1)),
        (
            "Middleware/__init__.py",
            "from treefold.middleware import under\n"
            "async def guard(request, call_next): return await call_next(request)\n"
            "middlewares = [under('/v1/user', guard)]",
        ),
    ]
    for name, text in saves:
        project.save_and_reload(name, text)

        assert builder.build() == build_project_lock(project.app), name
    assert "guard" in str(builder.build().lock)


def test_the_types_of_former_saves_are_forgotten(tmp_path: Path) -> None:
    project = Project(tmp_path)
    builder = LockBuilder(project.app)
    for page in range(20):
        project.save_and_reload(FILE, HANDLER.format(member="name: str", page=page))
        builder.build()

    assert len(builder._named.types) == 1
