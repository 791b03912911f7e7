"""Records of the standard library from JSON: checks of dataclasses and TypedDicts.

For projects that have installed neither msgspec nor pydantic, and for types with constraints of
both (rulings, 'Handlers', 6). A type becomes a tree of checks once, at boot, so a type that cannot
be checked is refused there. Values are not coerced: no text becomes a number. Types without a JSON
form (dates, UUID, Decimal) are read from text.
"""

from __future__ import annotations

import dataclasses
import enum
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any, ClassVar, Literal, TypeAlias, cast

from treefold_http._binding import converter
from treefold_http._constraints import families, value_check
from treefold_http._parameters import (
    InjectionError,
    is_alias,
    named,
    options_of,
    shown,
    split,
)
from treefold_http._sources import Errors, entry

Loc: TypeAlias = list[str | int]
Check: TypeAlias = Callable[[Any, Loc, Errors], Any]
"""Takes a parsed value and its place; returns the typed value or appends to the errors."""


def is_record(kind: Any) -> bool:
    """Return True for a dataclass or a TypedDict."""
    return is_typed_dict(kind) or (isinstance(kind, type) and dataclasses.is_dataclass(kind))


def record_check(annotation: Any) -> Check:
    """Return the check of an annotation, including nested records.

    Raises:
        InjectionError: for a type that has no check, or a name in it that is unknown.
    """
    return _Planner().check(annotation)


class _Planner:
    """Plans each record once, so that a record may be recursive."""

    def __init__(self) -> None:
        self.records: dict[Any, _Record] = {}
        self.named: dict[Any, Check] = {}

    def check(self, annotation: Any) -> Check:
        bare, markers = split(annotation)
        if markers:
            return self.constrained(bare, markers)
        options = options_of(annotation)
        if len(options) > 1:
            return _union([self.check(option) for option in options], annotation)
        if annotation in (Any, object):
            return _anything
        if is_record(annotation):
            return self.record(annotation)
        if is_alias(annotation):
            return self.alias(annotation)
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.check(annotation.__supertype__)
        arguments = typing.get_args(annotation)
        origin = typing.get_origin(annotation) or annotation
        if origin in _QUALIFIERS:
            return self.check(arguments[0])
        if origin is Literal:
            return _choice({_exact(choice): choice for choice in arguments})
        if origin is list and arguments:
            return _list(self.check(arguments[0]))
        if origin in (dict, Mapping) and arguments:
            return self.dict(arguments)
        if isinstance(origin, type) and issubclass(origin, enum.Enum):
            return _choice({_exact(member.value): member for member in origin})
        if origin in _EXACT:
            return _EXACT[origin]
        convert = converter(origin)
        if convert is None:
            raise InjectionError(
                f"A body cannot hold {shown(annotation)} without pydantic or msgspec;"
                ' install one: pip install "treefold[pydantic]"'
            )
        return _text(convert)

    def alias(self, annotation: Any) -> Check:
        def later(value: Any, loc: Loc, errors: Errors) -> Any:
            return self.named[annotation](value, loc, errors)

        if annotation not in self.named:  # the type may be recursive
            self.named[annotation] = later
            self.named[annotation] = self.check(named(annotation))
        return later

    def constrained(self, annotation: Any, markers: tuple[Any, ...]) -> Check:
        inner = self.check(annotation)
        if typing.get_origin(annotation) in _QUALIFIERS:
            annotation = typing.get_args(annotation)[0]
        # The items are checked already, and pydantic would refuse some of their types.
        origin = typing.get_origin(annotation) or annotation
        bare = origin if origin in (list, dict) else dict if is_typed_dict(origin) else annotation
        whole = Annotated[bare, *markers]
        return _with(inner, value_check(whole)) if families(whole, items=False) else inner

    def dict(self, arguments: tuple[Any, ...]) -> Check:
        if arguments[0] not in (str, Any):
            raise InjectionError(
                f"The keys of a JSON object are str, not {shown(arguments[0])}; annotate dict[str,"
                " ...]"
            )
        return _members(self.check(arguments[1]))

    def record(self, kind: Any) -> Check:
        known = self.records.get(kind)
        if known is None:
            known = self.records[kind] = _Record(kind)
            try:
                hints = typing.get_type_hints(kind, include_extras=True)
            except Exception as error:
                raise InjectionError(
                    f"The annotations of {shown(kind)} cannot be resolved: {error};"
                    " import the names that they use"
                ) from error
            fields = hints if is_typed_dict(kind) else _fields(kind, hints)
            known.checks.update({name: self.check(type_taken(hints[name])) for name in fields})
            known.required = frozenset(filter(required_in(kind), fields))
        return known


