"""A model with numbers of every kind, for tests of conversions, and how one expression is asked."""

from __future__ import annotations

import decimal
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from treefold_orm import Model, fields

D = decimal.Decimal


class Amount(Model):
    """Numbers side by side: decimals of two and four places, integers, floats."""

    name = fields.CharField(max_length=20)
    price = fields.DecimalField(max_digits=10, decimal_places=2, null=True)
    fine = fields.DecimalField(max_digits=12, decimal_places=4, null=True)
    rate = fields.DecimalField(max_digits=5, decimal_places=3, null=True)
    wide = fields.DecimalField(max_digits=18, decimal_places=0, null=True)
    tiny = fields.SmallIntegerField(null=True)
    n = fields.IntegerField(null=True)
    big = fields.BigIntegerField(null=True)
    real = fields.FloatField(null=True)
    text = fields.CharField(max_length=40, null=True)


class Part(Model):
    """Many rows of one amount."""

    amount = fields.ForeignKey(Amount, related_name="parts", on_delete="CASCADE")
    price = fields.DecimalField(max_digits=10, decimal_places=2)
    n = fields.IntegerField(default=0)


ALL = (Amount, Part)
ROWS: list[dict[str, Any]] = [
    {"name": "a", "price": D("3.50"), "fine": D("3.5000"), "rate": D("0.190"), "n": 3},
    {"name": "b", "price": D("7.00"), "fine": D("7.0001"), "rate": D("1.005"), "n": 7},
    {"name": "c", "price": D("-0.05"), "fine": D("-0.0500"), "rate": D("2.500"), "n": -2},
    {"name": "d"},
]
_MORE: list[dict[str, Any]] = [
    {"tiny": 2, "big": 2**53 + 1, "real": 3.5, "wide": D(10**17), "text": "x"},
    {"tiny": 7, "big": 7, "real": 7.25, "wide": D(7), "text": "y"},
    {"tiny": 0, "big": -(2**63), "real": -0.05, "wide": D(0), "text": ""},
    {},
]


def fill() -> None:
    """Make four rows, the last one all NULL, in place of what there is."""
    Part.objects.delete()
    Amount.objects.delete()
    Amount.objects.bulk_create(
        [Amount(**row, **more) for row, more in zip(ROWS, _MORE, strict=True)]
    )


def values(expression: Any, **lookups: Any) -> list[Any]:
    """The values of an expression, row by row."""
    query = Amount.objects.filter(**lookups).annotate(x=expression).order_by("name")
    return [row.x for row in cast("Any", query)]


def names(*conditions: Any, **lookups: Any) -> str:
    """The names of the rows that meet conditions, in one text."""
    found = Amount.objects.filter(*conditions, **lookups).order_by("name")
    return "".join(row.name for row in found)


@contextmanager
def one_row(**given: Any) -> Generator[Amount]:
    """One more row, named z, which is gone afterwards."""
    row = Amount.objects.create(name="z", **given)
    yield row
    row.delete()
