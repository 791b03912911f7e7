"""Security rows of WebSockets (S-70 to S-73, S-76): who may connect, and what may be sent.

Frames that break the protocol are refused by the library under the server, messages of the wrong
kind or size by the framework; both speak through close codes. The rulings allow a socket without an
`Origin`, cookies or not, where the row would refuse it.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Callable

import pytest
from facts import MIB, cost_of
from serving import Process
from socket_client import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    UPGRADE,
    close_code,
    frame,
    handshake,
    knock,
    next_frame,
)
from websockets.sync.client import ClientConnection, connect
from wire import ServeOnSocket, Wire

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Echo/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            async for text in websocket.iter_text():
                await websocket.send_text(text)
        """,
    "Api/v1/Size/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            async for data in websocket.iter_bytes():
                await websocket.send_text(str(len(data)))
        """,
    "Api/v1/Json/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            async for value in websocket.iter_json():
                await websocket.send_json({"value": value})
        """,
    "Api/v1/Protocols/Ws.py": """
        async def handler(websocket):
            await websocket.accept(next(iter(websocket.subprotocols), None))
            await websocket.send_json(websocket.subprotocols)
        """,
    "Api/v1/Return/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
        """,
    "Api/v1/CrashEarly/Ws.py": """
        async def handler(websocket):
            raise LookupError("S3cr3t")
        """,
    "Api/v1/Limited/Ws.py": """
        from treefold import TooManyRequests

        class Limit:
            left = 5

            async def websocket(self, websocket, call_next):
                if not self.left:
                    raise TooManyRequests("later")
                self.left -= 1
                await call_next(websocket)

        middlewares = [Limit()]

        async def handler(websocket):
            await websocket.accept()
        """,
    "treefold.toml": 'ws_allowed_origins = ["https://app.example"]\n',
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


def dial(server: Process, target: str) -> ClientConnection:
    host, port = server.address
    return connect(f"ws://{host}:{port}{target}", proxy=None, compression=None, max_size=None)


def lines_of(server: Process, id: str) -> list[str]:
    """Give the lines of one socket, once a later request has been logged."""
    server.line(server.get("/v1/ok"))
    shape = re.compile(rf"\[[A-Z]+\] WEBSOCKET .* id={re.escape(id)} ")
    return server.wait_for(lambda lines: list(filter(shape.match, lines)))


FOREIGN = [
    "https://evil.example",
    "null",
    "",
    "http://{host}.evil.example:{port}",
    "http://evil.{host}:{port}",
    "http://evil.example/{host}:{port}",
    "http://{host}:{port}@evil.example",
    "http://evil.example#{host}:{port}",
    "http://evil.example?{host}:{port}",
    "https://{host}:{port}",
    "ws://{host}:{port}",
    "http://{host}",
    "http://{host}:1",
    "http://{host}:{port}/",
    "http://{host}:{port}, https://evil.example",
    "{host}:{port}",
    "//{host}:{port}",
    "file://",
    "https://app.example.evil.example",
    "http://app.example",
    "https://app.example:8443",
    "https://xapp.example",
]


@pytest.mark.parametrize("origin", FOREIGN)
def test_s70_a_foreign_origin_is_403_before_anything_runs(server: Process, origin: str) -> None:
    host, port = server.address
    origin = origin.format(host=host, port=port)
    answer = knock(server, "/v1/crashearly", f"Origin: {origin}\r\n".encode())
    assert answer.status == 403
    (line,) = lines_of(server, answer.id)
    assert line.startswith("[INFO] WEBSOCKET /v1/crashearly 403 ")


def test_s70_two_origins_are_403(server: Process) -> None:
    host, port = server.address
    own = f"Origin: http://{host}:{port}\r\n".encode()
    assert knock(server, "/v1/return", own + own).status in (400, 403)  # the library or we


@pytest.mark.parametrize(
    "fields",
    [
        b"",
        b"Cookie: sid=1\r\n",
        b"Origin: http://{host}:{port}\r\n",
        b"Origin: HTTP://{host}:{port}\r\n",
        b"Origin: https://app.example\r\n",
    ],
)
def test_s70_the_own_an_allowed_and_no_origin_are_accepted(server: Process, fields: bytes) -> None:
    host, port = server.address
    fields = fields.replace(b"{host}", host.encode()).replace(b"{port}", b"%d" % port)
    assert knock(server, "/v1/return", fields).status == 101


@pytest.mark.parametrize(
    ("target", "status"),
    [("/v1/none", 404), ("/none", 404), ("/v1/ok", 405), ("/v1/%ff", 400), ("/v1/return%0a", 400)],
)
def test_s71_what_is_refused_for_http_is_refused_for_a_socket(
    server: Process, target: str, status: int
) -> None:
    answer = knock(server, target)
    assert (answer.status, answer.json()["status"]) == (status, status)
    assert len(lines_of(server, answer.id)) == 1


def test_a_refusal_is_no_error_of_the_server(server: Process) -> None:
    for target in ("/v1/none", "/v1/ok"):
        answer = knock(server, target)
        lines_of(server, answer.id)
    (so_far,) = server.wait_for(lambda lines: ["\n".join(lines)])
    assert "handshake" not in so_far.replace("refused a WebSocket handshake", "")


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        (b"Host: localhost\r\n", (400,)),
        (b"".join(b"X-%d: 1\r\n" % n for n in range(101)), (400, 431)),
        (b"X-Long: " + b"x" * 33_000 + b"\r\n", (400, 431)),
    ],
    ids=["two hosts", "101 fields", "33 KB"],
)
def test_s71_the_gate_stands_before_a_socket_too(
    server: Process, fields: bytes, status: tuple[int, ...]
) -> None:
    assert knock(server, "/v1/return", fields).status in status


@pytest.mark.parametrize("host", [b"a@evil", b"", b"a b", b"localhost/?"])
def test_s71_a_host_that_is_none_is_400(server: Process, host: bytes) -> None:
    with Wire(server) as wire:
        wire.send(b"GET /v1/return HTTP/1.1\r\nHost: " + host + b"\r\n" + UPGRADE + b"\r\n")
        assert wire.answer().status == 400


def test_s71_middleware_limits_handshakes(server: Process) -> None:
    statuses = [knock(server, "/v1/limited").status for _ in range(6)]
    assert statuses == [101] * 5 + [429]


def test_s71_a_socket_has_one_request_id_and_one_line(server: Process) -> None:
    answer = knock(server, "/v1/return", b"X-Request-ID: given-1\r\n")
    assert answer.id == "given-1"
    (line,) = lines_of(server, "given-1")
    assert line.startswith("[INFO] WEBSOCKET /v1/return 1000 ")


def test_s72_a_message_of_1_mib_is_taken(server: Process) -> None:
    with dial(server, "/v1/size") as socket:
        socket.send(b"x" * MIB)
        assert socket.recv() == str(MIB)
        socket.send([b"x" * (MIB // 4)] * 4)
        assert socket.recv() == str(MIB)


def deflated(size: int) -> bytes:
    coder = zlib.compressobj(wbits=-15)
    return (coder.compress(b"x" * size) + coder.flush(zlib.Z_SYNC_FLUSH))[:-4]


def fragments(count: int, payload: bytes) -> bytes:
    middle = frame(CONTINUATION, payload, fin=False)
    return frame(BINARY, payload, fin=False) + middle * (count - 2) + frame(CONTINUATION, payload)


@pytest.mark.parametrize(
    ("sent", "code"),
    [
        pytest.param(lambda: frame(BINARY, b"x" * (MIB + 1)), 1009, id="1 MiB and one"),
        pytest.param(lambda: frame(BINARY, b"x" * 20 * MIB), 1009, id="20 MiB"),
        pytest.param(lambda: frame(BINARY, b"x", announced=2**62), 1009, id="2**62 announced"),
        pytest.param(lambda: fragments(20, b"x" * MIB), 1009, id="20 fragments of 1 MiB"),
        pytest.param(lambda: fragments(300, b"x" * 4096), 1009, id="300 fragments of 4 KiB"),
        pytest.param(
            lambda: frame(BINARY, deflated(20 * MIB), reserved=4), 1002, id="deflate bomb"
        ),
        pytest.param(lambda: frame(TEXT, "\u20ac".encode() * 400_000), 1009, id="text in bytes"),
    ],
)
@pytest.mark.parametrize("target", ["/v1/size", "/v1/echo", "/v1/json"])
def test_s72_a_message_above_1_mib_closes_the_socket(
    server: Process, target: str, sent: Callable[[], bytes], code: int
) -> None:
    data = sent()
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(handshake(server, target))
        assert wire.answer().status == 101
        wire.send(data)
        assert close_code(wire) == code
    assert cost.memory < 8 * MIB


@pytest.mark.parametrize("payload", [b"", b"x"], ids=["empty", "one byte"])
def test_s72_a_message_in_very_many_fragments_costs_what_it_weighs(
    server: Process, payload: bytes
) -> None:
    count = 100_000
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(handshake(server, "/v1/size"))
        assert wire.answer().status == 101
        wire.send(fragments(count, payload))
        assert next_frame(wire) == (TEXT, str(count * len(payload)).encode())
    assert cost.cpu < 6.0  # the frames are read in Python, one by one
    assert cost.memory < 16 * MIB


def test_s72_compression_is_not_agreed_to(server: Process) -> None:
    offer = b"Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits\r\n"
    answer = knock(server, "/v1/return", offer)
    assert (answer.status, answer.values("sec-websocket-extensions")) == (101, [])


@pytest.mark.parametrize(
    ("target", "sent", "code"),
    [
        pytest.param("/v1/echo", frame(BINARY, b"x"), 1003, id="bytes where text is read"),
        pytest.param("/v1/size", frame(TEXT, b"x"), 1003, id="text where bytes are read"),
        pytest.param("/v1/json", frame(BINARY, b"{}"), 1003, id="bytes where JSON is read"),
        pytest.param("/v1/json", frame(TEXT, b"{"), 1007, id="JSON cut short"),
        pytest.param("/v1/json", frame(TEXT, b"[NaN]"), 1007, id="NaN"),
        pytest.param("/v1/json", frame(TEXT, b"[" * 100_000), 1007, id="deep JSON"),
        pytest.param("/v1/json", frame(TEXT, b'"\\ud800"'), 1007, id="half a pair"),
        pytest.param("/v1/json", frame(TEXT, b""), 1007, id="nothing"),
        pytest.param("/v1/echo", frame(TEXT, b"\xff"), 1007, id="no UTF-8"),
        pytest.param("/v1/echo", frame(TEXT, b"\xed\xa0\x80"), 1007, id="surrogate"),
        pytest.param(
            "/v1/echo",
            frame(TEXT, b"\xc3", fin=False) + frame(CONTINUATION, b"\x28"),
            1007,
            id="no UTF-8 over two fragments",
        ),
        pytest.param("/v1/echo", frame(TEXT, b"x", masked=False), 1002, id="no mask"),
        pytest.param("/v1/echo", frame(TEXT, b"x", reserved=1), 1002, id="reserved bit"),
        pytest.param("/v1/echo", frame(TEXT, b"x", reserved=4), 1002, id="compressed"),
        pytest.param("/v1/echo", frame(0x3, b"x"), 1002, id="reserved opcode"),
        pytest.param("/v1/echo", frame(0xB), 1002, id="reserved control opcode"),
        pytest.param("/v1/echo", frame(CONTINUATION, b"x"), 1002, id="goes on with nothing"),
        pytest.param(
            "/v1/echo", frame(TEXT, b"x", fin=False) + frame(TEXT, b"x"), 1002, id="begins twice"
        ),
        pytest.param("/v1/echo", frame(PING, b"x", fin=False), 1002, id="ping in fragments"),
        pytest.param("/v1/echo", frame(PING, b"x" * 126), 1002, id="ping of 126"),
        pytest.param("/v1/echo", frame(CLOSE, b"\x03"), 1002, id="close of one byte"),
        pytest.param("/v1/echo", frame(CLOSE, b"\x03\xed"), 1002, id="close with 1005"),
        pytest.param("/v1/echo", frame(CLOSE, b"\x00\x00"), 1002, id="close with 0"),
        pytest.param("/v1/echo", frame(CLOSE, b"\x03\xe8\xff"), 1007, id="close with a bad reason"),
    ],
)
def test_s73_a_bad_message_closes_with_the_code_that_says_so(
    server: Process, target: str, sent: bytes, code: int
) -> None:
    with Wire(server) as wire:
        wire.send(handshake(server, target))
        answer = wire.answer()
        wire.send(sent)
        assert close_code(wire) == code
        wire.send(frame(CLOSE, code.to_bytes(2, "big")))
        assert wire.rest() == b""
    (line,) = lines_of(server, answer.id)
    assert line.startswith(f"[INFO] WEBSOCKET {target} {code} ")


def test_s73_a_ping_is_answered_in_the_middle_of_a_message(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(handshake(server, "/v1/echo"))
        assert wire.answer().status == 101
        wire.send(frame(TEXT, b"a", fin=False) + frame(PING, b"p") + frame(CONTINUATION, b"b"))
        assert [next_frame(wire), next_frame(wire)] == [(PONG, b"p"), (TEXT, b"ab")]


@pytest.mark.parametrize(
    "protocol", [b"\xff", b"a\xe4", b"a b", b"a/b", b"a\x7f", b'"a"'], ids=ascii
)
def test_s73_a_subprotocol_that_is_no_token_is_400(server: Process, protocol: bytes) -> None:
    answer = knock(server, "/v1/protocols", b"Sec-WebSocket-Protocol: " + protocol + b"\r\n")
    assert answer.status == 400


def test_s73_a_subprotocol_is_taken_as_offered(server: Process) -> None:
    answer = knock(server, "/v1/protocols", b"Sec-WebSocket-Protocol: chat.v1, b\r\n")
    assert (answer.status, answer.value("sec-websocket-protocol")) == (101, "chat.v1")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 8"),
        (b"Sec-WebSocket-Version: 13\r\n", b""),
        (b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b""),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"short"),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"\xff" * 24),
        (b"GET ", b"POST "),
    ],
    ids=["version 8", "no version", "no key", "short key", "bytes as key", "POST"],
)
def test_s73_a_handshake_that_is_none_is_refused(server: Process, old: bytes, new: bytes) -> None:
    request = handshake(server, "/v1/return").replace(old, new)
    with Wire(server) as wire:
        wire.send(request)
        assert wire.answer().status in (400, 405, 426)
    assert server.get("/v1/ok").status == 200


@pytest.mark.parametrize(
    ("authority", "status"),
    [("{own}", 101), ("http://{own}", 101), ("http://evil.example", 400), ("ws://{own}", 400)],
)
def test_s14_a_handshake_for_an_absolute_target_names_its_own_host(
    server: Process, authority: str, status: int
) -> None:
    own = "{}:{}".format(*server.address)
    prefix = authority.format(own=own) if "://" in authority else ""
    assert knock(server, f"{prefix}/v1/return?a=1").status == status


def test_s76_a_token_in_the_query_is_masked_in_the_log(server: Process) -> None:
    query = "token=S3cr3t&room=1&api%5Fkey=S3cr3t"
    for target in ("/v1/return", "/v1/none", "/v1/crashearly"):
        answer = knock(server, f"{target}?{query}")
        (line,) = lines_of(server, answer.id)
        assert f"{target}?token=***&room=1&" in line
    assert "token=S3cr3t" not in "\n".join(server.wait_for(lambda lines: lines))
