"""Types as JSON Schema: the form that our own JSON gives them, components, and their names."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import math
import typing
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, Generic, Literal, NamedTuple, NewType, NotRequired, TypedDict

import pytest

from treefold_http._types.read import parse_annotation
from treefold_http._types.scalars import DECIMAL
from treefold_http.openapi._components import Components
from treefold_http.openapi._schemas import Mode, Schemas

T = typing.TypeVar("T")
Document = Callable[..., dict[str, Any]]


def schema_of(kind: Any, mode: Mode = "output") -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema, and the components that it refers to."""
    components = Components()
    schema = Schemas(components).build_type_schema(parse_annotation(kind), mode)
    return schema, components.resolve_named_schemas()


def reference(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


UserId = NewType("UserId", int)
STRING = {"type": "string"}
INTEGER = {"type": "integer"}
NULL = {"type": "null"}
AB = {"type": "string", "enum": ["a", "b"]}


class Pair(NamedTuple):
    left: int
    right: str


class Gt:
    def __init__(self, gt: int) -> None:
        self.gt = gt


class Length:
    min_length = 1
    max_length = 5


@pytest.mark.parametrize(
    ("kind", "schema"),
    [
        (None, NULL),
        (Any, {}),
        (object, {}),
        (bool, {"type": "boolean"}),
        (int, INTEGER),
        (float, {"type": "number"}),
        (str, STRING),
        (bytes, {"type": "string", "contentEncoding": "base64"}),
        (decimal.Decimal, dict(DECIMAL)),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (datetime.date, {"type": "string", "format": "date"}),
        (datetime.time, {"type": "string", "format": "time"}),
        (datetime.timedelta, {"type": "string", "format": "duration"}),
        (list, {"type": "array", "items": {}}),
        (list[int], {"type": "array", "items": INTEGER}),
        (Sequence[int], {"type": "array", "items": INTEGER}),
        (set[str], {"type": "array", "items": STRING, "uniqueItems": True}),
        (frozenset[str], {"type": "array", "items": STRING, "uniqueItems": True}),
        (tuple, {"type": "array", "items": {}}),
        (type("Rows", (list,), {}), {"type": "array", "items": {}}),
        (tuple[int, ...], {"type": "array", "items": INTEGER}),
        (
            tuple[int, str],
            {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [INTEGER, STRING]},
        ),
        (tuple[()], {"type": "array", "minItems": 0, "maxItems": 0, "items": {}}),
        (
            Pair,
            {"type": "array", "minItems": 2, "maxItems": 2, "prefixItems": [INTEGER, STRING]},
        ),
        (dict, {"type": "object"}),
        (dict[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (Mapping[str, int], {"type": "object", "additionalProperties": INTEGER}),
        (int | None, {"anyOf": [INTEGER, NULL]}),
        (int | str, {"anyOf": [INTEGER, STRING]}),
        (int | Any, {}),
        (UserId | int, INTEGER),
        (Literal["a"], {"const": "a"}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal[1, "b", None], {"anyOf": [{"const": 1}, {"const": "b"}, NULL]}),
        (Literal[1, True, "a", "b"], {"anyOf": [{"const": 1}, {"const": True}, AB]}),
        (Literal[True, False], {"type": "boolean"}),
        (
            Literal["a b", "a-b", "A_B", "c"],
            {
                "type": "string",
                "enum": ["a b", "a-b", "A_B", "c"],
                "x-enum-varnames": ["a_b", "a_b_2", "A_B_3", "c"],
            },
        ),
        (UserId, INTEGER),
        (Annotated[int, Gt(5)], {"type": "integer", "exclusiveMinimum": 5}),
        (Annotated[str, Length()], {"type": "string", "minLength": 1, "maxLength": 5}),
        (
            Annotated[list[int], Length()],
            {"type": "array", "items": INTEGER, "minItems": 1, "maxItems": 5},
        ),
        (
            Annotated[dict[str, int], Length()],
            {
                "type": "object",
                "additionalProperties": INTEGER,
                "minProperties": 1,
                "maxProperties": 5,
            },
        ),
        (Annotated[int, "a word", int, Gt(math.nan)], INTEGER),  # pyright: ignore[reportArgumentType] - said wrongly
        (Annotated[int, []], INTEGER),
        (Gt, {}),
        (Callable[[int], str], {}),
        (T, {}),
        ("text", {}),
        (5, {}),
    ],
)
def test_a_type_has_the_schema_of_its_json(kind: Any, schema: dict[str, Any]) -> None:
    assert schema_of(kind) == (schema, {})


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class One(enum.Enum):
    """The only one."""

    ONE = "one"


@dataclasses.dataclass
class Tree:
    """A node and what hangs on it."""

    level: Level
    children: list[Tree] = dataclasses.field(default_factory=list["Tree"])
    parent: Tree | None = None
    made: str = dataclasses.field(default="now", init=False)


class Options(TypedDict, total=False):
    name: typing.Required[str]
    size: int


class More(Options):
    unit: NotRequired[str]
    level: Level


@dataclasses.dataclass
class Page(Generic[T]):
    items: list[T]
    next: Page[T] | None = None


class Right(enum.IntFlag):
    READ = 1
    WRITE = 2


@dataclasses.dataclass
class Rights:
    given: Right = Right.READ | Right.WRITE


def test_enums_are_components() -> None:
    assert schema_of(Level) == (
        reference("Level"),
        {"Level": {"type": "integer", "enum": [1, 2]}},
    )
    assert schema_of(One)[1] == {"One": {"description": "The only one.", "enum": ["one"]}}


class Ratio(enum.Enum):
    HALF = 0.5
    THIRD = 0.25


class Mixed(enum.Enum):
    TEXT = "text"
    NUMBER = 1
    OFF = False
    MANY = (1, 2)


class Alike(enum.Enum):
    SPACED = "a b"
    DASHED = "a-b"
    DASH_ED = "A B"


def test_an_enum_of_several_types_is_an_option_for_each() -> None:
    ratios: list[dict[str, Any]] = [{"const": 0.5}, {"const": 0.25}]
    others = [{"const": "text"}, {"const": 1}, {"const": False}, {"const": [1, 2]}]

    assert schema_of(Ratio)[1] == {"Ratio": {"anyOf": ratios}}
    assert schema_of(Mixed)[1] == {"Mixed": {"anyOf": others}}


def test_texts_of_an_enum_that_are_alike_are_named_by_its_members() -> None:
    assert schema_of(Alike)[1]["Alike"] == {
        "type": "string",
        "enum": ["a b", "a-b", "A B"],
        "x-enum-varnames": ["SPACED", "DASHED", "DASH_ED_2"],
    }


MOMENT = datetime.datetime(2030, 1, 1)
AWARE = MOMENT.replace(tzinfo=datetime.UTC)


@dataclasses.dataclass
class Moments:
    naive: datetime.datetime = MOMENT
    maybe: datetime.datetime | None = MOMENT
    clock: datetime.time = datetime.time(8)
    many: Sequence[datetime.datetime] = (MOMENT,)
    aware: datetime.datetime = AWARE
    text: datetime.datetime | str = MOMENT
    day: datetime.date = datetime.date(2030, 1, 1)


def test_a_time_without_an_offset_is_no_default() -> None:
    properties = schema_of(Moments)[1]["Moments"]["properties"]

    assert {name: made["default"] for name, made in properties.items() if "default" in made} == {
        "aware": "2030-01-01T00:00:00Z",
        "text": "2030-01-01T00:00:00",
        "day": "2030-01-01",
    }


def test_a_flag_is_any_sum_of_its_members() -> None:
    _, named = schema_of(Rights)

    assert named["Right"] == {"type": "integer"}
    assert named["Rights"]["properties"]["given"]["default"] == 3


def test_a_dataclass_may_hold_itself_and_differs_by_direction() -> None:
    schema, components = schema_of(Tree, "output")
    given = components["Tree"]

    assert schema == reference("Tree")
    assert list(components) == ["Level", "Tree"]
    assert given["description"] == "A node and what hangs on it."
    assert given["properties"]["children"] == {"type": "array", "items": reference("Tree")}
    assert given["properties"]["parent"] == {
        "anyOf": [reference("Tree"), NULL],
        "default": None,
    }
    assert given["required"] == ["level", "children", "parent", "made"]

    taken = schema_of(Tree, "input")[1]["Tree"]
    assert list(taken["properties"]) == ["level", "children", "parent"]
    assert taken["required"] == ["level"]


def test_typed_dicts_say_what_must_be_there() -> None:
    components = schema_of(More)[1]

    assert components["More"] == {
        "type": "object",
        "properties": {
            "name": STRING,
            "size": INTEGER,
            "unit": STRING,
            "level": reference("Level"),
        },
        "required": ["name", "level"],
    }


def test_generics_have_a_component_for_each_use() -> None:
    components = schema_of(Page[Level] | Page[int] | Page[dict[str, list[int]]])[1]

    assert list(components) == ["Level", "Page_Level", "Page_dict_str_list_int", "Page_int"]
    assert components["Page_Level"]["properties"] == {
        "items": {"type": "array", "items": reference("Level")},
        "next": {"anyOf": [reference("Page_Level"), NULL], "default": None},
    }


def test_both_directions_of_one_model_are_one_component_while_they_are_the_same() -> None:
    components = Components()
    schemas = Schemas(components)
    same = (
        schemas.build_type_schema(parse_annotation(More), "input"),
        schemas.build_type_schema(parse_annotation(More), "output"),
    )
    differ = (
        schemas.build_type_schema(parse_annotation(Tree), "input"),
        schemas.build_type_schema(parse_annotation(Tree), "output"),
    )
    names = list(components.resolve_named_schemas())

    assert same == (reference("More"), reference("More"))
    assert differ == (reference("TreeInput"), reference("Tree"))
    assert names == ["Level", "More", "Tree", "TreeInput"]


class Broken:
    """Whatever is asked of it fails."""

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


Unknown = dataclasses.make_dataclass("Unknown", [("there", int), ("gone", "Nowhere")])


@dataclasses.dataclass
class Strange:
    value: Any = dataclasses.field(default=math.nan)
    other: Any = dataclasses.field(default=Broken)
    number: Any = dataclasses.field(default=None)


Strange.__annotations__["number"] = int  # a default of another type, as it happens


def test_what_cannot_be_described_says_nothing() -> None:
    assert schema_of(Broken()) == ({}, {})
    assert schema_of(list[Unknown]) == (
        {"type": "array", "items": reference("Unknown")},
        {"Unknown": {}},
    )
    assert schema_of(Strange)[1]["Strange"]["properties"] == {
        "value": {},
        "other": {},
        "number": INTEGER,
    }


CLASSES = """
    from dataclasses import dataclass

    @dataclass
    class Sub:
        {sub}

    @dataclass
    class Item:
        sub: Sub

    async def handler(request) -> Item: ...
    """


def names_of(document: dict[str, Any]) -> dict[str, str]:
    """Path to the name of the component of its answer."""
    found: dict[str, str] = {}
    for path, item in document["paths"].items():
        content = item["get"]["responses"]["200"]["content"]
        found[path] = content["application/json"]["schema"]["$ref"].rpartition("/")[2]
    return found


def test_copies_of_a_version_share_a_component_while_they_are_the_same(
    document: Document,
) -> None:
    text = CLASSES.format(sub="name: str")
    made = document({"Api/v1/A/Get.py": text, "Api/v2/A/Get.py": text})

    assert list(made["components"]["schemas"]) == ["Item", "Sub"]
    assert names_of(made) == {"/v1/a": "Item", "/v2/a": "Item"}


def test_models_of_one_name_that_differ_deep_inside_have_names_of_their_own(
    document: Document,
) -> None:
    files = {
        "Api/v1/A/Get.py": CLASSES.format(sub="name: str"),
        "Api/v1/B/Get.py": CLASSES.format(sub="name: int"),
        "Api/v2/A/Get.py": CLASSES.format(sub="name: float"),
    }
    made = document(files)
    names = names_of(made)

    assert len(set(names.values())) == 3
    assert names["/v1/a"] == "Item"
    assert names["/v2/a"] == "Item_v2"
    assert len(made["components"]["schemas"]) == 6
    assert names_of(document(files, "v2", root="again")) == {"/v2/a": "Item"}


def test_our_own_schemas_give_way_to_no_model_of_their_name(document: Document) -> None:
    made = document(
        """
        from dataclasses import dataclass

        @dataclass
        class Problem:
            mine: int

        async def handler(q: int) -> Problem:
            raise NotFound("x")
        """
    )
    responses = made["paths"]["/v1/x"]["get"]["responses"]
    schemas = {
        status: said["content"].popitem()[1]["schema"]["$ref"].rpartition("/")[2]
        for status, said in responses.items()
    }

    assert schemas["404"] != schemas["200"]
    assert "mine" in made["components"]["schemas"][schemas["200"]]["properties"]
    assert "detail" in made["components"]["schemas"][schemas["404"]]["properties"]
