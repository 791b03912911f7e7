"""Return annotations that the rulings do not answer are refused at boot, with the way out."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from treefold_http import Application

if TYPE_CHECKING:
    from conftest import Answer

Project = Callable[..., Application]

HEAD = """
import enum, datetime, decimal, functools, uuid
from collections.abc import *
from dataclasses import dataclass
from typing import *
from treefold_http import *
class Level(enum.IntEnum):
    one = 1
class Color(str, enum.Enum):
    red = "red"
class Point(NamedTuple):
    x: int
class Cents(int): ...
class Book: ...
@dataclass
class Item:
    name: str
Number = NewType("Number", int)
"""
FUTURE = "from __future__ import annotations\n"
REFUSED = [
    ("int", "int"),
    ("float", "float"),
    ("bool", "bool"),
    ("complex", "complex"),
    ("None | int", "int"),
    ("Optional[float]", "float"),
    ("Annotated[int, 'x']", "int"),
    ("dict | int", "int"),
    ("Number", "Number"),
    ("Cents", "Cents"),
    ("decimal.Decimal", "Decimal"),
    ("uuid.UUID", "UUID"),
    ("datetime.datetime", "datetime"),
    ("datetime.date", "date"),
    ("datetime.timedelta", "timedelta"),
    ("set[int]", "set"),
    ("frozenset[str]", "frozenset"),
    ("Level", "Level"),
    ("Literal[1, 2]", "Literal"),
    ("Point", "Point"),
    ("tuple[int, int]", "int"),
    ("tuple[bool, Literal[201]]", "bool"),
    ("tuple[dict]", "tuple"),
    ("ValueError", "ValueError"),
]
ALLOWED = [
    *("dict", "dict[str, int]", "list", "list[int]", "str", "bytes", "bytearray", "memoryview"),
    *("None", "Response", "Any", "object", "Item", "list[Item]", "Item | None", "Color", "Book"),
    *("Literal['a']", "tuple[dict, int]", "tuple[Item, int, dict[str, str]]", "tuple", "Gone"),
    *("tuple[int, ...]", "AsyncIterator[str]", "Iterator[bytes]", "Generator", "EventStream"),
    *("Sequence[int]", "Mapping[str, int]", "Iterable[int]", "str | list[str]", "NoReturn"),
    "tuple[None, Literal[204]]",
]


@pytest.mark.parametrize("future", ["", FUTURE], ids=["plain", "text"])
@pytest.mark.parametrize("style", ["def", "async def"])
@pytest.mark.parametrize(("annotation", "named"), REFUSED)
def test_what_cannot_be_a_response_is_refused_at_boot(
    project: Project, annotation: str, named: str, style: str, future: str
) -> None:
    text = f"{future}{HEAD}{style} handler() -> {annotation}: ..."
    (broken,) = project({"Api/v1/X/Get.py": text}).report.broken

    words = "The return annotation of `handler` must be a type that can be a response, got "
    found = broken.error.partition(words)[2]
    assert found.partition(";")[0].startswith((named, f"typing.{named}"))
    assert 'return a dict such as {"value": ...}' in found


@pytest.mark.parametrize("annotation", ALLOWED)
def test_what_may_be_a_response_is_kept(project: Project, annotation: str) -> None:
    for future in ("", FUTURE) if annotation != "Gone" else (FUTURE,):
        text = f"{future}{HEAD}def handler() -> {annotation}: ..."
        assert project({"Api/v1/X/Get.py": text}).report.broken == ()


def test_a_response_model_decides_in_place_of_the_annotation(
    project: Project, ask: Callable[..., Answer]
) -> None:
    text = f"{HEAD}response_model = list[int]\ndef handler() -> set[int]: return {{3}}"

    assert ask(project({"Api/v1/X/Get.py": text}), "GET", "/v1/x").json() == [3]


@pytest.mark.parametrize("declared", ["", " -> int", " -> int | None"])
def test_a_response_model_of_single_values_is_refused_at_boot(
    project: Project, declared: str
) -> None:
    text = f"{HEAD}response_model = int\ndef handler(){declared}: return 3"

    [broken] = project({"Api/v1/X/Get.py": text}).report.broken
    assert "`response_model` must be a type that can be a response, got int" in broken.error


@pytest.mark.parametrize(
    "text",
    [
        "def handler() -> EventStream: return EventStream([1])",
        "async def handler() -> AsyncIterator[int]:\n    yield 3",
        "def handler() -> Response: return Response.text('3')",
    ],
)
def test_a_response_model_may_be_that_of_single_events_and_lines(
    project: Project, text: str
) -> None:
    head = "from treefold_http import EventStream, Response\n"
    app = project({"Api/v1/X/Get.py": f"{HEAD}{head}response_model = int\n{text}"})

    assert app.report.broken == ()


def test_a_wrapper_may_turn_the_value_into_a_response(
    project: Project, ask: Callable[..., Answer]
) -> None:
    text = f"""{HEAD}
def counted(function):
    @functools.wraps(function)
    def run():
        return {{"n": function()}}
    return run
@counted
def handler() -> int: return 3
"""
    assert ask(project({"Api/v1/X/Get.py": text}), "GET", "/v1/x").json() == {"n": 3}


def test_a_socket_may_return_anything(project: Project) -> None:
    text = "async def handler(websocket) -> int: return 1"

    assert project({"Api/v1/X/Socket.py": text}).report.broken == ()
