"""A chain of bakeries with made-up sales, as models and as plain Python, for reports."""

from __future__ import annotations

import datetime as dt
import random
from dataclasses import dataclass
from decimal import Decimal
from functools import cache

from treefold_orm import Model, fields


class Baker(Model):
    name = fields.CharField(max_length=20)
    head = fields.ForeignKey("orm_bakery.Baker", null=True, related_name="team")


class Bread(Model):
    name = fields.CharField(max_length=20)
    price = fields.DecimalField(max_digits=8, decimal_places=2)
    grams = fields.IntegerField()
    baker = fields.ForeignKey(Baker, related_name="breads")


class Sale(Model):
    town = fields.CharField(max_length=20)
    at = fields.DateTimeField()
    bread = fields.ForeignKey(Bread, related_name="sales")
    pieces = fields.IntegerField()
    paid = fields.DecimalField(max_digits=8, decimal_places=2)


ALL = (Baker, Bread, Sale)
HEADS = {1: None, 2: 1, 3: 1, 4: 2, 5: 2, 6: 4}
TOWNS = ("Bern", "Lyon", "Oslo")


@dataclass(frozen=True)
class PlainBread:
    """A row of `Bread`."""

    id: int
    name: str
    price: Decimal
    grams: int
    baker: int


@dataclass(frozen=True)
class PlainSale:
    """A row of `Sale`."""

    id: int
    town: str
    at: dt.datetime
    bread: int
    pieces: int
    paid: Decimal


@cache
def breads() -> dict[int, PlainBread]:
    """The breads by key; the last is never sold."""
    rng = random.Random(7)
    return {
        i: PlainBread(
            i,
            f"bread {i}",
            Decimal(rng.randrange(150, 950)) / 100,
            rng.randrange(80, 1200),
            i % 5 + 1,
        )
        for i in range(1, 9)
    }


@cache
def sales() -> tuple[PlainSale, ...]:
    """Two hundred sales of three years, in order of their keys."""
    rng = random.Random(11)
    begin = dt.datetime(2022, 1, 1, 6, tzinfo=dt.UTC)
    made: list[PlainSale] = []
    for i in range(1, 201):
        bread = breads()[rng.randrange(1, 8)]
        pieces = rng.randrange(1, 6)
        at = begin + dt.timedelta(minutes=rng.randrange(3 * 365 * 24 * 60))
        rebate = Decimal(rng.choice([0, 0, 5, 10])) / 100
        paid = (bread.price * pieces * (1 - rebate)).quantize(Decimal("0.01"))
        made.append(PlainSale(i, rng.choice(TOWNS), at, bread.id, pieces, paid))
    return tuple(made)


async def fill() -> None:
    """Write all rows."""
    for key, head in HEADS.items():
        await Baker.objects.acreate(id=key, name=f"baker {key}", head_id=head)
    await Bread.objects.abulk_create(
        [
            Bread(id=b.id, name=b.name, price=b.price, grams=b.grams, baker_id=b.baker)
            for b in breads().values()
        ]
    )
    await Sale.objects.abulk_create(
        [
            Sale(id=s.id, town=s.town, at=s.at, bread_id=s.bread, pieces=s.pieces, paid=s.paid)
            for s in sales()
        ]
    )
