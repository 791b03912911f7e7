"""Aliases, discriminators and bytes of models: in bodies, in responses and in the document."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import pytest
from jsonschema import Draft202012Validator

from treefold_http import Application
from treefold_http.openapi import openapi_document
from treefold_http.testing import TestClient

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Ask = Callable[..., "Answer"]
Serving = Callable[..., Application]

MODELS = """
    from collections.abc import AsyncIterator
    from dataclasses import dataclass
    from typing import Annotated, Any, Literal

    import msgspec
    import pydantic
    from pydantic import AliasChoices, BaseModel, ConfigDict, Field, dataclasses
    from pydantic.alias_generators import to_camel
    from typing_extensions import TypedDict

    class Both(BaseModel):
        size: int = Field(alias="sizeInMm")

    class ByName(BaseModel):
        model_config = ConfigDict(populate_by_name=True, alias_generator=to_camel)
        first_name: str

    class Split(BaseModel):
        word: str = Field(validation_alias="wordIn", serialization_alias="wordOut")

    class Taken(BaseModel):
        word: str = Field(validation_alias=AliasChoices("a", "b"))

    class Given(BaseModel):
        word: str = Field(serialization_alias="wordOut")

    class Outer(BaseModel):
        all_of: list[Both] = Field(alias="allOf")
        one: Both | ByName | None = None
        table: dict[str, ByName] = {}

    @dataclass
    class Holder:
        inside: Both

    @dataclasses.dataclass
    class Checked:
        size: int = Field(alias="sizeInMm")

    @dataclass
    class CheckedHolder:
        inside: Checked

    @dataclass
    class Plain:
        size: int = Field(alias="sizeInMm")
