"""Models as dependencies: `page: Page = Depends()` takes the members from the query."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Serving = Callable[..., Application]
Ask = Callable[..., "Answer"]

NAMES = """
import dataclasses, msgspec, pydantic

class Struct(msgspec.Struct):
    limit: int = 10
    tags: list[str] = []
    kinds: list[str] = msgspec.field(default_factory=lambda: ["own"])

class Model(pydantic.BaseModel):
    limit: int = 10
    tags: list[str] = pydantic.Field(default_factory=list)
    kinds: list[str] = pydantic.Field(default_factory=lambda: ["own"])

@dataclasses.dataclass
class Record:
    limit: int = 10
    tags: list[str] = dataclasses.field(default_factory=list)
    kinds: list[str] = dataclasses.field(default_factory=lambda: ["own"])

Checked = pydantic.dataclasses.dataclass(Record)
"""


@pytest.mark.parametrize("kind", ["Struct", "Model", "Record", "Checked"])
@pytest.mark.parametrize(
    ("query", "values"),
    [
        ("", [10, [], ["own"]]),
        ("?limit=5&tags=a", [5, ["a"], ["own"]]),
        ("?tags=a&tags=b&kinds=c", [10, ["a", "b"], ["c"]]),
    ],
)
def test_what_is_not_sent_is_made_by_the_factory_of_the_class(
    serving: Serving, ask: Ask, kind: str, query: str, values: list[object]
) -> None:
    app = serving(
        f"{NAMES}\nasync def handler(page: {kind} = Depends()):\n"
        "    page.tags.append('mine')\n"
        "    return [page.limit, page.tags[:-1], page.kinds]\n"
    )

    assert ask(app, "GET", f"/v1/x{query}").json() == values
    assert ask(app, "GET", f"/v1/x{query}").json() == values


@pytest.mark.parametrize("kind", ["Struct", "Model", "Record", "Checked"])
def test_what_is_sent_and_does_not_fit_is_422(serving: Serving, ask: Ask, kind: str) -> None:
    app = serving(f"{NAMES}\nasync def handler(page: {kind} = Depends()): ...\n")

    assert ask(app, "GET", "/v1/x?limit=many").status == 422
