"""What is known of a msgspec struct before a body arrives.

Reads types at boot; decoding is the business of `_models`. msgspec is installed where this is used.
"""

from __future__ import annotations

from typing import Any


def required_names(annotation: Any) -> list[str] | None:
    """List the member names of a JSON object that are all required, those of objects inside too.

    Returns:
        A name for each member, with repeats where objects share one; None where the members depend
        on the body: for optional ones, lists of objects, mappings, unions with objects, and
        anything that is no struct.
    """
    from msgspec import inspect

    kind = inspect.type_info(annotation)
    return _names(kind) if isinstance(kind, inspect.StructType) else None


def _names(kind: Any) -> list[str] | None:
    """The names inside a value of a type: none in a scalar or a list of scalars."""
    from msgspec import inspect

    if not isinstance(kind, inspect.StructType):
        return [] if _is_flat(kind) else None
    if kind.array_like or kind.tag_field is not None:
        return None
    names: list[str] = []
    for field in kind.fields:
        inner = _names(field.type) if field.required else None
        if inner is None:
            return None
        names += [field.encode_name, *inner]
    return names


def _is_flat(kind: Any) -> bool:
    from msgspec import inspect

    if isinstance(kind, inspect.Metadata):
        return _is_flat(kind.type)
    if isinstance(kind, inspect.ListType):
        return _is_flat(kind.item_type)
    if isinstance(kind, inspect.UnionType):
        return all(map(_is_flat, kind.types))
    return isinstance(
        kind,
        (
            *(inspect.BoolType, inspect.FloatType, inspect.IntType, inspect.NoneType),
            *(inspect.StrType, inspect.BytesType, inspect.DecimalType, inspect.UUIDType),
            *(inspect.EnumType, inspect.LiteralType),
            *(inspect.DateTimeType, inspect.DateType, inspect.TimeType),
        ),
    )
