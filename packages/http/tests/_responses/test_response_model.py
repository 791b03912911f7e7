"""`response_model`: of what a handler returns, the declared fields go out and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http._plans.handlers import HandlerModule
from treefold_http._types.parameters import InjectionError
from treefold_http._types.read import parse_annotation
from treefold_http._types.serialize import SerializationError, build_serializer

if TYPE_CHECKING:
    from conftest import Answer, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

SECRET = "s3cret-hash"
MODELS = f"""
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from enum import Enum
from typing import Any, Generic, Literal, NamedTuple, NotRequired, TypedDict, TypeVar
from uuid import UUID
T = TypeVar("T")

class Colour(Enum):
    RED = "red"

@dataclass
class Public:
    id: int
    name: str = "nobody"

@dataclass
class Private(Public):
    password_hash: str = {SECRET!r}

@dataclass
class Team:
    lead: Public
    members: list[Public] = field(default_factory=list)

class Row:
    '''What a database gives: attributes, and more of them than anybody is to see.'''
    def __init__(self, **values):
        self.__dict__.update(password_hash={SECRET!r}, **values)

class Named(NamedTuple):
    id: int
    name: str
    password_hash: str

class Entry(TypedDict):
    id: int
    note: NotRequired[str]

@dataclass
class Page(Generic[T]):
    items: list[T]

@dataclass
class People(Page[Public]):
    total: int = 0

@dataclass
class Node:
    value: int
    next: "Node | None" = None

@dataclass
class Odd:
    when: datetime
    day: date
    key: UUID
    colour: Colour
    kind: Literal["a", "b"]
    share: float
    data: bytes
    rest: Any = None
