"""Commands that other installed packages add, such as those of migrations.

A package declares them in its metadata, and nothing of it is imported before its command is typed:

    [project.entry-points."treefold.commands"]
    migrate = "treefold_migrations.cli:migrate"
    "migrations list" = "treefold_migrations.cli:list_migrations"

The value is a function like those in `commands/`, or a plain one (`plain_commands`): its
signature is the options, its docstring the help, its result the exit code. A name of two words is a
command in a group. A function with a true attribute `needs_project` runs with the settings of the
project read, its extensions set up and its models imported; its option `dev` is that of the
application, whose `role` is that of the function, or else `command`. A parameter `app` is the
application itself, which it may start: `async with app.lifespan():`.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial, wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, NoReturn

from treefold_cli._console.errors import CommandError, translate_to_command_error

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUP = "treefold.commands"


@cache
def find_plugin_commands() -> Mapping[str, Callable[[], Callable[..., Any]]]:
    """Map the words of each command from installed packages to a loader of its function."""
    from importlib.metadata import entry_points  # takes 25 ms; built-in commands do not need it

    points = entry_points(group=_GROUP)
    return {" ".join(p.name.split()): partial(_load_plugin_command, p) for p in points}


def _load_plugin_command(point: "EntryPoint") -> Callable[..., Any]:
    try:
        function: Callable[..., Any] = point.load()
        return _adapt_plugin_command(function)
    except Exception as error:  # a broken package must not take the help down with it
        package = point.dist.name if point.dist else point.value
        reason = f"({type(error).__name__}: {error}); mend or uninstall that package"
        message = f"Command {point.name!r} of {package!r} cannot be loaded {reason}"

    def refuse_command() -> NoReturn:
        raise CommandError(message)

    refuse_command.__doc__ = "Cannot be loaded."
    return refuse_command


def _adapt_plugin_command(function: Callable[..., Any]) -> Callable[..., Any]:
    from treefold_cli._console.plain_commands import adapt_for_typer, has_keyword_only_parameters

    command = adapt_for_typer(function) if has_keyword_only_parameters(function) else function
    if not getattr(function, "needs_project", False):
        return command

    @wraps(command)
    def run_in_project(*arguments: Any, **options: Any) -> Any:
        from treefold_cli._console.project import load_project
        from treefold_http import TreefoldError

        folder, dev = options.get("app_dir", "."), options.get("dev", False)
        with load_project(folder, dev=dev, role=getattr(function, "role", "command")) as app:
            if "app" in signature(function).parameters:
                options["app"] = app
            with translate_to_command_error(TreefoldError):
                return command(*arguments, **options)

    return run_in_project
