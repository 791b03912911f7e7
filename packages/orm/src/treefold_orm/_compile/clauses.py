"""The clauses of one SELECT: conditions before and after grouping, the groups, and what is taken of
them.

Example, the condition on a column before the groups and the one on an aggregate after them:

    >>> Article.objects.filter(views__gt=5).values("writer_id").annotate(n=Count("id"))
    ... .filter(n__gt=2)
    SQLite: SELECT t0."writer_id", COUNT(t0."id") FROM "article" AS t0 WHERE t0."views" > ? GROUP BY
    t0."writer_id" HAVING COUNT(t0."id") > ?
    PostgreSQL: SELECT t0."writer_id", (COUNT(t0."id"))::bigint FROM "article" AS t0 WHERE
    t0."views" > $1 GROUP BY t0."writer_id" HAVING (COUNT(t0."id"))::bigint > ($2)::bigint
"""

from __future__ import annotations

from collections.abc import Callable

from treefold_orm._compile.aggregates import build_distinct_related_clauses
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.grouping import list_group_terms, refuse_ungrouped_values
from treefold_orm._compile.rules import (
    build_column_with_joins,
    build_condition,
    build_expression,
    join_conditions,
)
from treefold_orm._compile.state import State, is_selective, split_mixed_conjunctions
from treefold_orm._dialects.sql import SQL, join_sql, render_integer
from treefold_orm._expressions import nodes
from treefold_orm._expressions.conversion import build_representation_key
from treefold_orm._fields.base import AnyField


def build_where_clause(frame: Frame, state: State, *, having: bool = False) -> SQL:
    """The WHERE clause of a state, or with `having` its HAVING clause, with a leading space."""
    parts: list[SQL] = []
    for node in split_mixed_conjunctions(state.where):
        # a window is computed after WHERE: `select.py` tests its result one level further out
        if nodes.contains_window(node):
            continue
        if state.grouped and nodes.contains_group_aggregate(node) != having:
            continue
        parts.append(build_condition(frame, node, right_frame=frame).sql)
    # `none()` is a statement like others: a union takes its columns, and no row of it
    if state.nothing and not having:
        parts.append(SQL("1 = 0"))
    if not parts:
        return SQL("")
    return SQL(" HAVING {}" if having else " WHERE {}", join_conditions(" AND ", parts))


def build_group_by_and_having(frame: Frame, state: State) -> SQL:
    """The GROUP BY and HAVING clauses of a state, with a leading space."""
    if not state.grouped:
        return SQL("")
    terms = [build_output_column(frame, expr) for expr in list_group_terms(state)]
    having = build_where_clause(frame, state, having=True)
    if not terms:
        return having
    return SQL(" GROUP BY {}{}", join_sql(", ", terms), having)


def configure_aggregation(frame: Frame, state: State, *, needs_few_rows: bool = False) -> None:
    """Tell a frame how aggregates are taken in it; with `needs_few_rows` the statement reads few of
    its rows, as for `get()` and in EXISTS.

    Related rows are grouped and joined for all rows at once, or aggregated for each row in a
    sub-select: the two examples of `aggregates.py`. The first is faster where every row is needed,
    and reads all related rows for nothing where few are.
    """
    frame.grouped = state.grouped
    frame.needs_all_rows = not (
        needs_few_rows or state.selects_few_rows or state.joins or state.source is not None
    )
    tests = split_mixed_conjunctions(state.where)
    kept = [node for node in tests if not nodes.contains_aggregate_or_window(node)]
    if kept and (frame.dialect.name == "sqlite" or any(map(is_selective, kept))):
        # Where conditions leave few rows, looking up what belongs to each is several times faster;
        # where they leave all, half as fast. SQLite looks up faster in any case.
        frame.needs_all_rows = False
    if state.grouped:
        refuse_ungrouped_values(state)
        frame.distinct_over = lambda node: _join_distinct_group_aggregate(frame, state, node)
        _join_lateral_group_subqueries(frame, state)


def _join_lateral_group_subqueries(frame: Frame, state: State) -> None:
    """Move the subqueries that a query groups by to FROM, on PostgreSQL.

    It takes the same subquery in SELECT and in GROUP BY for two, and would refuse the first as
    not grouped; a column of FROM is one:

        >>> Writer.objects.annotate(wrote=Exists(Article.objects.filter(writer=OuterRef("id"))))
        ... .values("wrote").annotate(n=Count("id"))
        SQLite: SELECT (EXISTS (SELECT 1 FROM "article" AS t1 WHERE t1."writer_id" = t0."id")),
        COUNT(t0."id") FROM "writer" AS t0 GROUP BY (EXISTS (SELECT 1 FROM "article" AS t2 WHERE
        t2."writer_id" = t0."id"))
        PostgreSQL: SELECT t2.v, (COUNT(t0."id"))::bigint FROM "writer" AS t0 CROSS JOIN LATERAL
        (SELECT (EXISTS (SELECT 1 FROM "article" AS t1 WHERE t1."writer_id" = t0."id")) AS v) AS t2
        GROUP BY t2.v
    """
    if frame.dialect.name != "postgres":
        return
    for expr in list_group_terms(state):
        text = build_output_column(frame, expr)
        if _may_have_subquery(text):
            alias = frame.builder.generate_table_alias()
            # joins that the text has asked for stand before it: LATERAL sees what is on its left
            frame.joins.append(SQL("CROSS JOIN LATERAL (SELECT {} AS v) AS {}", text, alias))
            frame.known_values[expr] = SQL("{}.v", alias)


def _may_have_subquery(sql: SQL) -> bool:
    # by the text: related aggregates and conditions on JSON become subqueries, which no node shows.
    # A column whose name holds the word gets a join that it does not need, and the same result.
    return "SELECT" in sql.text