"""

ROUND_TRIPS: list[tuple[str, Any, Any]] = [
    ("Both", {"sizeInMm": 1}, {"sizeInMm": 1}),
    ("ByName", {"firstName": "Ada"}, {"firstName": "Ada"}),
    ("ByName", {"first_name": "Ada"}, {"firstName": "Ada"}),
    ("Split", {"wordIn": "a"}, {"wordOut": "a"}),
    ("Taken", {"b": "a"}, {"word": "a"}),
    ("Given", {"word": "a"}, {"wordOut": "a"}),
    ("Checked", {"sizeInMm": 1}, {"sizeInMm": 1}),
    ("list[Checked]", [{"sizeInMm": 1}], [{"sizeInMm": 1}]),
    ("dict[str, list[Checked]]", {"x": [{"sizeInMm": 1}]}, {"x": [{"sizeInMm": 1}]}),
    ("CheckedHolder", {"inside": {"sizeInMm": 1}}, {"inside": {"sizeInMm": 1}}),
    ("Plain", {"sizeInMm": 1}, {"size": 1}),
    ("list[Plain]", [{"sizeInMm": 1}], [{"size": 1}]),
    ("Holder", {"inside": {"sizeInMm": 1}}, {"inside": {"sizeInMm": 1}}),
    ("list[Both]", [{"sizeInMm": 1}], [{"sizeInMm": 1}]),
    ("dict[str, list[Both]]", {"x": [{"sizeInMm": 1}]}, {"x": [{"sizeInMm": 1}]}),
    ("Both | ByName", {"firstName": "Ada"}, {"firstName": "Ada"}),
    (
        "Outer",
        {"allOf": [{"sizeInMm": 1}], "one": {"firstName": "x"}, "table": {"k": {"firstName": "y"}}},
        {"allOf": [{"sizeInMm": 1}], "one": {"firstName": "x"}, "table": {"k": {"firstName": "y"}}},
    ),
]


def parts(app: Application, method: str = "post") -> tuple[Any, Any]:
    """Validators of the body and of the answer, by the document."""
    made = openapi_document(app)
    operation = made["paths"]["/v1/x"][method]
    schemas = (
        operation["requestBody"]["content"]["application/json"]["schema"],
        operation["responses"]["200"]["content"]["application/json"]["schema"],
    )
    taken, given = (
        Draft202012Validator({**schema, "components": made["components"]}) for schema in schemas
    )
    return taken, given


def post(ask: Ask, app: Application, value: Any) -> Answer:
    return ask(app, "POST", "/v1/x", chunks=[json.dumps(value).encode()])


@pytest.mark.parametrize("declared", ["", "response_model = {kind}"])
@pytest.mark.parametrize(("kind", "sent", "received"), ROUND_TRIPS)
def test_a_model_is_given_by_the_aliases_that_it_is_taken_by(
    serving: Serving, ask: Ask, kind: str, sent: Any, received: Any, declared: str
) -> None:
    text = f"{MODELS}\n    {declared.format(kind=kind)}\n"
    handler = f"    async def handler(given: Annotated[{kind}, Body()]) -> {kind}: return given\n"
    app = serving(text + handler, "Api/v1/X/Post.py")
    taken, given = parts(app)

    answer = post(ask, app, sent)
    assert (answer.status, answer.json()) == (200, received)
    assert given.is_valid(received), given.schema
    assert taken.is_valid(sent) or kind in ("ByName", "Taken")
    if sent != received:
        assert not given.is_valid(sent)


def test_aliases_are_sent_over_sockets_and_in_events(serving: Serving) -> None:
    socket = f"""{MODELS}
    response_model = Both
    async def handler(websocket: WebSocket):
        await websocket.accept()
        async for each in websocket.iter_json(Both):
            await websocket.send_json(each)
    """
    with (
        TestClient(serving(socket, "Api/v1/X/Socket.py")) as client,
        client.websocket_connect("/v1/x") as it,
    ):
        it.send_json({"sizeInMm": 2})
        assert it.receive_json() == {"sizeInMm": 2}


def test_aliases_are_sent_in_events(serving: Serving, ask: Ask) -> None:
    events = f"""{MODELS}
    async def handler(request):
        async def all():
            yield Both(sizeInMm=3)
        return EventStream(all())
    """
    answer = ask(serving(events), "GET", "/v1/x")
    assert b'data: {"sizeInMm":3}' in answer.body


@pytest.mark.parametrize("declared", ["", "response_model = AsyncIterator[Both]"])
def test_aliases_are_sent_in_lines(serving: Serving, ask: Ask, declared: str) -> None:
    text = f"""{MODELS}
    {declared}

    async def handler() -> AsyncIterator[Both]:
        yield Both(sizeInMm=1)
        yield Both(sizeInMm=2)
    """
    assert ask(serving(text), "GET", "/v1/x").body == b'{"sizeInMm":1}\n{"sizeInMm":2}\n'


@pytest.mark.parametrize(
    "returned",
    [
        'Response.json({"all": [Checked(sizeInMm=1)]})',
        '{"all": [Checked(sizeInMm=1)]}',
        '{"all": (Checked(sizeInMm=1),)}, 200',
    ],
)
def test_a_pydantic_dataclass_in_an_undeclared_answer_has_its_aliases(
    serving: Serving, ask: Ask, returned: str
) -> None:
    text = f"{MODELS}\n    async def handler(request):\n        return {returned}\n"

    assert ask(serving(text), "GET", "/v1/x").json() == {"all": [{"sizeInMm": 1}]}


def test_lines_of_pydantic_dataclasses_have_their_aliases(serving: Serving, ask: Ask) -> None:
    text = f"""{MODELS}
    async def handler() -> AsyncIterator[list[Checked]]:
        yield [Checked(sizeInMm=1)]
    """
    assert ask(serving(text), "GET", "/v1/x").body == b'[{"sizeInMm":1}]\n'


EXAMPLES = """
    class Thing(BaseModel):
        model_config = ConfigDict(json_schema_extra={{"examples": [{{"size": 1}}]}})
        size: int = Field(alias="sizeInMm")
        inner: list["Thing"] = []

    responses = {{
        200: {{{response}}},
        409: {{"model": Thing, "examples": {{"one": {{"summary": "S", "value": {{"size": 4}}}}}}}},
    }}

    async def handler(thing: Thing) -> Thing: ...
