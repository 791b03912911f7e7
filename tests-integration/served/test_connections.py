"""How connections end over a real server: who leaves, who is too slow, who sends on, who must stop.

Rows R-10 to R-13, R-18, R-26, S-24 and D-07. What takes as long as the limits themselves is marked.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from facts import MIB, cost_of, descriptors, eventually
from serving import Process, write_tree
from socket_client import close_code, dial, handshake
from wire import ServeOnSocket, Wire, statuses

HOST = b"Host: localhost\r\n"
WATCH = """
        import asyncio
        from treefold import get_logger

        async def handler(request):
            for _ in range(3):
                assert not await request.is_disconnected()
            get_logger().info("watching %s", request.id)
            while not await request.is_disconnected():
                await asyncio.sleep(0.01)
            get_logger().info("gone %s", request.id)
        """
ENDLESS = """
        from treefold import StreamingResponse, get_logger

        async def chunks(name):
            try:
                while True:
                    yield b"x" * 65536
            finally:
                get_logger().info("ended %s", name)

        async def handler(request):
            return StreamingResponse(chunks(request.id))
        """
TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Ok/Post.py": "async def handler(request): return {'size': len(await request.body())}",
    "Api/v1/Watch/Get.py": WATCH,
    "Api/v1/Watch/Post.py": WATCH,
    "Api/v1/Look/Post.py": """
        import asyncio

        async def handler(request):
            seen = []
            for _ in range(5):
                seen.append(await request.is_disconnected())
                await asyncio.sleep(0.01)
            body = await request.body()
            seen.append(await request.is_disconnected())
            return {"seen": seen, "size": len(body), "whole": body == b"x" * len(body)}
        """,
    "Api/v1/Events/Get.py": """
        import asyncio
        from treefold import Event, EventStream, get_logger

        async def ticks(name):
            try:
                yield Event("first")
                await asyncio.Event().wait()
            finally:
                get_logger().info("ended %s", name)

        async def handler(request):
            return EventStream(ticks(request.id))
        """,
    "Api/v1/Endless/Get.py": ENDLESS,
    "Api/v1/Endless/Post.py": ENDLESS,
    "Api/v1/Echo/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            async for text in websocket.iter_text():
                await websocket.send_text(text)
        """,
    "Api/v1/Flood/Ws.py": """
        from treefold import WebSocketDisconnect, get_logger

        async def handler(websocket):
            await websocket.accept()
            try:
                while True:
                    await websocket.send_text("x" * 1000)
            finally:
                get_logger().info("ended %s", websocket.id)
        """,
    "Api/v1/Stuck/Get.py": """
        import asyncio
        from treefold import get_logger

        async def handler(request):
            get_logger().info("stuck")
            await asyncio.Event().wait()
        """,
    "Api/v1/Reset/[token]/Get.py": "async def handler(request): return {}",
    "treefold.toml": "limit_concurrency = 50\n",
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


def said(server: Process, text: str) -> bool:
    return bool(server.wait_for(lambda lines: [line for line in lines if text in line]))


