"""Casts of nodes: a value as another type, by what is written in the row.

Numbers are cast to numbers with the rounding of a column, text to what it says in one form for each
type, and everything that has a form to text. A cast without a meaning is refused when the query is
made; a row that does not fit is a `DataError`. Each value has one text on both databases.
"""

from __future__ import annotations

from typing import Any

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions.arguments import make_constant
from treefold_orm._expressions.conversion import (
    NUMBERS,
    build_representation_key,
    classify_field,
    convert_for_column,
    convert_node,
    count_decimal_places,
    count_integer_bits,
    describe_type,
    follow_foreign_keys,
)
from treefold_orm._expressions.nodes import ConvertNode, Expr, FuncNode
from treefold_orm._expressions.operands import FUNCTION_RULES
from treefold_orm._fields import carriers
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.numbers import DecimalField
from treefold_orm._fields.structured import EnumField
from treefold_orm._fields.text_forms import TEXT_FORMS

_JOINED = frozenset({"integer", "float", "decimal", "date", "time", "uuid"})
_WRITTEN = _JOINED | {"boolean", "datetime"}


def cast_to(node: Expr, target: AnyField) -> Expr:
    """Return `node` as the type of `target`; `FieldError` where that has no meaning."""
    if node.field is None:
        return ConvertNode(target, node, "cast")
    source, wanted = classify_field(node.field), classify_field(target)
    if source == wanted:
        return _cast_within_kind(node, node.field, target)
    if source == "json":
        return _cast_from_json(node, target)
    if {source, wanted} <= NUMBERS:
        return ConvertNode(target, node, "cast")
    if source == "text" and wanted in TEXT_FORMS:
        return _cast_from_text(node, target)
    if wanted == "text" and source in _WRITTEN:
        return _cast_to_text(node)
    match source, wanted:
        case "date", "datetime":
            return convert_node(node, target)
        case "datetime", "date":
            return convert_for_column(node, target)
        case "datetime", "time":
            return FuncNode(carriers.TIME, "extract", (node,), "time")
        case ("boolean", "integer") | ("integer", "boolean"):
            return FuncNode(target, f"{wanted}_of_{source}", (node,))
        case _:
            raise FieldError(
                f"{describe_type(node.field)} cannot be cast to {describe_type(target)}"
            )


def _cast_within_kind(node: Expr, source: AnyField, target: AnyField) -> Expr:
    source = follow_foreign_keys(source)
    if isinstance(source, EnumField):
        # without its class: a cast gives the plain value and no member
        node = ConvertNode(source.base, node, "same")
        source = source.base
    if classify_field(source) == "integer":
        if count_integer_bits(source) <= count_integer_bits(target):
            return node
        return ConvertNode(target, node, "cast")
    if isinstance(source, DecimalField) and isinstance(target, DecimalField):
        fits = source.decimal_places == target.decimal_places and (
            source.max_digits <= target.max_digits
        )
        return node if fits else ConvertNode(target, node, "cast")
    if classify_field(source) == "datetime" and source.storage != target.storage:
        return ConvertNode(target, node, "same")  # a time without a zone is UTC
    if build_representation_key(source) != build_representation_key(target):
        raise FieldError(f"{describe_type(source)} cannot be cast to {describe_type(target)}")
    # a datetime in a zone of its own comes back in UTC
    plain = source.decoder("sqlite") == target.decoder("sqlite")
    return node if plain else ConvertNode(target, node, "same")


def _cast_from_json(node: Expr, target: AnyField) -> Expr:
    kind = classify_field(target)
    if kind in NUMBERS:
        return ConvertNode(target, convert_node(node, carriers.NUMBER), "cast")
    if kind in {"text", "boolean"}:
        return convert_node(node, target)
    if kind in TEXT_FORMS:
        return _cast_from_text(convert_node(node, carriers.TEXT), target)
    field = node.field
    name = "JSON" if field is None else describe_type(field)
    raise FieldError(f"{name} cannot be cast to {describe_type(target)}")


def _cast_from_text(node: Expr, target: AnyField) -> Expr:
    kind = classify_field(target)
    if kind == "decimal":
        places = count_decimal_places(target)
        field = carriers.make_decimal_field(places)
        wide = FuncNode(field, "decimal_of_text", (node, make_constant(places)))
        return ConvertNode(target, wide, "cast")
    # the text is read with 64 bits, and the second step checks the limits of the target
    if kind == "integer" and count_integer_bits(target) < 64:
        return ConvertNode(target, FuncNode(carriers.INTEGER, "integer_of_text", (node,)), "cast")
    return FuncNode(target, f"{kind}_of_text", (node,))


def convert_to_text(function: str, node: Expr) -> Expr:
    """Return the text of an argument, as `Cast` writes it; `FieldError` for types without a text
    that a reader would expect.
    """
    field = node.field
    if field is None or classify_field(field) == "text":
        return node
    if classify_field(field) == "json":
        return convert_node(node, carriers.TEXT)
    if classify_field(field) not in _JOINED:
        raise FieldError(
            f"{function} must be given text, a number, a date, a time or a UUID, got "
            f"{describe_type(field)}; convert it with Cast(..., str)"
        )
    return _cast_to_text(node)


def _cast_to_text(node: Expr) -> Expr:
    field: Any = node.field
    kind = classify_field(field)
    if kind == "decimal":
        places = make_constant(count_decimal_places(field))
        return FuncNode(carriers.TEXT, "text_of_decimal", (node, places))
    return FuncNode(carriers.TEXT, f"text_of_{kind}", (node,))


def _rebuild_text_cast(args: tuple[Expr, ...], option: str) -> Expr:
    return convert_to_text("Cast", args[0])


FUNCTION_RULES.update({f"text_of_{kind}": _rebuild_text_cast for kind in _JOINED})
