"""Replacements of dependencies, for tests: a mapping with a change callback."""

from __future__ import annotations

from collections import UserDict
from collections.abc import Callable
from typing import Any


class Overrides(UserDict[Callable[..., Any], Callable[..., Any]]):
    """Dependency to replacement: `app.overrides[get_db] = fake_db`; `clear()` undoes all.

    Args:
        changed: called after every change, to plan the routes again.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        super().__init__()
        self._changed = changed

    def __setitem__(self, call: Callable[..., Any], replacement: Callable[..., Any]) -> None:
        super().__setitem__(call, replacement)
        self._changed()

    def __delitem__(self, call: Callable[..., Any]) -> None:
        super().__delitem__(call)
        self._changed()
