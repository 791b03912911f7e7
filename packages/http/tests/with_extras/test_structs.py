"""Structs whose members are all required: read in one step, and refused like any other body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given, strategies as st

from treefold_http._errors import BadRequest, UnprocessableEntity
from treefold_http._json import loads
from treefold_http._models import model_decoder
from treefold_http._structs import required_names

if TYPE_CHECKING:
    from collections.abc import Callable

    from packages.http.tests.conftest import Answer, Lines

    from treefold_http import Application


class Place(msgspec.Struct):
    city: str
    zip: str


class Person(msgspec.Struct, rename={"mail": "e-mail"}):
    name: Annotated[str, msgspec.Meta(max_length=20)]
    mail: str | None
    tags: list[str]
    home: Place


class Optional(msgspec.Struct):
    name: str
    age: int = 0


class Tagged(msgspec.Struct, tag=True):
    name: str


class Row(msgspec.Struct, array_like=True):
    name: str


class Tree(msgspec.Struct):
    children: list[Tree]


class Loose(msgspec.Struct):
    extra: dict[str, int]


class Choice(msgspec.Struct):
    kind: Literal["a", "b"]
    place: Place | None


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Place, ["city", "zip"]),
        (Person, ["name", "e-mail", "tags", "home", "city", "zip"]),
        *[(kind, None) for kind in (Optional, Tagged, Row, Tree, Loose, Choice, list[Place], int)],
    ],
)
def test_names_are_known_where_every_member_is_required(kind: Any, names: Any) -> None:
    assert required_names(kind) == names


NAMES = st.sampled_from(("name", "e-mail", "tags", "home", "city", "other"))
VALUES = st.sampled_from(
    (
        *('"a"', '"a:b"', '"\\u003a"', '"\\ud800"', "null", "1", "NaN", '["a"]', '{"a":1,"a":2}'),
        *('{"city":"c","zip":"z"}', '{"city":"c","city":"d"}', '{"zip":":"}'),
    )
)
GOOD = {"name": '"a"', "e-mail": "null", "tags": "[]", "home": '{"city":"c","zip":"z"}'}


@given(st.dictionaries(NAMES, VALUES, max_size=3), st.lists(st.tuples(NAMES, VALUES), max_size=2))
def test_the_short_way_takes_only_what_the_long_way_takes(
    changed: dict[str, str], repeated: list[tuple[str, str]]
) -> None:
    members = [*{**GOOD, **changed}.items(), *repeated]
    body = b"{%s}" % ", ".join([f'"{name}": {value}' for name, value in members]).encode()
    decoder = model_decoder(Person)
    assert decoder is not None
    assert decoder.quick is not None
    quick = decoder.quick(body)

    try:
        whole = decoder.decode(body, loads(body))
    except (BadRequest, UnprocessableEntity):
        whole = None
    assert quick in (None, whole)


def test_the_short_way_is_taken() -> None:
    decoder = model_decoder(Place)

    assert decoder is not None
    assert decoder.quick is not None
    assert decoder.quick(b'{"city": "c", "zip": "z"}') == Place("c", "z")


HANDLER = """
from msgspec import Struct

class Login(Struct):
    name: str
    pin: str

class Note(Struct):
    name: str
    text: str

async def handler(item: Login | None = None):
    return {}
"""


@pytest.mark.parametrize(
    ("kind", "body", "payload"),
    [
        ("Login", b'{"name": "a", "pin": "1234"}', '{"name":"a","pin":"***"}'),
        ("Note", b'{"name": "a", "text": "b c"}', '{"name":"a","text":"b c"}'),
        ("Note", b'{"name": "a", "text": "Bearer abc"}', '{"name":"a","text":"Bearer ***"}'),
        ("Note", '{"name": "a", "text": "é"}'.encode(), '{"name":"a","text":"\\u00e9"}'),
        ("Note", b'{"name": "a", "text": "x://u:zz@h"}', '{"name":"a","text":"x://u:***@h"}'),
    ],
)
def test_s86_the_payload_of_a_struct_is_masked(
    serving: Callable[..., Application],
    ask: Callable[..., Answer],
    lines: Lines,
    kind: str,
    body: bytes,
    payload: str,
) -> None:
    app = serving(HANDLER.replace("Login | None = None", kind), "Api/v1/X/Post.py")
    headers = [("content-type", "application/json")]
    answer = ask(app, "POST", "/v1/x", chunks=[body], headers=headers)
    (line,) = [text for text in lines.texts() if text.startswith("POST")]

    assert answer.status == 200
    assert line.endswith(f"payload={payload}")
