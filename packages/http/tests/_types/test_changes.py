"""Bodies of `Changes[...]`: what was sent and nothing else, by dataclasses and TypedDicts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypedDict

import pytest
from http_changes import check_all_rows, decode, describe, list_hints, read_body

from treefold_http import Application, Changes, UnprocessableEntity
from treefold_http._types.read import parse_annotation
from treefold_http._types.serialize import build_serializer

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer

    Serving = Callable[..., Application]
    Ask = Callable[..., Answer]

HINTS = list_hints()
_typed_dict: Any = TypedDict  # checkers want its members in the call
PLAIN = [
    make_dataclass("Required", HINTS.items()),
    make_dataclass("Filled", [(n, t, field(default_factory=int)) for n, t in HINTS.items()]),
    _typed_dict("Total", HINTS),
    _typed_dict("Partial", HINTS, total=False),
]


@pytest.mark.parametrize("model", PLAIN, ids=lambda model: model.__name__)
def test_absent_null_and_values_are_three_things(model: Any) -> None:
    assert check_all_rows(model) > 60


HANDLER = """
from dataclasses import InitVar, dataclass, field
from typing import Annotated, Generic, TypedDict, TypeVar
from treefold_http import Body, Changes, Query

T = TypeVar("T")
@dataclass
class Inner:
    size: int
@dataclass
class Tool:
    name: str
    note: str | None = None
    inner: Inner | None = None
    code: int = field(init=False, default=0)
    def use(self): ...
@dataclass
class Box(Generic[T]):
    item: T
@dataclass
class Checked:
    low: int
    def __post_init__(self): ...
async def handler({}):
    return {{"sent": dict(changes), "named": repr(changes), "n": len(changes)}}