class _Record:
    """The check of one dataclass or TypedDict."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.checks: dict[str, Check] = {}
        self.required: frozenset[str] = frozenset()

    def __call__(self, value: Any, loc: Loc, errors: Errors) -> Any:
        if not isinstance(value, dict):
            return _wrong("should be an object", loc, errors)
        given = cast("dict[str, Any]", value)
        before = len(errors)
        unknown, missing = given.keys() - self.checks.keys(), self.required - given.keys()
        errors += [entry([*loc, name], "is not known here", "extra") for name in sorted(unknown)]
        errors += [entry([*loc, name], "is required", "missing") for name in sorted(missing)]
        members = {
            name: self.checks[name](item, [*loc, name], errors)
            for name, item in given.items()
            if name in self.checks
        }
        if len(errors) > before:
            return None
        try:
            return self.kind(**members)
        except ValueError as error:  # raised by __post_init__
            errors.append(entry(loc, error))


def _fields(kind: Any, hints: Mapping[str, Any]) -> list[str]:
    """The parameters of a dataclass constructor: fields, and `InitVar`s for `__post_init__`."""
    known: Mapping[str, dataclasses.Field[Any]] = kind.__dataclass_fields__
    named = [name for name, field in known.items() if field.init]
    return [name for name in named if ClassVar not in (hints[name], typing.get_origin(hints[name]))]


def type_taken(hint: Any) -> Any:
    """Return the type of a constructor parameter; an `InitVar` is unwrapped."""
    return cast("Any", hint).type if isinstance(hint, dataclasses.InitVar) else hint


def is_typed_dict(kind: Any) -> bool:
    """Return True for a TypedDict, also one of typing_extensions."""
    # Not `typing.is_typeddict`, which does not recognize those of typing_extensions.
    given: Any = kind
    return isinstance(kind, type) and issubclass(kind, dict) and hasattr(given, "__total__")


def required_in(kind: Any) -> Callable[[str], bool]:
    """Return a function that returns True for the required fields of a record."""
    if not is_typed_dict(kind):
        missing = dataclasses.MISSING
        fields: Mapping[str, dataclasses.Field[Any]] = kind.__dataclass_fields__
        return lambda name: fields[name].default is fields[name].default_factory is missing
    # `__required_keys__` ignores `Required` and `NotRequired` in annotations that are text.
    marks = typing.get_type_hints(kind, include_extras=True)
    known = {typing.Required: True, typing.NotRequired: False}

    def is_required(name: str) -> bool:
        mark = typing.get_origin(split(marks[name])[0])
        return known.get(mark, name in kind.__required_keys__)

    return is_required


def _with(inner: Check, further: Callable[[Any], Any] | None) -> Check:
    if further is None:
        return inner

    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        before = len(errors)
        made = inner(value, loc, errors)
        if len(errors) > before:
            return None
        try:
            return further(made)
        except ValueError as error:
            errors.append(entry(loc, error))

    return check


def _wrong(message: str, loc: Loc, errors: Errors) -> None:
    errors.append(entry(loc, message, "type_error"))


def _anything(value: Any, loc: Loc, errors: Errors) -> Any:
    return value


def _of(*kinds: type) -> Check:
    words = f"should be {shown(kinds[0])}"

    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        # The exact type: a bool is an int to Python and not to JSON.
        return value if type(value) in kinds else _wrong(words, loc, errors)

    return check


def _float(value: Any, loc: Loc, errors: Errors) -> Any:
    if type(value) is float:
        return value
    try:
        return float(value) if type(value) is int else _wrong("should be float", loc, errors)
    except OverflowError:
        return _wrong("should be a finite number", loc, errors)


def _exact(value: Any) -> tuple[type[Any], Any]:
    kind: type[Any] = value.__class__
    return kind, value


def _choice(choices: Mapping[tuple[type[Any], Any], Any]) -> Check:
    words = f"should be one of {', '.join(str(value) for _, value in choices)}"

    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        if isinstance(value, (list, dict)) or _exact(value) not in choices:
            return _wrong(words, loc, errors)
        return choices[_exact(value)]

    return check


def _text(convert: Callable[[str], Any]) -> Check:
    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        if not isinstance(value, str):
            return _wrong("should be text", loc, errors)
        try:
            return convert(value)
        except ValueError as error:
            errors.append(entry(loc, error))

    return check


def _list(item: Check) -> Check:
    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        if not isinstance(value, list):
            return _wrong("should be list", loc, errors)
        items = cast("list[Any]", value)
        return [item(each, [*loc, index], errors) for index, each in enumerate(items)]

    return check


def _members(member: Check) -> Check:
    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        if not isinstance(value, dict):
            return _wrong("should be an object", loc, errors)
        given = cast("dict[str, Any]", value)
        return {name: member(each, [*loc, name], errors) for name, each in given.items()}

    return check


def _union(options: list[Check], annotation: Any) -> Check:
    words = f"should be {annotation}"

    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        for option in options:
            attempt: Errors = []
            made = option(value, loc, attempt)
            if not attempt:
                return made
        return _wrong(words, loc, errors)

    return check


_QUALIFIERS = (typing.Required, typing.NotRequired)

_EXACT: Mapping[Any, Check] = {
    str: _of(str),
    int: _of(int),
    bool: _of(bool),
    float: _float,
    type(None): _of(type(None)),
    list: _of(list),
    dict: _of(dict),
}
