"""What the test client gives for what an application sends, and how the application sees it."""

import asyncio
import threading
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Generator,
    Iterator,
    MutableMapping,
)
from contextlib import contextmanager
from typing import Any

import httpx
import pytest

from treefold_http import Application
from treefold_http.testing import TestClient

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Serve = Callable[[Receive, Send], Awaitable[None]]

START: dict[str, Any] = {"type": "http.response.start", "status": 200, "headers": []}
END: dict[str, Any] = {"type": "http.response.body", "body": b""}


def chunk(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


@contextmanager
def serving(serve: Serve, **options: Any) -> Generator[TestClient]:
    async def app(scope: Message, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await serve(receive, send)

    with TestClient(app, **options) as client:
        yield client


def test_repeated_header_fields_of_an_answer_are_kept() -> None:
    async def serve(receive: Receive, send: Send) -> None:
        await send(START | {"headers": [(b"x-a", b"1"), (b"x-a", b"2")]})
        await send(END)

    with serving(serve) as client:
        assert client.get("/").headers.get_list("x-a") == ["1", "2"]


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204), ("GET", 304)])
def test_no_body_arrives_where_none_may_be(method: str, status: int) -> None:
    async def serve(receive: Receive, send: Send) -> None:
        await send(START | {"status": status, "headers": [(b"content-length", b"4")]})
        await send(END | {"body": b"text"})

    with serving(serve) as client:
        answer = client.request(method, "/")

    assert answer.status_code == status
    assert answer.content == b""


def test_chunks_arrive_while_the_application_produces() -> None:
    go_on = threading.Event()

    async def serve(receive: Receive, send: Send) -> None:
        await send(START)
        await send(chunk(b"first"))
        await asyncio.to_thread(go_on.wait)
        await send(chunk(b"second"))
        await send(END)

    with serving(serve) as client, client.stream("GET", "/") as answer:
        chunks = answer.iter_raw()
        first = next(chunks)
        go_on.set()

        assert [first, *chunks] == [b"first", b"second"]


def test_an_application_waits_for_a_client_that_does_not_read() -> None:
    sent: list[int] = []

    async def serve(receive: Receive, send: Send) -> None:
        await send(START)
        for number in range(10):
            await send(chunk(b"x" * 30_000))
            sent.append(number)
        await send(END)

    with serving(serve) as client, client.stream("GET", "/") as answer:
        client.run(asyncio.sleep, 0.05)  # time that an application which did not wait would use
        held_back = list(sent)
        size = len(answer.read())

    assert held_back == [0, 1]
    assert size == 300_000


def test_leaving_early_is_a_disconnect_to_the_application() -> None:
    seen: list[str] = []

    async def serve(receive: Receive, send: Send) -> None:
        await receive()
        await send(START)
        await send(chunk(b"first"))
        seen.append((await receive())["type"])

    with serving(serve) as client:
        with client.stream("GET", "/") as answer:
            assert next(answer.iter_raw()) == b"first"
            assert seen == []

        assert seen == ["http.disconnect"]


def test_sending_to_a_client_that_left_raises_oserror() -> None:
    seen: list[Exception] = []

    async def serve(receive: Receive, send: Send) -> None:
        await send(START)
        try:
            while True:
                await send(chunk(b"x" * 1000))
        except OSError as error:
            seen.append(error)
            raise RuntimeError("the application has its own word for it") from error

    with serving(serve) as client, client.stream("GET", "/") as answer:
        next(answer.iter_raw())

    assert [str(error) for error in seen] == ["The client has left"]


def test_leaving_a_stream_runs_the_finally_of_its_generator(
    project: Callable[..., Application],
) -> None:
    source = """
        async def handler(request):
            try:
                while True:
                    yield "tick"
            finally:
                request.app.state.closed = True
    """
    app = project({"Api/v1/Ticks/Get.py": source})

    with TestClient(app) as client:
        with client.stream("GET", "/v1/ticks") as answer:
            next(answer.iter_raw())

        assert app.state.closed


def test_a_disconnect_is_not_seen_before_the_answer_is_complete() -> None:
    seen: list[str] = []

    async def serve(receive: Receive, send: Send) -> None:
        await receive()
        waiting = asyncio.ensure_future(receive())
        await asyncio.sleep(0)
        seen.append("early" if waiting.done() else "waits")
        await send(START)
        await send(END)
        seen.append((await waiting)["type"])

    with serving(serve) as client:
        client.get("/")

    assert seen == ["waits", "http.disconnect"]


def test_an_application_that_stops_waiting_for_a_chunk_gets_it_with_the_next_call() -> None:
    held = threading.Event()
    got: list[bytes] = []

    async def serve(receive: Receive, send: Send) -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(receive(), 0.01)
        held.set()
        more = True
        while more:
            message = await receive()
            got.append(message["body"])
            more = message["more_body"]
        await send(START)
        await send(END)

    def slow() -> Iterator[bytes]:
        held.wait()
        yield b"late"

    with serving(serve) as client:
        client.post("/", content=slow())

    assert got == [b"late", b""]


