"""One Redis for all of a process: bounded waits, one warning, connections of one loop."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from http_redis import Gate, Server, free_port, started

from treefold_http import Application
from treefold_http._redis import (
    RedisUnavailable,
    RedisUse,
    SharedRedis,
    client as redis_client,
    close_redis,
    list_used_redis_clients,
)

if TYPE_CHECKING:
    from packages.http.tests.conftest import Lines

AWAY = "redis unavailable, "
INCREASE = "return redis.call('INCRBY', KEYS[1], ARGV[1])"


@pytest.fixture
def key() -> str:
    """A key that no other test has; the server may be shared."""
    return f"test-{secrets.token_hex(8)}"


@pytest.fixture
def own_server() -> Iterator[Server]:
    with started() as made:
        yield made


def run(url: str, work: Callable[[SharedRedis], Awaitable[None]]) -> None:
    async def main() -> None:
        redis = SharedRedis(url)
        redis.add_failure_effect("tests fail")
        async with asyncio.timeout(30):
            try:
                await work(redis)
            finally:
                await redis.close()

    asyncio.run(main())


async def attempts(redis: SharedRedis, count: int) -> list[tuple[float, bool]]:
    """Send commands at the same time; return how long each took, and whether it succeeded."""

    async def one() -> tuple[float, bool]:
        begun = time.perf_counter()
        try:
            await redis.execute("PING")
        except RedisUnavailable:
            return time.perf_counter() - begun, False
        return time.perf_counter() - begun, True

    return await asyncio.gather(*(one() for _ in range(count)))


def test_commands_pipelines_and_scripts_return_replies(redis_url: str, key: str) -> None:
    async def work(redis: SharedRedis) -> None:
        assert await redis.execute("SET", key, b"\xff", "PX", 60_000) in (True, b"OK")
        assert await redis.execute("GET", key) == b"\xff"
        assert await redis.run_transaction([("DEL", key), ("GET", key)]) == [1, None]
        assert [await redis.run_script(INCREASE, [key], [n]) for n in (2, 3)] == [2, 5]
        await redis.execute("DEL", key)

    run(redis_url, work)


def test_worker_threads_use_the_same_server(redis_url: str, key: str) -> None:
    async def work(redis: SharedRedis) -> None:
        await redis.execute("SET", key, "a")

        def blocking() -> None:
            assert redis.execute_blocking("GET", key) == b"a"
            assert redis.run_transaction_blocking([("DEL", key), ("EXISTS", key)]) == [1, 0]
            assert redis.run_script_blocking(INCREASE, [key], [4]) == 4
            redis.execute_blocking("DEL", key)

        await asyncio.to_thread(blocking)

    run(redis_url, work)


def test_five_hundred_commands_at_once_all_succeed(redis_url: str) -> None:
    async def work(redis: SharedRedis) -> None:
        assert all(succeeded for _, succeeded in await attempts(redis, 500))

    run(redis_url, work)


def test_a_loop_that_is_busy_is_no_reason_to_give_up(redis_url: str) -> None:
    async def work(redis: SharedRedis) -> None:
        await redis.execute("PING")
        command = asyncio.ensure_future(redis.execute("PING"))
        await asyncio.sleep(0)
        time.sleep(3 * redis_client.TIMEOUT)  # noqa: ASYNC251 - the loop is to be late
        await command

    run(redis_url, work)


def test_a_refused_connection_fails_fast_with_one_warning(lines: Lines) -> None:
    async def work(redis: SharedRedis) -> None:
        outcomes = await attempts(redis, 200)
        assert [succeeded for _, succeeded in outcomes] == [False] * 200
        assert max(seconds for seconds, _ in outcomes) < 10

    run(f"redis://user:s3cret@127.0.0.1:{free_port()}", work)
    assert [text[: len(AWAY)] for text in lines.texts()] == [AWAY]
    assert "tests fail" in lines.texts()[0]
    assert "s3cret" not in "".join(lines.texts())


def test_a_frozen_server_costs_a_command_at_most_a_tenth_of_a_second(
    own_server: Server, lines: Lines
) -> None:
    async def work(redis: SharedRedis) -> None:
        await redis.execute("PING")
        own_server.freeze()
        outcomes = await attempts(redis, 200)
        assert not any(succeeded for _, succeeded in outcomes)
        assert max(seconds for seconds, _ in outcomes) < 10  # one by one they would take 20
        again = [(await attempts(redis, 1))[0][0] for _ in range(5)]
        assert min(again) < redis_client.TIMEOUT  # the pause: nothing is sent
        own_server.resume()
        await asyncio.sleep(redis_client.PAUSE)  # of the pause itself
        assert (await attempts(redis, 1))[0][1]

    run(own_server.url, work)
    (warning, found) = lines.texts()
    assert warning.startswith(AWAY)
    assert found == "redis available again"


def test_one_reply_that_is_late_is_no_outage(redis_url: str, lines: Lines) -> None:
    async def work(redis: SharedRedis) -> None:
        gate = Gate(redis_url)
        gate.silent = True
        await gate.open()
        slow = SharedRedis(gate.url)
        with pytest.raises(RedisUnavailable, match="no reply within 100 ms"):
            await slow.execute("PING")
        gate.silent = False
        await slow.execute("PING")
        await slow.close()
        await gate.cut()

    run(redis_url, work)
    assert len(lines.texts()) == 1


def test_connections_that_died_with_a_restart_are_replaced(own_server: Server) -> None:
    async def work(redis: SharedRedis) -> None:
        assert all(succeeded for _, succeeded in await attempts(redis, 8))
        own_server.stop()
        own_server.start()
        assert all(succeeded for _, succeeded in await attempts(redis, 8))

    run(own_server.url, work)


def test_a_cancelled_command_leaves_no_reply_for_the_next(redis_url: str, key: str) -> None:
    async def work(redis: SharedRedis) -> None:
        await redis.execute("SET", key, "mine")
        for turns in range(12):
            command = asyncio.ensure_future(redis.execute("GET", key))
            for _ in range(turns):
                await asyncio.sleep(0)
            command.cancel()
            await asyncio.wait([command])
            assert await redis.execute("ECHO", str(turns)) == str(turns).encode()
        await redis.execute("DEL", key)

    run(redis_url, work)


def test_an_error_of_the_server_is_no_outage(redis_url: str, key: str) -> None:
    async def work(redis: SharedRedis) -> None:
        await redis.execute("SET", key, "a")
        with pytest.raises(RedisUnavailable, match="WRONGTYPE"):
            await redis.execute("LPUSH", key, "b")
        assert await redis.execute("DEL", key) == 1

    run(redis_url, work)


def test_a_ping_asks_also_during_the_pause(own_server: Server) -> None:
    async def work(redis: SharedRedis) -> None:
        own_server.stop()
        with pytest.raises(RedisUnavailable):
            await redis.ping_server()
        own_server.start()
        await redis.ping_server()

    run(own_server.url, work)


def test_clients_are_shared_by_url_and_used_in_one_loop_after_another(redis_url: str) -> None:
    app = Application("shop")

    async def work() -> None:
        redis = RedisUse(redis_url, effect="a", app=app).client
        assert redis is RedisUse(redis_url, effect="b", app=None).client
        assert list_used_redis_clients(app) == [redis]
        await redis.execute("PING")
        await close_redis()
        await redis.execute("PING")
        await close_redis()

    for _ in range(2):
        asyncio.run(work())


@pytest.mark.parametrize("url", ["", "127.0.0.1", "http://127.0.0.1", "redis://127.0.0.1:port"])
def test_a_url_that_is_none_of_redis_is_refused_where_it_is_given(url: str) -> None:
    with pytest.raises(ValueError, match=r"^Redis URL must specify|^Port could not be cast"):
        RedisUse(url, effect="a", app=None)
