"""Expressions and values as the SQL of constraints, indexes and defaults, which take no parameters.

Columns stand without alias. Values are constants of the code: each becomes a literal.
"""

from __future__ import annotations

import datetime as dt
from typing import Any

from treefold_orm._base.errors import FieldError, FieldValueError, ModelError
from treefold_orm._compile.frame import Frame
from treefold_orm._compile.writing import (
    build_condition as condition_sql,
    build_expression as expression_sql,
)
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import (
    SQL,
    Encoder,
    StatementBuilder,
    fill_schema_template,
    quote_column,
)
from treefold_orm._dialects.sqlite import SQLite
from treefold_orm._expressions.conditions import resolve_condition
from treefold_orm._expressions.conversion import convert_for_column
from treefold_orm._expressions.nodes import (
    AggregateNode,
    ColumnNode,
    Expr,
    FuncNode,
    Node,
    OuterNode,
    SchemaSQLNode,
    SubqueryNode,
    WindowNode,
    collect_children,
)
from treefold_orm._expressions.resolving import resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta
from treefold_orm._terms.operators import Condition, Expression
from treefold_orm._terms.values import Value

_MOMENTS = (dt.date, dt.time)  # a datetime is a date


class _UnaliasedFrame(Frame):
    """A frame whose columns stand without alias, as DDL wants them."""

    def build_column(self, hops: Any, field: AnyField) -> SQL:
        if hops:
            raise ModelError(
                f"{self.meta.name}: constraints and indexes cannot look into another table"
            )
        if field.storage:
            raise ModelError(
                f"{self.meta.name}.{field.name}: a column that another tool writes cannot be "
                "part of a check or an index over an expression"
            )
        return quote_column(field)

    def find_override(self, node: Expr) -> SQL | None:
        if isinstance(node, SchemaSQLNode):
            return fill_schema_template(node.text, node.columns)
        # the schema is read by other programs too, which lack the functions of a connection
        if isinstance(node, FuncNode) and node.name == "now" and self.dialect.name == "sqlite":
            return SQL("(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000+00:00')")
        return None


def render_sql_with_literals(meta: Meta, item: Condition | Expression, dialect: Dialect) -> str:
    """Write a condition or expression over the columns of one row, with its values as literals."""
    scope = Scope(meta, [])
    frozen = resolve_condition(item, scope) if isinstance(item, Condition) else resolve(item, scope)
    return _render_node(meta, frozen, scope, dialect)


class _LiteralListDialect(SQLite):
    """SQLite as DDL wants it: a list stands as it is, for a check takes no query."""

    def build_in_list(self, left: SQL, param: SQL, field: AnyField) -> SQL:
        return SQL("{} IN ({})", left, param)

    def list_encoder(self, field: AnyField) -> Encoder:
        encode = field.encoder("sqlite")
        return list if encode is None else lambda values: [encode(value) for value in values]


_LISTING = _LiteralListDialect()


def _render_node(meta: Meta, node: Node, scope: Scope, dialect: Dialect) -> str:
    builder = StatementBuilder()
    if dialect.name == "sqlite":
        dialect = _LISTING
    frame = _UnaliasedFrame(builder, dialect, meta, joinable=False)
    if isinstance(node, Expr):
        text = expression_sql(frame, node)
    else:
        text = condition_sql(frame, node, right_frame=frame).sql
    # slots of values stand between NULs, which neither SQL nor a literal holds
    pieces = text.text.split("\0")
    for place in range(1, len(pieces), 2):
        index, encode = builder._slots[int(pieces[place])]
        value = builder.consts[-index - 1] if index < 0 else scope.params[index]
        pieces[place] = literal(_encode_value(value, encode, dialect), dialect)
    return "".join(pieces)


def _encode_value(value: Any, encode: Any, dialect: Dialect) -> Any:
    if encode is None or value is None:
        return value
    if dialect.name == "postgres" and isinstance(value, _MOMENTS):
        return value  # the server reads its text; encoders are for the driver
    return encode(value)


