"""Security rows of how a WebSocket ends, and of who does not read it (S-74, S-75).

A close code says why; the log says it too. A reader that is too slow costs a bounded amount of
memory, whoever sends: a handler, a room, or the library under the server.
"""

from __future__ import annotations

import pytest
from facts import MIB, cost_of, descriptors, eventually
from serving import Process
from socket_client import (
    CLOSE,
    PING,
    TEXT,
    close_code,
    dial,
    frame,
    handshake,
    knock,
    lines_of,
    next_frame,
)
from websockets.exceptions import ConnectionClosed
from wire import ServeOnSocket, Wire

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Echo/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            async for text in websocket.iter_text():
                await websocket.send_text(text)
        """,
    "Api/v1/Return/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
        """,
    "Api/v1/Crash/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            await websocket.receive_text()
            raise LookupError("S3cr3t")
        """,
    "Api/v1/CrashEarly/Ws.py": """
        async def handler(websocket):
            raise LookupError("S3cr3t")
        """,
    "Api/v1/Raise/Ws.py": """
        from treefold import Forbidden

        async def handler(websocket):
            await websocket.accept()
            raise Forbidden("not you")
        """,
    "Api/v1/Silent/Ws.py": """
        async def handler(websocket):
            pass
        """,
    "Api/v1/Flood/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            for _ in range(1600):
                await websocket.send_bytes(b"x" * 65536)
        """,
    "Api/v1/Room/Ws.py": """
        from treefold_http import Rooms

        rooms = Rooms()

        async def handler(websocket):
            await websocket.accept()
            await rooms.join("all", websocket)
            await websocket.send_text("joined")
            async for _ in websocket.iter_text():
                pass
        """,
    "Api/v1/Broadcast/Post.py": """
        from ..Room.Ws import rooms

        async def handler(request):
            for _ in range(16):
                await rooms.broadcast("all", "x" * 65536)
            return {"members": len(rooms.members("all"))}
        """,
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


def test_s74_a_handler_that_returns_closes_with_1000(server: Process) -> None:
    with dial(server, "/v1/return") as socket:
        with pytest.raises(ConnectionClosed) as closed:
            socket.recv(timeout=5)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1000


def test_s74_a_handler_that_fails_closes_with_1011_and_says_nothing_more(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(handshake(server, "/v1/crash", b"X-Request-ID: crash-1\r\n"))
        assert wire.answer().status == 101
        wire.send(frame(TEXT, b"x"))
        opcode, payload = next_frame(wire)
    assert (opcode, payload) == (CLOSE, (1011).to_bytes(2, "big"))
    (line,) = lines_of(server, "crash-1")
    assert line.startswith("[ERROR] WEBSOCKET /v1/crash -> 1011 ")
    assert server.wait_for(lambda lines: [line for line in lines if "LookupError" in line])


@pytest.mark.parametrize("target", ["/v1/crashearly", "/v1/silent"])
def test_s74_a_handler_that_never_accepts_is_an_answer(server: Process, target: str) -> None:
    answer = knock(server, target)
    assert answer.status in (403, 500)
    assert b"S3cr3t" not in answer.body
    assert len(lines_of(server, answer.id)) == 1


def test_s74_an_error_of_the_client_closes_with_1008(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(handshake(server, "/v1/raise"))
        assert wire.answer().status == 101
        assert close_code(wire) == 1008


def test_s74_a_client_that_vanishes_ends_the_handler(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(handshake(server, "/v1/echo", b"X-Request-ID: gone-1\r\n"))
        assert wire.answer().status == 101
    (line,) = server.wait_for(lambda lines: [line for line in lines if "id=gone-1 " in line])
    assert line.startswith("[INFO] WEBSOCKET /v1/echo 100")


def test_s74_a_server_that_stops_closes_with_1012(serve_on_socket: ServeOnSocket) -> None:
    server = serve_on_socket(TREE)
    with Wire(server) as wire:
        wire.send(handshake(server, "/v1/echo"))
        assert wire.answer().status == 101
        server.stop()
        assert close_code(wire) == 1012


def test_s75_a_handler_that_sends_waits_for_a_slow_reader(server: Process) -> None:
    with cost_of(server) as cost, Wire(server, window=4096) as wire:
        wire.send(handshake(server, "/v1/flood"))
        assert wire.answer().status == 101
        for _ in range(50):
            assert server.get("/v1/ok").status == 200
    assert cost.memory < 8 * MIB


def test_s75_who_does_not_read_a_room_is_closed_and_the_others_hear_it_all(
    server: Process,
) -> None:
    before = descriptors(server)
    with Wire(server, window=4096) as slow, dial(server, "/v1/room") as quick:
        assert quick.recv() == "joined"
        slow.send(handshake(server, "/v1/room", b"X-Request-ID: slow-1\r\n"))
        assert slow.answer().status == 101
        assert next_frame(slow) == (TEXT, b"joined")
        with cost_of(server) as cost:
            for _ in range(100):  # 100 MiB in all
                assert server.post("/v1/broadcast", b"").status == 200
                assert sum(len(quick.recv(timeout=10)) for _ in range(16)) == MIB
        assert cost.memory < 16 * MIB
        assert server.post("/v1/broadcast", b"").json() == {"members": 1}
        (line,) = server.wait_for(lambda lines: [line for line in lines if "id=slow-1 " in line])
        assert line.startswith("[INFO] WEBSOCKET /v1/room 1013 ")
    assert eventually(lambda: descriptors(server) <= before)


def test_s75_pongs_to_who_does_not_read_fill_no_memory(server: Process) -> None:
    with cost_of(server) as cost, Wire(server, window=4096) as wire:
        wire.send(handshake(server, "/v1/echo"))
        assert wire.answer().status == 101
        wire.send_what_fits(frame(PING, b"x" * 125) * 300_000, seconds=0.3)
        assert server.get("/v1/ok").status == 200
    assert cost.memory < 16 * MIB
