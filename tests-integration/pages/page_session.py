"""One reader of one page: an empty folder, a terminal, an editor, a Python prompt and a server.

Where a page names port 8000, a database of PostgreSQL or a Redis, the session uses a free port, a
database of its own and the Redis of the tests. The output is compared with the names of the page.
"""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

from compare import is_printed
from page_blocks import Block, Command, read_commands
from serving import Lines
from terminal import Terminal

START = 60.0
"""Seconds within which a server must listen, and a log line must be written."""
RELOAD = 30.0
"""Seconds that a saved file may take, beside other suites, until `dev` says that it is served."""

NEW_MODULE = 0.2
"""The same for a new file in `Services/`, which no file imports yet."""

COMMAND = 300.0
"""Seconds after which a command that has not ended fails."""

_SERVER = re.compile(
    r"(?:\w+=\S+ )*"
    r"(?:treefold (?:dev|serve|worker)|uvicorn|granian|hypercorn|python -m http\.server)\b"
)
_ADDRESS = re.compile(r"(?P<host>127\.0\.0\.1|localhost):(?P<port>[38]\d\d\d)\b")
_DATABASE = re.compile(r"postgresql://[\w.:@-]*/(?P<name>\w+)")
_INSTALL = re.compile(
    r"(?:python -m )?pip install|uv (?:add|pip install)|pipx install|git clone"
    r"|python3 -m venv|\. \S+/bin/activate"
)
_RELOADING = re.compile(r"reload|restart|changed|failed|broken|pending", re.IGNORECASE)
_RESTARTED = re.compile(r"\(restarted\)|failed|broken|ERROR")
_SERVED_FOLDERS = ("Api/", "Services/", "Models/", "Middleware/", "hooks.py")


class PageFailed(AssertionError):
    """A page says what is not so."""


