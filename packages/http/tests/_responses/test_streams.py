"""Answers sent while they are produced: order, back-pressure, early leave, failure, HEAD."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, Request, StreamingResponse

if TYPE_CHECKING:
    from conftest import Exchange

WAIT = 10.0


class Stage:
    """A request over a protocol-exact exchange and what it takes to send an answer to it."""

    def __init__(self, app: Application, exchange: Exchange) -> None:
        self.app = app
        self.exchange = exchange
        self.request = Request(exchange.scope, exchange.receive, app, "id-1")

    async def send(self, response: StreamingResponse) -> None:
        async with asyncio.timeout(WAIT):
            await response.send(self.request, self.exchange.send, common=[(b"x-common", b"1")])


@pytest.fixture
def stage(tmp_path: Path, exchange: type[Exchange]) -> Iterator[Callable[..., Stage]]:
    app = Application(tmp_path)

    def make(method: str = "GET", target: str = "/v1/x", **options: Any) -> Stage:
        return Stage(app, exchange(method, target, **options))

    yield make
    app.threads.shutdown()


async def letters() -> AsyncIterator[str]:
    for letter in ("a", "", "é"):
        yield letter


def digits() -> Iterator[bytes]:
    yield from (b"1", b"", b"2")


class Endless:
    """An async iterable that is not a generator."""

    def __init__(self, *chunks: bytes) -> None:
        self.chunks = chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for chunk in self.chunks:
            yield chunk


@pytest.mark.parametrize(
    ("make", "body"),
    [
        (letters, "aé"),
        (digits, "12"),
        (lambda: [b"1", "ü"], "1ü"),
        (lambda: iter(["x"]), "x"),
        (lambda: Endless(b"1", b"2"), "12"),
        (lambda: (), ""),
        (lambda: [bytearray(b"a"), memoryview(b"b")], "ab"),
    ],
    ids=["async", "plain", "list", "iterator", "async iterable", "empty", "buffers"],
)
def test_every_kind_of_content_is_sent_chunk_by_chunk(
    stage: Callable[..., Stage], make: Callable[[], Any], body: str
) -> None:
    async def main() -> None:
        here = stage()
        await here.send(StreamingResponse(make(), 206, {"X-A": "1"}))
        answer = here.exchange.answer
        assert answer.status == 206
        assert answer.body == body.encode()
        assert answer.complete
        assert answer.headers == [
            ("x-a", "1"),
            ("content-type", "application/octet-stream"),
            ("x-common", "1"),
        ]

    asyncio.run(main())


def test_the_media_type_wins_over_the_default() -> None:
    assert StreamingResponse([], media_type="text/csv").headers.multi_items() == [
        ("content-type", "text/csv")
    ]
    assert StreamingResponse([], 200, {"Content-Type": "text/csv"}).headers.multi_items() == [
        ("content-type", "text/csv")
    ]


def test_a_chunk_is_sent_before_its_producer_waits(stage: Callable[..., Stage]) -> None:
    async def main() -> None:
        here, asked = stage(), [0]
        gate = asyncio.Semaphore(0)

        async def content() -> AsyncIterator[bytes]:
            for _ in range(5):
                asked[0] += 1
                yield b"x"
                await asyncio.sleep(0)

        async def slow(message: Any) -> None:
            if message.get("more_body"):
                await gate.acquire()
            await here.exchange.send(message)

        sending = asyncio.ensure_future(
            StreamingResponse(content()).send(here.request, slow, common=[])
        )
        for expected in (1, 2, 3, 4, 5):
            for _ in range(5):
                await asyncio.sleep(0)  # let everything run that can
            assert asked == [expected]
            gate.release()
        await sending
        assert here.exchange.answer.body == b"xxxxx"

    asyncio.run(main())


def test_a_client_that_leaves_ends_an_async_generator(stage: Callable[..., Stage]) -> None:
    async def main() -> None:
        here, journal = stage(), list[str]()

        async def content() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await asyncio.Event().wait()
                journal.append("never")
            finally:
                await asyncio.sleep(0)
                journal.append("finally")

        sending = asyncio.ensure_future(here.send(StreamingResponse(content())))
        await here.exchange.first_chunk.wait()
        here.exchange.gone.set()
        await sending
        assert journal == ["finally"]
        assert not here.exchange.answer.complete
        assert here.exchange.answer.body == b"first"
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_client_that_leaves_ends_a_plain_generator_that_is_blocked(
    stage: Callable[..., Stage],
) -> None:
    free, inside = threading.Event(), threading.Event()
    journal: list[tuple[str, bool]] = []

    def content() -> Iterator[bytes]:
        try:
            yield b"first"
            inside.set()
            free.wait(WAIT)
            yield b"second"
        finally:
            journal.append(("finally", threading.current_thread() is threading.main_thread()))

    async def main() -> None:
        here = stage()
        sending = asyncio.ensure_future(here.send(StreamingResponse(content())))
        await here.app.threads.run(inside.wait, WAIT)
        here.exchange.gone.set()
        await here.exchange.told.wait()
        free.set()
        await sending
        assert journal == [("finally", False)]
        assert here.exchange.answer.body == b"first"

    asyncio.run(main())


def test_a_plain_generator_runs_in_worker_threads_from_end_to_end(
    stage: Callable[..., Stage],
) -> None:
    where: list[bool] = []

    def content() -> Iterator[bytes]:
        where.append(threading.current_thread() is threading.main_thread())
        try:
            yield b"x"
        finally:
            where.append(threading.current_thread() is threading.main_thread())

    asyncio.run(_send(stage, StreamingResponse(content())))
    assert where == [False, False]


async def _send(stage: Callable[..., Stage], response: StreamingResponse, **options: Any) -> Stage:
    here = stage(**options)
    await here.send(response)
    return here


@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
@pytest.mark.parametrize(
    "error",
    [ValueError("x"), SystemExit(1), KeyboardInterrupt()],
    ids=lambda error: type(error).__name__,
)
def test_an_error_in_mid_stream_cuts_the_answer_and_is_raised(
    stage: Callable[..., Stage], plain: bool, error: BaseException
) -> None:
    journal: list[str] = []

    async def content() -> AsyncIterator[bytes]:
        try:
            yield b"first"
            raise error
        finally:
            journal.append("finally")

    def plain_content() -> Iterator[bytes]:
        try:
            yield b"first"
            raise error
        finally:
            journal.append("finally")

    async def main() -> None:
        here = stage()
        raised: BaseException | None = None
        try:
            await here.send(StreamingResponse(plain_content() if plain else content()))
        except BaseException as caught:
            raised = caught
        assert raised is error
        assert here.exchange.answer.body == b"first"
        assert not here.exchange.answer.complete
        assert journal == ["finally"]
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


@pytest.mark.parametrize("content", [None, 5, b"abc", bytearray(b"a"), lambda: iter("a"), object()])
def test_what_gives_no_chunks_is_refused_before_the_answer_begins(content: Any) -> None:
    name = type(content).__qualname__
    with pytest.raises(
        TypeError, match=rf"^A stream must be an iterator of str or bytes, got '{name}'; "
    ):
        StreamingResponse(content)


@pytest.mark.parametrize(
    "chunk", [None, 5, {"a": 1}, ["a"], object()], ids=lambda c: type(c).__name__
)
@pytest.mark.parametrize("plain", [False, True], ids=["async", "plain"])
def test_a_chunk_that_is_neither_text_nor_bytes_cuts_the_answer(
    stage: Callable[..., Stage], plain: bool, chunk: Any
) -> None:
    async def content() -> AsyncIterator[Any]:
        yield b"first"
        yield chunk

    async def main() -> None:
        here = stage()
        name = type(chunk).__qualname__
        with pytest.raises(TypeError, match=f"^A stream must yield str or bytes, got '{name}'$"):
            await here.send(StreamingResponse(iter([b"first", chunk]) if plain else content()))
        assert not here.exchange.answer.complete

    asyncio.run(main())


def test_a_cancellation_from_outside_ends_the_generator_and_goes_on(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> None:
        here, journal = stage(), list[str]()

        async def content() -> AsyncIterator[bytes]:
            try:
                yield b"first"
                await asyncio.Event().wait()
            finally:
                journal.append("finally")

        sending = asyncio.ensure_future(
            StreamingResponse(content()).send(here.request, here.exchange.send, common=[])
        )
        await here.exchange.first_chunk.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert journal == ["finally"]

    asyncio.run(main())


def test_a_cancellation_at_the_moment_the_client_leaves_is_not_swallowed(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> None:
        here = stage()

        async def content() -> AsyncIterator[bytes]:
            yield b"first"
            await asyncio.Event().wait()

        sending = asyncio.ensure_future(
            StreamingResponse(content()).send(here.request, here.exchange.send, common=[])
        )
        await here.exchange.first_chunk.wait()
        here.exchange.gone.set()
        await asyncio.sleep(0)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending

    asyncio.run(main())


def test_a_task_that_sent_a_stream_to_a_client_that_left_is_not_cancelled(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> int:
        here = stage()

        async def content() -> AsyncIterator[bytes]:
            yield b"first"
            here.exchange.gone.set()
            await asyncio.Event().wait()

        async def serve() -> int:
            await here.send(StreamingResponse(content()))
            await asyncio.sleep(0)
            task = asyncio.current_task()
            return task.cancelling() if task else -1

        return await asyncio.create_task(serve())

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize("chunks", [[b"ab", b"cd", b"e"], [b"abcde"]], ids=["chunked", "declared"])
def test_an_echo_of_the_request_body_loses_nothing(
    stage: Callable[..., Stage], chunks: list[bytes]
) -> None:
    async def main() -> None:
        here = stage("POST", chunks=chunks)
        await here.send(StreamingResponse(here.request.stream()))
        assert here.exchange.answer.body == b"abcde"
        assert here.exchange.answer.complete

    asyncio.run(main())


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_an_answer_without_a_body_starts_no_generator(
    stage: Callable[..., Stage], method: str, status: int
) -> None:
    started: list[str] = []

    async def content() -> AsyncIterator[bytes]:
        started.append("yes")
        yield b"x"

    async def main() -> None:
        here = await _send(stage, StreamingResponse(content(), status), method=method)
        answer = here.exchange.answer
        assert (answer.status, answer.body, answer.complete) == (status, b"", True)
        # RFC 9110, 8.6: HEAD names the length that GET would have, and a stream has none.
        assert answer.fields("content-length") == []
        assert answer.fields("content-type") == (
            ["application/octet-stream"] if method == "HEAD" else []
        )

    asyncio.run(main())
    assert started == []


def test_a_file_is_streamed_and_closed(stage: Callable[..., Stage], tmp_path: Path) -> None:
    file = tmp_path / "lines.txt"
    file.write_bytes(b"one\ntwo\n")
    opened = file.open("rb")

    here = asyncio.run(_send(stage, StreamingResponse(opened)))

    assert here.exchange.answer.body == b"one\ntwo\n"
    assert opened.closed


def test_a_transfer_coding_of_the_author_is_not_sent(stage: Callable[..., Stage]) -> None:
    response = StreamingResponse([b"x"], 200, {"Transfer-Encoding": "chunked"})

    here = asyncio.run(_send(stage, response))

    assert here.exchange.answer.fields("transfer-encoding") == []
