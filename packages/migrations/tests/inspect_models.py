"""Tables with everything that a declaration can hold, for tests of catalogs."""

from __future__ import annotations

import decimal
import enum

from treefold_orm import (
    CheckConstraint,
    ExclusionConstraint,
    F,
    Index,
    Lower,
    Model,
    Now,
    Q,
    Range,
    SearchIndex,
    UniqueConstraint,
    fields,
)


class Size(enum.Enum):
    """Kept as text."""

    SMALL = "s"
    LARGE = "l"


class Shop(Model):
    """What the others point to."""

    _space = "inspect"
    name = fields.CharField(max_length=20, unique=True)

    class Meta:
        table = "inspect_shop"


class Item(Model):
    """Everything that both databases have."""

    _space = "inspect"
    shop = fields.ForeignKey(Shop, on_delete="CASCADE", related_name="+")
    twin = fields.OneToOneField("self", null=True, on_delete="SET_NULL", related_name="+")
    code = fields.CharField(max_length=10, db_index=True)
    label = fields.CharField(max_length=10, db_column="Label", db_default="it's")
    count = fields.PositiveIntegerField(null=True)
    made = fields.DateTimeField(db_default=Now())
    price = fields.DecimalField(max_digits=6, decimal_places=2, db_default=decimal.Decimal("5"))
    size = fields.EnumField(Size, db_default=Size.SMALL)
    text = fields.TextField(default="")
    on = fields.BooleanField(db_default=True)
    raw = fields.BinaryField(null=True, db_default=b"\x00'")
    data = fields.JSONField(null=True)
    key = fields.UUIDField(null=True)
    took = fields.DurationField(null=True)
    at = fields.TimeField(null=True)
    ratio = fields.FloatField(db_default=0.5)
    small = fields.SmallIntegerField(db_default=-1)

    class Meta:
        table = "Items of shops"
        constraints = (
            UniqueConstraint("shop", "code"),
            UniqueConstraint(Lower("label"), name="one_label", condition=Q(count__gt=1)),
            UniqueConstraint("count", "code", name="null_is_null", nulls_distinct=False),
            CheckConstraint(Q(count__lt=100) | Q(code="it's"), name="few"),
            CheckConstraint(Q(size__in=[Size.SMALL, Size.LARGE]), name="sizes"),
        )
        indexes = (
            Index("-code"),
            Index("label", "-count", condition=Q(count__isnull=False)),
            Index(Lower("code").desc(), "made", name="lowered"),
            SearchIndex(["text", "label"], name="words", config="english", weights="AB"),
        )


class Talk(Model):
    """What PostgreSQL has besides."""

    _space = "inspect"
    room = fields.IntegerField()
    begins = fields.DateTimeField()
    ends = fields.DateTimeField()
    note = fields.CharField(max_length=10)
    tags = fields.ArrayField(fields.TextField(), db_default=["a"])
    amounts = fields.ArrayField(fields.DecimalField(max_digits=6, decimal_places=2), null=True)

    class Meta:
        table = "inspect_talk"
        constraints = (
            UniqueConstraint("room", name="late", deferrable="deferred", include=["note"]),
            UniqueConstraint("note", name="soon", deferrable="immediate"),
            ExclusionConstraint(
                [(Range("begins", "ends", "[]"), "&&")],
                name="apart",
                condition=~Q(note="x"),
                deferrable="deferred",
            ),
        )
        indexes = (
            Index("note", opclasses=["varchar_pattern_ops"], include=["room"], name="by_start"),
            Index(F("begins").desc(nulls="last"), name="latest"),
        )


class Plain(Model):
    """In the place of `Talk` on SQLite."""

    _space = "inspect"
    room = fields.IntegerField()
    begins = fields.DateTimeField()
    ends = fields.DateTimeField()
    note = fields.CharField(max_length=10)

    class Meta:
        table = "inspect_talk"


BOTH = (Shop, Item)
POSTGRES = (Talk,)