@pytest.mark.parametrize(
    ("name", "request_"),
    [
        ("get", b"GET /v1/watch HTTP/1.1\r\n" + HOST + b"X-Request-ID: get\r\n\r\n"),
        (
            "post",
            b"POST /v1/watch HTTP/1.1\r\n"
            + HOST
            + b"X-Request-ID: post\r\nContent-Length: 3\r\n\r\nabc",
        ),
        (
            "short",
            b"POST /v1/watch HTTP/1.1\r\n"
            + HOST
            + b"X-Request-ID: short\r\nContent-Length: 3\r\n\r\na",
        ),
        (
            "chunked",
            b"POST /v1/watch HTTP/1.1\r\n"
            + HOST
            + b"X-Request-ID: chunked\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_r09_a_handler_sees_that_its_client_has_left(
    server: Process, name: str, request_: bytes
) -> None:
    with Wire(server) as wire:
        wire.send(request_)
        assert said(server, f"watching {name}")
    assert said(server, f"gone {name}")


@pytest.mark.parametrize("size", [0, 3, 60_000, 1_000_000])
def test_r09_looking_for_the_client_loses_no_byte_and_no_following_request(
    server: Process, size: int
) -> None:
    look = b"POST /v1/look HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % size
    following = b"GET /v1/ok HTTP/1.1\r\n" + HOST + b"\r\n"
    with Wire(server) as wire:
        wire.send(look + b"x" * size + look + b"x" * size + following)
        for _ in range(2):
            assert wire.answer("POST").json() == {"seen": [False] * 6, "size": size, "whole": True}
        assert wire.answer().json() == {}


@pytest.mark.parametrize("path", [b"/v1/ok", b"/v1/none", b"/v1/%ff"])
@pytest.mark.parametrize("framing", [b"Content-Length: 8388608", b"Transfer-Encoding: chunked"])
def test_s24_an_answer_reaches_a_client_that_sends_its_whole_body_first(
    server: Process, path: bytes, framing: bytes
) -> None:
    body = b"x" * 8 * MIB
    if b"chunked" in framing:
        body = b"80000\r\n" + body[: 8 * 65536] + b"\r\n"
        body = body * 16 + b"0\r\n\r\n"
    with cost_of(server) as cost, Wire(server) as wire:
        assert wire.send(b"POST " + path + b" HTTP/1.1\r\n" + HOST + framing + b"\r\n\r\n" + body)
        answer = wire.answer("POST")
        assert answer.status in (400, 404, 413)
        assert answer.values("connection") == ["close"]
        assert wire.rest() == b""
    assert cost.memory < 5 * MIB


def test_d07_requests_above_the_limit_are_503_and_the_others_go_on(server: Process) -> None:
    request = b"GET /v1/watch HTTP/1.1\r\n" + HOST + b"X-Request-ID: many\r\n\r\n"
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(server)) for _ in range(60)]
        for wire in wires:
            wire.send(request)
        assert eventually(lambda: server.get("/v1/ok").status == 503)
        refused = server.get("/v1/ok")
        assert (refused.status, refused.value("retry-after")) == (503, "1")
        assert refused.value("content-type") == "application/problem+json"
        assert server.line(refused).startswith("[ERROR] GET /v1/ok 503 ")
        refused = server.get("/v1/reset/S3cret")
        assert server.line(refused).startswith("[ERROR] GET /v1/reset/*** 503 ")
    assert eventually(lambda: server.get("/v1/ok").status == 200)


def test_r10_slow_readers_of_a_stream_cost_little_and_end_it_when_they_leave(
    server: Process,
) -> None:
    head = b"GET /v1/endless HTTP/1.1\r\n" + HOST + b"X-Request-ID: endless\r\n\r\n"
    with cost_of(server) as cost, ExitStack() as stack:
        for wire in [stack.enter_context(Wire(server, window=4096)) for _ in range(20)]:
            wire.send(head)
            assert wire.at_least(100)
        for _ in range(20):
            assert server.get("/v1/ok").status == 200
    assert cost.memory < 20 * MIB
    ended = "ended endless"
    server.wait_for(lambda lines: sum(ended in line for line in lines) == 20 or None)


def test_r10_clients_that_never_read_hold_no_place_and_are_closed(
    serve_on_socket: ServeOnSocket,
) -> None:
    server = serve_on_socket(
        {
            **TREE,
            "Api/v1/Large/Get.py": "async def handler(): return b'x' * 8_000_000",
            "treefold.toml": "limit_concurrency = 5\n[serve]\nsend_timeout = 2\n",
        }
    )
    with ExitStack() as stack:
        wires = [stack.enter_context(Wire(server, window=4096)) for _ in range(20)]
        for number, wire in enumerate(wires):
            path = b"/v1/large" if number % 2 else b"/v1/endless"
            wire.send(b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"X-Request-ID: unread\r\n\r\n")
            assert eventually(lambda: server.get("/v1/ok").status == 200)
        server.wait_for(lambda lines: sum("ended unread" in line for line in lines) == 10 or None)
        assert eventually(lambda: descriptors(server) < 20)
    assert said(server, "their clients read too slowly, or not at all")


@pytest.mark.long
def test_r10_a_thousand_clients_that_never_read_leave_the_others_their_place(
    serve_on_socket: ServeOnSocket,
) -> None:
    server = serve_on_socket({**TREE, "treefold.toml": ""})  # 1,000 requests, 60 seconds
    before = descriptors(server)
    with ExitStack() as stack:
        for number in range(1010):
            wire = stack.enter_context(Wire(server, window=4096))
            wire.send(b"GET /v1/endless HTTP/1.1\r\n" + HOST + b"X-Request-ID: unread\r\n\r\n")
            if number % 10 == 9:  # each fills the buffers of the kernel first
                assert server.get("/v1/ok").status == 200
        # the slowest of more than 1,000 are closed, the others have their 60 seconds
        assert eventually(lambda: before + 900 < descriptors(server) <= before + 1000)
        began = time.monotonic()
        while descriptors(server) > before + 5:
            assert server.get("/v1/ok").status == 200
            assert time.monotonic() - began < 90
            time.sleep(0.5)
    assert said(server, "their clients read too slowly, or not at all")


