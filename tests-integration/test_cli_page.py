"""`docs/guides/cli.md` names every command and option."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from treefold_cli._console import application

DOCS = Path(__file__).resolve().parent.parent / "docs"
PAGE = (DOCS / "guides/cli.md").read_text(encoding="utf-8")
JOBS = (DOCS / "guides/jobs.md").read_text(encoding="utf-8")
MIGRATIONS = (DOCS / "guides/migrations.md").read_text(encoding="utf-8")


def commands(group: Any, words: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*words, name))
        else:
            yield " ".join((*words, name)), command


PROGRAM: Any = getattr(application, "_build_program")()  # noqa: B009 - private, and its one reader
COMMANDS = dict(commands(PROGRAM))
SHARED = {"--app-dir", "--json", "--help"}


def options(command: Any) -> set[str]:
    return {option for each in command.params for option in each.opts if option.startswith("-")}


def described(name: str) -> str:
    """The rows of a command in the tables of its page; all of it for those of other packages."""
    if name == "worker" or name.startswith("jobs "):
        return JOBS
    if name not in application.COMMANDS:
        return MIGRATIONS
    rows = (line for line in PAGE.splitlines() if line.startswith(f"| `{name}"))
    return "\n".join(rows)


def test_the_command_tree_is_that_of_the_installed_packages():
    assert set(application.COMMANDS) < set(COMMANDS)
    assert "migrations list" in COMMANDS


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_and_each_option_is_on_its_page(name: str):
    """A new option has its place in the table of options of `docs/guides/cli.md`."""
    assert re.search(rf"`{name}[` ]", described(name))
    wanted = options(COMMANDS[name]) - SHARED
    missing = [one for one in wanted if not re.search(rf"{one}(?![\w-])", described(name))]
    assert missing == []


@pytest.mark.parametrize("option", sorted(SHARED))
def test_shared_options_are_named_once_for_all(option: str):
    assert f"`{option}" in PAGE or f" {option}`" in PAGE


def test_options_on_the_page_exist():
    known = {one for command in COMMANDS.values() for one in options(command)}
    known |= options(PROGRAM) | {"--help", "--install-completion", "--show-completion"}
    rows = (line for line in PAGE.splitlines() if line.startswith("| `"))
    named = {one for line in rows for one in re.findall(r"(?<![\w-])--[a-z][a-z-]*", line)}
    assert named - known == set()
