"""Generated clients under the checkers that users have: tsc, pyright and mypy, each strict."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

sys.path.append(str(Path(__file__).parents[1] / "packages" / "contract" / "tests"))
sys.path.append(str(Path(__file__).parent / "pages"))
sys.path.append(str(Path(__file__).parents[1] / "tools"))

from hostile_trees import draw_tree
from page_blocks import read_blocks
from test_client_types import ROUTES, TYPES, VERSIONS
from typescript_compiler import fetch_compiler, run_compiler

from treefold_contract import (
    Answer,
    Body,
    Definition,
    ListType,
    Lock,
    Member,
    Record,
    Reference,
    RouteFacts,
    Scalar,
    Segment,
    read_lock,
    write_python_client,
    write_typescript_client,
)
from treefold_contract._text.lock_reader import parse_lock

REPOSITORY = Path(__file__).parents[1]
HOSTILE = range(50)
HEAD = "treefold contract 1 rules 1\n"
SHOP = f"""{HEAD}version v1 stable deprecated 2026-11-01 successor v2
version v2 stable

GET /v1/book
  query   after str ?
  200     json Page

GET /v1/user/{{id:int}}
  200     json User
  404     problem

POST /v1/user
  body    json User
  201     json User
  409     json Taken

GET /v1/file
  200     application/pdf

WEBSOCKET /v1/chat/{{room}}
  in      json Say
  out     json Said | Left | ...

GET /v1/order-line/get/then
  200     ndjson User

type Left
  kind    "left"
type Page
  items   [User]
  next    str | null
type Said
  kind    "said"
  text    str
type Say
  text    str
type Taken
  by      int
type User
  id      int = 0
  role    "admin" | "member" | ...
"""
TYPESCRIPT = """
import { ApiError, connect, type Page, type User } from "./shop.js";

const client = connect("https://example.org", { headers: () => ({ authorization: "x" }) });

export async function use(): Promise<void> {
  const user: User = await client.v2.user(7).get();
  const role: string = user.role;
  const result = await client.v2.user(7).get.safe();
  if (result.ok) console.log(result.status === 200, result.data.id, role);
  else if (result.status === 404) console.log(result.problem.detail?.length);
  else if (result.status === 422) console.log(result.problem.errors?.[0]?.loc);
  else { const status: 500 | 502 | 503 | 504 = result.status; console.log(status); }
  const made = await client.v2.user.post.safe({ json: { role: "admin" } });
  if (made.status === 409) console.log(made.problem.by.toFixed());
  const pages: AsyncIterable<Page> = client.v2.book.get.pages();
  for await (const page of pages) console.log(page.items[0]?.id, page.next);
  const file: Blob = await client.v2.file.get();
  const chat = await client.v2.chat("lobby").socket();
  chat.send({ text: "hi" });
  for await (const message of chat) {
    if (message.kind === "said") console.log(message.text, file.size);
    else if (message.kind !== "left") console.log(message.kind);
  }
  for await (const row of await client.v2["order-line"].$get.$then.get()) console.log(row.id);
  await client.v2.user(7).get({}, { signal: AbortSignal.timeout(9) });
  console.log(client.v2.user(7).get.key(), ApiError);

  // @ts-expect-error: an id is a number
  client.v2.user("7");
  // @ts-expect-error: a body is required
  await client.v2.user.post();
  // @ts-expect-error: an unknown member of a body
  await client.v2.user.post({ json: { role: "admin", mail: "x" } });
  // @ts-expect-error: an unknown query
  await client.v2.book.get({ query: { befor: "x" } });
  // @ts-expect-error: no such method
  client.v2.file.delete;
  // @ts-expect-error: no such place
  client.v3;
  // @ts-expect-error: a route without pages
  client.v2.user(7).get.pages();
  // @ts-expect-error: another message
  chat.send({ txt: "hi" });
  // @ts-expect-error: data is there only if the answer is ok
  result.data;
}
"""
PYTHON = """
from typing import assert_type

import shop
from shop import ApiError, Page, Problem, User, connect, connect_sync


async def use() -> None:
    async with connect("https://example.org", headers={"authorization": "x"}) as client:
        assert_type(await client.v2.user(7).get(), User)
        result = await client.v2.user(7).get.safe()
        if isinstance(result, shop.Ok):
            assert_type(result.data["id"], int)
        elif result.status == 404:
            assert_type(result.problem, Problem)
        made = await client.v2.user.post.safe(json={"role": "admin"})
        if made.status == 409:
            assert_type(made.problem["by"], int)
        async for page in client.v2.book.get.pages():
            assert_type(page, Page)
        assert_type(await client.v2.file.get(), bytes)
        async with client.v2.chat("lobby").socket() as chat:
            await chat.send({"text": "hi"})
            async for message in chat:
                if message["kind"] == "said":
                    assert_type(message["text"], str)
        async for row in await client.v2["order-line"]["get"].then.get():
            assert_type(row, User)


