"""The command that compares a database with the migrations that it has applied; it only reads."""

from __future__ import annotations

from treefold_migrations._commands.files import Folder, Say, quiet
from treefold_migrations._files.loading import load_folder
from treefold_migrations._inspect.compare import Difference
from treefold_migrations._run import drift as comparing


def drift(
    folder: Folder = "migrations", *, database: str = "default", say: Say = quiet
) -> list[Difference]:
    """Return the differences between a database and its applied migrations; empty for none.

    Args:
        folder: The folder of the files.
        database: The alias of the database.
        say: Called with each line for people.

    Raises `HistoryError` for files that do not fit the records, `InspectError` for a catalog that
    cannot be read.
    """
    return _told(comparing.drift(load_folder(folder), database), say)


async def adrift(
    folder: Folder = "migrations", *, database: str = "default", say: Say = quiet
) -> list[Difference]:
    """`drift` for async code."""
    return _told(await comparing.adrift(load_folder(folder), database), say)


def _told(found: list[Difference], say: Say) -> list[Difference]:
    for difference in found:
        say(str(difference))
    return found
