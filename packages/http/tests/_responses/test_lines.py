"""Iterators of models: one JSON value a line, as they are produced, and documented so."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_http.openapi import openapi_document

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Ask = Callable[..., "Answer"]
Serving = Callable[..., Application]

HEAD = """
    from collections.abc import AsyncGenerator, AsyncIterator, Generator, Iterator
    from dataclasses import dataclass
    from typing import Any, Literal, TypedDict

    @dataclass
    class Row:
        id: int
        word: str = "é\\n"

    class Table(TypedDict):
        id: int

    left = []
"""
LINE = '{"id":1,"word":"é\\n"}\n{"id":2,"word":"é\\n"}\n'.replace("é\n", "é\\n")

ASYNC = "yield Row(1)\n        yield Row(2)"
WAYS = [
    f"async def handler(request) -> AsyncIterator[Row]:\n        {ASYNC}",
    f"async def handler() -> AsyncGenerator[Row, None]:\n        {ASYNC}",
    f"def handler(request) -> Iterator[Row]:\n        {ASYNC}",
    f"def handler() -> Generator[Row, None, None]:\n        {ASYNC}",
    f"async def handler() -> 'AsyncIterator[Row]':\n        {ASYNC}",
    "async def handler(request) -> Iterator[Row]:\n        return iter([Row(1), Row(2)])",
    "def handler(request) -> Iterator[Row | Table]:\n        return iter([Row(1), Row(2)])",
    "async def handler() -> tuple[Iterator[Row], Literal[200]]:\n"
    "        return iter([Row(1), Row(2)]), 200",
    "async def handler() -> Iterator[Row] | None:\n        return iter([Row(1), Row(2)])",
]


@pytest.mark.parametrize("handler", WAYS)
def test_an_iterator_of_models_is_one_json_object_a_line(
    serving: Serving, ask: Ask, handler: str
) -> None:
    app = serving(f"{HEAD}\n    {handler}\n")
    answer = ask(app, "GET", "/v1/x")
    content = openapi_document(app)["paths"]["/v1/x"]["get"]["responses"]["200"]["content"]

    assert answer.status == 200
    assert answer.fields("content-type") == ["application/x-ndjson"]
    assert answer.body.decode() == LINE
    assert list(content) == ["application/x-ndjson"]
    assert "#/components/schemas/Row" in json.dumps(content)


@pytest.mark.parametrize(
    ("returns", "items"),
    [
        ("AsyncIterator[str]", "'a'"),
        ("AsyncIterator[bytes]", "b'a'"),
        ("AsyncIterator[str | bytes]", "'a'"),
        ("AsyncIterator[Any]", "'a'"),
        ("AsyncIterator", "'a'"),
        ("'AsyncIterator[Nowhere]'", "'a'"),
    ],
)
def test_an_iterator_of_text_or_bytes_stays_a_stream_of_chunks(
    serving: Serving, ask: Ask, returns: str, items: str
) -> None:
    app = serving(f"{HEAD}\n    async def handler() -> {returns}:\n        yield {items}\n")
    answer = ask(app, "GET", "/v1/x")

    assert answer.fields("content-type") == ["application/octet-stream"]
    assert answer.body == b"a"


def test_an_empty_stream_is_no_line(serving: Serving, ask: Ask) -> None:
    app = serving(f"{HEAD}\n    def handler() -> Iterator[Row]:\n        return iter(())\n")
    answer = ask(app, "GET", "/v1/x")

    assert (answer.status, answer.body, answer.complete) == (200, b"", True)
    assert answer.fields("content-type") == ["application/x-ndjson"]


def test_status_and_headers_beside_the_stream_are_sent(serving: Serving, ask: Ask) -> None:
    text = f"""{HEAD}
    status_code = 202
    async def handler(q: int = 0) -> Iterator[Row]:
        if q:
            return iter([{{"id": 1}}]), 201, {{"X-A": "1", "content-type": "application/jsonl"}}
        return iter([{{"id": 1}}])
    """
    app = serving(text)
    plain, whole = ask(app, "GET", "/v1/x"), ask(app, "GET", "/v1/x?q=1")

    assert (plain.status, plain.body) == (202, b'{"id":1}\n')
    assert (whole.status, whole.body) == (201, b'{"id":1}\n')
    assert whole.fields("x-a") == ["1"]
    assert whole.fields("content-type") == ["application/jsonl"]


@pytest.mark.parametrize("kind", ["async def", "def"])
@pytest.mark.parametrize("failure", ["raise OSError('disk')", "yield float('nan')"])
def test_an_error_in_mid_stream_cuts_the_response_off(
    serving: Serving, ask: Ask, lines: Lines, kind: str, failure: str
) -> None:
    iterator = "AsyncIterator" if kind == "async def" else "Iterator"
    text = f"""{HEAD}
    {kind} handler() -> {iterator}[Row]:
        try:
            yield Row(1)
            {failure}
        finally:
            left.append("closed")
    """
    app = serving(text)
    answer = ask(app, "GET", "/v1/x")

    assert answer.body.decode() == LINE.splitlines(keepends=True)[0]
    assert not answer.complete
    module: Any = app.project.modules[app.table.routes[0]]
    assert module.handler.__globals__["left"] == ["closed"]
    assert any("GET /v1/x -> 200" in line for line in lines.texts())


@pytest.mark.parametrize("kind", ["async def", "def"])
def test_a_client_that_leaves_ends_the_producer(
    serving: Serving, exchange: type[Exchange], kind: str
) -> None:
    iterator, wait = ("AsyncIterator", "await asyncio.sleep(0.001)")
    if kind == "def":
        iterator, wait = "Iterator", "time.sleep(0.001)"
    text = f"""{HEAD}
    import asyncio, time
    {kind} handler() -> {iterator}[Row]:
        try:
            while True:
                yield Row(1)
                {wait}
        finally:
            left.append("closed")
    """
    app = serving(text)

    async def main() -> Exchange:
        async with asyncio.timeout(20):
            here = exchange("GET", "/v1/x")
            task = asyncio.create_task(here.run(app))
            await here.first_chunk.wait()
            here.gone.set()
            await asyncio.wait([task])
            return here

    here = asyncio.run(main())
    module: Any = app.project.modules[app.table.routes[0]]
    assert module.handler.__globals__["left"] == ["closed"]
    assert json.loads(here.answer.body.splitlines()[0]) == {"id": 1, "word": "é\n"}


@pytest.mark.parametrize("declared", ["AsyncIterator[Public]", "Public"])
def test_a_response_model_limits_every_item_to_its_fields(
    serving: Serving, ask: Ask, declared: str
) -> None:
    text = f"""{HEAD}
    @dataclass
    class Public:
        id: int

    response_model = {declared}

    async def handler() -> AsyncIterator[Row]:
        yield Row(1, "secret")
        yield {{"id": 2, "word": "secret"}}
    """
    app = serving(text)
    answer = ask(app, "GET", "/v1/x")
    content = openapi_document(app)["paths"]["/v1/x"]["get"]["responses"]["200"]["content"]

    assert answer.body == b'{"id":1}\n{"id":2}\n'
    assert content == {"application/x-ndjson": {"schema": {"$ref": "#/components/schemas/Public"}}}
