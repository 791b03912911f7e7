"""The columns of a statement as its caller gets them: values under names, or instances of models
with what `select_related` and `annotate` add. The rest of a statement is written in `select.py`.

Example, the columns of two instances in one row, each of them as far as it is loaded:

    >>> Article.objects.select_related("writer").only("title", "writer__name")
    SELECT t0."id", t0."title", t1."id", t1."name" FROM "article" AS t0 JOIN "writer" AS t1 ON
    t1."id" = t0."writer_id"
"""

from __future__ import annotations

from typing import Any

from treefold_orm._base.records import copy_with_changes
from treefold_orm._compile.clauses import convert_to_common_type
from treefold_orm._compile.frame import Frame, Hops
from treefold_orm._compile.rules import build_expression
from treefold_orm._compile.state import State
from treefold_orm._decode import hydrate
from treefold_orm._decode.hydrate import InstanceLayout
from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL
from treefold_orm._expressions.nodes import ColumnNode, Expr
from treefold_orm._expressions.steps import KeyLabel
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta


def compile_values_decoder(state: State, dialect: Dialect) -> Any:
    """Return the function that makes values, not instances, of the rows of a query."""
    names, fields = _collect_output_names_and_fields(state)
    match state.rows:
        case "dicts":
            return hydrate.compile_dict_decoder(names, fields, dialect.name)
        case "flat":
            return hydrate.compile_flat_decoder(fields[0], dialect.name)
        case "named":
            return hydrate.compile_named_tuple_decoder(names, fields, dialect.name)
        case _:
            return hydrate.compile_tuple_decoder(fields, dialect.name)


def _collect_output_names_and_fields(state: State) -> tuple[list[str], list[hydrate.Output]]:
    """The names of the values of a row, and their fields; a key of several columns is one."""
    names: list[str] = []
    fields: list[hydrate.Output] = []
    left = iter(state.output_fields)
    for label in state.names or ():
        if isinstance(label, KeyLabel):
            names.append(label.name)
            fields.append(tuple([next(left) for _ in range(label.width)]))
        else:
            names.append(label)
            fields.append(next(left))
    return names, fields


def build_instance_columns(frame: Frame, state: State) -> tuple[list[SQL], InstanceLayout]:
    """The columns that instances of a query are made of."""
    columns: list[SQL] = []
    # `select_related("writer__boss", "editor")` makes {"writer": {"boss": {}}, "editor": {}}
    tree: dict[str, Any] = {}
    for path in state.related:
        branch = tree
        for part in path.split("__"):
            branch = branch.setdefault(part, {})
    shape = _build_shape_and_columns(frame, state, state.meta, (), tree, columns)
    extras: list[tuple[str, AnyField | None]] = []
    for (name, node), field in zip(state.annotations.items(), state.output_fields, strict=True):
        made = build_expression(frame, node)
        columns.append(convert_to_common_type(frame, made, node.field, field))
        extras.append((name, field))
    return columns, copy_with_changes(shape, extras=tuple(extras))


def _build_shape_and_columns(
    frame: Frame, state: State, meta: Meta, hops: Hops, tree: dict[str, Any], columns: list[SQL]
) -> InstanceLayout:
    prefix = "".join(f"{hop.name}__" for hop in hops)
    wanted = _choose_loaded_fields(state, meta, prefix)
    # the order in which `hydrate` counts cells: own columns, then each branch, annotations last
    columns.extend(frame.build_column(hops, field) for field in wanted)
    related: list[tuple[str, InstanceLayout]] = []
    for name, branch in tree.items():
        relation = meta.relations[name]
        related.append(
            (
                name,
                _build_shape_and_columns(
                    frame, state, relation.target, (*hops, relation), branch, columns
                ),
            )
        )
    # no part of a key is ever NULL, so that one part tells whether the row is missing
    key = wanted.index(meta.keys[0])
    partial = len(wanted) != len(meta.columns)
    return InstanceLayout(
        meta.model,
        tuple(wanted),
        partial,
        tuple(related),
        optional=frame.is_optional(hops),
        key=key,
        # many articles lead to one writer, but only one row leads to the end of a one-to-one
        repeated=any(hop.kind == "forward" and not hop.source_field.unique for hop in hops),
    )


def _choose_loaded_fields(state: State, meta: Meta, prefix: str) -> list[AnyField]:
    if state.loaded is None:
        return list(meta.columns)
    names = {name.removeprefix(prefix) for name in state.loaded if name.startswith(prefix)}
    names = {name for name in names if "__" not in name}
    # `only("title")` limits the model's own columns: a joined writer without names comes whole
    if prefix and not names:
        return list(meta.columns)
    # the key always comes along: without it, no column could be loaded later
    return [f for f in meta.columns if f.name in names or f.attname in names or f in meta.keys]


def map_column_positions(state: State, width: int) -> dict[Expr, int]:
    """Where the output columns stand; annotations of instances are the last of `width`."""
    if state.rows != "instances":
        return {expr: i for i, (_, expr) in enumerate(state.columns)}
    own = _choose_loaded_fields(state, state.meta, "")
    places: dict[Expr, int] = {ColumnNode(f, (), f): i for i, f in enumerate(own)}
    # columns of `select_related` lie between, so that annotations are counted from the end
    notes = list(state.annotations.values())
    return places | {expr: width - len(notes) + i for i, expr in enumerate(notes)}
