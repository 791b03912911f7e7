"""Which source a parameter is read from, and what is refused before anything is served."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from conftest import Answer

Plan = Callable[..., Application]
Ask = Callable[..., "Answer"]

HEAD = """
from dataclasses import dataclass
from typing import Annotated, Any

@dataclass
class Model:
    a: int = 0

class Other: ...

class Row:
    __parameter_remedy__ = "take a model of its columns"

@dataclass
class Holder:
    row: Row

def find_a() -> int: ...
"""


@pytest.fixture
def plan(serving: Plan) -> Plan:
    """An application with a handler of these parameters."""

    def make(parameters: str, file: str = "Api/v1/X/Post.py") -> Application:
        return serving(f"{HEAD}\nasync def handler({parameters}):\n    return [a]\n", file)

    return make


def broken(app: Application) -> list[str]:
    app.boot()
    return [found.error.removeprefix("InjectionError: ") for found in app.report.broken]


REFUSED = [
    (
        "a: Other",
        "Nothing provides parameter 'a' of handler(); name it after a path parameter, annotate it"
        " with a scalar for the query or a model for the body, or give it Depends(...)",
    ),
    (
        "a: Annotated[Other, Header()]",
        "Parameter 'a' of handler() is annotated Other, which Header() cannot provide;"
        " use a scalar or a list of scalars",
    ),
    ("a: Annotated[list[Other], Query()]", "Parameter 'a' of handler() is annotated"),
    (
        "a: Annotated[bytes, File()]",
        "Parameter 'a' of handler() is annotated bytes, which File() cannot provide;"
        " use UploadFile or a list of it",
    ),
    ("a: Annotated[list[str], File()]", "Parameter 'a' of handler() is annotated list"),
    (
        "a: str = Header()",
        "Parameter 'a' of handler() has Header() as its default; write Annotated[..., Header()]",
    ),
    (
        "a: Annotated[int, Body('b')]",
        "Body('b') of parameter 'a' of handler() names a member, but a parameter takes the"
        " whole body; declare a model with that member",
    ),
    (
        "a: Annotated[int, Header()] | str",
        "Header() of parameter 'a' of handler() has no effect inside another type;"
        " write Annotated[..., Header(...)] around the whole type",
    ),
    (
        "a: list[Annotated[int, Cookie]] = []",
        "Cookie() of parameter 'a' of handler() has no effect inside",
    ),
    (
        "a: list[Annotated[int, Query()]] | None = None",
        "Query() of parameter 'a' of handler() has no effect inside",
    ),
    (
        "a: Annotated[int, Depends(print)] | Annotated[str, Depends(print)] = 5",
        "Depends() of parameter 'a' of handler() has no effect inside another type;",
    ),
    ("a: int = Query('b')", "Parameter 'a' of handler() has Query() as its default;"),
    ("a: str = Cookie", "Parameter 'a' of handler() has Cookie() as its default;"),
    ("a: UploadFile = File()", "Parameter 'a' of handler() has File() as its default;"),
    ("a: int = Depends", "Depends of parameter 'a' of handler() must be called; write a: ... ="),
    ("a: Annotated[int, Depends]", "Depends of parameter 'a' of handler() must be called; write"),
    *(
        (
            f"a: {annotation}",
            "Parameter 'a' of handler() cannot be of type Row: take a model of its columns",
        )
        for annotation in (
            *("Row", "Row | None = None", "list[Row]", "Annotated[Row, Body()]", "Holder"),
            *("Changes[Holder]", "Annotated[Row, Query()]"),
        )
    ),
    *(
        (
            f"a: {annotation}",
            "Parameter 'a' of handler() is annotated dict, which the query cannot provide;"
            " annotate it with a model of the body, or write Annotated[dict, Body()] for any JSON",
        )
        for annotation in ("dict", "dict[str, Any]")
    ),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED, ids=lambda text: text[:30])
def test_what_nothing_can_give_is_refused_at_boot(
    plan: Plan, parameters: str, message: str
) -> None:
    (found,) = broken(plan(parameters))

    assert found.startswith(message)


def test_a_path_parameter_that_text_cannot_become_is_refused_at_boot(plan: Plan) -> None:
    (found,) = broken(plan("a: Other", "Api/v1/X/[a]/Post.py"))

    assert found.startswith(
        "Path parameter 'a' of handler() is annotated Other, which text cannot be converted to;"
    )


@pytest.mark.parametrize(
    ("parameters", "target", "value"),
    [
        ("a: int", "/v1/x/5?a=6", 5),
        ("a: Annotated[int, Query()]", "/v1/x/5?a=6", 5),
        ("a", "/v1/x/5?a=6", "5"),
        ("b: int, a: int", "/v1/x/5?b=6", 5),
    ],
)
def test_the_path_comes_before_every_other_source(
    plan: Plan, ask: Ask, parameters: str, target: str, value: object
) -> None:
    app = plan(parameters, "Api/v1/X/[a]/Post.py")

    assert ask(app, "POST", target).json() == [value]


@pytest.mark.parametrize(
    ("parameters", "query", "value"),
    [
        ("a: Other = None", "?a=1", None),
        ("a=5", "?a=1", 5),
        ("*, a: int = 5", "?a=1", 1),
        ("a: int | None = None", "?a=1", 1),
        ("a: list[int] = []", "?a=1", [1]),
        ("a: Annotated[int, 'a note'] = 5", "?a=1", 1),
    ],
)
def test_only_what_is_annotated_is_filled_from_the_request(
    plan: Plan, ask: Ask, parameters: str, query: str, value: object
) -> None:
    assert ask(plan(parameters), "POST", f"/v1/x{query}").json() == [value]


def test_names_in_a_request_reach_no_object_that_was_injected(serving: Plan, ask: Ask) -> None:
    app = serving(
        """
        class Database:
            name = "ours"

        def database():
            return Database()

        async def handler(request, db=Depends(database), config=None, self: int = 0):
            return [type(request).__name__, db.name, config, self]
        """,
        "Api/v1/X/Post.py",
    )
    body = b'{"request":1,"db":{"name":"theirs"},"config":2,"self":4}'
    headers = [("content-type", "application/json"), ("db", "5"), ("cookie", "config=6")]
    answer = ask(
        app, "POST", "/v1/x?request=1&db=2&config=5&self=3", chunks=[body], headers=headers
    )

    assert answer.json() == ["Request", "ours", None, 3]


def test_an_explicit_body_is_never_the_query(plan: Plan, ask: Ask) -> None:
    app = plan("a: Annotated[Any, Body()] = 5")

    assert ask(app, "POST", "/v1/x?a=6", chunks=[b"7"]).json() == [7]
    assert ask(app, "POST", "/v1/x?a=6").json() == [5]
