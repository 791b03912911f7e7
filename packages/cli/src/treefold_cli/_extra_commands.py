"""Commands that other installed packages add, such as those of migrations.

A package declares them in its metadata, and nothing of it is imported before its command is typed:

    [project.entry-points."treefold.commands"]
    migrate = "treefold_migrations.cli:migrate"
    "migrations list" = "treefold_migrations.cli:list_migrations"

The value is a function like those in `commands/`: its signature is the options, its docstring the
help, its result the exit code. A name of two words is a command in a group.
"""

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NoReturn

from treefold_cli._errors import CommandError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_GROUP = "treefold.commands"


@cache
def extra_commands() -> Mapping[str, Callable[[], Callable[..., Any]]]:
    """Give what installed packages add: the words of each command, and what loads its function."""
    from importlib.metadata import entry_points  # 25 ms that built-in commands do not pay

    return {
        " ".join(point.name.split()): partial(_load, point) for point in entry_points(group=_GROUP)
    }


def _load(point: "EntryPoint") -> Callable[..., Any]:
    try:
        return point.load()
    except Exception as error:  # a broken package must not take the help down with it
        package = point.dist.name if point.dist else point.value
        message = (
            f"Command {point.name!r} of {package!r} cannot be loaded ({type(error).__name__}:"
            f" {error}); mend or uninstall that package"
        )

    def unusable() -> NoReturn:
        raise CommandError(message)

    unusable.__doc__ = "Cannot be loaded."
    return unusable
