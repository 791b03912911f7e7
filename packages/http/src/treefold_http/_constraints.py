"""Constraints in annotations: `Annotated[int, Field(gt=0)]`, `Annotated[str, Meta(max_length=9)]`.

A value is converted as without constraints, then checked by the package that defines them; a
constraint that cannot be checked is an error at boot. `_select` decides the source of a value.
"""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeAlias, Union

from treefold_http._parameters import InjectionError, shown

Check: TypeAlias = Callable[[Any], Any]
"""Returns a valid converted value, or raises `ValueError` with a message for the client."""

PYDANTIC, MSGSPEC = "pydantic", "msgspec"
_FAMILIES = {"annotated_types": PYDANTIC, "pydantic": PYDANTIC, "msgspec": MSGSPEC}


def families(annotation: Any, *, items: bool = True) -> frozenset[str]:
    """Return the packages that define the constraints of an annotation or its union members.

    Args:
        items: include constraints on the items of a list.
    """
    return frozenset(filter(None, map(family_of, _metadata(annotation, items=items))))


def family_of(marker: Any) -> str:
    """Return the package that checks a constraint; "" for metadata that is no constraint."""
    return _FAMILIES.get(type(marker).__module__.partition(".")[0], "")


def constraints(markers: tuple[Any, ...]) -> list[Any]:
    """Return the constraints among the metadata of an annotation.

    Raises:
        InjectionError: for a `Field(...)` with options other than checks of the value.
    """
    return [_refuse_more(marker) for marker in markers if family_of(marker)]


def is_constraint(value: Any) -> bool:
    """Return True for the result of `Field(...)` or `Meta(...)`."""
    return bool(family_of(value)) and type(value).__name__ in ("FieldInfo", "Meta")


def unconstrained(annotation: Any) -> Any:
    """Return an annotation without metadata, also in its union members and list items."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return unconstrained(arguments[0])
    if origin is list and arguments:
        return list[unconstrained(arguments[0])]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(unconstrained, arguments))]  # noqa: UP007 - made of a tuple
    return annotation


def value_check(annotation: Any) -> Check | None:
    """Return the check of the constraints, for values of the annotated type; None without any.

    Raises:
        InjectionError: when no installed package can check them.
    """
    checks = [_CHECKS[family](annotation) for family in sorted(families(annotation))]
    if len(checks) < 2:
        return checks[0] if checks else None

    def check(value: Any) -> Any:
        for each in checks:
            value = each(value)
        return value

    return check


def _metadata(annotation: Any, *, items: bool) -> Iterator[Any]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        yield from annotation.__metadata__
        yield from _metadata(arguments[0], items=items)
    elif origin in (Union, types.UnionType) or (origin is list and items):
        for argument in arguments:
            yield from _metadata(argument, items=items)


def _refuse_more(marker: Any) -> Any:
    named = getattr(marker, "alias", None) or getattr(marker, "validation_alias", None)
    if named is not None:
        raise InjectionError(
            f"Field(alias={named!r}) names no parameter; write the name into Query(), Header() or"
            " the like"
        )
    required = getattr(marker, "is_required", None)
    if callable(required) and not required():
        raise InjectionError(
            "Field(...) in an annotation gives no default; write it as the parameter's own"
        )
    return marker


def _by_pydantic(annotation: Any) -> Check:
    try:
        pydantic = importlib.import_module("pydantic")
    except ImportError as error:
        raise InjectionError(
            f"The constraint on {shown(unconstrained(annotation))} takes pydantic to check it;"
            ' install it: pip install "treefold[pydantic]"'
        ) from error
    validate = pydantic.TypeAdapter(annotation).validate_python
    invalid = pydantic.ValidationError

    def check(value: Any) -> Any:
        try:
            return validate(value)
        except invalid as error:
            raise ValueError(error.errors(include_url=False)[0]["msg"].lower()) from None

    return check


def _by_msgspec(annotation: Any) -> Check:
    msgspec = importlib.import_module("msgspec")  # installed, since the annotation has its `Meta`
    try:
        msgspec.json.Decoder(annotation)  # `convert` looks at the type with the first value only
    except TypeError as error:
        raise InjectionError(
            f"The constraint on {shown(unconstrained(annotation))} cannot be checked: {error}"
        ) from error

    def check(value: Any) -> Any:
        try:
            return msgspec.convert(value, annotation)
        except msgspec.ValidationError as error:
            raise ValueError(str(error).partition(" - at `$")[0].lower()) from None

    return check


_CHECKS: dict[str, Callable[[Any], Check]] = {PYDANTIC: _by_pydantic, MSGSPEC: _by_msgspec}