class PageSession:
    """Does what a page tells its reader to do.

    Args:
        folder: an empty folder, in which the page begins.
        new_database: makes an empty database of PostgreSQL; returns its address.
        redis: starts or finds a Redis; returns its address.
    """

    def __init__(
        self, folder: Path, new_database: Callable[[], str], redis: Callable[[], str]
    ) -> None:
        self.terminal = Terminal(folder)
        self.stack = ExitStack()
        self.page = ""
        self._new_database = new_database
        self._redis = redis
        self._redis_url = ""
        self._ports: dict[str, int] = {}
        self._databases: dict[str, str] = {}
        self._servers: dict[str, Server] = {}
        self._prompt: Prompt | None = None

    def run(self, page: str, block: Block) -> None:
        """Do what one block says.

        Raises:
            PageFailed: it does not work, or prints other lines than the page shows.
        """
        self.page = f"{page}:{block.line}"
        if block.not_run:
            return
        if block.file:
            self._save(block)
        elif block.language == "console":
            for command in read_commands(block.text):
                self._type(command)
        elif block.language in {"python", "py"}:
            self._ask("program", block)
        elif block.language == "pycon":
            self._ask("session", block)
        elif block.language == "log":
            self._read_log(block.text.splitlines())
        elif block.language == "toml":
            tomllib.loads(block.text)
        elif block.language == "json":
            json.loads(block.text)
        elif block.language not in {"", "text"}:
            self._fail(f"A block of {block.language!r} must name its file in the first line")

    def close(self) -> None:
        """Stop what runs."""
        self.close_prompt()
        for server in self._servers.values():
            server.stop()
        self._servers.clear()
        self.stack.close()

    def close_prompt(self) -> None:
        """End the Python prompt, as a reader does who goes on to another page."""
        if self._prompt is not None:
            self._prompt.close()
            self._prompt = None

    def _fail(self, message: str) -> None:
        raise PageFailed(f"{self.page}: {message}")

    # Files

    def _save(self, block: Block) -> None:
        text = self._here(block.text)
        file = self.terminal.folder / block.file
        is_new = "Services" in file.parts and not file.exists()
        if block.adds:
            text = file.read_text(encoding="utf-8") + "\n" + text.partition("\n")[2]
        marks = {
            port: len(server.lines.text().splitlines()) for port, server in self._servers.items()
        }
        self.terminal.write(block.file, text)
        if block.file.endswith(".py"):
            compile(text, block.file, "exec")
        elif block.file.endswith(".toml"):
            tomllib.loads(text)
        elif block.file.endswith(".json"):
            json.loads(text)
        if block.file.startswith(_SERVED_FOLDERS) or block.file == "treefold.toml":
            for port, server in self._servers.items():
                try:
                    server.await_reload(marks[port], NEW_MODULE if is_new else RELOAD)
                except AssertionError as error:
                    self._fail(self._there(str(error)))

    def _here(self, text: str) -> str:
        """Replace the ports, databases and servers of the page by those of the session."""
        text = _ADDRESS.sub(lambda found: f"{found['host']}:{self._port(found['port'])}", text)
        text = _DATABASE.sub(lambda found: self._database(found["name"]), text)
        if "redis://localhost" in text:
            text = re.sub(r"redis://localhost(?::6379)?(?:/\d+)?", self._redis_address(), text)
        return text

    def _there(self, text: str) -> str:
        """Replace the ports and databases of the session by those of the page."""
        for name, address in self._databases.items():
            text = text.replace(address, f"postgresql://localhost/{name}")
            text = text.replace(urlsplit(address).path[1:], name)
        for documented, port in self._ports.items():
            text = text.replace(f":{port}", f":{documented}")
        return text.replace(str(self.terminal.folder), "...")

    def _port(self, documented: str) -> int:
        if documented not in self._ports:
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self._ports[documented] = probe.getsockname()[1]
        return self._ports[documented]

    def _database(self, name: str) -> str:
        if name not in self._databases:
            self._databases[name] = self._new_database()
            self._ports["5432"] = urlsplit(self._databases[name]).port or 5432
        return self._databases[name]

    def _redis_address(self) -> str:
        if not self._redis_url:
            self._redis_url = self._redis()
            self._ports["6379"] = urlsplit(self._redis_url).port or 6379
        return self._redis_url

    # The terminal

    def _type(self, command: Command) -> None:
        typed = command.typed
        if _INSTALL.match(typed):
            return  # the environment of the tests holds what the pages install
        if made := re.match(r"createdb (\w+)$", typed):
            self._database(made[1])
            return
        if typed == "treefold shell":
            self.close_prompt()
            self._begin_prompt().ask("shell", "", 0)
            return
        if _SERVER.match(typed) or typed.endswith(" &"):
            self._start(command)
            return
        done = subprocess.run(
            ["bash", "-c", f'{self._here(typed)}\ncode=$?; pwd > "$TERMINAL_PWD"; exit $code'],
            cwd=self.terminal.folder,
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=COMMAND,
            check=False,
        )
        if exported := re.match(r"export (\w+)=(.*)$", typed):
            shown = f"printf %s {self._here(exported[2])}"
            value = subprocess.run(
                ["bash", "-c", shown],
                cwd=self.terminal.folder,
                env=self._environment(),
                capture_output=True,
                text=True,
                check=True,
            )
            self.terminal.environment[exported[1]] = value.stdout
        printed = self._there(done.stdout)
        if done.returncode and not command.shown:
            self._fail(f"$ {typed}\nended with exit code {done.returncode}:\n{printed}")
        if command.shown and not is_printed(command.shown, printed.splitlines()):
            shown = "\n".join(command.shown)
            self._fail(f"$ {typed}\nthe page shows:\n{shown}\nprinted was:\n{printed}")
        self.terminal.folder = Path(self._pwd.read_text(encoding="utf-8").strip())

    @property
    def _pwd(self) -> Path:
        return Path(self.terminal.environment["TERMINAL_PWD"])

    def _environment(self) -> dict[str, str]:
        return self.terminal.environment | {"COLUMNS": "100", "PYTHONUNBUFFERED": "1"}

    # Servers

    def _start(self, command: Command) -> None:
        typed = self._here(command.typed).removesuffix(" &")
        explicit = re.search(r"(?:--port[ =]|:|http\.server )([38]\d\d\d)\b", command.typed)
        documented = explicit[1] if explicit else "8000"
        if "worker" in typed.split()[:3] or not _SERVER.match(typed):
            documented = "worker"  # it listens nowhere, and runs beside the server
        port = self._port(documented)
        if former := self._servers.pop(documented, None):
            former.stop()
        if explicit:
            typed = typed.replace(explicit[0], explicit[0].replace(documented, str(port)))
        elif "hypercorn" in typed.split():
            typed += f" --bind 127.0.0.1:{port}"
        elif documented != "worker":
            typed += f" --port {port}"
        server = Server(typed, self.terminal.folder, self._environment())
        self._servers[documented] = server
        if documented != "worker":
            try:
                server.await_listening(port)
            except AssertionError as error:
                self._fail(f"$ {command.typed}\n{self._there(str(error))}")
        self._read_log(command.shown, server)

    def _read_log(self, shown: list[str], server: Server | None = None) -> None:
        """Wait until the lines are in the output of a server: the given one, or any that runs."""
        servers = [server] if server else list(self._servers.values())
        if not servers:
            self._fail("A block of a log needs a server that runs")
        deadline = time.monotonic() + START
        while True:
            written = [self._there(one.lines.text()).splitlines() for one in servers]
            if any(is_printed(shown, printed, among=True) for printed in written):
                return
            if time.monotonic() > deadline:
                text = "\n".join(line for printed in written for line in printed)
                self._fail("the page shows:\n" + "\n".join(shown) + f"\nthe server wrote:\n{text}")
            time.sleep(0.02)

    # Python

    def _ask(self, kind: str, block: Block) -> None:
        prompt = self._prompt or self._begin_prompt()
        if report := prompt.ask(kind, self._here(block.text), block.line):
            self._fail(self._there(report))

    def _begin_prompt(self) -> Prompt:
        self._prompt = Prompt(self.terminal.folder, self._environment())
        return self._prompt


