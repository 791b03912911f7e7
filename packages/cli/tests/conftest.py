"""A project on the disk and the command line over it, in this process or in its own."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest

from treefold_cli._main import run


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write files below `Api/` of a new project, enter it and give its root."""

    def make(*files: str) -> Path:
        root = tmp_path / "project"
        (root / "Api").mkdir(parents=True, exist_ok=True)
        for name in files:
            file = root / "Api" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("async def handler(request):\n    return {'file': __file__}\n")
        monkeypatch.chdir(root)
        return root

    return make


@pytest.fixture
def treefold(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Run a command in this process: its exit code, standard output and standard error."""
    monkeypatch.delenv("TREEFOLD_APP_DIR", raising=False)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = run(arguments)
        out, err = capsys.readouterr()
        return code, out, err

    return call


@pytest.fixture
def executable() -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run the installed script as users do, in a process of its own."""

    def call(
        *arguments: str, cwd: Path | None = None, stdin: str = "", **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        command = [str(Path(sysconfig.get_path("scripts")) / "treefold"), *arguments]
        plain = {name: os.environ[name] for name in os.environ if not name.startswith("TREEFOLD")}
        return subprocess.run(
            command,
            cwd=cwd,
            input=stdin,
            env=plain | variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return call


class Running:
    """A server in a process group of its own, from its announcement on."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "treefold_cli", *arguments, "--port", "0"],
            cwd=cwd,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.output = ""
        self.url = ""

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read the output up to the line that matches."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.output += line
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no line like {pattern!r} in\n{self.output}")

    def started(self) -> "Running":
        """Wait for the address."""
        self.url = self.wait_for(r"(?:serving|processes) on (http://[\w.:]+)")[1]
        return self

    def stop(self, number: int = signal.SIGTERM, *, group: bool = False) -> int:
        """Send a signal, read the rest of the output and give the exit code."""
        (os.killpg if group else os.kill)(self.process.pid, number)
        rest, _ = self.process.communicate(timeout=60)
        self.output += rest
        return self.process.returncode


@pytest.fixture
def start() -> Generator[Callable[..., Running], None, None]:
    """Start `dev` or `serve` on a free port; whatever still runs at the end is killed."""
    servers: list[Running] = []

    def call(*arguments: str, cwd: Path) -> Running:
        servers.append(Running(*arguments, cwd=cwd))
        return servers[-1]

    yield call
    for server in servers:
        with suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.communicate()
