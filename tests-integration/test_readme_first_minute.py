"""The first minute of the README as it stands there: each command, each file, each answer."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from serving import PATIENCE, Lines
from terminal import Terminal

SERVER = "http://127.0.0.1:8000"
BLOCK = re.compile(r"(?P<before>[^\n]*)\n\n```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)


class Minute(Terminal):
    """A terminal with a server beside it."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.server: subprocess.Popen[bytes] | None = None
        self.lines: Lines | None = None
        self.address = ""

    def type(self, command: str) -> str:
        """Run a command as it was typed; return what it prints."""
        if command.startswith(("python3 -m venv", "pip install")):
            return ""  # the environment of the tests has it; test_wheels.py installs
        if "treefold dev" in command:
            self.serve(command)
            return ""
        if command.startswith("curl"):
            return self.fetch(command)
        return self.run(command)

    def serve(self, command: str) -> None:
        """Start the server, on a free port, in the place of the one before."""
        self.stop()
        words = [sys.executable, "-m", *shlex.split(command), "--port", "0"]
        self.server = subprocess.Popen(
            words,
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        assert self.server.stdout is not None
        self.lines = Lines(self.server.stdout)
        serving = re.compile(r"serving on (\S+)")
        self.address = self.lines.wait_for(
            lambda found: [m[1] for line in found if (m := serving.match(line))]
        )[0]

    def fetch(self, command: str) -> str:
        words = shlex.split(command)
        url = next(word for word in words if word.startswith(SERVER))
        data = words[words.index("-d") + 1].encode() if "-d" in words else None
        request = urllib.request.Request(url.replace(SERVER, self.address), data)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return answer.read().decode()

    def stop(self) -> None:
        if self.server is not None:
            self.server.terminate()
            self.server.wait(PATIENCE)
            assert self.lines is not None
            self.lines.close()
            self.server = None


@pytest.fixture
def minute(tmp_path: Path) -> Iterator[Minute]:
    made = Minute(tmp_path)
    yield made
    made.stop()


def test_the_first_minute_of_the_readme_works_as_it_stands(
    repository: Path, minute: Minute
) -> None:
    text = (repository / "README.md").read_text()
    section = text.partition("## Sixty seconds")[2].partition("\n## ")[0]
    blocks = list(BLOCK.finditer(section))
    assert [block["kind"] for block in blocks].count("console") >= 3
    shown = 0
    for block in blocks:
        if block["kind"] != "console":
            (name,) = re.findall(r"`([^`]+\.(?:py|toml))`", block["before"])
            minute.write(name, block["text"])
            continue
        for step in re.split(r"^\$ ", block["text"], flags=re.MULTILINE)[1:]:
            command, _, expected = step.partition("\n")
            printed = minute.type(command)
            for line in filter(None, expected.splitlines()):
                assert line in printed.splitlines(), f"{command}\n{printed}"
                shown += 1
    assert shown >= 4
