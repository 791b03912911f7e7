"""Models of pydantic and msgspec in the document, described by the package that reads them."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from treefold_http import Application
from treefold_http._types.read import parse_annotation
from treefold_http.openapi import openapi_document
from treefold_http.openapi._symmetry import has_same_input_output_schema

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Ask = Callable[..., "Answer"]
Document = Callable[..., dict[str, Any]]


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


PYDANTIC = """
    from decimal import Decimal
    from typing import Annotated, Generic, Literal, TypeVar

    from pydantic import BaseModel, ConfigDict, EmailStr, Field, computed_field, dataclasses

    T = TypeVar("T")

    class Tag(BaseModel):
        text: str = Field(min_length=1, description="What it says")

    class Item(BaseModel):
        '''A thing.'''
        name: str = Field(examples=["lamp"])
        tags: list[Tag] = []
        parent: "Item | None" = None

    class Priced(BaseModel):
        price: Decimal = Field(alias="priceInEuro")

        @computed_field
        @property
        def cheap(self) -> bool: return True

    class Aliased(BaseModel):
        model_config = ConfigDict(serialize_by_alias=True)
        price: int = Field(alias="priceInEuro")

    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    class Pet(BaseModel):
        one: Annotated[Cat | Dog, Field(discriminator="kind")]

    class Box(BaseModel, Generic[T]):
        inside: T

    @dataclasses.dataclass
    class Checked:
        size: Annotated[int, Field(ge=1)]

    class Never(BaseModel):
        limit: float = float("nan")
"""


def of(document: Document, model: str, extra: str = "") -> dict[str, Any]:
    return document(
        f"{PYDANTIC}\n    async def handler(given: {model}{extra}) -> {model}: ...",
        file="Api/v1/X/Post.py",
    )


def both(made: dict[str, Any]) -> tuple[Any, Any]:
    operation = made["paths"]["/v1/x"]["post"]
    return (
        operation["requestBody"]["content"]["application/json"]["schema"],
        operation["responses"]["200"]["content"]["application/json"]["schema"],
    )


def test_definitions_are_lifted_to_components_and_may_hold_themselves(document: Document) -> None:
    made = of(document, "Item")
    schemas = made["components"]["schemas"]

    assert both(made) == (reference("Item"), reference("Item"))
    assert schemas["Item"]["description"] == "A thing."
    assert schemas["Item"]["properties"]["tags"]["items"] == reference("Tag")
    assert schemas["Item"]["properties"]["parent"]["anyOf"][0] == reference("Item")
    assert schemas["Tag"]["properties"]["text"]["minLength"] == 1
    assert "$defs" not in str(made)


def test_what_is_taken_and_what_is_given_differ_where_the_model_says_so(
    document: Document,
) -> None:
    made = of(document, "Priced")
    schemas = made["components"]["schemas"]

    assert both(made) == (reference("PricedInput"), reference("Priced"))
    assert list(schemas["PricedInput"]["properties"]) == ["priceInEuro"]
    assert list(schemas["Priced"]["properties"]) == ["priceInEuro", "cheap"]


def test_aliases_are_given_where_the_model_gives_them(document: Document) -> None:
    made = of(document, "Aliased")

    assert list(made["components"]["schemas"]["Aliased"]["properties"]) == ["priceInEuro"]


def test_a_discriminator_points_at_the_components(document: Document) -> None:
    one = of(document, "Pet")["components"]["schemas"]["Pet"]["properties"]["one"]

    assert one["discriminator"] == {
        "propertyName": "kind",
        "mapping": {"cat": "#/components/schemas/Cat", "dog": "#/components/schemas/Dog"},
    }


@pytest.mark.parametrize(
    ("model", "name"),
    [("Box[int]", "Box_int"), ("Box[Item]", "Box_Item"), ("Checked", "Checked")],
)
def test_generics_and_dataclasses_of_pydantic_have_names(
    document: Document, model: str, name: str
) -> None:
    made = of(document, model)

    assert both(made)[0] == reference(name)
    assert name in made["components"]["schemas"]


def test_a_list_and_a_union_refer_to_the_same_components(document: Document) -> None:
    made = of(document, "list[Item] | Tag")

    assert both(made)[1] == {
        "anyOf": [{"type": "array", "items": reference("Item")}, reference("Tag")]
    }


def test_a_default_that_json_cannot_hold_is_left_out(document: Document) -> None:
    schema = of(document, "Never")["components"]["schemas"]["Never"]

    assert schema["properties"]["limit"].get("default", "none") == "none"


@pytest.mark.parametrize("base", ["BaseModel", "Struct"])
def test_schemas_of_packages_are_such_that_generators_read_them(
    document: Document, base: str
) -> None:
    made = document(
        f"""
        from datetime import datetime, timezone
        from typing import Literal
        from msgspec import Struct
        from pydantic import BaseModel

        class Model({base}):
            mixed: Literal["a", 1, None]
            alike: list[Literal["a b", "a-b"]]
            plain: Literal["a", "b"]
            none: tuple[()]
            many: list
            naive: datetime = datetime(2030, 1, 1)
            aware: datetime = datetime(2030, 1, 1, tzinfo=timezone.utc)

        async def handler(model: Model): ...
        """,
        file="Api/v1/X/Post.py",
    )
    found = made["components"]["schemas"]["Model"]["properties"]
    mixed = sorted(found["mixed"]["anyOf"], key=str)

    assert mixed == [{"const": "a"}, {"const": 1}, {"type": "null"}]
    assert found["alike"]["items"]["x-enum-varnames"] == ["a_b", "a_b_2"]
    assert sorted(found["plain"]["enum"]) == ["a", "b"]
    assert "anyOf" not in found["plain"]
    assert found["none"]["items"] == found["many"]["items"] == {}
    # the format requires an offset, and msgspec leaves the format out where that is not needed
    assert ("default" in found["naive"]) is ("format" not in found["naive"])
    assert found["aware"]["default"].startswith("2030-01-01T00:00:00")


def test_constraints_on_parameters_are_said(document: Document) -> None:
    made = document(
        """
        from typing import Annotated
        from annotated_types import Ge, Interval, Len
        from pydantic import Field, StringConstraints

        async def handler(
            *,
            id: Annotated[int, Ge(1)],
            page: Annotated[int, Interval(ge=1, lt=100)] = 1,
            q: Annotated[str, Field(min_length=2, description="Words", pattern="^a")] = "aa",
            code: Annotated[str, StringConstraints(max_length=3)] = "",
            many: Annotated[list[int], Query()] = [],
            two: Annotated[list[int], Query(), Field(min_length=2)],
            any_number: Annotated[list[int], Query(), Field(min_length=0)],
        ): ...
        """,
        file="Api/v1/X/[id]/Get.py",
    )
    found = {p["name"]: p for p in made["paths"]["/v1/x/{id}"]["get"]["parameters"]}

    assert found["id"]["schema"] == {"type": "integer", "minimum": 1}
    assert found["page"]["schema"] == {
        "type": "integer",
        "minimum": 1,
        "exclusiveMaximum": 100,
        "default": 1,
    }
    assert found["q"]["description"] == "Words"
    assert found["q"]["schema"] == {
        "type": "string",
        "minLength": 2,
        "pattern": "^a",
        "default": "aa",
    }
    assert found["code"]["schema"]["maxLength"] == 3
    limits = [found[name]["schema"].get("minItems") for name in ("many", "two", "any_number")]
    assert limits == [None, 2, 1]


FILES = """
    from typing import Annotated
    async def handler({name}: {annotation}): ...
