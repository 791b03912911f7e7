"""Names of types, as a `type` statement gives them: each stands for what it names, everywhere.

Written as calls, because Python 3.11 has no such statement; from 3.12 on both make the same class.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

Serving = Callable[..., Application]
Ask = Callable[..., "Answer"]

NAMES = """
from dataclasses import dataclass, field
from typing import *
from typing_extensions import TypeAliasType
from annotated_types import Gt
from msgspec import Meta, Struct
from pydantic import BaseModel, Field
T, U = TypeVar("T"), TypeVar("U")

Number = TypeAliasType("Number", int)
Perhaps = TypeAliasType("Perhaps", int | None)
Large = TypeAliasType("Large", Annotated[int, Field(gt=4)])
Big = TypeAliasType("Big", Annotated[int, Meta(gt=4)])
Named = TypeAliasType("Named", Annotated[Number, Query("b")])
Page = TypeAliasType("Page", list[T], type_params=(T,))
Either = TypeAliasType("Either", T | U, type_params=(T, U))
Swapped = TypeAliasType("Swapped", dict[U, T], type_params=(T, U))
Same = TypeAliasType("Same", T, type_params=(T,))

async def three(): return 3
Three = TypeAliasType("Three", Annotated[int, Depends(three)])

class Model(BaseModel):
    n: Large

class Row(Struct):
    n: Annotated[int, Meta(gt=4)]

class Crossed(Struct):
    n: Annotated[int, Field(gt=4)]

@dataclass
class Both:
    n: Large
    m: Page[Big]

@dataclass
class Public:
    n: int

NewModel = NewType("NewModel", Model)
NewRow = NewType("NewRow", Crossed)
Rows = NewType("Rows", list[Row])
Numbers = NewType("Numbers", list[int])
Models = TypeAliasType("Models", list[Model])
"""

QUERY: list[tuple[str, Any]] = [
    ("Number", 5),
    ("Number | None", 5),
    ("Perhaps", 5),
    ("Large", 5),
    ("Big", 5),
    ("Page[Number]", [5]),
    ("Page[Large]", [5]),
    ("list[Big]", [5]),
    ("Either[Large, None]", 5),
    ("Same[Large]", 5),
    ("Named", 6),
    ("Three", 3),
    ("Annotated[Page[Big], Query()]", [5]),
    ("Numbers", [5]),
]


@pytest.mark.parametrize("quote", ["", "'"], ids=["value", "text"])
@pytest.mark.parametrize("default", ["", " = None"])
@pytest.mark.parametrize(("annotation", "value"), QUERY)
def test_a_parameter_is_what_the_name_stands_for(
    serving: Serving, ask: Ask, annotation: str, value: Any, default: str, quote: str
) -> None:
    parameter = f"a: {quote}{annotation}{quote}{default}"
    app = serving(f"{NAMES}\nasync def handler({parameter}):\n    return [a]\n")

    assert ask(app, "GET", "/v1/x?a=5&b=6").json() == [value]


@pytest.mark.parametrize(
    "annotation", ["Large", "Big", "Page[Large]", "list[Big]", "Either[Big, None]", "Same[Big]"]
)
@pytest.mark.parametrize("default", ["", " = None"])
def test_the_constraint_of_a_name_is_checked(
    serving: Serving, ask: Ask, annotation: str, default: str
) -> None:
    app = serving(f"{NAMES}\nasync def handler(a: {annotation}{default}):\n    return [a]\n")

    assert ask(app, "GET", "/v1/x?a=4").status == 422


@pytest.mark.parametrize("annotation", ["Large", "Big"])
def test_the_constraint_of_a_name_is_checked_in_the_path(
    serving: Serving, ask: Ask, annotation: str
) -> None:
    app = serving(
        f"{NAMES}\nasync def handler(id: {annotation}):\n    return [id]\n",
        file="Api/v1/X/[id]/Get.py",
    )

    assert ask(app, "GET", "/v1/x/5").json() == [5]
    assert ask(app, "GET", "/v1/x/4").status == 422


@pytest.mark.parametrize("default", ["", " = None"])
@pytest.mark.parametrize(
    ("annotation", "good", "bad"),
    [
        ("Models", b'[{"n":5}]', b'[{"n":4}]'),
        ("Page[Model]", b'[{"n":5}]', b'[{"n":4}]'),
        ("Either[Model, None]", b'{"n":5}', b'{"n":4}'),
        ("Same[Row]", b'{"n":5}', b'{"n":4}'),
        ("Page[Row]", b'[{"n":5}]', b'[{"n":4}]'),
        ("NewModel", b'{"n":5}', b'{"n":4}'),
        ("Rows", b'[{"n":5}]', b'[{"n":4}]'),
        ("Both", b'{"n":5,"m":[5]}', b'{"n":5,"m":[5,4]}'),
        ("Both", b'{"n":5,"m":[5]}', b'{"n":4,"m":[]}'),
        ("Annotated[Swapped[Large, str], Body()]", b'{"a":5}', b'{"a":4}'),
    ],
)
def test_a_body_is_what_the_name_stands_for(
    serving: Serving, ask: Ask, annotation: str, default: str, good: bytes, bad: bytes
) -> None:
    app = serving(
        f"{NAMES}\nasync def handler(a: {annotation}{default}):\n    return [a is None]\n",
        file="Api/v1/X/Post.py",
    )

    assert ask(app, "POST", "/v1/x", chunks=[good]).json() == [False]
    assert ask(app, "POST", "/v1/x", chunks=[bad]).status == 422


@pytest.mark.parametrize("annotation", ["Page[Crossed]", "Page[NewRow]", "NewRow"])
@pytest.mark.parametrize("default", ["", " = None"])
def test_a_constraint_that_would_be_passed_over_is_refused_behind_a_name(
    serving: Serving, annotation: str, default: str
) -> None:
    app = serving(f"{NAMES}\nasync def handler(a: {annotation}{default}): ...\n")
    app.boot()

    (broken,) = app.report.broken
    assert "The constraint on Crossed.n is of pydantic, but msgspec reads the body" in broken.error


@pytest.mark.parametrize(
    ("model", "returned", "sent"),
    [
        ("Page[Public]", [{"n": 1, "password": "x"}], [{"n": 1}]),
        ("Swapped[Public, str]", {"a": {"n": 1, "password": "x"}}, {"a": {"n": 1}}),
        ("Same[Public]", {"n": 1, "password": "x"}, {"n": 1}),
        ("Either[Page[Public], None]", [{"n": 1, "password": "x"}], [{"n": 1}]),
    ],
)
def test_an_answer_is_held_to_the_arguments_of_a_name(
    serving: Serving, ask: Ask, model: str, returned: Any, sent: Any
) -> None:
    app = serving(
        f"{NAMES}\nresponse_model = {model}\nasync def handler():\n    return {returned}\n"
    )

    assert ask(app, "GET", "/v1/x").json() == sent
