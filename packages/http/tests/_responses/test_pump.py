"""What ends a stream early, beyond what `test_streams` proves of the responses built on it."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import TYPE_CHECKING, Any, ParamSpec

import pytest

from treefold_http import Application, Request
from treefold_http._responses import streams
from treefold_http._responses.streams import send_chunks
from treefold_http._responses.write_buffer import MAX_BUFFER
from treefold_http._runtime.disconnect_watcher import YIELD_EVERY

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import Exchange, Message

P = ParamSpec("P")

WAIT = 10.0


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    """Run a test in a loop of its own; what never ends fails."""

    @functools.wraps(test)
    def call(*args: P.args, **kwargs: P.kwargs) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(WAIT):
                await test(*args, **kwargs)

        asyncio.run(bounded())

    return call


class Stage:
    """A request whose answer has begun."""

    def __init__(self, app: Application, exchange: Exchange) -> None:
        self.exchange = exchange
        self.request = Request(exchange.scope, exchange.receive, app, "id-1")

    async def begin(self) -> None:
        await self.exchange.send({"type": "http.response.start", "status": 200, "headers": []})


@pytest.fixture
def stage(tmp_path: Path, exchange: type[Exchange]) -> Callable[[], Stage]:
    app = Application(tmp_path)
    return lambda: Stage(app, exchange("GET", "/v1/x"))


def cancelling() -> int:
    task = asyncio.current_task()
    return task.cancelling() if task else -1


async def until(event: asyncio.Event, chunk: bytes = b"x") -> AsyncIterator[bytes]:
    yield chunk
    event.set()
    await asyncio.Event().wait()


@in_a_loop
async def test_a_stop_ends_the_producer_and_leaves_the_end_to_be_sent(
    stage: Callable[[], Stage],
) -> None:
    here, stopping = stage(), asyncio.Event()
    await here.begin()
    async with asyncio.timeout(WAIT):
        chunks = until(stopping)
        assert await send_chunks(chunks, here.request, here.exchange.send, stopping) == b""
    assert cancelling() == 0
    assert here.exchange.answer.body == b"x"
    await asyncio.sleep(0)
    assert len(asyncio.all_tasks()) == 1


@in_a_loop
async def test_a_client_that_leaves_while_the_application_stops_takes_back_one_cancellation(
    stage: Callable[[], Stage],
) -> None:
    here, stopping = stage(), asyncio.Event()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        yield b"x"
        stopping.set()
        here.exchange.gone.set()
        await asyncio.Event().wait()

    async with asyncio.timeout(WAIT):
        await send_chunks(content(), here.request, here.exchange.send, stopping)
    assert cancelling() == 0


@pytest.mark.parametrize("goes_on", [False, True])
@in_a_loop
async def test_a_producer_that_swallows_its_cancellation_is_ended_all_the_same(
    stage: Callable[[], Stage], goes_on: bool
) -> None:
    here, journal = stage(), list[str]()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            here.exchange.gone.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                journal.append("swallowed")
            while goes_on:
                yield b"more"
        finally:
            journal.append("finally")

    async with asyncio.timeout(WAIT):
        assert await send_chunks(content(), here.request, here.exchange.send) is None
    assert cancelling() == 0
    assert journal == ["swallowed", "finally"]
    assert here.exchange.answer.body == b"first"


@in_a_loop
async def test_a_cancellation_from_outside_that_a_producer_swallows_is_its_own_affair(
    stage: Callable[[], Stage],
) -> None:
    here, waiting = stage(), asyncio.Event()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            waiting.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            yield b"last words"

    sending = asyncio.ensure_future(send_chunks(content(), here.request, here.exchange.send))
    await waiting.wait()
    sending.cancel()
    last = await sending  # empty where the machine was slow, and the words went out before the end
    assert last is not None
    assert here.exchange.answer.body + last == b"last words"


@in_a_loop
async def test_a_cancellation_from_outside_is_raised_once_the_producer_is_closed(
    stage: Callable[[], Stage],
) -> None:
    here, stopping, journal = stage(), asyncio.Event(), list[str]()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"x"
            stopping.set()
            await asyncio.Event().wait()
        finally:
            journal.append("finally")

    async def send(message: Message) -> None:
        await here.exchange.send(message)

    sending = asyncio.ensure_future(send_chunks(content(), here.request, send, stopping))
    await stopping.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert journal == ["finally"]


@in_a_loop
async def test_a_server_that_raises_because_the_client_left_ends_the_producer(
    stage: Callable[[], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_DELAY", 60.0)  # a busy machine must not flush earlier
    here, journal = stage(), list[str]()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            journal.append("finally")

    async def send(message: Message) -> None:
        if len(here.exchange.answer.messages) == 3:
            raise ConnectionResetError
        await here.exchange.send(message)

    assert await send_chunks(content(), here.request, send) is None
    assert journal == ["finally"]
    assert here.exchange.answer.body == b"x" * 2 * YIELD_EVERY


@in_a_loop
async def test_where_neither_producer_nor_server_waits_a_client_that_left_is_still_noticed(
    stage: Callable[[], Stage],
) -> None:
    here, journal = stage(), list[str]()
    here.exchange.gone.set()

    async def content() -> AsyncIterator[bytes]:
        try:
            while True:
                yield b"x"
        finally:
            journal.append("finally")

    async def send(message: Message) -> None:
        """As a server that drops what nobody reads."""

    assert await send_chunks(content(), here.request, send) is None
    assert journal == ["finally"]


@in_a_loop
async def test_chunks_without_a_wait_between_them_go_out_together_and_before_a_wait(
    stage: Callable[[], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_DELAY", 60.0)  # a busy machine must not flush earlier
    here, waits = stage(), asyncio.Event()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        yield b"a"
        yield b""
        yield b"b"
        await waits.wait()
        yield b"c"
        yield b"d"

    sending = asyncio.ensure_future(send_chunks(content(), here.request, here.exchange.send))
    await here.exchange.first_chunk.wait()
    assert here.exchange.answer.body == b"ab"
    assert len(here.exchange.answer.messages) == 2
    waits.set()
    assert await sending == b"cd"


@pytest.mark.parametrize("size", [1, 1000, MAX_BUFFER, 3 * MAX_BUFFER])
@in_a_loop
async def test_a_client_that_does_not_read_keeps_little_waiting(
    stage: Callable[[], Stage], size: int
) -> None:
    here, made = stage(), [0]
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        while True:
            made[0] += 1
            yield b"x" * size

    async def send(message: Message) -> None:
        await asyncio.Event().wait()

    sending = asyncio.ensure_future(send_chunks(content(), here.request, send))
    await asyncio.sleep(0.05)
    assert (made[0] - 1) * size < MAX_BUFFER
    assert made[0] <= YIELD_EVERY
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending


@in_a_loop
async def test_a_producer_that_computes_without_a_wait_is_heard_while_it_does(
    stage: Callable[[], Stage],
) -> None:
    here = stage()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        for _ in range(3):
            time.sleep(0.01)  # noqa: ASYNC251 - what this is about
            yield b"x"

    assert await send_chunks(content(), here.request, here.exchange.send) == b""
    assert [message["body"] for message in here.exchange.answer.messages[1:]] == [b"x"] * 3


@in_a_loop
async def test_a_cancellation_while_chunks_go_out_before_a_wait_reaches_the_producer(
    stage: Callable[[], Stage],
) -> None:
    here, journal, sends = stage(), list[str](), asyncio.Event()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"x"
            await asyncio.sleep(0)
            journal.append("went on")
        finally:
            await asyncio.sleep(0)
            journal.append("finally")

    async def send(message: Message) -> None:
        sends.set()
        await asyncio.Event().wait()

    sending = asyncio.ensure_future(send_chunks(content(), here.request, send))
    await sends.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    assert journal == ["finally"]


@in_a_loop
async def test_a_cancellation_while_chunks_go_out_reaches_what_the_producer_waits_for(
    stage: Callable[[], Stage],
) -> None:
    here, sends = stage(), asyncio.Event()
    await here.begin()
    work = asyncio.ensure_future(asyncio.Event().wait())

    async def content() -> AsyncIterator[bytes]:
        yield b"x"
        await work

    async def send(message: Message) -> None:
        sends.set()
        await asyncio.Event().wait()

    sending = asyncio.ensure_future(send_chunks(content(), here.request, send))
    await sends.wait()
    sending.cancel()
    with pytest.raises(asyncio.CancelledError):
        await sending
    await asyncio.wait([work])
    assert work.cancelled()


@in_a_loop
async def test_a_server_that_raises_because_the_client_left_ends_a_producer_that_waits(
    stage: Callable[[], Stage],
) -> None:
    here, journal = stage(), list[str]()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"x"
            await asyncio.Event().wait()
        finally:
            journal.append("finally")

    async def send(message: Message) -> None:
        raise ConnectionResetError

    assert await send_chunks(content(), here.request, send) is None
    assert journal == ["finally"]
    assert cancelling() == 0


@in_a_loop
async def test_an_error_of_a_producer_is_raised_though_its_client_leaves_before_the_last_chunks(
    stage: Callable[[], Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "MAX_DELAY", 60.0)  # a busy machine must not flush earlier
    here = stage()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        yield b"x"
        raise LookupError("of the producer")

    async def send(message: Message) -> None:
        here.exchange.gone.set()
        await asyncio.Event().wait()

    with pytest.raises(LookupError, match="of the producer"):
        await send_chunks(content(), here.request, send)
    assert cancelling() == 0


@in_a_loop
async def test_a_server_that_says_at_a_full_measure_that_the_client_left_is_believed_at_once(
    stage: Callable[[], Stage],
) -> None:
    here, journal = stage(), list[str]()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"x" * MAX_BUFFER
            journal.append("asked for more")
            await asyncio.Event().wait()
        finally:
            journal.append("finally")

    async def send(message: Message) -> None:
        raise ConnectionResetError

    assert await send_chunks(content(), here.request, send) is None
    assert journal == ["finally"]


@in_a_loop
async def test_a_server_that_fails_while_chunks_go_out_ends_the_producer(
    stage: Callable[[], Stage],
) -> None:
    here, journal = stage(), list[str]()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"x"
            await asyncio.sleep(0)
        finally:
            journal.append("finally")

    async def send(message: Message) -> None:
        raise RuntimeError("the server is at fault")

    with pytest.raises(RuntimeError, match="at fault"):
        await send_chunks(content(), here.request, send)
    assert journal == ["finally"]


@in_a_loop
async def test_an_error_of_the_disk_in_a_producer_is_no_client_that_left(
    stage: Callable[[], Stage],
) -> None:
    here = stage()
    await here.begin()

    async def content() -> AsyncIterator[bytes]:
        yield b"x"
        raise OSError("disk on fire")

    with pytest.raises(OSError, match="disk on fire"):
        await send_chunks(content(), here.request, here.exchange.send)


def over_http_2(exchange: type[Exchange], method: str = "GET", **options: Any) -> Exchange:
    """A request whose header says nothing of a body, as HTTP/2 allows."""
    one = exchange(method, "/v1/x", **options)
    one.scope["http_version"] = "2"
    names = (b"content-length", b"transfer-encoding")
    one.scope["headers"] = [pair for pair in one.scope["headers"] if pair[0] not in names]
    return one


STREAM = """
import asyncio
journal = []

