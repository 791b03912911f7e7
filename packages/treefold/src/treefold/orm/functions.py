"""Functions of `treefold.orm`: the public names of `treefold_orm.functions`."""

from treefold_orm.functions import *  # noqa: F403 - its imports are its names
