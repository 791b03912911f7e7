"""Rooms of one process: who hears what, and what a slow or broken reader does to the others."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from http_ids import stable_repr

from treefold_http import Application, Rooms, TreefoldError, WebSocket, WebSocketDisconnect

if TYPE_CHECKING:
    from conftest import Lines, Socket

Open = Callable[[], Awaitable[tuple["Socket", WebSocket]]]
Work = Callable[[Rooms, Open], Awaitable[Any]]


@pytest.fixture
def in_rooms(tmp_path: Path, socket: type[Socket]) -> Callable[..., None]:
    """Do something with rooms and with as many accepted sockets as wanted."""

    def run(work: Work, **options: Any) -> None:
        opened: list[WebSocket] = []
        app = Application(tmp_path)

        async def open_one() -> tuple[Socket, WebSocket]:
            client = socket("/v1/x", stays=True)
            websocket = await client.open(app)
            await websocket.accept()
            opened.append(websocket)
            return client, websocket

        async def main() -> None:
            rooms = Rooms(**options)
            async with asyncio.timeout(10):
                await work(rooms, open_one)
                for websocket in opened:
                    await rooms.forget(websocket)

        asyncio.run(main())

    return run


async def settled() -> None:
    """Let the members send what waits for them."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_every_member_of_a_room_hears_text_and_bytes_in_order(
    in_rooms: Callable[..., None],
) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        (a, a_end), (b, b_end), (other, other_end) = [await open_one() for _ in range(3)]
        await rooms.join("room", a_end)
        await rooms.join("room", b_end)
        await rooms.join("other", other_end)
        await rooms.broadcast("room", "ä")
        await rooms.broadcast("room", b"\xff")
        await rooms.broadcast("none", "nobody")
        await a.until("send", 2)
        await b.until("send", 2)
        assert a.texts == b.texts == ["ä", b"\xff"]
        assert other.texts == []
        assert rooms.members("room") == [a_end, b_end]
        assert rooms.members("none") == []

    in_rooms(work)


def test_a_socket_in_many_rooms_hears_each_once(in_rooms: Callable[..., None]) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        client, websocket = await open_one()
        for room in ("a", "b", "a"):
            await rooms.join(room, websocket)
        await rooms.broadcast("a", "to a")
        await rooms.broadcast("b", "to b")
        await settled()
        assert client.texts == ["to a", "to b"]

    in_rooms(work)


def test_who_leaves_hears_no_more(in_rooms: Callable[..., None]) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        client, websocket = await open_one()
        await rooms.join("a", websocket)
        async with rooms.joined("b", websocket):
            await rooms.broadcast("b", "inside")
        await rooms.leave("a", websocket)
        await rooms.leave("a", websocket)
        await rooms.leave("none", websocket)
        for room in ("a", "b"):
            await rooms.broadcast(room, "outside")
        await settled()
        assert client.texts == ["inside"]
        assert rooms.members("a") == rooms.members("b") == []

    in_rooms(work)


def test_a_block_that_fails_leaves_its_room(in_rooms: Callable[..., None]) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        _, websocket = await open_one()
        with pytest.raises(LookupError):
            async with rooms.joined("a", websocket):
                raise LookupError
        assert rooms.members("a") == []

    in_rooms(work)


def test_a_socket_leaves_every_room_when_its_handler_ends(
    serving: Callable[..., Application], talk: Callable[..., Socket]
) -> None:
    app = serving(
        """
        rooms = Rooms()

        async def handler(websocket):
            await websocket.accept()
            for room in ("a", "b"):
                await rooms.join(room, websocket)
            assert len(rooms.members("a")) == 1
            async for text in websocket.iter_text():
                await rooms.broadcast("a", text)
        """,
        "Api/v1/X/Socket.py",
    )

    for _ in range(2):
        assert talk(app, "/v1/x", "hello").texts == ["hello"]
    (module,) = app.project.modules.values()
    rooms: Rooms = getattr(module, "handler").__globals__["rooms"]  # noqa: B009 - a union
    assert rooms.members("a") == rooms.members("b") == []


def test_a_room_full_of_messages_does_not_change_how_a_handler_ends(
    serving: Callable[..., Application], talk: Callable[..., Socket]
) -> None:
    app = serving(
        """
        rooms = Rooms(queue=1)

        async def handler(websocket):
            await websocket.accept()
            await rooms.join("a", websocket)
            rooms._of[websocket.app].deliver_to_local_members("a", "waits")
        """,
        "Api/v1/X/Socket.py",
    )

    assert talk(app, "/v1/x").code == 1000


