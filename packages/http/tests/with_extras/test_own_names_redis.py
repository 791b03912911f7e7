"""One Redis, several applications: they meet only where they say so, and a deployment is whole."""

from __future__ import annotations

import asyncio
import dataclasses
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from http_redis import Gate, Server, connected, started

from treefold_http import Application, BootError, Rooms, Settings, SettingsError, WebSocket
from treefold_http._redis import close_redis, users
from treefold_http._redis.client import SharedRedis
from treefold_http._runtime.current_application import enter_application
from treefold_http._runtime.name_space import TEST_RUN
from treefold_http.cache import configure_cache, get_cache
from treefold_http.testing import TestClient

if TYPE_CHECKING:
    from packages.http.tests.conftest import Exchange, Lines, Socket

SECRET, OTHER = "s" * 32, "t" * 32
SITE = {"Origin": "http://testserver"}


@pytest.fixture(autouse=True)
def _no_test_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Names of deployments: those of a test run would never meet."""
    monkeypatch.delenv(TEST_RUN, raising=False)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server on which no other test run claims names."""
    with started() as made:
        yield made


@pytest.fixture
def url(server: Server) -> Iterator[str]:
    for known in users.list_redis_clients():
        known._claims.clear()  # as a process that starts
    yield server.url
    with connected(server.url) as redis:
        redis.flushall()


def settings(name: str = "shop", **others: Any) -> Settings:
    given: dict[str, Any] = {"secret_key": SECRET, **others}
    return Settings(name=name, **given)


# -- which applications meet

APART = [
    ("shop", settings("shop"), settings("blog")),
    ("environment", settings(), settings(environment="staging")),
]
PAIRS = [pytest.param(one, two, id=name) for name, one, two in APART]


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_limits_of_two_applications_do_not_meet(
    tmp_path: Path, url: str, exchange: type[Exchange], one: Settings, two: Settings
) -> None:
    code = "from treefold_http.middleware import RateLimit\n"
    code += f"middlewares = [RateLimit('2/hour', redis={url!r})]\n"
    root = write(tmp_path, {"Middleware/__init__.py": code, "Api/v1/Get.py": OK})
    apps = [Application(root, settings=one), Application(root, settings=two)]

    async def main() -> list[int]:
        again = Application(root, settings=one)
        found = [(await exchange("GET", "/v1").run(app)).status for app in (*apps, apps[0], again)]
        await close_redis()
        return found

    assert asyncio.run(main()) == [200, 200, 200, 429]


def test_a_limit_that_says_shared_counts_for_both(
    tmp_path: Path, url: str, exchange: type[Exchange]
) -> None:
    code = "from treefold_http.middleware import RateLimit\n"
    code += f"middlewares = [RateLimit('2/hour', redis={url!r}, shared=True)]\n"
    root = write(tmp_path, {"Middleware/__init__.py": code, "Api/v1/Get.py": OK})
    made = [settings("shop"), settings("blog"), settings("shop", environment="staging")]
    apps = [Application(root, settings=one) for one in made]

    async def main() -> list[int]:
        chosen = (apps[0], apps[1], apps[1], apps[2])
        found = [(await exchange("GET", "/v1").run(app)).status for app in chosen]
        await close_redis()
        return found

    assert asyncio.run(main()) == [200, 200, 429, 200]


OK = "async def handler(request):\n    return 'ok'\n"
LOGIN = "from treefold_http.auth import login\nasync def handler(request):\n    login(request, 1)\n"
WHO = "async def handler(request):\n    return {'user': request.session.user}\n"


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return root


def sessions(tmp_path: Path, url: str, options: str = "") -> Path:
    code = "from treefold_http.middleware import Sessions\n"
    code += f"middlewares = [Sessions(redis={url!r}, csrf=False{options})]\n"
    files = {
        "Middleware/__init__.py": code,
        "Api/v1/Login/Post.py": LOGIN,
        "Api/v1/Who/Get.py": WHO,
    }
    return write(tmp_path, files)


async def user_at(exchange: type[Exchange], *apps: Application) -> list[Any]:
    """Log in at the first application, and return who the client is at each, with its cookie."""
    answer = await exchange("POST", "/v1/login").run(apps[0])
    cookie = answer.fields("set-cookie")[0].partition(";")[0]
    found: list[Any] = []
    for app in apps:
        who = await exchange("GET", "/v1/who", headers=[("cookie", cookie)]).run(app)
        found.append(who.json()["user"])
    await close_redis()
    return found


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_a_session_is_nobody_at_another_application(
    tmp_path: Path, url: str, exchange: type[Exchange], one: Settings, two: Settings
) -> None:
    root = sessions(tmp_path, url)
    apps = [Application(root, settings=each) for each in (one, two, one)]

    assert asyncio.run(user_at(exchange, *apps)) == [1, None, 1]


