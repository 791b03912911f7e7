"""Statements of the ORM as child spans of the request that sends them, on both databases."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from serving import NewDatabase, write_tree

from treefold import Application, Settings
from treefold.testing import TestClient

TREE = {
    "Models/book.py": """
        from treefold.orm import Model, fields

        class Book(Model):
            title = fields.CharField(max_length=50)
        """,
    "Api/v1/Book/Post.py": """
        from Models.book import Book

        async def handler(request):
            await Book.objects.acreate(title="s3cret title")
            return [await Book.objects.acount()]
        """,
    "Api/v1/Plain/Get.py": """
        from Models.book import Book

        def handler(request):
            return [Book.objects.count()]
        """,
    "Services/exporting.py": "from opentelemetry.sdk.trace import TracerProvider\n"
    "provider = TracerProvider()\n",
    "Middleware/__init__.py": """
        from treefold.middleware import Tracing
        from Services.exporting import provider

        middlewares = [Tracing(provider=provider)]
        """,
    "hooks.py": """
        from Models.book import Book
        from treefold.orm import create_all

        on_startup = [lambda: create_all(Book)]
        """,
}


@pytest.fixture
def traced(tmp_path: Path, new_database: NewDatabase) -> Any:
    root = write_tree(tmp_path, TREE)
    exporter = InMemorySpanExporter()
    with new_database() as address:
        app = Application(root, settings=Settings(databases={"default": address}))
        app.boot()
        entry: Any = app.project.boot_files.middlewares[0]
        provider = entry._provider
        provider.add_span_processor(SimpleSpanProcessor(exporter))
        with TestClient(app) as client:
            yield client, exporter


@pytest.mark.parametrize(
    ("method", "target", "count"), [("POST", "/v1/book", 2), ("GET", "/v1/plain", 1)]
)
def test_statements_are_children_of_the_request(
    traced: Any, engine: str, method: str, target: str, count: int
) -> None:
    client, exporter = traced
    assert client.request(method, target).status_code == 200
    *statements, server = exporter.get_finished_spans()

    assert server.name == f"{method} {target}"
    assert len(statements) >= count
    for span in statements:
        assert span.parent.span_id == server.context.span_id
        assert span.attributes["db.system.name"] == {"postgres": "postgresql"}.get(engine, engine)
    assert "s3cret" not in "".join(span.to_json() for span in statements)


def test_two_requests_at_once_keep_their_statements_apart(traced: Any) -> None:
    client, exporter = traced

    async def both() -> None:
        send = asyncio.to_thread
        await asyncio.gather(*(send(client.request, "POST", "/v1/book") for _ in range(5)))

    asyncio.run(both())
    spans = exporter.get_finished_spans()
    servers = {span.context.span_id: span.context.trace_id for span in spans if not span.parent}
    assert len(servers) == 5
    for span in spans:
        if span.parent:
            assert servers[span.parent.span_id] == span.context.trace_id