"""


@pytest.mark.parametrize(
    "response",
    [
        '"model": Thing, "example": Thing(sizeInMm=2, inner=[])',
        '"model": Thing, "example": {"size": 2, "inner": []}',
        '"example": {"sizeInMm": 2, "inner": []}',
        '"example": {"size": 2, "inner": []}',
    ],
)
def test_examples_have_the_names_of_the_json(
    document: Callable[..., dict[str, Any]], response: str
) -> None:
    made = document(MODELS + EXAMPLES.format(response=response), file="Api/v1/X/Post.py")
    responses = made["paths"]["/v1/x"]["post"]["responses"]

    assert responses["200"]["content"]["application/json"]["example"] == {
        "sizeInMm": 2,
        "inner": [],
    }
    assert responses["409"]["content"]["application/json"]["examples"] == {
        "one": {"summary": "S", "value": {"sizeInMm": 4}}
    }
    assert made["components"]["schemas"]["Thing"]["examples"] == [{"sizeInMm": 1}]


PETS = """
    class Cat(BaseModel):
        kind: Literal["cat"]
        lives: int = 9

    class Dog(BaseModel):
        kind: Literal["dog"]
        tricks: list[str] = []

    Pet = Annotated[Cat | Dog, Field(discriminator="kind")]

    class Round(msgspec.Struct, tag="round"):
        r: int

    class Square(msgspec.Struct, tag="square"):
        a: int

    Shape = Round | Square
"""


@pytest.mark.parametrize("declared", ["", "response_model = {kind}"])
@pytest.mark.parametrize(
    ("kind", "name", "mapping", "value", "wrong"),
    [
        ("Pet", "kind", {"cat": "Cat", "dog": "Dog"}, {"kind": "cat", "lives": 9}, {"kind": "cow"}),
        (
            "Shape",
            "type",
            {"round": "Round", "square": "Square"},
            {"type": "round", "r": 1},
            {"type": "oval", "r": 1},
        ),
    ],
)
def test_a_union_at_the_top_keeps_its_discriminator(
    serving: Serving,
    ask: Ask,
    kind: str,
    name: str,
    mapping: dict[str, str],
    value: Any,
    wrong: Any,
    declared: str,
) -> None:
    text = f"{MODELS}{PETS}\n    {declared.format(kind=kind)}\n"
    text += f"    async def handler(given: {kind}) -> {kind} | None: return given\n"
    app = serving(text, "Api/v1/X/Post.py")

    for validator in parts(app):
        assert validator.schema["discriminator"] == {
            "propertyName": name,
            "mapping": {key: f"#/components/schemas/{each}" for key, each in mapping.items()},
        }
    answer = post(ask, app, value)
    assert (answer.status, answer.json()) == (200, value)
    refused = post(ask, app, wrong)
    assert refused.status == 422
    if kind == "Pet":
        assert refused.json()["errors"][0]["type"] == "union_tag_invalid"


RAW = bytes(range(248, 256)) + b"\x00 text"
"""Not UTF-8, and of signs in which the two alphabets of base64 differ."""

BYTES = """
    class Model(BaseModel):
        data: bytes
        more: list[bytes] = []
        none: bytes | None = None
        by: dict[str, bytes] = Field(default={}, alias="byName")

        @pydantic.field_validator("data")
        def is_raw(cls, data: bytes) -> bytes:
            assert isinstance(data, bytes) and data.startswith(b"\\xf8")
            return data

    class Nested(BaseModel):
        inside: Model

    class Base(BaseModel):
        data: pydantic.Base64Bytes

    @dataclass
    class Data:
        data: bytes

    @dataclass
    class Mixed:
        data: Annotated[bytes, msgspec.Meta(max_length=99)]
        size: Annotated[int, Field(gt=0)] = 1

    class Struct(msgspec.Struct):
        data: bytes

    class Table(TypedDict):
        data: bytes
