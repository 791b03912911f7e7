"""Commands in processes of their own, forked from one that has imported the program.

A new interpreter imports for a quarter of a second before a command runs; a fork has them. Whatever
says something about the start itself (the installed script, the budgets, encodings) starts an
interpreter: the fixture `executable`, not `forked`.
"""

from __future__ import annotations

import atexit
import faulthandler
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NoReturn

LOADED = (
    "_pytest.config",
    "pytest",
    "treefold_cli._console.application",
    "treefold_http",
    "treefold_server._socket_protocol",
    "uvicorn.protocols.http.auto",
)

LIMIT = 120.0
"""Seconds that a command may take."""


class Forked:
    """A running command, with the members of `subprocess.Popen` that the tests use."""

    def __init__(self, connection: socket.socket, output: IO[str] | None = None) -> None:
        self._connection = connection
        self._answers = connection.makefile("r")
        self.pid = int(self._answers.readline())
        self.stdout = output
        self.returncode: int | None = None
        self._rest: list[str] = []
        self._reader: threading.Thread | None = None

    def poll(self) -> int | None:
        """The exit code, or None while the command runs."""
        try:
            return self.wait(0)
        except subprocess.TimeoutExpired:
            return None

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the exit code."""
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
            self.returncode = int(self._answers.readline())
            self._answers.close()
            self._connection.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it is known that the command has ended."""
        if self.returncode is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Kill the process."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, None]:
        """Read what is left of the output and wait for the end."""
        if self._reader is None:
            self._reader = threading.Thread(target=self._read, daemon=True)
            self._reader.start()
        self._reader.join(timeout)
        if self._reader.is_alive():
            raise subprocess.TimeoutExpired(f"process {self.pid}", timeout or 0)
        self.wait(timeout)
        rest = "".join(self._rest)
        self._rest.clear()
        return rest, None

    def _read(self) -> None:
        assert self.stdout is not None
        with self.stdout:
            self._rest.append(self.stdout.read())


class ForkServer:
    """The process that is forked, from its first command until `close`."""

    def __init__(self, module: str = "treefold_cli", *, loaded: Sequence[str] = ()) -> None:
        self._module = module
        self._folder = tempfile.TemporaryDirectory()
        self._address = str(Path(self._folder.name) / "fork.sock")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(self._address)
            listener.listen(50)
            self._process = subprocess.Popen(
                [sys.executable, __file__, str(listener.fileno()), *LOADED, *loaded],
                stdin=subprocess.PIPE,  # its end is that of the server
                pass_fds=[listener.fileno()],
                start_new_session=True,
                env={n: v for n, v in os.environ.items() if not n.startswith("TREEFOLD")},
            )

    def start(self, arguments: Sequence[str], *, cwd: Path, env: Mapping[str, str]) -> Forked:
        """Start `python -m MODULE`, with one pipe for all that it prints."""
        reading, writing = os.pipe()
        try:
            with open(os.devnull, "rb") as nothing:
                files = nothing.fileno(), writing, writing
                asked = {"module": self._module, "arguments": [*arguments], "strict": False}
                connection = self._ask(asked, cwd, env, files)
        finally:
            os.close(writing)
        return Forked(connection, os.fdopen(reading, "r", encoding="utf-8"))

    def run(
        self,
        arguments: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        stdin: str = "",
        strict: bool = False,
    ) -> subprocess.CompletedProcess[str]:
        """Run the installed script to its end; with `strict`, warnings are errors."""
        with (
            tempfile.TemporaryFile("w+", encoding="utf-8") as given,
            tempfile.TemporaryFile("w+", encoding="utf-8") as out,
            tempfile.TemporaryFile("w+", encoding="utf-8") as err,
        ):
            given.write(stdin)
            given.seek(0)
            files = given.fileno(), out.fileno(), err.fileno()
            asked = {"module": "", "arguments": [*arguments], "strict": strict}
            forked = Forked(self._ask(asked, cwd, {**env, "PYTHONFAULTHANDLER": "1"}, files))
            try:
                code = forked.wait(LIMIT)
            except subprocess.TimeoutExpired:
                os.killpg(forked.pid, signal.SIGABRT)  # each process writes where its threads are
                forked.wait()
                out.seek(0)
                err.seek(0)
                shown = f"{' '.join(arguments)} did not end:\n{out.read()}\n{err.read()}"
                raise AssertionError(shown) from None
            out.seek(0)
            err.seek(0)
            return subprocess.CompletedProcess([*arguments], code, out.read(), err.read())

    def close(self) -> None:
        """End the process."""
        self._process.communicate()
        self._folder.cleanup()

    def _ask(
        self, asked: Mapping[str, Any], cwd: Path, env: Mapping[str, str], files: tuple[int, ...]
    ) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(self._address)
        text = json.dumps({**asked, "cwd": str(cwd), "env": dict(env)})
        socket.send_fds(connection, [text.encode() + b"\n"], files)
        return connection


