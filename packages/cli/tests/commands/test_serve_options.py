"""What a deployer sets for `treefold serve`: where it listens, HTTPS, limits, processes."""

import contextlib
import http.client
import os
import re
import signal
import socket
import ssl
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from lossless_clients import wait_until_served

Treefold = Callable[..., tuple[int, str, str]]
Project = Callable[..., Path]
Start = Callable[..., Any]

CERTIFICATE = Path(__file__).parent / "certificates" / "localhost.pem"
KEY = CERTIFICATE.with_name("localhost-key.pem")
HELLO = """
import os

async def handler(request):
    return {"client": request.client, "scheme": request.scheme, "process": os.getpid()}
"""
WAITING = """
import asyncio

async def handler(request):
    print("inside", flush=True)
    await asyncio.sleep(float(request.query["seconds"]))
    return {}
"""


@pytest.fixture
def root(project: Project) -> Path:
    """A project with a path that answers at once and one that takes its time."""
    made = project()
    for name, text in (("Hello", HELLO), ("Wait", WAITING)):
        (made / "Api/v1" / name).mkdir(parents=True)
        (made / "Api/v1" / name / "Get.py").write_text(text)
    return made


class UnixConnection(http.client.HTTPConnection):
    """HTTP over a Unix socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(20)
        self.sock.connect(str(self.path))


def is_accepted(path: Path) -> bool:
    """Return True if a server accepts connections at a path."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        return probe.connect_ex(str(path)) == 0


def ask(url: str, path: str = "/v1/hello", **headers: str) -> dict[str, Any]:
    """The JSON of an answer."""
    import json

    connection = http.client.HTTPConnection(address_of(url), timeout=60)
    with contextlib.closing(connection):
        connection.request("GET", path, headers=headers)
        return json.loads(connection.getresponse().read())


def serving(server: Any) -> Any:
    """Wait until a server has said its address and accepts connections."""
    host, _, port = address_of(server.started().url).partition(":")
    wait_until_served((host, int(port)))
    return server


def address_of(url: str) -> str:
    """Host and port of a URL."""
    return urllib.parse.urlsplit(url).netloc


def until(condition: Callable[[], bool]) -> None:
    """Wait until something holds."""
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


# -- where it listens -----------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_unix_socket_is_served_and_removed_at_the_end(
    start: Start, root: Path, tmp_path: Path, workers: str
):
    path = tmp_path / "http.sock"
    with socket.socket(socket.AF_UNIX) as abandoned:
        abandoned.bind(str(path))  # by a server that was killed
    server = start("serve", "--uds", str(path), "--workers", workers, cwd=root)
    server.wait_for(f"on unix:{re.escape(str(path))}")
    until(lambda: is_accepted(path))
    with contextlib.closing(UnixConnection(path)) as connection:
        connection.request("GET", "/v1/hello")
        assert b'"client":null' in connection.getresponse().read()
    assert server.stop() == 0
    assert not path.exists()


def test_a_unix_socket_in_use_and_a_file_are_left_alone(
    treefold: Treefold, root: Path, tmp_path: Path
):
    path, file = tmp_path / "http.sock", tmp_path / "file"
    file.write_text("mine")
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(path))
        other.listen()
        code, _, used = treefold("serve", "--uds", str(path))
    assert code == 1
    assert f"'{path}' is in use by another server; choose another with --uds" in used
    code, _, taken = treefold("serve", "--uds", str(file))
    assert code == 1
    assert f"'{file}' is a file, not a socket" in taken
    assert (path.exists(), file.read_text()) == (True, "mine")


