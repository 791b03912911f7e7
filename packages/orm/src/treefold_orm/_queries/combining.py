"""The types of a query's columns, and one type for each column of combined queries. No SQL.

The parts of a UNION, INTERSECT or EXCEPT give each column in the type that all of them share: a
step of the key says so for every part, and the rows are decoded by it.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._expressions.conversion import common_field
from treefold_orm._fields.base import Field

Key = tuple[Any, ...]
AnyField = Field[Any]


def column_fields(key: Key) -> tuple[AnyField | None, ...]:
    """The types of the columns that a query gives: of a query of instances, its key alone."""
    from treefold_orm._compile.state import replay  # loaded with the driver, not before

    state = replay(key)
    return state.meta.keys if state.rows == "instances" else state.output_fields


def in_one_type(key: Key) -> Key:
    """Return the key of a combined query, its parts converted column by column.

    Raises `FieldError` for columns of types that have none in common.
    """
    from treefold_orm._compile.state import replay  # loaded with the driver, not before

    parts = [replay(part).output_fields for part in _parts(key)]
    if len(set(map(len, parts))) != 1:
        return key  # refused when it is compiled, with the number of columns
    if all(part == parts[0] for part in parts):
        return _with_common(key, ())
    return _with_common(key, tuple(map(common_field, zip(*parts, strict=True))))


def _parts(key: Key) -> list[Key]:
    """The queries that a combined one is made of, those of its parts included."""
    own = tuple(step for step in key if step.__class__ is not tuple or step[0] not in _STEPS)
    found = [own]
    for step in key[1:]:
        if step[0] == "combine":
            found += _parts(step[2])
    return found


_STEPS = ("combine", "common")


def _with_common(key: Key, fields: tuple[AnyField | None, ...]) -> Key:
    steps: list[Any] = []
    for step in key[1:]:
        if step[0] == "combine":
            steps.append(("combine", step[1], _with_common(step[2], fields), step[3]))
        elif step[0] != "common":
            steps.append(step)
    return (key[0], ("common", fields), *steps) if fields else (key[0], *steps)
