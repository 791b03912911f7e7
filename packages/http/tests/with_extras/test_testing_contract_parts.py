"""Test clients that hold messages of sockets, data of events and header fields to the contract."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from itertools import islice
from textwrap import dedent
from typing import Any

import httpx
import pytest

from treefold_http import Application
from treefold_http.testing import AsyncTestClient, ContractError, ContractWarning, TestClient

Project = Callable[..., Application]

HEAD = """
import asyncio
from dataclasses import dataclass
from typing import Any, Literal
from treefold_http import *

@dataclass
class Tick:
    n: int

@dataclass
class Left:
    kind: Literal["left"]
    password: str

"""


def read_error(caught: pytest.ExceptionInfo[ContractError]) -> dict[str, str]:
    """Return the lines of an error by their names, the first one as `head`."""
    head, *lines = str(caught.value).split("\n")
    rows = (line.strip().split(":", 1) for line in lines)
    return {"head": head, **{name: text.strip() for name, text in rows}}


@pytest.fixture
def ask(project: Project) -> Callable[..., httpx.Response]:
    """The answer of one handler to a strict client."""

    def send(text: str, method: str = "GET", **options: Any) -> httpx.Response:
        files = {"Api/v1/X/Get.py": HEAD + dedent(text), "treefold.toml": "auto_head = true\n"}
        with TestClient(project(files), contract="strict") as client:
            return client.request(method, "/v1/x", **options)

    return send


Ask = Callable[..., httpx.Response]
DECLARED = 'responses = {200: {"model": %s, "media_type": "text/event-stream"}}\n'


def feed(*values: str, declared: str = "Tick") -> str:
    """Return a handler that sends events."""
    lines = "\n".join(f"        yield {value}" for value in values)
    return (
        f"{DECLARED % declared}async def handler():\n    async def feed():\n{lines}\n"
        "    return EventStream(feed())\n"
    )


def send_bytes(body: bytes, declared: str = "Tick") -> str:
    """Return a handler that sends a body as a stream of events."""
    return (
        f"{DECLARED % declared}async def handler():\n    async def feed():\n"
        f"        yield {body!r}\n"
        "    return StreamingResponse(feed(), media_type='text/event-stream')\n"
    )


EVENTS = {
    "values": feed("{'n': 1}", "Tick(2)"),
    "named events": feed("Event({'n': 1}, 'tick', id='1')", "Event(None, retry=5)"),
    "text": feed("'now'", "'7'", declared="str"),
    "text or value": feed("'now'", "{'n': 1}", declared="Tick | str"),
    "text with a JSON form": feed("{'a': 1}", "'{'", declared="str"),
    "number": feed("'7'", declared="int"),
    "any": feed("'now'", declared="Any"),
    "held": "response_model = Tick\nasync def handler() -> EventStream:\n"
    "    async def feed():\n        yield {'n': 1, 'more': 2}\n    return EventStream(feed())",
    "not declared": "async def handler():\n    async def feed():\n        yield 'now'\n"
    "    return EventStream(feed())",
    "lines of one event": send_bytes(b'data: {"n":\ndata: 1}\n\n'),
    "comments": send_bytes(b': {"n": "x"}\r\n\r\ndata:{"n":1}\r\n\r\n: end\n\n'),
    "not ended": send_bytes(b'data: {"n": 1}\n\ndata: {"n": "x"}\n'),
    "no data": send_bytes(b'event: tick\n\nid: 1\n\ndatum: {"n": "x"}\n\n'),
    "no line end of a stream": send_bytes('data: "\u2028\x0b"\n\n'.encode(), "str"),
    "nothing": send_bytes(b" "),
}


@pytest.mark.parametrize("text", EVENTS.values(), ids=EVENTS)
def test_events_of_their_type_pass(text: str, ask: Ask) -> None:
    assert ask(text).status_code == 200


WRONG_EVENTS = {
    "member": (feed("{'n': 1}", "{'n': 'x'}"), "event 2 .n", "int", '"x"'),
    "missing": (feed("{}"), "event 1 .n", "int", "no such member"),
    "text": (feed("'now'"), "event 1", "Tick", '"now"'),
    "choice": (feed("'c'", declared="Literal['a', 'b']"), "event 1", '"a" | "b"', '"c"'),
    "text for number": (feed("'now'", declared="int"), "event 1", "int", '"now"'),
    "named": (feed("Event([1], 'tick', id='1')"), "event 1", "Tick", "[1]"),
    "not a number": (send_bytes(b"data: NaN\n\n", "float"), "event 1", "float", '"NaN"'),
    "after a comment": (
        send_bytes(b': a\r\rdata: {"n": 1}\r\rdata:\r\r'),
        "event 2",
        "Tick",
        '""',
    ),
    "secret": (
        feed("{'kind': 'left', 'password': ['s3cret']}", declared="Left"),
        "event 1 .password",
        "str",
        '"***"',
    ),
    "both of two": (feed("{'m': 1}", declared="Tick | Left"), "event 1", "Left | Tick", '{"m": 1}'),
}


@pytest.mark.parametrize(
    ("text", "place", "declared", "got"), WRONG_EVENTS.values(), ids=WRONG_EVENTS
)
def test_an_event_of_another_type_fails(
    text: str, place: str, declared: str, got: str, ask: Ask
) -> None:
    with pytest.raises(ContractError) as caught:
        ask(text)
    found = read_error(caught)
    assert found["head"] == "GET /v1/x answered 200 with an event that is not declared"
    assert (found["at"], found["declared"], found["got"]) == (place, declared, got)
    assert found["handler"].startswith("Api/v1/X/Get.py:")
    assert found["change"] == "declare the data of the events: response_model = Model"


def test_events_that_were_read_are_checked_when_the_client_leaves(project: Project) -> None:
    text = feed("{'n': 1}", "{'n': 'x'}", "await asyncio.sleep(30)")
    app = project({"Api/v1/X/Get.py": HEAD + text})
    with (
        TestClient(app, contract="strict") as client,
        pytest.raises(ContractError, match="event 2"),
        client.stream("GET", "/v1/x") as got,
    ):
        list(islice(got.iter_lines(), 3))


def answer(fields: str, declared: str, more: str = "[]") -> str:
    """Return a handler that answers with header fields."""
    return (
        f'responses = {{200: {{"headers": {{{declared}}}}}}}\nmore = {more}\n'
        f"async def handler():\n    made = Response('a', headers={fields})\n"
        "    made.raw_headers += more\n    return made\n"
    )


def refuse(fields: str, declared: str) -> str:
    """Return a handler that raises an error with header fields."""
    return (
        f'responses = {{429: {{"headers": {{{declared}}}}}}}\n'
        f"async def handler():\n    raise HTTPError(429, headers={fields})\n"
    )


FIELDS = {
    "number": answer("{'x-count': '7'}", '"X-Count": int'),
    "words": answer("{'X-Count': ''}", '"X-Count": "how many"'),
    "header object": answer("{'x-a': 'a'}", '"X-A": {"schema": {"type": "string"}}'),
    "may be missing": answer("{}", '"X-Next": str | None'),
    "may be there": answer("{'x-next': 'b'}", '"X-Next": str | None'),
    "need not be there": answer("{}", '"X-A": {"description": "a", "required": False}'),
    "flag": answer("{'x-new': 'true'}", '"X-New": bool'),
    "choice": answer("{'x-a': 'b'}", '"X-A": Literal["a", "b"]'),
    "list": answer("{'x-ids': '1, 2,3'}", '"X-Ids": list[int]'),
    "list of one": answer("{'x-ids': '1'}", '"X-Ids": list[int]'),
    "two lines": answer("{'x-ids': '1'}", '"X-Ids": list[int]', "[(b'x-ids', b'2, 3')]"),
    "text with commas": answer("{'x-a': 'a, b'}", '"X-A": str'),
    "JSON": answer("""{'x-tick': '{"n": 1}'}""", '"X-Tick": Tick'),
    "of another status": "responses = {404: {'headers': {'X-A': int}}}\n"
    "async def handler():\n    return Response('a')\n",
    "not declared": answer("{'x-b': 'b'}", ""),
    "error": refuse("{'retry-after': '7'}", '"Retry-After": int'),
}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("text", FIELDS.values(), ids=FIELDS)
def test_header_fields_of_their_types_pass(text: str, method: str, ask: Ask) -> None:
    assert ask(text, method).status_code in {200, 429}


WRONG_FIELDS = {
    "missing": (answer("{}", '"X-Count": int'), "X-Count", "int", "no such header field"),
    "words": (answer("{}", '"X-A": "why"'), "X-A", "str", "no such header field"),
    "number": (answer("{'x-count': 'many'}", '"X-Count": int'), "X-Count", "int", '"many"'),
    "empty": (answer("{'x-count': ''}", '"X-Count": int'), "X-Count", "int", '""'),
    "twice": (
        answer("{'x-count': '1'}", '"X-Count": int', "[(b'x-count', b'2')]"),
        "X-Count",
        "int",
        '"1, 2"',
    ),
    "item": (answer("{'x-ids': '1, b'}", '"X-Ids": list[int]'), "X-Ids", "[int]", '"1, b"'),
    "choice": (answer("{'x-a': 'c'}", '"X-A": Literal["a"]'), "X-A", '"a"', '"c"'),
    "no JSON": (answer("{'x-tick': '{'}", '"X-Tick": Tick'), "X-Tick", "Tick", '"{"'),
    "secret": (
        answer("{'x-api-key': 's3cret'}", '"X-Api-Key": int'),
        "X-Api-Key",
        "int",
        '"***"',
    ),
    "error": (
        refuse("{}", '"Retry-After": int'),
        "Retry-After",
        "int",
        "no such header field",
    ),
}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize(
    ("text", "name", "declared", "got"), WRONG_FIELDS.values(), ids=WRONG_FIELDS
)
def test_a_header_field_that_is_missing_or_wrong_fails(
    text: str, name: str, declared: str, got: str, method: str, ask: Ask
) -> None:
    with pytest.raises(ContractError) as caught:
        ask(text, method)
    found = read_error(caught)
    assert found["head"].endswith("with header fields that are not as declared")
    assert (found["at"], found["declared"], found["got"]) == (name, declared, got)
    assert f'"headers": {{"{name}": ...}}' in found["change"]
    assert "s3cret" not in str(caught.value)


@pytest.fixture
def receive(project: Project) -> Callable[[str, int], list[str | bytes]]:
    """The messages that a handler sends to a strict client."""

    def open_socket(text: str, count: int) -> list[str | bytes]:
        app = project({"Api/v1/X/Socket.py": HEAD + dedent(text)}, default_version="v1")
        with (
            TestClient(app, contract="strict") as client,
            client.websocket_connect("/v1/x") as socket,
        ):
            return [socket.receive() for _ in range(count)]

    return open_socket


Receive = Callable[[str, int], list[str | bytes]]


def talk(*lines: str, declared: str = "", helper: str = "") -> str:
    """Return a handler of a socket, whose helper sends as well."""
    body = "".join(f"    {line}\n" for line in ("await websocket.accept()", *lines))
    hidden = f"async def help(socket):\n    {helper}\n" if helper else ""
    return f"{declared}\n{hidden}async def handler(websocket: WebSocket):\n{body}"


MODEL = "response_model = Tick | Left"
MESSAGES = {
    "text": talk("await websocket.send_text('7')"),
    "bytes": talk("await websocket.send_bytes(b'7')"),
    "JSON": talk("await websocket.send_json({'n': 1})"),
    "JSON of a type": talk("await websocket.send_json({'n': 1})", declared=MODEL),
    "JSON of a type as text": talk(
        "await help(websocket)", declared=MODEL, helper="await socket.send_text('{\"n\": 1}')"
    ),
    "text beside JSON": talk(
        "await help(websocket)",
        "if websocket is None:",
        "    await websocket.send_json(1)",
        "    await websocket.send_text('a')",
        helper="await socket.send_text('no JSON')",
    ),
    "nothing is known": talk("await help(websocket)", helper="await socket.send_bytes(b'a')"),
    "what is received": talk(
        "if websocket is None:",
        "    await websocket.receive_json(Tick)",
        "await help(websocket)",
        helper="await socket.send_text('a')",
    ),
}


@pytest.mark.parametrize("text", MESSAGES.values(), ids=MESSAGES)
def test_messages_that_are_declared_pass(text: str, receive: Receive) -> None:
    assert len(receive(text, 1)) == 1


SENDS = "await websocket.send_json({'n': 1})"
WRONG_MESSAGES = {
    "member": (
        talk(SENDS, "await help(websocket)", declared=MODEL.replace(" | Left", ""),
             helper="""await socket.send_text('{"n": "x"}')"""),
        ".n", "int", '"x"',
    ),
    "option": (
        talk("await help(websocket)", declared=MODEL,
             helper="""await socket.send_text('{"kind": "right"}')"""),
        "", "Left | Tick", '{"kind": "right"}',
    ),
    "secret": (
        talk("await help(websocket)", declared="response_model = Left",
             helper="""await socket.send_text('{"kind": "left", "password": ["s3cret"]}')"""),
        ".password", "str", '"***"',
    ),
    "no JSON": (
        talk("if websocket is None:", f"    {SENDS}", "await help(websocket)",
             helper="await socket.send_text('s3cret')"),
        "", "any", "no valid JSON",
    ),
    "bytes": (
        talk("if websocket is None:", f"    {SENDS}", "    await websocket.send_text('a')",
             "await help(websocket)", helper="await socket.send_bytes(b's3cret')"),
        "", "json any or text", "bytes",
    ),
    "text": (
        talk("if websocket is None:", "    await websocket.send_bytes(b'a')",
             "await help(websocket)", helper="await socket.send_text('s3cret')"),
        "", "bytes", "text",
    ),
}  # fmt: skip


@pytest.mark.parametrize(
    ("text", "place", "declared", "got"), WRONG_MESSAGES.values(), ids=WRONG_MESSAGES
)
@pytest.mark.parametrize("is_read", [True, False])
def test_a_message_that_is_not_declared_fails(
    text: str, place: str, declared: str, got: str, is_read: bool, receive: Receive
) -> None:
    count = 1 + text.count(f"\n    {SENDS}")
    with pytest.raises(ContractError) as caught:
        receive(text, count if is_read else count - 1)
    found = read_error(caught)
    assert found["head"] == "WEBSOCKET /v1/x sent a message that is not declared"
    assert (found.get("at", ""), found["declared"], found["got"]) == (place, declared, got)
    assert found["handler"].startswith("Api/v1/X/Socket.py:")
    assert "response_model = Model" in found["change"]
    assert "s3cret" not in str(caught.value)


def test_messages_before_the_wrong_one_are_received(project: Project) -> None:
    text, *_ = WRONG_MESSAGES["member"]
    app = project({"Api/v1/X/Socket.py": HEAD + text}, default_version="v1")
    with (
        TestClient(app, contract="strict") as client,
        client.websocket_connect("/x") as socket,
    ):
        assert socket.receive_json() == {"n": 1}
        with pytest.raises(ContractError):
            socket.receive_text()


def test_an_async_socket_checks_as_well(project: Project) -> None:
    text, *_ = WRONG_MESSAGES["bytes"]
    app = project({"Api/v1/X/Socket.py": HEAD + text})

    async def receive() -> None:
        async with (
            AsyncTestClient(app, contract="strict") as client,
            client.websocket_connect("/v1/x") as socket,
        ):
            async for _ in socket:
                pass

    with pytest.raises(ContractError, match=r"got: +bytes"):
        asyncio.run(receive())


def test_a_warning_of_messages_is_given_once(project: Project) -> None:
    text, *_ = WRONG_MESSAGES["bytes"]
    app = project({"Api/v1/X/Socket.py": HEAD + text})
    with TestClient(app, contract="warn") as client, warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        for _ in range(2):
            with client.websocket_connect("/v1/x") as socket:
                assert socket.receive_bytes() == b"s3cret"
    assert [each.category for each in found] == [ContractWarning]
    assert found[0].filename.endswith("Api/v1/X/Socket.py")


def test_an_exception_of_the_application_comes_before_an_unread_message(project: Project) -> None:
    helper = "await socket.send_text('a')"
    text = talk("await help(websocket)", "1 / 0", declared=MODEL, helper=helper)
    app = project({"Api/v1/X/Socket.py": HEAD + text})
    with (
        TestClient(app, contract="strict") as client,
        pytest.raises(ZeroDivisionError),
        client.websocket_connect("/v1/x"),
    ):
        pass


def test_sockets_are_not_checked_without_a_contract(project: Project) -> None:
    text, *_ = WRONG_MESSAGES["bytes"]
    app = project({"Api/v1/X/Socket.py": HEAD + text})
    with TestClient(app) as client, client.websocket_connect("/v1/x") as socket:
        assert socket.receive_bytes() == b"s3cret"
