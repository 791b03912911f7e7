"""JSON values to typed values: checks of dataclasses and TypedDicts by the standard library.

For projects that have installed neither msgspec nor pydantic, and for types with constraints of
both (rulings, 'Handlers', 6). A type becomes a tree of checks once, at boot, so a type that cannot
be checked is refused there. Values are not coerced: no text becomes a number. Types without a JSON
form (dates, UUID, Decimal) are read from text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias, cast

from treefold_http._types import tree
from treefold_http._types.constraints import value_check
from treefold_http._types.limits_missed import LimitMissed, expected
from treefold_http._types.parameters import InjectionError, shown
from treefold_http._types.scalars import converter
from treefold_http._wire.pydantic_json import from_base64

Errors: TypeAlias = list[dict[str, Any]]
Loc: TypeAlias = list[str | int]
Check: TypeAlias = Callable[[Any, Loc, Errors], Any]
"""Takes a parsed value and its place; returns the typed value or appends to the errors."""


def entry(loc: list[str | int], message: object, kind: str = "value_error") -> dict[str, Any]:
    """Return one entry of `errors` in a 422 (rulings, 'Handlers and injection').

    It has a `ctx` if the message is a `LimitMissed`.
    """
    name = next(step for step in reversed(loc) if isinstance(step, str))
    made: dict[str, Any] = {"loc": loc, "msg": f"{name} {message}", "type": kind}
    if isinstance(message, LimitMissed) and message.context:
        made["ctx"] = message.context
    return made


def json_check(node: tree.TypeNode) -> Check:
    """Return the check of a type, including nested records.

    Raises:
        InjectionError: for a type that has no check, or a name in it that is unknown.
    """
    return _Planner().check(node)


class _Planner:
    """Plans each record once, so that a record may be recursive."""

    def __init__(self) -> None:
        self.records: dict[Any, _Record] = {}
        self.named: dict[Any, Check] = {}

    def check(self, node: tree.TypeNode) -> Check:
        inner = self.unconstrained(node)
        if not node.markers:
            return inner
        # The items are checked already, and pydantic would refuse some of their types.
        bare = node.bare
        if isinstance(node, (tree.ListType, tree.Table)):
            bare = node.kind
        elif isinstance(node, tree.Record) and node.family == "typed_dict":
            bare = dict
        whole = tree.AnyType(annotation=Annotated[bare, *node.markers], markers=node.markers)
        return _with(inner, value_check(whole))

    def unconstrained(self, node: tree.TypeNode) -> Check:
        match node:
            case tree.AnyType():
                return _anything
            case tree.Scalar() if node.kind in _EXACT:
                return _EXACT[node.kind]
            case tree.Choice():
                return _choice(dict(zip(map(_exact, node.values), node.members, strict=True)))
            case tree.UnionType():
                return _union([self.check(option) for option in node.options], node.bare)
            case tree.ListType(kind=kind) if kind is list:
                return _list(self.check(node.item))
            case tree.Table(kind=kind) if kind in (dict, Mapping):
                return self.table(node)
            case tree.Record(family="dataclass" | "typed_dict"):
                return self.record(node)
            case tree.Named():
                return tree.plan_named(node, self.named, self.check)
            case _:
                pass
        convert = converter(node)
        if convert is None:
            raise InjectionError(
                f"A body cannot hold {shown(node.bare)} without pydantic or msgspec;"
                ' install one: pip install "treefold[pydantic]"'
            )
        return _text(convert)

    def table(self, node: tree.Table) -> Check:
        if not isinstance(node.key, tree.AnyType) and node.key.annotation is not str:
            raise InjectionError(
                f"The keys of a JSON object must be str, got {shown(node.key.annotation)};"
                " annotate dict[str, ...]"
            )
        return _members(self.check(node.value))

    def record(self, node: tree.Record) -> Check:
        known = self.records.get(node.key)
        if known is None:
            known = self.records[node.key] = _Record(node.kind)
            members = [member for member in node.members if member.is_input]
            known.checks.update({member.name: self.check(member.type) for member in members})
            known.required = frozenset(member.name for member in members if member.required)
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


def _wrong(message: object, loc: Loc, errors: Errors) -> None:
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
    values = [value for _, value in choices]
    missed = LimitMissed(f"should be one of {', '.join(map(str, values))}", expected(values))

    def check(value: Any, loc: Loc, errors: Errors) -> Any:
        try:
            return choices[_exact(value)]
        except (KeyError, TypeError):  # a list, or another value without a hash
            return _wrong(missed, loc, errors)

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


_EXACT: Mapping[Any, Check] = {
    str: _of(str),
    int: _of(int),
    bool: _of(bool),
    float: _float,
    type(None): _of(type(None)),
    bytes: _text(from_base64),
    bytearray: _text(lambda text: bytearray(from_base64(text))),
}