"""
LISTS = ["list[UploadFile]", "Annotated[list[UploadFile], File()]", "list[UploadFile] | None"]


@pytest.mark.parametrize("default", ["", " = None"])
@pytest.mark.parametrize("annotation", [*LISTS, "Annotated[list[str], Form()]"])
def test_an_empty_list_in_a_form_is_refused_where_the_document_says_so(
    serving: Callable[..., Application], ask: Ask, annotation: str, default: str
) -> None:
    text = FILES.format(name="parts", annotation=f"{annotation}{default}")
    app = serving(text, "Api/v1/X/Post.py")
    content = openapi_document(app)["paths"]["/v1/x"]["post"]["requestBody"]["content"]
    validator: Any = Draft202012Validator(content["multipart/form-data"]["schema"])
    part = 'Content-Disposition: form-data; name="parts"; filename="a.txt"\r\n\r\nx'
    if "Form" in annotation:
        part = part.replace('; filename="a.txt"', "")
    other = 'Content-Disposition: form-data; name="other"\r\n\r\nx'
    # a browser sends this where the user selects no file
    unselected = part.replace("a.txt", "").removesuffix("x")

    for sent, parts in [([], other), (["x"], part)] + [([], unselected)] * ("File" in annotation):
        fields = [("content-type", "multipart/form-data; boundary=b")]
        body = f"--b\r\n{parts}\r\n--b--\r\n".encode()
        answer = ask(app, "POST", "/v1/x", headers=fields, chunks=[body])
        admitted = validator.is_valid({"parts": sent})
        assert (answer.status == 204) is admitted is bool(sent or default)


READ = """
    from dataclasses import dataclass
    from enum import Enum
    from typing import Annotated, Generic, Literal, TypeVar

    from msgspec import Meta, Struct
    from pydantic import ConfigDict, Field
    from typing_extensions import TypedDict

    T = TypeVar("T")

    @dataclass
    class Defaults:
        size: int = Field(gt=0)
        word: str = Field(default="a", max_length=2)

    @dataclass
    class Renamed:
        sender: Annotated[str, Field(alias="from")]

    class Closed(TypedDict):
        __pydantic_config__ = ConfigDict(extra="forbid")
        size: int

    @dataclass
    class Both:
        low: Annotated[int, Meta(gt=0)]
        high: Annotated[int, Field(lt=10)]

    @dataclass
    class Outer:
        inner: list[Both]

    class Page(Struct, Generic[T]):
        items: list[T]

    class Hue(Enum):
        RED = "red"

    @dataclass
    class Table:
        hues: dict[Hue, int]
        words: dict[Annotated[str, Field(min_length=2)], int]
        either: dict[Literal["a", "b"], int]

    @dataclass
    class Encoded:
        data: Annotated[bytes, Meta(max_length=2)]
