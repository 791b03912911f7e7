"""`treefold serve`, started as users start it, over real sockets."""

import contextlib
import http.client
import json
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.parse
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]
Start = Callable[..., Any]

FAILING_HOOK = "def connect():\n    raise RuntimeError('no database')\n\n\non_startup = [connect]\n"


def write(root: Path, name: str, text: str) -> None:
    file = root / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def connect(url: str) -> "closing[http.client.HTTPConnection]":
    return closing(http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=60))


def get(connection: http.client.HTTPConnection, path: str) -> http.client.HTTPResponse:
    connection.request("GET", path, headers={"X-Forwarded-For": "1.2.3.4"})
    return connection.getresponse()


def is_served(url: str) -> bool | None:
    try:
        with connect(url) as connection:
            return get(connection, "/v1/health").status == 200
    except ConnectionRefusedError:
        return False
    except ConnectionError:  # cut off half-way: it is just starting or stopping
        return None


def wait_until(url: str, *, served: bool) -> None:
    deadline = time.monotonic() + 30
    while is_served(url) is not served:
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_it_serves_in_production_mode(
    start: Start, project: Project, monkeypatch: pytest.MonkeyPatch, workers: str
):
    monkeypatch.setenv("TREEFOLD_DEV", "1")
    root = project("v1/Health/Get.py")
    write(root, "Api/v1/Dev/Get.py", "def handler(request):\n    return [request.app.dev]\n")
    server = start("serve", "--workers", workers, cwd=root).started()
    wait_until(server.url, served=True)
    with connect(server.url) as connection:
        assert get(connection, "/v1/dev").read() == b"[false]"


def test_the_server_does_not_name_itself(start: Start, project: Project):
    server = start("serve", cwd=project("v1/Health/Get.py")).started()
    with connect(server.url) as connection:
        assert get(connection, "/v1/health").headers["server"] is None


@pytest.mark.parametrize(
    ("log_format", "line"),
    [
        ("text", r"^\[WARNING\] Invalid HTTP request received\. id=[0-9a-f]{28}$"),
        ("json", r'^\{.*"message": ?"Invalid HTTP request received\.".*\}$'),
    ],
)
@pytest.mark.parametrize("workers", ["1", "2"])
def test_what_the_server_says_is_a_line_of_the_same_log(
    start: Start,
    project: Project,
    monkeypatch: pytest.MonkeyPatch,
    workers: str,
    log_format: str,
    line: str,
):
    monkeypatch.setenv("TREEFOLD_LOG_FORMAT", log_format)
    server = start("serve", "--workers", workers, cwd=project("v1/Health/Get.py")).started()
    wait_until(server.url, served=True)
    host, port = server.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(b"no request\r\n\r\n")
        assert b"400" in connection.recv(100)
    server.wait_for(line)


def test_a_client_cannot_choose_its_address(start: Start, project: Project):
    root = project()
    write(
        root, "Api/v1/Who/Get.py", "def handler(request):\n    return request.scope['client'][0]\n"
    )
    server = start("serve", cwd=root).started()
    with connect(server.url) as connection:
        assert get(connection, "/v1/who").read() == b"127.0.0.1"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_with_code_0_and_every_line_written(
    start: Start, project: Project, number: int
):
    server = start("serve", cwd=project("v1/Health/Get.py")).started()
    with connect(server.url) as connection:
        for _ in range(50):
            get(connection, "/v1/health").read()
    assert server.stop(number) == 0
    assert server.output.count("GET /v1/health 200 ") == 50
    assert "Traceback" not in server.output


def waiting_handler(seconds: float) -> str:
    return (
        "import asyncio\n\n\nasync def handler(request):\n"
        f"    print('inside', flush=True)\n    await asyncio.sleep({seconds})\n    return 'done'\n"
    )


def test_a_running_request_is_finished_before_the_end(start: Start, project: Project):
    root = project()
    write(root, "Api/v1/Slow/Get.py", waiting_handler(0.3))
    server = start("serve", cwd=root).started()
    with connect(server.url) as connection:
        connection.request("GET", "/v1/slow")
        server.wait_for("inside")
        server.process.send_signal(signal.SIGTERM)
        assert connection.getresponse().read() == b"done"
    assert server.process.wait(timeout=30) == 0


HANGING = {
    "waits": "await asyncio.Event().wait()",
    "does not listen": """
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            pass""",
    "blocks the loop": "time.sleep(600)",
    "keeps the loop busy": "while True: pass",
    "waits in a thread": "await asyncio.to_thread(time.sleep, 600)",
}


