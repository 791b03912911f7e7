"""The exceptions of this package.

It says that something asked for is refused, before anything is written. What the disk refuses (no
space, no permission) stays the OSError it is.
"""


class ScaffoldError(Exception):
    """A name, a path or a target is refused; `str()` is one line that says which and what to do."""


class SourceError(ScaffoldError):
    """A file of the project stands in the way; `str()` names it, and the line where it has one."""
