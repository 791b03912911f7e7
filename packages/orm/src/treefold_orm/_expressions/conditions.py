"""Conditions a caller writes: Q, comparisons of expressions, conditions on related rows.

`freeze_condition` resolves one against a model. A keyword becomes a lookup, a comparison of a
column the same lookup, and every other comparison a test of two expressions. No SQL is built here.
"""

from __future__ import annotations

import decimal
from collections.abc import Callable
from typing import Any, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._expressions.columns import Column
from treefold_orm._expressions.conversion import common_field, converted, kind_of
from treefold_orm._expressions.expressions import Expression, LookupValue, freeze_value
from treefold_orm._expressions.lookups import (
    MAX_HOPS,
    NOTHING,
    OPERATORS,
    TEXTUAL,
    Lookup,
    lookup_for,
    plain_items,
)
from treefold_orm._expressions.nodes import (
    And,
    Compare,
    Expr,
    Node,
    Not,
    Or,
    RelatedNode,
    Test as TestNode,
    TruthNode,
)
from treefold_orm._expressions.operands import compared, tested
from treefold_orm._expressions.scope import Scope
from treefold_orm._fields.base import Field
from treefold_orm._fields.carriers import BOOLEAN, NUMBER, TEXT, field_of
from treefold_orm._fields.keys import KeyColumns
from treefold_orm._fields.meta import Relation

AnyField = Field[Any]
_AT_PATH = frozenset({"exact", "gt", "gte", "lt", "lte", "in"}) | TEXTUAL


class Condition:
    """Base of everything `filter` takes; combined with `&`, `|`, `^` and `~`."""

    __slots__ = ()

    def freeze_condition(self, scope: Scope) -> Node:
        """Resolve against a model; return the node tree."""
        raise NotImplementedError

    @property
    def empty(self) -> bool:
        """True for a `Q` without any condition: it adds nothing, wherever it stands."""
        return False

    def __and__(self, other: Condition) -> Q:
        return Q._joined("and", (self, _condition(other)))

    def __or__(self, other: Condition) -> Q:
        return Q._joined("or", (self, _condition(other)))

    def __xor__(self, other: Condition) -> Q:
        if self.empty or _condition(other).empty:
            return self | other
        return (self & ~other) | (~self & other)

    def __invert__(self) -> Condition:
        return Negated(self)

    def __bool__(self) -> bool:
        raise FieldError(
            "A condition has no truth value here: combine with &, | and ~ instead of and, or, not"
        )


def _condition(value: Any) -> Condition:
    if not isinstance(value, Condition):
        raise FieldError(f"{type(value).__name__} is not a condition: give a Q or a comparison")
    return value


class Q(Condition):
    """Lookups by keyword that can be combined: `Q(name="x") | Q(n__gt=3)`; several are joined by
    AND.

    There are no control keywords: every keyword is a lookup. `Q()` is empty: it adds nothing to
    what it is combined with, and `~Q()` is empty too.
    """

    __slots__ = ("_children", "_connector")

    _children: tuple[Any, ...]
    _connector: str

    def __init__(self, /, *conditions: Condition, **lookups: Any) -> None:
        given = [c for c in map(_condition, conditions) if not c.empty] if conditions else ()
        self._children = (*given, *lookups.items())
        self._connector = "and"

    @classmethod
    def _joined(cls, connector: str, children: tuple[Condition, ...]) -> Q:
        made = cls.__new__(cls)
        made._connector = connector
        made._children = tuple(child for child in children if not child.empty)
        return made

    @property
    def empty(self) -> bool:
        return not self._children

    def __invert__(self) -> Condition:
        return self if self.empty else Negated(self)

    def freeze_condition(self, scope: Scope) -> Node:
        nested = scope.nested()
        nodes: list[Node] = []
        for child in self._children:
            if isinstance(child, Condition):
                nodes.append(child.freeze_condition(nested))
            else:
                nodes.append(freeze_lookup(nested, child[0], child[1]))
        if len(nodes) == 1:
            return nodes[0]
        # without any condition every row is meant, however it was combined
        return Or(tuple(nodes)) if self._connector == "or" and nodes else And(tuple(nodes))


class Negated(Condition):
    """The rows that a condition does not select, those where it is unknown included."""

    __slots__ = ("_inner",)

    def __init__(self, inner: Condition) -> None:
        self._inner = inner

    def __invert__(self) -> Condition:
        return self._inner

    def freeze_condition(self, scope: Scope) -> Node:
        return Not(self._inner.freeze_condition(scope.nested()))


