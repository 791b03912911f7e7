"""The command that lints migration files. It opens no database of the application."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from treefold_migrations._commands.files import Folder, Say, ignore_line
from treefold_migrations._commands.headings import DatabaseHeadedOutput
from treefold_migrations._detect.models import build_models_state
from treefold_migrations._files.databases import restrict_to_database, select_databases
from treefold_migrations._files.history import LoadedMigration
from treefold_migrations._files.loading import load_folder
from treefold_migrations._lint import lint as rules
from treefold_migrations._lint.rules import Finding, make_finding
from treefold_migrations._schedule.replay import find_unknown_part_refusals
from treefold_orm.schema import Meta, Postgres, SQLite


def lint(
    folder: Folder = "migrations",
    *,
    since: str = "",
    database: str | None = None,
    dialect: Literal["postgres", "sqlite"] = "postgres",
    form: Literal["text", "github"] = "text",
    metas: Iterable[Meta] | None = None,
    say: Say = ignore_line,
) -> list[tuple[LoadedMigration, Finding]]:
    """Return the unsafe parts of migrations, with their files.

    Args:
        folder: The folder of the files.
        since: The last migration that is passed over; without, all are looked at.
        database: The alias whose operations are looked at; without it, each that the files live on.
        dialect: The kind of database to lint for.
        form: How lines are written: for people, or as annotations of a review on GitHub.
        metas: The models; without, those of this application.
        say: Takes lines.

    Raises `HistoryError` for a migration that does not exist, `StateError` for one that does not
    fit.
    """
    history = load_folder(folder)
    passed = history.ancestors(history.find(since).name) if since else set[str]()
    kind = Postgres() if dialect == "postgres" else SQLite()
    models = build_models_state(metas)
    every = select_databases(history, database)
    headed = DatabaseHeadedOutput(say, several=len(every) > 1 and form == "text")
    found: list[tuple[LoadedMigration, Finding]] = []
    for alias in every:
        own = restrict_to_database(history, alias)
        refusals = find_unknown_part_refusals(own) if dialect == "sqlite" else []
        for item in own.order():
            if item.name in passed:
                continue
            migration = replace(item.migration, operations=item.operations)
            findings = rules.lint(migration, own.compute_state_before(item.name), kind, code=models)
            findings += [
                make_finding("unknown-part", refusal.problem, refusal.operation, include_lock=False)
                for refusal in refusals
                if refusal.name == item.name
            ]
            found += [(item, finding) for finding in findings]
            for finding in findings:
                line = rules.format_github_annotations([finding], f"{item.path}")
                headed.make_line_writer(alias)(
                    line if form == "github" else f"{item.name}, {finding}"
                )
    if not found and form == "text":
        say("No finding")
    return found
