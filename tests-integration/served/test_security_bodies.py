"""Security rows of request bodies: size, coding, type, and JSON in every bad shape (S-24 to S-35).

The rulings say that `request.json()` parses whatever the type says and that a body model needs a
JSON type; the rows stand where the rulings are silent. Each case runs with msgspec (in process and
httptools) and with the decoder of the standard library (h11).
"""

from __future__ import annotations

import gzip
import json

import pytest
from facts import MIB, cost_of
from serving import Process, Serve, Served
from wire import ServeOnSocket, Wire, statuses

LIMIT = MIB
"""What a body may hold by default (D-02)."""

TREE = {
    "Api/v1/Json/Post.py": """
        async def handler(request):
            return {"value": await request.json()}
        """,
    "Api/v1/Raw/Post.py": """
        async def handler(request):
            return {"size": len(await request.body())}
        """,
    "Api/v1/Stream/Post.py": """
        async def handler(request):
            return {"size": sum([len(chunk) async for chunk in request.stream()])}
        """,
    "Api/v1/Form/Post.py": """
        async def handler(request):
            return [[name, len(value)] for name, value in (await request.form()).multi_items()]
        """,
    "Api/v1/Unread/Post.py": """
        async def handler(request):
            return {"read": False}
        """,
    "Api/v1/Model/Post.py": """
        from dataclasses import dataclass

        @dataclass
        class User:
            name: str

        async def handler(request, user: User):
            return {"name": user.name}
        """,
    "Api/v1/Deep/Get.py": """
        async def handler(request):
            inner = []
            for _ in range(100_000):
                inner = [inner]
            return inner
        """,
    "Api/v1/Cycle/Get.py": """
        async def handler(request):
            cycle = {}
            cycle["self"] = [cycle]
            return cycle
        """,
    "Api/v1/Number/[text]/Get.py": """
        async def handler(request, text):
            return {"numbers": [1.5, float(text)]}
        """,
    "Api/v1/Surrogate/Get.py": """
        async def handler(request):
            return {"text": chr(0xD800)}
        """,
}
JSON = "application/json"
URLENCODED = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=b"


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


def head(target: str, media: str, field: str) -> bytes:
    """Give the header of a POST whose body is framed by `field`."""
    lines = [f"POST {target} HTTP/1.1", "Host: localhost", f"Content-Type: {media}", field]
    return "\r\n".join([*lines, "", ""]).encode()


READERS = [
    pytest.param("/v1/json", JSON, id="json"),
    pytest.param("/v1/raw", "application/octet-stream", id="raw"),
    pytest.param("/v1/stream", "application/octet-stream", id="stream"),
    pytest.param("/v1/form", URLENCODED, id="urlencoded"),
    pytest.param("/v1/form", MULTIPART, id="multipart"),
    pytest.param("/v1/model", JSON, id="model"),
]


@pytest.mark.parametrize(("target", "media"), READERS)
def test_s24_64_mib_that_are_announced_are_refused_unread(
    server: Process, target: str, media: str
) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(head(target, media, f"Content-Length: {64 * MIB}"))
        wire.send(b"x" * 4 * MIB)
        assert statuses(wire.rest()) == [413]
    assert cost.memory < 8 * MIB


@pytest.mark.parametrize(("target", "media"), READERS)
def test_s25_64_mib_that_are_not_announced_are_refused_at_the_limit(
    server: Process, target: str, media: str
) -> None:
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    if media == MULTIPART:
        start = b'--b\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n'
        chunk = b"%x\r\n%s\r\n%s" % (len(start), start, chunk)
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(head(target, media, "Transfer-Encoding: chunked"))
        for _ in range(1024):
            if not wire.send(chunk):
                break
            chunk = chunk[-65545:]
        assert statuses(wire.rest()) == [413]
    assert cost.memory < 16 * MIB
    assert server.post("/v1/raw", b"abc").json() == {"size": 3}


