"""Expressions to SQL: columns, parameters, functions, arithmetic, CASE, conditions as values.

Example, a value by condition, and `_build_function` with a name and two columns; PostgreSQL is
told the type:

    >>> Article.objects.annotate(
    ... many=Case(When(views__gt=5, then=Value("many")), default=Value("few"))
    ... ).values("many")
    SQLite: SELECT CASE WHEN t0."views" > ? THEN ? ELSE ? END FROM "article" AS t0
    PostgreSQL: SELECT CASE WHEN t0."views" > $1 THEN ($2)::text ELSE ($3)::text END FROM "article"
    AS t0

    >>> Article.objects.annotate(known=Coalesce("title", "writer__name")).values("known")
    SQLite: SELECT COALESCE(t0."title", t1."name") FROM "article" AS t0 JOIN "writer" AS t1 ON
    t1."id" = t0."writer_id"
    PostgreSQL: SELECT (COALESCE(t0."title", t1."name"))::text FROM "article" AS t0 JOIN "writer" AS
    t1 ON t1."id" = t0."writer_id"
"""

from __future__ import annotations

from typing import Any, cast

from treefold_orm._base.errors import FieldError, UnsupportedFeature
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.rules import (
    EXPRESSIONS,
    InFrame,
    JoinedColumn,
    build_column_with_joins,
    build_condition,
    build_expression,
)
from treefold_orm._compile.search import build_rank
from treefold_orm._dialects.sql import SQL, join_sql, wrap_declared_sql
from treefold_orm._expressions import nodes
from treefold_orm._expressions.arithmetic import POINTS
from treefold_orm._expressions.conversion import classify_field
from treefold_orm._expressions.lookups import refuse_sensitive, walk_path
from treefold_orm._expressions.outer import select_key_part


def build_param(frame: Frame, node: nodes.ParamNode, *, cast: bool) -> SQL:
    """A placeholder for a parameter, with its type spelled out when `cast` is set."""
    field = node.field
    encode = None if field is None else field.encoder(frame.dialect.name)
    mark = frame.builder.bind_param(node.index + frame.offset, encode)
    return frame.dialect.cast(mark, field) if cast else mark


def _build_arithmetic(frame: Frame, node: nodes.ArithNode, *, checked: bool = True) -> SQL:
    # one check of the whole is enough: what left its limits on the way stays outside of them
    sides = [
        _build_arithmetic(frame, side, checked=False)
        if isinstance(side, nodes.ArithNode) and _can_defer_overflow_check(node, side)
        else build_expression(frame, side)
        for side in (node.left, node.right)
    ]
    fields = (node.left.field, node.right.field, node.field)
    return frame.dialect.numbers.build_arithmetic(
        node.op, sides[0], sides[1], fields, checked=checked
    )


def _can_defer_overflow_check(node: nodes.ArithNode, side: nodes.ArithNode) -> bool:
    kinds = {"" if n.field is None else classify_field(n.field) for n in (node, side)}
    if len(kinds) == 1 and kinds <= set(POINTS):
        return True
    # a quotient or a remainder would bring a number that has overflowed back into its limits
    return kinds <= {"integer", "decimal"} and {node.op, side.op} <= {"+", "-", "*"}


def _build_outer_column(frame: Frame, node: nodes.OuterNode) -> SQL:
    around: Frame | None = frame
    for _ in range(node.level):
        around = None if around is None else around.parent
    if around is None:
        raise FieldError(f"{node.outer_ref_text} stands outside of Subquery and Exists")
    if node.known is not None:
        return build_expression(around, node.known.expr)
    of_cte = around.cte_columns.get(node.path)
    if of_cte is not None:
        return around.build_cte_column(of_cte)
    hops, column, rest = walk_path(around.meta, node.path)
    # the name is text, as it may come from a request: texts never read a secret
    refuse_sensitive(around.meta, column, node.path)
    if rest:
        raise FieldError(f"{node.outer_ref_text} must name a column")
    around.require_to_one_path(hops)
    return around.build_column(hops, select_key_part(node, column))


def build_converted_value(frame: Frame, value: SQL, node: nodes.ConvertNode) -> SQL:
    """The value of a `ConvertNode` over a value that is at hand."""
    source, target = node.arg.field, node.field
    if node.mode == "cast" and target is not None:
        return frame.dialect.build_cast(value, source, target)
    if source is None or target is None or node.mode == "same":
        return value
    return frame.dialect.build_conversion(value, source, target, node.mode)


