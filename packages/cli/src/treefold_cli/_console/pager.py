"""Long texts: through a pager on a terminal, as plain lines everywhere else."""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable

from treefold_cli._console.output import escape_controls, print_line

_LESS = "FRX"
"""Options of less where the user has none: leave at the end of a text that fits the screen."""


def print_paged(lines: Iterable[str]) -> None:
    """Print lines; on a terminal through `PAGER`, or less where it is installed."""
    lines = list(lines)
    command = choose_pager() if sys.stdout.isatty() else []
    if not command:
        for line in lines:
            print_line(line)
        return
    text = "".join(f"{escape_controls(line)}\n" for line in lines)
    sys.stdout.flush()
    try:
        subprocess.run(  # noqa: S603 - the program that the user has chosen
            command, input=text.encode(errors="replace"), env={"LESS": _LESS, **os.environ}
        )
    except OSError:  # the pager is not installed
        print(text, end="")


def choose_pager() -> list[str]:
    """Return the command of the pager; empty for none."""
    wanted = os.environ.get("PAGER")
    if wanted is not None:
        return shlex.split(wanted)
    less = shutil.which("less")
    return [less] if less and os.environ.get("TERM") != "dumb" else []
