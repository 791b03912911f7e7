"""The text behind `payload=` (rulings, 'Log line'; S-82 to S-88)."""

import json
import time
from typing import Any

import pytest
from hypothesis import given, strategies as st

from treefold_logging import compact_payload, form_payload, json_payload, mask, opaque_payload
from treefold_logging._escape import CUT, PAYLOAD_LIMIT
from treefold_logging._mask import has_no_sensitive_key


@pytest.mark.parametrize(
    ("value", "payload"),
    [
        ({"name": "a", "password": "zz"}, '{"name":"a","password":"***"}'),
        (
            [{"a": [{"new_password": "x", "items": [{"X-Api-Key": "y"}]}]}],
            '[{"a":[{"new_password":"***","items":[{"X-Api-Key":"***"}]}]}]',
        ),
        ({"note": "Authorization: Bearer eyJhbGci.eyJz.c2ln"}, '{"note":"Authorization: ***"}'),
        ({"url": "postgres://u:p@h"}, '{"url":"postgres://u:***@h"}'),
        ({"dsn": "postgres://u:p@h"}, '{"dsn":"***"}'),
        ({"note": '{"password":"zz"}'}, '{"note":"{\\"password\\":\\"***\\"}"}'),
        ({"a://u:zz@h": 1}, '{"a://u:***@h":1}'),
        (None, "null"),
        ("text", '"text"'),
        ([1, 2.5, True, False, None], "[1,2.5,true,false,null]"),
        ({}, "{}"),
        ({"1": float("nan"), "2": -float("inf")}, '{"1":"<nan>","2":"<-inf>"}'),
        ({"b": b"12345", "o": object(), "s": {1}}, '{"b":"<bytes 5>","o":"<object>","s":[1]}'),
        ({("a",): 1, b"pin": 2, None: 3}, '{"<tuple>":1,"<bytes 3>":"***","null":3}'),
    ],
)
def test_s86_json_is_masked_scrubbed_and_compact(value: object, payload: str) -> None:
    assert json_payload(value) == payload


def test_s77_a_payload_is_printable_ascii() -> None:
    assert json_payload(["\n\x1b\x7f\x85\u2028\u202eé\ud800"]) == (
        '["\\n\\u001b\\u007f\\u0085\\u2028\\u202e\\u00e9\\ud800"]'
    )


def test_values_that_json_cannot_hold_are_never_shown_by_repr() -> None:
    class Telling:
        def __repr__(self) -> str:
            return "zz"

        __str__ = __repr__

    assert json_payload({"a": Telling(), "b": [Telling()]}) == '{"a":"<Telling>","b":["<Telling>"]}'


def test_s85_a_payload_is_cut_after_masking() -> None:
    value = {"a": "x" * (PAYLOAD_LIMIT - 30), "password": "zz" * 50, "b": "Bearer zzzz"}
    payload = json_payload(value)
    assert len(payload) == PAYLOAD_LIMIT
    assert payload.endswith(CUT)
    assert "zz" not in payload


def test_a_value_nested_too_deeply_for_json_is_summarised() -> None:
    value: Any = {"note": "Bearer zz"}
    for _ in range(200_000):
        value = [value]
    assert json_payload(value) == '"<nested too deeply>"'


def test_a_cycle_is_summarised() -> None:
    value: list[Any] = [float("nan")]
    value.append(value)
    assert json_payload(value) == '["<nan>","<cycle>"]'


def test_s84_fields_of_a_form_are_masked() -> None:
    assert form_payload([("name", "a"), ("tag", "x"), ("tag", "y"), ("user[pin]", "zz")]) == (
        '{"name":"a","tag":["x","y"],"user[pin]":"***"}'
    )


def test_s84_files_are_shown_by_name_size_and_type_only() -> None:
    assert form_payload([("a", "1")], [("photo", 'x"\n.png', 5120, "image/png")]) == (
        '{"a":"1","photo":{"name":"x\\"\\n.png","size":5120,"type":"image/png"}}'
    )


