"""The usage of a service, from a file of its log or from standard input."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from treefold_cli._console.errors import translate_to_command_error

if TYPE_CHECKING:
    from treefold_contract import Usage


def read_usage_log(name: str) -> "Usage":
    """Return the usage in a log.

    Args:
        name: path of the file; `-` reads standard input.

    Raises:
        CommandError: it cannot be read, or has no line of usage.
    """
    from treefold_contract import LockError, read_usage

    with translate_to_command_error(LockError, OSError):
        if name == "-":
            return read_usage(sys.stdin)
        with Path(name).open(encoding="utf-8", errors="replace") as file:
            return read_usage(file)
