"""Server-sent events: the format against a reader that follows WHATWG, and every end."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from hypothesis import given, strategies as st

from treefold_http import Application, Request
from treefold_http._responses.events import COMMENT, Event, EventStream

if TYPE_CHECKING:
    from conftest import Exchange, Message

T = TypeVar("T")

WAIT = 20.0
LONG = 3600.0
SHORT = 0.001


def run(body: Coroutine[Any, Any, T]) -> T:
    """Run a test in a loop of its own; what never ends fails."""

    async def bounded() -> T:
        async with asyncio.timeout(WAIT):
            return await body

    return asyncio.run(bounded())


@dataclass
class Seen:
    """An event as a client dispatches it."""

    data: str
    type: str = "message"
    id: str = ""


def read(stream: str) -> tuple[list[Seen], int | None]:
    """Interpret a stream as WHATWG HTML, 9.2.6 says, one character after the other."""
    lines, line, last = list[str](), "", ""
    for char in stream:
        if char == "\n" and last == "\r":
            pass
        elif char in "\r\n":
            lines.append(line)
            line = ""
        else:
            line += char
        last = char
    events, retry = list[Seen](), None
    data, kind, identity = "", "", ""
    for line in lines:
        if not line:
            if data:
                events.append(Seen(data.removesuffix("\n"), kind or "message", identity))
            data, kind = "", ""
            continue
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            data += value + "\n"
        elif name == "event":
            kind = value
        elif name == "id" and "\0" not in value:
            identity = value
        elif name == "retry" and value.isascii() and value.isdigit():
            retry = int(value)
    return events, retry


# Events


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (Event("x"), "data: x\n\n"),
        (Event(""), "data: \n\n"),
        (Event(" x"), "data:  x\n\n"),
        (Event("a\nb"), "data: a\ndata: b\n\n"),
        (Event("a\r\nb\rc\n"), "data: a\ndata: b\ndata: c\ndata: \n\n"),
        (Event("a\n\rb"), "data: a\ndata: \ndata: b\n\n"),
        (Event("a\u2028b\x0bc\x85"), "data: a\u2028b\x0bc\x85\n\n"),
        (Event("id: 5\nevent: x"), "data: id: 5\ndata: event: x\n\n"),
        (Event({"a": [1, None]}), 'data: {"a":[1,null]}\n\n'),
        (Event(["a\nb"]), 'data: ["a\\nb"]\n\n'),
        (Event(5), "data: 5\n\n"),
        (Event(False), "data: false\n\n"),
        (Event("x", "tick"), "event: tick\ndata: x\n\n"),
        (Event("x", id="1", retry=500), "id: 1\nretry: 500\ndata: x\n\n"),
        (Event("x", "tick", id="", retry=0), "event: tick\nid: \nretry: 0\ndata: x\n\n"),
        (Event(None, id="7"), "id: 7\n\n"),
        (Event(None, retry=1000), "retry: 1000\n\n"),
        (Event("é €"), "data: é €\n\n"),
    ],
)
def test_an_event_is_written_field_by_field(event: Event, text: str) -> None:
    assert event.encode() == text.encode()


@pytest.mark.parametrize("name", ["event", "id"])
@pytest.mark.parametrize("value", ["a\nb", "a\rb", "\r\n", "x\ndata: forged", "\n\ndata: forged"])
def test_a_line_end_in_a_field_is_refused(name: str, value: str) -> None:
    fields: dict[str, Any] = {name: value}
    expected = f"^Event {name} must not contain a line end or NUL, which would end the field, got "
    expected += re.escape(repr(value)) + "$"
    with pytest.raises(ValueError, match=expected):
        Event("x", **fields).encode()


def test_a_nul_in_the_id_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"^Event id must not contain a line end or NUL, .*, got 'a\\x00b'$"
    ):
        Event("x", id="a\0b").encode()


@pytest.mark.parametrize("fields", ["event='a\\nb'", "id='a\\rb'", "id='a\\0b'"])
@pytest.mark.parametrize("keep_alive", ["15.0", "None"])
def test_an_event_with_a_line_end_is_left_out_and_the_stream_goes_on(
    serving: Callable[..., Application],
    ask: Callable[..., Any],
    lines: Any,
    fields: str,
    keep_alive: str,
) -> None:
    app = serving(
        "from treefold_http import Event, EventStream\n"
        "async def source():\n"
        "    yield 'before'\n"
        f"    yield Event('lost', {fields})\n"
        "    yield Event('after', event='tick')\n"
        "async def handler(request):\n"
        f"    return EventStream(source(), keep_alive={keep_alive})\n"
    )
    answer = ask(app, "GET", "/v1/x")
    assert answer.complete
    assert answer.body == b"data: before\n\nevent: tick\ndata: after\n\n"
    (line,) = lines.texts(40)
    assert line.startswith("event left out of its stream: Event ")


@pytest.mark.parametrize("name", ["event", "id"])
@pytest.mark.parametrize("value", [5, b"x", ["x"]])
def test_a_field_that_is_no_text_is_refused(name: str, value: object) -> None:
    fields: dict[str, Any] = {name: value}
    kind = type(value).__name__
    with pytest.raises(TypeError, match=f"^Event {name} must be str, got '{kind}'$"):
        Event("x", **fields)


@pytest.mark.parametrize("retry", [-1, 1.5, "5", True])
def test_a_retry_that_is_no_time_is_refused(retry: Any) -> None:
    expected = f"^Event retry must be milliseconds as int, 0 or more, got {retry!r}$"
    with pytest.raises(ValueError, match=expected):
        Event("x", retry=retry)


@pytest.mark.parametrize("data", [b"x", bytearray(b"x"), memoryview(b"x")])
def test_bytes_are_no_data(data: object) -> None:
    expected = f"^Event data must be str or data with a JSON form, got '{type(data).__name__}'$"
    with pytest.raises(TypeError, match=expected):
        Event(data)


def test_an_event_that_says_nothing_is_refused() -> None:
    expected = "^An event must have data, id or retry$"
    with pytest.raises(ValueError, match=expected):
        Event(None, "tick")


@pytest.mark.parametrize("data", [object(), {1, object()}, float("nan"), {"a": float("inf")}])
def test_data_without_a_json_form_is_refused_when_it_is_written(data: object) -> None:
    with pytest.raises((TypeError, ValueError), match=r"has no JSON form|not JSON compliant"):
        Event(data).encode()


text = st.text(max_size=20)
names = text.filter(lambda value: not set(value) & set("\r\n\0"))


@given(
    st.lists(
        st.builds(
            Event,
            text | st.lists(st.integers() | text) | st.dictionaries(text, st.booleans()),
            st.none() | names,
            id=st.none() | names,
            retry=st.none() | st.integers(0, 10**6),
        ),
        max_size=5,
    )
)
def test_a_client_reads_back_what_was_written(events: list[Event]) -> None:
    seen, retry = read(b"".join(event.encode() for event in events).decode())

    assert len(seen) == len(events)
    identity = ""
    for event, got in zip(events, seen, strict=True):
        identity = identity if event.id is None else event.id
        if isinstance(event.data, str):
            assert got.data == event.data.replace("\r\n", "\n").replace("\r", "\n")
        else:
            assert json.loads(got.data) == event.data
        assert got.type == (event.event or "message")
        assert got.id == identity
    assert retry == next((e.retry for e in reversed(events) if e.retry is not None), None)


# Streams


class Stage:
    """A request and what it takes to send a stream to it."""

    def __init__(self, app: Application, exchange: Exchange) -> None:
        self.exchange = exchange
        self.request = Request(exchange.scope, exchange.receive, app, "id-1")
        self.commented = asyncio.Event()

    async def record(self, message: Message) -> None:
        await self.exchange.send(message)
        if message.get("body") == COMMENT:
            self.commented.set()

    async def send(self, response: EventStream) -> None:
        async with asyncio.timeout(WAIT):
            await response.send(self.request, self.record, common=[(b"x-common", b"1")])


@pytest.fixture
def app(tmp_path: Path) -> Iterator[Application]:
    made = Application(tmp_path)
    yield made
    made.threads.shutdown()


@pytest.fixture
def stage(app: Application, exchange: type[Exchange]) -> Callable[..., Stage]:
    def make(method: str = "GET", **options: Any) -> Stage:
        return Stage(app, exchange(method, "/v1/events", **options))

    return make


class Source:
    """Gives items, then waits for ever; says what became of it."""

    def __init__(self, *items: Any) -> None:
        self.items = items
        self.waiting = asyncio.Event()
        self.journal: list[str] = []

    async def __aiter__(self) -> AsyncIterator[Any]:
        try:
            for item in self.items:
                yield item
            self.waiting.set()
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.journal.append("cancelled")
            raise
        finally:
            await asyncio.sleep(0)
            self.journal.append("finally")


async def some(*items: Any) -> AsyncIterator[Any]:
    for item in items:
        yield item


@dataclass
class Record:
    a: int


def test_every_item_becomes_an_event_and_the_stream_ends_with_its_source(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> None:
        here = stage()
        await here.send(EventStream(some("a\nb", {"a": 1}, [1], Event("x", id="5"), Record(1), 7)))
        answer = here.exchange.answer
        assert answer.status == 200
        assert answer.complete
        assert answer.headers == [
            ("content-type", "text/event-stream; charset=utf-8"),
            ("cache-control", "no-store"),
            ("x-accel-buffering", "no"),
            ("x-common", "1"),
        ]
        assert answer.chunks == [
            b"data: a\ndata: b\n\n",
            b'data: {"a":1}\n\n',
            b"data: [1]\n\n",
            b"id: 5\ndata: x\n\n",
            b'data: {"a":1}\n\n',
            b"data: 7\n\n",
            b"",
        ]

    run(main())


def test_status_and_headers_of_the_author_are_kept() -> None:
    stream = EventStream(some(), status=203, headers={"Cache-Control": "no-cache", "X-A": "1"})
    assert stream.status == 203
    assert stream.headers["cache-control"] == "no-cache"
    assert stream.headers["x-a"] == "1"


@pytest.mark.parametrize("source", [["a"], iter("a"), "a", None, some])
def test_a_source_that_is_no_async_iterator_is_refused(source: Any) -> None:
    expected = (
        f"^EventStream needs an async iterator, got '{type(source).__qualname__}';"
        " write the source as `async def` with `yield`$"
    )
    with pytest.raises(TypeError, match=expected):
        EventStream(source)


@pytest.mark.parametrize("keep_alive", [0, -1.0, float("nan")])
def test_a_keep_alive_that_is_no_time_is_refused(keep_alive: float) -> None:
    expected = f"^EventStream keep_alive must be seconds or None, got {keep_alive!r}$"
    with pytest.raises(ValueError, match=expected):
        EventStream(some(), keep_alive=keep_alive)


@pytest.mark.parametrize(("method", "status"), [("HEAD", 200), ("GET", 204)])
def test_an_answer_without_a_body_closes_its_source_unread(
    stage: Callable[..., Stage], method: str, status: int
) -> None:
    async def main() -> None:
        here, journal = stage(method), list[str]()

        class Subscription:
            def __aiter__(self) -> Subscription:
                return self

            async def __anext__(self) -> str:
                journal.append("read")
                return "x"

            async def aclose(self) -> None:
                journal.append("closed")

        await here.send(EventStream(Subscription(), status=status))
        assert (here.exchange.answer.body, here.exchange.answer.complete) == (b"", True)
        assert journal == ["closed"]

    run(main())


@pytest.mark.parametrize("item", [None, b"x", object(), float("nan")])
def test_an_item_that_cannot_be_sent_cuts_the_stream_and_closes_the_source(
    stage: Callable[..., Stage], item: Any
) -> None:
    async def main() -> None:
        here, source = stage(), Source("a", item)
        with pytest.raises((TypeError, ValueError)):
            await here.send(EventStream(source))
        assert not here.exchange.answer.complete
        assert here.exchange.answer.body == b"data: a\n\n"
        assert source.journal == ["finally"]
        assert len(asyncio.all_tasks()) == 1

    run(main())


@pytest.mark.parametrize("keep_alive", [LONG, None])
def test_a_client_that_leaves_ends_the_source(
    stage: Callable[..., Stage], keep_alive: float | None
) -> None:
    async def main() -> None:
        here, source = stage(), Source("a")
        sending = asyncio.ensure_future(here.send(EventStream(source, keep_alive=keep_alive)))
        await source.waiting.wait()
        here.exchange.gone.set()
        await sending
        assert source.journal == ["cancelled", "finally"]
        assert not here.exchange.answer.complete
        assert len(asyncio.all_tasks()) == 1

    run(main())


def test_a_cancelled_request_ends_the_source_and_stays_cancelled(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> None:
        here, source = stage(), Source("a")
        sending = asyncio.ensure_future(here.send(EventStream(source)))
        await source.waiting.wait()
        sending.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sending
        assert source.journal == ["cancelled", "finally"]
        assert len(asyncio.all_tasks()) == 1

    run(main())


@pytest.mark.parametrize("keep_alive", [LONG, None])
def test_a_stopping_application_ends_the_stream_cleanly(
    stage: Callable[..., Stage], app: Application, keep_alive: float | None
) -> None:
    async def main() -> None:
        here, source = stage(), Source("a")
        sending = asyncio.ensure_future(here.send(EventStream(source, keep_alive=keep_alive)))
        await source.waiting.wait()
        app.stopping.set()
        await sending
        assert here.exchange.answer.complete
        assert here.exchange.answer.body == b"data: a\n\n"
        assert source.journal == ["cancelled", "finally"]
        assert len(asyncio.all_tasks()) == 1

    run(main())


def test_an_application_that_is_stopping_already_ends_a_stream_at_once(
    stage: Callable[..., Stage], app: Application
) -> None:
    async def main() -> None:
        app.stopping.set()
        here, source = stage(), Source()
        await here.send(EventStream(source))
        assert here.exchange.answer.complete
        assert source.journal in ([], ["cancelled", "finally"])

    run(main())


def test_an_event_is_sent_before_the_next_is_asked_for(stage: Callable[..., Stage]) -> None:
    async def main() -> None:
        here, asked, gate = stage(), list[int](), asyncio.Semaphore(0)

        async def source() -> AsyncIterator[Any]:
            for number in range(4):
                asked.append(number)
                yield number

        async def slow(message: Message) -> None:
            if message.get("more_body"):
                await gate.acquire()
            await here.exchange.send(message)

        stream = EventStream(source())
        sending = asyncio.ensure_future(stream.send(here.request, slow, common=[]))
        for turn in range(1, 5):
            for _ in range(10):
                await asyncio.sleep(0)  # let everything run that can
            assert len(asked) == turn
            gate.release()
        await sending
        assert here.exchange.answer.complete

    run(main())


# Keep-alive


def test_a_comment_is_sent_while_the_source_is_silent_and_events_still_come(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> None:
        here = stage()

        async def source() -> AsyncIterator[str]:
            await here.commented.wait()
            yield "a"
            here.commented.clear()
            await here.commented.wait()
            yield "b"

        await here.send(EventStream(source(), keep_alive=SHORT))
        answer = here.exchange.answer
        chunks = answer.chunks
        assert answer.complete
        assert chunks[0] == COMMENT
        assert [chunk for chunk in chunks if chunk != COMMENT] == [
            b"data: a\n\n",
            b"data: b\n\n",
            b"",
        ]
        assert COMMENT in chunks[chunks.index(b"data: a\n\n") : chunks.index(b"data: b\n\n")]
        assert read(answer.body.decode())[0] == [Seen("a"), Seen("b")]
        assert len(asyncio.all_tasks()) == 1

    run(main())


@pytest.mark.parametrize("keep_alive", [LONG, None])
def test_a_source_that_is_not_silent_needs_no_comment(
    stage: Callable[..., Stage], keep_alive: float | None
) -> None:
    async def main() -> None:
        here = stage()
        await here.send(EventStream(some(*range(50)), keep_alive=keep_alive))
        assert COMMENT not in here.exchange.answer.chunks

    run(main())


def test_a_slow_client_gets_no_comment_beside_the_event_that_waits(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> None:
        here, under_way, most = stage(), 0, 0

        async def slow(message: Message) -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            if message.get("body", COMMENT) != COMMENT:
                await asyncio.sleep(20 * SHORT)  # longer than the silence that calls for a comment
            await here.record(message)
            under_way -= 1

        stream = EventStream(some("a", "b"), keep_alive=SHORT)
        await stream.send(here.request, slow, common=[])
        assert most == 1
        assert here.exchange.answer.chunks == [b"data: a\n\n", b"data: b\n\n", b""]

    run(main())


def test_a_comment_that_waits_for_a_slow_client_is_over_before_the_end(
    stage: Callable[..., Stage], app: Application
) -> None:
    async def main() -> None:
        here, source, blocked = stage(), Source(), asyncio.Event()

        async def send(message: Message) -> None:
            if message.get("body") == COMMENT:
                blocked.set()
                await asyncio.Event().wait()
            await here.exchange.send(message)

        stream = EventStream(source, keep_alive=SHORT)
        sending = asyncio.ensure_future(stream.send(here.request, send, common=[]))
        await blocked.wait()
        app.stopping.set()
        await sending
        assert here.exchange.answer.complete
        assert len(asyncio.all_tasks()) == 1

    run(main())


def test_a_comment_to_a_client_that_left_ends_nothing_but_itself(
    stage: Callable[..., Stage],
) -> None:
    async def main() -> None:
        here, tried = stage(), asyncio.Event()

        async def source() -> AsyncIterator[str]:
            await tried.wait()
            yield "a"

        async def send(message: Message) -> None:
            if message.get("body") == COMMENT:
                tried.set()
                raise ConnectionResetError
            await here.exchange.send(message)

        await EventStream(source(), keep_alive=SHORT).send(here.request, send, common=[])
        assert here.exchange.answer.body == b"data: a\n\n"
        assert len(asyncio.all_tasks()) == 1

    run(main())


# In an application


def test_a_handler_answers_with_a_stream_of_events(
    project: Callable[..., Application], ask: Callable[..., Any]
) -> None:
    app = project(
        {
            "Api/v1/Get.py": """
                from treefold_http._responses.events import Event, EventStream
                async def source(request):
                    yield Event("back at " + request.headers["last-event-id"], id="8")
                async def handler(request):
                    return EventStream(source(request))
                """
        }
    )
    answer = ask(app, "GET", "/v1", headers=[("last-event-id", "7")])
    assert answer.body == b"id: 8\ndata: back at 7\n\n"
    assert answer.fields("x-content-type-options") == ["nosniff"]
    assert answer.complete
