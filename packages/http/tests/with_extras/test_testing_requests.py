"""What a request of the test client looks like to the application: what the test wrote, exactly."""

import io
from collections.abc import Awaitable, Callable, Generator, Iterator, MutableMapping
from typing import Any
from urllib.parse import unquote

import httpx
import pytest
from hypothesis import given, strategies as st

from treefold_http.testing import TestClient

Message = MutableMapping[str, Any]
Scope = Message
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class Recorder:
    """An ASGI application that keeps scope and messages, and answers 200 or redirects."""

    def __init__(self, location: str = "") -> None:
        self.scopes: list[Scope] = []
        self.messages: list[Message] = []
        self.location = location

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        self.scopes.append(scope)
        more = True
        while more:
            message = await receive()
            self.messages.append(message)
            more = message.get("more_body", False)
        start: Message = {"type": "http.response.start", "status": 200, "headers": []}
        if self.location and len(self.scopes) == 1:
            start |= {"status": 307, "headers": [(b"location", self.location.encode())]}
        await send(start)
        await send({"type": "http.response.body"})

    @property
    def scope(self) -> Scope:
        return self.scopes[-1]

    @property
    def bodies(self) -> list[bytes]:
        return [message["body"] for message in self.messages]

    def fields(self, name: bytes) -> list[bytes]:
        return [value for key, value in self.scope["headers"] if key == name]


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def client(recorder: Recorder) -> Iterator[TestClient]:
    with TestClient(recorder) as client:
        yield client


@pytest.mark.parametrize(
    ("url", "raw_path", "query"),
    [
        ("/v1/item/x%2Fsecret", b"/v1/item/x%2Fsecret", b""),
        ("/v1/item/x%2fsecret", b"/v1/item/x%2fsecret", b""),
        ("/v1/a/../b/./c", b"/v1/a/../b/./c", b""),
        ("/v1/%2e%2e/b", b"/v1/%2e%2e/b", b""),
        ("//v1//user/", b"//v1//user/", b""),
        ("/v1/100%", b"/v1/100%", b""),
        ("/v1/%zz", b"/v1/%zz", b""),
        ('/v1/a|b\\c"<>^`{}', b'/v1/a|b\\c"<>^`{}', b""),
        ("/v1/%61?q=%61+b&q=&&;", b"/v1/%61", b"q=%61+b&q=&&;"),
        ("/v1/a?x=1?y=/../", b"/v1/a", b"x=1?y=/../"),
        ("/v1/José €", b"/v1/Jos%C3%A9%20%E2%82%AC", b""),
        ("/v1/a\r\nb\x00\x7f", b"/v1/a%0D%0Ab%00%7F", b""),
        ("v1/user", b"/v1/user", b""),
        ("", b"/", b""),
        ("?a=b", b"/", b"a=b"),
        ("/v1/a#there", b"/v1/a", b""),
        ("http://elsewhere/v1/../a%2F", b"/v1/../a%2F", b""),
        ("http://elsewhere", b"/", b""),
    ],
)
def test_path_and_query_go_out_as_they_are_written(
    client: TestClient, recorder: Recorder, url: str, raw_path: bytes, query: bytes
) -> None:
    client.get(url)

    assert (recorder.scope["raw_path"], recorder.scope["query_string"]) == (raw_path, query)


@given(st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters="?#")))
def test_every_path_that_a_request_line_can_carry_goes_out_unchanged(path: str) -> None:
    recorder = Recorder()
    with TestClient(recorder) as client:
        client.get(f"http://testserver/{path}")

    assert recorder.scope["raw_path"] == f"/{path}".encode()


@given(st.text())
def test_every_other_path_goes_out_as_its_percent_encoded_utf_8(text: str) -> None:
    recorder = Recorder()
    text = text.replace("#", "").replace("?", "").replace("%", "")
    with TestClient(recorder) as client:
        client.get(f"http://testserver/{text}")

    assert unquote(recorder.scope["raw_path"].decode("ascii")) == f"/{text}"


def test_the_path_is_decoded_once(client: TestClient, recorder: Recorder) -> None:
    client.get("/v1/a%252Fb%2Fc")

    assert recorder.scope["path"] == "/v1/a%2Fb/c"


def test_params_make_the_query_and_leave_the_path_as_written(
    client: TestClient, recorder: Recorder
) -> None:
    client.get("/v1/../a", params={"q": ["a", "ü"]})

    assert recorder.scope["raw_path"] == b"/v1/../a"
    assert recorder.scope["query_string"] == b"q=a&q=%C3%BC"


def test_an_address_object_goes_out_as_httpx_writes_it(
    client: TestClient, recorder: Recorder
) -> None:
    client.get(httpx.URL("http://testserver/v1/a%2Fb?c=d"))

    assert recorder.scope["raw_path"] == b"/v1/a%2Fb"


def test_a_redirect_goes_where_it_says_and_not_where_the_first_request_went() -> None:
    recorder = Recorder(location="/v1/there?x=1")
    with TestClient(recorder) as client:
        answer = client.get("/v1/../here?y=2", follow_redirects=True)

    assert answer.status_code == 200
    assert recorder.scope["raw_path"] == b"/v1/there"
    assert recorder.scope["query_string"] == b"x=1"


def test_redirects_are_followed_only_on_request() -> None:
    recorder = Recorder(location="/v1/there")
    with TestClient(recorder) as client:
        assert client.get("/v1/here").status_code == 307


@pytest.mark.parametrize("method", ["GET", "get", "PurGe", "WEBSOCKET"])
def test_a_method_goes_out_as_it_is_written(
    client: TestClient, recorder: Recorder, method: str
) -> None:
    client.request(method, "/v1")

    assert recorder.scope["method"] == method


