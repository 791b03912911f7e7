"""Validation entries carry the limit that was missed, under the same names for every package."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from treefold_http import Application
from treefold_http.openapi import openapi_document

Serving = Callable[..., Application]
Ask = Callable[..., Any]

HEAD = """
import datetime, enum
from dataclasses import dataclass
from decimal import Decimal
from typing import *
import msgspec
from annotated_types import Ge, Gt, Le, Len, MultipleOf
from msgspec import Meta
from pydantic import BaseModel, Field, field_validator
class Color(enum.Enum):
    red = "red"
    blue = "blue"
class Cat(BaseModel):
    kind: Literal["cat"]
class Dog(BaseModel):
    kind: Literal["dog"]
"""
POST = "Api/v1/X/Post.py"
BODIES: list[tuple[str, str, Any, Any]] = [
    ("BaseModel", "Annotated[int, Field(ge=5)]", 1, {"ge": 5}),
    ("BaseModel", "Annotated[int, Field(gt=5, le=9)]", 10, {"le": 9}),
    ("BaseModel", "Annotated[str, Field(max_length=2)]", "s3cret", {"max_length": 2}),
    ("BaseModel", "Annotated[str, Field(pattern='^a')]", "s3cret", {"pattern": "^a"}),
    ("BaseModel", "Annotated[Decimal, Field(ge=Decimal('0.5'))]", "0.1", {"ge": "0.5"}),
    ("BaseModel", "Color", "s3cret", {"expected": "'red' or 'blue'"}),
    ("BaseModel", "Literal['a', 'b']", "s3cret", {"expected": "'a' or 'b'"}),
    ("BaseModel", "Annotated[datetime.date, Field(ge=datetime.date(2024, 1, 2))]", "2020-01-01",
     {"ge": "2024-01-02"}),
    ("BaseModel", "Annotated[list[int], Field(min_length=2)]", [1],
     {"min_length": 2}),
    ("BaseModel", "Annotated[Cat | Dog, Field(discriminator='kind')]", {"kind": "s3cret"},
     {"discriminator": "'kind'", "expected_tags": "'cat', 'dog'"}),
    ("msgspec.Struct", "Annotated[int, Meta(ge=5)]", 1, {"ge": 5}),
    ("msgspec.Struct", "Annotated[float, Meta(lt=1.5)]", 2.0, {"lt": 1.5}),
    ("msgspec.Struct", "Annotated[int, Meta(multiple_of=3)]", 4, {"multiple_of": 3}),
    ("msgspec.Struct", "Annotated[str, Meta(max_length=2)]", "s3cret", {"max_length": 2}),
    ("msgspec.Struct", "Annotated[str, Meta(min_length=9)]", "s3cret", {"min_length": 9}),
    ("msgspec.Struct", "Annotated[str, Meta(pattern='^a')]", "s3cret", {"pattern": "^a"}),
    ("msgspec.Struct", "Color", "s3cret", None),
    ("msgspec.Struct", "int", "s3cret", None),
]  # fmt: skip


@pytest.mark.parametrize(("base", "annotation", "value", "context"), BODIES)
def test_an_entry_of_a_body_carries_the_limit_and_no_value(
    serving: Serving, ask: Ask, base: str, annotation: str, value: Any, context: Any
) -> None:
    text = f"{HEAD}class Item({base}):\n    n: {annotation}\ndef handler(item: Item): return 1\n"
    answer = ask(serving(text, POST), "POST", "/v1/x", chunks=[json.dumps({"n": value}).encode()])

    (entry,) = answer.json()["errors"]
    assert answer.status == 422
    assert entry.get("ctx") == context
    assert entry.keys() <= {"loc", "msg", "type", "ctx"}
    assert b"s3cret" not in answer.body


@pytest.mark.parametrize(
    ("annotation", "sent", "context"),
    [
        ("Annotated[int, Ge(5)]", "1", {"ge": 5}),
        ("Annotated[int, Meta(ge=5)]", "1", {"ge": 5}),
        ("Annotated[str, Field(max_length=2)]", "s3cret", {"max_length": 2}),
        ("Annotated[list[int], Len(2)]", "1", {"min_length": 2}),
        ("Color", "s3cret", {"expected": "'red' or 'blue'"}),
        ("Literal[1, 2]", "3", {"expected": "'1' or '2'"}),
        ("int", "s3cret", None),
    ],
)
@pytest.mark.parametrize("place", ["Query", "Header", "Cookie"])
def test_an_entry_of_a_parameter_carries_the_limit(
    serving: Serving, ask: Ask, annotation: str, sent: str, context: Any, place: str
) -> None:
    text = f"{HEAD}def handler(n: Annotated[{annotation}, {place}()]): return 1\n"
    app = serving(text)
    if place == "Query":
        answer = ask(app, "GET", f"/v1/x?n={sent}")
    else:
        pair = ("n", sent) if place == "Header" else ("cookie", f"n={sent}")
        answer = ask(app, "GET", "/v1/x", headers=[pair])

    (entry,) = answer.json()["errors"]
    assert entry.get("ctx") == context
    assert b"s3cret" not in answer.body


def test_an_exception_of_a_validator_is_no_context(serving: Serving, ask: Ask) -> None:
    text = f"""{HEAD}
class Item(BaseModel):
    n: int
    @field_validator("n")
    @classmethod
    def odd(cls, n: int) -> int:
        raise ValueError("must be odd")
def handler(item: Item): return 1
"""
    (entry,) = ask(serving(text, POST), "POST", "/v1/x", chunks=[b'{"n": 2}']).json()["errors"]

    assert entry == {"loc": ["body", "n"], "msg": "Value error, must be odd", "type": "value_error"}


def test_the_document_describes_the_context(serving: Serving) -> None:
    schemas = openapi_document(serving("def handler(n: int): return 1"))["components"]["schemas"]
    entry = schemas["ValidationProblem"]["properties"]["errors"]["items"]

    assert entry["properties"]["ctx"]["type"] == "object"
    assert "ctx" not in entry["required"]
