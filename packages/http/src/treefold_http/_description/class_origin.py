"""Where a class is defined, and the folders that tell it from another of its name."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from functools import cached_property
from typing import Any

from treefold_http._description.names import to_pascal_case
from treefold_router import parameter_name, version_number

_LOCAL = "Services"


class ClassOrigin:
    """Where a class is defined.

    Args:
        definition: the class, or any other object whose `__module__` says it; None for schemas of
            the framework.
    """

    def __init__(self, definition: Any) -> None:
        self.key: Hashable = id(definition)
        self.modules: Sequence[str] = str(getattr(definition, "__module__", None) or "").split(".")
        self.is_own = definition is None
        self.version = ""
        if self.modules[0] == "Api" and len(self.modules) > 2:
            self.version = self.modules[1]

    @property
    def sort_key(self) -> tuple[Any, ...]:
        """Sorts homes: the framework, shared modules, then versions, each by its folders."""
        place = 0 if self.is_own else 2 if self.version else 1
        return place, version_number(self.version) or 0, self.modules[:-1], self.modules

    @property
    def unversioned_modules(self) -> Sequence[str]:
        """The modules below the version."""
        return self.modules[2:] if self.version else self.modules

    @cached_property
    def prefix_folders(self) -> list[str]:
        """The folders that a name may have as its prefix, in PascalCase."""
        shown = self.unversioned_modules[:-1] if self.version else self.unversioned_modules
        fixed = (each for each in shown if parameter_name(each) is None)
        return [to_pascal_case(each) for each in fixed if each != _LOCAL]

    def iter_prefixes(self, *, skip_folder: bool) -> Iterator[str]:
        """Yield prefixes for a class name, the shortest first.

        Args:
            skip_folder: True if the last folder alone does not tell it from another class.
        """
        stem = to_pascal_case(self.unversioned_modules[-1].capitalize()) if self.version else ""
        for shown in (self.prefix_folders[-1:], self.prefix_folders):
            if shown and not skip_folder:
                yield "".join(shown)
            if stem:
                yield "".join([*shown, stem])
