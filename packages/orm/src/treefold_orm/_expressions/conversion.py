"""Conversion: which type several values have in common, and the nodes that bring them to it.

Every node carries its field, and a value may be compared, chosen, combined or assigned only in one
representation. `find_common_type` finds it, `convert_node` and `convert_for_column` put a
`ConvertNode` where a value travels in another one, and a pair without a conversion is refused here,
when the query is made. How a conversion is written is said by the dialects.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.nodes import (
    ConversionMode,
    ConvertNode,
    Expr,
    ParamNode,
    needs_outer_type,
)
from treefold_orm._fields import carriers
from treefold_orm._fields.base import MISSING, AnyField
from treefold_orm._fields.numbers import DecimalField
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._fields.structured import ArrayField, EnumField

# "number" is what stands at a JSON path and is a number: an integer or a float, row by row
NUMBERS = frozenset({"integer", "decimal", "float", "number"})
_NAMES = {"decimal": "Decimal", "integer": "int", "boolean": "bool", "json": "JSON"}
_OF_JSON = {
    "integer": carriers.NUMBER,
    "number": carriers.NUMBER,
    "decimal": carriers.FLOAT,
    "float": carriers.FLOAT,
    "text": carriers.TEXT,
    "boolean": carriers.BOOLEAN,
}
_BITS = {"smallint": 16, "integer": 32}
_COMMON = frozenset(
    {
        ("integer", "decimal"),
        ("integer", "float"),
        ("integer", "number"),
        ("decimal", "float"),
        ("number", "float"),
        ("date", "datetime"),
        *(("json", kind) for kind in _OF_JSON),
        ("number", "integer"),
    }
)
_ASSIGNED = _COMMON | {
    ("decimal", "decimal"),
    ("decimal", "integer"),
    ("float", "integer"),
    ("float", "decimal"),
    ("number", "decimal"),
    ("datetime", "date"),
}


def follow_foreign_keys(field: AnyField) -> AnyField:
    """The field that says how values travel: of a foreign key, the key that it points to."""
    # a key may be a foreign key itself: `OneToOneField(..., primary_key=True)`
    while is_foreign_key(field):
        field = field.known_target.pk
    return field


def classify_field(field: AnyField) -> str:
    """The kind of a field's values: `internal`, with one word for integers of all sizes."""
    kind = field.internal
    return "integer" if kind == "bigint" else kind


def count_decimal_places(field: AnyField) -> int:
    """The decimal places that a field keeps; 0 for all that is not a decimal."""
    field = follow_foreign_keys(field)
    return field.decimal_places if isinstance(field, DecimalField) else 0


def build_representation_key(field: AnyField) -> tuple[str, Any]:
    """The common type of two fields whose values travel in the same form."""
    field = follow_foreign_keys(field)
    if isinstance(field, DecimalField):
        return "decimal", field.decimal_places
    if isinstance(field, ArrayField):
        return "array", build_representation_key(field.base)
    return classify_field(field), field.storage or None


def find_common_type(fields: Iterable[AnyField | None]) -> AnyField | None:
    """Return the type that values of all these fields can be brought to without loss.

    Fields that are not known (None) do not count; None where none is known. Integers and decimals
    give a decimal with the most places, a float with another number gives a float, a date with a
    datetime gives a datetime at midnight UTC, and a value at a JSON path takes the type of the
    others. Raises `FieldError` naming both types where there is no such type.
    """
    found: AnyField | None = None
    for field in fields:
        if field is not None:
            found = field if found is None else _merge_types(found, field)
    return found


def find_common_expression_type(nodes: Sequence[Expr]) -> AnyField | None:
    """Return the type that values can be brought to; None until each `OuterRef` knows its own.

    A rule that took the type of the others meanwhile could leave out what that type does not need.
    """
    if any(map(needs_outer_type, nodes)):
        return None
    return find_common_type(node.field for node in nodes)


def _merge_types(one: AnyField, other: AnyField) -> AnyField:
    if one is other:
        return one
    first, second = classify_field(one), classify_field(other)
    if first == second:
        return _merge_types_of_same_kind(one, other, first)
    kinds = {first, second}
    if "json" in kinds:
        found = _OF_JSON.get(second if first == "json" else first)
        if found is not None:
            return found
    elif kinds == {"date", "datetime"}:
        return choose_matching_datetime_field(one if first == "datetime" else other)
    elif kinds == {"integer", "decimal"}:
        return carriers.make_decimal_field(
            max(count_decimal_places(one), count_decimal_places(other))
        )
    elif kinds == {"integer", "number"}:
        return carriers.NUMBER
    elif kinds <= NUMBERS:
        return carriers.FLOAT
    raise FieldError(
        f"{describe_type(one)} and {describe_type(other)} have no type in common: convert one"
        " with Cast()"
    )


