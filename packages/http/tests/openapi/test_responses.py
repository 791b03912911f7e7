"""What the document says of answers: annotations, what the module says, and what can fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Operation = Callable[..., dict[str, Any]]

HEAD = """
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Literal
from treefold_http import *
from treefold_http import UnsupportedMediaType

@dataclass
class Item:
    name: str = ""

"""
ITEM = {"$ref": "#/components/schemas/Item"}
TEXT = {"type": "string"}
BINARY = {"type": "string", "format": "binary"}


def successes(found: dict[str, Any]) -> dict[str, Any]:
    """Status to media type to schema."""
    return {
        status: {media: held.get("schema") for media, held in said.get("content", {}).items()}
        for status, said in found["responses"].items()
        if status[0] == "2"
    }


RETURNS: list[tuple[str, dict[str, Any]]] = [
    ("", {"2XX": {}}),
    (" -> Any", {"2XX": {}}),
    (" -> Item", {"200": {"application/json": ITEM}}),
    (" -> list[Item]", {"200": {"application/json": {"type": "array", "items": ITEM}}}),
    (
        " -> dict[str, int]",
        {
            "200": {
                "application/json": {
                    "type": "object",
                    "additionalProperties": {"type": "integer"},
                }
            }
        },
    ),
    (" -> dict", {"200": {"application/json": {"type": "object"}}}),
    (" -> str", {"200": {"text/plain": {"type": "string"}}}),
    (" -> bytes", {"200": {"application/octet-stream": BINARY}}),
    (" -> None", {"204": {}}),
    (" -> Item | None", {"200": {"application/json": ITEM}, "204": {}}),
    (
        " -> Item | str",
        {"200": {"application/json": ITEM, "text/plain": {"type": "string"}}},
    ),
    (
        " -> Item | list[Item]",
        {"200": {"application/json": {"anyOf": [ITEM, {"type": "array", "items": ITEM}]}}},
    ),
    (" -> tuple[Item, int]", {"2XX": {"application/json": ITEM}}),
    (" -> tuple[Item, Literal[201]]", {"201": {"application/json": ITEM}}),
    (" -> tuple[Item, Literal[HTTPStatus.CREATED]]", {"201": {"application/json": ITEM}}),
    (
        " -> tuple[Item, Literal[200, 201], dict[str, str]]",
        {"200": {"application/json": ITEM}, "201": {"application/json": ITEM}},
    ),
    (" -> tuple[None, Literal[202]]", {"202": {}}),
    (" -> tuple[str, Literal[204]]", {"204": {}}),
    (
        " -> Item | tuple[Item, Literal[201]]",
        {"200": {"application/json": ITEM}, "201": {"application/json": ITEM}},
    ),
    (" -> Response", {"2XX": {}}),
    (" -> StreamingResponse", {"200": {"application/octet-stream": BINARY}}),
    (" -> FileResponse", {"200": {"application/octet-stream": BINARY}}),
    (" -> EventStream", {"200": {"text/event-stream": {}}}),
    (" -> AsyncIterator[bytes]", {"200": {"application/octet-stream": BINARY}}),
    (" -> Annotated[Item, 'x']", {"200": {"application/json": ITEM}}),
    (" -> 'Item'", {"200": {"application/json": ITEM}}),
    (" -> 'Nowhere'", {"2XX": {}}),
]


@pytest.mark.parametrize(("returns", "expected"), RETURNS)
def test_the_return_annotation_is_the_answer(
    operation: Operation, returns: str, expected: dict[str, Any]
) -> None:
    assert successes(operation(f"{HEAD}async def handler(request){returns}: ...")) == expected


FILE = " -> FileResponse"


@pytest.mark.parametrize(
    ("module", "returns", "expected"),
    [
        ("status_code = 201", " -> Item", {"201": {"application/json": ITEM}}),
        ("status_code = 201", "", {"201": {}}),
        ("status_code = 204", " -> Item", {"204": {}}),
        ("response_model = Item", "", {"200": {"application/json": ITEM}}),
        ("response_model = Item", " -> dict[str, Any]", {"200": {"application/json": ITEM}}),
        ("response_model = Item\nstatus_code = 202", "", {"202": {"application/json": ITEM}}),
        (
            "response_model = Item",
            " -> tuple[dict[str, Any], Literal[201]]",
            {"201": {"application/json": ITEM}},
        ),
        (
            "response_model = list[Item]",
            "",
            {"200": {"application/json": {"type": "array", "items": ITEM}}},
        ),
        ("response_model = Item | None", "", {"200": {"application/json": ITEM}, "204": {}}),
        ("responses = {202: Item}", "", {"2XX": {}, "202": {"application/json": ITEM}}),
        ("responses = {200: str}", " -> Item", {"200": {"text/plain": {"type": "string"}}}),
        (
            "responses = {200: {'media_type': 'text/csv'}}",
            "",
            {"2XX": {}, "200": {"text/csv": TEXT}},
        ),
        ("responses = {200: {'media_type': 'image/png'}}", FILE, {"200": {"image/png": BINARY}}),
        (
            "responses = {200: {'media_type': 'Text/csv; a=b'}}",
            FILE,
            {"200": {"Text/csv; a=b": TEXT}},
        ),
        (
            "responses = {200: {'media_type': 'application/hal+json'}}",
            " -> Item",
            {"200": {"application/hal+json": ITEM}},
        ),
        (
            "responses = {200: {'media_type': 'application/hal+json'}}",
            FILE,
            {"200": {"application/hal+json": {}}},
        ),
        (
            "responses = {200: {'media_type': 'application/x-ndjson'}}",
            " -> AsyncIterator[Item]",
            {"200": {"application/x-ndjson": ITEM}},
        ),
        ("responses = {200: {'model': Any}}", FILE, {"200": {"application/json": {}}}),
        ("responses = {200: {'model': None}}", FILE, {"200": {"application/json": {}}}),
        ("response_model = object", "", {"200": {"application/json": {}}}),
    ],
)
def test_the_module_says_more_than_the_annotation(
    operation: Operation, module: str, returns: str, expected: dict[str, Any]
) -> None:
    found = operation(f"{HEAD}{module}\nasync def handler(request){returns}: ...")

    assert successes(found) == expected


MADE: list[tuple[str, list[str]]] = [
    ("FileResponse('a.csv')", ["text/csv"]),
    ("FileResponse('a.b/c.PNG')", ["image/png"]),
    ("FileResponse('a.b/c')", ["application/octet-stream"]),
    ("FileResponse('a.b/.csv')", ["application/octet-stream"]),
    ("FileResponse(path='a.pdf', status=201)", ["application/pdf"]),
    ("FileResponse(f'{name}.csv')", ["text/csv"]),
    ("FileResponse(f'{name}/{name}')", ["application/octet-stream"]),
    ("FileResponse(folder / 'a.csv')", ["text/csv"]),
    ("FileResponse(name)", ["application/octet-stream"]),
    ("FileResponse(name, filename='a.csv')", ["text/csv"]),
    ("FileResponse('a.csv', filename=name)", ["application/octet-stream"]),
    ("FileResponse('a.csv', media_type='Application/X; y=z')", ["application/x"]),
    ("FileResponse('a.csv', media_type=name)", ["application/octet-stream"]),
    ("FileResponse('a.csv', 200, {'Content-Type': 'a/b'})", ["application/octet-stream"]),
    ("FileResponse('a.csv', headers=name)", ["application/octet-stream"]),
    ("FileResponse('a.csv', **name)", ["application/octet-stream"]),
    ("FileResponse(*name)", ["application/octet-stream"]),
    ("Own('a.csv')", ["application/octet-stream"]),
    ("make('a.csv')", ["application/octet-stream"]),
    ("Response.file('a.csv')", ["text/csv"]),
    ("treefold_http.Response.file('a.csv')", ["text/csv"]),
    ("treefold_http.FileResponse('a.csv')", ["text/csv"]),
    ("name.file('a.csv')", ["application/octet-stream"]),
    ("FileResponse('a.csv') if name else FileResponse('a.png')", ["text/csv", "image/png"]),
    ("FileResponse('a.csv') if name else FileResponse(name)", ["application/octet-stream"]),
    ("StreamingResponse(name)", ["application/octet-stream"]),
    ("StreamingResponse(name, media_type='text/csv')", ["text/csv"]),
    ("Response.stream(name, media_type='text/csv')", ["text/csv"]),
]


@pytest.mark.parametrize(("made", "media_types"), MADE)
def test_a_literal_media_type_or_file_name_is_read(
    operation: Operation, made: str, media_types: list[str]
) -> None:
    kind = "StreamingResponse" if "tream" in made else "FileResponse"
    text = "import treefold_http\nclass Own(FileResponse): ...\ndef make(path): ..."
    code = f"async def handler(name, folder, request) -> {kind}:\n    return {made}"
    content = successes(operation(f"{HEAD}{text}\n{code}", file="Api/v1/[name]/[folder]/Get.py"))
    schemas = [TEXT if media.startswith("text/") else BINARY for media in media_types]

    assert content == {"200": dict(zip(media_types, schemas, strict=True))}


def test_the_module_says_more_than_the_source(operation: Operation) -> None:
    found = operation(
        f"{HEAD}responses = {{200: {{'media_type': 'text/tab-separated-values'}}}}\n"
        "async def handler(request) -> FileResponse: return FileResponse('a.csv')"
    )

    assert successes(found) == {"200": {"text/tab-separated-values": TEXT}}


def test_responses_may_say_everything(operation: Operation) -> None:
    found = operation(
        HEAD
        + """
