"""The test client and the application: start, end, errors, overrides, cookies."""

import threading
import traceback
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import httpx
import pytest

from treefold_http import Application, BootError, Settings, TreefoldError
from treefold_http._runtime.name_space import TEST_RUN
from treefold_http.testing import TestClient

Project = Callable[..., Application]
Fields = Mapping[str, str]

HELLO = {"Api/v1/Hello/Get.py": "async def handler(request):\n    return {'hello': 'world'}\n"}

HOOKS = """
    def begin(app):
        app.state.events = [*getattr(app.state, "events", ()), "begin"]

    def end(app):
        app.state.events.append("end")

    on_startup, on_shutdown = [begin], [end]
"""

STATE = "async def handler(request):\n    return list(request.state.events)\n"


def test_the_lifespan_runs_from_enter_to_exit(project: Project) -> None:
    app = project({"hooks.py": HOOKS, "Api/v1/State/Get.py": STATE})

    with TestClient(app) as client:
        assert app.state.events == ["begin"]
        assert client.get("/v1/state").json() == ["begin"]

    assert app.state.events == ["begin", "end"]


def test_without_with_the_first_request_starts_and_close_stops(project: Project) -> None:
    app = project({"hooks.py": HOOKS, "Api/v1/State/Get.py": STATE})
    client = TestClient(app)
    assert not hasattr(app.state, "events")

    assert client.get("/v1/state").json() == ["begin"]
    client.close()
    client.close()

    assert app.state.events == ["begin", "end"]


def test_a_client_that_was_never_used_closes(project: Project) -> None:
    TestClient(project({})).close()


def test_one_application_serves_one_client_after_the_other(project: Project) -> None:
    app = project({"hooks.py": HOOKS, "Api/v1/State/Get.py": STATE})
    for _ in range(2):
        with TestClient(app) as client:
            assert client.get("/v1/state").status_code == 200

    assert app.state.events == ["begin", "end"] * 2


def test_a_folder_is_served_as_the_application_in_it(write: Callable[..., Path]) -> None:
    with TestClient(write(HELLO)) as client:
        assert client.get("/v1/hello").json() == {"hello": "world"}
        assert isinstance(client.app, Application)


def test_everything_runs_on_one_loop_in_one_thread(project: Project) -> None:
    source = """
        import asyncio, threading

        async def handler(request):
            return [id(asyncio.get_running_loop()), threading.current_thread().name]
    """
    with TestClient(project({"Api/v1/Where/Get.py": source})) as client:
        first, second = client.get("/v1/where").json(), client.get("/v1/where").json()

    assert first == second
    assert first[1] == "treefold-test-client"


def test_the_thread_ends_with_the_client(project: Project) -> None:
    with TestClient(project(HELLO)) as client:
        client.get("/v1/hello")

    assert "treefold-test-client" not in {thread.name for thread in threading.enumerate()}


def test_background_work_is_done_when_the_client_is_closed(project: Project) -> None:
    source = """
        import asyncio

        async def work(app):
            await asyncio.sleep(0.01)
            app.state.worked = True

        async def handler(request, background):
            background.add(work, request.app)
    """
    app = project({"Api/v1/Work/Post.py": source})
    with TestClient(app) as client:
        assert client.post("/v1/work").status_code == 204

    assert app.state.worked


def test_a_function_runs_on_the_loop_of_the_application(project: Project) -> None:
    async def name(prefix: str) -> str:
        return f"{prefix} {threading.current_thread().name}"

    with TestClient(project({})) as client:
        assert client.run(name, prefix="in") == "in treefold-test-client"
        assert client.run(max, 1, 2) == 2


def test_what_such_a_function_raises_is_raised() -> None:
    async def leave() -> None:
        raise SystemExit(3)

    with TestClient(_without_lifespan) as client, pytest.raises(SystemExit):
        client.run(leave)


def test_a_failing_startup_hook_raises_the_boot_error_with_its_traceback(project: Project) -> None:
    app = project({"hooks.py": "def begin():\n    1 / 0\n\non_startup = [begin]\n"})

    with pytest.raises(BootError, match="ZeroDivisionError") as raised, TestClient(app):
        pytest.fail("the application started")

    cause = raised.value.__cause__
    assert isinstance(cause, ZeroDivisionError)
    assert "1 / 0" in "".join(traceback.format_exception(cause))


def test_a_failing_start_is_raised_by_the_first_request_without_with(tmp_path: Path) -> None:
    client = TestClient(tmp_path)

    with pytest.raises(BootError, match="Api"):
        client.get("/v1")
    with pytest.raises(RuntimeError, match=r"^The client is closed; create another one$"):
        client.run(max, 1, 2)
    client.close()


