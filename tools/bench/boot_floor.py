"""The least a boot of 1,000 routes can cost, by which milliseconds are carried to another machine.

A shared machine is twice as slow at one minute as at the next. What takes milliseconds, and has no
other floor of its own, is held against this one, measured right beside it in a process of its own.
"""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path

TABLE = 40.0
"""Milliseconds of CPU where the bars were set: 35 to 45 in `docs/project/performance.md`."""

_WALK_AND_COMPILE = """
import os, sys, time
began = time.process_time()
folders, files = [sys.argv[1]], []
while folders:
    with os.scandir(folders.pop()) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.name.endswith(".py"):
                files.append(entry.path)
for path in files:
    with open(path, "rb") as file:
        exec(compile(file.read(), path, "exec"), {})
print((time.process_time() - began) * 1e3)
"""


def boot_floor(root: Path) -> float:
    """Give the milliseconds of CPU to walk a tree, and to compile and run every file in it."""
    command = [sys.executable, "-c", _WALK_AND_COMPILE, str(root / "Api")]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def await_bytecode() -> None:
    """Wait for the thread that writes bytecode after a boot: it takes turns with what is timed."""
    for thread in threading.enumerate():
        if thread.name == "treefold-bytecode":
            thread.join()
