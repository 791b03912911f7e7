"""The ORM: the public names of `treefold_orm`, imported when they are asked for."""

from typing import TYPE_CHECKING, Any

import treefold_orm as _orm

if TYPE_CHECKING:
    from treefold_orm import *  # noqa: F403 - its `__all__` is the list
else:
    from treefold_orm import __all__ as __all__


def __getattr__(name: str) -> Any:
    return getattr(_orm, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(_orm)})
