"""Two applications, two Redis: each knows of the servers that it uses, and of no other."""

from __future__ import annotations

import asyncio
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from http_redis import Server, connected, started
from http_reloading import Live

from treefold_http import Application, Settings, SettingsError
from treefold_http._redis import close_redis, list_used_redis_clients, users
from treefold_http._runtime.name_space import TEST_RUN

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange

ONE, TWO = "one", "two"
KEY = "s" * 32

OK = "async def handler(request):\n    return 'ok'\n"
USE = {
    "limit": "RateLimit('1000/s', redis=True)",
    "sessions": "Sessions(store='redis', csrf=False, preload=True)",
}
HANDLERS = {
    "sessions": "from treefold_http.auth import login\n"
    "async def handler(request):\n    login(request, 1)\n    return 'ok'\n",
    "cache": "from treefold_http.cache import get_cache\n"
    "async def handler(request):\n"
    "    await get_cache('far').set('k', 1, ttl=60)\n    return 'ok'\n",
}


@dataclass(frozen=True)
class Use:
    """An application with one use of Redis, or none.

    Attributes:
        part: the part that needs it.
        server: `one` or `two`, the address in its settings even if nothing uses it.
    """

    part: str
    server: str

    def needs(self, server: str) -> bool:
        return self.part != "none" and self.server == server

    def application(self, root: Path, name: str, urls: dict[str, str]) -> Application:
        url = urls[self.server]
        code = "from treefold_http.middleware import RateLimit, Sessions\nmiddlewares = "
        files = {
            "Middleware/__init__.py": code + f"[{USE.get(self.part, '')}]\n",
            "Api/v1/Get.py": HANDLERS.get(self.part, OK),
        }
        settings = Settings(
            name=name, secret_key=KEY, health=True, redis_url=url, caches={"far": url}
        )
        return Application(write(root / name, files), settings=settings)


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


