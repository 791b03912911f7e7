"""The error that ends a server, or keeps it from its start."""


class ServerError(Exception):
    """The server cannot start; `str()` is one line that names the value and the way out.

    Attributes:
        exit_code: the code for a program that ends with it: 2 for an option that is wrong, 1 for
            anything else.
    """

    def __init__(self, message: str, *, exit_code: int = 1) -> None:
        super().__init__(message)
        self.exit_code = exit_code
