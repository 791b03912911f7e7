"""Fields of `treefold.orm`: the public names of `treefold_orm.fields`."""

from treefold_orm.fields import *  # noqa: F403 - its imports are its names
