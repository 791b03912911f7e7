"""Exception handlers of an application: which one is taken, what it may give, how it fails."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from http_ids import stable_repr

from treefold_http import (
    Application,
    ClientDisconnect,
    HTTPError,
    NotFound,
    Request,
    Response,
    StreamingResponse,
    UnprocessableEntity,
)
from treefold_http._failures.exception_handlers import ExceptionHandlers

if TYPE_CHECKING:
    from conftest import Answer, Lines, Socket

Project = Callable[..., Application]
Ask = Callable[..., "Answer"]
Talk = Callable[..., "Socket"]


class Base(Exception): ...


class Middle(Base): ...


class Mixed(Middle, LookupError): ...


class Refused(NotFound, Base): ...


async def handle(request: Request, error: Any) -> None: ...


@pytest.mark.parametrize(
    ("kinds", "error", "taken"),
    [
        ([Base], Base(), Base),
        ([Base], Middle(), Base),
        ([Base, Middle], Middle(), Middle),
        ([Middle, Base], Mixed(), Middle),
        ([LookupError], Mixed(), LookupError),
        ([Exception, LookupError], Mixed(), LookupError),
        ([BaseException], SystemExit(), BaseException),
        ([Middle], Base(), None),
        ([Exception], KeyboardInterrupt(), None),
        ([Exception, BaseException], NotFound(), None),
        ([Exception], UnprocessableEntity(), None),
        ([Exception], ClientDisconnect(), None),
        ([Exception, HTTPError], NotFound(), HTTPError),
        ([HTTPError, NotFound, Exception], NotFound(), NotFound),
        ([Base, Exception], Refused(), Base),
        ([], Base(), None),
    ],
)
def test_the_nearest_class_of_an_exception_decides(
    kinds: list[type[BaseException]], error: BaseException, taken: type[BaseException] | None
) -> None:
    handlers = ExceptionHandlers()
    for kind in kinds:
        handlers.make_decorator(kind)(handle)

    found = handlers.find_handler_runner(error)

    assert found is (handlers._by_type[taken] if taken else None)


@pytest.mark.parametrize("kind", [5, "ValueError", int, ValueError("x"), None], ids=stable_repr)
def test_what_is_no_exception_type_is_refused(tmp_path: Any, kind: Any) -> None:
    expected = r"^An exception handler must be for an exception class such as ValueError, got "
    expected += re.escape(repr(kind)) + "$"
    with pytest.raises(TypeError, match=expected):
        Application(tmp_path).exception_handler(kind)


def test_the_decorator_gives_the_function_back(tmp_path: Any) -> None:
    assert Application(tmp_path).exception_handler(ValueError)(handle) is handle


@pytest.fixture
def failing(serving: Project) -> Project:
    """An application whose handler raises."""

    def make(error: str, **options: Any) -> Application:
        return serving(f"def handler():\n    raise {error}\n", **options)

    return make


def plain(request: Request, error: Exception) -> Any:
    assert threading.current_thread() is not threading.main_thread()
    return {"id": request.id, "error": str(error)}


async def loud(request: Request, error: Exception) -> Any:
    assert threading.current_thread() is threading.main_thread()
    return {"id": request.id, "error": str(error)}


class Instance:
    async def __call__(self, request: Request, error: Exception) -> Any:
        return {"id": request.id, "error": str(error)}


@pytest.mark.parametrize("handler", [plain, loud, Instance()], ids=["plain", "async", "instance"])
def test_a_handler_of_any_kind_answers(
    failing: Project, ask: Ask, lines: Lines, handler: Any
) -> None:
    app = failing("ValueError('words')")
    app.exception_handler(ValueError)(handler)
    answer = ask(app, "GET", "/v1/x", headers=[("x-request-id", "me")])

    assert (answer.status, answer.json()) == (200, {"id": "me", "error": "words"})
    assert lines.errors() == []


@pytest.mark.parametrize(
    ("result", "status", "body"),
    [
        ("text", 200, b"text"),
        (({"a": 1}, 418), 418, b'{"a":1}'),
        (Response.json([], 503), 503, b"[]"),
        (None, 204, b""),
    ],
)
def test_it_may_give_what_a_handler_may(
    failing: Project, ask: Ask, result: Any, status: int, body: bytes
) -> None:
    app = failing("ValueError")

    @app.exception_handler(ValueError)
    async def answer_with(request: Request, error: ValueError) -> Any:
        return result

    answer = ask(app, "GET", "/v1/x")

    assert (answer.status, answer.body) == (status, body)


def test_a_returned_http_error_is_the_document_of_that_error(
    failing: Project, ask: Ask, lines: Lines
) -> None:
    app = failing("ValueError('taken')")

    @app.exception_handler(ValueError)
    def conflict(request: Request, error: ValueError) -> HTTPError:
        return HTTPError(409, str(error), headers={"Retry-After": "5"})

    answer = ask(app, "GET", "/v1/x")

    assert (answer.status, answer.json()["title"]) == (409, "Conflict")
    assert answer.json()["detail"] == "taken"
    assert ("content-type", "application/problem+json") in answer.headers
    assert ("retry-after", "5") in answer.headers
    assert lines.errors() == []


def test_a_returned_http_error_has_the_error_format(failing: Project, ask: Ask) -> None:
    app = failing("ValueError('taken')")

    @app.error_format
    def fault(request: Any, error: HTTPError) -> dict[str, Any]:
        return {"fault": error.message}

    @app.exception_handler(ValueError)
    def conflict(request: Request, error: ValueError) -> HTTPError:
        return HTTPError(409, str(error))

    answer = ask(app, "GET", "/v1/x")

    assert (answer.status, answer.json()) == (409, {"fault": "taken"})


@pytest.mark.parametrize(
    ("error", "target"), [("NotFound", "/v1/x"), ("None", "/v1/none"), ("None", "/none")]
)
def test_it_may_answer_what_the_framework_raises(
    failing: Project, ask: Ask, error: str, target: str
) -> None:
    app = failing(error)

    @app.exception_handler(HTTPError)
    def page(request: Request, error: HTTPError) -> Any:
        return Response.html(f"<h1>{error.status}</h1>", error.status)

    answer = ask(app, "GET", target)

    assert (answer.status, answer.body) == (404, b"<h1>404</h1>")


@pytest.mark.parametrize("error", ["SystemExit(1)", "KeyboardInterrupt", "BaseException('x')"])
def test_it_may_answer_what_would_end_a_process(failing: Project, ask: Ask, error: str) -> None:
    app = failing(error)
    app.exception_handler(BaseException)(loud)

    assert ask(app, "GET", "/v1/x").status == 200


@pytest.mark.parametrize(
    "wrong",
    ["raise LookupError('of the handler')", "return object()", "return ('a', 9)", "1 / 0"],
)
def test_one_that_fails_itself_is_a_500_with_its_own_error(
    failing: Project, ask: Ask, lines: Lines, wrong: str
) -> None:
    app = failing("ValueError('s3cret')")
    space: dict[str, Any] = {}
    exec(f"async def wrong(request, error):\n    {wrong}\n", space)
    app.exception_handler(ValueError)(space["wrong"])
    answer = ask(app, "GET", "/v1/x")

    assert answer.status == 500
    assert b"s3cret" not in answer.body
    (error,) = lines.errors()
    assert not isinstance(error, ValueError) or "s3cret" not in str(error)


def test_dependencies_are_left_with_the_exception_before_it_is_answered(
    serving: Project, ask: Ask
) -> None:
    app = serving(
        """
        entries = []

        async def transaction():
            try:
                yield
            except ValueError:
                entries.append("rolled back")
                raise

        async def handler(a=Depends(transaction)):
            raise ValueError
        """
    )
    (module,) = app.project.modules.values()
    entries = getattr(module, "handler").__globals__["entries"]  # noqa: B009 - a union

    @app.exception_handler(ValueError)
    async def look(request: Request, error: ValueError) -> Any:
        return list(entries)

    assert ask(app, "GET", "/v1/x").json() == ["rolled back"]


@pytest.mark.parametrize(
    ("method", "target", "status"),
    [("GET", "/v1/none", 404), ("POST", "/v1/x", 405), ("GET", "/v1/x?n=a", 422)],
)
def test_a_handler_for_every_exception_leaves_refusals_alone(
    serving: Project, ask: Ask, method: str, target: str, status: int
) -> None:
    app = serving("def handler(n: int = 1): raise LookupError\n")
    app.exception_handler(Exception)(loud)

    assert ask(app, method, target).status == status
    assert ask(app, "GET", "/v1/x").status == 200


SOCKET = "Api/v1/X/Socket.py"


@pytest.mark.parametrize("handler", [loud, plain], ids=["async", "plain"])
@pytest.mark.parametrize("before", ["", "n: int = Depends(lambda: 1 / 0)"])
def test_a_socket_that_fails_before_accept_gets_the_answer_of_the_handler(
    serving: Project, talk: Talk, lines: Lines, handler: Any, before: str
) -> None:
    parameters = f"websocket, {before}"
    app = serving(f"async def handler({parameters}):\n    raise ZeroDivisionError('words')", SOCKET)
    app.exception_handler(ArithmeticError)(handler)
    client = talk(app, "/v1/x", headers=[("x-request-id", "me")])

    assert (client.refusal.status, client.refusal.json()["id"]) == (200, "me")
    assert lines.errors() == []


def test_a_refusal_of_a_socket_may_be_handled(serving: Project, talk: Talk) -> None:
    app = serving("async def handler(websocket): raise Forbidden('no')", SOCKET)

    @app.exception_handler(HTTPError)
    def page(request: Any, error: HTTPError) -> Any:
        return {"said": error.message}, error.status

    assert talk(app, "/v1/x").refusal.json() == {"said": "no"}
    assert talk(app, "/v1/none").refusal.status == 404


def test_a_handler_is_not_asked_after_accept(serving: Project, talk: Talk, lines: Lines) -> None:
    text = "async def handler(websocket):\n    await websocket.accept()\n    raise ValueError\n"
    app = serving(text, SOCKET)
    app.exception_handler(ValueError)(loud)
    client = talk(app, "/v1/x", stays=True)

    assert (client.kinds, client.code) == (["accept", "close"], 1011)
    assert len(lines.errors()) == 1


def test_a_socket_is_not_answered_with_a_stream(serving: Project, talk: Talk, lines: Lines) -> None:
    app = serving("async def handler(websocket): raise ValueError", SOCKET)

    @app.exception_handler(Exception)
    async def stream(request: Any, error: Exception) -> Any:
        return StreamingResponse(iter(["a"]))

    assert talk(app, "/v1/x").refusal.status == 500
    (error,) = lines.errors()
    assert "must return a body in one piece, got 'StreamingResponse'" in str(error)
