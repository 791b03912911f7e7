"""Lines of a command that goes through several databases: each has a heading, `analytics:`."""

from __future__ import annotations

from treefold_migrations._commands.files import Say


class DatabaseHeadedOutput:
    """Lines for people; with several databases, those of another one begin with its alias."""

    def __init__(self, say: Say, *, several: bool) -> None:
        self._say = say
        self._several = several
        self._database = ""

    def __call__(self, line: str) -> None:
        """Write a line that concerns no single database."""
        self._say(line)

    def make_line_writer(self, database: str) -> Say:
        """Return the function that writes lines of one database."""
        return lambda line: self._write_line_under_heading(database, line)

    def _write_line_under_heading(self, database: str, line: str) -> None:
        if self._several and database != self._database:
            self._say(f"{database}:")
            self._database = database
        self._say(line)
