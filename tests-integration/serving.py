"""Projects on disk, served in three ways and asked through one interface.

`InProcess` calls the ASGI application exactly as a server would, `Process` starts the command line
and writes requests to a socket byte for byte. Both give the same `Answer` and the same log lines,
so one test proves a row of the specification for all of them. Nothing here knows what is right.
"""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import IO, Any, Protocol, TypeAlias, TypeVar
from urllib.parse import unquote

from http_messages import Answer, Call, read_answer

from treefold import Application, Settings
from treefold.logging import flush

T = TypeVar("T")
Message: TypeAlias = MutableMapping[str, Any]
NewDatabase: TypeAlias = Callable[[], AbstractContextManager[str]]
"""The fixture `new_database`: the address of an empty database for the length of a block."""

KINDS = ("asgi", "h11", "httptools")
PATIENCE = 60.0
"""Seconds after which a condition that was waited for counts as failed."""

_WITHOUT_EXTRAS = """
import runpy, sys
sys.modules.update(dict.fromkeys(("httptools", "msgspec", "uvloop")))
runpy.run_module("treefold", run_name="__main__", alter_sys=True)
"""
_WITHOUT_WATCH = _WITHOUT_EXTRAS.replace('("httptools", "msgspec", "uvloop")', '("watchfiles",)')
_PYTHON = {
    "h11": ["-c", _WITHOUT_EXTRAS],
    "httptools": ["-m", "treefold"],
    "without watch": ["-c", _WITHOUT_WATCH],
}
"""What users get without and with the `fast` extra: each brings another HTTP parser."""


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write files below a folder, sources dedented; give the folder."""
    for name, source in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(source), encoding="utf-8")
    (root / "Api").mkdir(exist_ok=True)
    return root


def migrate(root: Path, database: str) -> None:
    """Apply the migrations of a project to a database, as a rollout does before it serves."""
    plain = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
    done = subprocess.run(
        [sys.executable, "-m", "treefold", "migrate", "--app-dir", root],
        env=plain | {"TREEFOLD_DATABASE_URL": database},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


class StartFailed(Exception):
    """The application did not start; `stderr` is what it said."""

    def __init__(self, stderr: str) -> None:
        super().__init__(f"The application did not start; it wrote:\n{stderr}")
        self.stderr = stderr


class Lines:
    """The lines of a pipe as they arrive, collected by a thread."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._lines: list[str] = []
        self._ended = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def _collect(self) -> None:
        for raw in self._stream:
            with self._changed:
                self._lines.append(raw.decode("utf-8", "backslashreplace").removesuffix("\n"))
                self._changed.notify_all()
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def wait_for(self, find: Callable[[list[str]], T | None]) -> T:
        """Give what `find` makes of the lines, as soon as it is neither None nor empty.

        Raises:
            AssertionError: after `PATIENCE` seconds, or at the end of the pipe.
        """
        deadline = time.monotonic() + PATIENCE
        with self._changed:
            while not (found := find(self._lines)):
                left = deadline - time.monotonic()
                if self._ended or left < 0:
                    raise AssertionError("Not in the output:\n" + "\n".join(self._lines))
                self._changed.wait(left)
            return found

    def text(self) -> str:
        """Give everything that has been written so far."""
        with self._changed:
            return "\n".join(self._lines)

    def close(self) -> str:
        """Wait for the end of the pipe and give everything that was written."""
        self._thread.join(PATIENCE)
        self._stream.close()
        return self.text()


class Served(ABC):
    """A running application.

    Attributes:
        kind: one of `KINDS`.
        root: the application root.
    """

    kind: str
    root: Path

    @abstractmethod
    def send(self, calls: Sequence[Call]) -> list[Answer]:
        """Send requests at the same time; give the answers in the order of the requests."""

    @abstractmethod
    def wait_for(self, find: Callable[[list[str]], T | None]) -> T:
        """Give what `find` makes of the lines on stderr, as soon as it is not None or empty."""

    @abstractmethod
    def stop(self) -> str:
        """Shut the application down; give everything that it wrote to stderr."""

    def request(
        self,
        method: str,
        target: str,
        *,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes | Sequence[bytes] = b"",
        host: str | None = "localhost",
    ) -> Answer:
        """Send one request."""
        call = Call(method=method, target=target, headers=headers, body=body, host=host)
        return self.send([call])[0]

    def get(self, target: str, *headers: tuple[str, str]) -> Answer:
        """Send a GET."""
        return self.request("GET", target, headers=headers)

    def post(self, target: str, body: bytes, kind: str = "application/json") -> Answer:
        """Send a POST with a content type."""
        return self.request("POST", target, headers=[("Content-Type", kind)], body=body)

    def line(self, answer: Answer) -> str:
        """Give the one request line of an answer."""
        shape = re.compile(rf"\[[A-Z]+\] \S+ .* id={re.escape(answer.id)} payload=")
        (line,) = self.wait_for(lambda lines: list(filter(shape.match, lines)))
        return line

    def block(self, answer: Answer) -> str:
        """Give the request line of an answer and what belongs to it: its traceback."""
        first = self.line(answer)
        self.line(self.get("/"))  # lines keep their order: once this one is there, all others are
        lines = self.wait_for(lambda lines: lines[lines.index(first) :])
        length = next(i for i, line in enumerate(lines) if i and line.startswith("["))
        return "\n".join(lines[:length])


