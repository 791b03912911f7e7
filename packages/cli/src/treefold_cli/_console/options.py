"""Options that several commands share, and the parsing of their values.

Options are text or flags (`application` gives the reason), so numbers and choices are parsed here,
with messages of this package.
"""

import os
from collections.abc import Callable, Sequence
from typing import Annotated, Any

import typer

from treefold_cli._console.completion import complete_choices
from treefold_cli._console.errors import MISUSE, CommandError

Complete = Callable[..., list[str]] | None
"""Lists the values that a shell offers."""


def make_option(
    flag: str, metavar: str, text: str, complete: Complete = None, *, variable: str | None = None
) -> Any:
    """Declare an option that takes a value, also from an environment variable."""
    return typer.Option(flag, metavar=metavar, help=text, autocompletion=complete, envvar=variable)


def make_choice(flag: str, choices: Sequence[str], text: str) -> Any:
    """Declare an option that takes one of some words."""
    return make_option(flag, "|".join(choices), text, complete_choices(*choices))


def make_flag(flag: str, text: str) -> Any:
    """Declare an option without a value."""
    return typer.Option(flag, help=text)


def make_argument(metavar: str, text: str, complete: Complete = None) -> Any:
    """Declare an argument, which the help shows without a default."""
    return typer.Argument(metavar=metavar, help=text, show_default=False, autocompletion=complete)


_ROOT = "The root of the project, the folder that holds Api/."
_PREFIX = "The prefix that a proxy serves the application below, such as /api."

AppDir = Annotated[str, make_option("--app-dir", "DIR", _ROOT, variable="TREEFOLD_APP_DIR")]
AsJson = Annotated[bool, make_flag("--json", "Print JSON.")]
Host = Annotated[str, make_option("--host", "HOST", "The address to listen on.")]
Port = Annotated[str, make_option("--port", "PORT", "The port to listen on; 0 picks a free one.")]
RootPath = Annotated[str, make_option("--root-path", "PREFIX", _PREFIX)]


def export_root_path(prefix: str) -> None:
    """Put the prefix where this process and its workers read settings from, if there is one."""
    if prefix:
        os.environ["TREEFOLD_ROOT_PATH"] = prefix


def parse_number_option(text: str, option: str, *, low: int, high: int) -> int:
    """Read a whole number.

    Args:
        text: the value as typed.
        option: the option, such as `--port`.
        low: the smallest number allowed.
        high: the largest.

    Returns:
        The number.

    Raises:
        CommandError: `text` is no number from `low` to `high`.
    """
    if text.isascii() and text.isdigit() and len(text) < 10 and low <= int(text) <= high:
        return int(text)
    message = f"Invalid value {text!r} for {option}; give a number from {low} to {high}"
    raise CommandError(message, code=MISUSE)


def parse_choice_option(text: str, option: str, *, choices: Sequence[str]) -> str:
    """Read one of a few words.

    Args:
        text: the value as typed.
        option: the option, such as `--format`.
        choices: the words allowed.

    Returns:
        The word.

    Raises:
        CommandError: `text` is none of them.
    """
    if text in choices:
        return text
    message = f"Invalid value {text!r} for {option}; use one of {', '.join(choices)}"
    raise CommandError(message, code=MISUSE)