def test_a_session_that_is_shared_is_known_to_both(
    tmp_path: Path, url: str, exchange: type[Exchange]
) -> None:
    root = sessions(tmp_path, url, ", shared=True")
    made = [settings("shop"), settings("blog"), settings("blog", environment="staging")]
    apps = [Application(root, settings=each) for each in made]

    assert asyncio.run(user_at(exchange, *apps)) == [1, 1, None]


def test_a_session_of_a_test_is_nobody_in_production(
    tmp_path: Path, url: str, exchange: type[Exchange]
) -> None:
    root = sessions(tmp_path, url)
    tested = Application(root, settings=settings())
    with TestClient(tested) as client:
        assert client.post("/v1/login").status_code == 204
        value = client.cookies["__Host-session"]

    async def main() -> Any:
        headers = [("cookie", f"__Host-session={value}")]
        app = Application(root, settings=settings())
        who = await exchange("GET", "/v1/who", headers=headers).run(app)
        await close_redis()
        return who.json()

    assert asyncio.run(main()) == {"user": None}


@pytest.fixture
def cache(url: str) -> str:
    alias = f"c{secrets.token_hex(4)}"
    configure_cache(alias, url)
    return alias


@pytest.mark.parametrize(("one", "two"), PAIRS)
def test_a_value_and_a_clear_stay_with_their_application(
    tmp_path: Path, cache: str, one: Settings, two: Settings
) -> None:
    apps = [Application(tmp_path, settings=each) for each in (one, two)]

    async def main() -> None:
        with enter_application(apps[0]):
            await get_cache(cache).set("k", "shop", ttl=60, tags=["t"])
        with enter_application(apps[1]):
            assert await get_cache(cache).get("k") is None
            assert await asyncio.to_thread(get_cache(cache).sync.get, "k") is None
            assert await get_cache(cache).invalidate("t")
            assert await get_cache(cache).clear()
        with enter_application(Application(tmp_path, settings=one)):
            assert await get_cache(cache).get("k") == "shop"
            assert await asyncio.to_thread(get_cache(cache).sync.get, "k") == "shop"
        await close_redis()

    asyncio.run(main())


def test_a_cache_with_shared_in_its_address_is_one(tmp_path: Path, url: str) -> None:
    alias = f"c{secrets.token_hex(4)}"
    configure_cache(alias, f"{url}?shared=true")

    async def main() -> None:
        with enter_application(Application(tmp_path, settings=settings("shop"))):
            await get_cache(alias).set("k", 1, ttl=60)
        with enter_application(Application(tmp_path, settings=settings("blog"))):
            assert await get_cache(alias).get("k") == 1
        await close_redis()

    asyncio.run(main())


@pytest.mark.parametrize("option", ["db=0", "shared=true", "db=0&shared=true&socket_timeout=1"])
def test_a_cache_is_found_at_a_unix_socket(tmp_path: Path, url: str, option: str) -> None:
    alias = f"c{secrets.token_hex(4)}"
    configure_cache(alias, f"unix://{tmp_path}/redis.sock?{option}")

    async def main() -> None:
        gate = Gate(url)
        await gate.open_at(tmp_path / "redis.sock")
        with enter_application(Application(tmp_path, settings=settings("shop"))):
            await get_cache(alias).set("k", 1, ttl=60)
            assert await get_cache(alias).get("k") == 1
            assert await asyncio.to_thread(get_cache(alias).sync.get, "k") == 1
        await close_redis()
        await gate.cut()

    asyncio.run(main())


@pytest.mark.parametrize("option", ["shared=1", "shared=", "shared=true&shared=x"])
def test_an_option_shared_that_is_no_truth_is_refused(option: str) -> None:
    with pytest.raises(SettingsError, match="Option shared of cache 'x' must be true or false"):
        configure_cache("x", f"redis://127.0.0.1?{option}")


# -- rooms

Joined = Callable[..., Any]


@pytest.fixture
def in_room(socket: type[Socket]) -> Joined:
    """Join the room `lobby` as a client of an application."""

    @asynccontextmanager
    async def joined(rooms: Rooms, app: Application) -> AsyncGenerator[Socket]:
        client = socket("/v1/x", stays=True)
        websocket: WebSocket = await client.open(app)
        await websocket.accept()
        await rooms.join("lobby", websocket)
        try:
            yield client
        finally:
            await rooms.forget(websocket)
            await rooms.close()

    return joined


