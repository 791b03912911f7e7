"""Any exception, raised anywhere: one answer, one line, and the application lives (R-21)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextvars import copy_context
from textwrap import dedent
from typing import TYPE_CHECKING, Any

import pytest

from treefold_http import Application
from treefold_logging import request_id

if TYPE_CHECKING:
    from conftest import Answer, Exchange, Lines

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]

HEAD = "from treefold_http import *\n"


# -- errors


ENDS = [
    ("ValueError('s3cret')", 500),
    ("SystemExit('s3cret')", 500),
    ("KeyboardInterrupt('s3cret')", 500),
    ("BaseException('s3cret')", 500),
    ("GeneratorExit('s3cret')", 500),
    ("__import__('asyncio').CancelledError('s3cret')", 500),
    ("ExceptionGroup('s3cret', [ValueError()])", 500),
    ("RecursionError('s3cret')", 500),
    ("StopIteration('s3cret')", 500),
    ("StopAsyncIteration('s3cret')", 500),
    ("TimeoutError('s3cret')", 500),
    ("HTTPError(418, 'tea')", 418),
    ("NotFound('no such user')", 404),
]

PLACES = {
    "async": """
        async def handler(request):
            raise {error}
    """,
    "plain": """
        def handler(request):
            raise {error}
    """,
    "dependency": """
        async def fail():
            raise {error}

        async def handler(x=Depends(fail)): ...
    """,
    "plain dependency": """
        def fail():
            raise {error}

        async def handler(x=Depends(fail)): ...
    """,
    "generator": """
        async def fail():
            raise {error}
            yield

        async def handler(x=Depends(fail)): ...
    """,
    "inside generators": """
        async def whole():
            yield 1

        def plain():
            yield 1

        async def handler(x=Depends(whole), y=Depends(plain)):
            raise {error}
    """,
    "class": """
        class Fail:
            def __init__(self):
                raise {error}

        async def handler(x=Depends(Fail)): ...
    """,
    "middleware": """
        async def fail(request, call_next):
            raise {error}

        middlewares = [fail]

        async def handler(request): ...
    """,
    "after the handler": """
        async def fail(request, call_next):
            await call_next(request)
            raise {error}

        middlewares = [fail]

        async def handler(request): ...
    """,
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("error", "status"), ENDS)
def test_whatever_is_raised_is_an_answer_a_line_and_no_end(
    project: Project, ask: Ask, lines: Lines, place: str, error: str, status: int
) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": HEAD + dedent(PLACES[place].format(error=error)),
            "Api/v1/Ok/Get.py": "async def handler(request):\n    return 'alive'",
        }
    )
    app.boot()
    lines.records.clear()
    answer = ask(app, "GET", "/v1/x")

    assert (answer.status, answer.complete) == (status, True)
    assert answer.fields("content-type") == ["application/problem+json"]
    assert answer.fields("x-content-type-options") == ["nosniff"]
    assert b"s3cret" not in answer.body
    assert len(lines.records) == 1
    assert lines.records[0].levelno == (logging.ERROR if status == 500 else logging.INFO)
    assert len(lines.errors()) == (1 if status == 500 else 0)
    assert ask(app, "GET", "/v1/ok").body == b"alive"


@pytest.mark.parametrize(
    "text",
    [
        "return object()",
        "return float('nan')",
        "return {'a': float('nan')}",
        "return {'a': object()}",
        "return ('x', 99)",
        "return ('x', 200, {'x': 'a\\r\\nb'})",
        "return ('x', 200, {'x': request.query['v']})",
        "return Response('x', headers={'location': request.query['v']})",
        "return Response.redirect(request.query['v'])",
        "r = Response('x'); r.set_cookie('a', request.query['v']); return r",
        "raise HTTPError(400, 'x', headers={'x': request.query['v']})",
        "raise HTTPError(400, 'x', errors=[{'x': object()}])",
        "raise HTTPError(200, 'x')",
        "raise HTTPError(404.5, 'x')",
        "raise HTTPError('404', 'x')",
        "x = []; x.append(x); return x",
        "raise 5",
    ],
)
def test_an_answer_that_cannot_be_sent_is_one_clean_500(
    serving: Project, ask: Ask, lines: Lines, text: str
) -> None:
    app = serving(f"async def handler(request):\n    {text}")
    app.boot()
    lines.records.clear()
    answer = ask(app, "GET", "/v1/x?v=a%0d%0aSet-Cookie:%20e=1")

    assert (answer.status, answer.complete) == (500, True)
    assert answer.fields("set-cookie") == []
    assert len(lines.errors()) == 1


@pytest.mark.parametrize("text", ["raise HTTPError(400, '\\ud800')", "raise ValueError('\\ud800')"])
@pytest.mark.parametrize("dev", [False, True])
def test_a_message_that_utf8_cannot_carry_still_gives_an_answer(
    serving: Project, ask: Ask, text: str, dev: bool
) -> None:
    answer = ask(serving(f"async def handler(request):\n    {text}", dev=dev), "GET", "/v1/x")

    assert answer.status in (400, 500)
    assert answer.complete


def test_markup_in_an_error_is_hidden_or_escaped(serving: Project, ask: Ask) -> None:
    text = "async def handler(request):\n    raise ValueError('<script>s3cret')"
    hidden = ask(serving(text), "GET", "/v1/x")
    shown = ask(serving(text, root="two", dev=True), "GET", "/v1/x")

    assert b"s3cret" not in hidden.body
    assert b"s3cret" in shown.body
    assert b"<script" not in shown.body
    assert shown.json()["detail"] == "ValueError: <script>s3cret"


def test_a_validation_failure_is_422_with_its_reasons(serving: Project, ask: Ask) -> None:
    answer = ask(
        serving("async def handler(page: int, size: int):\n    ..."), "GET", "/v1/x?page=x"
    )

    assert answer.status == 422
    assert [entry["loc"] for entry in answer.json()["errors"]] == [
        ["query", "page"],
        ["query", "size"],
    ]


def test_a_real_cancellation_goes_on_and_is_seen_inside(
    serving: Project, exchange: type[Exchange], lines: Lines
) -> None:
    app = serving(
        """
