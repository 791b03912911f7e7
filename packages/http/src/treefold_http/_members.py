"""The member names in the JSON body of a model, if the type alone determines them.

Read at boot from msgspec structs and pydantic models; `_models` decodes bodies. A body whose
members are all required, and known by name, is checked for repeated and unknown names by counting
its colons: there is one for each name here.
"""

from __future__ import annotations

import datetime
import decimal
import enum
import types
import uuid
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

Members: TypeAlias = list[tuple[str, Any]]
"""Member name and annotation."""

_SCALARS = frozenset(
    {
        *(str, int, float, bool, bytes, type(None), uuid.UUID, decimal.Decimal),
        *(datetime.datetime, datetime.date, datetime.time, datetime.timedelta),
    }
)


def required_names(kind: Any, inside: tuple[Any, ...] = ()) -> list[str] | None:
    """List the member names of a struct or model, including those of nested structs and models.

    Args:
        inside: the types that are being listed already, to detect recursion.

        Returns:
            A name for each member, repeated if types share one; None if the members depend on the
            body (optional ones, models in lists or unions, mappings) or on the author's validators.
    """
    members = None if kind in inside else _members(kind)
    if members is None:
        return None
    names: list[str] = []
    for name, annotation in members:
        inner = [] if _is_flat(annotation) else required_names(annotation, (*inside, kind))
        if inner is None:
            return None
        names += [name, *inner]
    return names


def _members(kind: Any) -> Members | None:
    if hasattr(kind, "__struct_config__"):
        return _of_struct(kind)
    return _of_model(kind) if hasattr(kind, "model_fields") else None


def _of_struct(kind: Any) -> Members | None:
    from msgspec import structs

    fields = structs.fields(kind)
    config = kind.__struct_config__
    if config.array_like or config.tag is not None or not all(field.required for field in fields):
        return None
    return [(field.encode_name, field.type) for field in fields]


def _of_model(kind: Any) -> Members | None:
    """The members of a pydantic model; None if a validator of its own could add some."""
    code = kind.__pydantic_decorators__
    makes_itself = (
        kind.__pydantic_root_model__
        or kind.__pydantic_custom_init__
        or code.model_validators
        or code.root_validators
        or any("__get_pydantic_core_schema__" in vars(base) for base in _authors(kind))
    )
    by_name = any(kind.model_config.get(key) for key in ("populate_by_name", "validate_by_name"))
    if makes_itself or by_name:
        return None
    members: Members = []
    for name, field in kind.model_fields.items():
        alias = field.validation_alias or field.alias or name
        changed = field.metadata or code.field_validators or code.validators
        if not field.is_required() or not isinstance(alias, str):
            return None
        if changed and not _is_flat(field.annotation):
            return None
        members.append((alias, field.annotation))
    return members


def _authors(kind: Any) -> list[Any]:
    """The classes of a model that are not pydantic's own."""
    return [base for base in kind.__mro__ if not base.__module__.startswith("pydantic")]


def _is_flat(annotation: Any) -> bool:
    """Return True for scalars and lists of scalars, which have no member names."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _is_flat(arguments[0])
    if origin is Literal:
        return True
    if origin in (list, Union, types.UnionType):
        return all(map(_is_flat, arguments))
    if isinstance(annotation, type) and issubclass(annotation, enum.Enum):
        return True
    return annotation in _SCALARS
