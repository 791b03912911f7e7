"""Constraints in annotations: `Annotated[int, Field(gt=0)]`, `Annotated[str, Meta(max_length=9)]`.

A value is converted as without constraints, then checked by the package that defines them; a
constraint that cannot be checked is an error at boot.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, Union

from treefold_http._types.limits_missed import (
    LimitMissed,
    parse_msgspec_error,
    redact_pydantic_error,
)
from treefold_http._types.parameters import InjectionError, format_annotation
from treefold_http._types.tree import ListType, TypeNode, UnionType

Check: TypeAlias = Callable[[Any], Any]
"""Returns a valid converted value, or raises `ValueError` with a message for the client."""

PYDANTIC, MSGSPEC = "pydantic", "msgspec"
OWN = "its own class"
"""The package of a constraint that checks values itself: it has a method `check_field_value`."""
_FAMILIES = {"annotated_types": PYDANTIC, "pydantic": PYDANTIC, "msgspec": MSGSPEC}


def find_constraint_packages(node: TypeNode, *, include_items: bool = True) -> frozenset[str]:
    """Return the packages that define the constraints of a type or its union members.

    Args:
        include_items: include constraints on the items of a list.
    """
    markers = _iter_markers(node, include_items=include_items)
    return frozenset(filter(None, map(find_constraint_package, markers)))


def find_constraint_package(marker: Any) -> str:
    """Return the package that checks a constraint; "" for metadata that is not a constraint."""
    kind: type[object] = marker.__class__
    if hasattr(kind, "check_field_value"):
        return OWN
    # by the name of its module, so that no package is imported to ask
    return _FAMILIES.get(kind.__module__.partition(".")[0], "")


def refuse_alias_or_default_markers(markers: tuple[Any, ...]) -> None:
    """Refuse the metadata of a parameter that says more than checks of its value.

    Raises:
        InjectionError: for a `Field(...)` with another name or a default.
    """
    for marker in filter(find_constraint_package, markers):
        named = getattr(marker, "alias", None) or getattr(marker, "validation_alias", None)
        if named is not None:
            raise InjectionError(
                f"Field(alias={named!r}) does not rename a parameter; write the name into"
                " Query(), Header() or the like"
            )
        required = getattr(marker, "is_required", None)
        if callable(required) and not required():
            raise InjectionError(
                "Field(...) in an annotation cannot set a default; write it as the parameter's own"
            )


def is_field_or_meta(value: Any) -> bool:
    """Return True for the result of `Field(...)` or `Meta(...)`."""
    return bool(find_constraint_package(value)) and type(value).__name__ in ("FieldInfo", "Meta")


def is_only_documentation(marker: Any) -> bool:
    """Return True for a `Field` or `Meta` that only documents a value and constrains nothing."""
    name = type(marker).__name__
    if name == "FieldInfo":
        return not marker.metadata
    checks = ("gt", "ge", "lt", "le", "multiple_of", "pattern", "min_length", "max_length", "tz")
    return name == "Meta" and all(getattr(marker, check) is None for check in checks)


def build_unconstrained_annotation(node: TypeNode) -> Any:
    """Return the annotation of a type without constraints, also in its options and list items."""
    if not find_constraint_packages(node):
        return node.bare_annotation
    if isinstance(node, UnionType):
        return Union[tuple(map(build_unconstrained_annotation, node.options))]  # noqa: UP007 - made of a tuple
    if isinstance(node, ListType) and find_constraint_packages(node.item):
        item = build_unconstrained_annotation(node.item)
        return tuple[item, ...] if node.kind is tuple else node.kind[item]
    return node.bare_annotation


def build_constraint_check(node: TypeNode) -> Check | None:
    """Return the check of the constraints, for values of the type; None without any.

    Raises:
        InjectionError: when no installed package can check them.
    """
    checks = [_CHECKS[family](node) for family in sorted(find_constraint_packages(node))]
    if len(checks) < 2:
        return checks[0] if checks else None

    def run_checks(value: Any) -> Any:
        for each in checks:
            value = each(value)
        return value

    return run_checks


def _iter_markers(node: TypeNode, *, include_items: bool) -> Iterator[Any]:
    yield from node.markers
    if isinstance(node, UnionType) or (isinstance(node, ListType) and include_items):
        for part in node.inner_types:
            yield from _iter_markers(part, include_items=include_items)


def import_pydantic_or_none() -> Any:
    """Return pydantic, imported at its first use as it takes 150 ms; None if it is missing."""
    try:
        return importlib.import_module("pydantic")
    except ImportError:
        return None


def wrap_pydantic_validator(validate: Check) -> Check:
    """Return a check by a validator of pydantic, with its first message for the client."""
    invalid = import_pydantic_or_none().ValidationError

    def check_value(value: Any) -> Any:
        try:
            return validate(value)
        except invalid as error:
            first = error.errors(include_url=False, include_input=False)[0]
            message, context = redact_pydantic_error(first)
            raise LimitMissed(message.lower(), context) from None

    return check_value


def _build_pydantic_check(node: TypeNode) -> Check:
    if (pydantic := import_pydantic_or_none()) is None:
        raise InjectionError(
            "The constraint on "
            f"{format_annotation(build_unconstrained_annotation(node))} needs pydantic;"
            " install it:"
            ' pip install "treefold[pydantic]"'
        )
    return wrap_pydantic_validator(pydantic.TypeAdapter(node.annotation).validate_python)


def _build_msgspec_check(node: TypeNode) -> Check:
    msgspec = importlib.import_module("msgspec")  # installed, since the annotation has its `Meta`
    try:
        msgspec.json.Decoder(
            node.annotation
        )  # `convert` looks at the type with the first value only
    except TypeError as error:
        raise InjectionError(
            f"The constraint on {format_annotation(build_unconstrained_annotation(node))} cannot"
            f" be checked: {error}"
        ) from error

    def check_value(value: Any) -> Any:
        try:
            return msgspec.convert(value, node.annotation)
        except msgspec.ValidationError as error:
            message, context = parse_msgspec_error(str(error).partition(" - at `$")[0])
            raise LimitMissed(message.lower(), context) from None

    return check_value


def _build_own_check(node: TypeNode) -> Check:
    own = [marker for marker in node.markers if find_constraint_package(marker) == OWN]
    checks: list[Check] = [marker.check_field_value for marker in own]

    def check_value(value: Any) -> Any:
        try:
            for check in checks:
                value = check(value)
        except ValueError as error:
            reason: str = getattr(error, "reason", None) or str(error)
            raise LimitMissed(reason, getattr(error, "limits", {})) from None
        return value

    return check_value


_CHECKS: dict[str, Callable[[TypeNode], Check]] = {
    OWN: _build_own_check,
    PYDANTIC: _build_pydantic_check,
    MSGSPEC: _build_msgspec_check,
}
