"""The JSON form of a type: one object for each node, with its class under `node`.

    [str]   {"node": "ListType", "item": {"node": "Scalar", "kind": "str"}}

Attributes with their default value are left out, so that a form stays readable and a later
attribute changes no form that exists.
"""

from __future__ import annotations

from dataclasses import MISSING, fields, is_dataclass
from typing import TypeAlias, cast

from treefold_contract._types.nodes import (
    AnyType,
    Choice,
    ChoiceValue,
    Definition,
    ForeignType,
    JsonValue,
    Limits,
    ListType,
    MapType,
    Member,
    Record,
    Reference,
    Scalar,
    TupleType,
    UnionType,
)

Part: TypeAlias = "Definition | Limits | ChoiceValue | Member"
CLASSES: dict[str, type[Part]] = {
    each.__name__: each
    for each in (
        *(AnyType, ForeignType, Scalar, Choice, ListType, TupleType, MapType, UnionType),
        *(Reference, Record, Limits, ChoiceValue, Member),
    )
}


def type_to_json(node: Definition) -> dict[str, JsonValue]:
    """Return the JSON form of a type."""
    return _part_to_json(node)


def type_from_json(form: JsonValue) -> Definition:
    """Return the type of a JSON form.

    Raises:
        ValueError: the form is not one that `type_to_json` returns.
    """
    part = _part_from_json(form)
    if isinstance(part, (Limits, ChoiceValue, Member)):
        raise ValueError(f"A type must be an object with 'node', got {form!r}")
    return part


def _part_to_json(part: Part) -> dict[str, JsonValue]:
    form: dict[str, JsonValue] = {"node": type(part).__name__}
    for field in fields(part):
        value = cast("object", getattr(part, field.name))
        if field.default is MISSING or value != field.default:
            form[field.name] = _value_to_json(value)
    return form


def _value_to_json(value: object) -> JsonValue:
    if isinstance(value, tuple):
        return [_value_to_json(each) for each in cast("tuple[object, ...]", value)]
    if is_dataclass(value):
        return _part_to_json(cast("Part", value))
    return cast("JsonValue", value)


def _part_from_json(form: JsonValue) -> Part:
    node = form.get("node") if isinstance(form, dict) else None
    if not isinstance(form, dict) or not isinstance(node, str) or node not in CLASSES:
        raise ValueError(f"A type must be an object with 'node', got {form!r}")
    values = {name: _value_from_json(value) for name, value in form.items() if name != "node"}
    try:
        return CLASSES[node](**values)  # type: ignore[arg-type]
    except TypeError:
        raise ValueError(f"{node} must have its attributes alone, got {form!r}") from None


def _value_from_json(value: JsonValue) -> object:
    if isinstance(value, list):
        return tuple(_value_from_json(each) for each in value)
    return _part_from_json(value) if isinstance(value, dict) else value
