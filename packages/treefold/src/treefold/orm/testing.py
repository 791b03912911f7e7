"""Tests of models: the public names of `treefold_orm.testing`."""

from typing import TYPE_CHECKING

from treefold_orm.testing import *  # noqa: F403 - its `__all__` is the list

if not TYPE_CHECKING:
    from treefold_orm.testing import __all__ as __all__