class Server:
    """A program that runs beside the terminal until the page starts another one."""

    def __init__(self, typed: str, folder: Path, environment: dict[str, str]) -> None:
        self.is_dev = "treefold dev" in typed
        self._process = subprocess.Popen(
            ["bash", "-c", f"exec env {typed}"],
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.lines = Lines(self._process.stdout)

    def await_listening(self, port: int) -> None:
        """Wait until connections are accepted."""
        deadline = time.monotonic() + START
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise AssertionError(self.lines.text())
            time.sleep(0.02)

    def await_reload(self, mark: int, patience: float) -> None:
        """Wait until `dev` has written a line about a saved file, and until a restart is done."""
        if not self.is_dev or not self._await_line(_RELOADING, mark, patience):
            return
        written = self.lines.text().splitlines()[mark:]
        is_restarted = any(line.startswith("[INFO] restarting: ") for line in written)
        if is_restarted and not self._await_line(_RESTARTED, mark, START):
            raise AssertionError(f"the restart did not end:\n{self.lines.text()}")

    def _await_line(self, wanted: re.Pattern[str], mark: int, patience: float) -> bool:
        deadline = time.monotonic() + patience
        while not any(map(wanted.search, self.lines.text().splitlines()[mark:])):
            if time.monotonic() > deadline or self._process.poll() is not None:
                return False
            time.sleep(0.02)
        return True

    def stop(self) -> None:
        """Stop it as Ctrl-C does; a process that was started in the background ignores SIGINT."""
        if self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGTERM)
            try:
                self._process.wait(START)
            except subprocess.TimeoutExpired:
                os.killpg(self._process.pid, signal.SIGKILL)
                self._process.wait()
                raise
        self.lines.close()


class Prompt:
    """A Python process that goes on from block to block."""

    def __init__(self, folder: Path, environment: dict[str, str]) -> None:
        reading, writing = os.pipe()
        program = Path(__file__).with_name("python_prompt.py")
        self._process = subprocess.Popen(
            [sys.executable, program, str(folder), str(writing)],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[writing],
            text=True,
        )
        os.close(writing)
        self._answers = os.fdopen(reading, encoding="utf-8")

    def ask(self, kind: str, source: str, line: int) -> str:
        """Run a program or a session; return what failed, or an empty text."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"kind": kind, "source": source, "line": line}) + "\n")
        self._process.stdin.flush()
        answer = self._answers.readline()
        if not answer:
            assert self._process.stderr is not None
            return f"Python ended: {self._process.stderr.read()}"
        return json.loads(answer)

    def close(self) -> None:
        """End it, as Ctrl-D does."""
        assert self._process.stdin is not None
        assert self._process.stderr is not None
        self._process.stdin.close()
        self._process.wait(START)
        self._process.stderr.close()
        self._answers.close()
