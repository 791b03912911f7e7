"""Secrets inside text (rulings, 'Log line'; S-86, S-88)."""

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from treefold_logging import json_payload, scrub
from treefold_logging._scrub import (
    json_may_contain_secret,
    plain_text_may_contain_secret,
    scrub_header_values,
)

PEM = "-----BEGIN RSA PRIVATE KEY-----\nzz+zz\nzz==\n-----END RSA PRIVATE KEY-----"
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJ6eiJ9.zz-Zz_9"


@pytest.mark.parametrize(
    ("text", "scrubbed"),
    [
        ("sent Bearer zz.zz-zz~+/== to x", "sent Bearer *** to x"),
        ("bEARER  zz", "bEARER  ***"),
        ("Bearer%20zz", "Bearer%20***"),
        ("Basic dXNlcjpwYXNz end", "Basic *** end"),
        ("postgres://u:zz@h:5432/db", "postgres://u:***@h:5432/db"),
        ("redis://:zz@h/0", "redis://:***@h/0"),
        ("amqp://u:zz@zz/zz@h", "amqp://u:***@h"),
        ("http://u:12345@h", "http://u:***@h"),
        (f"key {PEM} end", "key *** end"),
        (PEM[:40], "***"),
        (f"jwt {JWT}, end", "jwt ***, end"),
        (f"two {JWT} {JWT}", "two *** ***"),
        (f"Authorization: Bearer {JWT}", "Authorization: ***"),
        ("proxy-authorization=Basic zzzz end", "proxy-authorization=*** end"),
        ("{'Authorization': 'Token zz', 'x': 1}", "{'Authorization': '***', 'x': 1}"),
        (
            'Authorization: Digest username="zz", response="zz",qop=zz\nend',
            "Authorization: ***\nend",
        ),
        ("Set-Cookie: sid=zz; Path=/; HttpOnly\nend", "Set-Cookie: ***\nend"),
        ("cookie: a=zz; b=zz", "cookie: ***"),
        ('{"Cookie": "a=zz", "x": 1}', '{"Cookie": "***", "x": 1}'),
        ("host=h password=zz dbname=d", "host=h password=*** dbname=d"),
        ("connect(db_password='z\\'z', user='u')", "connect(db_password='***', user='u')"),
        ('{"password": "z\\"z", "a": 1}', '{"password": "***", "a": 1}'),
        (r'{"a":"{\"token\":\"zz\"}"}', r'{"a":"{\"token\":\"***"}"}'),
        ("?a=1&api_key=zz&b=2", "?a=1&api_key=***&b=2"),
        (f"private_key='{PEM}'", "private_key='***'"),
    ],
)
def test_s86_a_secret_in_text_is_scrubbed(text: str, scrubbed: str) -> None:
    assert scrub(text) == scrubbed
    assert "zz" not in scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        *("", "plain text", "a=b", "author=bob", "x: y", '{"name": "bob"}', "1 + 1 = 2"),
        *("http://host:8080/a@b", "https://host/path?x=1", "mailto:bob@example.org"),
        *("Missing bearer token.", "bearer tokens, expired", "basic authentication failed"),
        *("eyJpZCI6NX0", "eyJ", "-----BEGIN", "cookies are fine", "the authorization failed"),
        "http://[::1]:80/x",
        "CORS(allow_origins=['*'], allow_credentials=True)",
        "token=None, 'secret': false",
    ],
)
def test_ordinary_text_stays(text: str) -> None:
    assert scrub(text) == text


SOURCE = Path(scrub.__code__.co_filename).read_text("utf-8")
EXAMPLES: list[tuple[str, str]] = re.findall(r"^#   (.+) -> (.+)$", SOURCE, re.MULTILINE)
"""A text and what becomes of it, from the comment above each pattern."""


def test_every_pattern_has_an_example() -> None:
    assert len(EXAMPLES) == 16


@pytest.mark.parametrize(("text", "scrubbed"), EXAMPLES)
def test_the_examples_of_the_patterns_are_true(text: str, scrubbed: str) -> None:
    assert scrub_header_values(scrub(text)) == scrubbed


@pytest.mark.parametrize("text", [text for text, _ in EXAMPLES if scrub(text) != text])
def test_each_search_for_literals_finds_the_examples(text: str) -> None:
    assert json_may_contain_secret(json.dumps([text]))
    assert ":" in text or plain_text_may_contain_secret(text)


HOSTILE = [
    *("eyJ", "eyJ.", "a.", "://a:b", "a://b:c@", "-----BEGIN A-----", "-----BEGIN ", "bearer "),
    *("bearer+", 'authorization: a b,c="', "authorization:", "cookie: ", "password=", "a-"),
    *('password\\"', 'token="\\', "Basic a", "token   ", "_", " ", "'", '"', "\\"),
]


@pytest.mark.parametrize("unit", HOSTILE)
def test_s88_hostile_text_takes_linear_time(unit: str) -> None:
    text = unit * (65_536 // len(unit)) + " = // J N eyJ cookie bearer basic authorization"
    started = time.process_time()
    scrub(text)
    assert time.process_time() - started < 0.5


@given(
    st.text(),
    st.sampled_from(
        ["Bearer {}", "a://u:{}@h", "Cookie: {}", "token={}", "'pin': '{}'", "eyJ.{}.x"]
    ),
    st.text(),
)
def test_text_around_a_secret_never_hides_it(before: str, shape: str, after: str) -> None:
    assert "Zq9Zq9" not in scrub(f"{before} {shape.format('Zq9Zq9')} {after}")


@given(st.lists(st.sampled_from([*HOSTILE, "zz", ":", "@", "x ", PEM, JWT])).map("".join))
def test_the_test_on_json_text_misses_nothing_that_scrubbing_finds(text: str) -> None:
    assert (
        json_payload({"note": text})[: len(text)]
        == json.dumps({"note": scrub(text)}, separators=(",", ":"))[: len(text)]
    )
