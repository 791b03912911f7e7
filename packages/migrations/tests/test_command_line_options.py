"""Options of the commands that run migrations: what they take, refuse and reach."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from run_support import (
    AUTHOR,
    Files,
    Place,
    engine as engine,
    files as files,
    make_place as make_place,
    place as place,
)
from test_run_steps import at_alter_table, locked

from treefold_migrations import Limits
from treefold_migrations._commands import command_line
from treefold_migrations._commands.running import migrate
from treefold_migrations._run.lock import WAIT
from treefold_orm import close_all

RANK = 'AddField("author", "rank", fields.IntegerField(null=True))'
COMMANDS: dict[str, Callable[..., int]] = {
    "migrate": command_line.migrate,
    "rollback": command_line.rollback,
}


@pytest.fixture
def postgres(make_place: Callable[[str], Place]) -> Iterator[Place]:
    made = make_place("postgres")
    made.configure()
    yield made
    close_all()


@pytest.fixture
def ranked(postgres: Place, files: Files) -> str:
    """A project whose second file changes a table."""
    files.write("0001_initial", AUTHOR)
    migrate(files.folder)
    files.write("0002_rank", RANK)
    return str(files.folder.parent)


def test_a_locked_table_ends_the_command_within_its_limits(
    postgres: Place, ranked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    options: dict[str, Any] = {"lock_timeout": "0.05", "attempts": "2", "app_dir": ranked}
    with locked(postgres, "LOCK TABLE author IN ROW SHARE MODE"):
        assert command_line.migrate(**options) == 1
    shown = capsys.readouterr().err
    assert "in 2 attempts" in shown
    assert "--lock-timeout SECONDS" in shown
    assert command_line.migrate(app_dir=ranked) == 0
    with locked(postgres, "LOCK TABLE author IN ROW SHARE MODE"):
        assert command_line.rollback(**options) == 1
    assert "in 2 attempts" in capsys.readouterr().err
    assert command_line.rollback(app_dir=ranked) == 0


def test_a_step_that_holds_its_lock_too_long_names_the_flag(
    postgres: Place, ranked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with at_alter_table(postgres, "PERFORM pg_sleep(0.4)"):
        assert command_line.migrate(statement_timeout="0.1", app_dir=ranked) == 1
        shown = capsys.readouterr().err
        assert "held its lock for 0.1 s" in shown
        assert "--statement-timeout SECONDS, 0 for none" in shown
        assert command_line.migrate(statement_timeout="0", app_dir=ranked) == 0


def test_the_time_to_wait_for_another_run_is_an_option(
    postgres: Place, ranked: str, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "1835624306, hashtext(current_schema())"
    lock = f"SELECT pg_advisory_lock(x, y) FROM (SELECT {key}) AS t (x, y)"
    with locked(postgres, lock):
        assert command_line.migrate(wait="0.1", app_dir=ranked) == 1
    assert "held the lock of migrations for 0.1 s" in capsys.readouterr().err


@pytest.mark.parametrize("name", COMMANDS)
def test_the_limits_without_options_are_those_of_the_functions(name: str) -> None:
    given = {n: p.default for n, p in inspect.signature(COMMANDS[name]).parameters.items()}
    limits = Limits()
    assert float(given["lock_timeout"]) == limits.lock
    assert float(given["statement_timeout"]) == limits.statement
    assert int(given["attempts"]) == limits.attempts
    assert float(given["wait"]) == WAIT


@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize("option", ["lock_timeout", "statement_timeout", "wait", "attempts"])
@pytest.mark.parametrize("text", ["", "x", "-1", "nan", "inf", "0.0001", "1e9", "\uff11"])
def test_a_number_out_of_range_is_wrong_use(
    name: str, option: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert COMMANDS[name](**{option: text}) == command_line.MISUSE
    flag = f"--{option.replace('_', '-')}"
    assert capsys.readouterr().err.startswith(f"Error: Invalid value {text!r} for {flag}; give ")


def test_the_statements_of_a_rollback_are_shown(
    place: Place, files: Files, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write("0001_initial", AUTHOR)
    project = str(files.folder.parent)
    assert command_line.migrate(app_dir=project) == 0
    capsys.readouterr()
    assert command_line.rollback(sql=True, app_dir=project) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"-- 0001_initial ({place.engine}, backwards)")
    assert 'DROP TABLE "author"' in shown
    assert "author" in place.tables()


LINT = """
from treefold_migrations._commands import command_line
command_line.lint(every=True, dialect={dialect!r}, app_dir={project!r})
"""


def test_lint_looks_for_the_database_that_it_is_given(files: Files) -> None:
    files.write("0001_initial", AUTHOR)
    files.write("0002_index", "RunSQL('CREATE INDEX one ON author (name)', '')")
    project = str(files.folder.parent)
    found: dict[str, str] = {}
    for dialect in ("sqlite", "postgres"):
        # in a process without the models of other tests, and without a database
        code = LINT.format(dialect=dialect, project=project)
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        found[dialect] = done.stdout
    assert "index-not-concurrent" in found["postgres"]
    assert "index-not-concurrent" not in found["sqlite"]
    assert command_line.lint(every=True, dialect="oracle") == command_line.MISUSE