@pytest.mark.parametrize(
    ("base_url", "path", "host", "server", "scheme"),
    [
        ("http://testserver", b"/v1", b"testserver", ("testserver", 80), "http"),
        (
            "https://api.example.localhost",
            b"/v1",
            b"api.example.localhost",
            ("api.example.localhost", 443),
            "https",
        ),
        ("http://localhost:8080/base", b"/base/v1", b"localhost:8080", ("localhost", 8080), "http"),
    ],
)
def test_the_host_comes_from_the_base_url(
    base_url: str, path: bytes, host: bytes, server: tuple[str, int], scheme: str
) -> None:
    recorder = Recorder()
    with TestClient(recorder, base_url=base_url) as client:
        client.get("/v1")

    assert recorder.fields(b"host") == [host]
    assert recorder.scope["server"] == server
    assert recorder.scope["scheme"] == scheme
    assert recorder.scope["raw_path"] == path


def test_the_scope_is_that_of_a_server(client: TestClient, recorder: Recorder) -> None:
    client.get("/v1")

    assert recorder.scope["client"] == ("testclient", 50000)
    assert recorder.scope["http_version"] == "1.1"
    assert recorder.scope["root_path"] == ""
    assert recorder.scope["asgi"] == {"version": "3.0", "spec_version": "2.4"}


def test_repeated_headers_are_kept_in_order_with_lower_case_names(
    client: TestClient, recorder: Recorder
) -> None:
    client.get("/v1", headers=[("X-Tag", "b"), ("x-other", "1"), ("x-TAG", "a")])

    assert recorder.fields(b"x-tag") == [b"b", b"a"]


def test_headers_of_the_client_go_with_every_request() -> None:
    recorder = Recorder()
    with TestClient(recorder, headers={"Authorization": "Bearer x"}) as client:
        client.get("/v1")

    assert recorder.fields(b"authorization") == [b"Bearer x"]
    assert recorder.fields(b"user-agent") == [b"testclient"]
    assert recorder.fields(b"accept-encoding") == [b"gzip, deflate"]


def test_a_request_without_a_body_is_one_empty_message(
    client: TestClient, recorder: Recorder
) -> None:
    client.get("/v1")

    assert recorder.messages == [{"type": "http.request", "body": b"", "more_body": False}]


def test_a_small_body_is_one_message(client: TestClient, recorder: Recorder) -> None:
    client.post("/v1", json=[1])

    assert recorder.messages == [{"type": "http.request", "body": b"[1]", "more_body": False}]
    assert recorder.fields(b"content-type") == [b"application/json"]


def test_a_large_body_comes_in_pieces(client: TestClient, recorder: Recorder) -> None:
    client.post("/v1", content=b"x" * 150_000)

    assert [len(body) for body in recorder.bodies] == [65536, 65536, 18928]


def test_a_generator_is_sent_chunk_by_chunk(client: TestClient, recorder: Recorder) -> None:
    client.post("/v1", content=iter([b"one", b"two"]))

    assert recorder.bodies == [b"one", b"two", b""]
    assert recorder.fields(b"transfer-encoding") == [b"chunked"]


def test_forms_and_files_are_sent_as_httpx_does(client: TestClient, recorder: Recorder) -> None:
    client.post("/v1", data={"a": "b"}, files={"f": ("x.txt", io.BytesIO(b"data"), "text/plain")})

    body = b"".join(recorder.bodies)
    assert recorder.fields(b"content-type")[0].startswith(b"multipart/form-data; boundary=")
    assert b'name="f"; filename="x.txt"\r\nContent-Type: text/plain\r\n\r\ndata\r\n' in body


def test_a_body_is_pulled_only_as_far_as_the_application_reads() -> None:
    given: list[int] = []

    def chunks() -> Generator[bytes]:
        for number in range(1000):
            given.append(number)
            yield b"x"

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await receive()
        await receive()
        await send({"type": "http.response.start", "status": 413, "headers": []})
        await send({"type": "http.response.body"})

    with TestClient(app) as client:
        assert client.post("/v1", content=chunks()).status_code == 413

    assert given == [0, 1]


class Departure:
    """An application that reads to the end, whatever that is."""

    def __init__(self) -> None:
        self.last = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        message: Message = {"more_body": True}
        while message.get("more_body"):
            message = await receive()
        self.last = message["type"]


def test_a_generator_that_raises_is_a_client_that_leaves() -> None:
    def broken() -> Generator[bytes]:
        yield b"first"
        raise LookupError("of the test")

    app = Departure()
    with TestClient(app) as client, pytest.raises(LookupError, match="of the test"):
        client.post("/v1", content=broken())

    assert app.last == "http.disconnect"


@pytest.mark.parametrize(("length", "word"), [("9", "shorter"), ("3", "longer")])
def test_a_body_of_another_length_than_announced_is_a_client_that_leaves(
    length: str, word: str
) -> None:
    app = Departure()
    expected = f"^The request body is {word} than its Content-Length$"
    with TestClient(app) as client, pytest.raises(httpx.LocalProtocolError, match=expected):
        client.post("/v1", content=b"12345", headers={"Content-Length": length})

    assert app.last == "http.disconnect"


@pytest.mark.parametrize("length", [b"abc", b"-1", b"\xb2"])
def test_a_length_that_is_no_number_reaches_the_application(
    client: TestClient, recorder: Recorder, length: bytes
) -> None:
    client.post("/v1", content=b"12345", headers=[(b"content-length", length)])

    assert recorder.fields(b"content-length") == [length]
    assert b"".join(recorder.bodies) == b"12345"
