"""Security rows of routing and of what stands before it: paths, verbs, hosts, sizes (S-01 to S-23).

The names of the tests carry the row. Where a server refuses before the application is asked, the
answer is the server's, and the expectation is written per way of serving.
"""

import socket
from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from http_messages import read_answer
from serving import PATIENCE, Process, Serve, Served, write_tree

ECHO = """
async def handler(request):
    return {"file": __file__.rpartition("/Api/")[2], "params": dict(request.path_params)}
"""
TREE = {
    "Api/v1/Item/[id]/Get.py": ECHO,
    "Api/v1/Item/[id]/Secret/Get.py": ECHO,
    "Api/v1/Ok/Get.py": ECHO,
    "Api/v1/Ok/Post.py": ECHO,
    "Api/v1/Ok/Delete.py": ECHO,
    "Api/v1/A/[b]/Get.py": ECHO,
    "Api/v1/Admin/Get.py": ECHO,
    "Api/v1/Admin/[id]/Get.py": ECHO,
    "Api/v2/Admin/Get.py": ECHO,
    "Api/v1/Host/Get.py": """
        async def handler(request):
            return {"host": request.host, "url_host": request.url.host, "url": str(request.url)}
        """,
    "Api/v1/Redirect/Get.py": """
        from treefold import Response

        async def handler(request):
            return Response.redirect(request.query["to"], allow=("https://good.example",))
        """,
    "Api/v1/Hostile/[request]/Get.py": """
        async def handler(request):
            return [type(request).__name__, request.path_params["request"]]
        """,
    "Api/v1/Hostile/[self]/[__class__]/Get.py": """
        async def handler(request):
            return dict(request.path_params)
        """,
    "Api/v\u0663/Arabic/Get.py": ECHO,
    "Api/v1\n/Newline/Get.py": ECHO,
    "Api/v01/Ok/Get.py": ECHO,
    "Middleware/__init__.py": """
        from treefold import Forbidden

        async def guard(request, call_next):
            if request.route is not None and request.route.split("/")[2] == "admin":
                raise Forbidden(f"guarded {request.route}")
            return await call_next(request)

        middlewares = [guard]
        """,
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.fixture(scope="module")
def latest(serve: Serve) -> Served:
    return serve(TREE, default_version="latest")


@pytest.fixture(scope="module")
def sockets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mapping[str, Process]]:
    """The application behind each parser, for bytes that no client would send."""
    root = write_tree(tmp_path_factory.mktemp("project"), TREE)
    with ExitStack() as running:
        started: dict[str, Process] = {}
        for parser in ("h11", "httptools"):
            started[parser] = Process(root, parser, dev=False, default_version=None)
            running.callback(started[parser].stop)
        yield started


@pytest.mark.parametrize(
    ("target", "id"),
    [
        ("/v1/item/x%2Fsecret", "x/secret"),
        ("/v1/item/x%2fsecret", "x/secret"),
        ("/v1/item/%2Fsecret", "/secret"),
        ("/v1/item/..%2Fsecret", "../secret"),
    ],
)
def test_s01_an_encoded_slash_stays_inside_its_segment(app: Served, target: str, id: str) -> None:
    assert app.get(target).json() == {"file": "v1/Item/[id]/Get.py", "params": {"id": id}}


@pytest.mark.parametrize("target", ["/v1%2Fok", "/v1/item%2Fx/secret", "/%2Fv1/ok", "/v1/ok%2F"])
def test_s01_an_encoded_slash_never_reaches_another_route(app: Served, target: str) -> None:
    assert app.get(target).status == 404


@pytest.mark.parametrize(
    ("segment", "id"),
    [("a%252Fb", "a%2Fb"), ("%2500", "%00"), ("%25252e", "%252e"), ("%2541", "%41")],
)
def test_s02_a_segment_is_decoded_once(app: Served, segment: str, id: str) -> None:
    assert app.get(f"/v1/item/{segment}").json()["params"] == {"id": id}


def test_s02_an_encoded_static_segment_is_decoded_once(app: Served) -> None:
    assert app.get("/v1/%256Fk").status == 404


@pytest.mark.parametrize(
    "segment", ["%ff%fe", "..%c0%afx", "%ed%a0%80", "%c0%80", "a%80", "%f8%88%80%80%80"]
)
def test_s03_invalid_utf_8_is_400(app: Served, segment: str) -> None:
    assert app.get(f"/v1/item/{segment}").status == 400


