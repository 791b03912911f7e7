"""The types of a query's columns, and one type for each column of combined queries. No SQL.

The parts of a UNION, INTERSECT or EXCEPT give each column in the type that all of them share: a
step of the key says so for every part, and the rows are decoded by it.
"""

from __future__ import annotations

from treefold_orm._expressions.conversion import find_common_type
from treefold_orm._expressions.nodes import Key, Node
from treefold_orm._expressions.steps import Combine, Common
from treefold_orm._fields.base import AnyField


def list_subquery_column_fields(key: Key) -> tuple[AnyField | None, ...]:
    """The types of the columns that a query gives: of a query of instances, its key alone."""
    from treefold_orm._compile.state import replay_steps  # loaded with the driver, not before

    state = replay_steps(key)
    return state.meta.keys if state.rows == "instances" else state.output_fields


def unify_combined_column_types(key: Key) -> Key:
    """Return the key of a combined query, its parts converted column by column.

    Raises `FieldError` for columns of types that have none in common.
    """
    from treefold_orm._compile.state import replay_steps  # loaded with the driver, not before

    parts = [replay_steps(part).output_fields for part in _list_combined_queries(key)]
    if len(set(map(len, parts))) != 1:
        return key  # refused when it is compiled, with the number of columns
    if all(part == parts[0] for part in parts):
        return _set_common_types(key, ())
    return _set_common_types(key, tuple(map(find_common_type, zip(*parts, strict=True))))


def _list_combined_queries(key: Key) -> list[Key]:
    """The queries that a combined one is made of, those of its parts included."""
    found: list[Key] = [
        (key[0], *(step for step in key[1:] if not isinstance(step, (Combine, Common))))
    ]
    for step in key[1:]:
        if isinstance(step, Combine):
            found += _list_combined_queries(step.key)
    return found


def _set_common_types(key: Key, fields: tuple[AnyField | None, ...]) -> Key:
    steps: list[Node] = []
    for step in key[1:]:
        if isinstance(step, Combine):
            steps.append(Combine(step.op, _set_common_types(step.key, fields), step.base))
        elif not isinstance(step, Common):
            steps.append(step)
    return (key[0], Common(fields), *steps) if fields else (key[0], *steps)
