"""Cast: a value as another type."""

from __future__ import annotations

import datetime as dt
import uuid
from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.casts import cast_to
from treefold_orm._expressions.conversion import (
    choose_matching_datetime_field,
    classify_field,
    count_integer_bits,
    follow_foreign_keys,
    intern_decimal_field,
)
from treefold_orm._expressions.nodes import Expr
from treefold_orm._expressions.resolving import Resolvable, resolve
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField, Field
from treefold_orm._fields.carriers import BY_TYPE
from treefold_orm._fields.numbers import DecimalField, IntegerField, SmallIntegerField
from treefold_orm._fields.structured import EnumField
from treefold_orm._terms.values import as_expression

_INTEGERS: dict[int, AnyField] = {16: SmallIntegerField(), 32: IntegerField(), 64: BY_TYPE[int]}
_TYPES = (int, float, str, bool, dt.date, dt.time, dt.datetime, uuid.UUID)
_TARGETS = {BY_TYPE[kind].internal: BY_TYPE[kind] for kind in _TYPES}


class Cast(Resolvable):
    """The value as another type: `Cast("price", int)`, `Cast("n", fields.DecimalField(...))`.

    Fractions are rounded half away from zero. Text must have the form of the type: ISO dates and
    times, a datetime with its offset from UTC. `max_length` of a text field does not cut.

    Args:
        expression: a field or expression.
        output_field: a field without a model, or one of the types int, float, str, bool, date,
            time, datetime and UUID.

    Raises `FieldError` where one type has no meaning as the other, and `DataError` for a row whose
    value is not one of that type.
    """

    def __init__(self, expression: object, output_field: AnyField | type[Any]) -> None:
        self.expression = expression
        self.output_field = _normalize_cast_target(output_field)

    def resolve(self, scope: Scope) -> Expr:
        node = resolve(as_expression(self.expression), scope.enter_level())
        return cast_to(node, self.output_field)


def _normalize_cast_target(given: Any) -> AnyField:
    """The one field that stands for all that cast alike: plans are kept by it."""
    if isinstance(given, type):
        if given in _TYPES:
            return BY_TYPE[given]
        remedy = "use a field such as fields.DecimalField(max_digits=12, decimal_places=2)"
        raise FieldError(f"Cast must be given a type that has a column, got {given!r}; {remedy}")
    if not isinstance(given, Field):
        raise FieldError(f"Cast must be given a field or a type, got {given!r}")
    field = follow_foreign_keys(cast("AnyField", given))
    if isinstance(field, DecimalField):
        # without its model, so that all casts to so many digits are one type
        return intern_decimal_field(_copy_unbound(field))
    if isinstance(field, EnumField):
        raise FieldError(
            f"Cast must be given the type of the values of an EnumField, got {field!r}; use "
            f"{'int' if classify_field(field) == 'integer' else 'str'}"
        )
    if classify_field(field) == "integer":
        return _INTEGERS[count_integer_bits(field)]
    if classify_field(field) == "datetime":
        return choose_matching_datetime_field(field)
    return _TARGETS.get(field.internal, field)


def _copy_unbound(field: DecimalField[Any]) -> AnyField:
    made: AnyField = DecimalField(max_digits=field.max_digits, decimal_places=field.decimal_places)
    return made
