"""JSON values to typed values: checks of dataclasses and TypedDicts by the standard library.

For projects that have installed neither msgspec nor pydantic, and for types with constraints of
both. A type becomes a tree of checks once, at boot, so a type that cannot be checked is refused
there. No text becomes a number, and of numbers only an integer another kind: a float, since JSON
writes 1.0 as 1 too. Types without a JSON form (dates, UUID, Decimal) are read from text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, TypeAlias, cast

from treefold_http._json.pydantic_json import from_base64
from treefold_http._types import tree
from treefold_http._types.constraints import (
    OWN,
    build_constraint_check,
    find_constraint_packages,
)
from treefold_http._types.limits_missed import LimitMissed, build_expected_values_context
from treefold_http._types.parameters import InjectionError, format_annotation
from treefold_http._types.scalars import build_scalar_converter
from treefold_http._wire.aliases import JSONObject

Errors: TypeAlias = list[JSONObject]
Loc: TypeAlias = list[str | int]
Check: TypeAlias = Callable[[Any, Loc, Errors], Any]
"""Takes a parsed value and its place; returns the typed value or appends to the errors."""


def make_error_entry(
    loc: list[str | int], message: object, kind: str = "value_error"
) -> JSONObject:
    """Return one entry of `errors` in a 422.

    It has a `ctx` if the message is a `LimitMissed`.
    """
    name = next((step for step in reversed(loc) if isinstance(step, str)), "value")
    made: JSONObject = {"loc": loc, "msg": f"{name} {message}", "type": kind}
    if isinstance(message, LimitMissed) and message.context:
        made["ctx"] = message.context
    return made


def build_json_check(node: tree.TypeNode) -> Check:
    """Return the check of a type, including nested records.

    Raises:
        InjectionError: for a type that has no check, or a name in it that is unknown.
    """
    return _Planner().plan_node(node)


class _Planner:
    """Plans each record once, so that a record may be recursive."""

    def __init__(self) -> None:
        self.records: dict[Any, _Record] = {}
        self.named: dict[Any, Check] = {}

    def plan_node(self, node: tree.TypeNode) -> Check:
        inner = self.plan_unconstrained(node)
        if not node.markers:
            return inner
        # The items are checked already, and pydantic would refuse some of their types.
        bare = node.bare_annotation
        if isinstance(node, (tree.ListType, tree.Table)):
            bare = node.kind
        elif isinstance(node, tree.Record) and node.family == "typed_dict":
            bare = dict
        whole = tree.AnyType(annotation=Annotated[bare, *node.markers], markers=node.markers)
        return _with_check(inner, build_constraint_check(whole))

    def plan_unconstrained(self, node: tree.TypeNode) -> Check:
        match node:
            case tree.AnyType():
                return _accept_any
            case tree.Scalar() if node.kind in _EXACT:
                return _EXACT[node.kind]
            case tree.Choice():
                pairs = map(_pair_with_type, node.json_values)
                return _build_choice_check(dict(zip(pairs, node.members, strict=True)))
            case tree.UnionType() if (only := _find_constrained_option(node)) is not None:
                return _build_optional_check(self.plan_node(only))
            case tree.UnionType():
                shown = " | ".join(map(_format_option, node.options))
                return _build_union_check([self.plan_node(each) for each in node.options], shown)
            case tree.ListType(kind=kind) if kind is list:
                return _build_list_check(self.plan_node(node.item))
            case tree.Table(kind=kind) if kind in (dict, Mapping):
                return self.plan_table(node)
            case tree.Record(family="dataclass" | "typed_dict"):
                return self.plan_record(node)
            case tree.TypeStatement():
                return tree.build_recursive_type_proxy(node, self.named, self.plan_node)
            case _:
                pass
        if (convert := build_scalar_converter(node)) is None:
            raise InjectionError(
                f"A body cannot hold {format_annotation(node.bare_annotation)} without pydantic"
                " or msgspec;"
                ' install one: pip install "treefold[pydantic]"'
            )
        return _build_text_check(convert)

    def plan_table(self, node: tree.Table) -> Check:
        if not isinstance(node.key, tree.AnyType) and node.key.annotation is not str:
            raise InjectionError(
                "The keys of a JSON object must be str, got"
                f" {format_annotation(node.key.annotation)}; annotate dict[str, ...]"
            )
        return _build_mapping_check(self.plan_node(node.value))

    def plan_record(self, node: tree.Record) -> Check:
        if (known := self.records.get(node.record_type_key)) is None:
            known = self.records[node.record_type_key] = _Record(node.kind)
            members = [member for member in node.declared_members if member.is_input]
            known.checks.update({member.name: self.plan_node(member.type) for member in members})
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
            return _append_type_error("should be an object", loc, errors)
        given = cast("JSONObject", value)
        before = len(errors)
        unknown, missing = given.keys() - self.checks.keys(), self.required - given.keys()
        for name in sorted(unknown):
            errors.append(make_error_entry([*loc, name], "is not known here", "extra"))
        for name in sorted(missing):
            errors.append(make_error_entry([*loc, name], "is required", "missing"))
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
            errors.append(make_error_entry(loc, error))


def _with_check(inner: Check, constraint_check: Callable[[Any], Any] | None) -> Check:
    if constraint_check is None:
        return inner

    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        before = len(errors)
        made = inner(value, loc, errors)
        if len(errors) > before:
            return None
        try:
            return constraint_check(made)
        except ValueError as error:
            errors.append(make_error_entry(loc, error))

    return check_value


def _append_type_error(message: object, loc: Loc, errors: Errors) -> None:
    errors.append(make_error_entry(loc, message, "type_error"))


def _accept_any(value: Any, loc: Loc, errors: Errors) -> Any:
    return value


def _build_exact_type_check(*kinds: type) -> Check:
    words = f"should be {format_annotation(kinds[0])}"

    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        # The exact type: a bool is an int to Python and not to JSON.
        return value if type(value) in kinds else _append_type_error(words, loc, errors)

    return check_value


def _check_and_convert_float(value: Any, loc: Loc, errors: Errors) -> Any:
    if type(value) is float:
        return value
    try:
        return (
            # an integer of JSON has any number of digits: `10**400` raises OverflowError
            float(value)
            if type(value) is int
            else _append_type_error("should be float", loc, errors)
        )
    except OverflowError:
        return _append_type_error("should be a finite number", loc, errors)


def _pair_with_type(value: Any) -> tuple[type[Any], Any]:
    kind: type[Any] = value.__class__
    return kind, value


def _build_choice_check(choices: Mapping[tuple[type[Any], Any], Any]) -> Check:
    values = [value for _, value in choices]
    text = f"should be one of {', '.join(map(str, values))}"
    missed = LimitMissed(text, build_expected_values_context(values))

    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        try:
            # with the type: `True == 1 == 1.0`, and `Literal[1]` takes neither `true` nor `1.0`
            return choices[_pair_with_type(value)]
        except (KeyError, TypeError):  # a list, or another value without a hash
            return _append_type_error(missed, loc, errors)

    return check_value


def _build_text_check(convert: Callable[[str], Any]) -> Check:
    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        if not isinstance(value, str):
            return _append_type_error("should be text", loc, errors)
        try:
            return convert(value)
        except ValueError as error:
            errors.append(make_error_entry(loc, error))

    return check_value


def _build_list_check(item: Check) -> Check:
    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        if not isinstance(value, list):
            return _append_type_error("should be list", loc, errors)
        items = cast("list[Any]", value)
        return [item(each, [*loc, index], errors) for index, each in enumerate(items)]

    return check_value


def _build_mapping_check(member: Check) -> Check:
    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        if not isinstance(value, dict):
            return _append_type_error("should be an object", loc, errors)
        given = cast("JSONObject", value)
        return {name: member(each, [*loc, name], errors) for name, each in given.items()}

    return check_value


def _format_option(option: tree.TypeNode) -> str:
    if tree.is_none(option):
        return "None"
    if isinstance(option, tree.Choice):
        return f"Literal{[*option.json_values]}"
    return format_annotation(option.bare_annotation)


def _find_constrained_option(node: tree.UnionType) -> tree.TypeNode | None:
    """Return the only option beside None, if it has constraints, whose messages say more."""
    options = tree.list_options_without_none(node)
    if len(options) != 1 or len(node.options) != 2:
        return None
    return options[0] if OWN in find_constraint_packages(options[0], include_items=False) else None


def _build_optional_check(inner: Check) -> Check:
    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        return None if value is None else inner(value, loc, errors)

    return check_value


def _build_union_check(options: list[Check], expected_types: str) -> Check:
    words = f"should be {expected_types}"

    def check_value(value: Any, loc: Loc, errors: Errors) -> Any:
        for option in options:
            # errors of an option that does not fit are no errors of the value
            attempt: Errors = []
            made = option(value, loc, attempt)
            if not attempt:
                return made
        return _append_type_error(words, loc, errors)

    return check_value


_EXACT: Mapping[Any, Check] = {
    str: _build_exact_type_check(str),
    int: _build_exact_type_check(int),
    bool: _build_exact_type_check(bool),
    float: _check_and_convert_float,
    type(None): _build_exact_type_check(type(None)),
    bytes: _build_text_check(from_base64),
    bytearray: _build_text_check(lambda text: bytearray(from_base64(text))),
}
