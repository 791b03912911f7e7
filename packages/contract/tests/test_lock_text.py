"""The text of `routes.lock`: written and read, byte for byte."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from drawn_facts import locks
from hypothesis import given

from treefold_contract import (
    Answer,
    Auth,
    Body,
    Lock,
    LockError,
    Reference,
    RouteFacts,
    Scalar,
    Segment,
    read_lock,
    write_lock,
)
from treefold_contract._text.lock_reader import parse_lock

SAMPLE = """\
treefold contract 1 rules 1
default v2
errors problem
automatic head
mount /static
version v1 stable deprecated 2026-11-01 sunset 2027-06-30 successor v2
version v2 stable
version v10 draft

GET /status
  200

WEBSOCKET /v1/chat/{room:str}
  in      json Say
  out     json Left | Said | ...
  close   4001

GET /v1/user
  query   page int >=1 = 1
  query   tag [str] alias label ?
  200     json [User]
  200     header X-Total int

DELETE /v1/user/{id:int}
  auth    bearer users:write
  guard   audit
  204
  404     problem = "/errors/missing"
  gone    v2
DELETE /v10/user/{id:int}
  204

GET /v1/user/{id:int}
  200     json User unchecked
  404     problem
  offers  etag
GET /v2/user/{id:int}
  deprecated
  opaque
  body    json User lenient ?
  limit   body 1000
  200     json User@v2
  404     problem

GET /v1/user/{id:int}/{kind}
  path    kind "a" | "b"
  200     file

POST /v2/word
  body    json Word
  204

type Left
  at      str datetime

type Said
  text    str

type Say closed
  text    str len 1..500

type User in
  id      int
  mail    str email ?
type User out
  id      int
type User@v2
  id      int
  role    "admin" | "member" | ... = "member"