def default_sql(meta: Meta, field: AnyField, dialect: Dialect) -> str:
    """Write the `db_default` of a field.

    Raises `ModelError` for a constant that does not fit the field, and for an expression that
    looks at columns or is of another type.
    """
    where = f"{meta.name}.{field.name}: db_default"
    return _render_field_value(meta, field, field.db_default, dialect, where, _OF_ROWS)


def fill_sql(meta: Meta, field: AnyField, value: Any, dialect: Dialect) -> str:
    """Write the value that a field gets in rows that exist: a constant, or an expression over the
    columns of the row.

    Raises `ModelError` for a constant that does not fit the field, and for an expression that looks
    at other rows or is of another type.
    """
    where = f"{meta.name}.{field.name}: the value of rows that exist"
    return _render_field_value(meta, field, value, dialect, where, _OF_OTHER_ROWS)


def reads_columns(meta: Meta, value: Any) -> bool:
    """Return True for an expression whose value depends on the row.

    Raises `ModelError` for one that names what the model has not.
    """
    if not isinstance(value, Expression):
        return False
    try:
        return _contains_node(resolve(value, Scope(meta, [])), _OF_ROWS)
    except FieldError as error:
        raise ModelError(f"{meta.name}: {error}") from None


_OF_OTHER_ROWS = (OuterNode, SubqueryNode, AggregateNode, WindowNode)
_OF_ROWS = (ColumnNode, *_OF_OTHER_ROWS)


def _render_field_value(
    meta: Meta,
    field: AnyField,
    given: Any,
    dialect: Dialect,
    error_prefix: str,
    refused_nodes: tuple[type[Node], ...],
) -> str:
    if isinstance(given, Value) and given.output_field is None:
        given = given.value
    if not isinstance(given, Expression):
        try:
            value = field.clean(given)
        except FieldValueError as error:
            raise ModelError(f"{error_prefix} {error.reason}") from None
        text = literal(_encode_value(value, field.encoder(dialect.name), dialect), dialect)
        array = isinstance(value, list) and field.internal == "array"
        # PostgreSQL cannot tell the type of an empty ARRAY[]
        return f"{text}::{field.column_type(dialect.name)}" if array else text
    scope = Scope(meta, [])
    try:
        node = convert_for_column(resolve(given, scope), field)
    except FieldError as error:
        raise ModelError(f"{error_prefix} cannot be used: {error}") from None
    if _contains_node(node, refused_nodes):
        what = "columns, aggregates" if ColumnNode in refused_nodes else "aggregates"
        raise ModelError(f"{error_prefix} cannot look at {what} or other rows")
    return f"({_render_node(meta, node, scope, dialect)})"


def _contains_node(node: Node, kinds: tuple[type[Node], ...]) -> bool:
    if isinstance(node, SchemaSQLNode):
        return ColumnNode in kinds and bool(node.columns)
    return isinstance(node, kinds) or any(
        _contains_node(child, kinds) for child in collect_children(node)
    )


def literal(value: Any, dialect: Dialect) -> str:
    """Write a constant of the code as SQL, for DDL, which takes no parameters.

    Raises `ModelError` for text that has no safe literal.
    """
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return ("TRUE" if value else "FALSE") if dialect.name == "postgres" else str(int(value))
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, list):
        items: list[Any] = value  # pyright: ignore[reportUnknownVariableType] - a list of checked values
        listed = ", ".join(literal(item, dialect) for item in items)
        return f"ARRAY[{listed}]" if dialect.name == "postgres" else listed
    if isinstance(value, bytes):
        hexed = value.hex()
        return f"'\\x{hexed}'::bytea" if dialect.name == "postgres" else f"X'{hexed}'"
    text = value.isoformat() if isinstance(value, _MOMENTS) else str(value)
    if "\0" in text:
        raise ModelError("Text with a NUL character cannot stand in a constraint or index")
    # a backslash is plain text: SQLite knows no escapes, PostgreSQL none with
    # standard_conforming_strings, its default
    return "'" + text.replace("'", "''") + "'"
