"""`&` and `|` of queries: the conditions of both in one query of the same model. No SQL.

A condition is resolved with the numbers of its parameters, which move up behind those of the first
query. Steps that are no conditions stay as they are in the first. A step says how many parameters
there are: some may be of steps that are left out, and equal keys must have equally many.
"""

from __future__ import annotations

from typing import Any, TypeVar

from treefold_orm._base.errors import FieldError
from treefold_orm._building.one_database import require_common_database
from treefold_orm._building.sources import convert_manager_to_query
from treefold_orm._building.steps import QuerySteps
from treefold_orm._expressions import nodes, steps

Q = TypeVar("Q", bound="QuerySteps")

_CONDITIONS = (steps.Filter, steps.Where, steps.NoRows)
_NEVER: dict[type[nodes.Node], str] = {
    steps.Combine: "union() and its like",
    steps.DistinctOn: "distinct(fields)",
    steps.JoinCTE: "a joined CTE",
    steps.FromCTE: "the rows of a CTE",
}


def intersect_rows(query: Q, other: object) -> Q:
    """The rows of `query` that are in `other` too."""
    other = _require_combinable_query(query, other, "&")
    made = _append_params_and_ordering(query, other)
    made._alias = require_common_database(other._alias, query._alias, query._meta)
    for node in _list_shifted_conditions(other, len(query._params)):
        made = made._add_step(steps.Where(node))
    return made._add_step(steps.NoRows()) if other._has_step(steps.NoRows) else made


def unite_rows(query: Q, other: object) -> Q:
    """The rows of `query` and those of `other`."""
    other = _require_combinable_query(query, other, "|")
    made = _append_params_and_ordering(query, other)
    made._alias = require_common_database(other._alias, query._alias, query._meta)
    pairs = ((query, 0), (other, len(query._params)))
    kept = [(part, by) for part, by in pairs if not part._has_step(steps.NoRows)]
    parts = [_list_shifted_conditions(part, by) for part, by in kept]
    made._key = (made._key[0], *(s for s in made._key[1:] if not isinstance(s, _CONDITIONS)))
    if not parts:
        return made._add_step(steps.NoRows())
    if not all(parts):
        return made
    sides = tuple([node for side in parts for node in _build_or_branches(side)])
    return made._add_step(steps.Where(sides[0] if len(sides) == 1 else nodes.Or(sides)))


def _build_or_branches(and_conditions: list[nodes.Node]) -> tuple[nodes.Node, ...]:
    """The conditions of one side of an OR: one that is an OR itself gives its own, so that a chain
    of queries stays flat.
    """
    if len(and_conditions) > 1:
        return (nodes.UnsharedAnd(tuple(and_conditions)),)
    only = and_conditions[0]
    return only.children if isinstance(only, nodes.Or) and only.children else (only,)


def _require_combinable_query(query: QuerySteps, source: object, operator: str) -> QuerySteps:
    other = convert_manager_to_query(source)
    if not isinstance(other, QuerySteps):
        raise FieldError(
            f"A query takes another query after {operator}, got {type(other).__name__}; use "
            "filter()"
        )
    if other._meta is not query._meta:
        raise FieldError(
            f"{operator} takes queries of one model, got {query._meta.name} and {other._meta.name}"
        )
    require_common_database(other._alias, query._alias, query._meta, f"query after {operator}")
    from treefold_orm._compile.state import replay_steps  # loaded with the driver, not before

    for part in (query, other):
        if part._low or part._high is not None:
            raise FieldError(f"{operator} cannot follow a slice: slice the result")
        for step in part._key[1:]:
            if step.__class__ in _NEVER:
                raise FieldError(
                    f"{operator} cannot follow {_NEVER[step.__class__]}: filter by the keys of its "
                    "rows"
                )
            if isinstance(step, steps.Values) and replay_steps(part._key).grouped:
                raise FieldError(f"{operator} cannot follow groups: filter before values()")
    if query._find_last_step(steps.Values) != other._find_last_step(steps.Values):
        raise FieldError(f"{operator} takes queries with the same values(), or without on both")
    if query._has_step(steps.Distinct) is not other._has_step(steps.Distinct):
        raise FieldError(f"{operator} takes two queries with distinct(), or two without")
    return other


def _append_params_and_ordering(query: Q, other: QuerySteps) -> Q:
    made = query._clone()
    order: tuple[nodes.OrderNode, ...] | None = other._find_order_terms()
    by = len(query._params)
    made._params = (*query._params, *other._params)
    made = made._add_step(steps.Given(len(made._params)))
    if order:
        return made._add_step(steps.Ordering(tuple(_shift_params(term, by) for term in order)))
    return made


def _list_shifted_conditions(query: QuerySteps, param_offset: int) -> list[nodes.Node]:
    own = [step for step in query._key if isinstance(step, (steps.Filter, steps.Where))]
    from treefold_orm._compile.state import replay_steps  # loaded with the driver, not before

    return [_shift_params(node, param_offset) for node in replay_steps((query._key[0], *own)).where]


N = TypeVar("N", bound=nodes.Node)


def _shift_params(node: N, param_offset: int) -> N:
    """The same node with the numbers of its parameters raised by `param_offset`."""
    made: Any = node
    if param_offset == 0:
        return node
    if isinstance(node, nodes.ParamNode):
        made = nodes.ParamNode(node.field, node.index + param_offset)
    elif isinstance(node, nodes.SubqueryNode):
        shared = tuple((base, size, place + param_offset) for base, size, place in node.shared)
        made = nodes.SubqueryNode(node.field, node.key, node.base + param_offset, shared)
    else:
        made = nodes.map_child_nodes(node, lambda child: _shift_params(child, param_offset))
    return made
