"""Find the constraints of a body model, at any depth: `class Item: price: Annotated[int, Gt(0)]`.

The package that decodes a body ignores constraints of the other package. So `_models` calls this
module once, at boot, before it chooses the decoder of a model.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from treefold_http._constraints import MSGSPEC, PYDANTIC, family_of
from treefold_http._parameters import is_alias, named, shown, split
from treefold_http._records import is_record, type_taken


class Constrained(NamedTuple):
    """The requirements of the types inside an annotation on their decoder.

    Attributes:
        places: by package, the first place with a constraint of that package.
        readers: the packages that a type requires as its decoder.
        kinds: the records, models and structs among the types.
    """

    places: dict[str, str]
    readers: set[str]
    kinds: set[Any]


def constrained(annotation: Any) -> Constrained:
    """Collect the constraints of an annotation and of the members of its records, recursively."""
    found = Constrained({}, set(), set())
    _look(annotation, "the model", found, set())
    return found


def is_pydantic(kind: Any) -> bool:
    """Return True for a pydantic model."""
    return hasattr(kind, "model_validate_json")


def is_struct(kind: Any) -> bool:
    """Return True for a msgspec struct."""
    return hasattr(kind, "__struct_config__")


def _look(annotation: Any, place: str, found: Constrained, aliases: set[Any]) -> None:
    if is_alias(annotation):
        if annotation not in aliases:  # it may be recursive
            aliases.add(annotation)
            _look(named(annotation), place, found, aliases)
        return
    annotation = getattr(annotation, "__supertype__", annotation)  # of a NewType
    bare, markers = split(annotation)
    _mark(markers, place, found)
    kind = typing.get_origin(bare) or bare
    if kind is Literal:
        return
    for argument in typing.get_args(bare):
        _look(argument, place, found, aliases)
    if kind in found.kinds or not (is_record(kind) or is_struct(kind) or is_pydantic(kind)):
        return
    found.kinds.add(kind)
    if is_struct(kind):
        found.readers.add(MSGSPEC)
    elif _is_pydantics_alone(kind):
        found.readers.add(PYDANTIC)
    for name, member, markers in _members(kind):
        place = f"{shown(kind)}.{name}"
        _mark(markers, place, found)
        _look(member, place, found, aliases)


def _is_pydantics_alone(kind: Any) -> bool:
    """Return True for a pydantic model, or a record with configuration that only pydantic reads."""
    fields: Mapping[str, Any] = getattr(kind, "__dataclass_fields__", {})
    return (
        is_pydantic(kind)
        or hasattr(kind, "__pydantic_validator__")
        or hasattr(kind, "__pydantic_config__")
        or any(family_of(field.default) for field in fields.values())
    )


def _mark(markers: tuple[Any, ...], place: str, found: Constrained) -> None:
    for marker in markers:
        if (family := family_of(marker)) and not _is_only_words(marker):
            found.places.setdefault(family, place)
        if getattr(marker, "validation_alias", None) is not None:
            found.readers.add(PYDANTIC)


def _is_only_words(marker: Any) -> bool:
    """Return True for a `Field` or `Meta` that only documents a value and constrains nothing."""
    name = type(marker).__name__
    if name == "FieldInfo":
        return not marker.metadata
    checks = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")
    return name == "Meta" and all(getattr(marker, check) is None for check in checks)


def _members(kind: Any) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Yield the name, the annotation and the markers of each member."""
    if is_pydantic(kind):
        for name, field in kind.model_fields.items():
            yield name, field.annotation, tuple(field.metadata)
        return
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception:
        return  # the decoder of the record raises with the reason
    for name, hint in hints.items():
        yield name, type_taken(hint), ()