async def chunks():
    try:
        yield "first"
        await asyncio.Event().wait()
    finally:
        journal.append("finally")

async def handler(request):
    return StreamingResponse(chunks())
"""


def journal_of(app: Application) -> list[str]:
    (module,) = app.project.modules.values()
    return getattr(module, "handler").__globals__["journal"]  # noqa: B009 - a union


@pytest.mark.parametrize("method", ["GET", "POST"])
@in_a_loop
async def test_a_stream_over_http_2_ends_when_its_client_leaves(
    serving: Callable[..., Application], exchange: type[Exchange], method: str
) -> None:
    app = serving(STREAM, file=f"Api/v1/X/{method.capitalize()}.py")

    one = over_http_2(exchange, method)
    running = asyncio.ensure_future(one.run(app))
    await one.first_chunk.wait()
    one.gone.set()
    await running
    assert journal_of(app) == ["finally"]


@in_a_loop
async def test_a_stream_that_echoes_its_request_over_http_2_loses_nothing(
    serving: Callable[..., Application], exchange: type[Exchange]
) -> None:
    app = serving(
        "async def handler(request):\n    return StreamingResponse(request.stream())\n",
        file="Api/v1/X/Post.py",
    )
    chunks = [b"%d" % number * 40_000 for number in range(10)]

    answer = await over_http_2(exchange, "POST", chunks=chunks).run(app)
    assert answer.body == b"".join(chunks)


@pytest.mark.parametrize(
    ("handler", "body", "status"),
    [
        ("async def handler(request):\n    return 'ok'\n", b"ok", 200),
        ("async def handler(request):\n    return str(await request.json())\n", b"None", 200),
        ("async def handler(request):\n    return await request.body() or 'no'\n", b"no", 200),
        ("async def handler(a: int = 5):\n    return str(a)\n", b"5", 200),
        ("async def handler(request):\n    return StreamingResponse(iter(['ok']))\n", b"ok", 200),
    ],
)  # fmt: skip
@in_a_loop
async def test_a_server_may_tell_of_the_departure_right_behind_the_request(
    serving: Callable[..., Application],
    exchange: type[Exchange],
    handler: str,
    body: bytes,
    status: int,
) -> None:
    app = serving(handler)

    one = over_http_2(exchange)
    one.gone.set()  # whatever is asked next is answered with the disconnect
    answer = await one.run(app)
    assert answer.status == status
    assert body.startswith(answer.body)  # a stream may stop before its first chunk


@in_a_loop
async def test_a_departure_before_the_body_is_no_empty_body(
    serving: Callable[..., Application], exchange: type[Exchange]
) -> None:
    app = serving(
        "journal = []\nasync def handler(request):\n"
        "    journal.append('begun')\n    journal.append(await request.body())\n",
        file="Api/v1/X/Post.py",
    )

    one = over_http_2(exchange, "POST", chunks=(), cut=True)
    await one.run(app)
    assert journal_of(app) == ["begun"]
