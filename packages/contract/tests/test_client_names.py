"""Every segment reaches its own route, whatever it is called: 500 hostile trees, both languages."""

from __future__ import annotations

import ast
import asyncio
import json
import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from hostile_trees import NAMES, HostileCall, draw_tree, resolve
from written_clients import import_client, read_text_lock, run_node

from treefold_contract import (
    Lock,
    LockError,
    RouteFacts,
    Segment,
    write_python_client,
    write_typescript_client,
)

SEEDS = range(500)
CALL_ALL = """
const client = connect("https://example.org/base", {
  fetch: record(() => new Response(null, { status: 204 })),
});
for (const [steps, method] of input) {
  let place = client;
  for (const [kind, text] of steps) place = kind === "call" ? place(text) : place[text];
  await place[method]();
}
print(sent);
"""
PLACE = re.compile(r"export interface (\w+) \{\n(.*?)^\}", re.DOTALL | re.MULTILINE)
PROPERTY = re.compile(r"^  readonly (.+): (\w+)(?:;$|<)", re.MULTILINE)
PARAMETER = re.compile(r"^  \(\w+: \w+\): (\w+);$", re.MULTILINE)


def read_interfaces(text: str) -> dict[str, tuple[dict[str, str], str]]:
    """Return the properties and the parameter of each interface of a client."""
    found: dict[str, tuple[dict[str, str], str]] = {}
    for name, body in PLACE.findall(text[text.index("export function connect") :]):
        properties = PROPERTY.findall(body)
        names = [json.loads(each) if each.startswith('"') else each for each, _ in properties]
        assert len(set(names)) == len(names)
        assert name not in found
        parameter = PARAMETER.search(body)
        types = [kind for _, kind in properties]
        found[name] = dict(zip(names, types, strict=True)), parameter[1] if parameter else ""
    return found


def find_typescript_steps(text: str, call: HostileCall) -> list[tuple[str, str]]:
    """Return how the types of a client say that a route is reached."""
    interfaces = read_interfaces(text)
    place, steps = "Client", list[tuple[str, str]]()
    for segment, value in zip(call.route.path, call.values, strict=True):
        properties, parameter = interfaces[place]
        if segment.is_parameter:
            steps.append(("call", value))
            place = parameter
            continue
        # the rule of the guide
        escaped = value in METHOD_NAMES or value.startswith("$")
        name = f"${value}" if escaped else value
        steps.append(("property", name))
        place = properties[name]
    assert interfaces[place][0][call.route.method.lower()] == "OptionalCall"
    return steps


METHOD_NAMES = frozenset(
    ["get", "post", "put", "patch", "delete", "head", "options", "socket", "then"]
)


def test_every_url_of_typescript_reaches_its_route(tmp_path: Path) -> None:
    trees = [draw_tree(seed) for seed in SEEDS]
    calls: list[tuple[Lock, HostileCall]] = []
    steps: list[Any] = []
    for lock, tree_calls in trees:
        text = write_typescript_client(lock)["client.d.ts"]
        for call in tree_calls:
            calls.append((lock, call))
            steps.append((find_typescript_steps(text, call), call.route.method.lower()))
    (sent,) = run_node(tmp_path, CALL_ALL, steps)
    assert len(sent) == len(calls) > 3000
    for (lock, call), request in zip(calls, sent, strict=True):
        assert request["url"].startswith("https://example.org/base/")
        url = request["url"].removeprefix("https://example.org/base")
        assert resolve(lock, request["method"], url) == (call.route.title, list(call.values))
    assert {name for name in NAMES if any(name in call.values for _, call in calls)} == set(NAMES)


def read_stub(text: str) -> dict[str, dict[str, str]]:
    """Return how each class of a stub leads to the next: by `.name`, `[name]` or `()`."""
    own = text.partition("-> SyncClient: ...\n")[2]
    classes = {each.name: each for each in ast.parse(own).body if isinstance(each, ast.ClassDef)}
    found: dict[str, dict[str, str]] = {}
    for name, node in classes.items():
        steps: dict[str, str] = {}
        bases = [ast.unparse(base).partition("[")[0] for base in node.bases]
        lines = [line for base in bases if base in classes for line in classes[base].body]
        for line in (*lines, *node.body):
            step, kind = read_stub_line(line)
            if step:
                assert step not in steps
                steps[step] = kind
        found[name] = steps
    return found


