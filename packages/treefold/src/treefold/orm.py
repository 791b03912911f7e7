"""The ORM: the public names of `treefold_orm`."""

from typing import TYPE_CHECKING

from treefold_orm import *  # noqa: F403 - its `__all__` is the list

if not TYPE_CHECKING:
    from treefold_orm import __all__ as __all__
