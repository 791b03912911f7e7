"""SELECT statements: rows, unions, the first row of each, and queries inside queries.

Example, a query inside a condition, and two queries one after the other:

    >>> Article.objects.filter(writer__in=Writer.objects.filter(name="Ann")).values("title")
    SELECT t0."title" FROM "article" AS t0 WHERE t0."writer_id" IN (SELECT t1."id" FROM "writer" AS
    t1 WHERE t1."name" = ?)

    >>> Article.objects.values("title").union(Article.objects.filter(views=1).values("title"))
    SELECT t0."title" FROM "article" AS t0 UNION SELECT t1."title" FROM "article" AS t1 WHERE
    t1."views" = ?
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any, LiteralString

from treefold_orm._base.errors import FieldError
from treefold_orm._compile import clauses
from treefold_orm._compile.ctes import attach_ctes
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.outputs import build_instance_columns, map_column_positions
from treefold_orm._compile.rules import (
    EXPRESSIONS,
    build_condition,
    build_expression,
    build_order_by_clause,
    build_order_by_term,
)
from treefold_orm._compile.state import State, replay_steps
from treefold_orm._compile.values import build_converted_value
from treefold_orm._dialects.sql import SQL, join_sql, render_integer
from treefold_orm._expressions import nodes
from treefold_orm._expressions.nodes import ColumnNode, ConvertNode, Key, OrderNode, SubqueryNode
from treefold_orm._expressions.ordering import resolve_order
from treefold_orm._expressions.scope import Scope

_COMBINE: dict[str, LiteralString] = {
    "union": "{} UNION {}",
    "union all": "{} UNION ALL {}",
    "intersect": "{} INTERSECT {}",
    "except": "{} EXCEPT {}",
}


def build_primary_key_select(frame: Frame, key: Key) -> SQL:
    """A query for the primary keys of a query's rows, for use inside the statement of `frame`."""
    return build_nested_select(
        frame, SubqueryNode(None, key, 0), keys_only=True, parent=frame.parent
    )


def build_nested_select(
    frame: Frame,
    node: SubqueryNode,
    *,
    exists: bool = False,
    keys_only: bool = False,
    width: int = 1,
    parent: Frame | None = None,
    alias_columns: bool = False,
) -> SQL:
    """A query inside the statement of `frame`: its one column (as `c0` with `alias_columns`, or
    `width` of them for a row), its keys, or only whether it has rows.
    """
    state = replay_steps(node.key)
    # the keys of the statement's own rows are no query inside it: OuterRef in them means the row
    # around the statement
    outer = parent if keys_only else frame
    inner = Frame(
        frame.builder, frame.dialect, state.meta, offset=frame.offset + node.base, parent=outer
    )
    attach_ctes(inner, state, shared=node.shared, outer_param_offset=frame.offset)
    clauses.configure_aggregation(inner, state, needs_few_rows=exists)
    if exists and not state.combined:
        columns = [SQL("1")]
        state.distinct = False
    else:
        columns = _build_nested_columns(inner, state, keys_only=keys_only)
        wanted = len(state.meta.keys) if keys_only else width
        if len(columns) != wanted and not exists:
            raise FieldError(
                "A query inside another one must give one column: use values() with one name"
                if wanted == 1
                else f"A query compared with a key must give its {wanted} columns, got "
                f"{len(columns)}; use values() with {wanted} names"
            )
    if alias_columns:
        columns = _alias_columns(inner, state, columns)
    return build_select(inner, state, columns, subquery_columns=True)


def build_subquery(
    frame: Frame,
    node: SubqueryNode,
    *,
    exists: bool = False,
    width: int = 1,
    converts: Sequence[ConvertNode] = (),
) -> SQL:
    """A query of `width` columns inside this one, in parentheses; `converts` are applied to each
    value, the last one first.
    """
    if not converts:
        return SQL("({})", build_nested_select(frame, node, exists=exists, width=width))
    inner = build_nested_select(frame, node, alias_columns=True)
    alias = frame.builder.generate_table_alias()
    value = SQL("{}.c0", alias)
    for convert in reversed(converts):
        value = build_converted_value(frame, value, convert)
    return SQL("(SELECT {} FROM ({}) AS {})", value, inner, alias)


def _build_nested_columns(frame: Frame, state: State, *, keys_only: bool = False) -> list[SQL]:
    if keys_only or state.rows == "instances":
        return [frame.build_own_column(key) for key in state.meta.keys]
    return clauses.build_output_columns(frame, state)


# -- parts ----------------------------------------------------------------------------------------