def serve(listener: socket.socket, modules: Sequence[str]) -> None:
    """Fork a child for each command that is asked for, and tell how it ended."""
    for module in modules:
        importlib.import_module(module)
    gc.freeze()  # a collection in a child would copy every page
    waking, wake = socket.socketpair()
    wake.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, ignore)
    running: dict[int, socket.socket] = {}
    while 0 not in (ready := select.select([0, listener, waking], [], [])[0]):
        if waking in ready:
            waking.recv(1000)
            tell_ends(running)
        if listener in ready:
            connection = listener.accept()[0]
            text, files, _, _ = socket.recv_fds(connection, 1 << 16, 3)
            while not text.endswith(b"\n"):
                text += connection.recv(1 << 16)
            pid = os.fork()
            if pid == 0:
                for inherited in (listener, waking, wake, connection, *running.values()):
                    inherited.close()
                become(json.loads(text), files)
            for file in files:
                os.close(file)
            running[pid] = connection
            connection.sendall(f"{pid}\n".encode())


def ignore(_number: int, _frame: object) -> None:
    """Wake the loop, no more."""


def tell_ends(running: dict[int, socket.socket]) -> None:
    while running:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if not pid:
            return
        with running.pop(pid) as connection:
            try:
                connection.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())
            except BrokenPipeError:  # the test did not wait for it
                continue


def become(asked: dict[str, Any], files: Sequence[int]) -> NoReturn:
    signal.set_wakeup_fd(-1)
    # nohup, which may start the tests, ignores SIGHUP, and so would the servers of the tests
    for number in (signal.SIGCHLD, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    os.setsid()
    for number, file in enumerate(files):
        os.dup2(file, number)
        os.close(file)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.stdin = os.fdopen(0, "r", encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    faulthandler.enable(file=2)
    if asked["strict"]:
        warnings.simplefilter("error")
    given = [path for path in os.environ.get("PYTHONPATH", "").split(os.pathsep) if path]
    try:
        run_as(
            asked["module"], asked["arguments"], [path for path in given if path not in sys.path]
        )
    except SystemExit as end:
        leave(end.code)
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        leave(1)
    leave(0)


def run_as(module: str, arguments: list[str], given: list[str]) -> None:
    if module:
        sys.argv = [module, *arguments]
        sys.orig_argv = [sys.executable, "-m", *sys.argv]  # what a restart repeats
        sys.path[:1] = [os.getcwd(), *given]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
    else:
        scripts = sysconfig.get_path("scripts")
        sys.argv = [f"{scripts}/treefold", *arguments]
        sys.path[:1] = [scripts, *given]
        runpy.run_path(sys.argv[0], run_name="__main__")


def leave(code: object) -> NoReturn:
    """End as an interpreter does, but do not take all modules apart: it would copy their pages."""
    for finish in (vars(threading)["_shutdown"], vars(atexit)["_run_exitfuncs"]):
        finish()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