def test_a_closed_client_says_so(project: Project) -> None:
    with TestClient(project({})) as client:
        pass

    with pytest.raises(RuntimeError, match="closed"):
        client.get("/")
    with pytest.raises(RuntimeError, match=r"^The client is closed; create another one$"):
        client.run(max, 1, 2)


async def _without_lifespan(scope: Any, receive: Any, send: Any) -> None:
    assert scope["type"] == "http", "only HTTP"
    await send({"type": "http.response.start", "status": 200, "headers": []})
    await send({"type": "http.response.body", "body": str("state" in scope).encode()})


def test_an_application_without_lifespan_is_served(project: Project) -> None:
    with TestClient(_without_lifespan) as client:
        assert client.get("/").status_code == 200


def _lifespan(*answers: Mapping[str, Any] | Exception) -> Any:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        assert scope["type"] == "lifespan"
        for answer in answers:
            await receive()
            if isinstance(answer, Exception):
                raise answer
            await send(answer)

    return app


UP = {"type": "lifespan.startup.complete"}
FAILED = {"type": "lifespan.startup.failed"}


@pytest.mark.parametrize(
    ("app", "kind", "message"),
    [
        (
            _lifespan(FAILED | {"message": "no disk"}),
            BootError,
            "no disk",
        ),
        (
            _lifespan(FAILED),
            BootError,
            "The application failed to start",
        ),
        (_lifespan(LookupError("at the start")), LookupError, "at the start"),
        (_lifespan(UP, LookupError("at the end")), LookupError, "at the end"),
        (
            _lifespan(UP, {"type": "lifespan.shutdown.failed", "message": "stuck"}),
            TreefoldError,
            "stuck",
        ),
        (
            _lifespan(UP, {"type": "lifespan.shutdown.failed"}),
            TreefoldError,
            "The application failed to stop",
        ),
    ],
)
def test_a_lifespan_that_fails_raises(app: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as raised, TestClient(app):
        pass

    assert str(raised.value) == message


BOOM = {
    "Api/v1/Boom/Get.py": "async def handler(request):\n    raise LookupError('of the handler')\n",
    "Api/v1/Thread/Get.py": "def handler(request):\n    raise LookupError('of the handler')\n",
    "Api/v1/Late/Get.py": """
        from treefold_http import Depends

        async def resource():
            yield 1
            raise LookupError("of the handler")

        async def handler(resource: int = Depends(resource)):
            return "fine"
    """,
    "Api/v1/Exit/Get.py": "async def handler(request):\n    raise SystemExit(3)\n",
    "Api/v1/Stop/Get.py": "async def handler(request):\n    raise KeyboardInterrupt\n",
}


@pytest.mark.parametrize("path", ["/v1/boom", "/v1/thread", "/v1/late"])
def test_an_unhandled_exception_is_raised_with_its_traceback(project: Project, path: str) -> None:
    with (
        TestClient(project(BOOM)) as client,
        pytest.raises(LookupError, match="of the handler") as raised,
    ):
        client.get(path)

    last = traceback.extract_tb(raised.value.__traceback__)[-1]
    assert last.line is not None
    assert last.line.startswith("raise LookupError")


@pytest.mark.parametrize(
    ("path", "kind"), [("/v1/exit", SystemExit), ("/v1/stop", KeyboardInterrupt)]
)
def test_what_would_end_a_process_is_raised_and_the_client_goes_on(
    project: Project, path: str, kind: type[BaseException]
) -> None:
    with TestClient(project(BOOM | HELLO)) as client:
        with pytest.raises(kind):
            client.get(path)

        assert client.get("/v1/hello").status_code == 200


def test_the_500_is_given_when_errors_are_not_raised(project: Project) -> None:
    with TestClient(project(BOOM), raise_app_errors=False) as client:
        answer = client.get("/v1/boom")

    assert answer.status_code == 500
    assert answer.json()["title"] == "Internal Server Error"


def test_an_http_error_is_an_answer(project: Project) -> None:
    source = """
        from treefold_http import ServiceUnavailable

        async def handler(request):
            raise ServiceUnavailable("not now")
    """
    with TestClient(project({"Api/v1/Down/Get.py": source})) as client:
        assert client.get("/v1/down").status_code == 503


def test_an_exception_with_a_handler_is_an_answer(project: Project) -> None:
    app = project(BOOM)
    app.exception_handler(LookupError)(lambda request, error: ({"seen": str(error)}, 418))

    with TestClient(app) as client:
        assert client.get("/v1/boom").json() == {"seen": "of the handler"}


OVERRIDABLE = {
    "Services/clock.py": "def now():\n    return 'real'\n",
    "Api/v1/Time/Get.py": """
        from Services.clock import now
        from treefold_http import Depends

        async def handler(time: str = Depends(now)):
            return time
    """,
}


def _dependency(app: Application) -> Callable[..., Any]:
    (module,) = app.project.modules.values()
    assert not isinstance(module, str)
    return module.handler.__globals__["now"]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType, reportUnknownVariableType] - a handler of the test


