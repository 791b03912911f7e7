"""A process that does not answer is replaced if it has served, and waited for while it starts."""

import os
import signal
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
