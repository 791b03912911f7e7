"""SearchIndex: the declaration of a full text search, checked against its model. Data only."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from treefold_orm._base.errors import FieldError, ModelError
from treefold_orm._base.names import check_untainted, constraint_name

if TYPE_CHECKING:
    from treefold_orm._fields.base import Field
    from treefold_orm._fields.meta import Meta

_CONFIG = re.compile(r"[a-z][a-z0-9_]{0,62}")


@dataclass(frozen=True)
class SearchIndex:
    """Full text search over text fields, declared in `Meta.indexes`: a GIN index on PostgreSQL, an
    FTS5 table kept by triggers on SQLite.

    `config` is the name of a text search configuration of PostgreSQL; "english" knows word stems on
    both databases, the others there alone. `weights` has one letter from A to D for each field, A
    counting most for `SearchRank`. Raises `ModelError` for sensitive fields and what is no text.
    """

    fields: tuple[str, ...]
    config: str
    weights: str
    name: str

    def __init__(
        self,
        fields: Sequence[str],
        *,
        config: str = "simple",
        weights: str = "",
        name: str = "",
    ) -> None:
        if isinstance(fields, str) or not fields or not all(isinstance(f, str) for f in fields):  # pyright: ignore[reportUnnecessaryIsInstance] - callers may be untyped
            raise ModelError("SearchIndex takes a list of at least one field name")
        for text in (*fields, config, weights, name):
            check_untainted(text)
        if _CONFIG.fullmatch(config) is None:
            raise ModelError(
                f"config={config!r} cannot name a text search configuration: use a plain name in "
                "lower case"
            )
        if weights and (len(weights) != len(fields) or set(weights) - set("ABCD")):
            raise ModelError(
                f"weights={weights!r} must have one letter from A to D for each of the "
                f"{len(fields)} fields"
            )
        object.__setattr__(self, "fields", tuple(fields))
        object.__setattr__(self, "config", config)
        object.__setattr__(self, "weights", weights)
        object.__setattr__(self, "name", name)

    def name_on(self, meta: Meta) -> str:
        """The name of the index, and on SQLite of its table."""
        columns = [field.column_name for field in self.columns(meta)]
        return self.name or constraint_name("fts", meta.table_name, *columns)

    def columns(self, meta: Meta) -> tuple[Field[Any], ...]:
        """The fields of the index."""
        return tuple(meta.fields[name] for name in self.fields)


def check_search(meta: Meta) -> None:
    """Raise `ModelError` for a search index that its model cannot have."""
    from treefold_orm._fields.text import TextField

    seen: set[frozenset[str]] = set()
    for index in search_indexes(meta):
        for name in index.fields:
            field = meta.fields.get(name)
            if not isinstance(field, TextField):
                raise ModelError(
                    f"{meta.name}: SearchIndex takes text fields, and {name!r} is none"
                )
            if field.sensitive:
                raise ModelError(f"{meta.name}: SearchIndex cannot hold {name!r}: it is sensitive")
        names = frozenset(index.fields)
        if names in seen or len(names) != len(index.fields):
            raise ModelError(f"{meta.name} has SearchIndex({list(index.fields)!r}) twice")
        seen.add(names)


def search_indexes(meta: Meta) -> list[SearchIndex]:
    """The search indexes of a model."""
    return [index for index in meta.indexes if isinstance(index, SearchIndex)]


def index_for(meta: Meta, fields: Sequence[Field[Any]]) -> SearchIndex:
    """The index that searches these fields: the smallest that has them all."""
    names = {field.name for field in fields}
    fitting = [index for index in search_indexes(meta) if names <= set(index.fields)]
    if not fitting:
        shown = ", ".join(repr(field.name) for field in fields)
        raise FieldError(
            f"{meta.name} has no search over {shown}: declare SearchIndex([{shown}]) in "
            "Meta.indexes"
        )
    return min(fitting, key=lambda index: len(index.fields))
