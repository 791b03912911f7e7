"""Security rows of answers: splitting, cookies, names, sniffing, errors (S-43 to S-46, S-49, S-56,
S-57).

What a handler copies from a request must never become structure of the answer.
"""

from __future__ import annotations

import re
from urllib.parse import quote

import pytest
from facts import MIB, cost_of
from http_messages import Answer
from serving import Process, Serve, Served
from wire import ServeOnSocket, Wire

TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Ok/Post.py": "async def handler(request): return {'size': len(await request.body())}",
    "Api/v1/Copy/[place]/Get.py": """
        from treefold import HTTPError, Response, StreamingResponse
        from treefold_http import FileResponse

        async def handler(request, place, text: str):
            response = Response.text("ok")
            if place == "value":
                response.headers["X-Copy"] = text
            elif place == "name":
                response.headers[text] = "copy"
            elif place == "append":
                response.headers.append("X-Copy", text)
            elif place == "mapping":
                return Response("ok", headers={"X-Copy": text})
            elif place == "tuple":
                return "ok", 200, {"X-Copy": text}
            elif place == "type":
                return Response("ok", media_type=text)
            elif place == "error":
                raise HTTPError(400, "no", headers={"X-Copy": text})
            elif place == "stream":
                return StreamingResponse(iter(["ok"]), headers={"X-Copy": text})
            elif place == "cookie":
                response.set_cookie("copy", text)
            elif place == "redirect":
                return Response.redirect("/" + text)
            elif place == "filename":
                return FileResponse(__file__, filename=text)
            return response
        """,
    "Api/v1/Cookie/Get.py": """
        from treefold import Response

        async def handler(request):
            response = Response.text("ok")
            response.set_cookie("name", "value", **{k: v for k, v in request.query.multi_items()})
            return response
        """,
    "Api/v1/CookieName/Get.py": """
        from treefold import Response

        async def handler(request, name: str):
            response = Response.text("ok")
            response.set_cookie(name, "value")
            return response
        """,
    "Api/v1/Cookies/Get.py": """
        async def handler(request):
            return list(request.cookies.multi_items())
        """,
    "Api/v1/Text/Get.py": "async def handler(request): return '<html><script>1</script>'",
    "Api/v1/Bytes/Get.py": "async def handler(request): return b'<html>'",
    "Api/v1/Empty/Get.py": "async def handler(request): return None",
    "Api/v1/Stream/Get.py": """
        from treefold import StreamingResponse

        async def handler(request):
            return StreamingResponse(iter(["<html>"]))
        """,
    "Api/v1/Crash/Get.py": """
        async def handler(request):
            password = "S3cr3t-local"
            raise LookupError("<script>S3cr3t-text</script> postgres://u:S3cr3t-url@db/x")
        """,
    "Api/v1/Status/[status]/Get.py": """
        from treefold import HTTPError

        async def handler(request, status: int):
            raise HTTPError(status, "asked for")
        """,
    "Middleware/__init__.py": """
        async def cors(request, call_next):
            response = await call_next(request)
            response.headers["Access-Control-Allow-Origin"] = "https://app.example"
            return response

        middlewares = [cors]
        """,
    "extensions.py": """
        from treefold_http import StaticFiles

        class Files:
            def setup(self, app):
                app.mount("/static", StaticFiles("public"))

        extensions = [Files()]
        """,
    "public/page.html": "<html></html>",
    "public/deep/page.txt": "deep",
    "public/large.bin": "",
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.fixture(scope="module")
def dev(serve: Serve) -> Served:
    return serve(TREE, dev=True)


