"""Lines that a test run prints at its end: what it skipped, and how to run that too.

Where several runs follow each other, `tools/lanes.py` names a file in TREEFOLD_TEST_NOTES, and
prints the lines of all of them when the last has ended.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_notes: dict[str, None] = {}


def add_note(line: str) -> None:
    """Print a line at the end of the run, however often it is added."""
    _notes[line] = None


def print_notes(reporter: pytest.TerminalReporter) -> None:
    """Print the lines that were added, and hand them to the command that runs several suites."""
    for line in _notes:
        reporter.write_line(line)
    if file := os.environ.get("TREEFOLD_TEST_NOTES"):
        with Path(file).open("a", encoding="utf-8") as notes:
            notes.writelines(f"{line}\n" for line in _notes)
