"""State: the sum of the steps of a query.

A query is a list of steps (its key). Replaying them gives the state a statement is built from;
that happens once for each shape, when no compiled plan exists yet.

Example, three steps, and the statement of the state that they add up to; SQLite knows no OFFSET
without LIMIT:

    >>> Article.objects.filter(views=1).order_by("title").values("title")[5:]
    SQLite: SELECT t0."title" FROM "article" AS t0 WHERE t0."views" = ? ORDER BY t0."title" ASC
    LIMIT -1 OFFSET ?
    PostgreSQL: SELECT t0."title" FROM "article" AS t0 WHERE t0."views" = $1 ORDER BY t0."title" ASC
    OFFSET $2
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Any

from treefold_orm._expressions import nodes, steps
from treefold_orm._expressions.conversion import build_representation_key
from treefold_orm._expressions.cte_nodes import Join, Source
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta


@dataclass(slots=True)
class State:
    """The parts of one SELECT, before they become SQL.

    Attributes:
        where: the conditions, of which all hold.
        order: None leaves `Meta.ordering` in force, an empty tuple asks for no order.
        annotations: those that rows have, by name.
        rows: what a row becomes: "instances", "dicts", "tuples", "named" or "flat".
        names, columns: what `values()` was asked for: the names of a row, and the columns that they
            are made of, as in `steps.Values`. None for instances.
        grouped, groups: whether rows are grouped, and the columns that `values()` named for it.
        loaded: the paths of the columns that instances have; None for all.
        related: the paths of `select_related()`.
        distinct, distinct_on: `distinct()` without and with expressions.
        nothing: True after `none()`.
        limit, offset: the places of their parameters and not their values, so that all pages of a
            list share one plan.
        combined, common: the other parts of a union and the like, and the types that the columns of
            all parts have in common.
        source, joins: the CTE that it selects from, and those that it joins.
    """

    meta: Meta
    where: list[nodes.Node] = field(default_factory=list[nodes.Node])
    order: tuple[nodes.OrderNode, ...] | None = None
    annotations: dict[str, nodes.Expr] = field(default_factory=dict[str, nodes.Expr])
    rows: str = "instances"
    names: tuple[steps.Label, ...] | None = None
    columns: tuple[tuple[str, nodes.Expr], ...] = ()
    grouped: bool = False
    groups: tuple[nodes.Expr, ...] = ()
    loaded: frozenset[str] | None = None
    related: tuple[str, ...] = ()
    distinct: bool = False
    distinct_on: tuple[nodes.Expr, ...] = ()
    nothing: bool = False
    limit: int | None = None
    offset: int | None = None
    lock: steps.Lock | None = None
    combined: tuple[steps.Combine, ...] = ()
    common: tuple[AnyField | None, ...] = ()
    source: Source | None = None
    joins: tuple[Join, ...] = ()

    @property
    def output_expressions(self) -> list[nodes.Expr]:
        """The computed columns of a query, or the annotations of its instances."""
        if self.rows == "instances":
            return list(self.annotations.values())
        return [expr for _, expr in self.columns]

    @property
    def output_fields(self) -> tuple[AnyField | None, ...]:
        """The types of the outputs, which parts of a combined query have in common."""
        return self.common or tuple(expr.field for expr in self.output_expressions)

    @property
    def derived_table_expressions(self) -> list[nodes.Expr]:
        """The output columns as expressions over a derived table that has computed them already."""
        pairs = zip(self.output_expressions, self.output_fields, strict=True)
        wrapped = [(nodes.wrap_aggregate_per_row(expr), field) for expr, field in pairs]
        return [_convert_to_output_type(expr, field) for expr, field in wrapped]

    @property
    def is_sliced(self) -> bool:
        """True if LIMIT or OFFSET is set."""
        return self.limit is not None or self.offset is not None

    @property
    def is_where_only(self) -> bool:
        """True if the rows are the model's own, each once: conditions alone describe them."""
        return not (
            # joins of CTEs are not among these: a count takes them along, a write asks by itself
            self.is_sliced
            or self.distinct
            or self.distinct_on
            or self.combined
            or self.grouped
            or self.window_conditions
        )

    @property
    def selects_few_rows(self) -> bool:
        """True if a slice, keys or the row of an outer query leave few rows of the model's."""
        if self.nothing or any(_selects_few_rows(node) for node in self.where):
            return True
        chosen = (*self.where, *(self.order or ()))  # a slice by an aggregate needs it of all rows
        return self.is_sliced and not any(nodes.contains_per_row_aggregate(node) for node in chosen)

    @property
    def window_conditions(self) -> list[nodes.Node]:
        """The conditions that need the result of a window, which is known after WHERE only."""
        return [node for node in self.where if nodes.contains_window(node)]


def _convert_to_output_type(expr: nodes.Expr, field: AnyField | None) -> nodes.Expr:
    source = expr.field
    if (
        source is None
        or field is None
        or build_representation_key(source) == build_representation_key(field)
    ):
        return expr
    return nodes.ConvertNode(field, expr, "value")


