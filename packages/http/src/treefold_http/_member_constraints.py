"""Where a body model is constrained, at any depth: `class Item: price: Annotated[int, Gt(0)]`.

The package that reads a body passes over constraints of the other one. So whoever chooses the
reader of a model asks here first, once, at boot.
"""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

from treefold_http._constraints import MSGSPEC, PYDANTIC, family_of
from treefold_http._parameters import is_alias, named, shown, split
from treefold_http._records import is_record, type_taken


class Constrained(NamedTuple):
    """What the types inside an annotation ask of their reader.

    Attributes:
        places: the first place that has a constraint of a package, by that package.
        readers: the packages that alone can read one of the types.
        kinds: the records, models and structs among the types.
    """

    places: dict[str, str]
    readers: set[str]
    kinds: set[Any]


def constrained(annotation: Any) -> Constrained:
    """Look through an annotation, the members of its records, and what these hold."""
    found = Constrained({}, set(), set())
    _look(annotation, "the model", found, set())
    return found


def is_pydantic(kind: Any) -> bool:
    """Whether it is a pydantic model."""
    return hasattr(kind, "model_validate_json")


def is_struct(kind: Any) -> bool:
    """Whether it is a msgspec struct."""
    return hasattr(kind, "__struct_config__")


def _look(annotation: Any, place: str, found: Constrained, aliases: set[Any]) -> None:
    if is_alias(annotation):
        if annotation not in aliases:  # it may hold itself
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
    """Whether it is a model, or a record that says what only pydantic hears when it reads one."""
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
    """Whether it is a `Field` or a `Meta` that describes a value and refuses none."""
    name = type(marker).__name__
    if name == "FieldInfo":
        return not marker.metadata
    checks = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")
    return name == "Meta" and all(getattr(marker, check) is None for check in checks)


def _members(kind: Any) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """Give the name, the annotation and the markers of each member."""
    if is_pydantic(kind):
        for name, field in kind.model_fields.items():
            yield name, field.annotation, tuple(field.metadata)
        return
    try:
        hints = typing.get_type_hints(kind, include_extras=True)
    except Exception:
        return  # whoever reads the record says what is wrong with it
    for name, hint in hints.items():
        yield name, type_taken(hint), ()
