"""The command that lints migration files. It opens no database."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from treefold_migrations._commands.files import Folder, Say, quiet
from treefold_migrations._detect.models import models_state
from treefold_migrations._files.history import Loaded
from treefold_migrations._files.loading import load_folder
from treefold_migrations._lint import lint as rules
from treefold_migrations._lint.rules import Finding
from treefold_orm.schema import Meta, Postgres, SQLite


def lint(
    folder: Folder = "migrations",
    *,
    since: str = "",
    dialect: Literal["postgres", "sqlite"] = "postgres",
    form: Literal["text", "github"] = "text",
    metas: Iterable[Meta] | None = None,
    say: Say = quiet,
) -> list[tuple[Loaded, Finding]]:
    """Return the unsafe parts of migrations, with their files.

    Args:
        folder: The folder of the files.
        since: The last migration that is passed over; without, all are looked at.
        dialect: The database to lint for.
        form: How lines are written: for people, or as annotations of a review on GitHub.
        metas: The models; without, those of this application.
        say: Takes lines.

    Raises `HistoryError` for a migration that does not exist, `StateError` for one that does not
    fit.
    """
    history = load_folder(folder)
    passed = history.ancestors(history.find(since).name) if since else set[str]()
    database = Postgres() if dialect == "postgres" else SQLite()
    models = models_state(metas)
    found: list[tuple[Loaded, Finding]] = []
    for item in history.order():
        if item.name in passed:
            continue
        before = history.state_before(item.name)
        findings = rules.lint(item.migration, before, database, code=models)
        found += [(item, finding) for finding in findings]
        for finding in findings:
            line = rules.format_github([finding], f"{item.path}")
            say(line if form == "github" else f"{item.name}, {finding}")
    if not found and form == "text":
        say("No finding")
    return found
