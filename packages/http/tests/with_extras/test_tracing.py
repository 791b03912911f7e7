"""Tracing: names and attributes of spans, contexts that come in and go out, no secret in any."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from treefold_http import Application
from treefold_http.middleware import Tracing

if TYPE_CHECKING:
    from packages.http.tests.conftest import Answer, Exchange, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = ("traceparent", f"00-{TRACE}-b7ad6b7169203331-01")
TREE = {
    "Services/exporting.py": """
        from opentelemetry.sdk.trace import TracerProvider
        provider = TracerProvider()
        """,
    "Middleware/__init__.py": """
        from treefold_http.middleware import Tracing
        from Services.exporting import provider
        middlewares = [Tracing(provider=provider)]
        """,
    "extensions.py": """
        class Queue:
            factory = None

            def observe(self, span_factory):
                self.factory = span_factory
                return lambda: None

            def push(self):
                with self.factory("push", {"queue.name": "mail"}):
                    pass

        extensions = [Queue()]
        """,
    "Api/v1/User/[id]/Get.py": """
        from opentelemetry.propagate import inject

        async def handler(request):
            fields = {}
            inject(fields)
            request.app.extensions[-1].push()
            return fields
        """,
    "Api/v1/Plain/Get.py": "def handler(request):\n"
    "    request.app.extensions[-1].push()\n    return 'ok'\n",
    "Api/v1/Reset/[token]/Get.py": "async def handler(request):\n    return 'ok'\n",
    "Api/v1/Crash/Get.py": "async def handler(request):\n    raise LookupError('s3cret')\n",
    "Api/v1/Stream/Get.py": "import asyncio\n"
    "async def handler(request):\n"
    "    for part in 'abc':\n"
    "        request.app.extensions[-1].push()\n"
    "        yield part\n        await asyncio.sleep(0.01)\n",
    "Api/v1/Hang/Get.py": "import asyncio\n"
    "async def handler(request):\n    await asyncio.Event().wait()\n",
    "Api/v1/Chat/[room]/Ws.py": "async def handler(websocket, room):\n"
    "    if room == 'bad':\n        raise LookupError('s3cret')\n"
    "    await websocket.accept()\n",
}


class Spans:
    """An application whose spans are kept."""

    def __init__(self, app: Application) -> None:
        self.app = app
        app.boot()
        entry: Any = app.project.boot_files.middlewares[0]
        self._exporter = InMemorySpanExporter()
        provider = entry._provider
        provider.add_span_processor(SimpleSpanProcessor(self._exporter))

    def taken(self) -> list[ReadableSpan]:
        """The spans that have ended, the last one last."""
        return list(self._exporter.get_finished_spans())

    def facts(self, name: str) -> dict[str, Any]:
        (span,) = [span for span in self.taken() if span.name == name]
        return dict(span.attributes or {})


@pytest.fixture
def spans(project: Project) -> Spans:
    return Spans(project(TREE))


def ids(span: ReadableSpan) -> tuple[str, str | None]:
    """The trace of a span and its parent, as they travel."""
    assert span.context is not None
    parent = None if span.parent is None else f"{span.parent.span_id:016x}"
    return f"{span.context.trace_id:032x}", parent


def test_a_span_is_named_by_its_template(spans: Spans, ask: Ask) -> None:
    answer = ask(spans.app, "GET", "/v1/user/7?q=s3cret")

    assert spans.facts("GET /v1/user/{id}") == {
        "http.request.method": "GET",
        "http.route": "/v1/user/{id}",
        "http.response.status_code": 200,
        "url.scheme": "http",
        "url.path": "/v1/user/7",
        "network.protocol.version": "1.1",
        "client.address": "127.0.0.1",
        "server.address": "example.localhost",
        "treefold.request_id": answer.fields("x-request-id")[0],
    }


def test_a_context_comes_in_and_goes_out(spans: Spans, ask: Ask) -> None:
    sent = ask(spans.app, "GET", "/v1/user/7", headers=[PARENT]).json()["traceparent"]
    child, server = spans.taken()

    assert server.context is not None
    assert ids(server) == (TRACE, "b7ad6b7169203331")
    assert sent == f"00-{TRACE}-{server.context.span_id:016x}-01"
    assert (child.name, ids(child)) == ("push", (TRACE, f"{server.context.span_id:016x}"))


@pytest.mark.parametrize("field", ["junk", "00-0-0-01", f"00-{'0' * 32}-{'0' * 16}-01", "\xff"])
def test_a_context_that_is_none_begins_a_trace(spans: Spans, ask: Ask, field: str) -> None:
    ask(spans.app, "GET", "/v1/plain", headers=[("traceparent", field)])
    child, server = spans.taken()

    assert ids(server)[1] is None
    assert ids(child)[0] == ids(server)[0]


def test_two_requests_are_two_traces(spans: Spans, ask: Ask) -> None:
    ask(spans.app, "GET", "/v1/plain")
    ask(spans.app, "GET", "/v1/plain")

    assert len({ids(span)[0] for span in spans.taken()}) == 2


def test_a_stream_is_in_its_span_to_the_end(spans: Spans, ask: Ask) -> None:
    ask(spans.app, "GET", "/v1/stream", headers=[PARENT])
    *children, server = spans.taken()

    assert [ids(child)[0] for child in children] == [TRACE] * 3
    assert server.start_time is not None
    assert server.end_time is not None
    assert server.end_time - server.start_time > 20_000_000


@pytest.mark.parametrize(
    ("method", "target", "name", "status", "failed"),
    [
        ("GET", "/v1/none", "GET", 404, False),
        ("DELETE", "/v1/plain", "DELETE", 405, False),
        ("EVIL", "/v1/plain", "_OTHER", 405, False),
        ("GET", "/v1/crash", "GET /v1/crash", 500, True),
    ],
)
def test_every_answer_has_its_span(
    spans: Spans, ask: Ask, method: str, target: str, name: str, status: int, failed: bool
) -> None:
    ask(spans.app, method, target)
    (span,) = spans.taken()

    assert span.name == name
    assert spans.facts(name)["http.response.status_code"] == status
    assert span.status.is_ok is not failed
    assert spans.facts(name).get("error.type") == ("LookupError" if failed else None)
    assert "s3cret" not in span.to_json()


def test_s81_a_sensitive_parameter_is_in_no_span(spans: Spans, ask: Ask) -> None:
    ask(spans.app, "GET", "/v1/reset/abc123?token=abc123")

    (span,) = spans.taken()
    assert "abc123" not in span.to_json()
    assert spans.facts("GET /v1/reset/{token}")["url.path"] == "/v1/reset/***"


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/v1/reset/abc123/more", "/v1/reset/***/more"),
        ("/v9/reset/abc123", "/v9/reset/***"),
        ("/v1/reset/abc123%00", "/v1/reset/***"),
    ],
)
def test_s81_a_secret_in_a_path_without_a_route_is_in_no_span(
    spans: Spans, ask: Ask, target: str, path: str
) -> None:
    ask(spans.app, "GET", target)

    (span,) = spans.taken()
    assert "abc123" not in span.to_json()
    assert spans.facts("GET")["url.path"] == path


def test_a_cancelled_request_ends_its_span(spans: Spans, exchange: type[Exchange]) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(exchange("GET", "/v1/hang").run(spans.app))
        for _ in range(20):  # nothing in it waits before the handler does
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert "http.response.status_code" not in spans.facts("GET /v1/hang")


@pytest.mark.parametrize(
    ("room", "status", "error"), [("1", 101, None), ("bad", None, "LookupError")]
)
def test_a_socket_is_one_span(
    spans: Spans, talk: Talk, room: str, status: int | None, error: str | None
) -> None:
    talk(spans.app, f"/v1/chat/{room}", headers=[PARENT])
    facts = spans.facts("WEBSOCKET /v1/chat/{room}")

    assert facts.get("http.response.status_code") == status
    assert facts.get("error.type") == error
    assert ids(spans.taken()[0])[0] == TRACE


def test_an_operation_outside_of_a_request_and_of_another_application_has_no_span(
    spans: Spans, project: Project, ask: Ask
) -> None:
    other = Spans(project(TREE, root="other"))
    for each in (spans, other):
        each.app.extensions[-1].push()
    ask(other.app, "GET", "/v1/plain")

    assert [span.name for span in other.taken()] == ["push", "GET /v1/plain"]
    assert spans.taken() == []


def test_statements_are_left_out_where_the_project_says_so(project: Project, ask: Ask) -> None:
    code = TREE["Middleware/__init__.py"].replace("=provider)", "=provider, statements=False)")
    spans = Spans(project({**TREE, "Middleware/__init__.py": code}))
    ask(spans.app, "GET", "/v1/plain")

    assert spans.app.extensions[-1].factory is None
    assert Tracing().tracer is not None