def signalled_until_it_ends(server: Any, number: int) -> int:
    """Send a signal again every two seconds: of two that arrive at once the system keeps one."""
    for _ in range(4):
        server.process.send_signal(number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            rest, _ = server.process.communicate(timeout=2)
            server.output += rest
            return server.process.returncode
    raise AssertionError(f"still running: {server.output}")


STOPS = {
    "dev": (("dev",), signal.SIGINT),
    "serve": (("serve",), signal.SIGTERM),
    "workers, interrupted": (("serve", "--workers", "2"), signal.SIGINT),
    "workers": (("serve", "--workers", "2"), signal.SIGTERM),
}
SHORT = {
    *(("serve", hangs) for hangs in HANGING),
    ("dev", "keeps the loop busy"),
    ("workers, interrupted", "blocks the loop"),
    ("workers", "does not listen"),
    ("workers", "waits in a thread"),
}
"""Each way to hang and each way to stop; `hatch run +package=cli iso:test-long` has every pair."""


@pytest.mark.parametrize(
    ("stop", "hangs"),
    [
        pytest.param(stop, hangs, marks=[] if (stop, hangs) in SHORT else pytest.mark.long)
        for stop in STOPS
        for hangs in HANGING
    ],
)
def test_a_second_signal_ends_what_hangs_at_once(
    start: Start, project: Project, stop: str, hangs: str
):
    command, number = STOPS[stop]
    root = project("v1/Health/Get.py")
    write(
        root,
        "Api/v1/Stuck/Get.py",
        "import asyncio, time\nasync def handler(request):\n"
        f"    print('inside', flush=True)\n    {HANGING[hangs]}\n",
    )
    server = start(*command, cwd=root).started()
    wait_until(server.url, served=True)
    with connect(server.url) as connection:
        connection.request("GET", "/v1/stuck")
        server.wait_for("inside")
        began = time.monotonic()
        server.process.send_signal(number)
        with pytest.raises(subprocess.TimeoutExpired):
            server.process.wait(1.1)  # one signal waits for what runs, and so does another at once
        assert signalled_until_it_ends(server, number) == 128 + number
    assert time.monotonic() - began < 10
    assert (
        "second signal: terminated immediately, requests in progress were aborted" in server.output
    )


def test_workers_end_with_the_process_that_started_them(start: Start, project: Project):
    root = project("v1/Health/Get.py")
    write(root, "hooks.py", "def bye():\n    print('bye', flush=True)\non_shutdown = [bye]\n")
    server = start("serve", "--workers", "2", cwd=root).started()
    wait_until(server.url, served=True)
    server.process.kill()
    wait_until(server.url, served=False)
    server.wait_for("bye")


@pytest.mark.parametrize("command", ["dev", "serve"])
def test_a_second_signal_ends_a_shutdown_hook_that_hangs(
    start: Start, project: Project, command: str
):
    root = project("v1/Health/Get.py")
    write(
        root,
        "hooks.py",
        "import time\ndef stop():\n    print('inside', flush=True)\n    time.sleep(600)\n"
        "on_shutdown = [stop]\n",
    )
    server = start(command, cwd=root).started()
    server.process.send_signal(signal.SIGINT)
    server.wait_for("inside")
    assert signalled_until_it_ends(server, signal.SIGTERM) == 143


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_several_processes_serve_one_port_and_end_together(
    start: Start, project: Project, tmp_path: Path, number: int
):
    root = project("v1/Health/Get.py")
    server = start("serve", "--workers", "2", "--app-dir", str(root), cwd=tmp_path).started()
    wait_until(server.url, served=True)
    assert server.stop(number, group=number == signal.SIGINT) == 0
    assert server.output.count("GET /v1/health 200 ") == 1
    assert "Traceback" not in server.output
    assert is_served(server.url) is False


@pytest.mark.parametrize("command", [["serve"], ["serve", "--workers", "2"], ["dev"]])
def test_root_path_is_cut_where_a_request_has_it(
    start: Start, project: Project, command: list[str]
):
    root = project("v1/Health/Get.py")
    text = "async def handler(request):\n    return [request.path, request.root_path]\n"
    write(root, "Api/v1/Show/Get.py", text)
    write(root, "treefold.toml", 'root_path = "/other"\n')
    server = start(*command, "--root-path", "/api", cwd=root).started()
    wait_until(server.url, served=True)
    with connect(server.url) as connection:
        for path in ("/api/v1/show", "/v1/show"):
            assert json.loads(get(connection, path).read()) == ["/api/v1/show", "/api"]
        assert get(connection, "/other/v1/show").status == 404
    assert server.stop() == 0
    docs = f"docs on {server.url}/api/docs\n"
    assert (docs in server.output) is (command == ["dev"])


def test_a_root_path_that_is_no_prefix_is_one_line(treefold: Treefold, project: Project):
    root = project("v1/Health/Get.py")
    write(root, "treefold.toml", 'root_path = "api"\n')
    for command in ("serve", "dev"):
        code, _, err = treefold(command, "--port", "0")
        assert code == 1
        assert "Setting root_path must be a prefix such as '/api'" in err
        assert "Traceback" not in err


@pytest.mark.parametrize("seconds", [0, 0.1, 0.2, 0.3, 0.5, 0.8])
def test_an_interrupt_while_workers_start_ends_without_a_traceback(
    start: Start, project: Project, tmp_path: Path, seconds: float
):
    root = project("v1/Health/Get.py")
    server = start("serve", "--workers", "2", "--app-dir", str(root), cwd=tmp_path).started()
    time.sleep(seconds)  # the moment at which the signal arrives, not a wait for anything
    assert server.stop(signal.SIGINT, group=True) in (0, 130)  # 130: before the first worker
    assert "Traceback" not in server.output


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_startup_hook_that_fails_is_a_failure(start: Start, project: Project, workers: str):
    root = project("v1/Health/Get.py")
    write(root, "hooks.py", FAILING_HOOK)
    server = start("serve", "--workers", workers, cwd=root)
    server.wait_for("^Error: The application did not start; the reason is above$")
    assert server.process.wait(timeout=30) == 1
    assert "no database" in server.output
    assert "serving on" not in server.output


def test_a_boot_file_that_fails_is_the_last_line(treefold: Treefold, project: Project):
    write(project("v1/Health/Get.py"), "hooks.py", "1 / 0\n")
    code, out, err = treefold("serve", "--port", "0")
    assert (code, out) == (1, "")
    assert err.splitlines()[-1] == (
        "Error: hooks.py cannot be used: ZeroDivisionError: division by zero"
    )


BROKEN = {
    "Api/v1/A/Get.py": "import nothing_of_that_name\n",
    "Api/v1/B/Get.py": "def handler(x: object): ...\n",
}


@pytest.mark.parametrize("workers", ["1", "2"])
def test_broken_handlers_refuse_the_start_with_files_and_reasons(
    forked: Callable[..., Any], project: Project, workers: str
):
    root = project("v1/Health/Get.py")
    for name, text in BROKEN.items():
        write(root, name, text)
    done = forked("serve", "--port", "0", "--workers", workers, cwd=root)
    assert done.returncode == 1
    reasons = re.findall(r"^\[ERROR\] (.*) failed to load: (.*)$", done.stderr, re.MULTILINE)
    assert reasons[0] == (
        "v1/A/Get.py",
        "ModuleNotFoundError: No module named 'nothing_of_that_name'",
    )
    assert [f"Api/{file}" for file, _ in reasons] == [*BROKEN]  # once, whatever the processes
    expected = "Not started: 2 files failed to load, listed above; correct them or add"
    assert f"{expected} --allow-broken" in done.stderr
    assert "serving on" not in done.stderr


@pytest.mark.parametrize("workers", ["1", "2"])
def test_broken_handlers_may_be_allowed(start: Start, project: Project, workers: str):
    root = project("v1/Health/Get.py")
    write(root, "Api/v1/A/Get.py", BROKEN["Api/v1/A/Get.py"])
    server = start("serve", "--allow-broken", "--workers", workers, cwd=root).started()
    wait_until(server.url, served=True)
    with connect(server.url) as connection:
        assert get(connection, "/v1/a").status == 500
    assert server.stop() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_default_version_that_no_folder_has_refuses_the_start(
    forked: Callable[..., Any], project: Project, workers: str
):
    root = project("v1/Health/Get.py")
    write(root, "treefold.toml", "default_version = 'v2'\n")
    done = forked("serve", "--port", "0", "--workers", workers, cwd=root)
    assert done.returncode == 1
    text = "Setting default_version must name a folder of Api/, got 'v2'; use 'latest', v1"
    assert text in done.stderr


@pytest.mark.parametrize("workers", ["0", "-1", "two", ""])
def test_a_number_of_processes_that_is_none_is_wrong_use(
    treefold: Treefold, project: Project, workers: str
):
    project()
    code, out, err = treefold("serve", "--workers", workers)
    assert (code, out) == (2, "")
    assert err == f"Error: Invalid value {workers!r} for --workers; give a number from 1 to 1000\n"


@pytest.mark.parametrize(
    ("host", "entries", "warned"),
    [
        ("0.0.0.0", "", True),
        ("0.0.0.0", "TrustedHosts(['example.com'])", False),
        ("127.0.0.1", "", False),
    ],
)
def test_d08_a_server_that_others_reach_tells_of_severe_findings(
    start: Start, project: Project, host: str, entries: str, warned: bool
):
    root = project("v1/Health/Get.py")
    text = f"from treefold_http.middleware import TrustedHosts\n\nmiddlewares = [{entries}]\n"
    write(root, "Middleware/__init__.py", text)
    server = start("serve", "--host", host, cwd=root).started()
    if warned:
        server.wait_for(
            r"\[WARNING\] hosts-any: any Host is answered on 0.0.0.0:0; write in"
            r" Middleware/__init__.py: TrustedHosts\(\['api.example.com'\]\)"
        )
    assert server.stop() == 0
    assert ("hosts-any" in server.output) is warned
    assert "headers-missing" not in server.output  # a mere warning


def test_d08_other_severe_findings_are_told_too(
    start: Start, project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TREEFOLD_SECRET_KEY", "change-me-change-me-change-me-change-me")
    root = project("v1/Health/Get.py")
    entries = "TrustedHosts(['example.com']), Sessions()"
    code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
    write(root, "Middleware/__init__.py", code)
    server = start("serve", "--host", "0.0.0.0", cwd=root).started()
    timer = threading.Timer(30, server.process.kill)  # the end of its output fails the wait
    timer.start()
    server.wait_for(r"\[WARNING\] secret-guessable: ")
    timer.cancel()
    assert server.stop() == 0


def test_d07_the_limit_is_a_setting(
    start: Start, project: Project, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TREEFOLD_LIMIT_CONCURRENCY", "1")
    root = project()
    write(root, "Api/v1/Slow/Get.py", waiting_handler(600))
    server = start("serve", "--grace", "0.3", cwd=root).started()
    with connect(server.url) as busy, connect(server.url) as other:
        busy.request("GET", "/v1/slow")
        server.wait_for("inside")
        other.request("GET", "/v1/slow")
        answer = other.getresponse()
        assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    server.stop(signal.SIGTERM)


SHARED = "0123456789abcdef0123456789abcdef"
OWN = r"\[WARNING\] each process has its own (.*)"
STATE = """
from treefold_http.cache import cached, get_cache
from treefold_http.middleware import RateLimit

middlewares = [RateLimit("1000/s")]
get_cache()


@cached(60, key=lambda: "x")
async def load():
    return [1]


async def handler(request):
    return await load()
"""
CRASH = "import os\n\n\nasync def handler(request):\n    os._exit(9)\n"


@pytest.fixture
def stateful(project: Project, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that keeps sessions, limits and a cache in memory."""
    monkeypatch.setenv("TREEFOLD_SECRET_KEY", SHARED)
    root = project("v1/Health/Get.py")
    write(root, "Api/v1/State/Get.py", STATE)
    write(root, "Api/v1/Crash/Get.py", CRASH)
    entries = "Sessions(), under('/v1/state', RateLimit('9/s'))"
    write(
        root,
        "Middleware/__init__.py",
        f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n",
    )
    return root


def wait_for_boots(server: Any, count: int) -> None:
    while server.output.count("booted in") < count:
        server.wait_for("booted in")


def test_several_processes_tell_once_what_they_do_not_share(start: Start, stateful: Path):
    server = start("serve", "--workers", "2", cwd=stateful).started()
    wait_until(server.url, served=True)
    with connect(server.url) as connection:
        assert get(connection, "/v1/state").read() == b"[1]"
    wait_for_boots(server, 2)  # a line that is not written yet would be lost in the crash
    cut = (ConnectionError, http.client.HTTPException)
    with contextlib.suppress(*cut), connect(server.url) as connection:
        get(connection, "/v1/crash")
    wait_for_boots(server, 3)
    assert server.stop() == 0
    (told,) = re.findall(OWN, server.output)
    assert told == (
        "sessions (Sessions(store='redis') or 'database' shares them),"
        " limits (RateLimit(redis=True) shares them),"
        " cache 'default' (a Redis URL in the setting caches shares it)"
    )


def test_one_process_has_nothing_to_share(start: Start, stateful: Path):
    server = start("serve", cwd=stateful).started()
    assert server.stop() == 0
    assert not re.findall(OWN, server.output)


def test_processes_that_keep_nothing_in_memory_say_nothing(start: Start, stateful: Path):
    write(stateful, "Api/v1/State/Get.py", CRASH)
    entries = "Sessions(store='cookie'), CORS(['*'])"
    code = f"from treefold_http.middleware import *\nmiddlewares = [{entries}]\n"
    write(stateful, "Middleware/__init__.py", code)
    server = start("serve", "--workers", "2", cwd=stateful).started()
    wait_for_boots(server, 2)
    assert server.stop() == 0
    assert not re.findall(OWN, server.output)
