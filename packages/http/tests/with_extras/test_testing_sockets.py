"""WebSocket sessions of the test client."""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterator, MutableMapping
from contextlib import contextmanager
from typing import Any

import pytest

from treefold_http import Application
from treefold_http.testing import (
    AsyncTestClient,
    TestClient,
    WebSocketDisconnect,
    WebSocketRefused,
)

Project = Callable[..., Application]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

CHAT = {
    "Api/v1/Chat/Socket.py": """
        async def handler(websocket):
            offered = websocket.subprotocols
            await websocket.accept(subprotocol=offered[-1] if offered else None)
            await websocket.send_json({"cookies": dict(websocket.cookies)})
            async for text in websocket.iter_text():
                if text == "boom":
                    raise LookupError("of the handler")
                if text == "close":
                    await websocket.close(4001, "enough")
                    return
                await websocket.send_text(text.upper())
            websocket.app.state.code = websocket.code
    """,
    "Api/v1/Bytes/Socket.py": """
        async def handler(websocket):
            await websocket.accept(headers={"X-Room": "blue", "Set-Cookie": "seat=1; Secure"})
            async for data in websocket.iter_bytes():
                await websocket.send_bytes(data[::-1])
    """,
    "Api/v1/Broken/Socket.py": "async def handler(websocket):\n    raise LookupError('early')\n",
    "Api/v1/Closed/Socket.py": "async def handler(websocket):\n    await websocket.close(4003)\n",
    "Api/v1/Silent/Socket.py": """
        import asyncio

        async def handler(websocket):
            await asyncio.Event().wait()
    """,
}


@pytest.fixture
def app(project: Project) -> Application:
    return project(CHAT)


@pytest.fixture
def client(app: Application) -> Iterator[TestClient]:
    with TestClient(app) as client:
        yield client


def test_messages_go_both_ways(client: TestClient) -> None:
    with client.websocket_connect("/v1/chat") as ws:
        assert ws.receive_json() == {"cookies": {}}
        ws.send_text("hello")
        assert ws.receive_text() == "HELLO"
        ws.send_json(["a"])
        assert ws.receive() == '["A"]'


def test_bytes_go_both_ways(client: TestClient) -> None:
    with client.websocket_connect("/v1/bytes") as ws:
        ws.send_bytes(b"abc")
        assert ws.receive_bytes() == b"cba"


def test_the_application_chooses_a_subprotocol(client: TestClient) -> None:
    with client.websocket_connect("/v1/chat", subprotocols=["a", "b"]) as ws:
        assert ws.accepted_subprotocol == "b"
    with client.websocket_connect("/v1/chat") as ws:
        assert ws.accepted_subprotocol is None


def test_header_fields_of_the_acceptance_are_kept(client: TestClient) -> None:
    with client.websocket_connect("/v1/bytes") as ws:
        assert ws.headers["x-room"] == "blue"


def test_cookies_are_shared_with_requests(client: TestClient) -> None:
    with client.websocket_connect("/v1/bytes"):
        pass
    with client.websocket_connect("/v1/chat") as ws:
        assert ws.receive_json() == {"cookies": {"seat": "1"}}


def test_a_session_gives_messages_until_it_is_closed(client: TestClient) -> None:
    with client.websocket_connect("/v1/chat") as ws:
        ws.send_text("a")
        ws.send_text("close")

        assert list(ws) == ['{"cookies":{}}', "A"]
        assert (ws.close_code, ws.close_reason) == (4001, "enough")


def test_a_closed_session_raises_on_every_use(client: TestClient) -> None:
    with client.websocket_connect("/v1/chat") as ws:
        ws.receive()
        ws.send_text("close")
        for use in (ws.receive_text, ws.receive_bytes, ws.receive_json, lambda: ws.send_text("x")):
            with pytest.raises(WebSocketDisconnect) as raised:
                use()
            assert (raised.value.code, raised.value.reason) == (4001, "enough")


