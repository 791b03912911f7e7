"""Facts of models of pydantic and structs of msgspec: of their members, not of their schemas."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import dedent

import pytest

from treefold_contract import read_lock, write_lock
from treefold_http import Application
from treefold_http.contract import build_project_lock


@pytest.fixture
def types(project: Callable[..., Application]) -> Callable[[str], str]:
    """The types in the lock of one handler."""

    def make(text: str) -> str:
        app = project({"Api/v1/X/Post.py": f"from treefold_http import *\n{dedent(text)}"})
        text = write_lock(build_project_lock(app).lock)
        assert write_lock(read_lock(text)) == text
        return text[text.index("type ") :].replace("\n\n", "\n")

    return make


def test_a_model_of_pydantic(types: Callable[[str], str]) -> None:
    found = types(
        """
        from datetime import datetime
        from typing import Annotated, Literal
        from pydantic import (
            AnyUrl, AwareDatetime, BaseModel, ConfigDict, Field, PositiveInt, RootModel,
            computed_field,
        )

        class Tags(RootModel[list[str]]): ...

        class Cat(BaseModel):
            kind: Literal["cat"]

        class Dog(BaseModel):
            kind: Literal["dog"]

        class Pet(BaseModel):
            model_config = ConfigDict(extra="forbid")
            id: PositiveInt
            name: Annotated[str, Field(max_length=80, pattern="^[a-z]+$")]
            born: AwareDatetime
            site: AnyUrl | None = None
            tags: Tags = Tags([])
            note: str = Field("", alias="remark")
            made: datetime = Field(default_factory=datetime.now)
            parent: Annotated[Cat | Dog, Field(discriminator="kind")]

            @computed_field
            @property
            def label(self) -> str: return self.name

        async def handler(pet: Pet) -> Pet: ...
        """
    )

    assert found == dedent(
        """\
        type Cat
          kind    "cat"
        type Dog
          kind    "dog"
        type Pet in closed
          born    str datetime-aware
          id      int lax >0
          made    str datetime = computed
          name    str len ..80 match "^[a-z]+$"
          parent  Cat | Dog tag kind
          remark  str = ""
          site    str url | null = null
          tags    [str] = []
        type Pet out
          born    str datetime-aware
          id      int >0
          label   str
          made    str datetime = computed
          name    str len ..80 match "^[a-z]+$"
          parent  Cat | Dog tag kind
          remark  str = ""
          site    str url | null = null
          tags    [str] = []
        """
    )


def test_a_struct_of_msgspec(types: Callable[[str], str]) -> None:
    found = types(
        """
        from typing import Annotated
        import msgspec

        class Get(msgspec.Struct, tag=True):
            key: str

        class Put(msgspec.Struct, tag=True):
            key: str
            value: str

        class Point(msgspec.Struct, array_like=True):
            x: int
            y: int

        class Order(
            msgspec.Struct, rename="camel", forbid_unknown_fields=True, omit_defaults=True
        ):
            line_count: Annotated[int, msgspec.Meta(ge=1)]
            at: Point
            step: Get | Put
            note: str = ""

        async def handler(order: Order) -> Order: ...
        """
    )

    assert found == dedent(
        """\
        type Get
          key     str
          type    "Get"
        type Order in closed
          at      Point
          lineCount int >=1
          note    str = ""
          step    Get | Put tag type
        type Order out
          at      Point
          lineCount int >=1
          note    str ?
          step    Get | Put tag type
        type Point = (int, int)
        type Put
          key     str
          type    "Put"
          value   str
        """
    )


def test_a_dataclass_is_open_and_lax_where_pydantic_decodes_it(types: Callable[[str], str]) -> None:
    found = types(
        """
        from dataclasses import dataclass

        @dataclass
        class Order:
            count: int

        async def handler(order: Order) -> Order: ...
        """
    )

    assert found == "type Order\n  count   int lax\n"


def test_changes_are_a_type_of_their_own(types: Callable[[str], str]) -> None:
    found = types(
        """
        from pydantic import BaseModel

        class Tool(BaseModel):
            name: str
            price: float = 0.0

        async def handler(tool: Changes[Tool]) -> Tool: ...
        """
    )

    assert found == dedent(
        """\
        type Changes_Tool closed
          name    str ?
          price   float lax ?
        type Tool
          name    str
          price   float = 0.0
        """
    )
