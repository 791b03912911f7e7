"""What clients say about routes: inputs, data, results and types, in TypeScript and in Python."""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from written_clients import read_text_lock

from treefold_contract import (
    Lock,
    LockError,
    RouteWords,
    write_python_client,
    write_typescript_client,
)

TYPES = """
type Both
  a       int = 1
type Left
  kind    "left"
type Loop = Loop | null
type Page
  items   [Said]
  next    str | null
type Role = "admin" | "member" | ...
type Said
  kind    "said"
  order-line [Said] ?
type Upload closed
  file    file
  title   str
"""


def write_stub(lock: Lock) -> str:
    return write_python_client(lock)["client/__init__.pyi"]


def write_types(lock: Lock) -> str:
    return write_typescript_client(lock)["client.d.ts"]


def find_line(text: str, start: str) -> str:
    """Return the rest of the line of a client that begins with a text."""
    (found,) = re.findall(rf"^ +(?:readonly )?{re.escape(start)}(.*)$", text, re.MULTILINE)
    return found


ROUTES = [
    (
        "DELETE",
        "  204\n  404     problem",
        "OptionalCall<NoInputs, undefined, Ok<204, undefined> | Err<404, Problem> | Other>",
        "(self) -> Answer[None, Ok[Literal[204], None] | Err[Literal[404], Problem] | Other]",
    ),
    (
        "GET",
        "  query   page int >=1 = 1\n  query   x-y str\n  query   tag [str] ?\n"
        "  200     json [Said]",
        "Call<{ query: { page?: number; tag?: string[]; 'x-y': string } }, Said[], "
        "Ok<200, Said[]> | Err<422, Problem> | Other>",
        "(self, *, query: XGetQuery, page: int = 1, tag: list[str] = ...) -> Answer[list[Said], "
        "Ok[Literal[200], list[Said]] | Err[Literal[422], Problem] | Other]",
    ),
    (
        "GET",
        "  query   after str ?\n  200     json Page",
        "OptionalListCall<{ query?: { after?: string } }, Page, "
        "Ok<200, Page> | Err<422, Problem> | Other>",
        "(self, *, after: str = ...) -> Answer[Page, "
        "Ok[Literal[200], Page] | Err[Literal[422], Problem] | Other]",
    ),
    (
        "POST",
        "  header  X-Trace str\n  cookie  seen bool ?\n  body    json Both\n  201     json Both",
        "Call<{ headers?: { 'X-Trace': string }; cookies?: { seen?: boolean }; json: Both_in }, "
        "Both, Ok<201, Both> | Err<422, Problem> | Other>",
        "(self, *, json: Both_in, headers: XPostHeaders = ..., cookies: XPostCookies = ...) -> "
        "Answer[Both, Ok[Literal[201], Both] | Err[Literal[422], Problem] | Other]",
    ),
    (
        "POST",
        "  file    avatar file\n  body    multipart Upload\n  200     text/plain str",
        "Call<{ multipart: Upload & { avatar: Blob } }, string, "
        "Ok<200, string> | Err<422, Problem> | Other>",
        "(self, *, multipart: Upload, files: XPostFiles) -> "
        "Answer[str, Ok[Literal[200], str] | Err[Literal[422], Problem] | Other]",
    ),
    (
        "PUT",
        "  body    json Said ?\n  body    form Said\n  body    text/csv str\n"
        "  200     application/pdf",
        "OptionalCall<{ form: Said } | { json?: Said } | { content: BodyInit; type: 'text/csv' }, "
        "Blob, Ok<200, Blob> | Err<422, Problem> | Other>",
        "(self, *, form: Said = ..., json: Said = ..., content: bytes | str = ..., "
        "content_type: Literal['text/csv'] = ...) -> "
        "Answer[bytes, Ok[Literal[200], bytes] | Err[Literal[422], Problem] | Other]",
    ),
    (
        "PUT",
        "  body    bytes bytes\n  200     json any\n  201     file\n  default json Said",
        "Call<{ content: BodyInit; type?: string }, unknown, Ok<200, unknown> | Ok<201, unknown> | "
        "Err<500 | 502 | 503 | 504, Said>>",
        "(self, *, content: bytes | str, content_type: str = ...) -> Answer[Any, "
        "Ok[Literal[200], Any] | Ok[Literal[201], Any] | Err[Literal[500, 502, 503, 504], Said]]",
    ),
    (
        "GET",
        "  2XX     any\n  4XX     json Said",
        "OptionalCall<NoInputs, unknown, Ok<number, unknown> | Err<number, Said> | Other>",
        "(self) -> Answer[Any, Ok[int, Any] | Err[int, Said] | Other]",
    ),
    (
        "POST",
        "  file    avatar file\n  body    multipart any\n  204",
        "Call<{ multipart: unknown & { avatar: Blob } }, undefined, "
        "Ok<204, undefined> | Err<422, Problem> | Other>",
        "(self, *, files: XPostFiles, multipart: Any = ...) -> "
        "Answer[None, Ok[Literal[204], None] | Err[Literal[422], Problem] | Other]",
    ),
    (
        "GET",
        "  opaque\n  200     ndjson Said\n  502     json {str: (int, str)}",
        "OptionalCall<AnyInputs, AsyncIterable<Said>, Ok<200, AsyncIterable<Said>> | "
        "Err<502, { [key: string]: [number, string] }> | Err<500 | 503 | 504, unknown>>",
        "(self, /, **inputs: Any) -> Answer[Stream[Said], Ok[Literal[200], Stream[Said]] | "
        "Err[Literal[502], dict[str, list[int | str]]] | Err[Literal[500, 503, 504], Any]]",
    ),
    (
        "GET",
        "  200     events\n  200     event said Said\n  200     event left Left",
        "OptionalCall<NoInputs, "
        "AsyncIterable<ServerEvent<'left', Left> | ServerEvent<'said', Said>>, Ok<200, "
        "AsyncIterable<ServerEvent<'left', Left> | ServerEvent<'said', Said>>> | Other>",
        "(self) -> Answer[Stream[ServerEvent[Literal['left'], Left] | "
        "ServerEvent[Literal['said'], Said]], Ok[Literal[200], Stream[ServerEvent[Literal['left'], "
        "Left] | ServerEvent[Literal['said'], Said]]] | Other]",
    ),
    (
        "WEBSOCKET",
        "  query   since int ?\n  in      json Said\n  out     json Said | Left | ...\n"
        "  subprotocol chat",
        "OptionalOpenSocket<{ query?: { since?: number }; protocols?: 'chat' | ('chat')[] }, Said, "
        "Said | Left | { kind: Unlisted }>",
        "(self, *, since: int = ..., protocols: list[Literal['chat']] = ...) -> "
        "Messages[Said, Said | Left]",
    ),
    (
        "WEBSOCKET",
        "  in      text str\n  out     text str\n  out     bytes bytes",
        "OpenSocket<{ text: true }, string, ArrayBuffer | string>",
        "(self, *, plain: Literal[True]) -> Messages[str, bytes | str]",
    ),
]


