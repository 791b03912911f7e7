"""Expressions that name something: a bound value, a field, a field of the enclosing query; and
conditions on related rows: any_of, none_of, all_of.
"""

from __future__ import annotations

from typing import Any, Protocol, cast

from treefold_orm._base.errors import FieldError
from treefold_orm._base.names import check_untainted
from treefold_orm._terms.operators import Condition, Expression


class Carrier(Protocol):
    """A field, as far as a term knows it: it checks values."""

    def coerce(self, value: Any) -> Any: ...


class Value(Expression):
    """A bound value; `output_field` says how it travels when the Python type does not."""

    __slots__ = ("output_field", "value")

    def __init__(self, value: Any, output_field: Carrier | None = None) -> None:
        self.value = value
        self.output_field = output_field


class F(Expression):
    """The value of a field or annotation, by name: `F("price")`, `F("author__name")`."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        # a name of a request could walk to any column of any related model
        check_untainted(path)
        self.path = path


class OuterRef(Expression):
    """Inside `Subquery` and `Exists`: a field of the enclosing query; `OuterRef(OuterRef("x"))` is
    one of the query around that one.
    """

    __slots__ = ("level", "path")

    def __init__(self, path: str | OuterRef) -> None:
        given = cast("Any", path)
        if isinstance(given, OuterRef):
            self.level: int = given.level + 1
            self.path: str = given.path
            return
        if not isinstance(given, str):
            raise FieldError(f"OuterRef takes a name or an OuterRef, got {type(given).__name__}")
        check_untainted(given)
        self.level = 1
        self.path = given


class Truth(Expression):
    """A condition as a value, for `annotate`, `values` and `order_by`."""

    __slots__ = ("condition",)

    def __init__(self, condition: Condition) -> None:
        self.condition = condition


def as_expression(value: object) -> Expression:
    """Names mean fields where an expression is expected; everything else is itself or a bound
    value.
    """
    if isinstance(value, Expression):
        return value
    return F(value) if isinstance(value, str) else Value(value)


class Related(Condition):
    """A condition on the rows of a relation: that "any", "all" or "none" of them meet `where`."""

    __slots__ = ("kind", "path", "where")

    def __init__(self, kind: str, path: str, where: Condition | None) -> None:
        check_untainted(path)
        self.kind = kind
        self.path = path
        self.where = where


def any_of(relation: str, where: Condition | None = None) -> Condition:
    """At least one related row meets `where`: all of its conditions speak of the same row."""
    return Related("any", relation, where)


def none_of(relation: str, where: Condition | None = None) -> Condition:
    """No related row meets `where`."""
    return Related("none", relation, where)


def all_of(relation: str, where: Condition) -> Condition:
    """Every related row meets `where`; true where there is none."""
    return Related("all", relation, where)