@pytest.mark.parametrize("chunked", [False, True], ids=["announced", "chunked"])
@pytest.mark.parametrize(
    ("target", "body"),
    [
        ("/v1/json", b'"' + b"x" * (LIMIT - 2) + b'"'),
        ("/v1/raw", b"x" * LIMIT),
        ("/v1/stream", b"x" * LIMIT),
        ("/v1/form", b"&".join([b"a=" + b"x" * 262_141] * 4)),
    ],
    ids=["json", "raw", "stream", "urlencoded"],
)
def test_s25_the_limit_is_the_same_byte_however_it_is_read(
    app: Served, target: str, body: bytes, chunked: bool
) -> None:
    kind = URLENCODED if target == "/v1/form" else JSON
    body = body + b"&" if target == "/v1/form" else body
    assert len(body) == LIMIT

    def status(body: bytes) -> int:
        parts = [body[:70_000], body[70_000:]] if chunked else body
        return app.request("POST", target, headers=[("Content-Type", kind)], body=parts).status

    assert (status(body), status(body + b" ")) == (200, 413)


def test_s25_a_body_that_nobody_reads_fills_no_memory(server: Process) -> None:
    with cost_of(server) as cost, Wire(server) as wire:
        wire.send(head("/v1/unread", JSON, "Transfer-Encoding: chunked"))
        for _ in range(512):
            if not wire.send(b"10000\r\n" + b"x" * 65536 + b"\r\n"):
                break
        assert statuses(wire.rest()) == [200]
    assert cost.memory < 8 * MIB


def test_s25_what_follows_a_body_is_no_part_of_it(server: Process) -> None:
    with Wire(server) as wire:
        wire.send(head("/v1/raw", JSON, "Content-Length: 3") + b"abcdef\r\n\r\n")
        assert wire.answer("POST").json() == {"size": 3}
        assert wire.answer().status == 400
        assert wire.rest() == b""


@pytest.mark.parametrize(
    ("target", "media"),
    [("/v1/json", JSON), ("/v1/raw", JSON), ("/v1/stream", JSON), ("/v1/form", URLENCODED)],
)
@pytest.mark.parametrize("framing", ["Content-Length: 9", "Transfer-Encoding: chunked"])
def test_s25_a_body_that_breaks_off_is_never_taken_as_whole(
    server: Process, target: str, media: str, framing: str
) -> None:
    id = f"left-{target[4:]}-{framing[:7]}"
    with Wire(server) as wire:
        wire.send(head(target, media, f"X-Request-ID: {id}\r\n{framing}"))
        wire.send(b"4\r\n1234\r\n" if "chunked" in framing else b"1234")
        wire.end_sending()
        assert b" 200 " not in wire.rest()
    (line,) = server.wait_for(lambda lines: [line for line in lines if f"id={id}" in line])
    assert line.startswith(f"[INFO] POST {target} 499 ")


GZIPPED = gzip.compress(b" " * 50_000_000)


@pytest.mark.parametrize(
    ("target", "media"), [("/v1/json", JSON), ("/v1/model", JSON), ("/v1/form", URLENCODED)]
)
@pytest.mark.parametrize("coding", ["gzip", "deflate", "br", "GZIP", "identity, gzip", "x-unknown"])
def test_s29_a_coded_body_is_415_and_says_what_is_taken(
    app: Served, target: str, media: str, coding: str
) -> None:
    fields = [("Content-Type", media), ("Content-Encoding", coding)]
    answer = app.request("POST", target, headers=fields, body=b'{"name": "a"}')
    assert answer.status == 415
    assert answer.value("accept-encoding") == "identity"


def test_s29_a_body_in_no_coding_may_say_so(app: Served) -> None:
    fields = [("Content-Type", JSON), ("Content-Encoding", "identity")]
    answer = app.request("POST", "/v1/json", headers=fields, body=b"[1]")
    assert answer.json() == {"value": [1]}


