"""One connection over a real socket, for each parser: what is too slow, and how an answer ends."""

import asyncio
import importlib.util
import random
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
from uvicorn.server import ServerState

from treefold_server._connection_timeouts import HEAD_BYTES, ConnectionTimeouts
from treefold_server._server import ServerConfig
from treefold_server._socket_protocol import HardenedWebSocketProtocol
from treefold_server._unread_responses import ReaderFlow, UnreadResponses

PARSERS = {"h11": "_h11_protocol:HardenedH11Protocol"}
if importlib.util.find_spec("httptools"):  # an extra; the other suites always have it
    PARSERS["httptools"] = "_http_protocol:HardenedHttpToolsProtocol"

HEAD = b"POST /x HTTP/1.1\r\nHost: a\r\n"
LATE = b"HTTP/1.1 408 Request Timeout\r\n"


class Served:
    """A server of one ASGI application, and connections to it."""

    def __init__(self, port: int, state: ServerState) -> None:
        self.port = port
        self.state = state
        self.writers: list[asyncio.StreamWriter] = []

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writers.append(writer)
        return reader, writer

    async def end(self) -> None:
        for connection in list(self.state.connections):
            connection.transport.abort()
        for writer in self.writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():  # noqa: ASYNC110 - no event of the server says so
            await asyncio.sleep(0.001)

    async def exchange(self, *sent: bytes) -> bytes:
        """Send on a connection of its own; give everything up to its end."""
        reader, writer = await self.connect()
        for data in sent:
            writer.write(data)
            await writer.drain()
        return await reader.read()


Serve = Callable[..., Any]


