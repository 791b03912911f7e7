"""Query parameters with a default are read, or refused at boot; none is silently never read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application
from treefold_http.openapi import openapi_document

if TYPE_CHECKING:
    from conftest import Answer

Serving = Callable[..., Application]
Ask = Callable[..., "Answer"]

HEAD = """
import datetime, enum, logging
from collections.abc import Set, Sequence, Iterable, Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import *
class Color(enum.Enum):
    red = "red"
class Repo:
    pass
@dataclass
class Item:
    n: int
"""
READ: list[tuple[str, str, str, str]] = [
    ("set[int] = set()", "?q=1&q=2&q=2", "{1, 2}", "set()"),
    ("set[int] | None = None", "?q=1", "{1}", "None"),
    ("frozenset[str] = frozenset('a')", "?q=b", "frozenset({'b'})", "frozenset({'a'})"),
    ("tuple[int, ...] = ()", "?q=2&q=1", "(2, 1)", "()"),
    ("tuple[Color, ...] | None = None", "?q=red", "(Color.red,)", "None"),
    ("Set[int] = frozenset()", "?q=1", "frozenset({1})", "frozenset()"),
    ("Sequence[int] = ()", "?q=1&q=1", "[1, 1]", "()"),
    ("Iterable[int] = ()", "?q=1", "[1]", "()"),
    ("Collection[int] | None = None", "?q=1", "[1]", "None"),
    ("timedelta | None = None", "?q=PT90S", "datetime.timedelta(seconds=90)", "None"),
    ("timedelta = timedelta(1)", "?q=-P1DT2H3M4.5S",
     "-timedelta(days=1, seconds=7384, microseconds=500000)", "timedelta(days=1)"),
    ("list[timedelta] = []", "?q=P1W", "[datetime.timedelta(days=7)]", "[]"),
]  # fmt: skip


@pytest.mark.parametrize(("parameter", "query", "value", "default"), READ)
@pytest.mark.parametrize("style", ["def", "async def"])
def test_a_parameter_with_a_default_is_read(
    serving: Serving,
    ask: Ask,
    parameter: str,
    query: str,
    value: str,
    default: str,
    style: str,
) -> None:
    text = f"{HEAD}{style} handler(q: {parameter}): return [q == {value}, q == {default}]\n"
    app = serving(text)

    assert ask(app, "GET", f"/v1/x{query}").json()[0] is True
    assert ask(app, "GET", "/v1/x").json()[1] is True
    (found,) = openapi_document(app)["paths"]["/v1/x"]["get"]["parameters"]
    assert (found["name"], found["in"], found["required"]) == ("q", "query", False)
    assert "uniqueItems" not in found["schema"]


@pytest.mark.parametrize(
    "text",
    ["", "P", "PT", "P1", "1D", "P1H", "PT1D", "P1.5D", "PT1", "P-1D", "90", "P999999999W", "P1DT"],
)
def test_a_text_that_is_no_duration_is_422(serving: Serving, ask: Ask, text: str) -> None:
    app = serving(f"{HEAD}def handler(q: timedelta): return 'ok'\n")
    answer = ask(app, "GET", f"/v1/x?q={text}")

    assert (answer.status, answer.json()["errors"][0]["msg"]) == (
        422,
        "q should be a duration in ISO 8601, such as PT90S",
    )


@pytest.mark.parametrize("where", ["Query", "Header", "Cookie"])
def test_a_set_may_have_a_source_of_its_own(serving: Serving, ask: Ask, where: str) -> None:
    app = serving(f"{HEAD}def handler(q: Annotated[set[int], {where}()]): return sorted(q)\n")
    fields = {"Header": [("q", "2"), ("q", "1")], "Cookie": [("cookie", "q=2; q=1")]}
    target = "/v1/x?q=2&q=1" if where == "Query" else "/v1/x"

    assert ask(app, "GET", target, headers=fields.get(where, [])).json() == [1, 2]
    assert ask(app, "GET", "/v1/x").status == 422


REFUSED = [
    "dict = {}",
    "dict[str, int] | None = None",
    "tuple[int, str] = (1, 'a')",
    "list[dict] = []",
    "set[tuple[int, ...]] = set()",
    "bytes = b''",
    "int | list[int] = 1",
    "Item | int = 1",
    "tuple[Item, ...] = ()",
    "list[list[int]] | None = None",
]


@pytest.mark.parametrize("parameter", REFUSED)
def test_what_the_query_cannot_provide_is_refused_with_its_default(
    serving: Serving, parameter: str
) -> None:
    (broken,) = serving(f"{HEAD}def handler(q: {parameter}): return 'ok'\n").report.broken

    assert "Parameter 'q' of handler() is annotated " in broken.error
    assert "its default would always be used; use a scalar" in broken.error


@pytest.mark.parametrize(
    "parameter",
    ["Repo = Repo()", "logging.Logger | None = None", "Any = 1", "Callable[..., int] = len", "=1"],
)
def test_an_object_of_the_author_keeps_its_default(
    serving: Serving, ask: Ask, parameter: str
) -> None:
    colon = "" if parameter.startswith("=") else ": "
    app = serving(f"{HEAD}def handler(q{colon}{parameter}): return 'ok'\n")

    assert ask(app, "GET", "/v1/x?q=2").body == b"ok"


def test_a_marker_inside_a_set_is_refused(serving: Serving) -> None:
    (broken,) = serving(
        f"{HEAD}def handler(q: set[Annotated[int, Header()]] = set()): return 'ok'\n"
    ).report.broken

    assert "Header() of parameter 'q' of handler() has no effect inside" in broken.error