@pytest.mark.parametrize(("method", "lines", "typescript", "python"), ROUTES)
def test_an_operation_has_its_inputs_data_and_results(
    method: str, lines: str, typescript: str, python: str
) -> None:
    lock = read_text_lock(f"\n{method} /x\n{lines}\n{TYPES}")
    name = "socket" if method == "WEBSOCKET" else method.lower()
    written = find_line(write_types(lock), f"{name}: ")
    assert written.replace('"', "'") == f"{typescript};"
    written = find_line(write_stub(lock), f"def {name}")
    assert written.replace('"', "'") == f"{python}: ..."


@pytest.mark.parametrize(
    ("written", "typescript", "python"),
    [
        ("str email", "string", "str"),
        ("int >=1 | null", "number | null", "int | None"),
        ("float", "number", "float"),
        ("bool", "boolean", "bool"),
        ("bytes base64", "string", "str"),
        ("any", "unknown", "Any"),
        ('foreign "x.Y"', "unknown", "Any"),
        ('1 | 2 | "a"', '1 | 2 | "a"', 'Literal[1, 2, "a"]'),
        ('"a" | "b" | ...', '"a" | "b" | (string & {})', 'Literal["a", "b"] | str'),
        ("1.5 | 2", "1.5 | 2", "Literal[2] | float"),
        ("true", "true", "Literal[True]"),
        ('"\\"\\u2028"', '"\\"\u2028"', 'Literal["\\"\u2028"]'),
        ("[int | null]", "(number | null)[]", "list[int | None]"),
        ("[[str]]", "string[][]", "list[list[str]]"),
        ("(int, str)", "[number, string]", "list[int | str]"),
        ("()", "[]", "list[Any]"),
        ("{str: [int]}", "{ [key: string]: number[] }", "dict[str, list[int]]"),
        ("Role", "Role", "Role"),
        ("Nowhere", "Nowhere", "Nowhere"),
        ("Said | Left tag kind", "Said | Left", "Said | Left"),
        ("Said | Left | ... tag kind", "Said | Left | { kind: Unlisted }", "Said | Left"),
        ("Said | int | ...", "Said | number | Unlisted", "Said | int"),
    ],
)
def test_a_type_is_written_out(written: str, typescript: str, python: str) -> None:
    lock = read_text_lock(f"\nGET /x\n  200     json {written}\n{TYPES}")
    assert f"OptionalCall<NoInputs, {typescript}, Ok<200, " in write_types(lock)
    assert f"-> Answer[{python}, Ok[Literal[200], " in write_stub(lock)


