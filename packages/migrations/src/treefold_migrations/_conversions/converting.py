"""The conversion of stored values where a field changes, by the table of each database.

Example, `find_conversion` receives both fields: from `integer` to `bigint` each value stays, so
there is no conversion, and PostgreSQL needs no USING:

    >>> AlterField("book", "pages", fields.BigIntegerField(null=True))
    PostgreSQL: ALTER TABLE "book" ALTER COLUMN "pages" TYPE bigint
"""

from __future__ import annotations

import enum
from typing import Any, cast

from treefold_migrations._base.errors import PlanError
from treefold_migrations._conversions import conversion_postgres, conversion_sqlite
from treefold_migrations._conversions.conversion import (
    AnyField,
    Conversion,
    build_ordered_or_condition,
    escape_column_placeholder,
    find_max_length,
    find_value_kind,
)
from treefold_orm.fields import EnumField
from treefold_orm.schema import Dialect, is_foreign_key, literal

TABLES = {"postgres": conversion_postgres.CONVERSIONS, "sqlite": conversion_sqlite.CONVERSIONS}
"""Conversions of values, by database and by the kinds of the fields."""


def find_conversion(
    old: AnyField, new: AnyField, dialect: Dialect, *, field_path: str, using: str = ""
) -> Conversion | None:
    """Return how the values of a column change, or None where each stays as it is.

    Foreign keys are given as the key they point to. `field_path` is `table.column` for messages;
    `using` is an SQL expression of the caller's own, which is trusted.

    Raises:
        PlanError: the types have no safe conversion, and `using` was not given.
    """
    if is_foreign_key(old) or is_foreign_key(new):
        raise TypeError(f"{field_path}: resolve a foreign key to the key that it points to")
    if using:
        return Conversion(escape_column_placeholder(f"({using})"))
    pair = find_value_kind(old), find_value_kind(new)
    rule = TABLES[dialect.name].get(pair)
    if rule is not None:
        made = rule if isinstance(rule, Conversion) else rule(old, new)
    elif pair[0] == pair[1] and _has_same_column_type(old, new, dialect):
        made = Conversion()
    else:
        raise PlanError(
            f"{field_path} cannot change from {type(old).__name__} to {type(new).__name__} without "
            "an expression for its values: give one with using=, or add a field and copy the "
            "values in a data migration"
        )
    made = _add_enum_misfit(old, new, dialect, _add_length_misfit(pair, new, made))
    return None if made == Conversion() and _has_same_column_type(old, new, dialect) else made


def _has_same_column_type(old: AnyField, new: AnyField, dialect: Dialect) -> bool:
    return old.column_type(dialect.name) == new.column_type(dialect.name)


def _add_length_misfit(kinds: tuple[str, str], new: AnyField, conversion: Conversion) -> Conversion:
    limit = find_max_length(new)
    # text_to_text has the limit already, and asks only where it shrinks
    if kinds[1] != "text" or kinds[0] == "text" or limit is None:
        return conversion
    misfit = f"length({conversion.value}) > {limit}"
    return _add_misfit_condition(conversion, misfit, f"a value of more than {limit} characters")


def _add_misfit_condition(conversion: Conversion, condition: str, description: str) -> Conversion:
    both = build_ordered_or_condition(conversion.misfit, condition)
    what = f"{conversion.what}, or {description}" if conversion.what else description
    return Conversion(conversion.value, both, what)


def _add_enum_misfit(
    old: AnyField, new: AnyField, dialect: Dialect, conversion: Conversion
) -> Conversion:
    if not isinstance(new, EnumField):
        return conversion
    wanted = _list_enum_values(new)
    # the check of the old field held, so that no row can have another value
    if isinstance(old, EnumField) and _list_enum_values(old) <= wanted:
        return conversion
    listed = ", ".join(sorted(literal(value, dialect) for value in wanted))
    name = cast("type[enum.Enum]", new.enum_class).__name__
    return _add_misfit_condition(
        conversion,
        f"{conversion.value} NOT IN ({escape_column_placeholder(listed)})",
        f"a value that {name} does not have",
    )


def _list_enum_values(field: AnyField) -> set[Any]:
    members: Any = cast("Any", field).enum_class
    return {member.value for member in members}
