"""Keys of several columns in queries: comparisons and terms become those of the parts.

A comparison with a tuple is one of each part, so that conversions, indexes and relations work as
for any column; only `in` stays a comparison of rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._expressions import nodes
from treefold_orm._expressions.lookups import Lookup, refuse_sensitive, walk_path
from treefold_orm._expressions.resolving import COMPUTED, QuerySource, Resolvable, resolve_value
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import AnyField
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._terms.columns import AnyColumn, Column
from treefold_orm._terms.operators import Expression
from treefold_orm._terms.values import F, OuterRef

if TYPE_CHECKING:
    from collections.abc import Callable

    Resolved = Callable[[Scope, Lookup, Any], nodes.Node]


class _OuterPart(Resolvable):
    """One part of a key of several columns in the enclosing query."""

    __slots__ = ("outer", "part")

    def __init__(self, outer: OuterRef, part: int) -> None:
        self.outer = outer
        self.part = part

    def resolve(self, scope: Scope) -> nodes.Expr:
        return nodes.OuterNode(None, self.outer.path, self.part, level=self.outer.level)


def resolve_composite_key_lookup(
    scope: Scope, lookup: Lookup, value: Any, resolve_part: Resolved
) -> nodes.Node:
    """Resolve a lookup of a key of several columns; `resolve_part` resolves one of a part."""
    key = cast("KeyColumns", lookup.column)
    if lookup.op == "isnull" or value is None:
        missing = lookup.op != "isnull" or value
        if value is None and lookup.op != "exact":
            raise FieldError(f"{lookup.name}__{lookup.op} cannot compare with None: use isnull")
        # no part of a stored key is NULL: the first one tells whether there is a row
        return resolve_part(scope, _build_key_part_lookup(lookup, key.parts[0], "isnull"), missing)
    match lookup.op:
        case "exact":
            pairs = zip(key.parts, _split_key_value(scope, lookup, value), strict=True)
            tests = [
                (_build_key_part_lookup(lookup, part, "exact"), value) for part, value in pairs
            ]
            return nodes.And(tuple([resolve_part(scope, test, value) for test, value in tests]))
        case "in":
            return _compare_key_in_list(scope, lookup, value)
        case "range":
            if not isinstance(value, (tuple, list)) or len(cast("list[Any]", value)) != 2:
                raise FieldError(f"{lookup.name}__range takes two keys")
            low, high = cast("list[Any]", value)
            return nodes.And(
                (
                    _compare_key_lexicographically(scope, lookup, "gte", low, resolve_part),
                    _compare_key_lexicographically(scope, lookup, "lte", high, resolve_part),
                )
            )
        case _:
            return _compare_key_lexicographically(scope, lookup, lookup.op, value, resolve_part)


def _compare_key_lexicographically(
    scope: Scope, lookup: Lookup, op: str, value: Any, resolve_part: Resolved
) -> nodes.Node:
    key = cast("KeyColumns", lookup.column)
    values = _split_key_value(scope, lookup, value)
    branches: list[nodes.Node] = []
    for place, part in enumerate(key.parts):
        last = place == len(key.parts) - 1
        tests = [
            resolve_part(scope, _build_key_part_lookup(lookup, same, "exact"), values[i])
            for i, same in enumerate(key.parts[:place])
        ]
        # strictly before the last part: rows that are equal so far are left to later branches
        further = _build_key_part_lookup(lookup, part, op if last else op.removesuffix("e"))
        tests.append(resolve_part(scope, further, values[place]))
        branches.append(nodes.And(tuple(tests)))
    return nodes.Or(tuple(branches))


def _compare_key_in_list(scope: Scope, lookup: Lookup, value: Any) -> nodes.Node:
    key = cast("KeyColumns", lookup.column)
    if isinstance(value, QuerySource):
        return nodes.Compare(lookup, resolve_value(value, scope))
    if isinstance(value, (str, bytes, dict, Expression)) or not hasattr(value, "__iter__"):
        kind = type(cast("object", value)).__name__
        raise FieldError(f"{lookup.name}__in takes a list of tuples, not {kind}")
    keys = [key.coerce(item) for item in value if item is not None]
    return nodes.Compare(lookup, scope.add_param(keys, key))


def _build_key_part_lookup(lookup: Lookup, part: AnyField, op: str) -> Lookup:
    return Lookup(lookup.name, lookup.hops, part, op, part, takes=op != "isnull")


def _split_key_value(scope: Scope, lookup: Lookup, value: Any) -> list[Any]:
    """The value of each part that a key is compared with."""
    key = cast("KeyColumns", lookup.column)
    if isinstance(value, OuterRef):
        return [_OuterPart(value, place) for place in range(len(key.parts))]
    if isinstance(value, (F, Column)):
        found: KeyColumns | None = _find_composite_key(scope, value.path)
        if found is None or len(found.parts) != len(key.parts):
            raise FieldError(
                f"{lookup.name} compares a key of {len(key.parts)} columns, and {value.path!r} is "
                "another kind of value"
            )
        prefix = _build_key_part_prefix(value.path)
        if isinstance(value, Column):
            return [AnyColumn(value.meta, prefix + p.name, p) for p in found.parts]
        return [F(prefix + part.name) for part in found.parts]
    if isinstance(value, COMPUTED):
        raise FieldError(f"{lookup.name} takes a tuple, F or OuterRef, not {type(value).__name__}")
    return list(key.coerce(value))


def _find_composite_key(scope: Scope, path: str) -> KeyColumns | None:
    if path in scope.annotations:
        return None
    _, column, rest = walk_path(scope.meta, path)
    return column if isinstance(column, KeyColumns) and not rest else None


def _build_key_part_prefix(path: str) -> str:
    return path.removesuffix("pk") if path == "pk" or path.endswith("__pk") else f"{path}__"


def resolve_composite_key_columns(scope: Scope, term: Any) -> tuple[nodes.ColumnNode, ...]:
    """Resolve a name or typed column that leads to a key of several columns to its parts.

    Empty for everything else, which is resolved as any expression.
    """
    if isinstance(term, (F, Column)):
        if isinstance(term, Column):
            term.check_model(scope.meta)
        path, typed = term.path, isinstance(term, Column)
    elif isinstance(term, str):
        path, typed = term, False
    else:
        return ()
    key = _find_composite_key(scope, path)
    if key is None:
        return ()
    hops = walk_path(scope.meta, path)[0]
    if not typed:
        refuse_sensitive(scope.meta, key, path)
    return tuple(nodes.ColumnNode(part, hops, part) for part in key.parts)
