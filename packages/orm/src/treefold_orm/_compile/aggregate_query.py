"""Aggregates over all rows of a query: `aggregate()`.

Most are taken of the model's rows that the query selects. Where its rows are others (groups,
unions, distinct values, rows with windows) the query becomes a table in FROM, and aggregates take
its columns.

Example, groups counted and the largest count taken of them:

    >>> Writer.objects.values("born").annotate(n=Count("id")).aggregate(most=Max("n"))
    SQLite: SELECT MAX(t1.c1) FROM (SELECT t0."born" AS c0, COUNT(t0."id") AS c1 FROM "writer" AS t0
    GROUP BY t0."born") AS t1
    PostgreSQL: SELECT (MAX(t1.c1))::bigint FROM (SELECT t0."born" AS c0, (COUNT(t0."id"))::bigint
    AS c1 FROM "writer" AS t0 GROUP BY t0."born") AS t1
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import copy_with_changes
from treefold_orm._compile import clauses
from treefold_orm._compile.ctes import attach_ctes
from treefold_orm._compile.frame import Frame, Hops
from treefold_orm._compile.outputs import build_instance_columns, map_column_positions
from treefold_orm._compile.select import needs_distinct
from treefold_orm._compile.state import State, replay_steps
from treefold_orm._compile.writing import (
    build_aliased_select,
    build_expression,
    build_primary_key_select,
)
from treefold_orm._decode import hydrate
from treefold_orm._decode.plan import Plan, build_plan_from_statement
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL, StatementBuilder, join_sql, render_integer
from treefold_orm._expressions.nodes import (
    AggregateNode,
    ColumnNode,
    CTENode,
    Expr,
    Key,
    Node,
    OuterNode,
    PerRowNode,
    RankNode,
    SubqueryNode,
    WindowNode,
    collect_children,
    contains_window,
    map_child_nodes,
)
from treefold_orm._fields.base import AnyField

_OF_ONE_ROW = (ColumnNode, CTENode, OuterNode, RankNode, PerRowNode, WindowNode)


def build_aggregate_plan(
    dialect: Dialect, key: Key, aggregates: tuple[tuple[str, Expr], ...], *, given: int
) -> Plan:
    """The plan that returns one row of aggregates over a query's rows."""
    builder = StatementBuilder()
    state = replay_steps(key)
    for name, node in aggregates:
        _refuse_single_row_values(name, node)
    nodes = [node for _, node in aggregates]
    write = _build_direct_aggregate_select
    if _needs_subquery(state, nodes):
        write = _build_subquery_aggregate_select
    decode = hydrate.compile_dict_decoder(
        [n for n, _ in aggregates], [e.field for e in nodes], dialect.name
    )
    statement = write(Frame(builder, dialect, state.meta), state, key, nodes)
    return build_plan_from_statement(builder, statement, dialect, given=given, decode=decode)


def _refuse_single_row_values(name: str, node: Expr) -> None:
    """Raise `FieldError` for `aggregate(x=F("views"))`, of which there is a value in each row."""
    stack: list[Node] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, _OF_ONE_ROW):
            raise FieldError(
                f"aggregate({name}=...) takes aggregates of all rows, got a value of one row: wrap "
                "it, for example in Max()"
            )
        # an aggregate takes values of rows, and a subquery has rows of its own
        if not isinstance(item, (AggregateNode, SubqueryNode)):
            stack.extend(collect_children(item))


def _needs_subquery(state: State, nodes: list[Expr]) -> bool:
    """Return True if the rows of the query are others than those of the model."""
    values = [expr for _, expr in state.columns] if state.rows != "instances" else []
    # values("labels__word") has a row for each label of an article
    repeats_rows = any(
        isinstance(expr, ColumnNode) and any(hop.to_many for hop in expr.hops) for expr in values
    )
    merges_equal_values = state.distinct and bool(values)
    # a slice is chosen by its keys, and a row that a CTE has joined twice has one key
    slices_joined_rows = not state.is_where_only and (bool(state.joins) or state.source is not None)
    # no aggregate may contain a window: it has to be a column before
    aggregates_windows = any(contains_window(node) for node in nodes)
    if state.combined or state.grouped or repeats_rows or merges_equal_values:
        return True
    return slices_joined_rows or aggregates_windows


