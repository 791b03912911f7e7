"""Fields as declarations: class and constructor arguments, unbound copies, and Python source.

A declaration leaves out what never reaches a schema (validators, default callables, texts for
people) and what equals its default, so that two fields that mean the same have the same source. A
class of an enum is declared by its values: a migration must not change with the application.
"""

from __future__ import annotations

import enum
import functools
import inspect
import types
from collections.abc import Callable
from typing import Any, cast

from treefold_orm import fields as public_fields
from treefold_orm._base.errors import ModelError
from treefold_orm._base.records import Record, frozen_record
from treefold_orm._fields.base import MISSING, AnyField, Field
from treefold_orm._fields.numbers import AutoField
from treefold_orm._fields.relations import is_foreign_key
from treefold_orm._schema.source_values import (
    Imports,
    is_plain_name,
    quoted,
    write_call,
    write_constant,
)
from treefold_orm._terms.operators import Expression

_COMPARED = (str, int, bool, float, type(None))
_LEFT_OUT = frozenset({"validators", "help_text", "verbose_name", "related_name"})


@frozen_record
class Declaration(Record):
    """A field's class and arguments, as far as they matter to a schema."""

    kind: type[AnyField]
    args: tuple[Any, ...]
    options: dict[str, Any]

    def make_field(self) -> AnyField:
        """Return a new field, unbound."""
        made: AnyField = cast("Any", self.kind)(*self.args, **self.options)
        return made


@functools.cache
def _inspect_parameters(kind: type[AnyField]) -> tuple[list[str], bool, dict[str, Any]]:
    """The positional parameters, whether there may be more of them, and all with their defaults."""
    found = list(inspect.signature(kind).parameters.values())
    by_place = [p for p in found if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    named = [p for p in found if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return (
        [p.name for p in by_place if p.name != "self"],
        any(p.kind is p.VAR_POSITIONAL for p in found),
        {p.name: MISSING if p.default is p.empty else p.default for p in named},
    )


def build_declaration(field: AnyField) -> Declaration:
    """Return a field's declaration; a foreign key's names the table that it points to."""
    args, options = field.declared
    positional, several, defaults = _inspect_parameters(type(field))
    given = dict(zip(positional, args, strict=False))
    rest = args[len(positional) :]
    if rest and not several:
        raise ModelError(f"{type(field).__name__} takes {len(positional)} positional values")
    given.update(options)
    is_key = is_foreign_key(field)
    if is_key:
        given["to"] = _find_target_table(field)
    _normalize_arguments(field, given)
    names = [name for name in defaults if name in given]
    names += [name for name in given if name not in defaults]
    kept = {
        name: given[name]
        for name in names
        # the default of a key's `db_index` is another one than its parameter says
        if (is_key and name == "db_index")
        or not _is_default(given[name], defaults.get(name, MISSING))
    }
    leading: list[Any] = []
    for name in positional:
        if name not in kept:
            break
        leading.append(kept.pop(name))
    return Declaration(type(field), (*leading, *rest), kept)


def _find_target_table(field: Any) -> str:
    if field.meta is MISSING:
        return field.to if isinstance(field.to, str) else field.to._meta.table_name
    return field.known_target.table_name


def _normalize_arguments(field: AnyField, given: dict[str, Any]) -> None:
    for name in _LEFT_OUT:
        given.pop(name, None)
    if "default" in given:
        default = given["default"]
        if callable(default) or not _has_python_source(default):
            del given["default"]
    if field.choices is not None:
        given["choices"] = [
            (_unwrap_enum_member(value), label) for value, label in field.choices.items()
        ]
    if isinstance(field, AutoField):
        given.pop("primary_key", None)
    if field.primary_key or getattr(field, "one_to_one", False):
        given.pop("unique", None)
    if is_foreign_key(field) and field.db_index == (not field.one_to_one):
        given.pop("db_index", None)
    for name, value in given.items():
        if isinstance(value, type) and issubclass(value, enum.Enum):
            given[name] = _copy_enum(value)


def _unwrap_enum_member(value: Any) -> Any:
    return value.value if isinstance(value, enum.Enum) else value


def _copy_enum(given: type[enum.Enum]) -> type[enum.Enum]:
    # the values of today, under the name of today; `_write_enum` writes the same in source
    members = {member.name: member.value for member in given}
    return cast("type[enum.Enum]", enum.Enum(given.__name__, members))


def _is_default(value: Any, default: Any) -> bool:
    if value is default:
        return True
    # the types first: 1 == True; and == of an expression makes a condition, which refuses bool()
    return type(value) is type(default) and not isinstance(value, Expression) and value == default


def _has_python_source(value: Any) -> bool:
    try:
        write_constant(value, Imports())
    except ModelError:
        return value is MISSING
    return True


def unbound_copy(field: AnyField) -> AnyField:
    """Return a new field of the same declaration, bound to no model."""
    return build_declaration(field).make_field()


def same_declarations(one: AnyField, other: AnyField) -> bool:
    """True for two fields whose arguments are the same plain values.

    False says nothing: arguments that are no plain values may mean the same, as their source tells.
    """
    first, second = build_declaration(one), build_declaration(other)
    return (
        first.kind is second.kind
        and len(first.args) == len(second.args)
        and first.options.keys() == second.options.keys()
        and all(map(_equals_exactly, first.args, second.args))
        and all(_equals_exactly(value, second.options[key]) for key, value in first.options.items())
    )


def _equals_exactly(one: Any, other: Any) -> bool:
    kind = cast("type[Any]", type(one))
    if kind is not type(other):
        return False
    if kind in (list, tuple):
        return len(one) == len(other) and all(map(_equals_exactly, one, other))
    return kind in _COMPARED and one == other


def write_field(field: AnyField, imports: Imports, expression: Callable[[Expression], str]) -> str:
    """Write a field as the call that makes it.

    Raises `ModelError` for an argument that has no certain spelling.
    """
    declared = build_declaration(field)
    kind = declared.kind
    if getattr(public_fields, kind.__name__, None) is kind:
        name = f"{imports.name('treefold_orm', 'fields')}.{kind.__name__}"
    else:
        name = imports.of(kind)

    def write_value(value: Any) -> str:
        if isinstance(value, Expression):
            return expression(value)
        if isinstance(value, Field):
            return write_field(cast("AnyField", value), imports, expression)
        if isinstance(value, type) and issubclass(value, enum.Enum):
            return _write_enum(value, imports)
        if isinstance(value, (type, types.FunctionType)):
            return imports.of(value)
        return write_constant(value, imports)

    args = [write_value(value) for value in declared.args]
    options = {key: write_value(value) for key, value in declared.options.items()}
    return write_call(name, args, options)


def _write_enum(kind: type[enum.Enum], imports: Imports) -> str:
    members = {member.name: member.value for member in kind}
    if not is_plain_name(kind.__name__):
        raise ModelError(f"{kind.__name__!r} cannot name an enum in a migration")
    made = imports.name("enum", "Enum")
    return f"{made}({quoted(kind.__name__)}, {write_constant(members, imports)})"
