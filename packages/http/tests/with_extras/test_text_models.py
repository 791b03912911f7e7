"""A whole model from the query or a form: aliases, defaults, lists, unknown names, documents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

import pytest

from treefold_http import Application
from treefold_http.openapi import openapi_document

Serving = Callable[..., Application]
Ask = Callable[..., Any]
Talk = Callable[..., Any]

HEAD = """
import datetime, enum
from dataclasses import dataclass, field
from typing import *
import msgspec
from msgspec import Meta
from pydantic import AliasChoices, BaseModel, ConfigDict, Field, HttpUrl, model_validator
from pydantic.dataclasses import dataclass as pydantic_dataclass
class Color(enum.Enum):
    red = "red"
"""
MODEL = """
class Filters(BaseModel):
    limit: Annotated[int, Field(ge=1, le=9)] = 5
    color: Color
    order_by: str = Field("name", alias="orderBy", description="The order.")
    tags: list[str] = []
    ids: set[int] = Field(default_factory=set)
    since: datetime.date | None = None
"""
STRUCT = """
class Filters(msgspec.Struct, rename={"order_by": "orderBy"}):
    color: Color
    limit: Annotated[int, Meta(ge=1, le=9)] = 5
    order_by: str = "name"
    tags: list[str] = []
    ids: set[int] = msgspec.field(default_factory=set)
    since: datetime.date | None = None
"""
SHOW = """
def show(f):
    return [f.limit, f.color.value, f.order_by, f.tags, sorted(f.ids), str(f.since)]
"""
KINDS = pytest.mark.parametrize("model", [MODEL, STRUCT], ids=["pydantic", "msgspec"])
PLACES = pytest.mark.parametrize("place", ["Query", "Form"])
FORM = [("content-type", "application/x-www-form-urlencoded")]


def make(
    serving: Serving, model: str, place: str, more: str = "", default: str = ""
) -> Application:
    text = f"""{HEAD}{model}{SHOW}
def handler(f: Annotated[Filters, {place}()]{default}{more}): return show(f)
"""
    return serving(text, "Api/v1/X/Post.py")


def send(ask: Ask, app: Application, place: str, pairs: Any) -> Any:
    encoded = urlencode(pairs)
    if place == "Query":
        return ask(app, "POST", f"/v1/x?{encoded}")
    return ask(app, "POST", "/v1/x", headers=FORM, chunks=[encoded.encode()])


@KINDS
@PLACES
def test_every_member_is_read_under_its_alias(
    serving: Serving, ask: Ask, model: str, place: str
) -> None:
    app = make(serving, model, place)
    pairs = [("limit", "7"), ("color", "red"), ("orderBy", "age"), ("tags", "a"), ("tags", "b")]
    answer = send(ask, app, place, [*pairs, ("ids", "2"), ("ids", "1"), ("since", "2024-05-06")])

    assert (answer.status, answer.json()) == (
        200,
        [7, "red", "age", ["a", "b"], [1, 2], "2024-05-06"],
    )


@KINDS
@PLACES
def test_defaults_hold_and_unknown_names_are_ignored(
    serving: Serving, ask: Ask, model: str, place: str
) -> None:
    app = make(serving, model, place)
    answer = send(ask, app, place, [("color", "red"), ("order_by", "no"), ("utm", "x")])

    assert answer.json() == [5, "red", "name", [], [], "None"]


@KINDS
@PLACES
def test_what_does_not_fit_is_422_with_its_place_and_limit(
    serving: Serving, ask: Ask, model: str, place: str
) -> None:
    app = make(serving, model, place)
    answer = send(
        ask, app, place, [("limit", "x"), ("color", "s3cret"), ("ids", "1"), ("ids", "y")]
    )
    low = send(ask, app, place, [("limit", "0"), ("color", "red")])

    where = place.lower()
    assert answer.status == low.status == 422
    found = {tuple(entry["loc"]) for entry in answer.json()["errors"]}
    assert found == {(where, "limit"), (where, "color"), (where, "ids", 1)}
    assert b"s3cret" not in answer.body
    (entry,) = low.json()["errors"]
    assert (entry["loc"], entry["ctx"]) == ([where, "limit"], {"ge": 1})


@KINDS
@PLACES
def test_a_required_member_must_be_sent(serving: Serving, ask: Ask, model: str, place: str) -> None:
    (entry,) = send(ask, make(serving, model, place), place, [("limit", "1")]).json()["errors"]

    expected = {"loc": [place.lower(), "color"], "msg": "color is required", "type": "missing"}
    assert entry == expected


@KINDS
@PLACES
def test_a_model_may_have_a_default_of_its_own(
    serving: Serving, ask: Ask, model: str, place: str
) -> None:
    default = " = Filters(color=Color.red, limit=9)"
    app = make(serving, model, place, default=default)
    options = {"headers": FORM, "chunks": [b"other=1"]} if place == "Form" else {}

    assert ask(app, "POST", "/v1/x", **options).json()[0] == 9
    assert send(ask, app, place, [("limit", "1")]).status == 422


@KINDS
def test_the_document_lists_the_members_of_a_query(serving: Serving, model: str) -> None:
    operation = openapi_document(make(serving, model, "Query"))["paths"]["/v1/x"]["post"]
    found = {each["name"]: each for each in operation["parameters"]}

    assert found.keys() == {"limit", "color", "orderBy", "tags", "ids", "since"}
    assert {each["in"] for each in found.values()} == {"query"}
    assert [name for name, each in found.items() if each["required"]] == ["color"]
    assert found["limit"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "maximum": 9,
        "default": 5,
    }
    assert found["ids"]["schema"] == {"type": "array", "items": {"type": "integer"}}
    assert "422" in operation["responses"]
    assert "requestBody" not in operation
    if model is MODEL:
        assert found["orderBy"]["description"] == "The order."


@KINDS
def test_the_document_lists_the_members_of_a_form(serving: Serving, model: str) -> None:
    app = make(serving, model, "Form", more=", note: Annotated[str, Form()] = ''")
    body = openapi_document(app)["paths"]["/v1/x"]["post"]["requestBody"]
    schema = body["content"]["application/x-www-form-urlencoded"]["schema"]

    assert body["required"] is True
    names = {"limit", "color", "orderBy", "tags", "ids", "since", "note"}
    assert schema["properties"].keys() == names
    assert schema["required"] == ["color"]
    assert "additionalProperties" not in schema


CLOSED = [
    "class Filters(BaseModel, extra='forbid'):\n    a: str = ''\n",
    "class Filters(msgspec.Struct, forbid_unknown_fields=True):\n    a: str = ''\n",
]


@pytest.mark.parametrize("model", CLOSED, ids=["pydantic", "msgspec"])
@PLACES
def test_a_closed_model_refuses_names_that_nothing_takes(
    serving: Serving, ask: Ask, model: str, place: str
) -> None:
    text = f"""{HEAD}{model}
