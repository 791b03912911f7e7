"""The error that ends a command, and the exit codes.

A command raises CommandError with one finished line; only `main` prints it. Errors of other
packages are turned into this one where the command calls them.
"""

import contextlib
from collections.abc import Generator

OK = 0
FAILURE = 1
"""The command ran and found something, or could not do its work."""
MISUSE = 2
"""The arguments are invalid; nothing was done."""
INTERRUPTED = 130
"""Ctrl-C before the work was done, as shells report it."""


class CommandError(Exception):
    """A command ends here; `str()` is one line that names the value and the way out.

    Attributes:
        code: the exit code, `FAILURE` or `MISUSE`.
    """

    def __init__(self, message: str, *, code: int = FAILURE) -> None:
        super().__init__(message)
        self.code = code


@contextlib.contextmanager
def translate_to_command_error(
    *errors: type[Exception], code: int = FAILURE
) -> Generator[None, None, None]:
    """Convert `errors`, whose text is a complete line, into a CommandError with `code`."""
    try:
        yield
    except errors as error:
        raise CommandError(str(error), code=code) from error


def format_error_line(error: BaseException) -> str:
    """Return the text of an error on one line, or its type where it has none."""
    return " ".join(str(error).split()) or type(error).__name__