def send(work: Awaitable[None]) -> None:
    async def main() -> None:
        async with asyncio.timeout(20):
            await work
            await close_redis()

    asyncio.run(main())


@pytest.mark.parametrize(
    ("one", "two", "database"),
    [
        *((one, two, 0) for _, one, two in APART),
        (settings(), settings(), 1),
    ],
    ids=["shop", "environment", "database"],
)
def test_a_broadcast_stays_with_its_application(
    tmp_path: Path,
    url: str,
    in_room: Joined,
    lines: Lines,
    one: Settings,
    two: Settings,
    database: int,
) -> None:
    shop, other = Application(tmp_path, settings=one), Application(tmp_path, settings=two)
    here, there, second = Rooms(redis=url), Rooms(redis=f"{url}/{database}"), Rooms(redis=url)

    async def work() -> None:
        async with in_room(here, shop) as a, in_room(second, shop) as b, in_room(there, other) as c:
            with enter_application(shop):
                await here.broadcast("lobby", "for the shop")
            with enter_application(other):
                await there.broadcast("lobby", "for the other")
            for client in (a, b, c):
                await client.until("send")
            assert a.texts == b.texts == ["for the shop"]
            assert c.texts == ["for the other"]

    send(work())
    assert lines.texts() == []


def test_applications_of_one_process_do_not_share_rooms_of_a_module(
    tmp_path: Path, in_room: Joined
) -> None:
    shop, blog = (Application(tmp_path, settings=settings(name)) for name in ("shop", "blog"))
    rooms = Rooms()

    async def work() -> None:
        async with in_room(rooms, shop) as a, in_room(rooms, blog) as b:
            with enter_application(shop):
                await rooms.broadcast("lobby", "for the shop")
                assert len(rooms.members("lobby")) == 1
            with enter_application(blog):
                await rooms.broadcast("lobby", "for the blog")
            await a.until("send")
            await b.until("send")
            assert (a.texts, b.texts) == (["for the shop"], ["for the blog"])

    send(work())


def test_rooms_that_are_shared_reach_both(tmp_path: Path, url: str, in_room: Joined) -> None:
    shop, blog = (Application(tmp_path, settings=settings(name)) for name in ("shop", "blog"))
    here, there = (Rooms(redis=url, shared=True) for _ in range(2))

    async def work() -> None:
        async with in_room(here, shop) as a, in_room(there, blog) as b:
            with enter_application(shop):
                await here.broadcast("lobby", "for both")
            await a.until("send")
            await b.until("send")
            assert a.texts == b.texts == ["for both"]

    send(work())


def test_a_message_with_another_secret_is_dropped_with_one_warning(
    tmp_path: Path, url: str, in_room: Joined, lines: Lines
) -> None:
    shop = Application(tmp_path, settings=settings())
    forger = Application(tmp_path, settings=settings("blog", secret_key=OTHER))
    here, there = (Rooms(redis=url, shared=True) for _ in range(2))

    async def work() -> None:
        async with in_room(here, shop) as a:
            with enter_application(forger):
                for _ in range(3):
                    await there.broadcast("lobby", "forged")
            with connected(url) as redis:
                redis.publish("treefold-shared:production:room:0:lobby", '{"text":"plain"}')
            with enter_application(shop):
                await here.broadcast("lobby", "real")
            await a.until("send")
            assert a.texts == ["real"]
        await there.close()

    send(work())
    (text,) = lines.texts()
    assert text.startswith("a room message from redis is not signed with secret_key")


def test_a_message_of_one_room_cannot_be_sent_to_another(
    tmp_path: Path, url: str, in_room: Joined, lines: Lines
) -> None:
    shop = Application(tmp_path, settings=settings())
    rooms = Rooms(redis=url)

    async def work() -> None:
        async with in_room(rooms, shop) as a:
            with connected(url) as redis, redis.pubsub() as listener:
                listener.psubscribe("*")
                listener.get_message(timeout=5)
                with enter_application(shop):
                    await rooms.broadcast("staff", "secret")
                heard = listener.get_message(timeout=5)
                assert heard["channel"] == b"treefold:shop:production:room:0:staff"
                redis.publish("treefold:shop:production:room:0:lobby", heard["data"])
            with enter_application(shop):
                await rooms.broadcast("lobby", "real")
            await a.until("send")
            assert a.texts == ["real"]

    send(work())
    assert "not signed" in lines.texts()[0]


