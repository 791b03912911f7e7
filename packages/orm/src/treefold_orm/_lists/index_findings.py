"""Filters and orders of a `FilterSet` that no index serves.

Example, `fields = {"title": ["exact", "icontains"], "year": ["gte"]}` and `ordering = ("year",)` of
a model with `Index("year", "id")` and no other:

    title             no index begins with it
    title__icontains  no index finds a text inside of another

A list is small at first and grows; `unindexed` names what stays so. Indexes that a migration makes
by SQL are not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from treefold_orm._expressions.lookups import walk_path
from treefold_orm._fields.meta import find_owner_meta
from treefold_orm._lists.filter_set import FilterSet, list_filters
from treefold_orm._terms.constraints import Index, UniqueConstraint

if TYPE_CHECKING:
    from treefold_orm._expressions.lookups import Lookup
    from treefold_orm._fields.base import AnyField
    from treefold_orm._fields.meta import Meta

CODE = "list-index"
_SERVED = frozenset({"exact", "in", "gt", "gte", "lt", "lte", "range", "isnull", "search"})


def find_unindexed(kind: type[FilterSet]) -> Iterator[tuple[str, str]]:
    """Yield the code and the text of each finding about a `FilterSet`."""
    meta = kind.model._meta
    for name, lookup in list_filters(kind).items():
        if name not in kind.unindexed and (reason := _find_filter_reason(lookup)):
            yield CODE, _build_text(kind, f"filter {name!r}", name, reason)
    for name in kind.ordering:
        hops, column, rest = walk_path(meta, name)
        reason = ""
        if hops:
            reason = "rows are not in the order of another table"
        elif rest or not is_indexed(meta, column):
            reason = "no index begins with it"
        if reason and name not in kind.unindexed:
            yield CODE, _build_text(kind, f"order {name!r}", name, reason)


def _build_text(kind: type[FilterSet], what: str, name: str, reason: str) -> str:
    return (
        f"No index serves the {what} of {kind.__name__}: {reason}; add one to"
        f" {kind.model.__name__}, or name it in {kind.__name__}.unindexed = ({name!r},)"
    )


def _find_filter_reason(lookup: Lookup) -> str:
    if lookup.custom is not None or lookup.op not in _SERVED:
        return "no index finds a part of a value"
    if lookup.op == "search":  # it needs its index to be declared at all
        return ""
    if lookup.transforms or lookup.keys is not None:
        return "no index has a part of a column"
    meta = find_owner_meta(lookup.column)
    return "" if is_indexed(meta, lookup.column) else "no index begins with it"


def is_indexed(meta: Meta, column: AnyField) -> bool:
    """Return True if an index of the model begins with a column."""
    if column in meta.keys[:1] or column.unique or column.db_index:
        return True
    for declared in (*meta.indexes, *meta.constraints):
        if not isinstance(declared, (Index, UniqueConstraint)) or declared.condition is not None:
            continue
        first = declared.fields[0]
        if isinstance(first, str) and first.removeprefix("-") in {column.name, column.attname}:
            return True
    return False