"""


@pytest.fixture
def answer(serving: Project, ask: Ask) -> Callable[..., Answer]:
    """The answer of a handler that returns an expression, its module with a `response_model`."""

    def make(model: str, returned: str, more: str = "") -> Answer:
        handler = f"async def handler(request):\n    return {returned}\n"
        app = serving(f"{MODELS}\nresponse_model = {model}\n{more}\n{handler}")
        return ask(app, "GET", "/v1/x")

    return make


FILTERED: list[tuple[str, str, Any]] = [
    ("Public", "{'id': 1, 'name': 'a', 'password_hash': 's3cret-hash'}", {"id": 1, "name": "a"}),
    ("Public", "Private(1, 'a')", {"id": 1, "name": "a"}),
    ("Public", "Row(id=1, name='a')", {"id": 1, "name": "a"}),
    ("Public", "Row(id=1)", {"id": 1, "name": "nobody"}),
    ("Public", "Named(1, 'a', 's3cret-hash')", {"id": 1, "name": "a"}),
    ("list[Public]", "[Private(1), Row(id=2)]", [{"id": i, "name": "nobody"} for i in (1, 2)]),
    (
        "dict[str, Public]",
        "{'a': Private(1, 'a'), 'b': {'id': 2, 'name': 'b', 'password_hash': 's3cret-hash'}}",
        {"a": {"id": 1, "name": "a"}, "b": {"id": 2, "name": "b"}},
    ),
    (
        "Team",
        "Team(Private(1), [Private(2), Row(id=3)])",
        {
            "lead": {"id": 1, "name": "nobody"},
            "members": [{"id": 2, "name": "nobody"}, {"id": 3, "name": "nobody"}],
        },
    ),
    ("Team", "Row(lead=Private(1))", {"lead": {"id": 1, "name": "nobody"}, "members": []}),
    ("Entry", "Row(id=1)", {"id": 1}),
    ("Entry", "{'id': 1, 'note': 'n', 'password_hash': 's3cret-hash'}", {"id": 1, "note": "n"}),
    ("Page[Public]", "Row(items=(Private(1, 'a'),))", {"items": [{"id": 1, "name": "a"}]}),
    ("People", "Row(items=[Private(1, 'a')])", {"items": [{"id": 1, "name": "a"}], "total": 0}),
    ("Node", "Node(1, Row(value=2, next=None))", {"value": 1, "next": {"value": 2, "next": None}}),
    ("list[tuple[Public, int]]", "[(Private(1, 'a'), 2)]", [[{"id": 1, "name": "a"}, 2]]),
    ("list[Public | int]", "[Private(1, 'a'), 2]", [{"id": 1, "name": "a"}, 2]),
    ("Entry | Public", "Private(1, 'a')", {"id": 1}),
    ("Public | Private", "Private(1, 'a')", {"id": 1, "name": "a", "password_hash": SECRET}),
    ("Public", "(Private(1, 'a'), 201)", {"id": 1, "name": "a"}),
    (
        "Odd",
        "Odd(datetime(2030, 1, 2), date(2030, 1, 2), UUID(int=1), Colour.RED, 'a', 1, b'x', [1])",
        {
            "when": "2030-01-02T00:00:00",
            "day": "2030-01-02",
            "key": "00000000-0000-0000-0000-000000000001",
            "colour": "red",
            "kind": "a",
            "share": 1,
            "data": "eA==",
            "rest": [1],
        },
    ),
    (
        "Odd",
        "{'when': '2030-01-02T00:00:00', 'day': '2030-01-02', 'key': UUID(int=1),"
        " 'colour': 'red', 'kind': 'b', 'share': 1.5, 'data': b'', 'rest': None}",
        {
            "when": "2030-01-02T00:00:00",
            "day": "2030-01-02",
            "key": "00000000-0000-0000-0000-000000000001",
            "colour": "red",
            "kind": "b",
            "share": 1.5,
            "data": "",
            "rest": None,
        },
    ),
]


@pytest.mark.parametrize(("model", "returned", "sent"), FILTERED)
def test_what_is_not_declared_is_not_sent(
    answer: Callable[..., Answer], model: str, returned: str, sent: Any
) -> None:
    got = answer(model, returned)

    assert got.status in (200, 201)
    assert got.json() == sent


@pytest.mark.parametrize(
    ("model", "returned", "where"),
    [
        ("Public", "{'name': 's3cret-hash'}", "'id' is required"),
        ("Public", "{'id': 's3cret-hash'}", "'id' should be int"),
        ("Public", "Public(True)", "'id' should be int"),
        ("Public", "'s3cret-hash'", "it should be an object"),
        ("Public", "['s3cret-hash']", "it should be an object"),
        ("Public", "None", "it should be an object"),
        ("list[Public]", "{'s3cret-hash': 1}", "it should be a list"),
        ("list[Public]", "'s3cret-hash'", "it should be a list"),
        ("list[Public]", "[Public(1), Public(None)]", "'1.id' should be int"),
        ("Team", "Team(Row(name=1))", "'lead.id' is required"),
        ("dict[str, int]", "{'a': 's3cret-hash'}", "'a' should be int"),
        ("dict[str, int]", "['s3cret-hash']", "it should be an object"),
        ("Public | Entry", "{'a': 's3cret-hash'}", "it should be one of Public, Entry"),
        ("list[tuple[int, int]]", "[(1, 2, 3)]", "'0' should have 2 items"),
        ("Literal['a']", "'s3cret-hash'", "it should be one of a"),
        ("bytes", "'s3cret-hash'", "it should be bytes"),
        ("list[date]", "[datetime(2030, 1, 2)]", "'0' should be text"),
        ("FileResponse", "{'a': 's3cret-hash'}", "it should be a response"),
    ],
)
def test_what_does_not_fit_is_a_500_that_shows_no_value(
    answer: Callable[..., Answer], lines: Lines, model: str, returned: str, where: str
) -> None:
    got = answer(model, returned)

    assert got.status == 500
    (error,) = lines.errors()
    fits = "The result of Api/v1/X/Get.py does not fit its `response_model`"
    assert str(error) == f"{fits}: {where}"
    assert error.__suppress_context__
    assert SECRET.encode() not in got.body
    assert not [text for text in lines.texts() if SECRET in text]


AS_THEY_ARE = [
    ("Response.json({'a': 1}, status=201)", 201, b'{"a":1}'),
    ("({'a': 1}, 404)", 404, b'{"a":1}'),
    ("(None, 204)", 204, b""),
    ("iter(['a', 'b'])", 200, b"ab"),
]


@pytest.mark.parametrize(("returned", "status", "body"), AS_THEY_ARE)
def test_what_has_its_form_already_passes(
    answer: Callable[..., Answer], returned: str, status: int, body: bytes
) -> None:
    got = answer("Public", returned)

    assert (got.status, got.body) == (status, body)


@pytest.mark.parametrize("returned", ["(1, 2, 3, 4)", "(Response(), 200)"])
def test_a_tuple_that_is_none_is_refused_by_the_coercion(
    answer: Callable[..., Answer], lines: Lines, returned: str
) -> None:
    assert answer("Public", returned).status == 500
    assert "A handler returned a tuple" in str(lines.errors()[0])


def test_none_is_an_empty_answer_where_the_model_takes_it(answer: Callable[..., Answer]) -> None:
    assert answer("Public | None", "None").status == 204


RESPONSES = "responses = {201: Entry, '4XX': {'model': Public}, 202: 'Soon', 'default': Entry}"


@pytest.mark.parametrize(
    ("returned", "sent"),
    [
        ("(Private(1, 'a'), 200)", {"id": 1, "name": "a"}),
        ("(Private(1, 'a'), 201)", {"id": 1}),
        ("(Private(1, 'a'), 202)", {"id": 1, "name": "a"}),
        ("(Private(1, 'a'), 409)", {"id": 1, "name": "a"}),
        ("(Private(1, 'a'), 500)", {"id": 1}),
        ("(Private(1, 'a'), 200, {'X-A': '1'})", {"id": 1, "name": "a"}),
    ],
)
def test_a_status_with_a_model_of_its_own_is_held_to_that(
    answer: Callable[..., Answer], returned: str, sent: Any
) -> None:
    assert answer("Public", returned, RESPONSES).json() == sent


def test_the_status_of_the_module_stays(answer: Callable[..., Answer]) -> None:
    got = answer("Public", "Private(1, 'a')", "status_code = 201")

    assert (got.status, got.json()) == (201, {"id": 1, "name": "a"})


def test_it_holds_behind_injection_middleware_and_threads(serving: Project, ask: Ask) -> None:
    app = serving(
        f"""{MODELS}
