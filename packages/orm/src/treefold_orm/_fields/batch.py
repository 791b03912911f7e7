"""LazyBatch: the rows of one result, whose missing columns one query loads for all.

It holds rows and keys but none of the instances that hold it, so that a result is freed as soon as
its last instance is. Loading itself is in `_operations/lazy.py`; nothing here knows a database.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treefold_orm._fields.base import AnyField, Codec, Fields


class LazyBatch:
    """The columns `fields` of one model in every row of a result, from the place `start` on.

    `columns` and `related` keep values loaded later, for all rows at once: the driver's values of
    a column by primary key, and the instances at the end of a relation by the key they are tied to.
    """

    __slots__ = ("columns", "fields", "related", "rows", "start")

    def __init__(self, rows: Sequence[Sequence[Any]], fields: Fields, start: int) -> None:
        self.rows = rows
        self.fields = fields
        self.start = start
        self.columns: dict[AnyField, dict[Any, Any]] = {}
        self.related: dict[str, dict[Any, Any]] = {}

    def collect_distinct_values(self, field: AnyField, decode: Codec | None) -> set[Any]:
        """Return the distinct values of a column that was loaded with the rows or later."""
        if field in self.fields:
            place = self.start + self.fields.index(field)
            # duplicates drop out before any of them is decoded
            found = {row[place] for row in self.rows}
        else:
            found = set(self.columns.get(field, {}).values())
        found.discard(None)
        return found if decode is None else set(map(decode, found))

    def collect_distinct_keys(
        self, parts: Sequence[AnyField], decoders: Sequence[Codec | None]
    ) -> set[tuple[Any, ...]]:
        """Return the distinct keys of several columns, which always come with the rows."""
        places = [self.start + self.fields.index(part) for part in parts]
        found = {tuple([row[place] for place in places]) for row in self.rows}
        return {
            tuple([v if d is None else d(v) for v, d in zip(raw, decoders, strict=True)])
            for raw in found
            if None not in raw
        }
