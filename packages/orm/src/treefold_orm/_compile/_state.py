"""State: what a query's steps add up to.

A query is a list of steps (its key). Replaying them gives the state a statement is built from;
that happens once for each shape, when no compiled plan exists yet.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from treefold_orm._compile._cte import Join, Source
from treefold_orm._compile._nodes import (
    And,
    Compare,
    Expr,
    Node,
    OrderNode,
    ParamNode,
    contains_window,
)
from treefold_orm._meta import Meta

Key = tuple[Any, ...]


@dataclass(slots=True)
class State:
    """The parts of one SELECT, before they become SQL."""

    meta: Meta
    where: list[Node] = field(default_factory=list[Node])
    order: tuple[OrderNode, ...] | None = None
    annotations: dict[str, Expr] = field(default_factory=dict[str, Expr])
    rows: str = "instances"
    names: tuple[str, ...] | None = None
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
    lock: tuple[bool, bool, bool] | None = None
    combined: tuple[tuple[str, Key, int], ...] = ()
    source: Source | None = None
    joins: tuple[Join, ...] = ()

    @property
    def sliced(self) -> bool:
        """Whether LIMIT or OFFSET is set."""
        return self.limit is not None or self.offset is not None

    @property
    def simple(self) -> bool:
        """Whether the rows are the model's own, each once: conditions alone describe them."""
        return not (
            self.sliced
            or self.distinct
            or self.distinct_on
            or self.combined
            or self.grouped
            or self.over_windows
        )

    @property
    def over_windows(self) -> list[Node]:
        """The conditions that need the result of a window, which is known after WHERE only."""
        return [node for node in self.where if contains_window(node)]


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


def _annotate(state: State, step: Any) -> None:
    state.annotations[step[1]] = step[2]
    if state.rows != "instances" and step[3] and not state.grouped:
        state.grouped = True
        state.groups = tuple(expr for _, expr in state.columns)  # values() may name others later
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


_STEPS: dict[str, Any] = {
    "filter": _filter,
    "where": _where,
    "order": _set("order"),
    "annotate": _annotate,
    "values": _values,
    "load": _set("loaded"),
    "related": _set("related"),
    "distinct": _set("distinct"),
    "distinct_on": _set("distinct_on"),
    "none": _set("nothing"),
    "slice": _slice,
    "lock": _set("lock"),
    "combine": _combine,
    "from": _set("source"),
    "join": _join,
}