def _selects_few_rows(node: nodes.Node) -> bool:
    if isinstance(node, nodes.And):
        return any(_selects_few_rows(child) for child in node.children)
    if isinstance(node, nodes.Compare):
        look = node.lookup
        # a unique column of another table (`writer__email`) may be met by thousands of rows of
        # this one, and so may a part of a unique column (`name__length`)
        named = look.op in {"exact", "in"} and look.column.unique
        return (named and not look.hops and not look.transforms) or nodes.contains_outer_reference(
            node
        )
    return nodes.contains_outer_reference(node)


def split_mixed_conjunctions(conditions: list[nodes.Node]) -> list[nodes.Node]:
    """The conditions of a query, apart where some of them belong to WHERE and others to HAVING."""
    split: list[nodes.Node] = []
    for node in conditions:
        # an And stays whole unless it has to be split between WHERE and HAVING: one filter() is
        # one EXISTS
        if isinstance(node, nodes.And) and any(
            nodes.contains_group_aggregate(child) for child in node.children
        ):
            split.extend(node.children)
        else:
            split.append(node)
    return split


def is_selective(node: nodes.Node) -> bool:
    """True for a condition that may be expected to leave a small part of the rows: for all but
    negations and those that ask for NULL or for a truth value.
    """
    match node:
        case nodes.And() | nodes.UnsharedAnd():
            return any(map(is_selective, node.children))
        # an OR is as wide as its widest part
        case nodes.Or():
            return all(map(is_selective, node.children))
        case nodes.Compare():
            look = node.lookup
            return look.op != "null" and look.column.internal != "boolean"
        case _:
            return not isinstance(node, nodes.Not)


def replay_steps(key: nodes.Key) -> State:
    """Add up the steps of a query."""
    state = State(key[0])
    for step in key[1:]:
        _RULES[step.__class__](state, step)
    return state


def _add_filter(state: State, step: steps.Filter) -> None:
    index = step.start
    parts: list[nodes.Node] = []
    for lookup in step.lookups:
        right = None
        # `isnull` and its like have no parameter: their answer is part of the shape
        if lookup.takes:
            right = nodes.ParamNode(lookup.field, index)
            index += 1
        parts.append(nodes.Compare(lookup, right))
    state.where.append(parts[0] if len(parts) == 1 else nodes.And(tuple(parts)))


def _add_annotation(state: State, step: steps.Annotate) -> None:
    # `alias()` names a value that is not loaded; steps that use it hold its expression themselves
    if step.loaded:
        state.annotations[step.name] = step.expr
    if state.rows != "instances" and step.groups and not state.grouped:
        state.grouped = True
        state.groups = tuple(expr for _, expr in state.columns)  # values() may name others later
    if step.loaded and state.names is not None:
        state.names = (*state.names, step.name)
        state.columns = (*state.columns, (step.name, step.expr))


def _set_values(state: State, step: steps.Values) -> None:
    state.rows, state.names, state.columns = step.rows, step.labels, step.columns


def _set_slice(state: State, step: steps.Slice) -> None:
    state.limit = step.start if step.limit else None
    state.offset = step.start + step.limit if step.offset else None


def _add_combined(state: State, step: steps.Combine) -> None:
    state.combined = (*state.combined, step)


def _add_cte_join(state: State, step: steps.JoinCTE) -> None:
    state.joins = (*state.joins, step.join)
    for name, node in step.join.names:
        _add_annotation(state, steps.Annotate(name, node, groups=False, loaded=True))


def _make_state_setter(name: str, part: str) -> Callable[[State, Any], None]:
    read = attrgetter(part)
    return lambda state, step: setattr(state, name, read(step))


# found by the exact class, so that each subclass of a step needs a row of its own
_RULES: dict[type[nodes.Node], Callable[[State, Any], None]] = {
    steps.Given: lambda state, step: None,
    steps.Filter: _add_filter,
    steps.Where: lambda state, step: state.where.append(step.condition),
    steps.Ordering: _make_state_setter("order", "terms"),
    steps.KnownOrdering: _make_state_setter("order", "terms"),
    steps.Annotate: _add_annotation,
    steps.Values: _set_values,
    steps.Load: _make_state_setter("loaded", "names"),
    steps.SelectRelated: _make_state_setter("related", "paths"),
    steps.Distinct: lambda state, step: setattr(state, "distinct", True),
    steps.DistinctOn: _make_state_setter("distinct_on", "nodes"),
    steps.NoRows: lambda state, step: setattr(state, "nothing", True),
    steps.Slice: _set_slice,
    steps.Lock: lambda state, step: setattr(state, "lock", step),
    steps.Combine: _add_combined,
    steps.Common: _make_state_setter("common", "fields"),
    steps.FromCTE: _make_state_setter("source", "source"),
    steps.JoinCTE: _add_cte_join,
}