def test_a_silent_application_is_a_read_timeout() -> None:
    async def serve(receive: Receive, send: Send) -> None:
        await receive()
        await receive()

    expected = r"^The application sent nothing within 0\.05 seconds$"
    with serving(serve) as client, pytest.raises(httpx.ReadTimeout, match=expected):
        client.get("/", timeout=0.05)


def test_an_application_that_does_not_notice_is_cancelled_at_the_end() -> None:
    seen: list[str] = []

    async def serve(receive: Receive, send: Send) -> None:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    with serving(serve) as client, pytest.raises(httpx.ReadTimeout):
        client.get("/", timeout=0.01)

    assert seen == ["cancelled"]


async def _twice(receive: Receive, send: Send) -> None:
    await send(START)
    await send(START)


async def _body_first(receive: Receive, send: Send) -> None:
    await send(END)


async def _after_end(receive: Receive, send: Send) -> None:
    await send(START)
    await send(END)
    await send(END)


async def _too_long(receive: Receive, send: Send) -> None:
    await send(START | {"headers": [(b"content-length", b"2")]})
    await send(END | {"body": b"123"})


async def _too_short(receive: Receive, send: Send) -> None:
    await send(START | {"headers": [(b"Content-Length", b"4")]})
    await send(END | {"body": b"123"})


async def _nothing(receive: Receive, send: Send) -> None:
    await receive()


async def _half(receive: Receive, send: Send) -> None:
    await send(START)
    await send(chunk(b"half"))


@pytest.mark.parametrize(
    ("serve", "message"),
    [
        (_twice, "The application sent 'http.response.start' after no 'http.response.body'"),
        (_body_first, "The application sent 'http.response.body' after no 'http.response.start'"),
        (_after_end, "The application sent 'http.response.body' after a complete answer"),
        (_too_long, "The body is longer than its Content-Length"),
        (_too_short, "The body is shorter than its Content-Length"),
        (_nothing, "The application returned before its answer was complete"),
        (_half, "The application returned before its answer was complete"),
    ],
)
def test_what_a_server_would_not_send_is_an_error(serve: Serve, message: str) -> None:
    with serving(serve) as client, pytest.raises(RuntimeError) as raised:
        client.get("/")

    assert str(raised.value) == message


@pytest.mark.parametrize("serve", [_nothing, _body_first])
def test_an_application_without_an_answer_is_a_500_when_errors_are_not_raised(serve: Serve) -> None:
    with serving(serve, raise_app_errors=False) as client:
        answer = client.get("/")

    assert (answer.status_code, answer.text) == (500, "Internal Server Error")


def test_half_an_answer_is_a_broken_connection_when_errors_are_not_raised() -> None:
    expected = "^The answer ended before it was complete$"
    with (
        serving(_half, raise_app_errors=False) as client,
        client.stream("GET", "/") as answer,
        pytest.raises(httpx.RemoteProtocolError, match=expected),
    ):
        answer.read()


async def _fails_late(receive: Receive, send: Send) -> None:
    await send(START)
    await send(chunk(b"first"))
    raise LookupError("late")


def test_what_was_sent_is_read_before_the_error_is_raised() -> None:
    with serving(_fails_late) as client, client.stream("GET", "/") as answer:
        chunks = answer.iter_raw()

        assert next(chunks) == b"first"
        with pytest.raises(LookupError, match="late"):
            next(chunks)


def test_requests_of_many_threads_are_served_at_the_same_time() -> None:
    met: list[asyncio.Event] = []

    async def serve(receive: Receive, send: Send) -> None:
        met.append(asyncio.Event())
        if len(met) == 5:
            for event in met:
                event.set()
        await met[-1].wait()
        await send(START)
        await send(END)

    with serving(serve) as client:
        answers: list[int] = []
        threads = [
            threading.Thread(target=lambda: answers.append(client.get("/").status_code))
            for _ in range(5)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    assert answers == [200] * 5


def test_the_application_cannot_call_the_client_that_serves_it() -> None:
    async def serve(receive: Receive, send: Send) -> None:
        client.get("/")

    expected = "^The application calls the TestClient that serves it; use AsyncTestClient$"
    with serving(serve) as client, pytest.raises(RuntimeError, match=expected):
        client.get("/")


async def _count() -> AsyncIterator[bytes]:
    yield b"1"


def test_an_async_generator_is_refused_by_the_plain_client() -> None:
    with serving(_nothing) as client, pytest.raises(RuntimeError, match="async request"):
        client.post("/", content=_count())
