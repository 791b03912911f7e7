"""The members of `Request`, as a handler sees them."""

import json
from urllib.parse import quote

import pytest
from serving import Serve, Served

TREE = {
    "Api/v1/Show/[id]/Get.py": """
        async def handler(request):
            return {
                "method": request.method,
                "path_params": dict(request.path_params),
                "kinds": [type(value).__name__ for value in request.path_params.values()],
                "query": {name: request.query.getlist(name) for name in request.query},
                "first": request.query.get("a"),
                "missing": request.query.get("missing"),
                "header": request.headers.get("x-shown"),
                "capitals": request.headers["X-SHOWN"] if "X-Shown" in request.headers else None,
                "repeated": request.headers.getlist("x-repeated"),
                "cookies": {name: request.cookies.getlist(name) for name in request.cookies},
                "id": request.id,
                "route": request.route,
                "raw_path": request.raw_path.decode(),
                "host": request.host,
                "url_host": request.url.host,
            }
        """,
    "Api/v1/Json/Post.py": """
        async def handler(request):
            value = await request.json()
            return {"value": value, "again": (await request.json()) is value or value is None}
        """,
    "Api/v1/Guard/Post.py": """
        async def handler(request):
            return (await request.json())["name"]
        """,
    "Api/v1/Body/Post.py": """
        async def handler(request):
            first = await request.body()
            return {"size": len(first), "same": first == await request.body()}
        """,
    "Api/v1/Stream/Post.py": """
        async def handler(request):
            return {"size": sum([len(chunk) async for chunk in request.stream()])}
        """,
    "Api/v1/Small/Post.py": """
        max_body = 10

        async def handler(request):
            return {"size": len(await request.body())}
        """,
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE)


@pytest.mark.parametrize(
    ("segment", "value"),
    [
        ("42", "42"),
        ("007", "007"),
        ("true", "true"),
        ("a%20b", "a b"),
        ("a+b", "a+b"),
        ("%C3%A9", "\u00e9"),
        ("%7B%7D", "{}"),
    ],
)
def test_path_params_are_decoded_strings(app: Served, segment: str, value: str) -> None:
    shown = app.get(f"/v1/show/{segment}").json()
    assert shown["path_params"] == {"id": value}
    assert shown["kinds"] == ["str"]


@pytest.mark.parametrize(
    ("query", "parsed"),
    [
        ("", {}),
        ("a=1", {"a": ["1"]}),
        ("a=1&a=2&b=3", {"a": ["1", "2"], "b": ["3"]}),
        ("a=", {"a": [""]}),
        ("a", {"a": [""]}),
        ("a=b+c%2Bd%26", {"a": ["b c+d&"]}),
        ("%C3%A9=%E2%82%AC", {"\u00e9": ["\u20ac"]}),
        ("a[b]=1", {"a[b]": ["1"]}),
    ],
)
def test_query_is_parsed_and_keeps_repeats(
    app: Served, query: str, parsed: dict[str, list[str]]
) -> None:
    assert app.get(f"/v1/show/1?{query}").json()["query"] == parsed


def test_query_get_gives_the_first_value_or_none(app: Served) -> None:
    shown = app.get("/v1/show/1?a=first&a=second").json()
    assert (shown["first"], shown["missing"]) == ("first", None)


def test_headers_are_case_insensitive(app: Served) -> None:
    shown = app.get("/v1/show/1", ("x-sHoWn", "yes")).json()
    assert (shown["header"], shown["capitals"]) == ("yes", "yes")


def test_repeated_headers_are_kept_in_order(app: Served) -> None:
    shown = app.get("/v1/show/1", ("X-Repeated", "one"), ("X-Repeated", "two")).json()
    assert shown["repeated"] == ["one", "two"]


@pytest.mark.parametrize(
    ("fields", "cookies"),
    [
        (["a=1; b=2"], {"a": ["1"], "b": ["2"]}),
        (["a=1", "b=2"], {"a": ["1"], "b": ["2"]}),
        (["a=1; a=2"], {"a": ["1", "2"]}),
        (['quoted="x y"'], {"quoted": ["x y"]}),
        (["a=b=c"], {"a": ["b=c"]}),
    ],
)
def test_cookies_are_parsed(app: Served, fields: list[str], cookies: dict[str, list[str]]) -> None:
    shown = app.get("/v1/show/1", *(("Cookie", field) for field in fields)).json()
    assert shown["cookies"] == cookies


def test_the_request_knows_its_route_and_its_raw_path(app: Served) -> None:
    shown = app.get("/v1//show/a%2Fb?x=1").json()
    assert (shown["route"], shown["raw_path"]) == ("/v1/show/{id}", "/v1//show/a%2Fb")


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"a": [1, 2.5, null, true, "x"]}', {"a": [1, 2.5, None, True, "x"]}),
        (b"[]", []),
        (b'"text"', "text"),
        (b" 1 ", 1),
        ('"gr\u00fcn"'.encode(), "gr\u00fcn"),
        (b'"\\ud83c\\udf33"', "\U0001f333"),
        (b"null", None),
    ],
)
def test_json_gives_the_parsed_body(app: Served, body: bytes, value: object) -> None:
    assert app.post("/v1/json", body).json() == {"value": value, "again": True}