def _merge_types_of_same_kind(one: AnyField, other: AnyField, kind: str) -> AnyField:
    one, other = follow_foreign_keys(one), follow_foreign_keys(other)
    if isinstance(one, EnumField) and isinstance(other, EnumField):
        if one.enum_class is other.enum_class:
            return one
    elif kind == "array" and build_representation_key(one) != build_representation_key(other):
        raise FieldError(
            f"{describe_type(one)} and {describe_type(other)} have no type in common: their"
            " items differ"
        )
    match kind:
        case "decimal":
            return carriers.make_decimal_field(
                max(count_decimal_places(one), count_decimal_places(other))
            )
        case "integer":
            # of 64 bits, and text without a length: the larger of two columns may be either
            return carriers.INTEGER
        case "text":
            return carriers.TEXT
        case "datetime" if one.storage == other.storage:
            return choose_matching_datetime_field(one)
        case "datetime":
            raise FieldError(
                f"{describe_type(one)} and {describe_type(other)} have no type in common: only"
                " one of them "
                "has a zone; give the other one with Cast()"
            )
        case _:
            return one


def choose_matching_datetime_field(field: AnyField) -> AnyField:
    """The type of points in time beside a field: with a zone, or without as the field is."""
    return carriers.NAIVE if follow_foreign_keys(field).storage else carriers.DATETIME


def describe_type(field: AnyField) -> str:
    """Name a type for an error: `Order.total (Decimal)`, or `int` where no column is meant."""
    kind = classify_field(field)
    name = _NAMES.get(kind, kind)
    if kind == "datetime" and follow_foreign_keys(field).storage:
        name = "datetime without a zone"
    return name if field.meta is MISSING else f"{field.meta.name}.{field.name} ({name})"


def convert_node(node: Expr, field: AnyField | None, mode: ConversionMode = "value") -> Expr:
    """Return `node` in the representation of `field`: the node itself where it has it already.

    Nothing is lost on the way, except to the nearest float; raises `FieldError` for types without
    such a conversion. A value at a JSON path becomes NULL where it is of another type. `mode` is
    "operand" for the operands of operators and comparisons.
    """
    if field is None:
        return node
    if node.field is None:
        return _set_param_field(node, field)
    if build_representation_key(node.field) == build_representation_key(field):
        return node
    first, second = classify_field(node.field), classify_field(field)
    wider = first == second == "decimal" and count_decimal_places(field) > count_decimal_places(
        node.field
    )
    if not wider and (first, second) not in _COMMON:
        raise FieldError(
            f"{describe_type(node.field)} cannot be used as {describe_type(field)}: convert it"
            " with Cast()"
        )
    return ConvertNode(field, _convert_json_to_number(node, second), mode)


def convert_for_column(node: Expr, field: AnyField) -> Expr:
    """Return `node` as the column of `field` keeps it, rounded half away from zero where the column
    has fewer places.

    A value that does not fit the column is an error of the database when the row is met
    (`DataError`). Raises `FieldError` for types without a conversion.
    """
    if node.field is None:
        return _set_param_field(node, field)
    same = build_representation_key(node.field) == build_representation_key(field)
    if same and _fits_into(node.field, field):
        return node
    first, second = classify_field(node.field), classify_field(field)
    if not same and (first, second) not in _ASSIGNED:
        raise FieldError(
            f"{describe_type(field)} cannot be set to {describe_type(node.field)}: convert it"
            " with Cast()"
        )
    return ConvertNode(field, _convert_json_to_number(node, second), "assign")


def _convert_json_to_number(node: Expr, kind: str) -> Expr:
    """The value at a JSON path as a number, where a number of another kind is made of it."""
    if (
        node.field is not None
        and classify_field(node.field) == "json"
        and kind in {"integer", "decimal"}
    ):
        return ConvertNode(carriers.NUMBER, node, "operand")
    return node


def _set_param_field(node: Expr, field: AnyField) -> Expr:
    return ParamNode(field, node.index) if isinstance(node, ParamNode) else node


def _fits_into(source: AnyField, target: AnyField) -> bool:
    """Return True if all values of `source`, which travel in the same form, fit into `target`."""
    source, target = follow_foreign_keys(source), follow_foreign_keys(target)
    if isinstance(source, DecimalField) and isinstance(target, DecimalField):
        digits = source.max_digits - source.decimal_places
        same = source.decimal_places == target.decimal_places
        return same and digits <= target.max_digits - target.decimal_places
    if classify_field(source) == classify_field(target) == "integer":
        return count_integer_bits(source) <= count_integer_bits(target)
    return True


def count_integer_bits(field: AnyField) -> int:
    """How many bits a column of integers has on PostgreSQL: 16, 32 or 64."""
    field = follow_foreign_keys(field)
    if isinstance(field, EnumField):
        field = field.base
    # SQLite has one type for all integers: the sizes are those that PostgreSQL checks
    return _BITS.get(field.types.get("postgres", ""), 64)


def intern_decimal_field(field: AnyField) -> AnyField:
    """The one field that stands for all decimals of so many digits that belong to no model, as a
    caller makes them for a type: plans are kept by it.
    """
    if not isinstance(field, DecimalField) or field.meta is not MISSING:
        return field
    return _make_interned_decimal(field.max_digits, field.decimal_places)


@functools.lru_cache(maxsize=256)
def _make_interned_decimal(digits: int, places: int) -> AnyField:
    made: AnyField = DecimalField(max_digits=digits, decimal_places=places)
    return made