def test_only_an_open_socket_joins(in_rooms: Callable[..., None], socket: type[Socket]) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        fresh = await socket("/v1/x").open(Application("."))
        with pytest.raises(RuntimeError, match=r"^The WebSocket is not accepted"):
            await rooms.join("a", fresh)
        _, websocket = await open_one()
        await websocket.close()
        with pytest.raises(WebSocketDisconnect):
            await rooms.join("a", websocket)
        assert rooms.members("a") == []

    in_rooms(work)


@pytest.mark.parametrize("message", [None, 5, {"a": 1}, bytearray(b"a")], ids=stable_repr)
def test_a_message_is_text_or_bytes(in_rooms: Callable[..., None], message: Any) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        words = rf"^A room message must be str or bytes, got '{type(message).__name__}'$"
        with pytest.raises(TypeError, match=words):
            await rooms.broadcast("a", message)

    in_rooms(work)


def test_a_burst_is_no_reason_to_call_a_reader_slow(in_rooms: Callable[..., None]) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        client, websocket = await open_one()
        await rooms.join("a", websocket)
        for n in range(1000):
            await rooms.broadcast("a", str(n))
        await client.until("send", 1000)
        assert client.texts == [str(n) for n in range(1000)]

    in_rooms(work)


def test_a_slow_reader_is_closed_with_1013_and_the_others_hear_everything(
    serving: Callable[..., Application], socket: type[Socket], lines: Lines
) -> None:
    app = serving(
        """
        rooms = Rooms(queue=4)

        async def handler(websocket):
            await websocket.accept()
            await rooms.join("a", websocket)
            await websocket.send_text("joined")
            async for _ in websocket.iter_text():
                pass
        """,
        "Api/v1/X/Socket.py",
    )
    (module,) = app.project.modules.values()
    rooms: Rooms = getattr(module, "handler").__globals__["rooms"]  # noqa: B009 - a union

    async def main() -> None:
        slow, quick = socket("/v1/x", stays=True), socket("/v1/x", stays=True)
        running = [asyncio.ensure_future(client.run(app)) for client in (slow, quick)]
        for client in (slow, quick):
            await client.until("send")
        slow.reads.clear()
        for n in range(50):
            await rooms.broadcast("a", str(n))
            await settled()
        await running[0]
        assert (slow.code, slow.texts) == (1013, ["joined"])
        assert len(rooms.members("a")) == 1
        await quick.until("send", 51)
        assert quick.texts == ["joined", *map(str, range(50))]
        quick.leave()
        await running[1]

    async def limited() -> None:
        async with asyncio.timeout(10):
            await main()

    asyncio.run(limited())
    assert lines.errors() == []
    assert [text.split(" ")[2] for text in lines.texts() if text.startswith("WEBSOCKET")] == [
        "1013",
        "1001",
    ]


def test_a_reader_that_is_a_little_slow_hears_what_waited(in_rooms: Callable[..., None]) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        client, websocket = await open_one()
        client.reads.clear()
        await rooms.join("a", websocket)
        for n in range(5):  # one with the server, four in the queue
            await rooms.broadcast("a", str(n))
            await settled()
        client.reads.set()
        await client.until("send", 5)
        assert (client.texts, client.code) == (["0", "1", "2", "3", "4"], None)

    in_rooms(work, queue=4)


def test_a_member_whose_client_left_is_no_error(
    in_rooms: Callable[..., None], lines: Lines
) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        (gone, gone_end), (client, websocket) = await open_one(), await open_one()
        gone._lost = 1
        for end in (gone_end, websocket):
            await rooms.join("a", end)
        for n in range(10):
            await rooms.broadcast("a", str(n))
        await client.until("send", 10)
        assert gone.texts == []

    in_rooms(work, queue=2)
    assert lines.texts() == []


def test_a_member_that_the_server_refuses_is_logged_and_harms_nobody(
    in_rooms: Callable[..., None], lines: Lines
) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        (_, broken_end), (client, websocket) = await open_one(), await open_one()

        async def refuse(message: Any) -> None:
            raise RuntimeError("the server is in a bad state")

        broken_end._send = refuse
        for end in (broken_end, websocket):
            await rooms.join("a", end)
        await rooms.broadcast("a", "hello")
        await client.until("send")
        await rooms.forget(broken_end)

    in_rooms(work)
    assert lines.texts() == ["a room message could not be sent"]


def test_close_without_redis_has_nothing_to_do(in_rooms: Callable[..., None]) -> None:
    async def work(rooms: Rooms, open_one: Open) -> None:
        await rooms.close()

    in_rooms(work)


def test_redis_without_the_extra_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "redis.asyncio", None)
    words = r'^Rooms\(redis=\.\.\.\) needs redis; install it: pip install "treefold\[redis\]"$'
    with pytest.raises(TreefoldError, match=words):
        Rooms(redis="redis://127.0.0.1")
