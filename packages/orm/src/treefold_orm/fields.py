"""All field types, under the names models use: `from treefold_orm import fields`."""

from treefold_orm._fields.base import Field as Field
from treefold_orm._fields.keys import CompositePrimaryKey as CompositePrimaryKey
from treefold_orm._fields.network import GenericIPAddressField as GenericIPAddressField
from treefold_orm._fields.numbers import (
    AutoField as AutoField,
    BigAutoField as BigAutoField,
    BigIntegerField as BigIntegerField,
    BooleanField as BooleanField,
    DecimalField as DecimalField,
    FloatField as FloatField,
    IntegerField as IntegerField,
    PositiveBigIntegerField as PositiveBigIntegerField,
    PositiveIntegerField as PositiveIntegerField,
    PositiveSmallIntegerField as PositiveSmallIntegerField,
    SmallIntegerField as SmallIntegerField,
)
from treefold_orm._fields.relations import (
    CASCADE as CASCADE,
    PROTECT as PROTECT,
    RESTRICT as RESTRICT,
    SET_DEFAULT as SET_DEFAULT,
    SET_NULL as SET_NULL,
    ForeignKey as ForeignKey,
    OneToOneField as OneToOneField,
)
from treefold_orm._fields.structured import (
    ArrayField as ArrayField,
    BinaryField as BinaryField,
    EnumField as EnumField,
    JSONField as JSONField,
    UUIDField as UUIDField,
)
from treefold_orm._fields.text import (
    CharField as CharField,
    EmailField as EmailField,
    SlugField as SlugField,
    TextField as TextField,
    URLField as URLField,
)
from treefold_orm._fields.times import (
    DateField as DateField,
    DateTimeField as DateTimeField,
    DurationField as DurationField,
    TimeField as TimeField,
)
from treefold_orm._models.many_to_many import ManyToManyField as ManyToManyField