def test_a_view_that_only_refuses_more_is_no_type_of_its_own() -> None:
    lock = read_text_lock("""
POST /x
  body    json Both
  201     json Both

type Both in closed
  a       int lax
type Both out
  a       int
""")
    assert "Call<{ json: Both }, Both, " in write_types(lock)
    assert "(self, *, json: Both) -> Answer[Both, " in write_stub(lock)


def test_definitions_are_interfaces_and_typed_dicts() -> None:
    lock = read_text_lock(f"""
GET /x
  200     json (Both, Loop, Role, Said, Upload)

POST /x
  body    json Both
{TYPES}""")
    types, stub = write_types(lock), write_stub(lock)
    for text in (
        "export interface Both {\n  a: number;\n}",
        "export interface Both_in {\n  a?: number;\n}",
        "export type Loop = unknown;",
        'export type Role = "admin" | "member" | (string & {});',
        'export interface Said {\n  kind: "said";\n  "order-line"?: Said[];\n}',
        "export interface Upload {\n  file: Blob;\n  title: string;\n}",
    ):
        assert text in types
    for text in (
        "class Both(TypedDict):\n    a: int\n",
        "class Both_in(TypedDict):\n    a: NotRequired[int]\n",
        "Loop: TypeAlias = Any\n",
        'Role: TypeAlias = Literal["admin", "member"] | str\n',
        'Said = TypedDict("Said", {"kind": Literal["said"], '
        '"order-line": NotRequired[list[Said]]})',
        "class Upload(TypedDict):\n    file: FileContent\n    title: str\n",
    ):
        assert text in stub
    assert "Page" not in types.partition("connect(")[2]  # no route reaches it


VERSIONS = """default latest
version v1 stable deprecated 2026-11-01 sunset 2027-06-30 successor v2
version v2 stable

GET /health
  204

DELETE /v1/user/{id:int}
  deprecated 2026-12-01
  204
  gone    v2

GET /v1/user
  204
"""


def test_versions_are_places_and_the_default_one_has_no_prefix() -> None:
    lock = read_text_lock(VERSIONS)
    types = write_types(lock)
    assert "Client {\n  readonly health: Health;\n  readonly user: User;\n" in types
    assert "export interface User {\n  /** GET /v2/user */" in types
    stub = write_stub(lock)
    assert "class Client(Place[_Mode]):\n    health: Health[_Mode]\n    user: User[_Mode]\n" in stub


