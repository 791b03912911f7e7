"""The server of any ASGI application, in processes of its own: `serve` and `python -m`."""

import http.client
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
from collections.abc import Callable, Generator
from contextlib import closing
from pathlib import Path

import pytest

from treefold_server import ServerError, ServerOptions, serve

APP = """
import asyncio, os

async def app(scope, receive, send):
    assert scope["type"] == "http", "no events of start and end"
    if scope["path"] == "/wait":
        print("inside", flush=True)
        await asyncio.sleep(1)
    body = b"first %d" % os.getpid()
    headers = [(b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": body})

def create():
    return app
"""
COMMAND = [sys.executable, "-m", "treefold_server"]


class Running:
    """A server in a process of its own, and all that it prints."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,  # a server on a terminal ends when that is closed
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.output = ""
        self.address = ""

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read the output up to the line that matches."""
        assert self.process.stdout is not None
        alarm = threading.Timer(60, self.process.kill)
        alarm.start()
        try:
            for line in self.process.stdout:
                self.output += line
                if found := re.search(pattern, line):
                    return found
        finally:
            alarm.cancel()
        raise AssertionError(f"no line like {pattern!r} in\n{self.output}")

    def fetch(self, path: str = "/") -> tuple[int, str]:
        """Return status and body, once the server accepts connections."""
        with closing(http.client.HTTPConnection(self.address, timeout=60)) as connection:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read().decode()

    def stop(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        self.output += self.process.communicate(timeout=60)[0]
        return self.process.returncode


Start = Callable[..., Running]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "served.py").write_text(APP)
    return tmp_path


@pytest.fixture
def start(folder: Path) -> Generator[Start]:
    """Start `python -m treefold_server` with options; what still runs at the end is killed."""
    servers: list[Running] = []

    def call(*arguments: str, command: list[str] = COMMAND) -> Running:
        former = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup ignores it for all below
        server = Running([*command, *arguments], folder)
        signal.signal(signal.SIGHUP, former)
        servers.append(server)
        url = server.wait_for(r"(?:serving|processes) on (http://[\w.:]+)")[1]
        server.address = urllib.parse.urlsplit(url).netloc
        host, _, port = server.address.partition(":")
        wait_until(lambda: accepts_connections(host, int(port)))
        return server

    yield call
    for server in servers:
        server.process.kill()
        server.process.communicate()


def accepts_connections(host: str, port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex((host, port)) == 0


def wait_until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("workers", ["1", "2"])
@pytest.mark.parametrize("application", [["served:app"], ["served:create", "--factory"]])
def test_an_application_without_a_lifespan_is_served_until_a_stop_signal(
    start: Start, workers: str, application: list[str]
) -> None:
    server = start(*application, "--port", "0", "--workers", workers)
    status, body = server.fetch()
    assert (status, body.split()[0]) == (200, "first")
    assert server.stop() == 0
    assert "Traceback" not in server.output


ASKED = """
import served

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        print("asked for a lifespan", flush=True)
    await served.app(scope, receive, send)
"""


@pytest.mark.parametrize(("lifespan", "asked"), [("off", 0), ("auto", 1)])
def test_an_application_without_a_lifespan_is_not_asked_for_one(
    start: Start, folder: Path, lifespan: str, asked: int
) -> None:
    (folder / "noting.py").write_text(ASKED)
    server = start("noting:app", "--port", "0", "--lifespan", lifespan)
    assert server.fetch()[0] == 200
    assert server.stop() == 0
    assert server.output.count("asked for a lifespan") == asked


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_stop_signal_waits_for_a_request_in_progress(start: Start, workers: str) -> None:
    server = start("served:app", "--port", "0", "--workers", workers)
    with closing(http.client.HTTPConnection(server.address, timeout=60)) as connection:
        connection.request("GET", "/wait")
        server.wait_for("inside")
        server.process.send_signal(signal.SIGTERM)
        assert connection.getresponse().status == 200
    assert server.process.wait(60) == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_hangup_serves_the_new_code_on_the_same_socket(
    start: Start, folder: Path, workers: str
) -> None:
    server = start("served:app", "--port", "0", "--workers", workers)
    server.fetch()
    (folder / "served.py").write_text(APP.replace("first", "second"))
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: server.fetch()[1].startswith("second"))
    assert server.stop() == 0


def test_one_process_starts_again_after_its_number_of_requests(start: Start) -> None:
    server = start("served:app", "--port", "0", "--max-requests", "1")
    server.fetch()
    server.wait_for("serving on")
    assert server.fetch()[0] == 200
    assert server.stop() == 0


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the processes in /proc")
def test_the_processes_end_with_a_supervisor_that_is_killed(start: Start) -> None:
    server = start("served:app", "--port", "0", "--workers", "2")
    worker = int(server.fetch()[1].split()[1])
    assert worker != server.process.pid
    server.process.kill()
    wait_until(lambda: not Path(f"/proc/{worker}").exists())


def test_d07_a_request_above_the_limit_is_503_and_one_masked_line(start: Start) -> None:
    server = start("served:app", "--port", "0", "--limit-concurrency", "1")
    with closing(http.client.HTTPConnection(server.address, timeout=60)) as connection:
        connection.request("GET", "/wait")
        server.wait_for("inside")
        assert server.fetch("/a?token=x&page=2") == (
            503,
            "The server has too much to do; try again",
        )
        assert connection.getresponse().status == 200
    assert server.stop() == 0
    assert re.search(r"\[ERROR\] GET /a\?token=\*\*\*&page=2 503 ", server.output)


OWN_REFUSAL = """
import served
from treefold_server import ServerOptions, serve

async def refuse(scope, receive, send):
    await send({"type": "http.response.start", "status": 429, "headers": []})
    await send({"type": "http.response.body", "body": b"later"})

serve(served.app, ServerOptions(port=0, limit_concurrency=1, overload_app=refuse))
"""


def test_an_application_of_ones_own_answers_above_the_limit(start: Start) -> None:
    server = start(command=[sys.executable, "-c", OWN_REFUSAL])
    with closing(http.client.HTTPConnection(server.address, timeout=60)) as connection:
        connection.request("GET", "/wait")
        server.wait_for("inside")
        assert server.fetch() == (429, "later")
    assert server.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["served:app", "--port", "70000"], 2, "Option port must be a number from 0 to 65535"),
        (["served:app", "--host", "nope.invalid"], 2, "Unknown host 'nope.invalid'; give an"),
        (["served:app", "--uds", "x", "--fd", "3"], 2, "Options uds and fd exclude each other"),
        (["served:nothing", "--port", "0"], 1, "The application did not start; the reason is"),
        (["--port", "0"], 2, "the following arguments are required: MODULE:APP"),
        (["served:app", "--ports", "0"], 2, "unrecognized arguments: --ports 0"),
    ],
)
def test_a_wrong_command_is_refused_with_the_way_out(
    folder: Path, arguments: list[str], code: int, message: str
) -> None:
    done = subprocess.run(
        [*COMMAND, *arguments], cwd=folder, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == code
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_port_in_use_is_refused_with_the_way_out() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(ServerError, match=f"Port {port} on '127.0.0.1' is in use"):
            serve("served:app", ServerOptions(port=port))


def test_several_processes_need_the_name_of_the_application() -> None:
    async def app(scope: object, receive: object, send: object) -> None: ...

    with pytest.raises(ServerError, match="give its name, such as 'module:app'") as refused:
        serve(app, ServerOptions(port=0, workers=2))
    assert refused.value.exit_code == 2
