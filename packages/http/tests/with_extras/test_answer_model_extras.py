"""`response_model` of pydantic and msgspec: read and written by the package that it is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application

Project = Callable[..., Application]
Answers = Callable[..., Any]

SECRET = "s3cret-hash"
MODELS = f"""
import msgspec
from dataclasses import dataclass
from decimal import Decimal
from ipaddress import IPv4Address
from typing import Annotated, Generic, Literal, TypedDict, TypeVar
from msgspec import Meta, Struct
from pydantic import BaseModel, ConfigDict, Field, RootModel, computed_field
T = TypeVar("T")

class Row:
    def __init__(self, **values):
        self.__dict__.update(password_hash={SECRET!r}, **values)

class Public(BaseModel):
    id: int
    name: str = "nobody"

class Private(Public):
    password_hash: str = {SECRET!r}

class Open(Public):
    model_config = ConfigDict(extra="allow")

class Team(BaseModel):
    members: list[Public]

class Page(BaseModel, Generic[T]):
    items: list[T]

class Aliased(BaseModel):
    model_config = ConfigDict(serialize_by_alias=True)
    user_name: str = Field(alias="userName")

class Priced(BaseModel):
    price: Decimal
    secret: str = Field(default={SECRET!r}, exclude=True)

    @computed_field
    def dear(self) -> bool:
        return self.price > 9

class Cat(BaseModel):
    kind: Literal["cat"] = "cat"
    lives: int
class Dog(BaseModel):
    kind: Literal["dog"] = "dog"
    tricks: int

class Users(RootModel[list[Public]]): ...

class Point(Struct, rename="camel"):
    x_value: int
    y_value: int = 0

class Secretive(Point):
    password_hash: str = {SECRET!r}

class Box(Struct, tag="box"):
    points: list[Point]
class Bag(Struct, tag="bag"):
    size: int
class Flat(Struct, array_like=True):
    a: int
    b: int
class Partly(Struct):
    a: int
    b: int | msgspec.UnsetType = msgspec.UNSET

@dataclass
class Mixed:
    user: Public
    point: Point
    address: IPv4Address
    count: Annotated[int, Field(gt=0)] = 1
    few: Annotated[list[Public], Field(max_length=1)] = ()
    short: Annotated[str, Meta(max_length=3)] = ""