def build_select(
    frame: Frame, state: State, columns: list[SQL], *, subquery_columns: bool = False
) -> SQL:
    """The statement of a query, its columns written already.

    Combined queries, `distinct(fields)` and filters on windows have shapes of their own, in that
    order; all others are one SELECT.
    """
    if state.lock is not None:
        _check_lockable(state)
    if state.combined:
        return _build_set_operation(frame, state, columns, nested=subquery_columns)
    if state.distinct_on:
        return _build_distinct_on_select(frame, state, columns)
    if state.window_conditions:
        return _build_window_filtered_select(frame, state, columns)
    distinct = needs_distinct(state)
    head: SQL = SQL("SELECT DISTINCT {}" if distinct else "SELECT {}", join_sql(", ", columns))
    where = clauses.build_where_clause(frame, state)
    group = clauses.build_group_by_and_having(frame, state)
    if distinct and state.columns:
        order = _build_order_by_position(frame, state, len(columns))
    else:
        order = build_order_by_clause(frame, _choose_ordering(state))
    limit = _build_limit_offset(frame, state)
    lock = SQL("")
    if state.lock is not None:
        lock = frame.dialect.build_lock_clause(
            # without OF, joined rows would be locked as well, and PostgreSQL refuses to lock rows
            # that an outer join may leave out
            of=frame.alias,
            skip_locked=state.lock.skip_locked,
            nowait=state.lock.nowait,
            strength=state.lock.strength,
        )
    # FROM is written last: columns, conditions and the order ask for joins while they are written
    return SQL("{} FROM {}{}{}{}{}{}", head, frame.build_from(), where, group, order, limit, lock)


def _check_lockable(state: State) -> None:
    """Raise `FieldError` where a row of the result is not one row of the model: PostgreSQL refuses
    the statement, which ends the transaction.
    """
    if state.source is not None:
        raise FieldError("select_for_update() cannot lock the rows of a CTE: lock the model's")
    several = {
        "union(), intersection() or difference()": bool(state.combined),
        "distinct(fields)": bool(state.distinct_on),
        "distinct()": state.distinct and needs_distinct(state),
        "groups": state.grouped,
        "a filter on a window": bool(state.window_conditions),
        "a window": any(
            map(nodes.contains_window, (*state.output_expressions, *(state.order or ())))
        ),
    }
    for what, found in several.items():
        if found:
            raise FieldError(f"select_for_update() cannot follow {what}: lock by key")


def needs_distinct(state: State) -> bool:
    """Return True if the statement needs DISTINCT."""
    if not state.distinct:
        return False
    if state.rows == "instances":
        return bool(state.joins or state.source is not None)  # else each row comes once anyway
    held = [expr for _, expr in state.columns]
    if any(term.expr not in held for term in state.order or ()):
        raise FieldError(
            "distinct() values are ordered by values that they hold: add the others to values()"
        )
    return True


def _build_window_filtered_select(frame: Frame, state: State, columns: list[SQL]) -> SQL:
    # a window sees the rows that WHERE left, so its result can be tested one level further out only
    tests = [
        build_condition(frame, node, right_frame=frame).sql for node in state.window_conditions
    ]
    distinct = needs_distinct(state)
    by_position = distinct and bool(state.columns)
    ordering = () if by_position else _choose_ordering(state)
    # a table in FROM has no order to rely on, so that what orders the rows is selected along
    order = [build_expression(frame, term.expr) for term in ordering]
    named = [SQL("{} AS c{}", column, render_integer(i)) for i, column in enumerate(columns)]
    named += [SQL("({}) AS k{}", test, render_integer(i)) for i, test in enumerate(tests)]
    named += [SQL("{} AS o{}", term, render_integer(i)) for i, term in enumerate(order)]
    where = clauses.build_where_clause(frame, state)
    group = clauses.build_group_by_and_having(frame, state)
    inner = SQL("SELECT {} FROM {}{}{}", join_sql(", ", named), frame.build_from(), where, group)
    outer = frame.builder.generate_table_alias()
    picked = join_sql(", ", [SQL("{}.c{}", outer, render_integer(i)) for i in range(len(columns))])
    kept = join_sql(" AND ", [SQL("{}.k{}", outer, render_integer(i)) for i in range(len(tests))])
    # PostgreSQL orders DISTINCT rows by selected columns alone, and not by others that are equal
    selected = [column.text for column in columns] if distinct else []
    terms = [
        build_order_by_term(
            frame,
            term,
            SQL("{}.c{}", outer, render_integer(selected.index(value.text)))
            if value.text in selected
            else SQL("{}.o{}", outer, render_integer(i)),
        )
        for i, (term, value) in enumerate(zip(ordering, order, strict=True))
    ]
    if by_position:
        by = _build_order_by_position(frame, state, len(columns))
    else:
        by = SQL(" ORDER BY {}", join_sql(", ", terms)) if terms else SQL("")
    head = SQL("SELECT DISTINCT {}" if distinct else "SELECT {}", picked)
    limit = _build_limit_offset(frame, state)
    return SQL("{} FROM ({}) AS {} WHERE {}{}{}", head, inner, outer, kept, by, limit)


