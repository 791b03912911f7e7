"""State: what a query's steps add up to.

A query is a list of steps (its key). Replaying them gives the state a statement is built from;
that happens once for each shape, when no compiled plan exists yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from treefold_orm._compile.cte import Join, Source
from treefold_orm._expressions.conversion import representation
from treefold_orm._expressions.nodes import (
    And,
    Apart,
    Compare,
    ConvertNode,
    Expr,
    Node,
    Not,
    Or,
    OrderNode,
    ParamNode,
    contains_group_aggregate,
    contains_outer,
    contains_row_aggregate,
    contains_window,
    per_row,
)
from treefold_orm._fields.base import Field
from treefold_orm._fields.meta import Meta

Key = tuple[Any, ...]


@dataclass(slots=True)
class State:
    """The parts of one SELECT, before they become SQL."""

    meta: Meta
    where: list[Node] = field(default_factory=list[Node])
    order: tuple[OrderNode, ...] | None = None
    annotations: dict[str, Expr] = field(default_factory=dict[str, Expr])
    rows: str = "instances"
    names: tuple[str | tuple[str, int], ...] | None = None
    columns: tuple[tuple[str, Expr], ...] = ()
    grouped: bool = False
    groups: tuple[Expr, ...] = ()
    loaded: frozenset[str] | None = None
    related: tuple[str, ...] = ()
    distinct: bool = False
    distinct_on: tuple[Expr, ...] = ()
    nothing: bool = False
    limit: int | None = None
    offset: int | None = None
    lock: tuple[bool, bool, str] | None = None
    combined: tuple[tuple[str, Key, int], ...] = ()
    common: tuple[Field[Any] | None, ...] = ()
    source: Source | None = None
    joins: tuple[Join, ...] = ()

    @property
    def outputs(self) -> list[Expr]:
        """What a query computes: its columns, or the annotations of its instances."""
        if self.rows == "instances":
            return list(self.annotations.values())
        return [expr for _, expr in self.columns]

    @property
    def output_fields(self) -> tuple[Field[Any] | None, ...]:
        """The types of the outputs, which parts of a combined query have in common."""
        return self.common or tuple(expr.field for expr in self.outputs)

    @property
    def row_values(self) -> list[Expr]:
        """The outputs as values of the query's rows: computed already, and in these types."""
        pairs = zip(self.outputs, self.output_fields, strict=True)
        return [_as_output(per_row(expr), field) for expr, field in pairs]

    @property
    def sliced(self) -> bool:
        """True if LIMIT or OFFSET is set."""
        return self.limit is not None or self.offset is not None

    @property
    def simple(self) -> bool:
        """True if the rows are the model's own, each once: conditions alone describe them."""
        return not (
            self.sliced
            or self.distinct
            or self.distinct_on
            or self.combined
            or self.grouped
            or self.over_windows
        )

    @property
    def names_few(self) -> bool:
        """True if a slice, keys or the row of an outer query leave few rows of the model's."""
        if self.nothing or any(_names_few(node) for node in self.where):
            return True
        chosen = (*self.where, *(self.order or ()))  # a slice by an aggregate needs it of all rows
        return self.sliced and not any(contains_row_aggregate(node) for node in chosen)

    @property
    def over_windows(self) -> list[Node]:
        """The conditions that need the result of a window, which is known after WHERE only."""
        return [node for node in self.where if contains_window(node)]


def _as_output(expr: Expr, field: Field[Any] | None) -> Expr:
    source = expr.field
    if source is None or field is None or representation(source) == representation(field):
        return expr
    return ConvertNode(field, expr, "value")


def _names_few(node: Node) -> bool:
    if isinstance(node, And):
        return any(_names_few(child) for child in node.children)
    if isinstance(node, Compare):
        look = node.lookup
        named = look.op in {"exact", "in"} and look.column.unique
        return (named and not look.hops and not look.transforms) or contains_outer(node)
    return contains_outer(node)


def top_level(nodes: list[Node]) -> list[Node]:
    """The conditions of a query, apart where some of them belong to WHERE and others to HAVING."""
    split: list[Node] = []
    for node in nodes:
        # an And stays whole unless it has to be split between WHERE and HAVING: one filter() is
        # one EXISTS
        if isinstance(node, And) and any(
            contains_group_aggregate(child) for child in node.children
        ):
            split.extend(node.children)
        else:
            split.append(node)
    return split


def narrows(node: Node) -> bool:
    """True for a condition that may be expected to leave a small part of the rows: for all but
    negations and those that ask for NULL or for a truth value.
    """
    match node:
        case And() | Apart():
            return any(map(narrows, node.children))
        case Or():
            return all(map(narrows, node.children))
        case Compare():
            look = node.lookup
            return look.op != "null" and look.column.internal != "boolean"
        case _:
            return not isinstance(node, Not)


def replay(key: Key) -> State:
    """Add up the steps of a query."""
    state = State(key[0])
    for step in key[1:]:
        _STEPS[step[0]](state, step)
    return state


def _filter(state: State, step: Any) -> None:
    index = step[1]
    parts: list[Node] = []
    for lookup in step[2:]:
        right = None
        if lookup.takes:
            right = ParamNode(lookup.field, index)
            index += 1
        parts.append(Compare(lookup, right))
    state.where.append(parts[0] if len(parts) == 1 else And(tuple(parts)))


def _where(state: State, step: Any) -> None:
    state.where.append(step[1])


def _alias(state: State, step: Any) -> None:
    if state.rows != "instances" and step[3] and not state.grouped:
        state.grouped = True
        state.groups = tuple(expr for _, expr in state.columns)  # values() may name others later


def _annotate(state: State, step: Any) -> None:
    state.annotations[step[1]] = step[2]
    _alias(state, step)
    if state.names is not None:
        state.names = (*state.names, step[1])
        state.columns = (*state.columns, (step[1], step[2]))


def _values(state: State, step: Any) -> None:
    state.rows, state.names, state.columns = step[1], step[2], step[3]


def _slice(state: State, step: Any) -> None:
    index = step[1]
    if step[2]:
        state.limit = index
        index += 1
    if step[3]:
        state.offset = index


def _set(name: str) -> Any:
    def step_in(state: State, step: Any) -> None:
        setattr(state, name, step[1])

    return step_in


def _combine(state: State, step: Any) -> None:
    state.combined = (*state.combined, (step[1], step[2], step[3]))


def _join(state: State, step: Any) -> None:
    join: Join = step[1]
    state.joins = (*state.joins, join)
    for name, node in join.names:
        _annotate(state, ("annotate", name, node, False))


def _given(state: State, step: Any) -> None:
    """Nothing: the step tells apart keys whose queries have more parameters than they use."""


_STEPS: dict[str, Any] = {
    "given": _given,
    "filter": _filter,
    "where": _where,
    "order": _set("order"),
    "annotate": _annotate,
    "alias": _alias,
    "values": _values,
    "load": _set("loaded"),
    "related": _set("related"),
    "distinct": _set("distinct"),
    "distinct_on": _set("distinct_on"),
    "none": _set("nothing"),
    "slice": _slice,
    "lock": _set("lock"),
    "combine": _combine,
    "common": _set("common"),
    "from": _set("source"),
    "join": _join,
}
