"""The WebSocket of a handler: accept, receive, send, close, and what the client does wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application, UnprocessableEntity, WebSocket, WebSocketDisconnect
from treefold_http._websockets.websocket import MAX_MESSAGE

if TYPE_CHECKING:
    from conftest import Socket

With = Callable[..., Any]
ITERATES = "async for _ in websocket.iter_json(Move): ..."
Work = Callable[[WebSocket], Awaitable[Any]]


@pytest.fixture
def with_socket(tmp_path: Path, socket: type[Socket]) -> With:
    """Do something with the application's end of a socket; give the client and the outcome."""

    def run(work: Work, *messages: str | bytes, accept: bool = True, **options: Any) -> Any:
        async def main() -> Any:
            client = socket("/v1/chat/a%2Fb?x=1", messages=messages, **options)
            websocket = await client.open(Application(tmp_path))
            if accept:
                await websocket.accept()
            async with asyncio.timeout(20):
                outcome = await work(websocket)
            assert client.wrong == []
            return client, outcome

        return asyncio.run(main())

    return run


# -- what it says of itself


def test_the_parts_of_a_socket(with_socket: With) -> None:
    async def look(websocket: WebSocket) -> None:
        assert websocket.path == "/v1/chat/a/b"
        assert websocket.raw_path == b"/v1/chat/a%2Fb"
        assert websocket.query["x"] == "1"
        assert websocket.headers["X-A"] == "1"
        assert websocket.cookies["sid"] == "2"
        assert websocket.client is not None
        assert websocket.client.host == "127.0.0.1"
        assert websocket.scheme == "ws"
        assert websocket.id == "id-1"
        assert websocket.subprotocols == ["a", "b"]
        assert websocket.state.pool == "pool"
        assert websocket.code is None
        assert repr(websocket) == "<WebSocket '/v1/chat/a/b' id=id-1>"

    with_socket(
        look,
        headers=[("x-a", "1"), ("cookie", "sid=2")],
        subprotocols=["a", "b"],
        more={"state": {"pool": "pool"}},
    )


# -- accept


def test_accept_sends_the_subprotocol_the_headers_and_the_id(with_socket: With) -> None:
    async def accept(websocket: WebSocket) -> None:
        await websocket.accept("b", {"X-A": "1"})

    client, _ = with_socket(accept, accept=False, subprotocols=["a", "b"])

    assert client.sent == [
        {
            "type": "websocket.accept",
            "subprotocol": "b",
            "headers": [(b"x-a", b"1"), (b"x-request-id", b"id-1")],
        }
    ]


def test_accept_sends_the_id_once_whatever_the_handler_gives(with_socket: With) -> None:
    async def accept(websocket: WebSocket) -> None:
        await websocket.accept(headers={"X-Request-ID": "forged"})

    client, _ = with_socket(accept, accept=False)

    assert client.sent[0]["headers"] == [(b"x-request-id", b"id-1")]


def test_a_subprotocol_that_was_not_offered_is_refused(with_socket: With) -> None:
    async def accept(websocket: WebSocket) -> None:
        with pytest.raises(
            ValueError,
            match=r"^The subprotocol must be one that the client offered \(\['a'\]\), got 'c'$",
        ):
            await websocket.accept("c")
        await websocket.accept("a")

    client, _ = with_socket(accept, accept=False, subprotocols=["a"])

    assert client.kinds == ["accept"]


@pytest.mark.parametrize(
    "headers", [{"x-a": "1\r\nset-cookie: a=1"}, {"x a": "1"}, {"x-a": "\0"}, {"x-a": "日"}]
)
def test_a_header_that_cannot_be_sent_is_refused_at_that_line(
    with_socket: With, headers: dict[str, str]
) -> None:
    async def accept(websocket: WebSocket) -> None:
        with pytest.raises(ValueError, match=r"[Hh]eader"):
            await websocket.accept(headers=headers)

    client, _ = with_socket(accept, accept=False)

    assert client.sent == []


@pytest.mark.parametrize("first", ["accept", "close"])
def test_accept_comes_once_and_before_close(with_socket: With, first: str) -> None:
    async def twice(websocket: WebSocket) -> None:
        await getattr(websocket, first)()
        with pytest.raises(RuntimeError, match=r"^The WebSocket is already accepted or closed;"):
            await websocket.accept()

    with_socket(twice, accept=False)


