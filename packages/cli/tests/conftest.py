"""A project on the disk and the command line over it, in this process or in its own."""

import os
import re
import signal
import subprocess
import sys
import sysconfig
import threading
from collections.abc import Callable, Generator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import settings

from treefold_cli._console.main import run_command_line

sys.path.insert(0, str(Path(__file__).parent))

from forked_commands import Forked, ForkServer

# a limit of the clock for each example would fail on a busy machine
settings.register_profile("treefold", deadline=None)
settings.load_profile("treefold")


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
        code = run_command_line(arguments)
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
        return subprocess.run(
            command,
            cwd=cwd,
            input=stdin,
            env=plain_environment() | variables,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return call


def plain_environment() -> dict[str, str]:
    """Variables without those that are settings of treefold or pytest."""
    return {n: v for n, v in os.environ.items() if not n.startswith(("TREEFOLD", "PYTEST_"))}


@pytest.fixture(scope="session")
def fork_server() -> Generator[ForkServer, None, None]:
    """A process that has imported the program, and forks."""
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def forked(fork_server: ForkServer) -> Callable[..., "subprocess.CompletedProcess[str]"]:
    """Run a command in a process of its own, without the start of an interpreter."""

    def call(
        *arguments: str, cwd: Path | None = None, stdin: str = "", **variables: str
    ) -> "subprocess.CompletedProcess[str]":
        env = plain_environment() | variables
        return fork_server.run(arguments, cwd=cwd or Path.cwd(), env=env, stdin=stdin)

    return call


class Running:
    """A server in a process group of its own, from its announcement on."""

    def __init__(self, process: Forked) -> None:
        self.process = process
        self.output = ""
        self.url = ""

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read the output up to the line that matches; a server without it is ended."""
        assert self.process.stdout is not None
        alarm = threading.Timer(120, os.killpg, [self.process.pid, signal.SIGKILL])
        alarm.start()
        try:
            for line in self.process.stdout:
                self.output += line
                if found := re.search(pattern, line):
                    return found
        finally:
            alarm.cancel()
        raise AssertionError(f"no line like {pattern!r} in\n{self.output}")

    def started(self) -> "Running":
        """Wait for the address."""
        self.url = self.wait_for(r"(?:serving|processes) on (http://[\w.:]+)")[1]
        return self

    def drain(self) -> None:
        """Read the output until its end."""
        assert self.process.stdout is not None
        self.output += self.process.stdout.read()

    def stop(self, number: int = signal.SIGTERM, *, group: bool = False) -> int:
        """Send a signal, read the rest of the output and give the exit code."""
        (os.killpg if group else os.kill)(self.process.pid, number)
        rest, _ = self.process.communicate(timeout=60)
        self.output += rest
        return self.process.wait()


@pytest.fixture
def start(fork_server: ForkServer) -> Generator[Callable[..., Running], None, None]:
    """Start `dev` or `serve` on a free port; whatever still runs at the end is killed."""
    servers: list[Running] = []

    def call(*arguments: str, cwd: Path) -> Running:
        command = [*arguments, "--port", "0"]
        servers.append(Running(fork_server.start(command, cwd=cwd, env=os.environ)))
        return servers[-1]

    yield call
    for server in servers:
        with suppress(ProcessLookupError):
            os.killpg(server.process.pid, signal.SIGKILL)
        server.process.communicate()


STEPS = """
from pathlib import Path
from types import SimpleNamespace

class Steps:
    '''What the file `wanted` lists and the file `done` does not is missing.'''

    def setup(self, app):
        self.root = Path(app.root)

    def read(self, name):
        file = self.root / name
        return file.read_text().split() if file.exists() else []

    def pending(self):
        if (self.root / "away").exists():
            raise RuntimeError("the store is away")
        return [
            SimpleNamespace(text=f"step {name} is missing", advice="treefold step")
            for name in self.read("wanted")
            if name not in self.read("done")
        ]

    def apply(self):
        made = [one.text.split()[1] for one in self.pending()]
        if "bad" in made:
            raise RuntimeError("step bad cannot be made")
        with open(self.root / "done", "a") as file:
            file.write("".join(f"{name}\\n" for name in made))
        return [f"made step {name}" for name in made]

    async def shutdown(self):
        with open(self.root / "released", "a") as file:
            file.write("x")
"""


@pytest.fixture
def behind(project: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project that two steps are missing in, beside an installed extension that knows them."""
    site = tmp_path / "site"
    info = site / "steps-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: steps\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[treefold.extensions]\nsteps = steps_of_mine:Steps\n")
    (site / "steps_of_mine.py").write_text(STEPS)
    monkeypatch.setenv("PYTHONPATH", str(site))
    root = project("v1/Health/Get.py")
    (root / "treefold.toml").write_text("installed_extensions = true\n")
    (root / "wanted").write_text("one\ntwo\n")
    return root