"""


def holds(value: Any, data: bytes) -> bool:
    """True if all texts of a document are the base64 of these bytes, in the standard alphabet."""
    if isinstance(value, dict):
        return all(holds(each, data) for each in cast("dict[str, Any]", value).values())
    if isinstance(value, list):
        return all(holds(each, data) for each in cast("list[Any]", value))
    return not isinstance(value, str) or base64.b64decode(value, validate=True) == data


TEXT = base64.b64encode(RAW).decode()


BYTE_CASES: list[tuple[str, Any]] = [
    ("Model", {"data": TEXT, "more": [TEXT], "none": TEXT, "byName": {"x": TEXT}}),
    ("Nested", {"inside": {"data": TEXT, "more": [], "none": None, "byName": {}}}),
    ("list[Nested]", [{"inside": {"data": TEXT, "more": [], "none": None, "byName": {}}}]),
    ("Base", {"data": TEXT}),
    ("Data", {"data": TEXT}),
    ("list[Data]", [{"data": TEXT}]),
    ("Mixed", {"data": TEXT, "size": 1}),
    ("Struct", {"data": TEXT}),
    ("Table", {"data": TEXT}),
    ("dict[str, bytes]", {"data": TEXT}),
]


@pytest.mark.parametrize("declared", ["", "response_model = {kind}"])
@pytest.mark.parametrize(("kind", "sent"), BYTE_CASES)
def test_bytes_survive_a_round_trip(
    serving: Serving, ask: Ask, kind: str, sent: Any, declared: str
) -> None:
    text = f"{MODELS}{BYTES}\n    {declared.format(kind=kind)}\n"
    handler = f"""
    async def handler(given: Annotated[{kind}, Body()]) -> {kind}:
        assert {RAW!r} in seen(given) or isinstance(given, Base)
        return given

    def seen(value):
        if isinstance(value, list):
            return seen(value[0])
        value = getattr(value, "inside", value)
        return [value["data"] if isinstance(value, dict) else value.data]
    """
    app = serving(text + handler, "Api/v1/X/Post.py")
    for validator in parts(app):
        assert validator.is_valid(sent)
        assert '"contentEncoding": "base64"' in json.dumps(validator.schema)
        assert '"binary"' not in json.dumps(validator.schema)

    answer = post(ask, app, sent)
    assert answer.status == 200, answer.body
    assert answer.json() == sent or kind == "Base"
    assert holds(answer.json(), RAW) or kind == "Base"


@pytest.mark.parametrize("kind", ["Model", "Data", "Mixed", "Struct", "Table"])
@pytest.mark.parametrize("data", ["é", "a", "====a", 5])
def test_text_that_is_no_base64_is_422(serving: Serving, ask: Ask, kind: str, data: Any) -> None:
    text = f"{MODELS}{BYTES}\n    async def handler(given: {kind}): ...\n"
    assert post(ask, serving(text, "Api/v1/X/Post.py"), {"data": data}).status == 422


def test_bare_bytes_of_body_and_query_are_base64(serving: Serving, ask: Ask) -> None:
    text = """
    from typing import Annotated
    async def handler(body: Annotated[bytes, Body()], q: Annotated[bytes, Query()]):
        return [body, q]
    """
    app = serving(text, "Api/v1/X/Post.py")
    url = TEXT.replace("+", "-").replace("/", "_").rstrip("=")
    answer = ask(app, "POST", f"/v1/x?q={url}", chunks=[json.dumps(TEXT).encode()])

    assert answer.json() == [TEXT, TEXT]
    assert ask(app, "POST", "/v1/x?q=%C3%A9", chunks=[json.dumps(TEXT).encode()]).status == 422
    operation = openapi_document(app)["paths"]["/v1/x"]["post"]
    schema = operation["parameters"][0]["schema"]
    assert schema["contentEncoding"] == "base64"


@pytest.mark.parametrize("form", ["hex", "utf8"])
def test_a_form_of_bytes_that_a_model_sets_is_kept(serving: Serving, ask: Ask, form: str) -> None:
    text = f"""{MODELS}
    class Own(BaseModel):
        model_config = ConfigDict(ser_json_bytes={form!r}, val_json_bytes={form!r})
        data: bytes

    async def handler(given: Own) -> Own: return given
    """
    sent = {"data": {"hex": "6162", "utf8": "ab"}[form]}
    assert post(ask, serving(text, "Api/v1/X/Post.py"), sent).json() == sent


def test_a_validator_that_reads_the_text_itself_gets_the_text(serving: Serving, ask: Ask) -> None:
    text = f"""{MODELS}
    class Own(BaseModel):
        data: bytes

        @pydantic.field_validator("data", mode="before")
        def decode(cls, data):
            return bytes.fromhex(data)

        @pydantic.field_serializer("data")
        def encode(self, data):
            return data.hex()

    async def handler(given: Own) -> Own: return given
    """
    sent = {"data": "ff00"}
    assert post(ask, serving(text, "Api/v1/X/Post.py"), sent).json() == sent