def make_socket(path: Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> socket.socket:
    made = socket.socket(socket.AF_UNIX, kind)
    with contextlib.chdir(path.parent):  # a path may be too long for the call
        made.bind(path.name)
    return made


def test_a_path_that_cannot_be_a_socket_is_named_with_the_way_out(
    treefold: Treefold, root: Path, tmp_path: Path
):
    long, circle, file = tmp_path / ("x" * 120), tmp_path / "circle", tmp_path / "file"
    long.mkdir()
    circle.symlink_to(circle)
    file.touch()
    with (
        make_socket(tmp_path / "datagram.sock", socket.SOCK_DGRAM),
        make_socket(long / "http.sock"),
    ):
        for path in (
            tmp_path / "datagram.sock",
            long / "http.sock",
            long / "new.sock",
            circle,
            circle / "http.sock",
            file / "http.sock",
            tmp_path / "nowhere" / "http.sock",
            tmp_path / ("x" * 300),
            Path("nul\0"),
        ):
            code, _, said = treefold("serve", "--uds", str(path))
            assert (code, "Traceback" in said) == (1, False), said
            assert said.startswith(f"Error: Cannot listen on {str(path)!r}: "), said
            assert said.endswith("; choose another with --uds\n"), said
    assert (tmp_path / "datagram.sock").is_socket()
    assert (long / "http.sock").is_socket()


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="gives up the rights of root")
@pytest.mark.parametrize(
    ("folder_mode", "socket_mode"), [(0o000, 0o666), (0o555, 0o666), (0o755, 0)]
)
def test_a_socket_without_rights_is_named_with_the_way_out(
    tmp_path: Path, folder_mode: int, socket_mode: int
):
    import tempfile

    with tempfile.TemporaryDirectory() as top:  # others cannot enter `tmp_path`
        os.chmod(top, 0o755)
        path = Path(top) / "closed" / "http.sock"
        path.parent.mkdir()
        make_socket(path).close()
        path.chmod(socket_mode)
        path.parent.chmod(folder_mode)
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_RIGHTS, str(path)], capture_output=True, text=True
        )
    assert done.stdout == (
        f"Cannot listen on {str(path)!r}: Permission denied; choose another with --uds\n"
    ), done.stderr


WITHOUT_RIGHTS = """
import os, sys
from treefold_server import ServerError, ServerOptions, open_listener
os.setgid(65534)
os.setuid(65534)
try:
    with open_listener(ServerOptions(uds=sys.argv[1])):
        pass
except ServerError as error:
    print(error)
"""


