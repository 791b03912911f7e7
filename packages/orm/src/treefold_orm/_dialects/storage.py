"""Where a column of another tool becomes SQL: in the form that its values have inside of queries,
and back where it is written.

A decimal kept as REAL or text is a scaled integer (SQLite) or a numeric, a time without a zone is
taken as UTC. Everything else of the compiler knows nothing of it.
"""

from __future__ import annotations

from treefold_orm._dialects.dialect import Dialect
from treefold_orm._dialects.sql import SQL, quote_name_as_string, render_integer
from treefold_orm._expressions.conversion import count_decimal_places
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.carriers import FLOAT


def convert_from_storage(dialect: Dialect, value: SQL, field: AnyField) -> SQL:
    """A column's own value as it travels inside of queries."""
    places, sqlite = render_integer(count_decimal_places(field)), dialect.name == "sqlite"
    if field.storage == "naive":
        if sqlite:
            return SQL("treefold_load_moment({}, {})", value, _quote_qualified_field_name(field))
        return SQL("({} AT TIME ZONE 'UTC')", value)
    if sqlite:
        return SQL(
            "treefold_load_decimal({}, {}, {})", value, places, _quote_qualified_field_name(field)
        )
    return SQL("ROUND(({})::numeric, {})", value, places)


def convert_to_storage(dialect: Dialect, value: SQL, field: AnyField) -> SQL:
    """A value of a query as the column keeps it."""
    places, sqlite = render_integer(count_decimal_places(field)), dialect.name == "sqlite"
    if field.storage == "naive":
        template = "treefold_store_moment({})" if sqlite else "({} AT TIME ZONE 'UTC')"
        return SQL(template, value)
    if field.storage == "real":
        return dialect.build_conversion(value, field, FLOAT, "value")
    if sqlite:
        return SQL("treefold_store_decimal({}, {})", value, places)
    return SQL("ROUND(({})::numeric, {})::text", value, places)


def convert_param_to_storage(dialect: Dialect, mark: SQL, field: AnyField) -> SQL:
    """A parameter that is written into the column of `field`."""
    return convert_to_storage(dialect, dialect.cast(mark, field), field) if field.storage else mark


def convert_from_storage_if_needed(dialect: Dialect, value: SQL, field: AnyField) -> SQL:
    """A column that is read, `convert_from_storage` where another tool's form needs it."""
    return convert_from_storage(dialect, value, field) if field.storage else value


def _quote_qualified_field_name(field: AnyField) -> SQL:
    return quote_name_as_string(f"{field.meta.name}.{field.name}"[:63])
