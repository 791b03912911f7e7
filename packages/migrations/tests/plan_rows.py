"""Rows for any table, as SQL literals of each database: a few that differ in every column."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from typing import Any, cast

from treefold_orm.fields import (
    ArrayField,
    CompositePrimaryKey as CompositePrimaryKey,
    DecimalField,
    EnumField,
    Field,
    TextField,
)
from treefold_orm.schema import Meta, is_foreign_key

COUNT = 3


def rows_of(meta: Meta, engine: str) -> Iterator[dict[str, str]]:
    """Rows for a table; generated keys are left to the database."""
    for number in range(1, COUNT + 1):
        yield {
            field.column_name: value_of(field, number, engine)
            for field in meta.columns
            if not field.generated
        }


def value_of(field: Field[Any], number: int, engine: str) -> str:
    """A value of a field, other for each number."""
    if is_foreign_key(field):
        if field.null and number == 1:
            return "NULL"
        pk = field.known_target.pk
        return str(number) if pk.generated else value_of(pk, number, engine)
    if field.null and number == 3:
        return "NULL"
    if isinstance(field, EnumField):
        members = list(cast("type[enum.Enum]", field.enum_class))
        value = members[number % len(members)].value
        return f"'{value}'" if isinstance(value, str) else str(value)
    if field.choices:
        values = list(field.choices)
        value = values[number % len(values)]
        return f"'{value}'" if isinstance(value, str) else str(value)
    if isinstance(field, ArrayField):
        return f"ARRAY[{value_of(field.base, number, engine)}]::{field.column_type(engine)}"
    return _plain(field, number, engine)


def _plain(field: Field[Any], number: int, engine: str) -> str:
    sqlite = engine == "sqlite"
    day = f"2024-01-0{number}"
    match field.internal:
        case "decimal" if isinstance(field, DecimalField):
            if field.storage == "text":
                return f"'{number}'"
            scaled = sqlite and not field.storage
            whole = number if field.max_digits > field.decimal_places else 0
            return str(whole * 10**field.decimal_places) if scaled else str(whole)
        case "text" if isinstance(field, TextField):
            return f"'{number}'"
        case "boolean":
            return "TRUE" if number % 2 else "FALSE"
        case "date":
            return f"'{day}'"
        case "time":
            return f"'0{number}:00:00.000000'"
        case "datetime":
            if field.storage:
                return f"'{day} 00:00:00'"
            return f"'{day} 00:00:00.000000+00:00'"
        case "duration":
            return str(number) if sqlite else f"interval '{number} seconds'"
        case "uuid":
            return f"'00000000-0000-4000-8000-00000000000{number}'"
        case "binary":
            return f"X'0{number}'" if sqlite else f"'\\x0{number}'::bytea"
        case "json":
            return f"'[{number}]'"
        case "float":
            return f"{number}.0"
        case "text":
            return f"'{number}'"
        case _:
            return str(number)