def read_stub_line(line: ast.stmt) -> tuple[str, str]:
    if isinstance(line, ast.AnnAssign):
        return f".{ast.unparse(line.target)}", ast.unparse(line.annotation).partition("[")[0]
    if not isinstance(line, ast.FunctionDef):
        return "", ""
    returned = ast.unparse(line.returns).partition("[")[0] if line.returns else ""
    if line.name == "__getitem__":
        literal = line.args.posonlyargs[1].annotation
        assert isinstance(literal, ast.Subscript)
        return f"[{ast.literal_eval(literal.slice)}", returned
    return ("()" if line.name == "__call__" else f".{line.name}"), returned


def follow_python(
    stub: dict[str, dict[str, str]], client: Any, call: HostileCall
) -> tuple[Any, str]:
    """Go to a route as the stub says; return the place and the name of its class."""
    kind, place = "Client", client
    for segment, value in zip(call.route.path, call.values, strict=True):
        steps = stub[kind]
        if segment.is_parameter:
            kind, place = steps["()"], place(value)
        elif f".{value}" in steps and steps[f".{value}"] != "Answer":
            kind, place = steps[f".{value}"], getattr(place, value)
        else:
            kind, place = steps[f"[{value}"], place[value]
    return place, kind


def test_every_url_of_python_reaches_its_route(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = import_client(tmp_path, monkeypatch, "hostile_client")
    sent: list[httpx.Request] = []

    def answer(request: httpx.Request) -> httpx.Response:
        sent.append(request)
        return httpx.Response(204)

    async def call_all() -> None:
        http = httpx.AsyncClient(transport=httpx.MockTransport(answer))
        client = module.connect("https://example.org/base", http=http)
        for seed in SEEDS:
            lock, calls = draw_tree(seed)
            stub = read_stub(write_python_client(lock)["client/__init__.pyi"])
            for call in calls:
                place, kind = follow_python(stub, client, call)
                method = call.route.method.lower()
                assert stub[kind][f".{method}"] == "Answer"
                assert await getattr(place, method)() is None
                url = sent[-1].url.raw_path.decode().removeprefix("/base")
                expected = call.route.title, list(call.values)
                assert resolve(lock, sent[-1].method, url) == expected

    asyncio.run(call_all())
    assert len(sent) > 3000


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_parameter_that_is_no_segment_raises_before_a_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    script = """
    const client = connect("https://example.org", { fetch: record(() => new Response()) });
    try { await client.v1.user(input).delete(); }
    catch (error) { print([error.name, error.message]); }
    print(sent);
    """
    (name, message), sent = run_node(tmp_path, script, value)
    assert (name, message) == ("TypeError", f"/v1/user/{{}} must not be '{value}'")
    assert sent == []
    module = import_client(tmp_path, monkeypatch, f"refused_{len(value)}")
    client = module.connect_sync("https://example.org")
    with pytest.raises(ValueError, match=re.escape(f"'/v1/user' must not be {value!r}")):
        client.v1.user(value)


@pytest.mark.parametrize("write", [write_typescript_client, write_python_client])
@pytest.mark.parametrize("text", ["", ".", ".."])
def test_a_route_that_no_url_can_have_is_named(write: Any, text: str) -> None:
    lock = Lock((RouteFacts("GET", (Segment("v1"), Segment(text))),))
    message = f"a URL cannot have the segment {text!r}; rename its folder"
    with pytest.raises(LockError, match=re.escape(message)):
        write(lock)


def test_types_and_places_have_names_of_their_own() -> None:
    lock = read_text_lock("""
GET /v1/order-line
  200     json Response

GET /v1/order/line
  200     json V1OrderLine

GET /call/{id}
  200     json User@v2

GET /response
  200     json $user_v2

type Call = int
type Response
  a       Call
type User@v2
  b       int
type V1OrderLine
  c       int
type $user_v2
  d       int
""")
    text = write_typescript_client(lock)["client.d.ts"]
    declared = re.findall(r"^export (?:interface|type) (\w+)", text, re.MULTILINE)
    assert len(set(declared)) == len(declared)
    assert {"V1OrderLine_", "V1OrderLine__", "V1OrderLine", "Response_", "User_v2"} <= set(declared)
    stub = ast.parse(write_python_client(lock)["client/__init__.pyi"])
    classes = [each.name for each in stub.body if isinstance(each, ast.ClassDef)]
    assert len(set(classes)) == len(classes)