def build_ungrouped_distinct_aggregate(
    frame: Frame, node: nodes.AggregateNode, where: Callable[[Frame], SQL]
) -> SQL:
    """A distinct aggregate of related rows over all rows that `where` leaves.

    A sub-select that starts at all of these rows once more, so that a value that two of them have
    counts once, and other aggregates beside it see each row once:

        >>> Writer.objects.filter(name="Ann").aggregate(
        ... n=Count("articles__title", distinct=True), last=Max("name"))
        SQLite: SELECT (SELECT COUNT(DISTINCT t2."title") FROM "writer" AS t1, "article" AS t2 WHERE
        t1."name" = ? AND t2."writer_id" = t1."id"), MAX(t0."name") FROM "writer" AS t0 WHERE
        t0."name" = ?
        PostgreSQL: SELECT ((SELECT (COUNT(DISTINCT t2."title"))::bigint FROM "writer" AS t1,
        "article" AS t2 WHERE t1."name" = $1 AND t2."writer_id" = t1."id"))::bigint,
        (MAX(t0."name"))::text FROM "writer" AS t0 WHERE t0."name" = $1
    """
    base = _duplicate_frame(frame)
    value, source, tests = build_distinct_related_clauses(base, node)
    where_base = where(base)
    tail = SQL("{} AND {}" if where_base.text else "{} WHERE {}", where_base, tests)
    return SQL("(SELECT {} FROM {}, {}{})", value, base.build_from(), source(), tail)


def _join_distinct_group_aggregate(frame: Frame, state: State, node: nodes.AggregateNode) -> SQL:
    """A distinct aggregate of related rows in a grouped query.

    It is taken of each group in a query of its own, which is joined to the rows of the group by
    the values `g0`, `g1` and so on that they are grouped by. Joined directly, related rows would
    multiply the rows that the group's other aggregates count:

        >>> Writer.objects.values("born").annotate(n=Count("articles", distinct=True))
        SQLite: SELECT t0."born", COALESCE(MAX(t3.v), 0) FROM "writer" AS t0 LEFT JOIN (SELECT
        t1."born" AS g0, COUNT(DISTINCT t2."id") AS v FROM "writer" AS t1, "article" AS t2 WHERE
        t2."writer_id" = t1."id" GROUP BY t1."born") AS t3 ON t3.g0 IS t0."born" GROUP BY t0."born"
        PostgreSQL: SELECT t0."born", (COALESCE(MAX(t3.v), 0))::bigint FROM "writer" AS t0 LEFT JOIN
        (SELECT t1."born" AS g0, (COUNT(DISTINCT t2."id"))::bigint AS v FROM "writer" AS t1,
        "article" AS t2 WHERE t2."writer_id" = t1."id" GROUP BY t1."born") AS t3 ON t3.g0 IS NOT
        DISTINCT FROM t0."born" GROUP BY t0."born"
    """
    base = _duplicate_frame(frame)
    wanted = list_group_terms(state)
    if state.grouped:
        _join_lateral_group_subqueries(base, state)
    value, source, tests = build_distinct_related_clauses(base, node)
    terms = [build_output_column(base, expr) for expr in wanted]
    where_base = build_where_clause(base, state)
    tail = SQL("{} AND {}" if where_base.text else "{} WHERE {}", where_base, tests)
    named = [SQL("{} AS g{}", term, render_integer(i)) for i, term in enumerate(terms)]
    inner = SQL(
        "SELECT {} AS v FROM {}, {}{}{}",
        join_sql(", ", [*named, value]),
        base.build_from(),
        source(),
        tail,
        SQL(" GROUP BY {}", join_sql(", ", terms)) if terms else SQL(""),
    )
    alias = frame.builder.generate_table_alias()
    same = [
        # the group of NULL finds its values, too: `=` would lose them
        frame.dialect.build_null_safe_equality(
            SQL("{}.g{}", alias, render_integer(i)), build_output_column(frame, expr)
        )
        for i, expr in enumerate(wanted)
    ] or [SQL("1 = 1")]
    frame.joins.append(SQL("LEFT JOIN ({}) AS {} ON {}", inner, alias, join_sql(" AND ", same)))
    # each row of the group has joined the same value; GROUP BY asks for an aggregate of it
    found = SQL("MAX({}.v)", alias)
    return SQL("COALESCE({}, 0)", found) if node.name == "count" else found


def _duplicate_frame(frame: Frame) -> Frame:
    """The rows of a frame once more, its CTEs included."""
    base = frame.open_beside(frame.meta)
    base.needs_all_rows = frame.needs_all_rows
    # aliases of joined CTEs belong to one FROM: the copy joins them under its own
    if frame.attach is not None:
        frame.attach(base)
    return base


def build_output_columns(frame: Frame, state: State) -> list[SQL]:
    """The output columns of a state, in the types that parts of a combined query share."""
    pairs = zip(state.output_expressions, state.output_fields, strict=True)
    return [
        convert_to_common_type(frame, build_output_column(frame, expr), expr.field, field)
        for expr, field in pairs
    ]


def convert_to_common_type(
    frame: Frame, value: SQL, source: AnyField | None, target: AnyField | None
) -> SQL:
    """A column of one part of a combined query in the type of all parts."""
    if (
        source is None
        or target is None
        or build_representation_key(source) == build_representation_key(target)
    ):
        return value
    return frame.dialect.build_conversion(value, source, target, "value")


def build_output_column(frame: Frame, expr: nodes.Expr) -> SQL:
    """An output column, which may be reached over to-many relations: one row for each."""
    if isinstance(expr, nodes.ColumnNode):
        return frame.find_override(expr) or build_column_with_joins(frame, expr)
    return build_expression(frame, expr)