async def seen(request, call_next):
    response = await call_next(request)
    response.headers["X-Seen"] = response.body.decode()
    return response
middlewares = [seen]
timeout = 20
response_model = Public
def handler(id: int):
    return Private(id)
"""
    )
    app.root.joinpath("Api/v1/X/[id]").mkdir()
    (app.root / "Api/v1/X/Get.py").rename(app.root / "Api/v1/X/[id]/Get.py")
    got = ask(app, "GET", "/v1/x/7")

    assert got.json() == {"id": 7, "name": "nobody"}
    assert SECRET not in str(got.headers)


def test_events_are_held_to_it(serving: Project, ask: Ask, lines: Lines) -> None:
    app = serving(
        f"""{MODELS}
response_model = Public
async def source():
    yield Event(Private(1, "a"), "user", id="1")
    yield Row(id=2, name="b")
    yield Event(None, id="2")
    yield {{"id": "{SECRET}"}}
async def handler(request) -> EventStream:
    return EventStream(source())
"""
    )
    got = ask(app, "GET", "/v1/x")

    assert got.body.decode().split("\n\n")[:3] == [
        'event: user\nid: 1\ndata: {"id":1,"name":"a"}',
        'data: {"id":2,"name":"b"}',
        "id: 2",
    ]
    assert SECRET.encode() not in got.body
    assert "'id' should be int" in str(lines.errors()[0])


def test_json_that_a_socket_sends_is_held_to_it(serving: Project, talk: Talk, lines: Lines) -> None:
    app = serving(
        f"""{MODELS}
response_model = Public
async def handler(websocket):
    await websocket.accept()
    await websocket.send_json(Private(1, "a"))
    await websocket.send_text("text is text")
    await websocket.send_json({{"id": "{SECRET}"}})
""",
        "Api/v1/X/Socket.py",
    )
    client = talk(app, "/v1/x", stays=True)

    assert [client.texts[0], client.texts[1]] == ['{"id":1,"name":"a"}', "text is text"]
    assert client.code == 1011
    assert len(client.texts) == 2
    assert "The result of Api/v1/X/Socket.py does not fit" in str(lines.errors()[0])


@pytest.mark.parametrize(
    ("model", "words"),
    [
        ("tuple[Public, Literal[201]]", "must be the type of the content, got a tuple; set"),
        (
            "type('Plain', (), {})",
            "`response_model` must be a type that responses can be checked against, got Plain: ",
        ),
        (
            "list[type('Plain', (), {})]",
            "; use a dataclass, a TypedDict, a model of pydantic or msgspec, or a list",
        ),
    ],
)
def test_a_model_that_no_answer_can_be_held_to_is_an_error_at_boot(
    answer: Callable[..., Answer], lines: Lines, model: str, words: str
) -> None:
    assert answer(model, "{}").status == 500
    assert any(
        isinstance(error, InjectionError) and words in str(error) for error in lines.errors()
    )


def test_a_route_without_one_is_the_handler_itself(serving: Project) -> None:
    app = serving("async def handler(request): return {}")
    app.boot()
    ((_, plan),) = app.project.plans.items()
    ((_, module),) = app.project.modules.items()

    assert isinstance(module, HandlerModule)
    assert plan.run is module.handler


def test_a_shape_may_hold_itself_and_names_the_place_of_what_does_not_fit() -> None:
    with pytest.raises(SerializationError, match=r"^'a\.b' should be int$"):
        build_serializer(parse_annotation(dict[str, dict[str, int]]))({"a": {"b": "no"}})
    assert (
        json.dumps(build_serializer(parse_annotation(dict[str, Any]))({"a": [1]})) == '{"a": [1]}'
    )
