"""All field types, under the names models use: `from treefold_orm import fields`."""

from treefold_orm._fields._base import Field
from treefold_orm._fields._numbers import (
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
from treefold_orm._fields._relations import (
    CASCADE,
    RESTRICT,
    SET_DEFAULT,
    SET_NULL,
    ForeignKey,
    ManyToManyField,
    OneToOneField,
)
from treefold_orm._fields._structured import (
    ArrayField,
    BinaryField,
    EnumField,
    JSONField,
    UUIDField,
)
from treefold_orm._fields._text import CharField, EmailField, SlugField, TextField, URLField
from treefold_orm._fields._times import DateField, DateTimeField, DurationField, TimeField

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