def test_a_former_secret_still_signs_during_a_rotation(
    tmp_path: Path, url: str, in_room: Joined
) -> None:
    old = Application(tmp_path, settings=settings())
    new = Application(tmp_path, settings=settings(secret_key=OTHER, secret_key_fallbacks=(SECRET,)))
    here, there = Rooms(redis=url), Rooms(redis=url)

    async def work() -> None:
        async with in_room(there, new) as b:
            with enter_application(old):
                await here.broadcast("lobby", "of before")
            await b.until("send")
            assert b.texts == ["of before"]
        await here.close()

    send(work())


def test_rooms_in_production_need_a_secret(tmp_path: Path, url: str) -> None:
    code = f"from treefold_http import Rooms\nrooms = Rooms(redis={url!r})\n"
    root = write(tmp_path, {"hooks.py": code, "Api/v1/Get.py": OK})

    with pytest.raises(BootError) as caught:
        Application(root, settings=Settings(name="shop")).boot()
    assert "set TREEFOLD_SECRET_KEY" in str(caught.value)
    Application(root, dev=True, settings=Settings(name="shop")).boot()


# -- two deployments with one name

DIFFERENT = {
    "secret": (
        settings(),
        settings(secret_key=OTHER),
        "got another secret_key than a running process has",
    ),
    "no secret": (
        settings(),
        Settings(name="shop"),
        "set the secret_key of the others, and a former one in secret_key_fallbacks",
    ),
    "database": (
        settings(databases={"default": "postgresql://u:p@one/shop"}),
        settings(databases={"default": "postgresql://u:p@two/shop"}),
        "got two:5432/shop where a running process has one:5432/shop; for two applications set"
        " name = '...' in treefold.toml of one (TREEFOLD_NAME), for two environments"
        " environment = '...'; if both are one, set same_databases = ['one:5432/shop']",
    ),
    "no database": (
        settings(databases={"default": "postgresql://u:p@one/shop"}),
        settings(),
        "got no database where a running process has one:5432/shop",
    ),
}
SAME = {
    "equal": (settings(), settings()),
    "rotation": (settings(), settings(secret_key=OTHER, secret_key_fallbacks=(SECRET,))),
    "pooler": (
        settings(databases={"default": "postgresql://u:p@one/shop"}),
        settings(
            databases={"default": "postgresql://u:p@two:6432/shop"},
            same_databases=("one:5432/shop",),
        ),
    ),
    "login": (
        settings(databases={"default": "postgresql://u:p@one/shop?pool_size=2"}),
        settings(databases={"default": "postgresql://other:q@one:5432/shop"}),
    ),
    "neither has any": (Settings(name="shop"), Settings(name="shop")),
}


async def claim_both(tmp_path: Path, url: str, *both: Settings) -> None:
    """Claim the names as two processes do, whose clients know nothing of each other."""
    apps = [Application(tmp_path, settings=one) for one in both]
    for app in apps:
        process = SharedRedis(url)
        try:
            await process.claim_names(app.names)
        finally:
            await process.close()


@pytest.mark.parametrize("case", DIFFERENT)
def test_two_deployments_of_one_name_refuse_to_share(tmp_path: Path, url: str, case: str) -> None:
    one, two, text = DIFFERENT[case]
    with pytest.raises(SettingsError) as caught:
        asyncio.run(claim_both(tmp_path, url, one, two))

    message = str(caught.value)
    assert message.startswith("The names treefold:shop:production:* in Redis must belong to one")
    assert text in message
    assert SECRET not in message
    with connected(url) as redis:  # the refused one has left no trace
        assert len(redis.zrange("treefold:shop:production:deployment", 0, -1)) == 1


@pytest.mark.parametrize("case", SAME)
def test_processes_of_one_deployment_share(tmp_path: Path, url: str, case: str) -> None:
    one, two = SAME[case]
    asyncio.run(claim_both(tmp_path, url, one, two))
    asyncio.run(claim_both(tmp_path, url, two, one))


def test_the_name_is_free_again_after_a_stop_in_order(tmp_path: Path, url: str) -> None:
    async def main() -> None:
        first, process = Application(tmp_path, settings=settings()).names, SharedRedis(url)
        await process.claim_names(first)
        await process.release_names(first)
        await process.claim_names(Application(tmp_path, settings=settings(secret_key=OTHER)).names)
        await process.close()

    asyncio.run(main())


