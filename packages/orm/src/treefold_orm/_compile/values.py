"""Expressions to SQL: columns, parameters, functions, CASE, aggregates, windows, subqueries.

`expression` turns one node into SQL within a frame; aggregates have a module of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, LiteralString

from treefold_orm._base.errors import FieldError, UnsupportedFeature
from treefold_orm._base.records import record
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.functions import ordered
from treefold_orm._compile.search import rank
from treefold_orm._compile.sql import SQL, join
from treefold_orm._expressions.arithmetic import POINTS
from treefold_orm._expressions.conversion import kind_of
from treefold_orm._expressions.lookups import refuse_sensitive, walk
from treefold_orm._expressions.nodes import (
    AggregateNode,
    ArithNode,
    CaseNode,
    ColumnNode,
    ConstNode,
    ConvertNode,
    CTENode,
    CustomNode,
    Expr,
    FuncNode,
    OrderNode,
    OuterNode,
    ParamNode,
    RankNode,
    RowNode,
    SchemaSQLNode,
    SubqueryNode,
    TruthNode,
    WindowNode,
)
from treefold_orm._expressions.outer import part_of


def expression(frame: Frame, node: Expr) -> SQL:
    """Return the SQL of one expression node."""
    found = frame.value(node)
    if found is not None:
        return found
    match node:
        case Reached():
            return reached(frame, node)
        case ColumnNode():
            frame.refuse_many(node.hops)
            return frame.column(node.hops, node.column)
        case ParamNode():
            return param(frame, node, cast=True)
        case OuterNode():
            return _outer(frame, node)
        case RankNode():
            return rank(frame, node)
        case CTENode():
            return frame.cte_column(node)
        case ConstNode():
            return frame.dialect.cast(frame.builder.const(node.value), node.field)
        case ConvertNode():
            return _converted_value(frame, expression(frame, node.arg), node)
        case FuncNode():
            return _function(frame, node)
        case ArithNode():
            return _arithmetic(frame, node, checked=True)
        case CaseNode():
            return _case(frame, node)
        case AggregateNode() | RowNode():
            return _aggregate(frame, node)
        case InFrame():
            return expression(node.frame, node.node)
        case SubqueryNode():
            return subquery(frame, node)
        case TruthNode():
            return _truth(frame, node)
        case CustomNode():
            return _custom(frame, node)
        case WindowNode():
            return _window(frame, node)
        case SchemaSQLNode():
            raise FieldError(
                "SchemaSQL cannot stand in a query, only in constraints, indexes and db_default; "
                "declare a Func"
            )
        case _:
            raise FieldError(f"{type(node).__name__} has no value here")


def _aggregate(frame: Frame, node: AggregateNode | RowNode) -> SQL:
    from treefold_orm._compile.aggregates import aggregate, by_row

    if isinstance(node, AggregateNode):
        return aggregate(frame, node)
    with by_row(frame):
        return expression(frame, node.node)


def param(frame: Frame, node: ParamNode, *, cast: bool) -> SQL:
    """A placeholder for a parameter, with its type spelled out when `cast` is set."""
    field = node.field
    encode = None if field is None else field.encoder(frame.dialect.name)
    mark = frame.builder.param(node.index + frame.offset, encode)
    return frame.dialect.cast(mark, field) if cast else mark


def subquery(
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
    from treefold_orm._compile.select import nested_select

    if not converts:
        return SQL("({})", nested_select(frame, node, exists=exists, width=width))
    inner, alias = nested_select(frame, node, named=True), frame.builder.alias()
    value = SQL("{}.c0", alias)
    for convert in reversed(converts):
        value = _converted_value(frame, value, convert)
    return SQL("(SELECT {} FROM ({}) AS {})", value, inner, alias)


def order_terms(
    frame: Frame, nodes: tuple[OrderNode, ...], *, prefix: LiteralString = " ORDER BY "
) -> SQL:
    """The ORDER BY clause, empty for no terms. NULLs come last ascending and first descending, on
    both databases.
    """
    if not nodes:
        return SQL("")
    terms = [order_term(frame, node, expression(frame, node.expr)) for node in nodes]
    return SQL(prefix + "{}", join(", ", terms))


def order_term(frame: Frame, node: OrderNode, value: SQL) -> SQL:
    """One term of an ORDER BY clause, over a value that is at hand."""
    return ordered(value, node, spelled=frame.dialect.name == "sqlite")


def _arithmetic(frame: Frame, node: ArithNode, *, checked: bool) -> SQL:
    # one check of the whole is enough: what left its limits on the way stays outside of them
    sides = [
        _arithmetic(frame, side, checked=False)
        if isinstance(side, ArithNode) and _unbroken(node, side)
        else expression(frame, side)
        for side in (node.left, node.right)
    ]
    fields = (node.left.field, node.right.field, node.field)
    return frame.dialect.arithmetic(node.op, sides[0], sides[1], fields, checked=checked)


def _unbroken(node: ArithNode, side: ArithNode) -> bool:
    kinds = {"" if n.field is None else kind_of(n.field) for n in (node, side)}
    if len(kinds) == 1 and kinds <= set(POINTS):
        return True
    return kinds <= {"integer", "decimal"} and {node.op, side.op} <= {"+", "-", "*"}


def _outer(frame: Frame, node: OuterNode) -> SQL:
    if frame.parent is None:
        raise FieldError(f"OuterRef({node.path!r}) stands outside of Subquery and Exists")
    if node.known is not None:
        return expression(frame.parent, node.known.expr)
    of_cte = frame.parent.cte_columns.get(node.path)
    if of_cte is not None:
        return frame.parent.cte_column(of_cte)
    hops, column, rest = walk(frame.parent.meta, node.path)
    refuse_sensitive(frame.parent.meta, column, node.path)
    if rest:
        raise FieldError(f"OuterRef({node.path!r}) must name a column")
    frame.parent.refuse_many(hops)
    return frame.parent.column(hops, part_of(node, column))


def _converted_value(frame: Frame, value: SQL, node: ConvertNode) -> SQL:
    source, target = node.arg.field, node.field
    if node.mode == "cast" and target is not None:
        return frame.dialect.convert(value, source, target)
    if source is None or target is None or node.mode == "same":
        return value
    return frame.dialect.converted(value, source, target, node.mode)


def _function(frame: Frame, node: FuncNode) -> SQL:
    dialect = frame.dialect
    if node.name == "json_path":
        column, path = node.args
        keys = path.value if isinstance(path, ConstNode) else ()
        return dialect.json_path(expression(frame, column), keys, frame.builder.const)
    args = [expression(frame, arg) for arg in node.args]
    source: Any = node.args[0].field if node.args else None
    match node.name:
        case "extract":
            return dialect.extract(node.option, args[0], source)
        case "trunc" | "trunc_in_zone":
            return dialect.trunc(node.option, args[0], source, *args[1:])
        case _:
            return dialect.typed(dialect.function(node.name, args), node.field)


def _case(frame: Frame, node: CaseNode) -> SQL:
    from treefold_orm._compile.conditions import condition

    parts = [
        SQL("WHEN {} THEN {}", condition(frame, when, right=frame)[0], expression(frame, then))
        for when, then in node.whens
    ]
    if node.default is not None:
        parts.append(SQL("ELSE {}", expression(frame, node.default)))
    return SQL("CASE {} END", join(" ", parts))


def _truth(frame: Frame, node: TruthNode) -> SQL:
    from treefold_orm._compile.conditions import condition

    text, nullable = condition(frame, node.condition, right=frame)
    return SQL("(({}) IS TRUE)" if nullable else "({})", text)


def _custom(frame: Frame, node: CustomNode) -> SQL:
    takes = node.takes or (None,) * len(node.args)
    for arg, field in zip(node.args, takes, strict=True):
        scaled = arg.field is not None and kind_of(arg.field) == "decimal"
        if scaled and field is None and frame.dialect.name == "sqlite":
            raise UnsupportedFeature(
                f"{node.template.owner} cannot take a decimal on sqlite, which keeps it as a "
                "scaled integer: declare takes=(fields.FloatField(), ...)"
            )
    args = [expression(frame, arg) for arg in node.args]
    return frame.dialect.typed(node.template.fill(frame.dialect.name, args), node.field)


def _window(frame: Frame, node: WindowNode) -> SQL:
    from treefold_orm._compile.windows import window  # few queries have one

    return window(frame, node)


class Reached(ColumnNode):
    """A column whose to-many relations are joined on purpose, inside an aggregate's own
    sub-select.
    """

    __slots__ = ()


@record
class InFrame(Expr):
    """A value of the row in another frame of the same statement."""

    frame: Any
    node: Expr


def reached(frame: Frame, node: ColumnNode) -> SQL:
    """A column over any relations, joining to-many ones too: one row for each related row."""
    return frame.column(node.hops, node.column)