def _build_direct_aggregate_select(frame: Frame, state: State, key: Key, nodes: list[Expr]) -> SQL:
    """Aggregate the rows of the model that the query selects.

    Its conditions select them; where they do not suffice, as for a slice, the keys of its rows do:

        >>> Article.objects.order_by("views")[:3].aggregate(most=Max("views"))
        SQLite: SELECT MAX(t0."views") FROM "article" AS t0 WHERE t0."id" IN (SELECT t1."id" FROM
        "article" AS t1 ORDER BY t1."views" ASC LIMIT ?)
        PostgreSQL: SELECT (MAX(t0."views"))::integer FROM "article" AS t0 WHERE t0."id" IN (SELECT
        t1."id" FROM "article" AS t1 ORDER BY t1."views" ASC LIMIT $1)
    """
    attach_ctes(frame, state)

    def build_row_filter(frame: Frame) -> SQL:
        if state.is_where_only:
            return clauses.build_where_clause(frame, state)
        # a LIMIT beside the aggregates would cut their single row, not the rows they are taken of
        own = frame.build_own_column(state.meta.pk)
        return SQL(" WHERE {} IN ({})", own, build_primary_key_select(frame, key))

    clauses.configure_aggregation(frame, state)
    # conditions speak of single rows: they are written before the frame counts as grouped
    conditions = build_row_filter(frame)
    frame.grouped = True
    frame.distinct_over = lambda node: clauses.build_ungrouped_distinct_aggregate(
        frame, node, build_row_filter
    )
    values = [build_expression(frame, node) for node in nodes]
    return SQL("SELECT {} FROM {}{}", join_sql(", ", values), frame.build_from(), conditions)


# -- the query as a table -------------------------------------------------------------------------


class _DerivedTableFrame(Frame):
    """The query as a table in FROM: `t1` in the example, whose columns are c0, c1 and so on.

    `rows` is the frame inside, by which a column is added when an aggregate takes it: the table
    below has no c0 and no c1 until the two aggregates ask for them. It is None where no column
    can be added, as to the groups of the example.

        >>> Article.objects.annotate(place=Window(RowNumber(), order_by="views")).aggregate(
        ... last=Max("place"), name=Max("writer__name"))
        SQLite: SELECT MAX(t1.c0), MAX(t1.c1) FROM (SELECT ROW_NUMBER() OVER (ORDER BY t0."views"
        ASC NULLS LAST) AS c0, t2."name" AS c1 FROM "article" AS t0 JOIN "writer" AS t2 ON t2."id" =
        t0."writer_id") AS t1
        PostgreSQL: SELECT (MAX(t1.c0))::bigint, (MAX(t1.c1))::text FROM (SELECT (ROW_NUMBER() OVER
        (ORDER BY t0."views" ASC))::bigint AS c0, t2."name" AS c1 FROM "article" AS t0 JOIN "writer"
        AS t2 ON t2."id" = t0."writer_id") AS t1
    """

    def __init__(self, frame: Frame, places: dict[Expr, int], rows: Frame | None) -> None:
        super().__init__(frame.builder, frame.dialect, frame.meta, parent=frame.parent)
        self.grouped = True
        self.distinct_over = _refuse_distinct_aggregate
        self.rows = rows
        self.columns: list[SQL] = []
        self.known_values = {
            expr: self._build_column_reference(place) for expr, place in places.items()
        }

    def _build_column_reference(self, place: int) -> SQL:
        return SQL("{}.c{}", self.alias, render_integer(place))

    def _add_column(self, node: Expr, text: SQL) -> SQL:
        self.known_values[node] = self._build_column_reference(len(self.columns))
        self.columns.append(text)
        return self.known_values[node]

    def find_override(self, node: Expr) -> SQL | None:
        """The value of an expression that is a column of the table, a window among them."""
        found = self.known_values.get(node)
        # no aggregate may contain a window: it becomes a column one level further in
        if found is None and self.rows is not None and isinstance(node, (RankNode, WindowNode)):
            return self._add_column(node, build_expression(self.rows, node))
        return found

    def build_column(self, hops: Hops, field: AnyField) -> SQL:
        """A column of the model's rows, as a column of the table."""
        node = ColumnNode(field, hops, field)
        found = self.known_values.get(node)
        if found is not None:
            return found
        if self.rows is None:
            path = "__".join([*(hop.name for hop in hops), field.name])
            raise FieldError(
                f"aggregate() after values(), distinct() and union() takes what these rows hold, "
                f"got {path!r}: add it to values()"
            )
        return self._add_column(node, self.rows.build_column(hops, field))

    def build_cte_column(self, node: CTENode) -> SQL:
        """A column of a CTE, as a column of the table."""
        found = self.known_values.get(node)
        if found is None and self.rows is not None:
            return self._add_column(node, self.rows.build_cte_column(node))
        return super().build_cte_column(node) if found is None else found


