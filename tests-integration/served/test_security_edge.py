"""Security rows of the shipped middleware on the wire: what a browser or a cache would see.

One application with the middleware that a browser application needs, behind both HTTP parsers.
"""

from __future__ import annotations

import gzip
import zlib

import pytest
from http_messages import Answer
from serving import Process
from socket_client import knock
from wire import ServeOnSocket, Wire

APP = "https://app.example"
TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Crash/Get.py": "async def handler(request): raise LookupError('S3cr3t')",
    "Api/v1/Body/Post.py": """
        max_body = 10

        async def handler(request):
            return len(await request.body())
        """,
    "Api/v1/Stream/Get.py": """
        async def handler(request):
            yield "a"
            yield "b"
        """,
    "Api/v1/Echo/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
        """,
    "Middleware/__init__.py": """
        from treefold.middleware import CORS, GZip, IPAllowlist, SecurityHeaders, Timeout, under

        middlewares = [
            under("/v1/text", GZip(codings=["gzip"])),
            SecurityHeaders(hsts=True),
            CORS(["https://app.example"], allow_credentials=True, allow_headers=["X-Mine"]),
            under("/v1/inside", IPAllowlist(["10.0.0.0/8"])),
            under("/v1/slow", Timeout(0.2)),
        ]
        """,
    "Api/v1/Inside/Get.py": "async def handler(request): return {}",
    "Api/v1/Inside/Ws.py": "async def handler(websocket): await websocket.accept()",
    "Api/v1/Slow/Get.py": """
        import asyncio

        async def handler(request):
            await asyncio.Event().wait()
        """,
    "Api/v1/Slow/Post.py": "async def handler(request): return len(await request.body())",
    "Api/v1/Slow/Stream/Get.py": """
        import asyncio

        async def handler(request):
            yield "first "
            await asyncio.sleep(0.4)
            yield "last"
        """,
    "Api/v1/Text/Get.py": """
        async def handler(request):
            headers = {"Set-Cookie": "a=b"} if "cookie" in request.query else {"ETag": '"t"'}
            return "words " * 20_000, 200, headers
        """,
    "Api/v1/Text/Stream/Get.py": """
        import asyncio

        async def handler(request):
            from treefold import StreamingResponse

            async def chunks():
                yield "first "
                await asyncio.sleep(0.3)
                yield "last"

            return StreamingResponse(chunks(), media_type="text/plain")
        """,
    "treefold.toml": "docs = true\nhealth = true\n",
}


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


def granted(answer: Answer) -> list[str]:
    return answer.values("access-control-allow-origin")


EVERY = [
    ("GET", "/v1/ok", b"", 200),
    ("GET", "/v1/stream", b"", 200),
    ("GET", "/v1/none", b"", 404),
    ("DELETE", "/v1/ok", b"", 405),
    ("POST", "/v1/body", b"more than ten", 413),
    ("GET", "/v1/%ff", b"", 400),
    ("GET", "/v1/crash", b"", 500),
]


@pytest.mark.parametrize(("method", "target", "body", "status"), EVERY)
def test_s57_s60_every_answer_tells_the_browser(
    server: Process, method: str, target: str, body: bytes, status: int
) -> None:
    mine = server.request(method, target, headers=[("Origin", APP)], body=body)
    assert (mine.status, granted(mine)) == (status, [APP])
    assert mine.values("access-control-allow-credentials") == ["true"]
    assert mine.values("vary") == ["Origin"]
    assert mine.id in server.line(mine)

    for origin in ("https://evil.example", "null", f"{APP}.evil.example"):
        foreign = server.request(method, target, headers=[("Origin", origin)], body=body)
        assert (foreign.status, granted(foreign)) == (status, [])
        assert foreign.values("access-control-allow-credentials") == []
        assert foreign.values("vary") == ["Origin"]


@pytest.mark.parametrize(("method", "target", "body", "status"), EVERY)
def test_s49_d14_every_answer_carries_the_security_fields(
    server: Process, method: str, target: str, body: bytes, status: int
) -> None:
    answer = server.request(method, target, body=body)

    assert answer.status == status
    assert answer.value("x-content-type-options") == "nosniff"
    assert answer.value("x-frame-options") == "DENY"
    assert answer.value("referrer-policy") == "no-referrer"
    policy = "default-src 'none'; frame-ancestors 'none'"
    assert answer.value("content-security-policy") == policy
    assert answer.values("strict-transport-security") == []
    assert answer.values("server") == []


def test_d14_the_docs_keep_their_own_policy(server: Process) -> None:
    page = server.get("/docs")

    assert page.status == 200
    assert "script-src" in page.value("content-security-policy")
    assert page.value("x-frame-options") == "DENY"


def test_s93_an_address_that_a_client_writes_itself_opens_nothing(server: Process) -> None:
    for field in ("X-Forwarded-For", "Forwarded", "X_Forwarded_For", "X-Real-IP"):
        answer = server.get("/v1/inside", (field, "10.0.0.1"), ("Origin", APP))
        assert (answer.status, granted(answer)) == (403, [APP])
    assert server.request("DELETE", "/v1/inside").status == 403
    assert knock(server, "/v1/inside").status == 403


def test_d06_a_request_that_takes_too_long_is_answered(server: Process) -> None:
    late = server.get("/v1/slow", ("Origin", APP))
    assert (late.status, granted(late)) == (503, [APP])
    assert "[ERROR] GET /v1/slow 503 " in server.line(late)
    assert server.get("/v1/slow/stream").text == "first last"

    with Wire(server) as wire:
        wire.send(b"POST /v1/slow HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nabc")
        answer = wire.answer("POST")
        assert (answer.status, answer.value("connection")) == (408, "close")
        assert wire.rest() == b""


WORDS = b"words " * 20_000


@pytest.mark.parametrize(
    ("fields", "coding"),
    [
        ([("Accept-Encoding", "gzip")], ["gzip"]),
        ([("Accept-Encoding", "br;q=1, *;q=0.1")], ["gzip"]),
        ([("Accept-Encoding", "gzip;q=0")], []),
        ([("Accept-Encoding", "identity;q=1, *;q=0")], []),
        ([("Accept-Encoding", "x-gzip")], []),
        ([("Accept-Encoding", "gzip;q=0"), ("Accept-Encoding", "br")], []),
        ([], []),
    ],
)
def test_s51_the_coding_is_what_the_client_takes(
    server: Process, fields: list[tuple[str, str]], coding: list[str]
) -> None:
    answer = server.get("/v1/text", *fields)

    assert answer.values("content-encoding") == coding
    assert answer.value("content-length") == str(len(answer.body))
    assert answer.value("etag") == ('W/"t"' if coding else '"t"')
    assert (gzip.decompress(answer.body) if coding else answer.body) == WORDS
    assert sorted(answer.values("vary")) == ["Accept-Encoding", "Origin"]


def test_s50_an_answer_that_sets_a_cookie_is_plain(server: Process) -> None:
    answer = server.get("/v1/text?cookie", ("Accept-Encoding", "gzip"))

    assert (answer.values("content-encoding"), answer.body) == ([], WORDS)


def test_s51_a_compressed_stream_arrives_piece_by_piece(server: Process) -> None:
    head = b"GET /v1/text/stream HTTP/1.1\r\nHost: localhost\r\nAccept-Encoding: gzip\r\n\r\n"
    reader, read = zlib.decompressobj(31), b""
    with Wire(server) as wire:
        wire.send(head)
        received = wire.at_least(len(head))
        fields, _, chunks = received.partition(b"\r\n\r\n")
        while len(chunks) < 10:
            chunks += wire.at_least(1)
        size, _, chunk = chunks.partition(b"\r\n")
        read = reader.decompress(chunk[: int(size, 16)])
    assert b"content-encoding: gzip" in fields.lower()
    assert read == b"first "


def test_probes_are_answered_and_leave_no_line(server: Process) -> None:
    for target in ("/livez", "/readyz"):
        answer = server.request("GET", target, host="10.9.8.7")
        assert (answer.status, answer.value("cache-control")) == (200, "no-store")
    after = server.get("/v1/ok")
    assert server.line(after)
    written = "".join(server.wait_for(lambda lines: lines))
    assert "/livez" not in written
    assert "/readyz" not in written


def test_s61_a_preflight_on_the_wire(server: Process) -> None:
    asked = [("Origin", APP), ("Access-Control-Request-Method", "DELETE")]
    answer = server.request(
        "OPTIONS", "/v1/ok", headers=[*asked, ("Access-Control-Request-Headers", "x-mine,x-other")]
    )

    assert (answer.status, answer.body, granted(answer)) == (204, b"", [APP])
    assert answer.value("access-control-allow-methods") == "GET"
    assert answer.value("access-control-allow-headers") == "x-mine"
    assert server.request("OPTIONS", "/v1/none", headers=asked).status == 404


def test_s70_a_page_that_may_read_may_not_open_a_socket(server: Process) -> None:
    assert knock(server, "/v1/echo", f"Origin: {APP}\r\n".encode()).status == 403
    assert knock(server, "/v1/echo").status == 101
