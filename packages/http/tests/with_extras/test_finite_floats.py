"""A float that a client sends is finite: no JSON response could carry another one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

TYPES = """
from dataclasses import dataclass
from decimal import Decimal

import msgspec
from pydantic import BaseModel, ConfigDict, Field

class Model(BaseModel):
    x: float

class Allowing(BaseModel):
    model_config = ConfigDict(allow_inf_nan=True)
    x: float = Field(allow_inf_nan=True)

class Inner(BaseModel):
    inner: Model

class Many(BaseModel):
    x: list[float] | None = None

class Exact(BaseModel):
    x: Decimal

class Worded(BaseModel):
    model_config = ConfigDict(ser_json_inf_nan="strings")
    x: float

@dataclass
class Record:
    x: float

class Struct(msgspec.Struct):
    x: float
"""
MODELS = ["Model", "Allowing", "Inner", "Many", "Exact", "Record", "Struct"]


def handler(kind: str, marker: str = "Body()") -> str:
    return (
        f"{TYPES}from typing import Annotated\n"
        "from treefold_http import Body, Form, Query\n"
        f"async def handler(item: Annotated[{kind}, {marker}]):\n"
        "    return {'x': repr(item)}\n"
    )


@pytest.fixture
def app(project: Project) -> Application:
    routes = {f"Api/v1/{kind.lower()}/Post.py": handler(kind) for kind in (*MODELS, "Worded")}
    texts = {
        f"Api/v1/{place}/{kind.lower()}/{'Get' if place == 'query' else 'Post'}.py": handler(
            kind, f"{place.title()}()"
        )
        for place in ("query", "form")
        for kind in ("Model", "Record", "Allowing")
    }
    return project(routes | texts)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *((kind, value) for kind in MODELS for value in ("1e999", "-1e999", "NaN", '"NaN"')),
        *((kind, '"1e999"') for kind in MODELS if kind != "Exact"),
    ],
)
def test_s33_a_number_that_is_not_finite_is_refused(
    app: Application, ask: Ask, kind: str, value: str
) -> None:
    text = f"[{value}]" if kind == "Many" else value
    body = f'{{"x": {text}}}' if kind != "Inner" else f'{{"inner": {{"x": {text}}}}}'
    headers = [("content-type", "application/json")]
    answer = ask(app, "POST", f"/v1/{kind.lower()}", headers=headers, chunks=[body.encode()])
    assert answer.status in (400, 422), answer.json()


@pytest.mark.parametrize("kind", ["model", "record", "allowing"])
@pytest.mark.parametrize("value", ["1e999", "NaN", "-Infinity", "inf"])
def test_s33_a_text_that_is_not_finite_is_refused(
    app: Application, ask: Ask, kind: str, value: str
) -> None:
    assert ask(app, "GET", f"/v1/query/{kind}?x={value}").status == 422
    headers = [("content-type", "application/x-www-form-urlencoded")]
    sent = ask(app, "POST", f"/v1/form/{kind}", headers=headers, chunks=[f"x={value}".encode()])
    assert sent.status == 422


def test_a_model_that_writes_them_as_strings_reads_them(app: Application, ask: Ask) -> None:
    headers = [("content-type", "application/json")]
    answer = ask(app, "POST", "/v1/worded", headers=headers, chunks=[b'{"x": "NaN"}'])
    assert answer.json() == {"x": "Worded(x=nan)"}