def test_s29_a_bomb_is_not_inflated(server: Process) -> None:
    fields = [("Content-Type", JSON), ("Content-Encoding", "gzip")]
    with cost_of(server) as cost:
        answer = server.request("POST", "/v1/json", headers=fields, body=GZIPPED)
    assert answer.status == 415
    assert cost.memory < 8 * MIB


@pytest.mark.parametrize(
    ("media", "status"),
    [
        (JSON, 200),
        ("Application/JSON ; charset=utf-8", 200),
        ('application/json; charset="UTF-8"', 200),
        ("application/problem+json", 200),
        ("text/plain", 415),
        ("text/plain;application/json", 415),
        ("text/json", 415),
        ("application/jsonp", 415),
        ("application/x-json", 415),
        (URLENCODED, 415),
        ("multipart/form-data", 415),
        ("json", 415),
        ("application/json;charset=zzz", 400),
        ("application/json;charset=utf-16", 400),
    ],
)
def test_s30_a_model_is_read_from_json_and_nothing_else(
    app: Served, media: str, status: int
) -> None:
    assert app.post("/v1/model", b'{"name": "a"}', media).status == status


@pytest.mark.parametrize("media", ["text/plain", "application/json;charset=zzz", "\xff", ";", "a"])
def test_s30_json_of_any_type_is_parsed_where_the_author_asks(app: Served, media: str) -> None:
    assert app.post("/v1/json", b"[1]", media).json() == {"value": [1]}


GOOD = [
    "[]",
    " \t\r\n[ ] \n",
    "null",
    "0",
    '"text"',
    "[-0]",
    "[1E+2, 1e-2, 1.0]",
    '["\\u0000\\/\\b"]',
    '["\\ud83d\\ude00"]',
    '{"": 0}',
    '{"a": {"a": {}}}',
    '["\u2028\x7f"]',
    "[" * 100 + "]" * 100,
    "[" + "9" * 4300 + "]",
]


@pytest.mark.parametrize("text", GOOD)
def test_s31_what_rfc_8259_allows_is_taken(app: Served, text: str) -> None:
    assert app.post("/v1/json", text.encode()).json() == {"value": json.loads(text)}


BAD = [
    "[1,]",
    "[,1]",
    "[1,,2]",
    '{"a": 1,}',
    '{"a" 1}',
    '{"a": }',
    "{a: 1}",
    "{1: 1}",
    "{'a': 1}",
    "[-]",
    "[01]",
    "[1.]",
    "[.5]",
    "[1e]",
    "[+1]",
    "[0x1]",
    "[1_000]",
    "[1 2]",
    "[1]]",
    "[1] [2]",
    "{}}",
    '"abc',
    "[",
    "{",
    '{"a"',
    "[1",
    '["\\x41"]',
    '["\\u12"]',
    '["\n"]',
    '["\t"]',
    "[\x0c1]",
    "[\u00a01]",
    "[1]\x00",
    "nul",
    "True",
    "[undefined]",
    "[NaN]",
    "[-Infinity]",
    "[1e999]",
    "[-1e999]",
    "// a\n1",
    "[1]/* a */",
    "\ufeff\ufeff{}",
    "[\ufeff]",
    '["\\ud800"]',
    '["\\ude00\\ud83d"]',
    '{"\\udfff": 1}',
    '{"role": "user", "role": "admin"}',
    '{"role": "user", "r\\u006fle": "admin"}',
    '[{"a": {"b": 1, "c": 2, "b": 3}}]',
    "[" + "9" * 5000 + "]",
    "[-" + "9" * 5000 + "]",
    "[" * 100_000,
    "[" * 100_000 + "]" * 100_000,
    '{"a":' * 100_000 + "1" + "}" * 100_000,
]