class Truth(Expression):
    """A condition as a value, for `annotate`, `values` and `order_by`."""

    __slots__ = ("_condition",)

    def __init__(self, condition: Condition) -> None:
        self._condition = condition

    def freeze(self, scope: Scope) -> Expr:
        return TruthNode(BOOLEAN, self._condition.freeze_condition(scope))


class Comparison(Condition):
    """An expression compared with a value, another expression or a query."""

    __slots__ = ("_left", "_op", "_right")

    def __init__(self, left: Expression, op: str, right: Any) -> None:
        self._left = left
        self._op = op
        self._right = right

    def freeze_condition(self, scope: Scope) -> Node:
        left = self._left
        if isinstance(left, Column):
            column = cast("Column[Any]", left)
            column.check_model(scope.meta)
            return freeze_lookup(scope, f"{column.path}__{self._op}", self._right, typed=True)
        return freeze_test(scope, left.freeze(scope), self._op, self._right)


def freeze_lookup(scope: Scope, name: str, value: Any, *, typed: bool = False) -> Node:
    """Resolve one lookup keyword with its value."""
    annotated = _annotated(scope, name)
    if annotated is not None:
        return freeze_test(scope, annotated[0], annotated[1], value)
    lookup = lookup_for(scope.meta, name, typed=typed)
    if holds_expressions(lookup.op, value):
        path = f"{lookup.name}__"
        return _spread(
            lookup.op, value, lambda op, item: freeze_lookup(scope, path + op, item, typed=typed)
        )
    if isinstance(lookup.column, KeyColumns):
        # few models have such a key
        from treefold_orm._expressions.key_lookups import freeze_key_lookup

        return freeze_key_lookup(scope, lookup, value, _freeze_resolved)
    return _freeze_resolved(scope, lookup, value)


def _freeze_resolved(scope: Scope, lookup: Lookup, value: Any) -> Node:
    name = lookup.name if lookup.op == "exact" else f"{lookup.name}__{lookup.op}"
    if isinstance(value, Expression) or hasattr(value, "_freeze_subquery"):
        if lookup.json and lookup.keys is not None and lookup.op in _AT_PATH:
            return _at_path(scope, lookup, value)
        if lookup.op in {"range", "isnull", "search"} or (lookup.json and lookup.op != "exact"):
            raise FieldError(f"{name} takes plain values, not expressions")
        return compared(lookup, freeze_value(value, scope))
    used, param = lookup.prepare(value)
    if param is NOTHING:
        return Compare(used, None)
    return Compare(used, scope.param(param, used.field))


def holds_expressions(op: str, value: Any) -> bool:
    """Return True if the values of `in` or `range` hold expressions."""
    return (
        op in {"in", "range"}
        and isinstance(value, (list, tuple, set, frozenset))
        and any(isinstance(item, Expression) for item in cast("list[Any]", value))
    )


def _spread(op: str, values: Any, freeze: Callable[[str, Any], Node]) -> Node:
    """`in` and `range` with expressions, as comparisons with one value each."""
    items = plain_items(values)
    if op == "range":
        if len(items) != 2:
            raise FieldError(f"range must be given two values, got {len(items)}")
        return And((freeze("gte", items[0]), freeze("lte", items[1])))
    given = [item for item in items if item is not None]
    computed = [item for item in given if isinstance(item, Expression)]
    plain = [item for item in given if not isinstance(item, Expression)]
    nodes = [freeze("exact", item) for item in computed]
    return Or((*nodes, freeze("in", plain))) if plain else Or(tuple(nodes))


def _at_path(scope: Scope, lookup: Lookup, value: Any) -> Node:
    """The value at a JSON path compared with an expression, in the type of the expression."""
    if any(hop.to_many for hop in lookup.hops):
        raise FieldError(
            f"{lookup.name}__{lookup.op} leads to many rows and takes plain values there: use "
            "Exists() with OuterRef()"
        )
    return tested(LookupValue(lookup).node(), lookup.op, freeze_value(value, scope))


def _annotated(scope: Scope, name: str) -> tuple[Expr, str] | None:
    if not scope.annotations:
        return None
    check_untainted(name)
    if name in scope.annotations:
        return scope.annotations[name], "exact"
    head, _, op = name.rpartition("__")
    if head not in scope.annotations:
        head, _, op = name.partition("__")
    if head not in scope.annotations:
        return None
    if op and op not in OPERATORS:
        raise FieldError(f"{scope.meta.name} has no lookup {op!r} for annotation {head!r}")
    return scope.annotations[head], op or "exact"