responses = {
    200: "The item, as it is",
    404: "There is no such item",
    409: Item,
    "4XX": {"description": "Anything else"},
    201: {
        "description": "Made",
        "model": Item,
        "headers": {"Location": "Where it is", "X-Count": int},
        "examples": {"one": {"value": {"name": "x"}}},
    },
}
async def handler(request) -> Item: ...
"""
    )["responses"]
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}

    assert found["200"] == {
        "description": "The item, as it is",
        "content": {"application/json": {"schema": ITEM}},
    }
    assert found["404"]["description"] == "There is no such item"
    assert found["404"]["content"].keys() == problem.keys()
    assert found["409"] == {
        "description": "Conflict",
        "content": {"application/json": {"schema": ITEM}},
    }
    assert found["4XX"] == {"description": "Anything else", "content": problem}
    assert found["201"]["headers"] == {
        "Location": {"description": "Where it is", "schema": {"type": "string"}},
        "X-Count": {"schema": {"type": "integer"}},
    }
    assert found["201"]["content"]["application/json"] == {
        "schema": ITEM,
        "examples": {"one": {"value": {"name": "x"}}},
    }


FAILURES: list[tuple[str, set[int]]] = [
    ("async def handler(request): ...", set()),
    ("async def handler(): ...", set()),
    ("async def handler(q: str = ''): ...", {400}),
    ("async def handler(q: str): ...", {400, 422}),
    ("async def handler(q: int = 1): ...", {400, 422}),
    ("async def handler(item: Item): ...", {400, 413, 415, 422}),
    ("async def handler(t: Annotated[str, Form()] = ''): ...", {400, 413, 415}),
    ("async def handler(t: Annotated[int, Form()] = 1): ...", {400, 413, 415, 422}),
    ("async def handler(f: UploadFile): ...", {400, 413, 415, 422}),
    ("async def handler(request): await request.json()", {400, 413, 415}),
    ("async def handler(request): await request.body()", {413}),
    ("timeout = 1\nasync def handler(request): ...", {503}),
    ("async def handler(request): raise NotFound('x')", {404}),
    ("async def handler(request): raise NotFound(f'x {request.id}') from None", {404}),
    ("async def handler(request): raise HTTPError(418, 'x')", {418}),
    ("async def handler(request): raise HTTPError(HTTPStatus.GONE, 'x')", set()),
    ("async def handler(request): raise HTTPError(request.state.x, 'x')", set()),
    ("async def handler(request): return NotFound('x')", set()),
    ("async def handler(request): NotFound('x'); raise ValueError", set()),
    (
        "async def handler(request):\n    try: ...\n    except NotFound: raise ValueError('x')",
        set(),
    ),
    (
        "async def handler(request):\n    if request.id: raise Conflict\n    raise Forbidden('x')",
        {403, 409},
    ),
    (
        "async def who(request): raise Unauthorized('x')\n"
        "def level(who=Depends(who)): raise Forbidden\n"
        "async def handler(level=Depends(level)): ...",
        {401, 403},
    ),
    ("@secured('bearer')\nasync def handler(request): ...", {401}),
    ("@secured('bearer', optional=True)\nasync def handler(request): ...", set()),
]


@pytest.mark.parametrize(("text", "statuses"), FAILURES)
def test_failures_are_those_that_can_be_known(
    operation: Operation, text: str, statuses: set[int]
) -> None:
    found = operation(HEAD + text, file="Api/v1/X/Post.py")["responses"]
    errors = {status: said for status, said in found.items() if status[0] in "45"}

    assert {int(status) for status in errors} == statuses
    for status, said in errors.items():
        name = "ValidationProblem" if status == "422" else "Problem"
        schema = {"$ref": f"#/components/schemas/{name}"}
        (content,) = said["content"].values()
        assert content["schema"] == schema
        assert content["example"]["status"] == int(status)


def test_event_streams_say_what_an_event_holds(operation: Operation) -> None:
    found = operation(
        f"{HEAD}response_model = Item\nasync def handler(request) -> EventStream: ..."
    )

    assert found["x-event-stream"] == {"data": ITEM}
    assert successes(found) == {"200": {"text/event-stream": {}}}


@pytest.mark.parametrize(
    "code",
    ["return EventStream(events())", "stream = EventStream(events(request))\n    return stream"],
)
def test_an_event_stream_is_seen_without_an_annotation(operation: Operation, code: str) -> None:
    found = operation(f"async def events(): yield 1\nasync def handler(request):\n    {code}")

    assert found["x-event-stream"] == {"data": {}}
    assert successes(found) == {"200": {"text/event-stream": {}}}