@pytest.fixture(autouse=True)
def _deployment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of deployments, and probes that ask each time."""
    monkeypatch.delenv(TEST_RUN, raising=False)
    monkeypatch.setattr("treefold_http._built_in.health.KEPT", 0.0)


@pytest.fixture(scope="module")
def servers() -> Iterator[dict[str, Server]]:
    with started() as one, started() as two:
        yield {ONE: one, TWO: two}


@pytest.fixture
def urls(servers: dict[str, Server]) -> Iterator[dict[str, str]]:
    for known in users.list_redis_clients():
        known._claims.clear()  # as a process that starts
    yield {name: server.url for name, server in servers.items()}
    for server in servers.values():
        with connected(server.url) as redis:
            redis.flushall()


PARTS = ("none", "limit", "sessions", "cache")
USES = [Use(part, server) for part in PARTS for server in (ONE, TWO)]
PAIRS = [
    pytest.param(a, b, id=f"{a.part}-{a.server}-{b.part}-{b.server}")
    for a, b in itertools.product(USES, USES)
]


@pytest.mark.parametrize(("a", "b"), PAIRS)
def test_each_is_ready_and_claims_by_the_servers_that_it_uses(
    tmp_path: Path,
    servers: dict[str, Server],
    urls: dict[str, str],
    exchange: type[Exchange],
    a: Use,
    b: Use,
) -> None:
    uses = {"a": a, "b": b}
    apps = {name: use.application(tmp_path, name, urls) for name, use in uses.items()}

    async def ask(name: str, target: str) -> int:
        return (await exchange("GET", target).run(apps[name])).status

    async def main() -> dict[str, int]:
        for name in apps:
            assert await ask(name, "/v1") == 200
        claimed = {server: _claimed(urls[server]) for server in urls}
        expected = {s: {n for n, use in uses.items() if use.needs(s)} for s in urls}
        assert claimed == expected
        servers[TWO].freeze()
        try:
            found = {name: await ask(name, "/readyz") for name in apps}
        finally:
            servers[TWO].resume()
        for app in apps.values():
            await app.lifespan.run_shutdown()
        return found

    found = asyncio.run(main())
    assert found == {name: 503 if use.needs(TWO) else 200 for name, use in uses.items()}
    assert {server: _claimed(urls[server]) for server in urls} == {ONE: set(), TWO: set()}


def _claimed(url: str) -> set[str]:
    with connected(url) as redis:
        return {key.decode().split(":")[1] for key in redis.keys("*:deployment")}


@pytest.mark.parametrize("part", ["limit", "sessions", "cache"])
def test_two_settings_of_one_folder_use_their_own_servers(
    tmp_path: Path, urls: dict[str, str], exchange: type[Exchange], part: str
) -> None:
    first = Use(part, ONE).application(tmp_path, "shop", urls)
    given = dataclasses.replace(first.settings, redis_url=urls[TWO], caches={"far": urls[TWO]})
    second = Application(first.root, settings=given)

    async def main() -> list[dict[str, int]]:
        found: list[dict[str, int]] = []
        for app in (first, second):
            assert (await exchange("GET", "/v1").run(app)).status == 200
            found.append({server: _count(urls[server]) for server in urls})
        await close_redis()
        return found

    both = asyncio.run(main())
    have = [[server for server, count in found.items() if count] for found in both]
    assert have == [[ONE], [ONE, TWO]]


def _count(url: str) -> int:
    with connected(url) as redis:
        return redis.dbsize()


@pytest.mark.parametrize("name", ["shop", "blog"])
def test_who_stops_leaves_the_other_connected_and_its_names_claimed(
    tmp_path: Path, urls: dict[str, str], exchange: type[Exchange], name: str
) -> None:
    stays = Use("limit", ONE).application(tmp_path, "shop", urls)
    given = dataclasses.replace(stays.settings, name=name)
    stops = Application(stays.root, settings=given)

    async def main() -> None:
        for app in (stays, stops):
            assert (await exchange("GET", "/v1").run(app)).status == 200
        before = _connections(urls[ONE])
        await stops.lifespan.run_shutdown()
        assert _claimed(urls[ONE]) == {"shop"}
        assert before
        assert _connections(urls[ONE]) == before
        await stays.lifespan.run_shutdown()
        assert _connections(urls[ONE]) == set()

    asyncio.run(main())


def _connections(url: str) -> set[str]:
    """The clients of a server that sent a command of the application."""
    with connected(url) as redis:
        return {one["id"] for one in redis.client_list() if "client" not in one["cmd"]}


@pytest.mark.parametrize("depth", [1, 2])
def test_a_probe_covers_what_is_mounted(
    tmp_path: Path,
    servers: dict[str, Server],
    urls: dict[str, str],
    exchange: type[Exchange],
    depth: int,
) -> None:
    inner = Use("limit", TWO).application(tmp_path, "inner", urls)
    for level in range(depth):
        outer = Use("limit", ONE).application(tmp_path, f"outer{level}", urls)
        outer.mount("/inner", inner)
        inner = outer

    async def main() -> list[Any]:
        found = [await exchange("GET", "/readyz").run(inner)]
        servers[TWO].freeze()
        try:
            found.append(await exchange("GET", "/readyz").run(inner))
        finally:
            servers[TWO].resume()
        await inner.lifespan.run_shutdown()
        return [answer.json() for answer in found]

    ready, unready = asyncio.run(main())
    assert ready == {"status": "ready"}
    assert unready == {"status": "unavailable", "failed": ["redis"]}


def test_another_deployment_on_a_server_that_it_does_not_use_refuses_no_start(
    tmp_path: Path, urls: dict[str, str], exchange: type[Exchange]
) -> None:
    other = Use("limit", TWO).application(tmp_path, "shop", urls)
    mine = Use("limit", ONE).application(tmp_path / "own", "shop", urls)
    mine = Application(mine.root, settings=dataclasses.replace(mine.settings, secret_key="t" * 32))

    async def main() -> None:
        for app in (other, mine):
            assert (await exchange("GET", "/v1").run(app)).status == 200
        third = dataclasses.replace(mine.settings, redis_url=urls[TWO])
        with pytest.raises(SettingsError, match="must belong to one deployment"):
            await Application(mine.root, settings=third).lifespan.run_startup()
        for app in (other, mine):
            await app.lifespan.run_shutdown()

    asyncio.run(main())


LIMIT = "from treefold_http.middleware import RateLimit\nlimit = RateLimit('1000/s', redis=True)\n"
CACHED = (
    "from treefold_http.cache import cached\n@cached(60, alias='far')\n"
    "async def handler(request):\n    return 'ok'\n"
)
ENTRIES = {
    "limit": {"Middleware/__init__.py": f"{LIMIT}middlewares = [limit]\n"},
    "limit of a route": {"Api/v1/Get.py": f"{LIMIT}middlewares = [limit]\n{OK}"},
    "limit below a prefix": {
        "Middleware/__init__.py": f"from treefold_http.middleware import under\n{LIMIT}"
        "middlewares = [under('/v1', limit)]\n"
    },
    "sessions": {
        "Middleware/__init__.py": "from treefold_http.middleware import Sessions\n"
        "middlewares = [Sessions(store='redis', csrf=False)]\n"
    },
    "answers": {"Api/v1/Get.py": CACHED},
}
"""The files of each kind of entry that needs a server."""
EMPTY = {"Middleware/__init__.py": "middlewares = []\n", "Api/v1/Get.py": OK}
OTHER = {"Api/v1/Other/Get.py": OK}
AWAY = "redis://127.0.0.1:1"


def _is_ready(live: Live) -> bool:
    return live.answer("/readyz").status == 200


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_save_ends_the_use_of_a_server_with_its_last_entry(
    tmp_path: Path, ask: Callable[..., Answer], entry: str
) -> None:
    root = write(tmp_path / "shop", {**EMPTY, **OTHER, **ENTRIES[entry]})
    caches = {"far": AWAY}
    settings = Settings(name="shop", secret_key=KEY, health=True, redis_url=AWAY, caches=caches)
    edited = Live(Application(root, settings=settings, dev=True), ask)
    assert _is_ready(edited) is False
    edited.edit({"Api/v1/Other/Get.py": f"{OK}\n"})
    assert _is_ready(edited) is False, "an entry that the save did not touch"
    edited.edit({name: EMPTY[name] for name in ENTRIES[entry]})
    assert _is_ready(edited) is True
    edited.edit(ENTRIES[entry])
    assert _is_ready(edited) is False
    edited.edit({"Api/v1/Get.py": "def handler(:\n"})
    assert _is_ready(edited) is False, "the last version of a broken file serves"


def test_a_command_after_a_save_begins_a_use_again(
    tmp_path: Path, urls: dict[str, str], ask: Callable[..., Answer]
) -> None:
    use = Use("cache", ONE)
    app = use.application(tmp_path, "shop", urls)
    edited = Live(Application(app.root, settings=app.settings, dev=True), ask)
    assert list_used_redis_clients(edited.app) == []
    assert edited.answer("/v1").status == 200
    assert [client.url for client in list_used_redis_clients(edited.app)] == [urls[ONE]]
    edited.edit(OTHER)
    assert list_used_redis_clients(edited.app) == []
    assert edited.answer("/v1").status == 200
    assert [client.url for client in list_used_redis_clients(edited.app)] == [urls[ONE]]


def test_a_deleted_file_takes_its_use_with_it_while_another_one_is_broken(
    tmp_path: Path, ask: Callable[..., Answer]
) -> None:
    limited = f"{LIMIT}middlewares = [limit]\n{OK}"
    files = {**EMPTY, "Api/v1/L/Get.py": limited, "Api/v1/M/Get.py": OK}
    root = write(tmp_path / "shop", files)
    settings = Settings(name="shop", secret_key=KEY, health=True, redis_url=AWAY)
    edited = Live(Application(root, settings=settings, dev=True), ask)
    edited.edit({"Api/v1/M/Get.py": "def ("})
    assert _is_ready(edited) is False
    edited.edit({"Api/v1/L/Get.py": None})
    assert _is_ready(edited) is True
    edited.edit({"Api/v1/M/Get.py": limited})
    assert _is_ready(edited) is False
