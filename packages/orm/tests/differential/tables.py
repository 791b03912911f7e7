"""One shop in both ORMs: on PostgreSQL the same tables, on SQLite the same rows in two files.

Django is imported where it is needed and by name, because only the environment of the ORM's tests
has it.
"""

from __future__ import annotations

import datetime as dt
import importlib
import random
from decimal import Decimal as D
from types import SimpleNamespace
from typing import Any

from treefold_orm import Model, Reverse, fields

UTC = dt.UTC
WORDS = ["ash", "Birch", "oak", "Élan", "tea 12", "", "o'k", "10.5", "50%", "a_b"]


class Shop(Model):
    """The one side."""

    name = fields.CharField(max_length=20)
    opened = fields.DateField(null=True)
    fee = fields.DecimalField(max_digits=8, decimal_places=3, null=True)
    floors = fields.IntegerField(null=True)
    sales: Reverse[Sale]

    class Meta:
        table = "diff_shop"


class Sale(Model):
    """The many side, with a column of each type."""

    shop = fields.ForeignKey(Shop, related_name="sales")
    amount = fields.IntegerField(null=True)
    small = fields.SmallIntegerField(null=True)
    price = fields.DecimalField(max_digits=8, decimal_places=2, null=True)
    rate = fields.DecimalField(max_digits=6, decimal_places=4, null=True)
    weight = fields.FloatField(null=True)
    title = fields.CharField(max_length=40, null=True)
    paid = fields.BooleanField(null=True)
    day = fields.DateField(null=True)
    moment = fields.DateTimeField(null=True)
    span = fields.DurationField(null=True)
    extra = fields.JSONField(null=True)

    class Meta:
        table = "diff_sale"


def _maybe(rng: random.Random, value: Any) -> Any:
    return None if rng.random() < 0.12 else value


def _decimal(rng: random.Random, places: int, *choices: int) -> D:
    return D(rng.choice(choices)).scaleb(-places)


def rows(seed: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Make the rows of both tables."""
    rng = random.Random(seed)
    start = dt.datetime(2023, 12, 25, 23, 59, 59, 999999, tzinfo=UTC)
    shops = [
        {
            "id": key,
            "name": rng.choice(WORDS),
            "opened": _maybe(rng, dt.date(2023, 12, 20) + dt.timedelta(rng.randrange(700))),
            "fee": _maybe(rng, D(rng.randrange(-2000, 20000)).scaleb(-3)),
            "floors": _maybe(rng, rng.randrange(4)),
        }
        for key in range(1, 6)
    ]
    sales: list[dict[str, Any]] = []
    for key in range(1, 41):
        moment = start + dt.timedelta(seconds=rng.randrange(10**7), microseconds=rng.randrange(2))
        midnight = dt.datetime.combine(moment.date(), dt.time(), UTC)
        extra: dict[str, Any] = {"n": rng.randrange(-3, 9), "s": rng.choice(WORDS)}
        sales.append(
            {
                "id": key,
                "shop_id": rng.randrange(1, 6),
                "amount": _maybe(rng, rng.choice([0, 1, 2, 3, 5, 7, 12, 60, -4])),
                "small": _maybe(rng, rng.randrange(-3, 30)),
                "price": _maybe(rng, _decimal(rng, 2, 250, 30, 700, -50, 0, rng.randrange(50000))),
                "rate": _maybe(rng, _decimal(rng, 4, 25000, 10000, 3050, rng.randrange(99999))),
                "weight": _maybe(rng, rng.choice([0.0, 2.5, 0.3, 7.0, 4.5, -2.5, 60.0, 0.1])),
                "title": _maybe(rng, rng.choice(WORDS)),
                "paid": _maybe(rng, rng.random() < 0.5),
                "day": _maybe(rng, moment.date() + dt.timedelta(rng.randrange(-1, 2))),
                "moment": _maybe(rng, rng.choice([moment, midnight])),
                "span": _maybe(rng, dt.timedelta(0, rng.randrange(-9, 9), rng.choice([0, 1, 99]))),
                "extra": rng.choice([None, extra, {}, extra]),
            }
        )  # fmt: skip
    return shops, sales


def store(alias: str, seed: int) -> None:
    """Write the rows with this ORM."""
    shops, sales = rows(seed)
    Shop.objects.using(alias).bulk_create([Shop(**row) for row in shops])
    Sale.objects.using(alias).bulk_create([Sale(**row) for row in sales])


def django(sqlite: str, postgres: dict[str, Any]) -> SimpleNamespace:
    """Set Django up; return its models and the names of its query language."""
    conf: Any = importlib.import_module("django.conf")
    settings: Any = conf.settings
    databases = {
        "default": {"ENGINE": "django.db.backends.postgresql", **postgres},
        "lite": {"ENGINE": "django.db.backends.sqlite3", "NAME": sqlite},
    }
    if not settings.configured:
        settings.configure(
            DATABASES=databases, USE_TZ=True, TIME_ZONE="UTC", INSTALLED_APPS=["differential"],
            DEFAULT_AUTO_FIELD="django.db.models.BigAutoField",
        )  # fmt: skip
        importlib.import_module("django").setup()
    models: Any = importlib.import_module("django.db.models")
    functions: Any = importlib.import_module("django.db.models.functions")
    names: dict[str, Any] = {**vars(functions), **vars(models)}
    names["KT"] = importlib.import_module("django.db.models.fields.json").KT
    names["DataError"] = importlib.import_module("django.db.utils").DataError
    names["connections"] = importlib.import_module("django.db").connections
    names["transaction"] = importlib.import_module("django.db.transaction")
    return SimpleNamespace(**names, **_models(models))


def _models(models: Any) -> dict[str, Any]:
    def options(table: str) -> Any:
        return type("Meta", (), {"app_label": "differential", "db_table": table})

    shop = type(
        "DjangoShop",
        (models.Model,),
        {
            "__module__": __name__,
            "Meta": options("diff_shop"),
            "name": models.TextField(),
            "opened": models.DateField(null=True),
            "fee": models.DecimalField(max_digits=8, decimal_places=3, null=True),
            "floors": models.IntegerField(null=True),
        },
    )
    sale = type(
        "DjangoSale",
        (models.Model,),
        {
            "__module__": __name__,
            "Meta": options("diff_sale"),
            "shop": models.ForeignKey(shop, models.CASCADE, related_name="sales"),
            "amount": models.IntegerField(null=True),
            "small": models.SmallIntegerField(null=True),
            "price": models.DecimalField(max_digits=8, decimal_places=2, null=True),
            "rate": models.DecimalField(max_digits=6, decimal_places=4, null=True),
            "weight": models.FloatField(null=True),
            "title": models.TextField(null=True),
            "paid": models.BooleanField(null=True),
            "day": models.DateField(null=True),
            "moment": models.DateTimeField(null=True),
            "span": models.DurationField(null=True),
            "extra": models.JSONField(null=True),
        },
    )
    return {"Shop": shop, "Sale": sale}


def store_django(names: Any, seed: int) -> None:
    """Make the tables of Django's SQLite file, and write the rows."""
    with names.connections["lite"].schema_editor() as editor:
        editor.create_model(names.Shop)
        editor.create_model(names.Sale)
    shops, sales = rows(seed)
    names.Shop.objects.using("lite").bulk_create([names.Shop(**row) for row in shops])
    names.Sale.objects.using("lite").bulk_create([names.Sale(**row) for row in sales])
