"""Sentences of `docs/project/security.md` that a neighbour shows in part only, each as a whole.

One project without any middleware, as the page says: "without any setting and without middleware".
"""

from __future__ import annotations

import base64
import gzip
import re
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import http_redis
import pytest
from http_messages import Answer, Call
from serving import Process, write_tree
from socket_client import handshake, knock
from wire import ServeOnSocket, Wire

OK = "async def handler(request): return {}"
PLAIN = {
    "treefold.toml": 'default_version = "latest"\n',
    "Api/v1/Where/Get.py": "async def handler(request): return 'v1'",
    "Api/v2/Where/Get.py": "async def handler(request): return 'v2'",
    "Api/v1/Ok/Get.py": OK,
    "Api/v1/Ok/Post.py": OK,
    "Api/v1/Words/Get.py": "async def handler(request): return 'word ' * 2000",
    "Api/v1/Who/Get.py": """
        async def handler(request):
            return [request.client.host, request.scheme, request.host]
        """,
    "Api/v1/Slow/Get.py": """
        import asyncio
        async def handler(request):
            await asyncio.sleep(1)
            return {}
        """,
    "Api/v1/Session/Get.py": "async def handler(request): return request.session.user",
    "Api/v1/Query/Get.py": "async def handler(request): return [len(request.query.multi_items())]",
    "Api/v1/Body/Post.py": "async def handler(request): return await request.body()",
    "Api/v1/Stream/Post.py": """
        async def handler(request):
            return b"".join([chunk async for chunk in request.stream()])
        """,
    "Api/v1/Form/Post.py": """
        async def handler(request):
            fields, files = await request.form(), await request.files()
            return [len(fields.multi_items()), len(files.multi_items())]
        """,
    "hooks.py": """
        async def mounted(scope, receive, send):
            if scope["type"] != "http":
                return
            if scope["path"].endswith("fails"):
                raise LookupError
            fields = [(b"content-type", b"text/html")]
            await send({"type": "http.response.start", "status": 200, "headers": fields})
            await send({"type": "http.response.body", "body": b"ok"})

        def mount(app):
            app.mount("/mounted", mounted)

        on_startup = [mount]
        """,
    "Api/v1/Chat/Ws.py": "async def handler(websocket): await websocket.accept()",
    "Api/v1/Stay/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            await websocket.send_text("here")
            await websocket.receive_text()
        """,
}
FORM = "application/x-www-form-urlencoded"


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(PLAIN)


# What a project has not listed does nothing


def test_no_middleware_acts_that_is_not_listed(server: Process) -> None:
    """None of the nine parts that the page names leaves a trace on an answer."""
    sent = [
        ("X-Forwarded-For", "192.0.2.1"),
        ("X-Forwarded-Proto", "https"),
        ("X-Forwarded-Host", "api.example"),
        ("Origin", "https://evil.example"),
        ("Cookie", "session=x; __Host-session=x"),
        ("Accept-Encoding", "gzip"),
    ]
    who = server.request("GET", "/v1/who", headers=sent, host="evil.example")
    assert who.json() == ["127.0.0.1", "http", "evil.example"]  # TrustedHosts, ProxyHeaders
    words = server.get("/v1/words", *sent)
    assert words.status == 200
    assert {name for name, _ in words.headers} == {  # CORS, SecurityHeaders, RateLimit, GZip
        *("connection", "content-length", "content-type", "date", "x-content-type-options"),
        "x-request-id",
    }
    posted = server.request("POST", "/v1/ok", headers=sent)
    assert (posted.status, posted.values("set-cookie")) == (200, [])  # the CSRF guard
    assert {server.get("/v1/ok").status for _ in range(100)} == {200}  # RateLimit
    assert server.get("/v1/slow").status == 200  # Timeout
    session = server.get("/v1/session")
    assert session.status == 500
    assert "Sessions" in server.block(session)


@pytest.mark.parametrize(
    "field",
    [
        ("Api-Version", "v1"),
        ("Accept-Version", "1"),
        ("X-Version", "1"),
        ("Accept", "application/vnd.api.v1+json; version=1"),
    ],
)
def test_s08_no_field_chooses_the_version(server: Process, field: tuple[str, str]) -> None:
    assert server.get("/where", field).text == "v2"
    assert server.get("/v1/where", field).text == "v1"


# Requests that are refused


def test_s03_s23_a_query_and_a_form_are_refused_where_they_are_read(server: Process) -> None:
    many = "&".join(["a"] * 1001)
    for target in ("/v1/query?a=%ff", f"/v1/query?{many}"):
        assert server.get(target).status == 400
    for target in ("/v1/ok?a=%ff", f"/v1/ok?{many}"):
        assert server.get(target).status == 200
    assert server.get("/v1/query?" + "&".join(["a="] * 1000)).json() == [1000]
    for body in (b"a=%ff", b"\xff=1"):
        assert server.post("/v1/form", body, FORM).status == 400


@pytest.mark.parametrize("target", ["/v1/body", "/v1/stream"])
def test_s29_bytes_that_a_handler_reads_are_never_decompressed(
    server: Process, target: str
) -> None:
    coded = gzip.compress(b"word " * 100)
    fields = [("Content-Encoding", "gzip"), ("Content-Type", "application/json")]
    answer = server.request("POST", target, headers=fields, body=coded)
    assert (answer.status, answer.body) == (200, coded)


def multipart(*parts: bytes, boundary: str = "frontier") -> tuple[bytes, str]:
    """Return a body and its content type."""
    line = f"--{boundary}".encode()
    body = b"".join(line + b"\r\n" + part + b"\r\n" for part in parts) + line + b"--\r\n"
    return body, f"multipart/form-data; boundary={boundary}"


FIELD = b'Content-Disposition: form-data; name="a"\r\n\r\n'
FILE = b'Content-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
TAKEN = {
    "1,000 parts": (multipart(*[FIELD] * 1000), multipart(*[FIELD] * 1001), [1000, 0]),
    "100 files": (multipart(*[FILE] * 100), multipart(*[FILE] * 101), [0, 100]),
    "70 characters of boundary": (
        multipart(FIELD, boundary="b" * 70),
        multipart(FIELD, boundary="b" * 71),
        [1, 0],
    ),
    "512 KiB in a field": (
        multipart(FIELD + b"x" * 524_288),
        multipart(FIELD + b"x" * 524_289),
        [1, 0],
    ),
    "1,000 urlencoded fields": (
        (b"&".join([b"a=1"] * 1000), FORM),
        (b"&".join([b"a=1"] * 1001), FORM),
        [1000, 0],
    ),
}
"""The largest form that is taken, the smallest that is not, and what a handler has of the first."""


@pytest.mark.parametrize(("largest", "larger", "counts"), TAKEN.values(), ids=TAKEN.keys())
def test_s36_s39_a_form_is_taken_up_to_the_numbers_of_the_page(
    server: Process, largest: tuple[bytes, str], larger: tuple[bytes, str], counts: list[int]
) -> None:
    answer = server.post("/v1/form", *largest)
    assert (answer.status, answer.json()) == (200, counts)
    assert server.post("/v1/form", *larger).status in (400, 413)


# Answers that no handler of the project makes


@pytest.mark.parametrize(("target", "status"), [("/mounted", 200), ("/mounted/fails", 500)])
def test_s49_an_answer_of_a_mounted_application_forbids_sniffing(
    server: Process, target: str, status: int
) -> None:
    answer = server.get(target)
    assert (answer.status, answer.values("x-content-type-options")) == (status, ["nosniff"])


@pytest.mark.parametrize(
    ("old", "new", "status"),
    [
        (b"Sec-WebSocket-Version: 13", b"Sec-WebSocket-Version: 8", 400),
        (b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n", b"", 400),
        (b"dGhlIHNhbXBsZSBub25jZQ==", b"short", 400),
        (b"dGhlIHNhbXBsZSBub25jZQ==\r\n", b"\xff\r\n", 400),
        (b"\r\n\r\n", b"\r\nSec-WebSocket-Protocol: a b\r\n\r\n", 400),
    ],
    ids=["version", "no key", "short key", "bytes as key", "subprotocol"],
)
def test_s49_s71_a_refused_handshake_is_an_answer_with_an_id_and_one_line(
    server: Process, old: bytes, new: bytes, status: int
) -> None:
    with Wire(server) as wire:
        wire.send(handshake(server, "/v1/chat").replace(old, new))
        answer = wire.answer()
        assert wire.rest() == b""
    assert (answer.status, answer.values("x-content-type-options")) == (status, ["nosniff"])
    server.line(server.get("/v1/ok"))  # the lines before it are written
    (line,) = server.wait_for(lambda lines: [line for line in lines if answer.id in line])
    assert line == f"[WARNING] refused a WebSocket handshake with {status} id={answer.id}"


def test_d07_sockets_take_no_place_of_requests(serve_on_socket: ServeOnSocket) -> None:
    server = serve_on_socket({**PLAIN, "treefold.toml": "limit_concurrency = 2\n"})
    wires = [Wire(server) for _ in range(5)]
    for wire in wires:
        wire.send(handshake(server, "/v1/stay"))
        assert wire.answer().status == 101
        assert wire.exactly(6) == b"\x81\x04here"
    assert server.get("/v1/ok").status == 200
    for wire in wires:
        wire.__exit__(None, None, None)
    assert knock(server, "/v1/chat").status == 101


# Documented trade-offs

LIMITED = {
    "Api/v1/Pid/Get.py": """
        import os
        from treefold.middleware import RateLimit

        middlewares = [RateLimit("3/hour", burst=3)]

        async def handler(request):
            return {"pid": os.getpid()}
        """,
}


def test_s96_a_limit_in_memory_is_separate_for_each_process(tmp_path: Path) -> None:
    server = Process(
        write_tree(tmp_path, LIMITED), "httptools", dev=False, default_version=None, workers=2
    )
    passed = Counter[int]()
    call = Call(method="GET", target="/v1/pid", headers=(), body=b"", host="localhost")
    try:
        server.wait_for(lambda lines: sum("booted in" in line for line in lines) == 2)
        deadline = time.monotonic() + 30
        while sorted(passed.values()) != [3, 3] and time.monotonic() < deadline:
            answers = server.send([call] * 20)
            passed.update(each.json()["pid"] for each in answers if each.status == 200)
        assert {each.status for each in server.send([call] * 20)} == {429}
    finally:
        server.stop()
    assert list(passed.values()) == [3, 3]


NAMED = {
    "Api/v1/Value/Post.py": """
        from treefold.cache import get_cache

        async def handler(text: str):
            await get_cache().set("value", text, ttl=60)
        """,
    "Api/v1/Value/Get.py": """
        from treefold.cache import get_cache

        async def handler():
            return {"value": await get_cache().get("value")}
        """,
}


def test_without_a_secret_and_a_database_names_alone_tell_deployments_apart(
    tmp_path: Path,
) -> None:
    with http_redis.started() as redis, ExitStack() as stack:

        def serve(name: str, folder: str) -> Process:
            server = Process(
                write_tree(tmp_path / folder, NAMED),
                "httptools",
                dev=False,
                default_version=None,
                variables={"TREEFOLD_NAME": name, "TREEFOLD_CACHE_URL": redis.url},
            )
            stack.callback(server.stop)
            return server

        shop, stranger, other = serve("shop", "a"), serve("shop", "b"), serve("stock", "c")
        assert shop.post("/v1/value?text=oak", b"").status == 204
        assert stranger.get("/v1/value").json() == {"value": "oak"}
        assert other.get("/v1/value").json() == {"value": None}


SESSIONS = {
    "treefold.toml": 'secret_key = "0123456789abcdef0123456789abcdef"\n',
    "Middleware/__init__.py": """
        from treefold.middleware import Sessions

        middlewares = [Sessions(store="cookie", csrf=False)]
        """,
    "Api/v1/Login/Post.py": """
        from treefold.auth import login

        async def handler(request):
            login(request, "ann")
            request.session["cart"] = "a readable word"
        """,
    "Api/v1/Logout/Post.py": """
        from treefold.auth import logout

        async def handler(request):
            logout(request)
        """,
    "Api/v1/Who/Get.py": "async def handler(request): return {'user': request.session.user}",
}


def cookie_of(answer: Answer) -> str:
    return answer.value("set-cookie").partition(";")[0]


def decoded(cookie: str) -> bytes:
    """Return what of a cookie is base64, without any key."""
    return b"".join(
        base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))
        for part in re.findall(r"[\w-]{8,}", cookie.partition("=")[2])
    )


def test_s66_a_session_in_a_cookie_is_readable_and_a_copy_outlives_the_logout(
    serve_on_socket: ServeOnSocket,
) -> None:
    server = serve_on_socket(SESSIONS)
    copy = cookie_of(server.post("/v1/login", b""))
    assert b"a readable word" in decoded(copy)

    def user(cookie: str) -> Mapping[str, str | None]:
        return server.get("/v1/who", ("Cookie", cookie)).json()

    assert user(copy) == {"user": "ann"}
    ended = server.request("POST", "/v1/logout", headers=[("Cookie", copy)])
    assert "Max-Age=0" in ended.value("set-cookie")
    assert user(copy) == {"user": "ann"}
    changed = copy[:-1] + ("A" if copy[-1] != "A" else "B")
    assert user(changed) == {"user": None}
