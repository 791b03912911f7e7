"""Fields and functions of an application's own, which migrations import by their module."""

from __future__ import annotations

import decimal
from typing import Any

from treefold_orm import Func, fields


class MoneyField(fields.DecimalField[decimal.Decimal]):
    """An amount with a currency that belongs to the code."""

    def __init__(self, currency: str = "EUR", **options: Any) -> None:
        options.setdefault("max_digits", 12)
        options.setdefault("decimal_places", 2)
        super().__init__(**options)
        self.currency = currency


class Dashed(Func):
    """Text with dashes for spaces."""

    template = "replace({}, ' ', '-')"
    output_field = fields.TextField()