def page(number: Annotated[int, {place}()] = 1): return number
def handler(f: Annotated[Filters, {place}()], b: Annotated[str, {place}()] = "", n=Depends(page)):
    return [f.a, b, n]
"""
    app = serving(text, "Api/v1/X/Post.py")
    assert send(ask, app, place, [("a", "1"), ("b", "2"), ("number", "3")]).json() == ["1", "2", 3]

    refused = send(ask, app, place, [("a", "1"), ("c", "2"), ("c", "3")])
    assert refused.json()["errors"] == [
        {"loc": [place.lower(), "c"], "msg": "c is not known here", "type": "extra"}
    ]
    if place == "Form":
        operation = openapi_document(app)["paths"]["/v1/x"]["post"]
        schema = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
        assert schema["additionalProperties"] is False


def test_an_open_model_takes_other_names_as_text(serving: Serving, ask: Ask) -> None:
    model = "class Filters(BaseModel, extra='allow'):\n    a: int\n"
    text = f"{HEAD}{model}def handler(f: Annotated[Filters, Query()]): return f.model_dump()\n"

    assert ask(serving(text), "GET", "/v1/x?a=1&b=2&c=3&c=4").json() == {
        "a": 1,
        "b": "2",
        "c": ["3", "4"],
    }


def test_a_validator_of_the_model_answers_422(serving: Serving, ask: Ask) -> None:
    text = f"""{HEAD}
class Span(BaseModel):
    low: str = ""
    high: str = ""
    @model_validator(mode="after")
    def ordered(self):
        if self.low > self.high:
            raise ValueError("low must be below high")
        return self