"""


def ask_with(serving: Serving, ask: Ask, parameters: str) -> Callable[[str], tuple[int, Any]]:
    app = serving(HANDLER.format(parameters), file="Api/v1/X/Patch.py")
    headers = [("content-type", "application/json")]

    def send(body: str) -> tuple[int, Any]:
        answer = ask(app, "PATCH", "/v1/x", headers=headers, chunks=[body.encode()])
        return answer.status, answer.json()

    return send


def test_a_handler_gets_what_was_sent(serving: Serving, ask: Ask) -> None:
    send = ask_with(serving, ask, "changes: Changes[Tool]")
    empty: dict[str, Any] = {"sent": {}, "named": "<Changes of nothing>", "n": 0}
    assert send("{}") == (200, empty)
    sent = {"note": None, "name": ""}
    named = "<Changes of note, name>"
    assert send('{"note": null, "name": ""}') == (200, {"sent": sent, "named": named, "n": 2})
    assert send('{"inner": {"size": 0}}')[1]["sent"] == {"inner": {"size": 0}}
    for body in ('{"name": null}', '{"inner": {}}', '{"code": 1}', "[]", "null", ""):
        assert send(body)[0] == 422, body
    assert send('{"name": 1, "name": ""}')[0] == 400  # a name twice
    _, problem = send('{"nam": "x", "zzzzz": 1}')
    assert [(each["loc"], each["msg"], each["type"]) for each in problem["errors"]] == [
        (["body", "nam"], "nam is not known here; use 'name'", "extra"),
        (["body", "zzzzz"], "zzzzz is not known here", "extra"),
    ]
    # the search for near names takes quadratic time
    long = ", ".join(f'"{"n" * 400}{number}": 0' for number in range(2000))
    status, problem = send(f"{{{long}}}")
    assert status == 422
    assert not any("use" in each["msg"] for each in problem["errors"])


def test_generic_models_and_explicit_bodies_are_read(serving: Serving, ask: Ask) -> None:
    send = ask_with(serving, ask, "changes: Annotated[Changes[Box[int]], Body()]")
    assert send('{"item": 0}')[1]["sent"] == {"item": 0}
    assert send('{"item": "x"}')[0] == 422


REFUSED = [
    ("changes: Changes", "Changes must name the model of the changes, got Changes"),
    ("changes: Changes[int]", "write Changes[...] around a dataclass, a TypedDict, a Shape"),
    ("changes: Changes[Tool | Box[int]]", "Changes must name the model of the changes"),
    ("changes: Changes[Checked]", "Changes[Checked] cannot run '__post_init__', which needs all"),
    ("changes: Changes[Tool] | None = None", "must be the whole body"),
    ("changes: list[Changes[Tool]]", "must be the whole body"),
    ("changes: Annotated[Changes[Tool], Query()]", "which Query() cannot provide"),
    ("changes: Changes[Tool], tool: Tool", "takes the body twice"),
    ("changes: 'Changes[Nameless]'", "name 'Nameless' is not defined"),
]


@pytest.mark.parametrize(("parameters", "message"), REFUSED)
def test_other_changes_are_refused_at_boot(serving: Serving, parameters: str, message: str) -> None:
    app = serving(HANDLER.format(parameters), file="Api/v1/X/Patch.py")
    app.boot()
    (broken,) = app.report.broken
    assert message in broken.error


def test_changes_are_never_sent(serving: Serving) -> None:
    text = HANDLER.format("changes: Changes[Tool]") + "\nresponse_model = Changes[Tool]\n"
    app = serving(text, file="Api/v1/X/Patch.py")
    app.boot()
    (broken,) = app.report.broken
    assert "Changes are read from a body and never sent" in broken.error


def test_two_changes_have_names_of_their_own() -> None:
    inner = make_dataclass("Inner", [("size", int)])
    schema, named = describe(make_dataclass("Outer", [("inner", inner)]))
    assert set(named) == {"OuterChanges", "Inner"}
    assert schema["properties"] == {"inner": {"$ref": "#/components/schemas/Inner"}}


class Even:
    """A constraint that checks values itself, as those of columns do."""

    description = "An even number"
    le = 8

    def check_field_value(self, value: int) -> int:
        if value % 2:
            raise ValueError("takes even numbers")
        return value * 10


def test_a_constraint_of_its_own_class_checks_bodies_and_no_responses() -> None:
    hint: Any = Annotated[int, Even()]
    read_only: Any = field(metadata={"read_only": True})
    members = [("key", int, read_only), ("one", hint), ("more", list[hint]), ("no", hint | None)]
    model: Any = make_dataclass("Numbers", members)
    taken = {"one": 20, "more": [40], "no": None}
    assert decode(model, {"one": 2, "more": [4], "no": None}) == taken
    for body in ({"one": 1}, {"more": [2, 3]}, {"no": 1}, {"one": "2"}, {"key": 1}):
        assert decode(model, body) is None, body
    schema, _ = describe(model)
    expected = {"type": "integer", "maximum": 8, "description": "An even number"}
    assert schema["properties"]["one"] == expected
    assert "key" not in schema["properties"]
    row = {"key": 1, "one": 3, "more": [5], "no": 7}
    assert build_serializer(parse_annotation(model))(row) == row
    with pytest.raises(UnprocessableEntity) as refused:
        read_body(model, b'{"key": 1, "one": 3, "no": 5, "more": []}')
    errors = [(each["loc"][1], each["msg"]) for each in refused.value.errors or ()]
    assert errors == [
        ("key", "key is not known here"),
        ("one", "one takes even numbers"),
        ("no", "no takes even numbers"),
    ]


def test_changes_are_a_read_only_mapping() -> None:
    given = {"a": 1}
    changes = Changes[Any](given)
    given["b"] = 2
    assert changes == {"a": 1}
    assert changes.assignable_values() == {"a": 1}
    assert decode(make_dataclass("One", [("a", int)]), {"a": 0}) == {"a": 0}
    with pytest.raises(TypeError):
        changes["a"] = 2  # type: ignore[index]
