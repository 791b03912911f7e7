"""What a page shows, held against what was printed: `...` stands for anything, times differ."""

from __future__ import annotations

import re
from collections.abc import Sequence

_VARIES = (
    (re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+\d\d:?\d\d)?"), "<time>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|us|s|seconds?)\b"), "<duration>"),
    (re.compile(r"\bid=[\w-]+"), "id=<id>"),
    (re.compile(r"127\.0\.0\.1:\d{5}\b"), "<client>"),
    (re.compile(r" {3,}\[ *\d+%\]"), " <percent>"),
    (re.compile(r"={3,}"), "==="),
    (re.compile(r"-{3,}"), "---"),
)


def is_printed(shown: Sequence[str], printed: Sequence[str], *, among: bool = False) -> bool:
    """Return True if the lines of a page are the printed ones.

    Args:
        shown: the lines of the page. A line of `...` stands for any lines, `...` in a line for any
            text. Times, durations, request ids and the ports of clients may differ.
        printed: the lines of the program.
        among: True if other lines may come before, after and between them.
    """
    lines = [_pattern(line) for line in _trimmed(shown)]
    if among:
        lines = [part for line in lines for part in (r"(?:[^\n]*\n)*?", line)]
        lines.append(r"(?:[^\n]*\n)*")
    text = "".join(f"{_same(line)}\n" for line in _trimmed(printed))
    return re.fullmatch("".join(lines), text) is not None


def _pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:[^\n]*\n)*?"
    return "[^\n]*?".join(re.escape(_same(part)) for part in line.split("...")) + "\n"


def _same(line: str) -> str:
    for pattern, word in _VARIES:
        line = pattern.sub(word, line)
    return line


def _trimmed(lines: Sequence[str]) -> list[str]:
    found = [line.rstrip() for line in lines]
    while found and not found[-1]:
        found.pop()
    while found and not found[0]:
        found.pop(0)
    return found
