"""Constraints and indexes as declared in `Meta`; data for the schema, and names for errors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treefold_orm._conditions import Condition
from treefold_orm._errors import ModelError


@dataclass(frozen=True)
class Constraint:
    """Base of `UniqueConstraint` and `CheckConstraint`."""

    name: str


@dataclass(frozen=True)
class UniqueConstraint(Constraint):
    """Rows are unique over `fields`; with `condition`, only among the rows that meet it."""

    fields: tuple[str, ...]
    condition: Condition | None

    def __init__(
        self, fields: Sequence[str], *, name: str = "", condition: Condition | None = None
    ) -> None:
        if not fields:
            raise ModelError("UniqueConstraint needs at least one field")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "condition", condition)


@dataclass(frozen=True)
class CheckConstraint(Constraint):
    """Every row meets `condition`; the values in it must be constants of the code."""

    condition: Condition

    def __init__(self, condition: Condition, *, name: str) -> None:
        if not name:
            raise ModelError("CheckConstraint needs a name: it is what an error will show")
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "condition", condition)


@dataclass(frozen=True)
class Index:
    """An index over fields (`-name`: descending) or expressions; `condition` makes it partial."""

    fields: tuple[Any, ...]
    name: str
    condition: Condition | None

    def __init__(
        self, fields: Sequence[Any], *, name: str = "", condition: Condition | None = None
    ) -> None:
        if not fields:
            raise ModelError("Index needs at least one field or expression")
        if not name and not all(isinstance(f, str) for f in fields):
            raise ModelError("An index over expressions needs a name")
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "condition", condition)
