"""Sentences and names that the specification quotes: the one list, letter for letter.

Any other message may be rewritten. A test that fails here means that a promise has changed.
"""

import importlib
import re
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest
from serving import Serve, Served, write_tree

HANDLER = "async def handler(request): return {}\n"
TREE = {
    "Api/v1/User/Get.py": HANDLER,
    "Api/v1/user/Get.py": HANDLER,
    "Api/v1/User/[id]/Get.py": HANDLER,
    "Api/v1/Services/Get.py": HANDLER,
    "Api/v1.2/Get.py": HANDLER,
    "Api/v1/Broken/Get.py": "import nothing_of_this_name\n",
}
PUBLIC = {
    "treefold": (
        *("Application", "Request", "Response", "StreamingResponse", "FileResponse", "EventStream"),
        *("WebSocket", "WebSocketDisconnect", "UploadFile", "FormData", "Depends", "Query"),
        *("Header", "Cookie", "Body", "Form", "File", "HTTPError", "BadRequest", "Unauthorized"),
        *("Forbidden", "NotFound", "MethodNotAllowed", "Conflict", "PayloadTooLarge"),
        *("UnprocessableEntity", "TooManyRequests", "ServiceUnavailable", "BackgroundTasks"),
        *("TestClient", "AsyncTestClient", "get_logger", "mask", "Settings"),
    ),
    "treefold.middleware": (
        *("CORS", "CSRF", "GZip", "RateLimit", "Sessions", "SecurityHeaders", "TrustedHosts"),
        *("ProxyHeaders", "IPAllowlist", "Timeout", "under"),
    ),
    "treefold.orm": (
        *("Model", "fields", "configure", "create_all", "Count", "Sum", "Avg", "Min", "Max", "F"),
        *("Q", "Case", "When", "Value", "Subquery", "OuterRef", "Exists", "Prefetch"),
        *("transaction", "FilterSet", "ORMError", "aclose_all", "close_all"),
    ),
    "treefold.asgi": ("app", "create_app"),
    "treefold.logging": ("mask", "flush"),
}


@pytest.fixture(scope="module")
def app(serve: Serve) -> Served:
    return serve(TREE, default_version="latest")


@pytest.fixture
def command(tmp_path: Path) -> Callable[..., list[str]]:
    """Run a command over the tree, and return the lines of its output."""
    root = write_tree(tmp_path, TREE)

    def run(*arguments: str) -> list[str]:
        program = f"{sysconfig.get_path('scripts')}/treefold"
        done = subprocess.run([program, *arguments], cwd=root, capture_output=True, text=True)
        return done.stdout.splitlines()

    return run


def test_check_quotes_duplicates_and_reasons(command: Callable[..., list[str]]) -> None:
    lines = command("check")
    assert "[dup] GET /v1/user defined more than once" in lines
    assert "[skipped] Api/v1.2/Get.py: not under a version folder (vN)" in lines
    assert "[skipped] Api/v1/Services/Get.py: inside non-route folder 'Services'" in lines


def test_create_quotes_a_file_that_exists(command: Callable[..., list[str]]) -> None:
    assert command("create", "v1/user/[id]", "get") == ["exists: Api/v1/User/[id]/Get.py"]


def test_the_boot_log_counts_files_with_errors(app: Served) -> None:
    def booted(lines: list[str]) -> str | None:
        return next((line for line in lines if "booted in" in line), None)

    assert "files with errors 1" in app.wait_for(booted)


def test_a_handler_that_failed_to_load_is_quoted(app: Served) -> None:
    answer = app.get("/v1/broken")
    assert (answer.status, answer.json()["detail"]) == (500, "handler failed to load")


def test_the_line_of_the_fallback_is_quoted(app: Served) -> None:
    wanted = "no version in GET /user/7 -> served v1"
    assert app.get("/user/7").status == 200
    line = app.wait_for(lambda lines: next((x for x in lines if wanted in x), None))
    assert re.fullmatch(rf"\[INFO\] {wanted}( id=\S+)?", line)


def test_the_request_line_is_quoted(app: Served) -> None:
    shape = (
        r"\[INFO\] GET /v1/user/7\?page=2 200 \d+\.\d\dms id=[A-Za-z0-9._:@/+=-]{1,128} payload=-"
    )
    assert re.fullmatch(shape, app.line(app.get("/v1/user/7?page=2")))


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_there(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TREEFOLD_APP_DIR", str(tmp_path))
    found = importlib.import_module(module)
    assert [name for name in PUBLIC[module] if not hasattr(found, name)] == []