class InProcess(Served):
    """The application called directly, on an event loop that runs while a request does."""

    kind = "asgi"

    def __init__(
        self, root: Path, *, dev: bool, default_version: str | None, database: str | None = None
    ) -> None:
        self.root = root
        reading, writing = os.pipe()
        self._lines = Lines(os.fdopen(reading, "rb"))
        self._stderr = os.fdopen(writing, "w", buffering=1, encoding="utf-8")
        self._runner = asyncio.Runner()
        self._state: dict[str, Any] = {}
        own = None if database is None else Settings.load(root, databases={"default": database})
        self._app = Application(root, dev=dev, default_version=default_version, settings=own)
        message = self._run(self._start())
        if message["type"] != "lifespan.startup.complete":
            raise StartFailed(f"{self._close()}\n{message.get('message', '')}")

    def send(self, calls: Sequence[Call]) -> list[Answer]:
        return self._run(self._send(calls))

    def wait_for(self, find: Callable[[list[str]], T | None]) -> T:
        return self._run(asyncio.to_thread(self._lines.wait_for, find))

    def stop(self) -> str:
        self._run(self._stop())
        return self._close()

    def _run(self, work: Coroutine[Any, Any, T]) -> T:
        with self._redirected():
            return self._runner.run(work)

    @contextmanager
    def _redirected(self) -> Generator[None, None, None]:
        assert flush(PATIENCE)  # what others of this process have logged is not of this application
        descriptor, stream = os.dup(2), sys.stderr
        os.dup2(self._stderr.fileno(), 2)
        sys.stderr = self._stderr
        try:
            yield
        finally:
            assert flush(PATIENCE)
            sys.stderr = stream
            os.dup2(descriptor, 2)
            os.close(descriptor)

    def _close(self) -> str:
        with self._redirected():
            self._runner.close()
        self._stderr.close()
        return self._lines.close()

    async def _start(self) -> Message:
        self._to_app: asyncio.Queue[Message] = asyncio.Queue()
        self._from_app: asyncio.Queue[Message] = asyncio.Queue()
        scope = {"type": "lifespan", "asgi": {"version": "3.0"}, "state": self._state}
        self._lifespan = asyncio.ensure_future(
            self._app(scope, self._to_app.get, self._from_app.put)
        )
        return await self._exchange({"type": "lifespan.startup"})

    async def _stop(self) -> None:
        message = await self._exchange({"type": "lifespan.shutdown"})
        assert message["type"] == "lifespan.shutdown.complete"
        await self._lifespan

    async def _exchange(self, message: Message) -> Message:
        await self._to_app.put(message)
        answer = asyncio.ensure_future(self._from_app.get())
        await asyncio.wait({answer, self._lifespan}, return_when=asyncio.FIRST_COMPLETED)
        if not answer.done():
            await self._lifespan  # raises what it failed with
        return await answer

    async def _send(self, calls: Sequence[Call]) -> list[Answer]:
        before = asyncio.all_tasks()
        answers = await asyncio.gather(*(self._answer(call) for call in calls))
        if begun := asyncio.all_tasks() - before:  # nobody hears what they log once this loop rests
            await asyncio.wait(begun, timeout=PATIENCE)
        return answers

    async def _answer(self, call: Call) -> Answer:
        exchange = _Exchange(call)
        await self._app(
            _scope(call) | {"state": dict(self._state)}, exchange.receive, exchange.send
        )
        return exchange.answer()


def _scope(call: Call) -> dict[str, Any]:
    raw_path, _, query = call.target.encode("latin-1").partition(b"?")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 50000),
        "scheme": "http",
        "root_path": "",
        "method": call.method,
        "raw_path": raw_path,
        "path": unquote(raw_path.decode("ascii")),
        "query_string": query,
        "headers": [(name.lower(), value) for name, value in call.fields()],
    }


class _Exchange:
    """The two callables of one request: chunks, then silence until the answer is complete."""

    def __init__(self, call: Call) -> None:
        self._chunks = [call.body] if isinstance(call.body, bytes) else [*call.body, b""]
        self._complete = asyncio.Event()
        self._start: Message | None = None
        self._body = b""

    async def receive(self) -> Message:
        if self._chunks:
            chunk = self._chunks.pop(0)
            return {"type": "http.request", "body": chunk, "more_body": bool(self._chunks)}
        await self._complete.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        assert not self._complete.is_set(), f"Sent after the end: {message}"
        if self._start is None:
            assert message["type"] == "http.response.start"
            self._start = message
            return
        assert message["type"] == "http.response.body"
        self._body += message.get("body", b"")
        if not message.get("more_body", False):
            self._complete.set()

    def answer(self) -> Answer:
        assert self._start is not None, "The application returned without an answer"
        assert self._complete.is_set(), "The application returned in the middle of an answer"
        headers = [(k.decode("latin-1"), v.decode("latin-1")) for k, v in self._start["headers"]]
        assert all(name == name.lower() for name, _ in headers)
        return Answer(self._start["status"], headers, self._body)