def test_s84_a_secret_in_a_form_is_absent_whatever_carries_it() -> None:
    payload = form_payload(
        [("secret", "zz"), ("data", '{"secret": "zz"}'), ("note", "Bearer zz")],
        [("secret", "zz.png", 1, "zz"), ("secret[a]", "zz", 1, "zz")],
    )
    assert "zz" not in payload


def test_a_form_without_fields_is_an_empty_object() -> None:
    assert form_payload([]) == "{}"


@pytest.mark.parametrize(
    ("media_type", "payload"),
    [
        ("image/png", "<image/png 5120>"),
        ("multipart/form-data; boundary=zz", "<multipart/form-data 5120>"),
        ("", "<- 5120>"),
        ("a b\n>[INFO]\x1b", "<a%20b%0A%3E[INFO]%1B 5120>"),
        ("é", "<%C3%A9 5120>"),
    ],
)
def test_s85_an_opaque_body_is_its_type_and_size(media_type: str, payload: str) -> None:
    assert opaque_payload(media_type, 5120) == payload


def test_a_long_media_type_is_cut() -> None:
    assert len(opaque_payload("a" * 10_000, 1)) < 120


def test_s88_a_body_of_many_keys_is_described_quickly() -> None:
    value = {f"key{number}": {"v": f"value {number}", "pass": "x"} for number in range(1500)}
    assert 60_000 < len(json.dumps(value)) < 80_000
    started = time.process_time()
    json_payload(value)
    assert time.process_time() - started < 0.1


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=10,
    )
)
def test_a_payload_that_is_not_cut_is_json(value: object) -> None:
    payload = json_payload(value)
    assert payload.isascii()
    assert payload.isprintable()
    if not payload.endswith(CUT):
        json.loads(payload)


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(("a", "pin", "author", "Token")), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_what_is_harmless_has_nothing_to_mask(value: Any) -> None:
    assert has_no_sensitive_key(value) == (mask(value) == value)


def test_a_container_inside_itself_is_not_harmless() -> None:
    inside: list[Any] = [1]
    inside.append(inside)

    assert not has_no_sensitive_key(inside)
    assert json_payload(inside) == '[1,"<cycle>"]'


PLAIN_TEXT = st.text(st.characters(max_codepoint=0x7F, exclude_characters='":\\'))


@given(st.dictionaries(st.sampled_from(("a", "pin", "author")), PLAIN_TEXT))
def test_compact_text_is_the_payload_or_needs_the_whole_way(fields: dict[str, str]) -> None:
    text = json.dumps(fields, separators=(",", ":"), ensure_ascii=False)
    if not text.isprintable():
        text = json.dumps({name: "" for name in fields}, separators=(",", ":"))
        fields = dict.fromkeys(fields, "")
    payload = compact_payload(text, frozenset(fields))

    assert payload is None or payload == json_payload(fields)


@pytest.mark.parametrize(
    "text",
    [
        '{"note":"Bearer abc"}',
        '{"note":"bAsIc+YWJj"}',
        '{"note":"password=zz"}',
        '{"note":"eyJhbGci.eyJz.c2ln"}',
        '{"note":"-----BEGIN KEY-----"}',
        '{"note":"\x7f"}',
        '{"note":"\u00e9"}',
    ],
)
def test_s86_compact_text_that_may_hold_a_secret_is_not_taken(text: str) -> None:
    assert compact_payload(text, {"note"}) is None


def test_s83_compact_text_with_a_sensitive_name_is_not_taken() -> None:
    assert compact_payload('{"pin":1}', {"pin"}) is None
    assert compact_payload('{"opinion":1}', {"opinion"}) == '{"opinion":1}'


def test_s84_compact_text_is_cut() -> None:
    payload = compact_payload(f'{{"a":"{"b" * PAYLOAD_LIMIT}"}}', {"a"})

    assert payload is not None
    assert len(payload) == PAYLOAD_LIMIT
    assert payload.endswith(CUT)