@pytest.mark.parametrize("media_type", ["text/plain", "application/x-any", "x/y; charset=zzz"])
def test_json_parses_whatever_the_content_type_says(app: Served, media_type: str) -> None:
    assert app.post("/v1/json", b"[1]", media_type).json()["value"] == [1]


def test_json_of_an_empty_body_is_none(app: Served) -> None:
    assert app.post("/v1/json", b"").json() == {"value": None, "again": True}
    assert app.request("POST", "/v1/json").json() == {"value": None, "again": True}


def test_reading_a_key_of_none_is_an_unhandled_exception(app: Served) -> None:
    answer = app.request("POST", "/v1/guard")
    assert answer.status == 500
    assert " -> 500 " in app.line(answer)


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"{", id="cut short"),
        pytest.param(b"{'a': 1}", id="single quotes"),
        pytest.param(b'{"a": 1,}', id="trailing comma"),
        pytest.param(b"1 2", id="two values"),
        pytest.param(b" ", id="white space only"),
        pytest.param(b'"\xff"', id="not UTF-8"),
        pytest.param('"\u00fc"'.encode("utf-16"), id="UTF-16"),
        pytest.param(b'"\\ud800"', id="lone surrogate"),
        pytest.param(b'"a\x00b"', id="raw control character"),
        pytest.param(b"NaN", id="S-33 NaN"),
        pytest.param(b"[NaN]", id="S-33 NaN inside"),
        pytest.param(b"[Infinity]", id="S-33 Infinity"),
        pytest.param(b"[-Infinity]", id="S-33 minus Infinity"),
        pytest.param(b"[1e999]", id="S-33 number out of range"),
        pytest.param(b"9" * 5000, id="S-31 integer of 5,000 digits"),
        pytest.param(b"[" * 100_000, id="S-31 nesting cut short"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="S-31 nesting of 100,000"),
        pytest.param(b'{"role": "user", "role": "admin"}', id="S-34 repeated name"),
        pytest.param(b'{"role": "user", "r\\u006fle": "admin"}', id="S-34 repeated escaped name"),
    ],
)
def test_json_that_is_not_valid_is_400(app: Served, body: bytes) -> None:
    answer = app.post("/v1/json", body)
    assert answer.status == 400
    assert answer.json()["detail"].startswith("The body is not valid JSON: ")


def test_a_bad_body_does_not_disturb_the_next_request(app: Served) -> None:
    app.post("/v1/json", b"[" * 100_000)
    assert app.post("/v1/json", b"[1]").json()["value"] == [1]


@pytest.mark.parametrize("chunks", [[b"one"], [b"o", b"ne"], [b"o"] * 200])
def test_a_body_in_chunks_is_read_whole(app: Served, chunks: list[bytes]) -> None:
    answer = app.request("POST", "/v1/body", body=chunks)
    assert answer.json() == {"size": len(b"".join(chunks)), "same": True}


def test_stream_gives_the_whole_body(app: Served) -> None:
    assert app.request("POST", "/v1/stream", body=[b"x" * 1000] * 20).json() == {"size": 20_000}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"x" * 11, id="with a length"),
        pytest.param([b"x"] * 11, id="without a length"),
    ],
)
def test_a_body_above_the_limit_of_the_module_is_413(
    app: Served, body: bytes | list[bytes]
) -> None:
    assert app.request("POST", "/v1/small", body=body).status == 413


def test_a_body_at_the_limit_is_taken(app: Served) -> None:
    assert app.request("POST", "/v1/small", body=b"x" * 10).json() == {"size": 10}


def test_a_body_of_one_mebibyte_is_taken(app: Served) -> None:
    answer = app.request("POST", "/v1/body", body=b"x" * 1024 * 1024)
    assert answer.json() == {"size": 1024 * 1024, "same": True}


def test_a_body_above_one_mebibyte_is_413_before_it_is_read(app: Served) -> None:
    announced = [("Content-Length", str(1024 * 1024 + 1))]
    assert app.request("POST", "/v1/body", headers=announced).status == 413


@pytest.mark.parametrize("query", ["%ff", "a=%ff", "a=%ed%a0%80", "a&" * 1001])
def test_a_query_that_is_not_utf_8_or_has_too_many_pairs_is_400(app: Served, query: str) -> None:
    assert app.get(f"/v1/show/1?{query}").status == 400


def test_what_was_sent_comes_back_exactly(app: Served) -> None:
    text = "".join(map(chr, [*range(0x20, 0x7F), 0xA0, 0xFF, 0x2028, 0xFFFD, 0x10FFFF]))
    assert app.get(f"/v1/show/{quote(text, safe='')}").json()["path_params"] == {"id": text}
    assert app.post("/v1/json", json.dumps(text).encode()).json()["value"] == text