type Word = str match "^a"
"""


def test_a_lock_is_written_as_it_was_read() -> None:
    assert write_lock(read_lock(SAMPLE)) == SAMPLE


@given(locks())
def test_the_text_of_a_lock_is_stable(lock: Lock) -> None:
    text = write_lock(lock)
    again = parse_lock(text)
    assert write_lock(again) == text
    assert {route.key for route in again.routes} == {route.key for route in lock.routes}
    assert text.endswith("\n")
    assert [line for line in text.split("\n") if line != line.rstrip()] == []


def test_the_order_of_facts_changes_no_byte() -> None:
    lock = read_lock(SAMPLE)
    shuffled = list(lock.routes)
    random.Random(7).shuffle(shuffled)
    definitions = dict(reversed([*lock.definitions.items()]))
    other = replace(
        lock,
        routes=tuple(replace(route, answers=route.answers[::-1]) for route in shuffled),
        versions=lock.versions[::-1],
        definitions=definitions,
    )
    assert write_lock(other) == write_lock(lock)


def test_a_version_is_read_whole() -> None:
    lock = read_lock(SAMPLE)
    titles = [route.title for route in lock.routes if route.version == "v10"]
    assert titles == [
        "WEBSOCKET /v10/chat/{room}",
        "GET /v10/user",
        "DELETE /v10/user/{id}",
        "GET /v10/user/{id}",
        "GET /v10/user/{id}/{kind}",
        "POST /v10/word",
    ]
    (changed,) = [route for route in lock.routes if route.title == "GET /v10/user/{id}"]
    assert changed.answers[0].type == Reference("User@v2")
    # the lines of what it has from a version before are those of that version
    lines = SAMPLE.splitlines()
    assert lines[lock.lines["GET /v10/user"] - 1] == "GET /v1/user"
    assert lines[lock.lines["GET /v10/user/{id}"] - 1] == "GET /v2/user/{id:int}"
    assert lines[lock.lines["DELETE /v10/user/{id}"] - 1] == "DELETE /v10/user/{id:int}"


def test_a_version_has_no_route_that_is_gone() -> None:
    titles = {route.title for route in read_lock(SAMPLE).routes}
    assert "DELETE /v1/user/{id}" in titles
    assert "DELETE /v2/user/{id}" not in titles


def test_one_changed_answer_of_a_version_is_one_block() -> None:
    lock = read_lock(SAMPLE)
    routes = [
        replace(route, answers=(Answer("200", "json", Scalar("int")),))
        if route.title == "GET /v10/user"
        else route
        for route in lock.routes
    ]
    before = write_lock(lock).splitlines()
    after = write_lock(replace(lock, routes=tuple(routes))).splitlines()
    added = [line for line in after if after.count(line) > before.count(line)]
    assert "GET /v10/user" in added
    assert len(after) - len(before) == 5


def test_segments_with_signs_of_paths_are_encoded() -> None:
    path = (Segment("a b"), Segment("{x}"), Segment("50%"))
    text = write_lock(Lock(routes=(RouteFacts("GET", path),)))
    assert "GET /a%20b/%7Bx%7D/50%25\n" in text
    assert read_lock(text).routes[0].path == path


@pytest.mark.parametrize(
    "route",
    [
        RouteFacts(
            "GET", (Segment("x"),), bodies=(Body("text/html; charset=utf-8", Scalar("str")),)
        ),
        RouteFacts("GET", (Segment("x"),), auth=(Auth("two words"),)),
        RouteFacts("GET", (Segment("x"),), auth=(Auth(""),)),
    ],
)
def test_a_word_with_blanks_is_refused(route: RouteFacts) -> None:
    with pytest.raises(ValueError, match="Word of a lock must have no blanks, got "):
        write_lock(Lock(routes=(route,)))


HEAD = "treefold contract 1 rules 1\n"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Lock must begin with 'treefold contract 1 rules N', got ''"),
        ("treefold contract 2 rules 1\n", "Lock must begin with 'treefold contract 1 rules N'"),
        (f"{HEAD}color red\n", "Line 2 of the lock is not valid: Setting must be a known word"),
        (f"{HEAD}\nGET /x\n  200\n  20\n", "Line 5 of the lock is not valid: Fact must begin with"),
        (f"{HEAD}\nGET /x\n  query   a itn\n", "Line 4 of the lock is not valid: Type must be of"),
        (f"{HEAD}\nGET x\n", "Line 3 of the lock is not valid: Path must start with '/', got 'x'"),
        (f"{HEAD}\nwhat\n", "Line 3 of the lock is not valid: Block must be a route or a type"),
        (f"{HEAD}\nv2 = v1\n", "Line 3 of the lock is not valid: Block must be a route or a type"),
        (f"{HEAD}\nGET /x\n\nGET /x\n", "Line 5 of the lock is not valid: Route 'GET /x' must be"),
        (f"{HEAD}\ntype A\ntype A\n", "Line 4 of the lock is not valid: Type 'A' must be defined"),
        (f"{HEAD}\n<<<<<<< HEAD\n", "Line 3 of the lock is a mark of a merge; resolve the"),
        (f"{HEAD}version v1 old\n", "Line 2 of the lock is not valid: Version must be 'stable'"),
    ],
)
def test_a_text_that_is_no_lock_is_refused_with_its_line(text: str, message: str) -> None:
    with pytest.raises(LockError) as raised:
        read_lock(text)
    assert str(raised.value).startswith(message)


VERSIONS = f"{HEAD}version v1 stable\nversion v2 stable\n"
MERGED = {
    "blocks in another order": (
        f"{HEAD}\nGET /b\n  204\n\nGET /a\n  204\n",
        "Line 3 of the lock must be 'GET /a', got 'GET /b'",
    ),
    "facts in another order": (
        f"{HEAD}\nGET /a\n  404     problem\n  204\n",
        "Line 4 of the lock must be '  204', got '  404     problem'",
    ),
    "members in another order": (
        f"{HEAD}\nGET /a\n  200     json A\n\ntype A\n  b       int\n  a       int\n",
        "Line 7 of the lock must be '  a       int', got '  b       int'",
    ),
    "a fact twice": (
        f"{HEAD}\nGET /a\n  auth    key\n  operation one\n  operation two\n",
        "Line 4 of the lock must be '  operation one', got '  auth    key'",
    ),
    "a version that repeats what it has": (
        f"{VERSIONS}\nGET /v1/a\n  204\nGET /v2/a\n  204\n",
        "Line 7 of the lock must be '', got 'GET /v2/a'",
    ),
    "a route that was gone before": (
        f"{VERSIONS}\nGET /v2/a\n  204\n  gone    v1\n",
        "Line 7 of the lock must be '', got '  gone    v1'",
    ),
    "a version that is not known": (
        f"{VERSIONS}\nGET /v1/a\n  204\n  gone    v3\n",
        "Line 7 of the lock must be '', got '  gone    v3'",
    ),
    "versions of one route apart": (
        f"{VERSIONS}\nGET /v1/a\n  204\n\nGET /v1/b\n  204\n\nGET /v2/a\n  205\n",
        "Line 7 of the lock must be 'GET /v2/a', got ''",
    ),
    "no blank line": (
        f"{HEAD}\nGET /a\n  200     json A\ntype A\n",
        "Line 5 of the lock must be '', got 'type A'",
    ),
    "no end of the last line": (
        f"{HEAD}\nGET /a",
        "Line 4 of the lock must be '', got the end",
    ),
    "a type that is not defined": (
        f"{HEAD}\nGET /a\n  200     json A\n\ntype A\n  b       [B]\n",
        "Line 6 of the lock begins a block that names type 'B', which is not defined",
    ),
    "a type of a route that is not defined": (
        f"{HEAD}\nGET /a\n  204\n\nGET /b\n  200     json A\n",
        "Line 6 of the lock begins a block that names type 'A', which is not defined",
    ),
    "a type that nothing uses": (
        f"{HEAD}\nGET /a\n  204\n\ntype A\n  a       A\n",
        "Line 6 of the lock defines a type that nothing uses",
    ),
    "errors of a type that is not defined": (
        f"{HEAD}errors Oops\n",
        "Line 1 of the lock begins a block that names type 'Oops', which is not defined",
    ),
}


@pytest.mark.parametrize("name", MERGED)
def test_a_lock_in_another_form_than_it_is_written_in_is_refused(name: str) -> None:
    text, message = MERGED[name]
    with pytest.raises(LockError) as raised:
        read_lock(text)
    assert str(raised.value) == f"{message}; run 'treefold contract lock'"


@pytest.mark.parametrize("errors", ["problem", "other", "Oops"])
def test_types_of_errors_are_in_use(errors: str) -> None:
    text = f"{HEAD}errors {errors}\n"
    if errors != "problem":
        text += "\ntype Oops\n  title   str\n"
    assert write_lock(read_lock(text)) == text
