"""Queries that the package makes by itself: rows by their key or by the value of a column.

Names that a caller gives cannot reach sensitive columns. These come from models, so they can.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from treefold_orm._building.query_protocol import Q
from treefold_orm._expressions.steps import Load
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.meta import Meta
from treefold_orm._terms.operators import Expression


def filter_by_key(query: Q, key: Any) -> Q:
    """Only the row with this key."""
    return filter_by_value(query, query._meta.pk, key, name="pk")


def filter_by_keys(query: Q, keys: Any) -> Q:
    """Only the rows with one of these keys, which may come from a query."""
    return filter_by_values(query, query._meta.pk, keys, name="pk")


def filter_by_value(query: Q, field: AnyField, value: Any, *, name: str = "") -> Q:
    """Only the rows with this value in a column of their own."""
    if field.sensitive:
        return query.filter(field.column == value)
    return query.filter(**{name or field.name: value})


def filter_by_values(query: Q, field: AnyField, values: Any, *, name: str = "") -> Q:
    """Only the rows with one of these values in a column of their own."""
    if field.sensitive:
        return query.filter(field.column.in_(values))
    return query.filter(**{f"{name or field.name}__in": values})


def extend_loaded_columns(query: Q, fields: Iterable[AnyField]) -> Q:
    """The same query, loading these columns too where it loads some only."""
    loaded = query._find_last_step(Load)
    if loaded is None:
        return query
    missing = {field.name for field in fields} - loaded.names
    return query._set_loaded_columns(loaded.names | missing) if missing else query


def build_key_ordering(meta: Meta) -> tuple[str | Expression, ...]:
    """The terms of an order by key."""
    secret = any(part.sensitive for part in meta.keys)
    return tuple(part.column for part in meta.keys) if secret else ("pk",)


def load_only_fields(query: Q, fields: Iterable[AnyField]) -> Q:
    """Load these columns (and the key) only."""
    return query._set_loaded_columns(frozenset([field.name for field in fields]))
