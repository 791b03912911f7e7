"""How stored values change where a field changes: the value after, and which values do not fit.

A value is converted only where it keeps its meaning; a value to be rounded, cut or guessed does not
fit, and a pair of types without such a conversion is refused. In the SQL here `{0}` is the column
before.

Example, one decimal place instead of two: the value is the number itself, and the misfits are
numbers that have a second digit or become too long:

    >>> AlterField("book", "price", fields.DecimalField(max_digits=8, decimal_places=1, null=True))
    PostgreSQL: SELECT count(*) ...
    WHERE "price" IS NOT NULL AND ("price" <> round("price", 1) OR ...
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from treefold_orm.fields import DecimalField, EnumField, IntegerField, TextField
from treefold_orm.schema import Field

AnyField = Field[Any]


@dataclass(frozen=True, slots=True)
class Conversion:
    """SQL that converts the values of a column.

    Attributes:
        value: the converted value; `{0}` is the old one. SQL of others comes through
            `escape_column_placeholder`.
        misfit: a condition that is true for values that cannot be converted.
        what: those values in words.
        castable: a PostgreSQL type; text that is not valid for it is a misfit too, tested first.
    """

    value: str = "{0}"
    misfit: str = ""
    what: str = ""
    castable: str = ""

    @property
    def keeps_values(self) -> bool:
        """True where stored values stay as they are."""
        return self.value == "{0}"

    def render_value(self, column: str) -> str:
        """The value after, of a quoted column or an expression."""
        return _substitute_column_placeholder(self.value, column)

    def render_misfit_condition(self, column: str) -> str:
        """The condition for values that do not fit; NULL always does."""
        # a condition over NULL is NULL, and CASE inside of it would take its ELSE branch for a
        # misfit
        return f"{column} IS NOT NULL AND ({_substitute_column_placeholder(self.misfit, column)})"


def escape_column_placeholder(sql: str) -> str:
    """SQL in which a Conversion leaves `{0}` as it is."""
    # neither database takes a NUL in a statement, so that no SQL has this mark of its own
    return sql.replace("{0}", "{\0}")


def _substitute_column_placeholder(sql: str, column: str) -> str:
    # in this order an escaped mark is never taken for the column
    return sql.replace("{0}", column).replace("{\0}", "{0}")


Rule = Conversion | Callable[[AnyField, AnyField], Conversion]
"""The conversion of a pair of types: the same for all fields, or a function of both."""


def find_value_kind(field: AnyField) -> str:
    """The kind of a field's values, as far as conversions tell kinds apart."""
    if isinstance(field, EnumField):
        return find_value_kind(field.base)
    if isinstance(field, IntegerField):
        return "integer"
    # a column without a zone, which another tool writes
    if field.internal == "datetime" and field.storage:
        return "naive"
    return field.internal or type(field).__name__


def build_ordered_or_condition(first: str, second: str) -> str:
    """The condition for values of which one condition or the other holds; the second one is
    evaluated only where the first one is false.
    """
    # OR has no order in SQL: the second one may cast text that the first one finds not to be a
    # number
    return f"CASE WHEN {first} THEN TRUE ELSE {second} END" if first else second


def text_to_text(old: AnyField, new: AnyField) -> Conversion:
    """Text of another length, on both databases."""
    limit = find_reduced_max_length(old, new)
    if limit is None:
        return Conversion()
    return Conversion("{0}", f"length({{0}}) > {limit}", f"text of more than {limit} characters")


def describe_too_many_digits(field: AnyField) -> str:
    """Words for a number that a decimal field does not take."""
    size, places, _ = read_decimal_options(field)
    return f"a number that needs more than {size} digits with {places} places"


def find_integer_range(field: AnyField) -> tuple[int, int]:
    """The smallest and the largest integer of a field."""
    if isinstance(field, EnumField):
        return find_integer_range(field.base)
    number: IntegerField[Any] = cast("Any", field)
    return number.low, number.high


def can_exceed_range(old: AnyField, new: AnyField) -> bool:
    """True where an integer of `old` may lie outside of `new`."""
    low, high = find_integer_range(new)
    first, last = find_integer_range(old)
    return first < low or last > high


def find_reduced_max_length(old: AnyField, new: AnyField) -> int | None:
    """The length that text of `old` may exceed in `new`, or None."""
    limit = find_max_length(new)
    before = find_max_length(old)
    # a limit that grows reads no row
    return limit if limit is not None and (before is None or before > limit) else None


def find_max_length(field: AnyField) -> int | None:
    """The greatest length of a text field."""
    if isinstance(field, EnumField):
        return find_max_length(field.base)
    return field.max_length if isinstance(field, TextField) else None


def read_decimal_options(field: AnyField) -> tuple[int, int, str]:
    """Digits, places and storage of a decimal field."""
    number: DecimalField[Any] = cast("Any", field)
    return number.max_digits, number.decimal_places, number.storage