"""


@pytest.fixture
def answer(serving: Project, ask: Answers) -> Answers:
    """The answer of a handler that returns an expression, its module with a `response_model`."""

    def make(model: str, returned: str) -> Any:
        handler = f"async def handler(request):\n    return {returned}\n"
        app = serving(f"{MODELS}\nresponse_model = {model}\n{handler}")
        return ask(app, "GET", "/v1/x")

    return make


ONE = {"id": 1, "name": "nobody"}
XY = {"xValue": 1, "yValue": 0}


@pytest.mark.parametrize(
    ("model", "returned", "sent"),
    [
        ("Public", "Private(id=1)", ONE),
        ("Public", "Open(id=1, password_hash='s3cret-hash')", ONE),
        ("Public", "{'id': 1, 'password_hash': 's3cret-hash'}", ONE),
        ("Public", "Row(id=1)", ONE),
        ("Public", "Row(id=1, name='a')", {"id": 1, "name": "a"}),
        ("list[Public]", "[Private(id=1), Row(id=1), {'id': 1, 'x': 2}]", [ONE] * 3),
        ("dict[str, Public]", "{'a': Private(id=1)}", {"a": ONE}),
        ("Public | None", "Private(id=1)", ONE),
        ("Team", "Team(members=[Private(id=1), Open(id=1, x=2)])", {"members": [ONE, ONE]}),
        ("Team", "Row(members=[Row(id=1)])", {"members": [ONE]}),
        ("Page[Public]", "{'items': [Private(id=1)]}", {"items": [ONE]}),
        ("Users", "[Private(id=1)]", [ONE]),
        ("Aliased", "{'user_name': 'a'}", {"userName": "a"}),
        ("Aliased", "{'userName': 'a'}", {"userName": "a"}),
        ("Aliased", "Row(user_name='a')", {"userName": "a"}),
        ("Priced", "Row(price=Decimal('10.5'))", {"price": "10.5", "dear": True}),
        (
            "Annotated[Cat | Dog, Field(discriminator='kind')]",
            "{'kind': 'dog', 'tricks': 2, 'password_hash': 's3cret-hash'}",
            {"kind": "dog", "tricks": 2},
        ),
        ("Point", "Secretive(1)", XY),
        ("Point", "Row(x_value=1)", XY),
        ("Point", "{'xValue': 1, 'password_hash': 's3cret-hash'}", XY),
        ("Box", "Box([Secretive(1)])", {"type": "box", "points": [XY]}),
        ("Box | Bag", "{'type': 'bag', 'size': 1, 'points': []}", {"type": "bag", "size": 1}),
        ("Box | Bag", "Box([Secretive(1)])", {"type": "box", "points": [XY]}),
        ("Flat", "Row(a=1, b=2)", [1, 2]),
        ("Partly", "Partly(1)", {"a": 1}),
        (
            "Mixed",
            "Row(user=Private(id=1), point=Secretive(1), address=IPv4Address('10.0.0.1'))",
            {
                "user": ONE,
                "point": XY,
                "address": "10.0.0.1",
                "count": 1,
                "few": [],
                "short": "",
            },
        ),
    ],
)
def test_what_is_not_declared_is_not_sent(
    answer: Answers, model: str, returned: str, sent: Any
) -> None:
    got = answer(model, returned)

    assert (got.status, got.json()) == (200, sent)


@pytest.mark.parametrize(
    ("model", "returned", "where"),
    [
        ("Public", "{'name': 's3cret-hash'}", "'id' Field required"),
        ("Public", "{'id': 's3cret-hash'}", "'id' Input should be a valid integer"),
        ("Public", "Public.model_construct(id='s3cret-hash')", "it has a field of another type"),
        ("Public", "None", "it Input should be a valid dictionary"),
        ("Annotated[str | None, Field(min_length=4)]", "'a'", "it string should have at least 4"),
        ("Annotated[str | Response, Field(min_length=4)]", "'a'", "it string should have at least"),
        ("list[Public]", "[Public(id=1), Row(name='a')]", "'1.id' Field required"),
        ("Team", "{'members': [{'id': 's3cret-hash'}]}", "'members.0.id' Input should be"),
        ("Point", "Point('s3cret-hash')", "'xValue' should be int"),
        ("Point", "{}", "'xValue' is required"),
        ("Box", "{'type': 's3cret-hash', 'points': []}", "'type' should be 'box'"),
        (
            "Mixed",
            "Mixed(Public(id=1), Point(1), IPv4Address(1), 0)",
            "'count' input should be greater than 0",
        ),
        (
            "Mixed",
            "Mixed(Public(id=1), Point(1), IPv4Address(1), 1, [Public(id=1), Public(id=2)])",
            "'few' List should have at most 1 item",
        ),
        (
            "Mixed",
            "Mixed(Public(id=1), Point(1), IPv4Address(1), short='s3cret-hash')",
            "'short' expected `str` of length <= 3",
        ),
    ],
)
def test_what_does_not_fit_is_a_500_that_shows_no_value(
    answer: Answers, lines: Any, model: str, returned: str, where: str
) -> None:
    got = answer(model, returned)

    assert got.status == 500
    (error,) = lines.errors()
    assert f"does not fit its `response_model`: {where}" in str(error)
    assert error.__suppress_context__
    assert SECRET.encode() not in got.body
    assert not [text for text in lines.texts() if SECRET in text]


def test_a_class_that_pydantic_does_not_know_is_an_error_at_boot(
    answer: Answers, lines: Any
) -> None:
    assert answer("Row", "{}").status == 500
    assert any(
        "`response_model` must be a type that responses can be checked against, got Row: "
        in str(error)
        for error in lines.errors()
    )