def test_overrides_last_as_long_as_the_client(project: Project) -> None:
    app = project(OVERRIDABLE)
    now = _dependency(app)

    with TestClient(app, overrides={now: lambda: "fake"}) as client:
        assert client.get("/v1/time").text == "fake"
    with TestClient(app) as client:
        assert client.get("/v1/time").text == "real"


def test_an_override_that_was_there_is_there_again(project: Project) -> None:
    app = project(OVERRIDABLE)
    now = _dependency(app)
    app.overrides[now] = lambda: "before"

    with TestClient(app, overrides={now: lambda: "fake"}) as client:
        assert client.get("/v1/time").text == "fake"
    with TestClient(app) as client:
        assert client.get("/v1/time").text == "before"


def test_overrides_are_undone_when_the_start_fails(project: Project) -> None:
    app = project({"hooks.py": "def begin():\n    1 / 0\n\non_startup = [begin]\n"})

    with pytest.raises(BootError), TestClient(app, overrides={min: max}):
        pass

    assert dict(app.overrides) == {}


def test_overrides_need_an_application_that_takes_them() -> None:
    with pytest.raises(
        TypeError, match=r"^Overrides need a treefold Application, got <function _without_lifespan "
    ):
        TestClient(_without_lifespan, overrides={min: max})


COOKIES = {
    "Api/v1/Login/Post.py": """
        from treefold_http import Response

        async def handler(request):
            response = Response.empty()
            response.set_cookie("session", "s1")
            response.set_cookie("plain", "p1", secure=False)
            return response
    """,
    "Api/v1/Login/Delete.py": """
        from treefold_http import Response

        async def handler(request):
            response = Response.empty()
            response.set_cookie("session", "", max_age=0)
            return response
    """,
    "Api/v1/Me/Get.py": "async def handler(request):\n    return dict(request.cookies)\n",
}


def test_cookies_come_back_secure_ones_too(project: Project) -> None:
    with TestClient(project(COOKIES)) as client:
        answer = client.post("/v1/login")

        assert "Secure" in answer.headers["set-cookie"]
        assert client.get("/v1/me").json() == {"session": "s1", "plain": "p1"}


def test_a_deleted_cookie_is_gone(project: Project) -> None:
    with TestClient(project(COOKIES)) as client:
        client.post("/v1/login")
        client.delete("/v1/login")

        assert client.get("/v1/me").json() == {"plain": "p1"}


@pytest.mark.parametrize(
    "cookies", [{"a": "1"}, [("a", "1")], httpx.Cookies({"a": "1"}), httpx.Cookies({"a": "1"}).jar]
)
def test_a_client_starts_with_cookies(
    project: Project, cookies: dict[str, str] | list[tuple[str, str]] | httpx.Cookies | CookieJar
) -> None:
    with TestClient(project(COOKIES), cookies=cookies) as client:
        assert client.get("/v1/me").json() == {"a": "1"}


def test_cookies_of_two_clients_stay_apart(project: Project) -> None:
    app = project(COOKIES)
    with TestClient(app) as client:
        client.post("/v1/login")
    with TestClient(app) as client:
        assert client.get("/v1/me").json() == {}


def test_proxies_of_the_environment_are_not_asked(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    with TestClient(project(HELLO)) as client:
        assert client.get("/v1/hello").status_code == 200


def test_pytest_does_not_collect_the_client() -> None:
    assert TestClient.__test__ is False


def test_an_application_of_a_client_has_names_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also without the pytest plugin, which has names for the whole run."""
    monkeypatch.delenv(TEST_RUN, raising=False)
    (tmp_path / "Api").mkdir()
    app = Application(tmp_path, settings=Settings(name="shop"))
    assert app.names.own == "treefold:shop:production:"

    with TestClient(app):
        assert app.names.is_test
        assert app.names.own.startswith("treefold:shop:test-")