@pytest.fixture(scope="module")
def server(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(TREE)


SPLITS = ["a\r\nSet-Cookie: e=1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\0b", "a\x0bb", "a\x7fb"]
TRUNCATED = ["a\u010aX-Evil: 1", "a\u560a\u560dX-Evil: 1"]
"""Characters whose lowest byte is a line end: a careless encoding would send just that."""

PLACES = ["value", "append", "mapping", "tuple", "type", "error", "stream", "cookie", "redirect"]


@pytest.mark.parametrize("text", SPLITS, ids=ascii)
@pytest.mark.parametrize("place", [*PLACES, "name"])
def test_s43_a_control_character_in_a_header_is_500_and_one_answer(
    app: Served, place: str, text: str
) -> None:
    answer = app.get(f"/v1/copy/{place}?text={quote(text, safe='')}")
    assert answer.status == 500
    assert nothing_was_added(answer)
    assert " -> 500 " in app.line(answer)


def nothing_was_added(answer: Answer) -> bool:
    return {"x-evil", "x-copy", "set-cookie", "location"}.isdisjoint(n for n, _ in answer.headers)


@pytest.mark.parametrize("text", TRUNCATED, ids=ascii)
@pytest.mark.parametrize("place", [place for place in PLACES if place != "redirect"])
def test_s43_a_character_that_ends_in_a_line_end_is_500_too(
    app: Served, place: str, text: str
) -> None:
    answer = app.get(f"/v1/copy/{place}?text={quote(text, safe='')}")
    assert answer.status == 500
    assert nothing_was_added(answer)


@pytest.mark.parametrize("text", TRUNCATED, ids=ascii)
def test_s43_a_redirect_is_percent_encoded(app: Served, text: str) -> None:
    answer = app.get(f"/v1/copy/redirect?text={quote(text.replace(' ', ''), safe='')}")
    assert answer.value("location").isascii()
    assert answer.values("x-evil") == []


@pytest.mark.parametrize("name", ["X Y", "X:", "X\xe4", "", "(x)", "x/y"], ids=ascii)
def test_s43_a_header_name_is_a_token(app: Served, name: str) -> None:
    answer = app.get(f"/v1/copy/name?text={quote(name, safe='')}")
    assert answer.status == 500
    assert [value for _, value in answer.headers if value == "copy"] == []


@pytest.mark.parametrize("name", ["Content-Length", "Transfer-Encoding"])
def test_s43_a_handler_cannot_frame_its_answer(app: Served, name: str) -> None:
    answer = app.get(f"/v1/copy/name?text={name}")
    assert (answer.status, answer.text) == (200, "ok")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("path", "/; HttpOnly="),
        ("path", "/\r\nX-Evil: 1"),
        ("domain", "a.example; Secure"),
        ("domain", "a.example\r\nX-Evil: 1"),
        ("domain", "\u010a"),
        ("samesite", "Lax; x"),
        ("samesite", "lax\r\nX-Evil: 1"),
        ("samesite", "anything"),
    ],
    ids=ascii,
)
def test_s44_an_attribute_of_a_cookie_cannot_add_another(
    app: Served, name: str, value: str
) -> None:
    answer = app.get(f"/v1/cookie?{name}={quote(value, safe='')}")
    assert answer.status == 500
    assert nothing_was_added(answer)


@pytest.mark.parametrize(
    "value", ["a; Domain=evil", "a,b", "a b", 'a"b', "a\\b", "\xe4", "\u010a", "a\tb"], ids=ascii
)
def test_s44_a_value_that_no_cookie_carries_is_refused(app: Served, value: str) -> None:
    answer = app.get(f"/v1/copy/cookie?text={quote(value, safe='')}")
    assert answer.status == 500
    assert answer.values("set-cookie") == []


@pytest.mark.parametrize("name", ["a=b", "a;b", "a b", "", "a,b", "\xe4", "a\r\nb"], ids=ascii)
def test_s44_the_name_of_a_cookie_is_a_token(app: Served, name: str) -> None:
    answer = app.get(f"/v1/cookiename?name={quote(name, safe='')}")
    assert (answer.status, answer.values("set-cookie")) == (500, [])


def test_s44_a_cookie_is_closed_by_default(app: Served) -> None:
    attributes = app.get("/v1/copy/cookie?text=abc").value("set-cookie").split("; ")
    assert attributes == ["copy=abc", "Path=/", "Secure", "HttpOnly", "SameSite=Lax"]


@pytest.mark.parametrize(
    ("field", "cookies"),
    [
        ("=__Host-s=bad", []),
        ("__%48ost-s=bad", [["__%48ost-s", "bad"]]),
        ("__Host-s=first; __Host-s=second", [["__Host-s", "first"], ["__Host-s", "second"]]),
        ("nameless; =x; a=1", [["a", "1"]]),
        ('a="1; b=2"', [["a", '"1'], ["b", '2"']]),
        ("a b=1; a(=2; c=3", [["c", "3"]]),
        ("a=%3D%3B", [["a", "%3D%3B"]]),
        ("$Version=1; a=1", [["$Version", "1"], ["a", "1"]]),
    ],
)
def test_s45_a_cookie_is_what_was_sent_and_no_other(
    app: Served, field: str, cookies: list[list[str]]
) -> None:
    assert app.get("/v1/cookies", ("Cookie", field)).json() == cookies


