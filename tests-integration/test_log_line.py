"""The request line: its exact shape, what of a request it shows, and what it never shows."""

import json
import re
from urllib.parse import quote

import pytest
from http_messages import Answer
from serving import Serve, Served

SECRET = "S3cr3t-value"
SHAPE = re.compile(
    r"\[(?P<level>[A-Z]+)\] (?P<method>\S+) (?P<target>\S+) (?P<arrow>-> )?(?P<status>[0-9]{3})"
    r" (?P<duration>[0-9]+(?:\.[0-9]+)?)ms id=(?P<id>[A-Za-z0-9._:@/+=-]{1,128})"
    r" payload=(?P<payload>.+)"
)
TREE = {
    "Api/v1/Ok/Get.py": "async def handler(request): return {}",
    "Api/v1/Read/Post.py": """
        async def handler(request):
            return {"size": len(await request.body())}
        """,
    "Api/v1/Json/Post.py": """
        async def handler(request):
            await request.json()
        """,
    "Api/v1/Unread/Post.py": "async def handler(request): return {}",
    "Api/v1/Stream/Post.py": """
        async def handler(request):
            return {"size": sum([len(chunk) async for chunk in request.stream()])}
        """,
    "Api/v1/Off/Post.py": """
        log_payload = False

        async def handler(request):
            return await request.json()
        """,
    "Api/v1/Reset/[token]/Get.py": "async def handler(token): return token",
    "Api/v1/Reset/[token]/Item/[id]/Get.py": "async def handler(request): return {}",
    "Api/v1/Crash/Post.py": f"""
        async def handler(request):
            await request.body()
            raise LookupError("no such thing, Bearer {SECRET}")
        """,
    "Api/v1/Raise/[status]/Get.py": """
        from treefold import HTTPError

        async def handler(status: int):
            raise HTTPError(status, "on purpose")
        """,
    "Api/v1/Returns/[status]/Get.py": "async def handler(status: int): return 'x', status",
    "Api/v1/Injected/Get.py": r"""
        from treefold import get_logger

        async def handler(request):
            get_logger().info("first\n[INFO] GET /forged 200 1.00ms id=x payload=-")
        """,
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


HOOKS = """
    import logging, sys
    from treefold import get_logger

    class Copy(logging.Handler):
        def emit(self, record):
            sys.stderr.write(f"copied {record.levelname} {record.getMessage()}\\n")
            sys.stderr.flush()

    class Quiet(logging.Filter):
        def filter(self, record):
            return "/v1/ok?quiet" not in record.getMessage()

    copy, quiet = Copy(), Quiet()

    def listen():
        get_logger().addHandler(copy)
        get_logger().addFilter(quiet)

    def stop():
        get_logger().removeHandler(copy)
        get_logger().removeFilter(quiet)

    on_startup, on_shutdown = [listen], [stop]
    """


@pytest.fixture(scope="module")
def with_own_handler(serve: Serve) -> Served:
    return serve(TREE | {"hooks.py": HOOKS})


@pytest.fixture(scope="module")
def logged_as_json(serve: Serve) -> Served:
    return serve(TREE | {"treefold.toml": 'log_format = "json"'})


def parts(app: Served, answer: Answer) -> dict[str, str]:
    line = app.line(answer)
    match = SHAPE.fullmatch(line)
    assert match, line
    return match.groupdict()


def payload(app: Served, answer: Answer) -> str:
    return parts(app, answer)["payload"]


def test_the_line_has_exactly_this_shape(app: Served) -> None:
    answer = app.get("/v1/ok", ("X-Request-ID", "shape-1"))
    line = app.line(answer)
    assert re.fullmatch(
        r"\[INFO\] GET /v1/ok 200 [0-9]+(\.[0-9]+)?ms id=shape-1 payload=-", line
    ), line


def test_there_is_one_line_per_request(app: Served) -> None:
    answers = [app.get("/v1/ok") for _ in range(3)]
    for answer in answers:
        app.line(answer)
    mentioned = app.wait_for(lambda lines: [x for x in lines if answers[0].id in x])
    assert len(mentioned) == 1


@pytest.mark.parametrize(
    ("method", "target", "level", "status"),
    [
        ("GET", "/v1/ok", "INFO", "200"),
        ("GET", "/v1/nothing", "INFO", "404"),
        ("PUT", "/v1/ok", "INFO", "405"),
        ("GET", "/v1/a%00", "INFO", "400"),
        ("GET", "/v1/raise/499", "INFO", "499"),
        ("GET", "/v1/raise/500", "ERROR", "500"),
        ("GET", "/v1/raise/503", "ERROR", "503"),
        ("GET", "/v1/returns/502", "ERROR", "502"),
        ("GET", "/v1/returns/404", "INFO", "404"),
    ],
)
def test_the_level_is_error_from_500_and_there_is_no_arrow(
    app: Served, method: str, target: str, level: str, status: str
) -> None:
    answer = app.request(method, target)
    seen = parts(app, answer)
    assert (seen["level"], seen["method"], seen["target"]) == (level, method, target)
    assert (seen["status"], seen["arrow"]) == (status, None)
    assert app.block(answer) == app.line(answer)


def test_an_unhandled_error_has_the_arrow_the_payload_and_the_traceback(app: Served) -> None:
    answer = app.post("/v1/crash", b'{"name": "ann", "password": "S3cr3t-value"}')
    first, *rest = app.block(answer).split("\n")
    match = SHAPE.fullmatch(first)
    assert match, first
    assert (match["level"], match["arrow"], match["status"]) == ("ERROR", "-> ", "500")
    assert match["payload"] == '{"name":"ann","password":"***"}'
    assert rest[0].endswith("Traceback (most recent call last):")
    assert any('raise LookupError("no such thing' in line for line in rest)
    assert "LookupError: no such thing" in rest[-1]


def test_a_secret_in_the_message_of_an_exception_is_scrubbed(app: Served) -> None:
    block = app.block(app.post("/v1/crash", b"{}"))
    raised = block.split("\n")[-1]
    assert "LookupError: no such thing" in raised
    assert SECRET not in raised


@pytest.mark.parametrize(
    "target",
    ["/v1/ok", "//v1//ok/", "/v1/%6Fk", "/v1/reset/x/item/a%2Fb%20c", "/v1/caf%C3%A9"],
)
def test_the_path_is_shown_as_sent(app: Served, target: str) -> None:
    seen = parts(app, app.get(target))["target"]
    assert seen == target.replace("/reset/x/", "/reset/***/")


KEYS = [
    "password",
    "Password",
    "PASSWORD",
    "token",
    "authorization",
    "secret",
    "api_key",
    "apikey",
    "X-Api-Key",
    "old_password",
    "refresh_token",
    "client-secret",
    "accessToken",
    "pwd",
    "pin",
    "cvv",
    "passphrase",
    "sessionid",
    "credit_card",
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("target", ["/v1/ok", "/v1/nothing", "/v1/raise/500"])
def test_s80_a_sensitive_value_of_the_query_is_masked(app: Served, target: str, key: str) -> None:
    answer = app.get(f"{target}?{key}={SECRET}&x=shown&{key}={SECRET}")
    seen = parts(app, answer)["target"]
    assert seen == f"{target}?{key}=***&x=shown&{key}=***"


@pytest.mark.parametrize(
    "query",
    [
        f"api%5Fkey={SECRET}",
        f"%70assword={SECRET}",
        f"user%5Bpassword%5D={SECRET}",
        f"a=1&b;token={SECRET}",
        f"pass+word={SECRET}",
        f"token={quote(SECRET[:3])}%2D{SECRET}",
        f"\uff50assword={SECRET}".encode().decode("latin-1"),
    ],
)
def test_s80_the_key_is_decoded_before_it_is_judged(app: Served, query: str) -> None:
    encoded = quote(query, safe="%=&[];+", encoding="latin-1")
    assert SECRET not in app.line(app.get(f"/v1/ok?{encoded}"))


@pytest.mark.parametrize("query", ["author=ann", "shipping=fast", "classname=x", "monkey=1", "q="])
def test_s80_other_values_of_the_query_are_shown(app: Served, query: str) -> None:
    assert parts(app, app.get(f"/v1/ok?{query}"))["target"] == f"/v1/ok?{query}"


@pytest.mark.parametrize(
    ("target", "shown"),
    [
        (f"/v1/reset/{SECRET}", "/v1/reset/***"),
        (f"/v1//reset/{SECRET}/", "/v1//reset/***/"),
        (f"/v1/reset/%53{SECRET}", "/v1/reset/***"),
        (f"/v1/reset/{SECRET}/item/7", "/v1/reset/***/item/7"),
        (f"/v1/res%65t/{SECRET}?a=1", "/v1/res%65t/***?a=1"),
        ("/v1/reset/reset/item/reset", "/v1/reset/***/item/reset"),
        ("/v1/reset/v1", "/v1/reset/***"),
    ],
)
def test_s81_a_segment_whose_parameter_name_is_sensitive_is_masked(
    app: Served, target: str, shown: str
) -> None:
    answer = app.get(target)
    assert answer.status == 200
    assert parts(app, answer)["target"] == shown


@pytest.mark.parametrize("target", ["read", "json", "unread"])
def test_a_json_payload_is_shown_compact_and_masked(app: Served, target: str) -> None:
    body = {"name": "ann", "password": SECRET, "deep": [{"refresh_token": {"a": SECRET}}], "n": 1}
    seen = payload(app, app.post(f"/v1/{target}", json.dumps(body, indent=2).encode()))
    assert seen == '{"name":"ann","password":"***","deep":[{"refresh_token":"***"}],"n":1}'


@pytest.mark.parametrize("key", KEYS)
def test_a_sensitive_key_of_the_payload_is_masked(app: Served, key: str) -> None:
    body = json.dumps({key: SECRET, "x": {key: [SECRET]}}).encode()
    assert SECRET not in app.line(app.post("/v1/json", body))


@pytest.mark.parametrize(
    "text",
    [
        f"Bearer {SECRET}",
        f"postgresql://ann:{SECRET}@db/shop",
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
    ],
)
def test_a_secret_inside_a_value_is_scrubbed(app: Served, text: str) -> None:
    line = app.line(app.post("/v1/json", json.dumps({"note": text}).encode()))
    assert text not in line
    assert SECRET not in line


def test_other_json_types_are_shown(app: Served) -> None:
    kind = "application/vnd.api+json; charset=utf-8"
    assert payload(app, app.post("/v1/json", b'{"a": 1}', kind)) == '{"a":1}'


@pytest.mark.parametrize("target", ["read", "unread"])
def test_a_urlencoded_payload_is_shown_and_masked(app: Served, target: str) -> None:
    body = f"name=ann+b&password={SECRET}&%74oken={SECRET}".encode()
    line = app.line(app.post(f"/v1/{target}", body, "application/x-www-form-urlencoded"))
    assert SECRET not in line
    assert '"name":"ann b"' in line
    assert '"password":"***"' in line


@pytest.mark.parametrize("target", ["read", "json", "unread"])
def test_json_under_the_type_that_curl_sends_is_shown_as_json(app: Served, target: str) -> None:
    body = json.dumps({"name": "ann", "password": SECRET}).encode()
    answer = app.post(f"/v1/{target}", body, "application/x-www-form-urlencoded")
    assert payload(app, answer) == '{"name":"ann","password":"***"}'


@pytest.mark.parametrize("target", ["/v1/read", "/v1/unread", "/v1/ok"])
def test_there_is_no_payload_without_a_body(app: Served, target: str) -> None:
    method = "GET" if target == "/v1/ok" else "POST"
    assert payload(app, app.request(method, target)) == "-"


@pytest.mark.parametrize(
    ("body", "media_type", "shown"),
    [
        pytest.param(b"x" * 5120, "image/png", "<image/png 5120>", id="another type"),
        pytest.param(b'{"password": "S3cr3t-value"', "application/json", None, id="cut short"),
        pytest.param(b"S3cr3t-value", "application/json", None, id="no JSON"),
        pytest.param(b'{"a": "S3cr3t-value\xff"}', "application/json", None, id="no UTF-8"),
        pytest.param(b"[" * 5000 + b"1", "application/json", None, id="too deep"),
        pytest.param(b"S3cr3t-value", "text/plain", None, id="text"),
        pytest.param(b"S3cr3t-value", "application/xml", None, id="XML"),
    ],
)
def test_a_body_that_cannot_be_shown_is_its_type_and_size(
    app: Served, body: bytes, media_type: str, shown: str | None
) -> None:
    answer = app.post("/v1/read", body, media_type)
    assert answer.status == 200
    assert payload(app, answer) == shown or f"<{media_type} {len(body)}>"
    assert SECRET not in app.line(answer)


def test_a_body_above_64_kib_is_its_type_and_size(app: Served) -> None:
    body = json.dumps({"a": "x" * 65_536}).encode()
    assert payload(app, app.post("/v1/json", body)) == f"<application/json {len(body)}>"


def test_a_shown_payload_is_cut_to_2_kib_after_masking(app: Served) -> None:
    body = json.dumps({"first": "x" * 3000, "password": SECRET}).encode()
    seen = payload(app, app.post("/v1/json", body))
    assert seen.startswith('{"first":"xxx')
    assert len(seen.encode()) <= 2048 + len("...")
    assert SECRET not in seen


def test_a_cut_never_uncovers_a_secret(app: Served) -> None:
    body = json.dumps({"password": SECRET * 500, "x": 1}).encode()
    assert payload(app, app.post("/v1/json", body)) == '{"password":"***","x":1}'


def test_a_stream_is_never_buffered_for_the_log(app: Served) -> None:
    seen = payload(app, app.post("/v1/stream", b'{"password": "S3cr3t-value"}'))
    assert seen == "<application/json 28>"


def test_an_unread_body_above_16_kib_is_its_type_and_size(app: Served) -> None:
    body = json.dumps(["x" * 16_384]).encode()
    assert payload(app, app.post("/v1/unread", body)) == f"<application/json {len(body)}>"


def test_log_payload_of_the_module_switches_the_payload_off(app: Served) -> None:
    assert payload(app, app.post("/v1/off", b'{"a": 1}')) == "-"


@pytest.mark.parametrize("target", ["/v1/nothing", "/v1/reset/a"])
def test_the_payload_of_a_404_or_405_is_masked_too(app: Served, target: str) -> None:
    line = app.line(app.post(target, b'{"password": "S3cr3t-value"}'))
    assert SECRET not in line


@pytest.mark.parametrize(
    "text",
    [
        "a\nb",
        "a\r\nb",
        "a\x1b[31mb",
        "a\x00b",
        "a\x7fb",
        "a\u0085b",
        "a\u2028b",
        "a\u2029b",
        "\u202ea",
    ],
)
def test_control_characters_never_break_the_line(app: Served, text: str) -> None:
    answer = app.post("/v1/json", json.dumps({"note": text, text: 1}).encode())
    line = app.line(answer)
    assert line.isprintable()
    assert SHAPE.fullmatch(line)


@pytest.mark.parametrize("target", ["/v1/ok?a=%0A%0D%1B", "/v1/a%0A[INFO]%20x", "/v1/%E2%80%A8"])
def test_control_characters_of_the_target_stay_encoded(app: Served, target: str) -> None:
    assert parts(app, app.get(target))["target"] == target


def test_a_logged_message_cannot_forge_a_line(app: Served) -> None:
    app.line(app.get("/v1/injected"))
    lines = app.wait_for(lambda lines: lines[:])
    assert not [line for line in lines if line.startswith("[INFO] GET /forged")]


def test_the_level_is_not_coloured_when_stderr_is_no_terminal(app: Served) -> None:
    app.line(app.get("/v1/ok"))
    assert "\x1b" not in "".join(app.wait_for(lambda lines: lines[:]))


def test_log_format_json_writes_one_object_per_request(logged_as_json: Served) -> None:
    answer = logged_as_json.post("/v1/json", b'{"name": "ann", "password": "S3cr3t-value"}')

    def find(lines: list[str]) -> list[str]:
        return [line for line in lines if answer.id in line]

    (line,) = logged_as_json.wait_for(find)
    record = json.loads(line)
    assert SECRET not in line
    assert answer.id in record.values()


def test_a_handler_of_the_project_gets_the_record_and_the_line_stays_the_same(
    with_own_handler: Served,
) -> None:
    body = json.dumps({"name": "ann", "password": SECRET, "x": 1}).encode()
    answer = with_own_handler.post("/v1/json?authorization=a&x=1", body)
    line = with_own_handler.line(answer)
    seen = SHAPE.fullmatch(line)
    assert seen, line
    assert seen["target"] == "/v1/json?authorization=***&x=1"
    assert seen["payload"] == '{"name":"ann","password":"***","x":1}'
    wanted = f"copied INFO {line.removeprefix('[INFO] ')}"
    assert with_own_handler.wait_for(lambda lines: [text for text in lines if text == wanted])


def test_a_filter_of_the_project_drops_the_line(with_own_handler: Served) -> None:
    dropped = with_own_handler.get("/v1/ok?quiet")
    with_own_handler.line(with_own_handler.get("/v1/ok"))
    assert dropped.id not in "".join(with_own_handler.wait_for(lambda lines: lines[:]))
