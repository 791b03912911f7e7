"""What an aggregate takes and gives: the type of its argument, converted, and of its result.

A mean of decimals is a decimal, rounded as a quotient is; numbers at a JSON path are floats. What
has no sum, mean or order is refused when the query is made.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import replaced
from treefold_orm._expressions.arithmetic import QUOTIENT_PLACES
from treefold_orm._expressions.conversion import (
    NUMBERS,
    carrier,
    converted,
    describe,
    kind_of,
    places_of,
)
from treefold_orm._expressions.nodes import AggregateNode
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import (
    BOOLEAN,
    DURATION,
    FLOAT,
    INTEGER,
    TEXT,
    decimal_carrier,
)
from treefold_orm._fields.lists import list_of

AnyField = Field[Any]

# kinds whose values have no order that is the same on both databases
_UNORDERED = frozenset({"array", "binary", "boolean", "json", "uuid"})
_NAMES = {
    "stddev_pop": "StdDev",
    "stddev_samp": "StdDev",
    "var_pop": "Variance",
    "var_samp": "Variance",
    "bool_and": "BoolAnd",
    "bool_or": "BoolOr",
    "string_agg": "StringAgg",
}


def aggregated(node: AggregateNode) -> AggregateNode:
    """Return an aggregate with its argument converted and its type known.

    Raises `FieldError` for an argument that the aggregate cannot take.
    """
    rule, arg = AGGREGATE_RULES.get(node.name), node.arg
    if rule is None or (arg is not None and arg.field is None):
        return node
    given = None if arg is None else arg.field
    takes, gives = rule(given)
    if given is not None and takes is None:
        name = _NAMES.get(node.name, node.name.capitalize())
        raise FieldError(
            f"{name} cannot take {describe(given)}: use Cast() for a type that it takes"
        )
    taken = arg if arg is None else converted(arg, takes, "operand")
    return replaced(node, field=gives, arg=taken)


Rule = Callable[[AnyField | None], tuple[AnyField | None, AnyField | None]]


def _count(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    return field, INTEGER


def _sum(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    match "" if field is None else kind_of(field):
        case "integer":
            return field, INTEGER
        case "decimal" if field is not None:
            return field, decimal_carrier(places_of(field))
        case "float" | "number" | "json":
            return FLOAT, FLOAT
        case "duration":
            return field, DURATION
        case _:
            return None, None


def _mean(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    takes, gives = _sum(field)
    if gives is INTEGER:
        return takes, FLOAT
    if gives is not None and kind_of(gives) == "decimal":
        return takes, decimal_carrier(max(places_of(gives), QUOTIENT_PLACES))
    return takes, gives


def _extreme(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    unordered = field is not None and kind_of(field) in _UNORDERED
    return (None, None) if unordered else (field, field)


def _statistic(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    numeric = field is not None and kind_of(field) in NUMBERS | {"json"}
    return (FLOAT, FLOAT) if numeric else (None, None)


def _truth(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    known = field is not None and kind_of(field) in {"boolean", "json"}
    return (BOOLEAN, BOOLEAN) if known else (None, None)


def _text(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    known = field is not None and kind_of(field) in {"text", "json"}
    return (TEXT, TEXT) if known else (None, None)


def _list(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    return field, None if field is None else list_of(carrier(field))


# by name of the aggregate: what it takes (None: nothing of that kind) and what it gives
AGGREGATE_RULES: dict[str, Rule] = {
    "count": _count,
    "sum": _sum,
    "avg": _mean,
    "min": _extreme,
    "max": _extreme,
    "stddev_pop": _statistic,
    "stddev_samp": _statistic,
    "var_pop": _statistic,
    "var_samp": _statistic,
    "bool_and": _truth,
    "bool_or": _truth,
    "string_agg": _text,
    "array_agg": _list,
}
