"""Names that `values()` and `distinct()` take: columns, annotations, and keys of several columns,
which are their parts. No SQL.
"""

from __future__ import annotations

from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._building.query_protocol import Q
from treefold_orm._expressions.lookups import refuse_sensitive, walk_path
from treefold_orm._expressions.nodes import ColumnNode, Expr, Key
from treefold_orm._expressions.resolving import SeveralColumns, resolve, resolve_path
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._terms.columns import AnyColumn, Column
from treefold_orm._terms.operators import Condition, Expression
from treefold_orm._terms.values import as_expression


def annotate_unnamed_expressions(
    query: Q, names_and_expressions: tuple[Any, ...]
) -> tuple[Q, tuple[Any, ...]]:
    """Annotate a query with the expressions among these names; return it with names alone.

    `(Lower("title"), "id")` becomes `("lower1", "id")`.
    """
    found = {
        place: name
        for place, name in enumerate(names_and_expressions)
        if isinstance(name, (Expression, Condition)) and not isinstance(name, Column)
    }
    if not found:
        return query, names_and_expressions
    taken = {name for name in names_and_expressions if isinstance(name, str)}
    taken |= set(query._notes or ())
    labels: dict[str, Expression | Condition] = {}
    made = list(names_and_expressions)
    for place, expression in found.items():
        number, word = place + 1, type(expression).__name__.lower()
        while f"{word}{number}" in taken or query._meta.find(f"{word}{number}") is not None:
            number += 1
        made[place] = f"{word}{number}"
        taken.add(made[place])
        labels[made[place]] = expression
    return query.annotate(**labels), tuple(made)


def resolve_distinct_columns(scope: Scope, field: str | Expression) -> tuple[Expr, ...]:
    """The columns that `distinct()` was given under one name."""
    try:
        return (resolve(as_expression(field), scope),)
    except SeveralColumns:
        # few models have such a key
        from treefold_orm._expressions.key_lookups import resolve_composite_key_columns

        return resolve_composite_key_columns(scope, field)


def resolve_selected_column(scope: Scope, name: Any) -> tuple[str, list[tuple[str, Expr]]]:
    """The label of a selected name, and its column; a key of several columns has several."""
    if isinstance(name, Column):
        column = cast("AnyColumn", name)
        if isinstance(column.field, KeyColumns):
            from treefold_orm._expressions.key_lookups import resolve_composite_key_columns

            return column.path, _label_key_parts(
                column.path, resolve_composite_key_columns(scope, column)
            )
        return column.path, [(column.path, resolve(column, scope))]
    if not isinstance(name, str):
        raise FieldError(
            f"values() takes names and columns, not {type(name).__name__}: name expressions by "
            "keyword"
        )
    check_untainted(name)
    if name in scope.annotations:
        return name, [(name, scope.annotations[name])]
    hops, column_field, rest = walk_path(scope.meta, name)
    refuse_sensitive(scope.meta, column_field, name)
    if rest:
        return name, [(name, resolve_path(scope, name, from_typed_column=False))]
    if isinstance(column_field, KeyColumns):
        nodes = tuple(ColumnNode(part, hops, part) for part in column_field.parts)
        return name, _label_key_parts(name, nodes)
    return name, [(name, ColumnNode(column_field, hops, column_field))]


def _label_key_parts(path: str, nodes: tuple[ColumnNode, ...]) -> list[tuple[str, Expr]]:
    prefix = path.removesuffix("pk") if path == "pk" or path.endswith("__pk") else f"{path}__"
    return [(prefix + node.column.attname, node) for node in nodes]


def refuse_ungrouped_step_values(key: Key) -> None:
    """Raise `FieldError` where a query groups and a step of it takes a value of single rows."""
    from treefold_orm._compile.grouping import refuse_ungrouped_values  # few queries group
    from treefold_orm._compile.state import replay_steps

    state = replay_steps(key)
    if state.grouped:
        state.order = None  # a later values() may name the expressions of the order
        refuse_ungrouped_values(state)
