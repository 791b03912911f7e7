"""Scope: the context for resolving an expression, and the limit on how deep expressions nest."""

from __future__ import annotations

from copy import copy
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.nodes import Expr, ParamNode
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta

MAX_DEPTH = 64
"""Levels of nested conditions and expressions; the compiler calls itself several times for each."""


class Scope:
    """The context of resolving: the model, the annotations known so far, and the list that collects
    values. With `over_rows` all rows of a query are aggregated, with all that is known of them.

    `database` is the alias of the query, in a list that all scopes of one query share: an inner
    query may give it one.
    """

    __slots__ = ("annotations", "database", "depth", "meta", "over_rows", "params")

    def __init__(
        self,
        meta: Meta,
        params: list[Any],
        annotations: dict[str, Expr] | None = None,
        depth: int = 0,
        database: list[str] | None = None,
        over_rows: bool = False,
    ) -> None:
        self.meta = meta
        self.params = params
        self.annotations = {} if annotations is None else annotations
        self.depth = depth
        self.database = database
        self.over_rows = over_rows

    def add_param(self, value: Any, field: AnyField | None) -> ParamNode:
        """Add a value; return the node that refers to it."""
        self.params.append(value)
        return ParamNode(field, len(self.params) - 1)

    def with_model(self, meta: Meta) -> Scope:
        """The same parameters, seen from a related model."""
        # no annotations: names inside mean the related model's, whatever the outer rows are called
        return Scope(meta, self.params, {}, self.depth, self.database)

    def enter_level(self) -> Scope:
        """The same scope one level deeper; `FieldError` where that is too deep."""
        # the compiler calls itself several times for each level, and Python has 1,000 frames
        if self.depth >= MAX_DEPTH:
            raise FieldError(f"The condition is nested more than {MAX_DEPTH} levels deep")
        deeper = copy(self)
        deeper.depth += 1
        return deeper