def _refuse_distinct_aggregate(_: AggregateNode) -> SQL:
    raise FieldError(
        "aggregate() cannot count the distinct rows of a relation after values(), union() or a "
        "window: make a CTE of the query and filter the relation's rows by it"
    )


def _build_subquery_aggregate_select(
    frame: Frame, state: State, key: Key, nodes: list[Expr]
) -> SQL:
    """Aggregate the rows of the query as a table, as in the example of this file."""
    attach_ctes(frame, state)
    if not state.is_sliced and not state.distinct_on:
        state = replace(state, order=())
    clauses.configure_aggregation(frame, state)
    # no column can be added to groups, unions and distinct values: it would make others of them
    is_closed = bool(state.combined or state.grouped or (state.distinct and state.columns))
    columns, places = _place_inner_columns(frame, state, is_closed=is_closed)
    table = _DerivedTableFrame(frame, places, None if is_closed else frame)
    table.columns = columns
    # written before the table, to which they add the columns that they need
    values = [build_expression(table, _strip_paths_of_table_columns(table, node)) for node in nodes]
    outer = table.build_from_with_subquery(
        # Count("*") asks for no column, and SQLite has no SELECT without any
        build_aliased_select(frame, state, table.columns or [SQL("1")])
    )
    return SQL("SELECT {} FROM {}", join_sql(", ", values), outer)


def _place_inner_columns(
    frame: Frame, state: State, *, is_closed: bool
) -> tuple[list[SQL], dict[Expr, int]]:
    """The columns that the table has from the start, and the place of each expression in them.

    In the example of this file the columns are `t0."born"` and `COUNT(t0."id")`, which become `c0`
    and `c1`, and the places are `{born: 0, Count("id"): 1}`: `Max("n")` is written as `MAX(t1.c1)`.

    | The query selects | Columns from the start |
    |---|---|
    | `values()` | its values |
    | instances of a union, or distinct ones | all that make up an instance, annotations last |
    | other instances | none: each is added as it is asked for |
    """
    if state.rows != "instances":
        columns = clauses.build_output_columns(frame, state)
        return columns, {expr: i for i, expr in enumerate(state.derived_table_expressions)}
    if not is_closed and not needs_distinct(state):
        return [], {}
    columns = build_instance_columns(frame, state)[0]
    first_annotation = len(columns) - len(state.annotations)
    places = map_column_positions(state, len(columns))
    places = {node: place for node, place in places.items() if place < first_annotation}
    # annotations in the types that all parts of a union share
    for place, expr in enumerate(state.derived_table_expressions, start=first_annotation):
        places[expr] = place
    return columns, places


def _strip_paths_of_table_columns(table: _DerivedTableFrame, node: Any) -> Any:
    if isinstance(node, AggregateNode):
        # related rows that the query has joined already are rows of the table
        return copy_with_changes(node, hops=()) if node.arg in table.known_values else node
    return map_child_nodes(node, lambda child: _strip_paths_of_table_columns(table, child))
