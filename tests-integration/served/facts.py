"""What the system knows of a server process: memory, processor time, open files (Linux, /proc).

Limits on them are decided by the tests, several times what was measured: they find what is
unbounded or quadratic, not what became a little slower. A machine that is shared is slow at times:
processor time counts in seconds of a machine that is not.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from serving import PATIENCE, Process

MIB = 1024 * 1024
_TICK = 1 / os.sysconf("SC_CLK_TCK")
_STEPS = 200_000
_SECONDS = 0.013
"""What a loop of that many steps takes on the machine where the limits were chosen."""


@dataclass(slots=True)
class Cost:
    """What a server spent on a block of a test; complete when the block has ended.

    Attributes:
        cpu: seconds of processor time, of all its threads, fewer by as much as this machine is
            slower than the one of the limits.
        memory: bytes that its resident set grew, at the highest.
    """

    cpu: float = 0.0
    memory: int = 0


@contextmanager
def cost_of(server: Process) -> Generator[Cost]:
    """Measure what the server spends until the block ends."""
    cost = Cost()
    folder = Path("/proc", str(server.pid))
    (folder / "clear_refs").write_text("5")  # the peak begins anew
    before = _slowness()
    memory, cpu = _memory(folder, "VmRSS"), _cpu(folder)
    yield cost
    cost.cpu = (_cpu(folder) - cpu) / max(before, _slowness())
    cost.memory = _memory(folder, "VmHWM") - memory


def _slowness() -> float:
    """Give how many times as long as on the machine of the limits a loop takes here; at least 1."""
    began, count = time.process_time(), 0
    for step in range(_STEPS):
        count += step
    return max(1.0, (time.process_time() - began) / _SECONDS)


def _memory(folder: Path, name: str) -> int:
    match = re.search(rf"^{name}:\s+([0-9]+) kB$", (folder / "status").read_text(), re.MULTILINE)
    assert match
    return int(match[1]) * 1024


def _cpu(folder: Path) -> float:
    fields = (folder / "stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) * _TICK


def descriptors(server: Process) -> int:
    """Give how many files and sockets the server has open."""
    return len(os.listdir(f"/proc/{server.pid}/fd"))


def spooled(server: Process, folder: Path) -> int:
    """Give the bytes in files that the server has open below a folder, whether named or not."""
    total = 0
    for name in os.listdir(f"/proc/{server.pid}/fd"):
        path = f"/proc/{server.pid}/fd/{name}"
        try:
            if os.readlink(path).startswith(f"{folder}/"):
                total += os.stat(path).st_size
        except FileNotFoundError:
            continue  # closed since it was listed
    return total


def eventually(holds: Callable[[], bool]) -> bool:
    """Return True if a condition of another process comes to hold while one can wait for it."""
    deadline = time.monotonic() + PATIENCE
    while not holds():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)  # nothing tells of a change in /proc
    return True