def use_sync() -> None:
    with connect_sync("https://example.org") as client:
        user: User = client.v2.user(7).get()
        print(user["role"], client.v2.user(7).get.key(), ApiError)
        assert_type([page for page in client.v2.book.get.pages()], list[Page])
        client.v1.book.get()  # deprecated
        client.v2.user("7")  # wrong type
        client.v2.user.post()  # no body
        client.v2.book.get(befor="x")  # unknown query
        client.v2["nowhere"]  # no place
        client.v2.user(7).get.pages()  # no pages
"""

TESTS = """
from typing import Any, assert_type

import httpx
import shop
from treefold.testing import AsyncTestClient, TestClient


def test_user(client: TestClient[shop.Api]) -> None:
    assert_type(client.api.v2.user(7).get(), httpx.Response)
    client.api.v1.book.get(after="x")
    client.api.v2["order-line"]["get"].then.get()
    client.api.v2.user.post(json={"role": "admin"})
    with client.api.v2.chat("lobby").socket() as chat:
        chat.send_json({"text": "hi"})
        message = chat.receive_json()
        if message["kind"] == "said":
            assert_type(message["text"], str)
        assert_type(chat.receive_text(timeout=1.0), str)
    client.api.v2.usr  # no name
    client.api.v3  # no name
    client.api.v2.user(7).gte()  # no name
    client.api.v2.user("7").get()  # wrong type
    client.api.v2.user(7).get(page=1)  # wrong call
    client.api.v2.user.post()  # wrong call
    client.api.v2.user.post(json={"role": 7})  # wrong type
    client.api.v2["nowhere"]  # wrong type
    chat.send_json({"txt": "hi"})  # wrong type


async def test_user_async(client: AsyncTestClient[shop.AsyncApi]) -> None:
    assert_type(await client.api.v2.user(7).get(), httpx.Response)
    async with client.api.v2.chat("lobby").socket() as chat:
        await chat.send_json({"text": "hi"})
        assert_type((await chat.receive_json())["kind"] == "said", bool)
    await client.api.v2.user(7).gte()  # no name
    await client.api.v2.user("7").get()  # wrong type
    await client.api.v2.user.post()  # wrong call
    client.api.v2.user(7).get().status_code  # no name


def test_any(client: TestClient) -> None:
    assert_type(client.api, Any)
    assert_type(TestClient(".").api.v1.anything(7).get(), Any)


def test_made() -> None:
    with TestClient[shop.Api](".") as client:
        client.api.v2.usr  # no name
"""


def write_files(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def read_rows() -> Lock:
    """Return a lock with each route of the tests of single operations."""
    routes = "".join(
        f"\n{method} /x{number}\n{lines}\n" for number, (method, lines, *_) in enumerate(ROUTES)
    )
    return parse_lock(HEAD + routes + TYPES)


def list_locks() -> dict[str, Lock]:
    versions = parse_lock(HEAD + VERSIONS)
    hostile = Lock(tuple(route for seed in HOSTILE for route in move_routes(seed)))
    return {
        "rows": read_rows(),
        "versions": versions,
        "shop": parse_lock(SHOP),
        "hostile": hostile,
        "names": build_named_types(),
        **{name: read_project_lock(name) for name in PROJECTS},
    }


PROJECTS = ("sample", "helpdesk", "realworld")


@cache
def read_project_lock(name: str) -> Lock:
    """Return the facts of a whole application."""
    command = ["contract", "show", "--app-dir", str(REPOSITORY / "tests-integration" / name)]
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-m", "treefold", *command],
            cwd=folder,
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=True,
        )
    return read_lock(done.stdout)


NAMES = (
    *("Client", "Call", "Ok", "Err", "Other", "Problem", "ApiError", "Place", "Socket", "Key"),
    *("AsyncClient", "Stream", "Answer", "Async", "operation", "overload", "deprecated", "httpx"),
    *("Any", "Literal", "TypedDict", "int", "str", "list", "dict", "object", "bool", "type"),
    *("Promise", "Response", "Blob", "AsyncIterable", "Array", "Record", "string", "number"),
    *("class", "None", "interface", "unknown", "Größe", "User@v2", "User_v2", "user.v2", "_x"),
    *("__init__", "XGet", "X", "ServerEvent", "FileContent", "Self", "connect"),
)


def build_named_types() -> Lock:
    """Return a lock whose types have names that mean something to a language or a client."""
    definitions: dict[str, Definition] = {}
    routes: list[RouteFacts] = []
    for name, other in zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True):
        default = Member("number", Scalar("int"), default="1")
        definitions[name] = Record((Member("other", ListType(Reference(other))), default))
        path = (Segment("x"), Segment(name))
        answers = (Answer("200", "json", Reference(name)),)
        routes += [
            RouteFacts("GET", path, answers=answers),
            RouteFacts("POST", path, bodies=(Body("json", Reference(name)),), answers=answers),
        ]
    return Lock(tuple(routes), definitions=definitions)


def move_routes(seed: int) -> list[RouteFacts]:
    """Return the routes of a hostile tree below a segment of its own."""
    lock, _ = draw_tree(seed)
    return [replace(each, path=(Segment(f"tree-{seed}"), *each.path)) for each in lock.routes]


@pytest.fixture(scope="module")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiler of TypeScript as it is published."""
    return fetch_compiler(tmp_path_factory.mktemp("typescript"))


