"""How many rows there are, whether there is one, and aggregates of all. No I/O of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import require_annotation_name
from treefold_orm._base.statement import Operation, Statement
from treefold_orm._building.own_rows import filter_by_key, filter_by_keys
from treefold_orm._building.starting import build_unfiltered_query
from treefold_orm._expressions.nodes import Expr, Key, wrap_aggregate_per_row
from treefold_orm._expressions.resolving import resolve
from treefold_orm._expressions.steps import Combine, DistinctOn, Values
from treefold_orm._operations.changing import bind_params
from treefold_orm._runtime.connections import database_for
from treefold_orm._terms.operators import Expression

if TYPE_CHECKING:
    from treefold_orm._building.query import AnyQuery


def count_rows(query: AnyQuery) -> Operation[int]:
    """The number of rows."""
    plan, args = query._compile_plan("count")
    found = yield Statement("rows", plan.sql, args)
    return found[0][0]


def has_rows(query: AnyQuery) -> Operation[bool]:
    """Return True if there is a row."""
    plan, args = query._compile_plan("exists")
    return bool((yield Statement("rows", plan.sql, args)))


def contains_instance(query: AnyQuery, item: object) -> Operation[bool]:
    """Return True if the query has the row of an instance."""
    meta = query._meta
    if query._has_step(Values, Combine):
        raise FieldError("contains() asks for instances: call it before values() and union()")
    if not isinstance(item, meta.model):
        raise FieldError(f"contains() takes a {meta.name}, not {type(item).__name__}")
    if item.pk is None:
        raise FieldError(f"contains() takes a saved {meta.name}: this one has no key yet")
    if (rows := query._cache) is not None:
        return item in rows
    if query._low or query._high is not None or query._has_step(DistinctOn):
        # further conditions would choose other rows than the slice, so it stands on its own
        query = filter_by_keys(build_unfiltered_query(meta, query._alias), query)
    return (yield from has_rows(filter_by_key(query, item.pk)))


def compute_aggregates(
    query: AnyQuery, unnamed: Sequence[Expression], aggregates: Mapping[str, Expression]
) -> Operation[dict[str, Any]]:
    """Aggregates over all rows."""
    if not aggregates and not unnamed:
        return {}
    from treefold_orm._functions.aggregates import assign_aggregate_names as named_by_default

    scope = query._make_scope()
    scope.over_rows = True
    scope.annotations = {
        name: wrap_aggregate_per_row(node) for name, node in scope.annotations.items()
    }
    whole, given = query._build_key_and_params()
    # first: the nodes of the query refer to its parameters by number
    scope.params[:] = given
    if query._has_step(Combine):  # its parts may have other types than the rows they make
        scope.annotations |= _map_names_to_outputs(whole)
    named: list[tuple[str, Expr]] = []
    for name, expression in named_by_default(unnamed, aggregates).items():
        if name in aggregates:
            require_annotation_name(name, is_taken=False)
        if not isinstance(expression, Expression):
            raise FieldError(f"aggregate({name}=...) must be given an aggregate, got a condition")
        named.append((name, resolve(expression, scope)))
    database = database_for(query._alias)
    parts = whole, tuple(named)
    plan = database.find_plan(("aggregate", *parts), *parts, given=len(scope.params))
    found = yield Statement("rows", plan.sql, bind_params(plan, scope.params))
    return plan.decode(found)[0]


def _map_names_to_outputs(key: Key) -> dict[str, Expr]:
    from treefold_orm._compile.state import replay_steps

    state = replay_steps(key)
    names = list(state.annotations)
    if state.rows != "instances":
        names = [name for name, _ in state.columns]
    return dict(zip(names, state.derived_table_expressions, strict=True))
