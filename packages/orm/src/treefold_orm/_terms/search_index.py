"""SearchIndex: the declaration of a full text search. Data only; `search` knows its columns."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from treefold_orm._base.errors import ModelError
from treefold_orm._base.names import check_untainted

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
        self, fields: Sequence[str], *, config: str = "simple", weights: str = "", name: str = ""
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