OPTIONS = {
    "strict": True,
    "noEmit": True,
    "exactOptionalPropertyTypes": True,
    "noUncheckedIndexedAccess": True,
    "noPropertyAccessFromIndexSignature": True,
    "target": "es2022",
    "module": "nodenext",
    "lib": ["es2022", "dom", "dom.iterable"],
    "types": [],
}


def test_tsc_accepts_clients_and_refuses_wrong_calls(compiler: Path, tmp_path: Path) -> None:
    for name, lock in list_locks().items():
        write_files(tmp_path, write_typescript_client(lock, name=name))
    page = (REPOSITORY / "docs" / "guides" / "clients.md").read_text(encoding="utf-8")
    (lock,) = re.findall(r"<<'END'\n(.*?)^END$", page, re.DOTALL | re.MULTILINE)
    blocks = {block.file: block.text for block in read_blocks(page) if block.file.endswith(".ts")}
    shown = write_typescript_client(parse_lock(lock), name="shop")
    write_files(tmp_path, {f"web/src/api/{name}": text for name, text in shown.items()})
    write_files(tmp_path, {"use.ts": TYPESCRIPT, **blocks})
    settings = {"compilerOptions": OPTIONS, "include": ["**/*.ts"]}
    (tmp_path / "tsconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = run_compiler(compiler, tmp_path)
    assert (done.stdout, done.returncode) == ("", 0)
    assert list(blocks) == ["web/src/users.ts"]


def test_no_conditional_and_no_mapped_type_is_written() -> None:
    for name, lock in list_locks().items():
        text = write_typescript_client(lock, name=name)[f"{name}.d.ts"]
        code = re.sub(r'"(?:[^"\\\\]|\\\\.)*"|/\*.*?\*/', "", text, flags=re.DOTALL)
        assert not re.search(r"\bextends\s[^{]*\?|\binfer\b|\bkeyof\b|\[\w+ in ", code)


EXPECTED = {
    "no name": "reportAttributeAccessIssue",
    "wrong call": "reportCallIssue",
    "deprecated": "reportDeprecated",
    "wrong type": "reportArgumentType",
    "no body": "reportCallIssue",
    "unknown query": "reportCallIssue",
    "no place": "reportArgumentType",
    "no pages": "reportAttributeAccessIssue",
}


def write_python(folder: Path) -> dict[tuple[str, int], str]:
    """Write all clients, a program and tests; return the wrong lines, and what each is."""
    for name, lock in list_locks().items():
        write_files(folder, write_python_client(lock, name=name))
    write_files(folder, {"use.py": PYTHON, "test_use.py": TESTS})
    return {
        (file, number): line.partition("  # ")[2]
        for file, text in (("use.py", PYTHON), ("test_use.py", TESTS))
        for number, line in enumerate(text.splitlines(), 1)
        if "  # " in line
    }


def test_pyright_accepts_clients_and_refuses_wrong_calls(tmp_path: Path) -> None:
    wrong = write_python(tmp_path)
    settings = {"typeCheckingMode": "strict", "pythonVersion": "3.11"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] == 2 * len(list_locks()) + 2
    rules: dict[tuple[str, int], set[str]] = {}
    for each in report["generalDiagnostics"]:
        place = Path(each["file"]).name, each["range"]["start"]["line"] + 1
        rules.setdefault(place, set()).add(each["rule"])
    assert rules.keys() == wrong.keys(), done.stdout
    missed = {place: what for place, what in wrong.items() if EXPECTED[what] not in rules[place]}
    assert missed == {}


def test_mypy_accepts_clients_and_the_package_and_refuses_wrong_calls(tmp_path: Path) -> None:
    wrong = write_python(tmp_path)
    names = [*list_locks(), "treefold_contract"]
    packages = [word for name in names for word in ("-p", name)]
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache")]
    done = subprocess.run(
        [*command, *packages, "-m", "use", "-m", "test_use"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    found = re.findall(r"^(.+?):(\d+): error: (.*)$", done.stdout, re.MULTILINE)
    expected = {place for place, what in wrong.items() if what != "deprecated"}
    assert {(file, int(line)) for file, line, _ in found} == expected, done.stdout