@pytest.mark.parametrize(
    "target",
    [
        "/v1/item/a%00b",
        "/v1/item/%00",
        "/v1/ok%0a",
        "/v1/ok%0d%0aX: y",
        "/v1/item/a%1bb",
        "/v1/item/a%7fb",
        "/v1/item/a%09",
        "/%00",
    ],
)
def test_s04_a_control_character_is_400(app: Served, target: str) -> None:
    answer = app.get(target.replace(": ", ":%20"))
    assert answer.status == 400
    assert answer.values("x") == []


@pytest.mark.parametrize(
    "target",
    [
        "/v1/a/../ok",
        "/v1/a/%2e%2e/ok",
        "/v1/a/%2E./ok",
        "/v1/./ok",
        "/v1/%2e/ok",
        "/v1/item/..",
        "/v1/item/.",
        "/v1/item/%2e%2e",
        "/../v1/ok",
        "/v1/item/x/..",
    ],
)
def test_s05_a_dot_segment_is_404_and_never_up(app: Served, target: str) -> None:
    assert app.get(target).status == 404


@pytest.mark.parametrize(
    "target",
    [
        "/v1/admin",
        "//v1//admin",
        "/v1/admin/",
        "/v1/%61dmin",
        "/v1/ad%6Din",
        "/%76%31/admin",
        "/v1/admin?x=/v1/ok",
        "/v1/admin/7",
        "/v1/admin/..%2Fok",
    ],
)
def test_s06_middleware_and_router_see_the_same_route(app: Served, target: str) -> None:
    answer = app.get(target)
    assert answer.status == 403
    assert answer.json()["detail"].startswith("guarded /v1/admin")


@pytest.mark.parametrize("target", ["/v1/ADMIN", "/v1/admin%20", "/v1/admin;x=1", "/v1/admin%2F7"])
def test_s06_what_is_not_the_route_is_404(app: Served, target: str) -> None:
    assert app.get(target).status == 404


@pytest.mark.parametrize("target", ["/admin", "//admin/", "/%61dmin"])
def test_s07_middleware_sees_the_version_that_was_resolved(latest: Served, target: str) -> None:
    answer = latest.get(target)
    assert (answer.status, answer.json()["detail"]) == (403, "guarded /v2/admin")


@pytest.mark.parametrize("target", ["/v99/admin", "/V2/admin", "/ADMIN", "/v2%2Fadmin"])
def test_s07_nothing_else_becomes_the_latest_version(latest: Served, target: str) -> None:
    assert latest.get(target).status == 404


@pytest.mark.parametrize(
    "header",
    [
        ("X-Middleware-Subrequest", "src/middleware"),
        ("X-Original-URL", "/v1/ok"),
        ("X-Rewrite-URL", "/v1/ok"),
        ("X-Forwarded-Prefix", "/v1"),
        ("X-Forwarded-Path", "/v1/ok"),
        ("X-HTTP-Method-Override", "POST"),
        ("Api-Version", "v2"),
    ],
)
def test_s08_no_inbound_header_changes_the_route(app: Served, header: tuple[str, str]) -> None:
    assert app.get("/v1/admin", header).status == 403
    assert app.get("/v1/ok", header).json()["file"] == "v1/Ok/Get.py"


@pytest.mark.parametrize(
    ("target", "status"),
    [("/v%D9%A3/arabic", 404), ("/v3/arabic", 404), ("/v1%0a/newline", 400), ("/v1/newline", 404)],
)
def test_s09_only_ascii_digits_make_a_version(app: Served, target: str, status: int) -> None:
    assert app.get(target).status == status


@pytest.mark.parametrize("folder", ["v\u0663/Arabic", r"v1\n/Newline"])
def test_s09_a_folder_that_is_no_version_is_skipped_with_the_reason(
    app: Served, folder: str
) -> None:
    wanted = f"skipped {folder}/Get.py: not under a version folder (vN)"
    assert app.wait_for(lambda lines: [line for line in lines if wanted in line])


def test_s09_v01_beside_v1_are_two_versions(app: Served) -> None:
    assert app.get("/v01/ok").json()["file"] == "v01/Ok/Get.py"
    assert app.get("/v1/ok").json()["file"] == "v1/Ok/Get.py"


@pytest.mark.parametrize(
    "verb", ["TRACE", "FOO", "get", "Get", "__class__", "WEBSOCKET", "handler"]
)
def test_s10_a_verb_that_is_not_served_is_405_or_refused_by_the_server(
    kind: str, app: Served, verb: str
) -> None:
    answer = app.request(verb, "/v1/ok")
    if kind == "httptools" and verb != "TRACE":  # its parser knows a list of verbs
        assert answer.status == 400
    else:
        assert answer.status == 405
        assert answer.value("allow") == "DELETE, GET, POST"


