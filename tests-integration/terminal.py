"""A terminal and an editor in a folder of their own, for pages that tell a reader what to type."""

from __future__ import annotations

import os
import re
import subprocess
import sysconfig
from pathlib import Path


class Terminal:
    """Runs commands as they are typed.

    Attributes:
        folder: the working directory, which `cd` changes.
        environment: the variables, to which `export` adds.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        plain = {k: v for k, v in os.environ.items() if not k.startswith("TREEFOLD_")}
        path = f"{sysconfig.get_path('scripts')}{os.pathsep}{plain['PATH']}"
        self.environment = plain | {"PATH": path, "NO_COLOR": "1"}

    def write(self, name: str, text: str) -> None:
        """Write a file of the project."""
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def run(self, command: str) -> str:
        """Run a command, which must succeed; return what it prints."""
        exported = re.match(r"export (\w+)=", command)
        shown = f' && printf %s "${exported[1]}"' if exported else ""
        done = subprocess.run(
            ["sh", "-c", f"{command}{shown} && pwd >&2"],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        self.folder = Path(done.stderr.splitlines()[-1])
        if exported:
            self.environment[exported[1]] = done.stdout
        return done.stdout
