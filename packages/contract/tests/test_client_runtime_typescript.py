"""What the runtime of TypeScript sends and returns, run in node as a user's program is."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
from socket_servers import serve_sockets
from written_clients import read_text_lock, run_node

from treefold_contract import Lock, write_typescript_client

MOST = 1500  # bytes of each file of the runtime after gzip -9


def test_each_file_of_the_runtime_is_small_and_the_same_for_every_api() -> None:
    lock = read_text_lock("\nGET /v1/user/{id:int}\n  200     json {str: int}\n")
    empty, other = (
        {name: text for name, text in write_typescript_client(each).items() if name[-3:] == ".js"}
        for each in (Lock(), lock)
    )
    assert empty == other
    assert list(empty) == ["client.js", "treefold-streams.js"]
    sizes = {name: len(gzip.compress(text.encode(), 9, mtime=0)) for name, text in empty.items()}
    assert max(sizes.values()) <= MOST, sizes


def test_calls_without_streams_load_one_file(tmp_path: Path) -> None:
    script = """
    (await import("node:fs")).rmSync("treefold-streams.js");
    const client = connect("https://x.org", { fetch: async () => Response.json({ a: 1 }) });
    print(await client.v1.user(7).get());
    print((await client.v1.user.post.safe({ json: {} })).status);
    print((await client.v1.user.get.raw()).status);
    print(client.v1.user.get.key());
    try { for await (const page of client.v1.user.get.pages()) print(page); }
    catch (error) { print(error.code); }
    """
    found = run_node(tmp_path, script)
    assert found == [{"a": 1}, 200, 200, ["v1", "user", "GET"], "ERR_MODULE_NOT_FOUND"]


def send(folder: Path, call: str, options: str = "") -> dict[str, Any]:
    """Return the request that a call sends."""
    script = f"""
    const answer = () => new Response(null, {{ status: 204 }});
    const client = connect("https://x.org/base/", {{ fetch: record(answer), {options} }});
    await client.v1.{call};
    print(sent);
    """
    ((request,),) = run_node(folder, script)
    return request


@pytest.mark.parametrize(
    ("call", "url"),
    [
        ("user.get()", "/v1/user"),
        ("user(7).get()", "/v1/user/7"),
        ("user.get({ query: { page: 1, tag: ['a', 'b c'] } })", "/v1/user?page=1&tag=a&tag=b+c"),
        ("user.get({ query: { a: undefined, b: null, c: [] } })", "/v1/user"),
        ("user.get({ query: { q: 'a&b=c#d', on: true } })", "/v1/user?q=a%26b%3Dc%23d&on=true"),
    ],
)
def test_inputs_are_in_the_url(tmp_path: Path, call: str, url: str) -> None:
    request = send(tmp_path, call)
    assert (request["method"], request["url"]) == ("GET", f"https://x.org/base{url}")
    assert request["body"] is None
    assert request["headers"] == {}


@pytest.mark.parametrize(
    ("inputs", "kind", "body"),
    [
        ("json: { a: [1, null] }", "application/json", '{"a":[1,null]}'),
        ("json: null", "application/json", "null"),
        ("json: 0", "application/json", "0"),
        ("json: {}, type: 'application/merge-patch+json'", "application/merge-patch+json", "{}"),
        ("content: 'a,b', type: 'text/csv'", "text/csv", "a,b"),
        ("form: { a: 'x y', b: [1, 2], c: null }", None, "a=x+y&b=1&b=2"),
    ],
)
def test_a_body_has_its_media_type(
    tmp_path: Path, inputs: str, kind: str | None, body: str
) -> None:
    request = send(tmp_path, f"user.post({{ {inputs} }})")
    # fetch adds the type of a form by itself
    assert (request["headers"].get("content-type"), request["body"]) == (kind, body)


def test_a_multipart_body_has_files(tmp_path: Path) -> None:
    file = "new File(['abc'], 'a.txt', { type: 'text/plain' })"
    request = send(tmp_path, f"up.post({{ multipart: {{ title: 'x', avatar: {file} }} }})")
    assert 'name="title"\r\n\r\nx\r\n' in request["body"]
    assert 'name="avatar"; filename="a.txt"\r\nContent-Type: text/plain' in request["body"]


def test_headers_and_cookies_are_those_of_the_client_and_the_call(tmp_path: Path) -> None:
    call = "user.get({ headers: { 'X-Trace': 7, list: [1, 2] }, cookies: { a: 'b; é', d: '=/+' } })"
    own = "headers: async () => ({ authorization: 'Bearer t', 'x-trace': '6' })"
    assert send(tmp_path, call, own)["headers"] == {
        "authorization": "Bearer t",
        "x-trace": "7",
        "list": "1, 2",
        "cookie": "a=b%3B%20%C3%A9; d==/+",
    }


ANSWER = """
const client = connect("https://x.org", {{ fetch: async () => {response} }});
const show = ({{ ok, status, data, problem }}) => print({{ ok, status, data, problem }});
try {{ print({{ data: (await client.v1.user.get()) ?? "nothing" }}); }}
catch (error) {{ print({{
  name: error.constructor.name, is: error instanceof ApiError, status: error.status,
  problem: error.problem, message: error.message,
}}); }}
show(await client.v1.user.get.safe());
print((await client.v1.user.get.raw()).status);
"""


@pytest.mark.parametrize(
    ("response", "data"),
    [
        ("Response.json({ a: 1 })", {"a": 1}),
        ("Response.json(null)", "nothing"),
        ("new Response('x', { headers: { 'content-type': 'text/csv; charset=utf-8' } })", "x"),
        ("new Response(null, { status: 204 })", "nothing"),
        ("new Response('', { headers: { 'content-type': 'application/json' } })", "nothing"),
        ("new Response('1', { headers: { 'content-type': 'text/plain' } })", "1"),
        ("new Response('2', { headers: { 'content-type': 'application/vnd.x+json' } })", 2),
    ],
)
def test_an_answer_is_read_by_its_type(tmp_path: Path, response: str, data: Any) -> None:
    first, result, status = run_node(tmp_path, ANSWER.format(response=response))
    assert first["data"] == data
    assert result["ok"] is True
    assert (result.get("data") or "nothing") == data
    assert result["status"] == status


def test_bytes_are_a_blob(tmp_path: Path) -> None:
    script = """
    const type = "application/pdf";
    const fetch = async () => new Response("%PDF", { headers: { "content-type": type } });
    const data = await connect("https://x.org", { fetch }).v1.file.get();
    print([data instanceof Blob, data.type, await data.text()]);
    """
    assert run_node(tmp_path, script) == [[True, "application/pdf", "%PDF"]]


def test_an_error_has_its_status_and_problem(tmp_path: Path) -> None:
    response = """new Response('{"detail":"gone"}',
      { status: 404, headers: { "content-type": "application/problem+json" } })"""
    thrown, result, status = run_node(tmp_path, ANSWER.format(response=response))
    assert thrown == {
        "name": "ApiError",
        "is": True,
        "status": 404,
        "problem": {"detail": "gone"},
        "message": "404 ",
    }
    assert result == {"ok": False, "status": 404, "problem": {"detail": "gone"}}
    assert status == 404


def test_an_error_of_a_proxy_is_its_text(tmp_path: Path) -> None:
    response = """new Response("<h1>Bad gateway</h1>",
      { status: 502, headers: { "content-type": "text/html" } })"""
    thrown, result, _ = run_node(tmp_path, ANSWER.format(response=response))
    assert thrown["problem"] == result["problem"] == "<h1>Bad gateway</h1>"


def test_json_that_is_none_is_no_data(tmp_path: Path) -> None:
    script = """
    const headers = { "content-type": "application/json" };
    const fetch = async () => new Response("{", { headers });
    try { print(await connect("https://x.org", { fetch }).v1.user.get()); }
    catch (error) { print(error.name); }
    """
    assert run_node(tmp_path, script) == ["SyntaxError"]


def test_a_signal_ends_a_request(tmp_path: Path) -> None:
    script = """
    const fetch = async (url, { signal }) => signal.throwIfAborted();
    const abort = new AbortController();
    const call = connect("https://x.org", { fetch }).v1.user.get({}, { signal: abort.signal });
    abort.abort(new Error("left"));
    try { await call; } catch (error) { print(error.message); }
    """
    assert run_node(tmp_path, script) == ["left"]


def test_a_deprecated_route_is_reported_once(tmp_path: Path) -> None:
    script = """
    const reports = [];
    const client = connect("https://x.org", {
      fetch: async () => new Response(null, { status: 204, headers: { deprecation: "@1" } }),
      onDeprecated: (route, response) => reports.push([route, response.headers.get("deprecation")]),
    });
    for (const id of [1, 2]) { await client.v1.user(id).get(); await client.v1.user(id).delete(); }
    print(reports);
    """
    expected = [["get /v1/user/{}", "@1"], ["delete /v1/user/{}", "@1"]]
    assert run_node(tmp_path, script) == [expected]


def test_a_key_is_the_path_and_the_inputs(tmp_path: Path) -> None:
    script = """
    const client = connect("https://x.org", {});
    print(client.v1.user(7).get.key());
    print(client.v1.user("7").get.key({ query: { page: 1 } }));
    """
    assert run_node(tmp_path, script) == [
        ["v1", "user", "7", "GET"],
        ["v1", "user", "7", "GET", {"query": {"page": 1}}],
    ]


def test_pages_follow_the_cursor(tmp_path: Path) -> None:
    script = """
    const next = { null: "a+b", "a+b": "c", c: null };
    const client = connect("https://x.org", { fetch: record((url) => {
      const after = new URL(url).searchParams.get("after");
      return Response.json({ items: [after], next: next[after] });
    }) });
    for await (const page of client.v1.book.get.pages({ query: { limit: 2 } })) print(page.items);
    print(sent.map(({ url }) => url));
    """
    *pages, urls = run_node(tmp_path, script)
    assert pages == [[None], ["a+b"], ["c"]]
    base = "https://x.org/v1/book?limit=2"
    assert urls == [base, f"{base}&after=a%2Bb", f"{base}&after=c"]


STREAM = """
const encoder = new TextEncoder();
const chunks = input.map((text) => encoder.encode(text));
let cancelled = false;
const body = () => new ReadableStream({
  pull(stream) { chunks.length ? stream.enqueue(chunks.shift()) : stream.close(); },
  cancel() { cancelled = true; },
});
const headers = { "content-type": "%s" };
const client = connect("https://x.org", { fetch: async () => new Response(body(), { headers }) });
"""
EVENTS = (
    ': keep-alive\n\nevent: tick\r\nid: 1\r\ndata: {"n":1}\r\n\r\ndata: a\ndata:  b\u2028c\n\n'
    "data\n\nretry: 5\n\ndata: 2\r\rdata: not ended"
)
READ_EVENTS = [
    {"event": "tick", "id": "1", "text": '{"n":1}', "data": {"n": 1}},
    {"event": "message", "text": "a\n b\u2028c", "data": "a\n b\u2028c"},
    {"event": "message", "text": "", "data": ""},
    {"event": "message", "text": "2", "data": 2},
]


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_events_are_iterated(tmp_path: Path, size: int) -> None:
    chunks = [EVENTS[start : start + size] for start in range(0, len(EVENTS), size)]
    script = STREAM % "text/event-stream; charset=utf-8"
    script += "for await (const event of await client.v1.ticks.get()) print(event);"
    assert run_node(tmp_path, script, chunks) == READ_EVENTS


@pytest.mark.parametrize("size", [1, 1000])
def test_lines_of_json_are_iterated(tmp_path: Path, size: int) -> None:
    text = '{"a":"\u2028"}\n\n[1]\r\n2'
    chunks = [text[start : start + size] for start in range(0, len(text), size)]
    script = STREAM % "application/x-ndjson"
    script += "for await (const row of await client.v1.rows.get()) print(row);"
    assert run_node(tmp_path, script, chunks) == [{"a": "\u2028"}, [1], 2]


def test_a_stream_that_is_left_is_cancelled(tmp_path: Path) -> None:
    script = STREAM % "application/x-ndjson"
    script += """
    for await (const row of await client.v1.rows.get()) { print(row); break; }
    await new Promise((resolve) => setTimeout(resolve));
    print(cancelled);
    """
    assert run_node(tmp_path, script, ["1\n", "2\n", "3\n"]) == [1, True]


def test_a_socket_sends_and_iterates(tmp_path: Path) -> None:
    script = """
    const chat = await connect(input).v1.chat("a b").socket({ query: { since: 3 } });
    chat.send({ text: "hi" });
    chat.send(new Uint8Array([1, 2]));
    chat.send("close");
    for await (const message of chat)
      print(message instanceof ArrayBuffer ? [...new Uint8Array(message)] : message);
    """
    with serve_sockets() as address:
        found = run_node(tmp_path, script, address)
    first = {"path": "/v1/chat/a%20b?since=3", "trace": None}
    assert found == [first, {"echo": {"text": "hi"}}, [1, 2]]


def test_a_socket_is_iterated_without_being_awaited(tmp_path: Path) -> None:
    script = """
    for await (const message of connect(input).v1.chat("a").socket()) { print(message); break; }
    """
    with serve_sockets() as address:
        assert run_node(tmp_path, script, address) == [{"path": "/v1/chat/a", "trace": None}]


def test_a_socket_of_text_sends_it_as_it_is(tmp_path: Path) -> None:
    script = """
    const echo = await connect(input).v1.plain.socket({ text: true });
    echo.send("7");
    for await (const message of echo) { print(message); break; }
    """
    with serve_sockets() as address:
        assert run_node(tmp_path, script, address) == ["7"]


def test_a_socket_that_fails_throws(tmp_path: Path) -> None:
    script = """
    const chat = await connect(input).v1.chat("a").socket();
    chat.send("fail");
    try { for await (const message of chat) print(message); }
    catch (error) { print([error.code, error.reason]); }
    try { await connect("http://127.0.0.1:1").v1.chat("a").socket(); }
    catch (error) { print(error.code); }
    """
    with serve_sockets() as address:
        found = run_node(tmp_path, script, address)
    assert found == [{"path": "/v1/chat/a", "trace": None}, [4001, "no room"], 1006]
