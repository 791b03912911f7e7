"""Constraints in annotations: `Annotated[int, Field(gt=0)]`, `Annotated[str, Meta(max_length=9)]`.

A value is converted as it would be without them, then checked by the package that they come from;
what cannot be checked is an error at boot. Where a value comes from is `_select`'s business.
"""

from __future__ import annotations

import importlib
import types
import typing
from collections.abc import Callable, Iterator
from typing import Annotated, Any, TypeAlias, Union

from treefold_http._parameters import InjectionError, shown

Check: TypeAlias = Callable[[Any], Any]
"""Takes a converted value; gives it back, or raises `ValueError` with words for the client."""

PYDANTIC, MSGSPEC = "pydantic", "msgspec"
_FAMILIES = {"annotated_types": PYDANTIC, "pydantic": PYDANTIC, "msgspec": MSGSPEC}


def families(annotation: Any, *, items: bool = True) -> frozenset[str]:
    """Give the packages that check what an annotation or its options constrain.

    Args:
        items: also what the items of a list are.
    """
    return frozenset(filter(None, map(family_of, _metadata(annotation, items=items))))


def family_of(marker: Any) -> str:
    """Give the package that checks what a marker says; "" for one that is no constraint."""
    return _FAMILIES.get(type(marker).__module__.partition(".")[0], "")


def constraints(markers: tuple[Any, ...]) -> list[Any]:
    """Give what among the metadata of an annotation is a constraint.

    Raises:
        InjectionError: for a `Field(...)` that says more than how to check a value.
    """
    return [_refuse_more(marker) for marker in markers if family_of(marker)]


def is_constraint(value: Any) -> bool:
    """Whether a value is what `Field(...)` or `Meta(...)` gives."""
    return bool(family_of(value)) and type(value).__name__ in ("FieldInfo", "Meta")


def unconstrained(annotation: Any) -> Any:
    """Give an annotation without metadata, also in its options and in the items of its lists."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Annotated:
        return unconstrained(arguments[0])
    if origin is list and arguments:
        return list[unconstrained(arguments[0])]
    if origin in (Union, types.UnionType):
        return Union[tuple(map(unconstrained, arguments))]  # noqa: UP007 - made of a tuple
    return annotation


def value_check(annotation: Any) -> Check | None:
    """Give the check of a value that is of the annotated type already; None without constraints.

    Raises:
        InjectionError: when nothing that is installed can check it.
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
    msgspec = importlib.import_module("msgspec")  # its `Meta` is here, so it is
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