@pytest.fixture(params=PARSERS)
def serve(request: pytest.FixtureRequest) -> Serve:
    @asynccontextmanager
    async def start(app: Any, **options: Any) -> AsyncGenerator[Served]:
        http: Any = f"treefold_server.{PARSERS[request.param]}"
        config = ServerConfig(app, http=http, lifespan="off", log_config=None, **options)
        config.load()
        state = ServerState()
        protocol: Any = config.http_protocol_class
        server = await asyncio.get_running_loop().create_server(
            lambda: protocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        async with server:
            served = Served(server.sockets[0].getsockname()[1], state)
            try:
                yield served
            finally:
                await served.end()

    return start


def run(main: Coroutine[Any, Any, None]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(20):
            await main

    asyncio.run(bounded())


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Time limits that a test can wait for."""
    monkeypatch.setattr(ConnectionTimeouts, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(ConnectionTimeouts, "BODY_TICK", 0.05)
    monkeypatch.setattr(ConnectionTimeouts, "LINGER_SILENCE", 0.2)
    monkeypatch.setattr(ConnectionTimeouts, "LINGER_SECONDS", 0.6)


async def answer(send: Any, status: int = 200, *, close: bool = False) -> None:
    headers = [(b"content-length", b"2")] + [(b"connection", b"close")] * close
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": b"ok"})


async def reads(scope: Any, receive: Any, send: Any) -> None:
    while (message := await receive()).get("more_body"):
        pass
    if message["type"] == "http.request":
        await answer(send)


async def refuses(scope: Any, receive: Any, send: Any) -> None:
    await answer(send, 413, close=True)


async def drip(writer: asyncio.StreamWriter, data: bytes) -> None:
    """Send one byte after the other for as long as the connection takes them."""
    while not writer.is_closing():
        writer.write(data)
        await asyncio.sleep(0.02)


@pytest.mark.usefixtures("quick")
def test_r13_a_connection_that_says_nothing_is_closed(serve: Serve) -> None:
    async def main() -> None:
        async with serve(reads) as server:
            assert await server.exchange() == b""
            assert not server.state.connections

    run(main())


UPGRADE = (
    b"GET /x HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("first", [b"", HEAD + b"Content-Length: 0\r\n\r\n"])
@pytest.mark.parametrize("in_parts", [False, True])
def test_a_websocket_may_last(serve: Serve, first: bytes, in_parts: bool) -> None:
    ended = asyncio.Event()

    async def socket_too(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            return await reads(scope, receive, send)
        await receive()
        await send({"type": "websocket.accept"})
        await ended.wait()
        await send({"type": "websocket.send", "text": "hi"})
        await send({"type": "websocket.close"})

    async def main() -> None:
        async with serve(socket_too, ws=HardenedWebSocketProtocol) as server:
            reader, writer = await server.connect()
            if first:
                writer.write(first)
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200")
            for part in (UPGRADE[:20], UPGRADE[20:]) if in_parts else (UPGRADE,):
                writer.write(part)
                await asyncio.sleep(0.05)
            assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
            await asyncio.sleep(3 * ConnectionTimeouts.HEAD_SECONDS)
            ended.set()
            assert await reader.readexactly(4) == b"\x81\x02hi"

    run(main())


def test_r11_r12_r13_the_limits_are_those_that_are_documented() -> None:
    """The long runs wait for them; the other tests of this file have shorter ones."""
    assert ConnectionTimeouts.HEAD_SECONDS == 10
    assert ConnectionTimeouts.BODY_TICK * ConnectionTimeouts.BODY_TICKS == 30
    assert ConnectionTimeouts.BODY_LEAST == 500 * 30


@pytest.mark.usefixtures("quick")
def test_r12_the_scope_says_how_a_body_that_was_too_slow_was_answered(serve: Serve) -> None:
    seen: list[Any] = []

    async def note(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive()).get("more_body"):
            pass
        seen.extend([message["type"], scope["treefold.answered"]])

    async def main() -> None:
        async with serve(note) as server:
            sent = HEAD + b"Content-Length: 1000\r\n\r\nabc"
            assert (await server.exchange(sent)).startswith(LATE)
            await server.until(lambda: bool(seen))
        assert seen == ["http.disconnect", 408]

    run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("sent", [b"GET", HEAD, HEAD + b"X-A: b"])
def test_r11_a_head_that_does_not_end_is_408(serve: Serve, sent: bytes) -> None:
    async def main() -> None:
        async with serve(reads) as server:
            assert (await server.exchange(sent)).startswith(LATE)

    run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("first", [b"", HEAD + b"Content-Length: 0\r\n\r\n"])
def test_r11_bytes_that_go_on_coming_do_not_prolong_it(serve: Serve, first: bytes) -> None:
    async def main() -> None:
        async with serve(reads) as server:
            reader, writer = await server.connect()
            if first:
                writer.write(first)
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
            writer.write(b"GET / HTTP/1.1\r\nX-A: ")
            dripping = asyncio.ensure_future(drip(writer, b"x"))
            assert (await reader.readuntil(b"Timeout\r\n")).startswith(LATE)
            dripping.cancel()

    run(main())


BROKEN = HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\nno size\r\n"


def test_a_body_that_breaks_the_protocol_is_400_and_a_client_that_left(serve: Serve) -> None:
    seen: list[str] = []

    async def late(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.1)
        while (message := await receive()).get("more_body"):
            pass
        seen.append(message["type"])
        await answer(send)  # as one who does not look would
        seen.append("answered")

    async def main() -> None:
        async with serve(late) as server:
            assert (await server.exchange(BROKEN)).startswith(b"HTTP/1.1 400 ")
            await server.until(lambda: len(seen) == 2)
        assert seen == ["http.disconnect", "answered"]

    run(main())


LARGE = b"HTTP/1.1 431 Request Header Fields Too Large\r\n"


@asynccontextmanager
async def flooding(writer: asyncio.StreamWriter, piece: bytes) -> AsyncGenerator[list[int]]:
    """Send on and on, as fast as the connection takes it; give the sizes of what it took."""
    taken: list[int] = []

    async def flood() -> None:
        with suppress(ConnectionError):
            while True:
                writer.write(piece)
                await writer.drain()
                taken.append(len(piece))

    sending = asyncio.ensure_future(flood())
    try:
        yield taken
    finally:
        sending.cancel()


FIELDS = b"X-Same: 1\r\n" * 1000


@pytest.mark.parametrize("first", [b"", HEAD + b"Content-Length: 0\r\n\r\n"])
@pytest.mark.parametrize(
    ("begin", "piece"),
    [
        pytest.param(b"GET / HTTP/1.1\r\nHost: a\r\n", FIELDS, id="fields"),
        pytest.param(b"GET / HTTP/1.1\r\nX-Long: ", b"x" * 10_000, id="a value"),
        pytest.param(b"GET / HTTP/1.1\r\nX-", b"x" * 10_000, id="a name"),
        pytest.param(b"GET /", b"x" * 10_000, id="a target"),
    ],
)
def test_s21_a_head_that_grows_without_end_is_refused(
    serve: Serve, caplog: pytest.LogCaptureFixture, first: bytes, begin: bytes, piece: bytes
) -> None:
    async def main() -> None:
        async with serve(reads, h11_max_incomplete_event_size=HEAD_BYTES) as server:
            reader, writer = await server.connect()
            if first:
                writer.write(first)
                await reader.readuntil(b"ok")
            writer.write(begin)
            async with flooding(writer, piece):
                received = await reader.readline()
            # h11 refuses it itself, as what is no request
            assert received in (LARGE, b"HTTP/1.1 400 Bad Request\r\n", b"HTTP/1.1 400 \r\n")
            (line,) = [each.message for each in caplog.records if each.levelname == "WARNING"]
            assert "more than 65536 bytes" in line or line == "Invalid HTTP request received."

    run(main())


def test_s21_trailers_that_grow_without_end_are_refused(serve: Serve) -> None:
    seen: list[str] = []

    async def note(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive()).get("more_body"):
            pass
        seen.append(message["type"])

    async def main() -> None:
        async with serve(note, h11_max_incomplete_event_size=HEAD_BYTES) as server:
            _, writer = await server.connect()
            writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n")
            async with flooding(writer, FIELDS):
                await server.until(lambda: bool(seen))
        assert seen == ["http.disconnect"]

    run(main())


def test_s21_a_head_that_grows_behind_a_running_request_is_not_kept(serve: Serve) -> None:
    async def waits(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        assert (await receive())["type"] == "http.disconnect"

    async def main() -> None:
        async with serve(waits, h11_max_incomplete_event_size=HEAD_BYTES) as server:
            _, writer = await server.connect()
            writer.write(b"GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\n")
            async with flooding(writer, FIELDS * 10) as taken:
                await asyncio.sleep(0.5)
            assert sum(taken) < 16 * 1024 * 1024  # the rest of it is in the kernel's buffers

    run(main())


@pytest.mark.usefixtures("quick")
def test_r11_a_slow_handler_is_no_late_head(serve: Serve) -> None:
    async def slow(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.5)
        await answer(send, close=True)

    async def main() -> None:
        async with serve(slow) as server:
            received = await server.exchange(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", b"GET /")
            assert received.startswith(b"HTTP/1.1 200 ")

    run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("framing", [b"Content-Length: 9000", b"Transfer-Encoding: chunked"])
def test_r12_a_body_that_stops_is_408_and_a_client_that_left(serve: Serve, framing: bytes) -> None:
    seen: list[str] = []

    async def note(scope: Any, receive: Any, send: Any) -> None:
        while (message := await receive()).get("more_body"):
            pass
        seen.append(message["type"])

    async def main() -> None:
        async with serve(note) as server:
            received = await server.exchange(HEAD + framing + b"\r\n\r\n5\r\nabcde")
            assert received.startswith(LATE)
            await server.until(lambda: bool(seen))
        assert seen == ["http.disconnect"]

    run(main())


@pytest.mark.usefixtures("quick")
def test_r12_a_body_that_trickles_is_408(serve: Serve) -> None:
    async def main() -> None:
        async with serve(reads) as server:
            reader, writer = await server.connect()
            writer.write(HEAD + b"Content-Length: 9000\r\n\r\n")
            dripping = asyncio.ensure_future(drip(writer, b"x"))
            assert (await reader.readuntil(b"Timeout\r\n")).startswith(LATE)
            dripping.cancel()

    run(main())


def test_r12_a_body_that_comes_slowly_enough_is_taken(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ConnectionTimeouts, "BODY_TICK", 0.05)
    monkeypatch.setattr(ConnectionTimeouts, "BODY_LEAST", 10)

    async def main() -> None:
        async with serve(reads) as server:
            reader, writer = await server.connect()
            writer.write(HEAD + b"Content-Length: 50\r\nConnection: close\r\n\r\n")
            for _ in range(50):
                writer.write(b"x")
                await asyncio.sleep(0.02)
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")

    run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("expects", [b"", b"Expect: 100-continue\r\n"])
def test_r12_a_handler_that_does_not_read_yet_makes_nobody_slow(
    serve: Serve, expects: bytes
) -> None:
    async def later(scope: Any, receive: Any, send: Any) -> None:
        await asyncio.sleep(0.6)
        await reads(scope, receive, send)

    async def main() -> None:
        async with serve(later) as server:
            reader, writer = await server.connect()
            size = b"Content-Length: 4000000\r\nConnection: close\r\n"
            writer.write(HEAD + size + expects + b"\r\n")
            if expects:
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 100 ")
            writer.write(b"x" * 4_000_000)
            assert (await reader.read()).startswith(b"HTTP/1.1 200 ")

    run(main())


@pytest.mark.parametrize("framing", [b"Content-Length: 8000000", b"Transfer-Encoding: chunked"])
def test_an_answer_reaches_a_client_that_sends_all_before_it_reads(
    serve: Serve, framing: bytes
) -> None:
    async def main() -> None:
        async with serve(refuses) as server:
            reader, writer = await server.connect()
            chunk = b"x" * 8_000_000 if b"L" in framing else b"8000\r\n" + b"x" * 0x8000 + b"\r\n"
            writer.write(HEAD + framing + b"\r\n\r\n" + chunk)
            await writer.drain()  # a reset would raise here
            received = await reader.read()
            assert received.startswith(b"HTTP/1.1 413 ")
            assert received.endswith(b"ok")

    run(main())


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("sends_on", [False, True])
def test_a_client_that_never_ends_is_left_in_the_end(serve: Serve, sends_on: bool) -> None:
    async def main() -> None:
        async with serve(refuses) as server:
            reader, writer = await server.connect()
            writer.write(HEAD + b"Content-Length: 8000000\r\n\r\n")
            received = await reader.read()
            assert received.startswith(b"HTTP/1.1 413 ")
            assert len(server.state.connections) == 1  # it listens still
            dripping = asyncio.ensure_future(drip(writer, b"x" * sends_on))
            await server.until(lambda: not server.state.connections)
            dripping.cancel()

    run(main())


def test_the_end_of_the_server_waits_for_no_such_client(serve: Serve) -> None:
    async def main() -> None:
        async with serve(refuses) as server:
            reader, writer = await server.connect()
            writer.write(HEAD + b"Content-Length: 8000000\r\n\r\n")
            assert (await reader.read()).startswith(b"HTTP/1.1 413 ")
            (connection,) = server.state.connections
            connection.shutdown()
            await server.until(lambda: not server.state.connections)

    run(main())


def test_an_honest_request_leaves_no_timer_but_that_of_keep_alive(serve: Serve) -> None:
    async def main() -> None:
        async with serve(reads) as server:
            reader, writer = await server.connect()
            for body in (b"", b"x" * 100_000):
                writer.write(HEAD + b"Content-Length: %d\r\n\r\n" % len(body))
                await asyncio.sleep(0.01)
                writer.write(body)
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
            (connection,) = server.state.connections
            watch: Any = connection
            assert watch._timeouts._timer is None
            assert watch.timeout_keep_alive_task is not None

    run(main())


def test_d07_what_comes_above_the_limit_is_503_and_idle_connections_do_not_count(
    serve: Serve,
) -> None:
    gate: asyncio.Event

    async def waits(scope: Any, receive: Any, send: Any) -> None:
        await gate.wait()
        await answer(send)

    async def main() -> None:
        nonlocal gate
        gate = asyncio.Event()
        request = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
        async with serve(waits, limit_concurrency=2) as server:
            idle = [await server.connect() for _ in range(5)]
            busy = [await server.connect() for _ in range(2)]
            for _, writer in busy:
                writer.write(request)
            await server.until(lambda: len(server.state.tasks) == 2)
            refused = await server.exchange(request)
            assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
            assert b"\r\nretry-after: 1\r\n" in refused
            gate.set()
            for reader, _ in busy:
                assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")
            reader, writer = idle[0]
            writer.write(request)
            assert (await reader.readuntil(b"ok")).startswith(b"HTTP/1.1 200 ")

    run(main())


def test_a_client_that_left_behind_an_unread_body_leaves_no_connection(serve: Serve) -> None:
    """Nobody sees it go while reading is paused, and its socket cannot be shut down any more."""

    async def main() -> None:
        gate = asyncio.Event()

        async def waits(scope: Any, receive: Any, send: Any) -> None:
            await gate.wait()
            with suppress(OSError):  # one write alone, to which the other side says no
                headers = [(b"connection", b"close")]
                await send({"type": "http.response.start", "status": 204, "headers": headers})
                await send({"type": "http.response.body", "body": b""})

        async with serve(waits) as server:
            _, writer = await server.connect()
            writer.write(HEAD + b"Content-Length: 9000000\r\n\r\n" + b"x" * 4_000_000)
            connections: set[Any] = server.state.connections
            await server.until(lambda: any(c.flow and c.flow.read_paused for c in connections))
            writer.transport.abort()
            await server.until(writer.transport.is_closing)
            await asyncio.sleep(0)  # closed in a callback
            gate.set()
            await server.until(lambda: not connections)

    run(main())


def test_more_clients_that_do_not_read_than_are_kept_lose_the_slowest(
    serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(UnreadResponses, "MOST", 3)

    async def endless(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        while True:
            await send({"type": "http.response.body", "body": b"x" * 65536, "more_body": True})
            await asyncio.sleep(0)

    async def main() -> None:
        async with serve(endless) as server:
            clients = [await server.connect() for _ in range(5)]
            for _, writer in clients:
                writer.write(HEAD.replace(b"POST", b"GET") + b"\r\n")
            await server.until(lambda: len(server.state.connections) == 3)
            await server.until(lambda: ReaderFlow.blocked == 3)
            for connection in list(server.state.connections):
                connection.transport.abort()
            for task in list(server.state.tasks):
                task.cancel()

    run(main())


SHORT_HEAD = b"GET /x HTTP/1.1\r\nHost: a\r\n\r\n"
LONG_HEAD = b"GET /x HTTP/1.1\r\nHost: a\r\nX-Large: " + b"v" * 20_000 + b"\r\n\r\n"
WITH_BODY = b"POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 3000\r\n\r\n" + b"b" * 3000


@pytest.mark.parametrize("seed", range(8))
def test_the_said_size_of_a_head_is_never_below_its_size(serve: Serve, seed: int) -> None:
    """However requests are cut into segments, and several of them put into one."""
    draw = random.Random(seed)
    wanted = draw.choices((SHORT_HEAD, LONG_HEAD, WITH_BODY), k=12)
    said: list[tuple[int, int]] = []

    async def keeps(scope: Any, receive: Any, send: Any) -> None:
        size = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
        said.append((scope.get("treefold.head_size", 1 << 20), size))
        await reads(scope, receive, send)

    async def main() -> None:
        async with serve(keeps) as server:
            stream = b"".join(wanted)
            cuts = sorted(draw.sample(range(1, len(stream)), draw.choice((0, 2, 9))))
            reader, writer = await server.connect()
            for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
                writer.write(stream[start:end])
                await writer.drain()
                await asyncio.sleep(0.002)
            for _ in wanted:
                await reader.readuntil(b"ok")

    run(main())
    assert len(said) == len(wanted)
    assert [pair for pair in said if pair[0] < pair[1]] == []