def test_a_client_that_left_before_it_was_accepted_is_a_disconnect(with_socket: With) -> None:
    async def accept(websocket: WebSocket) -> None:
        with pytest.raises(WebSocketDisconnect):
            await websocket.accept()
        assert not websocket.accepted

    with_socket(accept, accept=False, lost=0)


def test_accept_while_the_server_stops_closes_with_1012(with_socket: With) -> None:
    async def accept(websocket: WebSocket) -> None:
        websocket.app.stopping.set()
        with pytest.raises(WebSocketDisconnect, match="1012"):
            await websocket.accept()

    client, _ = with_socket(accept, accept=False)

    assert client.code == 1012


@pytest.mark.parametrize(
    "use",
    [
        "receive_text",
        "receive_bytes",
        "receive_json",
        "send_text",
        "send_bytes",
        "send_json",
    ],
)
def test_nothing_goes_in_or_out_before_accept(with_socket: With, use: str) -> None:
    async def early(websocket: WebSocket) -> None:
        with pytest.raises(RuntimeError, match=r"^The WebSocket is not accepted; call `await webs"):
            await getattr(websocket, use)(*["a"][: use.startswith("send")])

    client, _ = with_socket(early, "a", accept=False)

    assert client.sent == []


# -- receive


def test_messages_come_in_their_order_and_kind(with_socket: With) -> None:
    async def read(websocket: WebSocket) -> list[Any]:
        return [
            await websocket.receive_text(),
            await websocket.receive_text(),
            await websocket.receive_bytes(),
            await websocket.receive_bytes(),
            await websocket.receive_json(),
            await websocket.receive_json(),
        ]

    _, got = with_socket(read, "", "ä", b"", b"\xff", '{"a":[1]}', "null")

    assert got == ["", "ä", b"", b"\xff", {"a": [1]}, None]


@pytest.mark.parametrize(
    ("use", "message"),
    [
        ("receive_text", b"a"),
        ("receive_bytes", "a"),
        ("receive_json", b"{}"),
    ],
)
def test_a_message_of_the_wrong_kind_closes_with_1003(
    with_socket: With, use: str, message: str | bytes
) -> None:
    async def read(websocket: WebSocket) -> None:
        with pytest.raises(WebSocketDisconnect) as raised:
            await getattr(websocket, use)()
        assert (raised.value.code, websocket.code) == (1003, 1003)

    client, _ = with_socket(read, message)

    assert client.code == 1003


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "NaN",
        "[Infinity]",
        '{"a":1,"a":2}',
        '"\\ud800"',
        "\ud800",
        "[" * 100_000,
        "1" * 5000,
        "1 2",
        "\ufeff\ufeff1",
    ],
    ids=lambda text: ascii(text)[:20],
)
def test_json_that_is_none_closes_with_1007(with_socket: With, text: str) -> None:
    async def read(websocket: WebSocket) -> None:
        with pytest.raises(WebSocketDisconnect, match="1007"):
            await websocket.receive_json()

    client, _ = with_socket(read, text)

    assert client.sent[-1] == {
        "type": "websocket.close",
        "code": 1007,
        "reason": "Not valid JSON",
    }


