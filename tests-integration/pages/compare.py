"""What a page shows, held against what was printed.

`...` in a page stands for anything. What differs from run to run and from machine to machine has a
shape instead of a value: `_SHAPES` lists all of it, and this is the only place that knows. A shape
never stands for another one or for nothing: a page that shows a day where a program prints none
fails.

A day is a special case. `since 2026-11-23` is the day on which the page was written, and a program
prints the day on which it runs; a birthday in a table is the same in both. So a printed day beside
the clock stands for any day of the page, and each other day must be the one that is shown.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta

_DAY = r"\b\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])(?!\d)"
_CLOCK = r"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d"
_ZONE = r"(?:Z|[+-]\d\d:?\d\d)"
_WEEKDAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"

_SHAPES = (
    (re.compile(rf"\b{_WEEKDAY}, \d\d {_MONTH} \d{{4}} {_CLOCK} GMT\b"), "<http-date>"),
    (re.compile(rf"{_DAY}(?P<separator>[T ]){_CLOCK}(?:\.\d+)?{_ZONE}?"), r"<time\g<separator>>"),
    (re.compile(r"\b\d+(?:\.\d+)? ?(?:ms|us|s|seconds?)\b"), "<duration>"),
    (re.compile(r"\bid=[\w-]+"), "id=<id>"),
    (re.compile(r"127\.0\.0\.1:\d{5}\b"), "<client>"),
    (re.compile(r"\bprocess \d+ on [\w.-]+\b"), "process <number> on <host>"),
    (re.compile(r'\b(?:role|user) "[\w.-]+"'), 'user "<user>"'),
    (re.compile(r"(?<![\w.:/])/(?:home|root|tmp|var|Users)\b[^\s'\":,]*"), "<path>"),
    (re.compile(r" {3,}\[ *\d+%\]"), " <percent>"),
    (re.compile(r"={3,}"), "==="),
    (re.compile(r"-{3,}"), "---"),
)
_ANY_DAY = re.compile(_DAY)
_TODAY = "<today>"
_BESIDE_THE_CLOCK = timedelta(days=2)
"""How far a printed day may be from today: the other side of midnight, in any time zone."""


def is_printed(
    shown: Sequence[str], printed: Sequence[str], *, among: bool = False, today: date | None = None
) -> bool:
    """Return True if the lines of a page are the printed ones.

    Args:
        shown: the lines of the page. A line of `...` stands for any lines, `...` in a line for any
            text. Times, durations, ids, the ports of clients and the names of machines, users and
            folders may differ, and days that are today's.
        printed: the lines of the program.
        among: True if other lines may come before, after and between them.
        today: the day on which the program ran; by default the clock's.
    """
    lines = [_line_pattern(line) for line in _strip_empty_lines(shown)]
    if among:
        lines = [part for line in lines for part in (r"(?:[^\n]*\n)*?", line)]
        lines.append(r"(?:[^\n]*\n)*")
    clock = today or date.today()
    text = "".join(f"{_mark_today(line, clock)}\n" for line in _strip_empty_lines(printed))
    return re.fullmatch("".join(lines), text) is not None


def _line_pattern(line: str) -> str:
    if line.strip() == "...":
        return r"(?:[^\n]*\n)*?"
    return "[^\n]*?".join(_part_pattern(part) for part in line.split("...")) + "\n"


def _part_pattern(part: str) -> str:
    """Return the pattern of a text of the page; each day in it also matches the day of the run."""
    text = _replace_shapes(part)
    pattern, end = "", 0
    for day in _ANY_DAY.finditer(text):
        pattern += f"{re.escape(text[end : day.start()])}(?:{day[0]}|{_TODAY})"
        end = day.end()
    return pattern + re.escape(text[end:])


def _mark_today(line: str, today: date) -> str:
    def mark(day: re.Match[str]) -> str:
        try:
            distance = abs(date.fromisoformat(day[0]) - today)
        except ValueError:  # the 30th of February
            return day[0]
        return _TODAY if distance <= _BESIDE_THE_CLOCK else day[0]

    return _ANY_DAY.sub(mark, _replace_shapes(line))


def _replace_shapes(line: str) -> str:
    for pattern, word in _SHAPES:
        line = pattern.sub(word, line)
    return line


def _strip_empty_lines(lines: Sequence[str]) -> list[str]:
    found = [line.rstrip() for line in lines]
    while found and not found[-1]:
        found.pop()
    while found and not found[0]:
        found.pop(0)
    return found
