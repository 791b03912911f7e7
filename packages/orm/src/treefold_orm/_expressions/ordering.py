"""Ordering: the terms of `order_by` and `Meta.ordering`, resolved against a model.

| Term | Nodes, each with its direction and the place of NULL |
|---|---|
| `"-views"` | `views` |
| `F("views").desc(nulls="last")` | `views` |
| `"payload__size"`, at a JSON path | the type of the value, its number, its text |
| `"pk"` of a key of several columns | each of its columns |
| `Q(views__gt=5)` | the condition as a truth value |
| `"?"` | a random number |
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._expressions.lookups import MAX_CACHED
from treefold_orm._expressions.nodes import FuncNode, OrderNode
from treefold_orm._expressions.resolving import (
    SeveralColumns,
    resolve,
    resolve_order_term,
    resolve_path,
)
from treefold_orm._expressions.scope import Scope
from treefold_orm._expressions.steps import KnownOrdering
from treefold_orm._fields.carriers import FLOAT, INTEGER, TEXT
from treefold_orm._fields.meta import Meta
from treefold_orm._terms.operators import Condition, Expression, OrderBy
from treefold_orm._terms.values import Truth

_TERM = re.compile(r"-?[^\W\d]\w*")


def resolve_order(scope: Scope, terms: Sequence[Any]) -> tuple[OrderNode, ...]:
    """Resolve ordering terms: names with an optional `-`, expressions, `asc()` and `desc()`.

    Raises `FieldError` for anything else; a name is a declared field, relation or annotation,
    never SQL.
    """
    nodes: list[OrderNode] = []
    for term in terms:
        try:
            nodes += _expand_json_order(_resolve_order_term(scope, term))
        except SeveralColumns:
            nodes += _resolve_composite_key_order(scope, term)
    return tuple(nodes)


def cache_ordering(
    meta: Meta, names: tuple[str, ...], terms: tuple[OrderNode, ...]
) -> KnownOrdering:
    """Keep the ordering that names stand for, up to a number of them."""
    made = KnownOrdering(terms)
    # a FilterSet takes orders from requests, in any permutation of its names: there is a bound
    if len(meta.orderings) < MAX_CACHED:
        meta.orderings[names] = made
    return made


def _resolve_composite_key_order(scope: Scope, term: Any) -> list[OrderNode]:
    # few models have such a key
    from treefold_orm._expressions.key_lookups import resolve_composite_key_columns

    nulls, descending, inner = "", False, term
    if isinstance(term, OrderBy):
        nulls, descending, inner = term.nulls, term.descending, term.expression
    elif isinstance(term, str):
        descending, inner = term.startswith("-"), term.removeprefix("-")
    columns = resolve_composite_key_columns(scope, inner)
    if not columns:
        raise FieldError(f"{scope.meta.name} cannot be ordered by an expression over its key")
    return [OrderNode(node, descending, nulls) for node in columns]


def _resolve_order_term(scope: Scope, term: Any) -> OrderNode:
    if isinstance(term, OrderBy):
        return resolve_order_term(term, scope)
    if isinstance(term, Condition):
        term = Truth(term)
    if term.__class__ is str and term == "?":
        return OrderNode(FuncNode(FLOAT, "random", ()), descending=False)
    if isinstance(term, Expression):
        return OrderNode(resolve(term, scope), descending=False)
    check_untainted(term) if isinstance(term, str) else None
    if not isinstance(term, str) or _TERM.fullmatch(term) is None:
        raise FieldError(
            f"{term!r} cannot order {scope.meta.name}: give a field name, with - for descending"
        )
    name = term.removeprefix("-")
    expr = resolve_path(scope, name, from_typed_column=False)
    return OrderNode(expr, descending=term.startswith("-"))


def _expand_json_order(term: OrderNode) -> list[OrderNode]:
    """The terms of a value at a JSON path: by its type, then as a number, then as text.

    No value and `null` are NULL. The databases order JSON each in a way of its own: SQLite as
    text, PostgreSQL with texts by the language of the database.
    """
    expr = term.expr
    if not isinstance(expr, FuncNode) or expr.name != "json_path":
        return [term]
    kinds = ("type", INTEGER), ("number", FLOAT), ("text", TEXT)
    parts = [FuncNode(field, "json_order", (expr,), kind) for kind, field in kinds]
    return [OrderNode(part, term.descending, term.nulls) for part in parts]
