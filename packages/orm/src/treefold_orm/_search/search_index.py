"""The search indexes of a model: their columns and names, and which one serves a search."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._base.names import constraint_name
from treefold_orm._fields.base import AnyField, Fields
from treefold_orm._fields.meta import Meta
from treefold_orm._fields.text import TextField

if TYPE_CHECKING:
    from treefold_orm._terms.search_index import SearchIndex


def build_search_index_name(index: SearchIndex, meta: Meta) -> str:
    """The name of the index in the database, and on SQLite of its table."""
    columns = [field.column_name for field in list_indexed_fields(index, meta)]
    return index.name or constraint_name("fts", meta.table_name, *columns)


def list_indexed_fields(index: SearchIndex, meta: Meta) -> Fields:
    """The fields that a search index covers."""
    return tuple(meta.fields[name] for name in index.fields)


def check_search_indexes(meta: Meta) -> None:
    """Raise `ModelError` for a search index that its model cannot have."""
    seen: set[frozenset[str]] = set()
    for index in list_search_indexes(meta):
        for name in index.fields:
            field = meta.fields.get(name)
            if not isinstance(field, TextField):
                raise ModelError(
                    f"{meta.name}: SearchIndex takes text fields, and {name!r} is none"
                )
            # a search tells which rows hold a word: a secret could be asked for word by word
            if field.sensitive:
                raise ModelError(f"{meta.name}: SearchIndex cannot hold {name!r}: it is sensitive")
        names = frozenset(index.fields)
        if names in seen or len(names) != len(index.fields):
            raise ModelError(f"{meta.name} has SearchIndex({list(index.fields)!r}) twice")
        seen.add(names)


def list_search_indexes(meta: Meta) -> list[SearchIndex]:
    """The search indexes of a model."""
    if not meta.indexes:
        return []
    # only for models that have indexes: dataclasses take a fifth of the time of an import
    from treefold_orm._terms.search_index import SearchIndex

    return [index for index in meta.indexes if isinstance(index, SearchIndex)]


def require_search_index(meta: Meta, fields: Sequence[AnyField]) -> SearchIndex:
    """The index that searches these fields: the smallest that has them all."""
    names = {field.name for field in fields}
    fitting = [index for index in list_search_indexes(meta) if names <= set(index.fields)]
    if not fitting:
        shown = ", ".join(repr(field.name) for field in fields)
        raise FieldError(
            f"{meta.name} has no search over {shown}: declare SearchIndex([{shown}]) in "
            "Meta.indexes"
        )
    return min(fitting, key=lambda index: len(index.fields))