def test_the_application_sees_the_close_code_of_the_client(
    app: Application, client: TestClient
) -> None:
    with client.websocket_connect("/v1/chat") as ws:
        ws.close(3000, "bye")
        ws.close(3001)

        assert ws.close_code == 3000
    assert app.state.code == 3000


def test_leaving_the_block_closes_with_1000(app: Application, client: TestClient) -> None:
    with client.websocket_connect("/v1/chat"):
        pass

    assert app.state.code == 1000


@pytest.mark.parametrize(("kind", "wrong"), [("text", "bytes"), ("bytes", "text")])
def test_a_message_of_the_wrong_kind_says_what_came(
    client: TestClient, kind: str, wrong: str
) -> None:
    path = "/v1/chat" if kind == "text" else "/v1/bytes"
    with client.websocket_connect(path) as ws:
        if kind == "bytes":
            ws.send_bytes(b"cba")
        with pytest.raises(TypeError, match=f"^The application sent {kind}, not {wrong}: b?['{{a]"):
            getattr(ws, f"receive_{wrong}")()


def test_silence_is_a_timeout(client: TestClient) -> None:
    with client.websocket_connect("/v1/bytes") as ws:
        expected = r"^The application sent nothing within 0\.01 seconds; pass a longer `timeout=`$"
        with pytest.raises(TimeoutError, match=expected):
            ws.receive_text(timeout=0.01)


def test_an_undecided_handshake_is_a_timeout(client: TestClient) -> None:
    with pytest.raises(TimeoutError), client.websocket_connect("/v1/silent", timeout=0.01):
        pytest.fail("the socket was accepted")


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/v1/nowhere", {}, 404),
        ("/v1/a%ff", {}, 400),
        ("/v1/chat", {"origin": "http://evil.example"}, 403),
        ("/v1/closed", {}, 403),
    ],
)
def test_a_refused_handshake_gives_the_answer(
    client: TestClient, path: str, headers: dict[str, str], status: int
) -> None:
    with pytest.raises(WebSocketRefused) as raised, client.websocket_connect(path, headers=headers):
        pytest.fail("the socket was accepted")

    assert raised.value.status == raised.value.response.status_code == status


def test_a_refusal_shows_the_problem_document(client: TestClient) -> None:
    expected = "^The WebSocket was refused with 404: {.*There is nothing at this path"
    with (
        pytest.raises(WebSocketRefused, match=expected) as raised,
        client.websocket_connect("/v1/x"),
    ):
        pytest.fail("the socket was accepted")

    assert raised.value.response.json()["title"] == "Not Found"


def test_an_error_before_the_acceptance_is_raised(client: TestClient) -> None:
    with pytest.raises(LookupError, match="early"), client.websocket_connect("/v1/broken"):
        pytest.fail("the socket was accepted")


def test_an_error_after_the_acceptance_is_raised_where_the_test_waits(client: TestClient) -> None:
    with client.websocket_connect("/v1/chat") as ws:
        ws.receive()
        ws.send_text("boom")
        with pytest.raises(LookupError, match="of the handler"):
            ws.receive_text()

        assert ws.close_code == 1011


def test_an_error_that_nobody_waited_for_is_raised_at_the_end(client: TestClient) -> None:
    with (
        pytest.raises(LookupError, match="of the handler"),
        client.websocket_connect("/v1/chat") as ws,
    ):
        ws.send_text("boom")


def test_the_failure_of_the_test_itself_is_not_hidden(client: TestClient) -> None:
    def fail() -> None:
        with client.websocket_connect("/v1/chat") as ws:
            ws.send_text("boom")
            raise ValueError("of the test")

    with pytest.raises(ValueError, match="of the test"):
        fail()


def test_codes_are_given_when_errors_are_not_raised(app: Application) -> None:
    with TestClient(app, raise_app_errors=False) as client:
        with client.websocket_connect("/v1/chat") as ws:
            ws.receive()
            ws.send_text("boom")
            with pytest.raises(WebSocketDisconnect) as closed:
                ws.receive_text()
        with pytest.raises(WebSocketRefused) as refused, client.websocket_connect("/v1/broken"):
            pytest.fail("the socket was accepted")

    assert closed.value.code == 1011
    assert refused.value.status == 500


