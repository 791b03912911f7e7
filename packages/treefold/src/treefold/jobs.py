"""Durable background work: the public names of `treefold_orm.jobs`."""

from typing import TYPE_CHECKING

from treefold_orm.jobs import *  # noqa: F403 - its `__all__` is the list

if not TYPE_CHECKING:
    from treefold_orm.jobs import __all__ as __all__
