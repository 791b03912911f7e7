"""Migration: the declaration of one file. Loading adds its name, hash and place in the graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field as attribute
from typing import Any, cast

from treefold_migrations._base.errors import FileError
from treefold_migrations._operations.base import Operation


@dataclass(frozen=True, slots=True)
class Migration:
    """The operations of one file, and the files that come before it.

    `replaces` holds the names and hashes of the files that a squashed one stands for.
    """

    after: Sequence[str] = ()
    operations: Sequence[Operation] = ()
    replaces: Mapping[str, str] = attribute(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        for operation in cast("Sequence[Any]", self.operations):
            if not isinstance(operation, Operation):
                raise FileError(f"operations must hold operations, got {operation!r}")
        if isinstance(self.after, str) or not all(isinstance(n, str) for n in self.after):  # pyright: ignore[reportUnnecessaryIsInstance] - files are untyped
            raise FileError(f"after must be a list of names of migrations, got {self.after!r}")
