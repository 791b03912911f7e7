"""The shop's own errors. `extensions.py` imports them, and so this module imports no model."""

from __future__ import annotations


class SoldOut(Exception):
    """There are not as many copies as somebody wants; `extensions.py` says how it is answered."""

    def __init__(self, isbn: str, left: int) -> None:
        super().__init__(isbn, left)
        self.isbn = isbn
        self.left = left
