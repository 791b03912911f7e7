"""Types of aggregates: of the argument, converted, and of the result.

A mean of decimals is a decimal, rounded as a quotient is; numbers at a JSON path are floats. What
has no sum, mean or order is refused when the query is made.
"""

from __future__ import annotations

from collections.abc import Callable

from treefold_orm._base.errors import FieldError
from treefold_orm._base.records import copy_with_changes
from treefold_orm._expressions import conversion
from treefold_orm._expressions.arithmetic import QUOTIENT_PLACES
from treefold_orm._expressions.nodes import AggregateNode
from treefold_orm._fields import carriers
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.structured import make_list_field

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


def apply_aggregate_types(node: AggregateNode) -> AggregateNode:
    """Return an aggregate with its argument converted and its type known.

    Raises `FieldError` for an argument that the aggregate cannot take.
    """
    rule, arg = AGGREGATE_RULES.get(node.name), node.arg
    # an OuterRef in the argument has no type yet: `outer.py` asks again when it has
    if rule is None or (arg is not None and arg.field is None):
        return node
    given = None if arg is None else arg.field
    takes, gives = rule(given)
    if given is not None and takes is None:
        name = _NAMES.get(node.name, node.name.capitalize())
        raise FieldError(
            f"{name} cannot take {conversion.describe_type(given)}: use Cast() for a type that"
            " it takes"
        )
    taken = arg if arg is None else conversion.convert_node(arg, takes, "operand")
    return copy_with_changes(node, field=gives, arg=taken)


Rule = Callable[[AnyField | None], tuple[AnyField | None, AnyField | None]]


def _infer_count_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    return field, carriers.INTEGER


def _infer_sum_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    match "" if field is None else conversion.classify_field(field):
        case "integer":
            # a sum of 32-bit integers may need 64 bits
            return field, carriers.INTEGER
        case "decimal" if field is not None:
            return field, carriers.make_decimal_field(conversion.count_decimal_places(field))
        case "float" | "number" | "json":
            return carriers.FLOAT, carriers.FLOAT
        case "duration":
            return field, carriers.DURATION
        case _:
            return None, None


def _infer_mean_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    takes, gives = _infer_sum_types(field)
    if gives is carriers.INTEGER:
        return takes, carriers.FLOAT
    if gives is not None and conversion.classify_field(gives) == "decimal":
        return takes, carriers.make_decimal_field(
            max(conversion.count_decimal_places(gives), QUOTIENT_PLACES)
        )
    return takes, gives


def _infer_min_max_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    unordered = field is not None and conversion.classify_field(field) in _UNORDERED
    return (None, None) if unordered else (field, field)


def _infer_deviation_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    numeric = field is not None and conversion.classify_field(field) in conversion.NUMBERS | {
        "json"
    }
    return (carriers.FLOAT, carriers.FLOAT) if numeric else (None, None)


def _infer_boolean_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    known = field is not None and conversion.classify_field(field) in {"boolean", "json"}
    return (carriers.BOOLEAN, carriers.BOOLEAN) if known else (None, None)


def _infer_string_agg_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    known = field is not None and conversion.classify_field(field) in {"text", "json"}
    return (carriers.TEXT, carriers.TEXT) if known else (None, None)


def _infer_array_agg_types(field: AnyField | None) -> tuple[AnyField | None, AnyField | None]:
    return field, None if field is None else make_list_field(conversion.follow_foreign_keys(field))


# by name of the aggregate: type of the argument (None: nothing of that kind) and of the result
AGGREGATE_RULES: dict[str, Rule] = {
    "count": _infer_count_types,
    "sum": _infer_sum_types,
    "avg": _infer_mean_types,
    "min": _infer_min_max_types,
    "max": _infer_min_max_types,
    "stddev_pop": _infer_deviation_types,
    "stddev_samp": _infer_deviation_types,
    "var_pop": _infer_deviation_types,
    "var_samp": _infer_deviation_types,
    "bool_and": _infer_boolean_types,
    "bool_or": _infer_boolean_types,
    "string_agg": _infer_string_agg_types,
    "array_agg": _infer_array_agg_types,
}