HAND_OVER = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
os.environ["LISTEN_PID"] = str(os.getpid())
os.execv(sys.executable, [sys.executable, "-m", "treefold_cli", "serve", *sys.argv[2:]])
"""


@contextlib.contextmanager
def handed_over(
    root: Path, listener: socket.socket, workers: str
) -> Generator["subprocess.Popen[bytes]"]:
    """A server on a socket that a service manager made; it is killed if the block fails."""
    with subprocess.Popen(
        [sys.executable, "-c", HAND_OVER, str(listener.fileno()), "--workers", workers],
        cwd=root,
        env={**os.environ, "LISTEN_FDS": "1"},
        pass_fds=[listener.fileno()],
        stderr=subprocess.PIPE,
    ) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_socket_of_a_service_manager_is_taken(root: Path, workers: str):
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    with listener, handed_over(root, listener, workers) as process:
        listener.close()
        assert ask(url)["scheme"] == "http"  # it waited in the queue of the socket
        process.send_signal(signal.SIGTERM)
        assert process.communicate(timeout=30)[1].count(b"GET /v1/hello 200 ") == 1
    assert process.returncode == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_service_manager_can_start_a_next_server_on_its_socket(root: Path, workers: str):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        for _ in range(2):
            with handed_over(root, listener, workers) as process:
                assert ask(url)["scheme"] == "http"
                process.send_signal(signal.SIGTERM)
                process.communicate(timeout=30)
            assert process.returncode == 0


def test_a_unix_socket_is_removed_at_the_end_of_a_restarted_server(
    start: Start, root: Path, tmp_path: Path
):
    path = tmp_path / "http.sock"
    server = start("serve", "--uds", str(path), cwd=root)
    for _ in range(2):
        server.wait_for("serving on unix:")
        server.process.send_signal(signal.SIGHUP)
    server.wait_for("serving on unix:")
    assert is_accepted(path)
    assert server.stop() == 0
    assert not path.exists()


def test_a_hangup_waits_for_requests_as_long_as_a_stop_does(start: Start, root: Path):
    server = serving(start("serve", cwd=root))
    with contextlib.closing(http.client.HTTPConnection(address_of(server.url), timeout=60)) as slow:
        slow.request("GET", "/v1/wait?seconds=6")
        server.wait_for("inside")
        server.process.send_signal(signal.SIGHUP)
        assert slow.getresponse().status == 200
    server.wait_for("serving on")
    assert server.stop() == 0


def test_a_socket_is_taken_by_its_number(root: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url, number = f"http://127.0.0.1:{listener.getsockname()[1]}", str(listener.fileno())
        process = subprocess.Popen(
            [sys.executable, "-m", "treefold_cli", "serve", "--fd", number],
            cwd=root,
            pass_fds=[listener.fileno()],
        )
    with process:  # which waits for its end
        try:
            assert ask(url)["scheme"] == "http"
        finally:
            process.send_signal(signal.SIGTERM)
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["--fd", "199"], "File 199 is not a socket that this process was started with"),
        (["--fd", "1", "--uds", "x"], "Settings serve.uds and serve.fd exclude each other"),
        (["--keep-alive", "soon"], "Invalid value 'soon' for --keep-alive; give a number"),
        (["--keep-alive", "0"], "Setting serve.keep_alive must be a number above 0, got 0.0"),
        (["--max-requests", "0"], "Invalid value '0' for --max-requests; give a number from 1"),
        (["--log-level", "loud"], "Setting log_level must be a level such as 'INFO'"),
        (["--tls-key", "x"], "Setting serve.tls_key needs serve.tls_certificate"),
        (["--tls-certificate", "no.pem"], "Cannot serve HTTPS with 'no.pem': [Errno 2]"),
    ],
)
def test_a_wrong_option_is_refused_with_the_way_out(
    treefold: Treefold, root: Path, arguments: list[str], error: str
):
    code, _, said = treefold("serve", *arguments)
    assert code in (1, 2)
    assert error in said
    assert "Traceback" not in said


@pytest.mark.parametrize("count", ["2", "x"])
def test_two_sockets_of_a_service_manager_are_refused(
    treefold: Treefold, root: Path, monkeypatch: pytest.MonkeyPatch, count: str
):
    monkeypatch.setenv("LISTEN_FDS", count)
    monkeypatch.setenv("LISTEN_PID", str(os.getpid()))
    code, _, said = treefold("serve")
    assert code == 1
    assert f"The service manager handed over {count} sockets, one is served" in said


# -- HTTPS and proxies ----------------------------------------------------------------------------


def fetch_tls(address: tuple[str, int], context: ssl.SSLContext) -> str:
    """The answer over TLS."""
    connection = http.client.HTTPSConnection("localhost", address[1], timeout=60, context=context)
    with contextlib.closing(connection):
        connection.request("GET", "/v1/hello")
        return connection.getresponse().read().decode()


@pytest.mark.parametrize("workers", ["1", "2"])
def test_https_is_served_with_client_certificates(start: Start, root: Path, workers: str):
    options = ["--tls-certificate", str(CERTIFICATE), "--tls-key", str(KEY)]
    arguments = [*options, "--tls-client-ca", str(CERTIFICATE), "--workers", workers]
    server = start("serve", *arguments, cwd=root)
    port = int(server.wait_for(r"on https://127.0.0.1:(\d+)")[1])
    wait_until_served(("127.0.0.1", port))
    context = ssl.create_default_context(cafile=str(CERTIFICATE))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        fetch_tls(("localhost", port), context)
    context.load_cert_chain(CERTIFICATE, KEY)
    assert '"scheme":"https"' in fetch_tls(("localhost", port), context)
    assert server.stop() == 0


def test_only_named_proxies_are_believed(start: Start, root: Path):
    forwarded = {"X-Forwarded-For": "192.0.2.7", "X-Forwarded-Proto": "https"}
    for trusted, client, scheme in (
        ("10.0.0.0/8", "127.0.0.1", "http"),
        ("*", "192.0.2.7", "https"),
    ):
        server = serving(start("serve", "--forwarded-allow-ips", trusted, cwd=root))
        answer = ask(server.url, **forwarded)
        assert (answer["client"][0], answer["scheme"]) == (client, scheme)
        assert server.stop() == 0


@pytest.mark.parametrize("trusted", ["127.0.0.1", "127.0.0.0/8"])
def test_a_proxy_is_believed_on_a_socket_of_both_families(start: Start, root: Path, trusted: str):
    server = start("serve", "--host", "::", "--forwarded-allow-ips", trusted, cwd=root)
    port = int(server.wait_for(r"serving on http://\[::\]:(\d+)")[1])
    wait_until_served(("127.0.0.1", port))
    url = f"http://127.0.0.1:{port}"
    assert ask(url)["client"][0] == "::ffff:127.0.0.1"
    assert ask(url, **{"X-Forwarded-For": "192.0.2.7"})["client"][0] == "192.0.2.7"
    assert server.stop() == 0


# -- settings -------------------------------------------------------------------------------------


def test_options_win_over_the_environment_and_that_over_the_file(
    start: Start, root: Path, monkeypatch: pytest.MonkeyPatch
):
    (root / "treefold.toml").write_text('log_level = "ERROR"\n[serve]\nworkers = 4\nhost = "::1"\n')
    monkeypatch.setenv("TREEFOLD_SERVE_WORKERS", "3")
    server = start("serve", "--log-level", "info", "--workers", "2", cwd=root)
    server.wait_for(r"starting 2 processes on http://\[::1\]:\d+")
    server.stop()
    server = start("serve", "--log-level", "info", cwd=root)
    server.wait_for(r"starting 3 processes on http://\[::1\]:\d+")
    server.stop()


@pytest.mark.parametrize("place", ["[serve]", "TREEFOLD_SERVE_LIMIT_CONCURRENCY", "--option"])
def test_the_limit_of_requests_belongs_to_the_server(
    start: Start, root: Path, monkeypatch: pytest.MonkeyPatch, place: str
):
    (root / "treefold.toml").write_text(
        "limit_concurrency = 100\n" + ("[serve]\nlimit_concurrency = 1\n" * (place == "[serve]"))
    )
    if place.startswith("TREEFOLD"):
        monkeypatch.setenv(place, "1")
    option = ["--limit-concurrency", "1"] if place == "--option" else []
    server = serving(start("serve", *option, cwd=root))
    with contextlib.closing(http.client.HTTPConnection(address_of(server.url), timeout=60)) as busy:
        busy.request("GET", "/v1/wait?seconds=1")
        server.wait_for("inside")
        assert ask(server.url)["status"] == 503
        assert busy.getresponse().status == 200


@pytest.mark.parametrize("workers", ["1", "2"])
def test_grace_ends_what_takes_longer(start: Start, root: Path, workers: str):
    server = serving(start("serve", "--grace", "0.3", "--workers", workers, cwd=root))
    with contextlib.closing(
        http.client.HTTPConnection(address_of(server.url), timeout=60)
    ) as connection:
        connection.request("GET", "/v1/wait?seconds=600")
        server.wait_for("inside")
        began = time.monotonic()
        assert server.stop() == 0
    assert time.monotonic() - began < 5


def test_another_server_is_told_that_it_has_limits_of_its_own(root: Path):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = str(listener.getsockname()[1])
    command = [sys.executable, "-m", "uvicorn", "--factory", "treefold_http:create_app"]
    process = subprocess.Popen(
        [*command, "--port", port], cwd=root, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    with process:
        line = next(line for line in process.stderr if "[serve]" in line)
        process.send_signal(signal.SIGTERM)
        process.stderr.read()
    assert "limit_concurrency and the settings of [serve]" in line
    assert "apply under `treefold serve` only" in line


# -- processes ------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_process_is_replaced_after_its_requests(start: Start, root: Path, workers: str):
    server = serving(start("serve", "--max-requests", "3", "--workers", workers, cwd=root))
    first = ask(server.url)["process"]
    for _ in range(30):
        assert ask(server.url)["scheme"] == "http"
        time.sleep(0.02)
    if workers == "1":
        server.wait_for("booted")
        assert server.output.count("serving on") >= 1
    else:
        until(lambda: ask(server.url)["process"] != first)
        server.wait_for(r"worker process \d+ has served its requests and is replaced")
    assert server.stop() == 0


@pytest.mark.parametrize("workers", [1, 2])
def test_a_hangup_serves_the_new_code_and_fails_no_request(start: Start, root: Path, workers: int):
    server = serving(start("serve", "--workers", str(workers), cwd=root))
    while server.output.count("booted in") < workers:
        server.wait_for("booted in")
    former = ask(server.url)
    file = root / "Api/v1/Hello/Get.py"
    file.write_text(HELLO.replace("request.client", "'new'"))
    server.process.send_signal(signal.SIGHUP)
    until(lambda: ask(server.url)["client"] == "new")
    assert ask(server.url)["scheme"] == former["scheme"]
    assert server.stop() == 0


@pytest.mark.parametrize("workers", ["1", "2"])
def test_a_signal_that_nothing_handles_ends_nothing(start: Start, root: Path, workers: str):
    handled = "import signal\nsignal.signal(signal.SIGUSR2, lambda *_: print('mine', flush=True))\n"
    (root / "hooks.py").write_text(handled)
    server = serving(start("serve", "--workers", workers, cwd=root))
    process = ask(server.url)["process"]
    for receiver in {server.process.pid, process}:
        os.kill(receiver, signal.SIGUSR1)
    os.kill(process, signal.SIGUSR2)
    server.wait_for("mine")
    assert ask(server.url)["scheme"] == "http"
    assert server.stop() == 0
    assert "was ended by" not in server.output


def test_a_worker_that_is_killed_is_one_line_and_replaced(start: Start, root: Path):
    server = serving(start("serve", "--workers", "2", cwd=root))
    killed = ask(server.url)["process"]
    os.kill(killed, signal.SIGKILL)
    line = rf"worker process {killed} was ended by SIGKILL; another takes its place"
    server.wait_for(line)
    until(lambda: ask(server.url)["process"] != killed)
    assert server.stop() == 0
    assert len(re.findall(line, server.output)) == 1


def test_a_worker_that_ends_while_it_is_asked_is_replaced_at_once(start: Start, root: Path):
    server = serving(start("serve", "--workers", "2", cwd=root))
    while server.output.count("booted in") < 2:
        server.wait_for("booted in")
    asked = ask(server.url)["process"]
    os.kill(asked, signal.SIGSTOP)
    time.sleep(0.7)  # the supervisor asks each process twice a second, and waits 5 s for an answer
    os.kill(asked, signal.SIGKILL)
    began = time.monotonic()
    server.wait_for(rf"worker process {asked} was ended by SIGKILL")
    assert time.monotonic() - began < 3
    assert server.stop() == 0


def test_a_replacement_that_does_not_start_leaves_the_others_serving(start: Start, root: Path):
    server = serving(start("serve", "--workers", "2", cwd=root))
    while server.output.count("booted in") < 2:  # the other would load the broken file
        server.wait_for("booted in")
    first = ask(server.url)["process"]
    (root / "Api/v1/Hello/Get.py").write_text("import nothing_like_this\n")
    os.kill(first, signal.SIGKILL)
    server.wait_for("a worker process did not start; it is tried again in 5 s")
    assert ask(server.url)["process"] != first
    (root / "Api/v1/Hello/Get.py").write_text(HELLO)
    assert server.stop() == 0


HANGS_ONCE = """
import asyncio
from pathlib import Path

