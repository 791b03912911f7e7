"""Ordering: what `order_by` and `Meta.ordering` take, resolved against a model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from treefold_orm._compile._nodes import FuncNode, OrderNode
from treefold_orm._conditions import Condition, Truth
from treefold_orm._errors import FieldError
from treefold_orm._expressions import Expression, OrderBy, freeze_path
from treefold_orm._names import check_untainted
from treefold_orm._scope import Scope

_TERM = re.compile(r"-?[^\W\d]\w*")


def freeze_order(scope: Scope, terms: Sequence[Any]) -> tuple[OrderNode, ...]:
    """Resolve ordering terms: names with an optional `-`, expressions, `asc()` and `desc()`.

    Raises `FieldError` for anything else; a name is a declared field, relation or annotation,
    never SQL.
    """
    return tuple(_term(scope, term) for term in terms)


def _term(scope: Scope, term: Any) -> OrderNode:
    if isinstance(term, OrderBy):
        return term.freeze(scope)
    if isinstance(term, Condition):
        term = Truth(term)
    if isinstance(term, Expression):
        return OrderNode(term.freeze(scope), descending=False)
    check_untainted(term) if isinstance(term, str) else None
    if not isinstance(term, str) or _TERM.fullmatch(term) is None:
        raise FieldError(
            f"{term!r} cannot order {scope.meta.name}: give a field name, with - for descending"
        )
    name = term.removeprefix("-")
    expr = freeze_path(scope, name, typed=False)
    if isinstance(expr, FuncNode) and expr.name == "json_path":
        raise FieldError(f"{term!r} cannot order {scope.meta.name}: JSON has no order")
    return OrderNode(expr, descending=term.startswith("-"))