def test_a_session_is_open_while_the_client_sends_requests(client: TestClient) -> None:
    with client.websocket_connect("/v1/chat") as first, client.websocket_connect("/v1/chat") as ws:
        assert client.get("/v1/chat").status_code == 405
        for session in (first, ws):
            session.receive()
            session.send_text("x")
            assert session.receive_text() == "X"


def test_the_stop_of_the_server_is_a_restart_to_the_client(
    app: Application, client: TestClient
) -> None:
    with client.websocket_connect("/v1/chat") as ws:
        ws.receive()
        client.run(app.begin_shutdown)
        with pytest.raises(WebSocketDisconnect) as raised:
            ws.receive()

    assert raised.value.code == 1012


def test_a_session_that_is_left_open_ends_with_the_client(app: Application) -> None:
    with TestClient(app) as client:
        client.websocket_connect("/v1/chat").__enter__()


@contextmanager
def _serving(
    serve: Callable[[Message, Receive, Send], Awaitable[None]],
) -> Generator[TestClient]:
    async def app(scope: Message, receive: Receive, send: Send) -> None:
        assert scope["type"] == "websocket"
        await serve(scope, receive, send)

    with TestClient(app) as client:
        yield client


@pytest.mark.parametrize(
    ("url", "scheme", "raw_path"),
    [
        ("/v1/../chat%2F?q=1", "ws", b"/v1/../chat%2F"),
        ("ws://elsewhere/v1/chat", "ws", b"/v1/chat"),
        ("https://elsewhere/v1/chat", "wss", b"/v1/chat"),
    ],
)
def test_the_scope_is_that_of_a_handshake(url: str, scheme: str, raw_path: bytes) -> None:
    scopes: list[Message] = []

    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        scopes.append(scope)
        assert await receive() == {"type": "websocket.connect"}
        await send({"type": "websocket.accept"})
        await receive()

    with _serving(serve) as client, client.websocket_connect(url, subprotocols=["a", "b"]):
        pass

    (scope,) = scopes
    fields = dict(scope["headers"])
    assert (scope["scheme"], scope["raw_path"]) == (scheme, raw_path)
    assert scope["subprotocols"] == ["a", "b"]
    assert fields[b"sec-websocket-protocol"] == b"a, b"
    assert (fields[b"connection"], fields[b"upgrade"]) == (b"Upgrade", b"websocket")
    assert b"origin" not in fields


def test_an_application_that_just_returns_is_a_connection_that_breaks() -> None:
    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})

    with (
        _serving(serve) as client,
        client.websocket_connect("/") as ws,
        pytest.raises(WebSocketDisconnect) as raised,
    ):
        ws.receive()

    assert raised.value.code == 1006


def test_an_application_waits_for_a_client_that_does_not_read() -> None:
    sent: list[int] = []

    async def serve(scope: Message, receive: Receive, send: Send) -> None:
        await send({"type": "websocket.accept"})
        for number in range(10):
            await send({"type": "websocket.send", "bytes": b"x" * 30_000})
            sent.append(number)
        await receive()

    with _serving(serve) as client, client.websocket_connect("/") as ws:
        client.run(asyncio.sleep, 0.05)  # time that an application which did not wait would use
        assert sent == [0, 1]
        for _ in range(10):
            ws.receive_bytes()


def test_the_async_session_does_the_same(app: Application) -> None:
    async def main() -> list[str | bytes]:
        async with (
            AsyncTestClient(app) as client,
            client.websocket_connect("/v1/chat", subprotocols=["a"]) as ws,
        ):
            assert ws.accepted_subprotocol == "a"
            await ws.receive_json()
            await ws.send_text("x")
            await ws.send_text("close")
            return [message async for message in ws]

    assert asyncio.run(main()) == ["X"]
