"""Lists that a query makes of values: carried as an array on PostgreSQL, as JSON on SQLite."""

from __future__ import annotations

import functools
import json
from typing import Any, cast

from treefold_orm._fields.base import Codec, Field
from treefold_orm._fields.structured import ArrayField

AnyField = Field[Any]


class ListField(ArrayField[list[Any]]):
    """Carries a list of values of one field, NULL among them; no column has it."""

    def __init__(self, base: AnyField) -> None:
        # an ArrayField refuses items that no column has, but a result may have
        self._init(True, {})
        self.base = base

    def coerce(self, value: Any) -> list[Any]:
        if not isinstance(value, (list, tuple)):
            raise self.wrong(f"takes a list, not {type(value).__name__}")
        items = cast("list[Any]", value)
        return [None if item is None else self.base.coerce(item) for item in items]

    def encoder(self, dialect: str) -> Codec | None:
        encode = super().encoder(dialect)
        if dialect != "sqlite":
            return encode
        return lambda items: json.dumps(
            [_as_json(item) for item in (items if encode is None else encode(items))]
        )

    def decoder(self, dialect: str) -> Codec | None:
        decode = self.base.decoder(dialect)
        if dialect != "sqlite":
            return super().decoder(dialect)
        if self.base.internal == "binary":
            decode = bytes.fromhex
        if decode is None:
            return json.loads
        return lambda text: [None if i is None else decode(i) for i in json.loads(text)]


def _as_json(item: Any) -> Any:
    return item.hex() if isinstance(item, bytes) else item


@functools.lru_cache(maxsize=1024)
def list_of(base: AnyField) -> AnyField:
    """The field of lists of a field's values: one for each, since plans are kept by it."""
    return ListField(base)
