"""Models whose primary key has several columns."""

from __future__ import annotations

import datetime as dt
import decimal

from treefold_orm import CompositePrimaryKey, Model, Now, Reverse, fields


class Tenant(Model):
    """What a key points to."""

    name = fields.CharField(max_length=20)
    lines: Reverse[Line]


class Line(Model):
    """A key of a relation and a number."""

    pk = CompositePrimaryKey("tenant", "number")
    tenant = fields.ForeignKey(Tenant, on_delete="CASCADE", related_name="lines")
    number = fields.IntegerField()
    title = fields.CharField(max_length=20, default="")
    price = fields.DecimalField(max_digits=8, decimal_places=2, default=decimal.Decimal("0"))
    tenant_id: int


class Reading(Model):
    """Parts of types that travel encoded, a version, and a column that the database fills."""

    pk = CompositePrimaryKey("sensor", "day", "rank")
    sensor = fields.UUIDField()
    day = fields.DateField()
    rank = fields.DecimalField(max_digits=6, decimal_places=2, db_default=decimal.Decimal("1"))
    value = fields.IntegerField(default=0)
    made = fields.DateTimeField(db_default=Now())
    version = fields.IntegerField(default=1)

    class Meta:
        version_field = "version"
        ordering = ("-pk",)


class Lid(Model):
    """At most one for each tenant."""

    pk = CompositePrimaryKey("tenant", "size")
    tenant = fields.OneToOneField(Tenant, on_delete="CASCADE", related_name="lid")
    size = fields.IntegerField()
    color = fields.CharField(max_length=10, null=True)


class Label(Model):
    """The far side of a many-to-many relation."""

    text = fields.CharField(max_length=20)


class Shelf(Model):
    """Many-to-many through rows with a key of two relations."""

    name = fields.CharField(max_length=20)
    labels = fields.ManyToManyField(Label, through="Badge", related_name="shelves")


class Badge(Model):
    """The table between."""

    pk = CompositePrimaryKey("shelf", "label")
    shelf = fields.ForeignKey(Shelf, on_delete="CASCADE", related_name="+")
    label = fields.ForeignKey(Label, on_delete="CASCADE", related_name="+")
    since = fields.DateField(default=dt.date(2026, 1, 1))


ALL = (Tenant, Line, Lid, Reading, Label, Shelf, Badge)
