"""Bodies of `Changes[...]` over models of pydantic and structs of msgspec."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pytest
from annotated_types import Len
from http_changes import check_all_rows, decode, describe, list_hints
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, create_model, field_validator, model_validator

from treefold_http import Changes
from treefold_http._types.decode import build_model_decoder
from treefold_http._types.parameters import InjectionError
from treefold_http._types.read import parse_annotation

HINTS = list_hints()
FILLED: Any = {name: (hint, 0) for name, hint in HINTS.items()}
REQUIRED: Any = {name: (hint, ...) for name, hint in HINTS.items()}
SETTINGS = ConfigDict(extra="allow", validate_default=True, frozen=True)
MODELS = [
    create_model("Required", **REQUIRED),
    create_model("Filled", **FILLED),
    create_model("Open", __config__=SETTINGS, **FILLED),
    msgspec.defstruct("Struct", list(HINTS.items())),
    msgspec.defstruct("Frozen", [(n, t, None) for n, t in HINTS.items()], frozen=True),
]


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_absent_null_and_values_are_three_things(model: Any) -> None:
    assert check_all_rows(model) > 60


class Tool(BaseModel):
    """A tool."""

    model_config = ConfigDict(populate_by_name=True)
    name: str = Field(max_length=3, alias="Name")
    size: int = Field(default=3, gt=1, examples=[4])
    tags: list[Annotated[str, Len(1)]] = Field(default_factory=list)

    @field_validator("name")
    @classmethod
    def capitalize(cls, value: str) -> str:
        if value == "no":
            raise ValueError("refused")
        return value.upper()


class Renamed(msgspec.Struct, rename={"title": "Title"}):
    title: Annotated[str, msgspec.Meta(max_length=3)]


def test_constraints_validators_and_aliases_of_members_hold() -> None:
    assert decode(Tool, {"Name": "abc"}) == {"name": "ABC"}
    assert decode(Tool, {"name": "abc"}) == {"name": "ABC"}
    for body in ({"Name": "long"}, {"Name": "no"}, {"size": 1}, {"tags": [""]}, {"nome": "x"}):
        assert decode(Tool, body) is None, body
    assert Tool(Name="x").size == 3  # the model itself stays as it was
    schema, named = describe(Tool)
    assert set(named) == {"ToolChanges"}
    assert schema["properties"]["Name"] == {"type": "string", "maxLength": 3, "title": "Name"}
    validator: Any = Draft202012Validator(schema)
    assert validator.is_valid({})
    assert validator.is_valid({"Name": "abc", "size": 2})
    assert not validator.is_valid({"Name": "abcd"})
    assert decode(Renamed, {"Title": ""}) == {"title": ""}
    assert decode(Renamed, {"title": ""}) is None
    assert decode(Renamed, {"Title": "long"}) is None
    assert describe(Renamed)[0]["properties"]["Title"]["maxLength"] == 3


class Ranged(BaseModel):
    low: int
    high: int

    @model_validator(mode="after")
    def ordered(self) -> Ranged:
        return self


class Tagged(msgspec.Struct, tag="x"):
    low: int


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Ranged, "Changes[Ranged] cannot run the validator 'ordered', which needs all members"),
        (Tagged, "Changes[Tagged] cannot run the tag or the array form of a struct"),
    ],
)
def test_rules_of_all_members_are_refused_at_boot(model: Any, message: str) -> None:
    with pytest.raises(InjectionError, match="use a model without it") as refused:
        build_model_decoder(parse_annotation(Changes[model]))
    assert message in str(refused.value)
