"""Replacements of dependencies, for tests: a mapping with a change callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any


class Overrides(MutableMapping[Callable[..., Any], Callable[..., Any]]):
    """Dependency to replacement: `app.overrides[get_db] = fake_db`; `clear()` undoes all.

    Args:
        changed: called after every change, to plan the routes again.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._items: dict[Callable[..., Any], Callable[..., Any]] = {}

    def __getitem__(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return self._items[call]

    def __setitem__(self, call: Callable[..., Any], replacement: Callable[..., Any]) -> None:
        self._items[call] = replacement
        self._changed()

    def __delitem__(self, call: Callable[..., Any]) -> None:
        del self._items[call]
        self._changed()

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)
