"""Security rows of the request line, the header and the framing (S-13 to S-28), byte for byte.

What a parser refuses is answered by the server, in plain text and without a request id; what it
takes meets the gate of the application. Where the two parsers differ, the case says who refuses.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from facts import MIB, cost_of
from http_messages import Answer
from serving import Process, Serve, Served, write_tree
from uvicorn.server import ServerState
from wire import ServeOnSocket, Wire, statuses

from treefold_http import Application

STREAMING = """
    import asyncio
    from Services.gate import Gate
    from treefold_http import StreamingResponse

    async def chunks():
        yield "first"
        await Gate.now.wait()
        yield "last"

    async def handler(request):
        Gate.now = asyncio.Event()
        if LATER:
            await Gate.now.wait()
        return StreamingResponse(chunks())
    """
TREE = {
    "Api/v1/Ok/Get.py": """
        async def handler(request):
            return {"host": request.url.host, "client": request.client.host}
        """,
    "Api/v1/Body/Post.py": """
        async def handler(request):
            return {"size": len(await request.body())}
        """,
    "Api/v1/Unread/Post.py": """
        async def handler(request):
            return {"read": False}
        """,
    "Api/v1/Query/Get.py": """
        async def handler(request):
            return list(request.query.multi_items())
        """,
    "Api/v1/Headers/Get.py": """
        from treefold_http import FileResponse

        async def handler(request):
            cookies = list(request.cookies.multi_items())
            seen = [request.content_type, request.host, len(cookies), len(request.headers)]
            return FileResponse(__file__, headers={"X-Seen": str(len(seen))})
        """,
    "Api/v1/Headers/Post.py": """
        async def handler(request):
            return list((await request.form()).multi_items())
        """,
    "Api/v1/Own/Get.py": "async def handler(request): return request.headers.getlist('x-own')",
    "Api/v1/Wait/Get.py": """
        import asyncio

        released = asyncio.Event()

        async def handler(request):
            await released.wait()
        """,
    "Api/v1/Stream/Get.py": STREAMING.replace("LATER", "0"),
    "Api/v1/Stream/Post.py": STREAMING.replace("LATER", "0"),
    "Api/v1/Stream/Later/Get.py": STREAMING.replace("LATER", "1"),
    "Api/v1/Stream/Release/Get.py": """
        from Services.gate import Gate

        async def handler():
            Gate.now.set()
        """,
    "Services/gate.py": """
        import asyncio

        class Gate:
            now = asyncio.Event()
        """,
    "Api/v1/Echo/Ws.py": """
        async def handler(websocket):
            await websocket.accept()
            await websocket.receive_text()
        """,
    "Api/v1/Release/Get.py": """
        from ..Wait.Get import released

        async def handler(request):
            released.set()
        """,
}
HOST = b"Host: localhost\r\n"
NEXT = b"GET /v1/ok HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
POST = b"POST /v1/body HTTP/1.1\r\n" + HOST
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


def is_of_the_application(answer: Answer) -> bool:
    return bool(answer.values("x-request-id"))


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /v1/ok HTTP/1.1\r\n",
        b"GET /v1/ok HTTP/1.1\r\nHost:\r\n",
        b"GET /v1/ok HTTP/1.0\r\nHost:\r\n",
        b"GET /v1/ok HTTP/1.0\r\nHost: a,b\r\n",
    ],
)
def test_s13_without_a_host_there_is_no_answer_but_400(
    server: Process, request_line: bytes
) -> None:
    with Wire(server) as wire:
        wire.send(request_line + b"Connection: close\r\n\r\n")
        assert wire.answer().status == 400


@pytest.mark.parametrize("target", [b"/v1/ok", b"http://localhost/v1/ok"])
def test_a_client_of_http_1_0_needs_no_host(server: Process, target: bytes) -> None:
    with Wire(server) as wire:
        wire.send(b"GET " + target + b" HTTP/1.0\r\n\r\n")
        assert wire.answer().status == 200


@pytest.mark.parametrize(
    ("authority", "status"),
    [
        (b"evil.example", 400),
        (b"localhost@evil.example", 400),
        (b"user:s3cret@localhost", 400),
        (b"localhost:8080", 400),
        (b"localhost", 200),
        (b"LOCALHOST:80", 200),
    ],
)
def test_s14_an_absolute_target_never_moves_the_authority(
    server: Process, authority: bytes, status: int
) -> None:
    with Wire(server) as wire:
        wire.send(b"GET http://" + authority + b"/v1/query?a=1 HTTP/1.1\r\n" + HOST + b"\r\n")
        answer = wire.answer()
    assert answer.status == status
    assert status == 400 or answer.json() == [["a", "1"]]
    assert "s3cret" not in server.line(answer)


@pytest.mark.parametrize(
    "target", [b"http://localhost", b"HTTP://localhost?a=1", b"http://localhost/"]
)
def test_s14_an_absolute_target_without_a_path_means_the_root(
    server: Process, target: bytes
) -> None:
    with Wire(server) as wire:
        wire.send(b"GET " + target + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        answer = wire.answer()
        wire.send(NEXT)
        assert wire.answer().status == 200
    assert (answer.status, answer.json()["instance"]) == (404, "/")


@pytest.mark.parametrize(
    ("name", "status"),
    [
        (b"Content-Type", 400),
        (b"Content-Encoding", 415),
        (b"Authorization", 400),
        (b"Host", 400),
        (b"X-Own", 200),
    ],
)
def test_s129_a_repeated_field_that_may_stand_once_is_refused(
    server: Process, name: bytes, status: int
) -> None:
    fields = b"".join(name + b": " + value + b"\r\n" for value in (b"a", b"a"))
    own = b"" if name == b"Host" else HOST
    with Wire(server) as wire:
        wire.send(b"GET /v1/ok HTTP/1.1\r\n" + own + fields + b"Connection: close\r\n\r\n")
        assert statuses(wire.rest()) == [status]


@pytest.mark.parametrize(
    "target", [b"evil.example:80", b"@evil.example/v1/ok", b"//evil.example:80/v1/ok", b"http:///"]
)
@pytest.mark.parametrize("method", [b"GET", b"CONNECT"])
def test_s14_no_form_of_a_target_reaches_another_authority(
    server: Process, method: bytes, target: bytes
) -> None:
    with Wire(server) as wire:
        wire.send(method + b" " + target + b" HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
        answer = wire.answer()
    assert answer.status in (400, 404)
    assert answer.values("location") == []


def test_s14_options_of_the_server_as_a_whole_is_404_and_another_method_400(
    server: Process,
) -> None:
    for method, status in ((b"OPTIONS", 404), (b"GET", 400)):
        with Wire(server) as wire:
            wire.send(method + b" * HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n")
            assert wire.answer().status == status


@pytest.mark.parametrize(
    "field",
    [("X_Forwarded_For", "1.2.3.4"), ("X-Forwarded-For", "1.2.3.4"), ("Content_Length", "5")],
)
def test_s16_a_field_with_underscores_stands_for_no_other(
    app: Served, field: tuple[str, str]
) -> None:
    answer = app.get("/v1/ok", field)
    assert answer.json()["client"] == "127.0.0.1"


def test_s16_an_underscored_length_frames_nothing(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(POST + b"Content_Length: 5\r\n\r\n" + NEXT)
        assert wire.answer().json() == {"size": 0}
        assert wire.answer().json()["host"] == "localhost"


SMUGGLED = [
    pytest.param(
        POST + b"Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", id="both"
    ),
    pytest.param(
        POST + b"Transfer-Encoding: chunked\r\nContent-Length: 6\r\n\r\n0\r\n\r\n",
        id="both, reversed",
    ),
    pytest.param(POST + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nabc", id="two lengths"),
    pytest.param(POST + b"Content-Length: 2, 3\r\n\r\nabc", id="two lengths in one field"),
    pytest.param(POST + b"Content-Length: +2\r\n\r\nab", id="length with a plus"),
    pytest.param(POST + b"Content-Length: -2\r\n\r\nab", id="length with a minus"),
    pytest.param(POST + b"Content-Length: 0x2\r\n\r\nab", id="length in hexadecimal"),
    pytest.param(POST + b"Content-Length: 1_0\r\n\r\nabcdefghij", id="length with an underscore"),
    pytest.param(POST + b"Content-Length: 1 0\r\n\r\nabcdefghij", id="length with a blank"),
    pytest.param(POST + b"Content-Length:\r\n\r\n", id="length of nothing"),
    pytest.param(POST + b"Content-Length: " + b"9" * 40 + b"\r\n\r\n", id="length beyond measure"),
    pytest.param(POST + b"Content-Length : 2\r\n\r\nab", id="blank before the colon"),
    pytest.param(
        POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", id="blank before it, chunked"
    ),
    pytest.param(POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", id="unknown coding"),
    pytest.param(
        POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", id="tab before the coding"
    ),
    pytest.param(
        POST + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", id="chunked and not last"
    ),
    pytest.param(
        POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", id="a coding before chunked"
    ),
    pytest.param(
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        id="chunked twice",
    ),
    pytest.param(
        POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
        id="chunked, then none",
    ),
    pytest.param(POST + b"X-A: a\x00b\r\n\r\n", id="NUL in a value"),
    pytest.param(POST + b"X-A\x00: a\r\n\r\n", id="NUL in a name"),
    pytest.param(POST + b"X-A: a\rContent-Length: 3\r\n\r\nabc", id="bare CR in a value"),
    pytest.param(POST + b"X-A\r\n\r\n", id="no colon"),
    pytest.param(POST + b": a\r\n\r\n", id="no name"),
    pytest.param(b"POST /v1/body HTTP/1.1\r\n " + HOST + b"\r\n", id="folded first line"),
    pytest.param(b"POST /v1/body x HTTP/1.1\r\n" + HOST + b"\r\n", id="blank in the target"),
    pytest.param(b"POST /v1/\xffbody HTTP/1.1\r\n" + HOST + b"\r\n", id="raw byte in the target"),
    pytest.param(b"POST\t/v1/body\tHTTP/1.1\r\n" + HOST + b"\r\n", id="tabs in the line"),
    pytest.param(CHUNKED + b"3;a\n\r\nabc\r\n0\r\n\r\n", id="newline in a chunk extension"),
    pytest.param(CHUNKED + b"2;\nxx\r\n4c\r\n0\r\n\r\n", id="newline that ends an extension"),
    pytest.param(CHUNKED + b"3\r\nabcXX0\r\n\r\n", id="no line end after a chunk"),
    pytest.param(CHUNKED + b"3\nabc\n0\n\n", id="chunks with bare LF"),
    pytest.param(CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n", id="chunk size 0x3"),
    pytest.param(CHUNKED + b"-3\r\nabc\r\n0\r\n\r\n", id="chunk size -3"),
    pytest.param(CHUNKED + b"0_3\r\nabc\r\n0\r\n\r\n", id="chunk size 0_3"),
    pytest.param(CHUNKED + b"f" * 40 + b"\r\nabc\r\n0\r\n\r\n", id="chunk size beyond measure"),
    pytest.param(CHUNKED + b"\r\n3\r\nabc\r\n0\r\n\r\n", id="chunk without a size"),
]


@pytest.mark.parametrize("request_", SMUGGLED)
def test_s20_framing_in_doubt_is_one_400_and_the_end(server: Process, request_: bytes) -> None:
    with Wire(server) as wire:
        wire.send(request_ + NEXT)
        assert statuses(wire.rest()) == [400]


@pytest.mark.parametrize(
    ("request_", "size"),
    [
        pytest.param(POST.replace(b"\r\n", b"\n") + b"Content-Length: 3\n\nabc", 3, id="bare LF"),
        pytest.param(POST + b"X-A: b\r\n Content-Length: 9\r\n\r\n", 0, id="folded value"),
        pytest.param(
            POST + b"Transfer-Encoding:\r\n chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            3,
            id="folded coding",
        ),
        pytest.param(POST + b"Content-Length: 3, 3\r\n\r\nabc", 3, id="one length said twice"),
        pytest.param(
            POST + b"Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc",
            3,
            id="the same length twice",
        ),
        pytest.param(CHUNKED + b"3 \r\nabc\r\n0\r\n\r\n", 3, id="blank after a chunk size"),
        pytest.param(
            CHUNKED + b"3\r\nabc\r\n0\r\nContent-Length: 50\r\n\r\n", 3, id="length in a trailer"
        ),
    ],
)
def test_s20_what_only_h11_takes_has_one_meaning(
    server: Process, parser: str, request_: bytes, size: int
) -> None:
    # RFC 9110, 8.6, and RFC 9112, 2.2, 5.2, 6.3 and 7.1 allow these; httptools refuses them. What
    # matters is that the next request begins where this one ends for every reader of the RFC.
    with Wire(server) as wire:
        wire.send(request_ + NEXT)
        if parser == "httptools":
            assert statuses(wire.rest()) == [400]
        else:
            assert wire.answer().json() == {"size": size}
            assert wire.answer().json()["host"] == "localhost"


def test_s20_chunks_in_http_1_0_end_the_connection(server: Process) -> None:
    request = CHUNKED.replace(b"HTTP/1.1", b"HTTP/1.0") + b"3\r\nabc\r\n0\r\n\r\n"
    with Wire(server) as wire:  # RFC 9112, 6.1: the framing is to be taken as faulty
        wire.send(request + NEXT)
        assert len(statuses(wire.rest())) == 1


def test_s20_a_body_on_a_get_is_no_next_request(server: Process) -> None:
    inner = b"GET /v1/secret HTTP/1.1\r\n" + HOST + b"\r\n"
    with Wire(server) as wire:
        wire.send(b"GET /v1/ok HTTP/1.1\r\n" + HOST + b"Content-Length: %d\r\n\r\n" % len(inner))
        wire.send(inner + NEXT)
        assert statuses(wire.rest()) == [200]  # the body is left unread, and the connection with it


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(b"".join(b"X-%d: 1\r\n" % n for n in range(10_000)), id="10,000 fields"),
        pytest.param(b"X-Same: 1\r\n" * 5_000, id="5,000 fields of one name"),
        pytest.param(b"X-Long: " + b"x" * MIB + b"\r\n", id="1 MiB in one value"),
        pytest.param(b"X-" + b"x" * MIB + b": 1\r\n", id="1 MiB in one name"),
        pytest.param(b"Cookie: a=b\r\n" * 5_000, id="5,000 cookies"),
    ],
)
def test_s21_a_flood_of_fields_is_refused_at_little_cost(
    server: Process, parser: str, fields: bytes
) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(b"GET /v1/ok HTTP/1.1\r\n" + HOST + b"Connection: close\r\n" + fields + b"\r\n")
        answer = wire.answer()
    # What does not end within 64 KiB is refused by the server: by h11 as what is no request.
    assert answer.status in ((431,) if parser == "httptools" else (400, 431))
    assert cost.cpu < 0.25
    assert cost.memory < 16 * MIB


@pytest.mark.parametrize(
    "begin",
    [
        pytest.param(b"GET /v1/ok HTTP/1.1\r\n" + HOST, id="head"),
        pytest.param(NEXT + b"GET /v1/ok HTTP/1.1\r\n", id="second head"),
        pytest.param(
            b"GET /v1/wait HTTP/1.1\r\n" + HOST + b"\r\nGET / HTTP/1.1\r\n", id="while one runs"
        ),
        pytest.param(CHUNKED + b"1\r\nx\r\n0\r\n", id="trailers"),
    ],
)
def test_s21_what_does_not_end_is_not_kept(server: Process, begin: bytes) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send_what_fits(begin + b"X-Same: 1\r\n" * 6_000_000, seconds=1)
    assert cost.memory < 16 * MIB
    with Wire(server) as wire:
        wire.send(NEXT.replace(b"/ok", b"/release"))
        assert wire.answer().status == 204


MIXES = [';"\\,', "=;", '"\\"', ",,", "a=b;", "q=0.", "bytes=0-1,", '\\"', "; ;", "(", "%"]


@pytest.mark.parametrize(
    "name",
    [
        "Accept",
        "Accept-Encoding",
        "Content-Disposition",
        "Content-Type",
        "Cookie",
        "Forwarded",
        "If-None-Match",
        "Range",
        "X-Request-ID",
    ],
)
def test_s22_no_mix_of_delimiters_in_a_header_is_slow(server: Process, name: str) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        for mix in MIXES:
            value = (mix * 30_000)[:30_000]
            wire.send(f"GET /v1/headers HTTP/1.1\r\nHost: a\r\n{name}: {value}\r\n\r\n".encode())
            assert wire.answer().status in (200, 206, 304, 416)
    assert cost.cpu < 0.05 * len(MIXES)


def test_s22_no_mix_of_delimiters_in_the_type_of_a_form_is_slow(server: Process) -> None:
    with cost_of(server) as cost:
        for mix in MIXES:
            media = "multipart/form-data;" + (mix * 30_000)[:30_000]
            assert server.post("/v1/headers", b"--", media).status in (400, 415)
    assert cost.cpu < 0.05 * len(MIXES)


@pytest.mark.parametrize("inner", [b"", b"a", b"a \t b"])
@pytest.mark.parametrize("space", [b" ", b"\t", b" \t ", b"\t \t"])
def test_whitespace_around_a_value_is_not_part_of_it(
    server: Process, inner: bytes, space: bytes
) -> None:
    field = b"X-Own:" + space + inner + space + b"\r\n"
    with Wire(server) as wire:
        for pieces in ([field], [field[i : i + 1] for i in range(len(field))]):
            wire.send(b"GET /v1/own HTTP/1.1\r\n" + HOST)
            for piece in pieces:
                wire.send(piece)
            wire.send(b"\r\n")
            assert wire.answer().json() == [inner.decode()]


def test_s23_more_than_1000_pairs_in_a_query_are_400(app: Served) -> None:
    assert app.get("/v1/query?" + "a&" * 1001).status == 400
    assert len(app.get("/v1/query?" + "&".join(["a="] * 1000)).json()) == 1000


def test_s23_25000_pairs_are_refused_at_little_cost(server: Process) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(b"GET /v1/query?" + b"a&" * 25_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n")
        assert wire.answer().status == 414
    assert cost.cpu < 0.1


def test_s23_brackets_in_a_key_mean_nothing(app: Served) -> None:
    key = "a" + "[b]" * 100
    assert app.get(f"/v1/query?{key}=1").json() == [[key, "1"]]


@pytest.mark.parametrize("path", [b"/v1/body", b"/v1/unread"])
def test_s26_a_body_in_one_byte_chunks_costs_little(
    server: Process, parser: str, path: bytes
) -> None:
    head = b"POST " + path + b" HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n"
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(head + b"1\r\nx\r\n" * 262_144 + b"0\r\n\r\n")
        assert wire.answer("POST").status == 200
        wire.send(NEXT)
        wire.rest()
    # Nearly all of it is the parser's: one event per chunk, in Python or in C.
    assert cost.cpu < (8.0 if parser == "h11" else 1.0)
    assert cost.memory < 16 * MIB


LARGE = b"Content-Length: 67108864\r\n"


def test_s27_a_body_that_is_announced_too_large_is_refused_before_it_is_sent(
    server: Process,
) -> None:
    with Wire(server) as wire:
        wire.send(POST + LARGE + b"Expect: 100-continue\r\n\r\n")
        answer = wire.answer()
    assert (answer.status, answer.values("connection")) == (413, ["close"])


def test_s27_a_body_that_is_wanted_is_asked_for(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(POST + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert wire.at_least(25).startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
        wire.send(b"abc")
        assert wire.answer("POST").json() == {"size": 3}


def test_s27_a_body_that_nobody_reads_is_not_asked_for(server: Process) -> None:
    head = b"POST /v1/unread HTTP/1.1\r\n" + HOST + b"Content-Type: application/json\r\n"
    with Wire(server) as wire:
        wire.send(head + b"Content-Length: 3\r\nExpect: 100-continue\r\n\r\n")
        assert wire.answer("POST").status == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [(b"/v1/body", 413), (b"/v1/none", 404), (b"/v1/item/%ff", 400), (b"/v1/ok", 405)],
)
def test_s27_an_error_with_the_body_unread_ends_the_connection(
    server: Process, path: bytes, status: int
) -> None:
    with Wire(server) as wire:
        wire.send(b"POST " + path + b" HTTP/1.1\r\n" + HOST + LARGE + b"\r\n" + b"x" * 1000)
        answer = wire.answer()
    # Said, and not only done: a keep-alive that runs out would close it too.
    assert (answer.status, answer.values("connection")) == (status, ["close"])


PIPELINED = (b"GET /v1/ok HTTP/1.1\r\n" + HOST + b"\r\n") * 50_000


def test_s28_requests_behind_one_that_waits_stay_outside_of_the_memory(server: Process) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(b"GET /v1/wait HTTP/1.1\r\n" + HOST + b"\r\n")
        wire.send_what_fits(PIPELINED, seconds=0.3)
        for _ in range(10):  # the server has looked at all its connections by then
            assert server.get("/v1/ok").status == 200
    assert server.get("/v1/release").status == 204
    assert cost.memory < 20 * MIB


def test_s28_requests_behind_those_that_are_answered_stay_outside_too(server: Process) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send_what_fits(PIPELINED, seconds=0.3)
        assert [wire.answer().status for _ in range(200)] == [200] * 200
    assert cost.memory < 20 * MIB


# -- what a server does that a parser does not

UPGRADE = (
    HOST + b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n"
)
SECRET = b"GET /v1/none HTTP/1.1\r\n" + HOST + b"\r\n"


@pytest.mark.parametrize("segments", ["one", "two", "bytes"])
@pytest.mark.parametrize(
    "framed",
    [
        b"Content-Length: %d\r\n\r\n" % len(SECRET) + SECRET,
        b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(SECRET), SECRET),
    ],
    ids=["length", "chunked"],
)
def test_s20_the_body_of_a_request_with_an_upgrade_is_its_body(
    server: Process, framed: bytes, segments: str
) -> None:
    request = b"POST /v1/body HTTP/1.1\r\n" + UPGRADE + framed
    end = request.index(b"\r\n\r\n") + 4
    pieces = {
        "one": [request * 2 + NEXT],
        "two": [request[:end], request[end:] + request + NEXT],
        "bytes": [bytes([byte]) for byte in request + request] + [NEXT],
    }
    with Wire(server) as wire:
        for piece in pieces[segments]:
            wire.send(piece)
        assert wire.answer("POST").json() == {"size": len(SECRET)}
        assert wire.answer("POST").json() == {"size": len(SECRET)}
        assert statuses(wire.rest()) == [200]


def test_s20_an_upgrade_without_a_body_is_served(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(b"GET /v1/ok HTTP/1.1\r\n" + UPGRADE + b"\r\n" + NEXT)
        assert statuses(wire.rest()) == [200, 200]


def test_s20_a_connect_with_a_body_is_one_answer(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(b"CONNECT /v1/body HTTP/1.1\r\n" + HOST + b"Content-Length: 90\r\n\r\n")
        wire.send(SECRET + NEXT)
        assert [status // 100 for status in statuses(wire.rest())] == [4]


def test_a_400_of_the_server_has_an_id_and_is_not_sniffed(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(b"no request\r\n\r\n")
        answer = wire.answer()
    assert (answer.status, answer.value("x-content-type-options")) == (400, "nosniff")
    server.wait_for(lambda lines: [line for line in lines if answer.id in line])


STREAM = b"GET /v1/stream HTTP/1.1\r\n" + HOST + b"\r\n"
RELEASE = b"GET /v1/stream/release HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
HANDSHAKE = (
    HOST + b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)


@pytest.mark.parametrize("running", ["stream", "stream/later"])
@pytest.mark.parametrize(
    ("following", "status"),
    [
        (b"no request\r\n\r\n", 400),
        (POST + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (CHUNKED + b"xyz\r\n", 400),
        (b"GET /v1/echo HTTP/1.1\r\n" + HANDSHAKE, 101),
        (b"GET http:// HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ],
    ids=["no request", "two lengths", "bad chunk", "handshake", "bad target"],
)
def test_s28_nothing_overtakes_the_answer_before_it(
    server: Process, running: str, following: bytes, status: int
) -> None:
    with Wire(server) as wire:
        wire.send(STREAM.replace(b"stream", running.encode()) + following)
        if running == "stream":
            assert wire.at_least(len(b"HTTP/1.1 200 ")).startswith(b"HTTP/1.1 200 ")
        with Wire(server) as other:
            other.send(RELEASE)
            other.rest()
        # a request id may end in 0, and a head with it: the last chunk is a line of its own
        received = wire.up_to(b"\r\n0\r\n\r\n")
        body, _, behind = received.partition(b"\r\n0\r\n\r\n")
        assert body.count(b"HTTP/1.1 ") == (0 if running == "stream" else 1)
        assert body.rstrip().endswith(b"last")
        if b"\r\n\r\n" not in behind:
            behind += wire.up_to(b"\r\n\r\n")
        assert statuses(behind) == [status]


def test_s28_a_body_that_breaks_in_a_running_answer_ends_it_without_a_400(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(b"POST /v1/stream HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n")
        received = wire.at_least(len(b"HTTP/1.1 200 "))
        wire.send(b"xyz\r\n")
        assert statuses(received + wire.rest()) == [200]


@pytest.mark.parametrize(
    "line", [b"GET /v1/ok", b"GET /v1/ok HTTP/0.9", b"GET /v1/ok HTTP/2.0", b"GET /v1/ok HTTP/3.0"]
)
def test_s130_another_version_of_http_is_refused(server: Process, line: bytes) -> None:
    with Wire(server) as wire:
        wire.send(line + b"\r\n" + HOST + b"\r\n")
        (status,) = statuses(wire.rest())
    assert status in (400, 505)


def test_s130_http_1_0_gets_no_100_and_no_101(server: Process) -> None:
    post = POST.replace(b"1.1", b"1.0") + b"Expect: 100-continue\r\nContent-Length: 3\r\n\r\n"
    with Wire(server) as wire:
        wire.send(post)
        wire.send(b"abc")
        assert statuses(wire.rest()) == [200]
    with Wire(server) as wire:
        wire.send(b"GET /v1/echo HTTP/1.0\r\n" + HANDSHAKE)
        assert statuses(wire.rest()) == [405]


@pytest.mark.parametrize("pieces", [1, 40])
@pytest.mark.parametrize("size", [12_000, 24_000])
def test_s20_chunk_extensions_are_bounded(server: Process, size: int, pieces: int) -> None:
    extension = b"x" * (size // 40)
    body = (b"3;" + extension + b"\r\nabc\r\n") * 40 + b"0\r\n\r\n"
    with Wire(server) as wire:
        wire.send(CHUNKED)
        step = -(-len(body) // pieces)
        for start in range(0, len(body), step):
            wire.send(body[start : start + step])
        answer = wire.answer("POST")
        assert answer.status == (200 if size < 16 * 1024 else 400)
    with Wire(server) as wire:
        wire.send(CHUNKED + body)
        assert wire.answer("POST").status == (200 if size < 16 * 1024 else 400)


@pytest.mark.parametrize("http", ["h11", "httptools"])
def test_s20_under_plain_uvicorn_a_dropped_body_is_refused(tmp_path: Path, http: Any) -> None:
    app = Application(write_tree(tmp_path, TREE))
    config = uvicorn.Config(app, http=http, lifespan="off", log_config=None)
    config.load()
    state = ServerState()
    protocol: Any = config.http_protocol_class

    async def ask(*pieces: bytes) -> list[int]:
        loop = asyncio.get_running_loop()
        server = await loop.create_server(
            lambda: protocol(config=config, server_state=state, app_state={}), "127.0.0.1", 0
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            received = b""
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                received += await reader.readuntil(b"\r\n\r\n")
                if b"connection: close" in received:
                    break
            received += await reader.read()
            writer.close()
        return statuses(received)

    head = b"POST /v1/body HTTP/1.1\r\n" + UPGRADE + b"Content-Length: %d\r\n\r\n" % len(SECRET)
    expected = [400] if http == "httptools" else [200, 200]
    assert asyncio.run(ask(head + SECRET, NEXT)) == expected
    assert asyncio.run(ask(b"GET /v1/ok HTTP/1.1\r\n" + UPGRADE + b"\r\n", NEXT)) == [200, 200]