def _build_distinct_on_select(frame: Frame, state: State, columns: list[SQL]) -> SQL:
    if state.grouped or state.window_conditions:
        raise FieldError("distinct(fields) takes rows of the model: no groups, no window filters")
    fields = [build_expression(frame, node) for node in state.distinct_on]
    # one text for both clauses: PostgreSQL requires ORDER BY to begin with the same expressions,
    # and a sub-select that is written twice is two
    texts = dict(zip(state.distinct_on, fields, strict=True))
    terms = [
        build_order_by_term(frame, term, texts.get(term.expr) or build_expression(frame, term.expr))
        for term in _build_distinct_on_order(state)
    ]
    order = join_sql(", ", terms)
    where = clauses.build_where_clause(frame, state)
    if frame.dialect.distinct_on:
        parts = (join_sql(", ", fields), join_sql(", ", columns), frame.build_from(), where, order)
        head = SQL("SELECT DISTINCT ON ({}) {} FROM {}{} ORDER BY {}", *parts)
        return SQL("{}{}", head, _build_limit_offset(frame, state))
    named = [SQL("{} AS c{}", column, render_integer(i)) for i, column in enumerate(columns)]
    named.append(
        SQL("ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS r", join_sql(", ", fields), order)
    )
    # the outer SELECT orders by this number: what orders the rows may not be among its columns
    named.append(SQL("ROW_NUMBER() OVER (ORDER BY {}) AS o", order))
    inner = SQL("SELECT {} FROM {}{}", join_sql(", ", named), frame.build_from(), where)
    outer = frame.builder.generate_table_alias()
    picked = join_sql(", ", [SQL("{}.c{}", outer, render_integer(i)) for i in range(len(columns))])
    tail = SQL("{}.r = 1 ORDER BY {}.o{}", outer, outer, _build_limit_offset(frame, state))
    return SQL("SELECT {} FROM ({}) AS {} WHERE {}", picked, inner, outer, tail)


def build_partitioned_select(
    frame: Frame, state: State, columns: list[SQL], partition_by: SQL
) -> SQL:
    """The statement for the slice of a query among the rows of each value of `partition_by`.

    Author.objects.prefetch_related(Prefetch("posts", Post.objects.order_by("-views")[:2]))

    SELECT t2.c0, t2.c1 FROM (
        SELECT t1.id AS c0, t1.author_id AS c1, ROW_NUMBER() OVER (
            PARTITION BY t1.author_id ORDER BY t1.views DESC, t1.id) AS r
        FROM post AS t1 WHERE t1.author_id IN (...)) AS t2
    WHERE t2.r <= 2 ORDER BY t2.r
    """
    # the key decides between equal rows: without it, each execution could number them otherwise
    keys = [OrderNode(ColumnNode(key, (), key), descending=False) for key in state.meta.keys]
    terms = [
        build_order_by_term(frame, term, build_expression(frame, term.expr))
        for term in (*_choose_ordering(state), *keys)
    ]
    named = [SQL("{} AS c{}", column, render_integer(i)) for i, column in enumerate(columns)]
    order = join_sql(", ", terms)
    named.append(SQL("ROW_NUMBER() OVER (PARTITION BY {} ORDER BY {}) AS r", partition_by, order))
    where = clauses.build_where_clause(frame, state)
    group = clauses.build_group_by_and_having(frame, state)
    inner = SQL("SELECT {} FROM {}{}{}", join_sql(", ", named), frame.build_from(), where, group)
    outer = frame.builder.generate_table_alias()
    picked = join_sql(", ", [SQL("{}.c{}", outer, render_integer(i)) for i in range(len(columns))])
    place = SQL("{}.r", outer)
    tests: list[SQL] = []
    if state.offset is not None:
        start = frame.builder.bind_param(state.offset + frame.offset, None)
        tests.append(SQL("{} > {}", place, start))
        place = SQL("{} - {}", place, start)
    if state.limit is not None:
        limit = frame.builder.bind_param(state.limit + frame.offset, None)
        tests.append(SQL("{} <= {}", place, limit))
    parts = picked, inner, outer, join_sql(" AND ", tests), outer
    return SQL("SELECT {} FROM ({}) AS {} WHERE {} ORDER BY {}.r", *parts)