def test_s45_a_hundred_cookies_are_taken(app: Served) -> None:
    field = "; ".join(f"c{n}=1" for n in range(150))
    assert len(app.get("/v1/cookies", ("Cookie", field)).json()) == 100


@pytest.mark.parametrize("text", ['\\"', '"\\', "=", ";", "a=;", 'a="', " ", "\\\\"])
def test_s45_no_cookie_field_is_slow(server: Process, text: str) -> None:
    field = (text * 30_000)[:30_000]
    with cost_of(server) as cost, Wire(server) as wire:
        for _ in range(10):
            wire.send(f"GET /v1/cookies HTTP/1.1\r\nHost: a\r\nCookie: a={field}\r\n\r\n".encode())
            assert wire.answer().status == 200
    assert cost.cpu < 0.2


@pytest.mark.parametrize(
    "name",
    [
        'a".bat;x="\r\n',
        'a"; filename="b.exe',
        "a\r\nX-Evil: 1",
        "\u010a\u010d",
        "gpj.\u202eexe",
        "../../x",
        "a;b",
        "a\\",
        "\U0001f600.png",
        "x" * 2000,
    ],
    ids=lambda name: ascii(name)[:30],
)
def test_s46_a_file_name_is_one_safe_value(app: Served, name: str) -> None:
    answer = app.get(f"/v1/copy/filename?text={quote(name, safe='')}")
    assert answer.status == 200
    assert re.fullmatch(
        r"attachment; filename=\"[A-Za-z0-9 ._()-]*\"(?:; filename\*=UTF-8''[!-~]*)?",
        answer.value("content-disposition"),
    )
    assert ';"' not in answer.value("content-disposition")
    assert answer.values("x-evil") == []


TYPES = {
    "/v1/ok": "application/json",
    "/v1/text": "text/plain; charset=utf-8",
    "/v1/bytes": "application/octet-stream",
    "/static/page.html": "text/html; charset=utf-8",
    "/static/deep/page.txt": "text/plain; charset=utf-8",
    "/static/large.bin": "application/octet-stream",
    "/static/none": "application/problem+json",
    "/v1/none": "application/problem+json",
    "/v1/crash": "application/problem+json",
}


@pytest.mark.parametrize(("target", "kind_of_content"), TYPES.items())
def test_s49_an_answer_says_what_it_is(app: Served, target: str, kind_of_content: str) -> None:
    answer = app.get(target)
    assert answer.value("content-type") == kind_of_content
    assert answer.value("x-content-type-options") == "nosniff"


@pytest.mark.parametrize("target", ["/v1/empty", "/v1/stream", "/v1/copy/redirect?text=a"])
def test_s49_an_answer_of_any_kind_forbids_sniffing(app: Served, target: str) -> None:
    assert app.get(target).value("x-content-type-options") == "nosniff"


def test_s49_a_partial_and_an_unchanged_file_forbid_sniffing(app: Served) -> None:
    etag = app.get("/static/page.html").value("etag")
    for field in (("Range", "bytes=0-1"), ("If-None-Match", etag), ("Range", "bytes=999-")):
        answer = app.get("/static/page.html", field)
        assert answer.status in (206, 304, 416)
        assert answer.value("x-content-type-options") == "nosniff"


def test_s49_the_server_does_not_name_itself(app: Served) -> None:
    for target in ("/v1/ok", "/v1/none", "/v1/crash"):
        answer = app.get(target)
        assert (answer.values("server"), answer.values("x-powered-by")) == ([], [])


def test_s56_a_crash_shows_nothing_of_itself(app: Served) -> None:
    answer = app.get("/v1/crash")
    whole = repr(answer.headers).encode() + answer.body
    for word in (b"S3cr3t", b"script", b"LookupError", b"Traceback", b"Get.py", b"treefold"):
        assert word not in whole
    assert answer.json()["request_id"] == answer.id


def test_s56_a_crash_in_development_is_data_and_no_page(dev: Served) -> None:
    answer = dev.get("/v1/crash")
    assert answer.value("content-type") == "application/problem+json"
    assert b"<script>" not in answer.body
    assert answer.json()["detail"].startswith("LookupError: <script>")


