"""Scope: what resolving an expression needs, and the limit on how deep expressions may nest."""

from __future__ import annotations

from dataclasses import dataclass, field as dataclass_field
from typing import Any

from treefold_orm._compile._nodes import Expr, ParamNode
from treefold_orm._errors import FieldError
from treefold_orm._fields._base import Field
from treefold_orm._meta import Meta

AnyField = Field[Any]

MAX_DEPTH = 64


@dataclass(slots=True)
class Scope:
    """What freezing needs: the model, the annotations known so far, and the list that collects
    values.
    """

    meta: Meta
    params: list[Any]
    annotations: dict[str, Expr] = dataclass_field(default_factory=dict[str, Expr])
    depth: int = 0
    alias: str | None = None

    def param(self, value: Any, field: AnyField | None) -> ParamNode:
        """Add a value; return the node that refers to it."""
        self.params.append(value)
        return ParamNode(field, len(self.params) - 1)

    def within(self, meta: Meta) -> Scope:
        """The same parameters, seen from a related model."""
        return Scope(meta, self.params, {}, self.depth, self.alias)

    def nested(self) -> Scope:
        """The same scope one level deeper; `FieldError` where that is too deep."""
        if self.depth >= MAX_DEPTH:
            raise FieldError(f"The condition is nested more than {MAX_DEPTH} levels deep")
        return Scope(self.meta, self.params, self.annotations, self.depth + 1, self.alias)
