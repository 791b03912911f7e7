"""Replacements of dependencies, for tests: a mapping with a change callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Any, Self


class Overrides(MutableMapping[Callable[..., Any], Callable[..., Any]]):
    """Dependency to replacement: `app.overrides[get_db] = fake_db`; `clear()` undoes all.

    Args:
        changed: called after every change, to plan the routes again.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._replacements: dict[Callable[..., Any], Callable[..., Any]] = {}
        self._changed = changed

    def __getitem__(self, call: Callable[..., Any]) -> Callable[..., Any]:
        return self._replacements[call]

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter(self._replacements)

    def __len__(self) -> int:
        return len(self._replacements)

    def __repr__(self) -> str:
        return repr(self._replacements)

    def __setitem__(self, call: Callable[..., Any], replacement: Callable[..., Any]) -> None:
        self._replacements[call] = replacement
        self._changed()

    def __delitem__(self, call: Callable[..., Any]) -> None:
        del self._replacements[call]
        self._changed()

    def __ior__(self, others: Mapping[Callable[..., Any], Callable[..., Any]]) -> Self:
        self.update(others)
        return self
