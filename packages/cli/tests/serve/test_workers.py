"""A process that does not answer is replaced if it has served, and waited for while it starts."""

import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Start = Callable[..., Any]
Project = Callable[..., Path]


def worker_processes(server: int, count: int) -> list[int]:
    """Wait until a server has started so many processes, and return them."""
    while True:
        listed = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        found = [
            int(child)
            for child in listed
            if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
        ]
        if len(found) == count:
            return found
        time.sleep(0.001)


@pytest.mark.skipif(sys.platform != "linux", reason="finds the processes in /proc")
def test_only_a_process_that_has_answered_is_replaced(start: Start, project: Project) -> None:
    folder = project("v1/Health/Get.py")
    (folder / "treefold.toml").write_text("[serve]\nworker_timeout = 1.5\n")
    server = start("serve", "--workers", "2", cwd=folder)
    first, second = worker_processes(server.process.pid, 2)
    os.kill(second, signal.SIGSTOP)
    try:
        server.wait_for("booted in")  # the first one
        time.sleep(4)  # longer than a process that serves may take to answer
    finally:
        os.kill(second, signal.SIGCONT)
    server.wait_for("booted in")
    assert worker_processes(server.process.pid, 2) == [first, second]
    time.sleep(1)  # it has answered
    os.kill(first, signal.SIGSTOP)
    server.wait_for(
        f"worker process {first} did not answer for 1.5 s and is replaced, its requests are lost;"
        " worker_timeout allows more"
    )
    server.wait_for(f"worker process {first} was ended by SIGKILL; another takes its place")
    server.wait_for("booted in")
    assert second in worker_processes(server.process.pid, 2)
    assert server.stop() == 0


def connect_at_once(port: int) -> socket.socket:
    """Connect as soon as a process listens, which has served nothing yet."""
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            time.sleep(0.001)


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="ends a process as the kernel does")
def test_a_worker_that_has_just_begun_to_serve_is_replaced_at_once(
    start: Start, project: Project
) -> None:
    folder = project("v1/Health/Get.py")
    (folder / "Api/v1/End").mkdir()
    (folder / "Api/v1/End/Get.py").write_text(
        "import os, signal\nasync def handler(request):\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    server = start("serve", "--workers", "2", cwd=folder)
    port = int(server.wait_for(r"starting 2 processes on http://127\.0\.0\.1:(\d+)")[1])
    with connect_at_once(port) as connection:
        connection.sendall(b"GET /v1/end HTTP/1.1\r\nHost: a\r\n\r\n")
        found = server.wait_for("was ended by SIGKILL; another takes its place( in 5 s)?")
    assert found[1] is None  # which is for one that was killed before it served
    assert server.stop() == 0
