"""Replacements of dependencies, for tests: a mapping with a change callback."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from typing import Self

from treefold_http._wire.aliases import AnyCallable


class Overrides(MutableMapping[AnyCallable, AnyCallable]):
    """Dependency to replacement: `app.overrides[get_db] = fake_db`; `clear()` undoes all.

    Args:
        changed: called after every change, to plan the routes again.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._replacements: dict[AnyCallable, AnyCallable] = {}
        self._changed = changed

    def __getitem__(self, call: AnyCallable) -> AnyCallable:
        return self._replacements[call]

    def __iter__(self) -> Iterator[AnyCallable]:
        return iter(self._replacements)

    def __len__(self) -> int:
        return len(self._replacements)

    def __repr__(self) -> str:
        return repr(self._replacements)

    def __setitem__(self, call: AnyCallable, replacement: AnyCallable) -> None:
        self._replacements[call] = replacement
        self._changed()

    def __delitem__(self, call: AnyCallable) -> None:
        del self._replacements[call]
        self._changed()

    def __ior__(self, others: Mapping[AnyCallable, AnyCallable]) -> Self:
        self.update(others)
        return self
