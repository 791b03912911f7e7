"""The exceptions of this package.

They are raised before anything is written. Errors of the disk (no space, no permission) stay an
OSError.
"""


class ScaffoldError(Exception):
    """A name, a path or a target is refused; `str()` is one line with the reason and a remedy."""


class SourceError(ScaffoldError):
    """A source file prevents the operation; `str()` names it, and the line if there is one."""