@pytest.mark.parametrize(
    ("use", "message", "fits"),
    [
        ("receive_bytes", b"x" * MAX_MESSAGE, True),
        ("receive_bytes", b"x" * (MAX_MESSAGE + 1), False),
        ("receive_text", "x" * MAX_MESSAGE, True),
        ("receive_text", "x" * (MAX_MESSAGE + 1), False),
        ("receive_text", "é" * (MAX_MESSAGE // 2), True),
        ("receive_text", "é" * (MAX_MESSAGE // 2) + "x", False),
        ("receive_text", "😀" * (MAX_MESSAGE // 4), True),
        ("receive_text", "😀" * (MAX_MESSAGE // 4) + "x", False),
        ("receive_json", f'"{"x" * MAX_MESSAGE}"', False),
    ],
    ids=range(9),
)
def test_a_message_above_a_mebibyte_of_utf8_closes_with_1009(
    with_socket: With, use: str, message: str | bytes, fits: bool
) -> None:
    async def read(websocket: WebSocket) -> None:
        if fits:
            assert await getattr(websocket, use)() == message
            return
        with pytest.raises(WebSocketDisconnect, match="1009"):
            await getattr(websocket, use)()

    client, _ = with_socket(read, message)

    assert client.code == (None if fits else 1009)


def test_a_handler_may_take_more_or_less(with_socket: With) -> None:
    async def read(websocket: WebSocket) -> None:
        websocket.max_message = 2
        assert await websocket.receive_text() == "ab"
        with pytest.raises(WebSocketDisconnect, match="1009"):
            await websocket.receive_text()

    with_socket(read, "ab", "abc")


# -- the client leaves


@pytest.mark.parametrize(("sent", "code"), [(1000, 1000), (1006, 1006), (4001, 4001), (None, 1005)])
def test_a_client_that_leaves_is_a_disconnect_with_its_code(
    with_socket: With, socket: type[Socket], sent: int | None, code: int
) -> None:
    async def read(websocket: WebSocket) -> None:
        client.leave(sent, "bye")
        with pytest.raises(WebSocketDisconnect) as raised:
            await websocket.receive_text()
        assert (raised.value.code, raised.value.reason) == (code, "bye" if sent else "")
        assert websocket.code == code

    client = socket("/v1/x", stays=True)

    async def main() -> None:
        client_end = await client.open(Application("."))
        await client_end.accept()
        await read(client_end)

    asyncio.run(main())


def test_what_follows_a_disconnect_is_a_disconnect(with_socket: With) -> None:
    async def late(websocket: WebSocket) -> None:
        with pytest.raises(WebSocketDisconnect):
            await websocket.receive_text()
        for use in (websocket.receive_bytes(), websocket.send_text("a"), websocket.send_json({})):
            with pytest.raises(WebSocketDisconnect, match="1001"):
                await use
        await websocket.close()

    client, _ = with_socket(late)

    assert client.kinds == ["accept"]


def test_a_send_to_a_client_that_left_is_a_disconnect(with_socket: With) -> None:
    async def late(websocket: WebSocket) -> None:
        with pytest.raises(WebSocketDisconnect, match="1006"):
            await websocket.send_text("a")
        assert websocket.code == 1006

    with_socket(late, lost=1)


# -- typed messages


@dataclass
class Move:
    x: int


@dataclass
class ExitCallback:
    why: str


def test_a_message_is_read_as_its_model(with_socket: With) -> None:
    async def work(websocket: WebSocket) -> Any:
        return [
            await websocket.receive_json(Move),
            await websocket.receive_json(Move | ExitCallback),
            *[move.x async for move in websocket.iter_json(Move)],
        ]

    messages = ['{"x": 1}', '{"why": "tea"}', '{"x": 2}', '{"x": 3}']
    _, got = with_socket(work, *messages)

    assert got == [Move(1), ExitCallback("tea"), 2, 3]


def test_a_message_that_does_not_fit_may_be_caught(with_socket: With) -> None:
    async def work(websocket: WebSocket) -> Any:
        with pytest.raises(UnprocessableEntity) as caught:
            await websocket.receive_json(Move)
        return caught.value, await websocket.receive_json(Move)

    client, (error, following) = with_socket(work, '{"x": "no"}', '{"x": 2}')

    assert str(error).startswith("422 The message is not valid: message.x: ")
    assert error.errors is not None
    assert error.errors[0]["loc"] == ["message", "x"]
    assert following == Move(2)
    assert client.code is None


@pytest.mark.parametrize("read", ["await websocket.receive_json(Move)", ITERATES])
def test_a_message_that_does_not_fit_closes_with_1008(
    serving: Callable[..., Application], talk: Callable[..., Socket], read: str
) -> None:
    app = serving(
        f"""
from dataclasses import dataclass
@dataclass
class Move:
    x: int
async def handler(websocket):
    await websocket.accept()
    {read}
""",
        "Api/v1/X/Socket.py",
    )
    client = talk(app, "/v1/x", "{}", stays=True)

    assert client.code == 1008
    assert client.sent[-1]["reason"].startswith("422 The message is not valid: message.x: ")


@pytest.mark.parametrize("text", ["{", "NaN", '{"x": 1, "x": 2}'])
def test_json_that_is_none_closes_with_1007_whatever_the_model(
    with_socket: With, text: str
) -> None:
    async def work(websocket: WebSocket) -> None:
        with pytest.raises(WebSocketDisconnect):
            await websocket.receive_json(Move)

    client, _ = with_socket(work, text)

    assert client.code == 1007


@pytest.mark.parametrize("name", ["iter_text", "iter_bytes", "iter_json"])
def test_an_iterator_ends_when_the_client_leaves(with_socket: With, name: str) -> None:
    async def read(websocket: WebSocket) -> list[Any]:
        return [message async for message in getattr(websocket, name)()]

    messages: list[str | bytes] = [b"1", b"2"] if name == "iter_bytes" else ["1", "2"]
    _, got = with_socket(read, *messages)

    assert got == ([1, 2] if name == "iter_json" else messages)


@pytest.mark.parametrize(
    ("name", "message", "code"),
    [("iter_text", b"1", 1003), ("iter_bytes", "1", 1003), ("iter_json", "{", 1007)],
)
def test_an_iterator_ends_at_a_message_that_is_refused(
    with_socket: With, name: str, message: str | bytes, code: int
) -> None:
    async def read(websocket: WebSocket) -> list[Any]:
        return [item async for item in getattr(websocket, name)()]

    client, got = with_socket(read, message)

    assert (got, client.code) == ([], code)


# -- send


def test_messages_go_out_in_their_kind(with_socket: With) -> None:
    async def write(websocket: WebSocket) -> None:
        await websocket.send_text("ä")
        await websocket.send_bytes(b"\xff")
        await websocket.send_json({"a": "ä"})

    client, _ = with_socket(write)

    assert client.texts == ["ä", b"\xff", '{"a":"ä"}']


@pytest.mark.parametrize(
    ("value", "error"), [(object(), TypeError), (float("nan"), ValueError)], ids=["object", "nan"]
)
def test_a_value_without_a_json_form_is_not_sent(
    with_socket: With, value: object, error: type[Exception]
) -> None:
    async def write(websocket: WebSocket) -> None:
        with pytest.raises(error):
            await websocket.send_json(value)

    client, _ = with_socket(write)

    assert client.kinds == ["accept"]


# -- close


@pytest.mark.parametrize("code", [1000, 1001, 1003, 1007, 1011, 1012, 1014, 3000, 4999])
def test_a_close_sends_its_code_and_reason_once(with_socket: With, code: int) -> None:
    async def end(websocket: WebSocket) -> None:
        await websocket.close(code, "ä" * 61)
        await websocket.close(4000, "again")

    client, _ = with_socket(end)

    assert client.sent[1:] == [{"type": "websocket.close", "code": code, "reason": "ä" * 61}]


@pytest.mark.parametrize("code", [0, 999, 1002, 1004, 1005, 1006, 1015, 2999, 5000])
def test_a_code_that_no_frame_may_carry_is_refused(with_socket: With, code: int) -> None:
    async def end(websocket: WebSocket) -> None:
        with pytest.raises(
            ValueError, match=rf"^A close code must be 1000 or from 3000 to 4999, got {code}$"
        ):
            await websocket.close(code)

    client, _ = with_socket(end)

    assert client.kinds == ["accept"]


def test_a_reason_above_123_bytes_is_refused(with_socket: With) -> None:
    async def end(websocket: WebSocket) -> None:
        with pytest.raises(
            ValueError, match=r"^A close reason must have at most 123 bytes, got 'ä+'$"
        ):
            await websocket.close(reason="ä" * 62)

    with_socket(end)


def test_a_close_towards_a_client_that_left_is_no_error(with_socket: With) -> None:
    async def end(websocket: WebSocket) -> None:
        await websocket.close(4000)
        assert websocket.code == 4000

    with_socket(end, lost=1)


def test_attributes_of_ones_own_go_into_state(with_socket: With) -> None:
    async def set_one(websocket: Any) -> None:
        websocket.state.user = "ada"
        with pytest.raises(AttributeError):
            websocket.user = "ada"

    with_socket(set_one)
