"""All field types, under the names models use: `from treefold_orm import fields`."""

from treefold_orm._fields.base import Field
from treefold_orm._fields.keys import CompositePrimaryKey
from treefold_orm._fields.numbers import (
    AutoField,
    BigAutoField,
    BigIntegerField,
    BooleanField,
    DecimalField,
    FloatField,
    IntegerField,
    PositiveBigIntegerField,
    PositiveIntegerField,
    PositiveSmallIntegerField,
    SmallIntegerField,
)
from treefold_orm._fields.relations import (
    CASCADE,
    RESTRICT,
    SET_DEFAULT,
    SET_NULL,
    ForeignKey,
    ManyToManyField,
    OneToOneField,
)
from treefold_orm._fields.structured import (
    ArrayField,
    BinaryField,
    EnumField,
    JSONField,
    UUIDField,
)
from treefold_orm._fields.text import CharField, EmailField, SlugField, TextField, URLField
from treefold_orm._fields.times import DateField, DateTimeField, DurationField, TimeField

__all__ = [
    "CASCADE",
    "RESTRICT",
    "SET_DEFAULT",
    "SET_NULL",
    "ArrayField",
    "AutoField",
    "BigAutoField",
    "BigIntegerField",
    "BinaryField",
    "BooleanField",
    "CharField",
    "CompositePrimaryKey",
    "DateField",
    "DateTimeField",
    "DecimalField",
    "DurationField",
    "EmailField",
    "EnumField",
    "Field",
    "FloatField",
    "ForeignKey",
    "IntegerField",
    "JSONField",
    "ManyToManyField",
    "OneToOneField",
    "PositiveBigIntegerField",
    "PositiveIntegerField",
    "PositiveSmallIntegerField",
    "SlugField",
    "SmallIntegerField",
    "TextField",
    "TimeField",
    "URLField",
    "UUIDField",
]
