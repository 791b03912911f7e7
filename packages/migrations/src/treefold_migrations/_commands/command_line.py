"""The commands as `treefold` runs them: plain functions that print, and return an exit code.

Found by entry points of the group `treefold.commands`. The command line reads the signature and the
docstring, and has read the settings and imported the models when one of these is called.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ParamSpec, cast

from treefold_migrations._base.errors import Ambiguous, MigrationError
from treefold_migrations._commands import files, linting, running
from treefold_migrations._commands.command_line_numbers import (
    Misuse,
    parse_count,
    parse_run_limits,
    parse_seconds,
)
from treefold_migrations._commands.headings import DatabaseHeadedOutput
from treefold_migrations._detect.answers import Question
from treefold_migrations._files.databases import select_databases
from treefold_migrations._files.history import History
from treefold_migrations._files.loading import load_folder
from treefold_migrations._run.runner import Runner
from treefold_migrations._schedule.half_done import describe_progress, describe_resolving_commands
from treefold_orm import ORMError
from treefold_orm.schema import database_for

P = ParamSpec("P")

FOLDER = "migrations"
FAILURE = 1
"""The exit code of a command that could not do its work."""
MISUSE = 2
"""The exit code of a command with arguments that do not fit, as of `argparse`."""


def project_command(function: Callable[P, int]) -> Callable[P, int]:
    """Make a function a command that needs the project, and whose errors are one line each."""

    @functools.wraps(function)
    def run_and_report_errors(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            return function(*args, **kwargs)
        except Ambiguous as error:
            print_error(str(error))
            for flag in error.flags:
                print_error(f"  {flag}")
        except Misuse as error:
            print_error(f"Error: {error}")
            return MISUSE
        except (MigrationError, ORMError) as error:
            print_error(f"Error: {error}")
        return FAILURE

    cast("Any", run_and_report_errors).needs_project = True
    return run_and_report_errors


def print_error(line: str) -> None:
    """Print a line to standard error."""
    print(line, file=sys.stderr)


def locate_migrations_folder(app_dir: str) -> Path:
    """Return where the migrations of a project are."""
    return Path(app_dir) / FOLDER


@project_command
def makemigrations(
    name: str = "",
    *,
    rename: list[str] | None = None,
    drop: list[str] | None = None,
    fill: list[str] | None = None,
    empty: bool = False,
    check: bool = False,
    dry_run: bool = False,
    allow_destructive: bool = False,
    app_dir: str = ".",
) -> int:
    """Write the migration that leads from the files to the models.

    Asks where a change has several readings; without a terminal it fails and names the flags that
    answer. Exit code 1 if --check finds something.

    Args:
        name: Words for the name of the file.
        rename: A table or column and its new name, as post:article or post.title:headline.
        drop: A table or column to drop, not rename, as post or post.title.
        fill: The value of the rows that exist, as post.slug:text.
        empty: Write a file without operations, to be filled by hand.
        check: Write nothing; exit code 1 if models have changes without a migration.
        dry_run: Print the file and write nothing.
        allow_destructive: Drop tables and columns with their data.
        app_dir: The project.
    """
    made = files.makemigrations(
        locate_migrations_folder(app_dir),
        name,
        rename=rename or (),
        drop=drop or (),
        fill=fill or (),
        empty=empty,
        check=check,
        dry_run=dry_run,
        allow_destructive=allow_destructive,
        ask=_ask_question if _is_interactive() and not check else None,
        say=make_line_printer(app_dir),
    )
    return FAILURE if check and made.operations else 0


def _is_interactive() -> bool:
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()


def make_line_printer(app_dir: str) -> Callable[[str], None]:
    """Return a function that prints lines; created files are shown below the project."""
    root = os.path.join(str(Path(app_dir)), "")
    below = tuple(f"{root}{name}{os.sep}" for name in (FOLDER, "Models"))
    if Path(app_dir) == Path():
        root, below = "", tuple(f"{name}{os.sep}" for name in (FOLDER, "Models"))

    def print_line(line: str) -> None:
        path, mark, rest = line.partition(".py")
        if mark and path.startswith(below):
            line = f"created: {path.removeprefix(root)}.py{rest}".replace("\\", "/")
        print(line)

    return print_line


def _ask_question(question: Question) -> str:
    try:
        return _prompt_for_answer(question)
    except EOFError:  # the end of the input answers as little as a missing terminal
        print()
        raise Ambiguous(question.text, flags=question.flags) from None


def _prompt_for_answer(question: Question) -> str:
    print(question.text)
    if question.kind == "fill":
        return input(f"Value of {question.subject} for the rows that exist: ")
    for number, flag in enumerate(question.flags, 1):
        print(f"  {number}) {flag}")
    while True:
        text = input(f"1 to {len(question.flags)}: ").strip()
        if text.isdecimal() and 1 <= int(text) <= len(question.flags):
            return question.flags[int(text) - 1]


@project_command
def migrate(
    target: str = "",
    *,
    plan: bool = False,
    sql: bool = False,
    fake: bool = False,
    phase: str = "",
    lock_timeout: str = "2",
    statement_timeout: str = "60",
    attempts: str = "12",
    wait: str = "60",
    resolve: str = "",
    allow_destructive: bool = False,
    database: str = "",
    app_dir: str = ".",
) -> int:
    """Apply the migrations that are not applied.

    Args:
        target: The last one to apply, or the beginning of its name.
        plan: Show the steps and change nothing.
        sql: Print the statements and change nothing.
        fake: Record them as applied without running anything.
        phase: expand for what the running release bears, before a rollout; contract after it.
        lock_timeout: Seconds that a step waits for a lock on a table, 0 for no limit (PostgreSQL).
        statement_timeout: Seconds that a step may hold such a lock, 0 for no limit (PostgreSQL).
        attempts: How often a step is tried whose table is locked.
        wait: Seconds to wait for another run.
        resolve: End a half done migration, as --resolve NAME again, skip or abandon.
        allow_destructive: With abandon, lose data or leave what cannot be taken back.
        database: The alias of the database; without it, each that the migrations live on.
        app_dir: The project.
    """
    if phase not in ("", "expand", "contract"):
        print_error(f"Error: Invalid value {phase!r} for --phase; use one of expand, contract")
        return MISUSE
    if resolve:
        if fake:
            print_error(
                f"Error: --fake does not go with --resolve {resolve}; end its state first, with "
                "again, skip or abandon"
            )
            return MISUSE
        if target not in ("again", "skip", "abandon"):
            print_error(
                f"Error: --resolve {resolve} must be followed by again, skip or abandon, got "
                f"{target!r}"
            )
            return MISUSE
        resolved = running.resolve(
            locate_migrations_folder(app_dir),
            resolve,
            cast("Any", target),
            database=database or None,
            plan=plan or sql,
            allow_destructive=allow_destructive,
            say=_ignore_line if sql else print,
            limits=parse_run_limits(lock_timeout, statement_timeout, attempts),
            wait=parse_seconds("--wait", wait),
        )
        if sql:
            print(running.render_planned_sql(resolved))
        return 0
    runs = running.migrate(
        locate_migrations_folder(app_dir),
        target or None,
        database=database or None,
        phase=phase or None,
        fake=fake,
        plan=plan or sql,
        say=_ignore_line if sql else print,
        limits=parse_run_limits(lock_timeout, statement_timeout, attempts),
        wait=parse_seconds("--wait", wait),
    )
    if sql:
        print(running.render_planned_sql(runs))
    return 0


@project_command
def rollback(
    target: str = "",
    *,
    steps: str = "1",
    plan: bool = False,
    sql: bool = False,
    fake: bool = False,
    allow_destructive: bool = False,
    fill: list[str] | None = None,
    lock_timeout: str = "2",
    statement_timeout: str = "60",
    attempts: str = "12",
    wait: str = "60",
    database: str = "",
    app_dir: str = ".",
) -> int:
    """Roll applied migrations back, the last one first.

    Args:
        target: The one that stays the last applied, or zero for none.
        steps: How many, without a target; 1 if it is not given.
        plan: Show the steps and change nothing.
        sql: Print the statements and change nothing.
        fake: Remove the records without running anything.
        allow_destructive: Also drop tables and columns that hold data.
        fill: The value of rows for a field that comes back, as post.slug:text.
        lock_timeout: Seconds that a step waits for a lock on a table, 0 for no limit (PostgreSQL).
        statement_timeout: Seconds that a step may hold such a lock, 0 for no limit (PostgreSQL).
        attempts: How often a step is tried whose table is locked.
        wait: Seconds to wait for another run.
        database: The alias of the database; without it, each that the migrations live on.
        app_dir: The project.
    """
    runs = running.rollback(
        locate_migrations_folder(app_dir),
        target or None,
        database=database or None,
        steps=parse_count("--steps", steps, 10_000),
        fake=fake,
        plan=plan or sql,
        allow_destructive=allow_destructive,
        fill=fill or (),
        say=_ignore_line if sql else print,
        limits=parse_run_limits(lock_timeout, statement_timeout, attempts),
        wait=parse_seconds("--wait", wait),
    )
    if sql:
        print(running.render_planned_sql(runs))
    return 0


@project_command
def sqlmigrate(
    name: str, *, dialect: str = "", backwards: bool = False, database: str = "", app_dir: str = "."
) -> int:
    """Print the SQL of one migration; no database is asked.

    Args:
        name: The migration, or the beginning of its name.
        dialect: sqlite or postgres; that of the database if it is not given.
        backwards: Print the SQL that reverts it.
        database: The alias of the database; without it, each that the migrations live on.
        app_dir: The project.
    """
    _check_dialect(dialect)
    text = running.sqlmigrate(
        locate_migrations_folder(app_dir),
        name,
        dialect=cast("Any", dialect or None),
        backwards=backwards,
        database=database or None,
    )
    print(text)
    return 0


def _check_dialect(dialect: str) -> None:
    if dialect not in ("", "sqlite", "postgres"):
        raise Misuse(f"Invalid value {dialect!r} for --dialect; use one of sqlite, postgres")


@project_command
def list_migrations(*, database: str = "", app_dir: str = ".") -> int:
    """List all migrations, and which of them are applied.

    Args:
        database: The alias of the database; without it, each that the migrations live on.
        app_dir: The project.
    """
    folder = locate_migrations_folder(app_dir)
    history = load_folder(folder)
    every = select_databases(history, database or None)
    headed = DatabaseHeadedOutput(print, several=len(every) > 1)
    for alias in every:
        half = read_and_describe_unfinished_files(history, alias)
        done = _read_applied_names(history, alias)
        files.list_migrations(folder, done, half=half, say=headed.make_line_writer(alias))
    return 0


@project_command
def squash(target: str, *, name: str = "squashed", app_dir: str = ".") -> int:
    """Write one migration that replaces all up to one, and leads to the same state.

    Args:
        target: The last one that it replaces.
        name: Words for the name of the file.
        app_dir: The project.
    """
    files.squash(target, locate_migrations_folder(app_dir), name, say=make_line_printer(app_dir))
    return 0


@project_command
def merge(*, name: str = "merge", app_dir: str = ".") -> int:
    """Write the migration in which two branches meet, if they do not clash.

    Args:
        name: Words for the name of the file.
        app_dir: The project.
    """
    files.merge(locate_migrations_folder(app_dir), name, say=make_line_printer(app_dir))
    return 0


@project_command
def lint(
    *,
    since: str = "",
    every: bool = False,
    format: str = "text",
    dialect: str = "",
    database: str = "",
    app_dir: str = ".",
) -> int:
    """List unsafe changes in the migrations that are not applied.

    Each line names the rule, the lock that is taken, and the safe way. Exit code 1 for a finding.

    Args:
        since: Check the migrations after this one, applied or not.
        every: Look at all migrations.
        format: text, or github for annotations.
        dialect: sqlite or postgres; that of the database if it is not given.
        database: The alias of the database; without it, each that the migrations live on.
        app_dir: The project.
    """
    if format not in ("text", "github"):
        print_error(f"Error: Invalid value {format!r} for --format; use one of text, github")
        return MISUSE
    _check_dialect(dialect)
    folder = locate_migrations_folder(app_dir)
    history = load_folder(folder)
    aliases = select_databases(history, database or None)
    headed = DatabaseHeadedOutput(print, several=len(aliases) > 1 and format == "text")
    found = False
    for alias in aliases:
        say, last = headed.make_line_writer(alias), since
        if not (since or every):  # otherwise no database is asked
            for name, text in read_and_describe_unfinished_files(history, alias).items():
                say(f"{name} is {text}")
            applied = _read_applied_names(history, alias)
            last = applied[-1] if applied else ""
        kind = cast("Any", dialect or database_for(alias).dialect.name)
        found |= bool(
            linting.lint(folder, since=last, database=alias, dialect=kind, form=format, say=say)
        )
    return FAILURE if found else 0


def _read_applied_names(history: History, database: str) -> list[str]:
    pending = set(Runner(database, history).pending())
    return [item.name for item in history.order() if item.name not in pending]


def has_half_done_migration(history: History, database: str) -> bool:
    """Return True if a file is half applied or half rolled back; an expanded one is neither."""
    progress = Runner(database, history).applied().progress
    return any(not entry.is_expanded for entry in progress.values())


def read_and_describe_unfinished_files(history: History, database: str) -> dict[str, str]:
    """Return the files that are half done or expanded, each with where it stands and the ways
    out.
    """
    applied = Runner(database, history).applied()
    rows = applied.progress.items()
    return {n: f"{describe_progress(e)}. {describe_resolving_commands(e)}" for n, e in rows}


def _ignore_line(_line: str) -> None:
    """Print nothing."""
