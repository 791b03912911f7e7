"""Text on its way to a terminal.

File names come from the disk and may hold anything; here they lose the power to move a cursor or to
fail an encoding. Nothing else in this package escapes or encodes.
"""

import sys
from io import TextIOWrapper


def printable(text: str) -> str:
    r"""Escape what a terminal would obey instead of show: `\x1b` and line breaks, lone surrogates.

    Args:
        text: one line from anywhere.

    Returns:
        The line with every unprintable character as a backslash escape.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def write(line: str = "") -> None:
    """Print one line to standard output, escaped."""
    print(printable(line))


def complain(line: str) -> None:
    """Print one line to standard error, escaped."""
    print(printable(line), file=sys.stderr)


def make_safe_for_encoding() -> None:
    """Escape what the encoding of the terminal lacks, instead of failing on it."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