class Process(Served):
    """The command line in a process of its own, asked over a socket."""

    def __init__(
        self,
        root: Path,
        kind: str,
        *,
        dev: bool,
        default_version: str | None,
        database: str | None = None,
        workers: int = 1,
        host: str = "127.0.0.1",
        variables: Mapping[str, str] | None = None,
    ) -> None:
        self.root = root
        self.kind = kind
        environment = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
        # The Redis may be one of other runs: the names are those of this one.
        environment["TREEFOLD_TEST_RUN"] = os.environ.get("TREEFOLD_TEST_RUN", "")
        environment["PYTHONWARNINGS"] = "default"  # shown, so that `stop` finds them
        if default_version is not None:
            environment["TREEFOLD_DEFAULT_VERSION"] = default_version
        if database is not None:
            environment["TREEFOLD_DATABASE_URL"] = database
        environment.update(variables or {})
        command = ["dev"] if dev else ["serve", "--allow-broken", "--workers", str(workers)]
        command += ["--host", host, "--port", "0", "--app-dir", str(root)]
        self._process = subprocess.Popen(
            [sys.executable, *_PYTHON[kind], *command],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        self._stdout = Lines(self._process.stdout)
        self._stderr = Lines(self._process.stderr)
        try:
            said = (self._stdout if dev else self._stderr).wait_for(_find_address)
        except AssertionError:
            raise StartFailed(self._end(signal.SIGKILL)) from None
        self._address = ("127.0.0.1", int(said))
        self._await_listening()

    def send(self, calls: Sequence[Call]) -> list[Answer]:
        if len(calls) == 1:
            return [self._answer(calls[0])]
        with ThreadPoolExecutor(20) as threads:
            return list(threads.map(self._answer, calls))

    def wait_for(self, find: Callable[[list[str]], T | None]) -> T:
        return self._stderr.wait_for(find)

    def stop(self, number: signal.Signals = signal.SIGTERM) -> str:
        written = self._end(number)
        assert self._process.returncode == 0, written
        assert not re.search(r"^.+: \w*Warning: .+$", written, re.MULTILINE), written
        return written

    @property
    def address(self) -> tuple[str, int]:
        """Where it listens."""
        return self._address

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def wire(self, request: bytes) -> bytes:
        """Send bytes on a connection of their own; give all bytes that come before its end."""
        received: list[bytes] = []
        with socket.create_connection(self._address, PATIENCE) as connection:
            # A server may refuse a body and close before it has all of it: its answer still counts.
            with suppress(BrokenPipeError, ConnectionResetError):
                connection.sendall(request)
            with suppress(ConnectionResetError):
                received.extend(iter(lambda: connection.recv(65536), b""))
        return b"".join(received)

    def _answer(self, call: Call) -> Answer:
        head = [f"{call.method} {call.target} HTTP/1.1".encode("latin-1"), b"Connection: close"]
        head += [name + b": " + value for name, value in call.fields()]
        body = call.body
        if not isinstance(body, bytes):
            body = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in [*body, b""])
        return read_answer(call.method, self.wire(b"\r\n".join([*head, b"", body])))

    def _await_listening(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                socket.create_connection(self._address, PATIENCE).close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise StartFailed(self._end(signal.SIGKILL)) from None
                time.sleep(0.01)  # the port is bound before it listens; nothing tells us when

    def _end(self, number: signal.Signals) -> str:
        self._process.send_signal(number)
        try:
            self._process.wait(PATIENCE)
        finally:
            self._process.kill()
        self._process.wait(PATIENCE)
        self._stdout.close()
        return self._stderr.close()


def _find_address(lines: list[str]) -> str | None:
    found = (
        re.search(r"(?:serving|processes) on http://(?:127\.0\.0\.1|\[::\]):([0-9]+)", line)
        for line in lines
    )
    return next((match[1] for match in found if match), None)


class Serve(Protocol):
    """The fixture `serve`: write a tree `{path: source}` and serve it until the module ends."""

    def __call__(
        self, tree: Mapping[str, str], *, dev: bool = False, default_version: str | None = None
    ) -> Served: ...


def start(
    kind: str,
    root: Path,
    *,
    dev: bool = False,
    default_version: str | None = None,
    database: str | None = None,
) -> Served:
    """Serve the project below a folder.

    Args:
        kind: one of `KINDS`.
        dev: development: errors in answers.
        default_version: as the setting.
        database: the address of the default database, instead of the project's own.

    Raises:
        StartFailed: when the application does not start; it says what is on stderr.
    """
    if kind == "asgi":
        return InProcess(root, dev=dev, default_version=default_version, database=database)
    return Process(root, kind, dev=dev, default_version=default_version, database=database)