@pytest.mark.parametrize("text", BAD, ids=lambda text: str(text)[:30])
def test_s31_s33_s34_s35_what_is_no_strict_json_is_400(app: Served, text: str) -> None:
    answer = app.post("/v1/json", text.encode())
    assert (answer.status, answer.json()["status"]) == (400, 400)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b'["\xff"]', id="no UTF-8"),
        pytest.param(b'["\xc0\xaf"]', id="overlong"),
        pytest.param(b'["\xed\xa0\x80"]', id="surrogate"),
        pytest.param('{"name": "a"}'.encode("utf-16"), id="UTF-16"),
        pytest.param('{"name": "a"}'.encode("utf-16-le"), id="UTF-16 without a mark"),
        pytest.param('{"name": "a"}'.encode("utf-32"), id="UTF-32"),
    ],
)
@pytest.mark.parametrize("target", ["/v1/json", "/v1/model"])
def test_s31_s35_what_is_not_utf_8_is_400(app: Served, target: str, body: bytes) -> None:
    assert app.post(target, body).status == 400


@pytest.mark.parametrize("target", ["/v1/json", "/v1/model"])
def test_s35_one_byte_order_mark_is_tolerated(app: Served, target: str) -> None:
    assert app.post(target, b'\xef\xbb\xbf{"name": "a"}').status == 200


@pytest.mark.parametrize(
    "body",
    [
        b'{"name": "a", "name": "b"}',
        b'{"name": "\\ud800"}',
        b'{"name": "a", "x": NaN}',
        b'{"name": ' + b"[" * 100_000,
        b'{"name": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    ],
    ids=["repeated name", "half a pair", "NaN", "nesting cut short", "nesting"],
)
def test_s31_s35_a_model_is_read_as_strictly(app: Served, body: bytes) -> None:
    assert app.post("/v1/model", body).status == 400


@pytest.mark.parametrize(
    "body",
    [
        b"[" * MIB,
        b"[" * 500_000 + b"]" * 500_000,
        b'{"a":' * 200_000,
        b"[" + b"9" * (MIB - 2) + b"]",
        b'"' + b"\\u0041" * 170_000 + b'"',
        b'"' + b"\\" * (MIB - 2) + b'"',
        b"[" + b"1e9999999," * 100_000 + b"1]",
        b"[" + b"{}," * 340_000 + b"{}]",
        b"{" + b",".join(b'"%x":0' % n for n in range(80_000)) + b"}",
        b"{" + b",".join(b'"%x":0' % (n * 1009) for n in range(70_000)) + b"}",
        b" " * MIB,
    ],
    ids=lambda body: str(body[:20]),
)
def test_s31_a_megabyte_of_json_costs_no_more_than_a_megabyte(server: Process, body: bytes) -> None:
    with cost_of(server) as cost:
        assert server.post("/v1/json", body).status in (200, 400)
    assert cost.cpu < 1.0
    assert cost.memory < 96 * MIB
    assert server.post("/v1/json", b"[1]").json() == {"value": [1]}


@pytest.mark.parametrize("target", ["/v1/deep", "/v1/cycle", "/v1/surrogate"])
def test_s32_an_answer_that_cannot_be_encoded_is_500_and_the_process_lives(
    app: Served, target: str
) -> None:
    answer = app.get(target)
    assert (answer.status, answer.json()["status"]) == (500, 500)
    assert app.post("/v1/json", b"[1]").json() == {"value": [1]}


@pytest.mark.parametrize("number", ["nan", "inf", "-inf"])
def test_s33_a_number_that_json_has_not_is_never_sent(app: Served, number: str) -> None:
    answer = app.get(f"/v1/number/{number}")
    assert answer.status == 500
    assert b"NaN" not in answer.body
    assert b"Infinity" not in answer.body


def test_s31_one_line_is_logged_for_a_bad_body(server: Process) -> None:
    answer = server.post("/v1/json", b'{"password": "S3cr3t", "a": [[[[')
    (line,) = server.block(answer).splitlines()
    assert "S3cr3t" not in line
