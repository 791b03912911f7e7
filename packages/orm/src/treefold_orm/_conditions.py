"""Conditions a caller writes: Q, comparisons of expressions, conditions on related rows.

`freeze_condition` resolves one against a model. A keyword becomes a lookup, a comparison of a
column the same lookup, and every other comparison a test of two expressions. No SQL is built here.
"""

from __future__ import annotations

from typing import Any, cast

from treefold_orm._carriers import BOOLEAN, field_of
from treefold_orm._compile._nodes import (
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
from treefold_orm._errors import FieldError
from treefold_orm._expressions import Column, Expression, freeze_value
from treefold_orm._fields._numbers import DecimalField
from treefold_orm._lookups import MAX_HOPS, NOTHING, OPERATORS, Lookup, lookup_for
from treefold_orm._meta import Relation
from treefold_orm._names import check_untainted
from treefold_orm._scope import Scope


class Condition:
    """Base of everything `filter` takes; combined with `&`, `|`, `^` and `~`."""

    __slots__ = ()

    def freeze_condition(self, scope: Scope) -> Node:
        """Resolve against a model; return the node tree."""
        raise NotImplementedError

    def __and__(self, other: Condition) -> Q:
        return Q._joined("and", (self, _condition(other)))

    def __or__(self, other: Condition) -> Q:
        return Q._joined("or", (self, _condition(other)))

    def __xor__(self, other: Condition) -> Q:
        return (self & ~_condition(other)) | (~self & other)

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

    There are no control keywords: every keyword is a lookup.
    """

    __slots__ = ("_children", "_connector")

    _children: tuple[Any, ...]
    _connector: str

    def __init__(self, /, *conditions: Condition, **lookups: Any) -> None:
        self._children = (*map(_condition, conditions), *lookups.items())
        self._connector = "and"

    @classmethod
    def _joined(cls, connector: str, children: tuple[Condition, ...]) -> Q:
        made = cls.__new__(cls)
        made._connector = connector
        made._children = children
        return made

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
        return And(tuple(nodes)) if self._connector == "and" else Or(tuple(nodes))


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
    if isinstance(value, Expression) or hasattr(value, "_freeze_subquery"):
        if lookup.op in {"range", "isnull", "search"} or (
            lookup.json and (lookup.keys is not None or lookup.op != "exact")
        ):
            raise FieldError(f"{name} takes plain values, not expressions")
        return Compare(lookup, freeze_value(value, scope))
    used, param = lookup.prepare(value)
    if param is NOTHING:
        return Compare(used, None)
    return Compare(used, scope.param(param, used.field))


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
    if op == "search":
        raise FieldError("search works on fields with a SearchIndex, not on annotations")
    if op == "exact" and value is None:
        return TestNode(left, "null", None)
    if op == "isnull":
        if not isinstance(value, bool):
            raise FieldError(f"isnull takes True or False, not {type(value).__name__}")
        return TestNode(left, "null" if value else "notnull", None)
    if isinstance(value, Expression) or hasattr(value, "_freeze_subquery"):
        return TestNode(left, op, freeze_value(value, scope))
    field = left.field
    if field is None:
        field = field_of(value[0] if op in {"in", "range"} and value else value)
    if field.internal == "json" and op != "exact":
        raise FieldError(f"{op!r} does not work on JSON values: name the path in filter()")
    probe = Lookup(
        "annotation", hops=(), column=field, transforms=(), keys=None, op=op, field=field
    )
    if op not in {"exact", "gt", "gte", "lt", "lte", "in", "range"} and field.internal != "text":
        raise FieldError(f"{op!r} compares text, and the expression is not text")
    if isinstance(field, DecimalField) and op not in {"in", "range"}:
        return TestNode(left, op, freeze_value(value, scope, field))
    if value is None:
        raise FieldError(f"{op} cannot compare with None: use isnull")
    _, param = probe.prepare(value)
    return TestNode(left, op, scope.param(param, field))


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
