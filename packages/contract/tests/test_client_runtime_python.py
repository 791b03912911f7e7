"""What the runtime of Python sends and returns, with and without `async`."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import warnings
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import httpx
import pytest
from socket_servers import serve_sockets
from written_clients import import_client

Answer = Callable[[httpx.Request], httpx.Response]
Call = Callable[[Any], Any]


@pytest.fixture(scope="module")
def module(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield import_client(tmp_path_factory.mktemp("client"), monkeypatch, "runtime_client")


def call_both(module: ModuleType, call: Call, answer: Answer) -> Any:
    """Run a call in both modes; return what it returns, which must be the same."""

    async def run() -> Any:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        async with module.connect("https://x.org/base/", http=http) as client:
            found = await call(client)
            if isinstance(found, module.Stream):
                return [value async for value in found]
            return found

    with module.connect_sync(
        "https://x.org/base/", http=httpx.Client(transport=httpx.MockTransport(answer))
    ) as client:
        found = call(client)
        found = list(found) if isinstance(found, module.Stream) else found
    again = asyncio.run(run())
    assert repr(again) == repr(found)
    return found


def send(module: ModuleType, call: Call) -> httpx.Request:
    """Return the request of a call, after a comparison of both modes."""
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(204)

    assert call_both(module, call, answer) is None
    first, second = sent
    assert (first.method, first.url) == (second.method, second.url)
    return first


CALLS: list[tuple[Call, str]] = [
    (lambda c: c.v1.user.get(), "/v1/user"),
    (lambda c: c.v1.user(7).get(), "/v1/user/7"),
    (lambda c: c.v1.user(True)(1.5).get(), "/v1/user/true/1.5"),
    (lambda c: c.v1.user.get(page=1, tag=["a", "b c"]), "/v1/user?page=1&tag=a&tag=b+c"),
    (lambda c: c.v1.user.get(a=None, b=[], query={"x-y": False}), "/v1/user?x-y=false"),
    (lambda c: c.v1.user.get(q="a&b=c#d"), "/v1/user?q=a%26b%3Dc%23d"),
]


@pytest.mark.parametrize(("call", "target"), CALLS)
def test_inputs_are_in_the_url(module: ModuleType, call: Call, target: str) -> None:
    request = send(module, call)
    assert request.method == "GET"
    assert request.url.raw_path.decode().replace("%20", "+") == f"/base{target}"
    assert request.content == b""


@pytest.mark.parametrize(
    ("inputs", "kind", "body"),
    [
        ({"json": {"a": [1, None]}}, "application/json", b'{"a": [1, null]}'),
        ({"json": None}, "application/json", b"null"),
        ({"content": b"\0"}, "application/octet-stream", b"\0"),
        ({"content": "a,b", "content_type": "text/csv"}, "text/csv", b"a,b"),
        (
            {"form": {"a": "x y", "b": [1, 2], "c": None}},
            "application/x-www-form-urlencoded",
            b"a=x+y&b=1&b=2",
        ),
    ],
)
def test_a_body_has_its_media_type(
    module: ModuleType, inputs: dict[str, Any], kind: str, body: bytes
) -> None:
    request = send(module, lambda client: client.v1.user.post(**inputs))
    assert (request.headers["content-type"], request.content) == (kind, body)


def test_a_multipart_body_has_files(module: ModuleType) -> None:
    files = {"avatar": ("a.txt", io.BytesIO(b"abc"), "text/plain"), "raw": b"\0"}
    request = send(module, lambda client: client.v1.up.post(multipart={"title": 7}, files=files))
    body = request.content.decode()
    assert request.headers["content-type"].startswith("multipart/form-data; boundary=")
    assert 'name="title"\r\n\r\n7\r\n' in body
    assert 'name="avatar"; filename="a.txt"\r\nContent-Type: text/plain' in body
    assert 'name="raw"; filename="upload"' in body


def test_headers_and_cookies_are_those_of_the_client_and_the_call(module: ModuleType) -> None:
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(204)

    http = httpx.Client(transport=httpx.MockTransport(answer))
    own = {"authorization": "Bearer t", "x-trace": "6"}
    for headers in (own, lambda: own):
        client = module.connect_sync("https://x.org", http=http, headers=headers)
        client.v1.user.get(headers={"X-Trace": 7}, cookies={"a": "b; é", "d": "=/+"})
        assert sent[-1].headers["authorization"] == "Bearer t"
        assert sent[-1].headers.get_list("x-trace") == ["7"]
        assert sent[-1].headers["cookie"] == "a=b%3B%20%C3%A9; d==/+"


@pytest.mark.parametrize(
    ("kind", "body", "data"),
    [
        ("application/json", b'{"a": 1}', {"a": 1}),
        ("application/vnd.x+json; charset=utf-8", b"2", 2),
        ("application/json", b"", None),
        ("text/plain", b"1", "1"),
        ("application/pdf", b"%PDF", b"%PDF"),
        ("application/x-ndjson", '{"a":"\u2028"}\n\n[1]\r\n2'.encode(), [{"a": "\u2028"}, [1], 2]),
    ],
)
def test_an_answer_is_read_by_its_type(
    module: ModuleType, kind: str, body: bytes, data: Any
) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": kind}, content=body)

    assert call_both(module, lambda client: client.v1.user.get(), answer) == data


def test_an_error_has_its_status_and_problem(module: ModuleType) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        headers = {"content-type": "application/problem+json"}
        return httpx.Response(404, headers=headers, content=b'{"detail": "gone"}')

    result = call_both(module, lambda client: client.v1.user.get.safe(), answer)
    assert isinstance(result, module.Err)
    assert (result.ok, result.status, result.problem) == (False, 404, {"detail": "gone"})
    with pytest.raises(
        module.ApiError, match=r"404 GET https://x\.org/base/v1/user: \{'detail'"
    ) as e:
        call_both(module, lambda client: client.v1.user.get(), answer)
    assert (e.value.status, e.value.problem) == (404, {"detail": "gone"})
    assert e.value.response.status_code == 404
    found = call_both(module, lambda client: client.v1.user.get.raw(), answer)
    assert found.content == b'{"detail": "gone"}'


def test_json_that_is_none_is_no_data(module: ModuleType) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, headers={"content-type": "application/json"}, content=b"{")

    with pytest.raises(json.JSONDecodeError):
        call_both(module, lambda client: client.v1.user.get(), answer)


EVENTS = (
    ': keep-alive\n\nevent: tick\r\nid: 1\r\ndata: {"n":1}\r\n\r\ndata: a\ndata:  b\u2028c\n\n'
    "data\n\nretry: 5\n\ndata: 2\r\rdata: not ended"
)


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_are_iterated(module: ModuleType, size: int) -> None:
    class Chunks(httpx.SyncByteStream, httpx.AsyncByteStream):
        closed = False
        chunks = tuple(EVENTS.encode()[at : at + size] for at in range(0, len(EVENTS) + 9, size))

        def __iter__(self) -> Iterator[bytes]:
            return iter(self.chunks)

        async def __aiter__(self) -> AsyncIterator[bytes]:
            for chunk in self.chunks:
                yield chunk

        def close(self) -> None:
            self.closed = True

        async def aclose(self) -> None:
            self.closed = True

    bodies: list[Chunks] = []

    def answer(request: httpx.Request) -> httpx.Response:
        bodies.append(Chunks())
        headers = {"content-type": "text/event-stream; charset=utf-8"}
        return httpx.Response(200, headers=headers, stream=bodies[-1])

    events = call_both(module, lambda client: client.v1.ticks.get(), answer)
    assert [(each.event, each.id, each.text, each.data) for each in events] == [
        ("tick", "1", '{"n":1}', {"n": 1}),
        ("message", "", "a\n b\u2028c", "a\n b\u2028c"),
        ("message", "", "", ""),
        ("message", "", "2", 2),
    ]
    assert [body.closed for body in bodies] == [True, True]


def test_pages_follow_the_cursor(module: ModuleType) -> None:
    cursors = {None: "a+b", "a+b": "c", "c": None}
    sent: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(str(request.url.query.decode()))
        after = request.url.params.get("after")
        return httpx.Response(200, json={"items": [after], "next": cursors[after]})

    async def collect() -> list[Any]:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        client = module.connect("https://x.org", http=http)
        return [page["items"] async for page in client.v1.book.get.pages(limit=2)]

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client = module.connect_sync("https://x.org", http=http)
    pages = [page["items"] for page in client.v1.book.get.pages(limit=2)]
    assert pages == [[None], ["a+b"], ["c"]] == asyncio.run(collect())
    assert sent == ["limit=2", "limit=2&after=a%2Bb", "limit=2&after=c"] * 2


def test_a_key_is_the_path_and_the_inputs(module: ModuleType) -> None:
    client = module.connect_sync("https://x.org")
    assert client.v1.user(7).get.key() == ["v1", "user", "7", "GET"]
    assert client.v1.user("7").get.key(page=1) == ["v1", "user", "7", "GET", {"page": 1}]


def test_a_deprecated_route_is_reported_once(module: ModuleType) -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(204, headers={"deprecation": "@1793491200"})

    http = httpx.Client(transport=httpx.MockTransport(answer))
    client = module.connect_sync("https://x.org", http=http)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for number in range(3):
            client.v1.user(number).get()
    (warning,) = caught
    assert warning.category is DeprecationWarning
    assert warning.filename == __file__
    assert str(warning.message) == "GET /v1/user/{} is deprecated: @1793491200"
    reports: list[tuple[str, int]] = []

    def report(route: str, response: httpx.Response) -> None:
        reports.append((route, response.status_code))

    client = module.connect_sync("https://x.org", http=http, on_deprecated=report)
    client.v1.user(1).get()
    assert reports == [("GET /v1/user/{}", 204)]


def test_a_socket_sends_and_receives(module: ModuleType) -> None:
    async def talk(address: str) -> list[Any]:
        async with (
            module.connect(address).v1.chat("a b").socket(since=3, headers={"X-Trace": "t"}) as chat
        ):
            await chat.send({"text": "hi"})
            await chat.send(b"\1\2")
            await chat.send("close")
            return [message async for message in chat]

    with serve_sockets() as address:
        found = asyncio.run(talk(address))
        with (
            module.connect_sync(address)
            .v1.chat("a b")
            .socket(since=3, headers={"X-Trace": "t"}) as chat
        ):
            chat.send({"text": "hi"})
            chat.send(b"\1\2")
            assert chat.receive() == found[0]
            chat.send("close")
            assert list(chat) == found[1:]
        plain = module.connect_sync(address).v1.plain.socket(plain=True)
        plain.send("7")
        assert next(iter(plain)) == "7"
    first = {"path": "/v1/chat/a%20b?since=3", "trace": "t"}
    assert found == [first, {"echo": {"text": "hi"}}, b"\1\2"]


def test_a_socket_that_fails_raises(module: ModuleType) -> None:
    async def fail(address: str) -> None:
        chat = module.connect(address).v1.chat("a").socket()
        await chat.send("fail")
        assert [message async for message in chat] == []

    with serve_sockets() as address:
        with pytest.raises(module.SocketClosed, match="Socket was closed with 4001 no room") as e:
            asyncio.run(fail(address))
        chat = module.connect_sync(address).v1.chat("a").socket()
        chat.send("fail")
        assert chat.receive() == {"path": "/v1/chat/a", "trace": None}
        with pytest.raises(module.SocketClosed):
            chat.receive()
    assert (e.value.code, e.value.reason) == (4001, "no room")


def test_a_segment_that_is_no_attribute_names_the_subscript(module: ModuleType) -> None:
    client = module.connect_sync("https://x.org")
    with pytest.raises(AttributeError, match=r"is a subscript: client\['_x'\]"):
        _ = client.v1._x
    assert not hasattr(client, "__len__")
    assert repr(client.v1.user(7)) == "<place /v1/user/{}>"
    with pytest.raises(AttributeError, match="has no attribute 'conect'"):
        _ = module.conect
    assert module.User(name="x") == {"name": "x"}


def test_a_client_without_httpx_says_how_to_install_it(module: ModuleType) -> None:
    folder = Path(str(module.__file__)).parents[1]
    code = "import sys; sys.modules['httpx'] = None; import runtime_client"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False
    )
    assert "The client needs httpx; install it: pip install httpx" in done.stderr


IMPORT_COST = """
import json, time
import httpx
begin = time.perf_counter()
import runtime_client
print(json.dumps([time.perf_counter() - begin, "websockets" in __import__("sys").modules]))
"""


def test_an_import_is_cheap(module: ModuleType) -> None:
    folder = Path(str(module.__file__)).parents[1]
    costs: list[float] = []
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-c", IMPORT_COST], cwd=folder, capture_output=True, check=True
        )
        seconds, has_websockets = json.loads(done.stdout)
        costs.append(seconds)
        assert has_websockets is False
    assert min(costs) <= 0.005
