"""The entry point: arguments in, exit code out, errors as one line.

Holds no command. typer is imported only once it is known to be needed: it costs 70 ms, and
`--version` has no use for it.
"""

import os
import sys
from collections.abc import Sequence
from typing import NoReturn

from treefold_cli._console.errors import FAILURE, INTERRUPTED, OK, CommandError
from treefold_cli._console.output import escape_unencodable_output, print_error, print_line
from treefold_cli._console.version import format_version_line


def main() -> NoReturn:
    """Run the command line with the arguments of the process, and end the process.

    Raises:
        SystemExit: always, with one of the codes in `errors`.
    """
    escape_unencodable_output()
    try:
        code = run_command_line(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:  # the reader of the output, such as `head`, has left
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = FAILURE
    sys.exit(code)


def run_command_line(arguments: Sequence[str]) -> int:
    """Run one command.

    Args:
        arguments: the command line without the name of the program; an empty one shows the help.

    Returns:
        The exit code. Errors are printed to standard error.
    """
    if list(arguments) == ["--version"]:
        print_line(format_version_line())
        return OK
    from treefold_cli._console.application import invoke_command

    try:
        return invoke_command(arguments or ["--help"])
    except CommandError as error:
        print_error(f"Error: {error}")
        return error.code
    except BrokenPipeError:
        raise
    except OSError as error:
        print_error(f"Error: {_describe_error(error)}")
        return FAILURE
    except KeyboardInterrupt:
        return INTERRUPTED


def _describe_error(error: OSError) -> str:
    reason = error.strerror or type(error).__name__
    if error.filename is None:
        return f"{reason}; the operating system refused"
    return f"Cannot use {os.fspath(error.filename)!r}: {reason}; check the path and its permissions"
