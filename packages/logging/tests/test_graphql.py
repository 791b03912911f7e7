"""GraphQL requests in the log: arguments and variables with a sensitive name show no value."""

import json
import time
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, strategies as st

from treefold_logging import form_payload, json_payload, request_target, scrub

DOCUMENTS = [
    ('mutation { login(password: "x") { id } }', "mutation { login(password: ***) { id } }"),
    ('{ login(user: "ann", pin: 1234) { id } }', '{ login(user: "ann", pin: ***) { id } }'),
    ('{ a(input: {password: "x", n: 1}) { id } }', "{ a(input: {password: ***, n: 1}) { id } }"),
    ('{ a(auth: {a: {b: "x"}, c: ["y"]}, n: 1) { id } }', "{ a(auth: ***, n: 1) { id } }"),
    ('{ a(token: [["x"], "y"] n: 1) { id } }', "{ a(token: *** n: 1) { id } }"),
    ('{ a(password: """x"y }z""", n: 1) { id } }', "{ a(password: ***, n: 1) { id } }"),
    ('{ a(password: "x\\"y}", n: 1) { id } }', "{ a(password: ***, n: 1) { id } }"),
    ('{ a(password\n  :\n  "x") { id } }', "{ a(password\n  :\n  ***) { id } }"),
    ("{ a(otp: -1.5e3) { id } }", "{ a(otp: ***) { id } }"),
    (
        'mutation($password: String! = "x") { a(p: $password) }',
        "mutation($password: String! = ***) { a(p: $password) }",
    ),
    ('{ a(password: "never closed', "{ a(password: ***"),
    ("{ a(auth: {a: [1, 2", "{ a(auth: ***"),
]


@pytest.mark.parametrize(("document", "shown"), DOCUMENTS)
def test_s86_literal_values_of_sensitive_arguments_are_masked(document: str, shown: str) -> None:
    assert scrub(document) == shown
    assert json.loads(json_payload({"query": document})) == {"query": shown}
    assert json.loads(form_payload([("query", document)])) == {"query": shown}


@pytest.mark.parametrize(
    "document",
    [
        "{ me { token: accessToken password } }",
        "mutation($password: String!) { login(password: $password) { id } }",
        'query { author(name: "ann", first: 10) { id } }',
        "{ a(secret: true, token: null, auth: ADMIN) { id } }",
        'password: "is missing"',
    ],
)
def test_a_document_without_a_literal_secret_is_shown(document: str) -> None:
    assert json.loads(json_payload({"query": document})) == {"query": document}


def test_s86_a_document_in_the_query_string_is_masked() -> None:
    document = quote('mutation { login(password: "x") { id } }')
    assert request_target(b"/graphql", f"query={document}".encode()) == "/graphql?query=***"


def test_s86_a_document_in_a_text_of_json_is_masked() -> None:
    operations = json.dumps({"query": 'mutation { login(password: "s3cret") { id } }'})
    assert "s3cret" not in json_payload({"operations": operations})


QUERY = "mutation($p: String!, $n: Int) { login(password: $p, first: $n) { id } }"


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (
            {"query": QUERY, "variables": {"p": "x", "n": 1}},
            {"query": QUERY, "variables": {"p": "***", "n": 1}},
        ),
        (
            [{"query": QUERY, "variables": {"p": {"a": 1}}}, {"query": "{ a }"}],
            [{"query": QUERY, "variables": {"p": "***"}}, {"query": "{ a }"}],
        ),
        (
            {"query": "{ a(b: $password) }", "variables": {"password": "x", "p": 1}},
            {"query": "{ a(b: $password) }", "variables": {"password": "***", "p": 1}},
        ),
        ({"query": "shoes $5", "variables": None}, {"query": "shoes $5", "variables": None}),
    ],
)
def test_s86_variables_of_sensitive_arguments_are_masked(body: Any, shown: Any) -> None:
    given_before = json.dumps(body)
    assert json.loads(json_payload(body)) == shown
    assert json.dumps(body) == given_before


PIECES = [
    "{",
    "}",
    "(",
    ")",
    "[",
    "]",
    '"',
    '"""',
    "\\",
    ":",
    "$",
    "\n",
    "pin",
    "token: ",
    "= ",
    "1",
]


@given(st.lists(st.sampled_from(PIECES)).map("".join))
def test_what_scrubbing_finds_is_masked_in_a_payload_too(text: str) -> None:
    assert json.loads(json_payload({"note": text})) == {"note": scrub(text)}


@pytest.mark.parametrize("piece", [*PIECES, "a:", "pin:", "pin:[", 'pin:"', "$pin:a=", "pin:{a:"])
def test_s88_hostile_documents_take_linear_time(piece: str) -> None:
    text = "{ a " + piece * (65_536 // len(piece))
    started = time.process_time()
    scrub(text)
    assert time.process_time() - started < 0.5
