"""The command that compares a database with the migrations that it has applied; it only reads."""

from __future__ import annotations

from treefold_migrations._commands.files import Folder, Say, ignore_line
from treefold_migrations._commands.headings import DatabaseHeadedOutput
from treefold_migrations._files.databases import select_databases
from treefold_migrations._files.loading import load_folder
from treefold_migrations._inspect.compare import Difference
from treefold_migrations._run import drift as comparing


def drift(
    folder: Folder = "migrations", *, database: str | None = None, say: Say = ignore_line
) -> list[Difference]:
    """Return the differences between a database and its applied migrations; empty for none.

    Args:
        folder: The folder of the files.
        database: The alias of the database; without it, each that the files live on in turn.
        say: Called with each line for people.

    Raises `HistoryError` for files that do not fit the records, `InspectError` for a catalog that
    cannot be read.
    """
    history = load_folder(folder)
    every = select_databases(history, database)
    headed = DatabaseHeadedOutput(say, several=len(every) > 1)
    found: list[Difference] = []
    for alias in every:
        say = headed.make_line_writer(alias)
        found += _report_differences(comparing.drift(history, alias), say)
    return found


async def adrift(
    folder: Folder = "migrations", *, database: str | None = None, say: Say = ignore_line
) -> list[Difference]:
    """`drift` for async code."""
    history = load_folder(folder)
    every = select_databases(history, database)
    headed = DatabaseHeadedOutput(say, several=len(every) > 1)
    found: list[Difference] = []
    for alias in every:
        say = headed.make_line_writer(alias)
        found += _report_differences(await comparing.adrift(history, alias), say)
    return found


def _report_differences(found: list[Difference], say: Say) -> list[Difference]:
    for difference in found:
        say(str(difference))
    return found
