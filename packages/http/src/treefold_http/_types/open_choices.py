"""`Open[Literal["a", "b"]]`: a choice or union that may have other values later.

Nothing is checked differently: it tells clients, in the lock of the API and in generated types,
that they must expect values which they do not know.
"""

from __future__ import annotations

from typing import Annotated, TypeVar

T = TypeVar("T")


class OpenMarker:
    """The metadata of an open choice."""

    def __repr__(self) -> str:
        return "Open"


Open = Annotated[T, OpenMarker()]
"""Marks an enum, a `Literal` or a union of which clients must expect other values."""


def is_open_marker(marker: object) -> bool:
    """Return True for the metadata of an open choice."""
    return isinstance(marker, OpenMarker)