def test_a_client_that_reads_a_large_answer_slowly_is_not_closed(
    serve_on_socket: ServeOnSocket,
) -> None:
    size = 6_000_000
    server = serve_on_socket(
        {
            "Api/v1/Large/Get.py": f"async def handler(): return b'x' * {size}",
            "treefold.toml": "[serve]\nsend_timeout = 0.5\n",
        }
    )
    with Wire(server, window=4096) as wire:
        wire.send(b"GET /v1/large HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        received = 0
        for _ in range(20):  # twice as long as a client that does not read may take
            received += len(wire.at_least(1))
            time.sleep(0.05)  # the client's own pace
        assert received + len(wire.rest()) > size


LOOPS = ["asyncio", "uvloop"]


@pytest.fixture(params=LOOPS)
def stoppable(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Process]:
    """A server of its own, on one of the two event loops."""
    root = write_tree(tmp_path / "project", TREE)
    # The server without extras has no uvloop either.
    kind = "httptools" if request.param == "uvloop" else "h11"
    server = Process(root, kind, dev=False, default_version=None)
    try:
        yield server
    finally:
        server.stop()


@pytest.mark.parametrize("pause", [0, 0.002, 0.02])
@pytest.mark.parametrize(
    "head", [b"GET /v1/endless HTTP/1.1\r\n", b"POST /v1/endless HTTP/1.1\r\nContent-Length: 9\r\n"]
)
def test_r10_a_stream_without_a_pause_ends_with_its_client_and_holds_nobody_up(
    server: Process, head: bytes, pause: float
) -> None:
    # Once the client has left, neither the producer nor the server waits for anything.
    name = f"{head[:4].decode().strip()}-{pause}"
    for number in range(5):
        with Wire(server) as wire:
            wire.send(head + HOST + f"X-Request-ID: {name}-{number}\r\n\r\n".encode())
            time.sleep(pause)
    for number in range(5):
        assert said(server, f"ended {name}-{number}")
    with Wire(server) as wire:
        assert wire.send(b"GET /v1/ok HTTP/1.1\r\n" + HOST + b"\r\n")
        assert wire.answer().status == 200


@pytest.mark.parametrize("pause", [0, 0.002, 0.02])
def test_r10_a_socket_that_only_sends_ends_with_its_client_and_holds_nobody_up(
    server: Process, pause: float
) -> None:
    for number in range(5):
        with Wire(server) as wire:
            name = f"X-Request-ID: flood-{pause}-{number}\r\n".encode()
            wire.send(handshake(server, "/v1/flood", name))
            assert wire.at_least(100)
            time.sleep(pause)
    for number in range(5):
        assert said(server, f"ended flood-{pause}-{number}")
    with Wire(server) as wire:
        assert wire.send(b"GET /v1/ok HTTP/1.1\r\n" + HOST + b"\r\n")
        assert wire.answer().status == 200


@pytest.mark.parametrize("seconds", [12, pytest.param(50, marks=pytest.mark.long)])
def test_what_is_quiet_and_nobody_ends_stays_open_beyond_every_limit(
    server: Process, seconds: int
) -> None:
    name = f"quiet-{seconds}"
    request = b"GET /v1/events HTTP/1.1\r\n" + HOST + f"X-Request-ID: {name}\r\n\r\n".encode()
    with dial(server, "/v1/echo") as socket, Wire(server) as events:
        events.send(request)
        received = b""
        while b"first" not in received:
            received += events.at_least(1)
        time.sleep(seconds)  # longer than a head, or with 50 a body and a ping, may take
        socket.send("still here")
        assert socket.recv(timeout=5) == "still here"
        (so_far,) = server.wait_for(lambda lines: ["\n".join(lines)])
        assert name not in so_far
    assert said(server, f"ended {name}")


def test_r18_a_stop_ends_streams_and_sockets_at_once(stoppable: Process) -> None:
    with Wire(stoppable) as events, Wire(stoppable) as socket, Wire(stoppable) as idle:
        idle.send(b"GET /v1/ok HTTP/1.1\r\n" + HOST + b"\r\n")
        assert idle.answer().status == 200
        events.send(b"GET /v1/events HTTP/1.1\r\n" + HOST + b"X-Request-ID: stream\r\n\r\n")
        received = b""
        while b"first" not in received:
            received += events.at_least(1)
        socket.send(handshake(stoppable, "/v1/echo"))
        assert socket.answer().status == 101
        began = time.monotonic()
        written = stoppable.stop()
        assert time.monotonic() - began < 15  # the grace is 20
        assert close_code(socket) == 1012
        assert events.rest().endswith(b"0\r\n\r\n")  # ended, and not broken off
        assert idle.rest() == b""
    assert "ended stream" in written
    assert re.search(r"WEBSOCKET /v1/echo 1012 ", written)
    assert re.search(r"\[INFO\] GET /v1/events 200 ", written)


@pytest.mark.long
def test_r18_a_stuck_request_is_cancelled_when_the_grace_is_over(
    serve_on_socket: ServeOnSocket,
) -> None:
    server = serve_on_socket(TREE)
    with Wire(server) as wire:
        wire.send(b"GET /v1/stuck HTTP/1.1\r\n" + HOST + b"\r\n")
        assert said(server, "stuck")
        os.kill(server.pid, signal.SIGTERM)
        began = time.monotonic()
        while Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z":
            assert time.monotonic() - began < 25
            time.sleep(0.1)  # nothing tells of the end of a process that is not awaited
        assert time.monotonic() - began > 19


@pytest.mark.long
def test_r11_r13_half_open_connections_are_closed_after_ten_seconds(server: Process) -> None:
    before = descriptors(server)
    with ExitStack() as stack:
        silent = [stack.enter_context(Wire(server)) for _ in range(250)]
        halves = [stack.enter_context(Wire(server)) for _ in range(250)]
        began = time.monotonic()
        for wire in halves:
            wire.send(b"GET /v1/ok HTTP/1.1\r\nX-Slow: ")
        assert server.get("/v1/ok").status == 200
        for wire in silent:
            assert wire.rest() == b""
        for wire in halves:
            assert statuses(wire.rest()) == [408]
        assert 9 < time.monotonic() - began < 25
    assert eventually(lambda: descriptors(server) <= before)


@pytest.mark.long
def test_r12_a_body_of_one_byte_a_second_is_408(server: Process) -> None:
    head = b"POST /v1/ok HTTP/1.1\r\n" + HOST + b"Content-Length: 1000\r\n\r\n"
    with ExitStack() as stack, cost_of(server) as cost:
        wires = [stack.enter_context(Wire(server)) for _ in range(40)]
        for wire in wires:
            wire.send(head)
        for _ in range(29):
            for wire in wires:
                wire.send(b"x")
            time.sleep(1)  # the row's rate
        for wire in wires:
            assert statuses(wire.rest()) == [408]
    assert cost.memory < 20 * MIB


@pytest.mark.parametrize("kind", ["unread", "streamed"])
def test_r26_an_upload_costs_what_is_on_its_way_and_not_its_size(
    serve_on_socket: ServeOnSocket, kind: str
) -> None:
    server = serve_on_socket(
        {
            "Api/v1/Unread/Post.py": """
                import asyncio
                async def handler(request):
                    await asyncio.sleep(4)
                """,
            "Api/v1/Streamed/Post.py": """
                async def handler(request):
                    async for _ in request.stream():
                        pass
                """,
            "Api/v1/Ok/Get.py": "async def handler(request): return {}",
            "treefold.toml": "max_body = 100_000_000\n",
        }
    )
    head = f"POST /v1/{kind} HTTP/1.1\r\nTransfer-Encoding: chunked\r\n".encode() + HOST
    body = b"\r\n400000\r\n" + b"x" * 0x3FFFFF
    with cost_of(server) as cost, ExitStack() as stack:
        for wire in [stack.enter_context(Wire(server)) for _ in range(60)]:
            wire.send_what_fits(head + body, seconds=0.03)
        assert server.get("/v1/ok").status == 200
    assert cost.memory < 60 * MIB  # of 240 that were sent; a quarter of one was measured for each
    assert eventually(lambda: descriptors(server) < 50)


@pytest.mark.long
def test_r26_many_uploads_that_break_off_leave_no_memory_behind(server: Process) -> None:
    head = b"POST /v1/ok HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    body = b"80000\r\n" + b"x" * 0x80000

    def burst() -> None:
        with ExitStack() as stack:
            for wire in [stack.enter_context(Wire(server)) for _ in range(100)]:
                wire.send(head + body)

    burst()  # what stays of the first is kept for the next
    with cost_of(server) as cost:
        for _ in range(9):
            burst()
        assert eventually(lambda: server.get("/v1/ok").status == 200)
    assert cost.memory < 50 * 4 * MIB  # what 50 at a time may hold, however many came