import asyncio
seen = []

async def resource():
    try:
        yield
    except BaseException as error:
        seen.append(type(error).__name__)
        raise
    else:
        seen.append("committed")

async def handler(request, r=Depends(resource)):
    request.app.state.inside.set()
    await asyncio.Event().wait()
""",
    )
    app.boot()
    lines.records.clear()

    async def main() -> None:
        app.state.inside = asyncio.Event()
        made = exchange("GET", "/v1/x")
        task = asyncio.ensure_future(made.run(app))
        await app.state.inside.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert made.answer.messages == []
        assert request_id.get() == "-"

    asyncio.run(main())
    (module,) = app.project.modules.values()
    handler: Any = getattr(module, "handler", None)
    assert handler.__globals__["seen"] == ["CancelledError"]
    assert [(r.levelno, getattr(r, "status", None)) for r in lines.records] == [(logging.INFO, 499)]
    assert lines.errors() == []


@pytest.mark.parametrize("other_request_runs", [False, True])
def test_a_request_that_its_loop_closes_ends_without_an_answer(
    serving: Project, exchange: type[Exchange], lines: Lines, other_request_runs: bool
) -> None:
    app = serving(
        """
import asyncio
seen = []

async def handler(request):
    try:
        await asyncio.sleep(0)
    finally:
        seen.append("closed")
"""
    )

    async def main() -> None:
        assert (await exchange("GET", "/v1/x").run(app)).complete
        lines.records.clear()
        made = exchange("GET", "/v1/x")
        request = app(made.scope, made.receive, made.send)
        copy_context().run(request.send, None)
        if other_request_runs:
            request_id.set("another")
        request.close()
        assert made.answer.messages == []

    asyncio.run(main())
    (module,) = app.project.modules.values()
    handler: Any = getattr(module, "handler", None)
    assert handler.__globals__["seen"] == ["closed", "closed"]
    assert lines.errors() == []


def test_a_handler_that_cancels_its_own_helper_task_is_an_ordinary_failure(
    serving: Project, ask: Ask
) -> None:
    app = serving(
        "import asyncio\nasync def handler(request):\n"
        "    task = asyncio.ensure_future(asyncio.Event().wait())\n"
        "    await asyncio.sleep(0)\n    task.cancel()\n    await task",
    )

    assert ask(app, "GET", "/v1/x").status == 500


# -- dependencies that clean up


RESOURCE = """
from contextlib import contextmanager
journal = []