def handler(s: Annotated[Span, Query()]): return s.low
"""
    app = serving(text)
    (entry,) = ask(app, "GET", "/v1/x?low=b&high=a").json()["errors"]

    assert (entry["loc"], entry["msg"]) == (["query"], "Value error, low must be below high")
    assert "422" in openapi_document(app)["paths"]["/v1/x"]["get"]["responses"]


MEMBERS = "class Filters:\n    n: int\n    tags: list[str] = field(default_factory=list)\n"
RECORDS = {
    "dataclass": f"@dataclass\n{MEMBERS}",
    "pydantic dataclass": f"@pydantic_dataclass\n{MEMBERS}",
}


@pytest.mark.parametrize("model", RECORDS.values(), ids=RECORDS)
@PLACES
def test_a_dataclass_is_read_alike(serving: Serving, ask: Ask, model: str, place: str) -> None:
    text = f"{HEAD}{model}def handler(f: Annotated[Filters, {place}()]): return [f.n, f.tags]\n"
    app = serving(text, "Api/v1/X/Post.py")

    assert send(ask, app, place, [("n", "1"), ("tags", "a")]).json() == [1, ["a"]]
    assert send(ask, app, place, [("n", "x")]).status == 422


def test_a_typed_dict_has_the_names_that_were_sent(serving: Serving, ask: Ask) -> None:
    text = f"""{HEAD}
class Filters(TypedDict):
    n: int
    m: NotRequired[int]
def handler(f: Annotated[Filters, Query()]): return f
"""
    assert ask(serving(text), "GET", "/v1/x?n=1").json() == {"n": 1}


def test_a_form_of_a_model_and_a_file_are_read_together(serving: Serving, ask: Ask) -> None:
    text = f"""{HEAD}
class Note(BaseModel):
    title: str
async def handler(note: Annotated[Note, Form()], file: UploadFile):
    return [note.title, (await file.read()).decode()]
"""
    parts = (
        b'--b\r\nContent-Disposition: form-data; name="title"\r\n\r\nT\r\n'
        b'--b\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\nF\r\n--b--\r\n'
    )
    fields = [("content-type", "multipart/form-data; boundary=b")]
    app = serving(text, "Api/v1/X/Post.py")

    assert ask(app, "POST", "/v1/x", headers=fields, chunks=[parts]).json() == ["T", "F"]


def test_a_socket_may_take_a_model_of_the_query(serving: Serving, talk: Talk) -> None:
    text = f"""{HEAD}
class Filters(BaseModel):
    n: int
async def handler(websocket, f: Annotated[Filters, Query()]):
    await websocket.accept()
    await websocket.send_text(str(f.n + 1))
"""
    app = serving(text, "Api/v1/X/Socket.py")

    assert talk(app, "/v1/x?n=1").texts == ["2"]
    assert talk(app, "/v1/x?n=x").refusal.status == 422


REFUSED = [
    ("f: Annotated[Outer, Query()]", "the member Outer.inner of type Inner, which text cannot"),
    ("f: Annotated[Named, Query()]", "the member Named.a with several aliases; use one alias"),
    ("f: Annotated[Inner, Query('x')]", "is a model, which Query('x') cannot name"),
    ("f: Annotated[Inner, Header()]", "which Header() cannot provide; use a scalar"),
    ("f: Annotated[Inner | Outer, Query()]", "which Query() cannot provide; use a scalar"),
    ("a: Inner, b: Outer", "takes the body twice, as 'a' and as 'b'; put both into one model"),
    ("a: Annotated[Inner, Form()], b: Outer", "takes 'b' from a JSON body and 'a' from a form"),
]


@pytest.mark.parametrize(("parameters", "words"), REFUSED)
def test_what_cannot_be_read_is_refused_at_boot(
    serving: Serving, parameters: str, words: str
) -> None:
    text = f"""{HEAD}
class Inner(BaseModel):
    a: int
class Outer(BaseModel):
    inner: Inner
class Named(BaseModel):
    a: int = Field(validation_alias=AliasChoices("x", "y"))
def handler({parameters}): return 1
"""
    (broken,) = serving(text, "Api/v1/X/Post.py").report.broken

    assert words in broken.error


# -- parts without a name


def test_a_part_with_an_empty_name_is_refused_as_documented(serving: Serving, ask: Ask) -> None:
    text = f"{HEAD}async def handler(request): return len(await request.form())\n"
    app = serving(text, "Api/v1/X/Post.py")
    part = b'--b\r\nContent-Disposition: form-data; name=""\r\n\r\nT\r\n--b--\r\n'
    fields = [("content-type", "multipart/form-data; boundary=b")]
    answer = ask(app, "POST", "/v1/x", headers=fields, chunks=[part])

    assert (answer.status, answer.json()["detail"]) == (
        400,
        'A part has no name; send Content-Disposition: form-data; name="..."',
    )
    operation = openapi_document(app)["paths"]["/v1/x"]["post"]
    schema = operation["requestBody"]["content"]["multipart/form-data"]["schema"]
    assert schema["propertyNames"]["pattern"].endswith("+$")
    assert "400" in operation["responses"]
