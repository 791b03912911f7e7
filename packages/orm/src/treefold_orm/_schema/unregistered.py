"""Tables described without model classes: `TableShape`, and its `Meta` for the schema.

A shape holds unbound fields by name; a foreign key names the table that it points to. The `Meta`
made of it serves `table_of` alone: it has no managers, no reverse relations, and is not in the
registry.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.errors import ModelError
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta, registry
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._terms.columns import Column, Reference

if TYPE_CHECKING:
    from treefold_orm._terms.constraints import Constraint, Index
    from treefold_orm._terms.search_index import SearchIndex


@dataclass(frozen=True, slots=True)
class TableShape:
    """One table: `fields` are unbound, `model` is the name for messages, `primary_key` names the
    fields of a key of several columns, and `database` is an alias, if it lives apart from others.
    """

    name: str
    model: str
    fields: Mapping[str, AnyField]
    primary_key: tuple[str, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    indexes: tuple[Index | SearchIndex, ...] = ()
    database: str = ""


def meta_of(name: str, shapes: Mapping[str, TableShape]) -> Meta:
    """Return the description of one table for `table_of`.

    Args:
        name: the table.
        shapes: all tables, as far as foreign keys point to them.

    Raises `ModelError` for a table that is not among the shapes, for one without a key, and for
    declarations that no model could have.
    """
    known: dict[str, Meta] = {}
    made = known[name] = _build_meta(shapes[name])
    waiting = deque((made, field) for field in made.columns if is_foreign_key(field))
    while waiting:
        owner, field = waiting.popleft()
        target = cast("str", field.to)
        if target not in shapes:
            raise ModelError(
                f"{owner.table_name}.{field.name} points to the table {target!r}, which is "
                "not known"
            )
        if target not in known:
            found = known[target] = _build_meta(shapes[target])
            # a column has the type of the key that it points to, which may be a foreign key itself;
            # what else a target points to says nothing of this table
            waiting += [(found, key) for key in found.keys if is_foreign_key(key)]
        owner.relations[field.name] = field.set_target(known[target])
    if shapes[name].indexes:
        from treefold_orm._search.search_index import (
            check_search_indexes,  # most tables need none of it
        )

        check_search_indexes(made)
    return made


def _build_meta(shape: TableShape) -> Meta:
    model: Any = type(shape.model or shape.name, (), {"_space": "", "_registry": registry})
    meta = Meta(model, table=shape.name, abstract=False)
    for field_name, field in shape.fields.items():
        bound = field.copy()
        meta.add_field(bound, field_name)
        bound.column = (Reference if is_foreign_key(bound) else Column)(meta, field_name, bound)
    if shape.primary_key:
        meta.set_composite_key(shape.primary_key)
    if not meta.keys:
        raise ModelError(f"Table {shape.name!r} must have a primary key, got none")
    meta.constraints = shape.constraints
    meta.indexes = shape.indexes
    return meta
