"""A limit under 500 requests at once: in one process, and on Redis with two servers of two workers.

The connections are open before the first request is sent; every status is counted.
"""

from __future__ import annotations

import asyncio
import secrets
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import http_redis
import pytest
from serving import Process, write_tree
from socket_client import knock
from wire import ServeOnSocket

TREE = {
    "Api/v1/Limited/Get.py": "async def handler(request): return {}",
    "Api/v1/Limited/Ws.py": "async def handler(websocket): await websocket.accept()",
    "Api/v1/Few/Get.py": "async def handler(request): return {}",
    "Api/v1/Few/Ws.py": "async def handler(websocket): await websocket.accept()",
    "Middleware/__init__.py": """
        from treefold.middleware import RateLimit, under

        middlewares = [
            under("/v1/limited", RateLimit("100/hour", burst=100{redis})),
            under("/v1/few", RateLimit("3/hour"{redis})),
        ]
        """,
}


def tree(redis: str = "") -> dict[str, str]:
    options = f", redis={redis!r}, name={secrets.token_hex(6)!r}" if redis else ""
    return {name: text.replace("{redis}", options) for name, text in TREE.items()}


def flood(servers: Sequence[Process], count: int) -> Counter[int]:
    """Send requests on connections that are all open, to the servers in turn; count statuses."""
    request = b"GET /v1/limited HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"

    async def main() -> list[int]:
        ends = [
            await asyncio.open_connection(*servers[number % len(servers)].address)
            for number in range(count)
        ]
        for _, writer in ends:
            writer.write(request)
        answers = await asyncio.gather(*(reader.read() for reader, _ in ends))
        for _, writer in ends:
            writer.close()
        return [int(answer.split(b" ", 2)[1]) for answer in answers]

    return Counter(asyncio.run(main()))


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(tree())


def test_s96_of_500_at_once_exactly_100_pass_in_memory(server: Process) -> None:
    assert flood([server], 500) == {200: 100, 429: 400}


def test_s93_s99_a_client_is_told_and_cannot_hide(server: Process) -> None:
    answers = [server.get("/v1/few", ("X-Forwarded-For", f"192.0.2.{n}")) for n in range(4)]

    assert [answer.status for answer in answers] == [200, 200, 200, 429]
    assert [answer.value("ratelimit") for answer in answers[:2]] == [
        '"default";r=2;t=1200',
        '"default";r=1;t=2400',
    ]
    assert 1190 < int(answers[3].value("retry-after")) <= 1200
    assert server.get("//v1/%66ew").status == 429
    assert server.request("DELETE", "/v1/few").status == 429
    assert knock(server, "/v1/few").status == 429


def test_s96_of_500_at_once_exactly_100_pass_on_redis_with_four_workers(tmp_path: Path) -> None:
    with http_redis.server() as url:
        root = write_tree(tmp_path, tree(url))
        servers = [
            Process(root, parser, dev=False, default_version=None, workers=2)
            for parser in ("h11", "httptools")
        ]
        try:
            for each in servers:
                each.wait_for(lambda lines: sum("booted in" in line for line in lines) == 2)
            assert flood(servers, 500) == {200: 100, 429: 400}
        finally:
            written = [each.stop() for each in servers]
    assert not any("WARNING" in text or "[ERROR]" in text for text in written)


def seconds_of(server: Process, target: str, status: int) -> list[float]:
    """Send 30 requests, one after the other; return how long each took."""
    seconds: list[float] = []
    for _ in range(30):
        began = time.perf_counter()
        assert server.get(target).status == status
        seconds.append(time.perf_counter() - began)
    return seconds


def test_s98_a_server_without_its_redis_answers_in_time(
    serve_on_socket: ServeOnSocket,
) -> None:
    with http_redis.started() as redis:
        server = serve_on_socket(tree(redis.url))
        assert server.get("/v1/few").values("ratelimit") != []
        usual = seconds_of(server, "/v1/none", 404)  # without a limit, on a machine as busy
        redis.freeze()
        seconds = seconds_of(server, "/v1/few", 200)
        redis.resume()
    assert max(seconds) < 10
    assert statistics.median(seconds) < statistics.median(usual) + 0.1  # most do not wait for it
    warned = server.wait_for(lambda lines: [line for line in lines if "redis unavailable" in line])
    assert len(warned) == 1
    assert "rate limits pass" in warned[0]
