"""The ORM: the public names of `treefold_orm`."""

from treefold_orm import *  # noqa: F403 - its `__all__` is the list
from treefold_orm import __all__ as __all__
