"""`&` and `|` of queries: the conditions of both in one query of the same model. No SQL.

A condition is frozen with the numbers of its parameters, which move up behind those of the first
query. Steps that are no conditions stay as they are in the first. A step says how many parameters
there are: some may be of steps that are left out, and equal keys must have equally many.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.nodes import (
    Apart,
    Node,
    Or,
    OrderNode,
    ParamNode,
    SubqueryNode,
    rebuilt,
)

if TYPE_CHECKING:
    from treefold_orm._queries.query import QueryBuilder

Q = TypeVar("Q", bound="QueryBuilder[Any, Any]")

_CONDITIONS = frozenset({"filter", "where", "none"})
_NEVER = {
    "combine": "union() and its like",
    "distinct_on": "distinct(fields)",
    "join": "a joined CTE",
    "from": "the rows of a CTE",
}


def met(query: Q, other: Any) -> Q:
    """The rows of `query` that are in `other` too."""
    other = _checked(query, other, "&")
    made = _ordered(query, other)
    for node in _conditions(other, len(query._params)):
        made = made._step(("where", node))
    return made._step(("none", True)) if other._has("none") else made


def joined(query: Q, other: Any) -> Q:
    """The rows of `query` and those of `other`."""
    other = _checked(query, other, "|")
    made = _ordered(query, other)
    parts = [
        _conditions(part, by)
        for part, by in ((query, 0), (other, len(query._params)))
        if not part._has("none")
    ]
    made._key = (made._key[0], *(s for s in made._key[1:] if s[0] not in _CONDITIONS))
    if not parts:
        return made._step(("none", True))
    if not all(parts):
        return made
    sides = tuple(nodes[0] if len(nodes) == 1 else Apart(tuple(nodes)) for nodes in parts)
    return made._step(("where", sides[0] if len(sides) == 1 else Or(sides)))


def _checked(query: QueryBuilder[Any, Any], source: Any, sign: str) -> QueryBuilder[Any, Any]:
    from treefold_orm._queries.query import QueryBuilder, query_of

    given = query_of(source)
    if not isinstance(given, QueryBuilder):
        raise FieldError(
            f"A query takes another query after {sign}, got {type(given).__name__}; use filter()"
        )
    other = cast("QueryBuilder[Any, Any]", given)
    if other._meta is not query._meta:
        raise FieldError(
            f"{sign} takes queries of one model, got {query._meta.name} and {other._meta.name}"
        )
    if other._alias != query._alias:
        raise FieldError(
            f"{sign} takes queries of one database, got {query._alias!r} and {other._alias!r}; "
            "call using() on both"
        )
    from treefold_orm._compile.state import replay  # loaded with the driver, not before

    for part in (query, other):
        if part._low or part._high is not None:
            raise FieldError(f"{sign} cannot follow a slice: slice the result")
        for step in part._key[1:]:
            if step[0] in _NEVER:
                raise FieldError(
                    f"{sign} cannot follow {_NEVER[step[0]]}: filter by the keys of its rows"
                )
            if step[0] == "values" and replay(part._key).grouped:
                raise FieldError(f"{sign} cannot follow groups: filter before values()")
    if _step(query, "values") != _step(other, "values"):
        raise FieldError(f"{sign} takes queries with the same values(), or without on both")
    if query._has("distinct") is not other._has("distinct"):
        raise FieldError(f"{sign} takes two queries with distinct(), or two without")
    return other


def _step(query: QueryBuilder[Any, Any], kind: str) -> Any:
    return next((step for step in reversed(query._key[1:]) if step[0] == kind), None)


def _ordered(query: Q, other: QueryBuilder[Any, Any]) -> Q:
    made = query._clone()
    order: tuple[OrderNode, ...] | None = other._order_step()
    by = len(query._params)
    made._params = (*query._params, *other._params)
    made = made._step(("given", len(made._params)))
    return made._step(("order", tuple(_moved(term, by) for term in order))) if order else made


def _conditions(query: QueryBuilder[Any, Any], by: int) -> list[Node]:
    steps = [step for step in query._key[1:] if step[0] in {"filter", "where"}]
    from treefold_orm._compile.state import replay  # loaded with the driver, not before

    return [_moved(node, by) for node in replay((query._key[0], *steps)).where]


N = TypeVar("N", bound=Node)


def _moved(node: N, by: int) -> N:
    """The same node with the numbers of its parameters raised by `by`."""
    made: Any = node
    if by == 0:
        return node
    if isinstance(node, ParamNode):
        made = ParamNode(node.field, node.index + by)
    elif isinstance(node, SubqueryNode):
        shared = tuple((base, size, place + by) for base, size, place in node.shared)
        made = SubqueryNode(node.field, node.key, node.base + by, shared)
    else:
        made = rebuilt(node, lambda child: _moved(child, by))
    return made
