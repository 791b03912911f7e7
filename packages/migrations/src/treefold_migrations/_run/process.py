"""Owner: the process that holds a lock, and whether it still lives, as far as can be told."""

from __future__ import annotations

import datetime as dt
import json
import os
import secrets
import socket
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LockOwner:
    """One run of the runner: `place` tells processes apart whose numbers cannot be compared, and
    `born` those that got the same number one after the other.
    """

    token: str
    pid: int
    host: str
    place: str
    born: str
    since: str

    @classmethod
    def from_current_process(cls) -> LockOwner:
        """Return this process as the owner of a new run."""
        pid = os.getpid()
        since = dt.datetime.now(dt.UTC).isoformat(" ", "seconds")
        machine = socket.gethostname(), _read_boot_and_namespace()
        return cls(secrets.token_hex(8), pid, *machine, _read_start_time(pid), since)

    @property
    def is_dead(self) -> bool:
        """True where the process surely does not run any more."""
        if (
            not self.place
            or self.place != _read_boot_and_namespace()
            or self.host != socket.gethostname()
        ):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        # PermissionError: the process of another user lives
        except OSError:
            return False
        # the number may have been given to another process since
        return bool(self.born) and self.born != _read_start_time(self.pid)

    def to_json(self) -> str:
        """The owner as text that `from_json` understands."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> LockOwner:
        """Return the owner of a text."""
        return cls(**json.loads(text))

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}, since {self.since}"


def _read_boot_and_namespace() -> str:
    """The boot and the process namespace; empty where processes of others cannot be seen."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot}/{os.stat('/proc/self/ns/pid').st_ino}"
    except OSError:
        return ""


def _read_start_time(pid: int) -> str:
    """When a process started, in the kernel's own count; empty where that is not known."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return ""
    # the name of the program is in parentheses and may hold both ")" and spaces; the start is field
    # 22
    fields = stat.rpartition(")")[2].split()
    # a zombie is dead: its parent has not asked for its exit code yet
    return "" if len(fields) < 20 else f"zombie {pid}" if fields[0] == "Z" else fields[19]