"""


@pytest.mark.parametrize(
    ("model", "taken", "refused"),
    [
        ("Defaults", {"size": 1}, [{}, {"size": 0}, {"size": 1, "word": "abc"}]),
        ("Renamed", {"from": "a"}, [{"sender": "a"}]),
        ("Closed", {"size": 1}, [{"size": 1, "more": 1}]),
        ("Both", {"low": 1, "high": 1}, [{"low": 0, "high": 1}, {"low": 1, "high": 1, "x": 1}]),
        ("Outer", {"inner": []}, [{"inner": [{"low": 1, "high": 1, "x": 1}]}, {"more": 1}]),
        ("Page[int]", {"items": [1]}, [{"items": ["a"]}, {}]),
        (
            "Table",
            {"hues": {"red": 1}, "words": {"ab": 1}, "either": {"a": 1}},
            [
                {"hues": {"a": 1}, "words": {}, "either": {}},
                {"hues": {}, "words": {"a": 1}, "either": {}},
                {"hues": {}, "words": {}, "either": {"c": 1}},
            ],
        ),
        ("Encoded", {"data": "YWI="}, [{"data": 1}]),
    ],
)
def test_the_document_takes_what_the_reader_of_the_body_takes(
    serving: Callable[..., Application],
    ask: Ask,
    model: str,
    taken: Any,
    refused: list[Any],
) -> None:
    text = f"{READ}\n    async def handler(given: {model}): ..."
    app = serving(text, "Api/v1/X/Post.py")
    made = openapi_document(app)
    body = made["paths"]["/v1/x"]["post"]["requestBody"]["content"]["application/json"]
    validator: Any = Draft202012Validator({**body["schema"], "components": made["components"]})

    for document in (taken, *refused):
        answer = ask(app, "POST", "/v1/x", chunks=[json.dumps(document).encode()])
        assert (answer.status == 204) is validator.is_valid(document) is (document is taken)


MSGSPEC = """
    from typing import Annotated
    import msgspec

    class Part(msgspec.Struct):
        size: Annotated[int, msgspec.Meta(gt=0, description="In mm")]

    class Thing(msgspec.Struct, rename="camel"):
        '''Made of parts.'''
        own_parts: list[Part]
        parent: "Thing | None" = None

    async def handler(thing: Thing) -> list[Thing]: ...
"""


def test_structs_are_described_by_msgspec(document: Document) -> None:
    made = document(MSGSPEC, file="Api/v1/X/Post.py")
    schemas = made["components"]["schemas"]

    assert both(made) == (reference("Thing"), {"type": "array", "items": reference("Thing")})
    assert schemas["Thing"]["properties"]["ownParts"]["items"] == reference("Part")
    assert schemas["Part"]["properties"]["size"]["exclusiveMinimum"] == 0
    assert schemas["Thing"]["description"] == "Made of parts."


PLAIN = """
class Colour(enum.Enum):
    RED = "red"

class Inner(BaseModel):
    size: Annotated[int, Field(ge=1)] = 1

