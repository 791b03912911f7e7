"""How nodes become SQL: by a rule for each class of node, which the modules of this room add.

`values`, `conditions`, `aggregates`, `windows` and `cte_definitions` hold the rules and call each
other through the functions here, so that a tree may nest in any way. `writing.py` loads them all.

Example, the tree is a comparison of a column with a sum, which is a column and a parameter; each
class of node has its rule, and arithmetic is checked where the database would round or overflow:

    >>> Article.objects.filter(views__gt=F("writer_id") + 1).values("id")
    SQLite: SELECT t0."id" FROM "article" AS t0 WHERE t0."views" > treefold_whole((t0."writer_id" +
    ?))
    PostgreSQL: SELECT t0."id" FROM "article" AS t0 WHERE t0."views" > ((t0."writer_id")::bigint +
    ($1)::bigint)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, LiteralString, NamedTuple

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import frozen_record
from treefold_orm._compile.frame import Frame
from treefold_orm._dialects.functions import build_order_term
from treefold_orm._dialects.sql import SQL, join_sql
from treefold_orm._expressions.cte_nodes import Source
from treefold_orm._expressions.nodes import ColumnNode, Expr, Node, OrderNode


class ConditionSQL(NamedTuple):
    """The SQL of a condition, and whether it can be NULL, which is neither true nor false.

    WHERE and EXISTS take NULL for no match and need `sql` alone. NOT and a condition as a value
    have to decide: `NOT NULL` is NULL, and would lose a row that the condition does not hold for.
    """

    sql: SQL
    nullable: bool


MAX_CHAIN = 250
"""Terms in one pair of parentheses: a quarter of the 1,000 levels that SQLite takes in an
expression.
"""

EXPRESSIONS: dict[type[Expr], Callable[[Frame, Any], SQL]] = {}
"""The SQL of an expression, by its class."""

CONDITIONS: dict[type[Node], Callable[[Frame, Any, Frame], ConditionSQL]] = {}
"""The SQL of a condition, by its class: columns are found in the first frame, right sides in the
second.
"""

DEFINITIONS: dict[type[Source], Callable[[Frame, Any, int], SQL]] = {}
"""A function that writes a CTE, its parameters starting at a place, and returns its name."""


def build_expression(frame: Frame, node: Expr) -> SQL:
    """Return the SQL of one expression node."""
    # read from FROM where it stands there: PostgreSQL takes the same subquery in SELECT and in
    # GROUP BY for two values
    found = frame.find_override(node)
    if found is not None:
        return found
    # by the exact class: `JoinedColumn` is a ColumnNode that may join relations to many rows
    rule = EXPRESSIONS.get(node.__class__)
    if rule is None:
        raise FieldError(f"{type(node).__name__} has no value here")
    return rule(frame, node)


def build_condition(frame: Frame, node: Node, *, right_frame: Frame) -> ConditionSQL:
    """Return a condition's SQL; columns are found in `frame`, right sides in `right_frame`."""
    rule = CONDITIONS.get(node.__class__)
    if rule is None:
        raise FieldError(f"{type(node).__name__} is not a condition")
    return rule(frame, node, right_frame)


def join_conditions(word: LiteralString, parts: list[SQL]) -> SQL:
    """Join conditions by " AND " or " OR ".

    A long chain is written in parentheses of `MAX_CHAIN` each: SQLite counts every term of a chain
    as one level of nesting, and takes 1,000.
    """
    # a loop, since there may be more than MAX_CHAIN groups as well
    while len(parts) > MAX_CHAIN:
        starts = range(0, len(parts), MAX_CHAIN)
        parts = [SQL("({})", join_sql(word, parts[start : start + MAX_CHAIN])) for start in starts]
    return join_sql(word, parts)


def define_cte(frame: Frame, source: Source, param_offset: int) -> SQL:
    """Write a CTE, whose parameters start at `param_offset`; return its name."""
    return DEFINITIONS[source.__class__](frame, source, param_offset)


def build_order_by_clause(
    frame: Frame, nodes: tuple[OrderNode, ...], *, prefix: LiteralString = " ORDER BY "
) -> SQL:
    """The ORDER BY clause, empty for no terms. NULLs come last ascending and first descending, on
    both databases.

    SQLite is not told so of a column that has none: it would sort by it instead of taking the order
    of an index, where it is not the first.
    """
    if not nodes:
        return SQL("")
    terms: list[SQL] = []
    for node in nodes:
        expr, value = node.expr, build_expression(frame, node.expr)
        if isinstance(expr, ColumnNode) and not (expr.hops or expr.column.null):
            terms.append(build_order_term(value, node))
        else:
            terms.append(build_order_by_term(frame, node, value))
    return SQL(prefix + "{}", join_sql(", ", terms))


def build_order_by_term(frame: Frame, node: OrderNode, value: SQL) -> SQL:
    """One term of an ORDER BY clause, over a value that is at hand."""
    return build_order_term(value, node, explicit_nulls=frame.dialect.name == "sqlite")


class JoinedColumn(ColumnNode):
    """A column whose to-many relations are joined on purpose, inside an aggregate's own
    sub-select.
    """

    __slots__ = ()


@frozen_record
class InFrame(Expr):
    """A value of the row in another frame of the same statement."""

    frame: Any
    node: Expr


def build_column_with_joins(frame: Frame, node: ColumnNode) -> SQL:
    """A column over any relations, joining to-many ones too: one row for each related row."""
    return frame.build_column(node.hops, node.column)
