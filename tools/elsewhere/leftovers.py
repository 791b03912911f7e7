"""`python tools/elsewhere/leftovers.py COMMAND ...` runs a command and names what it leaves behind.

Looked for are processes, databases of PostgreSQL, keys of Redis, files of the checkout (by `git
status`) and files in the folder for temporary ones. The servers are those that the tests would use:
`TREEFOLD_TEST_POSTGRES` and `TREEFOLD_TEST_REDIS`, else the standard ports of this machine; what
others make there meanwhile is found too. The exit code is that of the command, or 1.
"""

import asyncio
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import asyncpg  # pyright: ignore[reportMissingTypeStubs] - it has no type information
import redis

driver: Any = asyncpg
client: Any = redis.Redis
ROOT = Path(__file__).resolve().parents[2]
POSTGRES = "postgresql://postgres@127.0.0.1:5432/postgres"
REDIS = "redis://127.0.0.1:6379"
ADOPT_ORPHANS = 36  # PR_SET_CHILD_SUBREAPER of prctl.h
GRACE = 5.0
"""Seconds within which a process that is about to end must have ended."""


@dataclass(frozen=True, slots=True)
class Traces:
    """What may stay behind, at one moment.

    Attributes:
        found: the names of each kind, such as `database`.
    """

    found: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])

    def added(self, later: "Traces") -> list[str]:
        """Return one line for each name that only the later traces have."""
        return [
            f"{kind}: {name}"
            for kind, names in later.found.items()
            for name in sorted(names - self.found.get(kind, frozenset()))
        ]


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit("usage: python tools/elsewhere/leftovers.py COMMAND ...")
    adopt_orphans()
    before = read_traces(ROOT, os.environ, servers=os.environ)
    code = subprocess.run(sys.argv[1:], check=False).returncode
    left = [*end_orphans(), *before.added(read_traces(ROOT, os.environ, servers=os.environ))]
    print("left behind:" if left else "nothing is left behind", *left, sep="\n  ", flush=True)
    sys.exit(code or bool(left))


def read_traces(
    checkout: Path,
    git: Mapping[str, str],
    *,
    servers: Mapping[str, str] | None,
    temporary: Path | None = None,
    kept: Sequence[Path] = (),
) -> Traces:
    """Return what is there now.

    Args:
        git: the variables with which git finds the checkout.
        servers: the variables that name servers; None for a command that sees none of this machine.
        temporary: the folder for temporary files.
        kept: folders whose every file counts.
    """
    temporary = temporary or Path(tempfile.gettempdir())
    found = {"file": changed_files(checkout, git), "temporary file": temporary_files(temporary)}
    found["kept file"] = [name for folder in kept for name in files_below(folder)]
    if servers is not None:
        found["database"] = databases(servers.get("TREEFOLD_TEST_POSTGRES", POSTGRES))
        found["key"] = keys(servers.get("TREEFOLD_TEST_REDIS", REDIS))
    return Traces({kind: frozenset(names) for kind, names in found.items()})


# Files


def changed_files(checkout: Path, git: Mapping[str, str]) -> list[str]:
    """Return the lines of `git status`."""
    command = ["git", "status", "--porcelain", "--untracked-files=all"]
    done = subprocess.run(
        command, cwd=checkout, env=git, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"git status in {checkout}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def temporary_files(folder: Path) -> list[str]:
    """Return the names in a folder, without the last runs that pytest keeps on purpose."""
    return [each.name for each in folder.iterdir() if not each.name.startswith("pytest-of-")]


def files_below(folder: Path) -> list[str]:
    """Return each file with its size and time, without compiled ones."""
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return [f"{path} {path.stat().st_size} {path.stat().st_mtime_ns}" for path in found]


# Servers


def databases(address: str) -> list[str]:
    """Return the databases of a server, none where none answers."""

    async def ask() -> list[str]:
        connection = await driver.connect(address, timeout=5)
        try:
            rows = await connection.fetch("SELECT datname FROM pg_database")
        finally:
            await connection.close()
        return [row["datname"] for row in rows]

    try:
        return asyncio.run(ask())
    except (OSError, driver.PostgresError):
        return []


def keys(address: str) -> list[str]:
    """Return the keys of all databases of a server as `NUMBER KEY`, none where none answers."""
    server = urlsplit(address)._replace(path="").geturl()
    found: list[str] = []
    try:
        with client.from_url(server, protocol=2, socket_timeout=5) as one:
            numbers = [name.removeprefix("db") for name in one.info("keyspace")]
        for number in numbers:
            with client.from_url(f"{server}/{number}", protocol=2, socket_timeout=5) as one:
                found += [f"{number} {os.fsdecode(key)}" for key in one.scan_iter(count=1000)]
    except redis.RedisError:
        return []
    return found


# Processes


def adopt_orphans() -> None:
    """Become the parent of each process below this one whose own parent has ended."""
    ctypes.CDLL(None).prctl(ADOPT_ORPHANS, 1, 0, 0, 0)


def end_orphans() -> list[str]:
    """End what still runs below this process; return one line for each."""
    deadline = time.monotonic() + GRACE
    while (running := list(children())) and time.monotonic() < deadline:
        time.sleep(0.05)
    lines: list[str] = []
    while running:  # the children of what ends here come here as well
        for number, words in running:
            lines.append(f"process: {number} {words}")
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
            with suppress(ChildProcessError):
                os.waitpid(number, 0)
        running = list(children())
    return lines


def children() -> Iterator[tuple[int, str]]:
    """Yield the number and the command line of each child that has not ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    for number in Path(f"/proc/self/task/{os.getpid()}/children").read_text().split():
        with suppress(OSError):
            words = Path("/proc", number, "cmdline").read_bytes().split(b"\0")
            yield int(number), os.fsdecode(b" ".join(words)).strip()[:200]


if __name__ == "__main__":
    main()