async def resource():
    journal.append("in")
    try:
        yield "r"
    except BaseException as error:
        journal.append(f"saw {type(error).__name__}")
        raise
    finally:
        journal.append("out")
"""


def entries(app: Application) -> list[str]:
    (module,) = app.project.modules.values()
    handler: Any = getattr(module, "handler", None)
    return handler.__globals__["journal"]


def test_a_dependency_is_left_after_the_answer_is_sent(
    serving: Project, exchange: type[Exchange]
) -> None:
    app = serving(
        RESOURCE
        + "async def handler(r=Depends(resource)):\n    journal.append('handler')\n    return r",
    )

    async def main() -> None:
        made = exchange("GET", "/v1/x")

        async def send(message: Any) -> None:
            entries(app).append(message["type"].rpartition(".")[2])
            await made.send(message)

        await app(made.scope, made.receive, send)

    asyncio.run(main())
    assert entries(app) == ["in", "handler", "start", "body", "out"]


def test_a_dependency_of_a_stream_is_left_after_its_last_chunk(serving: Project, ask: Ask) -> None:
    app = serving(
        RESOURCE
        + "async def handler(r=Depends(resource)):\n"
        + "    journal.append('chunk')\n    yield r\n    journal.append('end')"
    )

    assert ask(app, "GET", "/v1/x").body == b"r"
    assert entries(app) == ["in", "chunk", "end", "out"]


@pytest.mark.parametrize(
    ("text", "status", "journal"),
    [
        ("raise ValueError", 500, ["in", "saw ValueError", "out"]),
        ("raise HTTPError(404)", 404, ["in", "saw HTTPError", "out"]),
        ("raise SystemExit", 500, ["in", "saw SystemExit", "out"]),
        ("return object()", 500, ["in", "saw TypeError", "out"]),
        ("return 'ok'", 200, ["in", "out"]),
    ],
)
def test_a_dependency_sees_how_the_handler_failed(
    serving: Project, ask: Ask, text: str, status: int, journal: list[str]
) -> None:
    app = serving(RESOURCE + f"async def handler(r=Depends(resource)):\n    {text}")

    assert ask(app, "GET", "/v1/x").status == status
    assert entries(app) == journal


@pytest.mark.parametrize("error", ["ValueError('late')", "SystemExit(1)", "KeyboardInterrupt"])
@pytest.mark.parametrize("level", ["INFO", "WARNING"])
def test_a_dependency_that_fails_after_the_answer_is_logged_and_ends_nothing(
    project: Project, ask: Ask, lines: Lines, error: str, level: str
) -> None:
    app = project(
        {
            "Api/v1/X/Get.py": f"{HEAD}async def late():\n    yield\n    raise {error}\n"
            "async def handler(r=Depends(late)):\n    return 'ok'",
            "treefold.toml": f"log_level = '{level}'",
        }
    )
    app.boot()
    lines.records.clear()
    answer = ask(app, "GET", "/v1/x")

    assert (answer.status, answer.complete) == (200, True)
    assert len(lines.errors()) == 1
    assert lines.records[0].levelno == logging.ERROR
    assert ask(app, "GET", "/v1/x").status == 200


# -- streams


@pytest.mark.parametrize(
    "error",
    [
        *("ValueError('x')", "SystemExit(1)", "KeyboardInterrupt", "BaseException('x')"),
        "GeneratorExit('x')",
    ],
)
@pytest.mark.parametrize("kind", ["async def", "def"])
def test_an_error_in_mid_stream_cuts_the_answer_is_logged_and_ends_nothing(
    serving: Project, ask: Ask, lines: Lines, kind: str, error: str
) -> None:
    app = serving(f"{kind} handler(request):\n    yield b'first'\n    raise {error}")
    app.boot()
    lines.records.clear()
    answer = ask(app, "GET", "/v1/x")

    assert (answer.status, answer.body, answer.complete) == (200, b"first", False)
    assert len(lines.errors()) == 1
    assert lines.records[0].levelno == logging.ERROR
    assert ask(app, "GET", "/v1/x").status == 200


def test_a_client_that_leaves_a_stream_is_no_error(
    serving: Project, exchange: type[Exchange], lines: Lines
) -> None:
    app = serving(
        RESOURCE
        + "import asyncio\n"
        + "async def handler(r=Depends(resource)):\n    try:\n        yield b'first'\n"
        + "        await asyncio.Event().wait()\n    finally:\n        journal.append('finally')"
    )
    app.boot()
    lines.records.clear()

    async def main() -> None:
        made = exchange("GET", "/v1/x")
        task = asyncio.ensure_future(made.run(app))
        await made.first_chunk.wait()
        made.gone.set()
        async with asyncio.timeout(5):
            await task

    asyncio.run(main())
    assert entries(app)[:2] == ["in", "finally"]
    assert entries(app)[-1] == "out"
    assert [record.levelno for record in lines.records] == [logging.INFO]
    assert lines.errors() == []


def test_a_send_that_fails_because_the_client_left_is_no_error_of_the_handler(
    serving: Project, exchange: type[Exchange], lines: Lines
) -> None:
    # ASGI 2.4: a server raises OSError from send() once the client is gone.
    app = serving("async def handler(request):\n    return 'ok'")
    app.boot()
    lines.records.clear()

    async def main() -> None:
        made = exchange("GET", "/v1/x")

        async def send(message: Any) -> None:
            raise OSError("client disconnected")

        await app(made.scope, made.receive, send)

    asyncio.run(main())
    assert [record.levelno for record in lines.records] == [logging.INFO]
    assert lines.errors() == []


# -- bodies


ECHO = "async def handler(request):\n    return {'got': await request.json()}"


@pytest.mark.parametrize(
    ("chunks", "status"),
    [
        ([b'{"a":1}'], 200),
        ([b'{"a"', b":1}"], 200),
        ([], 200),
        ([b"{"], 400),
        ([b"[NaN]"], 400),
        ([b"[" * 100_000], 400),
        ([b"9" * 5000], 400),
        ([b'{"a":1,"a":2}'], 400),
        ([b'["\\ud800"]'], 400),
        ([b"\xff"], 400),
    ],
)
def test_json_is_read_or_refused(
    serving: Project, ask: Ask, chunks: list[bytes], status: int
) -> None:
    answer = ask(serving(ECHO, "Api/v1/X/Post.py"), "POST", "/v1/x", chunks=chunks)

    assert answer.status == status


@pytest.mark.parametrize(
    ("chunks", "headers"),
    [
        ([b"x" * 11], []),
        ([b"x" * 6, b"x" * 5], []),
        ([b""], [("content-length", "11")]),
        ([b""], [("content-length", "99999999999")]),
    ],
)
@pytest.mark.parametrize("read", ["request.body()", "request.json()", "anext(request.stream())"])
def test_a_body_above_the_limit_of_the_module_is_413(
    serving: Project, ask: Ask, chunks: list[bytes], headers: list[tuple[str, str]], read: str
) -> None:
    text = f"max_body = 10\nasync def handler(request):\n    await {read}\n    await request.body()"
    answer = ask(serving(text, "Api/v1/X/Post.py"), "POST", "/v1/x", chunks=chunks, headers=headers)

    assert answer.status in ((413, 500) if "stream" in read and len(chunks) > 1 else (413,))


def test_a_client_that_leaves_in_mid_body_is_logged_as_499(
    serving: Project, ask: Ask, lines: Lines
) -> None:
    app = serving(ECHO, "Api/v1/X/Post.py")
    app.boot()
    lines.records.clear()
    ask(app, "POST", "/v1/x", chunks=[b'{"a"'], cut=True)

    assert [(r.levelno, getattr(r, "status", None)) for r in lines.records] == [(logging.INFO, 499)]
    assert lines.errors() == []