def test_s10_trace_never_echoes_the_request(app: Served) -> None:
    answer = app.request("TRACE", "/v1/ok", headers=[("Cookie", "sid=S3cr3t")])
    assert b"S3cr3t" not in answer.body


def test_s10_an_unknown_verb_on_no_path_is_404(app: Served) -> None:
    assert app.request("TRACE", "/v1/nothing").status == 404


@pytest.mark.parametrize(
    ("target", "headers", "body"),
    [
        ("/v1/ok", [("X-HTTP-Method-Override", "DELETE")], b""),
        ("/v1/ok", [("X-Method-Override", "DELETE"), ("X-HTTP-Method", "DELETE")], b""),
        ("/v1/ok?_method=DELETE", [], b""),
        ("/v1/ok", [("Content-Type", "application/x-www-form-urlencoded")], b"_method=DELETE"),
    ],
)
def test_s11_there_is_no_method_override(
    app: Served, target: str, headers: list[tuple[str, str]], body: bytes
) -> None:
    answer = app.request("POST", target, headers=headers, body=body)
    assert answer.json()["file"] == "v1/Ok/Post.py"


def test_s12_allow_is_sorted_and_head_and_options_need_a_file(app: Served) -> None:
    for method in ("PUT", "HEAD", "OPTIONS"):
        answer = app.request(method, "/v1/ok")
        assert (answer.status, answer.value("allow")) == (405, "DELETE, GET, POST")


@pytest.mark.parametrize(
    "host",
    [
        None,
        "",
        "localhost/?",
        "a@evil",
        "a b",
        "localhost:port",
        "localhost:80:80",
        "[::1",
        "a,b",
        "http://localhost",
        "localhost#",
        "a\\b",
        "caf\xe9",
        "x" * 300,
    ],
)
def test_s13_a_host_that_is_no_host_is_400(app: Served, host: str | None) -> None:
    assert app.request("GET", "/v1/ok", host=host).status == 400


@pytest.mark.parametrize("second", ["localhost", "evil.example"])
def test_s13_two_hosts_are_400(app: Served, second: str) -> None:
    assert app.get("/v1/ok", ("Host", second)).status == 400


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "127.0.0.1", "[::1]:8000", "a-b.example", "a_b"]
)
def test_s13_a_host_is_taken(app: Served, host: str) -> None:
    assert app.request("GET", "/v1/host", host=host).json()["host"] == host


@pytest.mark.parametrize("target", ["@evil.example/v1/host", "evil.example", "*", "v1/ok"])
def test_s14_a_target_without_a_slash_is_400(app: Served, target: str) -> None:
    assert app.get(target).status == 400


@pytest.mark.parametrize(
    "target",
    [
        "/v1/host?@evil.example/",
        "/v1/host?//evil.example",
        "//v1/host",
        "/v1/host?#@evil.example",
    ],
)
def test_s14_the_target_never_moves_the_authority(app: Served, target: str) -> None:
    shown = app.request("GET", target, host="good.example:81").json()
    assert shown["host"] == "good.example:81"
    assert "evil" not in shown["url_host"]


@pytest.mark.parametrize(
    ("target", "status"),
    [
        ("//evil.example/%2f..", 404),
        ("//evil.example", 404),
        ("/\\evil.example", 404),
        ("/v1/none/", 404),
        ("/v1/ok/", 200),
        ("/v1/ok", 200),
    ],
)
def test_s17_no_slash_redirect_is_made(app: Served, target: str, status: int) -> None:
    answer = app.request("GET", target, host="evil.example")
    assert (answer.status, answer.values("location")) == (status, [])


@pytest.mark.parametrize(
    "to",
    [
        "//evil.example",
        "/%5Cevil.example",
        "%5C%5Cevil.example",
        "%09//evil.example",
        "/%09/evil.example",
        "javascript:alert(1)",
        "https://evil.example",
        "https://good.example.evil.example",
        "https://good.example@evil.example",
        "evil.example",
        "/a%0d%0aX-Evil:%201",
        "",
    ],
)
def test_s17_a_redirect_that_could_leave_the_site_is_refused(app: Served, to: str) -> None:
    answer = app.get(f"/v1/redirect?to={to}")
    assert answer.status == 500
    assert {"location", "x-evil"}.isdisjoint(name for name, _ in answer.headers)


@pytest.mark.parametrize("to", ["/v1/ok", "/v1/ok?a=b", "/", "https://good.example/in"])
def test_s17_a_redirect_on_the_site_or_to_an_allowed_origin_is_made(app: Served, to: str) -> None:
    answer = app.get(f"/v1/redirect?to={to}")
    assert (answer.status, answer.value("location"), answer.body) == (307, to, b"")