def _build_function(frame: Frame, node: nodes.FuncNode) -> SQL:
    dialect = frame.dialect
    if node.name == "json_path":
        document, keys = _read_json_path(frame, node)
        return dialect.json.build_path_value(document, keys, frame.builder.bind_const)
    if node.name == "json_order":
        # its one argument is a path, of which the dialect takes the document and the keys apart
        document, keys = _read_json_path(frame, cast("nodes.FuncNode", node.args[0]))
        return dialect.json.build_path_order_value(
            node.option, document, keys, frame.builder.bind_const
        )
    args = [build_expression(frame, arg) for arg in node.args]
    source: Any = node.args[0].field if node.args else None
    match node.name:
        case "extract":
            return dialect.extract(node.option, args[0], source)
        case "trunc" | "trunc_in_zone":
            return dialect.trunc(node.option, args[0], source, *args[1:])
        case _:
            called = dialect.build_function_call(node.name, args)
            return dialect.cast_function_result(called, node.field)


def _read_json_path(frame: Frame, node: nodes.FuncNode) -> tuple[SQL, tuple[str, ...]]:
    column, path = node.args
    # keys of JSON are bound like values: no key is ever a part of the statement's text
    keys = path.value if isinstance(path, nodes.ConstNode) else ()
    return build_expression(frame, column), keys


def _build_case(frame: Frame, node: nodes.CaseNode) -> SQL:
    parts: list[SQL] = []
    for when, then in node.whens:
        test = build_condition(frame, when, right_frame=frame).sql
        parts.append(SQL("WHEN {} THEN {}", test, build_expression(frame, then)))
    if node.default is not None:
        parts.append(SQL("ELSE {}", build_expression(frame, node.default)))
    return SQL("CASE {} END", join_sql(" ", parts))


def _build_truth_value(frame: Frame, node: nodes.TruthNode) -> SQL:
    text, nullable = build_condition(frame, node.condition, right_frame=frame)
    # a condition as a value is False where it is unknown, and never NULL
    return SQL("(({}) IS TRUE)" if nullable else "({})", text)


def _build_custom_function(frame: Frame, node: nodes.CustomNode) -> SQL:
    takes = node.takes or (None,) * len(node.args)
    for arg, field in zip(node.args, takes, strict=True):
        # the template of an application would compute with 1234 where the decimal is 12.34
        scaled = arg.field is not None and classify_field(arg.field) == "decimal"
        if scaled and field is None and frame.dialect.name == "sqlite":
            raise UnsupportedFeature(
                f"{node.template.owner} cannot take a decimal on sqlite, which keeps it as a "
                "scaled integer: declare takes=(fields.FloatField(), ...)"
            )
    args = [build_expression(frame, arg) for arg in node.args]
    return frame.dialect.cast_function_result(
        wrap_declared_sql(node.template.require_dialect_sql(frame.dialect.name)).fill_template(
            args
        ),
        node.field,
    )


def _build_to_one_column(frame: Frame, node: nodes.ColumnNode) -> SQL:
    frame.require_to_one_path(node.hops)
    return frame.build_column(node.hops, node.column)


def _build_converted(frame: Frame, node: nodes.ConvertNode) -> SQL:
    return build_converted_value(frame, build_expression(frame, node.arg), node)


def _refuse_schema_sql(frame: Frame, node: nodes.SchemaSQLNode) -> SQL:
    raise FieldError(
        "SchemaSQL cannot stand in a query, only in constraints, indexes and db_default; declare a "
        "Func"
    )


EXPRESSIONS.update(
    {
        JoinedColumn: build_column_with_joins,
        nodes.ColumnNode: _build_to_one_column,
        # PostgreSQL cannot infer the type of a bare `$1` in SELECT, or takes it for text
        nodes.ParamNode: lambda frame, node: build_param(frame, node, cast=True),
        nodes.OuterNode: _build_outer_column,
        nodes.RankNode: build_rank,
        nodes.CTENode: lambda frame, node: frame.build_cte_column(node),
        nodes.ConstNode: lambda frame, node: frame.dialect.cast(
            frame.builder.bind_const(node.value), node.field
        ),
        nodes.ConvertNode: _build_converted,
        nodes.FuncNode: _build_function,
        nodes.ArithNode: _build_arithmetic,
        nodes.CaseNode: _build_case,
        InFrame: lambda _, node: build_expression(node.frame, node.node),
        nodes.TruthNode: _build_truth_value,
        nodes.CustomNode: _build_custom_function,
        nodes.SchemaSQLNode: _refuse_schema_sql,
    }
)
