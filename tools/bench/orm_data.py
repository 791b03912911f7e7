"""The tables that `orm_bench` measures on, and what is in them."""

from __future__ import annotations

import datetime as dt
import decimal
import os
from typing import Any, cast

from treefold_orm import Model, Reverse, acreate_all, fields

ROWS = 1000
SCHEMA = f"treefold_bench_{os.getpid()}"
NOW = dt.datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=dt.UTC)
AUTHORS = 2000
POSTS = 10_000
TAGS = 50
TAGGED = 200  # posts that have tags, and five each


class BenchItem(Model):
    """Five columns: key, two texts, a number, a point in time."""

    title = fields.CharField(max_length=100)
    body = fields.TextField(default="")
    views = fields.IntegerField(default=0)
    created = fields.DateTimeField()


class BenchAuthor(Model):
    """The one side; a hundred teams."""

    name = fields.CharField(max_length=100)
    team = fields.IntegerField(db_index=True)
    posts: Reverse[BenchPost]


class BenchTag(Model):
    """The far side of a many-to-many relation."""

    name = fields.CharField(max_length=100)


class BenchPost(Model):
    """The many side."""

    title = fields.CharField(max_length=100)
    body = fields.TextField(default="")
    views = fields.IntegerField(default=0)
    author = fields.ForeignKey(BenchAuthor, related_name="posts")
    tags = fields.ManyToManyField(BenchTag, related_name="posts")


class BenchSale(Model):
    """Two decimals and a point in time, which SQLite keeps in a form of its own."""

    name = fields.CharField(max_length=100)
    price = fields.DecimalField(max_digits=10, decimal_places=2)
    rate = fields.DecimalField(max_digits=8, decimal_places=4)
    sold = fields.DateTimeField()


Sale = tuple[str, decimal.Decimal, decimal.Decimal, dt.datetime]


def items(count: int) -> list[tuple[str, str, int, dt.datetime]]:
    """Rows of items to insert."""
    return [(f"title {i}", "text " * 20, i, NOW) for i in range(count)]


def unsaved(count: int) -> list[BenchItem]:
    """Unsaved instances of the same rows."""
    return [BenchItem(title=t, body=b, views=v, created=s) for t, b, v, s in items(count)]


def sales(count: int) -> list[Sale]:
    """Rows of sales to insert."""
    unit, small = decimal.Decimal("0.01"), decimal.Decimal("0.0001")
    return [
        (f"sale {i}", i * 7 * unit, i * small, NOW + dt.timedelta(seconds=i)) for i in range(count)
    ]


def unsaved_sales(rows: list[Sale]) -> list[BenchSale]:
    """Unsaved instances of these rows."""
    return [BenchSale(name=n, price=p, rate=r, sold=s) for n, p, r, s in rows]


async def seed() -> None:
    """Create the tables and fill them."""
    await acreate_all(BenchItem, BenchAuthor, BenchTag, BenchPost, BenchSale)
    await BenchItem.objects.abulk_create(unsaved(ROWS))
    authors = [BenchAuthor(name=f"author {i}", team=i % 100) for i in range(AUTHORS)]
    await BenchAuthor.objects.abulk_create(authors)
    posts = [
        BenchPost(title=f"post {i}", body="text " * 20, views=i, author=authors[i * 7 % AUTHORS])
        for i in range(POSTS)
    ]
    await BenchPost.objects.abulk_create(posts)
    tags = [BenchTag(name=f"tag {i}") for i in range(TAGS)]
    await BenchTag.objects.abulk_create(tags)
    for i, post in enumerate(posts[:TAGGED]):
        await post.tags.aadd(*(tags[(i + step) % TAGS] for step in range(5)))
    await BenchSale.objects.abulk_create(unsaved_sales(sales(ROWS)))


async def connect(dsn: str, **options: Any) -> Any:
    """A plain connection of the driver, which has no type information."""
    import asyncpg  # pyright: ignore[reportMissingTypeStubs] - see above

    return await cast("Any", asyncpg).connect(dsn, **options)
