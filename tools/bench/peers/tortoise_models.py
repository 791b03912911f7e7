"""The table of the bench for Tortoise, which finds models by the name of their module."""

import importlib
from typing import Any

fields: Any = importlib.import_module("tortoise.fields")
models: Any = importlib.import_module("tortoise.models")


class Item(models.Model):
    """Five columns, as `orm_data.BenchItem`."""

    id = fields.IntField(primary_key=True)
    title = fields.CharField(max_length=100)
    body = fields.TextField()
    views = fields.IntField()
    created = fields.DatetimeField()

    class Meta:
        """The table that exists."""

        table = "benchitem"
