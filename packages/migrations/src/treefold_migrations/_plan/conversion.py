"""How stored values change where a field changes: the value after, and which values do not fit.

A value is converted only where it keeps its meaning; what would be rounded, cut or guessed does not
fit, and a pair of types without such a conversion is refused. In the SQL here `{0}` is the column
before.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Any, cast

from treefold_migrations._base.errors import PlanError
from treefold_orm.fields import DecimalField, EnumField, IntegerField, TextField
from treefold_orm.schema import Dialect, Field, is_foreign_key, literal

AnyField = Field[Any]


@dataclass(frozen=True, slots=True)
class Conversion:
    """`value` is the value after, `misfit` a condition on values that cannot be converted, and
    `what` describes those in words. `castable` is a PostgreSQL type that text must be a value of,
    which is tested before `misfit`.
    """

    value: str = "{0}"
    misfit: str = ""
    what: str = ""
    castable: str = ""

    @property
    def keeps(self) -> bool:
        """True where stored values stay as they are."""
        return self.value == "{0}"

    def of(self, column: str) -> str:
        """The value after, of a quoted column or an expression."""
        return self.value.replace("{0}", column)

    def misfit_of(self, column: str) -> str:
        """The condition for values that do not fit; NULL always does."""
        return f"{column} IS NOT NULL AND ({self.misfit.replace('{0}', column)})"


def kind_of(field: AnyField) -> str:
    """The kind of a field's values, as far as conversions tell kinds apart."""
    if isinstance(field, EnumField):
        return kind_of(field.base)
    if isinstance(field, IntegerField):
        return "integer"
    if field.internal == "datetime" and field.storage:
        return "naive"
    return field.internal or type(field).__name__


def convert(
    old: AnyField, new: AnyField, dialect: Dialect, *, place: str, using: str = ""
) -> Conversion | None:
    """Return how the values of a column change, or None where each stays as it is.

    Foreign keys are given as the key they point to. `place` is `table.column` for messages; `using`
    is an SQL expression of the caller's own, which is trusted.

    Raises:
        PlanError: the types have no safe conversion, and `using` was not given.
    """
    if is_foreign_key(old) or is_foreign_key(new):
        raise TypeError(f"{place}: resolve a foreign key to the key that it points to")
    if using:
        return Conversion(f"({using})")
    from treefold_migrations._plan import conversion_postgres, conversion_sqlite

    room = conversion_postgres if dialect.name == "postgres" else conversion_sqlite
    pair = kind_of(old), kind_of(new)
    make = room.CONVERSIONS.get(pair)
    if make is not None:
        made = make(old, new)
    elif pair[0] == pair[1] and _same_column(old, new, dialect):
        made = Conversion()
    else:
        raise PlanError(
            f"{place} cannot change from {type(old).__name__} to {type(new).__name__} without an "
            "expression for its values: give one with using=, or add a field and copy the values "
            "in a data migration"
        )
    made = _removed_members(old, new, dialect, _limited(pair, new, made))
    return None if made == Conversion() and _same_column(old, new, dialect) else made


def _same_column(old: AnyField, new: AnyField, dialect: Dialect) -> bool:
    return old.column_type(dialect.name) == new.column_type(dialect.name)


def _limited(pair: tuple[str, str], new: AnyField, made: Conversion) -> Conversion:
    limit = length_of(new)
    if pair[1] != "text" or pair[0] == "text" or limit is None:
        return made
    misfit = f"length({made.value}) > {limit}"
    return _also(made, misfit, f"a value of more than {limit} characters")


def _also(made: Conversion, misfit: str, what: str) -> Conversion:
    both = either(made.misfit, misfit)
    return Conversion(made.value, both, f"{made.what}, or {what}" if made.what else what)


def either(first: str, second: str) -> str:
    """The condition for values of which one condition or the other holds; the second one is
    evaluated only where the first one is false.
    """
    return f"CASE WHEN {first} THEN TRUE ELSE {second} END" if first else second


def text_to_text(old: AnyField, new: AnyField) -> Conversion:
    """Text of another length, on both databases."""
    limit = shorter(old, new)
    if limit is None:
        return Conversion()
    return Conversion("{0}", f"length({{0}}) > {limit}", f"text of more than {limit} characters")


def too_many_digits(field: AnyField) -> str:
    """Words for a number that a decimal field does not take."""
    size, places, _ = digits(field)
    return f"a number that needs more than {size} digits with {places} places"


def _removed_members(
    old: AnyField, new: AnyField, dialect: Dialect, made: Conversion
) -> Conversion:
    if not isinstance(new, EnumField):
        return made
    wanted = _values(new)
    if isinstance(old, EnumField) and _values(old) <= wanted:
        return made
    listed = ", ".join(sorted(literal(value, dialect) for value in wanted))
    name = cast("type[enum.Enum]", new.enum_class).__name__
    return _also(made, f"{made.value} NOT IN ({listed})", f"a value that {name} does not have")


def _values(field: AnyField) -> set[Any]:
    members: Any = cast("Any", field).enum_class
    return {member.value for member in members}


def integer_range(field: AnyField) -> tuple[int, int]:
    """The smallest and the largest integer of a field."""
    if isinstance(field, EnumField):
        return integer_range(field.base)
    number: IntegerField[Any] = cast("Any", field)
    return number.low, number.high


def narrower(old: AnyField, new: AnyField) -> bool:
    """True where an integer of `old` may lie outside of `new`."""
    low, high = integer_range(new)
    first, last = integer_range(old)
    return first < low or last > high


def shorter(old: AnyField, new: AnyField) -> int | None:
    """The length that text of `old` may exceed in `new`, or None."""
    limit = length_of(new)
    before = length_of(old)
    return limit if limit is not None and (before is None or before > limit) else None


def length_of(field: AnyField) -> int | None:
    """The greatest length of a text field."""
    if isinstance(field, EnumField):
        return length_of(field.base)
    return field.max_length if isinstance(field, TextField) else None


def digits(field: AnyField) -> tuple[int, int, str]:
    """Digits, places and storage of a decimal field."""
    number: DecimalField[Any] = cast("Any", field)
    return number.max_digits, number.decimal_places, number.storage
