"""Aggregates to SQL.

Aggregates over a to-many relation never multiply each other: where all rows are needed, the related
rows are grouped by their owner once and joined; where few are, each row has a correlated
sub-select. In a group they are aggregated once more.

Example, `build_aggregate` for all writers, and for the few that a filter selects:

    >>> Writer.objects.annotate(n=Count("articles")).values("name", "n")
    SQLite: SELECT t0."name", COALESCE(t2.v0, 0) FROM "writer" AS t0 LEFT JOIN (SELECT
    t1."writer_id" AS g, COUNT(t1."id") AS v0 FROM "article" AS t1 GROUP BY t1."writer_id") AS t2 ON
    t2.g = t0."id"
    PostgreSQL: SELECT t0."name", (COALESCE(t2.v0, 0))::bigint FROM "writer" AS t0 LEFT JOIN (SELECT
    t1."writer_id" AS g, COUNT(t1."id") AS v0 FROM "article" AS t1 GROUP BY t1."writer_id") AS t2 ON
    t2.g = t0."id"

    >>> Writer.objects.filter(name="Ann").annotate(n=Count("articles")).values("name", "n")
    SQLite: SELECT t0."name", (SELECT COUNT(t1."id") FROM "article" AS t1 WHERE t1."writer_id" =
    t0."id") FROM "writer" AS t0 WHERE t0."name" = ?
    PostgreSQL: SELECT t0."name", ((SELECT COUNT(t1."id") FROM "article" AS t1 WHERE t1."writer_id"
    = t0."id"))::bigint FROM "writer" AS t0 WHERE t0."name" = $1
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager, nullcontext
from typing import LiteralString, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._compile.frame import Frame, Hops
from treefold_orm._compile.placing import ComparisonInFrame, find_first_to_many
from treefold_orm._compile.rules import (
    EXPRESSIONS,
    InFrame,
    JoinedColumn,
    build_condition,
    build_expression,
)
from treefold_orm._dialects.sql import SQL, join_sql, render_integer
from treefold_orm._expressions import nodes

# The aggregate over all rows, where a subquery has aggregated the related rows of each row.
# Aggregates without an entry are computed over all related rows in one step.
_OUTER: dict[str, LiteralString] = {
    "count": "COALESCE(SUM({}), 0)",
    "sum": "SUM({})",
    "min": "MIN({})",
    "max": "MAX({})",
}
# nodes that belong to the row that has related rows, whatever relations stand below them
_OF_THE_OWNER = (
    nodes.AggregateNode,
    nodes.CTENode,
    nodes.ExistsNode,
    nodes.OuterNode,
    nodes.RankNode,
    nodes.RelatedNode,
    nodes.PerRowNode,
    nodes.SearchNode,
    nodes.SubqueryNode,
    nodes.WindowNode,
)


def build_ungrouped_expression(frame: Frame, node: nodes.PerRowNode) -> SQL:
    """The value that an annotation over aggregates has for each row."""
    with suspend_grouping(frame):
        return build_expression(frame, node.node)


def build_aggregate(frame: Frame, node: nodes.AggregateNode) -> SQL:
    """An aggregate: over the group's rows, over a relation's rows, or over both."""
    split = find_first_to_many(node.hops)
    if split is None and not frame.grouped:  # the one row that points to this one, or none
        split = next((i for i, hop in enumerate(node.hops) if hop.kind == "reverse"), None)
    if split is None:
        if not frame.grouped:
            raise FieldError(
                f"{node.name.capitalize()} has nothing to aggregate here: name a to-many "
                "relation, or call values() first"
            )
        return frame.dialect.cast_function_result(build_own_rows_aggregate(frame, node), node.field)
    prefix = node.hops[: split + 1]
    if not frame.grouped:
        made = _build_relation_aggregate(frame, node, prefix)
        return frame.dialect.cast_function_result(made, node.field)
    made = _build_related_aggregate_in_group(frame, node, prefix)
    return frame.dialect.cast_function_result(made, node.field)


@contextmanager
def suspend_grouping(frame: Frame) -> Generator[None]:
    """Write what belongs to single rows of a frame: what an aggregate takes, or a row's own
    aggregates.
    """
    grouped, frame.grouped = frame.grouped, False
    try:
        yield
    finally:
        frame.grouped = grouped


def build_own_rows_aggregate(
    frame: Frame,
    node: nodes.AggregateNode,
    over_clause: SQL | None = None,
    *,
    may_be_empty: bool = False,
) -> SQL:
    """An aggregate over the rows of the frame itself or of its group, or of a window:
    `over_clause`; `may_be_empty` says whether a frame of it may have no row.
    """
    tail = over_clause or SQL("")

    def build_argument(given: nodes.Expr) -> SQL:
        return build_expression(frame, given)

    # a window sees the rows that are left, which are groups in a grouped query
    with suspend_grouping(frame) if over_clause is None else nullcontext():
        where = None
        if node.where is not None:
            where = build_condition(frame, node.where, right_frame=frame).sql
        if over_clause is not None and node.arg is not None:
            args = [build_argument(arg) for arg in (node.arg, *node.args)]
            build = frame.dialect.build_window_aggregate
            made = build(node.name, args, where=where, over=over_clause, empty=may_be_empty)
            if made is not None:
                return made
        if where is not None:
            tail = SQL(" FILTER (WHERE {}){}", where, tail)
        return _build_aggregate_call(frame, node, build_argument, tail)


def _build_aggregate_call(
    frame: Frame,
    node: nodes.AggregateNode,
    build_argument: Callable[[nodes.Expr], SQL],
    trailing_clauses: SQL | None = None,
) -> SQL:
    """The aggregate of the expressions from `build_argument`; `trailing_clauses` are the clauses
    after each call.
    """
    value = SQL("*") if node.arg is None else build_argument(node.arg)
    after = trailing_clauses or SQL("")
    if node.name in {"string_agg", "array_agg"}:
        terms = [(build_argument(term.expr), term) for term in node.order]
        args = [build_argument(arg) for arg in node.args]
        made = frame.dialect.build_ordered_aggregate(
            node.name, [value, *args], terms, distinct=node.distinct
        )
        return SQL("{}{}", made, after)

    def call_aggregate(name: str) -> SQL:
        return SQL("{}{}", frame.dialect.aggregate(name, value, distinct=node.distinct), after)

    return _build_type_safe_aggregate(frame, node, call_aggregate)


def _build_type_safe_aggregate(
    frame: Frame, node: nodes.AggregateNode, build_call: Callable[[str], SQL]
) -> SQL:
    given = None if node.arg is None else node.arg.field
    match node.name:
        case "avg":
            return frame.dialect.numbers.build_mean(
                build_call, given, node.field, distinct=node.distinct
            )
        case "sum":
            return frame.dialect.numbers.build_checked_sum(build_call("sum"), node.field)
        case _:
            return build_call(node.name)


def _build_related_aggregate_in_group(frame: Frame, node: nodes.AggregateNode, prefix: Hops) -> SQL:
    if node.name in {"bool_and", "bool_or"}:
        return frame.dialect.aggregate(
            node.name, _build_relation_aggregate(frame, node, prefix), distinct=False
        )
    whole = node.distinct or not (node.name in _OUTER or node.name == "avg")
    # a value that two rows of the group have would count twice in a sum over both
    if whole and frame.distinct_over is not None:
        return frame.distinct_over(node)
    if node.name != "avg":
        return _build_type_safe_aggregate(
            frame,
            node,
            lambda name: SQL(_OUTER[name], _build_relation_aggregate(frame, node, prefix)),
        )

    def build_outer_aggregate(name: str) -> SQL:
        if name == "avg":
            # a mean of means would weigh a single related row like the hundred of another row
            return SQL(
                "SUM({}) * 1.0 / NULLIF(SUM({}), 0)",
                build_per_row_aggregate("sum"),
                build_per_row_aggregate("count"),
            )
        return SQL("SUM({})", build_per_row_aggregate(name))

    def build_per_row_aggregate(name: str) -> SQL:
        made = nodes.AggregateNode(None, name, node.arg, False, node.where, node.hops)
        return _build_relation_aggregate(frame, made, prefix)

    return _build_type_safe_aggregate(frame, node, build_outer_aggregate)


# -- related rows ---------------------------------------------------------------------------------


def _build_relation_aggregate(frame: Frame, node: nodes.AggregateNode, prefix: Hops) -> SQL:
    if frame.needs_all_rows and frame.joinable and _depends_only_on_relation(node, prefix):
        return _join_grouped_aggregate(frame, node, prefix)
    inner, correlation = frame.build_correlated_frame(prefix[-1], prefix[:-1])
    inner.counts_rows = True
    call = _build_related_aggregate_call(frame, inner, node, prefix)
    tests = join_sql(" AND ", [correlation, *_build_aggregate_filter(frame, inner, node, prefix)])
    return SQL("(SELECT {} FROM {} WHERE {})", call, inner.build_from(), tests)


def _build_related_aggregate_call(
    frame: Frame, inner: Frame, node: nodes.AggregateNode, prefix: Hops
) -> SQL:
    def build_argument(given: nodes.Expr) -> SQL:
        return build_expression(
            frame, cast("nodes.Expr", _rebind_to_related_row(inner, given, prefix, node.hops))
        )

    with suspend_grouping(frame):
        return _build_aggregate_call(inner, node, build_argument)


def _build_aggregate_filter(
    frame: Frame, inner: Frame, node: nodes.AggregateNode, prefix: Hops
) -> list[SQL]:
    if node.where is None:
        return []
    with suspend_grouping(frame):
        seen = _rebind_to_related_row(inner, node.where, prefix, node.hops)
        return [build_condition(frame, seen, right_frame=frame).sql]


def _rebind_to_related_row(
    inner: Frame, node: nodes.Node, prefix: Hops, aggregated_path: Hops
) -> nodes.Node:
    """The node with what lies over `prefix` taken from the row in `inner`, and what lies over more
    of `aggregated_path`, the relations that are aggregated, from the row that is joined to it.
    """
    if isinstance(node, nodes.ColumnNode):
        if node.hops[: len(prefix)] != prefix:
            return node
        rest = node.hops[len(prefix) :]
        return InFrame(node.field, inner, JoinedColumn(node.field, rest, node.column))
    if isinstance(node, nodes.Compare):
        right = None
        if node.right is not None:
            right = _rebind_to_related_row(inner, node.right, prefix, aggregated_path)
        compare = nodes.Compare(node.lookup, cast("nodes.Expr | None", right), node.field)
        hops = node.lookup.hops
        if hops[: len(prefix)] != prefix:
            return compare
        joined = _count_common_leading_relations(hops, aggregated_path) - len(prefix)
        return ComparisonInFrame(inner, compare, hops[len(prefix) :], joined)
    if isinstance(node, _OF_THE_OWNER):
        return node
    return nodes.map_child_nodes(
        node, lambda child: _rebind_to_related_row(inner, child, prefix, aggregated_path)
    )


def _count_common_leading_relations(hops: Hops, way: Hops) -> int:
    """How many relations two ways have in common from their start."""
    same = (i for i, (one, other) in enumerate(zip(hops, way, strict=False)) if one is not other)
    return next(same, min(len(hops), len(way)))


def build_distinct_related_clauses(
    base: Frame, node: nodes.AggregateNode
) -> tuple[SQL, Callable[[], SQL], SQL]:
    """A distinct aggregate of rows related to many rows of `base`: its value, what it is taken
    from (to be called last: it collects joins), and the condition that ties both together.
    """
    prefix = node.hops[: (find_first_to_many(node.hops) or 0) + 1]
    inner, correlation = base.build_correlated_frame(prefix[-1], prefix[:-1])
    call = _build_related_aggregate_call(base, inner, node, prefix)
    value = base.dialect.cast_function_result(call, node.field)
    tests = [correlation, *_build_aggregate_filter(base, inner, node, prefix)]
    return value, inner.build_from, join_sql(" AND ", tests)


# -- related rows of every row --------------------------------------------------------------------


@frozen_record
class _RelatedRowsByOwner(Record):
    """Related rows grouped by the row they belong to, with one column for each aggregate.

    In the first example `alias` is `t2`, `inner` the frame of `article AS t1`, `key` is
    `t1."writer_id"` and `owner` `t0."id"`; `columns` are the aggregates, here one, and `tests` the
    conditions on related rows, here none.
    """

    alias: SQL
    inner: Frame
    key: SQL
    owner: SQL
    tests: list[SQL]
    columns: list[SQL]

    def build_grouped_left_join(self) -> SQL:
        """The LEFT JOIN, once all columns are known."""
        columns = [SQL("{} AS v{}", text, render_integer(i)) for i, text in enumerate(self.columns)]
        where = SQL(" WHERE {}", join_sql(" AND ", self.tests)) if self.tests else SQL("")
        return SQL(
            "LEFT JOIN (SELECT {} AS g, {} FROM {}{} GROUP BY {}) AS {} ON {}.g = {}",
            self.key,
            join_sql(", ", columns),
            self.inner.build_from(),
            where,
            self.key,
            self.alias,
            self.alias,
            self.owner,
        )


def _depends_only_on_relation(node: nodes.AggregateNode, prefix: Hops) -> bool:
    """Return True if an aggregate takes nothing but what lies over `prefix`."""
    stack: list[nodes.Node | None] = [node.arg, node.where, *node.order]
    while stack:
        item = stack.pop()
        if item is None:
            continue
        hops = item.hops if isinstance(item, nodes.ColumnNode) else None
        if isinstance(item, nodes.Compare):
            hops = item.lookup.hops
        # a grouped table in FROM cannot read the row outside: SQLite has no LATERAL
        if isinstance(item, _OF_THE_OWNER) or (hops is not None and hops[: len(prefix)] != prefix):
            return False
        stack.extend(nodes.collect_children(item))
    return True


def _join_grouped_aggregate(frame: Frame, node: nodes.AggregateNode, prefix: Hops) -> SQL:
    # aggregates that take the same related rows share one join; others would multiply them
    rows = (node.hops, node.where)
    group: _RelatedRowsByOwner | None = frame.aggregated.get(rows)
    if group is None:
        owner = frame.build_referenced_column(prefix[-1], prefix[:-1])
        inner, key = frame.build_related_frame(prefix[-1])
        inner.counts_rows = True
        tests = _build_aggregate_filter(frame, inner, node, prefix)
        group = _RelatedRowsByOwner(
            frame.builder.generate_table_alias(), inner, key, owner, tests, columns=[]
        )
        frame.aggregated[rows] = group
        # as a function: further aggregates add columns to the join until FROM is written
        frame.joins.append(group.build_grouped_left_join)
    call = _build_related_aggregate_call(frame, group.inner, node, prefix)
    texts = [column.text for column in group.columns]
    if call.text not in texts:
        group.columns.append(call)
        texts.append(call.text)
    value = SQL("{}.v{}", group.alias, render_integer(texts.index(call.text)))
    # a row without related ones has no group to join, which is a count of 0
    return SQL("COALESCE({}, 0)", value) if node.name == "count" else value


EXPRESSIONS.update(
    {nodes.AggregateNode: build_aggregate, nodes.PerRowNode: build_ungrouped_expression}
)