class Plain(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: str = Field(min_length=1, examples=["x"])
    inner: list[Inner] | None = None
    by_name: dict[str, "Plain"] = {}
    colour: Colour = Colour.RED
    at: datetime.datetime | None = None
    pair: tuple[int, ...] = ()
    word: Literal["a", "b"] = "a"
"""


@pytest.mark.parametrize(
    ("text", "symmetric"),
    [
        ("class Model(Plain): ...", True),
        ("class Model(Plain):\n    x: float = float('nan')", True),
        ("class Model(Plain):\n    x: decimal.Decimal", False),
        ("class Model(Plain):\n    x: bytes", False),
        ("class Model(Plain):\n    x: int = Field(alias='y')", False),
        ("class Model(Plain):\n    x: int = Field(serialization_alias='y')", False),
        ("class Model(Plain):\n    x: int = Field(default=1, exclude=True)", False),
        ("class Model(Plain):\n    x: Annotated[int, PlainSerializer(str)]", False),
        ("class Model(Plain):\n    x: Annotated[int, WithJsonSchema({}, mode='input')]", False),
        ("class Model(Plain):\n    @field_serializer('name')\n    def f(self, v): ...", False),
        ("class Model(Plain):\n    @model_serializer\n    def f(self): ...", False),
        ("class Model(Plain):\n    @computed_field\n    def f(self) -> int: ...", False),
        ("class Model(Plain):\n    model_config = ConfigDict(alias_generator=str.upper)", False),
        (
            "class Model(Plain):\n    @classmethod\n"
            "    def __get_pydantic_json_schema__(cls, core, handler): return handler(core)",
            False,
        ),
        ("class Other(BaseModel):\n    x: bytes\nclass Model(Plain):\n    o: Other", False),
    ],
)
def test_a_model_of_one_form_is_described_once(text: str, symmetric: bool) -> None:
    names: dict[str, Any] = {"__name__": "here"}
    imports = "import datetime, decimal, enum\nfrom typing import *\nfrom pydantic import *\n"
    # Without the future import of this module, which `exec` would hand on.
    exec(compile(imports + PLAIN, "here", "exec", dont_inherit=True), names)
    names["Plain"].model_rebuild(_types_namespace=names)
    exec(compile(text, "here", "exec", dont_inherit=True), names)
    model = names["Model"]

    assert has_same_input_output_schema(parse_annotation(model)) is symmetric
    if symmetric:
        taken, given = (
            repr(model.model_json_schema(mode=mode, by_alias=mode == "validation"))
            for mode in ("validation", "serialization")
        )
        assert taken == given


def test_the_validator_can_say_no(document: Document) -> None:
    """What holds every document of these tests to the standard is there, and sees a mistake."""
    validator = importlib.import_module("openapi_spec_validator")
    made = of(document, "Item")
    made["paths"]["/v1/x"]["post"]["responses"] = {"200": {}}

    with pytest.raises(validator.OpenAPIV31SpecValidator(made).iter_errors().__next__().__class__):
        validator.validate(made)


HUE = """
    from dataclasses import dataclass
    from enum import Enum

    import msgspec
    from pydantic import BaseModel

    class Hue(Enum):
        '''A colour.'''
        RED = "red"
        BLUE = "blue"

    class Only(Enum):
        ONE = "one"

    class Model(BaseModel):
        hue: Hue
        only: Only = Only.ONE

    class Thing(msgspec.Struct):
        hue: Hue
        only: Only

    @dataclass
    class Plain:
        hue: Hue
        only: Only

    async def handler(given: Model, hue: Hue) -> Model | Thing | Plain: ...
"""


def test_one_enum_is_one_component_for_every_library(document: Document) -> None:
    made = document(HUE, file="Api/v1/X/Post.py")
    schemas = made["components"]["schemas"]

    assert [name for name in schemas if name not in ("Problem", "ValidationProblem")] == [
        "Hue",
        "Model",
        "Only",
        "Plain",
        "Thing",
    ]
    assert schemas["Hue"] == {
        "description": "A colour.",
        "type": "string",
        "enum": ["red", "blue"],
    }
    for name in ("Model", "Plain", "Thing"):
        assert schemas[name]["properties"]["hue"] == reference("Hue")


ITEMS = """
    from enum import Enum
    from typing import Generic, TypeVar
    from pydantic import BaseModel, ConfigDict

    T = TypeVar("T")

    class Kind(Enum):
        {kinds}

    class Inner(BaseModel):
        model_config = ConfigDict(title="The same in all")
        {member}: int
        kind: Kind

    class Box(BaseModel, Generic[T]):
        inside: T

    class Item(BaseModel):
        class Inner(BaseModel):
            deep: bytes
        own: Inner
        boxes: list[Box["Inner"]]

    Other = Inner

    class Holder(BaseModel):
        own: Item
        other: Other
        box: Box[Other]

    async def handler(given: Holder) -> Holder: ...
"""


def test_models_inside_of_models_in_bracket_folders_have_readable_names(
    document: Document,
) -> None:
    made = document(
        {
            "Api/v1/One/[id]/Post.py": ITEMS.format(member="a", kinds="A = 1"),
            "Api/v1/Two/[id]/[sub id]/Post.py": ITEMS.format(member="b", kinds="B = 1; C = 2"),
        }
    )
    schemas = made["components"]["schemas"]

    assert {"Kind", "Inner", "Item", "Holder", "TwoKind", "TwoItem", "TwoHolder"} <= set(schemas)
    assert all("Api" not in name and "__" not in name for name in schemas), list(schemas)
    titles = [schema["title"] for schema in schemas.values() if "title" in schema]
    assert not titles