@pytest.mark.parametrize("path", ["/console", "/debug", "/__debug__", "/__debugger__", "/_debug"])
def test_s56_there_is_no_debugger(dev: Served, path: str) -> None:
    assert dev.get(path).status == 404


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [
        ("GET", "/v1/none", 404),
        ("PUT", "/v1/ok", 405),
        ("GET", "/v1/%ff", 400),
        ("GET", "/v1/ok?" + "a" * 9000, 414),
        ("GET", "/v1/crash", 500),
        ("GET", "/v1/status/429", 429),
        ("GET", "/v1/status/503", 503),
        ("GET", "/static/none", 404),
        ("POST", "/static/page.html", 405),
    ],
    ids=lambda value: str(value)[:20],
)
def test_s57_every_error_carries_what_an_answer_carries(
    app: Served, method: str, target: str, status: int
) -> None:
    answer = app.request(method, target)
    assert answer.status == status
    assert_complete(app, answer)


def assert_complete(app: Served, answer: Answer) -> None:
    assert answer.value("access-control-allow-origin") == "https://app.example"
    assert answer.value("x-content-type-options") == "nosniff"
    assert answer.id
    assert app.line(answer)


def test_s57_a_413_and_a_431_carry_it_too(app: Served) -> None:
    large = app.post("/v1/ok", b"x" * (MIB + 1), "application/octet-stream")
    flood = app.get("/v1/ok", ("X-Long", "x" * 33_000))
    assert (large.status, flood.status) == (413, 431)
    for answer in (large, flood):
        assert_complete(app, answer)


def test_s57_a_416_and_a_412_of_a_file_carry_it_too(app: Served) -> None:
    unmet = app.get("/static/page.html", ("Range", "bytes=999-"))
    failed = app.get("/static/page.html", ("If-Match", '"another"'))
    assert (unmet.status, failed.status) == (416, 412)
    for answer in (unmet, failed):
        assert_complete(app, answer)


def test_s57_a_request_id_that_came_is_on_the_error(app: Served) -> None:
    answer = app.get("/v1/crash", ("X-Request-ID", "given-1"))
    assert (answer.id, answer.json()["request_id"]) == ("given-1", "given-1")


HEADS = {
    "Api/v1/Json/Get.py": "def handler(): return {'a': 1}",
    "Api/v1/Text/Get.py": "def handler(): return 'x' * 1000",
    "Api/v1/Empty/Get.py": "def handler(): return None",
    "Api/v1/Stream/Get.py": """
        async def handler():
            for _ in range(3):
                yield b"x" * 1000
        """,
    "Api/v1/File/Get.py": """
        from treefold import FileResponse
        def handler(): return FileResponse(__file__)
        """,
    "Api/v1/Fails/Get.py": "def handler(): 1 / 0",
    "Api/v1/Own/Get.py": "def handler(): return 'get'",
    "Api/v1/Own/Head.py": "from treefold import Response\n"
    "def handler(): return Response(headers={'X-Own': 'yes'})",
    "treefold.toml": "auto_head = true\n",
}


@pytest.fixture(scope="module")
def heads(serve_on_socket: ServeOnSocket) -> Process:
    return serve_on_socket(HEADS)


@pytest.mark.parametrize("path", ["json", "text", "empty", "stream", "file", "fails", "nothing"])
def test_s12_an_automatic_head_has_the_fields_of_get_and_no_byte_of_body(
    heads: Process, path: str
) -> None:
    """On one connection, where a byte too many would be taken for the next answer."""
    request = f" /v1/{path} HTTP/1.1\r\nHost: localhost\r\nX-Request-ID: same\r\n".encode()

    def fields(answer: Answer) -> list[tuple[str, str]]:
        # How a body of unknown length would be framed need not be said (RFC 9112, 6.1).
        return [pair for pair in answer.headers if pair[0] not in ("date", "transfer-encoding")]

    with Wire(heads) as wire:
        for _ in range(2):
            wire.send(b"GET" + request + b"\r\n")
            got = wire.answer("GET")
            wire.send(b"HEAD" + request + b"\r\n")
            head = wire.answer("HEAD")
            assert (head.status, head.body) == (got.status, b"")
            assert fields(head) == fields(got)
        wire.send(b"HEAD" + request + b"Connection: close\r\n\r\n")
        received = wire.rest()
    assert received.endswith(b"\r\n\r\n")
    assert received.count(b"\r\n\r\n") == 1


def test_s12_allow_names_an_automatic_head_and_a_file_comes_first(heads: Process) -> None:
    answer = heads.request("PUT", "/v1/json")
    assert (answer.status, answer.value("allow")) == (405, "GET, HEAD")
    own = heads.request("HEAD", "/v1/own")
    assert (own.value("x-own"), own.body) == ("yes", b"")
