"""Constraints in annotations: checked wherever the value comes from, or refused at boot."""

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
from typing import *
from annotated_types import Gt, Len
from msgspec import Meta, Struct
from pydantic import AfterValidator, BaseModel, Field, HttpUrl, PositiveInt, StringConstraints

class Item(BaseModel):
    name: str

class Row(Struct):
    name: str

UserId = NewType("UserId", int)

def field(x: "Annotated[str, Form()]"):
    return x
"""

QUERY = [
    "a: Annotated[int, Field(gt=4)]",
    "a: Annotated[int, Gt(4)]",
    "a: Annotated[int, Meta(gt=4)]",
    "a: Annotated[int, Gt(4), Meta(lt=9)]",
    "a: Annotated[int, Meta(gt=4), Field(lt=9)]",
    "a: Annotated[int, Field(gt=4)] | None = None",
    "a: Annotated[int, Meta(gt=4)] | None = None",
    "a: Annotated[int | None, Field(gt=4)] = None",
    "a: Annotated[Annotated[int, Gt(4)], Query()] = 1",
    "a: Annotated[UserId, Field(gt=4)]",
    "a: Annotated[list[int], Field(max_length=1)]",
    "a: Annotated[list[int], Meta(max_length=1)]",
    "a: Annotated[list[int], Len(max_length=1)] | None = None",
    "a: Annotated[list[int], Field(max_length=1), Query()]",
    "a: list[Annotated[int, Field(gt=4)]]",
    "a: list[Annotated[int, Meta(gt=4)]]",
    "a: list[PositiveInt]",
]


def refusal(serving: Serving, parameters: str) -> str:
    app = serving(f"{NAMES}\nasync def handler({parameters}): ...\n", file="Api/v1/X/[id]/Get.py")
    app.boot()
    (broken,) = app.report.broken
    return broken.error


@pytest.mark.parametrize("parameter", QUERY)
def test_a_query_value_is_checked(serving: Serving, ask: Ask, parameter: str) -> None:
    app = serving(f"{NAMES}\nasync def handler({parameter}):\n    return [a]\n")

    assert ask(app, "GET", "/v1/x?a=5").json() in ([5], [[5]])
    refused = ask(app, "GET", "/v1/x?a=5&a=-5" if "list" in parameter else "/v1/x?a=-5")
    assert refused.status == 422
    (error,) = refused.json()["errors"]
    assert error["loc"][:2] == ["query", "a"]
    assert error["msg"].startswith("a ")


@pytest.mark.parametrize(
    ("parameter", "good", "bad"),
    [
        ("a: Annotated[int, Meta(gt=4), Header()]", "5", "-5"),
        ("a: Annotated[int, Field(gt=4), Cookie()]", "a=5", "a=-5"),
        ("a: Annotated[str, Meta(pattern='^b$'), Header()] = 'c'", "b", "x"),
        ("a: Annotated[str, StringConstraints(max_length=1), Header()]", "b", "xx"),
        ("a: Annotated[list[int], Meta(max_length=1), Header()]", "5", "x"),
        ("a: Annotated[HttpUrl, Field(max_length=12), Header()]", "http://a.b/", "http://a.bcdef/"),
    ],
)
def test_a_header_field_and_a_cookie_are_checked(
    serving: Serving, ask: Ask, parameter: str, good: str, bad: str
) -> None:
    app = serving(f"{NAMES}\nasync def handler({parameter}):\n    return [str(a)]\n")
    name = "cookie" if "Cookie" in parameter else "a"

    assert ask(app, "GET", "/v1/x", headers=[(name, good)]).status == 200
    assert ask(app, "GET", "/v1/x", headers=[(name, bad)]).status == 422


@pytest.mark.parametrize("constraint", ["Field(gt=4)", "Meta(gt=4)", "Gt(4)"])
def test_a_path_parameter_is_checked(serving: Serving, ask: Ask, constraint: str) -> None:
    app = serving(
        f"{NAMES}\nasync def handler(id: Annotated[int, {constraint}]):\n    return [id]\n",
        file="Api/v1/X/[id]/Get.py",
    )

    assert ask(app, "GET", "/v1/x/5").json() == [5]
    refused = ask(app, "GET", "/v1/x/4")
    assert (refused.status, refused.json()["errors"][0]["loc"]) == (422, ["path", "id"])


@pytest.mark.parametrize("constraint", ["Field(gt=4)", "Meta(gt=4)"])
def test_a_field_of_a_form_is_checked(serving: Serving, ask: Ask, constraint: str) -> None:
    app = serving(
        f"{NAMES}\nasync def handler(a: Annotated[int, {constraint}, Form()]):\n    return [a]\n",
        file="Api/v1/X/Post.py",
    )
    headers = [("content-type", "application/x-www-form-urlencoded")]

    assert ask(app, "POST", "/v1/x", headers=headers, chunks=[b"a=5"]).json() == [5]
    assert ask(app, "POST", "/v1/x", headers=headers, chunks=[b"a=4"]).status == 422


def test_a_value_is_converted_as_without_a_constraint(serving: Serving, ask: Ask) -> None:
    app = serving(f"{NAMES}\nasync def handler(a: PositiveInt):\n    return [a]\n")

    for text in ("%205", "1_0", "5.0", "0x5"):
        assert ask(app, "GET", f"/v1/x?a={text}").status == 422


def test_a_value_that_a_validator_made_is_the_value(serving: Serving, ask: Ask) -> None:
    app = serving(
        f"{NAMES}\n"
        "async def handler(a: list[Annotated[int, AfterValidator(lambda v: v + 1)]]): return a\n"
    )

    assert ask(app, "GET", "/v1/x?a=1&a=2").json() == [2, 3]


def test_a_bad_item_is_named_by_its_place(serving: Serving, ask: Ask) -> None:
    app = serving(f"{NAMES}\nasync def handler(a: list[PositiveInt]): ...\n")

    errors = ask(app, "GET", "/v1/x?a=1&a=-1&a=x").json()["errors"]
    assert [error["loc"] for error in errors] == [["query", "a", 1], ["query", "a", 2]]


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ("b: Annotated[dict, Field(max_length=1)] = {}",
         "The constraint on parameter 'b' cannot be checked on dict; use a scalar or a list of"),
        ("a: Annotated[str, Meta(gt=4)]", "The constraint on str cannot be checked: "),
        ("a: int = Field(gt=4)", "'a' of handler() has a constraint as its default; write it into"),
        ("a: Annotated[int, Field(alias='b')]",
         "Field(alias='b') does not rename a parameter; write the name"),
        ("a: Annotated[int, Field(default=1)]",
         "Field(...) in an annotation cannot set a default; write it"),
        ("a: Annotated[list[Row], Field(max_length=1)]",
         "The constraint on the model is of pydantic, but msgspec reads the body and would ignore"),
        ("a: Annotated[list[Item], Meta(max_length=1)]",
         "is of msgspec, but pydantic reads the body and would ignore"),
        ("a: Item, b: Item", "handler() takes the body twice, as 'a' and as 'b'; put both into"),
        ("a: Item, b: Annotated[int, Body()]", "handler() takes the body twice, as 'a' and as 'b'"),
        ("a: Item, b: Annotated[str, Form()]", "takes 'a' from a JSON body and 'b' from a form; a"),
        (
            "a: Item, b: Annotated[str, Depends(field)]",
            "handler() takes 'a' from a JSON body and field() takes 'x' from a form; a request",
        ),
        ("a: Item, b: UploadFile", "takes 'a' from a JSON body and 'b' from a form; a request"),
    ],
)  # fmt: skip
def test_what_could_only_fail_or_be_passed_over_is_refused_at_boot(
    serving: Serving, parameters: str, words: str
) -> None:
    assert words in refusal(serving, parameters)


IMPOSSIBLE = [
    "list[int]", "object", "dict", "dict[str, int]", "set[int]", "tuple[int, int]", "None", "Item",
    "Row", "UploadFile", "Callable[[], int]", "type", "Annotated[list[int], Len(1)]",
    "Literal['a'] | list[int]",
]  # fmt: skip


@pytest.mark.parametrize("annotation", IMPOSSIBLE)
def test_a_path_parameter_that_no_text_can_be_is_refused_at_boot(
    serving: Serving, annotation: str
) -> None:
    assert "which text cannot be converted to" in refusal(serving, f"id: {annotation}")


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        ("int | str", "5", "5"),
        ("str | int", "5", "5"),
        ("int | str", "x", "'x'"),
        ("UserId", "5", "5"),
        ("int | None", "5", "5"),
        ("HttpUrl", "http:%2F%2Fa.b%2F", "HttpUrl('http://a.b/')"),
    ],
)
def test_a_path_parameter_may_be_one_of_several(
    serving: Serving, ask: Ask, annotation: str, text: str, value: str
) -> None:
    app = serving(
        f"{NAMES}\nasync def handler(id: {annotation}):\n    return repr(id)\n",
        file="Api/v1/X/[id]/Get.py",
    )

    assert ask(app, "GET", f"/v1/x/{text}").body.decode() == value


def test_functions_of_one_request_may_each_take_its_body(serving: Serving, ask: Ask) -> None:
    app = serving(
        f"{NAMES}\nasync def name(item: Item) -> str: return item.name\n"
        "async def handler(row: Row, name: str = Depends(name)): return [row.name, name]\n",
        file="Api/v1/X/Post.py",
    )

    assert ask(app, "POST", "/v1/x", chunks=[b'{"name":"a"}']).json() == ["a", "a"]


@pytest.mark.parametrize(
    ("annotation", "query", "status"),
    [
        ("set[Annotated[int, Field(ge=2)]]", "?q=1", 422),
        ("set[Annotated[int, Field(ge=2)]]", "?q=2", 200),
        ("Annotated[set[int], Field(min_length=2)]", "?q=1&q=1", 422),
        ("Annotated[tuple[int, ...], Field(max_length=1)]", "?q=1&q=2", 422),
        ("Annotated[frozenset[int], Meta(min_length=2)]", "?q=1&q=2", 200),
        ("HttpUrl | None", "?q=nothing", 422),
        ("HttpUrl | None", "?q=https://a.example", 200),
        ("ipaddress.IPv4Address", "?q=10.0.0.1", 200),
        ("list[ipaddress.IPv4Address]", "?q=10.0.0", 422),
    ],
)
def test_containers_and_classes_of_texts_with_a_default_are_checked(
    serving: Serving,
    ask: Ask,
    annotation: str,
    query: str,
    status: int,
) -> None:
    text = f"""
import ipaddress
from typing import *
from msgspec import Meta
from pydantic import Field, HttpUrl
def handler(q: {annotation} = None): return "ok"
"""
    app = serving(text)

    assert ask(app, "GET", f"/v1/x{query}").status == status
    assert ask(app, "GET", "/v1/x").status == 200
