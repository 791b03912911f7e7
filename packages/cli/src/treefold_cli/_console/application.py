"""The typer application: which commands there are, found and built one at a time.

The only module that knows how typer works inside. A command's module is imported when its name is
typed; its options are declared there. Other packages add commands through entry points
(`find_plugin_commands`); built-in commands take precedence.
"""

import importlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from treefold_cli._console.errors import FAILURE, MISUSE, CommandError
from treefold_cli._console.extra_commands import find_plugin_commands
from treefold_cli._console.output import print_line
from treefold_cli._console.version import format_version_line

COMMANDS = (
    *("new", "dev", "serve", "create", "routes", "why", "check", "openapi", "doctor", "test"),
    *("typecheck", "shell", "docs", "version create", "version list", "version diff"),
    *("version flatten", "version relative", "version delete", "version usage"),
    "client",
    *("contract lock", "contract check", "contract diff", "contract accept", "contract show"),
)
"""The commands in the order of the help.

`new` is the function `new` in `commands/_new.py`, `version list` is `list` in
`commands/_version.py`.
"""

_GROUPS = {
    "version": "Create, compare, flatten and delete versions of the API, and see who calls them.",
    "contract": "Write, check and compare the lock of the API.",
}
_PASS_ON = frozenset({"test", "typecheck"})
"""Commands that hand options they do not know to the tool they run."""

# typer has no public name for the base of its usage errors.
_UsageError: Any = typer.BadParameter.__base__


def invoke_command(arguments: Sequence[str]) -> int:
    """Run the command that `arguments` name.

    Args:
        arguments: the command line without the name of the program.

    Returns:
        The exit code of the command.

    Raises:
        CommandError: the arguments do not fit, or the command failed.
    """
    try:
        result: Any = _build_program()(arguments, standalone_mode=False)
    except _UsageError as error:
        raise CommandError(_format_usage_error(error), code=MISUSE) from error
    except typer.Abort:
        return FAILURE
    return result or 0


class _TextParameters:
    # Signatures here use Any where typer's own name classes it keeps private.

    def get_params(self, ctx: Any) -> Any:
        inherited: Any = super()
        return [_skip_type_conversion(parameter) for parameter in inherited.get_params(ctx)]


class _Command(_TextParameters, TyperCommand):
    def invoke(self, ctx: Any) -> Any:
        if "app_dir" in ctx.params and self.name != "new":  # that one makes a project
            from treefold_cli._console.project import enter_project

            ctx.params["app_dir"] = enter_project(ctx.params["app_dir"])
        return super().invoke(ctx)


class _Group(_TextParameters, TyperGroup):
    words = ""
    """Words of the command line that lead to this group, each with a space after it."""

    def list_commands(self, ctx: Any) -> list[str]:
        names = (*COMMANDS, *sorted(find_plugin_commands()))
        below = (name.removeprefix(self.words) for name in names if name.startswith(self.words))
        return list(dict.fromkeys(name.partition(" ")[0] for name in below))

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        name = self.words + cmd_name
        if name in COMMANDS:
            return _build_command(name, _load_command(name))
        if any(known.startswith(f"{name} ") for known in COMMANDS):
            return _build_command_group(name)
        extra = find_plugin_commands()
        if name in extra:
            return _build_command(name, extra[name]())
        is_group = any(known.startswith(f"{name} ") for known in extra)
        return _build_command_group(name) if is_group else None

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name = args[0]
        known = name.startswith("-") or self.get_command(ctx, name) is not None
        if known or ctx.resilient_parsing:  # shell completion passes incomplete words
            return super().resolve_command(ctx, args)
        import difflib  # takes 6 ms; only needed for an unknown command

        names = self.list_commands(ctx)
        close = difflib.get_close_matches(name, names, 1)
        hint = f"did you mean {close[0]!r}" if close else f"use one of {', '.join(names)}"
        raise CommandError(f"Unknown command {self.words + name!r}; {hint}", code=MISUSE)


def _skip_type_conversion(parameter: Any) -> Any:
    if not isinstance(parameter.process_value, partial):
        parameter.process_value = partial(_convert_unless_text, parameter, parameter.process_value)
    return parameter


def _convert_unless_text(parameter: Any, convert: Any, ctx: Any, value: Any) -> Any:
    # typer imports pydantic, 190 ms, to turn text into text, even where the option is absent. Our
    # options are text and flags only, so typer only handles missing options and callbacks.
    if value in (None, False) and not parameter.required:
        return value
    if isinstance(value, str) and parameter.callback is None:
        return value
    return convert(ctx, value)


def _build_program() -> Any:
    group = typer.Typer(
        cls=_Group,
        rich_markup_mode=None,  # plain help: the same on every terminal, and rich takes 100 ms
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    group.callback()(_declare_root_options)
    return typer.main.get_command(group)


def _build_command_group(name: str) -> Any:
    made = typer.Typer(name=name, cls=_Group, add_completion=False, rich_markup_mode=None)
    made.callback(help=_GROUPS.get(name, f"Commands of {name}."))(_run_nothing_for_group)
    group: Any = typer.main.get_command(made)
    group.words = f"{name} "
    return group


def _run_nothing_for_group() -> None:
    """A group does nothing by itself."""


def _load_command(name: str) -> Callable[..., int]:
    group, _, function = name.rpartition(" ")
    module = importlib.import_module(f"treefold_cli.commands._{group or name}")
    return getattr(module, function)


def _build_command(name: str, function: Callable[..., Any]) -> Any:
    settings = {"ignore_unknown_options": True} if name in _PASS_ON else None
    single = typer.Typer(add_completion=False, rich_markup_mode=None)
    word = name.rpartition(" ")[2]
    single.command(word, cls=_Command, context_settings=settings)(function)
    return typer.main.get_command(single)


def _print_version_and_exit(wanted: bool) -> None:
    if wanted:
        print_line(format_version_line())
        raise typer.Exit


_VERSION = typer.Option(
    "--version", callback=_print_version_and_exit, is_eager=True, help="Show the version and exit."
)


def _declare_root_options(version: Annotated[bool, _VERSION] = False) -> None:
    """Your folder tree is your API.

    Exit codes: 0 done, 1 something found or failed, 2 wrong use, 130 interrupted; 'test' and
    'typecheck' pass on those of the tool they run.
    """


def _format_usage_error(error: Any) -> str:
    text = error.format_message().rstrip(".")
    path = error.ctx.command_path if error.ctx else "treefold"
    return f"{text}; see '{path} --help'"
