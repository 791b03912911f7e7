"""Schema migrations: the public names of `treefold_migrations`."""

from typing import TYPE_CHECKING

try:
    from treefold_migrations import *  # noqa: F403 - its `__all__` is the list
except ModuleNotFoundError as error:
    if error.name != "treefold_migrations":
        raise
    raise ModuleNotFoundError(
        "treefold.migrations needs treefold-migrations: pip install treefold-migrations",
        name=error.name,
    ) from None

if not TYPE_CHECKING:
    from treefold_migrations import __all__ as __all__