def test_an_application_does_not_start_beside_another_deployment(tmp_path: Path, url: str) -> None:
    root = sessions(tmp_path, url)
    asyncio.run(claim_both(tmp_path, url, settings(secret_key=OTHER)))
    app = Application(root, settings=settings())

    async def main() -> None:
        try:
            await app.lifespan.run_startup()
        finally:
            await close_redis()

    with pytest.raises(SettingsError, match="must belong to one deployment"):
        asyncio.run(main())


@pytest.mark.parametrize(
    ("given", "dev", "is_told"),
    [(None, False, True), (None, True, False), ("shop", False, False)],
)
def test_production_is_warned_of_names_after_a_folder(
    tmp_path: Path, url: str, lines: Lines, given: str | None, dev: bool, is_told: bool
) -> None:
    root = sessions(tmp_path / "release-7", url)
    app = Application(root, dev=dev, settings=Settings(name=given, secret_key=SECRET))

    async def main() -> None:
        await app.lifespan.run_startup()
        await app.lifespan.run_shutdown()

    asyncio.run(main())
    told = [text for text in lines.texts() if text.startswith("keys in redis begin with")]
    assert told == (
        [
            "keys in redis begin with treefold:release-7:production:, after the folder; another"
            " folder or machine does not find them: set name in treefold.toml"
        ]
        if is_told
        else []
    )


def test_a_room_is_refused_beside_another_deployment(
    tmp_path: Path, url: str, in_room: Joined
) -> None:
    asyncio.run(claim_both(tmp_path, url, settings(secret_key=OTHER)))
    rooms, app = Rooms(redis=url), Application(tmp_path, settings=settings())

    async def work() -> None:
        with enter_application(app):
            await rooms.broadcast("lobby", "x")

    with pytest.raises(SettingsError, match="must belong to one deployment"):
        send(work())


def test_a_test_run_claims_nothing(tmp_path: Path, url: str) -> None:
    root = sessions(tmp_path, url)
    with TestClient(Application(root, settings=settings())) as client:
        assert client.post("/v1/login").status_code == 204
    with connected(url) as redis:
        assert redis.keys("*:deployment") == []


def test_neither_secret_nor_login_is_on_the_server(tmp_path: Path, url: str) -> None:
    own = dataclasses.replace(settings(), databases={"default": "postgresql://ann:pw1234@one/shop"})
    asyncio.run(claim_both(tmp_path, url, own))
    with connected(url) as redis:
        (member,) = redis.zrange("treefold:shop:production:deployment", 0, -1)
    assert b"one:5432/shop" in member
    for hidden in (SECRET.encode(), b"ann", b"pw1234"):
        assert hidden not in member


# -- code without a boot


READ_AND_CLEAR = """
import asyncio
from treefold_http.cache import get_cache

async def main():
    print(await get_cache().get("k"), await get_cache().clear())

asyncio.run(main())
"""


def test_a_script_uses_the_cache_and_the_names_of_its_project(tmp_path: Path, url: str) -> None:
    written = f"name = 'shop'\nsecret_key = '{SECRET}'\n[caches]\ndefault = '{url}'\n"
    root = write(tmp_path, {"treefold.toml": written, "Api/v1/Get.py": OK})
    cache, app = get_cache(), Application(root)

    async def main() -> None:
        await cache.set("k", 1, ttl=60)
        script = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", READ_AND_CLEAR), cwd=root, stdout=asyncio.subprocess.PIPE
        )
        assert (await script.communicate())[0] == b"1 True\n"
        assert await cache.get("k") is None
        await close_redis()

    with enter_application(app):
        asyncio.run(main())


SCRIPT = """
import asyncio
from treefold_http import Rooms

async def main():
    rooms = Rooms(redis={url!r})
    await rooms.broadcast("lobby", "from a script")
    await rooms.close()

asyncio.run(main())
"""


def test_a_broadcast_of_a_script_reaches_the_sockets_of_its_project(
    tmp_path: Path, url: str, in_room: Joined
) -> None:
    written = f"name = 'shop'\nsecret_key = '{SECRET}'\n"
    root = write(tmp_path, {"treefold.toml": written, "Api/v1/Get.py": OK})
    rooms = Rooms(redis=url)

    async def work() -> None:
        async with in_room(rooms, Application(root)) as a:
            script = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", SCRIPT.format(url=url)), cwd=root
            )
            assert await script.wait() == 0
            await a.until("send")
            assert a.texts == ["from a script"]

    send(work())
    with connected(url) as redis:  # a script that ends in order has ended its claim
        assert len(redis.zrange("treefold:shop:production:deployment", 0, -1)) == 1
