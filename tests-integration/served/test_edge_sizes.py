"""Rows of the edge about sizes, on the wire: memory and stores stay bounded (S-55, S-68, S-95).

Every run of the suite sends some thousands of requests against bounds that are as many times
smaller. `hatch run edge-long` sends the numbers of the rows against the bounds of the product.
"""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import http_redis
import pytest
from facts import MIB, cost_of
from serving import Process
from wire import ServeOnSocket, Wire

KEYS = int(os.environ.get("TREEFOLD_EDGE_KEYS", "2000"))
"""Distinct keys of a cache, and half of the distinct clients of a limit."""
REQUESTS = int(os.environ.get("TREEFOLD_EDGE_REQUESTS", "400"))
"""Requests without a cookie."""
BATCH = 50
"""Requests on their way at one time."""

MAX_KEYS = min(100_000, KEYS // 10)
MAX_BYTES = min(64 * MIB, KEYS * 100)
QUIET = {
    "Api/v1/Quiet/Get.py": """
        from treefold import get_logger

        async def handler():
            get_logger().setLevel("WARNING")
        """
}
"""Two million request lines would be kept by this process."""


def request(target: str, *fields: str) -> bytes:
    """A GET of a connection that goes on."""
    lines = [f"GET {target} HTTP/1.1", "Host: localhost", *fields, "", ""]
    return "\r\n".join(lines).encode()


def flood(server: Process, requests: Iterable[bytes]) -> Counter[int]:
    """Send requests on one connection, some at a time; count the statuses."""
    server.get("/v1/quiet")
    found: Counter[int] = Counter()
    remaining = iter(requests)
    with Wire(server) as wire:
        while batch := list(islice(remaining, BATCH)):
            assert wire.send(b"".join(batch))
            for _ in batch:
                answer = wire.answer()
                assert answer.values("set-cookie") == []
                found[answer.status] += 1
    return found


# -- S-95: clients of a limit

LIMITED = {
    **QUIET,
    "Api/v1/Limited/Get.py": "async def handler(request): return {}",
    "Middleware/__init__.py": f"""
        from treefold.middleware import ProxyHeaders, RateLimit, under

        middlewares = [
            ProxyHeaders(["127.0.0.1"]),
            under("/v1/limited", RateLimit("3/day", max_keys={MAX_KEYS})),
        ]
        """,
}


def client(number: int) -> str:
    """An address of its own: IPv4, or a /64 of IPv6."""
    if number % 2:
        return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
    return f"2001:db8:{number >> 16:x}:{number & 65535:x}::1"


def test_s95_the_clients_of_a_limit_are_bounded_and_a_blocked_one_stays_blocked(
    serve_on_socket: ServeOnSocket,
) -> None:
    server = serve_on_socket(LIMITED)
    blocked = [request("/v1/limited", "X-Forwarded-For: 192.0.2.1")] * 3
    assert flood(server, blocked) == {200: 3}

    clients = (request("/v1/limited", f"X-Forwarded-For: {client(n)}") for n in range(2 * KEYS))
    with cost_of(server) as cost:
        assert flood(server, clients) == {200: 2 * KEYS}
    print(f"\nS-95 {server.kind}: {2 * KEYS:,} clients, {cost.memory / MIB:.1f} MiB")

    assert cost.memory < 32 * MIB
    assert flood(server, blocked) == {429: 3}
    first = [request("/v1/limited", f"X-Forwarded-For: {client(0)}")] * 3
    assert flood(server, first) == {200: 3}, "The bound was not reached"


# -- S-55: keys of a cache

CACHED = {
    **QUIET,
    "treefold.toml": f"""
        [caches]
        default = "memory://?max_bytes={MAX_BYTES}"
        """,
    "Api/v1/Echo/[name]/Get.py": """
        import asyncio
        from treefold.cache import cached

        calls = 0

        @cached(86_400)
        async def handler(name: str):
            global calls
            calls += 1
            await asyncio.sleep(0.2 if name == "slow" else 0)
            return {"name": name, "calls": calls, "text": "x" * 100}
        """,
}


def test_s55_the_keys_of_a_cache_are_bounded_by_their_bytes(
    serve_on_socket: ServeOnSocket,
) -> None:
    server = serve_on_socket(CACHED)
    used = request("/v1/echo/used")
    assert server.get("/v1/echo/used").json()["calls"] == 1

    def keys() -> Iterator[bytes]:
        for number in range(KEYS):
            yield request(f"/v1/echo/{number}")
            if number % 100 == 0:
                yield used

    with cost_of(server) as cost:
        assert flood(server, keys()) == {200: KEYS + -(-KEYS // 100)}
    bound = MAX_BYTES / MIB
    print(f"\nS-55 {server.kind}: {KEYS:,} keys, {cost.memory / MIB:.1f} MiB of {bound:.1f}")

    assert cost.memory < 1.1 * MAX_BYTES + 8 * MIB
    assert server.get("/v1/echo/used").json()["calls"] == 1, "A key in use was dropped"
    assert server.get(f"/v1/echo/{KEYS - 1}").json()["calls"] == KEYS + 1
    assert server.get("/v1/echo/0").json()["calls"] == KEYS + 2, "The bound was not reached"


def test_s55_two_hundred_misses_at_once_are_one_call(serve_on_socket: ServeOnSocket) -> None:
    server = serve_on_socket(CACHED)

    async def main() -> set[bytes]:
        ends = [await asyncio.open_connection(*server.address) for _ in range(200)]
        for _, writer in ends:
            writer.write(request("/v1/echo/slow", "Connection: close"))
        answers = await asyncio.gather(*(reader.read() for reader, _ in ends))
        for _, writer in ends:
            writer.close()
        return {answer.partition(b"\r\n\r\n")[2] for answer in answers}

    (body,) = asyncio.run(main())
    assert b'"calls":1' in body


# -- S-68: requests that only look at their session

STORES = ["memory", "database", "redis"]


def rows(store: str, database: Path, redis: str) -> int:
    """Count the sessions in a store outside of the server."""
    if store == "redis":
        with http_redis.connected(redis) as connection:
            return int(connection.dbsize())
    with sqlite3.connect(database) as connection:
        named = "SELECT name FROM sqlite_master WHERE name = 'treefold_sessions'"
        if connection.execute(named).fetchone() is None:
            return 0
        return int(connection.execute("SELECT count(*) FROM treefold_sessions").fetchone()[0])


@pytest.mark.parametrize("store", STORES)
def test_s68_requests_without_a_cookie_fill_no_store(
    serve_on_socket: ServeOnSocket, tmp_path: Path, store: str
) -> None:
    database = tmp_path / "sessions.sqlite3"
    with http_redis.started() as redis:
        server = serve_on_socket(
            {
                **QUIET,
                "treefold.toml": f"""
                    secret_key = "0123456789abcdef0123456789abcdef"
                    redis_url = "{redis.url}"
                    installed_extensions = true
                    [databases]
                    default = "sqlite:///{database}"
                    """,
                "Middleware/__init__.py": f"""
                    from treefold.middleware import Sessions
                    middlewares = [Sessions(store={store!r})]
                    """,
                "Api/v1/Look/Get.py": """
                    async def handler(request):
                        session = request.session
                        return {"user": session.user, "cart": session.get("cart", [])}
                    """,
                "Api/v1/Keep/Get.py": """
                    async def handler(request):
                        request.session["cart"] = []
                    """,
            }
        )
        with cost_of(server) as cost:
            assert flood(server, [request("/v1/look")] * REQUESTS) == {200: REQUESTS}
        kept = rows(store, database, redis.url)
        print(
            f"\nS-68 {server.kind}, {store}: {REQUESTS:,} requests, {kept} rows,"
            f" {cost.memory / MIB:.1f} MiB"
        )
        assert kept == 0
        assert cost.memory < 8 * MIB

        cookie = server.get("/v1/keep").value("set-cookie")
        assert re.match(r"__Host-session=[\w-]+\.[\w-]+;", cookie)
        assert rows(store, database, redis.url) == (store != "memory"), "Rows are not counted"
