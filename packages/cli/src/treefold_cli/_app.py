"""The typer application: which commands there are, found and built one at a time.

The only module that knows how typer works inside. A command's module is imported when its name is
typed; its options are declared there.
"""

import difflib
import importlib
from collections.abc import Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from treefold_cli._errors import FAILURE, MISUSE, CommandError
from treefold_cli._output import write
from treefold_cli._version import version_line

COMMANDS = ("new", "dev", "serve", "create", "routes", "check", "openapi")
"""The commands in the order of the help; `new` is the function `new` in `commands/_new.py`."""

# typer has no public name for the base of its usage errors.
_UsageError: Any = typer.BadParameter.__base__


def invoke(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name.

    Args:
        arguments: what follows the name of the program.

    Returns:
        The exit code of the command.

    Raises:
        CommandError: the arguments do not fit, or the command gave up.
    """
    try:
        result: Any = _program()(arguments, standalone_mode=False)
    except _UsageError as error:
        raise CommandError(_one_line(error), code=MISUSE) from error
    except typer.Abort:
        return FAILURE
    return result or 0


class _TextParameters:
    # Signatures here use Any where typer's own name classes it keeps private.

    def get_params(self, ctx: Any) -> Any:
        inherited: Any = super()
        return [_as_text(parameter) for parameter in inherited.get_params(ctx)]


class _Command(_TextParameters, TyperCommand):
    pass


class _Group(_TextParameters, TyperGroup):
    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return _load(cmd_name) if cmd_name in COMMANDS else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        if name in COMMANDS or name.startswith("-"):
            return super().resolve_command(ctx, args)
        close = difflib.get_close_matches(name, COMMANDS, 1)
        hint = f"did you mean {close[0]!r}" if close else f"use one of {', '.join(COMMANDS)}"
        raise CommandError(f"Unknown command {name!r}; {hint}", code=MISUSE)


def _as_text(parameter: Any) -> Any:
    if not isinstance(parameter.process_value, partial):
        parameter.process_value = partial(_take, parameter, parameter.process_value)
    return parameter


def _take(parameter: Any, convert: Any, ctx: Any, value: Any) -> Any:
    # typer imports pydantic, 190 ms, to turn text into text, even where the option is absent. Our
    # options are text and flags only, so all that is left to typer is what is missing or acts.
    if value in (None, False) and not parameter.required:
        return value
    if isinstance(value, str) and parameter.callback is None:
        return value
    return convert(ctx, value)


def _program() -> Any:
    group = typer.Typer(
        cls=_Group,
        rich_markup_mode=None,  # plain help: the same on every terminal, and rich takes 100 ms
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.callback()(_treefold)
    return typer.main.get_command(group)


def _load(name: str) -> Any:
    module = importlib.import_module(f"treefold_cli.commands._{name}")
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    single.command(name, cls=_Command)(getattr(module, name))
    return typer.main.get_command(single)


def _show_version(wanted: bool) -> None:
    if wanted:
        write(version_line())
        raise typer.Exit


def _treefold(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Your folder tree is your API.

    Exit codes: 0 done, 1 something found or failed, 2 wrong use.
    """


def _one_line(error: Any) -> str:
    text = error.format_message().rstrip(".")
    path = error.ctx.command_path if error.ctx else "treefold"
    return f"{text}; see '{path} --help'"
