"""The commands that look at a live database, as `treefold` runs them."""

from __future__ import annotations

import ast
from pathlib import Path

from treefold_migrations._base.errors import FileError
from treefold_migrations._commands import baseline as baselines, drifting
from treefold_migrations._commands.command_line import (
    FAILURE,
    has_half_done_migration,
    locate_migrations_folder,
    make_line_printer,
    project_command,
    read_and_describe_unfinished_files,
)
from treefold_migrations._commands.headings import DatabaseHeadedOutput
from treefold_migrations._files.databases import select_databases
from treefold_migrations._files.loading import load_folder

MODELS = "Models"


@project_command
def drift(*, database: str = "", app_dir: str = ".") -> int:
    """List the differences between the database and the applied migrations.

    Exit code 1 for a difference or a half done migration. An expanded one is as it should be.

    Args:
        database: The alias of the database; without it, each that the migrations live on.
        app_dir: The project.
    """
    folder = locate_migrations_folder(app_dir)
    history = load_folder(folder)
    every = select_databases(history, database or None)
    headed, differs = DatabaseHeadedOutput(print, several=len(every) > 1), False
    for alias in every:
        say = headed.make_line_writer(alias)
        for name, text in read_and_describe_unfinished_files(history, alias).items():
            say(f"{name} is {text}")
        found = drifting.drift(folder, database=alias, say=say)
        differs = differs or bool(found) or has_half_done_migration(history, alias)
    return FAILURE if differs else 0


@project_command
def baseline(*, models: str = "tables", database: str = "default", app_dir: str = ".") -> int:
    """Write models and the first migration for a database that is there, and record it as applied.

    The database is only read, but for that record. Refuses a project with models or migrations.

    Args:
        models: The name of the module below Models/ that is written.
        database: The alias of the database.
        app_dir: The project.
    """
    if not models.isidentifier():
        raise FileError(f"--models must name a module, such as tables, got {models!r}")
    folder = Path(app_dir) / MODELS
    for path in sorted(folder.rglob("*.py")) if folder.is_dir() else ():
        if _may_hold_models(path):
            raise FileError(
                f"The project must have no models yet, got {path.relative_to(app_dir)}; a baseline "
                "writes them, so move that file away"
            )
    path, say = folder / f"{models}.py", make_line_printer(app_dir)
    baselines.baseline(locate_migrations_folder(app_dir), path, database=database, say=say)
    return 0


def _may_hold_models(path: Path) -> bool:
    """Return True for a file with a class; `configure(...)` alone is no reason to move it away."""
    try:
        tree = ast.parse(path.read_bytes())
    except (SyntaxError, ValueError):
        return True
    return any(isinstance(node, ast.ClassDef) for node in ast.walk(tree))