async def hang_once():
    if (file := Path("hang")).exists():
        file.unlink()
        print("hangs", flush=True)
        await asyncio.sleep(1000)

on_startup = [hang_once]
"""


def test_a_worker_that_dies_while_another_is_replaced_is_replaced(start: Start, root: Path):
    (root / "hooks.py").write_text(HANGS_ONCE)
    server = serving(start("serve", "--workers", "2", cwd=root))
    while server.output.count("booted in") < 2:
        server.wait_for("booted in")
    (root / "hang").touch()
    server.process.send_signal(signal.SIGHUP)
    server.wait_for("hangs")
    former = ask(server.url)["process"]
    os.kill(former, signal.SIGKILL)
    server.wait_for(rf"worker process {former} was ended by SIGKILL; another takes its place")
    until(lambda: len({ask(server.url)["process"] for _ in range(20)}) == 2)
    (root / "Api/v1/Hello/Get.py").write_text(HELLO.replace("request.client", "'new'"))
    server.process.send_signal(signal.SIGHUP)  # begins again, without the one that hangs
    until(lambda: all(ask(server.url)["client"] == "new" for _ in range(20)))
    assert server.stop() == 0


def test_a_worker_may_hold_the_interpreter_while_it_starts(start: Start, root: Path):
    model = "import ctypes\nctypes.PyDLL(None).sleep(6)  # as a library that loads a model\n"
    (root / "Api/v1/Hello/Get.py").write_text(model + HELLO)
    server = serving(start("serve", "--workers", "2", cwd=root))
    until(lambda: len({ask(server.url)["process"] for _ in range(20)}) == 2)
    assert server.stop() == 0
    assert "did not answer" not in server.output
    assert "another takes its place" not in server.output


def test_a_worker_that_is_killed_while_it_starts_is_started_again_after_a_pause(
    start: Start, root: Path
):
    file = root / "Api/v1/Hello/Get.py"
    server = serving(start("serve", "--workers", "2", cwd=root))
    while server.output.count("booted in") < 2:
        server.wait_for("booted in")
    time.sleep(1)  # both have told that they serve
    first = ask(server.url)["process"]
    file.write_text(
        f"import os, pathlib\nif pathlib.Path('deadly').exists(): os.kill(os.getpid(), 9)\n{HELLO}"
    )
    (root / "deadly").touch()
    os.kill(first, signal.SIGKILL)
    server.wait_for("was ended by SIGKILL; another takes its place$")
    server.wait_for("was ended by SIGKILL; another takes its place in 5 s")
    (root / "deadly").unlink()
    assert ask(server.url)["process"] != first
    until(lambda: len({ask(server.url)["process"] for _ in range(20)}) == 2)
    assert server.stop() == 0
    assert server.output.count("was ended by SIGKILL") == 2


def test_a_process_group_and_its_parent_may_both_stop_it(start: Start, root: Path):
    server = serving(start("serve", "--workers", "2", cwd=root))
    with contextlib.closing(
        http.client.HTTPConnection(address_of(server.url), timeout=60)
    ) as connection:
        connection.request("GET", "/v1/wait?seconds=0.7")
        server.wait_for("inside")
        os.killpg(server.process.pid, signal.SIGTERM)
        time.sleep(0.3)
        server.process.send_signal(signal.SIGTERM)
        assert connection.getresponse().status == 200
    assert server.process.wait(timeout=30) == 0


def test_rooms_of_one_process_are_refused_with_several(start: Start, root: Path):
    (root / "Api/v1/Chat").mkdir()
    (root / "Api/v1/Chat/Socket.py").write_text(
        "from treefold_http import Rooms\nrooms = Rooms()\nasync def handler(websocket): ...\n"
    )
    server = start("serve", "--workers", "2", cwd=root)
    server.wait_for("Rooms\\(\\) reaches only the sockets of its own process, and several")
    assert server.process.wait(timeout=30) == 1


def test_several_processes_tell_of_severe_findings_once(start: Start, root: Path):
    server = start("serve", "--workers", "2", "--host", "0.0.0.0", cwd=root)
    server.wait_for(r"hosts-any: any Host is answered on 0.0.0.0:0; write in Middleware/")
    assert server.stop() == 0
    assert server.output.count("any Host is answered") == 1
