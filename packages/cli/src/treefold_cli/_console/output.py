"""Text on its way to a terminal.

File names come from the disk and may hold anything; here they lose the power to move a cursor or to
fail an encoding. Nothing else in this package escapes, colours or encodes.
"""

import os
import sys
from io import TextIOWrapper
from typing import TextIO

_COLOURS = {"red": 31, "green": 32, "yellow": 33}


def escape_controls(text: str) -> str:
    r"""Escape characters that control a terminal, such as `\x1b`, line breaks and lone surrogates.

    Args:
        text: one line from anywhere.

    Returns:
        The line with every unprintable character as a backslash escape.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def format_count(number: int, noun: str) -> str:
    """Return a number and its noun: `1 route`, `2 routes`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def print_line(line: str = "") -> None:
    """Print one line to standard output, escaped."""
    print(escape_controls(line))


def print_marked_line(mark: str, line: str, *, colour: str) -> None:
    """Print one line to standard output that begins with a word in colour.

    Args:
        mark: the word.
        line: the text after the word and a space.
        colour: `green`, `yellow` or `red`; shown only on a terminal, and not with `NO_COLOR` (see
            https://no-color.org).
    """
    shown = f"\x1b[{_COLOURS[colour]}m{mark}\x1b[0m" if accepts_colour(sys.stdout) else mark
    print(f"{shown} {escape_controls(line)}", flush=True)


def accepts_colour(stream: TextIO) -> bool:
    """Return True if a stream accepts colour: a terminal that is not dumb, without `NO_COLOR`."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return not plain and stream.isatty()


def print_error(line: str) -> None:
    """Print one line to standard error, escaped."""
    print(escape_controls(line), file=sys.stderr)


def escape_unencodable_output() -> None:
    """Escape characters that the encoding of the terminal lacks, instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
