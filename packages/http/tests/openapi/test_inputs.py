"""What the document says of parameters and bodies: the same that the injection does with them."""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import pytest

from treefold_http._types.scalars import DECIMAL

Operation = Callable[..., dict[str, Any]]

PATH = "Api/v1/X/[id]/Get.py"
SEGMENT = {"type": "string", "minLength": 1, "pattern": r"^[^\u0000-\u001f\u007f]+$"}
NAMES = {"propertyNames": {"pattern": r'^[^\u0000-\u001f\u007f"\\]+$'}}


def parameters(operation: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {f"{p['in']} {p['name']}": p for p in operation.get("parameters", [])}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        ("", SEGMENT),
        (": str", SEGMENT),
        (": int", {"type": "integer"}),
        (": float", {"type": "number"}),
        (": bool", {"type": "boolean"}),
        (": UUID", {"type": "string", "format": "uuid"}),
        (": date", {"type": "string", "format": "date"}),
        (": datetime", {"type": "string", "format": "date-time"}),
        (": time", {"type": "string", "format": "time"}),
        (": Decimal", dict(DECIMAL)),
        (": Literal['a', 'b']", {"type": "string", "enum": ["a", "b"]}),
        (": Literal[1, 2]", {"type": "integer", "enum": [1, 2]}),
        (": int | None", {"type": "integer"}),
        (": Annotated[int, Doc('The number')]", {"type": "integer"}),
    ],
)
def test_a_path_parameter_has_its_type(
    operation: Operation, annotation: str, schema: dict[str, Any]
) -> None:
    found = operation(
        f"""
        from datetime import date, datetime, time
        from decimal import Decimal
        from typing import Annotated, Literal
        from uuid import UUID

        class Doc:
            def __init__(self, documentation): self.documentation = documentation

        async def handler(id{annotation}): ...
        """,
        file=PATH,
    )
    (parameter,) = found["parameters"]

    assert parameter["name"] == "id"
    assert parameter["in"] == "path"
    assert parameter["required"] is True
    assert parameter["schema"] == schema
    assert parameter.get("description") == ("The number" if "Doc" in annotation else None)


def test_path_parameters_are_there_whoever_reads_them(operation: Operation) -> None:
    found = operation("async def handler(request): ...", file="Api/v1/X/[id]/Y/[at]/Get.py")

    assert list(parameters(found)) == ["path id", "path at"]


@pytest.mark.parametrize(
    ("parameter", "place", "required", "schema"),
    [
        ("q: str", "query q", True, {"type": "string"}),
        ("q: str = 'x'", "query q", False, {"type": "string", "default": "x"}),
        ("q: str | None = None", "query q", False, {"type": "string"}),
        ("q: int = 5", "query q", False, {"type": "integer", "default": 5}),
        (
            "q: list[int]",
            "query q",
            True,
            {"type": "array", "items": {"type": "integer"}, "minItems": 1},
        ),
        (
            "q: list[str] | None = None",
            "query q",
            False,
            {"type": "array", "items": {"type": "string"}},
        ),
        ("q: Annotated[int, Query('n')]", "query n", True, {"type": "integer"}),
        ("x_token: Annotated[str, Header()]", "header x-token", True, {"type": "string"}),
        ("t: Annotated[str, Header('X-T')] = ''", "header X-T", False, None),
        ("sid: Annotated[str | None, Cookie()] = None", "cookie sid", False, {"type": "string"}),
    ],
)
def test_a_scalar_has_its_place_type_and_default(
    operation: Operation, parameter: str, place: str, required: bool, schema: dict[str, Any] | None
) -> None:
    found = parameters(
        operation(f"from typing import Annotated\nasync def handler({parameter}): ...")
    )

    assert list(found) == [place]
    assert found[place]["required"] is required
    assert found[place]["schema"] == (schema or {"type": "string", "default": ""})


def test_an_enum_is_a_component(document: Callable[..., Any]) -> None:
    made = document(
        """
        import enum

        class Colour(enum.Enum):
            '''What it looks like.'''
            RED = "red"
            BLUE = "blue"

        async def handler(colour: Colour = Colour.RED, other: Colour | None = None): ...
        """
    )
    first, second = made["paths"]["/v1/x"]["get"]["parameters"]

    assert made["components"]["schemas"]["Colour"] == {
        "description": "What it looks like.",
        "type": "string",
        "enum": ["red", "blue"],
    }
    assert first["schema"] == {"allOf": [reference("Colour")], "default": "red"}
    assert second["schema"] == reference("Colour")


