"""Structs whose members are all required: read in one step, and refused like any other body."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec
import pydantic
import pytest
from hypothesis import given, strategies as st

from treefold_http._json.json import loads
from treefold_http._types.decode import build_model_decoder
from treefold_http._types.member_names import list_required_names
from treefold_http._types.read import parse_annotation
from treefold_http._wire.errors import BadRequest, UnprocessableEntity

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
    assert list_required_names(parse_annotation(kind)) == names


class Address(pydantic.BaseModel):
    city: str = pydantic.Field(alias="town", min_length=1)
    zip: int | None


class User(pydantic.BaseModel):
    name: Annotated[str, pydantic.BeforeValidator(str.strip)]
    scores: list[float]
    home: Address


class Filled(pydantic.BaseModel):
    name: str

    @pydantic.model_validator(mode="before")
    @classmethod
    def fill(cls, data: Any) -> Any:
        return {"name": "a", **data}


class Parsed(pydantic.BaseModel):
    home: Annotated[Address, pydantic.BeforeValidator(lambda text: {"town": text, "zip": 1})]


class Nested(pydantic.BaseModel):
    inner: Filled


class Defaulted(pydantic.BaseModel):
    name: str = "a"


class Either(pydantic.BaseModel):
    name: str = pydantic.Field(validation_alias=pydantic.AliasChoices("a", "b"))


class Named(pydantic.BaseModel, populate_by_name=True):
    name: str = pydantic.Field(alias="n")


class Root(pydantic.RootModel[list[int]]): ...


UNKNOWN = (Filled, Parsed, Nested, Defaulted, Either, Named, Root)


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (Address, ["town", "zip"]),
        (User, ["name", "scores", "home", "town", "zip"]),
        *[(kind, None) for kind in UNKNOWN],
    ],
)
def test_names_of_a_model_are_known_where_no_code_of_its_own_adds_some(
    kind: Any, names: Any
) -> None:
    assert list_required_names(parse_annotation(kind)) == names


@pytest.mark.parametrize(
    "body",
    [
        b'{"name":"a","scores":[NaN],"home":{"town":"c","zip":1}}',
        b'{"name":"a","scores":[-Infinity],"home":{"town":"c","zip":1}}',
        b'{"name":"a","scores":[1],"home":{"town":"c"},"home":{"town":"c"}}',
        b'{"name":"a","scores":[1],"scores":[1],"home":{"town":"c"}}',
        b'{"name":"a","scores":[1],"home":{"town":"a:b","zip":1}}',
        b'{"name":"\\ud800","scores":[1],"home":{"town":"c","zip":1}}',
        b'{"name":"\xff","scores":[1],"home":{"town":"c","zip":1}}',
    ],
)
def test_s31_what_a_model_would_take_and_json_forbids_goes_the_long_way(body: bytes) -> None:
    decoder = build_model_decoder(parse_annotation(User))

    assert decoder is not None
    assert decoder.quick is not None
    assert decoder.quick.decode(body) is None


def test_a_model_is_read_the_short_way() -> None:
    decoder = build_model_decoder(parse_annotation(User))

    assert decoder is not None
    assert decoder.quick is not None
    found = decoder.quick.decode(b'{"name":" a","scores":[1],"home":{"town":"c","zip":null}}')
    assert found.model_dump() == {"name": "a", "scores": [1], "home": {"city": "c", "zip": None}}


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
    decoder = build_model_decoder(parse_annotation(Person))
    assert decoder is not None
    assert decoder.quick is not None
    quick = decoder.quick.decode(body)

    try:
        whole = decoder.decode(body, loads(body))
    except (BadRequest, UnprocessableEntity):
        whole = None
    assert quick in (None, whole)


def test_the_short_way_is_taken() -> None:
    decoder = build_model_decoder(parse_annotation(Place))

    assert decoder is not None
    assert decoder.quick is not None
    assert decoder.quick.decode(b'{"city": "c", "zip": "z"}') == Place("c", "z")


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