def freeze_test(scope: Scope, left: Expr, op: str, value: Any) -> Node:
    """Resolve a comparison whose left side is an expression, checking the right side by the left's
    type.
    """
    if holds_expressions(op, value):
        return _spread(op, value, lambda op, item: freeze_test(scope, left, op, item))
    if op == "search":
        raise FieldError("search works on fields with a SearchIndex, not on annotations")
    if op == "exact" and value is None:
        return TestNode(left, "null", None)
    if op == "isnull":
        if not isinstance(value, bool):
            raise FieldError(f"isnull takes True or False, not {type(value).__name__}")
        return TestNode(left, "null" if value else "notnull", None)
    if isinstance(value, Expression) or hasattr(value, "_freeze_subquery"):
        return tested(left, op, freeze_value(value, scope))
    field = left.field
    if field is None:
        field = field_of(value[0] if op in {"in", "range"} and value else value)
    if value is None:
        raise FieldError(f"{op} cannot compare with None: use isnull")
    if field.internal == "binary" and op != "exact":
        raise FieldError(f"{op} cannot compare binary values: compare each of them with exact")
    if field.internal == "json" and op != "exact":
        return _json_test(scope, left, op, value)
    if op not in {"exact", "gt", "gte", "lt", "lte", "in", "range"} and field.internal != "text":
        raise FieldError(f"{op!r} compares text, and the expression is not text")
    if op in {"in", "range"} and field.internal == "binary":
        raise FieldError(f"{op} cannot compare bytes: combine comparisons of single values with |")
    if kind_of(field) in {"decimal", "float"}:
        if op not in {"in", "range"}:
            return tested(left, op, freeze_value(value, scope, field))
        value, field = _in_one_type(value, field)
        left = converted(left, field, "operand")
    probe = Lookup(
        "annotation", hops=(), column=field, transforms=(), keys=None, op=op, field=field
    )
    _, param = probe.prepare(value)
    return TestNode(left, op, scope.param(param, field))


def _in_one_type(values: Any, field: AnyField) -> tuple[list[Any], AnyField]:
    """Values for `in` and `range`, and the type with as many places as the finest of them."""
    items = plain_items(values)
    if kind_of(field) == "float":
        return [float(i) if isinstance(i, decimal.Decimal) else i for i in items], field
    finest = [field_of(i) for i in items if isinstance(i, decimal.Decimal)]
    return items, common_field([field, *finest]) or field


def _json_test(scope: Scope, left: Expr, op: str, value: Any) -> Node:
    """What a value asks of JSON: numbers are compared with numbers, text with text."""
    first = plain_items(value)[:1] if op in {"in", "range"} else [value]
    if any(isinstance(item, bool) or not isinstance(item, (int, float, str)) for item in first):
        raise FieldError(f"{op} compares JSON numbers or text, not {type(first[0]).__name__}")
    field = TEXT if any(isinstance(item, str) for item in first) else NUMBER
    return freeze_test(scope, converted(left, field, "operand"), op, value)


class _Related(Condition):
    __slots__ = ("_kind", "_path", "_where")

    def __init__(self, kind: str, path: str, where: Condition | None) -> None:
        check_untainted(path)
        self._kind = kind
        self._path = path
        self._where = where

    def freeze_condition(self, scope: Scope) -> Node:
        hops: list[Relation] = []
        here = scope.meta
        for part in self._path.split("__"):
            found = here.find(part)
            if not isinstance(found, Relation) or len(hops) >= MAX_HOPS:
                raise here.unknown(part)
            hops.append(found)
            here = found.target
        where = None if self._where is None else self._where.freeze_condition(scope.within(here))
        if self._kind == "all":
            return Not(RelatedNode(tuple(hops), None if where is None else Not(where)))
        node = RelatedNode(tuple(hops), where)
        return node if self._kind == "any" else Not(node)


def any_of(relation: str, where: Condition | None = None) -> Condition:
    """At least one related row meets `where`: all of its conditions speak of the same row."""
    return _Related("any", relation, where)


def none_of(relation: str, where: Condition | None = None) -> Condition:
    """No related row meets `where`."""
    return _Related("none", relation, where)


def all_of(relation: str, where: Condition) -> Condition:
    """Every related row meets `where`; true where there is none."""
    return _Related("all", relation, where)
