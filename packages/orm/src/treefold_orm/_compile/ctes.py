"""The CTEs that a query joins or selects from.

A CTE and its columns have generated names (`w0`, `c0`). One that a statement uses several times is
written once, by `cte_definitions`.

Example, `attach_ctes` joins the CTE under the alias that its columns are read from:

    >>> Article.objects.join(CTE(Writer.objects.filter(name="Ann").values("id")), id="writer")
    ... .values("title")
    WITH w0 (c0) AS (SELECT t2."id" FROM "writer" AS t2 WHERE t2."name" = ?) SELECT t0."title" FROM
    "article" AS t0 JOIN w0 AS t1 ON t1.c0 = t0."writer_id"
"""

from __future__ import annotations

from treefold_orm._compile.frame import Frame
from treefold_orm._compile.rules import build_condition, define_cte
from treefold_orm._compile.state import State, replay_steps
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL, StatementBuilder, join_sql
from treefold_orm._expressions.cte_nodes import Join, Source
from treefold_orm._expressions.nodes import SELECTED, CTENode, Key


def build_statement_frame(dialect: Dialect, key: Key) -> tuple[Frame, State]:
    """The frame of a new statement for a query, its CTEs attached, and the query's state."""
    state = replay_steps(key)
    frame = Frame(StatementBuilder(), dialect, state.meta)
    attach_ctes(frame, state)
    return frame, state


def attach_ctes(
    frame: Frame,
    state: State,
    *,
    shared: tuple[tuple[int, int, int], ...] = (),
    outer_param_offset: int = 0,
) -> None:
    """Attach the CTEs of a query to its frame; `shared` ones are those of the query at
    `outer_param_offset`.
    """
    if state.source is None and not state.joins:
        return
    same = frame.builder.same
    for here, size, there in shared:
        place = outer_param_offset + there
        # a shared place may be shared itself, three queries deep: all lead to the outermost one
        same[frame.offset + here, size] = same.get((place, size), place)

    def attach_to_frame(frame: Frame) -> None:
        if state.source is not None:
            frame.table = _ensure_cte_defined(frame, state.source, 0)
            frame.ctes[SELECTED] = frame.alias
            for i, (name, field) in enumerate(state.source.columns):
                frame.cte_columns[name] = CTENode(field, SELECTED, i)
        for place, added in enumerate(state.joins):
            _join_cte(frame, added, place)

    # kept for a copy of the frame, which needs aliases of its own
    frame.attach = attach_to_frame
    attach_to_frame(frame)


def _join_cte(frame: Frame, cte_join: Join, place: int) -> None:
    alias = frame.builder.generate_table_alias()
    name = _ensure_cte_defined(frame, cte_join.source, cte_join.base)
    frame.ctes[place] = alias
    tests = [build_condition(frame, node, right_frame=frame).sql for node in cte_join.on]
    kind = SQL("LEFT JOIN" if cte_join.optional else "JOIN")
    frame.joins.append(SQL("{} {} AS {} ON {}", kind, name, alias, join_sql(" AND ", tests)))
    for known, node in cte_join.names:
        if isinstance(node, CTENode):
            frame.cte_columns[known] = node


def _ensure_cte_defined(frame: Frame, source: Source, base: int) -> SQL:
    """The name of a CTE, which is written when it is first asked for."""
    builder = frame.builder
    start = frame.offset + base
    start = builder.same.get((start, source.size), start)
    # without parameters, a CTE is the same text wherever it starts
    key = (source, start if source.size else None)
    found = builder.ctes.get(key)
    if found is None:
        found = builder.ctes[key] = define_cte(frame, source, start)
    return found
