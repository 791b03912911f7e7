"""Options that several commands share, and the parsing of their values.

Options are text or flags (`application` gives the reason), so numbers and choices are parsed here,
with messages of this package.
"""

import os
from collections.abc import Sequence
from typing import Annotated

import typer

from treefold_cli._console.errors import MISUSE, CommandError

AppDir = Annotated[
    str,
    typer.Option(
        "--app-dir",
        metavar="DIR",
        envvar="TREEFOLD_APP_DIR",
        help="The root of the project, the folder that holds Api/.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Host = Annotated[str, typer.Option("--host", metavar="HOST", help="The address to listen on.")]
Port = Annotated[
    str, typer.Option("--port", metavar="PORT", help="The port to listen on; 0 picks a free one.")
]
RootPath = Annotated[
    str,
    typer.Option(
        "--root-path",
        metavar="PREFIX",
        help="The prefix that a proxy serves the application below, such as /api.",
    ),
]


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
    raise CommandError(
        f"Invalid value {text!r} for {option}; give a number from {low} to {high}", code=MISUSE
    )


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
    raise CommandError(
        f"Invalid value {text!r} for {option}; use one of {', '.join(choices)}", code=MISUSE
    )
