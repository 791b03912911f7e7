"""Check the configurations of the pages by the programs that read them.

`python tools/docs/configurations.py`. A block whose first line names a file is checked by the
program of that name: nginx, systemd-analyze, hadolint. A program that is not installed is named,
and so are its blocks; the exit code is 1 for a wrong block, and 2 if nothing else was missing.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^```[\w-]+\n# (?P<name>\S+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_PROGRAMS = re.compile(r"^Exec\w+=[-@:+!]*(/\S+)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Configuration:
    """One block of a page.

    Attributes:
        page: the name of the page.
        name: the file that the block is.
        text: its lines.
        folder: where the blocks of the page are written as files.
    """

    page: str
    name: str
    text: str
    folder: Path


def nginx(block: Configuration) -> list[str]:
    """Return the command that checks a configuration of nginx, as any user."""
    return [
        *("nginx", "-t", "-q", "-p", str(block.folder), "-c", str(block.folder / block.name)),
        *("-e", "stderr", "-g", f"pid {block.folder}/nginx.pid;"),
    ]


def systemd(block: Configuration) -> list[str]:
    """Return the command that checks a unit, among the units and programs that it names."""
    root = block.folder / "root"
    units = root / "etc/systemd/system"
    units.mkdir(parents=True, exist_ok=True)
    for unit in block.folder.glob("*.*"):
        if unit.suffix in {".service", ".socket"}:
            shutil.copy(unit, units)
    for path in _PROGRAMS.findall(block.text):
        program = root / path[1:]
        program.parent.mkdir(parents=True, exist_ok=True)
        program.touch(mode=0o755)
    for name in ("multi-user", "network", "sockets", "sysinit", "basic", "shutdown"):
        (units / f"{name}.target").write_text(f"[Unit]\nDescription={name}\n")
    return ["systemd-analyze", "verify", "--man=no", f"--root={root}", block.name]


def dockerfile(block: Configuration) -> list[str]:
    """Return the command that checks a Dockerfile."""
    return ["hadolint", "--no-color", str(block.folder / block.name)]


CHECKS: Mapping[str, Callable[[Configuration], list[str]]] = {
    r"nginx\.conf": nginx,
    r"[\w-]+\.(service|socket)": systemd,
    r"Dockerfile": dockerfile,
}
"""The command for a file name."""


def configurations(docs: Path, folder: Path) -> Iterator[Configuration]:
    """Write the blocks of all pages into folders of their own, then yield each."""
    for page in sorted(docs.glob("**/*.md")):
        name = str(page.relative_to(docs))
        below = folder / name
        found = [
            Configuration(name, block["name"], f"# {block['name']}\n{block['text']}", below)
            for block in _BLOCK.finditer(page.read_text(encoding="utf-8"))
            if any(re.fullmatch(pattern, block["name"]) for pattern in CHECKS)
        ]
        for one in found:
            below.mkdir(parents=True, exist_ok=True)
            (below / one.name).write_text(one.text, encoding="utf-8")
        yield from found


def check(docs: Path) -> int:
    """Check all blocks; print a line for each, and return the exit code."""
    code = 0
    with tempfile.TemporaryDirectory() as folder:
        for block in configurations(docs, Path(folder)):
            command = next(m for p, m in CHECKS.items() if re.fullmatch(p, block.name))(block)
            if shutil.which(command[0]) is None:
                print(f"not checked  {block.page}: {block.name} ({command[0]} is not installed)")
                code = code or 2
                continue
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, cwd=block.folder
            )
            said = (done.stdout + done.stderr).strip()
            wrong = done.returncode != 0 or bool(said)
            code = 1 if wrong else code
            print(f"{'wrong' if wrong else 'ok':11}  {block.page}: {block.name}")
            print(*(f"    {line}" for line in said.splitlines()), sep="\n", end="\n" * wrong)
    return code


if __name__ == "__main__":
    sys.exit(check(DOCS))