def test_s18_a_path_of_very_many_segments_is_404(app: Served) -> None:
    assert app.get("/v1" + "/a" * 3000).status == 404


def test_s18_a_parameter_named_request_still_gives_the_handler_the_request(app: Served) -> None:
    assert app.get("/v1/hostile/x").json() == ["Request", "x"]


def test_s18_surprising_parameter_names_are_plain_keys(app: Served) -> None:
    shown = app.get("/v1/hostile/x/y").json()
    assert shown == {"request": "x", "__class__": "y"}


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param([(f"X-{n}", "1") for n in range(100)], id="101 fields"),
        pytest.param([("X-Same", "1")] * 100, id="101 fields of one name"),
        pytest.param([("X-Long", "x" * 33_000)], id="33 KB in one field"),
        pytest.param([(f"X-{n}", "x" * 1000) for n in range(33)], id="33 KB in many fields"),
        pytest.param([("X-" + "n" * 33_000, "1")], id="33 KB in a name"),
    ],
)
def test_s21_a_flood_of_headers_is_431(app: Served, headers: list[tuple[str, str]]) -> None:
    assert app.get("/v1/ok", *headers).status == 431


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize(("size", "status"), [(20_000, 200), (31_000, 200), (33_000, 431)])
def test_s21_a_header_that_comes_in_pieces_is_taken_up_to_the_same_limit(
    sockets: Mapping[str, Process], parser: str, size: int, status: int
) -> None:
    head = b"GET /v1/ok HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX-Long: "
    with socket.create_connection(sockets[parser].address, PATIENCE) as connection:
        for piece in (head + b"x" * (size - 100), b"x" * 100, b"\r\n\r\n"):
            connection.sendall(piece)
            # The event loop accepts and serves this request after it has read the piece.
            assert sockets[parser].get("/v1/ok").status == 200
        received = b"".join(iter(lambda: connection.recv(65536), b""))
    answer = read_answer("GET", received)
    assert answer.status == status
    assert answer.value("x-content-type-options") == "nosniff"
    assert answer.id


def test_s21_an_honest_number_of_headers_is_taken(app: Served) -> None:
    assert app.get("/v1/ok", *[(f"X-{n}", "x" * 300) for n in range(90)]).status == 200


@pytest.mark.parametrize("target", ["/v1/item/" + "a" * 9000, "/v1/ok?" + "a&" * 4200])
def test_s23_a_target_above_8_kib_is_414(app: Served, target: str) -> None:
    assert app.get(target).status == 414


def test_s23_a_target_of_8_kib_is_taken(app: Served) -> None:
    target = "/v1/ok?a="
    assert app.get(target + "x" * (8192 - len(target))).status == 200


EVERY_STATUS = {
    "/v1/ok": 200,
    "/v1/nothing": 404,
    "/v1/item/%ff": 400,
    "/v1/admin": 403,
    "/v1/ok?" + "a&" * 4200: 414,
}


@pytest.mark.parametrize(("target", "status"), EVERY_STATUS.items())
def test_s49_every_answer_forbids_sniffing(app: Served, target: str, status: int) -> None:
    answer = app.get(target)
    assert answer.status == status
    assert answer.value("x-content-type-options") == "nosniff"


def test_s49_a_405_and_a_431_forbid_sniffing(app: Served) -> None:
    refused = app.request("PUT", "/v1/ok"), app.get("/v1/ok", ("X-Long", "x" * 33_000))
    for answer in refused:
        assert answer.value("x-content-type-options") == "nosniff"


@pytest.mark.parametrize("parser", ["h11", "httptools"])
@pytest.mark.parametrize(
    "head",
    [
        pytest.param(b"GET /v1/ok HTTP/1.1\r\nHost : localhost\r\n", id="space before the colon"),
        pytest.param(b"GET /v1/ok HTTP/1.1\r\nHost: local\x00host\r\n", id="NUL"),
        pytest.param(
            b"POST /v1/ok HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 2\r\nContent-Length: 3\r\n",
            id="two lengths",
        ),
        pytest.param(
            b"POST /v1/ok HTTP/1.1\r\nHost: localhost\r\nContent-Length: +2\r\n", id="signed length"
        ),
        pytest.param(
            b"POST /v1/ok HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: xchunked\r\n",
            id="unknown coding",
        ),
    ],
)
def test_s20_a_malformed_head_is_one_400_and_the_end(
    sockets: Mapping[str, Process], parser: str, head: bytes
) -> None:
    request = head + b"\r\nabcGET /v1/ok HTTP/1.1\r\nHost: localhost\r\n\r\n"
    assert read_answer("POST", sockets[parser].wire(request)).status == 400