def test_one_version_is_the_whole_client() -> None:
    lock = read_text_lock(VERSIONS)
    types = write_typescript_client(lock, version="v2")["client.d.ts"]
    assert "v1" not in types.partition("connect(")[2]
    assert "readonly v2: V2;" in types
    with pytest.raises(LockError, match=r"one of the lock \(v1, v2\), got 'v3'"):
        write_python_client(lock, version="v3")


def test_a_deprecation_is_marked_with_its_dates() -> None:
    lock = read_text_lock(VERSIONS)
    types = write_types(lock)
    assert "@deprecated since 2026-11-01, sunset 2027-06-30; use v2\n" in types
    assert "@deprecated since 2026-12-01\n" in types
    assert types.count("@deprecated") == 2
    stub = write_stub(lock)
    for text in ("since 2026-11-01, sunset 2027-06-30; use v2", "since 2026-12-01"):
        assert stub.count(f'@deprecated("{text}")') == 2  # one for each mode
    assert "    @deprecated_1\n    def get(self)" in stub


def test_words_are_shown_by_editors() -> None:
    lock = read_text_lock("\nGET /x\n  204\n")
    words = {"GET /x": RouteWords("List */ it", 'Say """hi""" \\ \n\n  more', "use y")}
    types = write_typescript_client(lock, words)["client.d.ts"]
    assert (
        "  /**\n   * GET /x\n   *\n   * List *\\/ it\n   *\n"
        '   * Say """hi""" \\\n   *\n   *   more\n   *\n   * @deprecated use y\n   */\n' in types
    )
    stub = write_python_client(lock, words)["client/__init__.pyi"]
    compile(stub, "stub", "exec")
    assert '        """GET /x\n\n        List */ it\n' in stub
    assert '@deprecated("use y")' in stub


def test_equal_facts_are_equal_bytes() -> None:
    lock = read_text_lock(VERSIONS + TYPES)
    for seed in range(20):
        drawn = random.Random(seed)
        routes, names = list(lock.routes), list(lock.definitions)
        drawn.shuffle(routes)
        drawn.shuffle(names)
        definitions = {name: lock.definitions[name] for name in names}
        other = replace(lock, routes=tuple(routes), definitions=definitions)
        assert write_typescript_client(other) == write_typescript_client(lock)
        assert write_python_client(other) == write_python_client(lock)


@pytest.mark.parametrize("seed", ["1", "2", "3"])
def test_the_hash_seed_changes_no_byte(seed: str, tmp_path: Path) -> None:
    routes = "".join(
        f"\n{method} /x{number}\n{lines}\n" for number, (method, lines, *_) in enumerate(ROUTES)
    )
    text = "treefold contract 1 rules 1\n" + routes + TYPES
    (tmp_path / "routes.lock").write_text(text, encoding="utf-8")
    code = (
        "import hashlib, treefold_contract as t\n"
        "from treefold_contract._text.lock_reader import parse_lock\n"
        "lock = parse_lock(open('routes.lock', encoding='utf-8').read())\n"
        "files = (t.write_typescript_client(lock), t.write_python_client(lock))\n"
        "print(hashlib.sha256(repr(files).encode()).hexdigest())"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", code],
            cwd=tmp_path,
            env={**os.environ, "PYTHONHASHSEED": each},
            capture_output=True,
            check=True,
        ).stdout
        for each in (seed, "0")
    }
    assert len(found) == 1


Write = Callable[..., dict[str, str]]


@pytest.mark.parametrize(
    ("write", "name", "message"),
    [
        (write_typescript_client, "a/b", "must be letters, digits, '-' and '_', got 'a/b'"),
        (write_typescript_client, "", "must be letters, digits, '-' and '_', got ''"),
        (write_python_client, "a-b", "in Python must be one of a module, got 'a-b'"),
        (write_python_client, "class", "in Python must be one of a module, got 'class'"),
    ],
)
def test_a_name_that_is_none_of_a_file_is_refused(write: Write, name: str, message: str) -> None:
    with pytest.raises(LockError, match=re.escape(message)):
        write(Lock(), name=name)
