"""Columns of a grouped query: groups, aggregates, and expressions over these.

Anything else has many values in one group. PostgreSQL refuses it in words of its own, SQLite takes
the value of any row; here it is refused for both, with the name of the column.

Example, a title has no single value in a group:

    >>> Article.objects.values("writer_id").annotate(n=Count("id")).order_by("title")
    FieldError: 'title' has many values in a group: add it to values() before the aggregate, or wrap
    it in an aggregate such as Max()
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._compile.state import State, split_mixed_conjunctions
from treefold_orm._expressions import nodes
from treefold_orm._expressions.lookups import Lookup, walk_path
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Relation

Column = tuple[tuple[Relation, ...], AnyField]


def list_group_terms(state: State) -> list[nodes.Expr]:
    """The expressions that a grouped query groups by."""
    named = dict.fromkeys((*state.groups, *(expr for _, expr in state.columns)))
    return [e for e in named if not (nodes.contains_group_aggregate(e) or nodes.contains_window(e))]


def refuse_ungrouped_values(state: State) -> None:
    """Raise `FieldError` for a value of single rows in a grouped query."""
    groups = {*list_group_terms(state)}
    for node in _iterate_grouped_nodes(state):
        refuse_ungrouped_node_values(node, groups, state)


def _iterate_grouped_nodes(state: State) -> Iterator[nodes.Node]:
    yield from (expr for _, expr in state.columns if _is_computed_per_group(expr))
    yield from (
        node for node in split_mixed_conjunctions(state.where) if _is_computed_per_group(node)
    )
    yield from (term.expr for term in state.order or ())


def _is_computed_per_group(node: nodes.Node) -> bool:
    return nodes.contains_group_aggregate(node) or nodes.contains_window(node)


def refuse_ungrouped_node_values(node: nodes.Node, groups: set[nodes.Expr], state: State) -> None:
    """Raise `FieldError` where a part of a node has many values in a group."""
    held: set[Column] = {
        (term.hops, term.column) for term in groups if isinstance(term, nodes.ColumnNode)
    }
    for name, column in _iterate_ungrouped_columns(node, groups, state):
        if column is None or not _has_single_value_per_group(column, held):
            raise FieldError(
                f"{name} has many values in a group: add it to values() before the aggregate, or "
                "wrap it in an aggregate such as Max()"
            )


def _has_single_value_per_group(column: Column, grouped_columns: set[Column]) -> bool:
    # a column that is grouped by, or of a row whose key is
    hops, field = column
    if column in grouped_columns:
        return True
    meta = hops[-1].target if hops else field.meta
    return bool(meta.keys) and all((hops, key) in grouped_columns for key in meta.keys)


def _iterate_ungrouped_columns(
    node: nodes.Node, groups: set[nodes.Expr], state: State
) -> Iterator[tuple[str, Column | None]]:
    match node:
        case nodes.Expr() if node in groups:
            return
        case nodes.AggregateNode():
            return
        case nodes.ColumnNode():
            yield _describe_column(node.hops, node.column)
            return
        case nodes.Compare() if isinstance(node.lookup, Lookup):
            yield from _find_lookup_columns(node.lookup)
        case nodes.RelatedNode():
            yield _describe_owner_key(node.hops)
            return
        case nodes.CTENode() | nodes.PerRowNode() | nodes.RankNode() | nodes.SearchNode():
            yield "A value of single rows", None
            return
        case nodes.SubqueryNode():
            yield from _find_columns_read_by_subqueries(node.key[1:], groups, state)
            return
        # it runs over the groups: what its aggregate takes must have one value in each of them
        case nodes.WindowNode() if isinstance(node.function, nodes.AggregateNode):
            for part in (node.function, *node.partition, *node.order):
                for child in nodes.collect_children(part) if part is node.function else (part,):
                    yield from _iterate_ungrouped_columns(child, groups, state)
            return
        case _:
            pass
    for child in nodes.collect_children(node):
        yield from _iterate_ungrouped_columns(child, groups, state)


def _describe_column(hops: tuple[Relation, ...], field: AnyField) -> tuple[str, Column]:
    return repr("__".join([*(hop.name for hop in hops), field.name])), (hops, field)


def _find_lookup_columns(lookup: Lookup) -> Iterator[tuple[str, Column]]:
    if any(hop.to_many for hop in lookup.hops):
        yield _describe_owner_key(lookup.hops)
    else:
        yield _describe_column(lookup.hops, lookup.column)


def _describe_owner_key(hops: tuple[Relation, ...]) -> tuple[str, Column]:
    """The column that names the row whose related rows are looked at."""
    place = next((i for i, hop in enumerate(hops) if hop.to_many), len(hops) - 1)
    return _describe_column(hops[:place], hops[place].source.pk)


def _find_columns_read_by_subqueries(
    parts: Iterable[Any], groups: set[nodes.Expr], state: State, level: int = 1
) -> Iterator[tuple[str, Column | None]]:
    """The columns of a row of this query that an inner query reads."""
    for part in parts:
        if isinstance(part, nodes.OuterNode):
            # it names a row of a query between this one and its own
            if part.level != level:
                continue
            if part.known is not None:
                yield from _iterate_ungrouped_columns(part.known.expr, groups, state)
            elif part.path not in state.annotations:
                hops, column, _ = walk_path(state.meta, part.path)
                yield _describe_column(hops, column)
        elif isinstance(part, nodes.SubqueryNode):
            yield from _find_columns_read_by_subqueries(part.key[1:], groups, state, level + 1)
        elif isinstance(part, nodes.Node):
            yield from _find_columns_read_by_subqueries(
                nodes.collect_children(part), groups, state, level
            )
        elif part.__class__ is tuple:
            yield from _find_columns_read_by_subqueries(
                cast("tuple[Any, ...]", part), groups, state, level
            )
