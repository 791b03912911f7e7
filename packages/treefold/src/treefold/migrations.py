"""Schema migrations: the public names of `treefold_migrations`."""

from typing import TYPE_CHECKING

from treefold_migrations import *  # noqa: F403 - its `__all__` is the list

if not TYPE_CHECKING:
    from treefold_migrations import __all__ as __all__
