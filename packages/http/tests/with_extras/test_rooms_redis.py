"""Rooms of several workers through a real Redis: two `Rooms` objects stand for two workers.

Which server that is, `http_redis` says.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from http_redis import Gate, connected, free_port

from treefold_http import Application, Rooms, WebSocket
from treefold_http._sessions.signing import Signer
from treefold_http._websockets import relay

if TYPE_CHECKING:
    from packages.http.tests.conftest import Lines, Socket

LOST = "rooms lost redis, messages reach this worker only: "
FOUND = "rooms found redis again"

Open = Callable[[], Awaitable[tuple["Socket", WebSocket]]]
Work = Callable[[Open], Awaitable[None]]


@pytest.fixture
def room() -> str:
    """A room that no other test has; the server may be shared."""
    return f"test-{secrets.token_hex(8)}"


@pytest.fixture
def run(tmp_path: Path, socket: type[Socket]) -> Callable[[Work], None]:
    """Run something in a loop of its own, with as many accepted sockets as wanted."""

    app = Application(tmp_path)

    async def open_one() -> tuple[Socket, WebSocket]:
        client = socket("/v1/x", stays=True)
        websocket = await client.open(app)
        await websocket.accept()
        return client, websocket

    def start(work: Work) -> None:
        async def main() -> None:
            async with asyncio.timeout(20):
                await work(open_one)

        asyncio.run(main())

    return start


@contextlib.asynccontextmanager
async def joined(
    open_one: Open, room: str, *urls: str, queue: int = 32
) -> AsyncGenerator[list[tuple[Rooms, Socket]]]:
    """One worker for each URL, with one member of the room in it."""
    workers: list[tuple[Rooms, Socket]] = []
    ends: list[WebSocket] = []
    for url in urls:
        rooms = Rooms(redis=url, queue=queue)
        client, websocket = await open_one()
        await rooms.join(room, websocket)
        workers.append((rooms, client))
        ends.append(websocket)
    try:
        yield workers
    finally:
        for (rooms, _), websocket in zip(workers, ends, strict=True):
            await rooms.forget(websocket)
            await rooms.close()


async def heard(sender: Rooms, room: str, *clients: Socket) -> None:
    """Send until every one of the clients hears it."""
    mark = secrets.token_hex(4)
    while not all(mark in client.texts for client in clients):
        await sender.broadcast(room, mark)
        await asyncio.sleep(0.02)  # between two questions, not for an answer


# -- across workers


@pytest.mark.parametrize(
    "message", ["ä", "", '{"text":1}', b"\xff\x00", b"", "\x00", "x" * 100_000, "\ud800"]
)
def test_a_message_reaches_the_members_of_every_worker_once(
    redis_url: str, room: str, run: Callable[[Work], None], message: str | bytes
) -> None:
    async def work(open_one: Open) -> None:
        async with joined(open_one, room, redis_url, redis_url) as [(here, a), (there, b)]:
            await here.broadcast(room, message)
            await there.broadcast(room, "last")
            await a.until("send", 2)
            await b.until("send", 2)
            assert a.texts == b.texts == [message, "last"]

    run(work)


@pytest.mark.parametrize("suffix", ["", "*", "[a-z]?", ":ä b\n", "\x00"])
def test_a_room_is_its_exact_name(
    redis_url: str, room: str, run: Callable[[Work], None], suffix: str
) -> None:
    async def work(open_one: Open) -> None:
        async with (
            joined(open_one, room + suffix, redis_url) as [(_, a)],
            joined(open_one, room + "x", redis_url) as [(there, b)],
        ):
            await there.broadcast(room + suffix, "for a")
            await there.broadcast(room + "x", "for b")
            await a.until("send")
            await b.until("send")
            assert (a.texts, b.texts) == (["for a"], ["for b"])

    run(work)


def test_a_worker_without_members_may_send(
    redis_url: str, room: str, run: Callable[[Work], None], lines: Lines
) -> None:
    async def work(open_one: Open) -> None:
        sender = Rooms(redis=redis_url)
        async with joined(open_one, room, redis_url) as [(_, client)]:
            await sender.broadcast(room, "hello")
            await client.until("send")
        await sender.close()

    run(work)
    assert lines.texts() == []


def test_a_burst_through_redis_is_no_reason_to_call_a_reader_slow(
    redis_url: str, room: str, run: Callable[[Work], None]
) -> None:
    async def work(open_one: Open) -> None:
        async with joined(open_one, room, redis_url, redis_url) as [(here, a), (_, b)]:
            for n in range(500):
                await here.broadcast(room, str(n))
            await a.until("send", 500)
            await b.until("send", 500)
            assert a.texts == b.texts == [str(n) for n in range(500)]

    run(work)


@pytest.mark.parametrize(
    "garbage", [b"no json", b"{}", b"[]", b"5", b'{"bytes":"*"}', b'{"bytes":5}', b"\xff"]
)
def test_what_is_no_room_message_is_passed_over(
    redis_url: str, room: str, run: Callable[[Work], None], lines: Lines, garbage: bytes
) -> None:
    async def work(open_one: Open) -> None:
        async with joined(open_one, room, redis_url) as [(rooms, client)]:
            _, websocket = await open_one()
            beginning = f"{websocket.app.names.own}room:0:".encode()
            signer = Signer([websocket.app.names.own.encode()], ("room", beginning.decode()))
            with connected(redis_url) as publisher:
                for end, content in ((room.encode(), garbage), (b"\xff", b'{"text":"a"}')):
                    channel = beginning + end
                    signature = signer.sign_data(channel + b"\0" + content).encode()
                    publisher.publish(channel, b"%b %b" % (signature, content))
            await rooms.broadcast(room, "after")
            await client.until("send")
            assert client.texts == ["after"]

    run(work)
    assert [text.partition(":")[0] for text in lines.texts()] == [
        "a room message from redis cannot be read"
    ] * 2


# -- when Redis goes and comes


def kill_subscriber(url: str, name: str) -> None:
    with connected(url) as client:
        found: list[dict[str, Any]] = client.client_list()
        (subscriber,) = [one for one in found if one["name"] == name and one["psub"] != "0"]
        client.client_kill_filter(_id=subscriber["id"])


def test_a_subscriber_that_is_killed_comes_back_with_one_warning(
    redis_url: str, room: str, run: Callable[[Work], None], lines: Lines
) -> None:
    async def work(open_one: Open) -> None:
        named = f"{redis_url}?client_name={room}"
        async with joined(open_one, room, named, redis_url) as [(_, a), (there, b)]:
            for _ in range(2):
                kill_subscriber(redis_url, room)
                await heard(there, room, a, b)

    run(work)
    assert [text.partition(": ")[0] for text in lines.texts()] == [
        LOST.removesuffix(": "),
        FOUND,
    ] * 2


def test_while_redis_is_away_this_worker_hears_and_one_warning_says_so(
    room: str, run: Callable[[Work], None], lines: Lines
) -> None:
    url = f"redis://user:s3cret@127.0.0.1:{free_port()}"

    async def work(open_one: Open) -> None:
        async with joined(open_one, room, url, url) as [(here, a), (_, b)]:
            for n in range(20):
                await here.broadcast(room, str(n))
            await a.until("send", 20)
            assert a.texts == [str(n) for n in range(20)]
            assert b.texts == []

    run(work)
    assert [text[: len(LOST)] for text in lines.texts()] == [LOST] * 2  # one of each worker
    assert "s3cret" not in "".join(lines.texts())


def test_rooms_that_lost_redis_find_it_again(
    redis_url: str, room: str, run: Callable[[Work], None], lines: Lines
) -> None:
    async def work(open_one: Open) -> None:
        gate = Gate(redis_url)
        await gate.open()
        async with joined(open_one, room, gate.url, redis_url) as [(here, a), (there, b)]:
            await heard(there, room, a, b)
            await gate.cut()
            await heard(here, room, a)
            known = len(b.texts)
            await here.broadcast(room, "only here")
            await gate.open()
            await heard(here, room, a, b)
            await heard(there, room, a, b)
            assert "only here" not in b.texts[known:]
        await gate.cut()

    run(work)
    assert [text.partition(": ")[0] for text in lines.texts()] == [
        LOST.removesuffix(": "),
        FOUND,
    ]


def test_a_server_that_does_not_answer_holds_up_one_broadcast_and_no_more(
    redis_url: str,
    room: str,
    run: Callable[[Work], None],
    lines: Lines,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "_TIMEOUT", 0.2)
    monkeypatch.setattr(relay, "_PAUSE", 60.0)

    async def work(open_one: Open) -> None:
        gate = Gate(redis_url)
        gate.silent = True
        await gate.open()
        loop = asyncio.get_running_loop()
        async with joined(open_one, room, gate.url) as [(rooms, client)]:
            await rooms.broadcast(room, "first")
            started = loop.time()
            for n in range(50):
                await rooms.broadcast(room, str(n))
            assert loop.time() - started < 5  # fifty that wait would take 10
            await client.until("send", 51)
        await gate.cut()

    run(work)
    assert [text[: len(LOST)] for text in lines.texts()] == [LOST]


# -- its own life


def test_rooms_live_in_one_loop_after_another(
    redis_url: str, room: str, run: Callable[[Work], None]
) -> None:
    rooms = Rooms(redis=redis_url)

    async def work(open_one: Open) -> None:
        for _ in range(2):
            client, websocket = await open_one()
            await rooms.join(room, websocket)
            await rooms.broadcast(room, "hello")
            await client.until("send")
            await rooms.forget(websocket)
            await rooms.close()
        await rooms.close()

    for _ in range(2):
        run(work)


@pytest.mark.parametrize("url", ["", "127.0.0.1", "http://127.0.0.1", "redis://127.0.0.1:port"])
def test_a_url_that_is_none_of_redis_is_refused_where_it_is_given(url: str) -> None:
    with pytest.raises(ValueError):
        Rooms(redis=url)