def _build_distinct_on_order(state: State) -> list[OrderNode]:
    fields = state.distinct_on
    terms = list(_choose_ordering(state))
    leading = [term.expr for term in terms[: len(set(fields))]]
    if state.order and set(leading) != set(fields):
        raise FieldError(
            "distinct(fields) takes the first row of each: order_by() must begin with the same "
            "fields"
        )
    if not state.order:
        terms = [*(OrderNode(node, descending=False) for node in fields), *terms]
    keys = [OrderNode(ColumnNode(key, (), key), descending=False) for key in state.meta.keys]
    return [*terms, *keys]


def _choose_ordering(state: State) -> tuple[OrderNode, ...]:
    if state.order is not None:
        return state.order
    # a group or a DISTINCT may not hold the columns that the model is ordered by
    if state.grouped or state.distinct or not state.meta.ordering:
        return ()
    return resolve_order(Scope(state.meta, []), state.meta.ordering)


def _build_limit_offset(frame: Frame, state: State) -> SQL:
    limit = (
        None if state.limit is None else frame.builder.bind_param(state.limit + frame.offset, None)
    )
    offset = None
    if state.offset is not None:
        offset = frame.builder.bind_param(state.offset + frame.offset, None)
    return frame.dialect.build_limit_clause(limit, offset)


def build_aliased_select(frame: Frame, state: State, columns: list[SQL]) -> SQL:
    """The statement of a query as a table whose columns are called c0, c1 and so on."""
    return build_select(frame, state, _alias_columns(frame, state, columns))


def _alias_columns(frame: Frame, state: State, columns: list[SQL]) -> list[SQL]:
    """The columns as c0, c1 and so on, where `build_select` does not name them itself."""
    if state.window_conditions or (state.distinct_on and not frame.dialect.distinct_on):
        return columns
    return [SQL("{} AS c{}", column, render_integer(i)) for i, column in enumerate(columns)]


def _build_set_operation(frame: Frame, state: State, columns: list[SQL], *, nested: bool) -> SQL:
    # ORDER BY and LIMIT behind the last part belong to the whole
    part_state = replace(state, combined=(), order=(), limit=None, offset=None)
    made = build_select(frame, part_state, columns)
    for part in state.combined:
        op, other = part.op, replay_steps(part.key)
        inner = frame.open_beside(other.meta, part.base)
        attach_ctes(inner, other)
        clauses.configure_aggregation(inner, other)
        if other.lock is not None:
            raise FieldError(f"{op.upper()} cannot take a locked query: lock by key")
        # slices of parts are refused before, so that no order of a part decides anything
        other.order = ()
        if not nested and _build_loaded_signature(other) != _build_loaded_signature(state):
            raise FieldError(
                f"{op.upper()} needs the same columns on both sides: use values(), only(), "
                "select_related() and annotate() on both alike"
            )
        # columns meet by place, and select_related("writer", "editor") has another order of them
        # than select_related("editor", "writer")
        other.related = state.related
        if nested or other.rows != "instances":
            parts = _build_nested_columns(inner, other)
        else:
            parts, _ = build_instance_columns(inner, other)
        if len(parts) != len(columns):
            raise FieldError(
                f"{op.upper()} needs the same columns on both sides: {len(columns)} and "
                f"{len(parts)}"
            )
        text = build_select(inner, other, parts, subquery_columns=nested)
        if other.combined:  # SQLite knows no parentheses here, and ranks the operations otherwise
            text = SQL("SELECT * FROM ({}) AS {}", text, frame.builder.generate_table_alias())
        made = SQL(_COMBINE[op], made, text)
    order = _build_order_by_position(frame, state, len(columns))
    return SQL("{}{}{}", made, order, _build_limit_offset(frame, state))


def _build_loaded_signature(state: State) -> tuple[Any, ...] | None:
    if state.rows != "instances":
        return None
    # "boss__country" loads the boss along, so that it is the same as "boss" and "boss__country"
    related = {
        step for path in state.related for step in accumulate(path.split("__"), "{}__{}".format)
    }
    # columns meet by place, so that annotations must have the same order on both sides
    return state.loaded, related, list(state.annotations)


def _build_order_by_position(frame: Frame, state: State, width: int) -> SQL:
    if not state.order:
        return SQL("")
    places = map_column_positions(state, width)
    terms: list[SQL] = []
    for term in state.order:
        if term.expr not in places:
            raise FieldError("A combined query is ordered by its own columns only")
        # By number: of combined queries, both databases take output columns alone, whose names may
        # repeat; of distinct ones, PostgreSQL takes a sub-select that is written twice for two.
        terms.append(build_order_by_term(frame, term, render_integer(places[term.expr] + 1)))
    return SQL(" ORDER BY {}", join_sql(", ", terms))


EXPRESSIONS[SubqueryNode] = build_subquery