def test_dependencies_bring_their_parameters(operation: Operation) -> None:
    found = operation(
        """
        from typing import Annotated

        def page(number: int = 1, size: int = 20): ...

        async def account(token: Annotated[str, Header()], page=Depends(page)): ...

        async def handler(number: int, who=Depends(account), page=Depends(page)): ...
        """
    )

    assert list(parameters(found)) == ["query number", "header token", "query size"]
    assert parameters(found)["query number"]["required"] is True


def test_header_fields_that_openapi_says_elsewhere_are_left_out(operation: Operation) -> None:
    found = operation(
        """
        from typing import Annotated
        async def handler(authorization: Annotated[str, Header()]): ...
        """
    )

    assert "parameters" not in found


MODEL = """
    from dataclasses import dataclass, field
    from typing import Annotated

    @dataclass
    class Item:
        '''A thing.'''
        name: str
        count: int = 1
        tags: list[str] = field(default_factory=list)

    @dataclass
    class Other:
        at: float
"""
ITEM = {
    "description": "A thing.",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "count": {"type": "integer", "default": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["name"],
}
# Our own checks, which read a body where neither is installed, take no member that is unknown.
EXTRAS = find_spec("pydantic") or find_spec("msgspec")
UNKNOWN: dict[str, Any] = {} if EXTRAS else {"additionalProperties": False}


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    ("parameter", "required", "schema"),
    [
        ("item: Item", True, reference("Item")),
        ("item: Item | None = None", False, {"anyOf": [reference("Item"), {"type": "null"}]}),
        ("items: list[Item]", True, {"type": "array", "items": reference("Item")}),
        ("item: Item | Other", True, {"anyOf": [reference("Item"), reference("Other")]}),
        ("n: Annotated[int, Body()]", True, {"type": "integer"}),
        (
            "n: Annotated[dict[str, float], Body()]",
            True,
            {"type": "object", "additionalProperties": {"type": "number"}},
        ),
    ],
)
def test_a_model_is_the_json_body(
    document: Callable[..., Any], parameter: str, required: bool, schema: dict[str, Any]
) -> None:
    made = document(f"{MODEL}\n    async def handler({parameter}): ...", file="Api/v1/X/Post.py")
    body = made["paths"]["/v1/x"]["post"]["requestBody"]

    assert body == {"required": required, "content": {"application/json": {"schema": schema}}}
    if "Item" in str(schema):
        assert made["components"]["schemas"]["Item"] == ITEM | UNKNOWN


def test_a_form_may_come_in_either_type(operation: Operation) -> None:
    found = operation(
        """
        from typing import Annotated
        async def handler(text: Annotated[str, Form()], stars: Annotated[int, Form()] = 5): ...
        """,
        file="Api/v1/X/Post.py",
    )
    schema = {
        "type": "object",
        "properties": {"text": {"type": "string"}, "stars": {"type": "integer", "default": 5}},
        "required": ["text"],
    }

    assert found["requestBody"] == {
        "required": True,
        "content": {
            "application/x-www-form-urlencoded": {"schema": schema},
            "multipart/form-data": {"schema": {**schema, **NAMES}},
        },
    }


def test_files_come_in_multipart_only(operation: Operation) -> None:
    found = operation(
        """
        from typing import Annotated
        async def handler(
            image: UploadFile,
            more: list[UploadFile],
            rest: Annotated[list[UploadFile], File("r")] = [],
            other: Annotated[UploadFile | None, File("o")] = None,
            text: Annotated[str, Form()] = "",
        ): ...
        """,
        file="Api/v1/X/Post.py",
    )
    binary = {"type": "string", "format": "binary"}

    assert found["requestBody"]["required"] is True
    assert found["requestBody"]["content"] == {
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {
                    "image": binary,
                    "more": {"type": "array", "items": binary, "minItems": 1},
                    "r": {"type": "array", "items": binary},
                    "o": binary,
                    "text": {"type": "string", "default": ""},
                },
                "required": ["image", "more"],
                **NAMES,
            }
        }
    }


@pytest.mark.parametrize(
    ("code", "media_types"),
    [
        ("await request.json()", ["application/json"]),
        ("await request.form()", ["application/x-www-form-urlencoded", "multipart/form-data"]),
        ("await request.files()", ["multipart/form-data"]),
        ("await request.body()", ["application/octet-stream"]),
        ("request.stream()", ["application/octet-stream"]),
        ("request.app.state.json()", []),
        ("print(request)", []),
    ],
)
def test_a_body_that_the_handler_reads_itself_is_named(
    operation: Operation, code: str, media_types: list[str]
) -> None:
    found = operation(f"async def handler(request):\n    {code}", file="Api/v1/X/Post.py")
    content = found.get("requestBody", {"content": {}})["content"]

    assert list(content) == media_types
    assert all("schema" in media for media in content.values())
